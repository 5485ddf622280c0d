package query

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/jaydb/jay/internal/jsonpath"
)

// maxGroupsPerDocument bounds the groups that one document is in, as several
// fields that reach many values each multiply.
const maxGroupsPerDocument = 10_000

var null = ValueOf([]byte("null"))

// Groups gathers documents into groups and works out their columns.
//
// A document is in the group of the value that each field of the group by
// reaches; if a field reaches several it is in several groups, in each once.
// Values group by what they are, regarding case; missing counts as null.
// Without a group by there is one group, of all documents, even if there are
// none. Numbers of columns have one spelling, that of encoding/json, whatever
// the documents' is, so that rows do not depend on the order of documents.
//
// Groups is not safe for concurrent use.
type Groups struct {
	columns []Column
	keys    []int // for a column that is a field of the group by: which; else -1
	by      int   // fields of the group by, the first in reader; columns follow
	reader  *Reader

	groups  map[string]*group
	ordered []*group // as they came
	added   int64    // documents
	used    int
	limit   int

	key    []byte
	choice []int // of the values of each field of the group by
	pace   *Pace
}

// group is one group.
type group struct {
	keys  []Value
	cells []cell // parallel to the columns
	last  int64  // the document that was added last
}

// cell is one column of one group, so far.
type cell struct {
	total total
	best  Value
}

// NewGroups returns Groups without documents. They use at most about maxBytes
// of memory if that is above 0.
//
// It returns ErrColumn for a column that has neither a function nor a field of
// the group by, has no name, or the name of another.
func NewGroups(groupBy []Field, columns []Column, maxBytes int) (*Groups, error) {
	g := &Groups{columns: columns, by: len(groupBy), groups: make(map[string]*group), limit: maxBytes}
	if err := checkNames(columns); err != nil {
		return nil, err
	}
	fields := append([]Field(nil), groupBy...)
	for _, c := range columns {
		at := -1
		for i, f := range groupBy {
			if keyOf(f) == keyOf(c.Field) {
				at = i
			}
		}
		if c.Func > FuncMax || c.Func == FuncNone && at < 0 {
			return nil, fmt.Errorf("%w: %q is not the same for all documents of a group", ErrColumn, c.Name)
		}
		g.keys = append(g.keys, at)
		if c.Func == FuncNone || c.Func == FuncCount {
			c.Field = Field{Meta: MetaID} // which is not read
		}
		fields = append(fields, c.Field)
	}
	g.reader = NewReader(fields)
	g.choice = make([]int, g.by)
	if g.by == 0 {
		g.groups[""] = &group{cells: make([]cell, len(columns))}
		g.ordered = append(g.ordered, g.groups[""])
	}
	return g, nil
}

// checkNames returns ErrColumn if a column has no name or that of another.
func checkNames(columns []Column) error {
	seen := make(map[string]bool, len(columns))
	for _, c := range columns {
		if c.Name == "" {
			return fmt.Errorf("%w: it has no name", ErrColumn)
		}
		if seen[c.Name] {
			return fmt.Errorf("%w: %q is there twice", ErrColumn, c.Name)
		}
		seen[c.Name] = true
	}
	return nil
}

// SetPace makes Add end with a Pace, whose error it returns then.
func (g *Groups) SetPace(p *Pace) {
	g.pace = p
	g.reader.SetPace(p)
}

// Add adds a document. It returns a *LimitError if the groups need more memory
// than they may or the document is in more than 10,000 groups, and ErrNumber for
// a number to be added up that is beyond MaxExponent.
func (g *Groups) Add(doc Doc) error {
	g.added++
	g.reader.Reset(doc)
	combinations := 1
	for i := range g.by {
		if g.reader.Many(i) {
			return &LimitError{"groups of one document", maxGroupsPerDocument, maxHeldValues}
		}
		if n := len(g.reader.Values(i)); n > 1 {
			if combinations *= n; combinations > maxGroupsPerDocument {
				return &LimitError{"groups of one document", maxGroupsPerDocument, combinations}
			}
		}
	}

	clear(g.choice)
	for range combinations {
		if err := g.addTo(g.chosen()); err != nil {
			return err
		}
		for i := range g.choice { // the next combination
			if g.choice[i]++; g.choice[i] < len(g.reader.Values(i)) {
				break
			}
			g.choice[i] = 0
		}
	}
	return g.pace.Err()
}

// chosen returns the group of the values that are chosen now.
func (g *Groups) chosen() *group {
	g.key = g.key[:0]
	for i := range g.by {
		g.key = appendIdentity(g.key, g.value(i))
	}
	g.pace.Spend(len(g.key))
	if found, ok := g.groups[string(g.key)]; ok {
		return found
	}

	made := &group{cells: make([]cell, len(g.columns))}
	for i := range g.by {
		made.keys = append(made.keys, canonical(g.value(i)))
	}
	g.groups[string(g.key)] = made
	g.ordered = append(g.ordered, made)
	const perGroup, perCell = 160, 96
	g.used += perGroup + 3*len(g.key) + perCell*len(g.columns)
	return made
}

// value returns the value that is chosen now for a field of the group by.
func (g *Groups) value(field int) Value {
	if values := g.reader.Values(field); len(values) > 0 {
		return values[g.choice[field]]
	}
	return null
}

func (g *Groups) addTo(to *group) error {
	if to.last == g.added {
		return nil
	}
	to.last = g.added
	for i, c := range g.columns {
		if err := g.addCell(&to.cells[i], c.Func, g.by+i); err != nil {
			return fmt.Errorf("column %q: %w", c.Name, err)
		}
	}
	if g.limit > 0 && g.used > g.limit {
		return &LimitError{"bytes of groups", g.limit, g.used}
	}
	return nil
}

func (g *Groups) addCell(to *cell, fn Func, field int) (err error) {
	switch fn {
	case FuncCount:
		to.total.count++
	case FuncSum, FuncAvg:
		g.reader.Each(field, func(v Value) bool {
			if v.kind == KindNumber {
				err = g.addNumber(&to.total, v.raw)
			}
			return err == nil
		})
	case FuncMin, FuncMax:
		g.reader.Each(field, func(v Value) bool {
			if to.best.IsMissing() || (v.Compare(to.best) < 0) == (fn == FuncMin) && !v.Equal(to.best) {
				g.used -= len(to.best.raw)
				to.best = canonical(v)
				g.used += len(to.best.raw)
			}
			return g.pace.Spend(len(v.raw))
		})
	}
	return cmp.Or(err, g.pace.Err())
}

// sumTextBytes is how many bytes a sum's text has at most for each byte of the
// sum, and the memory for working it out beside it.
const sumTextBytes = 6

func (g *Groups) addNumber(to *total, raw []byte) error {
	g.pace.Spend(len(raw))
	grown, err := to.add(raw)
	if grown != 0 {
		g.pace.Spend(windowDigits)
		g.used += sumTextBytes * grown
	}
	return err
}

// Len returns the number of groups.
func (g *Groups) Len() int { return len(g.ordered) }

// Rows yields the groups in the order in which their first documents came,
// each as the values of its columns. The row belongs to the caller.
func (g *Groups) Rows() iter.Seq[[]Value] {
	return func(yield func([]Value) bool) {
		for i := range g.ordered {
			if !yield(g.Row(i)) {
				return
			}
		}
	}
}

// Row returns row i of Rows, which counts from 0.
func (g *Groups) Row(i int) []Value {
	from := g.ordered[i]
	row := make([]Value, len(g.columns))
	for i, c := range g.columns {
		if row[i] = from.cells[i].value(c.Func); c.Func == FuncNone {
			row[i] = from.keys[g.keys[i]]
		}
	}
	return row
}

func (c *cell) value(fn Func) Value {
	switch fn {
	case FuncCount:
		v, _ := NewValue(c.total.count)
		return v
	case FuncSum:
		return c.total.sum()
	case FuncAvg:
		return c.total.mean()
	}
	if c.best.IsMissing() {
		return null
	}
	return c.best
}

// AppendRow appends a row as a JSON object with a member for each column, null
// for what is missing.
func AppendRow(dst []byte, columns []Column, row []Value) []byte {
	dst = append(dst, '{')
	for i, c := range columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsonpath.AppendQuoted(dst, c.Name), ':')
		if row[i].IsMissing() {
			dst = append(dst, "null"...)
		} else {
			dst = row[i].AppendJSON(dst)
		}
	}
	return append(dst, '}')
}

// appendIdentity appends bytes that two values have in common if they are
// equal, and only then.
func appendIdentity(dst []byte, v Value) []byte {
	dst = append(dst, byte(v.kind))
	start := len(dst)
	switch v.kind {
	case KindNumber:
		if n, small := smallInt(v.raw); small && n != 0 {
			dst = append(dst, v.raw...)
		} else {
			dst = parseNumber(v.raw).append(dst)
		}
	case KindText:
		var buf [64]byte
		dst = append(dst, v.text(buf[:])...)
	default:
		dst = append(dst, v.raw...)
	}
	return binary.BigEndian.AppendUint32(dst, uint32(len(dst)-start))
}

// canonical returns v in memory of its own, in the one spelling that values
// equal to it have, but for numbers beyond MaxExponent, which keep their own: no
// other number is shown in place of one.
func canonical(v Value) Value {
	switch v.kind {
	case KindNumber:
		if n := parseNumber(v.raw); !n.beyond {
			return ValueOf(n.append(nil))
		}
	case KindText:
		return TextValue(v.Text())
	}
	return v.Clone()
}

// Distinct tells the rows that it has not seen yet, by their bytes. Make one
// with NewDistinct. It is not safe for concurrent use.
type Distinct struct {
	seen  map[string]struct{}
	used  int
	limit int
}

// NewDistinct returns a Distinct that has seen nothing. It uses at most about
// maxBytes of memory if that is above 0.
func NewDistinct(maxBytes int) *Distinct {
	return &Distinct{seen: make(map[string]struct{}), limit: maxBytes}
}

// Add tells whether row is the first of its kind. It returns a *LimitError if
// it needs more memory than it may.
func (d *Distinct) Add(row []byte) (first bool, err error) {
	if _, found := d.seen[string(row)]; found {
		return false, nil
	}
	const perRow = 48
	if d.used += perRow + len(row); d.limit > 0 && d.used > d.limit {
		return false, &LimitError{"bytes of distinct rows", d.limit, d.used}
	}
	d.seen[string(row)] = struct{}{}
	return true, nil
}
