package query

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"github.com/jaydb/jay/internal/jsonpath"
)

// maxGroupsPerDocument bounds the groups that one document is in: the product of
// the numbers of values that its axes have.
const maxGroupsPerDocument = 10_000

// Groups groups documents and computes the columns of each group.
//
// The group of a document is determined by the value that each field of the
// group by reaches. If a field reaches several values the document is in several
// groups, once in each: fields whose paths go through the same array are taken element by
// element, as in RavenDB, others in all combinations. Values are in one group if they are Equal; missing counts
// as null. Without a group by there is one group of all documents, even if there
// are none. Numbers in columns are written as encoding/json writes them, so that
// rows do not depend on the order of the documents.
//
// Groups is not safe for concurrent use.
type Groups struct {
	columns []Column
	keys    []int     // for each column, the index of its field in the group by, or -1
	by      int       // number of fields in the group by
	reader  *Reader   // of the fields of the group by, then those of the columns
	pickers []*picker // of columns with first and last, parallel to the columns; nil if there are none

	groups  map[string]*group // by the identities of their values: see appendIdentity
	ordered []*group          // in the order of their first documents
	added   int64             // documents added
	used    int               // bytes of memory, estimated
	listed  int               // values in lists
	limit   int               // of used; 0 for none

	key      []byte // scratch, and so is identity
	identity []byte
	axes     []axis // of the fields of the group by, in their order
	axisOf   []int  // for each field of the group by, the index of its axis
	choice   []int  // for each axis, the index of the current value
	pace     *Pace
	entry    *group  // the group of the entries that come: see Choose
	spare    []group // memory of the next groups: see newGroup
}

// group is one group.
type group struct {
	keys  []Value // of the fields of the group by
	cells []cell  // parallel to the columns
	last  int64   // number of the document that was added last
}

// cell is the state of one column of one group.
type cell struct {
	total total               // of count, sum and avg
	best  Value               // of min and max, first and last; missing if no value came
	order *Value              // of first and last: what the order has at best; nil if no value came
	seen  map[string]struct{} // of count(distinct) and list(distinct): the identities of values

	listed []Value // of list: the values, in no order
}

// NewGroups returns Groups without documents. They use about maxBytes of memory
// at most; 0 means no limit.
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
		if c.Func == FuncNone {
			at = g.keyShown(groupBy, c.Field)
		}
		if c.Func > FuncListDistinct || c.Func == FuncNone && at < 0 {
			return nil, fmt.Errorf("%w: %q is not the same for all documents of a group", ErrColumn, c.Name)
		}
		g.keys = append(g.keys, at)
		if err := g.addPicker(c); err != nil {
			return nil, err
		}
		if c.Func == FuncNone || c.Func == FuncCount || c.isPicked() {
			c.Field = Field{Meta: MetaID} // a placeholder that is never read
		}
		fields = append(fields, c.Field)
	}
	g.reader = NewReader(fields)
	g.axes, g.axisOf = axesOf(groupBy)
	g.choice = make([]int, len(g.axes))
	if g.by == 0 {
		g.addOnly()
	}
	return g, nil
}

// addOnly adds the group of all documents, without a group by.
func (g *Groups) addOnly() {
	g.groups[""] = &group{cells: make([]cell, len(g.columns))}
	g.ordered = append(g.ordered, g.groups[""])
}

// keyShown returns the field of the group by that the next column shows, or -1. Of equal fields each column shows another one, in their order:
// a group that Merge adds may differ in them.
func (g *Groups) keyShown(groupBy []Field, f Field) (at int) {
	at = -1
	for i := range groupBy {
		if keyOf(groupBy[i]) == keyOf(f) && (at < 0 || slices.Contains(g.keys, at)) {
			at = i
		}
	}
	if at >= 0 {
		return at
	}
	return slices.IndexFunc(groupBy, func(by Field) bool { return by.ShownAs(f) })
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

// SetPace makes Add stop when p stops. Add then returns the error of p.
func (g *Groups) SetPace(p *Pace) {
	g.pace = p
	g.reader.SetPace(p)
	for _, picker := range g.pickers {
		if picker != nil {
			picker.pairs.SetPace(p)
		}
	}
}

// Add adds a document. It returns a *LimitError if the groups exceed their memory
// or the document is in more than 10,000 groups, and ErrNumber if a number to be
// summed is beyond MaxExponent.
func (g *Groups) Add(doc Doc) error {
	g.added++
	combinations, err := g.begin(doc)
	if err == nil {
		err = g.pick(doc)
	}
	if err != nil {
		return err
	}
	for range combinations {
		if err := g.addTo(g.chosen(g.value)); err != nil {
			return err
		}
		g.advance()
	}
	return g.pace.Err()
}

// begin makes doc the present document, and its first combination of values the current one. It returns how many
// there are.
func (g *Groups) begin(doc Doc) (combinations int, err error) {
	g.reader.Reset(doc)
	combinations = 1
	for i := range g.axes {
		n, err := g.lay(&g.axes[i])
		if err != nil {
			return 0, err
		}
		if n > 1 {
			if combinations *= n; combinations > maxGroupsPerDocument {
				return 0, &LimitError{"groups of one document", maxGroupsPerDocument, combinations}
			}
		}
	}
	clear(g.choice)
	return combinations, nil
}

// advance makes the next combination of values the current one. choice counts through all of them, its first
// axis fastest.
func (g *Groups) advance() {
	for i := range g.choice {
		if g.choice[i]++; g.choice[i] < g.axes[i].values {
			break
		}
		g.choice[i] = 0
	}
}

// chosen returns the group of which the fields of the group by have these values. It makes the group if there is
// none.
func (g *Groups) chosen(value func(field int) Value) *group {
	g.key = g.key[:0]
	for i := range g.by {
		g.key = appendIdentity(g.key, value(i))
	}
	g.pace.Spend(len(g.key))
	if found, ok := g.groups[string(g.key)]; ok {
		return found
	}

	made := g.newGroup()
	for i := range g.by {
		made.keys[i] = canonical(value(i))
	}
	g.groups[string(g.key)] = made
	g.ordered = append(g.ordered, made)
	const perGroup, perCell = 160, 96
	g.used += perGroup + 3*len(g.key) + perCell*len(g.columns)
	return made
}

// newGroup returns a group without values. It allocates several at a time: one more than there are
// already, and at most 64.
func (g *Groups) newGroup() *group {
	if len(g.spare) == 0 {
		n := min(len(g.ordered)+1, 64)
		keys, cells := make([]Value, n*g.by), make([]cell, n*len(g.columns))
		g.spare = make([]group, n)
		for i := range g.spare {
			g.spare[i].keys = keys[i*g.by : (i+1)*g.by : (i+1)*g.by]
			g.spare[i].cells = cells[i*len(g.columns) : (i+1)*len(g.columns) : (i+1)*len(g.columns)]
		}
	}
	made := &g.spare[0]
	g.spare = g.spare[1:]
	return made
}

// value returns the value of a field of the group by in the current combination.
func (g *Groups) value(field int) Value {
	if v := g.reached(field); !v.IsMissing() {
		return v
	}
	return null
}

// reached is value, but missing where there is none.
func (g *Groups) reached(field int) (v Value) {
	at := g.axisOf[field]
	if a := &g.axes[at]; a.rows != nil {
		return a.rows[g.choice[at]][field]
	}
	if values := g.reader.Values(field); len(values) > 0 {
		return values[g.choice[at]]
	}
	return v
}

// Bytes returns about how many bytes the groups take.
func (g *Groups) Bytes() int { return g.used }

// addTo adds the document to a group.
func (g *Groups) addTo(to *group) error {
	if to.last == g.added { // several of its values are equal: counted already
		return nil
	}
	to.last = g.added
	for i, c := range g.columns {
		if c.isPicked() {
			g.take(&to.cells[i], c.Func, g.pickers[i].order, g.pickers[i].value)
			continue
		}
		if err := g.addCell(&to.cells[i], c.Func, g.by+i); err != nil {
			return g.ofGroup(err, to, i)
		}
	}
	if g.limit > 0 && g.used > g.limit {
		return &LimitError{"bytes of groups", g.limit, g.used}
	}
	return nil
}

// addCell adds the values that a column's field reaches to a cell.
func (g *Groups) addCell(to *cell, fn Func, field int) (err error) {
	switch fn {
	case FuncNone:
	case FuncCount:
		to.total.count++
	default:
		g.reader.Each(field, func(v Value) bool {
			err = g.addValue(to, fn, v)
			return err == nil && g.pace.Err() == nil
		})
	}
	return cmp.Or(err, g.pace.Err())
}

// addValue adds one value that the field of a function reaches to a cell.
func (g *Groups) addValue(to *cell, fn Func, v Value) error {
	switch fn {
	case FuncSum, FuncAvg:
		if v.kind == KindNumber {
			return g.addNumber(&to.total, v.raw)
		}
	case FuncMin, FuncMax:
		if to.best.IsMissing() || (v.Compare(to.best) < 0) == (fn == FuncMin) && !v.Equal(to.best) {
			g.used -= len(to.best.raw)
			to.best = canonical(v)
			g.used += len(to.best.raw)
		}
		g.pace.Spend(len(v.raw))
	case FuncCountDistinct:
		g.see(to, v)
	case FuncList, FuncListDistinct:
		return g.gather(to, fn, v)
	}
	return nil
}

// see notes a value of count(distinct), unless it is null.
func (g *Groups) see(to *cell, v Value) {
	g.pace.Spend(len(v.raw))
	if v.kind == KindNull {
		return
	}
	g.identity = appendIdentity(g.identity[:0], v)
	if _, found := to.seen[string(g.identity)]; found {
		return
	}
	if to.seen == nil {
		to.seen = make(map[string]struct{})
	}
	to.seen[string(g.identity)] = struct{}{}
	g.used += perSeen + len(g.identity)
}

// perSeen is the memory charged for a value of count(distinct), beside its identity.
const perSeen = 64

// mergeSeen notes the values of count(distinct) that other groups have seen, by their identities.
func (g *Groups) mergeSeen(to *cell, seen map[string]struct{}) {
	for identity := range seen {
		if _, found := to.seen[identity]; found {
			continue
		}
		if to.seen == nil {
			to.seen = make(map[string]struct{}, len(seen))
		}
		to.seen[identity] = struct{}{}
		g.used += perSeen + len(identity)
		g.pace.Spend(len(identity))
	}
}

// sumTextBytes is the memory charged for each byte of a sum: its text, which is
// longer than the sum in binary, and the memory to make the text.
const sumTextBytes = 6

// addNumber adds a number to a sum and charges its memory.
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

// Rows yields the groups in the order of their first documents, each as the
// values of its columns. The row belongs to the caller.
func (g *Groups) Rows() iter.Seq[[]Value] {
	return func(yield func([]Value) bool) {
		for i := range g.ordered {
			if !yield(g.Row(i)) {
				return
			}
		}
	}
}

// Row returns row i of Rows, counted from 0.
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

// value returns the result of a function.
func (c *cell) value(fn Func) Value {
	switch fn {
	case FuncCount:
		v, _ := NewValue(c.total.count)
		return v
	case FuncSum:
		return c.total.sum()
	case FuncAvg:
		return c.total.mean()
	case FuncCountDistinct:
		v, _ := NewValue(len(c.seen))
		return v
	case FuncList, FuncListDistinct:
		return c.list()
	}
	if c.best.IsMissing() {
		return null
	}
	return c.best
}

// AppendRow appends a row as a JSON object with a member for each column. Missing
// values become null.
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

// appendIdentity appends an encoding of v. Two values have the same encoding if
// and only if they are Equal; concatenated encodings are unambiguous, read from
// the end.
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

// Distinct filters out repeated rows. Rows are the same if their columns have the same
// values: the notation of numbers and the escapes of text do not matter, also inside
// arrays and objects, in which the order of members does. Make one with NewDistinct. It
// is not safe for concurrent use.
type Distinct struct {
	seen  map[string]struct{}
	key   []byte // scratch
	used  int
	limit int
}

// NewDistinct returns a Distinct that has seen no rows. It uses about maxBytes of
// memory at most; 0 means no limit.
func NewDistinct(maxBytes int) *Distinct {
	return &Distinct{seen: make(map[string]struct{}), limit: maxBytes}
}

// Bytes returns about how many bytes the rows that d has seen take.
func (d *Distinct) Bytes() int { return d.used }

// Add reports whether row, a JSON object, is new. It returns a *LimitError if d
// exceeds its memory.
func (d *Distinct) Add(row []byte) (first bool, err error) {
	d.key = appendSame(d.key[:0], row)
	if _, found := d.seen[string(d.key)]; found {
		return false, nil
	}
	const perRow = 48
	if d.used += perRow + len(d.key); d.limit > 0 && d.used > d.limit {
		return false, &LimitError{"bytes of distinct rows", d.limit, d.used}
	}
	d.seen[string(d.key)] = struct{}{}
	return true, nil
}

// appendSame appends an encoding of a JSON value, which is the same for values that
// differ in the notation of numbers and of text only. Its recursion is bounded by the
// levels that a document may have.
func appendSame(dst, raw []byte) []byte {
	switch kindOf(raw) {
	case KindObject:
		dst = append(dst, '{')
		for name, value := range jsonpath.Members(raw) {
			dst = appendIdentity(dst, ValueOf(name))
			dst = appendSame(dst, value)
		}
		return append(dst, '}')
	case KindArray:
		dst = append(dst, '[')
		for _, element := range jsonpath.Elements(raw) {
			dst = appendSame(dst, element)
		}
		return append(dst, ']')
	}
	return appendIdentity(dst, ValueOf(raw))
}
