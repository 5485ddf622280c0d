package jay_test

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
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
