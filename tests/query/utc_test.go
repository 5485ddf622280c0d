package query_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/sample"
)

// Ensure that as utc answers what as date answers over documents whose texts have been given the
// offset that they lack, by a scan and by an index.
func TestUTC_LikeWithOffset(t *testing.T) {
	sample.OneGoroutine(t)
	for seed := range uint64(4) {
		r := spellings{rand.New(rand.NewPCG(seed, 21))}
		scan, indexed, whole := memory(t, nil), memory(t, nil), memory(t, nil)
		for i := range 150 {
			at := r.time()
			lacks := at.Format([]string{"2006-01-02T15:04:05.0000000", "2006-01-02 15:04:05", "2006-01-02t15:04:05.999999999"}[r.IntN(3)])
			text, other := lacks, strings.Replace(lacks, " ", "T", 1)+"Z"
			switch r.IntN(4) {
			case 0: // it has an offset, and keeps it
				text = at.In(time.FixedZone("", -7200)).Format(time.RFC3339Nano)
				other = text
			case 1:
				text = []string{"2026-01-31", "2026-02-30T00:00:00", "2026-01-31T00:00:00.", "x"}[r.IntN(4)]
				other = text
			}
			for db, at := range map[*jay.DB]string{scan: text, indexed: text, whole: other} {
				put(t, db, fmt.Sprintf("events/%03d", i), fmt.Sprintf(`{"N":%d,"At":%q}`, i%5, at), jay.InCollection("Events"))
			}
		}
		must(t, indexed.EnsureIndexes(ctx, "Events", []jay.Index{{Fields: []string{"At as utc"}}, {Fields: []string{"N", "-At as utc"}}, {Fields: []string{"At as date"}}, {Fields: []string{"At"}}}))
		must(t, checks.Indexes(indexed))
		for range 60 {
			pick := func(of ...string) string { return of[r.IntN(len(of))] }
			a, b := r.time().Format("2006-01-02T15:04:05.0000000"), r.time().Format("2006-01-02 15:04:05")
			where := pick("At as utc >= '"+a+"'", "At as utc between '"+a+"' and '"+b+"'", "N = 3 and At as utc < '"+b+"'", "not At as utc = '"+a+"'",
				"day(At as utc) = '"+a[:10]+"'", "day(At as utc, 'Europe/Zurich') in ('"+a[:10]+"', '"+b[:10]+"')", "exists(At as utc)")
			tail := pick("order by At as utc, id() select id()", "order by At as utc desc limit 9 select id()", "order by id() select id(), day(At as utc, 'Asia/Tokyo')", "select count()")
			rql := "from Events where " + where + " " + tail
			if at := strings.Index(tail, " limit"); at >= 0 { // limit stands last
				rql = "from Events where " + where + " order by At as utc desc, id() desc select id() limit 9"
			}
			answer := func(db *jay.DB, rql string) string {
				q, err := db.RQL(rql, nil)
				if err != nil {
					t.Fatalf("%s: %v", rql, err)
				}
				rows, err := q.All(ctx)
				must(t, err)
				var out []string
				for _, row := range rows {
					out = append(out, string(row.JSON))
				}
				return strings.ReplaceAll(strings.Join(out, " "), " as utc", "")
			}
			// As date needs the offset that as utc supplies, in the texts of the query, too.
			dated := strings.ReplaceAll(strings.ReplaceAll(rql, "(At as utc", "(At"), "exists(At", "exists(At as utc")
			dated = strings.ReplaceAll(strings.ReplaceAll(dated, "as utc", "as date"), a+"'", a+"Z'")
			dated = strings.ReplaceAll(dated, b+"'", strings.Replace(b, " ", "T", 1)+"Z'")
			want := answer(whole, dated)
			if got := answer(scan, rql); got != want {
				t.Fatalf("seed %d, %s:\ngot  %s\nwant %s", seed, rql, got, want)
			}
			if got := answer(indexed, rql); got != want {
				t.Fatalf("seed %d, %s, by an index:\ngot  %s\nwant %s", seed, rql, got, want)
			}
		}
	}
}

// Ensure that as utc uses an index that says so, and as date and plain text use none of those; that Explain, NoScan
// and UseIndex say it; and that text which the index does not have as it stands comes from the document.
func TestUTC_Index(t *testing.T) {
	db := memory(t, nil)
	for i, at := range []string{"2026-01-31T23:30:00.0000000", "2026-02-01 08:00:00", "2026-02-01T00:30:00+02:00", "2026-02-01T00:00:00.0000000Z"} {
		put(t, db, fmt.Sprint("logs/", i), fmt.Sprintf(`{"At":%q}`, at), jay.InCollection("Logs"))
	}
	since := jay.Ge("At as utc", "2026-01-31T23:00:00")
	_, err := db.Query("Logs").Where(since).NoScan().All(ctx)
	if err == nil || !strings.Contains(err.Error(), "'At as utc'") {
		t.Errorf("without an index: got %v, want one that names 'At as utc'", err)
	}
	must(t, db.EnsureIndex(ctx, "Logs", jay.Index{Fields: []string{"At AS  utc"}}))

	q, err := db.RQL("from Logs where At as utc >= '2026-01-31T23:00:00' order by At as utc desc select id(), At", nil)
	must(t, err)
	rows, err := q.All(ctx)
	must(t, err)
	var got []string
	for _, row := range rows {
		got = append(got, string(row.JSON))
	}
	equal(t, strings.Join(got, " "), `{"id()":"logs/1","At":"2026-02-01 08:00:00"} {"id()":"logs/3","At":"2026-02-01T00:00:00.0000000Z"} {"id()":"logs/0","At":"2026-01-31T23:30:00.0000000"}`)
	e, err := db.Query("Logs").Where(since).Explain(ctx)
	must(t, err)
	if text := fmt.Sprint(e); !strings.Contains(text, `index "At as utc", one range`) || !strings.Contains(text, "At as utc >= '2026-01-31T23:00:00.0000000Z'") {
		t.Errorf("Explain says %s", text)
	}
	for name, cond := range map[string]jay.Condition{"a date": jay.Ge("At as date", "2026-01-31T23:00:00Z"), "text": jay.Ge("At", "2026"), "a time": jay.Ge("At", time.Unix(0, 0))} {
		if _, err := db.Query("Logs").Where(cond).UseIndex("At as utc").All(ctx); !errors.Is(err, jay.ErrNoIndex) || !strings.Contains(err.Error(), "At as utc") {
			t.Errorf("%s: got %v, want an error: the index is not of these", name, err)
		}
	}
	if _, err := db.Query("Logs").Where(jay.Ge("At as utc", "tomorrow")).All(ctx); !errors.Is(err, jay.ErrQuery) {
		t.Errorf("got %v, want ErrQuery", err)
	}
	if _, err := db.Query("Logs").Where(jay.StartsWith("At as utc", "2026")).All(ctx); !errors.Is(err, jay.ErrQuery) {
		t.Errorf("got %v, want ErrQuery", err)
	}
}

// Ensure that a tag declares an index as utc on a text, and on no time.Time.
func TestUTC_Tag(t *testing.T) {
	type entry struct {
		ID   string
		At   string   `jay:"index,utc"`
		Seen []string `jay:"index=bySeen,utc,desc"`
	}
	db := memory(t, nil)
	entries := collectionOf[entry](t, db)
	declared, err := entries.DeclaredIndexes()
	must(t, err)
	text, err := json.Marshal(declared)
	must(t, err)
	equal(t, string(text), `[{"name":"At as utc","fields":["At as utc"]},{"name":"bySeen","fields":["-Seen as utc"]}]`)
	must(t, entries.EnsureIndexes(ctx))
	_, err = entries.Insert(ctx, &entry{ID: "entries/1", At: "2026-01-31T23:30:00", Seen: []string{"2026-01-31T23:30:00", "x"}})
	must(t, err)
	for _, cond := range []jay.Condition{jay.Eq("At as utc", "2026-02-01T01:30:00+02:00"), jay.Eq("Seen as utc", time.Date(2026, 1, 31, 23, 30, 0, 0, time.UTC)), jay.Eq("day(At as utc,'Europe/Zurich')", "2026-02-01")} {
		if n, err := entries.Query().Where(cond).Count(ctx); n != 1 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
	}

	type timed struct {
		ID string
		At time.Time `jay:"index,utc"`
	}
	if _, err := jay.CollectionOf[timed](db); !errors.Is(err, jay.ErrIndex) || !strings.Contains(err.Error(), "field At") {
		t.Errorf("got %v, want ErrIndex", err)
	}
	type first struct {
		ID string
		At string `jay:"utc,index"`
	}
	if _, err := jay.CollectionOf[first](db); !errors.Is(err, jay.ErrIndex) {
		t.Errorf("got %v, want ErrIndex", err)
	}
}
