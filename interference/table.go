package interference

// table answers exactly what was measured and is silent elsewhere.
type table struct{ *dataset }

func (table) kind() string { return KindTable }

// answer overwrites the estimates of the cells that were measured.
func (t table) answer(class, metric int, rows [][]member, out [][]Estimate) {
	for i, ms := range rows {
		r, ok := t.index[class][key(ms)]
		if !ok {
			continue
		}
		for j, o := range t.rows[r].obs[metric] {
			if o.measured {
				out[i][j] = Estimate{Value: o.value, Std: o.std, Known: true, Measured: true}
			}
		}
	}
}
