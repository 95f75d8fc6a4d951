package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
)

var page = template.Must(template.New("page").Parse(pageHTML))

// Write writes the report as one HTML page. Everything in Data is escaped:
// names may hold anything. Nothing is written to w if the page cannot be made.
func Write(w io.Writer, d Data) error {
	var b bytes.Buffer
	if err := page.Execute(&b, newView(d)); err != nil {
		return fmt.Errorf("report %q: %w", d.Title, err)
	}
	if _, err := b.WriteTo(w); err != nil {
		return fmt.Errorf("report %q: %w", d.Title, err)
	}
	return nil
}
