package computed_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/standby"
)

// listing is an index of groups whose members are computed of their entries: of documents, or of the elements of an array.
func listing(elements bool) jay.Computed {
	c := jay.Computed{
		Name: "Listing",
		Maps: []index.Map{{Collection: "Orders", Select: []index.Member{{Name: "Product"}, {Name: "Who"}, {Name: "N"}, {Name: "Price"}}}},
		Reduce: &index.Reduce{GroupBy: []string{"Product"}, Select: []index.Member{
			{Name: "Product"},
			{Name: "Different", Expression: "list(distinct Who)"},
			{Name: "Text", Expression: "join(list(distinct if(N > 1, Who)), '+')"},
			{Name: "Some", Expression: "sum(if(N > 1, 1, 0))"},
			{Name: "Worth", Expression: "sum(N * Price)"},
			{Name: "Mean", Expression: "if(sum(N) = 0, null, sum(N * Price) / sum(N))"},
			{Name: "Any", Expression: "if(sum(if(N > 2, 1, 0)) > 0, true, false)"},
			{Name: "Dear", Expression: "if(sum(N) * 10 < sum(N * Price), true, false)"},
			{Name: "Most", Expression: "max(if(N < 3, N))"},
			{Name: "Least", Expression: "min(if(N > 0, N))"},
			{Name: "Count", Expression: "count()"},
		}},
	}
	if elements {
		m := &c.Maps[0]
		m.Each, m.As = "Lines", "line"
		for i := range m.Select {
			m.Select[i].Expression = "line." + m.Select[i].Name
		}
		return c
	}
	c.Reduce.Select = append(c.Reduce.Select, index.Member{Name: "Whole", Expression: "list(Who)"}, index.Member{Name: "Joined", Expression: "join(list(coalesce(Who, '-')), ', ')"})
	return c
}

// sold is an entry of the index.
type sold struct {
	Product, Who string // Who is missing if it is ""
	N, Price     int
}

func (s sold) json() string {
	who := ""
	if s.Who != "" {
		who = fmt.Sprintf(`"Who":%q,`, s.Who)
	}
	return fmt.Sprintf(`{"Product":%q,%s"N":%d,"Price":%d}`, s.Product, who, s.N, s.Price)
}

// listed computes what the index says of entries, without the query language.
func listed(all []sold, elements bool) (rows []string) {
	groups := make(map[string][]sold)
	for _, s := range all {
		groups[s.Product] = append(groups[s.Product], s)
	}
	text := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return string(raw)
	}
	for product, entries := range groups {
		slices.SortStableFunc(entries, func(a, b sold) int { return cmp.Compare(a.Who, b.Who) })
		who, dashed, some := []string{}, []string{}, []string{}
		n, worth, more, largest := 0, 0, 0, 0
		var most, least *int
		for _, s := range entries {
			if s.Who != "" {
				who, dashed = append(who, s.Who), append(dashed, s.Who)
			} else {
				dashed = append(dashed, "-")
			}
			if s.N > 1 {
				if more++; s.Who != "" {
					some = append(some, s.Who)
				}
			}
			if s.N < 3 && (most == nil || s.N > *most) {
				most = &s.N
			}
			if s.N > 0 && (least == nil || s.N < *least) {
				least = &s.N
			}
			n, worth, largest = n+s.N, worth+s.N*s.Price, max(largest, s.N)
		}
		slices.Sort(dashed)
		joined := "null"
		if some = slices.Compact(some); len(some) > 0 {
			joined = text(strings.Join(some, "+"))
		}
		mean := "null"
		if n > 0 {
			if worth*10%n != 0 {
				mean = fmt.Sprintf("~%.9f", float64(worth)/float64(n))
			} else {
				mean = text(json.Number(strings.TrimSuffix(fmt.Sprintf("%.1f", float64(worth)/float64(n)), ".0")))
			}
		}
		row := fmt.Sprintf(`{"Product":%s,"Different":%s,"Text":%s,"Some":%d,"Worth":%d,"Mean":%s,"Any":%v,"Dear":%v,"Most":%s,"Least":%s,"Count":%d`,
			text(product), text(slices.Compact(slices.Clone(who))), joined, more, worth, mean, largest > 2, n*10 < worth, text(most), text(least), len(entries))
		if !elements {
			row += fmt.Sprintf(`,"Whole":%s,"Joined":%s`, text(who), text(strings.Join(dashed, ", ")))
		}
		rows = append(rows, row+"}")
	}
	slices.Sort(rows)
	return rows
}

// Ensure that after random histories what is computed of the entries of groups is what it is of all bodies: kept and scanned, in transactions and outside,
// of documents and of elements.
func TestListed_History(t *testing.T) {
	for _, elements := range []bool{false, true} {
		seed := rand.Uint64()
		t.Logf("elements %v, seed %d", elements, seed)
		r := rand.New(rand.NewPCG(seed, 197))
		h := begin(t, listing(elements))
		all := make(map[string][]sold)
		one := func() sold {
			return sold{fmt.Sprint("p", r.IntN(3)), []string{"", "ann", "bob", "cid"}[r.IntN(4)], r.IntN(5), 10 * r.IntN(3)}
		}
		body := func(id string) string {
			if !elements {
				all[id] = []sold{one()}
				return all[id][0].json()
			}
			all[id] = nil
			var lines []string
			for range r.IntN(4) {
				s := one()
				all[id], lines = append(all[id], s), append(lines, s.json())
			}
			return `{"Lines":[` + strings.Join(lines, ",") + `]}`
		}
		check := func(from interface {
			RQL(string, map[string]any) (jay.Query[jay.Row], error)
		}) {
			t.Helper()
			var entries []sold
			for _, some := range all {
				entries = append(entries, some...)
			}
			want := listed(entries, elements)
			for _, how := range []string{"", " use no index"} {
				q, err := from.RQL("from index 'Listing'"+how, nil)
				jaytest.Must(t, err)
				rows, err := q.All(t.Context())
				jaytest.Must(t, err)
				var got []string
				for _, row := range rows {
					got = append(got, string(row.JSON))
				}
				if slices.Sort(got); !slices.EqualFunc(got, want, sameListing) {
					t.Errorf("%s: got\n%s\nwant\n%s", how, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
		}
		steps := 150
		if testing.Short() {
			steps = 50
		}
		for step := range steps {
			id := fmt.Sprint("orders/", r.IntN(12))
			text := body(id)
			switch r.IntN(6) {
			case 0:
				delete(all, id)
				h.remove(id)
			case 1:
				delete(all, id)
				h.expire(id, text, jay.InCollection("Orders"))
			case 2:
				h.transact(id, text, jay.InCollection("Orders"), func(tx *jay.Tx) { check(tx) })
			default:
				h.put(id, text, jay.InCollection("Orders"))
			}
			if check(h.db); t.Failed() {
				t.Fatalf("after step %d", step)
			}
		}
		checks.WaitIndexTasks(h.db)
		explained := strings.Join(explainOf(t, h.db, "from index 'Listing'"), "\n")
		for _, part := range []string{"kept counts and sums", "computed when asked, from the entries of each group: Different, Text"} {
			if !strings.Contains(explained, part) {
				t.Errorf("elements %v: no %q in\n%s", elements, part, explained)
			}
		}
		if _, err := jay.QueryIndex[json.RawMessage](h.db, "Listing").NoScan().All(t.Context()); err != nil {
			t.Errorf("elements %v: a scan: %v", elements, err)
		}
		jaytest.Verify(t, h.db)
	}
}

// sameListing compares two rows, of which the second one may have a quotient to nine digits.
func sameListing(got, want string) bool {
	before, rest, found := strings.Cut(want, `"Mean":~`)
	if !found {
		return got == want
	}
	number, rest, _ := strings.Cut(rest, ",")
	var mean, wanted float64
	gotNumber, gotRest, _ := strings.Cut(strings.TrimPrefix(got, before+`"Mean":`), ",")
	_, err := fmt.Sscan(gotNumber, &mean)
	_, err2 := fmt.Sscan(number, &wanted)
	return err == nil && err2 == nil && gotRest == rest && mean-wanted < 1e-8 && wanted-mean < 1e-8
}

// explainOf returns the steps of a query.
func explainOf(t testing.TB, db *jay.DB, text string) []string {
	t.Helper()
	q, err := db.RQL(text, nil)
	jaytest.Must(t, err)
	e, err := q.Explain(t.Context())
	jaytest.Must(t, err)
	return e.Plan
}

// Ensure that a query which does not ask for a list gathers none, so that elements, of which no index has all, are read from what is kept.
func TestListed_NotAsked(t *testing.T) {
	db := jaytest.Memory(t, nil)
	c := listing(true)
	c.Reduce.Select = append(c.Reduce.Select, index.Member{Name: "Whole", Expression: "list(Who)"})
	jaytest.Must(t, jay.ComputedOf(db).Ensure(t.Context(), c))
	jaytest.Put(t, db, "orders/1", `{"Lines":[{"Product":"p","Who":"b","N":1},{"Product":"p","Who":"a","N":2},{"Product":"p","Who":"b","N":1}]}`, jay.InCollection("Orders"))
	jaytest.Equal(t, fmt.Sprint(jaytest.Rows(t, db, "from index 'Listing' where Count > 2 select Product, Count")), `[{"Product":"p","Count":3}]`)
	jaytest.Equal(t, fmt.Sprint(jaytest.Rows(t, db, "from index 'Listing' where Whole = 'b' select Whole, Different")), `[{"Whole":["a","b","b"],"Different":["a","b"]}]`)
	jaytest.Equal(t, fmt.Sprint(jaytest.Rows(t, db, "from index 'Listing' where Some = 1 order by Worth select Product")), `[{"Product":"p"}]`)
	jaytest.Equal(t, fmt.Sprint(jaytest.Rows(t, db, "from index 'Listing' where if(Some * 2 = 2, 1, 0) = 1 select if(Count * 2 = 6, 'three', 'others') as N")), `[{"N":"three"}]`)
	if text := strings.Join(explainOf(t, db, "from index 'Listing' where Count > 2 select Product, Count"), "\n"); strings.Contains(text, "scan") || strings.Contains(text, "when asked") && !strings.Contains(text, "not kept") {
		t.Errorf("got %s", text)
	}
	counted, err := db.RQL("from index 'Listing' where Count > 2 order by Different", nil)
	jaytest.Must(t, err)
	n, err := counted.NoScan().Count(t.Context())
	jaytest.Must(t, err)
	jaytest.Equal(t, n, int64(1))
	q, err := db.RQL("from index 'Listing' select Product, Worth", nil)
	jaytest.Must(t, err)
	_, err = q.NoScan().All(t.Context())
	jaytest.Must(t, err)
	if _, err := jay.QueryIndex[json.RawMessage](db, "Listing").NoScan().All(t.Context()); !errors.Is(err, jay.ErrNoIndex) {
		t.Errorf("a list of elements: got %v", err)
	}
	c.Name, c.Strict = "Strict", true
	if err := jay.ComputedOf(db).Ensure(t.Context(), c); !errors.Is(err, jay.ErrIndex) {
		t.Errorf("strict: got %v", err)
	}
}

// Ensure that lists are bounded, and that the error names the index, the group and the bound.
func TestListed_Bound(t *testing.T) {
	db := jaytest.Memory(t, &jay.Options{MaxQueryBytes: 64 << 10})
	c := listing(false)
	jaytest.Must(t, jay.ComputedOf(db).Ensure(t.Context(), c))
	for i := range 600 {
		jaytest.Put(t, db, fmt.Sprint("orders/", i), fmt.Sprintf(`{"Product":"p","Who":"%0200d","N":1,"Price":1}`, i), jay.InCollection("Orders"))
	}
	for _, how := range []string{"", " use no index"} {
		q, err := db.RQL("from index 'listing'"+how, nil)
		jaytest.Must(t, err)
		_, err = q.All(t.Context())
		var large *query.ListError
		if !errors.As(err, &large) || !errors.Is(err, jay.ErrQuery) || large.Index != "Listing" || large.Group != `["p"]` || large.Limit != 64<<10 || large.What != "bytes" {
			t.Errorf("%s: got %v", how, err)
		}
	}
	jaytest.Equal(t, fmt.Sprint(jaytest.Rows(t, db, "from index 'Listing' select Product, Count")), `[{"Product":"p","Count":600}]`)
}

// Ensure that a backup that is restored, a repaired copy, a renamed collection and a standby have what is computed of entries, and go on.
func TestListed_Meetings(t *testing.T) {
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "db")
	fill := func(db *jay.DB, from int) {
		for i := range 6 {
			jaytest.Put(t, db, fmt.Sprint("orders/", from+i), sold{fmt.Sprint("p", i%2), fmt.Sprint("w", i%3), i, 10}.json(), jay.InCollection("Orders"))
		}
	}
	lists := func(db *jay.DB) string {
		return strings.Join(jaytest.Rows(t, db, "from index 'Listing' order by Product select Product, Whole, Text"), " ")
	}
	const once = `{"Product":"p0","Whole":["w0","w1","w2"],"Text":"w1+w2"} {"Product":"p1","Whole":["w0","w1","w2"],"Text":"w0+w2"}`
	const twice = `{"Product":"p0","Whole":["w0","w0","w1","w1","w2","w2"],"Text":"w1+w2"} {"Product":"p1","Whole":["w0","w0","w1","w1","w2","w2"],"Text":"w0+w2"}`
	db := jaytest.Open(t, dir, nil)
	fill(db, 0)
	jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, listing(false)))
	jaytest.Equal(t, lists(db), once)
	for _, copied := range copiesOf(t, db, dir) {
		db := jaytest.Open(t, copied, nil)
		jaytest.Equal(t, lists(db), once)
		fill(db, 10)
		jaytest.Equal(t, lists(db), twice)
		_, err := db.RenameCollection(ctx, "Orders", "Sales")
		jaytest.Must(t, err)
		checks.WaitIndexTasks(db)
		jaytest.Equal(t, lists(db), twice)
		jaytest.Verify(t, db)
		jaytest.Close(t, db)
	}
}

// Ensure that a standby has what is computed of entries, and that the database it becomes goes on with it.
func TestListed_Standby(t *testing.T) {
	source, copied := jaytest.Memory(t, nil), filepath.Join(t.TempDir(), "copy")
	s, err := standby.Open(copied, standby.From(source), standby.Options{Database: &jay.Options{NoLook: true}, Retry: 100 * time.Millisecond})
	jaytest.Must(t, err)
	jaytest.Must(t, jay.ComputedOf(source).Ensure(t.Context(), listing(false)))
	jaytest.Put(t, source, "orders/1", sold{"p", "bob", 2, 5}.json(), jay.InCollection("Orders"))
	jaytest.Put(t, source, "orders/2", sold{"p", "ann", 1, 5}.json(), jay.InCollection("Orders"))
	const text = "from index 'Listing' select Whole, Text, Some"
	waitFor(t, s, `{"Whole":["ann","bob"],"Text":"bob","Some":1}`, text)
	promoted := promote(t, s, source, copied)
	defer jaytest.Close(t, promoted)
	jaytest.Put(t, promoted, "orders/1", sold{"p", "ann", 3, 5}.json(), jay.InCollection("Orders"))
	jaytest.Equal(t, fmt.Sprint(jaytest.Rows(t, promoted, text)), `[{"Whole":["ann","ann"],"Text":"ann","Some":1}]`)
	jaytest.Verify(t, promoted)
}
