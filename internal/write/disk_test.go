package write_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that no other writer waits for the disk while one writer waits for what it has to read there.
func TestSlowReads(t *testing.T) {
	defer func(old time.Duration) { write.SlowRead = old }(write.SlowRead)
	write.SlowRead = 0 // as if each read waited for the disk

	const documents = 300
	body := func() []byte {
		text := make([]byte, 10_000)
		for i := range text {
			text[i] = 'a' + byte(rand.IntN(26))
		}
		return fmt.Appendf(nil, `{"Text":%q,"Name":%q}`, text, text[:200])
	}
	for _, c := range []struct {
		name  string
		write func(ctx context.Context, db *jay.DB, from int) error // of documents that nobody has read
	}{
		{"a put", func(ctx context.Context, db *jay.DB, from int) error {
			_, err := db.Put(ctx, fmt.Sprintf("docs/%03d", from), []byte(`{}`))
			return err
		}},
		{"a deletion", func(ctx context.Context, db *jay.DB, from int) error {
			return db.Delete(ctx, fmt.Sprintf("docs/%03d", from))
		}},
		{"a batch", func(ctx context.Context, db *jay.DB, from int) error {
			var b jay.Batch
			for i := range 20 {
				b.Put(fmt.Sprintf("docs/%03d", from+10*i), []byte(`{}`))
			}
			_, err := db.Apply(ctx, &b)
			return err
		}},
		{"a transaction", func(ctx context.Context, db *jay.DB, from int) error {
			return db.Update(ctx, func(tx *jay.Tx) error {
				for i := range 20 {
					if _, err := tx.Put(ctx, fmt.Sprintf("docs/%03d", from+10*i), []byte(`{}`), jay.InCollection("docs")); err != nil {
						return err
					}
				}
				return nil
			})
		}},
		{"a new document of a unique index", func(ctx context.Context, db *jay.DB, _ int) error {
			_, err := db.Put(ctx, "docs/new", body(), jay.InCollection("docs"))
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			disk := storagetest.NewDisk()
			db := jaytest.Open(t, "db", &jay.Options{FS: disk})
			for i := range documents {
				jaytest.Put(t, db, fmt.Sprintf("docs/%03d", i), string(body()), jay.InCollection("docs"))
			}
			if strings.Contains(c.name, "unique") {
				jaytest.Must(t, db.EnsureIndex(t.Context(), "docs", jay.Index{Fields: []string{"Name"}, Unique: true}))
			}
			jaytest.Must(t, db.Compact(t.Context()))
			jaytest.Close(t, db)
			db = jaytest.Open(t, "db", &jay.Options{FS: disk, CacheBytes: 1 << 20})
			jaytest.Put(t, db, "other", `{}`)
			for i := range 20 {
				jaytest.Put(t, db, fmt.Sprintf("docs/%03d", i), `{}`) // the first ones read under the lock
			}

			hold := disk.Hold(storagetest.Tables, storagetest.Reads)
			defer hold.Release()
			written := make(chan error, 1)
			go func() { written <- c.write(t.Context(), db, documents/3) }()
			select {
			case <-hold.Met():
			case err := <-written:
				t.Fatalf("it read nothing: %v", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if _, err := db.Put(ctx, "other", []byte(`{"again":true}`)); err != nil {
				t.Errorf("another writer: %v", err)
			}
			hold.Release()
			jaytest.Must(t, <-written)
		})
	}
}
