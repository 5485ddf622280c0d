package lsm_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
	"github.com/jaydb/jay/storage/storagetest"
)

// openDurable opens an engine whose reads show only what is on disk. Its Close gives a disk up that
// has answered no call for a minute: a machine may be so busy that a call takes long.
func openDurable(t *testing.T, fs lsm.FS) *lsm.Engine {
	t.Helper()
	e, err := lsm.Open("db", lsm.Options{FS: fs, DurableReads: true, MemTableBytes: 64 << 10, CloseTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// hold makes the next syncs of the log wait until release is called.
func hold(disk *storagetest.Disk) (release func()) {
	held := make(chan struct{})
	disk.OnSync(func() { <-held })
	return sync.OnceFunc(func() { disk.OnSync(func() {}); close(held) })
}

// committed waits until a transaction would see key.
func committed(t *testing.T, e storage.Engine, key string) {
	t.Helper()
	for found := false; !found; runtime.Gosched() {
		s := e.Latest()
		_, found = contents(t, s)[key]
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Ensure that no read shows a commit before it is on disk, that none waits for
// that, and that all show it when its Update has returned.
func TestDurableReads_WhileSyncing(t *testing.T) {
	disk := storagetest.NewDisk()
	e := openDurable(t, disk)
	defer e.Close()
	if err := errors.Join(set(e, "changed", "1"), set(e, "deleted", "1")); err != nil {
		t.Fatal(err)
	}
	before := map[string]string{"changed": "1", "deleted": "1"}
	after := map[string]string{"changed": "2", "new": "2"}

	release := hold(disk)
	defer release()
	done := make(chan error, 1)
	go func() {
		done <- e.Update(ctx, true, func(tx storage.Tx) error {
			tx.Set([]byte("changed"), []byte("2"), nil)
			tx.Set([]byte("new"), []byte("2"), nil)
			tx.Delete([]byte("deleted"))
			return nil
		})
	}()
	committed(t, e, "new")
	check := func(when string, want map[string]string) {
		t.Helper()
		s := e.Snapshot()
		defer s.Close()
		if err := s.WaitDurable(ctx); err != nil {
			t.Error(err)
		}
		for name, got := range map[string]map[string]string{"Iterate": contents(t, e), "Snapshot": contents(t, s)} {
			if !maps.Equal(got, want) {
				t.Errorf("%s, %s finds %v, want %v", when, name, got, want)
			}
		}
		for _, key := range []string{"changed", "deleted", "new"} {
			value, closer, err := e.Get([]byte(key))
			if err != nil && !errors.Is(err, storage.ErrNotFound) {
				t.Fatal(err)
			}
			if string(value) != want[key] {
				t.Errorf("%s, Get(%s) finds %q, want %q", when, key, value, want[key])
			}
			if closer != nil {
				closer.Close()
			}
		}
	}
	check("before the sync", before)
	old := e.Snapshot()
	defer old.Close()

	latest := e.Latest()
	defer latest.Close()
	if got := contents(t, latest); !maps.Equal(got, after) {
		t.Errorf("Latest finds %v, want %v", got, after)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := latest.WaitDurable(ended); !errors.Is(err, storage.ErrUnknownOutcome) || !errors.Is(err, context.Canceled) {
		t.Errorf("WaitDurable with a context that has ended: %v", err)
	}

	release()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	check("after the sync", after)
	if err := latest.WaitDurable(ctx); err != nil {
		t.Error(err)
	}
	if got := contents(t, old); !maps.Equal(got, before) {
		t.Errorf("an old snapshot finds %v, want %v", got, before)
	}
}

// Ensure that reads which meet unsynced commits ask for few syncs, so that a bulk
// load beside readers is not slowed down: one in 20 ms.
func TestDurableReads_SyncSeldom(t *testing.T) {
	disk := storagetest.NewDisk()
	// A new log is begun with each table in memory, and the old one is synced: there must be
	// none.
	e, err := lsm.Open("db", lsm.Options{FS: disk, DurableReads: true, MemTableBytes: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var syncs atomic.Int64
	disk.OnSync(func() { syncs.Add(1) })
	begin := time.Now()
	reads := 0
	for ; time.Since(begin) < 200*time.Millisecond || reads < 1000 || syncs.Load() == 0 && time.Since(begin) < time.Minute; reads++ {
		err := e.Update(ctx, false, func(tx storage.Tx) error { tx.Set([]byte("k"), []byte(fmt.Sprint(reads)), nil); return nil })
		if err != nil {
			t.Fatal(err)
		}
		has(t, e, "k")
	}
	disk.OnSync(func() {})
	most := int64(time.Since(begin)/(20*time.Millisecond)) + 2 // one at the beginning, one under way at the end
	if n := syncs.Load(); n == 0 || n > most {
		t.Errorf("%d reads asked for %d syncs in %v, want 1 to %d", reads, n, time.Since(begin), most)
	}
}

// Ensure that what no sync was asked for is not read before it is on disk, and
// that reading it brings it there.
func TestDurableReads_Unsynced(t *testing.T) {
	disk := storagetest.NewDisk()
	e := openDurable(t, disk)
	defer e.Close()
	for i := range 20 {
		key := fmt.Sprint("k", i)
		err := e.Update(ctx, false, func(tx storage.Tx) error { tx.Set([]byte(key), nil, nil); return nil })
		if err != nil {
			t.Fatal(err)
		}
		for !has(t, e, key) {
			runtime.Gosched()
		}
		crashed := openDurable(t, disk.Crash(0, rand.New(rand.NewPCG(1, 2))))
		if !has(t, crashed, key) {
			t.Fatalf("%s was read, and is lost", key)
		}
		if err := crashed.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Ensure that a reader, under writers of all kinds, never sees anything that the
// disk does not have.
func TestDurableReads_Stress(t *testing.T) {
	disk := storagetest.NewDisk()
	e := openDurable(t, disk)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for w := range 6 {
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				err := e.Update(ctx, w%3 != 0, func(tx storage.Tx) error {
					tx.Set(fmt.Appendf(nil, "k%d", w), fmt.Append(nil, n), nil)
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	number := func(contents map[string]string, key string) (n int) {
		if text, found := contents[key]; found {
			fmt.Sscan(text, &n)
			return n
		}
		return -1
	}
	random := rand.New(rand.NewPCG(1, 2))
	rounds := 150
	if testing.Short() {
		rounds = 30
	}
	for round := range rounds {
		var got map[string]string
		if round%2 == 0 {
			got = contents(t, e)
		} else {
			got = make(map[string]string)
			for w := range 6 {
				key := fmt.Sprint("k", w)
				if value, closer, err := e.Get([]byte(key)); err == nil {
					got[key] = string(value)
					closer.Close()
				}
			}
		}
		crashed, err := lsm.Open("db", lsm.Options{FS: disk.Crash(0, random)})
		if err != nil {
			t.Fatal(err)
		}
		left := contents(t, crashed)
		for key := range got {
			if number(left, key) < number(got, key) {
				t.Errorf("%s was read as %s, and the disk has %q", key, got[key], left[key])
			}
		}
		if err := crashed.Close(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	all.Wait()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// Ensure that an engine that has failed answers from what is on disk, and says
// so where it does not know.
func TestDurableReads_AfterFailure(t *testing.T) {
	disk := storagetest.NewDisk()
	e := openDurable(t, disk)
	defer e.Close()
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		if err := set(e, key, "1"); err != nil {
			t.Fatal(err)
		}
	}
	disk.FailAfter(0)
	err := e.Update(ctx, true, func(tx storage.Tx) error {
		tx.Set([]byte("b"), []byte("2"), nil)
		tx.Set([]byte("bb"), []byte("2"), nil)
		tx.Delete([]byte("d"))
		return nil
	})
	if !errors.Is(err, storage.ErrUnknownOutcome) {
		t.Fatal(err)
	}
	for key, want := range map[string]error{"a": nil, "b": storage.ErrUnknownOutcome, "bb": storage.ErrUnknownOutcome,
		"c": nil, "d": storage.ErrUnknownOutcome, "e": nil, "f": storage.ErrNotFound} {
		_, closer, err := e.Get([]byte(key))
		if !errors.Is(err, want) {
			t.Errorf("Get(%s): %v, want %v", key, err, want)
		}
		if closer != nil {
			closer.Close()
		}
	}

	walk := func(lo, hi string, backward bool) (found string, err error) {
		it, err := e.Iterate([]byte(lo), []byte(hi))
		if err != nil {
			t.Fatal(err)
		}
		ok := it.First()
		if backward {
			ok = it.Last()
		}
		for ok {
			found += string(it.Key())
			if backward {
				ok = it.Prev()
			} else {
				ok = it.Next()
			}
		}
		if err = it.Error(); err != nil && (it.Next() || it.Prev() || it.Valid()) {
			t.Errorf("the iterator of %s to %s moves on after an error", lo, hi)
		}
		return found, errors.Join(err, it.Close())
	}
	for _, test := range []struct {
		lo, hi   string
		backward bool
		found    string
		err      error
	}{
		{"a", "b", false, "a", nil},
		{"a", "z", false, "a", storage.ErrUnknownOutcome},
		{"c", "d", false, "c", nil},
		{"c", "z", false, "c", storage.ErrUnknownOutcome},
		{"e", "z", false, "e", nil},
		{"a", "z", true, "e", storage.ErrUnknownOutcome},
		{"bb", "c", false, "", storage.ErrUnknownOutcome},
		{"f", "z", true, "", nil},
	} {
		found, err := walk(test.lo, test.hi, test.backward)
		if found != test.found || !errors.Is(err, test.err) {
			t.Errorf("from %s to %s, backward %v: found %q (%v), want %q (%v)", test.lo, test.hi, test.backward, found, err, test.found, test.err)
		}
	}
}

// Ensure that an Update whose context ends in the queue has changed nothing, and that
// one whose context ends while the disk syncs its commit says that the outcome
// is unknown, and harms no other.
func TestUpdate_ContextEnds(t *testing.T) {
	disk := storagetest.NewDisk()
	e := openDurable(t, disk)
	defer e.Close()
	release := hold(disk)
	defer release()
	first, second := context.WithCancel(ctx)
	start := func(c context.Context, key string) chan error {
		done := make(chan error, 1)
		go func() {
			done <- e.Update(c, true, func(tx storage.Tx) error { tx.Set([]byte(key), nil, nil); return nil })
		}()
		return done
	}
	syncing := start(first, "syncing")
	committed(t, e, "syncing")
	waiting, leave := context.WithTimeout(ctx, time.Hour)
	queued := start(waiting, "queued")
	stays := start(ctx, "stays")
	for e.Queued() < 2 {
		runtime.Gosched()
	}

	leave()
	if err := <-queued; err != context.Canceled {
		t.Errorf("one in the queue: %v, want the context's error and nothing else", err)
	}
	if n := e.Queued(); n != 1 {
		t.Errorf("%d in the queue, want 1", n)
	}
	second()
	if err := <-syncing; !errors.Is(err, storage.ErrUnknownOutcome) || !errors.Is(err, context.Canceled) {
		t.Errorf("one that waits for the disk: %v", err)
	}
	release()
	if err := <-stays; err != nil {
		t.Error(err)
	}
	if err := set(e, "after", ""); err != nil {
		t.Error(err)
	}
	if got := contents(t, e); len(got) != 3 {
		t.Errorf("found %v, want after, stays, syncing", got)
	}
}

// blockedTables is a file system that makes no table until it is released.
type blockedTables struct {
	lsm.FS
	blocked atomic.Pointer[chan struct{}]
	waiting atomic.Int32
}

func (f *blockedTables) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if held := f.blocked.Load(); held != nil && strings.HasSuffix(name, ".sst") {
		f.waiting.Add(1)
		<-*held
	}
	return f.FS.Create(name, category)
}

// inWriteStall reports whether Pebble makes a writer wait until a table is written.
func inWriteStall() bool {
	text := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(text[:runtime.Stack(text, true)]), "\n\n") {
		if state, _, _ := strings.Cut(stack, "\n"); strings.Contains(state, "sync.Cond.Wait") && strings.Contains(stack, "pebble/v2.(*DB).maybeInduceWriteStall(") {
			return true
		}
	}
	return false
}

// Ensure that Updates whose contexts end behind a write stall return: those in
// the queue with nothing changed, the one that Pebble holds up with an unknown
// outcome; and that all goes on when the stall is over.
func TestUpdate_ContextEndsBehindStall(t *testing.T) {
	fs := &blockedTables{FS: vfs.NewCrashableMem()}
	e := openDurable(t, fs)
	defer e.Close()
	held := make(chan struct{})
	fs.blocked.Store(&held)
	big := make([]byte, 40<<10)
	fill := func(c context.Context, key string) error {
		return e.Update(c, true, func(tx storage.Tx) error { tx.Set([]byte(key), big, nil); return nil })
	}
	stalled := false
	for i := 0; !stalled; i++ {
		done := make(chan error, 1)
		c, cancel := context.WithCancel(ctx)
		go func() { done <- fill(c, fmt.Sprint("fill", i)) }()
		for len(done) == 0 && !stalled {
			stalled = fs.waiting.Load() > 0 && inWriteStall()
			runtime.Gosched()
		}
		if !stalled {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			cancel()
			continue
		}
		late, leave := context.WithCancel(ctx)
		behind := make(chan error, 8)
		for n := range cap(behind) {
			go func() { behind <- fill(late, fmt.Sprint("behind", n)) }()
		}
		for e.Queued() < cap(behind) {
			runtime.Gosched()
		}
		leave()
		for range cap(behind) {
			if err := <-behind; err != context.Canceled {
				t.Errorf("one in the queue: %v", err)
			}
		}
		cancel()
		if err := <-done; !errors.Is(err, storage.ErrUnknownOutcome) || !errors.Is(err, context.Canceled) {
			t.Errorf("one that is held up: %v", err)
		}
	}
	fs.blocked.Store(nil)
	close(held)
	if err := set(e, "after", ""); err != nil {
		t.Fatal(err)
	}
	for key := range contents(t, e) {
		if strings.HasPrefix(key, "behind") {
			t.Errorf("%s was withdrawn, and is there", key)
		}
	}
}

// Ensure that with contexts that end at any moment, an Update that returned nil
// is there, one that returned only the context's error is not, and the engine
// goes on.
func TestUpdate_ContextEndsStress(t *testing.T) {
	disk := storagetest.NewDisk()
	e := openDurable(t, disk)
	var mu sync.Mutex
	there, absent := make(map[string]bool), make(map[string]bool)
	unknown, decided := 0, new(atomic.Int64)
	var all sync.WaitGroup
	for w := range 12 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 7))
			for n := range 300 {
				c, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(3000))*time.Microsecond)
				key := fmt.Sprintf("%d/%d", w, n)
				err := e.Update(c, w%4 != 0, func(tx storage.Tx) error {
					tx.OnDecided(counter{decided})
					tx.Set([]byte(key), []byte("v"), make([]byte, random.IntN(2)*(random.IntN(100_000))))
					return nil
				})
				cancel()
				mu.Lock()
				switch {
				case err == nil:
					there[key] = true
				case errors.Is(err, storage.ErrUnknownOutcome):
					unknown++
				case errors.Is(err, context.DeadlineExceeded):
					absent[key] = true
				default:
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if err := e.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	got := contents(t, e)
	for key := range there {
		if _, found := got[key]; !found {
			t.Errorf("%s was acknowledged, and is not there", key)
		}
	}
	for key := range absent {
		if _, found := got[key]; found {
			t.Errorf("%s was withdrawn, and is there", key)
		}
	}
	// Who waits for a commit that is on disk may hear of it after Sync.
	for begun := time.Now(); decided.Load() < int64(len(got)) && time.Since(begun) < time.Minute; {
		time.Sleep(time.Millisecond)
	}
	if n := decided.Load(); n != int64(len(got)) {
		t.Errorf("%d commits were decided, %d are there", n, len(got))
	}
	t.Logf("%d there, %d withdrawn, %d unknown", len(there), len(absent), unknown)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// counter counts decisions.
type counter struct{ n *atomic.Int64 }

func (c counter) Decided() { c.n.Add(1) }

// Ensure that Close gives up on a disk that does not answer, keeps the directory
// locked as long as the engine is in it, and not longer.
func TestEngine_Close_DiskHangs(t *testing.T) {
	disk := storagetest.NewDisk()
	e, err := lsm.Open("db", lsm.Options{FS: disk, DurableReads: true, CloseTimeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Update(ctx, false, func(tx storage.Tx) error { tx.Set([]byte("k"), nil, nil); return nil }); err != nil {
		t.Fatal(err)
	}
	release := hold(disk)
	defer release()
	if err := e.Close(); !errors.Is(err, storage.ErrFailed) {
		t.Errorf("Close: %v, want ErrFailed", err)
	}
	if _, err := lsm.Open("db", lsm.Options{FS: disk}); !errors.Is(err, storage.ErrLocked) {
		t.Errorf("Open while the engine is in the directory: %v, want ErrLocked", err)
	}
	release()
	for begin := time.Now(); ; runtime.Gosched() {
		again, err := lsm.Open("db", lsm.Options{FS: disk})
		if err == nil {
			if err := again.Close(); err != nil {
				t.Error(err)
			}
			return
		}
		if !errors.Is(err, storage.ErrLocked) || time.Since(begin) > time.Minute {
			t.Fatal(err)
		}
	}
}
