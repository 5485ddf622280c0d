package backups_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/backups"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that a database that a server has made again under its name gets no backups among those of the one before, of which none goes.
func TestKeeper_DatabaseMadeAgain(t *testing.T) {
	ctx := context.Background()
	disk := storagetest.NewDisk()
	first, second := jaytest.Memory(t, nil), jaytest.Memory(t, nil)
	jaytest.Put(t, first, "users/1", `{}`)
	now := first
	source := func(context.Context) (*jay.DB, func(), error) { return now, func() {}, nil }
	o := backups.Options{Dir: "backups", FS: disk, Keep: 2}
	k, err := backups.OpenFrom(ctx, source, o)
	jaytest.Must(t, err)
	_, err = k.Make(ctx)
	jaytest.Must(t, err)
	before, err := disk.List("backups")
	jaytest.Must(t, err)
	now = second
	for range 4 {
		if _, err = k.Make(ctx); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("a backup of another database: got %v, want ErrUsage", err)
		}
	}
	after, err := disk.List("backups")
	jaytest.Must(t, err)
	slices.Sort(before) // a disk lists its names in any order
	slices.Sort(after)
	if !slices.Equal(before, after) {
		t.Errorf("the directory had %q, and has %q", before, after)
	}
	now = first
	_, err = k.Make(ctx)
	jaytest.Must(t, err)
	jaytest.Must(t, k.Close())
}
