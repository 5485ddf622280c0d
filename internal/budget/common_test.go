package budget_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/storage"
)

// cost is what a claim takes of the part for caches.
func cost(c *budget.Claim) int64 {
	heap := max(0, c.Documents) + c.Heads
	outside := c.Blocks + c.MemTablesBytes()
	if !budget.Outside {
		return 2 * (heap + outside)
	}
	return 2*heap + outside
}

// Ensure that the claims of databases that come and go never exceed the part for caches, that with the work and its garbage they never exceed the bound,
// that each has what it asked for, and that all is free in the end.
func TestCommon_WithinBound(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	refused, granted := 0, 0
	for range 200 {
		c, err := budget.NewCommon(budget.LeastCommon + r.Int64N(1<<r.IntN(36)))
		if err != nil {
			t.Fatal(err)
		}
		open := map[*budget.Claim]bool{}
		for range 200 {
			if r.IntN(3) == 0 {
				for claim := range open {
					claim.End()
					claim.End()
					delete(open, claim)
					break
				}
				continue
			}
			asked := asked(r)
			asked.Bound = 0
			claim, err := c.Claim(asked)
			if err != nil {
				if !errors.Is(err, budget.ErrBound) && !errors.Is(err, storage.ErrMemory) {
					t.Fatalf("seed %d: %v", seed, err)
				}
				refused++
				continue
			}
			granted++
			open[claim] = true
			if asked.Blocks != 0 && !asked.OtherEngine && claim.Blocks != asked.Blocks || asked.Documents != 0 && claim.Documents != asked.Documents || claim.Work < asked.Query {
				t.Fatalf("seed %d: %+v has %+v", seed, asked, claim.Shares)
			}
			sum := int64(0)
			for claim := range open {
				sum += cost(claim)
			}
			claimed, most := c.Load()
			if sum != claimed || claimed > most || most+2*claim.Work > c.Bound() || claim.Bound != c.Bound() {
				t.Fatalf("seed %d: the caches take %d, %d of %d are claimed, and the work has %d of %d", seed, sum, claimed, most, claim.Work, c.Bound())
			}
		}
		for claim := range open {
			claim.End()
		}
		if claimed, _ := c.Load(); claimed != 0 {
			t.Fatalf("seed %d: %d bytes are claimed in the end", seed, claimed)
		}
	}
	if refused < 1000 || granted < 1000 {
		t.Errorf("seed %d: %d were refused and %d not", seed, refused, granted)
	}
}

// Ensure that each database gets half of what is left, at least the least caches, that the one after the last is refused, and fits when another one
// has ended.
func TestCommon_Halves(t *testing.T) {
	t.Parallel()
	c, err := budget.NewCommon(64 * mib)
	if err != nil {
		t.Fatal(err)
	}
	var all []*budget.Claim
	for {
		claim, err := c.Claim(budget.Asked{})
		if e := (*storage.MemoryError)(nil); errors.As(err, &e) {
			if e.Most != 40*mib || e.What != storage.MemoryOfDatabase || e.Wanted > 18*mib {
				t.Errorf("%+v", e)
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, claim)
	}
	if len(all) < 2 || cost(all[0]) < 16*mib || cost(all[0]) > 20*mib {
		t.Fatalf("%d databases, the first with %+v", len(all), all[0])
	}
	most, claimed := all[0].Others()
	if most != 40*mib-cost(all[0]) || claimed < 10*mib {
		t.Errorf("others have %d of %d", claimed, most)
	}
	all[0].End()
	if _, err := c.Claim(budget.Asked{}); err != nil {
		t.Error(err)
	}
	if _, err := c.Claim(budget.Asked{Blocks: 64 * mib}); !errors.Is(err, budget.ErrBound) {
		t.Errorf("what never fits: %v", err)
	}
	if _, err := c.Claim(budget.Asked{Query: 64 * mib}); !errors.Is(err, budget.ErrBound) {
		t.Errorf("a query that never fits: %v", err)
	}
	if _, err := budget.NewCommon(budget.LeastCommon - 1); !errors.Is(err, budget.ErrBound) {
		t.Errorf("below the least: %v", err)
	}
}

// Ensure that without a bound the caches of the first database are those of earlier versions on every machine of 3 GiB and more (6 GiB without cgo), that many databases together
// stay within a quarter of the machine as long as that has room for the least caches, that none is refused, and that what was asked for comes on top.
func TestProcess(t *testing.T) {
	t.Parallel()
	for _, machine := range []int64{64 * mib, 2 << 30, 3 << 30, 16 << 30, 1 << 40} {
		c := budget.ProcessOf(machine)
		if c.Bound() != max(machine/4, budget.LeastCommon) {
			t.Errorf("%d: the bound is %d", machine, c.Bound())
		}
		sum := int64(0)
		for i := range 200 {
			before, most := c.Load()
			s, err := c.Claim(budget.Asked{})
			if err != nil {
				t.Fatal(err)
			}
			usual := s.Blocks == 64*mib && s.MemTable == 32*mib && s.Documents == 16*mib && s.Heads == 8*mib
			if i == 0 && (machine >= 16<<30 || budget.Outside && machine >= 3<<30) && (!usual || s.QueryBytes() != 64*mib || s.SortBytes() != 32*mib) {
				t.Errorf("%d: %+v, %d, %d", machine, s.Shares, s.QueryBytes(), s.SortBytes())
			}
			if sum += cost(s); sum > most && cost(s) > 18*mib || most-before > 20*mib && sum > most {
				t.Errorf("%d: database %d has %d, and all %d of %d", machine, i, cost(s), sum, most)
			}
		}
	}
	c := budget.ProcessOf(16 << 30)
	s, err := c.Claim(budget.Asked{Blocks: 8 << 30, Query: 6 << 30})
	if err != nil || s.Blocks != 8<<30 || s.Work < 6<<30 || s.MemTable != 32*mib || s.Bound < 8<<30 {
		t.Errorf("with large options: %+v, %v", s, err)
	}
	if claimed, _ := c.Load(); claimed > 400*mib {
		t.Errorf("they leave others too little: %d are claimed", claimed)
	}
}

// Ensure that the part of a database whose engine another one has open is what its claim leaves, however often the database is opened.
func TestCommon_Part(t *testing.T) {
	t.Parallel()
	c, err := budget.NewCommon(256 * mib)
	if err != nil {
		t.Fatal(err)
	}
	whole, part, err := c.Part(budget.Asked{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		own, err := part.Claim(budget.Asked{OtherEngine: true})
		if err != nil || own.Blocks != 0 || own.Documents > whole.Documents || own.Documents < whole.Documents/2 || own.Pool != whole.Pool {
			t.Fatalf("%+v of %+v: %v", own, whole, err)
		}
		own.End()
	}
	if claimed, _ := c.Load(); claimed != cost(whole) {
		t.Errorf("%d are claimed", claimed)
	}
	whole.End()
	if claimed, _ := c.Load(); claimed != 0 {
		t.Errorf("%d are claimed in the end", claimed)
	}
}

// Ensure that as many databases fit as operations.md and decision 0205 say.
func TestCommon_Stated(t *testing.T) {
	t.Parallel()
	large, whole, most, least := 9, 7, 3, int64(10<<20)
	if !budget.Outside {
		large, whole, most, least = 4, 6, 2, 18<<20
	}
	process := budget.ProcessOf(16 << 30)
	first, err := process.Claim(budget.Asked{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for next := first; next.Shares == first.Shares; n++ {
		if next, err = process.Claim(budget.Asked{}); err != nil {
			t.Fatal(err)
		}
	}
	if n != large {
		t.Errorf("on 16 GiB %d databases have the largest caches, want %d", n, large)
	}
	for bound, want := range map[int64]int{64 << 20: most, 1 << 30: whole} {
		c, err := budget.NewCommon(bound)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, err = c.Claim(budget.Asked{}); err == nil; _, err = c.Claim(budget.Asked{}) {
			n++
		}
		var refused *storage.MemoryError
		if n != want || !errors.As(err, &refused) || refused.Wanted != least {
			t.Errorf("%d MiB: %d databases fit, want %d; the next one: %v, want that it needs %d", bound>>20, n, want, err, least)
		}
	}
}
