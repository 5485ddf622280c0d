package jaytest

import (
	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
)

// Check fails the test if the database is not whole: each entry of an index has its
// document and the reverse, and the numbers of documents and revisions are those that are
// there. It waits for indexes that are being built. Open and EveryPowerCut call it.
func Check(t T, db *jay.DB) {
	t.Helper()
	for _, check := range []func(db any) error{checks.Counts, checks.Indexes, checks.Revisions} {
		if err := check(db); err != nil {
			t.Errorf("jaytest: the database is not whole: %v", err)
		}
	}
}
