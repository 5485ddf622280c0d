package jay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/jaydb/jay"
)

// crate is a type without code of its own, and with all that decoding copies.
type crate struct {
	ID      string
	Version string `jay:"version"`
	Name    string
	Seal    []byte
	Labels  map[string]string
	Sent    *time.Time
}

// Ensure that Collection.Get gives what a transaction gives, which takes
// another way: the value, and every error, whether or not the document is in
// the cache.
func TestCollection_Get_TwoWays(t *testing.T) {
	ctx := context.Background()
	db := memory(t, nil)
	crates, err := jay.CollectionOf[crate](db)
	if err != nil {
		t.Fatal(err)
	}
	sent := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for i := range 50 {
		c := &crate{ID: fmt.Sprintf("Crates/%d", i), Name: "crate", Seal: []byte{1, byte(i)}, Labels: map[string]string{"a": "b"}, Sent: &sent}
		if _, err := crates.Put(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	put(t, db, "crates/bad", `{"Name":7}`, jay.InCollection("Crates"))
	put(t, db, "boxes/1", `{}`, jay.InCollection("Boxes"))

	ids := []string{"crates/1", "CRATES/7", "crates/bad", "boxes/1", "crates/none", ""}
	for round := range 4 { // from the third on, documents are in the cache
		for _, id := range ids {
			got, gotErr := crates.Get(ctx, id)
			var want *crate
			var wantErr error
			err := db.View(ctx, func(tx *jay.Tx) error {
				want, wantErr = crates.In(tx).Get(ctx, id)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
				t.Errorf("round %d, %q: got %+v, %v, want %+v, %v", round, id, got, gotErr, want, wantErr)
			}
			if errors.Is(gotErr, jay.ErrNotFound) != errors.Is(wantErr, jay.ErrNotFound) {
				t.Errorf("round %d, %q: got %v, want %v", round, id, gotErr, wantErr)
			}
		}
	}

	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := crates.Get(cancelled, "crates/1"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

// Ensure that a value stays as it is when its document, which was decoded where
// it lay, is written over and the memory is used again.
func TestCollection_Get_Owned(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := open(t, t.TempDir(), &jay.Options{CacheBytes: 1 << 20, DocumentCacheBytes: -1})
	crates, err := jay.CollectionOf[crate](db)
	if err != nil {
		t.Fatal(err)
	}
	var kept []*crate
	for round := range 20 {
		for i := range 20 {
			c := &crate{ID: fmt.Sprintf("crates/%d", i), Name: fmt.Sprint("name ", round), Seal: bytes.Repeat([]byte{byte(round)}, 1000)}
			if _, err := crates.Put(ctx, c, jay.IfMatch(versionOf(t, db, c.ID))); err != nil {
				t.Fatal(err)
			}
			v, err := crates.Get(ctx, c.ID)
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, v)
		}
	}
	closeDB(t, db)
	for i, v := range kept {
		round := i / 20
		if v.Name != fmt.Sprint("name ", round) || !bytes.Equal(v.Seal, bytes.Repeat([]byte{byte(round)}, 1000)) {
			t.Fatalf("value %d has changed: %+v", i, v)
		}
	}
}

func versionOf(t *testing.T, db *jay.DB, id string) string {
	t.Helper()
	doc, err := db.Get(context.Background(), id)
	if errors.Is(err, jay.ErrNotFound) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return doc.ChangeVector()
}
