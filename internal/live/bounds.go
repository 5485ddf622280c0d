package live

import (
	"bytes"
	"slices"

	"github.com/jaydb/jay/query"
)

// bound is a condition that a document must satisfy: the field reaches a value whose key
// lies in the range.
type bound struct {
	field query.Field
	query.KeyRange

	// merged says that the range is what several conditions have in common. A field that
	// reaches several values may satisfy each of them by another value, none of which lies in
	// the range.
	merged bool
}

// maxBounds is how many bounds a watch may have.
const maxBounds = 64

// boundsOf returns bounds of which a document must satisfy one, or else the condition is
// false of it. found is false if there are no such bounds; a condition that is never true
// has none, and found is true.
func boundsOf(e query.Expr) (all []bound, found bool) {
	all, _, found = bind(e)
	return all, found && len(all) <= maxBounds
}

// decidedByBounds reports whether the bounds of a condition decide it: it is true of a document if one
// of them is satisfied. So it need not be looked at again.
func decidedByBounds(e query.Expr) bool {
	if all, is := e.(query.Or); is {
		return !slices.ContainsFunc(all, func(part query.Expr) bool { return !decidedByBounds(part) })
	}
	f, ranges, _, exact := rangesOf(e)
	return exact && isReadable(f) && !slices.ContainsFunc(ranges, func(r query.KeyRange) bool { return r.Recheck })
}

// The kinds of bounds, the most selective ones first.
const (
	equal = iota
	closed
	open
)

// bind is boundsOf, with the kind of the least selective bound.
func bind(e query.Expr) (all []bound, kind int, found bool) {
	switch e := e.(type) {
	case query.And:
		return best(e)
	case query.ElemMatch:
		return best(e.Implied())
	case query.Or:
		for _, part := range e {
			more, k, ok := bind(part)
			if !ok {
				return nil, 0, false
			}
			all, kind = append(all, more...), max(kind, k)
		}
		return all, kind, true
	}
	f, ranges, kind, _ := rangesOf(e)
	if ranges == nil || !isReadable(f) {
		return nil, 0, false
	}
	for _, r := range ranges {
		if !r.Empty() {
			all = append(all, bound{field: f, KeyRange: r})
		}
	}
	return all, kind, true
}

// best returns the bounds of that of several conditions which is likely to leave the
// fewest documents. Ranges of one field that are open on one side are merged.
func best(parts []query.Expr) (all []bound, kind int, found bool) {
	var halves []bound
	take := func(more []bound, k int) {
		if !found || k < kind || k == kind && len(more) < len(all) {
			all, kind, found = more, k, true
		}
	}
	for _, part := range parts {
		more, k, ok := bind(part)
		if !ok || len(more) > maxBounds {
			continue
		}
		if take(more, k); k != open || len(more) != 1 {
			continue
		}
		for i, half := range halves {
			if half.field.String() == more[0].field.String() {
				halves[i] = half.and(more[0])
				take([]bound{halves[i]}, closed)
			}
		}
		halves = append(halves, more[0])
	}
	return all, kind, found
}

// and returns what two bounds of a field have in common.
func (b bound) and(other bound) bound {
	if b.merged = true; bytes.Compare(other.Lo, b.Lo) > 0 {
		b.Lo = other.Lo
	}
	if bytes.Compare(other.Hi, b.Hi) < 0 {
		b.Hi = other.Hi
	}
	return b
}

// isReadable reports whether a finder reads the field.
func isReadable(f query.Field) bool {
	switch f.Meta {
	case query.MetaNone, query.MetaCustom, query.MetaID:
		return f.Expression == nil && f.Func == query.FuncNone && !f.Loads()
	}
	return false
}

// rangesOf returns the ranges of keys of a condition on one field, nil for one that bounds
// none. They hold the values of any case, since case may not matter for the field; exact says that
// they hold no others than the condition wants, but for those that KeyRange.Recheck is set for.
func rangesOf(e query.Expr) (f query.Field, ranges []query.KeyRange, kind int, exact bool) {
	switch e := e.(type) {
	case query.Compare:
		exact = e.Fold || e.Value.Kind() != query.KindText
		switch {
		case e.Value.IsMissing():
			return f, nil, 0, false
		case e.Op == query.Equal:
			return e.Field, []query.KeyRange{query.EqualRange(e.Value, true, false)}, equal, exact
		}
		op := e.Op
		if !exact { // of the texts that differ from the value in case alone some are less, and some greater
			switch op {
			case query.Less:
				op = query.LessOrEqual
			case query.Greater:
				op = query.GreaterOrEqual
			}
		}
		return e.Field, []query.KeyRange{query.CompareRange(op, e.Value, true, false)}, open, exact
	case query.Between:
		return e.Field, []query.KeyRange{query.BetweenRange(e.Lo, e.Hi, true, false)}, closed, e.Fold || e.Lo.Kind() != query.KindText
	case query.StartsWith:
		return e.Field, []query.KeyRange{query.PrefixRange(e.Text, true, false)}, closed, e.Fold
	case query.In:
		values := e.Values
		exact = true
		if e.All && len(values) > 1 {
			values, exact = values[:1], false
		}
		if len(values) > maxBounds {
			return f, nil, 0, false
		}
		for _, v := range values {
			if v.IsMissing() {
				return f, nil, 0, false
			}
			exact = exact && (e.Fold || v.Kind() != query.KindText)
			ranges = append(ranges, query.EqualRange(v, true, false))
		}
		return e.Field, ranges, equal, exact && ranges != nil
	}
	return f, nil, 0, false
}
