// Package sqlstore keeps samples in one SQLite file, for histories that grow
// over weeks: a profile session, the balancer and an importer may append to
// the same file at the same time, from several processes.
//
//	store, err := sqlstore.Open("history.db")
//	if err != nil { ... }
//	defer store.Close()
//	err = store.Append(samples...)   // all of them, or none
//	samples, err := store.All()      // in the order of appending
//
// An Append that returned is on the disk: killing the process, or losing
// power, loses nothing of it. One that did not return is either there in
// whole or not at all.
//
// The driver is modernc.org/sqlite, which needs no C compiler. Beside the
// file SQLite keeps FILE-wal and FILE-shm while it is open; they belong to it.
package sqlstore
