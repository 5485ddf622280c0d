package language_test

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/query"
)

// metadata is a document's metadata in a map.
type metadata map[query.Meta]string

func (m metadata) AppendMeta(dst []byte, part query.Meta) []byte { return append(dst, m[part]...) }

// characters are those whose case, order or bytes are odd.
var characters = []string{
	"a", "A", "b", "B", "z", "Z", "k", "K", "\u212a", "ß", "ẞ", "i", "I", "\u0130", "ı", "σ", "ς", "Σ",
	"é", "É", "e\u0301", "Ⱥ", "ⱥ", "Ω", "ω", "\u2126", "\x00", "\x01", "\x02", "\x03", "\x1f", " ", "~", "\x7f", "\uffff", "\ufffd",
	"😀", "\U00010400", "\U00010428", `"`, `\`, "/", "0", "9", "@", "[", "`", "{",
}

// genText makes short texts and, rarely, ones around the bound of keys.
func genText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(characters), 0, 5).Draw(t, "characters"), "")
		if rapid.IntRange(0, 19).Draw(t, "long") == 0 {
			filler := rapid.SampledFrom([]string{"x", "X", "ä", "Ä", "\x00", "\u212a"}).Draw(t, "filler")
			n := rapid.IntRange(500, 514).Draw(t, "n")
			long := strings.Repeat(filler, n/max(1, len(strings.ToLower(filler))))
			return long + text
		}
		return text
	})
}

// quote writes text as JSON, with escapes where it needs none.
func quote(t *rapid.T, text string) string {
	switch rapid.IntRange(0, 3).Draw(t, "escapes") {
	case 0:
		var b strings.Builder
		b.WriteByte('"')
		for _, r := range text {
			if r > 0xffff {
				hi, lo := utf16.EncodeRune(r)
				fmt.Fprintf(&b, `\u%04x\u%04X`, hi, lo)
			} else {
				fmt.Fprintf(&b, `\u%04X`, r)
			}
		}
		b.WriteByte('"')
		return b.String()
	default:
		return string(jsonpath.AppendQuoted(nil, text))
	}
}

// genNumber makes numbers, many of which are equal but written differently.
func genNumber() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		if rapid.Bool().Draw(t, "known") {
			return rapid.SampledFrom([]string{
				"0", "-0", "0.0", "0e5", "-0.00e-3", "1", "1.0", "1e0", "10e-1", "0.1e1", "100e-2", "-1", "-1.0", "-10e-1",
				"9007199254740993", "9007199254740992", "9007199254740993.0", "9.007199254740993e15", "9223372036854775807",
				"9223372036854775808", "-9223372036854775808", "-9223372036854775809", "999999999999999999", "1000000000000000000",
				"100", "1e2", "10001", "1000100", "0.01", "1e-2", "0.001", "12.5", "1.25e1", "99", "99.99", "9.9", "101",
				"1e400", "1e401", "1E+400", "-1e400", "1e-400", "-1e-400", "1e20", "1e21", "1e22", "0.000001", "0.0000001",
			}).Draw(t, "number")
		}
		var b strings.Builder
		if rapid.Bool().Draw(t, "negative") {
			b.WriteByte('-')
		}
		whole := rapid.StringMatching(`0|[1-9][019]{0,4}|[1-9][0-9]{0,25}`).Draw(t, "whole")
		b.WriteString(whole)
		if rapid.Bool().Draw(t, "fraction") {
			b.WriteByte('.')
			b.WriteString(rapid.StringMatching(`0{0,3}[0-9]{1,3}0{0,3}`).Draw(t, "digits"))
			if rapid.IntRange(0, 19).Draw(t, "long") == 0 {
				b.WriteString(strings.Repeat("7", rapid.IntRange(240, 258).Draw(t, "sevens")))
				b.WriteString(rapid.StringMatching(`[0-9]{0,3}`).Draw(t, "end"))
			}
		}
		if rapid.Bool().Draw(t, "exponent") {
			fmt.Fprintf(&b, "e%d", rapid.IntRange(-30, 30).Draw(t, "e"))
		}
		return b.String()
	})
}

// genHugeNumber makes numbers whose exponents are at their bound or beyond.
func genHugeNumber() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{
		"1e999999999999999", "1e1000000000000000", "1e99999999999999999999999999", "-1e99999999999999999999999999",
		"1e-99999999999999999999999999", "2e-99999999999999999999999999", "0e99999999999999999999999", "-3e-1000000000000000",
	})
}

// genScalar makes null, booleans, numbers and texts as JSON.
func genScalar() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		switch rapid.IntRange(0, 8).Draw(t, "kind") {
		case 0:
			return "null"
		case 1:
			return rapid.SampledFrom([]string{"true", "false"}).Draw(t, "boolean")
		case 2, 3, 4:
			return genNumber().Draw(t, "number")
		default:
			return quote(t, genText().Draw(t, "text"))
		}
	})
}

// genValue makes values of every kind, missing too.
func genValue() *rapid.Generator[query.Value] {
	return rapid.Custom(func(t *rapid.T) query.Value {
		switch rapid.IntRange(0, 13).Draw(t, "what") {
		case 4:
			return query.ValueOf([]byte(genHugeNumber().Draw(t, "huge")))
		case 0:
			return query.Value{}
		case 1:
			text := genScalar().Draw(t, "element")
			return query.ValueOf([]byte("[" + text + "]"))
		case 2:
			return query.ValueOf([]byte(`{"a":` + genScalar().Draw(t, "member") + "}"))
		case 3:
			return query.TextValue(genText().Draw(t, "plain"))
		default:
			return query.ValueOf([]byte(genScalar().Draw(t, "scalar")))
		}
	})
}

// memberNames are the members of documents that are made, and of paths into them.
var memberNames = []string{"a", "b", "c", "A", "ü.x"}

// genJSON makes JSON of at most depth levels, of scalars from a small pool so
// that conditions are often true.
func genJSON(depth int, pool []string) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		kind := rapid.IntRange(0, 7).Draw(t, "kind")
		switch {
		case depth > 0 && kind < 2:
			elements := rapid.SliceOfN(genJSON(depth-1, pool), 0, 4).Draw(t, "elements")
			return "[" + strings.Join(elements, ",") + "]"
		case depth > 0 && kind < 4:
			return genObject(depth, pool).Draw(t, "object")
		case kind == 4:
			return genScalar().Draw(t, "scalar")
		}
		return rapid.SampledFrom(pool).Draw(t, "pooled")
	})
}

// genObject makes objects with members from memberNames.
func genObject(depth int, pool []string) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var members []string
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(memberNames), rapid.ID[string]).Draw(t, "memberNames") {
			members = append(members, quote(t, name)+":"+genJSON(depth-1, pool).Draw(t, name))
		}
		return "{" + strings.Join(members, ",") + "}"
	})
}

// genField makes fields, mostly paths into what genObject makes.
func genField() *rapid.Generator[query.Field] {
	return rapid.Custom(func(t *rapid.T) query.Field {
		if rapid.IntRange(0, 9).Draw(t, "meta") == 0 {
			return query.Field{Meta: query.Meta(rapid.IntRange(1, 4).Draw(t, "part"))}
		}
		text := jsonpath.AppendMember(nil, rapid.SampledFrom(memberNames).Draw(t, "root"))
		for range rapid.IntRange(0, 2).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				text = append(text, "[]"...)
			case 1:
				text = jsonpath.AppendIndex(text, rapid.IntRange(0, 2).Draw(t, "index"))
			default:
				text = jsonpath.AppendMember(text, rapid.SampledFrom(memberNames).Draw(t, "name"))
			}
		}
		return query.Field{Path: jsonpath.MustParse(string(text))}
	})
}

// genExpr makes conditions of at most depth levels.
func genExpr(depth int, pool []string) *rapid.Generator[query.Expr] {
	return rapid.Custom(func(t *rapid.T) query.Expr {
		kind := rapid.IntRange(0, 12).Draw(t, "kind")
		if depth > 0 && kind < 5 {
			kids := rapid.SliceOfN(genExpr(depth-1, pool), 0, 3).Draw(t, "kids")
			switch {
			case kind < 2:
				return query.And(kids)
			case kind < 4:
				return query.Or(kids)
			}
			return query.Not{Expr: genExpr(depth-1, pool).Draw(t, "kid")}
		}
		return genLeaf(pool).Draw(t, "leaf")
	})
}

// genLeaf makes conditions on one field.
func genLeaf(pool []string) *rapid.Generator[query.Expr] {
	return rapid.Custom(func(t *rapid.T) query.Expr {
		value := func(name string) query.Value {
			if rapid.IntRange(0, 3).Draw(t, "other") == 0 {
				return query.ValueOf([]byte(genScalar().Draw(t, name)))
			}
			return query.ValueOf([]byte(rapid.SampledFrom(pool).Draw(t, name)))
		}
		text := func() string {
			if v := value("text"); v.Kind() == query.KindText {
				runes := []rune(v.Text())
				from := rapid.IntRange(0, len(runes)).Draw(t, "from")
				return string(runes[from:rapid.IntRange(from, len(runes)).Draw(t, "to")])
			}
			return rapid.SampledFrom(characters).Draw(t, "character")
		}
		field, fold := genField().Draw(t, "field"), rapid.Bool().Draw(t, "fold")
		switch rapid.IntRange(-3, 9).Draw(t, "kind") {
		case -3, -2, -1:
			if field.Meta != query.MetaNone {
				break
			}
			switch rapid.IntRange(0, 2).Draw(t, "of elements") {
			case 0:
				op := query.Op(rapid.IntRange(0, 4).Draw(t, "op"))
				return query.HasSize{Field: field, Op: op, N: rapid.IntRange(0, 3).Draw(t, "size")}
			case 1:
				return query.HasType{Field: field, Type: rapid.SampledFrom([]string{"null", "boolean", "number", "string", "array", "object"}).Draw(t, "type")}
			}
			inner := genExpr(1, pool).Filter(func(e query.Expr) bool {
				return !slices.ContainsFunc(query.Fields(e), func(f query.Field) bool { return f.Meta != query.MetaNone })
			}).Draw(t, "of an element")
			return query.ElemMatch{Field: field, Where: inner}
		case 0:
			return query.Between{Field: field, Lo: value("lo"), Hi: value("hi"), Fold: fold}
		case 1:
			var values []query.Value
			for range rapid.IntRange(0, 5).Draw(t, "n") {
				values = append(values, value("value"))
			}
			return query.In{Field: field, Values: values, All: rapid.Bool().Draw(t, "all"), Fold: fold}
		case 2:
			return query.StartsWith{Field: field, Text: text(), Fold: fold}
		case 3:
			return query.EndsWith{Field: field, Text: text(), Fold: fold}
		case 4:
			return query.Contains{Field: field, Text: text(), Fold: fold}
		case 5:
			pattern := rapid.SampledFrom([]string{"^a", "b$", "[kz]", "^.?$", "A.*b", "é|É"}).Draw(t, "pattern")
			return query.Regexp{Field: field, Pattern: pattern, Fold: fold}
		case 6:
			return query.Exists{Field: field}
		}
		op := query.Op(rapid.IntRange(0, 4).Draw(t, "op"))
		return query.Compare{Field: field, Op: op, Value: value("operand"), Fold: fold}
	})
}
