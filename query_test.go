package jay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
)

// Ensure that a query gives the same answer whatever indexes there are, and
// that it uses them.
func TestQuery_Plans(t *testing.T) {
	indexes := []jay.Index{
		{Fields: []string{"Customer"}},
		{Fields: []string{"Status", "-Total"}},
		{Fields: []string{"Total"}},
		{Fields: []string{"Lines.Product"}},
		{Fields: []string{"Customer"}, Where: "Status = 'open'", Name: "open"},
	}
	tests := []struct {
		rql   string
		plan  string // what the plan begins with when all indexes are there
		count int
	}{
		{`from Orders where Customer = 'customers/3'`, `index "Customer"`, 30},
		{`from Orders where Customer = 'CUSTOMERS/3' and Status = 'SENT'`, `index "Customer"`, 10},
		{`from Orders where exact(Status = 'sent')`, `index "Status,-Total"`, 0},
		{`from Orders where Status = 'sent' order by Total desc limit 5`, `index "Status,-Total"`, 5},
		{`from Orders where Total between 10 and 12 order by Total desc, id() desc`, `index "Total"`, 9},
		{`from Orders order by Total limit 7`, `index "Total"`, 7},
		{`from Orders order by Total desc limit 7`, `index "Total", all of it, backwards`, 7},
		{`from Orders where Lines.Product = 'p1' and Lines.Product = 'p2'`, `index "Lines.Product"`, 17},
		{`from Orders where Lines.Product in ('p1','p2')`, `index "Lines.Product"`, 171},
		{`from Orders where Customer in ('customers/1','customers/2') and Total > 50`, `index "Customer"`, -1},
		{`from Orders where Customer = 'customers/1' or Total = 7`, `union of`, -1},
		{`from Orders where not Status = 'open'`, `scan Orders`, 200},
		{`from Orders where id() in ('orders/007','orders/zzz')`, `look up 2`, 1},
		{`from Orders where startsWith(id(),'orders/00')`, `scan Orders with IDs from "orders/00"`, 10},
		{`from Orders where Customer = 'customers/4' and Status = 'open'`, `index "open"`, 10},
		{`from Orders where Status = 'open' select count() as n`, `index "Status,-Total"`, 1},
		{`from Orders group by Status order by Status select Status, count() as n, sum(Total) as sum`, `index "Status,-Total", all of it`, 3},
		{`from Orders select distinct Status`, `index "Status,-Total", all of it`, 3},
		{`from Orders select distinct Status, Customer`, `scan Orders`, 30},
		{`from Orders select max(Total) as most`, `index "Total", all of it`, 1},
		{`from Orders where exact(Status = 'open') select min(Total) as least, max(Total) as most`, `index "Status,-Total"`, 1},
		{`from Orders where exact(Status = 'none') select min(Total) as least, max(Total) as most`, `index "Status,-Total"`, 1},
		{`from Orders select distinct Lines.Product`, `scan Orders`, -1},
		{`from Orders order by id() select Total limit 3`, `scan Orders`, 3},
	}
	plain, indexed := memory(t, nil), memory(t, nil)
	shop(t, plain)
	shop(t, indexed)
	for _, ix := range indexes {
		must(t, indexed.EnsureIndex(ctx, "Orders", ix))
	}
	for _, test := range tests {
		t.Run(test.rql, func(t *testing.T) {
			want, got := rows(t, plain, test.rql), rows(t, indexed, test.rql)
			if !strings.Contains(test.rql, "order by") {
				slices.Sort(want)
				slices.Sort(got)
			}
			if !slices.Equal(got, want) {
				t.Errorf("with indexes:\n%s\nwithout:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if test.count >= 0 && len(got) != test.count {
				t.Errorf("got %d answers, want %d", len(got), test.count)
			}
			q, err := indexed.RQL(test.rql, nil)
			must(t, err)
			e, err := q.Explain(ctx)
			must(t, err)
			if !strings.HasPrefix(e.Plan[0], test.plan) {
				t.Errorf("plan %q, want %q\n%s", e.Plan[0], test.plan, e)
			}
			if strings.Contains(test.rql, "max(Total)") && (e.Keys > 3 || e.Documents > 0) {
				t.Errorf("more than the ends of a range were looked at:\n%s", e)
			}
			n, err := q.Count(ctx)
			if err != nil || int(n) != len(got) {
				t.Errorf("Count: %d, %v", n, err)
			}
		})
	}
}

// Ensure that pages joined together are the whole answer, whatever the plan,
// and that a cursor of another query is refused.
func TestQuery_Page(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	for _, fields := range [][]string{nil, {"Total"}, {"-Total"}, {"Status", "Total"}} {
		for _, order := range [][]string{nil, {"Total"}, {"-Total"}, {"Status", "-Total"}, {"id()"}, {"-id()"}} {
			db := memory(t, nil)
			shop(t, db)
			if fields != nil {
				must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Fields: fields}))
			}
			q := db.Query("Orders").Where(jay.Lt("Total", 90)).OrderBy(order...)
			whole, err := q.All(ctx)
			must(t, err)
			var paged []string
			cursor, pages := "", 0
			for {
				p, err := q.Limit(17).After(cursor).Page(ctx)
				must(t, err)
				for _, doc := range p.Items {
					paged = append(paged, doc.ID())
				}
				pages++
				if cursor = p.Next; cursor == "" {
					break
				}
			}
			if order == nil {
				whole, err = q.OrderBy("id()").All(ctx)
				must(t, err)
			}
			if pages < 10 || len(paged) != len(whole) {
				t.Fatalf("%v by %v: %d pages of %d answers, want %d", fields, order, pages, len(paged), len(whole))
			}
			for i, doc := range whole {
				if doc.ID() != paged[i] {
					t.Fatalf("%v by %v: answer %d is %s, want %s", fields, order, i, paged[i], doc.ID())
				}
			}
			p, err := q.Limit(3).Page(ctx)
			must(t, err)
			if _, err := db.Query("Orders").OrderBy("Customer").After(p.Next).Page(ctx); !errors.Is(err, jay.ErrQuery) {
				t.Errorf("a cursor of another query: %v", err)
			}
		}
	}
}

// Ensure that a page ends with the answer that makes it full, also of selected fields,
// and that nothing is lost behind it.
func TestQuery_PageBytes(t *testing.T) {
	t.Parallel()
	db := memory(t, nil)
	for i := range 10 {
		put(t, db, fmt.Sprintf("files/%d", i), fmt.Sprintf(`{"T":"%s","@metadata":{"@collection":"Files"}}`, strings.Repeat("x", 1000*i)))
	}
	q := db.Query("Files").OrderBy("-id()").PageBytes(10_000)
	var sizes []int
	for cursor := ""; ; {
		p, err := q.After(cursor).Page(ctx)
		must(t, err)
		sizes = append(sizes, len(p.Items))
		if cursor = p.Next; cursor == "" {
			break
		}
	}
	if !slices.Equal(sizes, []int{2, 2, 3, 3}) { // 9+8, 7+6, 5+4+3 and 2+1+0 thousand bytes
		t.Errorf("pages of %v documents", sizes)
	}
	rows, err := db.RQL("from Files order by id() desc select T", nil)
	must(t, err)
	if p, err := rows.PageBytes(10_000).Page(ctx); err != nil || len(p.Items) != 2 || p.Next == "" {
		t.Errorf("selected: %d rows, then %q, %v", len(p.Items), p.Next, err)
	}
	if p, err := q.PageBytes(1).Page(ctx); err != nil || len(p.Items) != 1 {
		t.Errorf("one byte: %d documents, %v", len(p.Items), err)
	}
	if _, err := q.PageBytes(-1).Page(ctx); !errors.Is(err, jay.ErrQuery) {
		t.Errorf("less than none: %v", err)
	}
}

// Ensure that a unique index refuses a second document with the same values,
// names both, and changes nothing.
func TestIndex_Unique(t *testing.T) {
	db := memory(t, nil)
	must(t, db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"Email"}, Unique: true}))
	put(t, db, "users/1", `{"Email":"a@b","@metadata":{"@collection":"Users"}}`)
	put(t, db, "users/2", `{"@metadata":{"@collection":"Users"}}`)
	put(t, db, "users/3", `{"@metadata":{"@collection":"Users"}}`)
	_, err := db.Put(ctx, "users/4", json.RawMessage(`{"Email":"a@b"}`), jay.InCollection("Users"))
	var unique *jay.UniqueError
	if !errors.As(err, &unique) || !errors.Is(err, jay.ErrUnique) || unique.ID != "users/4" || unique.Other != "users/1" || unique.Value != `["a@b"]` {
		t.Fatalf("got %v", err)
	}
	if found, _ := db.Exists(ctx, "users/4"); found {
		t.Error("a refused document is there")
	}
	put(t, db, "users/1", `{"Email":"c@d","@metadata":{"@collection":"Users"}}`)
	put(t, db, "users/4", `{"Email":"a@b","@metadata":{"@collection":"Users"}}`)
	must(t, db.Delete(ctx, "users/1"))
	put(t, db, "users/5", `{"Email":"c@d","@metadata":{"@collection":"Users"}}`)
	if err := db.EnsureIndex(ctx, "Users", jay.Index{Name: "once", Fields: []string{"Name"}, Unique: true}); err != nil {
		t.Error(err)
	}
	put(t, db, "users/5", `{"Name":1,"@metadata":{"@collection":"Users"}}`)
	must(t, db.DropIndex(ctx, "Users", "once"))
	put(t, db, "users/4", `{"Name":1.0,"@metadata":{"@collection":"Users"}}`)
	if err := db.EnsureIndex(ctx, "Users", jay.Index{Name: "once", Fields: []string{"Name"}, Unique: true}); !errors.Is(err, jay.ErrUnique) {
		t.Errorf("index on documents that break it: %v", err)
	}
	if list, err := db.Indexes(ctx, "Users"); err != nil || len(list) != 1 {
		t.Errorf("indexes left: %v, %v", list, err)
	}
}

// Ensure that a transaction's queries see what it has written, and that it is
// refused if another writes what they would have seen.
func TestQuery_InTransaction(t *testing.T) {
	db := memory(t, nil)
	shop(t, db)
	must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"Total"}}))
	err := db.Update(ctx, func(tx *jay.Tx) error {
		_, err := tx.Put(ctx, "orders/new", json.RawMessage(`{"Total":1000}`), jay.InCollection("Orders"))
		must(t, err)
		must(t, tx.Delete(ctx, "orders/014"))
		got, err := tx.Query("Orders").Where(jay.Ge("Total", 98)).OrderBy("-Total").All(ctx)
		must(t, err)
		var ids []string
		for _, doc := range got {
			ids = append(ids, doc.ID())
		}
		if want := "orders/new orders/257 orders/157 orders/057 orders/214 orders/114"; strings.Join(ids, " ") != want {
			t.Errorf("got %v", ids)
		}
		put(t, db, "orders/other", `{"Total":99,"@metadata":{"@collection":"Orders"}}`)
		return nil
	})
	if !errors.Is(err, jay.ErrConflict) {
		t.Errorf("got %v", err)
	}
}

// Ensure that it makes no difference whether a cursor is given before or
// behind the order, that it is not forgotten by what is no page, and that Skip
// counts from the beginning alone.
func TestQuery_After_InAnyOrder(t *testing.T) {
	db := memory(t, nil)
	shop(t, db)
	by := func(q jay.Query[jay.Document]) []string {
		docs, err := q.All(ctx)
		must(t, err)
		var ids []string
		for _, doc := range docs {
			ids = append(ids, doc.ID())
		}
		return ids
	}
	for _, order := range []string{"Total", "-Total", "id()"} {
		q := db.Query("Orders").OrderBy(order)
		whole := by(q)
		p, err := q.Skip(2).Limit(5).Page(ctx)
		must(t, err)
		for name, rest := range map[string]jay.Query[jay.Document]{
			"behind": q.After(p.Next),
			"before": db.Query("Orders").After(p.Next).OrderBy(order),
			"skip":   q.Skip(2).After(p.Next),
		} {
			if got := by(rest); !slices.Equal(got, whole[7:]) {
				t.Errorf("%s, %s: got %d answers, want %d", order, name, len(got), len(whole)-7)
			}
			if n, err := rest.Count(ctx); err != nil || int(n) != len(whole)-7 {
				t.Errorf("%s, %s: Count: %d, %v", order, name, n, err)
			}
		}
		if _, err := q.After(p.Next).OrderBy("Status", order).All(ctx); !errors.Is(err, jay.ErrQuery) {
			t.Errorf("%s: a cursor of another order: %v", order, err)
		}
	}
	p, err := db.Query("Orders").Limit(3).Page(ctx)
	must(t, err)
	if got := by(db.Query("Orders").After(p.Next)); len(got) != 297 {
		t.Errorf("without an order: got %d answers, want 297", len(got))
	}
}

// Ensure that groups of the builder are ordered by their columns: by a field,
// a function, or a name.
func TestQuery_GroupBy_OrderBy(t *testing.T) {
	db := memory(t, nil)
	shop(t, db)
	must(t, db.Delete(ctx, "orders/003"))
	for _, test := range []struct{ order, first string }{
		{"Status", `{"S":"open","Count":99,"Sum":4929}`},
		{"-S", `{"S":"Sent","Count":100,"Sum":4950}`},
		{"count()", `{"S":"open","Count":99,"Sum":4929}`},
		{"-Count", `{"S":"paid","Count":100,"Sum":4950}`},
		{"sum(Total)", `{"S":"open","Count":99,"Sum":4929}`},
	} {
		q := db.Query("Orders").GroupBy("Status").OrderBy(test.order)
		row, err := jay.Select[json.RawMessage](q, "Status as S", "count()", "sum(Total) as Sum").First(ctx)
		if err != nil {
			t.Errorf("%s: %v", test.order, err)
		} else if string(*row) != test.first {
			t.Errorf("%s: got %s, want %s", test.order, *row, test.first)
		}
	}
	if _, err := jay.Select[json.RawMessage](db.Query("Orders").GroupBy("Status").OrderBy("Total"), "Status").All(ctx); !errors.Is(err, jay.ErrQuery) {
		t.Errorf("by what is no column: %v", err)
	}
}

// Ensure that a column is one column and nothing else.
func TestSelect_OneColumn(t *testing.T) {
	db := memory(t, nil)
	for _, column := range []string{"", "*", "a, b", "distinct a", "a limit 1", "a offset 1", "a include b", "a as b c", "a where b = 1"} {
		if _, err := jay.Select[json.RawMessage](db.Query("Orders"), column).All(ctx); !errors.Is(err, jay.ErrQuery) {
			t.Errorf("%q: got %v, want ErrQuery", column, err)
		}
	}
}

// Ensure that Explain reports what answering costs, not what counting would.
func TestQuery_Explain_Limit(t *testing.T) {
	db := memory(t, nil)
	shop(t, db)
	must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"Total"}}))
	e, err := db.Query("Orders").Limit(2).Explain(ctx)
	if err != nil || e.Documents != 2 || e.Returned != 2 {
		t.Errorf("got %v, %v, want 2 documents read", e, err)
	}
	e, err = db.Query("Orders").Where(jay.Eq("Total", 7)).Explain(ctx)
	if err != nil || e.Documents != e.Returned || e.Returned == 0 || strings.Contains(e.String(), "read no documents") {
		t.Errorf("got %v, %v, want documents read", e, err)
	}
}

// Ensure that what a query includes is read by the transaction: it sees what
// was staged, and a change by others is a conflict.
func TestQuery_Include_InTransaction(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "users/ann", `{"n":1}`, jay.InCollection("Users"))
	put(t, db, "orders/1", `{"user":"users/ann","other":"users/none"}`, jay.InCollection("Orders"))
	ask := func(tx *jay.Tx) string {
		q, err := tx.RQL("from Orders include user, other", nil)
		must(t, err)
		var out []string
		for row, err := range q.Iter(ctx) {
			must(t, err)
			for _, doc := range row.Included {
				out = append(out, doc.ID()+string(doc.Body()))
			}
		}
		return strings.Join(out, " ")
	}
	for id, body := range map[string]string{"users/ann": `{"n":2}`, "users/none": `{"n":3}`} {
		err := db.Update(ctx, func(tx *jay.Tx) error {
			if got := ask(tx); got != `users/ann{"n":1}` {
				t.Errorf("included %s", got)
			}
			put(t, db, id, body, jay.InCollection("Users"))
			_, err := tx.Put(ctx, "things/x", []byte(`{}`))
			return err
		})
		if !errors.Is(err, jay.ErrConflict) {
			t.Errorf("%s changed beneath the transaction: %v", id, err)
		}
		must(t, db.Delete(ctx, "users/none"))
		put(t, db, "users/ann", `{"n":1}`, jay.InCollection("Users"))
	}
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		_, err := tx.Put(ctx, "users/none", []byte(`{"n":9}`), jay.InCollection("Users"))
		must(t, err)
		must(t, tx.Delete(ctx, "users/ann"))
		if got := ask(tx); got != `users/none{"n":9}` {
			t.Errorf("included %s", got)
		}
		return nil
	}))
}

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

// Ensure that days of a zone are groups, columns and conditions, from documents and from an index of instants, and that
// no index can be declared on them.
func TestQuery_Zone(t *testing.T) {
	db := memory(t, nil)
	type event struct {
		ID string
		At time.Time
		N  int
	}
	events := collectionOf[event](t, db)
	for i, at := range []string{"2026-07-31T21:59:00Z", "2026-07-31T22:01:00Z", "2026-08-01T10:00:00Z"} {
		moment, err := time.Parse(time.RFC3339, at)
		must(t, err)
		must(t, second(events.Insert(ctx, &event{At: moment, N: i})))
	}
	type day struct {
		Day string `json:"day"`
		N   int    `json:"n"`
	}
	text := func(days []*day) (out string) {
		for _, d := range days {
			out += fmt.Sprintf("%s %d, ", d.Day, d.N)
		}
		return out
	}
	check := func() {
		t.Helper()
		const part = "day(At, 'Europe/Zurich')"
		days, err := jay.Select[day](events.Query().GroupBy(part).OrderBy("key()"), "key() as day", "count() as n").All(ctx)
		must(t, err)
		equal(t, text(days), "2026-07-31 1, 2026-08-01 2, ")
		days, err = jay.Select[day](events.Query().GroupBy(part, "month(At)").OrderBy(part), part+" as day", "count() as n").All(ctx)
		must(t, err)
		equal(t, text(days), "2026-07-31 1, 2026-08-01 1, 2026-08-01 1, ")
		n, err := events.Query().Where(jay.Eq(part, "2026-08-01"), jay.Eq("day(At)", "2026-07-31")).Count(ctx)
		must(t, err)
		equal(t, n, 1)
		q := events.Query().Where(jay.Eq(part, "2026-08-01"))
		again, err := db.RQL(q.String(), nil)
		must(t, err)
		n, err = again.Count(ctx)
		must(t, err)
		equal(t, n, 2)
	}
	check()
	must(t, db.EnsureIndex(ctx, "Events", jay.Index{Fields: []string{"At as date"}}))
	check()
	if err := db.EnsureIndex(ctx, "Events", jay.Index{Fields: []string{"day(At, 'Europe/Zurich')"}}); !errors.Is(err, jay.ErrIndex) {
		t.Errorf("an index on the day of a zone: %v", err)
	}
	for _, field := range []string{"day(At, 'Europe/Bern')", "day(At, Europe)", "day(At as date, 'UTC')", "day(At, 'UTC', 'UTC')", "day(At, '')"} {
		if _, err := events.Query().Where(jay.Eq(field, "2026-08-01")).Count(ctx); !errors.Is(err, jay.ErrQuery) {
			t.Errorf("%s: got %v, want ErrQuery", field, err)
		}
	}
}

// Ensure that a query whose expressions compute more of a document than they may is an ErrQuery, and does not answer without it.
func TestQuery_ComputesTooMuch(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "notes/1", fmt.Sprintf(`{"t":%q}`, strings.Repeat("x", 900_000)), jay.InCollection("Notes"))
	for _, text := range []string{
		"from Notes where %s",
		"from Notes where not (%s)",
	} {
		var all []string
		for i := range 30 {
			all = append(all, fmt.Sprintf("concat(t, %d) = 'a'", i))
		}
		q, err := db.RQL(fmt.Sprintf(text, strings.Join(all, " or ")), nil)
		must(t, err)
		found, err := q.All(ctx)
		if !errors.Is(err, jay.ErrQuery) || len(found) > 0 {
			t.Errorf("%s: %d documents, %v", text, len(found), err)
		}
		if n, err := q.Count(ctx); !errors.Is(err, jay.ErrQuery) || n > 0 {
			t.Errorf("%s: %d, %v", text, n, err)
		}
	}
}
