// Command cotenant measures how workloads slow each other down, learns it,
// and places them where they interfere least.
//
//	cotenant plan services --samples colocations.csv --batch batch.csv:0 --nodes 81 --slots 8
//
// Every verb writes its results to stdout and everything else to stderr, and
// exits 0 when done, 1 when it failed and 2 when it was used wrongly; profile
// --verify exits 3 where a cell lies outside what its spread states.
package main
