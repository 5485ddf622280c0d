package heads_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/heads"
)

// spelling returns one for each etag.
func spelling(etag uint64) heads.Spelling { return heads.Spelling(etag % 3) }

// Ensure that a table never returns the head of a version that was replaced, however
// commits and their Sets cross each other, while it grows and evicts.
func TestTable_Model(t *testing.T) {
	for _, limit := range []int64{8 << 10, 256 << 10, 8 << 20} {
		seed := rand.Uint64()
		t.Logf("seed %d, %d bytes", seed, limit)
		random := rand.New(rand.NewPCG(seed, 1))
		table := heads.New(limit)
		number, ok := table.Name("Users")
		if !ok {
			t.Fatal("no number for a collection")
		}

		const ids = 3000
		committed := make([]uint64, ids) // etags; 0 for a missing document
		type write struct {
			ref  heads.Ref
			etag uint64
		}
		var late []write // committed, and not entered yet
		known, etag := 0, uint64(0)
		for range 30_000 {
			i := random.IntN(ids)
			id := fmt.Sprintf("users/%d", i)
			head, found := table.Find(id)
			if found {
				known++
				if head != (heads.Head{Etag: committed[i], Size: int(committed[i]) + 7, Collection: "Users", Spelling: spelling(committed[i])}) {
					t.Fatalf("%s: %+v is known, and the newest etag is %d", id, head, committed[i])
				}
			}
			switch etag++; random.IntN(8) {
			case 0:
				table.Forget(id) // a deletion
				committed[i] = 0
			case 1:
				table.Reserve(id) // a transaction that fails
			case 2:
				late = append(late, write{table.Reserve(id), etag})
				committed[i] = etag
			default:
				ref := table.Reserve(id)
				committed[i] = etag
				table.Set(ref, etag, int(etag)+7, number, spelling(etag))
			}
			if len(late) > 0 && random.IntN(3) == 0 {
				at := random.IntN(len(late))
				table.Set(late[at].ref, late[at].etag, int(late[at].etag)+7, number, spelling(late[at].etag))
				late[at] = late[len(late)-1]
				late = late[:len(late)-1]
			}
			if found, _ := table.Find(id); found.Etag != 0 && found.Etag != committed[i] {
				t.Fatalf("%s: etag %d is known, and the newest is %d", id, found.Etag, committed[i])
			}
		}
		if known == 0 {
			t.Errorf("%d bytes: no head was ever known", limit)
		}
	}
}

// Ensure that a table that is large enough knows nearly all heads, and one that is not
// as many as it has room for.
func TestTable_Room(t *testing.T) {
	for _, test := range []struct {
		limit        int64
		ids, atLeast int
	}{
		{8 << 20, 100_000, 99_900},
		{1 << 20, 100_000, 15_000},
		{1, 100, 0},
	} {
		table := heads.New(test.limit)
		number := uint16(0)
		if table != nil {
			number, _ = table.Name("Users")
		}
		for range 2 {
			for i := range test.ids {
				table.Set(table.Reserve(fmt.Sprint("users/", i)), uint64(i+1), i, number, heads.AsFolded)
			}
		}
		known := 0
		for i := range test.ids {
			if head, found := table.Find(fmt.Sprint("users/", i)); found {
				known++
				if head.Etag != uint64(i+1) || head.Size != i {
					t.Fatalf("users/%d: %+v", i, head)
				}
			}
		}
		if known < test.atLeast {
			t.Errorf("%d bytes know %d of %d heads, want %d", test.limit, known, test.ids, test.atLeast)
		}
	}
}

// Ensure that what does not fit into a slot is not remembered, and nothing is by no table.
func TestTable_NotRemembered(t *testing.T) {
	table := heads.New(1 << 20)
	number, _ := table.Name("Users")
	long := strings.Repeat("x", 42)
	table.Set(table.Reserve(long), 1, 1, number, heads.AsFolded)
	table.Set(table.Reserve("huge"), 1, 1<<32, number, heads.AsFolded)
	for _, id := range []string{long, "huge", "never"} {
		if head, found := table.Find(id); found {
			t.Errorf("%s is known as %+v", id, head)
		}
	}
	var none *heads.Table
	none.Forget("a")
	none.Set(none.Reserve("a"), 1, 1, 0, heads.AsFolded)
	if _, found := none.Find("a"); found {
		t.Error("a nil table knows a head")
	}
}

// Ensure that a head gives the ID as it was written, or says that it does not know it.
func TestTable_WrittenID(t *testing.T) {
	table := heads.New(1 << 20)
	number, _ := table.Name("Users")
	for _, test := range []struct {
		folded, id string
		known      bool
	}{
		{"users/1", "users/1", true},
		{"users/1-a", "users/1-A", true},
		{"users/1-a", "users/1-a", true},
		{"users/1-z", "users/1-Z", true},
		{"a", "A", true},
		{"users/1-ab", "users/1-AB", false},
		{"users/1-a", "Users/1-A", false},
		{"users/é", "users/É", false},
		{"users/k", "users/\u212a", false}, // the sign of Kelvin folds to a k
		{"users/1-a", "users/1-1", false},
		{strings.Repeat("x", 40) + "a", strings.Repeat("x", 40) + "A", true}, // the longest
	} {
		table.Set(table.Reserve(test.folded), 7, 9, number, heads.SpellingOf(test.folded, []byte(test.id)))
		h, found := table.Find(test.folded)
		id, known := h.WrittenID(test.folded)
		if !found || h.Etag != 7 || h.Size != 9 || known != test.known || known && id != test.id {
			t.Errorf("%q: got %+v, %t, %q, %t", test.id, h, found, id, known)
		}
	}
}
