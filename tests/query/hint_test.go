package query_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that a query that names an index is answered by it, in Go and in RQL, and that
// Explain says so; the answers are those of the planner's choice.
func TestQuery_UseIndex(t *testing.T) {
	db := memory(t, nil)
	for i := range 40 {
		put(t, db, fmt.Sprintf("orders/%02d", i), fmt.Sprintf(`{"Company":"c%d","Total":%d,"Status":"%s"}`, i%10, i, []string{"open", "paid"}[i%2]), jay.InCollection("Orders"))
	}
	for _, ix := range []jay.Index{
		{Fields: []string{"Company"}}, {Fields: []string{"Status", "-Total"}, Name: "byStatus"}, {Fields: []string{"Total"}, Where: "Status = 'open'", Name: "open"},
	} {
		must(t, db.EnsureIndex(ctx, "Orders", ix))
	}
	for _, test := range []struct{ text, index, step string }{
		{"from Orders use index 'Company' where Company = 'c1' and Status = 'paid'", "Company", `index "Company", one range, as the query asks`},
		{"from Orders use index 'byStatus' where Company = 'c1' and Status = 'paid'", "BYSTATUS", `index "byStatus", one range, as the query asks`},
		{"from Orders use index 'byStatus' where id() = 'orders/01' and Status = 'paid'", "byStatus", `index "byStatus", one range, as the query asks`},
		{"from Orders use index 'open' where Total > 5 and Status = 'open'", "open", `index "open", one range, as the query asks`},
		{"from Orders use index 'byStatus' order by Status, Total desc", "byStatus", `index "byStatus", all of it, as the query asks`},
		{"from Orders use index 'byStatus' select Status, Total", "byStatus", `index "byStatus", all of it, as the query asks`},
		{"from Orders use index 'Company' where Company = 'c1' or Company = 'c2' and Total > 3", "Company", "union of, as the query asks"},
	} {
		hinted, err := db.RQL(test.text, nil)
		must(t, err)
		equal(t, hinted.String(), test.text)
		e, err := hinted.Explain(ctx)
		must(t, err)
		if e.Plan[0] != test.step {
			t.Errorf("%s: got %q, want %q", test.text, e.Plan[0], test.step)
		}
		plain := strings.Replace(test.text, test.text[strings.Index(test.text, " use "):strings.Index(test.text, "' ")+1], "", 1)
		free, err := db.RQL(plain, nil)
		must(t, err)
		want, err := free.Count(ctx)
		must(t, err)
		for _, q := range []jay.Query[jay.Row]{hinted, free.UseIndex(test.index)} {
			n, err := q.Count(ctx)
			must(t, err)
			equal(t, n, want)
			rows, err := q.All(ctx)
			must(t, err)
			equal(t, int64(len(rows)), want)
		}
		equal(t, hinted.UseIndex("").String(), plain)
	}

	// A cursor of the query without the name goes on in the one with it.
	q := db.Query("Orders").Where(jay.Eq("Status", "open")).OrderBy("-Total")
	page, err := q.Limit(3).Page(ctx)
	must(t, err)
	page, err = q.UseIndex("byStatus").Limit(3).After(page.Next).Page(ctx)
	must(t, err)
	equal(t, page.Items[0].ID(), "orders/32")

	// The transaction's own documents count as well.
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		_, err := tx.Put(ctx, "orders/new", []byte(`{"Company":"c1","Total":1}`), jay.InCollection("Orders"))
		must(t, err)
		n, err := tx.Query("Orders").UseIndex("Company").Where(jay.Eq("Company", "c1")).Count(ctx)
		must(t, err)
		equal(t, n, 5)
		return nil
	}))
}

// Ensure that a query which asks for no index has none, in Go and in RQL, in each of its forms, that Explain says so and suggests none, and that
// what contradicts it is refused.
func TestQuery_NoIndex(t *testing.T) {
	db := memory(t, nil)
	for i := range 40 {
		put(t, db, fmt.Sprintf("orders/%02d", i), fmt.Sprintf(`{"Company":"c%d","Total":%d}`, i%10, i), jay.InCollection("Orders"))
	}
	must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"Company", "Total"}}))
	for _, test := range []struct{ text, step string }{
		{"from Orders use no index where Company = 'c1'", "scan Orders, as the query asks"},
		{"from Orders use no index order by Company, Total limit 3", "scan Orders, as the query asks"},
		{"from Orders use no index group by Company select Company, sum(Total)", "scan Orders, as the query asks"},
		{"from Orders use no index where Company = 'c1' or Company = 'c2' and Total > 3", "scan Orders, as the query asks"},
		{"from Orders use no index where id() > 'orders/30' and Company = 'c1'", `scan Orders with IDs above "orders/30", as the query asks`},
		{"from Orders use no index where id() in ('orders/01', 'orders/02')", "look up 2 documents by ID"},
	} {
		without, err := db.RQL(test.text, nil)
		must(t, err)
		equal(t, without.String(), test.text)
		e, err := without.Explain(ctx)
		must(t, err)
		if e.Plan[0] != test.step || e.Suggestion != nil {
			t.Errorf("%s: got %q, suggested %v; want %q", test.text, e.Plan[0], e.Suggestion, test.step)
		}
		free, err := db.RQL(strings.Replace(test.text, " use no index", "", 1), nil)
		must(t, err)
		equal(t, free.NoIndex().String(), test.text)
		want, err := free.Count(ctx)
		must(t, err)
		n, err := without.Count(ctx)
		must(t, err)
		equal(t, n, want)
	}

	// A cursor of either query goes on in the other.
	q := db.Query("Orders").Where(jay.Eq("Company", "c1")).OrderBy("Total")
	page, err := q.Limit(1).Page(ctx)
	must(t, err)
	page, err = q.NoIndex().Limit(1).After(page.Next).Page(ctx)
	must(t, err)
	equal(t, page.Items[0].ID(), "orders/11")
	page, err = q.Limit(1).After(page.Next).Page(ctx)
	must(t, err)
	equal(t, page.Items[0].ID(), "orders/21")

	text, err := db.RQL("from Orders use no index", nil)
	must(t, err)
	for name, q := range map[string]interface {
		Count(context.Context) (int64, error)
	}{
		"an index":        q.UseIndex("Company,Total").NoIndex(),
		"an index, later": q.NoIndex().UseIndex("Company,Total"),
		"no scan":         q.NoScan().NoIndex(),
		"no scan, later":  q.NoIndex().NoScan(),
		"by text":         text.UseIndex("Company,Total"),
	} {
		if _, err := q.Count(ctx); !errors.Is(err, jay.ErrQuery) || !strings.Contains(err.Error(), "contradicts") {
			t.Errorf("%s: got %v, want ErrQuery", name, err)
		}
	}
}

// Ensure that an index which is not there or cannot answer the query is ErrNoIndex, and
// that the error says why, wherever the query is run.
func TestQuery_UseIndex_Refused(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "orders/1", `{"Company":"a","Total":1}`, jay.InCollection("Orders"))
	none := db.Query("Orders").UseIndex("x")
	if _, err := none.Count(ctx); !errors.Is(err, jay.ErrNoIndex) || !strings.Contains(err.Error(), "has no indexes") {
		t.Errorf("got %v, want ErrNoIndex", err)
	}
	must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"Company", "Total"}}))
	must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"Total"}, Where: "Total > 5", Name: "large"}))
	for name, test := range map[string]struct {
		q    jay.Query[jay.Document]
		want string
	}{
		"missing":    {none, `none of this name, but "Company,Total", "large"`},
		"collection": {db.Query("Other").UseIndex("large"), "has no indexes"},
		"no use":     {db.Query("Orders").UseIndex("Company,Total").Where(jay.Eq("Total", 1)), "its first field, Company"},
		"two fields": {db.Query("Orders").UseIndex("Company,Total").Where(jay.Eq("Company", jay.Field("Total"))), "its first field, Company"},
		"partial":    {db.Query("Orders").UseIndex("large").Where(jay.Gt("Total", 6)), "only documents with Total > 5"},
		"whole":      {db.Query("Orders").UseIndex("Company,Total"), "all fields that the query needs"},
	} {
		_, err := test.q.All(ctx)
		if !errors.Is(err, jay.ErrNoIndex) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: All: got %v, want ErrNoIndex with %s", name, err, test.want)
		}
		if _, err := test.q.Explain(ctx); !errors.Is(err, jay.ErrNoIndex) {
			t.Errorf("%s: Explain: got %v, want ErrNoIndex", name, err)
		}
		if _, err := test.q.Delete(ctx); !errors.Is(err, jay.ErrNoIndex) {
			t.Errorf("%s: Delete: got %v, want ErrNoIndex", name, err)
		}
	}
	// An answer from entries needs no condition on its first field.
	n, err := db.Query("Orders").UseIndex("Company,Total").Count(ctx)
	must(t, err)
	equal(t, n, 1)
	for _, name := range []string{"large", strings.Repeat("x", 2000)} {
		if _, err := db.Query("").UseIndex(name).All(ctx); !errors.Is(err, jay.ErrQuery) {
			t.Errorf("got %v, want ErrQuery", err)
		}
	}
	for _, text := range []string{"from @all_docs use index 'x'", "from Orders use 'x'", "from Orders use index", "from Orders use index ''", "from index 'x' use index 'y'", "from Orders use index 'x' as o"} {
		if _, err := db.RQL(text, nil); !errors.Is(err, jay.ErrSyntax) {
			t.Errorf("%s: got %v, want ErrSyntax", text, err)
		}
	}
	q, err := db.RQL("from index as i use index large where i.Total > 5", nil)
	must(t, err)
	equal(t, q.String(), "from index use index 'large' where Total > 5")
	_, err = db.RQL(q.String(), nil)
	must(t, err)
}
