package main

import (
	"fmt"
	"io"
	"strconv"
)

// trainServicesRow is the result in one world.
type trainServicesRow struct {
	Policy     string `json:"policy"`
	Seed       uint64 `json:"seed"`
	Updates    int    `json:"updates"`
	BestUpdate int    `json:"best_update"`
	World      string `json:"world"`
	// By how much the networks are above greedy on the validation batches, as a
	// share: the best, and those before the first update.
	Above     number `json:"above_greedy"`
	Untrained number `json:"untrained_above_greedy"`
	Seconds   number `json:"seconds"`
}

func (t *servicesTraining) write(w io.Writer) error {
	_, at := t.Best()
	var rows []trainServicesRow
	for i, world := range t.Config.Worlds {
		rows = append(rows, trainServicesRow{
			Policy: t.flags.out, Seed: t.flags.seed, Updates: t.Updates(), BestUpdate: at, World: world.Name,
			Above: number(t.state.Looks[at][i]), Untrained: number(t.state.Looks[0][i]), Seconds: number(t.seconds()),
		})
	}
	switch t.flags.output {
	case "json":
		return writeJSON(w, rows)
	case "yaml":
		return writeYAML(w, rows)
	}
	var cells [][]string
	if t.flags.output == "csv" {
		for _, r := range rows {
			cells = append(cells, []string{
				r.Policy, strconv.FormatUint(r.Seed, 10), strconv.Itoa(r.Updates), strconv.Itoa(r.BestUpdate), r.World,
				r.Above.exact(), r.Untrained.exact(), r.Seconds.exact(),
			})
		}
		return writeCSV(w, []string{
			"policy", "seed", "updates", "best_update", "world", "above_greedy", "untrained_above_greedy", "seconds",
		}, cells)
	}
	for _, r := range rows {
		cells = append(cells, []string{r.World, (100 * r.Untrained).text(2), (100 * r.Above).text(2)})
	}
	if err := writeTable(w, []string{"world", " untrained, % above greedy", " trained"}, cells); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nThe mean performance on validation batches. Seed %d; the best is that after update %d of %d; %s s.\n",
		t.flags.seed, at, t.Updates(), rows[0].Seconds.text(0))
	return err
}
