package recovery_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/backup"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that a copy that ended at any sync, and goes on after its source has given a number and got an index, has both
// or is refused.
func TestCopy_ResumedAfterSource(t *testing.T) {
	ctx, disk := context.Background(), storagetest.NewDisk()
	o := &jay.Options{FS: disk}
	db := jaytest.Open(t, "from", o)
	for range 7 {
		_, err := db.NextIdentity(ctx, "invoices")
		jaytest.Must(t, err)
	}
	jaytest.Store(t, db, "Users")
	jaytest.Must(t, db.Close())

	var mu sync.Mutex
	var images []*storagetest.Disk // guarded by mu
	disk.OnEverySync(func() {
		mu.Lock()
		defer mu.Unlock()
		images = append(images, disk.Crash(100, rand.New(rand.NewPCG(1, uint64(len(images))))))
	})
	_, err := jay.Copy(ctx, "from", "to", jay.CopyOptions{SameTag: true, From: o, To: o})
	jaytest.Must(t, err)
	disk.OnEverySync(nil)
	mu.Lock()
	defer mu.Unlock()
	begun, equal := 0, 0
	for i, image := range images {
		e, err := onDisk(image).Open("to", storage.OpenOptions{ReadOnly: true, MustExist: true})
		if err != nil {
			continue // nothing of the copy is there
		}
		mark, err := backup.IsRestoring(e)
		jaytest.Must(t, errors.Join(err, e.Close()))
		if mark == nil || mark.Copy == nil {
			continue
		}
		begun++
		o := &jay.Options{FS: image}
		from := jaytest.Open(t, "from", o)
		given, err := from.NextIdentity(ctx, "invoices")
		jaytest.Must(t, err)
		jaytest.Must(t, from.EnsureIndex(ctx, "Users", jay.Index{Name: "later", Fields: []string{"name"}}))
		jaytest.Must(t, from.Close())
		if mark.Copy.Equal {
			equal++
		}
		if _, err := jay.Copy(ctx, "from", "to", jay.CopyOptions{SameTag: true, From: o, To: o}); err != nil {
			if !errors.Is(err, jay.ErrCopy) {
				t.Errorf("image %d: %v", i, err)
			}
			continue
		}
		to := jaytest.Open(t, "to", o)
		next, err := to.NextIdentity(ctx, "invoices")
		jaytest.Must(t, err)
		indexes, err := to.Indexes(ctx, "Users")
		jaytest.Must(t, err)
		if next <= given || len(indexes) == 0 {
			t.Errorf("image %d, equal: %v: the source gave invoice %d, and its copy gives %d; it has the indexes %v", i, mark.Copy.Equal, given, next, indexes)
		}
		jaytest.Must(t, to.Close())
	}
	if begun < 10 || equal < 5 {
		t.Errorf("%d copies were begun, and %d of them compared", begun, equal)
	}
}
