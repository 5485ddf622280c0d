package language_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/query"
)

// naive answers what conditions mean a second time, slowly: over documents
// decoded by encoding/json, with big.Rat for numbers and Go's own Unicode
// tables, and with no code of package query beyond its AST.
type naive struct {
	body any
	meta map[query.Meta]string
}

func newNaive(body []byte, meta map[query.Meta]string) naive {
	return naive{decode(body), meta}
}

func decode(raw []byte) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(fmt.Sprintf("%v: %s", err, raw))
	}
	return v
}

func (n naive) holds(e query.Expr) bool {
	switch e := e.(type) {
	case query.And:
		for _, kid := range e {
			if !n.holds(kid) {
				return false
			}
		}
		return true
	case query.Or:
		for _, kid := range e {
			if n.holds(kid) {
				return true
			}
		}
		return false
	case query.Not:
		return !n.holds(e.Expr)
	case query.Exists:
		return len(n.ends(e.Field)) > 0
	case query.ElemMatch:
		return n.any(e.Field, func(v any) bool {
			_, isObject := v.(map[string]any)
			return isObject && (naive{body: v}).holds(e.Where)
		})
	case query.HasSize:
		return slices.ContainsFunc(n.ends(e.Field), func(v any) bool {
			elements, isArray := v.([]any)
			return isArray && naiveRelation(len(elements)-e.N, e.Op)
		})
	case query.HasType:
		return slices.ContainsFunc(n.ends(e.Field), func(v any) bool {
			return [...]string{1: "null", 2: "boolean", 3: "boolean", 4: "number", 5: "string", 6: "array", 7: "object"}[naiveRank(v)] == e.Type
		})
	case query.Compare:
		return n.any(e.Field, func(v any) bool {
			w := decode(e.Value.Raw())
			if naiveClass(v) != naiveClass(w) {
				return false
			}
			c := naiveCompare(v, w, n.folds(e.Field, e.Fold))
			return [...]bool{c == 0, c < 0, c <= 0, c > 0, c >= 0}[e.Op]
		})
	case query.Between:
		return n.any(e.Field, func(v any) bool {
			lo, hi, folds := decode(e.Lo.Raw()), decode(e.Hi.Raw()), n.folds(e.Field, e.Fold)
			return naiveClass(v) == naiveClass(lo) && naiveClass(v) == naiveClass(hi) &&
				naiveCompare(lo, v, folds) <= 0 && naiveCompare(v, hi, folds) <= 0
		})
	case query.In:
		return n.in(e)
	case query.StartsWith:
		return n.text(e.Field, e.Fold, e.Text, strings.HasPrefix)
	case query.EndsWith:
		return n.text(e.Field, e.Fold, e.Text, strings.HasSuffix)
	case query.Contains:
		return n.text(e.Field, e.Fold, e.Text, strings.Contains)
	case query.Regexp:
		pattern := e.Pattern
		if n.folds(e.Field, e.Fold) {
			pattern = "(?i)" + pattern
		}
		return n.any(e.Field, func(v any) bool {
			text, ok := v.(string)
			return ok && regexp.MustCompile(pattern).MatchString(text)
		})
	}
	panic(fmt.Sprintf("%T", e))
}

// naiveRelation reports whether two values that compare as c stand in a relation.
func naiveRelation(c int, op query.Op) bool {
	return [...]bool{c == 0, c < 0, c <= 0, c > 0, c >= 0}[op]
}

func (n naive) in(e query.In) bool {
	equals := func(w query.Value) bool {
		return n.any(e.Field, func(v any) bool {
			return naiveRank(v) == naiveRank(decode(w.Raw())) && naiveCompare(v, decode(w.Raw()), n.folds(e.Field, e.Fold)) == 0
		})
	}
	for _, w := range e.Values {
		if equals(w) != e.All {
			return !e.All
		}
	}
	return e.All
}

func (n naive) text(f query.Field, folds bool, want string, test func(text, want string) bool) bool {
	return n.any(f, func(v any) bool {
		text, ok := v.(string)
		if n.folds(f, folds) {
			return ok && test(naiveFold(text), naiveFold(want))
		}
		return ok && test(text, want)
	})
}

func (n naive) folds(f query.Field, folds bool) bool {
	return folds || f.Meta == query.MetaID || f.Meta == query.MetaCollection
}

// any reports whether test is true of a value that the field reaches.
func (n naive) any(f query.Field, test func(v any) bool) bool {
	for _, v := range n.reached(f) {
		if test(v) {
			return true
		}
	}
	return false
}

// reached returns the values that a field reaches.
func (n naive) reached(f query.Field) []any {
	var values []any
	for _, v := range n.ends(f) {
		if elements, ok := v.([]any); ok {
			values = append(values, elements...)
		} else {
			values = append(values, v)
		}
	}
	return values
}

// ends returns what is at the end of the field's path.
func (n naive) ends(f query.Field) []any {
	if f.Meta == query.MetaNone {
		return naiveEnds(n.body, f.Path, 0)
	}
	if text := n.meta[f.Meta]; text != "" {
		return []any{text}
	}
	return nil
}

func naiveEnds(v any, p jsonpath.Path, i int) []any {
	if i == p.Len() {
		return []any{v}
	}
	var ends []any
	elements, isArray := v.([]any)
	switch step := p.At(i); {
	case step.Kind == jsonpath.Index && isArray && step.Index < len(elements):
		return naiveEnds(elements[step.Index], p, i+1)
	case step.Kind == jsonpath.Every:
		for _, element := range elements {
			ends = append(ends, naiveEnds(element, p, i+1)...)
		}
	case step.Kind == jsonpath.Member && isArray:
		for _, element := range elements {
			ends = append(ends, naiveEnds(element, p, i)...)
		}
	case step.Kind == jsonpath.Member:
		object, _ := v.(map[string]any)
		if member, found := object[step.Name]; found {
			return naiveEnds(member, p, i+1)
		}
	}
	return ends
}

func naiveRank(v any) int {
	switch v := v.(type) {
	case nil:
		return 1
	case bool:
		if v {
			return 3
		}
		return 2
	case json.Number:
		return 4
	case string:
		return 5
	case []any:
		return 6
	}
	return 7
}

func naiveClass(v any) int {
	if rank := naiveRank(v); rank != 3 {
		return rank
	}
	return 2
}

// naiveCompare compares scalars.
func naiveCompare(v, w any, folds bool) int {
	if a, b := naiveRank(v), naiveRank(w); a != b {
		return a - b
	}
	switch v := v.(type) {
	case json.Number:
		return naiveNumber(v).Cmp(naiveNumber(w.(json.Number)))
	case string:
		w := w.(string)
		if c := strings.Compare(naiveFold(v), naiveFold(w)); c != 0 || folds {
			return c
		}
		return strings.Compare(v, w)
	}
	return 0
}

func naiveNumber(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		panic("no number: " + n)
	}
	return r
}

func naiveFold(text string) string {
	return strings.Map(func(r rune) rune {
		if lower := unicode.ToLower(r); r <= 0xffff && lower <= 0xffff {
			return lower
		}
		return r
	}, text)
}

// naiveCast returns a value as an order compares it, if it counts.
func naiveCast(v any, as query.Cast) (query.Value, bool) {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	if n, ok := v.(json.Number); ok {
		raw = []byte(n)
	}
	text, isText := v.(string)
	_, isBool := v.(bool)
	_, isNumber := v.(json.Number)
	switch as {
	case query.CastString:
		if isBool || isNumber {
			return query.TextValue(string(raw)), true
		}
		return query.TextValue(text), isText
	case query.CastLong, query.CastDouble:
		if isText && json.Valid([]byte(text)) && strings.TrimSpace(text) == text && strings.ContainsAny(text[:1], "-0123456789") {
			raw, isNumber = []byte(text), true
		}
		if isNumber && as == query.CastLong {
			r := naiveNumber(json.Number(raw))
			raw = []byte(new(big.Int).Quo(r.Num(), r.Denom()).String())
		}
		return query.ValueOf(raw), isNumber
	}
	if isText {
		return query.TextValue(text), true // json.Marshal escapes for HTML
	}
	if _, ok := v.([]any); ok {
		return query.ValueOf([]byte("[]")), true // their order is left out
	}
	if _, ok := v.(map[string]any); ok {
		return query.ValueOf([]byte("{}")), true
	}
	return query.ValueOf(raw), true
}
