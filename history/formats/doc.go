// Package formats reads and writes files of measurements and clusters: our own
// samples (JSON Lines and CSV), Metis's tables (NumPy and CSV) and batches,
// Gavel's throughputs and traces, DL2's speeds, Kubernetes snapshots, and the
// openb trace. docs/formats.md describes each.
//
// Readers share one shape, func(io.Reader, Options) (T, Report, error), and
// ReadFile opens a path for any of them:
//
//	samples, report, err := formats.ReadFile("table.npz",
//		formats.Options{Columns: []string{"redis", "mms"}}, formats.ReadMetisNPZ)
//	for _, w := range report.Warnings { ... }   // what was left out, and why
//
// They keep the same rules. Gzip is unpacked, a UTF-8 byte order mark
// stripped, CRLF accepted. A bad record is left out, counted and reported, or
// with Options.Strict ends the reading; its error names file, line (or row or
// item), field and value. A container that is damaged as a whole (gzip, zip,
// JSON document) is an error either way. Nothing is unpickled, no unit is
// guessed, and what can't be parsed never becomes 0. Limits bound the memory
// that a huge or hostile file can take.
//
// Traces of jobs are read as TraceJobs, held against the cluster by
// Runnable.Check, and turned into gangs by TraceJob.Job:
//
//	jobs, report, err := formats.ReadFile("ed69ec.trace", formats.Options{}, formats.ReadTrace)
//	jobs, report, err = formats.Runnable{Rates: rates, Classes: []string{"v100"}, Devices: 32}.Check(jobs, formats.Options{})
//
// WriteFile replaces a file in one step, so that none is left half-written.
package formats
