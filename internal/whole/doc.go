// Package whole writes files whole or not at all. A file is written beside its
// place under a hidden name and put there in one step, so that whatever was
// there before stays until all of the new one is on the disk: when the disk is
// full, when the program is killed, and when two write the same file.
//
//	err := whole.File("plan.json", func(w io.Writer) error { ... })
//
// Several files that belong together are staged first, and committed when none
// can fail for lack of room any more:
//
//	a, err := whole.Stage("a.csv", writeA)
//	b, err := whole.Stage("b.csv", writeB)
//	err = whole.Commit(a, b)
//
// Errors name the file and say what to do: about a full disk, a read-only
// folder, a folder that is not there. What a killed program left beside a file
// is swept away by the next one to write that file, an hour later at the
// earliest.
package whole
