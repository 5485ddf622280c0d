package counts_test

// These tests compare the numbers of documents that the database keeps with its
// documents in one snapshot, which no public call does.

import (
	"context"
	"errors"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/parts"
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
		db, err := jay.OpenMemory(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Put(context.Background(), "users/1", []byte(`{}`), jay.InCollection("Users")); err != nil {
			t.Fatal(err)
		}
		add := func(sign int64) {
			deltas := make([]int64, len(wrong.deltas))
			for i := range deltas {
				deltas[i] = sign * wrong.deltas[i]
			}
			if err := parts.Of(db).Env.Engine.Update(context.Background(), true, func(tx storage.Tx) error { tx.Add(wrong.key, deltas...); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		add(1)
		if err := checks.Counts(db); !errors.Is(err, counts.ErrMiscounted) {
			t.Errorf("%s: got %v, want counts.ErrMiscounted", name, err)
		}
		add(-1)
		if err := errors.Join(checks.Counts(db), db.Close()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
