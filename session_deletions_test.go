package jay_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that deletions which survived a failure are not repeated on a document
// that another writer has made anew, and that those which did not survive are.
func TestSession_UnknownOutcome_DeletedAndMadeAnew(t *testing.T) {
	for _, missing := range []bool{false, true} {
		for _, survive := range []int{0, 100} {
			t.Run(fmt.Sprintf("%d%% survive, a missing one too %v", survive, missing), func(t *testing.T) {
				disk := storagetest.NewDisk()
				db := onDisk(t, disk, jay.Options{})
				put(t, db, "customers/1", `{"Name":"old"}`, jay.InCollection("Customers"))
				put(t, db, "customers/2", `{"Name":"old"}`, jay.InCollection("Customers"))
				s := db.OpenSession()
				if missing {
					must(t, s.DeleteID("customers/none"))
				}
				must(t, s.Delete(load[customer](t, s, "customers/1")))
				must(t, s.DeleteID("customers/2"))
				disk.FailAfter(0)
				if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUnknownOutcome) {
					t.Fatal(err)
				}

				crashed := disk.Crash(survive, rand.New(rand.NewPCG(1, 2)))
				_ = db.Close()
				again := onDisk(t, crashed, jay.Options{})
				defer closeDB(t, again)
				want := ""
				if survive == 100 {
					want = `{"Name":"new"}`
				}
				put(t, again, "customers/1", `{"Name":"new"}`, jay.InCollection("Customers"))
				must(t, s.Reattach(again))
				must(t, s.SaveChanges(ctx))
				equal(t, bodyAt(t, again, "customers/1"), want)
				equal(t, bodyAt(t, again, "customers/2"), "")
				changed, err := s.HasChanges()
				must(t, err)
				equal(t, changed, false)
			})
		}
	}
}
