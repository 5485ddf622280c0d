package query

// Bounds of a condition, parsed or built. A condition beyond them is refused with
// a *LimitError before any work is done on it.
const (
	MaxConditionDepth = 1000     // nested conditions
	MaxConditions     = 10_000   // conditions of all kinds, And, Or and Not included
	MaxValues         = 100_000  // values of all In together
	MaxOperandBytes   = 32 << 20 // of all values, texts and patterns together
	MaxRegexps        = 1000     // regular expressions
	MaxElemMatches    = 100      // conditions on elements: each reads the elements on its own
)

// Size is the size of a condition, in the quantities that are bounded.
type Size struct {
	Conditions int // And, Or and Not included
	Depth      int // of the deepest condition, from 1
	Values     int // of all In
	Bytes      int // of values, texts and patterns
	Regexps    int
	Elements   int // conditions on elements
}

// Join returns the size of an And, Or or Not whose conditions have these sizes.
func Join(parts ...Size) Size {
	all := Size{Conditions: 1}
	for _, part := range parts {
		all.Conditions += part.Conditions
		all.Depth = max(all.Depth, part.Depth)
		all.Values += part.Values
		all.Bytes += part.Bytes
		all.Regexps += part.Regexps
		all.Elements += part.Elements
	}
	all.Depth++
	return all
}

// Check returns a *LimitError if the size is beyond a bound.
func (s Size) Check() error {
	switch {
	case s.Conditions > MaxConditions:
		return &LimitError{"conditions", MaxConditions, s.Conditions}
	case s.Depth > MaxConditionDepth:
		return &LimitError{"levels of conditions", MaxConditionDepth, s.Depth}
	case s.Values > MaxValues:
		return &LimitError{"values in lists", MaxValues, s.Values}
	case s.Bytes > MaxOperandBytes:
		return &LimitError{"bytes of values", MaxOperandBytes, s.Bytes}
	case s.Regexps > MaxRegexps:
		return &LimitError{"regular expressions", MaxRegexps, s.Regexps}
	case s.Elements > MaxElemMatches:
		return &LimitError{"conditions on elements", MaxElemMatches, s.Elements}
	}
	return nil
}

// Measure returns the size of e, or a *LimitError if it is beyond a bound. It
// stops at the first bound that e exceeds and does not recurse, so that its time
// and stack stay small however large or deep e is.
func Measure(e Expr) (Size, error) {
	var size Size
	_, nested := e.(ElemMatch)
	if _, ok := fieldOf(e); ok && !nested { // the usual case: no conditions in it, no stack needed
		size.count(e)
		size.Depth = 1
		return size, size.Check()
	}
	err := walk(e, func(e Expr, depth int) error {
		size.count(e)
		size.Depth = max(size.Depth, depth)
		return size.Check()
	})
	return size, err
}

// walk calls fn with e and all conditions in it, parents first, until fn returns
// an error. It keeps its own stack, as e may be too deep for recursion. A nil e
// has no conditions.
func walk(e Expr, fn func(e Expr, depth int) error) error {
	if e == nil {
		return nil
	}
	stack := [][]Expr{{e}} // for each level, the conditions still to visit
	for len(stack) > 0 {
		top := len(stack) - 1
		if len(stack[top]) == 0 {
			stack = stack[:top]
			continue
		}
		e := stack[top][0]
		stack[top] = stack[top][1:]
		if err := fn(e, len(stack)); err != nil {
			return err
		}
		switch e := e.(type) {
		case And:
			stack = append(stack, e)
		case Or:
			stack = append(stack, e)
		case Not:
			stack = append(stack, []Expr{e.Expr})
		case ElemMatch:
			if e.Where != nil {
				stack = append(stack, []Expr{e.Where})
			}
		}
	}
	return nil
}

// count adds one condition, without its children.
func (s *Size) count(e Expr) {
	s.Conditions++
	switch e := e.(type) {
	case Compare:
		s.Bytes += len(e.Value.raw)
	case Between:
		s.Bytes += len(e.Lo.raw) + len(e.Hi.raw)
	case In:
		if s.Values += len(e.Values); s.Values > MaxValues { // already refused: skip the loop
			return
		}
		for _, v := range e.Values {
			s.Bytes += len(v.raw)
		}
	case StartsWith:
		s.Bytes += len(e.Text)
	case EndsWith:
		s.Bytes += len(e.Text)
	case Contains:
		s.Bytes += len(e.Text)
	case ElemMatch:
		s.Elements++
	case Regexp:
		s.Regexps++
		s.Bytes += len(e.Pattern)
	}
}
