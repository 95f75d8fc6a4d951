package main

import (
	"os"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/interference"
)

// A file of another kind is named as what it is, in one line.
func TestAFileOfAnotherKindIsRecognised(t *testing.T) {
	fitted, err := os.ReadFile(model(t, interference.KindNeural, "testdata/samples.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"a model file by cotenant fit": file(t, "m.safetensors", string(fitted)),
		"measurements":                 "testdata/samples.jsonl",
		"a kubeconfig":                 file(t, "config", "apiVersion: v1\nkind: Config\nclusters: []\n"),
		"a cluster's objects":          file(t, "c.json", `{"apiVersion":"v1","kind":"List","items":[]}`),
		"no text, and no file":         file(t, "p.png", "\x89PNG\r\n\x1a\n\x00\x00abc\n\x00def\n"),
	}
	takes := map[string]string{"--model": "a model file by cotenant fit", "--samples": "measurements"}
	for what, path := range files {
		for _, args := range [][]string{
			{"plan", "services", "--batch", "testdata/batch.csv", "--nodes", "3", "--samples"},
			{"plan", "services", "--batch", "testdata/batch.csv", "--nodes", "3", "--constraints"},
			{"plan", "services", "--nodes", "3", "--batch"},
			{"fit", "--samples"},
			{"explain", "pod", "p", "--cluster", "testdata/busy.json", "--samples"},
		} {
			flag := args[len(args)-1]
			if takes[flag] == what {
				continue
			}
			_, errs, code := cotenant(t, append(args, path)...)
			if code != exitFailed || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, flag+": "+path+" is "+what) {
				t.Errorf("%q %s: exit %d: %s", args, path, code, errs)
			}
		}
	}
	if _, errs, code := cotenant(t, "fit", "--samples", file(t, "s.csv", "a;b\n1;2\n")); code != exitFailed || strings.Count(errs, "\n") != 1 {
		t.Errorf("exit %d: %s; want the error alone, which names the first bad record", code, errs)
	}
}
