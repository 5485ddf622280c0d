package jay

// This test looks at index entries as they lie in storage, which nothing
// outside the package can see: docs/format.md promises them byte by byte.

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/format"
)

// Ensure that the bytes of indexes are those of docs/format.md, which holds
// this dump.
func TestIndex_Layout_Golden(t *testing.T) {
	ctx := context.Background()
	db := dumped(t)
	defer db.Close()
	for _, ix := range []Index{{Fields: []string{"City", "-Age"}}, {Name: "mail", Fields: []string{"Mail"}, Unique: true, Where: "Age > 18"}} {
		if err := db.EnsureIndex(ctx, "Users", ix); err != nil {
			t.Fatal(err)
		}
	}
	var b Batch
	b.Put("users/ann", []byte(`{"City":"Bonn","Age":42,"Mail":"a@b"}`), InCollection("Users"))
	b.Put("users/bob", []byte(`{"City":["bonn","Ulm"],"Age":7.50}`), InCollection("Users"))
	b.Put("users/cyd", []byte(`{"Age":19}`), InCollection("Users"))
	b.Put("users/33-A", []byte(`{"City":"Ulm","Age":50,"Mail":"e@b"}`), InCollection("Users"))
	if _, err := db.Apply(ctx, &b); err != nil {
		t.Fatal(err)
	}

	indexesInFormat(t, db)
}

// Ensure that the bytes of an index of instants are those of docs/format.md.
func TestIndex_Layout_Golden_Instants(t *testing.T) {
	ctx := context.Background()
	db := dumped(t)
	defer db.Close()
	if err := db.EnsureIndex(ctx, "Logs", Index{Fields: []string{"At  AS date", "-Done as date"}}); err != nil {
		t.Fatal(err)
	}
	var b Batch
	b.Put("logs/1", []byte(`{"At":"2026-01-01T00:00:00.5000000Z","Done":null}`), InCollection("Logs"))
	b.Put("logs/2", []byte(`{"At":"2026-01-01T02:00:00.5+02:00","Done":"2026-01-01T00:00:00.0000000Z"}`), InCollection("Logs"))
	b.Put("logs/3", []byte(`{"At":"yesterday"}`), InCollection("Logs"))
	if _, err := db.Apply(ctx, &b); err != nil {
		t.Fatal(err)
	}
	indexesInFormat(t, db)
}

// indexesInFormat compares all keys of indexes with docs/format.md.
func indexesInFormat(t *testing.T, db *DB) {
	t.Helper()
	it, err := db.env.Engine.Iterate([]byte{1}, []byte{255})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var out strings.Builder
	for ok := it.First(); ok; ok = it.Next() {
		if key := it.Key(); key[0] == format.SpaceIndex || key[0] == format.SpaceIndexState || strings.HasPrefix(string(key), "mindexes") {
			fmt.Fprintf(&out, "%s → %s\n", quote(key), quote(it.Value()))
		}
	}
	inFormat(t, out.String())
}
