package score_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	public "github.com/jaydb/jay/jaytest"
)

// notesIn returns the notes that a database has.
func notesIn(t *testing.T, db *jay.DB) map[string]note {
	t.Helper()
	notes := make(map[string]note)
	for doc, err := range db.Documents(ctx, jay.Scan{}) {
		jaytest.Must(t, err)
		var n note
		jaytest.Must(t, json.Unmarshal(doc.Body(), &n))
		notes[doc.ID()] = n
	}
	return notes
}

// Ensure that whenever the power goes, while documents change, their words are settled, and blocks are swept and joined, the next process finds the same documents as
// before, with the scores of a naive BM25 by the frequencies that the index then has; and that it settles to the same.
func TestScores_PowerCut(t *testing.T) {
	quickly(t)
	sample.OneGoroutine(t)
	weights := map[string]float64{"Title": 3, "Text": 1}
	words := func(i int) note {
		return note{fmt.Sprintf("w%d w%d", i%3, i%5), fmt.Sprintf("w%d w1 w2 w%d w0 w%d", i%4, i%7, i%3)}
	}
	put := func(db *public.DB, i int, n note) error {
		_, err := db.Put(ctx, fmt.Sprintf("notes/%d", i), n.body(), jay.InCollection("Notes"))
		return err
	}
	cuts := public.EveryPowerCut(t, nil, func(db *public.DB) {
		jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Words", Kind: "text", Fields: []string{"Title", "Text"}, Options: map[string]string{"weights": "3, 1"}}))
		for i := range 12 {
			jaytest.Must(t, put(db, i, words(i)))
		}
		jaytest.Must(t, checks.Settle(db.DB))
		jaytest.Must(t, db.Flush(ctx))
	}, func(db *public.DB) {
		for i := range 9 { // the power goes, after which there are errors
			_ = put(db, i, words(i+5))
			if i%4 == 3 {
				_ = db.Delete(ctx, fmt.Sprintf("notes/%d", i+3))
			}
			_, _ = checks.SettleSome(db.DB)
			if i%3 == 2 {
				_ = checks.Settle(db.DB)
				_ = db.Flush(ctx)
			}
		}
	}, func(db *public.DB) {
		notes := notesIn(t, db.DB)
		for _, a := range conditions {
			a.check(t, db.DB, notes, false, weights)
			scanned(t, db.DB, a, notes)
		}
		settle(t, db.DB)
		for _, a := range conditions {
			a.check(t, db.DB, notes, false, weights)
		}
		jaytest.Verify(t, db.DB)
	})
	t.Logf("%d failures of power", cuts)
	if cuts < 10 {
		t.Errorf("%d failures of power, of too few", cuts)
	}
}
