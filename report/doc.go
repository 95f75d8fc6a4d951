// Package report writes what was measured, how well it can be predicted and
// what every policy makes of it as one HTML file: a page that loads nothing,
// runs no script, follows the reader's light or dark theme, fits a phone and
// prints.
//
//	m := report.Measure(samples)
//	m.Machine = "2 cores, 8 GB"
//	err := report.Write(w, report.Data{Title: "Six services", Measured: m})
//
// Sections whose data is absent say so instead of vanishing, so that a reader
// never wonders whether something was forgotten.
package report
