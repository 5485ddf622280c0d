package jay_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that a copy opened under a new tag never makes an ID that its
// original makes, whatever both do, and that identities wait for a floor
// (A20).
func TestCopyTag(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := open(t, dir, nil)
	put(t, db, "users|", `{}`)
	store(t, db, "Users")
	closeDB(t, db)
	copied := t.TempDir()
	copyTree(t, dir, copied)

	original := open(t, dir, nil)
	defer closeDB(t, original)
	open(t, copied, &jay.Options{CopyTag: "B"}).Close()
	twin := open(t, copied, &jay.Options{CopyTag: "B"}) // the option can stay
	defer closeDB(t, twin)

	seen := make(map[string]bool)
	for range 50 {
		for _, db := range []*jay.DB{original, twin} {
			for _, id := range []string{store(t, db, "Users"), put(t, db, "users/", `{}`).ID, store(t, db, "New")} {
				if seen[id] {
					t.Errorf("%s was made by both", id)
				}
				seen[id] = true
			}
		}
	}
	if !seen["users/2-A"] || !seen["users/2-B"] {
		t.Error("the twins do not count on under their own tags")
	}

	before := dump(t, twin)
	for _, request := range []string{"users|", "never-used|"} {
		if _, err := twin.Put(ctx, request, []byte(`{}`)); !errors.Is(err, jay.ErrNeedsFloor) {
			t.Errorf("%s: got %v, want ErrNeedsFloor", request, err)
		}
		if _, err := twin.NextIdentity(ctx, request); !errors.Is(err, jay.ErrNeedsFloor) {
			t.Errorf("next %s: got %v, want ErrNeedsFloor", request, err)
		}
	}
	equal(t, dump(t, twin), before)
	n, err := twin.SeedIdentity(ctx, "users", 1000, false)
	equal(t, fmt.Sprint(n, err), "1000 <nil>")
	equal(t, put(t, twin, "users|", `{}`).ID, "users/1001")
	n, err = twin.SeedIdentity(ctx, "never-used", 0, false)
	equal(t, fmt.Sprint(n, err), "0 <nil>")
	equal(t, put(t, twin, "never-used|", `{}`).ID, "never-used/1")
	equal(t, put(t, original, "users|", `{}`).ID, "users/2")

	// What the original wrote keeps its version; what the twin writes has its own.
	doc, err := twin.Get(ctx, "users/1")
	if err != nil {
		t.Fatal(err)
	}
	old, err := original.Get(ctx, "users/1")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, doc.ChangeVector(), old.ChangeVector())
	m := put(t, twin, "users/1", `{"again":1}`, jay.IfMatch(doc.ChangeVector()))
	equal(t, m.ChangeVector[:2], "B:")
}

// Ensure that ranges that the original's clients hold are void in the copy.
func TestCopyTag_Leases(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := open(t, dir, nil)
	r := nextRange(t, db, jay.RangeRequest{Tag: "users"})
	closeDB(t, db)
	twin := open(t, dir, &jay.Options{CopyTag: "B"})
	defer closeDB(t, twin)
	equal(t, returnRange(t, twin, "users", 1, r.High), false)
	equal(t, span(nextRange(t, twin, jay.RangeRequest{Tag: "users"})), "users/33..64-B")
}

// IDs of the older generations carry no node tag: the original and its copy
// both made users/33.
func TestCopyTag_UntaggedIDs(t *testing.T) {
	t.Parallel()
	for _, mode := range []jay.HiLoMode{jay.HiLo2, jay.HiLo2010} {
		opts := func(mode jay.HiLoMode, tag string) *jay.Options {
			return &jay.Options{HiLoMode: mode, HiLoCapacity: 4, HiLo2Growth: jay.GrowthNone, CopyTag: tag}
		}
		dir, copied := t.TempDir(), t.TempDir()
		db := open(t, dir, opts(mode, ""))
		equal(t, store(t, db, "Users"), "users/1")
		closeDB(t, db)
		copyTree(t, dir, copied)
		original := open(t, dir, opts(mode, ""))
		seen := make(map[string]bool)
		make := func(db *jay.DB, collection string) {
			t.Helper()
			id := store(t, db, collection)
			if seen[id] {
				t.Errorf("mode %d: %s was made by both", mode, id)
			}
			seen[id] = true
		}
		refuse := func(db *jay.DB, collection string) {
			t.Helper()
			before := dump(t, db)
			_, stored := db.Store(ctx, collection, []byte(`{}`))
			_, drawn := db.NewHiLoClient().Next(ctx, strings.ToLower(collection))
			if !errors.Is(stored, jay.ErrNeedsFloor) || !errors.Is(drawn, jay.ErrNeedsFloor) {
				t.Errorf("mode %d, %s: got %v and %v, want ErrNeedsFloor", mode, collection, stored, drawn)
			}
			equal(t, dump(t, db), before)
		}

		// One that was there, and one that is new to both.
		twin := open(t, copied, opts(mode, "B"))
		for range 2 {
			refuse(twin, "Users")
			refuse(twin, "Orders")
			closeDB(t, twin)
			twin = open(t, copied, opts(mode, ""))
		}
		equal(t, kinds(inspect(t, twin)), "needs-floor users")

		// HiLo4 goes on, and releases nothing.
		closeDB(t, twin)
		twin = open(t, copied, opts(jay.HiLo4, ""))
		equal(t, store(t, twin, "Users"), "users/5-B")
		equal(t, store(t, twin, "Orders"), "orders/1-B")
		equal(t, kinds(inspect(t, twin)), "")
		closeDB(t, twin)
		twin = open(t, copied, opts(mode, ""))
		refuse(twin, "Users")
		refuse(twin, "Orders")

		// A floor releases its tag, for good, and no other.
		must(t, twin.RaiseCounters(ctx, jay.Counters{HiLo: map[string]int64{"USERS": 1000}}))
		refuse(twin, "Orders")
		for range 50 {
			make(original, "Users")
			make(twin, "Users")
			make(original, "Orders")
		}
		closeDB(t, twin)
		twin = open(t, copied, opts(mode, ""))
		make(twin, "Users")
		refuse(twin, "Orders")
		equal(t, kinds(inspect(t, twin)), "needs-floor orders")

		// A copy of the copy waits again.
		closeDB(t, twin)
		twin = open(t, copied, opts(mode, "C"))
		refuse(twin, "Users")
		closeDB(t, twin)
		closeDB(t, original)
	}
}

// Ensure that a copy can be copied again, and that a wrong tag changes nothing.
func TestCopyTag_Again(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	closeDB(t, open(t, dir, nil))
	for _, tag := range []string{"b", "RAFT", "ABCDE"} {
		if _, err := jay.Open(dir, &jay.Options{CopyTag: tag}); !errors.Is(err, jay.ErrOption) {
			t.Errorf("tag %q: got %v, want ErrOption", tag, err)
		}
	}
	for _, tag := range []string{"B", "C", "D"} {
		db := open(t, dir, &jay.Options{CopyTag: tag})
		id := store(t, db, "Users")
		equal(t, id[len(id)-1:], tag)
		if _, err := db.Put(ctx, "users|", []byte(`{}`)); !errors.Is(err, jay.ErrNeedsFloor) {
			t.Errorf("tag %s: got %v, want ErrNeedsFloor", tag, err)
		}
		if _, err := db.SeedIdentity(ctx, "users", 5, false); err != nil {
			t.Fatal(err)
		}
		closeDB(t, db)
	}
	if _, err := jay.Open(dir, &jay.Options{NodeTag: "A"}); !errors.Is(err, jay.ErrFixed) {
		t.Errorf("got %v, want ErrFixed", err)
	}
}

// Ensure that a copy cannot take a tag that it had before, over any number of
// copies, with an error that says why, and that it stays as it was.
func TestCopyTag_HadBefore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := open(t, dir, &jay.Options{NodeTag: "X"})
	store(t, db, "Users")
	closeDB(t, db)
	for _, tag := range []string{"B", "C", "D"} {
		closeDB(t, open(t, dir, &jay.Options{CopyTag: tag}))
	}
	for _, tag := range []string{"X", "B", "C"} {
		_, err := jay.Open(dir, &jay.Options{CopyTag: tag})
		if !errors.Is(err, jay.ErrFixed) || !strings.Contains(err.Error(), fmt.Sprintf(`its node tag is "D", and CopyTag %q is one that it had before`, tag)) {
			t.Errorf("%s: got %v, want ErrFixed", tag, err)
		}
	}
	db = open(t, dir, &jay.Options{CopyTag: "D"})
	equal(t, store(t, db, "Users"), "users/2-D")
	closeDB(t, db)
	db = open(t, dir, &jay.Options{CopyTag: "A"}) // never had, though it is the default
	equal(t, store(t, db, "Users"), "users/3-A")
	closeDB(t, db)
}
