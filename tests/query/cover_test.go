package query_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/sample"
)

// Ensure that entries answer only where they say what the document says, to
// the letter, and that all others are read.
func TestQuery_Cover_WhichEntries(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	long := strings.Repeat("x", 600)
	tests := []struct {
		id, body string
		row      string
		read     bool // the document must be
	}{
		{"things/a", `{"a":{"b":1},"c":"x"}`, `{"id":"things/a","b":1,"c":"x"}`, false},
		{"Things/A9-Z", `{"a":{"b":-12.5},"c":"Ünder \"it\" Ö"}`, `{"id":"Things/A9-Z","b":-12.5,"c":"Ünder \"it\" Ö"}`, false},
		{"things/Ä", `{"a":{"b":1}}`, `{"id":"things/Ä","b":1,"c":null}`, true},
		{"things/missing", `{}`, `{"id":"things/missing","b":null,"c":null}`, false},
		{"things/null", `{"a":null,"c":null}`, `{"id":"things/null","b":null,"c":null}`, false},
		{"things/bool", `{"a":{"b":true},"c":false}`, `{"id":"things/bool","b":true,"c":false}`, false},
		{"things/spelt", `{"a":{"b":7.50},"c":"x"}`, `{"id":"things/spelt","b":7.50,"c":"x"}`, true},
		{"things/escape", `{"a":{"b":1},"c":"\u0041"}`, `{"id":"things/escape","b":1,"c":"\u0041"}`, true},
		{"things/object", `{"a":{"b":{"z":[1.0]}},"c":"x"}`, `{"id":"things/object","b":{"z":[1.0]},"c":"x"}`, false},
		{"things/one", `{"a":{"b":[5]},"c":"x"}`, `{"id":"things/one","b":[5],"c":"x"}`, true},
		{"things/empty", `{"a":{"b":[]},"c":"x"}`, `{"id":"things/empty","b":[],"c":"x"}`, true},
		{"things/through", `{"a":[{"b":5}],"c":"x"}`, `{"id":"things/through","b":[5],"c":"x"}`, true},
		{"things/two", `{"a":{"b":[5,6]},"c":"x"}`, `{"id":"things/two","b":[5,6],"c":"x"}`, true},
		{"things/long", `{"a":{"b":1},"c":"` + long + `"}`, `{"id":"things/long","b":1,"c":"` + long + `"}`, true},
		{"things/" + long[:248] + "Z", `{"a":{"b":1}}`, `{"id":"things/` + long[:248] + `Z","b":1,"c":null}`, true},
		{"things/" + long[:247] + "Z", `{"a":{"b":1}}`, `{"id":"things/` + long[:247] + `Z","b":1,"c":null}`, false},
	}
	for _, unique := range []bool{false, true} {
		for _, fields := range [][]string{{"a.b", "c"}, {"-c", "a.b"}} {
			for _, test := range tests {
				db := memory(t, nil)
				must(t, db.EnsureIndex(ctx, "Things", jay.Index{Fields: fields, Unique: unique}))
				for i := range 40 { // so that the index is worth a walk
					put(t, db, fmt.Sprint("filler/", i), fmt.Sprintf(`{"a":{"b":%d},"c":"filler"}`, i), jay.InCollection("Things"))
				}
				put(t, db, test.id, test.body, jay.InCollection("Things"))
				q := jay.Select[json.RawMessage](db.Query("Things"), "id() as id", "a.b as b", "c")
				rql, err := db.RQL("from Things select id() as id, a.b as b, c", nil)
				must(t, err)
				got := slices.DeleteFunc(rows(t, db, rql.String()), func(row string) bool { return strings.Contains(row, "filler") })
				if !slices.Equal(got, []string{test.row}) {
					t.Errorf("%v, unique %v: got %v, want %s", fields, unique, got, test.row)
				}
				e, err := q.Where(jay.Or(jay.Exists("c"), jay.Not(jay.Exists("c")))).NoScan().Explain(ctx)
				if test.id == "things/two" { // all of an index with lists is no way to a document
					continue
				}
				must(t, err)
				if read := e.Documents == 1; read != test.read {
					t.Errorf("%v, unique %v, %s: read %v, want %v\n%s", fields, unique, test.body, read, test.read, e)
				}
			}
		}
	}
}

// Ensure that an entry has the ID and the values as they are written now, whatever
// was there, and that a transaction's own documents answer for themselves.
func TestQuery_Cover_Changes(t *testing.T) {
	db := memory(t, nil)
	must(t, db.EnsureIndex(ctx, "Things", jay.Index{Fields: []string{"v"}}))
	must(t, db.EnsureIndex(ctx, "Things", jay.Index{Fields: []string{"u"}, Unique: true}))
	all := func(via interface {
		RQL(text string, params map[string]any) (jay.Query[jay.Row], error)
	}) string {
		t.Helper()
		var out []string
		for _, column := range []string{"v", "u"} {
			q, err := via.RQL("from Things where "+column+" >= 0 select id() as id, "+column, nil)
			must(t, err)
			for row, err := range q.NoScan().Iter(ctx) {
				must(t, err)
				out = append(out, string(row.JSON))
			}
		}
		return strings.Join(out, " ")
	}
	for _, step := range []struct{ id, v string }{
		{"things/a", "1"}, {"Things/A", "1"}, {"things/A", "1"}, {"things/A", "1.0"}, {"things/A", "[1]"}, {"THINGS/a", "1"}, {"things/ª", "2"}, {"things/a", "1e0"}, {"things/a", "1"},
	} {
		if step.id == "things/ª" {
			must(t, db.Delete(ctx, "things/a"))
		}
		put(t, db, step.id, fmt.Sprintf(`{"v":%s,"u":%s}`, step.v, step.v), jay.InCollection("Things"))
		if step.id == "things/ª" {
			must(t, db.Delete(ctx, step.id))
			continue
		}
		want := fmt.Sprintf(`{"id":"%[1]s","v":%[2]s} {"id":"%[1]s","u":%[2]s}`, step.id, step.v)
		if got := all(db); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if err := checks.Indexes(db); err != nil {
			t.Error(err)
		}
	}
	err := db.Update(ctx, func(tx *jay.Tx) error {
		_, err := tx.Put(ctx, "Things/A", []byte(`{"v":3,"u":3.0}`), jay.InCollection("Things"))
		must(t, err)
		_, err = tx.Put(ctx, "things/b", []byte(`{"v":4,"u":4}`), jay.InCollection("Things"))
		must(t, err)
		want := `{"id":"Things/A","v":3} {"id":"things/b","v":4} {"id":"Things/A","u":3.0} {"id":"things/b","u":4}`
		if got := all(tx); got != want {
			t.Errorf("in the transaction: got %s, want %s", got, want)
		}
		return nil
	})
	must(t, err)
}

// Ensure that an index most of whose entries leave it to their documents what
// they have is not walked over instead of the documents.
func TestQuery_Cover_Untold(t *testing.T) {
	for _, test := range []struct {
		price, selected, plan string
	}{
		{`%d`, "p as s", `index "p"`},
		{`%d.50`, "p as s", `scan Things`},
		{`%d.50`, "sum(p) as s", `index "p"`}, // its spelling does not matter to a sum
	} {
		db := memory(t, nil)
		must(t, db.EnsureIndex(ctx, "Things", jay.Index{Fields: []string{"p"}}))
		for i := range 300 {
			put(t, db, fmt.Sprint("things/", i), `{"p":`+fmt.Sprintf(test.price, i)+`}`, jay.InCollection("Things"))
		}
		e, err := jay.Select[json.RawMessage](db.Query("Things"), test.selected).Explain(ctx)
		must(t, err)
		if !strings.HasPrefix(e.Plan[0], test.plan) {
			t.Errorf("want %s:\n%s", test.plan, e)
		}
	}
}

// Ensure that a patch of what no index has writes no entries.
func TestQuery_Cover_PatchWritesNoEntries(t *testing.T) {
	db := memory(t, nil)
	must(t, db.EnsureIndex(ctx, "Things", jay.Index{Fields: []string{"p"}}))
	put(t, db, "Things/1-A", `{"p":1,"n":1}`, jay.InCollection("Things"))
	key, value := checks.FirstEntry(db)
	checks.SetEntry(db, key, append(value, 0xfe)) // a mark that another write would remove
	put(t, db, "Things/1-A", `{"p":1,"n":2}`, jay.InCollection("Things"))
	_, err := db.Patch(ctx, "things/1-a", jay.Set("n", 3))
	must(t, err)
	if _, now := checks.FirstEntry(db); len(now) == 0 || now[len(now)-1] != 0xfe {
		t.Errorf("the entry was written again: %x", now)
	}
	put(t, db, "things/1-A", `{"p":1,"n":2}`, jay.InCollection("Things"))
	if _, now := checks.FirstEntry(db); len(now) != 1 {
		t.Errorf("the entry of an ID that is spelt anew was not written: %x", now)
	}
}

// Ensure that a partial index covers a query that asks for its condition, also
// where nothing but the condition is in common, and where the index has another
// order than is asked for.
func TestQuery_Cover_Partial(t *testing.T) {
	db := memory(t, nil)
	must(t, db.EnsureIndex(ctx, "Things", jay.Index{Fields: []string{"c", "-n"}, Where: "s = 'open'"}))
	for i := range 50 {
		put(t, db, fmt.Sprint("things/", i), fmt.Sprintf(`{"c":"c%d","n":%d,"s":"%s"}`, i%3, i, []string{"open", "shut"}[i%2]), jay.InCollection("Things"))
	}
	for text, want := range map[string]int{
		`from Things where s = 'open' order by c, n select c, n`:              25,
		`from Things where s = 'open' select distinct c`:                      3,
		`from Things group by c where s = 'open' select c, max(n) as most`:    3,
		`from Things where s = 'open' and endsWith(c, '1') select id() as id`: 8,
	} {
		q, err := db.RQL(text, nil)
		must(t, err)
		e, err := q.Explain(ctx)
		must(t, err)
		if e.Documents > 0 || int(e.Returned) != want {
			t.Errorf("want %d answers and no documents:\n%s", want, e)
		}
	}
}
