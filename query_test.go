package jay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
)

// shop fills a database with 300 orders of three states and ten customers.
func shop(t testing.TB, db *jay.DB) {
	t.Helper()
	var b jay.Batch
	for i := range 300 {
		body := fmt.Sprintf(`{"Customer":"customers/%d","Status":%q,"Total":%d,"Lines":[{"Product":"p%d"},{"Product":"p%d"}]}`,
			i%10, []string{"open", "paid", "Sent"}[i%3], i*7%100, i%5, i%7)
		b.Put(fmt.Sprintf("orders/%03d", i), json.RawMessage(body), jay.InCollection("Orders"))
	}
	_, err := db.Apply(ctx, &b)
	must(t, err)
}

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

func rows(t *testing.T, db *jay.DB, rql string) []string {
	t.Helper()
	q, err := db.RQL(rql, nil)
	must(t, err)
	var out []string
	for row, err := range q.Iter(ctx) {
		must(t, err)
		if row.Document != nil {
			out = append(out, row.Document.ID())
		} else {
			out = append(out, string(row.JSON))
		}
	}
	return out
}

// Ensure that pages joined together are the whole answer, whatever the plan,
// and that a cursor of another query is refused.
func TestQuery_Page(t *testing.T) {
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
