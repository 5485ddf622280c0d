package query_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
)

// orders makes a database whose tables have 12,000 orders: At is in another order than their IDs, Serial in the same one.
func orders(t *testing.T) *jay.DB {
	t.Helper()
	db := memory(t, nil)
	w, err := db.BulkInsert(nil)
	must(t, err)
	const n = 12_000
	for i := range n {
		status := []string{"open", "paid", "sent", "sent", "sent", "sent", "sent", "sent", "sent", "late"}[i*7%10]
		body := fmt.Sprintf(`{"At":%d,"Serial":%d,"Status":%q,"Company":"companies/%d","Total":%d,"Text":%q}`, i*7919%n, i, status, i*31%600, i*104729%n, strings.Repeat(fmt.Sprintf("%x ", i*104729), 40))
		_, err := w.Put(ctx, fmt.Sprintf("orders/%05d", i), []byte(body), jay.InCollection("Orders"))
		must(t, err)
	}
	must(t, w.Close())
	must(t, db.EnsureIndexes(ctx, "Orders", []jay.Index{{Fields: []string{"At"}}, {Fields: []string{"Serial"}}, {Fields: []string{"Status", "-At"}}, {Fields: []string{"Company", "Total"}}}))
	must(t, db.Compact(ctx))
	return db
}

// Ensure that plans go by the sizes that the engine knows: large ranges are not counted, the path that costs least is taken, also where the documents of a
// larger one are neighbours, where a limit ends it, or where another index has all that is asked for; and that the answers are those of the scan.
func TestPlan_Sizes(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	db := orders(t)
	for _, test := range []struct {
		text, plan string
		keys       int64 // examined at most
	}{
		{"where Company = 'companies/7' and At >= 6000", `index "Company,Total", one range`, 100},
		{"where Status = 'sent' and At >= 11990", `index "Status,-At", one range`, 100},
		{"where At >= 9000 and Serial >= 8000", `index "Serial", one range`, 7200}, // and what is in At
		{"where At >= 6000 and Status in ('sent', 'paid')", "scan Orders", 600},
		{"where At >= 6000 and Text > '0' order by Serial desc limit 10", `index "Serial", all of it, backwards`, 200},
		{"where At >= 11900 and Text > '0' order by Serial desc limit 10", `index "At", one range`, 300},
		{"where Status = 'sent' and Serial >= 11000 limit 20", `index "Serial", one range`, 150},
		{"where At >= 0 and Text > '0' limit 30", "scan Orders", 100},
		{"where At >= 0 limit 60", "scan Orders", 100},
		{"where At >= 11500 limit 60", `index "At", one range`, 100},
		{"where Company = 'companies/7' and Company = 'companies/8' and Status in ('open', 'paid')", `index "Company,Total", 0 ranges`, 0},
		{"where Total >= 3000 select Company, Total", `index "Company,Total", all of it`, 12_300},
		{"group by Status where At >= 3000 and At < 11000 select Status, count() as n", `index "Status,-At", all of it`, 12_600},
	} {
		text := "from Orders " + test.text
		explained(t, db, text) // samples
		e := explained(t, db, text)
		plan := e.Plan[0]
		if strings.Contains(plan, "given up after") {
			plan = e.Plan[1]
		}
		if plan != test.plan || e.Keys > test.keys {
			t.Errorf("%s: want %s, at most %d keys\n%s", test.text, test.plan, test.keys, e)
		}
		q, err := db.RQL(text, nil)
		must(t, err)
		got, err := rowsOf(q)
		must(t, err)
		want, err := rowsOf(q.NoIndex())
		must(t, err)
		if strings.Contains(test.text, "limit") && !strings.Contains(test.text, "order by") {
			equal(t, len(got), len(want))
			continue
		}
		if !strings.Contains(test.text, "order by") {
			slices.Sort(got)
			slices.Sort(want)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d answers, and %d by the scan, or others", test.text, len(got), len(want))
		}
	}
	e := explained(t, db, "from Orders where At >= 9000 and Serial >= 8000")
	if !slices.ContainsFunc(e.Plan, func(s string) bool { return strings.HasPrefix(s, "expected about ") }) {
		t.Errorf("it does not say what was expected:\n%s", e)
	}

	// What was sampled is found out anew when the collection has changed.
	first := explained(t, db, "from Orders where At >= 6000 and Company >= 'companies/0'")
	w, err := db.BulkInsert(nil)
	must(t, err)
	for i := range 60_000 {
		_, err := w.Put(ctx, fmt.Sprintf("orders/x%05d", i), fmt.Appendf(nil, `{"At":1,"Company":"x","Text":%q}`, strings.Repeat("x", 300)), jay.InCollection("Orders"))
		must(t, err)
	}
	must(t, w.Close())
	must(t, db.Compact(ctx))
	then := explained(t, db, "from Orders where At >= 6000 and Company >= 'companies/0'")
	if first.Plan[0] != "scan Orders" || then.Plan[0] != `index "At", one range` {
		t.Errorf("before:\n%s\nafter:\n%s", first, then)
	}
}

// Ensure that a range which has grown since its size was found out misleads one plan, though the collection is as large as before; and that two
// conditions on an array are known apart.
func TestPlan_GrownRange(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	db := orders(t)
	const grown = "from Orders where Company = 'companies/7' and At >= 11000 and Text > ''"
	plan := func(text string) string {
		t.Helper()
		e := explained(t, db, text)
		if e.Returned == 0 {
			t.Errorf("%s: no answers", text)
		}
		return e.Plan[0]
	}
	const company = `index "Company,Total", one range`
	for range 2 {
		if got := plan(grown); got != company {
			t.Errorf("20 entries: got %s", got)
		}
	}
	w, err := db.BulkInsert(nil)
	must(t, err)
	for i := range 9000 {
		_, err := w.Put(ctx, fmt.Sprintf("orders/%05d", i), fmt.Appendf(nil, `{"At":%d,"Serial":%d,"Status":"x","Company":"companies/7","Total":%d,"Text":%q}`, i*7919%12_000, i, i, strings.Repeat(fmt.Sprintf("%x ", i*104729), 40)), jay.InCollection("Orders"))
		must(t, err)
	}
	must(t, w.Close())
	if got := plan(grown); got != company {
		t.Errorf("9,020 entries, of which nothing is known: got %s", got)
	}
	if got := plan(grown); got != `index "At", one range` {
		t.Errorf("9,020 entries, after a run: got %s", got)
	}
}

// Ensure that of two conditions on an array, of which an index binds one, both count: what satisfies them is rare, and not to be looked for along an order.
func TestPlan_TwoOfOneArray(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	db := memory(t, nil)
	w, err := db.BulkInsert(nil)
	must(t, err)
	const n = 12_000
	for i := range n {
		tags := fmt.Sprintf(`["t%d","u%d"]`, i%20, i*7919%n%40)
		_, err := w.Put(ctx, fmt.Sprintf("orders/%05d", i), fmt.Appendf(nil, `{"At":%d,"Tags":%s,"Text":%q}`, i*7919%n, tags, strings.Repeat(fmt.Sprintf("%x ", i*104729), 40)), jay.InCollection("Orders"))
		must(t, err)
	}
	must(t, w.Close())
	must(t, db.EnsureIndexes(ctx, "Orders", []jay.Index{{Fields: []string{"At"}}, {Fields: []string{"Tags"}}}))
	must(t, db.Compact(ctx))
	for text, want := range map[string]string{
		"where Tags = 't3' and Tags = 'u17' order by At limit 5": `index "Tags", one range`,
		"where Tags = 't3' order by At limit 2":                  `index "At", all of it`,
	} {
		explained(t, db, "from Orders "+text)
		if e := explained(t, db, "from Orders "+text); e.Plan[0] != want {
			t.Errorf("%s: want %s\n%s", text, want, e)
		}
	}
}
