package backups_test

import (
	"fmt"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/backups"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that backups of a store that several processes have open have what all of them have written, and that the Keeper of another process goes on with
// the backups of one that has ended.
func TestKeeper_SharedStore(t *testing.T) {
	t.Parallel()
	driver, disk := jaytest.SharedDriver(t), storagetest.NewDisk()
	open := func() *jay.DB { return jaytest.Open(t, "db", &jay.Options{Engine: driver}) }
	one, two := open(), open()
	o := backups.Options{Dir: "/copies", FS: disk}
	documents := 0
	put := func(db *jay.DB, id string) {
		documents++
		jaytest.Put(t, db, id, `{}`)
	}
	keep := func(db *jay.DB) (check func(wanted int), end func()) {
		t.Helper()
		k, err := backups.Open(db, o)
		jaytest.Must(t, err)
		return func(wanted int) {
			t.Helper()
			_, err := k.Make(ctx)
			jaytest.Must(t, err)
			info, err := k.Drill(ctx, "/drill")
			if err != nil || info.Documents != int64(documents) || len(info.Backups) != wanted {
				t.Errorf("a drill has %d documents of %d, and %d backups of %d: %v", info.Documents, documents, len(info.Backups), wanted, err)
			}
		}, func() { jaytest.Must(t, k.Close()) }
	}
	check, end := keep(one)
	for i := range 2 {
		put(one, fmt.Sprint("one/", i))
		put(two, fmt.Sprint("two/", i))
		check(i + 1)
	}
	end()
	jaytest.Must(t, one.Close())
	jaytest.Must(t, two.Delete(ctx, "one/1"))
	documents--
	put(two, "two/last")
	check, end = keep(two)
	check(3)
	end()
	jaytest.Must(t, two.Close())
}
