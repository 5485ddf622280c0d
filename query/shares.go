package query

import (
	"errors"
	"fmt"
	"slices"
)

// Shares computes the contribution of single documents to groups, by the rules of [Groups]: the
// groups of a document, and the numbers of its sums. Indexes that keep groups use it.
//
// Shares is not safe for concurrent use.
type Shares struct {
	groups  *Groups
	count   int // of the combinations of the present document
	members []Value
	pace    Pace
}

// NewShares returns the Shares of groups with these members, at least one, and of sums of these fields.
func NewShares(members, sums []Field) (*Shares, error) {
	columns := make([]Column, len(sums))
	for i, f := range sums {
		columns[i] = Column{Name: fmt.Sprint(i), Func: FuncSum, Field: f}
	}
	g, err := NewGroups(members, columns, 0)
	if err != nil {
		return nil, err
	}
	s := &Shares{groups: g, members: make([]Value, g.by)}
	g.SetPace(&s.pace)
	return s, nil
}

// Begin makes doc the current document, and returns the number of its combinations of values, at
// least one. It returns a *LimitError if there are more than 10,000.
func (s *Shares) Begin(doc Doc) (combinations int, err error) {
	s.pace = Pace{}
	s.count, err = s.groups.begin(doc)
	if s.pace.Err() != nil {
		return 0, s.pace.Err()
	}
	return s.count, err
}

// Each calls fn with the members of each combination, until it returns an error. A member is
// missing if its field reaches nothing. Combinations with equal members are one group, and missing
// counts as null. The members are valid until fn returns. Each returns a *LimitError if the
// expressions among the members compute too much. It can be called once for a document.
func (s *Shares) Each(fn func(members []Value) error) error {
	defer clear(s.members) // they would keep the last document in memory
	for range s.count {
		for i := range s.members {
			s.members[i] = s.groups.reached(i)
		}
		if err := s.pace.Err(); err != nil {
			return err
		}
		if err := fn(s.members); err != nil {
			return err
		}
		s.groups.advance()
	}
	return nil
}

// Numbers calls fn with each number that the field of a sum reaches in the current document. It
// returns a *LimitError if the expressions of the document compute too much.
func (s *Shares) Numbers(sum int, fn func(number Value)) error {
	s.groups.reader.Each(s.groups.by+sum, func(v Value) bool {
		if v.kind == KindNumber {
			fn(v)
		}
		return true
	})
	return s.pace.Err()
}

// Failed returns why expression i fails for the current document: see Reader.Failed. i counts the
// members, and then the sums.
func (s *Shares) Failed(i int) error { return s.groups.reader.Failed(i) }

// AppendMember appends a member of a group as a part of a key, as AppendKey does. Whole reports that DecodeKey returns
// the member as Groups shows it: a long text is cut, and so is a long number.
func AppendMember(dst []byte, v Value) (key []byte, whole bool) {
	dst, truncated := AppendKey(dst, v, false)
	if !truncated && v.kind == KindNumber {
		_, small := smallInt(v.raw)
		truncated = !small && parseNumber(v.raw).beyond
	}
	return dst, !truncated
}

// Share is the contribution of some documents to one group.
type Share struct {
	Documents int64
	Sums      []SumShare // parallel to the columns of Groups; those of other functions than sum and avg are not read
}

// SumShare is the contribution of documents to a sum.
type SumShare struct {
	Count  int64    // of the numbers in Limbs
	Limbs  Limbs    // their sum
	Others [][]byte // further numbers, as JSON
}

// AddShare adds the share of documents to the group with these members, one for each field of the
// group by, as Add adds a document. Several calls for one group add up. Columns with min, max,
// first, last, list and count(distinct), which sums cannot represent, stay as they are: see Join.
// It returns a *LimitError if the groups exceed their memory, and ErrNumber for a number beyond
// MaxExponent.
func (g *Groups) AddShare(members []Value, s Share) error {
	to := g.chosen(func(i int) Value {
		if members[i].IsMissing() {
			return null
		}
		return members[i]
	})
	for i, c := range g.columns {
		t, err := &to.cells[i].total, error(nil)
		switch c.Func {
		case FuncCount:
			t.count += s.Documents
		case FuncSum, FuncAvg:
			sum := &s.Sums[i]
			g.used += sumTextBytes * t.addLimbs(sum.Count, sum.Limbs)
			for _, raw := range sum.Others {
				if err = g.addNumber(t, raw); err != nil {
					break
				}
			}
		}
		if err != nil {
			return fmt.Errorf("column %q: %w", c.Name, err)
		}
	}
	if g.limit > 0 && g.used > g.limit {
		return &LimitError{"bytes of groups", g.limit, g.used}
	}
	return g.pace.Err()
}

// Fork returns Groups like g without documents. They use about maxBytes of memory at most, or as much as g may if that is less.
// Another goroutine may use them while no goroutine calls a method of g. Merge adds them to g.
func (g *Groups) Fork(maxBytes int) *Groups {
	if g.limit > 0 {
		maxBytes = min(g.limit, maxBytes)
	}
	f := &Groups{
		columns: g.columns, keys: g.keys, by: g.by, reader: g.reader.Clone(), groups: make(map[string]*group), limit: maxBytes,
		axes: slices.Clone(g.axes), axisOf: g.axisOf, choice: make([]int, len(g.choice)),
	}
	for _, p := range g.pickers {
		if p != nil {
			p = &picker{fn: p.fn, pairs: p.pairs.Fork(p.pairs.limit)}
		}
		f.pickers = append(f.pickers, p)
	}
	f.Reset()
	return f
}

// Fits reports whether Merge of other stays within the bounds of g, whatever the groups have in common.
func (g *Groups) Fits(other *Groups) bool {
	return (g.limit == 0 || g.used+other.used <= g.limit) && g.listed+other.listed <= MaxListed
}

// Merge adds the groups of other to g, as if everything that was added to other had been added to
// g. other must have as many fields of the group by and as many columns, with the same functions.
// other must not be used any more, but for Reset. Merge returns a *LimitError if the groups exceed their memory.
func (g *Groups) Merge(other *Groups) error {
	for _, from := range other.ordered {
		to := g.chosen(func(i int) Value { return from.keys[i] })
		for i, c := range g.columns {
			cell := &from.cells[i]
			g.used += sumTextBytes * to.cells[i].total.merge(&cell.total)
			if c.isListed() {
				if err := g.mergeListed(&to.cells[i], c.Func, cell.listed); err != nil {
					return g.ofGroup(err, to, i)
				}
				continue
			}
			g.mergeSeen(&to.cells[i], cell.seen)
			if c.isPicked() {
				if cell.order != nil {
					g.take(&to.cells[i], c.Func, *cell.order, cell.best)
				}
				continue
			}
			if best := to.cells[i].best; !cell.best.IsMissing() && (best.IsMissing() || !cell.best.Equal(best) && (cell.best.Compare(best) < 0) == (c.Func == FuncMin)) {
				g.used += len(cell.best.raw) - len(best.raw)
				to.cells[i].best = cell.best
			}
		}
		if g.limit > 0 && g.used > g.limit {
			return &LimitError{"bytes of groups", g.limit, g.used}
		}
		if err := g.pace.Err(); err != nil {
			return err
		}
	}
	return nil
}

// errNotKept is why a condition cannot be decided by the members of groups.
var errNotKept = errors.New("a condition that looks at more than the members of groups")

// OfMembers converts a condition on documents to a condition on their group. mapped returns the
// field of a row for each member. OfMembers returns false for a condition that refers to other
// fields, or that distinguishes a missing member from an empty array. The result is equivalent only
// for documents in which no member reaches several values.
func OfMembers(e Expr, mapped func(Field) (Field, bool)) (Expr, bool) {
	if !looksAtValues(e) {
		return nil, false
	}
	e, err := MapFields(e, func(f Field) (Field, error) {
		f, found := mapped(f)
		if !found {
			return f, errNotKept
		}
		return f, nil
	})
	return e, err == nil
}

// looksAtValues reports whether a condition looks at nothing but the values that fields reach.
func looksAtValues(e Expr) bool {
	all := func(list []Expr) bool {
		for _, kid := range list {
			if !looksAtValues(kid) {
				return false
			}
		}
		return true
	}
	switch e := e.(type) {
	case And:
		return all(e)
	case Or:
		return all(e)
	case Not:
		return looksAtValues(e.Expr)
	case Boost:
		return looksAtValues(e.Expr)
	case leaf:
		return e.looksAtValues()
	}
	return false
}

// Functions returns the names of the operators and functions of the expression, each once, those of its conditions
// included.
func (x *Expression) Functions() []string {
	var names []string
	seen := make(map[string]bool)
	x.functions(func(name string) {
		if !seen[name] {
			seen[name], names = true, append(names, name)
		}
	})
	return names
}

// functions calls fn with the name of each operator and function.
func (x *Expression) functions(fn func(name string)) {
	var walk func(o *operation)
	walk = func(o *operation) {
		if o.function == nil {
			return
		}
		fn(o.function.name)
		for _, operand := range o.operands {
			walk(operand)
		}
	}
	walk(x.root)
	for _, e := range x.conditions {
		if Searches(e) {
			fn("search")
		}
		if AsksOfPlaces(e) {
			fn(relationFunction)
		}
		for _, f := range Fields(e) {
			if f.Expression != nil {
				f.Expression.functions(fn)
			}
		}
	}
}
