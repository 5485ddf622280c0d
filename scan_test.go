package jay_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
)

// Ensure that every walk gives what a plain filter over all documents gives,
// for many collections, prefixes, pages and limits, at home and away.
func TestDocuments_AgainstFilter(t *testing.T) {
	t.Parallel()
	for _, caseSensitive := range []bool{false, true} {
		for _, separator := range []string{"/", "-"} {
			t.Run(fmt.Sprintf("case-sensitive %v, separator %q", caseSensitive, separator), func(t *testing.T) {
				db := memory(t, &jay.Options{CaseSensitive: caseSensitive, Separator: separator})
				random := rand.New(rand.NewPCG(1, 2))
				type document struct{ id, collection string }
				var all []document
				collections := []string{"Users", "users/a", "Orders", "@empty", "a", "A-b"}
				prefixes := []string{"users/", "Users/", "users-", "users/a/", "orders/", "a/", "a-b/", "", "a-"}
				for i := range 300 {
					id := prefixes[random.IntN(len(prefixes))] + fmt.Sprint(random.IntN(1000)) + string(rune('a'+i%26))
					collection := collections[random.IntN(len(collections))]
					if _, err := db.Insert(ctx, id, []byte(`{}`), jay.InCollection(collection)); err != nil {
						continue // there already
					}
					all = append(all, document{id, collection})
				}
				fold := ids.Fold
				if caseSensitive {
					fold = func(id string) string { return id }
				}
				slices.SortFunc(all, func(a, b document) int { return strings.Compare(fold(a.id), fold(b.id)) })
				reversed := slices.Clone(all)
				slices.Reverse(reversed)

				for range 400 {
					s := jay.Scan{Limit: random.IntN(20)}
					if random.IntN(3) > 0 {
						s.Collection = []string{"USERS", "users/A", "orders", "@empty", "A", "a-B", "none"}[random.IntN(7)]
					}
					if random.IntN(2) > 0 {
						s.Prefix = []string{"users", "users/", "USERS/1", "u", "a", "a-b/", "zz", "users/a/"}[random.IntN(8)]
					}
					if random.IntN(2) > 0 {
						s.After = all[random.IntN(len(all))].id
					}
					var want, got []string
					in := all
					if s.Reverse = random.IntN(2) > 0; s.Reverse {
						in = reversed
					}
					for _, d := range in {
						if (s.Collection == "" || ids.EqualFold(d.collection, s.Collection)) && strings.HasPrefix(fold(d.id), fold(s.Prefix)) &&
							(s.After == "" || fold(d.id) != fold(s.After) && (fold(d.id) > fold(s.After)) != s.Reverse) && (s.Limit == 0 || len(want) < s.Limit) {
							want = append(want, d.id)
						}
					}
					for doc, err := range db.Documents(ctx, s) {
						if err != nil {
							t.Fatal(err)
						}
						got = append(got, doc.ID())
					}
					if !slices.Equal(got, want) {
						t.Fatalf("%+v: got %v, want %v", s, got, want)
					}
				}
			})
		}
	}
}

// Ensure that a walk sees one moment, whatever is written meanwhile.
func TestDocuments_Snapshot(t *testing.T) {
	db := memory(t, nil)
	for i := range 10 {
		put(t, db, fmt.Sprintf("users/%d", i), `{"n":1}`, jay.InCollection("Users"))
		put(t, db, fmt.Sprintf("away%d", i), `{"n":1}`, jay.InCollection("Users"))
	}
	n := 0
	for doc, err := range db.Documents(ctx, jay.Scan{Collection: "Users"}) {
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			for i := range 10 {
				put(t, db, fmt.Sprintf("users/%d", i), `{"n":2}`, jay.InCollection("Users"))
				if err := db.Delete(ctx, fmt.Sprintf("away%d", i)); err != nil {
					t.Fatal(err)
				}
				put(t, db, fmt.Sprintf("users/new%d", i), `{"n":2}`, jay.InCollection("Users"))
			}
		}
		equal(t, string(doc.Body()), `{"n":1}`)
		n++
	}
	equal(t, n, 20)
}

// Ensure that a deleted document leaves no trace in its collection, at home
// or away.
func TestDocuments_AfterDelete(t *testing.T) {
	db := memory(t, nil)
	for _, id := range []string{"users/1", "away"} {
		put(t, db, id, `{}`, jay.InCollection("Users"))
		if err := db.Delete(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	for doc, err := range db.Documents(ctx, jay.Scan{Collection: "Users"}) {
		t.Errorf("found %v, %v", doc, err)
	}
	put(t, db, "away", `{}`, jay.InCollection("Others"))
	for doc, err := range db.Documents(ctx, jay.Scan{Collection: "Users"}) {
		t.Errorf("found %v, %v", doc, err)
	}
}

// Ensure that a walk from the greatest ID to the least has what a transaction has
// written in its place, and that only what it has reached is in the read set.
func TestTx_Documents_Reverse(t *testing.T) {
	db := memory(t, nil)
	for i := range 5 {
		put(t, db, fmt.Sprintf("a/%d", i), `{}`)
	}
	walk := func(outside string) (got []string, err error) {
		err = db.Update(ctx, func(tx *jay.Tx) error {
			if _, err := tx.Put(ctx, "a/25", []byte(`{}`)); err != nil {
				return err
			}
			if err := tx.Delete(ctx, "a/3"); err != nil {
				return err
			}
			for doc, err := range tx.Documents(ctx, jay.Scan{Prefix: "a/", Reverse: true}) {
				if err != nil {
					return err
				}
				if got = append(got, doc.ID()); doc.ID() == "a/2" {
					break
				}
			}
			put(t, db, outside, `{}`)
			return nil
		})
		return got, err
	}
	got, err := walk("a/1")
	must(t, err)
	equal(t, fmt.Sprint(got), "[a/4 a/25 a/2]")
	put(t, db, "a/3", `{}`)
	if _, err := walk("a/31"); !errors.Is(err, jay.ErrConflict) {
		t.Errorf("a document where the walk has been: got %v, want ErrConflict", err)
	}
}
