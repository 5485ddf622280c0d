package heads_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/heads"
)

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
				if head != (heads.Head{Etag: committed[i], Size: int(committed[i]) + 7, Collection: "Users"}) {
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
				table.Set(ref, etag, int(etag)+7, number)
			}
			if len(late) > 0 && random.IntN(3) == 0 {
				at := random.IntN(len(late))
				table.Set(late[at].ref, late[at].etag, int(late[at].etag)+7, number)
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
				table.Set(table.Reserve(fmt.Sprint("users/", i)), uint64(i+1), i, number)
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
	table.Set(table.Reserve(long), 1, 1, number)
	table.Set(table.Reserve("huge"), 1, 1<<32, number)
	for _, id := range []string{long, "huge", "never"} {
		if head, found := table.Find(id); found {
			t.Errorf("%s is known as %+v", id, head)
		}
	}
	var none *heads.Table
	none.Forget("a")
	none.Set(none.Reserve("a"), 1, 1, 0)
	if _, found := none.Find("a"); found {
		t.Error("a nil table knows a head")
	}
}
