// Package baseline holds the placement policies that the learned ones are
// measured against, one file each. The first five look at requests and slots
// or at a summary of interference, the last two search over the model:
//
//	spread         kube-scheduler's default scores: the emptiest node
//	binpack        the fullest node that takes the task
//	random         any node that takes the task
//	tetris         demands aligned with what is free (SIGCOMM 2014)
//	paragon        caused and tolerated interference matched (ASPLOS 2013)
//	greedy         the node where the objective gains most, task by task
//	greedy-search  greedy, then swaps and moves while they help
//
// All keep every constraint, hold a task only when nothing takes it, and give
// the same decision for the same request and seed.
//
//	p, err := baseline.New("greedy-search", baseline.Options{Model: m, Params: map[string]string{"evals": "1000000"}})
//	d, err := p.Place(place.Request{View: s, Pending: groups, Rand: rand.New(rand.NewPCG(1, 0))})
package baseline
