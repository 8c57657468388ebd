package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// table is one of Markdown, whose columns line up, so that it can be read and pasted.
type table struct {
	rows [][]string // the first is the head; all are as long
}

func newTable(head ...string) *table { return &table{rows: [][]string{head}} }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print(out io.Writer) error {
	widths := make([]int, len(t.rows[0]))
	for i := range widths {
		const least = 3 // the hyphens below the head
		widths[i] = least
		for _, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	var b strings.Builder
	for n, row := range t.rows {
		for i, cell := range row {
			fmt.Fprintf(&b, "| %-*s ", widths[i], cell)
		}
		b.WriteString("|\n")
		if n > 0 {
			continue
		}
		for _, width := range widths {
			b.WriteString("| " + strings.Repeat("-", width) + " ")
		}
		b.WriteString("|\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}
