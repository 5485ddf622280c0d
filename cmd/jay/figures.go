package main

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// figures is a table of a known shape: one row for each thing, whose name is in
// the first column. Where it is wider than the terminal it becomes several tables,
// each with the first column and as many others as fit, so that nothing is cut off.
type figures struct {
	header []string
	rows   [][]string
	footer []string
	words  bool // the columns after the first hold words, not numbers
}

func newFigures(header ...string) *figures { return &figures{header: header} }

// add adds a row. Integers get commas between their thousands.
func (f *figures) add(row ...any) { f.rows = append(f.rows, cellsOf(row)) }

// total sets the row below the others.
func (f *figures) total(row ...any) { f.footer = cellsOf(row) }

func cellsOf(row []any) []string {
	cells := make([]string, len(row))
	for i, v := range row {
		switch v := v.(type) {
		case string:
			cells[i] = v
		case int:
			cells[i] = thousands(int64(v))
		case int64:
			cells[i] = thousands(v)
		case uint64:
			cells[i] = thousands(int64(v))
		default:
			panic(fmt.Sprintf("a table cannot show a %T", v))
		}
	}
	return cells
}

// render returns the table for a terminal of this width, 0 for no bound.
func (f *figures) render(width int) string {
	var tables []string
	for begin := 1; begin < len(f.header) || begin == 1; {
		end := begin
		used := 1 + f.width(0)
		for end < len(f.header) && (end == begin || width == 0 || used+f.width(end) <= width) {
			used += f.width(end)
			end++
		}
		tables = append(tables, f.part(begin, end))
		if end == begin { // there is one column
			break
		}
		begin = end
	}
	return strings.Join(tables, "\n\n")
}

// width returns the width of a column with its border.
func (f *figures) width(column int) int {
	widest := displayWidth(f.header[column])
	for _, row := range append(f.rows, f.footer) {
		if column < len(row) {
			widest = max(widest, displayWidth(row[column]))
		}
	}
	return widest + 3
}

// part renders the first column and those from begin to end.
func (f *figures) part(begin, end int) string {
	pick := func(cells []string) table.Row {
		row := table.Row{cells[0]}
		for i := begin; i < end; i++ {
			cell := ""
			if i < len(cells) {
				cell = cells[i]
			}
			row = append(row, cell)
		}
		return row
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.Style().Format.Footer = text.FormatDefault
	t.AppendHeader(pick(f.header))
	for _, row := range f.rows {
		t.AppendRow(pick(row))
	}
	if f.footer != nil {
		t.AppendFooter(pick(f.footer))
	}
	if !f.words {
		var columns []table.ColumnConfig
		for i := 2; i <= 1+end-begin; i++ {
			columns = append(columns, table.ColumnConfig{Number: i, Align: text.AlignRight, AlignHeader: text.AlignRight, AlignFooter: text.AlignRight})
		}
		t.SetColumnConfigs(columns)
	}
	return t.Render()
}
