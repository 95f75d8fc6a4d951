package suite

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed suite.yaml *.sh *.py packages.txt
var files embed.FS

// Unpack writes the suite's files into a folder and returns the path of
// suite.yaml there.
func Unpack(dir string) (string, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("suite: %w", err)
	}
	for _, e := range entries {
		data, err := files.ReadFile(e.Name())
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, e.Name()), data, 0o644); err != nil {
			return "", fmt.Errorf("suite: %w", err)
		}
	}
	return filepath.Join(dir, "suite.yaml"), nil
}

// Text is suite.yaml as it ships.
func Text() []byte {
	text, err := files.ReadFile("suite.yaml")
	if err != nil {
		panic(err) // it is embedded
	}
	return text
}
