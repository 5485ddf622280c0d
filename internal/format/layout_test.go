package format_test

// These tests look at keys and values as they lie in storage, which the public
// API does not show: docs/format.md promises them byte by byte.

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jaytest"
)

// stored returns every key and value of a small database, one per line.
func stored(t *testing.T) string {
	t.Helper()
	ctx := context.Background()
	db := jaytest.Dumped(t)
	defer db.Close()
	var b jay.Batch
	b.Put("Users/Ann", []byte(`{"Name":"Ann","@metadata":{"@collection":"Users","k":1}}`))
	b.Put("bob", []byte(`{}`), jay.InCollection("Users"))
	b.Put("users|", []byte(`{}`), jay.InCollection("Users"))
	b.Delete("users/1")
	if _, err := db.Apply(ctx, &b); err != nil {
		t.Fatal(err)
	}
	if _, err := db.NextRange(ctx, jay.RangeRequest{Tag: "users"}); err != nil {
		t.Fatal(err)
	}

	return jaytest.KeysBetween(t, db, 1, 254)
}

// Ensure that the bytes are those of docs/format.md, which holds this dump.
func TestLayout_Golden(t *testing.T) { jaytest.InFormat(t, stored(t)) }

// Ensure that records survive their encoding, and that damaged ones are
// refused and do not panic.
func TestLayout_Records(t *testing.T) {
	m := &format.Marks{Marks: ids.Marks{Mark: 64, Top: 1 << 40, Leases: []ids.Lease{{Low: 1, End: 32}, {Low: 33, End: 64}}}, Node: 3}
	record := format.AppendMarks(nil, m)
	got, err := format.DecodeMarks(record)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(m) {
		t.Errorf("got %v, %v; want %v", got, err, m)
	}
	for n := range record {
		if _, err := format.DecodeMarks(record[:n]); !errors.Is(err, jay.ErrCorrupt) {
			t.Errorf("the first %d bytes are taken for a record", n)
		}
	}
	if _, err := format.DecodeMarks(append(record, 0)); !errors.Is(err, jay.ErrCorrupt) {
		t.Error("a record with more behind it is accepted")
	}

	identity := format.Identity{Last: 300, Node: 2, Ceiling: 1324, Session: 1<<63 + 7}
	record = identity.Append(nil)
	if got, err := format.DecodeIdentity(record); got != identity || err != nil {
		t.Errorf("got %v, %v; want %v", got, err, identity)
	}
	for n := range record {
		if _, err := format.DecodeIdentity(record[:n]); !errors.Is(err, jay.ErrCorrupt) {
			t.Errorf("the first %d bytes are taken for an identity", n)
		}
	}
}

// Ensure that the end of a prefix is the first key behind it.
func TestPrefixEnd(t *testing.T) {
	for prefix, want := range map[string]string{"a": "b", "a\xff": "b", "ab": "ac", "a\x00": "a\x01", "\xff": ""} {
		if got := format.PrefixEnd([]byte(prefix)); string(got) != want {
			t.Errorf("prefixEnd(%q): got %q, want %q", prefix, got, want)
		}
	}
}
