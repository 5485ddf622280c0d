package jay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/sample"
)

func inspect(t testing.TB, db *jay.DB) jay.IDReport {
	t.Helper()
	r, err := db.InspectIDs(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// kinds returns the warnings as "kind name", sorted.
func kinds(r jay.IDReport) string {
	var out []string
	for _, w := range r.Warnings {
		out = append(out, strings.TrimSpace(string(w.Kind)+" "+w.Name))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// Ensure that each kind of warning comes when there is reason for it, and no
// other.
func TestInspectIDs_Warnings(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	inHiLo := jay.InCollection("@hilo")
	for _, test := range []struct {
		name string
		opts jay.Options
		make func(t *testing.T, db *jay.DB)
		want string
	}{
		{"nothing", jay.Options{}, func(*testing.T, *jay.DB) {}, ""},
		{"all is well", jay.Options{}, func(t *testing.T, db *jay.DB) {
			store(t, db, "Users")
			for _, id := range []string{"orders|", "logs/", "", "acorns/ann", "plain"} {
				put(t, db, id, `{}`)
			}
		}, ""},
		{"above the mark", jay.Options{}, func(t *testing.T, db *jay.DB) {
			nextRange(t, db, jay.RangeRequest{Tag: "users"})
			put(t, db, "users/500-A", `{}`)
		}, "above-mark users/"},
		{"above no mark at all", jay.Options{}, func(t *testing.T, db *jay.DB) {
			put(t, db, "users/1-A", `{}`)
		}, "above-mark users/"},
		{"above the mark with another tag", jay.Options{}, func(t *testing.T, db *jay.DB) {
			put(t, db, "users/500-B", `{}`)
		}, ""},
		{"above the mark under HiLo2", jay.Options{HiLoMode: jay.HiLo2}, func(t *testing.T, db *jay.DB) {
			nextRange(t, db, jay.RangeRequest{Tag: "users"})
			put(t, db, "users/500", `{}`)
		}, "above-mark users/"},
		{"above the identity", jay.Options{}, func(t *testing.T, db *jay.DB) {
			put(t, db, "users|", `{}`)
			put(t, db, "users/9", `{}`)
		}, "above-identity users|"},
		{"a plain number without an identity", jay.Options{}, func(t *testing.T, db *jay.DB) {
			put(t, db, "users/9", `{}`)
		}, ""},
		{"Max raised", jay.Options{}, func(t *testing.T, db *jay.DB) {
			nextRange(t, db, jay.RangeRequest{Tag: "users"})
			put(t, db, "Raven/HiLo/users", `{"Max":600}`, inHiLo)
			put(t, db, "users/500-A", `{}`)
		}, "hilo-edited users"},
		{"Max lowered", jay.Options{}, func(t *testing.T, db *jay.DB) {
			nextRange(t, db, jay.RangeRequest{Tag: "Users"})
			put(t, db, "Raven/HiLo/Users", `{"Max":3}`, inHiLo)
		}, "hilo-edited users"},
		{"Max without a mark", jay.Options{}, func(t *testing.T, db *jay.DB) {
			put(t, db, "Raven/HiLo/users", `{"Max":64}`, inHiLo)
		}, "hilo-edited users"},
		{"HiLo document deleted", jay.Options{}, func(t *testing.T, db *jay.DB) {
			nextRange(t, db, jay.RangeRequest{Tag: "users"})
			if err := db.Delete(ctx, "Raven/HiLo/users"); err != nil {
				t.Fatal(err)
			}
		}, "hilo-missing users"},
		{"Max missing", jay.Options{}, func(t *testing.T, db *jay.DB) {
			put(t, db, "Raven/HiLo/users", `{}`, inHiLo)
		}, "hilo-without-max users"},
		{"Max no number", jay.Options{}, func(t *testing.T, db *jay.DB) {
			nextRange(t, db, jay.RangeRequest{Tag: "users"})
			put(t, db, "Raven/HiLo/users", `{"Max":"32"}`, inHiLo)
		}, "hilo-without-max users"},
		{"ServerHi without capacity", jay.Options{}, func(t *testing.T, db *jay.DB) {
			put(t, db, "Raven/HiLo/users", `{"ServerHi":3}`, inHiLo)
		}, "needs-capacity users"},
		{"ServerHi with capacity", jay.Options{HiLoMode: jay.HiLo2010, HiLoCapacity: 10}, func(t *testing.T, db *jay.DB) {
			equal(t, store(t, db, "Users"), "users/1")
		}, ""},
		{"shared prefix", jay.Options{}, func(t *testing.T, db *jay.DB) {
			put(t, db, "users/a", `{}`, jay.InCollection("Users"))
			put(t, db, "USERS/b", `{}`, jay.InCollection("users"))
			put(t, db, "users/c", `{}`, jay.InCollection("Orders"))
		}, "shared-prefix users/"},
		{"no prefix to share", jay.Options{}, func(t *testing.T, db *jay.DB) {
			put(t, db, "a", `{}`, jay.InCollection("Users"))
			put(t, db, "b", `{}`, jay.InCollection("Orders"))
		}, ""},
		{"too many", jay.Options{}, func(t *testing.T, db *jay.DB) {
			var batch jay.Batch
			for i := range 10_010 {
				batch.Put(fmt.Sprintf("p%05d/a", i), json.RawMessage(`{}`))
			}
			if _, err := db.Apply(ctx, &batch); err != nil {
				t.Fatal(err)
			}
		}, "too-many"},
	} {
		t.Run(test.name, func(t *testing.T) {
			db := memory(t, &test.opts)
			test.make(t, db)
			r := inspect(t, db)
			equal(t, kinds(r), test.want)
			for _, w := range r.Warnings {
				if w.Text == "" || strings.Contains(w.Text, "%!") {
					t.Errorf("bad text %q", w.Text)
				}
			}
		})
	}
}

// Ensure that the identities of a copy are seen to wait for a floor, until
// they are seeded.
func TestInspectIDs_NeedsFloor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := open(t, dir, nil)
	put(t, db, "users|", `{}`)
	closeDB(t, db)
	db = open(t, dir, &jay.Options{CopyTag: "B"})
	defer closeDB(t, db)
	r := inspect(t, db)
	equal(t, kinds(r), "needs-floor users|")
	equal(t, r.NodeTag, "B")
	i := r.Identities[0]
	equal(t, fmt.Sprint(i.Name, i.Last, i.Highest, i.Unused, i.Deleted, i.NeedsFloor), "users|1 1 0 0 true")
	if _, err := db.SeedIdentity(ctx, "users", 10, false); err != nil {
		t.Fatal(err)
	}
	equal(t, kinds(inspect(t, db)), "")
}

// Ensure that IDs are recognised by their shape, whatever the separator and
// the case rule.
func TestInspectIDs_Shapes(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	const guid = "3f2b8c1e-6d0a-4b1f-9c3d-0123456789ab"
	for _, test := range []struct {
		id, separator, prefix, strategy string
	}{
		{guid, "/", "", "guid"},
		{strings.ToUpper(guid), "/", "", "guid"},
		{guid, "-", "", "guid"},
		{"users/" + guid, "/", "users/", "semantic"},
		{"users/0000000000000000042-A", "/", "users/", "server-side"},
		{"Users/1/Logs/0000000000000000042-ABCD", "/", "users/1/logs/", "server-side"},
		{"users-0000000000000000042-A", "-", "users-", "server-side"},
		{"users/33-A", "/", "users/", "hilo"},
		{"users/33-NUT", "/", "users/", "hilo"},
		{"users-33-A", "-", "users-", "hilo"},
		{"users/033-A", "/", "users/", "semantic"},
		{"users/0-A", "/", "users/", "semantic"},
		{"users/33-ABCDE", "/", "users/", "semantic"},
		{"users/33-", "/", "users/", "semantic"},
		{"users/33A", "/", "users/", "semantic"},
		{"33-A", "/", "", "semantic"},
		{"users/7", "/", "users/", "identity"},
		{"users-7", "-", "users-", "identity"},
		{"users/007", "/", "users/", "semantic"},
		{"users/0", "/", "users/", "semantic"},
		{"users/9223372036854775807", "/", "users/", "identity"},
		{"users/9223372036854775808", "/", "users/", "semantic"},
		{"users7", "/", "", "semantic"},
		{"7", "/", "", "semantic"},
		{"users/a7", "/", "users/", "semantic"},
		{"users-ann", "-", "users-", "semantic"},
		{"users÷7", "÷", "users÷", "identity"},
		{"/7", "/", "/", "identity"},
	} {
		for _, sensitive := range []bool{false, true} {
			db := memory(t, &jay.Options{Separator: test.separator, CaseSensitive: sensitive})
			put(t, db, test.id, `{}`)
			r := inspect(t, db)
			c := r.Prefixes[0].IDCounts
			got := map[int64]string{c.HiLo: "hilo", c.Identity: "identity", c.ServerSide: "server-side", c.GUID: "guid", c.Semantic: "semantic"}[1]
			prefix := r.Prefixes[0].Prefix
			if sensitive {
				prefix = strings.ToLower(prefix)
			}
			if got != test.strategy || prefix != test.prefix || len(r.Prefixes) != 1 || c.Documents != 1 || r.Documents != 1 {
				t.Errorf("%q with %q: got %s under %q (%+v), want %s under %q", test.id, test.separator, got, prefix, r, test.strategy, test.prefix)
			}
		}
	}
}

// Ensure that what became of each HiLo number is reported as far as it can be.
func TestInspectIDs_Unused(t *testing.T) {
	c := newClock()
	dir := t.TempDir()
	db := open(t, dir, &jay.Options{Now: c.Now})
	for range 5 {
		store(t, db, "Users") // 1 to 5
	}
	if err := db.Delete(ctx, "users/2-A"); err != nil {
		t.Fatal(err)
	}
	put(t, db, "elsewhere", `{}`)
	var refused jay.Batch // its first number is drawn before the second document is refused
	refused.Store("Users", json.RawMessage(`{}`))
	refused.Put("elsewhere", json.RawMessage(`{}`), jay.IfMatch("A:1-x"))
	if _, err := db.Apply(ctx, &refused); !errors.Is(err, jay.ErrConflict) {
		t.Fatalf("got %v, want ErrConflict", err)
	}
	check := func(want string) {
		t.Helper()
		h := inspect(t, db).HiLo[0]
		equal(t, fmt.Sprintf("max %d mark %d top %d highest %d leases %d: %d = %d leased, %d held, %d lost, %d late, %d deleted, %d",
			*h.Max, h.Mark, h.Top, h.Highest, h.OpenLeases, h.Unused, h.InOpenLeases, h.HeldInThisProcess, h.LostInThisProcess, h.ReturnedLate, h.Deleted, h.Unaccounted), want)
	}
	check("max 32 mark 32 top 32 highest 5 leases 1: 28 = 26 leased, 0 held, 1 lost, 0 late, 1 deleted, 0")

	// Another client's range keeps the first one from going back.
	other := nextRange(t, db, jay.RangeRequest{Tag: "users"})
	closeDB(t, db)
	db = open(t, dir, &jay.Options{Now: c.Now})
	check("max 64 mark 64 top 64 highest 5 leases 2: 60 = 59 leased, 0 held, 0 lost, 0 late, 1 deleted, 0")
	put(t, db, "users/40-B", `{}`)
	check("max 64 mark 64 top 64 highest 5 leases 2: 59 = 58 leased, 0 held, 0 lost, 0 late, 1 deleted, 0")
	put(t, db, "users/2-A", `{}`) // it is back
	check("max 64 mark 64 top 64 highest 5 leases 2: 58 = 58 leased, 0 held, 0 lost, 0 late, 0 deleted, 0")
	equal(t, returnRange(t, db, "users", 5, 32), false) // late: 33 to 64 are another's
	check("max 64 mark 64 top 64 highest 5 leases 2: 58 = 31 leased, 0 held, 0 lost, 27 late, 0 deleted, 0")
	equal(t, returnRange(t, db, "users", other.Low, other.High), true)
	check("max 33 mark 33 top 64 highest 5 leases 0: 28 = 0 leased, 0 held, 0 lost, 0 late, 0 deleted, 28")
	closeDB(t, db)
}

// The numbers that a client of HiLo2 held, whose blocks have no lease, were
// reported as deleted or lost.
func TestInspectIDs_HeldWithoutLease(t *testing.T) {
	for _, mode := range []jay.HiLoMode{jay.HiLo2, jay.HiLo2010} {
		db := memory(t, &jay.Options{HiLoMode: mode, HiLoCapacity: 32})
		check := func(want string) {
			t.Helper()
			h := inspect(t, db).HiLo[0]
			equal(t, fmt.Sprintf("%d = %d leased, %d held, %d deleted, %d", h.Unused, h.InOpenLeases, h.HeldInThisProcess, h.Deleted, h.Unaccounted), want)
		}
		for range 2 {
			store(t, db, "Users")
		}
		other := db.NewHiLoClient()
		equal(t, draw(t, other, "USERS", 1), "USERS/33")
		must(t, db.Delete(ctx, "users/2"))
		check("63 = 0 leased, 61 held, 1 deleted, 1")
		must(t, other.Close(ctx))
		check("63 = 0 leased, 30 held, 1 deleted, 32")
	}
}

// Ensure that the holes of an identity are counted, and those of deleted
// documents among them; and that a deleted ID that was written again is
// none.
func TestInspectIDs_IdentityHoles(t *testing.T) {
	db := memory(t, nil)
	for range 4 {
		put(t, db, "users|", `{}`)
	}
	_, err := db.NextIdentity(ctx, "users")
	must(t, err)
	for _, id := range []string{"users/2", "users/3", "users/3-A"} {
		put(t, db, id, `{}`)
		must(t, db.Delete(ctx, id))
	}
	put(t, db, "users/9", `{}`) // above the counter
	check := func(want string) {
		t.Helper()
		i := inspect(t, db).Identities[0]
		equal(t, fmt.Sprintf("last %d highest %d: %d unused, %d deleted", i.Last, i.Highest, i.Unused, i.Deleted), want)
	}
	check("last 5 highest 9: 3 unused, 2 deleted")
	put(t, db, "users/3", `{}`)
	check("last 5 highest 9: 2 unused, 1 deleted")
}

// Ensure that documents that have expired count as deleted, and that a deleted document
// with revisions does so however long ago it was deleted.
func TestInspectIDs_ExpiredAndRevisions(t *testing.T) {
	defer func(old uint64) { knobs.KeptChanges = old }(knobs.KeptChanges)
	knobs.KeptChanges = 0
	clock := newClock()
	db := memory(t, &jay.Options{Now: clock.Now})
	must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Collections: map[string]jay.RevisionRule{"Kept": {}}}))
	for range 3 {
		put(t, db, "kept|", `{}`, jay.InCollection("Kept"))
		put(t, db, "brief|", `{}`, jay.InCollection("Brief"), jay.WithTTL(time.Hour))
	}
	must(t, db.Delete(ctx, "kept/2"))
	check := func(want string) {
		t.Helper()
		r := inspect(t, db)
		got := fmt.Sprintf("%d expiring, %d with revisions", r.Expiring, r.DeletedWithRevisions)
		for _, i := range r.Identities {
			got += fmt.Sprintf("; %s %d unused, %d deleted", i.Name, i.Unused, i.Deleted)
		}
		equal(t, got, want)
	}
	check("3 expiring, 1 with revisions; brief| 0 unused, 0 deleted; kept| 1 unused, 1 deleted")
	clock.Advance(2 * time.Hour)
	_, err := db.Sweep(ctx)
	must(t, err)
	check("0 expiring, 1 with revisions; brief| 3 unused, 3 deleted; kept| 1 unused, 1 deleted")
	must(t, db.Compact(ctx)) // removes the records of deletions
	check("0 expiring, 1 with revisions; brief| 3 unused, 0 deleted; kept| 1 unused, 1 deleted")
	put(t, db, "kept/2", `{}`, jay.InCollection("Kept"))
	check("0 expiring, 0 with revisions; brief| 3 unused, 0 deleted; kept| 0 unused, 0 deleted")
}

// The forecast was the average since the database was created: a counter that
// had slept for a year, or had just awoken, was given the wrong time.
func TestInspectIDs_RecentRate(t *testing.T) {
	const day = 24 * time.Hour
	c := newClock()
	db := memory(t, &jay.Options{Now: c.Now})
	rate := func(f jay.Forecast) string {
		if f.PerDay == nil || f.YearsLeft == nil {
			return "none"
		}
		if want := (math.MaxInt64 - 1000) / *f.PerDay / 365.2425; *f.YearsLeft < 0.99*want || *f.YearsLeft > 1.01*want {
			t.Errorf("%v years left, want %v", *f.YearsLeft, want)
		}
		return fmt.Sprintf("%.1f %v", *f.PerDay, f.Recent)
	}
	check := func(want string) {
		t.Helper()
		r := inspect(t, db)
		equal(t, "HiLo "+rate(r.HiLo[0].Forecast)+", identity "+rate(r.Identities[0].Forecast)+", etag "+rate(r.Etags.Forecast), want)
	}
	write := func(n int) {
		for range n {
			store(t, db, "Users")
			put(t, db, "users|", `{}`)
		}
	}

	write(20) // and an etag for the range
	check("HiLo none, identity none, etag none")
	c.Advance(10 * day)
	check("HiLo 3.2 false, identity 2.0 false, etag 4.1 false")
	c.Advance(355 * day)
	check("HiLo 0.1 false, identity 0.1 false, etag 0.1 false")
	write(300)
	check("HiLo 10.0 true, identity 10.0 true, etag 20.1 true")
	c.Advance(30 * day)
	write(3)
	check("HiLo 0.1 true, identity 0.1 true, etag 0.2 true")
}

// Ensure that the forecast follows the clock, and is silent where it knows
// nothing.
func TestInspectIDs_YearsLeft(t *testing.T) {
	c := newClock()
	db := memory(t, &jay.Options{Now: c.Now})
	put(t, db, "Raven/HiLo/new", `{"Max":0}`)
	nextRange(t, db, jay.RangeRequest{Tag: "users"})
	r := inspect(t, db)
	if r.HiLo[0].YearsLeft != nil || r.HiLo[1].YearsLeft != nil {
		t.Error("there is a forecast, want none at the moment of creation")
	}

	put(t, db, "Raven/HiLo/users", fmt.Sprintf(`{"Max":%d}`, int64(1)<<62), jay.InCollection("@hilo"))
	nextRange(t, db, jay.RangeRequest{Tag: "users"})
	c.Advance(365 * 24 * time.Hour)
	r = inspect(t, db)
	if r.HiLo[0].YearsLeft != nil {
		t.Error("there is a forecast for a tag that granted nothing")
	}
	if y := r.HiLo[1].YearsLeft; y == nil || *y < 0.99 || *y > 1.01 {
		t.Errorf("half the numbers took a year: got %v, want another year", y)
	}
}

// Ensure that an inspection changes nothing, reports its progress, where user
// code may close the database, and stops with its context.
func TestInspectIDs_Calls(t *testing.T) {
	db := memory(t, nil)
	store(t, db, "Users")
	before := dump(t, db)
	seen := int64(0)
	if _, err := db.InspectIDs(ctx, func(n int64) { seen = n }); err != nil {
		t.Fatal(err)
	}
	equal(t, seen, 2)
	equal(t, dump(t, db), before)

	_, err := db.InspectIDs(ctx, func(int64) {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	for range 2 {
		if !errors.Is(err, jay.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
		_, err = db.InspectIDs(ctx, nil)
	}
}

// Ensure that what is not listed is still counted.
func TestInspectIDs_Rest(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	db := memory(t, nil)
	var batch jay.Batch
	for i := range 10_005 {
		batch.Put(fmt.Sprintf("p%05d/1-A", i), json.RawMessage(`{}`))
		batch.Put(fmt.Sprintf("p%05d/2", i), json.RawMessage(`{}`))
	}
	if _, err := db.Apply(ctx, &batch); err != nil {
		t.Fatal(err)
	}
	r := inspect(t, db)
	equal(t, len(r.Prefixes), 10_001)
	equal(t, r.Documents, 20_010)
	rest := r.Prefixes[10_000]
	equal(t, fmt.Sprintf("%v %+v", rest.Rest, rest.IDCounts), "true {Documents:10 HiLo:5 Identity:5 ServerSide:0 GUID:0 Semantic:0}")
}
