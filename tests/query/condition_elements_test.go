package query_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/query"
)

// Ensure that ElemMatch asks one element for all its conditions, in Go and in RQL, with
// an index and without, and that its text is the same query.
func TestElemMatch(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "orders/1", `{"@metadata":{"@collection":"Orders"},"Lines":[{"P":"a","Q":9},{"P":"b","Q":1,"Of":[{"x":1},{"y":2}]}]}`)
	put(t, db, "orders/2", `{"@metadata":{"@collection":"Orders"},"Lines":[{"P":"a","Q":1},{"P":"b","Q":9,"Of":[{"x":1,"y":2}]}]}`)
	put(t, db, "orders/3", `{"@metadata":{"@collection":"Orders"},"Lines":{"P":"a","Q":9}}`)
	put(t, db, "orders/4", `{"@metadata":{"@collection":"Orders"},"Lines":[[{"P":"a","Q":9}],5,null]}`)
	put(t, db, "orders/5", `{"@metadata":{"@collection":"Orders"},"Lines":[]}`)

	tests := []struct {
		where jay.Condition
		rql   string
		want  string
	}{
		{jay.ElemMatch("Lines", jay.Eq("P", "a"), jay.Gt("Q", 5)), "elemMatch(Lines, exact(P = 'a') and Q > 5)", "1 3"},
		{jay.ElemMatch("Lines", jay.Eq("P", "b"), jay.Gt("Q", 5)), "elemMatch(Lines, exact(P = 'b') and Q > 5)", "2"},
		{jay.IgnoreCase(jay.ElemMatch("Lines", jay.Eq("P", "B"))), "elemMatch(Lines, P = 'B')", "1 2"},
		{jay.ElemMatch("Lines", jay.Not(jay.Exists("Of"))), "elemMatch(Lines, not exists(Of))", "1 2 3"},
		{jay.ElemMatch("Lines"), "elemMatch(Lines, true)", "1 2 3"},
		{jay.Not(jay.ElemMatch("Lines")), "not elemMatch(Lines, true)", "4 5"},
		{jay.ElemMatch("Lines", jay.Or(jay.Eq("Q", 1), jay.Eq("P", "z"))), "elemMatch(Lines, Q = 1 or exact(P = 'z'))", "1 2"},
		{jay.ElemMatch("Lines", jay.ElemMatch("Of", jay.Eq("x", 1), jay.Eq("y", 2))), "elemMatch(Lines, elemMatch(Of, x = 1 and y = 2))", "2"},
		{jay.ElemMatch("Lines[]", jay.Eq("Q", 9)), "elemMatch(Lines[], Q = 9)", "1 2 4"},
		{jay.Size("Lines", "=", 0), "size(Lines) = 0", "5"},
		{jay.Size("Lines", "<", 3), "size(Lines) < 3", "1 2 5"},
		{jay.Size("Lines", "!=", 2), "not size(Lines) = 2", "3 4 5"},
		{jay.Size("Lines.Of", ">=", 2), "size(Lines.Of) >= 2", "1"},
		{jay.Type("Lines", "array"), "type(Lines) = 'array'", "1 2 4 5"},
		{jay.Type("Lines", "object"), "type(Lines) = 'object'", "3"},
		{jay.Type("Lines[]", "null"), "type(Lines[]) = 'null'", "4"},
		{jay.Type("Lines.Q", "number"), "type(Lines.Q) = 'number'", "1 2 3 4"},
	}
	for _, index := range []string{"", "Lines.P", "Lines.Q", "Lines.Of.x"} {
		if index != "" {
			must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{index}}))
		}
		for _, test := range tests {
			q := db.Query("Orders").Where(test.where)
			text := "from Orders where " + test.rql
			if q.String() != text {
				t.Errorf("got %s, want %s", q, text)
			}
			docs, err := q.OrderBy("id()").All(ctx)
			must(t, err)
			var got []string
			for _, doc := range docs {
				got = append(got, strings.TrimPrefix(doc.ID(), "orders/"))
			}
			rows, err := rqlRows(db, text)
			must(t, err)
			if strings.Join(got, " ") != test.want || len(rows) != len(got) {
				t.Errorf("index %q: %s: got %q and %d rows, want %s", index, test.rql, got, len(rows), test.want)
			}
		}
	}
	e, err := db.Query("Orders").Where(tests[0].where).Explain(ctx)
	must(t, err)
	if !strings.Contains(e.String(), `index "Lines.`) {
		t.Errorf("no index finds candidates: %s", e)
	}
}

// Ensure that an alias in front of a field of an element is refused, as are fields of the
// document and of groups, sizes and types that there are not.
func TestElemMatch_Refused(t *testing.T) {
	db := memory(t, nil)
	for text, want := range map[string]string{
		"from Orders as o where elemMatch(o.Lines, o.P = 1)":          "leave out o.",
		"from Orders where elemMatch(Lines, id() = 'x')":              "is of the document",
		"from Orders where elemMatch(Lines, @metadata.x = 1)":         "is of the document",
		"from Orders where elemMatch(Lines, elemMatch(P, id() = ''))": "is of the document",
		"from Orders where elemMatch(Lines, count() = 1)":             "is of the document",
		"from Orders where elemMatch(id(), P = 1)":                    "has no elements",
		"from Orders where elemMatch(Lines)":                          "a condition on one element",
		"from Orders where size(Lines) = 1.5":                         "number of elements",
		"from Orders where size(Lines) > -1":                          "number of elements",
		"from Orders where size(Lines) between 1 and 2":               "a comparison",
		"from Orders where type(Lines) = 'text'":                      "no type of JSON",
		"from Orders where type(Lines) < 'array'":                     "= or !=",
	} {
		if _, err := rqlRows(db, text); !errors.Is(err, query.ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	for i, c := range []jay.Condition{
		jay.ElemMatch("id()", jay.Eq("P", 1)), jay.ElemMatch("Lines", jay.Eq("id()", "x")), jay.ElemMatch("Lines", jay.Eq("count()", 1)),
		jay.ElemMatch("Lines", jay.Eq("", 1)), jay.Size("Lines", "~", 1), jay.Size("Lines", "=", -1), jay.Size("id()", "=", 1), jay.Type("Lines", "text"),
	} {
		if _, err := db.Query("Orders").Where(c).All(ctx); !errors.Is(err, jay.ErrQuery) {
			t.Errorf("condition %d: got %v, want ErrQuery", i, err)
		}
	}
	if rows, err := rqlRows(db, "from Orders as o where elemMatch(o.Lines, 'o'.P = 1)"); err != nil || len(rows) != 0 {
		t.Errorf("a member named as the alias, in quotes: %v", err)
	}
}

// Ensure that the number of ElemMatch in a condition is bounded, beside one another and
// one in the other.
func TestElemMatch_Bounds(t *testing.T) {
	db := memory(t, nil)
	nested, all := jay.Eq("x", 1), []jay.Condition{}
	for i := range 101 {
		if i < 60 {
			nested = jay.ElemMatch("a", nested)
		}
		all = append(all, jay.ElemMatch(fmt.Sprint("a", i), jay.Eq("x", 1)))
	}
	if _, err := db.Query("Orders").Where(jay.Or(all[:100]...)).All(ctx); err != nil {
		t.Error(err)
	}
	for _, c := range []jay.Condition{jay.Or(all...), jay.Or(append(all[:50:50], nested)...)} {
		if _, err := db.Query("Orders").Where(c).All(ctx); !errors.Is(err, jay.ErrQuery) || !strings.Contains(err.Error(), "conditions on elements") {
			t.Errorf("got %v, want a bound", err)
		}
	}
	for range 10 {
		nested = jay.ElemMatch("a", nested)
	}
	if _, err := db.Query("Orders").Where(nested).All(ctx); !errors.Is(err, jay.ErrQuery) {
		t.Errorf("a path of more than 64 steps: got %v, want ErrQuery", err)
	}
}

// rqlRows returns the rows of a query, or why there are none.
func rqlRows(db *jay.DB, text string) ([]*jay.Row, error) {
	q, err := db.RQL(text, nil)
	if err != nil {
		return nil, err
	}
	return q.All(ctx)
}
