package query

import "fmt"

// Sorter compares documents by the fields of an order. If a field reaches several values, the least
// counts in ascending order and the greatest in descending order. If a field reaches no value, it
// is missing. Missing comes first in ascending order and last in descending order. Documents with
// the same values are equal: the caller breaks ties.
//
// A Sorter is not safe for concurrent use; Clone makes another one cheaply.
type Sorter struct {
	orders []Order
	sides  [2]side // the two documents that Compare compares
}

// side reads the values of one document.
type side struct {
	reader *Reader
	caster caster
}

// NewSorter returns a Sorter for documents. It returns ErrColumn if an order
// refers to a column, which only groups have.
func NewSorter(orders []Order) (*Sorter, error) {
	fields := make([]Field, len(orders))
	for i, o := range orders {
		if fields[i] = o.Field; o.Column != "" {
			return nil, fmt.Errorf("%w: order by column %q of documents", ErrColumn, o.Column)
		}
	}
	s := &Sorter{orders: orders}
	s.sides[0].reader = NewReader(fields)
	s.sides[1].reader = s.sides[0].reader.Clone()
	return s, nil
}

// Clone returns a Sorter of the same order, for another goroutine.
func (s *Sorter) Clone() *Sorter {
	c := &Sorter{orders: s.orders}
	for i := range c.sides {
		c.sides[i].reader = s.sides[0].reader.Clone()
	}
	return c
}

// AppendKey appends a sort key of doc to dst: keys compare, as bytes, as the
// documents do. Exact is false if a value is too long for the key; then the order
// of this document and any other must be decided by Compare.
func (s *Sorter) AppendKey(dst []byte, doc Doc) (key []byte, exact bool) {
	exact = true
	s.sides[0].reader.Reset(doc)
	for i, o := range s.orders {
		var truncated bool
		dst, truncated = AppendKey(dst, s.sides[0].pick(o, i), o.Descending)
		exact = exact && !truncated
	}
	return dst, exact
}

// Compare returns -1 if a comes before b, +1 if it comes after b, and 0 if they
// are equal.
func (s *Sorter) Compare(a, b Doc) int {
	s.sides[0].reader.Reset(a)
	s.sides[1].reader.Reset(b)
	for i, o := range s.orders {
		if c := o.compare(s.sides[0].pick(o, i), s.sides[1].pick(o, i)); c != 0 {
			return c
		}
	}
	return 0
}

// SetPace makes AppendKey and Compare stop when p stops. Their results then have
// no meaning: see Pace.Err.
func (s *Sorter) SetPace(p *Pace) {
	for i := range s.sides {
		s.sides[i].reader.SetPace(p)
	}
}

// pick returns the value of field i that the order compares.
func (s *side) pick(o Order, i int) Value {
	if best := s.reached(o, i); !best.IsMissing() {
		return best
	}
	return o.unknown()
}

// reached is pick without what an order takes for a field that reaches nothing: the Value is then missing.
func (s *side) reached(o Order, i int) Value {
	var best Value
	if !s.reader.Many(i) {
		best = s.caster.pick(o, s.reader.Values(i))
	} else {
		s.reader.Each(i, func(v Value) bool {
			best = s.caster.better(o, best, v)
			return true
		})
	}
	return best
}

// compare compares two values in the direction of the order.
func (o Order) compare(v, w Value) int {
	if o.Descending {
		return w.Compare(v)
	}
	return v.Compare(w)
}

// RowSorter compares rows, such as those of groups.
//
// It is not safe for concurrent use.
type RowSorter struct {
	orders  []Order
	columns []int // of the rows, parallel to orders
	casters [2]caster
}

// NewRowSorter returns a RowSorter for rows with these columns. Each order must
// name a column; NewRowSorter returns ErrColumn if there is no such column.
func NewRowSorter(orders []Order, columns []Column) (*RowSorter, error) {
	s := &RowSorter{orders: orders}
	for _, o := range orders {
		at := -1
		for i, c := range columns {
			if c.Name == o.Column {
				at = i
			}
		}
		if at < 0 || o.Column == "" {
			return nil, fmt.Errorf("%w: order by column %q, which is not there", ErrColumn, o.Column)
		}
		s.columns = append(s.columns, at)
	}
	return s, nil
}

// AppendKey appends a sort key of row to dst: see Sorter.AppendKey.
func (s *RowSorter) AppendKey(dst []byte, row []Value) (key []byte, exact bool) {
	exact = true
	for i, o := range s.orders {
		var truncated bool
		dst, truncated = AppendKey(dst, s.casters[0].pick(o, row[s.columns[i]:][:1]), o.Descending)
		exact = exact && !truncated
	}
	return dst, exact
}

// Compare returns -1 if row a comes before b, +1 if it comes after b, and 0 if
// they are equal.
func (s *RowSorter) Compare(a, b []Value) int {
	for i, o := range s.orders {
		at := s.columns[i]
		if c := o.compare(s.casters[0].pick(o, a[at:][:1]), s.casters[1].pick(o, b[at:][:1])); c != 0 {
			return c
		}
	}
	return 0
}

// caster picks and casts values. It owns the memory of cast values.
type caster struct {
	picked []byte // of the best value so far
	next   []byte // of the value under examination
}

// pick returns the value that an order compares among those that a field
// reaches. It is valid until the next call.
func (c *caster) pick(o Order, values []Value) Value {
	var best Value
	for _, v := range values {
		best = c.better(o, best, v)
	}
	return best
}

// better returns v, cast, or best if that comes first in the order. The result
// may be in c.picked.
func (c *caster) better(o Order, best, v Value) Value {
	if v = c.cast(o.As, v); v.IsMissing() || !best.IsMissing() && o.compare(v, best) >= 0 {
		return best
	}
	c.picked, c.next = c.next, c.picked // the next cast must not overwrite v
	return v
}

// cast converts v for an order. The result may be in c.next.
func (c *caster) cast(as Cast, v Value) Value {
	switch as {
	case CastNone:
		return v
	case CastString:
		switch v.kind {
		case KindFalse, KindTrue, KindNumber:
			return plainText(v.raw)
		case KindText:
			return v
		}
		return Value{}
	}

	if v.kind == KindText {
		if text := v.text(c.next); isNumber(text) {
			v = Value{raw: text, kind: KindNumber}
		}
	}
	if v.kind != KindNumber {
		return Value{}
	}
	if _, small := smallInt(v.raw); as == CastLong && !small {
		whole := parseNumber(v.raw).integerPart()
		c.next = append(c.next[:0], whole.append(nil)...)
		v.raw = c.next
	}
	return v
}

// Picks returns the values of a document that the order compares, in memory of their own, for
// ComparePicks.
func (s *Sorter) Picks(doc Doc) []Value {
	s.sides[0].reader.Reset(doc)
	picks := make([]Value, len(s.orders))
	for i, o := range s.orders {
		picks[i] = s.sides[0].pick(o, i).Clone()
	}
	return picks
}

// ComparePicks compares two documents by their Picks, as Compare compares them.
func (s *Sorter) ComparePicks(a, b []Value) int {
	for i, o := range s.orders {
		if c := o.compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

// AppendPicks is AppendKey of a document with these Picks.
func (s *Sorter) AppendPicks(dst []byte, picks []Value) (key []byte, exact bool) {
	exact = true
	for i, o := range s.orders {
		var truncated bool
		dst, truncated = AppendKey(dst, picks[i], o.Descending)
		exact = exact && !truncated
	}
	return dst, exact
}
