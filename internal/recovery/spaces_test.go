package recovery_test

import (
	"bytes"
	"context"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/storage"
)

// keysIn returns the keys of a space and their values.
func keysIn(t testing.TB, db *jay.DB, s format.Space) map[string]string {
	t.Helper()
	keys := make(map[string]string)
	for line := range strings.Lines(jaytest.KeysBetween(t, db, s.First, s.First)) {
		key, value, _ := strings.Cut(line, " → ")
		keys[key] = value
	}
	return keys
}

// everySpace opens a new database and writes something into each key space.
func everySpace(t testing.TB, dir string) *jay.DB {
	t.Helper()
	ctx := context.Background()
	db := jaytest.Open(t, dir, nil)
	jaytest.Must(t, db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"tags"}}))
	jaytest.Must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Collections: map[string]jay.RevisionRule{"Users": {}}}))
	jaytest.Must(t, db.Subscriptions().Ensure(ctx, jay.Subscription{Name: "mail", Query: "from Users"}))
	for range 2 {
		jaytest.Put(t, db, "ann", `{"tags":["a","b"]}`, jay.InCollection("Users"), jay.WithTTL(1000*time.Hour))
	}
	jaytest.Attach(t, db, "ann", "file", []byte("text"))
	_, err := db.NextIdentity(ctx, "calls", jay.RequestID("once"))
	jaytest.Must(t, err)
	_, err = db.NextRange(ctx, jay.RangeRequest{Tag: "users"})
	jaytest.Must(t, err)
	_, err = db.CompareExchange().Put(ctx, "lock", 1, 0)
	jaytest.Must(t, err)
	jaytest.Must(t, db.Definitions().Change(ctx, jay.DefinitionChange{Kind: "raven-index", Name: "Users/ByTags", Value: []byte(`{"Maps":[]}`)}))
	jaytest.Must(t, parts.Of(db).Env.Engine.Update(ctx, true, func(tx storage.Tx) error { // without a cluster
		tx.Set(format.LostKey("calls|"), []byte(`{"spans":[[1,2]]}`), nil)
		tx.Set(format.LeaseKey(format.LeaseRenewal, "A"), []byte("12345678"), nil) // nor others
		return nil
	}))
	checks.WaitIndexTasks(db)
	for _, s := range format.Spaces {
		if len(keysIn(t, db, s)) == 0 {
			t.Errorf("%v: everySpace writes nothing into it", s)
		}
	}
	return db
}

// Ensure that a restored copy has what the original has in each key space, but in those that a
// new tag changes. Indexes are built under other numbers.
func TestSpaces_Restored(t *testing.T) {
	dir := t.TempDir()
	db := everySpace(t, filepath.Join(dir, "original"))
	defer jaytest.Close(t, db)
	_, stream := jaytest.BackUp(t, db)
	_, err := jay.Restore(context.Background(), filepath.Join(dir, "copy"), jay.RestoreOptions{CopyTag: "B"}, bytes.NewReader(stream))
	jaytest.Must(t, err)
	restored := jaytest.Open(t, filepath.Join(dir, "copy"), nil)
	defer jaytest.Close(t, restored)
	for _, s := range format.Spaces {
		before, after := keysIn(t, db, s), keysIn(t, restored, s)
		if s.Backup == format.NotCarried {
			if builds := len(after) > 0; builds != (s.Origin == format.Derived) {
				t.Errorf("%v: it is there after a restore: %v", s, builds)
			}
			continue
		}
		if equal := maps.Equal(before, after); equal != (s.Retag == format.KeptByRetag) {
			t.Errorf("%v is as it was: %v\nbefore %q\nafter  %q", s, equal, before, after)
		}
	}
}

// Ensure that a repair brings something into each key space, but into those that are transient.
func TestSpaces_Repaired(t *testing.T) {
	dir := t.TempDir()
	jaytest.Close(t, everySpace(t, filepath.Join(dir, "old")))
	report, err := jay.Repair(context.Background(), filepath.Join(dir, "old"), filepath.Join(dir, "new"), nil, nil)
	jaytest.Must(t, err)
	if report.Missing > 0 || report.After.Found > 0 {
		t.Errorf("a database without damage: %+v", report)
	}
	repaired := jaytest.Open(t, filepath.Join(dir, "new"), nil)
	defer jaytest.Close(t, repaired)
	for _, s := range format.Spaces {
		if there := len(keysIn(t, repaired, s)) > 0; there != (s.Origin != format.Transient) {
			t.Errorf("%v has keys after a repair: %v", s, there)
		}
	}
}
