package exchange_test

// This test looks at compare-exchange values as they lie in storage, which the public
// API does not show.

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jaytest"
)

// Ensure that docs/format.md holds the bytes that compare-exchange values and guards have.
func TestCompareExchange_Layout_Golden(t *testing.T) {
	ctx := context.Background()
	db := jaytest.Dumped(t)
	defer db.Close()
	var b jay.Batch
	b.PutCompareExchange("count", 41, 0)
	b.PutCompareExchange("Emails/Ann", "users/1", 0, jay.CompareExchangeMetadata(json.RawMessage(`{"by":"Ann"}`)))
	b.PutCompareExchange("gone", nil, 0)
	b.Put("Users/1", []byte(`{}`), jay.InCollection("Users"), jay.Guarded(new(jay.AtomicGuard)))
	results, err := db.Apply(ctx, &b)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.CompareExchange().Delete(ctx, "gone", results[2].Etag); err != nil {
		t.Fatal(err)
	}
	jaytest.InFormat(t, jaytest.KeysBetween(t, db, format.SpaceDocument, format.SpaceDocument)+jaytest.KeysBetween(t, db, format.SpaceExchange, format.SpaceExchange))
}

// Ensure that a record is decoded as it was encoded, and that no other bytes are taken
// for one.
func FuzzExchangeRecord(f *testing.F) {
	for _, x := range []format.Exchange{
		{Index: 1, Value: []byte("1")},
		{Index: 1 << 40, Key: []byte("K"), Value: []byte(`"a"`)},
		{Index: 3, Key: []byte("K"), Metadata: []byte(`{"a":1}`), Value: []byte("{}")},
	} {
		f.Add(append(x.AppendHead(nil), x.Value...))
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		x, err := format.DecodeExchange(record)
		if err != nil {
			return
		}
		again, err := format.DecodeExchange(append(x.AppendHead(nil), x.Value...))
		if err != nil || again.Index != x.Index || !bytes.Equal(again.Key, x.Key) || !bytes.Equal(again.Metadata, x.Metadata) || !bytes.Equal(again.Value, x.Value) {
			t.Fatalf("%x decodes as %+v, and its encoding as %+v, %v", record, x, again, err)
		}
	})
}
