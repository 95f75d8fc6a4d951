// Package brain holds what the scheduler decides by: an interference model and
// the policies over it, read from files, checked, read again when the files
// change, and kept as they were when the new ones are bad.
//
//	b, err := brain.New(brain.Files{Model: "/etc/cotenant/model", Services: "metis"})
//	now := b.Now()         // model, policies, version
//	changed, err := b.Reload()
package brain
