package jay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/room"
	"github.com/jaydb/jay/storage/storagetest"
)

// lookAlways makes each write look at what is free on the disk.
func lookAlways(t *testing.T) {
	old := room.Interval
	room.Interval = 0
	t.Cleanup(func() { room.Interval = old })
}

// Ensure that no write gets through while less is free on the disk than must stay free,
// that deletions and reads do, and that writes go on when there is room again.
func TestMinFreeBytes(t *testing.T) {
	lookAlways(t)
	ctx := context.Background()
	disk := storagetest.NewDisk()
	disk.SetFreeBytes(10 << 20)
	var log bytes.Buffer
	db := open(t, "db", &jay.Options{FS: disk, MinFreeBytes: 1 << 20, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for i := range 10 {
		_, err := db.Put(ctx, fmt.Sprint("users/", i), json.RawMessage(`{"n":1}`), jay.InCollection("Users"))
		must(t, err)
	}

	writes := map[string]func() error{
		"put":     func() error { _, err := db.Put(ctx, "users/1", json.RawMessage(`{"n":2}`)); return err },
		"insert":  func() error { _, err := db.Insert(ctx, "users/x", json.RawMessage(`{}`)); return err },
		"store":   func() error { _, err := db.Store(ctx, "Users", json.RawMessage(`{}`)); return err },
		"replace": func() error { _, err := db.Replace(ctx, "users/1", json.RawMessage(`{"n":2}`)); return err },
		"patch":   func() error { _, err := db.Patch(ctx, "users/1", jay.Set("n", 3)); return err },
		"batch": func() error {
			var b jay.Batch
			b.Delete("users/2")
			b.Put("users/3", json.RawMessage(`{"n":4}`))
			_, err := db.Apply(ctx, &b)
			return err
		},
		"update": func() error {
			return db.Update(ctx, func(tx *jay.Tx) error {
				_, err := tx.Put(ctx, "users/1", json.RawMessage(`{"n":5}`))
				return err
			})
		},
		"query": func() error {
			_, err := db.Query("Users").Patch(ctx, jay.Set("n", 6))
			return err
		},
		"bulk": func() error {
			w, err := db.BulkInsert(nil)
			if err != nil {
				return err
			}
			_, err = w.Put(ctx, "users/y", json.RawMessage(`{}`))
			return errors.Join(err, w.Close())
		},
		"attachment": func() error {
			_, err := db.Attachments("users/1").Put(ctx, "a", strings.NewReader(strings.Repeat("a", 1<<20)))
			return err
		},
		"value":  func() error { _, err := db.CompareExchange().Put(ctx, "lock", 1, 0); return err },
		"rename": func() error { _, err := db.RenameCollection(ctx, "Users", "People"); return err },
	}
	disk.SetFreeBytes(1<<20 - 1)
	before, err := db.Counters(ctx)
	must(t, err)
	for name, write := range writes {
		err := write()
		var full *jay.DiskFullError
		if !errors.As(err, &full) || !errors.Is(err, jay.ErrDiskFull) {
			t.Errorf("%s: got %v, want a DiskFullError", name, err)
			continue
		}
		if *full != (jay.DiskFullError{Dir: "db", FreeBytes: 1<<20 - 1, MinFreeBytes: 1 << 20}) {
			t.Errorf("%s: %+v", name, *full)
		}
	}
	after, err := db.Counters(ctx)
	must(t, err)
	if after.Etag != before.Etag {
		t.Errorf("the etag has gone from %d to %d", before.Etag, after.Etag)
	}
	if s, err := db.Stats(ctx); err != nil || !s.DiskFull {
		t.Errorf("Stats: DiskFull %v, %v", s.DiskFull, err)
	}
	for i := range 10 {
		doc, err := db.Get(ctx, fmt.Sprint("users/", i))
		must(t, err)
		if string(doc.Body()) != `{"n":1}` {
			t.Errorf("users/%d has changed: %s", i, doc.Body())
		}
	}
	must(t, db.Delete(ctx, "users/0"))
	must(t, db.Update(ctx, func(tx *jay.Tx) error { return tx.Delete(ctx, "users/9") }))
	if _, err := db.Query("Nobody").Delete(ctx); err != nil {
		t.Error(err)
	}
	must(t, db.Compact(ctx))

	disk.SetFreeBytes(10 << 20)
	for _, name := range []string{"put", "insert", "store", "replace", "patch", "batch", "update", "query", "bulk", "attachment", "value", "rename"} {
		if err := writes[name](); err != nil {
			t.Errorf("%s, with room: %v", name, err)
		}
	}
	if s, err := db.Stats(ctx); err != nil || s.DiskFull {
		t.Errorf("Stats, with room: DiskFull %v, %v", s.DiskFull, err)
	}
	must(t, jay.CheckCounts(db))
	must(t, db.Close())
	for _, text := range []string{"level=ERROR msg=\"jay: the disk is almost full", "level=INFO msg=\"jay: the disk has room again"} {
		if strings.Count(log.String(), text) != 1 {
			t.Errorf("the log has %d times %q:\n%s", strings.Count(log.String(), text), text, log.String())
		}
	}
}

// Ensure that writes which follow the last look at the disk are counted: together they
// do not take what must stay free, and neither does one large one.
func TestMinFreeBytes_BetweenLooks(t *testing.T) {
	old := room.Interval
	room.Interval = time.Hour
	defer func() { room.Interval = old }()
	ctx := context.Background()
	disk := storagetest.NewDisk()
	disk.SetFreeBytes(3 << 20)
	db := open(t, "db", &jay.Options{FS: disk, MinFreeBytes: 1 << 20})
	large := json.RawMessage(`{"a":"` + strings.Repeat("a", 1<<20) + `"}`) // is written twice: log and table
	if _, err := db.Put(ctx, "large", large); !errors.Is(err, jay.ErrDiskFull) {
		t.Errorf("got %v, want ErrDiskFull", err)
	}
	small := json.RawMessage(`{"a":"` + strings.Repeat("a", 100<<10) + `"}`)
	must(t, errOf(db.Put(ctx, "small", small)))
	disk.SetFreeBytes(1<<20 + 100<<10) // less than was expected: a look follows soon
	refused := 0
	for i := range 10 {
		if err := errOf(db.Put(ctx, fmt.Sprint("small/", i), small)); errors.Is(err, jay.ErrDiskFull) {
			refused++
		} else {
			must(t, err)
		}
	}
	if refused < 8 {
		t.Errorf("%d of 10 writes were refused, want all but the first two", refused)
	}
	must(t, db.Close())
}

// errOf returns the error of a call with a result.
func errOf[T any](_ T, err error) error { return err }

// Ensure that Open refuses MinFreeBytes on a file system that does not know what is free,
// and that it does not matter in memory.
func TestMinFreeBytes_Unknown(t *testing.T) {
	if _, err := jay.Open("db", &jay.Options{FS: storagetest.NewDisk(), MinFreeBytes: 1}); err == nil {
		t.Error("opened, though nothing is known of the disk")
	}
	if _, err := jay.Open("db", &jay.Options{FS: storagetest.NewDisk(), MinFreeBytes: -1}); !errors.Is(err, jay.ErrOption) {
		t.Errorf("got %v, want ErrOption", err)
	}
	db, err := jay.OpenMemory(&jay.Options{MinFreeBytes: 1 << 60})
	must(t, err)
	must(t, errOf(db.Put(context.Background(), "a", json.RawMessage(`{}`))))
	must(t, db.Close())
	real, err := jay.Open(t.TempDir(), &jay.Options{MinFreeBytes: 1})
	must(t, err)
	must(t, errOf(real.Put(context.Background(), "a", json.RawMessage(`{}`))))
	must(t, real.Close())
}

// Ensure that the build of an index waits until there is room, and that Close ends it.
func TestMinFreeBytes_IndexBuild(t *testing.T) {
	old := room.Interval
	room.Interval = time.Millisecond
	defer func() { room.Interval = old }()
	ctx := context.Background()
	disk := storagetest.NewDisk()
	disk.SetFreeBytes(10 << 20)
	db := open(t, "db", &jay.Options{FS: disk, MinFreeBytes: 1 << 20})
	must(t, errOf(db.Put(ctx, "users/1", json.RawMessage(`{"n":1}`), jay.InCollection("Users"))))
	disk.SetFreeBytes(0)
	for errOf(db.Put(ctx, "x", json.RawMessage(`{}`))) == nil {
		time.Sleep(time.Millisecond) // until the next look
	}
	waiting, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if err := db.EnsureIndex(waiting, "Users", jay.Index{Fields: []string{"n"}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of the context: the build waits", err)
	}
	disk.SetFreeBytes(10 << 20)
	must(t, db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"n"}}))
	must(t, db.Close())
}
