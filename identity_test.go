package jay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that next and seed work beside documents (vectors 64 to 71).
func TestIdentity_NextAndSeed(t *testing.T) {
	for _, durability := range []jay.Durability{jay.Synced, jay.Relaxed} {
		db := memory(t, &jay.Options{Durability: durability})
		next := func(name string, want int64) {
			t.Helper()
			n, err := db.NextIdentity(ctx, name)
			if err != nil || n != want {
				t.Errorf("next %q: got %d, %v; want %d", name, n, err, want)
			}
		}
		seed := func(name string, value int64, force bool, want int64) {
			t.Helper()
			n, err := db.SeedIdentity(ctx, name, value, force)
			if err != nil || n != want {
				t.Errorf("seed %q %d: got %d, %v; want %d", name, value, n, err, want)
			}
		}
		equal(t, put(t, db, "users|", `{}`).ID, "users/1")
		next("users", 2)
		equal(t, put(t, db, "USERS|", `{}`).ID, "USERS/3")
		next("person|", 1)
		seed("users", 1990, false, 1990)
		equal(t, put(t, db, "users|", `{}`).ID, "users/1991")
		seed("users", 1975, false, 1991)
		equal(t, put(t, db, "users|", `{}`).ID, "users/1992")
		seed("users|", 2, true, 2)
		equal(t, put(t, db, "users|", `{}`).ID, "users/4") // 3 is there, 2 is not looked at
		seed("users", 0, true, 0)
		equal(t, put(t, db, "users|", `{}`).ID, "users/2") // 1 is there, 2 was never a document
		equal(t, put(t, db, "users|", `{}`).ID, "users/5") // 3 and 4 are there
		put(t, db, "person/2", `{}`)
		next("person", 3)

		list, err := db.Identities(ctx)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, len(list), 2)
		equal(t, list["users|"], int64(5))
		equal(t, list["person|"], int64(3))
	}
}

// A crash under Relaxed durability undoes a forced seed downward, as
// SeedIdentity says: the block that was reserved stays so. Ensure that the
// counter goes on behind it, higher and never lower than it was forced to, and
// that another seed repairs it.
func TestSeedIdentity_ForcedDown_Crash(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{Durability: jay.Relaxed})
	_, err := db.SeedIdentity(ctx, "users", 1_000_000, false)
	must(t, err)
	equal(t, put(t, db, "users|", `{}`).ID, "users/1000001")
	n, err := db.SeedIdentity(ctx, "users", 0, true)
	equal(t, fmt.Sprint(n, err), "0 <nil>")

	crashed := disk.Crash(0, rand.New(rand.NewPCG(1, 2)))
	closeDB(t, db)
	db = onDisk(t, crashed, jay.Options{Durability: jay.Relaxed})
	equal(t, put(t, db, "users|", `{}`).ID, "users/1001025")
	n, err = db.SeedIdentity(ctx, "users", 0, true)
	equal(t, fmt.Sprint(n, err), "0 <nil>")
	equal(t, put(t, db, "users|", `{}`).ID, "users/1")
	closeDB(t, db)
}

// Ensure that wrong calls change nothing.
func TestIdentity_Refused(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "users|", `{}`)
	if _, err := db.SeedIdentity(ctx, "full", math.MaxInt64, false); err != nil {
		t.Fatal(err)
	}
	before := dump(t, db)
	for _, name := range []string{"", "  ", "a\x00", `a\b`, strings.Repeat("x", 2025)} {
		if n, err := db.NextIdentity(ctx, name); err == nil {
			t.Errorf("next %.20q gives %d", name, n)
		}
		if _, err := db.SeedIdentity(ctx, name, 1, true); err == nil {
			t.Errorf("seed %.20q is accepted", name)
		}
	}
	for _, force := range []bool{false, true} {
		if _, err := db.SeedIdentity(ctx, "users", -5, force); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("seed -5, force %v: got %v, want ErrUsage", force, err)
		}
	}
	if _, err := db.NextIdentity(ctx, "full"); !errors.Is(err, jay.ErrExhausted) {
		t.Errorf("after the last number: got %v, want ErrExhausted", err)
	}
	if _, err := db.Put(ctx, "full|", []byte(`{}`)); !errors.Is(err, jay.ErrExhausted) {
		t.Errorf("after the last number: got %v, want ErrExhausted", err)
	}
	equal(t, dump(t, db), before)
}

// Ensure that numbers drawn by next and by documents at once never meet.
func TestIdentity_Concurrent(t *testing.T) {
	db := memory(t, nil)
	var mu sync.Mutex
	seen := make(map[string]bool)
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for range 25 {
				var id string
				if g%2 == 0 {
					n, err := db.NextIdentity(ctx, "users")
					if err != nil {
						t.Error(err)
					}
					id = "users/" + json.Number(text(n)).String()
				} else {
					m, err := db.Put(ctx, "users|", []byte(`{}`))
					if err != nil {
						t.Error(err)
					}
					id = m.ID
				}
				mu.Lock()
				if seen[id] {
					t.Errorf("%s came twice", id)
				}
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	list, err := db.Identities(ctx)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, list["users|"], 16*25)
}

func text(n int64) string {
	b, _ := json.Marshal(n)
	return string(b)
}

// Ensure that every ID survives a URL's path, and that there is one escaped
// form of each.
func TestEscapeID(t *testing.T) {
	for id, want := range map[string]string{
		"users/1-A": "users~1-A", "a b": "a!20b", ".": "!2E", "..": "!2E!2E", "...": "...", "users/..": "users~..",
		"ä~!%/?#": "!C3!A4!7E!21!25~!3F!23", "users|x": "users!7Cx", "": "",
	} {
		equal(t, jay.EscapeID(id), want)
		back, err := jay.UnescapeID(want)
		if err != nil || back != id {
			t.Errorf("unescape %q: got %q, %v", want, back, err)
		}
	}
	for _, wrong := range []string{"users/1", "a b", "!", "!2", "!2e", "!zz", "!41", "..", "%20", "ä"} {
		if id, err := jay.UnescapeID(wrong); !errors.Is(err, jay.ErrInvalidID) {
			t.Errorf("unescape %q: got %q, %v; want ErrInvalidID", wrong, id, err)
		}
	}
}

func FuzzEscapeID(f *testing.F) {
	f.Add("users/1-A")
	f.Add("..")
	f.Add("\xff~!")
	f.Fuzz(func(t *testing.T, id string) {
		escaped := jay.EscapeID(id)
		for i := 0; i < len(escaped); i++ {
			if c := escaped[i]; c >= 0x80 || strings.IndexByte("/?#%\\ |", c) >= 0 || c < 0x21 {
				t.Fatalf("%q became %q", id, escaped)
			}
		}
		back, err := jay.UnescapeID(escaped)
		if err != nil || back != id {
			t.Fatalf("%q became %q became %q, %v", id, escaped, back, err)
		}
		if again, err := jay.UnescapeID(id); err == nil && jay.EscapeID(again) != id {
			t.Fatalf("%q has two forms", again)
		}
	})
}

// Ensure that a typed ID is an ID field, and a plain string in JSON.
func TestID(t *testing.T) {
	type Customer struct {
		ID   jay.ID[Customer]
		Name string
	}
	type Purchase struct {
		ID       jay.ID[Purchase]
		Customer jay.ID[Customer]
	}
	db := memory(t, nil)
	customers, purchases := collectionOf[Customer](t, db), collectionOf[Purchase](t, db)
	c := &Customer{Name: "Ann"}
	if _, err := customers.Insert(ctx, c); err != nil {
		t.Fatal(err)
	}
	p := &Purchase{Customer: c.ID}
	if _, err := purchases.Insert(ctx, p); err != nil {
		t.Fatal(err)
	}
	equal(t, body(t, db, p.ID.String()), `{"Customer":"customers/1-A"}`)
	got, err := purchases.Load(ctx, p.ID)
	if err != nil {
		t.Fatal(err)
	}
	owner, err := customers.Load(ctx, got.Customer)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, *owner, *c)
}
