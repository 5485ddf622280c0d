package query

// Bounds of what a condition may be, however it was made. What is beyond is
// refused with a *LimitError before any work is done on it.
const (
	MaxConditionDepth = 1000     // conditions inside each other
	MaxConditions     = 10_000   // conditions of all kinds, And, Or and Not included
	MaxValues         = 100_000  // values of all In together
	MaxOperandBytes   = 32 << 20 // of all values, texts and patterns together
	MaxRegexps        = 1000     // regular expressions
)

// Size is how large a condition is, in what is bounded.
type Size struct {
	Conditions int // And, Or and Not included
	Depth      int // the most conditions inside each other
	Values     int // of all In
	Bytes      int // of values, texts and patterns
	Regexps    int
}

// Join returns the size of an And, Or or Not of conditions of these sizes.
func Join(parts ...Size) Size {
	all := Size{Conditions: 1}
	for _, part := range parts {
		all.Conditions += part.Conditions
		all.Depth = max(all.Depth, part.Depth)
		all.Values += part.Values
		all.Bytes += part.Bytes
		all.Regexps += part.Regexps
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
	}
	return nil
}

// Measure returns the size of e, whose depth counts from 1, or a *LimitError
// if it is beyond a bound. However large e is, it takes no longer than the
// bounds allow, as it ends at the first one that is passed, and its stack does
// not grow with the depth.
func Measure(e Expr) (Size, error) {
	var size Size
	if _, ok := fieldOf(e); ok { // nothing is in it
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

// walk calls fn with e, unless it is nil, and all conditions in it, each before
// those in it, until fn returns an error.
func walk(e Expr, fn func(e Expr, depth int) error) error {
	if e == nil {
		return nil
	}
	stack := [][]Expr{{e}} // of each level, what is left
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
		}
	}
	return nil
}

// count adds one condition, without those in it.
func (s *Size) count(e Expr) {
	s.Conditions++
	switch e := e.(type) {
	case Compare:
		s.Bytes += len(e.Value.raw)
	case Between:
		s.Bytes += len(e.Lo.raw) + len(e.Hi.raw)
	case In:
		if s.Values += len(e.Values); s.Values > MaxValues {
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
	case Regexp:
		s.Regexps++
		s.Bytes += len(e.Pattern)
	}
}
