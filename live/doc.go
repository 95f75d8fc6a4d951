// Package live reads a cluster from its API server, through a kubeconfig, as
// the JSON that kubectl get -o json prints, for the readers of history/formats
// and explain:
//
//	c, err := live.Open("", "") // $KUBECONFIG or ~/.kube/config, its current context
//	var text bytes.Buffer
//	err = c.List(ctx, &text, live.Nodes, live.Pods)
//	cluster, report, err := formats.ReadKubernetes(&text, formats.Options{Name: c.Name()})
//
// It only reads. Lists come page by page, and begin anew where the API server
// has forgotten the rest. Credentials are those of the kubeconfig: certificates,
// tokens, programs that give them. Errors say which of address, certificate,
// credentials or permission is wrong.
package live
