package settings_test

import (
	"context"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that a copy accepts no range that the original has granted: its client may go on to
// use it there. The original accepts it after a reopen.
func TestRetag_LeasesVoid(t *testing.T) {
	ctx := context.Background()
	disk := storagetest.NewDisk()
	db, err := jay.Open("db", &jay.Options{FS: disk})
	jaytest.Must(t, err)
	ends := make(map[string]int64)
	for _, tag := range []string{"users", "orders"} {
		r, err := db.NextRange(ctx, jay.RangeRequest{Tag: tag})
		jaytest.Must(t, err)
		ends[tag] = r.High
	}
	jaytest.Must(t, db.Close())

	for _, opened := range []struct {
		copyTag, tag string
		accepted     bool
	}{
		{"", "users", true},
		{"B", "orders", false},
	} {
		db, err := jay.Open("db", &jay.Options{FS: disk, CopyTag: opened.copyTag})
		jaytest.Must(t, err)
		accepted, err := db.ReturnRange(ctx, opened.tag, 0, ends[opened.tag])
		if err != nil || accepted != opened.accepted {
			t.Errorf("under the tag %q, the range of %s: accepted %v (%v), want %v", opened.copyTag, opened.tag, accepted, err, opened.accepted)
		}
		jaytest.Must(t, db.Close())
	}
}
