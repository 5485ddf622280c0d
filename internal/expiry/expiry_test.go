package expiry_test

// These tests look at the entries of what is due, which the public API does not
// show, and make a database as an older Jay has left it.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/expiry"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/storagetest"
)

// timesOfDB returns the keys and values of what is due, one per line.
func timesOfDB(t *testing.T, db *jay.DB) string {
	t.Helper()
	return jaytest.KeysBetween(t, db, format.SpaceTimes, format.SpaceTimes)
}

// Ensure that what is due lies in the store as docs/format.md has it.
func TestTimes_Layout_Golden(t *testing.T) {
	defer checks.NoSweeper()()
	db := jaytest.Dumped(t)
	defer db.Close()
	var b jay.Batch
	b.Put("Users/Ann", []byte(`{"@metadata":{"@collection":"Users","@expires":"2026-11-21T12:30:00.5+00:00"}}`))
	b.Put("bob", []byte(`{}`), jay.WithTTL(time.Hour), jay.RefreshAt(jaytest.DumpTime))
	if _, err := db.Apply(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	got := timesOfDB(t, db)
	value, closer, err := parts.Of(db).Env.Engine.Get(format.DocumentKey(nil, "users/ann"))
	if err != nil {
		t.Fatal(err)
	}
	got += fmt.Sprintf("dusers/ann\\x00 → %s\n", jaytest.Quote(value))
	if err := closer.Close(); err != nil {
		t.Fatal(err)
	}
	jaytest.InFormat(t, "```\n"+got+"```")
}

// makeOld makes the database as a program of format 3 has left it: without entries of
// what is due, and without the mark on documents that have them.
func makeOld(t *testing.T, db *jay.DB) {
	t.Helper()
	err := parts.Of(db).Env.Engine.Update(context.Background(), true, func(tx storage.Tx) error {
		tx.Delete(format.AppendTimesTallyKey(nil))
		for _, space := range []byte{format.SpaceTimes, format.SpaceDocument} {
			it, err := tx.Iterate([]byte{space}, []byte{space + 1})
			if err != nil {
				return err
			}
			for ok := it.First(); ok; ok = it.Next() {
				key := append([]byte(nil), it.Key()...)
				if space == format.SpaceTimes {
					tx.Delete(key)
					continue
				}
				record := append([]byte(nil), it.Value()...)
				record[1] &^= 4
				tx.Set(key, record, nil)
			}
			if err := it.Close(); err != nil {
				return err
			}
		}
		tx.Delete(format.AppendKey(nil, format.SpaceMeta, format.TimesName))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Ensure that the documents of an older database get their entries, in steps and also if
// that is cut at each of them, that those which had expired before the upgrade stay, and
// that writes meanwhile are right.
func TestTimes_Upgrade(t *testing.T) {
	defer checks.NoSweeper()()
	were, steps := expiry.StepDocuments, 0
	expiry.StepDocuments = 3
	defer func() { expiry.StepDocuments = were }()
	ctx := context.Background()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	disk := storagetest.NewDisk()
	db, err := jay.Open("db", &jay.Options{Now: clock, FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		opts := []jay.WriteOption{jay.InCollection("Users")}
		switch i % 4 {
		case 0:
			opts = append(opts, jay.WithTTL(time.Hour))
		case 1:
			opts = append(opts, jay.ExpiresAt(now.Add(-time.Hour)))
		case 2:
			opts = append(opts, jay.RefreshAt(now.Add(-time.Hour)), jay.WithMetadata([]byte(`{"k":1}`)))
		}
		if _, err := db.Put(ctx, fmt.Sprintf("users/%02d", i), []byte(`{"Name":"x"}`), opts...); err != nil {
			t.Fatal(err)
		}
	}
	makeOld(t, db)
	// What no write takes today.
	h := metadata.Header{Etag: 1, Collection: []byte("Users"), Custom: []byte(`{"@expires":"soon"}`)}
	record := append(h.AppendTail(h.AppendHead(nil)), "{}"...)
	err = parts.Of(db).Env.Engine.Update(ctx, true, func(tx storage.Tx) error {
		tx.Set(format.DocumentKey(nil, "users/soon"), record, nil)
		tx.Add(format.CountKey(nil, "users"), 1, int64(len("users/soon")+len(record)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	// Each step is one of another process, but for the writes that come between.
	var log strings.Builder
	steps = 0
	for all := false; !all; steps++ {
		if db, err = jay.Open("db", &jay.Options{Now: clock, FS: disk, Logger: slog.New(slog.NewTextHandler(&log, nil)), ExactExpiry: true}); err != nil {
			t.Fatal(err)
		}
		if all, err = parts.Of(db).Expiry.BuildStep(ctx); err != nil {
			t.Fatal(err)
		}
		if err := checks.Times(db); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if steps < 7 {
		t.Errorf("the build took %d steps", steps)
	}
	if !strings.Contains(log.String(), `"expired before the upgrade"=5`) || !strings.Contains(log.String(), `"without an instant"=1`) {
		t.Errorf("the log says: %s", log.String())
	}

	if db, err = jay.Open("db", &jay.Options{Now: clock, FS: disk}); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	swept, err := db.Sweep(ctx)
	if want := (jay.Swept{Refreshed: 5}); err != nil || swept != want {
		t.Errorf("at the upgrade: %+v, %v; want %+v", swept, err, want)
	}
	stats, err := db.Stats(ctx)
	if want := (jay.ExpiryStats{Expiring: 5, Refreshed: 5, Kept: 6}); err != nil || stats.Expiry != want {
		t.Errorf("got %+v, %v; want %+v", stats.Expiry, err, want)
	}
	now = now.Add(time.Hour)
	swept, err = db.Sweep(ctx)
	if want := (jay.Swept{Deleted: 5}); err != nil || swept != want {
		t.Errorf("an hour later: %+v, %v; want %+v", swept, err, want)
	}
	// One that was kept is still there, can be patched in a transaction, and expires
	// once it is written with its expiry.
	for _, id := range []string{"users/01", "users/soon"} {
		err = db.Update(ctx, func(tx *jay.Tx) error {
			_, err := tx.Patch(ctx, id, jay.Set("Name", "y"))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	doc, err := db.Get(ctx, "users/01")
	if err != nil || string(doc.Metadata().Custom) != `{"@expires":"2026-11-21T11:00:00.0000000Z"}` {
		t.Fatalf("got %v, %v", doc, err)
	}
	text, err := doc.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Put(ctx, "users/01", text); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Get(ctx, "users/01"); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("written again: got %v, want ErrNotFound", err)
	}
	if err := checks.Times(db); err != nil {
		t.Error(err)
	}
}

// Ensure that entries that lead to no document, or to one that is due at another time,
// which damage may leave, are removed and delete nothing.
func TestTimes_Stray(t *testing.T) {
	defer checks.NoSweeper()()
	ctx := context.Background()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	db, err := jay.OpenMemory(&jay.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for id, opts := range map[string][]jay.WriteOption{"never": nil, "later": {jay.WithTTL(time.Hour), jay.RefreshAt(now.Add(time.Hour))}} {
		if _, err := db.Put(ctx, id, []byte(`{}`), opts...); err != nil {
			t.Fatal(err)
		}
	}
	err = parts.Of(db).Env.Engine.Update(ctx, true, func(tx storage.Tx) error {
		for _, id := range []string{"missing", "never", "later"} {
			for _, kind := range []byte{format.DueExpiry, format.DueRefresh} {
				tx.Set(format.TimeKey(nil, now.Add(-time.Minute), kind, id), []byte("@empty"), nil)
			}
		}
		tx.Add(format.AppendTimesTallyKey(nil), 3, 3) // they were counted when they were made
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := checks.Times(db); !errors.Is(err, expiry.ErrEntries) {
		t.Fatalf("got %v: the check sees nothing", err)
	}
	if swept, err := db.Sweep(ctx); err != nil || swept != (jay.Swept{}) {
		t.Errorf("got %+v, %v", swept, err)
	}
	if err := checks.Times(db); err != nil {
		t.Error(err)
	}
	if counts, err := db.Collections(ctx); err != nil || len(counts) != 1 || counts[0].Documents != 2 {
		t.Errorf("got %v, %v", counts, err)
	}
}

// Ensure that a document whose expiry is put off by a write that is not on disk yet is hidden from those who read what is on disk, from the moment at
// which it expires there.
func TestSweep_PutOffBesideSync(t *testing.T) {
	ctx := context.Background()
	disk := storagetest.NewDisk()
	begun := time.Now().UTC()
	var now atomic.Pointer[time.Time]
	now.Store(&begun)
	db := jaytest.OnDisk(t, disk, jay.Options{ExactExpiry: true, Now: func() time.Time { return *now.Load() }})
	jaytest.Put(t, db, "sessions/1", `{}`, jay.InCollection("Sessions"), jay.ExpiresAt(begun.Add(time.Minute)))
	hold := disk.Hold(storagetest.Logs, storagetest.Syncs)
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := db.Put(ctx, "sessions/1", []byte(`{}`), jay.InCollection("Sessions"), jay.ExpiresAt(begun.Add(time.Hour))); err != nil {
			t.Error(err)
		}
	})
	<-hold.Met()
	later := begun.Add(2 * time.Minute)
	now.Store(&later)
	group.Go(func() {
		if _, err := db.Sweep(ctx); err != nil {
			t.Error(err)
		}
	})
	for range 50 { // the sweeper must have looked: nobody can be told that
		if all, err := db.Query("Sessions").All(ctx); err != nil || len(all) != 0 {
			t.Fatalf("an expired document is found: %d, %v", len(all), err)
		}
		if all, err := db.Collections(ctx); err != nil || len(all) != 0 {
			t.Fatalf("collections: %v, %v", all, err)
		}
		time.Sleep(4 * time.Millisecond)
	}
	hold.Release()
	group.Wait()
	if all, err := db.Query("Sessions").All(ctx); err != nil || len(all) != 1 {
		t.Errorf("what was put off: %d documents, %v", len(all), err)
	}
	jaytest.Must(t, db.Close())
}
