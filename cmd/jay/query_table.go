package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
)

// answerTable prints answers as a table, however many there are: the first
// rows decide which columns it has, and it is printed in pieces of as many.
type answerTable struct {
	print func(text string) error
	width int // of the terminal; 0 for no bound

	rows      int64 // so far
	documents bool  // the answers are whole documents
	pending   []map[string]cell
	columns   []*tableColumn // of what is pending, until the first piece is printed
	byName    map[string]*tableColumn
	hidden    []string // members without a column, in the order in which they came
	printed   bool     // the first piece is: the columns are decided
	bottom    string   // the last line, to be printed
}

// tableColumn is a column of a table.
type tableColumn struct {
	name   string
	scalar bool // a value was no array or object
	text   bool // a value was neither a number nor null
	width  int
}

// cell is a value as it is shown.
type cell struct {
	text           string
	scalar, number bool
}

const (
	tablePiece   = 100 // rows
	tableColumns = 256 // at most
	tableCell    = 40  // characters of a value, at most

	// tableID is the column of the ID, as a query calls it. A member can have
	// any other name.
	tableID = "id()"
)

// add adds a row, and prints what fills a piece.
func (t *answerTable) add(row *jay.Row) error {
	if t.byName == nil {
		t.byName = make(map[string]*tableColumn)
	}
	t.rows++
	cells := make(map[string]cell)
	json := row.JSON
	if row.Document != nil {
		t.documents = true
		json = row.Document.Body()
		t.set(cells, tableID, cell{text: fit(row.Document.ID(), tableCell), scalar: true})
	}
	gjson.ParseBytes(json).ForEach(func(key, value gjson.Result) bool {
		t.set(cells, fit(key.String(), tableCell), newCell(value))
		return true
	})
	t.pending = append(t.pending, cells)
	if len(t.pending) == tablePiece {
		return t.piece()
	}
	return nil
}

// set puts a value into a row, if it has a column or can still get one.
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

// hide remembers a member that is not shown.
func (t *answerTable) hide(name string) {
	if len(t.hidden) < tableColumns && !slices.Contains(t.hidden, name) {
		t.hidden = append(t.hidden, name)
	}
}

// newCell returns a value as it is shown: text without quotes, unless it is
// empty, all else as JSON.
func newCell(v gjson.Result) cell {
	switch {
	case v.Type == gjson.String && v.Str != "":
		return cell{text: fit(v.Str, tableCell), scalar: true}
	case v.Type == gjson.JSON:
		return cell{text: fit(v.Raw, tableCell)}
	}
	return cell{text: fit(v.Raw, tableCell), scalar: true, number: v.Type == gjson.Number || v.Type == gjson.Null}
}

// fit cuts s to a width, and escapes what would not stay on its line or would
// give orders to a terminal.
func fit(s string, width int) string {
	var b strings.Builder
	used, cut := 0, 0 // cut is where s ends if there is no room for all of it
	for _, r := range s {
		shown := string(r)
		switch {
		case r == '\u200c' || r == '\u200d': // join letters and emoji
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

// displayWidth is the width of s in a terminal that joins no characters, and so
// never less than what others make of it.
func displayWidth(s string) int {
	width := 0
	for _, r := range s {
		width += text.RuneWidth(r)
	}
	return width
}

// piece prints what is pending, and the line that ended the table before.
func (t *answerTable) piece() error {
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
		lines = lines[1:] // the top
	}
	t.bottom = lines[len(lines)-1]
	return t.print(strings.Join(lines[:len(lines)-1], "\n") + "\n")
}

// choose decides which columns there are: for documents not those that hold
// nothing but arrays and objects, and as many as fit on the terminal, where
// they are the narrower the more there are.
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

// keep takes out the other columns.
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

// measure widens the columns to what they hold. What has been made to fit on
// the terminal stays so, but for the ID, half of which is of no use.
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

// limit makes columns narrower, but for that of the ID.
func (t *answerTable) limit(width int) {
	for _, c := range t.columns {
		if c.name != tableID {
			c.width = min(c.width, width)
		}
	}
}

// total is the width of a table of the first n columns.
func (t *answerTable) total(n int) int {
	width := 1
	for _, c := range t.columns[:n] {
		width += c.width + 3
	}
	return width
}

// end prints the last rows, and what ends the table.
func (t *answerTable) end() error {
	if err := t.piece(); err != nil || t.bottom == "" {
		return err
	}
	return t.print(t.bottom + "\n")
}

// counted says how many answers there were.
func (t *answerTable) counted() string {
	what := "row"
	if t.documents {
		what = "document"
	}
	switch t.rows {
	case 0:
		return "no answers"
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", t.rows, what)
}

// notShown names members without a column.
func (t *answerTable) notShown() string {
	const named = 12
	if len(t.hidden) <= named {
		return strings.Join(t.hidden, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(t.hidden[:named], ", "), len(t.hidden)-named)
}
