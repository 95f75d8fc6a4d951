package formats

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/cotenant/cotenant/internal/whole"
)

// WriteFile writes path through write, in one step: until all of it is on the
// disk, what was there stays. A path that ends in .gz is packed. "-" is
// standard output; that and pipes and devices are written directly.
func WriteFile(path string, write func(io.Writer) error) error {
	if strings.HasSuffix(path, ".gz") {
		write = packed(write)
	}
	if path == Stdin {
		out := bufio.NewWriter(os.Stdout)
		return errors.Join(write(out), out.Flush())
	}
	return whole.File(path, write)
}

func packed(write func(io.Writer) error) func(io.Writer) error {
	return func(w io.Writer) error {
		z := gzip.NewWriter(w)
		if err := write(z); err != nil {
			return err
		}
		return z.Close()
	}
}
