package query_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/plan"
	"github.com/jaydb/jay/internal/sample"
)

// scattered makes a database whose Notes are n notes whose At is in another order than their IDs, and indexes At and Kind. Kind is
// 1 in the fifty notes of the least At and the three of the greatest, else 0.
func scattered(t testing.TB, n int, opts *jay.Options, bytes func(kind int) int) *jay.DB {
	t.Helper()
	db := memory(t, opts)
	w, err := db.BulkInsert(nil)
	must(t, err)
	for i := range n {
		at, kind := i*7919%n, 0
		if at < 50 || at >= n-3 {
			kind = 1
		}
		_, err := w.Put(ctx, fmt.Sprintf("notes/%05d", i), []byte(fmt.Sprintf(`{"At":%d,"Kind":%d,"Seventh":%d,"Text":"%0*d"}`, at, kind, i%7, bytes(kind), i)), jay.InCollection("Notes"))
		must(t, err)
	}
	must(t, w.Close())
	must(t, db.EnsureIndexes(ctx, "Notes", []jay.Index{{Fields: []string{"At"}}, {Fields: []string{"Seventh", "At"}}}))
	return db
}

func small(int) int { return 100 }

// Ensure that planning counts an entry once, however often it goes on with an index: those of one with 300 and as many of one with more.
func TestPlan_CountsOnce(t *testing.T) {
	db := memory(t, nil)
	w, err := db.BulkInsert(nil)
	must(t, err)
	for i := range 3000 {
		_, err := w.Put(ctx, fmt.Sprintf("notes/%04d", i), fmt.Appendf(nil, `{"A":%d,"B":%d,"C":%d}`, i%10, i*1789%3000, i%20), jay.InCollection("Notes"))
		must(t, err)
	}
	must(t, w.Close())
	must(t, db.EnsureIndexes(ctx, "Notes", []jay.Index{{Fields: []string{"A"}}, {Fields: []string{"B"}}, {Fields: []string{"C"}}}))
	for text, most := range map[string]int64{
		"A = 3 and B >= 1000":            300 + 301 + 300, // the last ones are walked over
		"B >= 1000 and C in (3, 4)":      300 + 301 + 300, // two ranges of one index
		"B >= 1000 and (A = 3 or C = 4)": 300 + 150 + 450 + 450,
	} {
		q, err := db.RQL("from Notes where "+text, nil)
		must(t, err)
		e, err := q.Explain(ctx)
		must(t, err)
		if e.Keys > most || e.Keys < most/2 {
			t.Errorf("%s: %d keys were examined, want at most %d\n%s", text, e.Keys, most, e)
		}
	}
}

// Ensure that a range with most documents is answered by a scan, one with few by the index, and that Explain shows what
// both were expected to read; and that the scan is not chosen where it may not be, or an index reads no document.
func TestPlan_ScanIsCheaper(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	db := scattered(t, 8000, nil, small)
	for _, test := range []struct {
		text, plan, expected string
		documents            int64
	}{
		{"from Notes where At >= 4000", "scan Notes", "expected 8000 documents by scan Notes, and not at least ", 8000},
		{"from Notes group by Kind where At >= 4000 select Kind, count() as n", "scan Notes", "expected 8000 documents by scan Notes, and not at least ", 8000},
		{"from Notes where At >= 4000 order by Text limit 3", "scan Notes", "expected 8000 documents by scan Notes, and not at least ", 8000},
		{"from Notes where At >= 7300", `index "At", one range`, `expected 700 keys and 700 documents by index "At", one range, and not 8000 documents by scan Notes`, 700},
		{"from Notes where At >= 7900", `index "At", one range`, "", 100},
		{"from Notes where At >= 4000 limit 3", `index "At", one range`, "", 3},
		{"from Notes where At >= 4000 order by At", `index "At", one range`, "", 4000},
		{"from Notes where At >= 4000 select At", `index "At", one range`, "", 0},
		{"from Notes where At >= 4000 select count() as n", `index "At", one range`, "", 0},
		{"from Notes where At >= 4000 select max(At) as m", `index "At", one range`, "", 0},
		{"from Notes use index 'At' where At >= 4000", `index "At", one range, as the query asks`, "", 4000},
	} {
		q, err := db.RQL(test.text, nil)
		must(t, err)
		e, err := q.Explain(ctx)
		must(t, err)
		expected := slices.ContainsFunc(e.Plan, func(s string) bool { return strings.HasPrefix(s, cmp.Or(test.expected, "expected")) })
		first := e.Plan[0]
		if strings.Contains(first, "given up after") {
			first = e.Plan[1]
			e.Documents = min(e.Documents, test.documents+600) - 600 // looked up before the comparison
		}
		if first != test.plan || expected != (test.expected != "") || e.Documents > test.documents || e.Documents < test.documents*9/10 || e.Suggestion != nil {
			t.Errorf("%s: want %s, %q, %d documents\n%s", test.text, test.plan, test.expected, test.documents, e)
		}
	}
	// What the plan has met before the scan is neither missing nor there twice.
	for _, text := range []string{
		"where At >= 1000", "where At >= 1000 and Kind = 0", "where At >= 1000 select id(), Seventh", "group by Seventh where At >= 1000 select Seventh, count() as n, sum(Kind) as k",
		"where At >= 1000 order by Text limit 40", "where At >= 1000 select distinct Seventh", "where At >= 1000 and Kind = 0 select count() as n",
	} {
		q, err := db.RQL("from Notes "+text, nil)
		must(t, err)
		got, err := rowsOf(q)
		must(t, err)
		want, err := rowsOf(q.NoIndex())
		must(t, err)
		if !strings.Contains(text, "order by") {
			slices.Sort(got)
			slices.Sort(want)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d answers, and %d by the scan, or others", text, len(got), len(want))
		}
		n, err := q.Count(ctx)
		must(t, err)
		equal(t, int(n), len(want))
	}
	q := db.Query("Notes").Where(jay.Ge("At", 4000)).NoScan()
	e, err := q.Explain(ctx)
	must(t, err)
	equal(t, e.Plan[0], `index "At", one range`)
	n, err := db.Query("Notes").Where(jay.Ge("At", 4000)).Count(ctx)
	must(t, err)
	equal(t, n, 4000)
}

// Ensure that planning counts little beside a walk along an order that finds its answers soon, and more only when they are rare.
func TestPlan_FewAnswersInOrder(t *testing.T) {
	t.Parallel()
	db := scattered(t, 8000, nil, small)
	for text, most := range map[string]struct{ keys, documents int64 }{
		"Seventh >= 1 order by At limit 5":                  {64 + 8, 8},
		"Seventh >= 1 order by At limit 20":                 {80 + 26, 26},
		"Seventh >= 1 order by At limit 60":                 {256 + 75, 75},
		"Seventh between 1 and 4 order by At desc limit 40": {160 + 80, 80},
		"Seventh >= 1 and Kind = 1 order by At limit 40":    {160 + 60, 60},      // the first fifty are of the kind
		"Seventh >= 1 and Kind = 1 order by At limit 50":    {4000, 8000 + 1200}, // there are not as many: a scan
	} {
		q, err := db.RQL("from Notes where "+text, nil)
		must(t, err)
		e, err := q.Explain(ctx)
		must(t, err)
		if e.Keys > most.keys || e.Documents > most.documents {
			t.Errorf("%s: want at most %d keys and %d documents\n%s", text, most.keys, most.documents, e)
		}
		got, err := rowsOf(q)
		must(t, err)
		want, err := rowsOf(q.NoIndex())
		must(t, err)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// Ensure that a plan which walks along an order, and of which answers come more rarely than was expected, is given up before it has cost as much
// as the scan, where the sizes of all paths are known; and that one whose answers come as expected is not.
func TestPlan_RareAnswersInOrder(t *testing.T) {
	defer func(index uint64, documents int64) { plan.LeastIndex, plan.LeastDocuments = index, documents }(plan.LeastIndex, plan.LeastDocuments)
	plan.LeastIndex, plan.LeastDocuments = 1, 1
	db := scattered(t, 8000, nil, small)
	must(t, db.Compact(ctx))
	for text, want := range map[string]struct {
		walked int64 // along the order, at most
		scan   bool
	}{
		"Seventh >= 1 and endsWith(Text, '77') order by At limit 46": {1700, true}, // one in a hundred
		"Seventh >= 1 and endsWith(Text, '77') order by At limit 6":  {800, false},
		"Seventh >= 1 and endsWith(Text, '7') order by At limit 46":  {600, false},
	} {
		q, err := db.RQL("from Notes where "+text, nil)
		must(t, err)
		got, err := rowsOf(q)
		must(t, err)
		all, err := rowsOf(q.NoIndex())
		must(t, err)
		if !slices.Equal(got, all) {
			t.Errorf("%s: got %v, want %v", text, got, all)
		}
		e, err := q.Explain(ctx)
		must(t, err)
		if got := strings.Contains(e.Plan[0], "given up after"); got != want.scan || e.Keys > want.walked {
			t.Errorf("%s: given up: %v, want %v, after at most %d documents\n%s", text, got, want.scan, want.walked, e)
		}
	}
}

// Ensure that a plan that hoped to end early gives way to the scan once it has cost as much, and that the answers before
// and after it are those of the scan: none is missing, none comes twice.
func TestQuery_GivesUp(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	db := scattered(t, 8000, nil, small)
	sorted := func(list []string) []string {
		list = slices.Clone(list)
		slices.Sort(list)
		return list
	}
	for _, test := range []struct {
		text    string
		ordered bool
	}{
		{"where Kind = 1 order by At desc limit 10", true},
		{"where Kind = 1 order by At desc limit 10 offset 2", true},
		{"where Kind = 1 order by At desc limit 10 offset 5", true},
		{"where At >= 30 and Kind = 1 limit 60", false},
		{"where At >= 30 and Kind = 1 limit 60 offset 1", false},
		{"where Kind = 1 order by At desc select At, id() limit 30", true},
	} {
		q, err := db.RQL("from Notes "+test.text, nil)
		must(t, err)
		got, err := rowsOf(q)
		must(t, err)
		want, err := rowsOf(q.NoIndex())
		must(t, err)
		if !test.ordered && strings.Contains(test.text, "offset") {
			equal(t, len(got), len(want))
			equal(t, len(slices.Compact(sorted(got))), len(want))
		} else if !test.ordered {
			got, want = sorted(got), sorted(want)
		}
		if !slices.Equal(got, want) && (test.ordered || !strings.Contains(test.text, "offset")) {
			t.Errorf("%s: got %v, want %v", test.text, got, want)
		}
		e, err := q.Explain(ctx)
		must(t, err)
		if !strings.Contains(e.Plan[0], "given up after") || !strings.HasPrefix(e.Plan[1], "scan Notes") || e.Documents < 8000 || e.Documents > 16_000 {
			t.Errorf("%s: want a change to the scan\n%s", test.text, e)
		}
		if !test.ordered && e.Documents > 8700 {
			t.Errorf("%s: want the change as soon as the index is known to have too many entries\n%s", test.text, e)
		}
	}

	// The answers before the change go on to the next page, and those after it.
	q := db.Query("Notes").Where(jay.Eq("Kind", 1)).OrderBy("-At")
	var joined, want []string
	for doc, err := range q.NoIndex().Iter(ctx) {
		must(t, err)
		want = append(want, doc.ID())
	}
	for cursor := ""; ; {
		page, err := q.Limit(4).After(cursor).Page(ctx)
		must(t, err)
		for _, doc := range page.Items {
			joined = append(joined, doc.ID())
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if !slices.Equal(joined, want) {
		t.Errorf("pages joined: got %v, want %v", joined, want)
	}

	// A transaction that has written sees its own documents, whatever the plan.
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		_, err := tx.Put(ctx, "notes/new", []byte(`{"At":-1,"Kind":1}`), jay.InCollection("Notes"))
		must(t, err)
		must(t, tx.Delete(ctx, want[0]))
		found, err := tx.Query("Notes").Where(jay.Eq("Kind", 1)).OrderBy("-At").Limit(100).All(ctx)
		must(t, err)
		var ids []string
		for _, doc := range found {
			ids = append(ids, doc.ID())
		}
		if !slices.Equal(ids, append(slices.Clone(want[1:]), "notes/new")) {
			t.Errorf("in a transaction: got %v", ids)
		}
		return nil
	}))

	// Neither the scan nor what it must keep is allowed to replace the index where the query says so.
	_, err := db.Query("Notes").Where(jay.Eq("Kind", 1)).OrderBy("-At").Limit(60).NoScan().All(ctx)
	must(t, err)
	if _, err := db.Query("Notes").Where(jay.Eq("Kind", 1)).NoScan().All(ctx); !errors.Is(err, jay.ErrNoIndex) {
		t.Errorf("got %v, want ErrNoIndex", err)
	}
}

// Ensure that a plan goes on after all if the other one would have to sort answers that are too large for that, as
// they are larger than most documents.
func TestQuery_GivesUp_TooLarge(t *testing.T) {
	t.Parallel()
	db := scattered(t, 8000, &jay.Options{MaxQueryBytes: 30_000}, func(kind int) int { return 100 + 2000*kind })
	q := db.Query("Notes").Where(jay.Eq("Kind", 1)).OrderBy("-At").Limit(20)
	found, err := q.All(ctx)
	must(t, err)
	equal(t, len(found), 20)
	for i, doc := range found {
		want := fmt.Sprintf(`"At":%d,`, 49-(i-3))
		if i < 3 {
			want = fmt.Sprintf(`"At":%d,`, 7999-i)
		}
		if !strings.Contains(string(doc.Body()), want) {
			t.Errorf("answer %d: got %.40s, want %s", i, doc.Body(), want)
		}
	}
	e, err := q.Explain(ctx)
	must(t, err)
	if e.Plan[0] != `index "At", all of it, backwards` || e.Documents < 8500 {
		t.Errorf("want an index, and a scan on the way\n%s", e)
	}
	if _, err := q.NoIndex().All(ctx); !errors.Is(err, jay.ErrQuery) {
		t.Errorf("the scan: got %v, want ErrQuery", err)
	}
}
