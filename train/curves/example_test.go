package curves_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cotenant/cotenant/train/curves"
)

func Example() {
	dir, err := os.MkdirTemp("", "curves")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	log, err := curves.Open(dir, 0, at)
	if err != nil {
		fmt.Println(err)
		return
	}
	for update, v := range []float64{0.97, 0.93} {
		if err := log.Add(update, at, []curves.Scalar{{Tag: "validation/jct_over_spread", Value: v}}); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := log.Close(); err != nil {
		fmt.Println(err)
		return
	}
	text, err := os.ReadFile(filepath.Join(dir, curves.LinesFile))
	fmt.Print(string(text))
	fmt.Println(err)
	// Output:
	// {"step":0,"time":"2026-01-02T03:04:05Z","validation/jct_over_spread":0.97}
	// {"step":1,"time":"2026-01-02T03:04:05Z","validation/jct_over_spread":0.93}
	// <nil>
}
