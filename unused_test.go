package jay_test

import (
	"fmt"
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that the numbers that a transaction drew and did not commit are
// counted as gaps: those of a run that was repeated, and those of a batch that
// was refused. The numbers that the next run used again are none.
func TestGaps_Update(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "watched", `{}`)
	runs := 0
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		runs++
		_, err := tx.Get(ctx, "watched")
		must(t, err)
		for range 4 - runs {
			_, err := tx.Store(ctx, "Users", []byte(`{}`))
			must(t, err)
		}
		if runs == 1 {
			put(t, db, "watched", `{"n":1}`)
		}
		return nil
	}, jay.Retry(1)))
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		var b jay.Batch
		b.Store("Users", []byte(`{}`))
		b.Insert("watched", []byte(`{}`))
		if _, err := tx.Apply(ctx, &b); err == nil {
			t.Error("the insert is accepted")
		}
		return nil
	}))
	s, err := db.Stats(ctx)
	equal(t, fmt.Sprint(s.Gaps, err), "map[users:2] <nil>")
}

// Ensure that a number that was passed over because a writer took its ID by
// hand is not lost to the doctor: a document has it.
func TestGaps_InspectIDs_Taken(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "users/1-A", `{}`, jay.InCollection("Users"))
	equal(t, store(t, db, "Users"), "users/2-A")
	r, err := db.InspectIDs(ctx, nil)
	must(t, err)
	equal(t, fmt.Sprint(r.HiLo[0].Unused, r.HiLo[0].InOpenLeases, r.HiLo[0].LostInThisProcess), "30 30 0")
}
