package groups_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	private "github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
)

// Ensure that an index of groups that is built by tables has the keys and values of one that is built by commits, to the last byte: with more groups
// than are added up at once, with sums beyond the limbs, notes, and groups that end with 0.
func TestGroups_Tables(t *testing.T) {
	sample.OneGoroutine(t)
	db := private.Memory(t, nil)
	const documents = 9000
	w, err := db.BulkInsert(nil)
	private.Must(t, err)
	for i := range documents {
		body := fmt.Sprintf(`{"Tags":["all",%d],"N":%d.5,"M":%d}`, i, i, i)
		switch i % 50 {
		case 0:
			body = fmt.Sprintf(`{"Tags":["all","zero"],"N":%d,"M":1e300}`, i%100-50)
		case 1:
			body = fmt.Sprintf(`{"Tags":%q,"N":"text","M":1}`, longTexts[i/50%2])
		}
		_, err := w.Put(ctx, fmt.Sprint("orders/", i), json.RawMessage(body), jay.InCollection("Orders"))
		private.Must(t, err)
	}
	private.Must(t, w.Close())
	declared := jay.Index{Name: "ByTag", Kind: "groups", Fields: []string{"Tags"}, Options: map[string]string{"sums": "N, N * 2, M"}}

	build := func(fromDocuments int) (entries map[string]string, byTables int) {
		defer checks.SetBuildTables(fromDocuments, 256<<10, 64<<10)()
		defer checks.OnBuildTables(func(checks.TableStep) { byTables++ })()
		private.Must(t, db.EnsureIndex(ctx, "Orders", declared))
		private.Verify(t, db)
		entries = make(map[string]string)
		for key, value := range checks.Entries(db) {
			entries[key[5:]] = value
		}
		private.Must(t, db.DropIndex(ctx, "Orders", "ByTag"))
		return entries, byTables
	}
	want, byTables := build(documents + 1)
	private.Equal(t, byTables, 0)
	got, byTables := build(documents)
	private.Equal(t, byTables, 3)
	if !maps.Equal(got, want) {
		t.Errorf("%d keys by tables, %d by commits", len(got), len(want))
		for key, value := range want {
			if got[key] != value {
				t.Fatalf("key %x: got %x, want %x", key, got[key], value)
			}
		}
	}
}

// Ensure that what writers have added to an index before its tables are begun does not stay in it: two other builds hold the places of sorts, and
// a document is in a group before the snapshot that it leaves while writers are kept out.
func TestGroups_Tables_Before(t *testing.T) {
	db := private.Memory(t, nil)
	for _, collection := range []string{"A", "B", "Orders"} {
		for i := range 5 {
			_, err := db.Put(ctx, fmt.Sprint(collection, "/", i), json.RawMessage(`{"Customer":"Ann","Total":1}`), jay.InCollection(collection))
			private.Must(t, err)
		}
	}
	defer checks.SetBuildTables(5, 256<<10, 64<<10)()
	held, goOn := make(chan struct{}, 2), make(chan struct{})
	var builds, moved atomic.Int32
	undo := checks.OnBuildTables(func(step checks.TableStep) {
		if step == checks.TablesRead && builds.Add(1) <= 2 {
			held <- struct{}{}
			<-goOn
		}
	})
	defer undo()
	ended := make(chan error, 3)
	for _, collection := range []string{"A", "B"} {
		go func() { ended <- db.EnsureIndex(ctx, collection, jay.Index{Fields: []string{"Customer"}}) }()
	}
	<-held
	<-held
	go func() {
		ended <- db.EnsureIndex(ctx, "Orders", jay.Index{Name: "ByCustomer", Kind: "groups", Fields: []string{"Customer"}, Options: map[string]string{"sums": "Total"}})
	}()
	declared := func() bool {
		list, err := db.Indexes(ctx, "Orders")
		private.Must(t, err)
		return len(list) == 1
	}
	for more := private.Patience(); more(declared()); {
	}
	put(t, db, "orders/0", `{"Customer":"Bob","Total":7}`)
	defer checks.OnBuildChunk(func(_ context.Context, state jay.IndexState) {
		if state == jay.IndexDropping && moved.CompareAndSwap(0, 1) {
			put(t, db, "orders/0", `{"Customer":"Cyd","Total":2}`)
		}
	})()
	close(goOn)
	for range 3 {
		private.Must(t, <-ended)
	}
	private.Equal(t, moved.Load(), 1)
	private.Verify(t, db)
	private.Equal(t, fmt.Sprint(private.Rows(t, db, dashboard)), `[{"Customer":"Ann","N":4,"T":4} {"Customer":"Cyd","N":1,"T":2}]`)
}
