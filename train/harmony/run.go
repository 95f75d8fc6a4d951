package harmony

import (
	"context"
	"errors"
	"strings"

	"github.com/cotenant/cotenant/rl"
	"github.com/cotenant/cotenant/train/curves"
)

// Report is what Run tells of.
type Report struct {
	// Update counts those made, imitations not among them.
	Update int
	// Stats are of the step that was just made; nil after a look.
	Stats *rl.Stats
	// Imitated says that the step imitated greedy-wait.
	Imitated bool
	// Ratios are the mean JCT over that of each of Rivals, where the network was
	// just looked at; nil after a step.
	Ratios []float64
}

// Run makes the updates that are left, looks at the network before the first,
// every few and after the last, and tells each of both. An error of each ends
// it; Save and Restore then go on from there, to the same result.
func (t *Trainer) Run(ctx context.Context, each func(Report) error) error {
	for {
		if t.due() {
			ratios, err := t.Look(ctx)
			if err != nil {
				return err
			}
			if err := each(Report{Update: t.Updates(), Ratios: ratios}); err != nil {
				return err
			}
		}
		if t.Done() {
			return nil
		}
		before := t.Updates()
		stats, err := t.Step(ctx)
		if err != nil {
			return err
		}
		if stats.Decisions == 0 {
			return errors.New("no episode had a decision to learn from: give the worlds more jobs, or more load")
		}
		if err := each(Report{Update: t.Updates(), Stats: &stats, Imitated: t.Updates() == before}); err != nil {
			return err
		}
	}
}

// due says whether the network of now is to be looked at and was not.
func (t *Trainer) due() bool {
	n := t.Updates()
	return (n%t.Config.Every == 0 || t.Done()) && t.looked != n && t.learner.Imitations() >= t.Config.Warm
}

// Scalars are the curves of a report; docs/glossary.md explains each.
func (p Report) Scalars() []curves.Scalar {
	var out []curves.Scalar
	for i, v := range p.Ratios {
		out = append(out, curves.Scalar{Tag: "validation/jct_over_" + strings.ReplaceAll(Rivals[i].Name, "-", "_"), Value: v})
	}
	if s := p.Stats; s != nil {
		out = append(out,
			curves.Scalar{Tag: "train/reward", Value: s.Reward},
			curves.Scalar{Tag: "train/return", Value: s.Return},
			curves.Scalar{Tag: "train/advantage", Value: s.Advantage},
			curves.Scalar{Tag: "train/decisions", Value: float64(s.Decisions)},
			curves.Scalar{Tag: "train/remembered", Value: float64(s.Remembered)},
			curves.Scalar{Tag: "train/shared", Value: s.Shared},
			curves.Scalar{Tag: "policy/loss", Value: s.Policy},
			curves.Scalar{Tag: "policy/entropy", Value: s.Entropy},
			curves.Scalar{Tag: "policy/divergence", Value: s.Divergence},
			curves.Scalar{Tag: "policy/clipped", Value: s.Clipped},
			curves.Scalar{Tag: "policy/imitation_loss", Value: s.Imitation},
			curves.Scalar{Tag: "policy/good_loss", Value: s.Good},
			curves.Scalar{Tag: "critic/loss", Value: s.Value},
			curves.Scalar{Tag: "critic/explained", Value: s.Explained},
			curves.Scalar{Tag: "optimizer/gradient", Value: s.Gradient},
			curves.Scalar{Tag: "optimizer/epochs", Value: float64(s.Epochs)},
		)
	}
	return out
}
