package lsm_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// crasher is a disk that loses its power before a given operation that changes
// it, and goes on: crashed is what the machine would find then.
type crasher struct {
	lsm.FS
	mem     *vfs.MemFS
	left    atomic.Int64 // operations until the crash
	percent int
	random  *rand.Rand
	onCrash func()

	mu      sync.Mutex
	crashed *vfs.MemFS // Guarded by mu.
}

func newCrasher(mem *vfs.MemFS, after, percent int, onCrash func()) *crasher {
	c := &crasher{mem: mem, percent: percent, random: rand.New(rand.NewPCG(uint64(after), uint64(percent))), onCrash: onCrash}
	c.left.Store(int64(after))
	c.FS = errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && c.left.Add(-1) == 0 {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.onCrash()
			c.crashed = c.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: c.percent, RNG: c.random})
		}
		return nil
	}))
	return c
}

// result returns what the machine finds after the crash, nil if there was none.
func (c *crasher) result() *vfs.MemFS {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.crashed
}

// live opens a store, writes so much that logs, tables and manifests come and go,
// closes it and opens it again. It notes what was acknowledged.
func live(t *testing.T, fs lsm.FS, acknowledged *sync.Map) {
	for round := range 2 {
		e, err := lsm.Open("db", lsm.Options{FS: fs, MemTableBytes: 64 << 10, CacheBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if e.Creating() {
			if err := e.FinishCreation(); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 12 {
			key := fmt.Sprintf("%d-%d", round, i)
			if err := set(e, key, strings.Repeat(key, 2500)); err != nil {
				t.Fatal(err)
			}
			acknowledged.Store(key, true)
			loose := func(tx storage.Tx) error {
				tx.Set([]byte("loose"), []byte(strings.Repeat(key, 1000*(i%5))), nil)
				return nil
			}
			if err := e.Update(ctx, false, loose); err != nil { // may be lost, or be there in part
				t.Fatal(err)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Ensure that a power loss at any operation, in the creation, in a recovery, while
// logs and manifests change, and in Close, is never taken for damage, whatever
// the disk keeps of what was not synced, and that nothing acknowledged is lost.
func TestOpen_CrashAnywhere(t *testing.T) {
	sample.OneGoroutine(t)
	today := sample.Of(t, sample.Fortnight)
	for _, percent := range []int{0, 30, 70, 100} {
		t.Run(fmt.Sprintf("%d%% of the unsynced data kept", percent), func(t *testing.T) {
			for after := 1; ; after++ {
				if !today.Has(after) {
					continue
				}
				var acknowledged, before sync.Map
				disk := newCrasher(vfs.NewCrashableMem(), after, percent, func() {
					acknowledged.Range(func(k, _ any) bool { before.Store(k, true); return true })
				})
				live(t, disk, &acknowledged)
				crashed := disk.result()
				if crashed == nil {
					t.Logf("%d operations", after)
					return
				}
				// The recovery is cut short as well.
				again := newCrasher(crashed, 1+after%40, percent, func() {})
				check(t, again, &before, fmt.Sprintf("crash before operation %d", after))
				if crashed = again.result(); crashed != nil {
					check(t, crashed, &before, fmt.Sprintf("crash before operation %d, and in recovery", after))
				}
			}
		})
	}
}

// check opens a store and looks for what was acknowledged.
func check(t *testing.T, fs lsm.FS, acknowledged *sync.Map, what string) {
	t.Helper()
	e, err := lsm.Open("db", lsm.Options{FS: fs, MemTableBytes: 64 << 10, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	acknowledged.Range(func(key, _ any) bool {
		if !has(t, e, key.(string)) {
			t.Errorf("%s: %s was acknowledged and is lost", what, key)
		}
		return true
	})
	if err := errors.Join(set(e, "after", "1"), e.Close()); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
