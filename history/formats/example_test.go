package formats_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/cotenant/cotenant/history/formats"
)

// A table in Metis's plain form becomes JSON Lines; one row is bad.
func Example() {
	const table = "redis,mms,rps_redis,rps_mms\n1,0,1,\n2,1,0.81,0.92\n1,-1,1,1\n"
	samples, report, err := formats.ReadMetisCSV(strings.NewReader(table), formats.Options{Name: "table.csv"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d rows read, %d skipped\n", report.Read, report.Skipped)
	for _, w := range report.Warnings {
		fmt.Println(w)
	}
	if err := formats.WriteJSONL(os.Stdout, samples); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 2 rows read, 1 skipped
	// table.csv: line 4: mms: "-1" is negative (record skipped)
	// {"source":"metis","colocation":{"redis":1},"workload":"redis","role":"replica","metric":"rate","value":1,"alone":1}
	// {"source":"metis","colocation":{"mms":1,"redis":2},"workload":"redis","role":"replica","metric":"rate","value":0.81,"alone":1}
	// {"source":"metis","colocation":{"mms":1,"redis":2},"workload":"mms","role":"replica","metric":"rate","value":0.92,"alone":1}
}
