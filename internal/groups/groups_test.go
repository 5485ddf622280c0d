package groups_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	private "github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/jaytest"
	"github.com/jaydb/jay/storage/memory"
)

// dashboard is the query of an index with orders by customer.
const dashboard = "from Orders group by Customer order by Customer select Customer, count() as N, sum(Total) as T"

// orders declares an index by customer, with the sum of the total.
func orders(t testing.TB, db *jay.DB) {
	t.Helper()
	private.Must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Name: "ByCustomer", Kind: "groups", Fields: []string{"Customer"}, Options: map[string]string{"sums": "Total"}}))
}

// put stores an order.
func put(t testing.TB, db *jay.DB, id, body string, options ...jay.WriteOption) {
	t.Helper()
	_, err := db.Put(ctx, id, json.RawMessage(body), append(options, jay.InCollection("Orders"))...)
	private.Must(t, err)
}

// explained returns the plan of a query, as one text.
func explained(t testing.TB, from querier, rql string) string {
	t.Helper()
	q, err := from.RQL(rql, nil)
	private.Must(t, err)
	x, err := q.Explain(ctx)
	private.Must(t, err)
	return strings.Join(x.Plan, "; ")
}

// Ensure that writers of one group do not meet, and that no addition is lost: 64 goroutines add to it, take from it and change it.
func TestGroups_ManyWriters(t *testing.T) {
	db := private.Memory(t, &jay.Options{Durability: jay.Relaxed})
	orders(t, db)
	const goroutines, rounds = 64, 20
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range rounds {
				id := fmt.Sprintf("orders/%d-%d", g, i)
				if err := db.Update(ctx, func(tx *jay.Tx) error {
					_, err := tx.Put(ctx, id, json.RawMessage(fmt.Sprintf(`{"Customer":"Ann","Total":%d.01}`, i)), jay.InCollection("Orders"))
					return err
				}); err != nil {
					t.Errorf("%s: %v", id, err)
				}
				switch i % 4 {
				case 1:
					if err := db.Delete(ctx, id); err != nil {
						t.Error(err)
					}
				case 2:
					if _, err := db.Patch(ctx, id, jay.Set("Total", 0.25)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	// Of 20 rounds 5 are deleted and 5 are 0.25; the others are 0, 3, 4, 7, 8, 11, 12, 15, 16 and 19, each with a cent.
	rows := private.Rows(t, db, dashboard)
	if want := fmt.Sprintf(`{"Customer":"Ann","N":%d,"T":%d.4}`, goroutines*15, goroutines*95+goroutines*135/100); len(rows) != 1 || rows[0] != want {
		t.Errorf("got %v, want %s", rows, want)
	}
	private.Verify(t, db)
}

// Ensure that a transaction sees the groups with what it has written, and not with what others have written since; that it fails
// if it has read groups and a document of the collection has changed since, whatever its group; and that one that has only
// written does not.
func TestGroups_InTransaction(t *testing.T) {
	db := private.Memory(t, nil)
	orders(t, db)
	put(t, db, "orders/1", `{"Customer":"Ann","Total":1}`)
	put(t, db, "orders/2", `{"Customer":"Bob","Total":2}`)
	h := &history{t: t}
	said := func(tx *jay.Tx) string { return fmt.Sprintf("%s", h.rows(tx, dashboard)) }

	private.Must(t, db.Update(ctx, func(tx *jay.Tx) error {
		if _, err := tx.Put(ctx, "orders/3", json.RawMessage(`{"Customer":"Cyd","Total":1e40}`), jay.InCollection("Orders")); err != nil {
			return err
		}
		if err := tx.Delete(ctx, "orders/2"); err != nil {
			return err
		}
		if _, err := tx.Put(ctx, "orders/1", json.RawMessage(`{"Customer":"Ann","Total":10}`)); err != nil {
			return err
		}
		private.Equal(t, said(tx), `[{"Customer":"Ann","N":1,"T":10} {"Customer":"Cyd","N":1,"T":1e+40}]`)
		if plan := explained(t, tx, dashboard); !strings.Contains(plan, "ByCustomer") {
			t.Errorf("answered by %s", plan)
		}
		return nil
	}))
	private.Equal(t, fmt.Sprint(private.Rows(t, db, dashboard)), `[{"Customer":"Ann","N":1,"T":10} {"Customer":"Cyd","N":1,"T":1e+40}]`)

	beside := func(read bool, id, customer string) error {
		t.Helper()
		return db.Update(ctx, func(tx *jay.Tx) error {
			if read {
				said(tx)
			}
			put(t, db, id, fmt.Sprintf(`{"Customer":%q,"Total":1}`, customer))
			_, err := tx.Put(ctx, "orders/own", json.RawMessage(`{"Customer":"Ann","Total":5}`), jay.InCollection("Orders"))
			return err
		})
	}
	private.Must(t, beside(false, "orders/4", "Ann"))
	for _, customer := range []string{"Ann", "Dan"} {
		if err := beside(true, "orders/"+customer, customer); !errors.Is(err, jay.ErrConflict) || !strings.Contains(err.Error(), "Orders") {
			t.Errorf("an order of %s beside the transaction: got %v", customer, err)
		}
	}
}

// Ensure that a transaction counts the first document that is in several groups once, also where the index would add up its groups.
func TestGroups_InTransaction_Several(t *testing.T) {
	db := private.Memory(t, nil)
	private.Must(t, db.EnsureIndexes(ctx, "Orders", []jay.Index{
		{Name: "ByTag", Kind: "groups", Fields: []string{"Customer", "Tag"}, Options: map[string]string{"sums": "Total"}},
		{Name: "ByProduct", Kind: "groups", Fields: []string{"line.Product"}, Options: map[string]string{"each": "Lines as line", "sums": "line.Price"}},
	}))
	put(t, db, "orders/1", `{"Customer":"Ann","Tag":"a","Total":1,"Lines":[{"Product":"x","Price":1}]}`)
	for _, written := range []struct{ body, answers string }{
		{`{"Customer":"Ann","Tag":"b","Total":2,"Lines":[{"Product":"y","Price":2}]}`, "kept"},
		{`{"Customer":"Ann","Tag":["a","b"],"Total":2,"Lines":[{"Product":["x","y"],"Price":2}]}`, "not kept"},
	} {
		err := db.Update(ctx, func(tx *jay.Tx) error {
			for i, body := range []string{`{"Customer":"Ann","Tag":"a","Total":1,"Lines":[{"Product":"x","Price":1}]}`, written.body} {
				_, err := tx.Put(ctx, fmt.Sprint("orders/", i+1), json.RawMessage(body), jay.InCollection("Orders"))
				private.Must(t, err)
			}
			h := &history{t: t}
			for _, row := range []struct{ rql, want string }{
				{"from Orders select sum(Total) as T, count() as N", `[{"T":3,"N":2}]`},
				{"from Orders group by Customer select Customer, sum(Total) as T, count() as N", `[{"Customer":"Ann","T":3,"N":2}]`},
				{"from Orders each Lines as line select sum(line.Price) as P, count() as N", `[{"P":3,"N":2}]`},
			} {
				private.Equal(t, fmt.Sprintf("%s", h.rows(tx, row.rql)), row.want)
				if plan := explained(t, tx, row.rql); strings.Contains(plan, "kept counts") != (written.answers == "kept") {
					t.Errorf("%s of %s is answered by %s", row.rql, written.body, plan)
				}
			}
			want := `[{"Customer":"Ann","Tag":"a","T":3} {"Customer":"Ann","Tag":"b","T":2}]`
			if written.answers == "kept" {
				want = `[{"Customer":"Ann","Tag":"a","T":1} {"Customer":"Ann","Tag":"b","T":2}]`
			}
			const all = "from Orders group by Customer, Tag select Customer, Tag, sum(Total) as T"
			private.Equal(t, fmt.Sprintf("%s", h.rows(tx, all)), want) // by all members it keeps what the query asks
			if plan := explained(t, tx, all); !strings.Contains(plan, "kept counts") {
				t.Errorf("groups by all members are answered by %s", plan)
			}
			const facet = "from Orders where Customer = 'Ann' and Tag = 'a' select facet(Tag, sum(Total))"
			q, err := tx.RQL(facet, nil)
			private.Must(t, err)
			scanned, err := q.NoIndex().All(ctx)
			private.Must(t, err)
			private.Equal(t, fmt.Sprintf("%s", h.rows(tx, facet)), fmt.Sprintf("[%s]", scanned[0].JSON))
			return errNotCommitted
		})
		if !errors.Is(err, errNotCommitted) {
			t.Fatal(err)
		}
	}
}

// errNotCommitted ends transactions that commit nothing.
var errNotCommitted = errors.New("not committed")

// Ensure that an index whose condition bounds a member has all groups of its documents, those beyond the bound too.
func TestGroups_RangeOfSeveral(t *testing.T) {
	db := private.Memory(t, nil)
	private.Must(t, db.EnsureIndexes(ctx, "Orders", []jay.Index{
		{Name: "ByTag", Kind: "groups", Fields: []string{"Tag"}, Where: "Tag >= 'b'"},
		{Name: "ByYear", Kind: "groups", Fields: []string{"At as date"}, Where: "At as date >= '2026-01-01T00:00:00Z'"},
	}))
	put(t, db, "orders/1", `{"Tag":"b","At":"2026-01-01T00:00:00Z"}`)
	put(t, db, "orders/2", `{"Tag":"a","At":"2025-01-01T00:00:00Z"}`)
	const tags = "from Orders group by Tag where Tag >= 'b' order by Tag select Tag, count() as N"
	private.Equal(t, fmt.Sprint(private.Rows(t, db, tags)), `[{"Tag":"b","N":1}]`)
	if plan := explained(t, db, tags); !strings.Contains(plan, "kept counts, one range of groups") {
		t.Errorf("without several values: %s", plan)
	}
	put(t, db, "orders/3", `{"Tag":["a","b"],"At":["2025-01-01T00:00:00Z","2026-01-01T00:00:00Z"]}`)
	for _, row := range []struct{ rql, want string }{
		{tags, `[{"Tag":"a","N":1} {"Tag":"b","N":2}]`},
		{"from Orders where Tag >= 'b' select facet(Tag)", `[{"Name":"Tag","Values":[{"Range":"a","Count":1},{"Range":"b","Count":2}],"RemainingTerms":[],"RemainingTermsCount":0,"RemainingHits":0}]`},
		{"from Orders group by At as date where At as date >= '2026-01-01T00:00:00Z' order by N select count() as N", `[{"N":1} {"N":2}]`},
	} {
		private.Equal(t, fmt.Sprint(private.Rows(t, db, row.rql)), row.want)
		if plan := explained(t, db, row.rql); !strings.Contains(plan, "kept counts") {
			t.Errorf("%s is answered by %s", row.rql, plan)
		}
	}
}

// Ensure that a document that has expired counts no more, before it is deleted and after.
func TestGroups_Expired(t *testing.T) {
	db := jaytest.Open(t, &jay.Options{ExactExpiry: true})
	orders(t, db.DB)
	put(t, db.DB, "orders/1", `{"Customer":"Ann","Total":1}`)
	put(t, db.DB, "orders/2", `{"Customer":"Ann","Total":1e30}`, jay.ExpiresAt(db.Clock.Now().Add(time.Minute)))
	put(t, db.DB, "orders/3", `{"Customer":"`+strings.Repeat("x", 600)+`"}`, jay.ExpiresAt(db.Clock.Now().Add(time.Minute)))
	private.Equal(t, private.Rows(t, db.DB, dashboard)[0], `{"Customer":"Ann","N":2,"T":1.000000000000000000000000000001e+30}`)
	db.Clock.Advance(time.Hour)
	private.Equal(t, fmt.Sprint(private.Rows(t, db.DB, dashboard)), `[{"Customer":"Ann","N":1,"T":1}]`)
	swept, err := db.Sweep(ctx)
	private.Must(t, err)
	t.Log(swept)
	private.Equal(t, fmt.Sprint(private.Rows(t, db.DB, dashboard)), `[{"Customer":"Ann","N":1,"T":1}]`)
}

// Ensure that a query of some groups is answered beside documents in others that have expired, or that the transaction has written.
func TestGroups_RangeBesideOthers(t *testing.T) {
	db := jaytest.Open(t, &jay.Options{ExactExpiry: true})
	orders(t, db.DB)
	put(t, db.DB, "orders/1", `{"Customer":"Ann","Total":1}`)
	put(t, db.DB, "orders/2", `{"Customer":"Bob","Total":2}`, jay.ExpiresAt(db.Clock.Now().Add(time.Minute)))
	put(t, db.DB, "orders/3", `{"Customer":"Cyd","Total":3}`)
	db.Clock.Advance(time.Hour)
	const ann = "from Orders group by Customer where Customer in ('Ann', 'Dan') select Customer, count() as N, sum(Total) as T"
	private.Equal(t, fmt.Sprint(private.Rows(t, db.DB, ann)), `[{"Customer":"Ann","N":1,"T":1}]`)
	private.Must(t, db.Update(ctx, func(tx *jay.Tx) error {
		private.Must(t, tx.Delete(ctx, "orders/3"))
		_, err := tx.Put(ctx, "orders/4", json.RawMessage(`{"Customer":"Dan","Total":4}`), jay.InCollection("Orders"))
		private.Must(t, err)
		h := &history{t: t}
		private.Equal(t, fmt.Sprintf("%s", h.rows(tx, ann)), `[{"Customer":"Ann","N":1,"T":1} {"Customer":"Dan","N":1,"T":4}]`)
		return nil
	}, jay.Retry(10))) // the sweeper may delete the order that has expired beside it
}

// Ensure that queries say which groups they read, that NoScan accepts them, and that what is not kept is scanned.
func TestGroups_Plans(t *testing.T) {
	db := private.Memory(t, nil)
	private.Must(t, db.EnsureIndexes(ctx, "Orders", []jay.Index{
		{Name: "Fine", Kind: "groups", Fields: []string{"Customer", "day(At)"}, Options: map[string]string{"sums": "Total,Price*Quantity"}},
		{Name: "Coarse", Kind: "groups", Fields: []string{"Customer"}, Options: map[string]string{"sums": "Total"}},
		{Name: "Open", Kind: "groups", Fields: []string{"Warehouse"}, Where: "State = 'open'"},
		{Name: "Moments", Kind: "groups", Fields: []string{"At AS date"}},
		{Name: "UTC", Kind: "groups", Fields: []string{"day(At as utc)"}},
		{Name: "Plain", Fields: []string{"Customer"}},
	}))
	for i := range 50 {
		put(t, db, fmt.Sprint("orders/", i), fmt.Sprintf(`{"Customer":"c%d","At":"2026-01-%02dT00:00:00Z","Total":%d,"Price":2,"Quantity":%d,"State":"open","Warehouse":%d}`, i%7, 1+i%20, i, i%3, i%2))
	}
	for _, row := range []struct{ rql, index string }{
		{"from Orders group by Customer select Customer, sum(Total) as T", "Coarse"},
		{"from Orders group by Customer order by avg(Total) desc select key() as C, avg(Total) as A limit 3", "Coarse"},
		{"from Orders group by Customer select Customer, sum(Price * Quantity) as P", "Fine"},
		{"from Orders group by day(At), Customer select Customer, day(At) as Day, count()", "Fine"},
		{"from Orders group by day(At) where sum(Total) > 10 select key() as Day, count() as N", "Fine"},
		{"from Orders where Customer = 'c1' select sum(Total) as T", "Coarse"},
		{"from Orders select sum(Total) as T, count() as N", "Coarse"},
		{"from Orders group by At as date select key() as At, count() as N", "Moments"},
		{"from Orders group by At as date where At as date >= '2026-01-05T00:00:00Z' and not (At as date = '2026-01-07T01:00:00+01:00') select key() as At, count() as N", "Moments"},
		{"from Orders group by day(At as utc) where day(At as utc) < '2026-01-05' select key() as Day, count() as N", "UTC"},
		{"from Orders group by At select key() as At, count() as N", ""}, // the texts, and not their instants
		{"from Orders where Customer = 'c1' select count() as N", "Coarse"},
		{"from Orders group by Customer where Customer in ('c1', 'C2') and day(At) >= '2026-01-05' select Customer, count() as N", "Fine"},
		{"from Orders group by Warehouse where State = 'open' and Warehouse = 1 select Warehouse, count()", "Open"},
		{"from Orders group by Warehouse select Warehouse, count()", ""},                          // only the open ones are kept
		{"from Orders group by Customer select Customer, max(Total) as M", ""},                    // no extremes
		{"from Orders group by Customer select Customer, sum(Price) as P", ""},                    // another sum
		{"from Orders group by Customer where Total > 3 select Customer, count()", ""},            // not a member
		{"from Orders group by Customer where exists(Customer) select Customer, count()", ""},     // tells [] from nothing
		{"from Orders group by Customer where length(Customer) > 1 select Customer, count()", ""}, // computed from a member
		{"from Orders group by Customer where id() > 'orders/3' select Customer, count()", ""},    // not a member
		{"from @all_docs group by Customer select Customer, count()", ""},                         // of all collections
		{"from Orders group by Customer, State select Customer, State, sum(Total) as T", ""},      // another member
		{"from Orders select count() as N", ""},                                                   // kept without an index
	} {
		q, err := db.RQL(row.rql, nil)
		private.Must(t, err)
		got := private.Rows(t, db, row.rql)
		want, err := q.NoIndex().All(ctx)
		private.Must(t, err)
		var texts []string
		for _, r := range want {
			texts = append(texts, string(r.JSON))
		}
		if !strings.Contains(row.rql, "order by") {
			slices.Sort(got)
			slices.Sort(texts)
		}
		if !slices.Equal(got, texts) {
			t.Errorf("%s: got %v, want %v", row.rql, got, texts)
		}
		plan := explained(t, db, row.rql)
		if row.index == "" {
			if strings.Contains(plan, "kept") {
				t.Errorf("%s: %s", row.rql, plan)
			}
			continue
		}
		if !strings.Contains(plan, fmt.Sprintf("index %q, kept counts", row.index)) || !strings.Contains(plan, "read no documents") || strings.Contains(plan, "group in memory") {
			t.Errorf("%s: %s", row.rql, plan)
		}
		if _, err := q.NoScan().All(ctx); err != nil {
			t.Errorf("%s: %v", row.rql, err)
		}
		x, err := q.Explain(ctx)
		private.Must(t, err)
		if x.Documents != 0 {
			t.Errorf("%s has read %d documents", row.rql, x.Documents)
		}
	}
	q, err := db.RQL("from Orders group by Customer select Customer, sum(Total) as T", nil)
	private.Must(t, err)
	x, err := q.UseIndex("Fine").Explain(ctx)
	if err != nil || !strings.Contains(x.Plan[0], `"Fine"`) || !strings.Contains(x.Plan[0], "as the query asks") {
		t.Errorf("got %v, %v", x.Plan, err)
	}
	if _, err := q.UseIndex("Open").All(ctx); !errors.Is(err, jay.ErrNoIndex) {
		t.Errorf("an index that does not have it: got %v", err)
	}
	// A range of the first member, and a point before a range, examine the groups in it only.
	narrow, err := db.RQL("from Orders group by Customer, day(At) where Customer = 'c3' and day(At) < '2026-01-10' select Customer, day(At) as D, count()", nil)
	private.Must(t, err)
	if x, err = narrow.Explain(ctx); err != nil || x.Keys > 20 || !strings.Contains(x.Plan[0], "one range of groups") {
		t.Errorf("%d keys, %v, %v", x.Keys, x.Plan, err)
	}
}

// Ensure that a declaration that cannot be kept is refused, and says what and why.
func TestGroups_Declaration_Refused(t *testing.T) {
	db := private.Memory(t, nil)
	for _, row := range []struct {
		field, sums string
		want        string
	}{
		{"-Customer", "", `"-Customer": groups have no order of their own`},
		{"id()", "", "id() is no field of the body"},
		{"@metadata.@etag", "", "@metadata.@etag is no field of the body"},
		{"lower(Name)", "", "lower() depends on tables that change"},
		{"day(At, 'Europe/Zurich')", "", "the rules of time zones change"},
		{"1 + 2", "", "it refers to no field of the document"},
		{"Customer", "upper(Name)", "upper() depends on tables that change"},
		{"Customer", "Total, Total", "1 to 8 different fields or expressions"},
		{"Customer", "Total,", "1 to 8 different fields or expressions"},
		{"Customer", "Total as date", "1 to 8 different fields or expressions"},
	} {
		ix := jay.Index{Name: "x", Kind: "groups", Fields: []string{row.field}}
		if row.sums != "" {
			ix.Options = map[string]string{"sums": row.sums}
		}
		err := db.EnsureIndex(ctx, "Orders", ix)
		var option *jay.OptionError
		if !errors.Is(err, jay.ErrIndex) || !strings.Contains(err.Error(), row.want) || errors.As(err, &option) != (row.sums != "") {
			t.Errorf("%s, %s: got %v", row.field, row.sums, err)
		}
	}
	list, err := db.Indexes(ctx, "Orders")
	if err != nil || len(list) != 0 {
		t.Errorf("got %v, %v", list, err)
	}
	// The canonical spelling is what is compared.
	first := jay.Index{Name: "x", Kind: "groups", Fields: []string{" Price*Quantity "}, Options: map[string]string{"sums": " concat(A,',',B)=>"}}
	first.Options["sums"] = "Total,round( Price*Quantity ,2)"
	private.Must(t, db.EnsureIndex(ctx, "Orders", first))
	first.Fields[0], first.Options["sums"] = "Price * Quantity", "Total, round(Price * Quantity, 2)"
	private.Must(t, db.EnsureIndex(ctx, "Orders", first))
	list, err = db.Indexes(ctx, "Orders")
	if err != nil || len(list) != 1 || list[0].Fields[0] != first.Fields[0] || list[0].Options["sums"] != first.Options["sums"] || list[0].Kind != "groups" {
		t.Errorf("got %+v, %v", list, err)
	}
}

// Ensure that a document which would be in more than 10,000 groups is refused, and one whose expressions compute too much, by errors that
// name the index; and that they change nothing.
func TestGroups_Document_Refused(t *testing.T) {
	db := private.Memory(t, nil)
	private.Must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Name: "ByTags", Kind: "groups", Fields: []string{"A", "B"}, Options: map[string]string{"sums": "length(replace(Text, 'x', Other))"}}))
	many := "[" + strings.TrimSuffix(strings.Repeat("1,2,3,4,5,6,7,8,9,0,", 11), ",") + "]"
	_, err := db.Put(ctx, "orders/1", json.RawMessage(fmt.Sprintf(`{"A":%s,"B":%s}`, many, many)), jay.InCollection("Orders"))
	var invalid *jay.DocumentError
	if !errors.As(err, &invalid) || invalid.Limit != 10_000 || invalid.Actual != 12_100 || !strings.Contains(err.Error(), `"ByTags"`) {
		t.Errorf("groups: got %v", err)
	}
	// Each of 20 texts has 900 KB: together they are more than what may be computed of one document.
	private.Must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Name: "ByLength", Kind: "groups", Fields: []string{strings.TrimSuffix(strings.Repeat("length(concat(T, 'a')) + ", 20), "+ ")}}))
	_, err = db.Put(ctx, "orders/2", json.RawMessage(`{"T":"`+strings.Repeat("x", 900_000)+`"}`), jay.InCollection("Orders"))
	if invalid = nil; !errors.As(err, &invalid) || invalid.Limit != 16<<20 || !strings.Contains(err.Error(), `"ByLength"`) {
		t.Errorf("expressions: got %v", err)
	}
	if rows := private.Rows(t, db, "from Orders"); len(rows) != 0 {
		t.Errorf("got %v", rows)
	}
}

// Ensure that a document counts once that was written while the index was built, though the build goes on in another process, which
// meets it.
func TestGroups_BuildResumed(t *testing.T) {
	db := jaytest.Open(t, nil)
	for i := range 9 {
		put(t, db.DB, fmt.Sprint("orders/", i), `{"Customer":"Ann","Total":1}`)
	}
	restore := checks.SetBuildChunks(3, 5)
	chunks, written := 0, make(chan struct{})
	undo := checks.OnBuildChunk(func(building context.Context, _ jay.IndexState) {
		if chunks++; chunks == 2 {
			put(t, db.DB, "orders/new", `{"Customer":"Ann","Total":10}`)
			close(written)
			<-building.Done() // the process ends
		}
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = db.EnsureIndex(ctx, "Orders", jay.Index{Name: "ByCustomer", Kind: "groups", Fields: []string{"Customer"}, Options: map[string]string{"sums": "Total"}}) // it ends early
	}()
	<-written
	private.Must(t, db.DB.Close())
	<-ended
	undo()
	restore()
	db.Restart()
	checks.WaitIndexTasks(db.DB)
	if plan := explained(t, db.DB, dashboard); !strings.Contains(plan, "ByCustomer") {
		t.Errorf("answered by %s", plan)
	}
	private.Equal(t, fmt.Sprint(private.Rows(t, db.DB, dashboard)), `[{"Customer":"Ann","N":10,"T":19}]`)
	private.Verify(t, db.DB)
}

// Ensure that a chain of backups, of which the index is in a later one, restores the groups of its end.
func TestGroups_IncrementalBackup(t *testing.T) {
	db := private.Memory(t, nil)
	put(t, db, "orders/1", `{"Customer":"Ann","Total":1}`)
	put(t, db, "orders/2", `{"Customer":"Bob","Total":2}`)
	info, full := private.BackUp(t, db)
	orders(t, db)
	put(t, db, "orders/1", `{"Customer":"Ann","Total":1e30}`)
	private.Must(t, db.Delete(ctx, "orders/2"))
	put(t, db, "orders/3", `{"Customer":"Cyd"}`)
	_, later := private.BackUp(t, db, jay.BackupSince(info.ID))
	dir := filepath.Join(t.TempDir(), "restored")
	_, err := jay.Restore(ctx, dir, jay.RestoreOptions{CopyTag: "B"}, bytes.NewReader(full), bytes.NewReader(later))
	private.Must(t, err)
	restored := private.Open(t, dir, nil)
	defer private.Close(t, restored)
	checks.WaitIndexTasks(restored)
	private.Equal(t, fmt.Sprint(private.Rows(t, restored, dashboard)), `[{"Customer":"Ann","N":1,"T":1e+30} {"Customer":"Cyd","N":1,"T":0}]`)
	if plan := explained(t, restored, dashboard); !strings.Contains(plan, "ByCustomer") {
		t.Errorf("answered by %s", plan)
	}
}

// Ensure that the first index raises the format of its database, and neither another index nor its refusal does.
func TestGroups_FormatRises(t *testing.T) {
	dir := t.TempDir()
	db := private.Open(t, dir, nil)
	defer private.Close(t, db)
	risen := func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "JAY"))
		private.Must(t, err)
		return strings.Contains(string(text), "\nfeature 9: kept sums\n")
	}
	private.Must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"Customer"}}))
	if err := db.EnsureIndex(ctx, "Orders", jay.Index{Name: "x", Kind: "groups", Fields: []string{"id()"}}); err == nil || risen() {
		t.Errorf("got %v; it has risen: %v", err, risen())
	}
	orders(t, db)
	if !risen() {
		t.Error("it has not risen")
	}
}

// Ensure that two processes on a shared store add to the same groups.
func TestGroups_Shared(t *testing.T) {
	driver := &memory.Driver{Shared: true}
	open := func() *jay.DB { return private.Open(t, "db", &jay.Options{Engine: driver}) }
	a, b := open(), open()
	defer private.Close(t, a)
	defer private.Close(t, b)
	orders(t, a)
	var wg sync.WaitGroup
	for i, db := range []*jay.DB{a, b} {
		wg.Go(func() {
			for j := range 50 {
				put(t, db, fmt.Sprintf("orders/%d-%d", i, j), fmt.Sprintf(`{"Customer":"c%d","Total":%d}`, j%2, j))
			}
		})
	}
	wg.Wait()
	for _, db := range []*jay.DB{a, b} {
		private.Equal(t, fmt.Sprint(private.Rows(t, db, dashboard)), `[{"Customer":"c0","N":50,"T":1200} {"Customer":"c1","N":50,"T":1250}]`)
	}
}
