package indexer_test

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/storage"
)

// Ensure that the first index which takes text without an offset as UTC raises the format, be it by a field or by its
// condition; that no other does; and that a backup carries the format.
func TestUTC_Format(t *testing.T) {
	ctx := context.Background()
	number := func(db *jay.DB) int { return parts.Of(db).Env.Engine.Format().Number }
	for _, ix := range []jay.Index{{Fields: []string{"-At as utc"}}, {Fields: []string{"N"}, Where: "N = 1 and not day(At as utc) = '2026-01-31'"}} {
		db := jaytest.Open(t, t.TempDir(), nil)
		defer db.Close()
		jaytest.Put(t, db, "logs/1", `{"At":"2026-01-31T00:00:00"}`)
		jaytest.Must(t, db.EnsureIndex(ctx, "@empty", jay.Index{Fields: []string{"At as date"}, Where: "At as date > '2026-01-31T00:00:00Z'"}))
		if n := number(db); n != storage.BaseFormat {
			t.Errorf("as date: the format is %d", n)
		}
		jaytest.Must(t, db.EnsureIndex(ctx, "@empty", ix))
		if n := number(db); n != storage.FeatureUTC.Format {
			t.Errorf("%v: the format is %d", ix, n)
		}
		var backup bytes.Buffer
		_, err := db.Backup(ctx, &backup)
		jaytest.Must(t, err)
		dir := filepath.Join(t.TempDir(), "restored")
		_, err = jay.Restore(ctx, dir, jay.RestoreOptions{CopyTag: "R"}, &backup)
		jaytest.Must(t, err)
		restored := jaytest.Open(t, dir, nil)
		defer restored.Close()
		if n := number(restored); n != storage.FeatureUTC.Format {
			t.Errorf("%v: restored, the format is %d", ix, n)
		}
		jaytest.Verify(t, restored)
	}
}
