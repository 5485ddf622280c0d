package language_test

import (
	"errors"
	"testing"

	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/query"
)

// Ensure what a column shows of what its path leads to.
func TestProjector_Append(t *testing.T) {
	const body = `{"a":1.0,"s":"x\u0041","o":{"p":null},"tags":["x",["y"]],"none":[],"lines":[{"p":"A","t":[1,2]},{"q":1},{"p":"B","t":[]}],"one":[{"p":1}],"n":[[{"p":5}]]}`
	tests := []struct{ path, want string }{
		{"a", `1.0`},
		{"s", `"x\u0041"`},
		{"o", `{"p":null}`},
		{"o.p", `null`},
		{"gone", `null`},
		{"a.gone", `null`},
		{"tags", `["x",["y"]]`},
		{"tags[0]", `"x"`},
		{"tags[9]", `null`},
		{"tags[]", `["x",["y"]]`},
		{"none", `[]`},
		{"none[]", `null`},
		{"lines.p", `["A","B"]`},
		{"lines[].p", `["A","B"]`},
		{"lines[0].p", `"A"`},
		{"lines.t", `[[1,2],[]]`},
		{"lines.q", `[1]`},
		{"lines.gone", `null`},
		{"one.p", `[1]`},
		{"one[].p", `[1]`},
		{"one[0].p", `1`},
		{"n.p", `[5]`},
	}
	for _, test := range tests {
		p, err := query.NewProjector([]query.Column{{Name: "c", Field: field(test.path)}})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got, want := string(p.Append(nil, query.Doc{Body: []byte(body)})), `{"c":`+test.want+`}`; got != want {
				t.Errorf("%s: got %s, want %s", test.path, got, want)
			}
		}
	}
}

// Ensure that columns keep their order, that metadata can be selected, and
// that nothing is allocated.
func TestProjector_Append_Columns(t *testing.T) {
	p, err := query.NewProjector([]query.Column{
		{Name: "City", Field: field("ShipTo.City")},
		{Name: `the "id"`, Field: query.Field{Meta: query.MetaID}},
		{Name: "cv", Field: query.Field{Meta: query.MetaChangeVector}},
		{Name: "Company", Field: field("Company")},
		{Name: "Again", Field: field("Company")},
	})
	if err != nil {
		t.Fatal(err)
	}
	doc := query.Doc{Body: []byte(order), Meta: metadata{query.MetaID: "orders/1"}}
	want := `{"City":"Reims","the \"id\"":"orders/1","cv":null,"Company":"companies/34-A","Again":"companies/34-A"}`
	if got := string(p.Clone().Append(nil, doc)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	dst := p.Append(nil, doc)
	if n := testing.AllocsPerRun(100, func() { dst = p.Append(dst[:0], doc) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	whole, err := query.NewProjector([]query.Column{{Name: "o", Field: query.Field{Path: jsonpath.Path{}}}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(whole.Append(nil, query.Doc{Body: []byte(`{"a":1}`)})), `{"o":{"a":1}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Ensure that columns without meaning are refused.
func TestNewProjector_Refused(t *testing.T) {
	for name, columns := range map[string][]query.Column{
		"no name":    {{Field: field("a")}},
		"name twice": {{Name: "a", Field: field("a")}, {Name: "a", Field: field("b")}},
		"function":   {{Name: "n", Func: query.FuncCount}},
	} {
		if _, err := query.NewProjector(columns); !errors.Is(err, query.ErrColumn) {
			t.Errorf("%s: got %v, want %v", name, err, query.ErrColumn)
		}
	}
}
