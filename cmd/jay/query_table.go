package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
)

// answerTable prints any number of results as a table, in batches of tableBatch rows.
// The rows of the first batch determine the columns.
type answerTable struct {
	print func(text string) error
	width int // of the terminal; 0 for no bound

	rows      int64                   // added so far
	documents bool                    // the results are whole documents
	pending   []map[string]cell       // rows of the next batch
	columns   []*tableColumn          // final once the first batch is printed
	byName    map[string]*tableColumn // of columns
	hidden    []string                // members without a column, in the order of their first occurrence
	printed   bool                    // the first batch is printed
	bottom    string                  // the last line of the table, printed by end
}

// tableColumn is a column of a table.
type tableColumn struct {
	name   string
	scalar bool // it has a value that is not an array or object
	text   bool // it has a value that is neither a number nor null
	width  int  // in terminal cells
}

// cell is a formatted value.
type cell struct {
	text           string
	scalar, number bool
}

const (
	tableBatch   = 100 // rows printed at a time
	tableColumns = 256 // greatest number of columns
	tableCell    = 40  // greatest width of a value, in terminal cells

	// tableID is the name of the column of IDs, as a query writes it.
	tableID = "id()"
)

// add adds a row, and prints the batch when it is full.
func (t *answerTable) add(row *jay.Row) error {
	body, id := []byte(row.JSON), ""
	if row.Document != nil {
		body, id = row.Document.Body(), row.Document.ID()
	}
	cells := make(map[string]cell)
	for field, fragments := range row.Highlights {
		cells["highlight("+field+")"] = cell{text: fit(strings.Join(fragments, " … "), tableCell), scalar: true}
	}
	if row.Explanation != nil {
		text := strconv.FormatFloat(row.Explanation.Score, 'f', 4, 64)
		cells["score()"] = cell{text: text, scalar: true, number: true}
	}
	return t.addRow(id, row.Document != nil, gjson.ParseBytes(body), cells)
}

// addRow adds a document with its ID, or a row.
// Behind its members come those of what it includes.
func (t *answerTable) addRow(id string, document bool, members gjson.Result, included map[string]cell) error {
	if t.byName == nil {
		t.byName = make(map[string]*tableColumn)
	}
	t.rows++
	cells := make(map[string]cell)
	if document {
		t.documents = true
		t.set(cells, tableID, cell{text: fit(id, tableCell), scalar: true})
	}
	members.ForEach(func(key, value gjson.Result) bool {
		t.set(cells, fit(key.String(), tableCell), newCell(value))
		return true
	})
	for _, name := range slices.Sorted(maps.Keys(included)) {
		t.set(cells, fit(name, tableCell), included[name])
	}
	t.pending = append(t.pending, cells)
	if len(t.pending) == tableBatch {
		return t.printBatch()
	}
	return nil
}

// set adds a value to a row, if its member has a column or can still get one.
func (t *answerTable) set(cells map[string]cell, name string, c cell) {
	column := t.byName[name]
	switch {
	case column == nil && (t.printed || len(t.byName) >= tableColumns):
		t.hide(name)
		return
	case column == nil:
		column = &tableColumn{name: name, width: displayWidth(name)}
		t.byName[name] = column
		t.columns = append(t.columns, column)
	}
	column.scalar = column.scalar || c.scalar
	column.text = column.text || !c.number
	cells[name] = c
}

// hide records a member without a column.
func (t *answerTable) hide(name string) {
	if len(t.hidden) < tableColumns && !slices.Contains(t.hidden, name) {
		t.hidden = append(t.hidden, name)
	}
}

// newCell formats a value: text without quotes, unless it is empty, and other
// values as JSON.
func newCell(v gjson.Result) cell {
	switch {
	case v.Type == gjson.String && v.Str != "":
		return cell{text: fit(v.Str, tableCell), scalar: true}
	case v.Type == gjson.JSON:
		return cell{text: fit(v.Raw, tableCell)}
	}
	return cell{text: fit(v.Raw, tableCell), scalar: true, number: v.Type == gjson.Number || v.Type == gjson.Null}
}

// fit cuts s to a width, and escapes line breaks and control characters, which
// could also be commands to the terminal.
func fit(s string, width int) string {
	var b strings.Builder
	used, cut := 0, 0 // cut is the length of the result, without …, if s does not fit
	for _, r := range s {
		shown := string(r)
		switch {
		case r == '\u200c' || r == '\u200d': // joiners of letters and emoji: not graphic, but harmless
		case r == '\n':
			shown = `\n`
		case r == '\t':
			shown = `\t`
		case !unicode.IsGraphic(r):
			shown = fmt.Sprintf(`\u%04x`, r)
		}
		used += displayWidth(shown)
		if used > width {
			return b.String()[:cut] + "…"
		}
		b.WriteString(shown)
		if used < width {
			cut = b.Len()
		}
	}
	return b.String()
}

// displayWidth returns the width of s in a terminal that does not join characters.
// Terminals that do need no more.
func displayWidth(s string) int {
	width := 0
	for _, r := range s {
		width += text.RuneWidth(r)
	}
	return width
}

// printBatch prints the pending rows. All but the last line of the table are
// printed, so that the next batch can continue it.
func (t *answerTable) printBatch() error {
	if len(t.pending) == 0 {
		return nil
	}
	first := !t.printed
	if first {
		t.choose()
		t.printed = true
	} else {
		t.measure()
	}

	w := table.NewWriter()
	w.SetStyle(table.StyleLight)
	w.Style().Format.Header = text.FormatDefault
	var header table.Row
	var configs []table.ColumnConfig
	for i, c := range t.columns {
		align := text.AlignLeft
		if !c.text {
			align = text.AlignRight
		}
		header = append(header, fit(c.name, c.width))
		configs = append(configs, table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align, WidthMin: c.width, WidthMax: c.width})
	}
	w.SetColumnConfigs(configs)
	if first {
		w.AppendHeader(header)
	}
	for _, cells := range t.pending {
		row := make(table.Row, len(t.columns))
		for i, c := range t.columns {
			row[i] = fit(cells[c.name].text, c.width)
		}
		w.AppendRow(row)
	}
	t.pending = t.pending[:0]

	lines := strings.Split(w.Render(), "\n")
	if !first {
		lines = lines[1:] // without the top border
	}
	t.bottom = lines[len(lines)-1]
	return t.print(strings.Join(lines[:len(lines)-1], "\n") + "\n")
}

// choose chooses the columns. For documents it hides those with only arrays and
// objects. On a terminal it narrows the columns until all fit, and then hides the
// last ones.
func (t *answerTable) choose() {
	if t.documents {
		t.keep(func(c *tableColumn) bool { return c.scalar })
	}
	t.measure()
	if t.width == 0 {
		return
	}
	for _, limit := range []int{tableCell, 24, 16} {
		t.limit(limit)
		if t.total(len(t.columns)) <= t.width {
			return
		}
	}
	n := len(t.columns)
	for n > 1 && t.total(n) > t.width {
		n--
	}
	kept := t.columns[:n]
	t.keep(func(c *tableColumn) bool { return slices.Contains(kept, c) })
}

// keep hides all columns but the wanted ones.
func (t *answerTable) keep(wanted func(*tableColumn) bool) {
	var kept []*tableColumn
	for _, c := range t.columns {
		if wanted(c) {
			kept = append(kept, c)
			continue
		}
		delete(t.byName, c.name)
		t.hide(c.name)
	}
	t.columns = kept
}

// measure widens the columns to their values. Columns that were fitted to the
// terminal keep their width, except that of IDs: a cut ID is of no use.
func (t *answerTable) measure() {
	for _, c := range t.columns {
		if t.printed && t.width > 0 && c.name != tableID {
			continue
		}
		for _, cells := range t.pending {
			c.width = max(c.width, displayWidth(cells[c.name].text))
		}
	}
}

// limit bounds the width of all columns but that of IDs.
func (t *answerTable) limit(width int) {
	for _, c := range t.columns {
		if c.name != tableID {
			c.width = min(c.width, width)
		}
	}
}

// total returns the width of a table of the first n columns, with borders.
func (t *answerTable) total(n int) int {
	width := 1
	for _, c := range t.columns[:n] {
		width += c.width + 3
	}
	return width
}

// end prints the last rows and the bottom border.
func (t *answerTable) end() error {
	if err := t.printBatch(); err != nil || t.bottom == "" {
		return err
	}
	return t.print(t.bottom + "\n")
}

// counted returns the number of results as text.
func (t *answerTable) counted() string {
	what := "row"
	if t.documents {
		what = "document"
	}
	if t.rows == 0 {
		return "no answers"
	}
	return count(t.rows, what)
}

// notShown lists members without a column.
func (t *answerTable) notShown() string {
	const named = 12
	if len(t.hidden) <= named {
		return strings.Join(t.hidden, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(t.hidden[:named], ", "), len(t.hidden)-named)
}
