package baseline

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/cotenant/cotenant/cluster"
)

// shapes sorts nodes by all that tells them apart before a pending task is
// put: class, room, running tasks and the labels that rules read.
type shapes struct {
	of    []int32 // by node: its shape
	first []int32 // by shape: a node of it
	// coupled says that what fits on a node depends on other nodes, too.
	coupled bool
}

// shapesOf numbers the shapes of a placement with nothing put. A domain that
// holds a single node is left out of a shape: all that counts in it is what
// the node itself runs. Nodes also differ where more, if given, does, and by
// their domains under the keys.
func shapesOf(p *cluster.Placement, more func(key []byte, node int) []byte, keys ...string) shapes {
	nodes := p.Snapshot().Nodes()
	rules := p.Snapshot().Constraints()
	out := shapes{of: make([]int32, len(nodes)), coupled: len(rules.Spread) > 0}
	ruled := map[string]bool{}
	for _, s := range rules.Spread {
		ruled[s.Key] = true
	}
	for _, a := range rules.AntiAffinity {
		if a.Key == "" {
			a.Key = cluster.HostKey
		}
		ruled[a.Key] = true
	}
	for key := range ruled {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	size := map[[2]string]int{}
	for _, key := range keys {
		for n := range nodes {
			if d, ok := nodes[n].Domain(key); ok {
				size[[2]string{key, d}]++
				out.coupled = out.coupled || ruled[key] && size[[2]string{key, d}] > 1
			}
		}
	}
	var kindOf []int // the first kind of each workload that has one
	seen := make([]bool, len(p.Workloads()))
	for k := range p.Kinds() {
		if w := p.Workload(k); !seen[w] {
			seen[w] = true
			kindOf = append(kindOf, k)
		}
	}
	index := map[string]int32{}
	var key []byte
	for n := range nodes {
		slots, limited := p.FreeSlots(n)
		if !limited {
			slots = -1
		}
		key = number(word(key[:0], nodes[n].Class), slots)
		for _, x := range p.Free(n) {
			key = binary.AppendVarint(key, x)
		}
		key = number(key, p.Counts(n)...)
		for _, k := range kindOf {
			if r := p.Check(k, n); r <= cluster.NoDomain {
				key = number(key, int(r))
			} else {
				key = number(key, 0)
			}
		}
		for _, k := range keys {
			if d, ok := nodes[n].Domain(k); !ok {
				key = word(key, "none")
			} else if size[[2]string{k, d}] > 1 {
				key = word(key, "of "+d)
			} else {
				key = word(key, "own")
			}
		}
		if more != nil {
			key = more(key, n)
		}
		id, ok := index[string(key)]
		if !ok {
			id = int32(len(out.first))
			index[string(key)] = id
			out.first = append(out.first, int32(n))
		}
		out.of[n] = id
	}
	return out
}

// number, word and amounts append to a key so that what follows can't be
// mistaken for a part of it.
func number(key []byte, xs ...int) []byte {
	for _, x := range xs {
		key = binary.AppendVarint(key, int64(x))
	}
	return key
}

func word(key []byte, w string) []byte {
	return append(number(key, len(w)), w...)
}

func amounts(key []byte, r cluster.Resources) []byte {
	key = number(key, len(r))
	for _, name := range slices.Sorted(maps.Keys(r)) {
		key = binary.AppendVarint(word(key, name), r[name])
	}
	return key
}
