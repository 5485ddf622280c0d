package jaytest

import "github.com/jaydb/jay"

// Check fails the test if the database is not whole, as DB.Verify finds out: each document,
// index entry, counter, attachment and revision has what belongs to it, and each block of
// the files its checksum. Open and EveryPowerCut call it.
func Check(t T, db *jay.DB) {
	t.Helper()
	report, err := db.Verify(background, nil)
	if err != nil {
		t.Errorf("jaytest: check: %v", err)
		return
	}
	for _, damage := range report.Damages {
		t.Errorf("jaytest: the database is not whole: %s", damage)
	}
}
