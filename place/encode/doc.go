// Package encode turns what a policy sees into the features that its network
// reads: the same code in training and in serving, so that both see the same
// numbers. Versions are numbered; policy files name theirs.
//
//	e := encode.NewJobs(board, encode.DefaultThreshold(history.ScopeDevice))
//	e.Begin() // once a request, after Board.Reset
//	candidates, context := e.Encode(gang, options)
//
// Features are made of what a model believes (gains in progress, how sure it
// is), of who is where and for how long, and of the queue. None of them counts
// nodes or names workloads, so that one network serves clusters of any size
// and workloads that it was not trained on. Numbers are scaled to about -1..1;
// times enter as logarithms of hours.
package encode
