// Package explain says of a pod or a group of pods in a Kubernetes cluster why it
// is where it is, why it is not elsewhere, and why it still waits: one dominant
// reason first, then what else is known.
//
//	objects, err := explain.Read(file, formats.Options{Name: "pods.json"})
//	account, err := objects.Pod("default", "web-1")
//	fmt.Println(account.Words)
//
// It reads what the API server holds: the annotation cotenant.dev/decision that
// cotenant-scheduler writes with a binding, the pod's conditions and its events.
// What alternatives would be worth, Alternatives says, by a model of
// interference and on the nodes as they are; Shadow sums up what a scheduler in
// the mode shadow would have done.
//
// It decides nothing and reads no clock: the same objects give the same account.
package explain
