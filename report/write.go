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
	//go:embed parts.html
	partsHTML string
)

var page = withParts("page", pageHTML)

// withParts is a page that may use the parts that all pages share.
func withParts(name, html string) *template.Template {
	return template.Must(template.Must(template.New(name).Parse(partsHTML)).Parse(html))
}

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
