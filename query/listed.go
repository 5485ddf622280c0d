package query

import (
	"fmt"
	"slices"
)

// MaxListed bounds the values that the columns of a query with list() gather, in all groups
// together.
const MaxListed = 1_000_000

// ListError is returned by a query whose columns with list() would gather more than [MaxListed]
// values, or more bytes than Options.MaxQueryBytes. It names the group in which the bound was
// exceeded. Ask for fewer groups, by a condition on their members, or for columns without list().
// errors.Is(err, ErrLimit) is true.
type ListError struct {
	Index  string // the computed index that was queried; "" for a query of documents
	Column string // the column, such as "list(Name)"
	Group  string // its members, as JSON, of which the first 200 bytes
	What   string // "values" or "bytes"
	Limit  int
}

// Error names the index, the column, the group and the bound.
func (e *ListError) Error() string {
	of := ""
	if e.Index != "" {
		of = fmt.Sprintf("index %q: ", e.Index)
	}
	return fmt.Sprintf("%s%s of the group %s: a query gathers at most %d %s by list(): ask for fewer groups, or for columns without list()", of, e.Column, e.Group, e.Limit, e.What)
}

// Is makes errors.Is(err, ErrLimit) true.
func (e *ListError) Is(target error) bool { return target == ErrLimit }

// isListed reports whether the column gathers the values of its field.
func (c Column) isListed() bool { return c.Func == FuncList || c.Func == FuncListDistinct }

// perListed is the memory charged for a value that is gathered, beside its bytes.
const perListed = 48

// gather adds a value to a list, unless only different ones are gathered and it is there.
func (g *Groups) gather(to *cell, fn Func, v Value) error {
	g.pace.Spend(1 + len(v.raw))
	if fn == FuncListDistinct {
		g.identity = appendIdentity(g.identity[:0], v)
		if _, found := to.seen[string(g.identity)]; found {
			return nil
		}
		if to.seen == nil {
			to.seen = make(map[string]struct{})
		}
		to.seen[string(g.identity)] = struct{}{}
		g.used += perSeen + len(g.identity)
	}
	return g.gathered(to, canonical(v))
}

// gathered appends a value to a list.
func (g *Groups) gathered(to *cell, v Value) error {
	to.listed = append(to.listed, v)
	g.used += perListed + len(v.raw)
	g.listed++
	switch {
	case g.listed > MaxListed:
		return &ListError{What: "values", Limit: MaxListed}
	case g.limit > 0 && g.used > g.limit:
		return &ListError{What: "bytes", Limit: g.limit}
	}
	return nil
}

// mergeListed gathers the values of another list.
func (g *Groups) mergeListed(to *cell, fn Func, listed []Value) (err error) {
	for _, v := range listed {
		if fn == FuncListDistinct {
			err = g.gather(to, fn, v)
		} else {
			err = g.gathered(to, v)
		}
		if err != nil {
			return err
		}
	}
	return g.pace.Err()
}

// ofGroup names the column and the group in a *ListError.
func (g *Groups) ofGroup(err error, of *group, column int) error {
	e, is := err.(*ListError)
	if !is {
		return fmt.Errorf("column %q: %w", g.columns[column].Name, err)
	}
	c := g.columns[column]
	e.Column = funcText(c.Func, c.Field)
	key := arrayOf(of.keys)
	const most = 200 // bytes of a group that are shown
	if len(key) > most {
		key = append(key[:most], "..."...)
	}
	e.Group = string(key)
	return e
}

// list returns the values of a list, in their order, as an array.
func (c *cell) list() Value {
	slices.SortStableFunc(c.listed, Value.Compare)
	return ValueOf(arrayOf(c.listed))
}

// arrayOf returns values as a JSON array.
func arrayOf(values []Value) []byte {
	raw := []byte{'['}
	for i, v := range values {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = v.AppendJSON(raw)
	}
	return append(raw, ']')
}
