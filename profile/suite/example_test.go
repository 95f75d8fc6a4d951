package suite_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/cotenant/cotenant/profile"
	"github.com/cotenant/cotenant/profile/suite"
)

func Example() {
	dir, err := os.MkdirTemp("", "suite")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path, err := suite.Unpack(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := profile.LoadSuite(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.Join(s.Names(), ", "))
	// Output: redis, memcached, nginx, postgres, stream, allreduce, paramserver, zstd, store, store-apart
}
