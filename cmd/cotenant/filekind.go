package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"

	"github.com/cotenant/cotenant/live"
)

// fileKind is a kind of file that is told by its first bytes, whatever its name.
type fileKind struct {
	is    func(data []byte) bool
	what  string   // "a model file"
	flags []string // that take it, or say themselves that it is none of theirs
	give  string   // what to do with it
}

// fileKinds are those that are easily taken for one another. A reader of text
// would count their lines as so many bad records.
var fileKinds = []fileKind{
	{oursNamed("cotenant-interference-model"), "a model file by cotenant fit", []string{"model"}, "give it as --model"},
	{oursNamed("cotenant-metis-policy"), "a policy file by cotenant train services", []string{"policy"}, "give it as --policy metis@FILE"},
	{oursNamed("cotenant-harmony-policy"), "a policy file by cotenant train jobs", []string{"policy"}, "give it as --policy harmony@FILE"},
	{func(data []byte) bool { return bytes.HasPrefix(data, []byte("SQLite format 3\x00")) }, "an SQLite store of measurements", []string{"samples", "model", "policy"}, "give it as --samples"},
	{func(data []byte) bool { return isText(data) && live.IsKubeconfig(data) }, "a kubeconfig", []string{"cluster", "model", "policy"}, "give it as --cluster"},
	{begins(`^\s*\{[^\n]*"colocation"\s*:`), "measurements", []string{"samples", "model", "policy"}, "give it as --samples"},
	{begins(`^\s*(\{\s*"(apiVersion|kind)"|(apiVersion|kind):\s)`), "a cluster's objects, as kubectl prints them", []string{"cluster", "model", "policy"}, "give it as --cluster"},
	{isOther, "no text, and no file of measurements, of a model or of a policy", []string{"model", "policy"}, "check the path"},
}

func begins(expression string) func(data []byte) bool {
	e := regexp.MustCompile(expression)
	return func(data []byte) bool { return e.Match(data[:min(len(data), header)]) }
}

// header is how many bytes of a file of ours may come before the name of its
// format, or of any file before it shows that it is no text.
const header = 4 << 10

// oursNamed recognises files in the layout of safetensors by their format.
func oursNamed(format string) func(data []byte) bool {
	return func(data []byte) bool {
		head := data[:min(len(data), header)]
		return len(head) > 9 && head[8] == '{' && bytes.Contains(head, []byte(`"format":"`+format+`"`))
	}
}

// isText reports whether a file may be text, packed or not.
func isText(data []byte) bool {
	head := data[:min(len(data), header)]
	return bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) || bytes.HasPrefix(head, []byte("\x1f\x8b")) ||
		bytes.IndexByte(head, 0) < 0
}

// isOther is a file that nothing here reads: an .npz is a zip.
func isOther(data []byte) bool { return !isText(data) && !bytes.HasPrefix(data, []byte("PK\x03\x04")) }

// checkKind refuses a file of another kind than the flag takes.
func checkKind(flag, path string, data []byte) error {
	i := slices.IndexFunc(fileKinds, func(k fileKind) bool { return k.is(data) })
	if i < 0 || slices.Contains(fileKinds[i].flags, flag) {
		return nil
	}
	return fmt.Errorf("--%s: %s is %s; %s", flag, path, fileKinds[i].what, fileKinds[i].give)
}
