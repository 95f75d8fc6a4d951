// Package prometheus turns what a Prometheus server has recorded of a Kubernetes
// cluster into samples: a PromQL query for each workload says how fast its pods
// were, kube-state-metrics say which pods were on which node at the time.
//
//	config, err := prometheus.ReadConfig(text, "queries.yaml")
//	client, err := prometheus.Open(config)
//	samples, counts, err := prometheus.Samples(ctx, client, config, prometheus.Span{From: from, To: to})
//
// A sample is a window of time in which the pods on a node stayed the same, for
// long enough before it to have settled. What is not known makes no sample: steps
// at which kube-state-metrics said nothing, pods without a name, values that are
// NaN, infinite, or what exporters say for "not available". Counts say how much
// of each was left out. docs/formats.md describes the configuration.
package prometheus
