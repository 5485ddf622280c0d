package jay_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
)

func draw(t testing.TB, c *jay.HiLoClient, tag string, n int) string {
	t.Helper()
	var ids []string
	for range n {
		id, err := c.Next(ctx, tag)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return strings.Join(ids, " ")
}

// Ensure that the table of the 2010 article holds, row by row: capacity 3, six
// numbers, Hi 1 and then 2 (vector 162).
func TestHiLo2010_SeedTable(t *testing.T) {
	db := memory(t, &jay.Options{HiLoMode: jay.HiLo2010, HiLoCapacity: 3})
	for n, serverHi := range []int{2, 2, 2, 3, 3, 3} {
		equal(t, store(t, db, "BlogEntries"), fmt.Sprintf("BlogEntries/%d", n+1))
		equal(t, body(t, db, "Raven/HiLo/BlogEntries"), fmt.Sprintf(`{"ServerHi":%d}`, serverHi))
	}
}

// Ensure that clients with the same capacity never meet (vectors 164, 165),
// and, better than in 2010, those with different ones neither (166).
func TestHiLo2010_Clients(t *testing.T) {
	t.Parallel()
	db := memory(t, &jay.Options{HiLoMode: jay.HiLo2010, HiLoCapacity: 3})
	a, b := db.NewHiLoClient(), db.NewHiLoClient()
	equal(t, draw(t, a, "users", 1)+" "+draw(t, b, "users", 1)+" "+draw(t, a, "users", 1)+" "+draw(t, b, "users", 1), "users/1 users/4 users/2 users/5")

	put(t, db, "Raven/HiLo/orders", `{"ServerHi":2}`, jay.InCollection("@hilo"))
	equal(t, draw(t, a, "orders", 1), "orders/4")
	equal(t, body(t, db, "Raven/HiLo/orders"), `{"ServerHi":3}`)

	dir := t.TempDir()
	seen := make(map[string]bool)
	for _, capacity := range []int64{10, 3, 7, 32, 10} {
		db := open(t, dir, &jay.Options{HiLoMode: jay.HiLo2010, HiLoCapacity: capacity})
		for _, id := range strings.Fields(draw(t, db.NewHiLoClient(), "users", 25)) {
			if seen[id] {
				t.Errorf("%s came twice, at capacity %d", id, capacity)
			}
			seen[id] = true
		}
		closeDB(t, db)
	}
}

// Ensure that the race of the original code, where a stale Lo was added to a
// new Hi, does not exist: many goroutines, tiny blocks (vector 167).
func TestHiLo2010_Concurrent(t *testing.T) {
	db := memory(t, &jay.Options{HiLoMode: jay.HiLo2010, HiLoCapacity: 3})
	var mu sync.Mutex
	seen := make(map[string]bool)
	var wg sync.WaitGroup
	clients := []*jay.HiLoClient{db.NewHiLoClient(), db.NewHiLoClient(), db.NewHiLoClient()}
	for g := range 24 {
		wg.Go(func() {
			for range 40 {
				id, err := clients[g%3].Next(ctx, "users")
				if err != nil {
					t.Error(err)
					return
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
}

// Ensure that 2.x and 3.x clients make untagged IDs, raise Max themselves, and
// give nothing back (vectors 152, 155, 156).
func TestHiLo2(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, &jay.Options{HiLoMode: jay.HiLo2})
	equal(t, store(t, db, "Users"), "users/1")
	equal(t, body(t, db, "Raven/HiLo/users"), `{"Max":32}`)
	put(t, db, "Raven/ServerPrefixForHilo", `{"ServerPrefix":"NorthServer/"}`)
	equal(t, store(t, db, "Orders"), "orders/NorthServer/1")
	put(t, db, "Raven/ServerPrefixForHilo", `{"ServerPrefix":"4,"}`)
	equal(t, store(t, db, "Products"), "products/4,1")
	closeDB(t, db)

	db = open(t, dir, &jay.Options{HiLoMode: jay.HiLo2})
	defer closeDB(t, db)
	equal(t, body(t, db, "Raven/HiLo/users"), `{"Max":32}`)
	equal(t, store(t, db, "Users"), "users/4,33")
	put(t, db, "Raven/ServerPrefixForHilo", `{"ServerPrefix":"a\\b"}`)
	if _, err := db.Store(ctx, "Others", []byte(`{}`)); !errors.Is(err, jay.ErrInvalidID) {
		t.Errorf("a server prefix that makes no ID: got %v, want ErrInvalidID", err)
	}
}

// Ensure that requests mean what they meant in 3.x (vectors 146, 147, 150,
// 151), and share their counter with the pipe of today.
func TestHiLo2_Requests(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, &jay.Options{HiLoMode: jay.HiLo2})
	equal(t, put(t, db, "users/", `{}`).ID, "users/1")
	equal(t, put(t, db, "users/", `{}`).ID, "users/2")
	equal(t, put(t, db, "  users/9  ", `{}`).ID, "users/9")
	equal(t, put(t, db, "users|", `{}`).ID, "users|")
	if id := put(t, db, "   ", `{}`).ID; !guid.MatchString(id) {
		t.Errorf("a blank request: got %q, want a GUID", id)
	}
	n, err := db.NextIdentity(ctx, "users/")
	equal(t, fmt.Sprint(n, err), "3 <nil>")
	closeDB(t, db)

	db = open(t, dir, nil)
	defer closeDB(t, db)
	equal(t, put(t, db, "users|", `{}`).ID, "users/4")
}

// Ensure that ranges follow the rules of 3.x and of 2.x, and that these can be
// switched off (vectors 159 to 161).
func TestHiLo2_Growth(t *testing.T) {
	tests := []struct {
		growth   jay.Growth
		capacity int64
		gaps     []time.Duration // before each range
		want     []int64         // sizes
	}{
		{jay.Growth3, 0, []time.Duration{0, 4 * time.Second, 4 * time.Second, time.Second, 30 * time.Second, 61 * time.Second}, []int64{32, 64, 128, 256, 256, 128}},
		{jay.Growth3, 0, []time.Duration{0, time.Second, time.Second, time.Second}, []int64{32, 64, 256, 1024}},
		{jay.Growth3, 256, []time.Duration{0, time.Hour}, []int64{256, 256}},
		{jay.Growth2, 0, []time.Duration{0, 500 * time.Millisecond, time.Second, 100 * time.Millisecond, time.Hour}, []int64{32, 64, 64, 128, 128}},
		{jay.GrowthNone, 5, []time.Duration{0, 0, 0}, []int64{5, 5, 5}},
	}
	for i, test := range tests {
		c := newClock()
		db := memory(t, &jay.Options{HiLoMode: jay.HiLo2, HiLo2Growth: test.growth, HiLoCapacity: test.capacity, Now: c.Now})
		client := db.NewHiLoClient()
		total := int64(0)
		for j, gap := range test.gaps {
			c.Advance(gap)
			draw(t, client, "users", 1)
			total += test.want[j]
			if got, want := body(t, db, "Raven/HiLo/users"), fmt.Sprintf(`{"Max":%d}`, total); got != want {
				t.Errorf("test %d, range %d: got %s, want %s", i+1, j+1, got, want)
			}
			draw(t, client, "users", int(test.want[j])-1)
		}
	}
}

// A client of HiLo2 that was refused time and again took each refusal for a
// sign of haste, and its first range was as large as can be.
func TestHiLo2_RefusalsDoNotGrow(t *testing.T) {
	db := memory(t, &jay.Options{HiLoMode: jay.HiLo2})
	put(t, db, "Raven/HiLo/users", `{"ServerHi":3}`, jay.InCollection("@hilo"))
	for range 30 {
		if _, err := db.Store(ctx, "Users", []byte(`{}`)); !errors.Is(err, jay.ErrNeedsCapacity) {
			t.Fatalf("got %v, want ErrNeedsCapacity", err)
		}
	}
	put(t, db, "Raven/HiLo/users", `{"Max":64}`, jay.InCollection("@hilo"))
	equal(t, store(t, db, "Users"), "users/65")
	equal(t, body(t, db, "Raven/HiLo/users"), `{"Max":96}`)
}

// Ensure that clients that raise the same document at once start over and
// never meet (vector 154).
func TestHiLo2_Concurrent(t *testing.T) {
	db := memory(t, &jay.Options{HiLoMode: jay.HiLo2, HiLo2Growth: jay.GrowthNone, HiLoCapacity: 4})
	var mu sync.Mutex
	seen := make(map[string]bool)
	var wg sync.WaitGroup
	for range 16 {
		client := db.NewHiLoClient()
		wg.Go(func() {
			for range 40 {
				id, err := client.Next(ctx, "users")
				if err != nil {
					t.Error(err)
					return
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
	equal(t, len(seen), 16*40)
}

// Ensure that documents of each generation are taken over by the others, that
// ServerHi needs its capacity (vector 157), and that Replication/HiLo counts
// where there is nothing else.
func TestHiLo_TakeOver(t *testing.T) {
	db := memory(t, &jay.Options{HiLoMode: jay.HiLo2, HiLoCapacity: 32})
	put(t, db, "Raven/HiLo/users", `{"ServerHi":5,"Note":1}`, jay.InCollection("@hilo"))
	equal(t, store(t, db, "Users"), "users/129")
	equal(t, body(t, db, "Raven/HiLo/users"), `{"Note":1,"Max":160}`)
	put(t, db, "Replication/HiLo/orders", `{"Max":64}`, jay.InCollection("@hilo"))
	equal(t, store(t, db, "Orders"), "orders/65")

	db = memory(t, nil)
	put(t, db, "Raven/HiLo/users", `{"ServerHi":5}`, jay.InCollection("@hilo"))
	before := dump(t, db)
	if _, err := db.Store(ctx, "Users", []byte(`{}`)); !errors.Is(err, jay.ErrNeedsCapacity) {
		t.Errorf("ServerHi without a capacity: got %v, want ErrNeedsCapacity", err)
	}
	equal(t, dump(t, db), before)

	db = memory(t, &jay.Options{HiLoCapacity: 1024})
	put(t, db, "Raven/HiLo/users", `{"ServerHi":5}`, jay.InCollection("@hilo"))
	equal(t, store(t, db, "Users"), "users/4097-A")
	equal(t, body(t, db, "Raven/HiLo/users"), `{"Max":4128}`)
}

// Ensure that no number of a prefix comes twice, whatever the order of modes,
// with the document deleted in between (A19).
func TestHiLo_ChangeOfMode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	numbers := make(map[string]bool)
	modes := []jay.Options{
		{HiLoMode: jay.HiLo2010, HiLoCapacity: 10}, {HiLoMode: jay.HiLo2, HiLoCapacity: 10}, {HiLoCapacity: 10}, {HiLoMode: jay.HiLo2010, HiLoCapacity: 10},
		{HiLoCapacity: 10}, {HiLoMode: jay.HiLo2, HiLo2Growth: jay.Growth2, HiLoCapacity: 10}, {HiLoMode: jay.HiLo2010, HiLoCapacity: 7},
	}
	for i, opts := range modes {
		db := open(t, dir, &opts)
		for range 15 {
			id := store(t, db, "Users")
			number, _, _ := strings.Cut(strings.TrimPrefix(id, "users/"), "-")
			if numbers[number] {
				t.Errorf("mode %d: number %s came twice, as %s", i, number, id)
			}
			numbers[number] = true
			if err := db.Delete(ctx, id); err != nil {
				t.Fatal(err)
			}
		}
		if i%2 == 1 {
			if err := db.Delete(ctx, "Raven/HiLo/users"); err != nil {
				t.Fatal(err)
			}
		}
		closeDB(t, db)
	}
}

// Ensure that clients of today are independent (vector 104), share the rules,
// and give their ranges back when they close.
func TestNewHiLoClient(t *testing.T) {
	db := memory(t, nil)
	a, b := db.NewHiLoClient(), db.NewHiLoClient()
	equal(t, draw(t, a, "users", 1)+" "+draw(t, b, "users", 1)+" "+draw(t, a, "users", 1), "users/1-A users/33-A users/2-A")
	if err := errors.Join(b.Close(ctx), a.Close(ctx)); err != nil {
		t.Fatal(err)
	}
	equal(t, body(t, db, "Raven/HiLo/users"), `{"Max":33}`)
	ids, err := db.NewHiLoClient().NextN(ctx, "users", 3)
	equal(t, fmt.Sprint(ids, err), "[users/34-A users/35-A users/36-A] <nil>")

	for _, n := range []int{-1, 0, 1<<20 + 1} {
		if _, err := db.NewHiLoClient().NextN(ctx, "users", n); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("%d ids at once: got %v, want ErrUsage", n, err)
		}
	}
	_, next := a.Next(ctx, "users")
	_, nextN := b.NextN(ctx, "others", 5)
	if !errors.Is(next, jay.ErrClientClosed) || !errors.Is(nextN, jay.ErrClientClosed) {
		t.Errorf("closed clients: got %v and %v, want ErrClientClosed", next, nextN)
	}

	late := db.NewHiLoClient()
	closeDB(t, db)
	if _, err := late.Next(ctx, "users"); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("a client of a closed database: got %v, want ErrClosed", err)
	}
}

// Ensure that modes that make no sense are refused.
func TestHiLoMode_Options(t *testing.T) {
	for _, opts := range []jay.Options{{HiLoMode: jay.HiLo2010}, {HiLoMode: 9}, {HiLo2Growth: 9}, {HiLoCapacity: -1}, {HiLoCapacity: 1<<20 + 1}} {
		if _, err := jay.OpenMemory(&opts); !errors.Is(err, jay.ErrOption) {
			t.Errorf("%+v: got %v, want ErrOption", opts, err)
		}
	}
}
