// Package deploy holds what installs cotenant-scheduler in a cluster, and the
// tests that hold it against a real control plane:
//
//	chart/          a Helm chart
//	manifests.yaml  what it renders to with its default values, for kubectl apply
//	image/          makes the container image, of which cmd/image is the command
//
// After a change of the chart write the manifests anew:
//
//	go test ./deploy -run TestManifestsAreTheChart -update
package deploy
