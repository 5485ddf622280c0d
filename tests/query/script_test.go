package query_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/query"
)

// scriptShop fills Orders and Companies.
func scriptShop(t *testing.T, opts *jay.Options) *jay.DB {
	t.Helper()
	db := memory(t, opts)
	must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Name: "Total", Fields: []string{"Total"}}))
	put(t, db, "companies/1", `{"Name":"Oak","Address":{"City":"Rome"},"Parent":"companies/2"}`, jay.InCollection("Companies"))
	put(t, db, "companies/2", `{"Name":"Elm"}`, jay.InCollection("Companies"))
	for i := range 6 {
		put(t, db, fmt.Sprint("orders/", i), fmt.Sprintf(`{"Company":"Companies/%d","Total":%d.50,"Lines":[{"P":"a","Price":2,"N":%d},{"P":"b","Price":1,"N":1}],"Others":["companies/2","companies/7"]}`, i%3, i*10, i), jay.InCollection("Orders"))
	}
	put(t, db, "orders/none", `{"Total":70}`, jay.InCollection("Orders"))
	return db
}

// Ensure that JavaScript makes rows of what a query finds: with functions, loaded documents, parameters, orders, pages and distinct rows, along
// an index and by a scan, and that the text of the query is RQL with the same answers.
func TestScript(t *testing.T) {
	t.Parallel()
	db := scriptShop(t, nil)
	for _, test := range []struct{ text, want string }{
		{"from Orders as o where o.Total between 10 and 30 select { T: o.Total, Sum: o.Lines.map(l => l.Price * l.N).reduce((a, b) => a + b, 0) }", `{"T":10.50,"Sum":3} {"T":20.50,"Sum":5}`},
		{"declare function out(o, c) {\n  // a line's end } is not the function's\n  var city = c ? c.Address.City : 'none';\n  return { Id: id(o), Name: c.Name, City: city };\n}\nfrom Orders as o where o.Total < 20 load o.Company as c select out(o, c)", `{"Id":"orders/0","Name":null,"City":"none"} {"Id":"orders/1","Name":"Oak","City":"Rome"}`},
		{"from 'Orders' as o where o.Total = $p0 load o.Others as rest[], o.Others as first select { All: rest.map(x => x?.Name ?? $other.name), First: first.Name, Company: load(o.Company).Name, P: `${$p0}` }", `{"All":["Elm","?"],"First":"Elm","Company":"Oak","P":"10.5"}`},
		{"from Orders order by Total as double desc select { T: this.Total } limit 2 offset 1", `{"T":50.50} {"T":40.50}`},
		{"from Orders as o order by o.Total as double select distinct { C: load(o.Company).Name } limit 2 offset 1", `{"C":"Oak"} {"C":"Elm"}`},
		{"from Orders as o order by o.Total as double select distinct { N: o.Lines.length } limit 1 offset 1", `{"N":null}`},
		{"from Orders as o where id() = 'orders/none' select { a: o.Missing.b.c, b: o.Lines.filter(l => l.P).length, c: o.Total * o.None, d: o['@metadata']['@collection'] }", `{"a":null,"b":null,"c":null,"d":"Orders"}`},
		{"declare function a(x) { return b(x) + 1 } declare function b(x) { return x * 2 }\nfrom Orders as o where o.Total > 60 select { n: a(o.Total) }", `{"n":141}`},
		{"declare function output(load) { return { A: load.Name } }\nfrom Companies as c where c.Name = 'Elm' select output(c)", `{"A":"Elm"}`},
		{"from Companies as c where c.Name = 'Elm' select { Name: c.Name } include Owner", `{"Name":"Elm"}`},
		{"from Orders as 'order' where 'order'.Total = 10.5 select { T: order.Total }", `{"T":10.50}`},
		{"from Orders as o where o.Total < 20 load o.Company as c, c.Parent as p select { C: c.Name, P: p.Name }", `{"C":null,"P":null} {"C":"Oak","P":"Elm"}`},
		{"from Orders as o where o.Total = 10.5 load o.Others as others[], others.Parent as none[], o.Company as c, c.Parent as p[] select { N: none.length, P: p.map(x => x.Name) }", `{"N":0,"P":["Elm"]}`},
	} {
		params := named(test.text, map[string]any{"p0": 10.5, "other": map[string]any{"name": "?"}})
		q, err := db.RQL(test.text, params)
		must(t, err)
		again, err := db.RQL(q.String(), nil)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		equal(t, again.String(), q.String())
		for _, q := range []jay.Query[jay.Row]{q, again, q.NoIndex()} {
			if got := facetRows(t, q); got != test.want {
				t.Errorf("%s:\ngot  %s\nwant %s", q, got, test.want)
			}
		}
		if e, err := q.Explain(ctx); err != nil || !strings.Contains(strings.Join(e.Plan, ";"), "projected by JavaScript") {
			t.Errorf("%v, %v", e, err)
		}
		n, err := q.Count(ctx)
		if rows, _ := q.All(ctx); err != nil || int(n) != len(rows) {
			t.Errorf("%s: counted %d of %d, %v", q, n, len(rows), err)
		}
	}
}

// Ensure that pages of rows that JavaScript has made follow one another.
func TestScript_Pages(t *testing.T) {
	t.Parallel()
	db := scriptShop(t, nil)
	q, err := db.RQL("from Orders as o where o.Total < 60 order by o.Total as double desc select { T: o.Total }", nil)
	must(t, err)
	var got []string
	for cursor := ""; ; {
		page, err := q.Limit(2).After(cursor).Page(ctx)
		must(t, err)
		for _, row := range page.Items {
			got = append(got, string(row.JSON))
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	equal(t, strings.Join(got, " "), `{"T":50.50} {"T":40.50} {"T":30.50} {"T":20.50} {"T":10.50} {"T":0.50}`)
}

// Ensure that JavaScript of a transaction sees its own writes, that what it loads is read by the transaction, and that what has expired is not there.
func TestScript_InTransaction(t *testing.T) {
	defer checks.NoSweeper()() // one for all tests, so this one is not parallel
	clock := jaytest.NewClock()
	db := scriptShop(t, &jay.Options{Now: clock.Now, ExactExpiry: true})
	const text = "from Orders as o where o.Total = 10.5 load o.Company as c select { T: o.Lines.length, C: c.Name, O: load('companies/2').Name }"
	rows := func(from querier) string {
		t.Helper()
		q, err := from.RQL(text, nil)
		must(t, err)
		return facetRows(t, q)
	}
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		_, err := tx.Put(ctx, "companies/1", []byte(`{"Name":"Ash"}`))
		must(t, err)
		must(t, tx.Delete(ctx, "companies/2"))
		_, err = tx.Put(ctx, "orders/9", []byte(`{"Total":10.5,"Company":"companies/1","Lines":[]}`), jay.InCollection("Orders"))
		must(t, err)
		equal(t, rows(tx), `{"T":2,"C":"Ash","O":null} {"T":0,"C":"Ash","O":null}`)
		return nil
	}))
	err := db.Update(ctx, func(tx *jay.Tx) error {
		rows(tx)
		put(t, db, "companies/1", `{"Name":"Fir"}`) // which the script has loaded
		_, err := tx.Put(ctx, "others/1", []byte("{}"))
		return err
	})
	if !errors.Is(err, jay.ErrConflict) {
		t.Errorf("got %v", err)
	}
	put(t, db, "companies/1", `{"Name":"Yew"}`, jay.ExpiresAt(clock.Now().Add(time.Minute)))
	equal(t, strings.Count(rows(db), "Yew"), 2)
	clock.Advance(time.Hour)
	equal(t, strings.Count(rows(db), `"C":null`), 2)
}

// Ensure that JavaScript that has no meaning is refused with its place, and that what fails for a document names the document and the place.
func TestScript_Refused(t *testing.T) {
	t.Parallel()
	db := scriptShop(t, &jay.Options{MaxQueryBytes: 100_000})
	for text, want := range map[string]string{
		"from Orders as o select { a: 1":                                                                         "1:31",
		"from Orders as o\nselect {\n a: 1,\n b: o.x y }":                                                        "4:9",
		"declare function f(o) { return { a: class {} } }\nfrom Orders as o select f(o)":                         "1:37",
		"declare function f(o) { return {} }\ndeclare function f(o) { return {} }\nfrom Orders as o select f(o)": "2:18",
		"declare function f(o) { return {} }\nfrom Orders as o":                                                  "does not call",
		"declare timeseries f(o) { }\nfrom Orders as o":                                                          "1:9",
		"declare x":                    "1:9",
		"from Orders as o select g(o)": "no function g()",
		"from Orders as o load o.Company as c select o.Total":                              "1:18",
		"from Orders as o load o.Company as o select { a: 1 }":                             "a second o",
		"from Orders as o load o.Company as 'a b' select { a: 1 }":                         "no name in JavaScript",
		"from Orders as 'a b' select { a: 1 }":                                             "no name in JavaScript",
		"from Orders as o where o.o = 1 select { a: o.x }":                                 "choose another alias",
		"from Orders as o group by o.Company select { a: 1 }":                              "group by",
		"from Orders as o each o.Lines as l select { a: 1 }":                               "each",
		"from Orders as o select { a: $x }":                                                "no value",
		"from Orders as o select { a: 1 }, o.Total":                                        "",
		"from Orders as o select o.Total, { a: 1 }":                                        "stands alone",
		"from Orders as o select { a: 1 } load o.Company as c":                             "stands before select",
		"from Orders as o load " + strings.Repeat("o.a as a, ", 17) + "o.b as b select {}": "a second a",
	} {
		_, err := db.RQL(text, nil)
		var syntax *jay.SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := fmt.Sprintf("%d:%d %v", syntax.Line, syntax.Column, err); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"from Orders as o\nselect { a: o.Total.shout() }":                                                                 "line 2, column 26: shout is no function",
		"declare function f(o) {\n return o.Lines }\nfrom Orders as o select f(o)":                                        "line 3, column 26: a projection makes an object of each document, and not an array",
		"declare function f(o) {\n while (true) {} }\nfrom Orders as o select f(o)":                                       "line 2, column 2: the script takes more steps",
		"from Orders as o select { a: put('a', {}) }":                                                                     "put is not defined",
		"from Orders as o select { a: 'x'.repeat(200000) }":                                                               "bytes of a row",
		"declare function f(o) { for (var i = 0; i < 2000; i++) load('a' + i); return {} }\nfrom Orders as o select f(o)": "more documents than the most",
	} {
		q, err := db.RQL(text, nil)
		must(t, err)
		_, err = q.All(ctx)
		if !errors.Is(err, jay.ErrQuery) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `document "orders/0"`) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
		var wrong *query.ScriptError
		if strings.Contains(want, "line 2, column 26") && (!errors.As(err, &wrong) || wrong.Line != 2 || wrong.Column != 26) {
			t.Errorf("got %+v", wrong)
		}
	}
	// What changes documents, follows them or counts facets takes no JavaScript.
	q, err := db.RQL("from Orders as o select { a: 1 }", nil)
	must(t, err)
	if _, err := q.Facets(ctx, jay.Facet{Field: "Company"}); !errors.Is(err, jay.ErrQuery) {
		t.Errorf("facets: %v", err)
	}
	if err := db.Subscriptions().Ensure(ctx, jay.Subscription{Name: "s", Query: "from Orders as o select { a: 1 }"}); err == nil || !strings.Contains(err.Error(), "JavaScript") {
		t.Errorf("a subscription: %v", err)
	}
	if _, _, err := db.UpdateRQL("declare function f(o) { return {} } from Orders as o update { this.a = 1 }", nil); !errors.As(err, new(*jay.SyntaxError)) {
		t.Errorf("an update: %v", err)
	}
}

// Ensure that the context ends a script, and that a caller who does not pay for memory ends it.
func TestScript_Stopped(t *testing.T) {
	t.Parallel()
	db := scriptShop(t, nil)
	q, err := db.RQL("declare function f(o) { var a = []; for (var i = 0; i < 5000; i++) a.push('x' + i); return { n: a.length } }\nfrom Orders as o select f(o)", nil)
	must(t, err)
	unpaid := errors.New("not paid")
	if _, err := q.All(jay.WithMemory(ctx, func(int64) error { return unpaid })); !errors.Is(err, unpaid) {
		t.Errorf("got %v", err)
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	if _, err := q.All(stopped); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	rows, err := q.All(ctx)
	must(t, err)
	var row struct{ N int }
	must(t, json.Unmarshal(rows[0].JSON, &row))
	equal(t, row.N, 5000)
}

// Ensure that a query has a budget of steps beside that of each document.
func TestScript_Budget(t *testing.T) {
	t.Parallel()
	q, err := query.Parse("from Orders as o select { n: [1,2,3].map(x => x * 2) }", nil)
	must(t, err)
	run := func(left int64) (int64, error) {
		_, steps, err := q.Script.Run(ctx, query.Scripted{ID: "a", Document: []byte("{}"), Steps: left}, nil)
		return steps, err
	}
	steps, err := run(query.MaxProjectionSteps)
	if err != nil || steps < 10 || steps > 1000 {
		t.Fatalf("%d steps, %v", steps, err)
	}
	if _, err := run(steps); err != nil {
		t.Errorf("with what it needs: %v", err)
	}
	for _, left := range []int64{steps - 1, 0, -1} {
		if _, err := run(left); !errors.As(err, new(*query.ScriptError)) {
			t.Errorf("with %d: %v", left, err)
		}
	}
}
