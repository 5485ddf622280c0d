package indexer_test

// This test looks at index entries as they lie in storage, which the public
// API does not show: docs/format.md promises them byte by byte.

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/parts"
)

// Ensure that the bytes of indexes are those of docs/format.md, which holds
// this dump.
func TestIndex_Layout_Golden(t *testing.T) {
	ctx := context.Background()
	db := jaytest.Dumped(t)
	defer db.Close()
	for _, ix := range []jay.Index{{Fields: []string{"City", "-Age"}}, {Name: "mail", Fields: []string{"Mail"}, Unique: true, Where: "Age > 18"}} {
		if err := db.EnsureIndex(ctx, "Users", ix); err != nil {
			t.Fatal(err)
		}
	}
	var b jay.Batch
	b.Put("users/ann", []byte(`{"City":"Bonn","Age":42,"Mail":"a@b"}`), jay.InCollection("Users"))
	b.Put("users/bob", []byte(`{"City":["bonn","Ulm"],"Age":7.50}`), jay.InCollection("Users"))
	b.Put("users/cyd", []byte(`{"Age":19}`), jay.InCollection("Users"))
	b.Put("users/33-A", []byte(`{"City":"Ulm","Age":50,"Mail":"e@b"}`), jay.InCollection("Users"))
	if _, err := db.Apply(ctx, &b); err != nil {
		t.Fatal(err)
	}

	indexesInFormat(t, db)
}

// Ensure that the bytes of an index of instants are those of docs/format.md.
func TestIndex_Layout_Golden_Instants(t *testing.T) {
	ctx := context.Background()
	db := jaytest.Dumped(t)
	defer db.Close()
	if err := db.EnsureIndex(ctx, "Logs", jay.Index{Fields: []string{"At  AS date", "-Done as date"}}); err != nil {
		t.Fatal(err)
	}
	var b jay.Batch
	b.Put("logs/1", []byte(`{"At":"2026-01-01T00:00:00.5000000Z","Done":null}`), jay.InCollection("Logs"))
	b.Put("logs/2", []byte(`{"At":"2026-01-01T02:00:00.5+02:00","Done":"2026-01-01T00:00:00.0000000Z"}`), jay.InCollection("Logs"))
	b.Put("logs/3", []byte(`{"At":"yesterday"}`), jay.InCollection("Logs"))
	if _, err := db.Apply(ctx, &b); err != nil {
		t.Fatal(err)
	}
	indexesInFormat(t, db)
}

// indexesInFormat compares all keys of indexes with docs/format.md.
func indexesInFormat(t *testing.T, db *jay.DB) {
	t.Helper()
	it, err := parts.Of(db).Env.Engine.Iterate([]byte{1}, []byte{255})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var out strings.Builder
	for ok := it.First(); ok; ok = it.Next() {
		if key := it.Key(); key[0] == format.SpaceIndex || key[0] == format.SpaceIndexState || strings.HasPrefix(string(key), "mindexes") {
			fmt.Fprintf(&out, "%s → %s\n", jaytest.Quote(key), jaytest.Quote(it.Value()))
		}
	}
	jaytest.InFormat(t, out.String())
}
