package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/query"
)

// The fields of an ordered index are texts: -, then a path or an expression, then as date or as utc. What is a path is a path, as
// it was before there were expressions in indexes: First.Name, a-b, Price*Quantity. What is no path is an expression: Price * Quantity.
// A text with a parenthesis that is an expression, or a part of a date, is that, though it might be the name of a member: year(At).
// Such a member stands in quotes.

// parseIndexField parses a field of an ordered index.
func parseIndexField(text string) (Field, error) {
	rest, descending := strings.CutPrefix(text, "-")
	rest, as := CutDate(strings.TrimSpace(rest))
	path, pathErr := jsonpath.Parse(rest)
	if pathErr != nil || strings.Contains(rest, "(") {
		f, err := query.ParseExpression(rest)
		switch {
		case err == nil && f.Path.Loads():
			return loadedField(as, f, descending)
		case err == nil && isComputed(f):
			return computedField(rest, as, f, descending)
		case pathErr == nil: // a member with a parenthesis in its name
		case err == nil && f.Meta == query.MetaNone && f.Func == query.FuncNone && f.Date == query.DateNone: // field('First Name')
			path = f.Path
		default:
			return Field{}, noField(rest, pathErr, err)
		}
	}
	f := Field{path: path, Text: pathText(path) + as, UTC: as == AsUTC, Descending: descending}
	if as != "" {
		f.Date = query.DateInstant
	}
	return f, nil
}

// QueryField returns a field of a declaration as queries have it.
func QueryField(text string) (query.Field, error) {
	f, err := parseIndexField(text)
	return f.Query(), err
}

// noField is why a text is neither a path nor an expression. Most are meant to be paths.
func noField(text string, pathErr, err error) error {
	if err == nil || !strings.ContainsAny(text, "(+*/%") && !strings.Contains(text, " - ") {
		return pathErr
	}
	return fmt.Errorf("%.100q is neither a path nor an expression: %w", text, err)
}

// computedField returns the field of an expression, or why there is none.
func computedField(text, as string, f query.Field, descending bool) (Field, error) {
	if as != "" {
		return Field{}, fmt.Errorf("%.100q: only a field of the body is read%s", text, as)
	}
	if why := NotKept(f); why != "" {
		return Field{}, fmt.Errorf("%.100q: %s", text, why)
	}
	if canonical := f.String(); len(canonical) > jsonpath.MaxBytes {
		return Field{}, fmt.Errorf("%.100q: an expression of an index has at most %d bytes, and this one has %d", text, jsonpath.MaxBytes, len(canonical))
	}
	return Field{path: f.Path, Text: f.String(), Date: f.Date, UTC: f.UTC, Descending: descending, own: &f}, nil
}

// loadedField returns the field of a document that is loaded.
func loadedField(as string, f query.Field, descending bool) (Field, error) {
	if as != "" {
		f.Date, f.UTC = query.DateInstant, as == AsUTC
	}
	return Field{path: f.Path, Text: f.String(), Date: f.Date, UTC: f.UTC, Descending: descending, own: &f}, nil
}

// isComputed reports whether a field of a query is an expression or a part of a date.
func isComputed(f query.Field) bool { return f.Expression != nil || f.Date > query.DateInstant }

// isComputed reports whether the field is an expression, a part of a date, or of a document that is loaded.
func (f Field) isComputed() bool { return f.own != nil && (isComputed(*f.own) || f.own.Loads()) }

// isSame reports whether two fields reach the same values. The second may be one of the element of a fan-out, which is written like one of
// the document.
func isSame(f, g *query.Field) bool {
	if g.IsOfElement() {
		return false
	}
	if f.Expression != nil || g.Expression != nil {
		return f.Expression != nil && g.Expression != nil && f.Func == g.Func && f.Expression.String() == g.Expression.String()
	}
	return f.String() == g.String()
}

// pathText returns the text of a path in a declaration: with quotes where it would be an expression without them.
func pathText(path jsonpath.Path) string {
	text := path.String()
	if !strings.Contains(text, "(") {
		return text
	}
	if f, err := query.ParseExpression(text); err != nil || !isComputed(f) {
		return text
	}
	var quoted []byte
	for i := range path.Len() {
		switch s := path.At(i); s.Kind {
		case jsonpath.Index:
			quoted = jsonpath.AppendIndex(quoted, s.Index)
		case jsonpath.Every:
			quoted = append(quoted, "[]"...)
		default:
			if i > 0 {
				quoted = append(quoted, '.')
			}
			quoted = append(append(append(quoted, '\''), strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s.Name)...), '\'')
		}
	}
	return string(quoted)
}

// unstable are the functions whose results follow the tables of Unicode that a program was built with: what one
// version has stored, the next one would not find.
var unstable = []string{"lower", "search", "trim", "upper"}

// NotKept says why the results of a field cannot be kept in an index, or is "".
func NotKept(f query.Field) string {
	operands := []query.Field{f}
	if f.Expression != nil {
		operands = f.Expression.Fields()
		if len(operands) == 0 {
			return "it refers to no field of the document"
		}
		for _, name := range f.Expression.Functions() {
			if name == "spatial.distance" || name == "spatial.within" {
				return name + "() is computed in floating point, of which processors differ in the last digit, and cannot be kept"
			}
			if slices.Contains(unstable, name) {
				return name + "() depends on tables that change from one version to the next, and cannot be kept: keep the result in a field"
			}
		}
	}
	for _, f := range operands {
		switch {
		case f.Expression != nil:
			if why := NotKept(f); why != "" {
				return why
			}
		case f.Meta != query.MetaNone:
			return fmt.Sprintf("%s is no field of the body, and cannot be kept", f)
		case f.Zone != nil:
			return fmt.Sprintf("the rules of time zones change, and %s cannot be kept: keep the result in a field, or ask for the part in UTC", f)
		}
	}
	return ""
}

// filterNotKept says why a condition cannot be that of an index, or is "".
func filterNotKept(e query.Expr) string {
	if query.Searches(e) {
		return "it searches for words, and what a word is depends on tables that change from one version to the next"
	}
	if query.AsksOfPlaces(e) {
		return "it asks where a place lies, which is computed in floating point, of which processors differ in the last digit"
	}
	if query.Boosts(e) {
		return "boost() is for the scores of a query"
	}
	for _, f := range query.Fields(e) {
		if f.Expression == nil && f.Meta != query.MetaNone {
			return "it looks at metadata, which indexes do not hold"
		}
	}
	return computedNotKept(e)
}

// computedNotKept says why what a condition computes cannot be kept, or is "". Conditions on elements are asked themselves: of
// their expressions, query.Fields has the operands only.
func computedNotKept(e query.Expr) string {
	var inner []query.Expr
	switch e := e.(type) {
	case query.And:
		inner = e
	case query.Or:
		inner = e
	case query.Not:
		inner = []query.Expr{e.Expr}
	case query.Boost:
		inner = []query.Expr{e.Expr}
	case query.ElemMatch:
		inner = []query.Expr{e.Where}
	default:
		for _, f := range query.Fields(e) {
			if f.Expression == nil {
				continue
			}
			if why := NotKept(f); why != "" {
				return fmt.Sprintf("%s: %s", f, why)
			}
		}
	}
	for _, e := range inner {
		if why := computedNotKept(e); why != "" {
			return why
		}
	}
	return ""
}

func isUTC(f query.Field) bool { return f.UTC }

// computes reports whether the index is ordered and has an expression, as a field or in its condition.
func (ix *Index) computes() bool {
	return ix.Ordered && slices.ContainsFunc(ix.Fields, Field.isComputed) || ix.Filter != nil && query.Computes(ix.Filter)
}

// expressionMark stands in front of an expression in the record of an ordered index, so that the member of an older record
// that is called year(At) remains one. No path begins with it.
//
// Part of the on-disk format. Must not change.
const expressionMark = "= "

// MarshalJSON returns the record of an index as it is stored.
func (e RecordEntry) MarshalJSON() ([]byte, error) {
	type plain RecordEntry
	e.Info.Errors = 0 // counted when it is asked for
	if e.Kind == "" {
		e.Fields = slices.Clone(e.Fields)
		for i, text := range e.Fields {
			if f, err := parseIndexField(text); err == nil && f.isComputed() {
				e.Fields[i] = expressionMark + text
			}
		}
	}
	return json.Marshal(plain(e))
}

// UnmarshalJSON reads the record of an index.
func (e *RecordEntry) UnmarshalJSON(text []byte) error {
	type plain RecordEntry
	if err := json.Unmarshal(text, (*plain)(e)); err != nil || e.Kind != "" {
		return err
	}
	for i, text := range e.Fields {
		if marked, found := strings.CutPrefix(text, expressionMark); found {
			e.Fields[i] = marked
			continue
		}
		rest, descending := strings.CutPrefix(text, "-")
		rest, as := CutDate(rest)
		path, err := jsonpath.Parse(rest)
		if err != nil || !strings.Contains(rest, "(") {
			continue // Open refuses what is no field
		}
		if e.Fields[i] = pathText(path) + as; descending {
			e.Fields[i] = "-" + e.Fields[i]
		}
	}
	return nil
}
