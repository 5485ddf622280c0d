package lsm

// Internals are needed to see the ranges around keys that no test looks up, and
// whether they are of use.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/storage"
)

// Ensure that no committed key is ever in an absent range, whatever is found, set and
// deleted, and that slots are neither lost nor used twice.
func TestAbsentRanges_Model(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	keyOf := []func(n int) []byte{
		func(n int) []byte { return fmt.Appendf(nil, "dorders/%d-a\x00", n) },
		func(n int) []byte { return fmt.Appendf(nil, "dusers/%08d", n) },
		func(n int) []byte { return fmt.Appendf(nil, "d%x", uint64(n+1)*0x9e3779b97f4a7c15) },
		func(n int) []byte { return bytes.Repeat([]byte{byte(n)}, 1+n/256%4) },
		func(n int) []byte { return append(bytes.Repeat([]byte{'d'}, maxBoundBytes-2), fmt.Append(nil, n)...) },
	}

	var g absentRanges
	var keys []string // committed, in order
	s := newStaging()
	hits := 0
	for round := range 20_000 {
		for range 1 + random.IntN(4)*random.IntN(4) {
			n := round/4 + random.IntN(40)
			if random.IntN(4) == 0 {
				n = random.IntN(round + 1)
			}
			key := keyOf[random.IntN(len(keyOf))](n)
			i, found := slices.BinarySearch(keys, string(key))
			if g.contains(key) {
				hits++
				if found {
					t.Fatalf("round %d: %.40q is there", round, key)
				}
			} else if !found && g.shouldWalk(key) {
				walked(&g, keys, i, key)
			}
			if random.IntN(6) == 0 {
				s.add(key, nil, nil, true)
			} else {
				s.add(key, nil, nil, false)
			}
		}
		g.invalidate(s, s.sorted(0, len(s.entries))) // even if the transaction then fails
		if random.IntN(5) > 0 {
			for i := range s.entries {
				at, found := slices.BinarySearch(keys, string(s.key(i)))
				switch deleted := s.entries[i].deleted; {
				case deleted && found:
					keys = slices.Delete(keys, at, at+1)
				case !deleted && !found:
					keys = slices.Insert(keys, at, string(s.key(i)))
				}
			}
		}
		s.reset()
		if round%50 == 0 || round < 200 {
			checkRanges(t, &g, keys)
		}
	}
	if len(g.order) < maxRanges/2 || hits < 10_000 {
		t.Errorf("%d ranges and %d hits: what is tested is not in use", len(g.order), hits)
	}
}

// walked does what groupReader.walk does, on the sorted keys; i is where key would
// be. It uses one memory for all ends, as an iterator may.
func walked(g *absentRanges, keys []string, i int, key []byte) {
	end := string(above(key))
	lo, hi := []byte{key[0]}, []byte(nil)
	if i > 0 && keys[i-1] > string(lo) {
		lo = append(lo[:0], keys[i-1]...)
	}
	for n := 0; n < maxWalkRanges; n++ {
		last := i+n >= len(keys) || keys[i+n] >= end
		if last {
			hi = append(hi[:0], end...)
		} else {
			hi = append(hi[:0], keys[i+n]...)
		}
		if !g.add(lo, hi, key) || last {
			break
		}
		lo, hi = hi, lo
	}
	clear(lo[:cap(lo)])
	clear(hi[:cap(hi)])
}

// checkRanges checks all ranges against the committed keys.
func checkRanges(t *testing.T, g *absentRanges, keys []string) {
	t.Helper()
	seen := make(map[uint16]bool)
	for _, slot := range slices.Concat(g.order, g.free) {
		if seen[slot] || int(slot) >= g.used {
			t.Fatalf("slot %d is used twice, or was never used", slot)
		}
		seen[slot] = true
	}
	if len(seen) != g.used {
		t.Fatalf("%d slots of %d are lost", g.used-len(seen), g.used)
	}
	for i, slot := range g.order {
		s := &g.slots[slot]
		if bytes.Compare(s.lo, s.hi) >= 0 || len(s.lo) > maxBoundBytes || len(s.hi) > maxBoundBytes {
			t.Fatalf("range from %q to %q", s.lo, s.hi)
		}
		if i > 0 && bytes.Compare(g.slots[g.order[i-1]].hi, s.lo) > 0 {
			t.Fatalf("range from %q to %q overlaps the one before it", s.lo, s.hi)
		}
		at, found := slices.BinarySearch(keys, string(s.lo))
		if found {
			at++
		}
		if at < len(keys) && keys[at] < string(s.hi) {
			t.Fatalf("%q is in the range from %q to %q", keys[at], s.lo, s.hi)
		}
	}
}

// Ensure that inserts of IDs that count upwards are spared nearly all of their
// look-ups, in one collection and in several by turns, in order and not quite,
// and that walks for random ones are rare.
func TestAbsentRanges_OfUse(t *testing.T) {
	hilo := func(collections, window int) func(i int) string {
		return func(i int) string {
			n := i / collections
			n = n/window*window + n*7%window // 7 and the window have no common factor
			return fmt.Sprintf("dorders%d/%d-a\x00", i%collections, 1000+n)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	tests := []struct {
		name   string
		key    func(i int) string
		reads  int // at most, in percent
		minima int // reads, at least
	}{
		{"one collection", hilo(1, 1), 3, 0},
		{"32 writers", hilo(1, 32), 5, 0},
		{"128 writers", hilo(1, 128), 5, 0},
		{"16 collections", hilo(16, 1), 10, 0},
		{"4 collections, 32 writers", hilo(4, 32), 10, 0},
		{"zeros in front", func(i int) string { return fmt.Sprintf("dusers/%019d-a\x00", i) }, 1, 0},
		{"times", func(i int) string { return fmt.Sprintf("d%012x-%016x", 1<<40+i/8, random.Uint64()) }, 1, 0},
		{"random", func(i int) string { return fmt.Sprintf("d%016x%016x", random.Uint64(), random.Uint64()) }, 100, 50},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e, err := Open("db", Options{InMemory: true})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			const inserts = 20_000
			reads, walks := 0, 0
			for i := range inserts {
				err := e.Update(context.Background(), false, func(tx storage.Tx) error {
					key := []byte(test.key(i))
					if e.absent.find(key) < 0 {
						reads++
					}
					_, _, err := tx.Get(key)
					if !errors.Is(err, storage.ErrNotFound) {
						return fmt.Errorf("%q: %w", key, err)
					}
					if tx.(*transaction).reader.it != nil {
						walks++
					}
					tx.Set(key, nil, []byte("v"))
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("%d inserts: %d reads, %d walks", inserts, reads, walks)
			if reads > inserts*test.reads/100 || reads < inserts*test.minima/100 {
				t.Errorf("%d inserts read %d times", inserts, reads)
			}
			if test.minima > 0 && walks > inserts/50 {
				t.Errorf("%d inserts at random walked %d times", inserts, walks)
			}
		})
	}
}

// Ensure that nothing writes to Pebble but apply, which write calls after it
// has invalidated absent ranges, and tidy, whose batch changes no key, when there are
// no transactions any more.
func TestAbsentRanges_OneWayIn(t *testing.T) {
	reads := []string{"Get", "NewIter", "NewSnapshot", "NewBatchWithSize", "LogData", "Metrics", "SSTables", "Compact", "Close"}
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	applies := 0
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			fn, _ := decl.(*ast.FuncDecl)
			ast.Inspect(decl, func(n ast.Node) bool {
				call, ok := n.(*ast.SelectorExpr)
				if !ok || !isDB(call.X) || slices.Contains(reads, call.Sel.Name) {
					return true
				}
				if fn == nil || fn.Name.Name != "apply" {
					t.Errorf("%s: db.%s is called outside of apply", path, call.Sel.Name)
				}
				applies++
				return true
			})
		}
	}
	if applies != 2 {
		t.Errorf("apply writes in %d ways, want 2: do the others invalidate absent ranges?", applies)
	}
}

// isDB reports whether x is a variable or field named db.
func isDB(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "db"
	case *ast.SelectorExpr:
		return x.Sel.Name == "db"
	}
	return false
}

// Ensure that the absent range between two keys of different transactions stays known when
// they share a batch.
func TestAbsentRanges_SharedBatch(t *testing.T) {
	e, err := Open("db", Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.absent.add([]byte("d"), []byte("e"), []byte("d5"))
	started := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_ = e.Update(context.Background(), false, func(storage.Tx) error {
			close(started)
			for e.queue.length() < 2 {
				runtime.Gosched()
			}
			return nil
		})
	})
	<-started
	for _, key := range []string{"d10", "d50"} {
		all.Go(func() {
			_ = e.Update(context.Background(), false, func(tx storage.Tx) error {
				tx.Set([]byte(key), nil, nil)
				return nil
			})
		})
	}
	all.Wait()
	if e.applied != 1 {
		t.Fatalf("%d batches, want one", e.applied)
	}
	for key, want := range map[string]bool{"d0": true, "d10": false, "d11": true, "d50": false, "d51": true} {
		if e.absent.contains([]byte(key)) != want {
			t.Errorf("%s is known to be absent: %v, want %v", key, !want, want)
		}
	}
}

// Ensure that walks over absent ranges back off where they read a large value: an
// insert beside a document of megabytes reads it at most a few times, and not for
// every hundredth ID.
func TestAbsentRanges_LargeNeighbour(t *testing.T) {
	for _, size := range []int{100, 16 << 20} {
		fs := vfs.NewMem()
		reopen := func() *Engine {
			e, err := Open("db", Options{FS: fs})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		set := func(e *Engine, key string, value []byte) {
			if err := e.Update(context.Background(), true, func(tx storage.Tx) error {
				if _, closer, err := tx.Get([]byte(key)); err == nil {
					return closer.Close()
				}
				tx.Set([]byte(key), value, nil)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		e := reopen()
		set(e, "dbig", bytes.Repeat([]byte("x"), size))
		if err := e.db.Flush(); err != nil {
			t.Fatal(err)
		}
		read := func() int64 { m := e.db.Metrics(); return m.BlockCache.Misses }
		before := read()
		const inserts = 10_000
		for i := range inserts {
			set(e, fmt.Sprintf("dsmall/%d-a", i), nil)
		}
		misses := read() - before
		t.Logf("a neighbour of %d bytes: %d blocks read", size, misses)
		if misses > inserts/500 {
			t.Errorf("%d inserts beside a value of %d bytes read %d blocks", inserts, size, misses)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
