package sqlstore_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/history/sqlstore"
)

func Example() {
	dir, err := os.MkdirTemp("", "history")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := sqlstore.Open(filepath.Join(dir, "history.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := store.Append(history.Sample{
		Colocation: cluster.Colocation{"redis": 1, "nginx": 2}, Workload: "redis",
		Metric: history.Rate, Value: 61e3, Alone: 80e3,
	}); err != nil {
		log.Fatal(err)
	}
	samples, err := store.All()
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range samples {
		p, _ := s.Performance()
		fmt.Println(s.Colocation.Key(), s.Workload, p)
	}
	// Output: nginx*2+redis redis 0.7625
}
