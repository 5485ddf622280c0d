package standby_test

import (
	"context"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/standbytest"
	"github.com/jaydb/jay/standby"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that who waits for changes at a standby is told of those that it takes in by a comparison, without another commit
// of its source.
func TestStandby_FeedAfterComparison(t *testing.T) {
	disk, copyDisk := storagetest.NewDisk(), storagetest.NewDisk()
	db := jaytest.OnDisk(t, disk, jay.Options{})
	put(t, db, "users/1", `{}`)
	source := new(standbytest.Switch)
	source.Set(standby.From(db))
	s, err := standby.Open("copy", source, standby.Options{Database: &jay.Options{FS: copyDisk}, Retry: 100 * time.Millisecond})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	await(t, s, db)
	reader := read(t, s)

	within, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := make(chan string, 100)
	go func() {
		for c, err := range reader.Changes(within, "") {
			if err != nil {
				seen <- "error: " + err.Error()
				return
			}
			seen <- c.ID
		}
	}()
	if id := <-seen; id != "users/1" {
		t.Fatal(id)
	}
	source.Set(nil)
	jaytest.Close(t, db)
	db = jaytest.OnDisk(t, disk, jay.Options{})
	defer jaytest.Close(t, db)
	put(t, db, "users/2", `{}`)
	must(t, db.Flush(ctx))
	before := s.Status().Copies
	source.Set(standby.From(db))
	for more := jaytest.Patience(); more(s.Status().Copies > before); {
	}
	await(t, s, db)
	if read(t, s) != reader {
		t.Fatal("there is another reader")
	}
	if _, err := reader.Get(ctx, "users/2"); err != nil {
		t.Fatal(err)
	}
	if id := <-seen; id != "users/2" {
		t.Errorf("the reader of changes got %q", id)
	}
}
