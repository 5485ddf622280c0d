package score_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/query"
)

// shown is all that a database says of its words.
func shown(t *testing.T, db *jay.DB) (all []string) {
	t.Helper()
	for _, a := range conditions {
		q, err := db.RQL("from Notes where "+a.rql+" order by score() select id(), score() include highlight(Text, 40, 2), explanations()", nil)
		jaytest.Must(t, err)
		for next := q.Limit(2); ; {
			page, err := next.Page(ctx)
			jaytest.Must(t, err)
			for _, row := range page.Items {
				all = append(all, fmt.Sprintf("%s: %s %v %v", a.rql, row.JSON, row.Highlights, row.Explanation))
			}
			if page.Next == "" {
				break
			}
			next = q.Limit(2).After(page.Next)
		}
	}
	meant, err := db.Query("Notes").Suggest(ctx, "Text", "w11x", jay.SuggestOptions{})
	jaytest.Must(t, err)
	typed, err := db.Query("Notes").Complete(ctx, "Text", "w1", jay.SuggestOptions{Size: 3})
	jaytest.Must(t, err)
	terms, err := jay.IndexOf(db, "Notes", "Words").Terms(ctx, jay.IndexTermList{Field: "Text", Prefix: "w"})
	jaytest.Must(t, err)
	like, err := db.Query("Notes").Where(jay.MoreLikeThis("notes/3", query.MoreLikeOptions{MinimumTermFrequency: 1, MinimumDocumentFrequency: 1})).OrderBy(jay.Score).All(ctx)
	return append(all, fmt.Sprint(meant, typed, terms, ids(t, like, err)))
}

// Ensure that who looks into a database by its socket, a restored backup, a copy and a repaired database say of the words what the database says, with a part of them in
// the tail, and when all are settled.
func TestScores_Meetings(t *testing.T) {
	quickly(t)
	dir := filepath.Join(t.TempDir(), "db")
	db := jaytest.Open(t, dir, nil)
	jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Words", Kind: "text", Fields: []string{"Title", "Text"}, Options: map[string]string{"weights": "3, 1"}}))
	put := func(i int) {
		n := note{fmt.Sprintf("w%d w%d", i%3, i%5), fmt.Sprintf("w%d w1 w2 w%d w0 w%d", i%4, i%17, i%3)}
		jaytest.Put(t, db, fmt.Sprintf("notes/%d", i), string(n.body()), jay.InCollection("Notes"))
	}
	for i := range 20 {
		put(i)
	}
	settle(t, db)
	for i := 15; i < 24; i++ {
		put(i)
	}
	want := shown(t, db)
	same := func(what string, other *jay.DB) {
		t.Helper()
		got := shown(t, other)
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Errorf("%s: says %d things, and the database %d; the first that differs is\n%s\n%s", what, len(got), len(want), got[min(i, len(got)-1)], want[min(i, len(want)-1)])
				return
			}
		}
	}
	there, err := jay.Look(dir, nil)
	jaytest.Must(t, err)
	same("a look", there)
	jaytest.Must(t, there.Close())

	var stream bytes.Buffer
	_, err = db.Backup(ctx, &stream)
	jaytest.Must(t, err)
	restored := filepath.Join(t.TempDir(), "restored")
	_, err = jay.Restore(ctx, restored, jay.RestoreOptions{CopyTag: "R"}, &stream)
	jaytest.Must(t, err)
	copied := filepath.Join(t.TempDir(), "copied")
	jaytest.Must(t, db.Checkpoint(ctx, copied))
	jaytest.Must(t, db.Close())
	for what, dir := range map[string]string{"reopened": dir, "a restored backup": restored, "a copy": copied} {
		db := jaytest.Open(t, dir, nil)
		if what == "reopened" {
			same(what, db) // with the same ordinals
		}
		jaytest.Verify(t, db)
		notes := notesIn(t, db)
		for range 2 {
			for _, a := range conditions {
				a.check(t, db, notes, false, map[string]float64{"Title": 3, "Text": 1})
			}
			settle(t, db)
		}
		jaytest.Verify(t, db)
		jaytest.Must(t, db.Close())
	}
	repaired := filepath.Join(t.TempDir(), "repaired")
	_, err = jay.Repair(ctx, dir, repaired, nil, nil)
	jaytest.Must(t, err)
	db = jaytest.Open(t, repaired, nil)
	defer jaytest.Close(t, db)
	settle(t, db)
	notes := notesIn(t, db)
	if len(notes) != 24 {
		t.Errorf("a repair has %d documents", len(notes))
	}
	for _, a := range conditions {
		a.check(t, db, notes, true, map[string]float64{"Title": 3, "Text": 1})
	}
}
