package jay

// These tests compare the numbers of documents that the database keeps with its
// documents in one snapshot, which only the package can do.

import (
	"context"
	"errors"
	"testing"

	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// CheckCounts waits until all documents are counted, and compares the numbers that are
// kept with the documents.
func CheckCounts(db *DB) error {
	db.counts.Wait()
	if !db.counts.IsReady() {
		return errors.New("the documents are not counted")
	}
	return checkCounts(context.Background(), db)
}

// SetCountSteps makes the count of an older database take so many documents at a time,
// and returns what undoes that. No database may be open.
func SetCountSteps(documents int) (restore func()) {
	old := counts.StepDocuments
	counts.StepDocuments = documents
	return func() { counts.StepDocuments = old }
}

// Ensure that the check of the numbers finds one that is wrong, and one too many.
func TestCheckCounts(t *testing.T) {
	for name, key := range map[string][]byte{"wrong": format.CountKey(nil, "users"), "one too many": format.CountKey(nil, "nobody")} {
		db, err := OpenMemory(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Put(context.Background(), "users/1", []byte(`{}`), InCollection("Users")); err != nil {
			t.Fatal(err)
		}
		add := func(delta int64) {
			if err := db.env.Engine.Update(context.Background(), true, func(tx storage.Tx) error { tx.Add(key, delta); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		add(1)
		if err := CheckCounts(db); !errors.Is(err, errMiscounted) {
			t.Errorf("%s: got %v, want errMiscounted", name, err)
		}
		add(-1)
		if err := errors.Join(CheckCounts(db), db.Close()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
