package query_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/storage"
)

// scanned is a database of documents for scans: many parts, some of them of one long document.
func scanned(t *testing.T, documents int) *jay.DB {
	t.Helper()
	db := memory(t, nil)
	var batch jay.Batch
	for i := range documents {
		text := "short"
		if i%97 == 50 {
			text = strings.Repeat("long ", 200) // longer than a part: see TestMain
		}
		batch.Put(scannedID(i), fmt.Appendf(nil, `{"n":%d,"g":"g%d","v":%d,"w":%q}`, i, (i+3)%7, (i*7919)%documents, text), jay.InCollection("Things"))
	}
	batch.Put(scannedID(7)+"/other", []byte(`{"n":4,"g":"other","v":-1}`), jay.InCollection("Others")) // among the IDs of the others
	_, err := db.Apply(ctx, &batch)
	must(t, err)
	return db
}

func scannedID(i int) string { return fmt.Sprintf("things/%05d", i) }

// Ensure that a scan that several goroutines look at answers as one goroutine would: in the order of IDs, with groups in the order of their first
// documents, and with equal documents of an order in the order of their IDs; also while others use the processors.
func TestScan_OnSeveralGoroutines(t *testing.T) {
	t.Parallel()
	const documents = 2000
	db := scanned(t, documents)
	var selected, sorted, groups []string
	for i := range documents {
		if i%3 == 1 {
			selected = append(selected, fmt.Sprintf(`{"n":%d}`, i))
		}
		sorted = append(sorted, fmt.Sprintf(`{"n":%d}`, i))
	}
	rest := slices.Clone(sorted[41:])
	slices.SortStableFunc(sorted, func(a, b string) int {
		var i, j int
		_, _ = fmt.Sscanf(a+b, `{"n":%d}{"n":%d}`, &i, &j)
		return i%5 - j%5
	})
	for first := range 7 {
		n, sum := 0, 0
		for i := first; i < documents; i += 7 {
			n, sum = n+1, sum+i
		}
		groups = append(groups, fmt.Sprintf(`{"g":"g%d","n":%d,"s":%d}`, (first+3)%7, n, sum))
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				for _, test := range []struct {
					rql  string
					want []string
				}{
					{"from Things where n % 3 = 1 select n", selected},
					{"from Things where n % 3 = 1 order by id() desc select n limit 20", reversed(selected)[:20]},
					{"from Things where n % 3 = 1 select n limit 40, 50", selected[40:90]},
					{"from Things where n % 3 = 1 select count() as c", []string{fmt.Sprintf(`{"c":%d}`, len(selected))}},
					{"from Things order by n % 5 select n limit 30", sorted[:30]},
					{"from Things order by n % 5 select n limit 900, 30", sorted[900:930]},
					{"from Things order by n % 5 select n", sorted},
					{"from Things order by n % 5 desc select n limit 30", reversed(sorted)[:30]},
					{"from Things where n > 40 select n limit 6, 900", rest[6:906]},
					{"from Things group by g select g, count() as n, sum(n) as s", groups},
					{"from Things select min(v) as least, max(v) as most", []string{fmt.Sprintf(`{"least":0,"most":%d}`, documents-1)}},
				} {
					if got := rows(t, db, test.rql); !slices.Equal(got, test.want) {
						t.Errorf("%s: %d rows, %.200q, want %d, %.200q", test.rql, len(got), got, len(test.want), test.want)
					}
				}
			}
		})
	}
	wg.Wait()
}

func reversed(list []string) []string {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}

// Ensure that a transaction's own documents are in the answers of a scan as it left them.
func TestScan_OfTransaction(t *testing.T) {
	t.Parallel()
	db := scanned(t, 400)
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		must(t, tx.Delete(ctx, scannedID(101)))
		_, err := tx.Put(ctx, scannedID(102), []byte(`{"n":1000,"g":"own"}`), jay.InCollection("Things"))
		must(t, err)
		for rql, want := range map[string]string{
			"from Things where n >= 100 select count() as c": `[{"c":299}]`,
			"from Things where n > 398 select n":             `[{"n":399} {"n":1000}]`,
			"from Things order by n desc select n limit 2":   `[{"n":1000} {"n":399}]`,
			"from Things group by g select g, count() as c":  `[{"g":"g3","c":58} {"g":"g4","c":57} {"g":"g5","c":57} {"g":"g6","c":56} {"g":"g0","c":56} {"g":"g1","c":57} {"g":"g2","c":57} {"g":"own","c":1}]`,
		} {
			q, err := tx.RQL(rql, nil)
			must(t, err)
			var got []string
			for row, err := range q.Iter(ctx) {
				must(t, err)
				got = append(got, string(row.JSON))
			}
			equal(t, fmt.Sprint(got), want)
		}
		return nil
	}))
}

// Ensure that a scan returns what lies before a damaged document, and then the error that names it.
func TestScan_Damaged(t *testing.T) {
	t.Parallel()
	db := scanned(t, 600)
	key := []byte("d" + scannedID(500) + "\x00")
	engine := checks.Engine(db)
	value, closer, err := engine.Get(key)
	must(t, err)
	record := bytes.Clone(value)
	must(t, closer.Close())
	set := func(record []byte) {
		must(t, engine.Update(ctx, true, func(tx storage.Tx) error {
			tx.Set(key, record, nil)
			return nil
		}))
	}
	set([]byte{0xff, 0xff, 0xff})
	defer set(record)
	q, err := db.RQL("from Things where n >= 100 select n", nil)
	must(t, err)
	n, failed := 0, error(nil)
	for _, err := range q.Iter(ctx) {
		if failed = err; err == nil {
			n++
		}
	}
	equal(t, n, 400)
	for _, rql := range []string{"", "from Things where n >= 100 select count() as c", "from Things group by g select g, count() as c", "from Things order by v select n limit 3"} {
		if rql != "" {
			failed = rowsError(t, db, ctx, rql)
		}
		if !errors.Is(failed, jay.ErrCorrupt) || !strings.Contains(failed.Error(), scannedID(500)) {
			t.Errorf("%q: %v", rql, failed)
		}
	}
}

func rowsError(t *testing.T, db *jay.DB, ctx context.Context, rql string) (failed error) {
	t.Helper()
	q, err := db.RQL(rql, nil)
	must(t, err)
	for _, err := range q.Iter(ctx) {
		failed = err
	}
	return failed
}

// Ensure that a scan ends when its context does, and when the database is closed, and that groups beyond their memory are refused.
func TestScan_Ends(t *testing.T) {
	t.Parallel()
	db := memory(t, &jay.Options{MaxQueryBytes: 64 << 10})
	var batch jay.Batch
	for i := range 1000 {
		batch.Put(scannedID(i), fmt.Appendf(nil, `{"n":%d}`, i), jay.InCollection("Things"))
	}
	_, err := db.Apply(ctx, &batch)
	must(t, err)
	if err := rowsError(t, db, ctx, "from Things group by n select n, count() as c"); !errors.Is(err, jay.ErrQuery) || !strings.Contains(err.Error(), "bytes of groups") {
		t.Errorf("groups beyond their memory: %v", err)
	}
	for _, rql := range []string{"from Things group by w select w, count() as c", "from Things where n < 5 select count() as c", "from Things where n % 2 = 0 select n"} {
		cancelled, cancel := context.WithCancel(ctx)
		q, err := db.RQL(rql, nil)
		must(t, err)
		n := 0
		for _, err = range q.Iter(cancelled) {
			if n++; n == 50 {
				cancel()
			}
		}
		cancel()
		if n > 5 && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %d rows, %v", rql, n, err)
		}
		if err := rowsError(t, db, cancelled, rql); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled: %v", rql, err)
		}
	}
	q, err := db.RQL("from Things where n % 2 = 0 select n", nil)
	must(t, err)
	n := 0
	for _, err = range q.Iter(ctx) {
		if n++; n == 50 {
			must(t, db.Close())
		}
	}
	if !errors.Is(err, jay.ErrClosed) || n > 60 {
		t.Errorf("closed: %d rows, %v", n, err)
	}
}

// Ensure that a scan with a limit looks at a bounded number of documents more than it needs.
func TestScan_ReadsAhead(t *testing.T) {
	t.Parallel()
	db := scanned(t, 2000)
	q, err := db.RQL("from Things where n > 600 limit 1", nil)
	must(t, err)
	report, err := q.Explain(ctx)
	must(t, err)
	const bytesOfDocument = 80 // at least, with ID and metadata
	if most := int64(602 + knobs.ScanParts*(knobs.ScanPartBytes/bytesOfDocument+1)); report.Documents <= 602 || report.Documents > most {
		t.Errorf("looked at %d documents, want more than 602, as parts are, and up to %d", report.Documents, most)
	}
}

// Ensure that groups that one goroutine can make are made, however large those of a part are, that their memory is that of one goroutine, and that the error of
// groups that are too large names the document.
func TestScan_LargeGroups(t *testing.T) {
	defer func(bytes int) { knobs.ScanPartBytes = bytes }(knobs.ScanPartBytes) // so this one is not parallel
	db := memory(t, &jay.Options{MaxQueryBytes: 64 << 10})
	var batch jay.Batch
	for i := range 300 {
		w := "a"
		if 60 <= i && i < 70 {
			w = strings.Repeat("z", 100<<10) // loses against "a", and is more than groups may have
		}
		batch.Put(scannedID(i), fmt.Appendf(nil, `{"n":%d,"w":%q,"s":"s%d"}`, i, w, i/100), jay.InCollection("Things"))
	}
	_, err := db.Apply(ctx, &batch)
	must(t, err)
	for i := range 10 {
		knobs.ScanPartBytes = []int{300, 256 << 10}[i%2] // long documents, and such as are copied
		for rql, want := range map[string]string{
			"from Things select min(w) as w, count() as c":            `[{"w":"a","c":300}]`,
			"from Things select first(w order by n) as w":             `[{"w":"a"}]`,
			"from Things group by s select s, min(w) as w":            `[{"s":"s0","w":"a"} {"s":"s1","w":"a"} {"s":"s2","w":"a"}]`,
			"from Things group by s select s, count(distinct n) as c": `[{"s":"s0","c":100} {"s":"s1","c":100} {"s":"s2","c":100}]`,
		} {
			equal(t, fmt.Sprint(rows(t, db, rql)), want)
		}
		err := rowsError(t, db, ctx, "from Things select max(w) as w")
		if !errors.Is(err, jay.ErrQuery) || !strings.Contains(err.Error(), scannedID(60)) {
			t.Errorf("groups that are too large: %v", err)
		}
	}
}
