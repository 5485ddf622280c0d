package language_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/query"
)

// Ensure the text of every query means the query. Left out is what the text
// cannot say and String documents: an And or Or of one condition, and a Fold
// where there is no text.
func TestQuery_String_ParsesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuery(t)
		got, err := query.Parse(q.String(), nil)
		if err != nil {
			t.Fatalf("%s is refused: %v", q, err)
		}
		if !reflect.DeepEqual(got, q) {
			t.Fatalf("%s means %s\ngot  %#v\nwant %#v", q, got, got, q)
		}
	})
}

// names are what members, collections and columns are called: words, keywords,
// functions, and what needs quotes.
var names = rapid.OneOf(
	rapid.SampledFrom([]string{"Name", "Total", "a", "order", "Select", "INDEX", "index", "count", "id", "exact", "true", "null", "by", "as", "desc",
		"a b", "a.b", "it's", `back\slash`, "größe", "日本", "5", "1a", "a-b", "@x-y", "@", "x\ty\n", "\u200b", "\ufeffa", "/*", "//", "😀", "ſelect"}),
	rapid.StringN(1, 5, 20),
)

func drawName(t *rapid.T) string {
	return names.Filter(func(s string) bool { return s != "@metadata" && !strings.EqualFold(s, "@all_docs") }).Draw(t, "name")
}

func drawField(t *rapid.T) query.Field {
	if rapid.IntRange(0, 5).Draw(t, "meta") == 0 {
		return query.Field{Meta: rapid.SampledFrom([]query.Meta{query.MetaID, query.MetaCollection, query.MetaLastModified, query.MetaChangeVector}).Draw(t, "part")}
	}
	return query.Field{Path: drawPath(t)}
}

func drawPath(t *rapid.T) jsonpath.Path {
	text := jsonpath.AppendMember(nil, drawName(t))
	for range rapid.IntRange(0, 3).Draw(t, "steps") {
		switch rapid.IntRange(0, 3).Draw(t, "step") {
		case 0:
			text = append(text, "[]"...)
		case 1:
			text = jsonpath.AppendIndex(text, rapid.IntRange(0, jsonpath.MaxIndex).Draw(t, "index"))
		default:
			text = jsonpath.AppendMember(text, rapid.OneOf(names, rapid.Just(""), rapid.Just("@metadata")).Draw(t, "member"))
		}
	}
	return jsonpath.MustParse(string(text))
}

var numbers = rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,3})?`)

func drawValue(t *rapid.T) query.Value {
	var v any
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
	case 1:
		v = rapid.Bool().Draw(t, "bool")
	case 2:
		v = json.Number(numbers.Draw(t, "number"))
	default:
		v = rapid.OneOf(names, rapid.Just("")).Draw(t, "text")
	}
	return mustValue(t, v)
}

func mustValue(t *rapid.T, v any) query.Value {
	value, err := query.NewValue(v)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// drawFold draws a Fold, where there is text.
func drawFold(t *rapid.T, values ...query.Value) bool {
	for _, v := range values {
		if v.Kind() == query.KindText {
			return rapid.Bool().Draw(t, "fold")
		}
	}
	return false
}

func drawExpr(t *rapid.T, depth int) query.Expr {
	kinds := 15
	if depth == 0 {
		kinds = 11
	}
	field := drawField(t)
	text := rapid.OneOf(names, rapid.Just("")).Draw(t, "text")
	textFold := rapid.Bool().Draw(t, "fold")

	switch rapid.IntRange(0, kinds-1).Draw(t, "condition") {
	case 0, 1:
		v := drawValue(t)
		op := query.Op(rapid.IntRange(0, int(query.GreaterOrEqual)).Draw(t, "op"))
		return query.Compare{Field: field, Op: op, Value: v, Fold: drawFold(t, v)}
	case 2:
		lo := drawValue(t)
		hi := rapid.Custom(drawValue).Filter(func(v query.Value) bool { return v.Kind() == lo.Kind() }).Draw(t, "hi")
		return query.Between{Field: field, Lo: lo, Hi: hi, Fold: drawFold(t, lo)}
	case 3:
		var values []query.Value
		for range rapid.IntRange(0, 3).Draw(t, "values") {
			values = append(values, drawValue(t))
		}
		return query.In{Field: field, Values: values, All: rapid.Bool().Draw(t, "all"), Fold: drawFold(t, values...)}
	case 4:
		return query.StartsWith{Field: field, Text: text, Fold: textFold}
	case 5:
		return query.EndsWith{Field: field, Text: text, Fold: textFold}
	case 6:
		return query.Contains{Field: field, Text: text, Fold: textFold}
	case 7:
		pattern := rapid.SampledFrom([]string{"", `^\d+$`, "a|b", "[\"']+", "日"}).Draw(t, "pattern")
		return query.Regexp{Field: field, Pattern: pattern, Fold: textFold}
	case 8:
		return query.Exists{Field: field}
	case 9:
		if field.Meta != query.MetaNone || field.Date != query.DateNone {
			return query.Exists{Field: field}
		}
		op := query.Op(rapid.IntRange(0, int(query.GreaterOrEqual)).Draw(t, "op"))
		return query.HasSize{Field: field, Op: op, N: rapid.IntRange(0, 100).Draw(t, "size")}
	case 10:
		if field.Meta != query.MetaNone || field.Date != query.DateNone {
			return query.Exists{Field: field}
		}
		return query.HasType{Field: field, Type: rapid.SampledFrom([]string{"null", "boolean", "number", "string", "array", "object"}).Draw(t, "type")}
	case 11:
		inner := drawExpr(t, depth-1)
		if field.Meta != query.MetaNone || field.Date != query.DateNone || slices.ContainsFunc(query.Fields(inner), func(f query.Field) bool { return f.Meta != query.MetaNone }) {
			return inner
		}
		return query.ElemMatch{Field: field, Where: inner}
	case 12:
		return query.Not{Expr: drawExpr(t, depth-1)}
	case 13:
		return query.And(drawExprs(t, depth-1))
	}
	return query.Or(drawExprs(t, depth-1))
}

// drawExprs draws none, or two or more.
func drawExprs(t *rapid.T, depth int) []query.Expr {
	list := []query.Expr{}
	n := rapid.SampledFrom([]int{0, 2, 2, 3}).Draw(t, "conditions")
	for range n {
		list = append(list, drawExpr(t, depth))
	}
	return list
}

func drawQuery(t *rapid.T) *query.Query {
	q := &query.Query{}
	if rapid.Bool().Draw(t, "collection") {
		q.From = drawName(t)
	}
	if rapid.Bool().Draw(t, "where") {
		q.Where = drawExpr(t, 4)
	}
	if rapid.Bool().Draw(t, "limit") {
		q.HasLimit = true
		q.Limit = rapid.IntRange(0, 1<<62).Draw(t, "limit")
	}
	if rapid.Bool().Draw(t, "offset") {
		q.Offset = rapid.IntRange(0, 1<<62).Draw(t, "offset")
	}
	q.Distinct = rapid.Bool().Draw(t, "distinct")

	if rapid.Bool().Draw(t, "groups") {
		drawGroups(t, q)
	} else {
		drawColumns(t, q)
	}
	return q
}

// drawColumns draws the rest of a query of documents.
func drawColumns(t *rapid.T, q *query.Query) {
	for _, name := range columnNames(t, 0) {
		q.Select = append(q.Select, query.Column{Name: name, Field: drawField(t)})
	}
	for range rapid.IntRange(0, 3).Draw(t, "orders") {
		q.OrderBy = append(q.OrderBy, drawOrder(t, query.Order{Field: drawField(t)}))
	}
	for range rapid.IntRange(0, 2).Draw(t, "includes") {
		q.Include = append(q.Include, drawPath(t))
	}
}

// drawGroups draws the rest of a query of groups.
func drawGroups(t *rapid.T, q *query.Query) {
	for range rapid.IntRange(0, 3).Draw(t, "keys") {
		q.GroupBy = append(q.GroupBy, drawField(t))
	}
	for _, name := range columnNames(t, 1) {
		fn := query.Func(rapid.IntRange(0, int(query.FuncMax)).Draw(t, "function"))
		if len(q.Select) == 0 && len(q.GroupBy) == 0 || fn == query.FuncNone && len(q.GroupBy) == 0 {
			fn = query.FuncSum
		}
		column := query.Column{Name: name, Func: fn}
		switch fn {
		case query.FuncNone:
			column.Field = rapid.SampledFrom(q.GroupBy).Draw(t, "key")
		case query.FuncCount:
		default:
			column.Field = drawField(t)
		}
		q.Select = append(q.Select, column)
	}
	for range rapid.IntRange(0, 3).Draw(t, "orders") {
		column := rapid.SampledFrom(q.Select).Draw(t, "column")
		q.OrderBy = append(q.OrderBy, drawOrder(t, query.Order{Column: column.Name}))
	}
}

func columnNames(t *rapid.T, least int) []string {
	return rapid.SliceOfNDistinct(names, least, 4, rapid.ID[string]).Draw(t, "columns")
}

func drawOrder(t *rapid.T, o query.Order) query.Order {
	o.Descending = rapid.Bool().Draw(t, "descending")
	o.As = query.Cast(rapid.IntRange(0, int(query.CastString)).Draw(t, "cast"))
	return o
}

// Ensure what a text cannot say is printed as what means the same.
func TestQuery_String_Simplified(t *testing.T) {
	name := query.Field{Path: jsonpath.MustParse("Name")}
	exists := query.Exists{Field: name}
	five, _ := query.NewValue(5)

	for _, test := range []struct {
		name string
		expr query.Expr
		want string
	}{
		{"an And of one", query.And{exists}, "exists(Name)"},
		{"an Or of one in an And", query.And{query.Or{query.Or{exists, exists}}, exists}, "(exists(Name) or exists(Name)) and exists(Name)"},
		{"a Fold of a number", query.Compare{Field: name, Value: five, Fold: true}, "Name = 5"},
		{"no And", query.And{}, "true"},
		{"no Or", query.Not{Expr: query.Or{}}, "not false"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := query.FormatCondition(test.expr); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
