package whole_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cotenant/cotenant/internal/whole"
)

// A write that fails leaves the file as it was.
func Example() {
	dir, err := os.MkdirTemp("", "whole")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "plan.json")
	say := func(text string, then error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return errors.Join(err, then)
		}
	}
	fmt.Println(whole.File(path, say("first", nil)))
	fmt.Println(whole.File(path, say("sec", errors.New("out of words"))) != nil)
	text, err := os.ReadFile(path)
	fmt.Println(string(text), err)
	// Output:
	// <nil>
	// true
	// first <nil>
}
