package metis

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"

	place_metis "github.com/cotenant/cotenant/place/metis"
	"github.com/cotenant/cotenant/rl"
)

// checkpointVersion changes with the layout of checkpoint.
const checkpointVersion = 2

// checkpoint is all that a Trainer knows beyond its Config.
type checkpoint struct {
	Version int
	// Config is what the result depends on, in words, so that a run goes on only
	// as what it began as.
	Config   string
	Learners [levels][]byte
	// Steady and Best are the tensors of the networks, in the order of the
	// levels; Best is empty before the first Look.
	Steady, Best [][]float32
	Score        float64
	Update       int
	// Looked is the update of the last Look, -1 for none.
	Looked int
}

// fingerprint says all of a Config that the result depends on but for what is
// in its worlds, of which it has the names.
func (c Config) fingerprint() string {
	names := make([]string, len(c.Worlds))
	for i := range c.Worlds {
		names[i] = c.Worlds[i].Name
	}
	o := c.Rl
	c.Worlds, c.Workers, c.Rl = nil, 0, nil
	return rl.Fingerprint(c, o, names)
}

func numbers(nets place_metis.Nets) (data [][]float32) {
	for _, n := range list(nets) {
		data = append(data, n.Numbers()...)
	}
	return data
}

// filled are networks of the shapes of this run with other numbers.
func (t *Trainer) filled(data [][]float32) (place_metis.Nets, error) {
	nets := clone(t.nets())
	var bad error
	for _, net := range list(nets) {
		n := min(len(data), len(net.Tensors()))
		bad = errors.Join(bad, net.SetNumbers(data[:n]))
		data = data[n:]
	}
	return nets, bad
}

// Save writes all that a Trainer of the same Config needs to go on as if it
// had never stopped.
func (t *Trainer) Save(w io.Writer) error {
	c := checkpoint{
		Version: checkpointVersion, Config: t.Config.fingerprint(), Steady: numbers(t.steady),
		Score: t.best.score, Update: t.best.update, Looked: t.looked,
	}
	for l, learner := range t.learners {
		var b bytes.Buffer
		if err := learner.Save(&b); err != nil {
			return err
		}
		c.Learners[l] = b.Bytes()
	}
	if t.best.nets.Node != nil {
		c.Best = numbers(t.best.nets)
	}
	if err := gob.NewEncoder(w).Encode(c); err != nil {
		return fmt.Errorf("save the training: %w", err)
	}
	return nil
}

// Restore reads what Save wrote. It is an error if the Config was another one;
// the number of workers may differ. After an error the Trainer is as it was.
func (t *Trainer) Restore(r io.Reader) error {
	var c checkpoint
	if err := gob.NewDecoder(r).Decode(&c); err != nil {
		return fmt.Errorf("restore the training: not a checkpoint, or damaged: %w", err)
	}
	if err := rl.Continues(c.Version, checkpointVersion, c.Config, t.Config.fingerprint()); err != nil {
		return err
	}
	steady, err := t.filled(c.Steady)
	if err != nil {
		return fmt.Errorf("restore the training: its averages: %w", err)
	}
	var best place_metis.Nets
	if len(c.Best) > 0 {
		if best, err = t.filled(c.Best); err != nil {
			return fmt.Errorf("restore the training: its best: %w", err)
		}
	}
	var before [levels]bytes.Buffer
	for l, learner := range t.learners {
		if err := learner.Save(&before[l]); err != nil {
			return err
		}
	}
	for l, learner := range t.learners {
		if err := learner.Restore(bytes.NewReader(c.Learners[l])); err != nil {
			for k := range l {
				err = errors.Join(err, t.learners[k].Restore(&before[k]))
			}
			return err
		}
	}
	t.steady, t.best, t.looked = steady, champion{best, c.Score, c.Update}, c.Looked
	return nil
}
