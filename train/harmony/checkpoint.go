package harmony

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"io"

	"github.com/cotenant/cotenant/internal/num"
	"github.com/cotenant/cotenant/rl"
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
	o := c.Rl
	c.Worlds, c.Workers, c.Rl = nil, 0, nil
	return rl.Fingerprint(c, o, names)
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
		c.Best = t.best.net.Numbers()
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
	var kept *num.Scorer
	if len(c.Best) > 0 {
		kept = t.learner.Net.Clone()
		if err := kept.SetNumbers(c.Best); err != nil {
			return fmt.Errorf("restore the training: its best network: %w", err)
		}
	}
	if err := t.learner.Restore(bytes.NewReader(c.Learner)); err != nil {
		return err
	}
	t.best, t.looked = champion{kept, c.Score, c.Update}, c.Looked
	return nil
}
