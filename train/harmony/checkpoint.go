package harmony

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"io"

	"github.com/cotenant/cotenant/internal/num"
)

// checkpointVersion changes with the layout of checkpoint.
const checkpointVersion = 1

// checkpoint is all that a Trainer knows beyond its Config.
type checkpoint struct {
	Version int
	// Config is what the result depends on, in words, so that a run goes on only
	// as what it began as.
	Config  string
	Learner []byte
	// Best is empty before the first Look.
	Best   [][]float32
	Score  float64
	Update int
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
	c.Worlds, c.Workers = nil, 0
	learner := ""
	if c.Rl != nil {
		o := *c.Rl
		o.Workers = 0
		learner, c.Rl = fmt.Sprintf("%+v", o), nil
	}
	return fmt.Sprintf("%+v %s %q", c, learner, names)
}

// Save writes all that a Trainer of the same Config needs to go on as if it
// had never stopped.
func (t *Trainer) Save(w io.Writer) error {
	c := checkpoint{Version: checkpointVersion, Config: t.Config.fingerprint(), Score: t.best.score, Update: t.best.update, Looked: t.looked}
	var b bytes.Buffer
	if err := t.learner.Save(&b); err != nil {
		return err
	}
	c.Learner = b.Bytes()
	if t.best.net != nil {
		for _, x := range t.best.net.Tensors() {
			c.Best = append(c.Best, x.Data)
		}
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
	if c.Version != checkpointVersion {
		return fmt.Errorf("restore the training: checkpoint version %d, this program reads %d: start anew", c.Version, checkpointVersion)
	}
	if now := t.Config.fingerprint(); c.Config != now {
		return fmt.Errorf("restore the training: it began with other options; go on with those of then, or start anew\nthen: %s\nnow:  %s", c.Config, now)
	}
	var kept *num.Scorer
	if len(c.Best) > 0 {
		kept = t.learner.Net.Clone()
		tensors := kept.Tensors()
		if len(tensors) != len(c.Best) {
			return fmt.Errorf("restore the training: its best network has %d tensors, want %d", len(c.Best), len(tensors))
		}
		for i, x := range tensors {
			if len(x.Data) != len(c.Best[i]) {
				return fmt.Errorf("restore the training: tensor %s of its best network has %d elements, want %d", x.Name, len(c.Best[i]), len(x.Data))
			}
			copy(x.Data, c.Best[i])
		}
	}
	if err := t.learner.Restore(bytes.NewReader(c.Learner)); err != nil {
		return err
	}
	t.best, t.looked = champion{kept, c.Score, c.Update}, c.Looked
	return nil
}
