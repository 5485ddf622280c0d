package query_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/sample"
)

// Ensure that conditions and orders on instants mean what time.Time means, for every
// spelling, with and without indexes, from the builder and from RQL, and page by page.
func TestDates_LikeTime(t *testing.T) {
	sample.OneGoroutine(t)
	for seed := range uint64(6) {
		r := spellings{rand.New(rand.NewPCG(seed, 15))}
		declared := [][]string{nil, {"At as date"}, {"-At as date", "N"}, {"At"}, {"N", "At as date"}}
		var dbs []*jay.DB
		for range declared {
			dbs = append(dbs, memory(t, nil))
		}
		all := fillDates(t, r, seed%2 == 0, dbs...)
		for i, fields := range declared {
			if fields != nil {
				must(t, dbs[i].EnsureIndex(ctx, "Events", jay.Index{Fields: fields}))
			}
			must(t, checks.Indexes(dbs[i]))
		}
		for range 25 {
			a, b := r.time(), r.time()
			in := func(zone int, at time.Time) time.Time { return at.In(time.FixedZone("", zone)) }
			conditions := []struct {
				rql  string
				cond jay.Condition
				test func(d dated) bool
			}{
				{"At = $a", jay.Eq("At", a), func(d dated) bool { return d.any(a.Equal) }},
				{"At as date != $a", jay.Ne("At", in(3600, a)), func(d dated) bool { return !d.any(a.Equal) }},
				{"At < $a", jay.Lt("At", a), func(d dated) bool { return d.any(a.After) }},
				{"At <= $a", jay.Le("At as date", a), func(d dated) bool { return d.any(func(x time.Time) bool { return !x.After(a) }) }},
				{"At > $a", jay.Gt("At", in(-7200, a)), func(d dated) bool { return d.any(a.Before) }},
				{"At as date >= $text", jay.Ge("At as date", a.Format(time.RFC3339Nano)), func(d dated) bool { return d.any(func(x time.Time) bool { return !x.Before(a) }) }},
				{"At between $a and $b", jay.Between("At", a, b), func(d dated) bool {
					return d.any(func(x time.Time) bool { return !x.Before(a) && !x.After(b) })
				}},
				{"At in ($a, $b)", jay.In("At", a, b), func(d dated) bool { return d.any(a.Equal) || d.any(b.Equal) }},
				{"At all in ($both)", jay.AllIn("At", a, b), func(d dated) bool { return d.any(a.Equal) && d.any(b.Equal) }},
				{"exists(At as date)", jay.Exists("At as date"), func(d dated) bool { return d.key(false) != "" }},
				{"At as date = null", jay.Eq("At as date", nil), func(d dated) bool { return slices.ContainsFunc(d.at, func(s spelling) bool { return s.null }) }},
				{"true", jay.Condition{}, func(dated) bool { return true }},
			}
			c := conditions[r.IntN(len(conditions))]
			descending := r.IntN(2) == 0
			order, rqlOrder := "At as date", " order by At as date"
			if descending {
				order, rqlOrder = "-At as date", " order by At as date desc"
			}
			var answers []dated
			for _, d := range all {
				if c.test(d) {
					answers = append(answers, d)
				}
			}
			slices.SortFunc(answers, func(x, y dated) int {
				n := strings.Compare(x.key(descending), y.key(descending))
				if n == 0 {
					n = strings.Compare(x.id, y.id)
				}
				if descending {
					return -n
				}
				return n
			})
			want := []string{}
			for _, d := range answers {
				want = append(want, d.id)
			}
			values := map[string]any{"$a": a, "$b": b, "$text": a.Format(time.RFC3339Nano), "$both": []time.Time{a, b}}
			params := map[string]any{}
			for name, value := range values {
				if strings.Contains(c.rql, name) && (name != "$b" || !strings.Contains(c.rql, "$both")) {
					params[name[1:]] = value
				}
			}
			for i, db := range dbs {
				q := db.Query("Events").Where(c.cond).OrderBy(order)
				what := fmt.Sprintf("seed %d, index %v, %s", seed, declared[i], q)
				docs, err := q.All(ctx)
				if got := idsOf(docs); err != nil || !slices.Equal(got, want) {
					t.Fatalf("%s:\ngot  %v, %v\nwant %v", what, got, err, want)
				}
				if n, err := db.Query("Events").Where(c.cond).Count(ctx); n != int64(len(want)) || err != nil {
					t.Fatalf("%s: counted %d, %v, want %d", what, n, err, len(want))
				}
				rql, err := db.RQL("from Events where "+c.rql+rqlOrder, params)
				must(t, err)
				rows, err := rql.All(ctx)
				var got []*jay.Document
				for _, row := range rows {
					got = append(got, row.Document)
				}
				if err != nil || !slices.Equal(idsOf(got), want) {
					t.Fatalf("%s: RQL %s:\ngot  %v, %v\nwant %v", what, rql, idsOf(got), err, want)
				}
				if again, err := db.RQL(rql.String(), nil); err != nil || again.String() != rql.String() {
					t.Fatalf("%s: %v, %v", rql, again, err)
				}
				paged := []string{}
				for cursor := ""; ; {
					page, err := q.Limit(1 + r.IntN(40)).After(cursor).Page(ctx)
					must(t, err)
					paged = append(paged, idsOf(page.Items)...)
					if cursor = page.Next; cursor == "" {
						break
					}
				}
				if !slices.Equal(paged, want) {
					t.Fatalf("%s: pages:\ngot  %v\nwant %v", what, paged, want)
				}
			}
		}
	}
}

// Ensure that no plan changes an answer: random conditions on dates and other fields,
// joined in any way, over indexes that mix both, are answered as by a scan.
func TestDates_Plans_LikeScan(t *testing.T) {
	sample.OneGoroutine(t)
	for seed := range uint64(5) {
		r := spellings{rand.New(rand.NewPCG(seed, 17))}
		scan, indexed := memory(t, nil), memory(t, nil)
		for i := range 200 {
			parts := []string{fmt.Sprintf(`"N":%d`, i%7)}
			for _, name := range []string{"At", "Done"} {
				if r.IntN(6) > 0 {
					parts = append(parts, fmt.Sprintf(`%q:%s`, name, r.value().json))
				}
			}
			if seed%2 == 0 {
				parts = append(parts, fmt.Sprintf(`"Seen":[%s,%s]`, r.value().json, r.value().json))
			}
			for _, db := range []*jay.DB{scan, indexed} {
				put(t, db, fmt.Sprintf("events/%03d", i), "{"+strings.Join(parts, ",")+"}", jay.InCollection("Events"))
			}
		}
		pick := func(of ...string) string { return of[r.IntN(len(of))] }
		for range 6 {
			var fields []string
			for _, f := range []string{"At as date", "Done as date", "N", "Seen as date", "At", "At as utc", "Seen as utc"} {
				if r.IntN(2) == 0 {
					fields = append(fields, pick("", "-")+f)
				}
			}
			ix := jay.Index{Name: fmt.Sprint(r.Int()), Fields: fields}
			if r.IntN(4) == 0 {
				ix.Where = pick("At as date", "At as utc") + " >= '2026-02-01T00:00:00Z'"
			}
			if len(fields) > 0 {
				must(t, indexed.EnsureIndex(ctx, "Events", ix))
			}
		}
		must(t, checks.Indexes(indexed))
		one := func() string {
			at := func() string { return "'" + r.time().In(time.FixedZone("", 3600)).Format(time.RFC3339Nano) + "'" }
			field := pick("At", "Done", "Seen") + pick(" as date", " as utc")
			switch r.IntN(8) {
			case 0:
				return fmt.Sprint("N = ", r.IntN(8))
			case 1:
				return field + " between " + at() + " and " + at()
			case 2:
				return field + pick(" in (", " all in (") + at() + ", null, " + at() + ")"
			case 3:
				return pick("month", "day", "year") + "(" + pick("At", "Done", "At as utc") + ") = '" + r.time().Format(pick("2006-01", "2006-01-02", "2006")) + "'"
			case 4:
				return "exact(" + pick("At", "Done") + " >= " + at() + ")"
			case 5:
				return pick("At as date", "At as utc") + " >= '2026-02-01T00:00:00Z'"
			}
			return field + pick(" = ", " < ", " <= ", " > ", " >= ", " != ") + at()
		}
		plans := map[string]bool{}
		for range 120 {
			where := pick("", "not ") + one()
			for range r.IntN(3) {
				where += pick(" and ", " and ", " or ") + one()
			}
			rql := "from Events where " + where
			switch r.IntN(6) {
			case 0:
				rql += " order by id() select id(), At, N"
			case 1:
				rql += " select min(" + pick("At as date", "At as utc") + ") as A, max(Done as date) as B, count() as C"
			case 2:
				rql = "from Events group by " + pick("At as date", "At as utc", "month(At)", "day(Done)", "day(At as utc)", "N") + " where " + where + " order by key() select key() as K, count(), min(At as date) as A"
			case 3:
				rql += " order by " + pick("At as date", "Done as date desc", "N, At as date", "At", "At as utc", "N, At as utc desc") + ", id() select id(), At, Done"
			case 4:
				rql += " order by " + pick("At as date desc", "Done as date", "Seen as date", "At as utc", "Seen as utc desc") + " limit 7"
			default:
				rql += " order by id()"
			}
			answers := func(db *jay.DB) (all []string) {
				q, err := db.RQL(rql, nil)
				if err != nil {
					t.Fatalf("%s: %v", rql, err)
				}
				rows, err := q.All(ctx)
				if err != nil {
					t.Fatalf("%s: %v", rql, err)
				}
				for _, row := range rows {
					if row.JSON != nil {
						all = append(all, string(row.JSON))
					} else {
						all = append(all, row.Document.ID())
					}
				}
				if db == indexed {
					e, err := q.Explain(ctx)
					must(t, err)
					plans[strings.Join(e.Plan, "; ")] = true
				}
				return all
			}
			if want, got := answers(scan), answers(indexed); !slices.Equal(got, want) {
				q, err := indexed.RQL(rql, nil)
				must(t, err)
				e, err := q.Explain(ctx)
				must(t, err)
				t.Fatalf("seed %d, %s\ngot  %v\nwant %v\n%s", seed, rql, got, want, e)
			}
		}
		if len(plans) < 10 {
			t.Errorf("seed %d: %d plans: too little was tried", seed, len(plans))
		}
	}
}

// spelling is a value of At as JSON, and the instant that it is.
type spelling struct {
	json string
	at   time.Time
	ok   bool // it is an instant
	null bool
}

// spellings makes values that collide: few instants in many spellings, and what is
// no instant.
type spellings struct{ *rand.Rand }

func (r spellings) time() time.Time {
	base := time.Date(2026, 1, 31, 23, 59, 59, 0, time.UTC)
	nanos := []int64{0, 5e8, 500_000_100, 500_000_123, 999_999_999, 1e9}
	return base.Add(time.Duration(r.IntN(4)*r.IntN(40)) * 13 * time.Hour).Add(time.Duration(nanos[r.IntN(len(nanos))]))
}

func (r spellings) value() spelling {
	switch n := r.IntN(20); {
	case n == 0:
		return spelling{json: "null", null: true}
	case n == 1: // no instant but as utc
		return spelling{json: `"` + r.time().Format([]string{"2006-01-02T15:04:05.0000000", "2006-01-02 15:04:05"}[r.IntN(2)]) + `"`}
	case n < 4:
		none := []string{`"2026-01-31"`, `"2026-01-31T23:59:59"`, `"2026-01-31 23:59:59Z"`, `"2026-02-30T00:00:00Z"`, `""`, `5`, `true`, `{"At":"2026-01-31T23:59:59Z"}`, `"9999-12-31T23:59:59-01:00"`}
		return spelling{json: none[r.IntN(len(none))]}
	case n == 4: // the leap second is the first one of the next day
		return spelling{json: `"2026-01-31T23:59:60.5Z"`, at: time.Date(2026, 2, 1, 0, 0, 0, 5e8, time.UTC), ok: true}
	}
	at := r.time()
	zones := []int{0, 0, 0, 7200, -3600, 20700, 86340, -86340}
	text := at.In(time.FixedZone("", zones[r.IntN(len(zones))])).Format(time.RFC3339Nano)
	switch r.IntN(4) {
	case 0: // as Jay writes it
		layout := "2006-01-02T15:04:05.0000000Z"
		if at.Nanosecond()%100 != 0 {
			layout = "2006-01-02T15:04:05.000000000Z"
		}
		text = at.Format(layout)
	case 1: // digits of a picosecond, which are cut off
		text = at.Format("2006-01-02T15:04:05.000000000") + "789Z"
	case 2:
		text = strings.ToLower(text)
	}
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	if r.IntN(8) == 0 { // JSON may escape what it need not
		raw = []byte(strings.Replace(string(raw), ":", `\u003a`, 1))
	}
	return spelling{json: string(raw), at: at, ok: true}
}

// dated is a document of the tests, as the model has it.
type dated struct {
	id  string
	at  []spelling // several if it is a list
	raw string
}

// least and greatest are what an order ascending and descending takes of a document:
// missing, null, or an instant, which is turned into text that sorts so.
func (d dated) key(descending bool) string {
	best := ""
	for _, s := range d.at {
		key := ""
		switch {
		case s.null:
			key = "null"[:1]
		case s.ok:
			key = "t" + s.at.UTC().Format("2006-01-02T15:04:05.000000000")
		}
		if key != "" && (best == "" || (key < best) != descending) {
			best = key
		}
	}
	return best
}

func (d dated) any(test func(time.Time) bool) bool {
	return slices.ContainsFunc(d.at, func(s spelling) bool { return s.ok && test(s.at) })
}

// fillDates makes Events with random spellings in a database.
func fillDates(t *testing.T, r spellings, lists bool, dbs ...*jay.DB) []dated {
	t.Helper()
	var all []dated
	for i := range 150 {
		d := dated{id: fmt.Sprintf("events/%03d", i)}
		switch n := r.IntN(10); {
		case n == 0:
			d.raw = fmt.Sprintf(`{"N":%d}`, i)
		case n < 4 && lists:
			var texts []string
			for range r.IntN(4) {
				s := r.value()
				d.at, texts = append(d.at, s), append(texts, s.json)
			}
			d.raw = fmt.Sprintf(`{"N":%d,"At":[%s]}`, i, strings.Join(texts, ","))
		default:
			s := r.value()
			d.at, d.raw = []spelling{s}, fmt.Sprintf(`{"N":%d,"At":%s}`, i, s.json)
		}
		for _, db := range dbs {
			_, err := db.Put(ctx, d.id, json.RawMessage(d.raw), jay.InCollection("Events"))
			must(t, err)
		}
		all = append(all, d)
	}
	return all
}

func idsOf(docs []*jay.Document) []string {
	ids := []string{}
	for _, d := range docs {
		ids = append(ids, d.ID())
	}
	return ids
}

// Ensure that groups by instants and by parts of them, and min() and max(), are those
// of time.Time in UTC, whichever index answers.
func TestDates_Groups(t *testing.T) {
	for seed := range uint64(4) {
		r := spellings{rand.New(rand.NewPCG(seed, 16))}
		plain, indexed := memory(t, nil), memory(t, nil)
		all := fillDates(t, r, false, plain, indexed)
		must(t, indexed.EnsureIndex(ctx, "Events", jay.Index{Fields: []string{"At as date"}}))

		for field, layout := range map[string]string{
			"At as date": "", "year(At)": "2006", "month(At)": "2006-01", "day(At)": "2006-01-02", "hour(At)": "2006-01-02T15",
		} {
			want := map[string]int{}
			for _, d := range all {
				key := "null"
				for _, s := range d.at {
					switch {
					case s.ok && layout == "":
						key = spelt(s.at)
					case s.ok:
						key = `"` + s.at.UTC().Format(layout) + `"`
					}
				}
				want[key]++
			}
			column := field
			if layout == "" {
				column = "At"
			}
			for _, db := range []*jay.DB{plain, indexed} {
				rql, err := db.RQL("from Events group by "+field+" order by key() select "+column+" as Key, count()", nil)
				must(t, err)
				if reparsed, err := db.RQL(rql.String(), nil); err != nil || reparsed.String() != rql.String() {
					t.Fatalf("%s: %v, %v", rql, reparsed, err)
				}
				type group struct {
					Key   json.RawMessage
					Count int
				}
				built := jay.Select[group](db.Query("Events").GroupBy(field).OrderBy(field), column+" as Key", "count()")
				groups, err := built.All(ctx)
				must(t, err)
				rows, err := rql.All(ctx)
				must(t, err)
				got, last := map[string]int{}, ""
				for i, g := range groups {
					got[string(g.Key)] = g.Count
					var row group
					must(t, json.Unmarshal(rows[i].JSON, &row))
					if string(row.Key) != string(g.Key) || row.Count != g.Count {
						t.Errorf("%s: builder %s, RQL %s", field, g.Key, row.Key)
					}
					if key := string(g.Key); key != "null" && strings.TrimSuffix(key, `Z"`) < strings.TrimSuffix(last, `Z"`) {
						t.Errorf("%s: %s after %s", field, key, last)
					} else if key != "null" {
						last = key
					}
				}
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("seed %d, %s:\ngot  %v\nwant %v", seed, field, got, want)
				}
			}
		}

		var first, last time.Time
		for _, d := range all {
			for _, s := range d.at {
				if s.ok && (first.IsZero() || s.at.Before(first)) {
					first = s.at
				}
				if s.ok && s.at.After(last) {
					last = s.at
				}
			}
		}
		for _, db := range []*jay.DB{plain, indexed} {
			rql, err := db.RQL("from Events where At as date != null select min(At as date) as First, max(At as date) as Last", nil)
			must(t, err)
			row, err := rql.First(ctx)
			must(t, err)
			if want := `{"First":` + spelt(first) + `,"Last":` + spelt(last) + `}`; string(row.JSON) != want {
				t.Errorf("got %s, want %s", row.JSON, want)
			}
		}
	}
}

// Ensure that an index of text answers no condition on instants, and the reverse.
func TestDates_Plan_KindsOfIndex(t *testing.T) {
	db := memory(t, nil)
	r := spellings{rand.New(rand.NewPCG(9, 9))}
	fillDates(t, r, false, db)
	must(t, db.EnsureIndex(ctx, "Events", jay.Index{Name: "text", Fields: []string{"At"}}))
	usesOf := func(rql string) string {
		t.Helper()
		q, err := db.RQL(rql, nil)
		must(t, err)
		e, err := q.Explain(ctx)
		must(t, err)
		return e.Plan[0]
	}
	const instant, text = "from Events where At as date >= '2026-02-01T00:00:00Z'", "from Events where At >= '2026-02-01T00:00:00Z'"
	if plan := usesOf(instant); plan != "scan Events" {
		t.Errorf("an index of text for instants: %s", plan)
	}
	if plan := usesOf("from Events order by At as date"); plan != "scan Events" {
		t.Errorf("an index of text for an order of instants: %s", plan)
	}
	q, err := db.RQL(instant, nil)
	must(t, err)
	e, err := q.Explain(ctx)
	must(t, err)
	if e.Suggestion == nil || fmt.Sprint(e.Suggestion.Fields) != "[At as date]" || !strings.Contains(e.String(), "jay index create Events 'At as date'") {
		t.Errorf("suggestion: %s", e)
	}
	must(t, db.EnsureIndex(ctx, "Events", jay.Index{Name: "instants", Fields: []string{"At as date"}}))
	if plan := usesOf(instant); plan != `index "instants", one range` {
		t.Errorf("instants: %s", plan)
	}
	if plan := usesOf(text); plan != `index "text", one range` {
		t.Errorf("text: %s", plan)
	}
	must(t, db.DropIndex(ctx, "Events", "text"))
	if plan := usesOf(text); plan != "scan Events" {
		t.Errorf("an index of instants for text: %s", plan)
	}
}

// spelt is how Jay writes a time.
func spelt(at time.Time) string {
	if at.Nanosecond()%100 != 0 {
		return at.UTC().Format(`"2006-01-02T15:04:05.000000000Z"`)
	}
	return at.UTC().Format(`"2006-01-02T15:04:05.0000000Z"`)
}
