package budget_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/budget"
)

const mib = 1 << 20

// asked returns random wishes with a bound.
func asked(r *rand.Rand) budget.Asked {
	a := budget.Asked{Bound: budget.Least + r.Int64N(1<<r.IntN(36))}
	if r.IntN(3) == 0 {
		a.Blocks = 1 + r.Int64N(a.Bound)
	}
	if r.IntN(3) == 0 {
		a.MemTable = 64<<10 + r.Int64N(64*mib)
	}
	if r.IntN(3) == 0 {
		a.Documents = r.Int64N(a.Bound) - a.Bound/4
	}
	if r.IntN(3) == 0 {
		a.Query = 1 + r.Int64N(a.Bound/2)
	}
	a.OtherEngine = r.IntN(5) == 0
	return a
}

// Ensure that the shares never exceed the bound, that each has its least, and that what was asked for is as it was asked for.
func TestDivide_WithinBound(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	refused := 0
	for range 20_000 {
		a := asked(r)
		s, err := budget.Divide(a)
		if err != nil {
			if !errors.Is(err, budget.ErrBound) {
				t.Fatalf("seed %d: %+v: %v", seed, a, err)
			}
			refused++
			continue
		}
		sum := s.Blocks + s.MemTablesBytes() + max(0, s.Documents) + s.Heads + s.Work + s.Collector
		heap := max(0, s.Documents) + s.Heads + s.Work
		if !budget.Outside {
			heap += s.Blocks + s.MemTablesBytes()
		}
		switch {
		case s.Bound != a.Bound || sum > a.Bound || sum < a.Bound-1:
			t.Fatalf("seed %d: %+v: the shares %+v take %d", seed, a, s, sum)
		case s.Collector != heap:
			t.Fatalf("seed %d: %+v: the collector has %d beside %d on the heap", seed, a, s.Collector, heap)
		case s.Work < 2*mib || s.Work < a.Query || s.QueryBytes() > s.Work || 2*s.SortBytes() > s.Work:
			t.Fatalf("seed %d: %+v: too little work in %+v", seed, a, s)
		case !a.OtherEngine && (s.Blocks != a.Blocks && (a.Blocks != 0 || s.Blocks < 4*mib) || s.MemTable != a.MemTable && (a.MemTable != 0 || s.MemTable < mib)):
			t.Fatalf("seed %d: %+v: the engine has %+v", seed, a, s)
		case a.OtherEngine && s.Blocks+s.MemTable != 0:
			t.Fatalf("seed %d: %+v: another engine has %+v", seed, a, s)
		case s.Documents != a.Documents && (a.Documents != 0 || s.Documents < mib/2) || s.Documents < 0 && s.Heads != 0 || s.Documents >= 0 && a.Blocks == 0 && s.Heads == 0:
			t.Fatalf("seed %d: %+v: the documents have %+v", seed, a, s)
		}
	}
	if refused == 0 || refused > 15_000 {
		t.Errorf("seed %d: %d of 20,000 were refused", seed, refused)
	}
}

// Ensure that no share becomes smaller when the bound grows.
func TestDivide_Monotonic(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		a := asked(r)
		small, err := budget.Divide(a)
		if err != nil {
			continue
		}
		a.Bound += r.Int64N(1 << r.IntN(36))
		large, err := budget.Divide(a)
		if err != nil {
			t.Fatalf("seed %d: %+v is refused: %v", seed, a, err)
		}
		// Divisions leave rests, so that the work may lose some bytes.
		if large.Blocks < small.Blocks || large.MemTable < small.MemTable || large.Documents < small.Documents || large.Heads < small.Heads || large.Work < small.Work-16 {
			t.Fatalf("seed %d: %+v: %+v, and before %+v", seed, a, large, small)
		}
	}
}

// Ensure that what does not fit into the bound is refused by name, and a bound below the least.
func TestDivide_Refused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		asked budget.Asked
		want  []string
	}{
		"below the least": {budget.Asked{Bound: budget.Least - 1}, []string{"MaxMemory", "33554432", "33554431"}},
		"blocks":          {budget.Asked{Bound: 64 * mib, Blocks: 64 * mib}, []string{"MaxMemory is 67108864", "CacheBytes (67108864)"}},
		"write buffers":   {budget.Asked{Bound: 64 * mib, MemTable: 16 * mib}, []string{"MemTableBytes, four times (16777216)"}},
		"documents":       {budget.Asked{Bound: 64 * mib, Documents: 30 * mib}, []string{"DocumentCacheBytes (31457280)"}},
		"a query":         {budget.Asked{Bound: 64 * mib, Query: 30 * mib}, []string{"MaxQueryBytes (31457280)"}},
		"two":             {budget.Asked{Bound: 64 * mib, Blocks: 40 * mib, Query: 10 * mib}, []string{"CacheBytes (41943040), MaxQueryBytes (10485760)"}},
	} {
		_, err := budget.Divide(test.asked)
		if !errors.Is(err, budget.ErrBound) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v does not say %q", name, err, want)
			}
		}
	}
}
