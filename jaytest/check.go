package jaytest

import "github.com/jaydb/jay"

// Check fails the test if DB.Verify finds that the database is not whole. DB.Verify checks that
// each document, index entry, counter, attachment and revision has the records that belong to it,
// and that each block of the files matches its checksum. Open and EveryPowerCut call Check.
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
