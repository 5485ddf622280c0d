package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

func nextRange(t testing.TB, db *jay.DB, req jay.RangeRequest) jay.Range {
	t.Helper()
	r, err := db.NextRange(ctx, req)
	if err != nil {
		t.Fatalf("next range of %q: %v", req.Tag, err)
	}
	return r
}

func returnRange(t testing.TB, db *jay.DB, tag string, last, end int64) bool {
	t.Helper()
	accepted, err := db.ReturnRange(ctx, tag, last, end)
	if err != nil {
		t.Fatalf("return range of %q: %v", tag, err)
	}
	return accepted
}

func span(r jay.Range) string { return fmt.Sprintf("%s%d..%d-%s", r.Prefix, r.Low, r.High, r.NodeTag) }

// Ensure that the example of RavenDB's documentation holds: one document
// stored, close, Max is 1; the next range is 2 to 33 (vectors 92, 107).
func TestHiLo_SeedExample(t *testing.T) {
	type Employee struct{ ID, FirstName, LastName string }
	dir := t.TempDir()
	db := open(t, dir, nil)
	john := &Employee{FirstName: "John", LastName: "Doe"}
	if _, err := collectionOf[Employee](t, db).Insert(ctx, john); err != nil {
		t.Fatal(err)
	}
	equal(t, john.ID, "employees/1-A")
	equal(t, body(t, db, "Raven/HiLo/employees"), `{"Max":32}`)
	closeDB(t, db)

	db = open(t, dir, nil)
	defer closeDB(t, db)
	equal(t, body(t, db, "Raven/HiLo/employees"), `{"Max":1}`)
	equal(t, span(nextRange(t, db, jay.RangeRequest{Tag: "employees"})), "employees/2..33-A")
}

// Ensure that ranges grow and shrink with the pace of their client, as the
// clock of Options has it (vectors 72-79).
func TestNextRange_Sizes(t *testing.T) {
	c := newClock()
	db := memory(t, &jay.Options{Now: c.Now})
	req := jay.RangeRequest{Tag: "users"}
	for _, step := range []struct {
		after time.Duration
		want  string
	}{
		{0, "users/1..32-A"},
		{time.Second, "users/33..96-A"},
		{45 * time.Second, "users/97..160-A"},
		{61 * time.Second, "users/161..192-A"},
		{61 * time.Second, "users/193..224-A"},
		{30 * time.Second, "users/225..256-A"},
		{60 * time.Second, "users/257..288-A"},
		{-time.Hour, "users/289..352-A"},
	} {
		c.Advance(step.after)
		r := nextRange(t, db, req)
		equal(t, span(r), step.want)
		req.LastSize, req.LastRangeAt, req.LastMax = r.Size, r.GrantedAt, r.High
	}
}

// Ensure that lowering, deleting or ruining the document never makes a number
// come twice, and that raising it moves the sequence up (A11; vectors 84-87).
func TestNextRange_Tampering(t *testing.T) {
	db := memory(t, nil)
	req := jay.RangeRequest{Tag: "users"}
	want := func(s string) { t.Helper(); equal(t, span(nextRange(t, db, req)), s) }
	put := func(text string) { t.Helper(); put(t, db, "raven/hilo/USERS", text, jay.InCollection("@hilo")) }

	want("users/1..32-A")
	want("users/33..64-A")
	put(`{"Max":12}`)
	want("users/65..96-A")
	if err := db.Delete(ctx, "Raven/HiLo/users"); err != nil {
		t.Fatal(err)
	}
	want("users/97..128-A")
	put(`{"Max":1000,"Note":"mine","@metadata":{"by":"hand"}}`)
	want("users/1001..1032-A")
	doc, err := db.Get(ctx, "Raven/HiLo/users")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, string(doc.Body()), `{"Max":1032,"Note":"mine"}`)
	equal(t, string(doc.Metadata().Custom), `{"by":"hand"}`)
	equal(t, doc.ID(), "raven/hilo/USERS") // the case in which it was written
	for i, text := range []string{`{}`, `{"Max":"2000"}`, `{"Max":null}`, `{"Max":{}}`, `{"Max":-5}`, `{"Max":1e3}`} {
		put(text)
		want(fmt.Sprintf("users/%d..%d-A", 1033+32*i, 1064+32*i))
	}
	put(`{"Max":5000.5}`)
	want("users/5002..5033-A")

	if err := db.Delete(ctx, "Raven/HiLo/users"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Put(ctx, "Raven/HiLo/users", []byte(`{"Max":6000}`), jay.InCollection("Counters")); err != nil {
		t.Fatal(err)
	}
	want("users/6001..6032-A")
	doc, err = db.Get(ctx, "Raven/HiLo/users")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, doc.Collection(), "Counters")
}

// Ensure that a refused request changes nothing: at the end of the numbers,
// with a hostile claim, with tags that make no IDs (vectors 91, 106).
func TestNextRange_Refused(t *testing.T) {
	db := memory(t, nil)
	nextRange(t, db, jay.RangeRequest{Tag: "users"})
	put(t, db, "Raven/HiLo/full", `{"Max":9223372036854775800}`, jay.InCollection("@hilo"))
	put(t, db, "Raven/HiLo/over", `{"Max":1e30}`, jay.InCollection("@hilo"))
	before := dump(t, db)
	for _, test := range []struct {
		name string
		req  jay.RangeRequest
		want error
	}{
		{"no room for a range", jay.RangeRequest{Tag: "full"}, jay.ErrExhausted},
		{"Max above all numbers", jay.RangeRequest{Tag: "over"}, jay.ErrExhausted},
		{"hostile last max", jay.RangeRequest{Tag: "users", LastMax: math.MaxInt64}, jay.ErrLeadTooLarge},
		{"negative last max", jay.RangeRequest{Tag: "users", LastMax: -1}, jay.ErrLeadTooLarge},
		{"no tag", jay.RangeRequest{}, jay.ErrUsage},
		{"control character", jay.RangeRequest{Tag: "a\x00"}, jay.ErrInvalidID},
		{"backslash", jay.RangeRequest{Tag: `a\b`}, jay.ErrInvalidID},
		{"long tag", jay.RangeRequest{Tag: string(make([]byte, 3000))}, jay.ErrInvalidID},
		{"bad separator", jay.RangeRequest{Tag: "users", Separator: "|"}, jay.ErrUsage},
	} {
		if _, err := db.NextRange(ctx, test.req); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, err, test.want)
		}
	}
	equal(t, dump(t, db), before)
}

// Ensure that any casing of a tag shares one sequence, and that each client
// may name its own separator (vectors 89, 90).
func TestNextRange_TagAndSeparator(t *testing.T) {
	db := memory(t, nil)
	equal(t, span(nextRange(t, db, jay.RangeRequest{Tag: "users"})), "users/1..32-A")
	equal(t, span(nextRange(t, db, jay.RangeRequest{Tag: "USERS"})), "USERS/33..64-A")
	equal(t, span(nextRange(t, db, jay.RangeRequest{Tag: "users", Separator: "-"})), "users-65..96-A")

	exact := memory(t, &jay.Options{CaseSensitive: true})
	equal(t, span(nextRange(t, exact, jay.RangeRequest{Tag: "users"})), "users/1..32-A")
	equal(t, span(nextRange(t, exact, jay.RangeRequest{Tag: "USERS"})), "USERS/1..32-A")
}

// Ensure that a return is accepted once, for the newest range, by the right
// numbers (A10; vectors 92-97).
func TestReturnRange(t *testing.T) {
	db := memory(t, nil)
	req := jay.RangeRequest{Tag: "users"}
	first, second := nextRange(t, db, req), nextRange(t, db, req)
	equal(t, span(first)+" "+span(second), "users/1..32-A users/33..64-A")
	before := dump(t, db)
	for _, r := range [][2]int64{{20, 32}, {65, 64}, {31, 64}, {0, 64}, {-1, 64}, {40, 63}, {64, 128}} {
		if returnRange(t, db, "users", r[0], r[1]) {
			t.Errorf("return last %d end %d is accepted", r[0], r[1])
		}
	}
	equal(t, returnRange(t, db, "nobody", 1, 32), false)
	equal(t, dump(t, db), before)

	equal(t, returnRange(t, db, "USERS", 32, 64), true)
	equal(t, body(t, db, "Raven/HiLo/users"), `{"Max":32}`)
	equal(t, returnRange(t, db, "users", 32, 64), false)
	equal(t, returnRange(t, db, "users", 1, 32), true) // the one beneath
	equal(t, body(t, db, "Raven/HiLo/users"), `{"Max":1}`)
	equal(t, span(nextRange(t, db, req)), "users/2..65-A") // no end comes twice

	// Somebody changed the document: nothing is taken back.
	put(t, db, "Raven/HiLo/users", `{"Max":70}`, jay.InCollection("@hilo"))
	equal(t, returnRange(t, db, "users", 2, 65), false)
	equal(t, span(nextRange(t, db, req)), "users/71..102-A")
}

// Ensure that a HiLo number whose ID is in use is passed over, however
// many there are, in a batch too (A12).
func TestStore_Taken(t *testing.T) {
	db := memory(t, nil)
	for n := 1; n <= 100; n++ {
		put(t, db, fmt.Sprintf("users/%d-A", n), `{"by":"hand"}`)
	}
	put(t, db, "users/103-a", `{"by":"hand"}`)
	equal(t, store(t, db, "Users"), "users/101-A")
	var b jay.Batch
	for range 3 {
		b.Store("Users", []byte(`{}`))
	}
	metas, err := db.Apply(ctx, &b)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, m := range metas {
		ids[m.ID] = true
	}
	if len(ids) != 3 || ids["users/103-A"] {
		t.Errorf("got %v", ids)
	}
	equal(t, body(t, db, "users/1-A"), `{"by":"hand"}`)
	equal(t, body(t, db, "users/103-A"), `{"by":"hand"}`)
}

// Ensure that 100 goroutines that share the database's client get exactly the
// numbers 1 to 2000.
func TestStore_Concurrent(t *testing.T) {
	t.Parallel()
	db := memory(t, nil)
	var mu sync.Mutex
	seen := make(map[string]bool)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			for range 20 {
				m, err := db.Store(ctx, "Users", []byte(`{}`))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				seen[m.ID] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	equal(t, len(seen), 2000)
	for n := 1; n <= 2000; n++ {
		if id := fmt.Sprintf("users/%d-A", n); !seen[id] {
			t.Errorf("%s is missing", id)
		}
	}
}

// Ensure that a Max that a user stored is where numbers begin (vectors 99-101).
func TestStore_AfterUsersMax(t *testing.T) {
	c := newClock()
	dir := t.TempDir()
	db := open(t, dir, &jay.Options{Now: c.Now})
	put(t, db, "Raven/HiLo/users", `{"Max":64}`, jay.InCollection("@hilo"))
	put(t, db, "Raven/HiLo/products", `{"Max":128}`, jay.InCollection("@hilo"))
	put(t, db, "Raven/HiLo/orders", `{"Max":32}`, jay.InCollection("@hilo"))
	equal(t, store(t, db, "Products"), "products/129-A")
	for n := 65; n <= 96; n++ {
		equal(t, store(t, db, "Users"), fmt.Sprintf("users/%d-A", n))
	}
	equal(t, body(t, db, "Raven/HiLo/users"), `{"Max":96}`)
	equal(t, store(t, db, "Users"), "users/97-A")
	equal(t, body(t, db, "Raven/HiLo/users"), `{"Max":160}`)
	equal(t, store(t, db, "Orders"), "orders/33-A")
	equal(t, store(t, db, "Orders"), "orders/34-A")
	closeDB(t, db)
	db = open(t, dir, nil)
	defer closeDB(t, db)
	equal(t, body(t, db, "Raven/HiLo/orders"), `{"Max":34}`)
}

// A range that a client held when the counters were raised stayed its own:
// after a raise to 1000, Store gave users/2-A. Ensure that no call that begins
// after the raise gives a number up to it, by any client of this process and
// any spelling of the tag, while many draw at once.
func TestRaiseCounters_Clients(t *testing.T) {
	t.Parallel()
	for _, mode := range []jay.HiLoMode{jay.HiLo4, jay.HiLo2, jay.HiLo2010} {
		db := memory(t, &jay.Options{HiLoMode: mode, HiLoCapacity: 8})
		clients := []*jay.HiLoClient{db.NewHiLoClient(), db.NewHiLoClient()}
		draws := []func() (string, error){
			func() (string, error) { m, err := db.Store(ctx, "Users", []byte(`{}`)); return m.ID, err },
			func() (string, error) { return clients[0].Next(ctx, "USERS") },
			func() (string, error) {
				ids, err := clients[1].NextN(ctx, "users", 20)
				return strings.Join(ids, " "), err
			},
			func() (string, error) { c := db.NewHiLoClient(); return c.Next(ctx, "users") },
		}
		var raised atomic.Int64
		var done atomic.Bool
		var mu sync.Mutex
		seen := make(map[string]bool)
		note := func(floor int64, ids string) {
			mu.Lock()
			defer mu.Unlock()
			for _, id := range strings.Fields(ids) {
				text, _, _ := strings.Cut(strings.TrimPrefix(strings.ToLower(id), "users/"), "-")
				n, err := strconv.ParseInt(text, 10, 64)
				if err != nil || n <= floor || seen[text] {
					t.Errorf("mode %d: got %s after a raise to %d (%v)", mode, id, floor, err)
				}
				seen[text] = true
			}
		}
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for !done.Load() {
					floor := raised.Load()
					ids, err := draws[g%len(draws)]()
					if err != nil {
						t.Error(err)
						return
					}
					note(floor, ids)
				}
			})
		}
		for range 15 {
			for _, draw := range draws { // each client holds a range
				floor := raised.Load()
				ids, err := draw()
				must(t, err)
				note(floor, ids)
			}
			counters, err := db.Counters(ctx)
			must(t, err)
			n := counters.HiLo["users"] + 10
			must(t, db.RaiseCounters(ctx, jay.Counters{HiLo: map[string]int64{"Users": n}}))
			raised.Store(n)
		}
		done.Store(true)
		wg.Wait()
		for _, c := range clients {
			must(t, c.Close(ctx))
		}
	}
}

// Ensure that counters are raised and never lowered, and refused as a whole if
// one of them is no counter.
func TestRaiseCounters(t *testing.T) {
	t.Parallel()
	for _, durability := range []jay.Durability{jay.Synced, jay.Relaxed} {
		dir := t.TempDir()
		db := open(t, dir, &jay.Options{Durability: durability})
		put(t, db, "users|", `{}`)
		raise := jay.Counters{Etag: 500, Identities: map[string]int64{"USERS|": 7, "new|": 3}, HiLo: map[string]int64{"Users": 100, "new": 5}}
		for range 2 {
			if err := db.RaiseCounters(ctx, raise); err != nil {
				t.Fatal(err)
			}
		}
		closeDB(t, db)

		db = open(t, dir, &jay.Options{Durability: durability})
		if err := db.RaiseCounters(ctx, jay.Counters{Etag: 1, Identities: map[string]int64{"users|": 1}, HiLo: map[string]int64{"users": 1}}); err != nil {
			t.Fatal(err)
		}
		counters, err := db.Counters(ctx)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, fmt.Sprint(counters), "{500 map[new|:3 users|:7] map[new:5 users:100]}")
		equal(t, put(t, db, "users|", `{}`).ID, "users/8")
		equal(t, put(t, db, "new|", `{}`).ID, "new/4")
		equal(t, put(t, db, "x/", `{}`).ID, "x/0000000000000000503-A")
		equal(t, store(t, db, "Users"), "users/101-A")

		before := dump(t, db)
		for _, bad := range []jay.Counters{
			{Etag: 1 << 63},
			{Etag: 600, Identities: map[string]int64{"users": 1}},
			{Etag: 600, Identities: map[string]int64{"users|": -1}},
			{Etag: 600, Identities: map[string]int64{"a\x00|": 1}},
			{Etag: 600, HiLo: map[string]int64{"": 1}},
			{Etag: 600, HiLo: map[string]int64{"users": math.MaxInt64}},
		} {
			if err := db.RaiseCounters(ctx, bad); err == nil {
				t.Errorf("%+v is accepted", bad)
			}
		}
		equal(t, dump(t, db), before)
		closeDB(t, db)
	}
}

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
	sample.OneGoroutine(t)
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

// Ensure that an ID that a writer has taken by hand, a little ahead of the HiLo
// numbers, is skipped by them, though the engine knows by then that there was
// nothing; and that one that was deleted before its turn is used.
func TestStore_TakenAhead(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := memory(t, nil)
	random := rand.New(rand.NewPCG(1, 2))
	const byHand = `{"by":"hand"}`
	bodies := make(map[string]string) // by ID
	number := 0
	for i := range 3000 {
		if id := fmt.Sprintf("orders/%d-A", number+2+random.IntN(60)); i%7 == 3 && bodies[id] == "" {
			put(t, db, id, byHand, jay.InCollection("orders"))
			bodies[id] = byHand
			if i%4 == 0 {
				if err := db.Delete(ctx, id); err != nil {
					t.Fatal(err)
				}
				delete(bodies, id)
			}
		}
		text := fmt.Sprintf(`{"n":%d}`, i)
		m, err := db.Store(ctx, "orders", json.RawMessage(text))
		if err != nil {
			t.Fatal(err)
		}
		if bodies[m.ID] != "" {
			t.Fatalf("Store %d returned %s, which is there", i, m.ID)
		}
		bodies[m.ID] = text
		if _, err := fmt.Sscanf(m.ID, "orders/%d-A", &number); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range bodies {
		equal(t, body(t, db, id), want)
	}
}

// Ensure the same of many goroutines at once, some of which insert by hand: no
// two inserts of an ID succeed.
func TestStore_TakenAhead_Concurrent(t *testing.T) {
	ctx := context.Background()
	db := memory(t, nil)
	const goroutines, rounds = 8, 300
	var mu sync.Mutex
	owners := make(map[string]string) // by folded ID, the body
	own := func(id, body string) {
		mu.Lock()
		defer mu.Unlock()
		if owner := owners[id]; owner != "" {
			t.Errorf("%s was given to %s and to %s", id, owner, body)
		}
		owners[id] = body
	}
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range rounds {
				text := fmt.Sprintf(`{"g":%d,"i":%d}`, g, i)
				if g%4 != 0 {
					m, err := db.Store(ctx, "orders", json.RawMessage(text))
					if err != nil {
						t.Error(err)
						return
					}
					own(m.ID, text)
					continue
				}
				id := fmt.Sprintf("orders/%d-A", i*6+g)
				_, err := db.Insert(ctx, id, json.RawMessage(text), jay.InCollection("orders"))
				if err == nil {
					own(id, text)
				} else if !errors.Is(err, jay.ErrExists) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for id, want := range owners {
		equal(t, body(t, db, id), want)
	}
}

// Ensure that the numbers that a transaction drew and did not commit are
// counted as gaps: those of a run that was repeated, and those of a batch that
// was refused. The numbers that the next run used again are none.
func TestGaps_Update(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "watched", `{}`)
	runs := 0
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		runs++
		_, err := tx.Get(ctx, "watched")
		must(t, err)
		for range 4 - runs {
			_, err := tx.Store(ctx, "Users", []byte(`{}`))
			must(t, err)
		}
		if runs == 1 {
			put(t, db, "watched", `{"n":1}`)
		}
		return nil
	}, jay.Retry(1)))
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		var b jay.Batch
		b.Store("Users", []byte(`{}`))
		b.Insert("watched", []byte(`{}`))
		if _, err := tx.Apply(ctx, &b); err == nil {
			t.Error("the insert is accepted")
		}
		return nil
	}))
	s, err := db.Stats(ctx)
	equal(t, fmt.Sprint(s.Gaps, err), "map[users:2] <nil>")
}

// Ensure that a number that was passed over because a writer took its ID by
// hand is not lost to the doctor: a document has it.
func TestGaps_InspectIDs_Taken(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "users/1-A", `{}`, jay.InCollection("Users"))
	equal(t, store(t, db, "Users"), "users/2-A")
	r, err := db.InspectIDs(ctx, nil)
	must(t, err)
	equal(t, fmt.Sprint(r.HiLo[0].Unused, r.HiLo[0].InOpenLeases, r.HiLo[0].LostInThisProcess), "30 30 0")
}
