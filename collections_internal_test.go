package jay

// These tests compare the numbers of documents that the database keeps with its
// documents in one snapshot, which only the package can do.

import (
	"context"
	"errors"
	"testing"

	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// Ensure that the check of the numbers finds one that is wrong, and one too many.
func TestCheckCounts(t *testing.T) {
	for name, wrong := range map[string]struct {
		key    []byte
		deltas []int64
	}{
		"documents":      {format.CountKey(nil, "users"), []int64{1}},
		"bytes":          {format.CountKey(nil, "users"), []int64{0, -1}},
		"one too many":   {format.CountKey(nil, "nobody"), []int64{1, 1}},
		"attachments":    {format.ContentTallyKey(), []int64{1}},
		"stored bytes":   {format.ContentTallyKey(), []int64{0, 0, 0, 1}},
		"what is due":    {format.AppendTimesTallyKey(nil), []int64{1}},
		"what refreshes": {format.AppendTimesTallyKey(nil), []int64{0, 1}},
	} {
		db, err := OpenMemory(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Put(context.Background(), "users/1", []byte(`{}`), InCollection("Users")); err != nil {
			t.Fatal(err)
		}
		add := func(sign int64) {
			deltas := make([]int64, len(wrong.deltas))
			for i := range deltas {
				deltas[i] = sign * wrong.deltas[i]
			}
			if err := db.env.Engine.Update(context.Background(), true, func(tx storage.Tx) error { tx.Add(wrong.key, deltas...); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		add(1)
		if err := CheckCounts(db); !errors.Is(err, counts.ErrMiscounted) {
			t.Errorf("%s: got %v, want counts.ErrMiscounted", name, err)
		}
		add(-1)
		if err := errors.Join(CheckCounts(db), db.Close()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
