package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

var outputForms = []string{"table", "json", "yaml", "csv"}

// outputFlag adds -o.
func outputFlag(cmd *cobra.Command, form *string) {
	cmd.Flags().StringVarP(form, "output", "o", "table", "form of the results: "+strings.Join(outputForms, ", "))
}

func checkOutput(form string) error { return oneOf("output", form, outputForms) }

// oneOf refuses a flag's value that is none of a few words.
func oneOf(flag, value string, words []string) error {
	if slices.Contains(words, value) {
		return nil
	}
	return wrongUse("--%s %s: none of %s%s", flag, value, strings.Join(words, ", "), didYouMean(value, words))
}

// number is a float64 whose JSON is null where it is not finite.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	if !n.known() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

func (n number) known() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

// text is the number with a few significant decimals, "-" where there is none.
func (n number) text(decimals int) string {
	if !n.known() {
		return "-"
	}
	return strconv.FormatFloat(float64(n), 'f', decimals, 64)
}

// exact is the number for CSV: all its digits, or nothing.
func (n number) exact() string {
	if !n.known() {
		return ""
	}
	return strconv.FormatFloat(float64(n), 'g', -1, 64)
}

// writeJSON writes one array, an object a line.
func writeJSON[T any](w io.Writer, rows []T) error {
	var b bytes.Buffer
	b.WriteString("[")
	for i, r := range rows {
		text, err := marshal(r)
		if err != nil {
			return err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n  ")
		b.Write(text)
	}
	if len(rows) > 0 {
		b.WriteByte('\n')
	}
	b.WriteString("]\n")
	_, err := w.Write(b.Bytes())
	return err
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// writeYAML writes what writeJSON would, as YAML with the fields in the same
// order.
func writeYAML[T any](w io.Writer, rows []T) error {
	var text bytes.Buffer
	if err := writeJSON(&text, rows); err != nil {
		return err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text.Bytes(), &doc); err != nil {
		return fmt.Errorf("writing YAML: %w", err)
	}
	unstyle(&doc)
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(&doc); err != nil {
		return fmt.Errorf("writing YAML: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// unstyle turns the flow style of JSON into YAML's blocks.
func unstyle(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		unstyle(c)
	}
}

// writeCSV writes a header and rows.
func writeCSV(w io.Writer, header []string, rows [][]string) error {
	c := csv.NewWriter(w)
	if err := c.Write(header); err != nil {
		return err
	}
	return c.WriteAll(rows)
}

// writeTable writes columns padded with spaces; columns whose name begins
// with a space are numbers, set flush right.
func writeTable(w io.Writer, header []string, rows [][]string) error {
	width := make([]int, len(header))
	for _, r := range append([][]string{header}, rows...) {
		for i, cell := range r {
			width[i] = max(width[i], len([]rune(strings.TrimSpace(cell))))
		}
	}
	var b strings.Builder
	for n, r := range append([][]string{header}, rows...) {
		line := ""
		for i, cell := range r {
			if i > 0 {
				line += "  "
			}
			cell = strings.TrimSpace(cell)
			pad := strings.Repeat(" ", width[i]-len([]rune(cell)))
			if strings.HasPrefix(header[i], " ") {
				line += pad + cell
			} else {
				line += cell + pad
			}
		}
		if n == 0 {
			line = strings.ToUpper(line)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// count is a number of things in words.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
