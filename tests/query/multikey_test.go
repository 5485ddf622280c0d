package query_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
)

// notes fills Notes with n notes, newer ones later, each with one of three tags in an array, or two if several
// says so. A note whose number is even has no array, if it has one.
func notes(t *testing.T, n int, several func(i int) bool) *jay.DB {
	t.Helper()
	db := memory(t, nil)
	b := new(jay.Batch)
	for i := range n {
		tags := fmt.Sprintf(`["t%d"]`, i%3)
		if i%2 == 0 {
			tags = fmt.Sprintf(`"t%d"`, i%3)
		}
		if several(i) {
			tags = fmt.Sprintf(`["t%d","t%d"]`, (i+2)%3, i%3)
		}
		b.Put(fmt.Sprintf("notes/%04d", i*7%n), []byte(fmt.Sprintf(`{"At":%d,"Tags":%s}`, i, tags)), jay.InCollection("Notes"))
	}
	_, err := db.Apply(ctx, b)
	must(t, err)
	must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Name: "byTag", Fields: []string{"Tags", "-At"}}))
	return db
}

// Ensure that "newest of a tag" reads as many entries as it has answers, be there one document with
// several tags or many, and gives what a scan gives, also in pages.
func TestQuery_NewestOfTag(t *testing.T) {
	t.Parallel()
	for name, several := range map[string]func(int) bool{
		"one":  func(i int) bool { return i == 700 },
		"many": func(i int) bool { return i%4 == 0 },
	} {
		db := notes(t, 1000, several)
		for _, test := range []struct {
			text    string
			inOrder bool
		}{
			{"where Tags = 't1' order by At desc limit 20", true},
			{"where Tags = 't1' order by At limit 20", true}, // backwards
			{"where Tags = 't1' and At >= 300 order by At desc limit 20", true},
			{"where Tags = 't1' and At < 900 order by At desc limit 20", false},
			{"where Tags = 't1' order by Tags desc, At desc limit 20", false},
			{"where Tags in ('t1', 't2') order by At desc limit 20", false},
		} {
			q, err := db.RQL("from Notes "+test.text, nil)
			must(t, err)
			got, e := asked(t, q)
			want, _ := asked(t, q.NoIndex())
			if !slices.Equal(got, want) {
				t.Errorf("%s: %s: got %v, want %v", name, test.text, got, want)
			}
			inOrder := slices.Contains(e.Plan, "already in order")
			if inOrder != test.inOrder {
				t.Errorf("%s: %s: in order %v, want %v\n%s", name, test.text, inOrder, test.inOrder, e)
			}
			if inOrder && (e.Keys > 250 || e.Documents > 21) {
				t.Errorf("%s: %s\n%s", name, test.text, e)
			}
		}

		q := db.Query("Notes").Where(jay.Eq("Tags", "t1")).OrderBy("-At")
		all, err := q.NoIndex().All(ctx)
		must(t, err)
		var joined, want []string
		for _, doc := range all {
			want = append(want, doc.ID())
		}
		for cursor := ""; ; {
			page, err := q.Limit(7).After(cursor).Page(ctx)
			must(t, err)
			for _, doc := range page.Items {
				joined = append(joined, doc.ID())
			}
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		if !slices.Equal(joined, want) {
			t.Errorf("%s: pages joined: got %v, want %v", name, joined, want)
		}
	}
}

// Ensure that Explain, and the error of NoScan, say why an index with the fields of an order is not in it.
func TestQuery_LostOrder(t *testing.T) {
	t.Parallel()
	db := notes(t, 300, func(i int) bool { return i%4 == 0 })
	put(t, db, "long/1", fmt.Sprintf(`{"Name":"%s"}`, strings.Repeat("x", 600)), jay.InCollection("Long"))
	must(t, db.EnsureIndex(ctx, "Long", jay.Index{Fields: []string{"Name"}}))
	for _, test := range []struct{ text, want string }{
		{"from Notes where Tags = 't1' and At < 200 order by At desc", "sort in memory: index \"byTag\" has had several values of one document, of which the range may miss the first"},
		{"from Notes where Tags = 't1' order by Tags, At desc", "sort in memory: index \"byTag\" has had several values of one document, and the order counts another one than the condition"},
		{"from Long order by Name", "sort in memory: index \"Name\" has had a value too long for its key, and so is not in this order"},
		{"from Notes where Tags = 't1' order by Other", "sort in memory"},
	} {
		q, err := db.RQL(test.text, nil)
		must(t, err)
		e, err := q.Explain(ctx)
		must(t, err)
		if !slices.Contains(e.Plan, test.want) {
			t.Errorf("%s: want %q\n%s", test.text, test.want, e)
		}
	}
	_, err := db.Query("Long").OrderBy("Name").NoScan().All(ctx)
	if !errors.Is(err, jay.ErrNoIndex) || !strings.Contains(err.Error(), "a value too long for its key") {
		t.Errorf("got %v, want ErrNoIndex with the reason", err)
	}
}

// Ensure that a walk along an index in which one document has several values remembers only those that may come
// again: an entry that is covering is the only one of its document.
func TestQuery_OrderWithoutMemory(t *testing.T) {
	t.Parallel()
	db := notes(t, 12_000, func(i int) bool { return i == 0 })
	seen := int64(0)
	counting := jay.WithMemory(ctx, func(n int64) error {
		seen += n
		return nil
	})
	n := 0
	for _, err := range db.Query("Notes").Where(jay.Eq("Tags", "t1")).OrderBy("-At").Iter(counting) {
		must(t, err)
		n++
	}
	if n != 4000 || seen > 200_000 {
		t.Errorf("%d answers, %d bytes were paid for", n, seen)
	}
}
