package catalog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/standby"
)

// said returns the errors of an index, a line for each.
func said(t *testing.T, db *jay.DB, collection, name string) string {
	t.Helper()
	list, err := jay.IndexOf(db, collection, name).Errors(t.Context(), "", 0)
	jaytest.Must(t, err)
	ids, text := make(map[string]bool), ""
	for _, e := range list {
		ids[e.ID] = true
		text += e.ID + " " + e.Field + ": " + e.Reason + "\n"
	}
	infos, err := db.Indexes(t.Context(), collection)
	jaytest.Must(t, err)
	for _, info := range infos {
		if info.Name == name && info.Errors != int64(len(ids)) {
			t.Errorf("Indexes has %d errors, and %d documents are listed", info.Errors, len(ids))
		}
	}
	return text
}

const (
	zero  = "Orders/1 Total / Count: /: a division by zero\n"
	kinds = "orders/2 Total / Count: /: a number is wanted, not the text \"seven\"\norders/2 Count + 1: +: a number and a text have no sum: \"seven\" and 1; concat() joins them\n"
)

// fill stores orders, for two of which an expression fails.
func fill(t *testing.T, db *jay.DB) {
	t.Helper()
	for id, body := range map[string]string{
		"Orders/1": `{"Total":1,"Count":0}`, "orders/2": `{"Total":1,"Count":"seven"}`, "orders/3": `{"Total":1,"Count":2}`, "orders/4": `{"Total":1}`, "orders/5": `{"Total":1,"Count":null}`,
	} {
		jaytest.Put(t, db, id, body, jay.InCollection("Orders"))
	}
}

var indexes = map[string]jay.Index{
	"ordered": {Name: "each", Fields: []string{"Total / Count", "-Count + 1"}},
	"groups":  {Name: "each", Kind: "groups", Fields: []string{"Total / Count"}, Options: map[string]string{"sums": "Total, Count + 1"}},
}

// Ensure that errors are noted with the commit of a document, whether the index is built before or after it, and go with it; that a
// missing or null operand is none; and that backups, renames, repairs and standbys have them.
func TestIndexErrors(t *testing.T) {
	ctx := t.Context()
	for name, ix := range indexes {
		t.Run(name, func(t *testing.T) {
			all := zero + kinds
			dir := t.TempDir()
			db := jaytest.Open(t, dir, nil)
			jaytest.Must(t, db.EnsureIndex(ctx, "Orders", ix))
			fill(t, db)
			jaytest.Equal(t, said(t, db, "Orders", "each"), all)
			jaytest.Must(t, db.DropIndex(ctx, "Orders", "each"))
			jaytest.Must(t, db.EnsureIndex(ctx, "Orders", ix))
			jaytest.Equal(t, said(t, db, "orders", "EACH"), all)
			jaytest.Verify(t, db)

			_, full := jaytest.BackUp(t, db)
			restored := filepath.Join(t.TempDir(), "restored")
			_, err := jay.Restore(ctx, restored, jay.RestoreOptions{CopyTag: "B"}, bytes.NewReader(full))
			jaytest.Must(t, err)
			copied := jaytest.Open(t, restored, nil)
			jaytest.FinishIndexTasks(t, copied)
			jaytest.Equal(t, said(t, copied, "Orders", "each"), all)
			jaytest.Verify(t, copied)
			jaytest.Must(t, copied.Close())

			s, err := standby.Open(filepath.Join(t.TempDir(), "standby"), standby.From(db), standby.Options{Database: &jay.Options{NoLook: true}, Retry: 100 * time.Millisecond})
			jaytest.Must(t, err)
			follower, err := s.DB(ctx)
			jaytest.Must(t, err)
			jaytest.Equal(t, said(t, follower, "Orders", "each"), all)
			jaytest.Must(t, s.Close())

			_, err = db.Patch(ctx, "orders/1", jay.Set("Count", 4))
			jaytest.Must(t, err)
			jaytest.Equal(t, said(t, db, "Orders", "each"), kinds)
			jaytest.Must(t, db.Update(ctx, func(tx *jay.Tx) error { return tx.Delete(ctx, "orders/2") }))
			jaytest.Equal(t, said(t, db, "Orders", "each"), "")
			jaytest.Put(t, db, "orders/3", `{"Total":[1,2],"Count":1}`, jay.InCollection("Orders"))
			_, err = db.RenameCollection(ctx, "Orders", "Sales")
			jaytest.Must(t, err)
			const several = "orders/3 Total / Count: Total reaches 2 values\n"
			jaytest.Equal(t, said(t, db, "Sales", "each"), several)
			jaytest.Verify(t, db)
			jaytest.Must(t, db.Close())

			repaired := filepath.Join(t.TempDir(), "repaired")
			_, err = jay.Repair(ctx, dir, repaired, nil, nil)
			jaytest.Must(t, err)
			db = jaytest.Open(t, repaired, nil)
			defer jaytest.Close(t, db)
			jaytest.FinishIndexTasks(t, db)
			jaytest.Equal(t, said(t, db, "Sales", "each"), several)
			jaytest.Verify(t, db)
		})
	}
}

// Ensure that errors come in pages, and that a wrong question is refused.
func TestIndexErrors_Pages(t *testing.T) {
	ctx := t.Context()
	db := jaytest.Memory(t, nil)
	jaytest.Must(t, db.EnsureIndex(ctx, "Things", jay.Index{Name: "each", Fields: []string{"1 / N"}}))
	jaytest.Must(t, db.EnsureIndex(ctx, "Things", jay.Index{Name: "plain", Fields: []string{"N"}}))
	want := ""
	for i := range 7 {
		jaytest.Put(t, db, fmt.Sprint("things/", i), `{"N":0}`, jay.InCollection("Things"))
		want += fmt.Sprint("things/", i, " ")
	}
	got, after := "", ""
	for {
		page, err := jay.IndexOf(db, "Things", "each").Errors(ctx, after, 3)
		jaytest.Must(t, err)
		if len(page) > 3 {
			t.Fatalf("got %d", len(page))
		}
		for _, e := range page {
			got, after = got+e.ID+" ", e.ID
		}
		if len(page) < 3 {
			break
		}
	}
	jaytest.Equal(t, got, want)
	if list, err := jay.IndexOf(db, "Things", "plain").Errors(ctx, "", 0); err != nil || len(list) != 0 {
		t.Errorf("an index of paths: got %v, %v", list, err)
	}
	if _, err := jay.IndexOf(db, "Things", "none").Errors(ctx, "", 0); !errors.Is(err, jay.ErrIndex) {
		t.Errorf("no index: got %v", err)
	}
	for _, limit := range []int{-1, 10_001} {
		if _, err := jay.IndexOf(db, "Things", "each").Errors(ctx, "", limit); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("%d: got %v", limit, err)
		}
	}
}

// Ensure that a strict index refuses a document for which an expression fails, by every way to write, and that its build ends at one.
func TestIndex_Strict(t *testing.T) {
	ctx := t.Context()
	for name, ix := range indexes {
		t.Run(name, func(t *testing.T) {
			db := jaytest.Memory(t, nil)
			strict := ix
			strict.Options = map[string]string{"strict": "yes"}
			if sums := ix.Options["sums"]; sums != "" {
				strict.Options["sums"] = sums
			}
			refused := func(what string, err error) {
				t.Helper()
				var c *jay.ComputeError
				if !errors.As(err, &c) || !errors.Is(err, jay.ErrInvalidDocument) || *c != (jay.ComputeError{Index: "each", Collection: "Orders", Field: "Total / Count", ID: "orders/1", Reason: "/: a division by zero"}) {
					t.Errorf("%s: got %v", what, err)
				}
			}
			bad := json.RawMessage(`{"Total":1,"Count":0}`)
			jaytest.Put(t, db, "orders/1", string(bad), jay.InCollection("Orders"))
			refused("build", db.EnsureIndex(ctx, "Orders", strict))
			jaytest.Must(t, db.Delete(ctx, "orders/1"))
			jaytest.Must(t, db.EnsureIndex(ctx, "Orders", strict))
			_, err := db.Put(ctx, "orders/1", bad, jay.InCollection("Orders"))
			refused("put", err)
			jaytest.Put(t, db, "orders/1", `{"Total":1,"Count":1}`, jay.InCollection("Orders"))
			_, err = db.Patch(ctx, "orders/1", jay.Set("Count", 0))
			refused("patch", err)
			refused("transaction", db.Update(ctx, func(tx *jay.Tx) error {
				_, err := tx.Put(ctx, "orders/1", bad, jay.InCollection("Orders"))
				return err
			}))
			jaytest.Equal(t, jaytest.Body(t, db, "orders/1"), `{"Total":1,"Count":1}`)
			jaytest.Put(t, db, "orders/2", `{"Total":1}`, jay.InCollection("Orders"))
			jaytest.Equal(t, said(t, db, "Orders", "each"), "")
			jaytest.Verify(t, db)
		})
	}
}

// Ensure that a query is answered by an index of what it computes, in its order, page by page, and unique.
func TestIndex_Expression_Used(t *testing.T) {
	ctx := t.Context()
	db := jaytest.Memory(t, nil)
	jaytest.Must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Name: "worth", Fields: []string{"Price*(Quantity)", "-year(At)", "Name"}}))
	jaytest.Must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Name: "key", Fields: []string{"concat(Shop, '/', Number)"}, Unique: true}))
	for i := range 40 {
		jaytest.Put(t, db, fmt.Sprint("orders/", i), fmt.Sprintf(`{"Price":%d.5,"Quantity":%d,"At":"%d-01-01T00:00:00Z","Name":"N%d","Shop":"s","Number":%d}`, i%7, i%5, 2020+i%3, i, i), jay.InCollection("Orders"))
	}
	for rql, plan := range map[string]string{
		"from Orders where Price * Quantity = 13":                                                    `index "worth", one range`,
		"from Orders where Quantity * Price = 13":                                                    `scan Orders`,
		"from Orders where Price*Quantity in (13, 1.5)":                                              `index "worth", 2 ranges`,
		"from Orders where Price * Quantity between 3 and 4":                                         `index "worth", one range`,
		"from Orders where Price * Quantity = 13 and year(At) > '2020' order by year(At) desc, Name": `already in order`,
		"from Orders where concat(Shop,'/',Number) = 's/7'":                                          `index "key", one range`,
		"from Orders order by Price * Quantity, year(At) desc, Name limit 5":                         `already in order`,
		"from Orders use index 'worth' where Price * Quantity > 20":                                  `as the query asks`,
	} {
		q, err := db.RQL(rql, nil)
		jaytest.Must(t, err)
		x, err := q.Explain(ctx)
		if jaytest.Must(t, err); !strings.Contains(strings.Join(x.Plan, "; "), plan) {
			t.Errorf("%s: got %v, want %q", rql, x.Plan, plan)
		}
	}
	docs, err := db.Query("Orders").Where(jay.Gt("Price * Quantity", 13)).OrderBy("Price * Quantity").NoScan().All(ctx)
	if err != nil || len(docs) == 0 {
		t.Errorf("the builder: got %d, %v", len(docs), err)
	}
	_, err = db.Put(ctx, "orders/other", json.RawMessage(`{"Shop":"s","Number":"7"}`), jay.InCollection("Orders"))
	if !errors.Is(err, jay.ErrUnique) {
		t.Errorf("unique: got %v", err)
	}
}

// Ensure that a document of which an expression computes too much is refused, strict or not, however many others there are.
func TestIndex_ComputesTooMuch(t *testing.T) {
	sample.OneGoroutine(t)
	ctx := t.Context()
	db := jaytest.Memory(t, nil)
	lengths := func(n int, text string) string { // of n texts of 0.9 MiB
		return strings.TrimSuffix(strings.Repeat("length(concat(T, '"+text+"')) + ", n), " + ")
	}
	for i := range 4 {
		jaytest.Must(t, db.EnsureIndex(ctx, "Things", jay.Index{Name: fmt.Sprint("fits", i), Fields: []string{lengths(10, fmt.Sprint(i))}}))
	}
	text := strings.Repeat("x", 900<<10)
	jaytest.Put(t, db, "things/1", `{"T":"`+text+`"}`, jay.InCollection("Things"))
	for i := range 4 {
		jaytest.Equal(t, said(t, db, "Things", fmt.Sprint("fits", i)), "")
	}
	jaytest.Must(t, db.EnsureIndex(ctx, "Things", jay.Index{Name: "long", Fields: []string{"length(concat(T, T))"}}))
	if got := said(t, db, "Things", "long"); !strings.Contains(got, "bytes of a computed text") {
		t.Errorf("one result: got %q", got)
	}
	jaytest.Must(t, db.DropIndex(ctx, "Things", "long"))
	err := db.EnsureIndex(ctx, "Things", jay.Index{Name: "much", Fields: []string{lengths(20, "y")}})
	var invalid *jay.DocumentError
	if !errors.As(err, &invalid) || invalid.Limit != 16<<20 {
		t.Errorf("got %v", err)
	}
	jaytest.Verify(t, db)
}

// Ensure that the format rises with the first index that computes, in whatever way, and with no other.
func TestIndex_Expression_FormatRises(t *testing.T) {
	ctx := t.Context()
	for name, ix := range map[string]jay.Index{
		"expression": {Fields: []string{"A + B"}},
		"part":       {Fields: []string{"-year(At)"}},
		"where":      {Fields: []string{"A"}, Where: "A + B > 1"},
		"groups":     {Kind: "groups", Fields: []string{"A"}, Options: map[string]string{"sums": "B * C"}},
	} {
		dir := t.TempDir()
		db := jaytest.Open(t, dir, nil)
		jaytest.Must(t, db.EnsureIndexes(ctx, "Things", []jay.Index{{Fields: []string{"A", "B", "At as date"}, Where: "A > 1"}, {Name: "g", Kind: "groups", Fields: []string{"year(At)"}}}))
		before := formatOf(t, dir)
		jaytest.Must(t, db.EnsureIndex(ctx, "Things", ix))
		if after := formatOf(t, dir); strings.Contains(before, "index expressions") || !strings.Contains(after, "feature 10: index expressions") {
			t.Errorf("%s: got %q, and then %q", name, before, after)
		}
		jaytest.Must(t, db.Close())
	}
}

// formatOf returns the file that says the format of a database.
func formatOf(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "JAY"))
	jaytest.Must(t, err)
	return string(text)
}
