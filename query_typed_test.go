package jay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
)

type typedInner struct {
	Street string `json:"street"`
}

type typedBase struct {
	Created time.Time `json:"created"`
}

type typedDoc struct {
	ID      string `json:"id"`
	Version string `jay:"version" json:"v"`
	typedBase
	Title string                `json:"title"`
	Home  typedInner            `json:"home"`
	Lines []*typedInner         `json:"lines"`
	Extra map[string]typedInner `json:"extra"`
	Any   any                   `json:"any"`
	Raw   json.RawMessage       `json:"raw"`
	Skip  string                `json:"-"`
	Count int
}

// Ensure that a typed collection refuses a member that its JSON never has, and says which
// was perhaps meant, wherever a query names it; an answer without documents would hide
// the mistake.
func TestCollection_Query_UnknownMember(t *testing.T) {
	db := memory(t, nil)
	docs, err := jay.CollectionOf[typedDoc](db, jay.Named("Docs"))
	must(t, err)
	_, err = docs.Insert(ctx, &typedDoc{Title: "x", Lines: []*typedInner{{"s"}}, Extra: map[string]typedInner{"a": {"s"}}})
	must(t, err)
	element := docs.Query().Where(jay.ElemMatch("lines", jay.Eq("Street", "s")))
	if _, err := element.All(ctx); !errors.Is(err, jay.ErrQuery) || !strings.Contains(err.Error(), `did you mean "street"?`) {
		t.Errorf("ElemMatch: got %v, want ErrQuery", err)
	}
	for field, want := range map[string]string{
		"Title": `did you mean "title"?`, "tilte": `did you mean "title"?`, "home.Street": `did you mean "street"?`, "lines[].strete": `did you mean "street"?`,
		"lines.x": "", "title.x": "no members at all", "id": "id()", "ID": "id()", "v": "@metadata.@change-vector", "Skip": "", "nowhere": "", "extra.a.Street": `did you mean "street"?`, "count": `did you mean "Count"?`,
	} {
		for name, q := range map[string]jay.Query[typedDoc]{
			"Where": docs.Query().Where(jay.Not(jay.Or(jay.Eq("title", 1), jay.Eq(field, "x")))), "OrderBy": docs.Query().OrderBy("-" + field),
		} {
			if _, err := q.All(ctx); !errors.Is(err, jay.ErrQuery) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s(%s): got %v, want ErrQuery with %s", name, field, err, want)
			}
			if _, err := q.Count(ctx); !errors.Is(err, jay.ErrQuery) {
				t.Errorf("%s(%s): Count: got %v, want ErrQuery", name, field, err)
			}
		}
		if _, err := jay.Select[map[string]any](docs.Query(), field+" as c").All(ctx); !errors.Is(err, jay.ErrQuery) {
			t.Errorf("Select(%s): got %v, want ErrQuery", field, err)
		}
		if _, err := jay.Select[map[string]any](docs.Query().GroupBy(field), "count()").All(ctx); !errors.Is(err, jay.ErrQuery) {
			t.Errorf("GroupBy(%s): got %v, want ErrQuery", field, err)
		}
	}
	for _, field := range []string{"title", "home.street", "lines.street", "lines[0].street", "extra.a.street", "extra.b", "any.x.y", "raw.z", "Count", "id()", "@metadata.x"} {
		for range 2 {
			_, err := docs.Query().Where(jay.Ne(field, "nowhere")).OrderBy(field).All(ctx)
			must(t, err)
		}
	}
	loose, err := jay.CollectionOf[typedDoc](db, jay.Named("Docs"), jay.AnyField())
	must(t, err)
	n, err := loose.Query().Where(jay.Ne("Title", 1)).Count(ctx)
	must(t, err)
	equal(t, n, 1)
}

// Ensure that one document that does not decode does not end the listing of the others: loops go
// on, All and Page return the others with an error, and what needs no value has none.
func TestQuery_BrokenDocument(t *testing.T) {
	db := memory(t, nil)
	type row struct {
		ID string
		N  int
	}
	rows, err := jay.CollectionOf[row](db, jay.Named("Rows"))
	must(t, err)
	for i := range 6 {
		body := fmt.Sprintf(`{"N":%d}`, i)
		if i%3 == 1 {
			body = `{"N":"one"}`
		}
		put(t, db, fmt.Sprint("rows/", i), body, jay.InCollection("Rows"))
	}
	q := rows.Query().OrderBy("id()")
	broken, good := 0, 0
	for v, err := range q.Iter(ctx) {
		var decode *jay.DecodeError
		switch {
		case errors.As(err, &decode):
			broken++
			equal(t, strings.HasPrefix(err.Error(), fmt.Sprintf("decode %q", decode.ID)), true)
		case err == nil && v != nil:
			good++
		default:
			t.Errorf("got %v, %v", v, err)
		}
	}
	equal(t, fmt.Sprint(broken, good), "2 4")
	broken, good = 0, 0
	for _, err := range rows.All(ctx) {
		if err != nil {
			broken++
		} else {
			good++
		}
	}
	equal(t, fmt.Sprint(broken, good), "2 4")

	all, err := q.All(ctx)
	var decode *jay.DecodeError
	if !errors.As(err, &decode) || decode.ID != "rows/1" || len(all) != 4 || strings.Count(err.Error(), "rows/") != 2 {
		t.Errorf("All: %d values, %v", len(all), err)
	}
	var ids []string
	for cursor, pages := "", 0; ; pages++ {
		p, err := q.Limit(2).After(cursor).Page(ctx)
		if err != nil && !errors.As(err, &decode) || pages > 3 {
			t.Fatal(pages, err)
		}
		for _, v := range p.Items {
			ids = append(ids, v.ID)
		}
		if cursor = p.Next; cursor == "" {
			break
		}
	}
	equal(t, fmt.Sprint(ids), "[rows/0 rows/2 rows/3 rows/5]")
	found, err := q.Skip(1).Exists(ctx)
	must(t, err)
	equal(t, found, true)
	_, err = jay.Select[struct{ N int }](db.Query("Rows"), "N").All(ctx)
	if !errors.As(err, &decode) {
		t.Errorf("rows: got %v, want a DecodeError", err)
	}
}

// Ensure that a row of Select that does not decode comes as nil with its error, and that a
// page leaves it out and says so.
func TestSelect_BrokenRow(t *testing.T) {
	db := memory(t, nil)
	for i, n := range []string{`1`, `"x"`, `3`} {
		put(t, db, fmt.Sprint("rows/", i), `{"N":`+n+`}`, jay.InCollection("Rows"))
	}
	q := jay.Select[int](db.Query("Rows").OrderBy("id()"), "N")
	var decode *jay.DecodeError
	for n, err := range q.Iter(ctx) {
		if (n == nil) != (err != nil) || err != nil && !errors.As(err, &decode) {
			t.Errorf("Iter: got %v, %v", n, err)
		}
	}
	p, err := q.Page(ctx)
	if !errors.As(err, &decode) || len(p.Items) != 2 || *p.Items[0] != 1 || *p.Items[1] != 3 {
		t.Errorf("Page: got %v, %v", p.Items, err)
	}
}

// Ensure that a page brings what its answers include, and not what the answer behind it
// does, which the query reads to know whether there is one.
func TestQuery_Page_Includes(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "customers/1", `{"v":1}`, jay.InCollection("Customers"))
	put(t, db, "customers/2", `{"v":1}`, jay.InCollection("Customers"))
	put(t, db, "orders/1", `{"Customer":"customers/1"}`, jay.InCollection("Orders"))
	put(t, db, "orders/2", `{"Customer":"customers/2"}`, jay.InCollection("Orders"))
	rows := db.Query("Orders").OrderBy("id()").Include("Customer").Rows()
	p, err := rows.Limit(1).Page(ctx)
	must(t, err)
	equal(t, len(p.Items), 1)
	equal(t, len(p.Items[0].Included), 1)
	equal(t, p.Items[0].Included[0].ID(), "customers/1")

	type order struct {
		ID       string
		Customer string
	}
	type customer struct {
		ID string
		V  int `json:"v"`
	}
	s := db.OpenSession()
	_, err = jay.QueryOf[order](s).OrderBy("id()").Include("Customer").Limit(1).Page(ctx)
	must(t, err)
	for _, id := range []string{"customers/1", "customers/2"} {
		put(t, db, id, `{"v":2}`, jay.InCollection("Customers"))
	}
	for id, want := range map[string]int{"customers/1": 1, "customers/2": 2} {
		c, err := jay.Load[customer](ctx, s, id)
		must(t, err)
		if c.V != want {
			t.Errorf("%s: got %d, want %d", id, c.V, want)
		}
	}
}

// Ensure that Include says so where its documents would be lost.
func TestQuery_Include_NoPlace(t *testing.T) {
	db, orders := exampleOrders()
	defer db.Close()
	for name, run := range map[string]func() error{
		"documents": func() error { _, err := db.Query("Orders").Include("Customer").All(ctx); return err },
		"values":    func() error { _, err := orders.Query().Include("Customer").All(ctx); return err },
		"Select": func() error {
			_, err := jay.Select[string](orders.Query().Include("Customer"), "Status").Page(ctx)
			return err
		},
		"a bad name": func() error { _, err := jay.QueryOf[Order](db.OpenSession()).Include("Custmer").All(ctx); return err },
	} {
		if err := run(); !errors.Is(err, jay.ErrQuery) {
			t.Errorf("%s: got %v, want ErrQuery", name, err)
		}
	}
	q, err := db.RQL("from Orders", nil)
	must(t, err)
	rows, err := q.Include("Customer").All(ctx)
	must(t, err)
	equal(t, len(rows[0].Included), 1)
}

// Ensure that one column may be a value by itself, and that id() finds its field.
func TestSelect_Scalars(t *testing.T) {
	db, orders := exampleOrders()
	defer db.Close()
	q := orders.Query().OrderBy("Total").Limit(2)
	names, err := jay.Select[string](q, "Customer").All(ctx)
	must(t, err)
	equal(t, *names[0]+" "+*names[1], "customers/cyd customers/ann")
	counts, err := jay.Select[int](orders.Query(), "count()").All(ctx)
	must(t, err)
	equal(t, *counts[0], 4)
	lists, err := jay.Select[[]string](q, "Lines[].Product").All(ctx)
	must(t, err)
	equal(t, fmt.Sprint(*lists[1]), "[products/nut]")
	times, err := jay.Select[time.Time](q, "@metadata.@last-modified").All(ctx)
	must(t, err)
	equal(t, times[0].IsZero(), false)
	texts, err := jay.Select[*string](db.Query("Orders").Limit(1), "nowhere").All(ctx)
	must(t, err)
	equal(t, *texts[0] == nil, true)
	if _, err := jay.Select[string](q, "Customer", "Status").All(ctx); !errors.Is(err, jay.ErrQuery) {
		t.Errorf("two columns: got %v, want ErrQuery", err)
	}
	type named struct {
		ID    string `json:"key"`
		Total float64
	}
	rows, err := jay.Select[named](q, "id()", "Total").All(ctx)
	must(t, err)
	equal(t, *rows[0], named{"orders/4-A", 7})
	renamed, err := jay.Select[map[string]any](q, "id()").All(ctx)
	must(t, err)
	equal(t, (*renamed[0])["id()"], any("orders/4-A"))
}

// Ensure that the answers of a session's query are its entities: one pointer for one
// document, changes and deletions of the session respected, changes saved.
func TestQueryOf(t *testing.T) {
	db, _ := exampleOrders()
	defer db.Close()
	s := db.OpenSession(jay.OptimisticConcurrency())
	first, err := jay.Load[Order](ctx, s, "orders/1-A")
	must(t, err)
	first.Status = "changed, not saved"
	second, err := jay.Load[Order](ctx, s, "orders/2-A")
	must(t, err)
	must(t, s.Delete(second))
	q := jay.QueryOf[Order](s).OrderBy("id()")
	all, err := q.All(ctx)
	must(t, err)
	equal(t, len(all), 3)
	equal(t, all[0] == first, true)
	again, err := q.All(ctx)
	must(t, err)
	for i := range all {
		equal(t, all[i] == again[i], true)
	}
	n, err := q.Where(jay.Eq("Status", "changed, not saved")).Count(ctx)
	must(t, err)
	equal(t, n, 0)
	p, err := q.Limit(3).Page(ctx)
	must(t, err)
	equal(t, len(p.Items), 2)
	all[2].Total = 1000
	must(t, s.SaveChanges(ctx))
	n, err = db.Query("Orders").Where(jay.Or(jay.Eq("Total", 1000), jay.Eq("Status", "changed, not saved"))).Count(ctx)
	must(t, err)
	equal(t, n, 2)
	total, err := db.Query("Orders").Count(ctx)
	must(t, err)
	equal(t, total, 3)

	type Other struct{ ID string }
	others, err := jay.CollectionOf[Other](db, jay.Named("Orders"))
	must(t, err)
	wrong := db.OpenSession(jay.WithCollections(others))
	_, err = jay.Load[Order](ctx, wrong, "orders/1-A")
	must(t, err)
	if _, err := jay.QueryOf[Other](wrong).All(ctx); !errors.Is(err, jay.ErrType) {
		t.Errorf("got %v, want ErrType", err)
	}
	if _, err := jay.QueryOf[int](wrong).All(ctx); !errors.Is(err, jay.ErrType) {
		t.Errorf("got %v, want ErrType", err)
	}
}

// Ensure that the errors of many broken documents are bounded, and counted.
func TestQuery_BrokenDocument_Many(t *testing.T) {
	db := memory(t, nil)
	b := new(jay.Batch)
	for i := range 150 {
		b.Put(fmt.Sprint("rows/", i), json.RawMessage(`{"N":"x"}`), jay.InCollection("Rows"))
	}
	_, err := db.Apply(ctx, b)
	must(t, err)
	type row struct {
		ID string
		N  int
	}
	rows, err := jay.CollectionOf[row](db, jay.Named("Rows"))
	must(t, err)
	all, err := rows.Query().All(ctx)
	if err == nil || len(all) != 0 || strings.Count(err.Error(), "\n") != 100 || !strings.HasSuffix(err.Error(), "and 50 more do not decode") {
		t.Errorf("%d values, %v", len(all), err)
	}
}
