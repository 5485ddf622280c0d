package jay

// These tests compare the numbers of documents that the database keeps with its
// documents in one snapshot, which only the package can do.

import (
	"context"
	"errors"
	"testing"

	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// Ensure that the check of the numbers finds one that is wrong, and one too many.
func TestCheckCounts(t *testing.T) {
	for name, key := range map[string][]byte{"wrong": format.CountKey(nil, "users"), "one too many": format.CountKey(nil, "nobody")} {
		db, err := OpenMemory(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Put(context.Background(), "users/1", []byte(`{}`), InCollection("Users")); err != nil {
			t.Fatal(err)
		}
		add := func(delta int64) {
			if err := db.env.Engine.Update(context.Background(), true, func(tx storage.Tx) error { tx.Add(key, delta); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		add(1)
		if err := CheckCounts(db); !errors.Is(err, errMiscounted) {
			t.Errorf("%s: got %v, want errMiscounted", name, err)
		}
		add(-1)
		if err := errors.Join(CheckCounts(db), db.Close()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
