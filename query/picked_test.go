package query_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jaydb/jay/query"
)

// grouped returns the rows of a query of groups over documents.
func grouped(t *testing.T, text string, bodies ...string) string {
	t.Helper()
	q, err := query.Parse(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := query.NewGroups(q.GroupBy, q.Select, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range bodies {
		if err := g.Add(query.Doc{Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
	var rows []string
	for row := range g.Rows() {
		rows = append(rows, string(query.AppendRow(nil, q.Select, row)))
	}
	return strings.Join(rows, " ")
}

// Ensure that first and last have the value where the order is least and greatest, whatever the order of the documents, and what counts where
// values are missing, equal, several or in arrays.
func TestGroups_FirstLast(t *testing.T) {
	tests := []struct{ name, of, by, want string }{
		{"an order", `{"v":1,"t":2} {"v":9,"t":1} {"v":5,"t":3}`, "t", `{"f":9,"l":5}`},
		{"no document", ``, "t", `{"f":null,"l":null}`},
		{"no order is left out", `{"v":1} {"v":2,"t":5}`, "t", `{"f":2,"l":2}`},
		{"none has an order", `{"v":1} {"v":2}`, "t", `{"f":null,"l":null}`},
		{"null is an order", `{"v":1,"t":null} {"v":2,"t":5}`, "t", `{"f":1,"l":2}`},
		{"a missing value is null", `{"t":1} {"v":2,"t":2} {"t":3}`, "t", `{"f":null,"l":null}`},
		{"of equal orders the least and the greatest value", `{"v":2,"t":1} {"v":1,"t":1} {"v":3,"t":1.0}`, "t", `{"f":1,"l":3}`},
		{"one that is missing is the least", `{"v":2,"t":1} {"t":1}`, "t", `{"f":null,"l":2}`},
		{"kinds have an order", `{"v":"n","t":5} {"v":"t","t":"a"} {"v":"b","t":true}`, "t", `{"f":"b","l":"t"}`},
		{"instants", `{"v":1,"t":"2026-01-01T10:00:00+02:00"} {"v":2,"t":"2026-01-01T09:00:00Z"} {"v":3,"t":"no"}`, "t as date", `{"f":1,"l":2}`},
		{"several orders", `{"v":1,"t":[5,1]} {"v":2,"t":[3]}`, "t", `{"f":1,"l":1}`},
		{"several values", `{"v":[3,1,2],"t":1}`, "t", `{"f":1,"l":3}`},
		{"an expression", `{"v":1,"t":2,"u":2} {"v":2,"t":1,"u":9}`, "t * u", `{"f":1,"l":2}`},
		{"digits stay", `{"v":1.10,"t":1} {"v":9007199254740993,"t":2}`, "t", `{"f":1.1,"l":9007199254740993}`},
	}
	for _, test := range tests {
		bodies := strings.Fields(test.of)
		for range 3 {
			text := "from Orders select first(v order by " + test.by + ") as f, last(v order by " + test.by + ") as l"
			if got := grouped(t, text, bodies...); got != test.want {
				t.Errorf("%s, in the order %v: got %s, want %s", test.name, bodies, got, test.want)
			}
			rand.Shuffle(len(bodies), func(i, j int) { bodies[i], bodies[j] = bodies[j], bodies[i] })
		}
	}
	lines := `{"L":[{"v":1,"t":7},{"v":2,"t":3}]}`
	if got, want := grouped(t, "from Orders select first(L.v order by L.t) as f, last(L.v order by L.t) as l", lines), `{"f":2,"l":1}`; got != want {
		t.Errorf("of the elements of one array: got %s, want %s", got, want)
	}
	if got, want := grouped(t, "from Orders select last(A.v order by A.t) as l", `{"A":{"v":1,"t":1}}`, `{"A":{"v":2,"t":0}}`), `{"l":1}`; got != want {
		t.Errorf("of members of one object: got %s, want %s", got, want)
	}
}

// Ensure that the pairs of the elements of one array are bounded, and those of two arrays are not made.
func TestGroups_FirstLast_Bound(t *testing.T) {
	elements := strings.TrimSuffix(strings.Repeat(`{"v":1,"t":2},`, 10_001), ",")
	for text, refused := range map[string]bool{"last(L.v order by L.t)": true, "last(L.v order by M.t)": false} {
		q, err := query.Parse("from Orders select "+text, nil)
		if err != nil {
			t.Fatal(err)
		}
		g, err := query.NewGroups(nil, q.Select, 0)
		if err != nil {
			t.Fatal(err)
		}
		err = g.Add(query.Doc{Body: []byte(`{"L":[` + elements + `],"M":[` + elements + `]}`)})
		if large := (*query.LimitError)(nil); errors.As(err, &large) != refused {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// Ensure that groups that are merged have what all documents together have, and that groups which are joined take first and last over.
func TestGroups_FirstLast_Merge(t *testing.T) {
	q, err := query.Parse("from Orders group by k select k, first(v order by t) as f, last(v order by t) as l, count(distinct v) as n", nil)
	if err != nil {
		t.Fatal(err)
	}
	bodies := []string{`{"k":1,"v":1,"t":2}`, `{"k":1,"v":2,"t":1}`, `{"k":2,"v":3}`, `{"k":1,"v":2,"t":9}`, `{"k":2,"v":4,"t":0}`, `{"k":3,"v":1,"t":1}`}
	of := func(bodies ...string) *query.Groups {
		g, err := query.NewGroups(q.GroupBy, q.Select, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, body := range bodies {
			if err := g.Add(query.Doc{Body: []byte(body)}); err != nil {
				t.Fatal(err)
			}
		}
		return g
	}
	text := func(g *query.Groups) (out string) {
		for row := range g.Rows() {
			out += string(query.AppendRow(nil, q.Select, row))
		}
		return out
	}
	want := `{"k":1,"f":2,"l":2,"n":2}{"k":2,"f":4,"l":4,"n":2}{"k":3,"f":1,"l":1,"n":1}`
	for i := range bodies {
		g := of(bodies[:i]...)
		if err := g.Merge(of(bodies[i:]...)); err != nil {
			t.Fatal(err)
		}
		if got := text(g); got != want {
			t.Errorf("%d and %d: got %s, want %s", i, len(bodies)-i, got, want)
		}
	}
	g := of(`{"k":1,"v":0,"t":0}`, `{"k":3,"v":0,"t":0}`)
	if !g.Join(of(bodies...), []int{0, 1, 2, 3}) || text(g) != `{"k":1,"f":2,"l":2,"n":2}{"k":3,"f":1,"l":1,"n":1}` {
		t.Errorf("joined: %s", text(g))
	}
}

// Ensure that first and last need an order, with its place in the text, and that they are printed as they are parsed.
func TestParse_FirstLast(t *testing.T) {
	for text, why := range map[string]string{
		"select first(v)":                               "column 27: the documents of a group have no order",
		"select last(v order t)":                        "expected by",
		"select last(v order by t desc)":                "first() has the least value of the order",
		"select last(v order by score())":               "",
		"select first()":                                "expected",
		"select last(v order by 5)":                     "expected the field of the order",
		"select sum(v order by t)":                      `expected ")"`,
		"group by k order by last(v) select k":          "no order",
		"group by k select last(v order by t) + 1 as x": "is of groups",
	} {
		_, err := query.Parse("from Orders "+text, nil)
		if !errors.Is(err, query.ErrSyntax) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: got %v", text, err)
		}
	}
	for _, text := range []string{
		"from Orders group by k select k, last(v order by t as date) as newest",
		"from Orders group by k where last(v order by t) > 5 order by 'last(v order by t)' select k, last(v order by t), last(v order by u)",
		"from Orders each Lines as line select first(line.v * 2 order by At as utc) as f",
		"from Orders select facet(k, last(v order by t) as v)",
	} {
		q, err := query.Parse(text, nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		again, err := query.Parse(q.String(), nil)
		if err != nil || again.String() != q.String() {
			t.Errorf("%s: printed %s, and then %v, %v", text, q, again, err)
		}
	}
	if _, err := query.NewGroups(nil, []query.Column{{Name: "f", Func: query.FuncFirst}}, 0); !errors.Is(err, query.ErrColumn) {
		t.Errorf("without an order: got %v", err)
	}
}
