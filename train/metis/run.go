package metis

import (
	"context"

	"github.com/cotenant/cotenant/rl"
	"github.com/cotenant/cotenant/train/curves"
)

// Report is what Run tells of.
type Report struct {
	// Update counts those made.
	Update int
	// Stats are of the step that was just made; nil after a look. Level is of
	// which sub-policy it was: node, part or turn.
	Stats *rl.Stats
	Level string
	// Above is by how much each world's validation seeds are above greedy, as a
	// share, where the networks were just looked at; nil after a step.
	Above []float64
}

// Run makes the updates that are left, looks at the networks before the first,
// every few and after the last, and tells each of both. An error of each ends
// it; Save and Restore then go on from there, to the same result.
func (t *Trainer) Run(ctx context.Context, each func(Report) error) error {
	for {
		if n := t.Updates(); (n%t.Config.Every == 0 || t.Done()) && t.looked != n {
			above, err := t.Look(ctx)
			if err != nil {
				return err
			}
			if err := each(Report{Update: n, Above: above}); err != nil {
				return err
			}
		}
		if t.Done() {
			return nil
		}
		of, stats, err := t.step(ctx, t.Config.due(t.Updates()))
		if err != nil {
			return err
		}
		if err := each(Report{Update: t.Updates(), Stats: &stats, Level: of.String()}); err != nil {
			return err
		}
	}
}

// Scalars are the curves of a report; docs/glossary.md explains each.
func (p Report) Scalars(worlds []World) []curves.Scalar {
	var out []curves.Scalar
	for i, v := range p.Above {
		out = append(out, curves.Scalar{Tag: "validation/above_greedy_" + worlds[i].Name, Value: v})
	}
	if s := p.Stats; s != nil {
		level := p.Level + "/"
		out = append(out,
			curves.Scalar{Tag: level + "return", Value: s.Return},
			curves.Scalar{Tag: level + "advantage", Value: s.Advantage},
			curves.Scalar{Tag: level + "decisions", Value: float64(s.Decisions)},
			curves.Scalar{Tag: level + "shared", Value: s.Shared},
			curves.Scalar{Tag: level + "loss", Value: s.Policy},
			curves.Scalar{Tag: level + "entropy", Value: s.Entropy},
			curves.Scalar{Tag: level + "divergence", Value: s.Divergence},
			curves.Scalar{Tag: level + "critic_loss", Value: s.Value},
			curves.Scalar{Tag: level + "critic_explained", Value: s.Explained},
			curves.Scalar{Tag: level + "gradient", Value: s.Gradient},
		)
	}
	return out
}
