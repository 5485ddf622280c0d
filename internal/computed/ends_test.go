package computed_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
)

// ends is an index of two collections, whose groups have extremes and values of an order beside a count and a sum.
func ends() jay.Computed {
	members := []index.Member{{Name: "Who"}, {Name: "N"}, {Name: "At"}, {Name: "State", Expression: "S"}}
	return jay.Computed{
		Name: "Ends",
		Maps: []index.Map{
			{Collection: "Orders", Where: "not Hidden = true", Select: members},
			{Collection: "Returns", Select: []index.Member{{Name: "Who"}, {Name: "N", Expression: "0 - N"}, {Name: "At"}, {Name: "State", Expression: "S"}}},
		},
		Reduce: &index.Reduce{GroupBy: []string{"Who"}, Select: []index.Member{
			{Name: "Who"},
			{Name: "Count", Expression: "count()"},
			{Name: "Sum", Expression: "sum(N)"},
			{Name: "Span", Expression: "max(N) - min(N)"},
			{Name: "First", Expression: "first(State order by At)"},
			{Name: "Last", Expression: "last(State order by At)"},
		}},
	}
}

// wantEnds computes the results of ends from bodies, without the query language, in the order of the groups.
func wantEnds(bodies map[string]string) (rows []string) {
	type entry struct {
		n, at int
		dated bool
		state string
	}
	groups := make(map[string][]entry)
	for id, body := range bodies {
		var doc struct {
			Who, S string
			N      int
			At     *int
			Hidden bool
		}
		if err := json.Unmarshal([]byte(body), &doc); err != nil {
			panic(err)
		}
		e := entry{n: doc.N, state: doc.S, dated: doc.At != nil}
		if e.dated {
			e.at = *doc.At
		}
		if strings.HasPrefix(id, "returns") {
			e.n = -e.n
		} else if doc.Hidden {
			continue
		}
		groups[doc.Who] = append(groups[doc.Who], e)
	}
	for _, who := range slices.Sorted(func(yield func(string) bool) {
		for who := range groups {
			if !yield(who) {
				return
			}
		}
	}) {
		sum, least, most := 0, 1<<30, -1<<30
		var dated []entry
		for _, e := range groups[who] {
			sum, least, most = sum+e.n, min(least, e.n), max(most, e.n)
			if e.dated {
				dated = append(dated, e)
			}
		}
		first, last := "null", "null"
		if len(dated) > 0 {
			slices.SortFunc(dated, func(a, b entry) int {
				if a.at != b.at {
					return a.at - b.at
				}
				return strings.Compare(a.state, b.state)
			})
			first, last = `"`+dated[0].state+`"`, `"`+dated[len(dated)-1].state+`"`
		}
		rows = append(rows, fmt.Sprintf(`{"Who":%q,"Count":%d,"Sum":%d,"Span":%d,"First":%s,"Last":%s}`, who, len(groups[who]), sum, most-least, first, last))
	}
	return rows
}

// compareEnds compares the answers with those of the model, by the parts of the index and without them, with conditions of each kind.
func compareEnds(t testing.TB, from interface {
	RQL(string, map[string]any) (jay.Query[jay.Row], error)
}, bodies map[string]string) {
	t.Helper()
	all := wantEnds(bodies)
	for where, wanted := range map[string]func(row string) bool{
		"":                           func(string) bool { return true },
		"where Who = 'w1' ":          func(row string) bool { return strings.Contains(row, `"Who":"w1"`) },
		"where Who in ('w0', 'w2') ": func(row string) bool { return !strings.Contains(row, `"Who":"w1"`) },
		"where startsWith(Who, 'w') and Count > 2": func(row string) bool {
			return !strings.Contains(row, `"Count":1,`) && !strings.Contains(row, `"Count":2,`)
		},
		"where Last = 'b' ": func(row string) bool { return strings.Contains(row, `"Last":"b"`) },
	} {
		var want []string
		for _, row := range all {
			if wanted(row) {
				want = append(want, row)
			}
		}
		for _, how := range []string{"", "use no index "} {
			text := "from index 'Ends' " + how + where + " order by Who"
			q, err := from.RQL(text, nil)
			jaytest.Must(t, err)
			rows, err := q.All(t.Context())
			jaytest.Must(t, err)
			var got []string
			for _, row := range rows {
				got = append(got, string(row.JSON))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s:\ngot  %v\nwant %v", text, got, want)
			}
		}
	}
}

// Ensure that after random histories of writes, deletions, transactions, expiry and replacements extremes and values of an order are those of all
// bodies, by the parts of the index, which answer without a scan, and without them.
func TestComputed_Ends_History(t *testing.T) {
	ctx := t.Context()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 174))
	h := begin(t, ends())
	body := func() string {
		at := fmt.Sprintf(`,"At":%d`, r.IntN(4))
		if r.IntN(5) == 0 {
			at = ""
		}
		return fmt.Sprintf(`{"Who":"w%d","N":%d,"S":%q,"Hidden":%v%s}`, r.IntN(3), r.IntN(9)-4, []string{"a", "b", "c"}[r.IntN(3)], r.IntN(4) == 0, at)
	}
	steps := 200
	if testing.Short() {
		steps = 70
	}
	for step := range steps {
		id := fmt.Sprint([]string{"orders/", "returns/"}[r.IntN(2)], r.IntN(60))
		in := jay.InCollection(map[byte]string{'o': "Orders", 'r': "Returns"}[id[0]])
		text := body()
		switch r.IntN(7) {
		case 0:
			h.remove(id)
		case 1:
			h.expire(id, text, in)
		case 2:
			h.transact(id, text, in, func(tx *jay.Tx) { compareEnds(t, tx, h.bodies) })
		case 3:
			c := ends()
			if r.IntN(2) == 0 {
				c.Reduce.Select = c.Reduce.Select[:4]
				jaytest.Must(t, jay.ComputedOf(h.db).Ensure(ctx, c, jay.ReplaceIndex()))
			}
			jaytest.Must(t, jay.ComputedOf(h.db).Ensure(ctx, ends(), jay.ReplaceIndex()))
		default:
			for range 1 + r.IntN(40) { // more than are walked over before the others are jumped over
				h.put(id, text, in)
				text = body()
				id = fmt.Sprint(id[:strings.IndexByte(id, '/')+1], r.IntN(60))
			}
		}
		compareEnds(t, h.db, h.bodies)
		if t.Failed() {
			t.Fatalf("after step %d", step)
		}
		if _, err := jay.QueryIndex[json.RawMessage](h.db, "Ends").NoScan().All(ctx); err != nil {
			t.Fatalf("after step %d: %v", step, err)
		}
	}
	jaytest.Verify(t, h.db)
	jaytest.Must(t, checks.Indexes(h.db))
}

// Ensure which parts an index has for functions that no sum keeps, and which declarations have none, with the reason.
func TestComputed_Ends_Parts(t *testing.T) {
	ctx, db := t.Context(), jaytest.Memory(t, nil)
	reduced := func(each string, expressions ...string) jay.Computed {
		c := jay.Computed{Name: "i", Maps: []index.Map{{Collection: "A", Select: []index.Member{{Name: "K"}, {Name: "V"}, {Name: "T", Expression: "T as date"}, {Name: "One", Expression: "1"}}}}}
		if each != "" {
			c.Maps[0].Each, c.Maps[0].As = each, "line"
		}
		c.Reduce = &index.Reduce{GroupBy: []string{"K"}, Select: []index.Member{{Name: "K"}}}
		for i, e := range expressions {
			c.Reduce.Select = append(c.Reduce.Select, index.Member{Name: fmt.Sprint("r", i), Expression: e})
		}
		return c
	}
	tests := []struct {
		of    jay.Computed
		parts string
		why   string
	}{
		{reduced("", "count()", "max(V)"), "groups[K] [K V]", ""},
		{reduced("", "max(V)"), "[K V]", ""},
		{reduced("", "max(V)", "min(V)", "count(distinct V)"), "[K V]", ""},
		{reduced("", "max(V)", "last(V order by T)"), "groups[K] [K V] [K T as date V]", ""},
		{reduced("", "sum(V)", "first(V order by T)", "last(V order by T)"), "groups[K] [K T as date V]", ""},
		{reduced("Lines", "count()", "max(V)"), "groups[K] ends[K]", ""},
		{reduced("Lines", "max(V)", "min(V)"), "ends[K]", ""},
		{reduced("Lines", "max(V)", "last(V order by T)"), "groups[K] ends[K] ends[K]", ""},
		{reduced("", "count()", "max(One)"), "groups[K]", "a constant"},
		{reduced("", "count()", "last(V order by V)"), "groups[K]", "is twice"},
	}
	for _, test := range tests {
		jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, test.of, jay.ReplaceIndex()))
		list, err := jay.ComputedOf(db).List(ctx)
		jaytest.Must(t, err)
		var parts []string
		for _, p := range list[0].Parts {
			parts = append(parts, p.Kind+fmt.Sprint(p.Fields))
		}
		slices.SortFunc(parts, func(a, b string) int { return strings.Compare(b[:1], a[:1]) })
		if got := strings.Join(parts, " "); got != test.parts || !strings.Contains(strings.Join(list[0].Without, "; "), test.why) || (test.why == "") != (len(list[0].Without) == 0) {
			t.Errorf("%v: got the parts %s, want %s; without %v", test.of.Reduce.Select, got, test.parts, list[0].Without)
		}
	}
	strict := reduced("Lines", "max(V)")
	strict.Maps[0].Select[1].Expression, strict.Strict = "lower(line.V)", true
	if err := jay.ComputedOf(db).Ensure(ctx, strict, jay.ReplaceIndex()); !errors.Is(err, jay.ErrIndex) {
		t.Errorf("strict, and not kept: got %v", err)
	}
}

// ofLines is an index of elements, with a function of each kind.
func ofLines() jay.Computed {
	return jay.Computed{
		Name: "Lines",
		Maps: []index.Map{
			{Collection: "Orders", Each: "Lines", As: "line", Where: "line.N != 3", Select: []index.Member{{Name: "P", Expression: "line.P"}, {Name: "N", Expression: "line.N * 2"}, {Name: "At", Expression: "line.At"}}},
			{Collection: "Returns", Select: []index.Member{{Name: "P"}, {Name: "N", Expression: "0 - N"}, {Name: "At"}}},
		},
		Reduce: &index.Reduce{GroupBy: []string{"P"}, Select: []index.Member{
			{Name: "P"}, {Name: "Count", Expression: "count()"}, {Name: "Sum", Expression: "sum(N)"}, {Name: "Least", Expression: "min(N)"}, {Name: "Most", Expression: "max(N)"},
			{Name: "Kinds", Expression: "count(distinct N)"}, {Name: "First", Expression: "first(N order by At)"}, {Name: "Last", Expression: "last(N order by At)"},
		}},
	}
}

// Ensure that extremes, distinct values and values of an order are kept of the elements of arrays, and are those of a scan after random histories.
func TestComputed_Ends_Elements(t *testing.T) {
	ctx := t.Context()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 181))
	h := begin(t, ofLines())
	entry := func() string {
		text := fmt.Sprintf(`{"P":"p%d"`, r.IntN(3))
		for _, name := range []string{"N", "At"} {
			if r.IntN(6) > 0 {
				text += fmt.Sprintf(`,%q:%d`, name, r.IntN(7)-2)
			}
		}
		return text + "}"
	}
	compare := func(from interface {
		RQL(string, map[string]any) (jay.Query[jay.Row], error)
	}) {
		t.Helper()
		for _, where := range []string{"", " where P = 'p1'", " where P in ('p0', 'p2') and Most > 4", " where Kinds > 1"} {
			var rows [2]string
			for i, how := range []string{"", " use no index"} {
				q, err := from.RQL("from index 'Lines'"+how+where+" order by P", nil)
				jaytest.Must(t, err)
				if i == 0 {
					q = q.NoScan()
				}
				all, err := q.All(ctx)
				jaytest.Must(t, err)
				for _, row := range all {
					rows[i] += string(row.JSON)
				}
			}
			if rows[0] != rows[1] {
				t.Fatalf("%s:\ngot  %s\nwant %s", where, rows[0], rows[1])
			}
		}
	}
	steps := 120
	if testing.Short() {
		steps = 40
	}
	for range steps {
		id, in, text := fmt.Sprint("orders/", r.IntN(20)), jay.InCollection("Orders"), `{"Lines":[`
		for i := range r.IntN(5) {
			text += map[bool]string{true: ","}[i > 0] + entry()
		}
		if text += "]}"; r.IntN(3) == 0 {
			id, in, text = fmt.Sprint("returns/", r.IntN(20)), jay.InCollection("Returns"), entry()
		}
		switch r.IntN(7) {
		case 0:
			h.remove(id)
		case 1:
			h.expire(id, text, in)
		case 2:
			h.transact(id, text, in, func(tx *jay.Tx) { compare(tx) })
		case 3:
			c := ofLines()
			c.Reduce.Select = c.Reduce.Select[:5]
			jaytest.Must(t, jay.ComputedOf(h.db).Ensure(ctx, c, jay.ReplaceIndex()))
			jaytest.Must(t, jay.ComputedOf(h.db).Ensure(ctx, ofLines(), jay.ReplaceIndex()))
		default:
			h.put(id, text, in)
		}
		compare(h.db)
	}
	jaytest.Verify(t, h.db)
	jaytest.Must(t, checks.Indexes(h.db))
}

// Ensure what the answers of elements are, by hand.
func TestComputed_Ends_Elements_Meaning(t *testing.T) {
	ctx, db := t.Context(), jaytest.Memory(t, nil)
	jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, ofLines()))
	jaytest.Put(t, db, "orders/1", `{"Lines":[{"P":"a","N":1,"At":9},{"P":"a","N":5,"At":2},{"P":"a","N":3,"At":99},{"P":"b"}]}`, jay.InCollection("Orders"))
	jaytest.Put(t, db, "returns/1", `{"P":"a","N":2,"At":5}`, jay.InCollection("Returns"))
	want := `[{"P":"a","Count":3,"Sum":10,"Least":-2,"Most":10,"Kinds":3,"First":10,"Last":2} {"P":"b","Count":1,"Sum":0,"Least":null,"Most":null,"Kinds":0,"First":null,"Last":null}]`
	jaytest.Equal(t, fmt.Sprint(jaytest.Rows(t, db, "from index 'Lines' order by P")), want)
	jaytest.Must(t, db.Update(ctx, func(tx *jay.Tx) error { // an element that the map leaves out, and one that it does not
		if _, err := tx.Put(ctx, "orders/2", json.RawMessage(`{"Lines":[{"P":"b","N":3,"At":1},{"P":"b","N":4,"At":1}]}`), jay.InCollection("Orders")); err != nil {
			return err
		}
		q, err := tx.RQL("from index 'Lines' where P = 'b'", nil)
		jaytest.Must(t, err)
		rows, err := q.NoScan().All(ctx)
		jaytest.Must(t, err)
		jaytest.Equal(t, string(rows[0].JSON), `{"P":"b","Count":2,"Sum":8,"Least":8,"Most":8,"Kinds":1,"First":8,"Last":8}`)
		return nil
	}))
}

// Ensure that first and last along an index are those of the documents beside what else is asked for along it, in each direction, where there
// are so many entries that most are jumped over, and that an index in which the two fields run against each other is not used so.
func TestEnds_AlongIndexes(t *testing.T) {
	for _, fields := range [][]string{{"K", "T", "V"}, {"-K", "T", "V"}, {"K", "-T", "-V"}, {"K", "T", "-V"}, {"K", "V", "T"}} {
		db := jaytest.Memory(t, nil)
		jaytest.Must(t, db.EnsureIndex(t.Context(), "A", jay.Index{Name: "i", Fields: fields}))
		for i := range 400 {
			at := fmt.Sprintf(`,"T":%d`, i%3)
			if i%5 == 0 {
				at = ""
			}
			jaytest.Put(t, db, fmt.Sprint("a/", i), fmt.Sprintf(`{"K":%d,"V":%d%s}`, i%2, i*7%401, at), jay.InCollection("A"))
		}
		for _, columns := range []string{
			"first(V order by T) as f, last(V order by T) as l",
			"first(V order by T) as f, last(V order by T) as l, count(distinct T) as n",
			"last(V order by T) as l, max(T) as m, min(T) as k",
			"last(V order by T) as l, count() as n, sum(V) as s",
			"last(V order by T) as l, max(V) as m",
		} {
			for _, where := range []string{"", " where V > 100 and V < 300", " where K = 1", " where T < 2"} {
				for _, order := range []string{" order by K", " order by K desc"} {
					text := "from A%s group by K" + where + order + " select K, " + columns
					got, want := jaytest.Rows(t, db, fmt.Sprintf(text, "")), jaytest.Rows(t, db, fmt.Sprintf(text, " use no index"))
					if !slices.Equal(got, want) || len(got) == 0 {
						t.Errorf("%v: %s: got %v, want %v", fields, text, got, want)
					}
				}
			}
		}
		text := "from A%s select facet(K, first(V order by T), last(V order by T))"
		if got, want := jaytest.Rows(t, db, fmt.Sprintf(text, "")), jaytest.Rows(t, db, fmt.Sprintf(text, " use no index")); !slices.Equal(got, want) || !strings.Contains(got[0], `"First":`) {
			t.Errorf("%v: facets: got %v, want %v", fields, got, want)
		}
		q, err := db.RQL("from A group by K select K, first(V order by T)", nil)
		jaytest.Must(t, err)
		x, err := q.Explain(t.Context())
		jaytest.Must(t, err)
		if used := fields[1] == "-T" || fields[2] == "V"; used != strings.Contains(x.String(), "from the ends of each group") {
			t.Errorf("%v: %s", fields, x)
		}
	}
}

// Ensure that a condition on members of which the first is free narrows the walk over extremes, and that groups that the kept counts have beside
// are left out, and are no damage.
func TestComputed_Ends_Narrow(t *testing.T) {
	ctx, db := t.Context(), jaytest.Memory(t, nil)
	c := ends()
	c.Maps = c.Maps[:1]
	c.Reduce = &index.Reduce{GroupBy: []string{"Who", "State"}, Select: []index.Member{{Name: "Who"}, {Name: "State"}, {Name: "Count", Expression: "count()"}, {Name: "Most", Expression: "max(N)"}}}
	jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, c))
	for i := range 12 {
		jaytest.Put(t, db, fmt.Sprint("orders/", i), fmt.Sprintf(`{"Who":"w%d","S":"s%d","N":%d}`, i%2, i%3, i), jay.InCollection("Orders"))
	}
	for where, want := range map[string]string{
		"State = 's1'":                 `[{"Who":"w0","State":"s1","Count":2,"Most":10} {"Who":"w1","State":"s1","Count":2,"Most":7}]`,
		"State > 's1' and Who != 'w1'": `[{"Who":"w0","State":"s2","Count":2,"Most":8}]`,
		"State = 's9'":                 `[]`,
	} {
		q, err := db.RQL("from index 'Ends' where "+where+" order by Who", nil)
		jaytest.Must(t, err)
		rows, err := q.NoScan().All(ctx)
		jaytest.Must(t, err)
		var got []string
		for _, row := range rows {
			got = append(got, string(row.JSON))
		}
		jaytest.Equal(t, fmt.Sprint(got), want)
	}
}
