package lsm_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
	"github.com/jaydb/jay/storage/storagetest"
)

// update is a transaction of a group.
type update struct {
	sync bool
	fn   func(tx storage.Tx) error
}

// asGroup runs the updates as one group, in order: a transaction before them
// keeps the leader busy until all are in the queue. It returns what each came to, a panic
// as an error that begins with "panic: ".
func asGroup(e *lsm.Engine, updates []update) []error {
	started, release := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_ = e.Update(ctx, false, func(storage.Tx) error {
			close(started)
			<-release
			return errors.New("nothing")
		})
	})
	<-started
	errs := make([]error, len(updates))
	for i, u := range updates {
		all.Go(func() {
			errs[i] = errors.New("ended")
			defer func() {
				if v := recover(); v != nil {
					errs[i] = fmt.Errorf("panic: %v", v)
				}
			}()
			errs[i] = e.Update(ctx, u.sync, u.fn)
		})
		for e.Queued() <= i {
			runtime.Gosched()
		}
	}
	close(release)
	all.Wait()
	return errs
}

func contents(t *testing.T, r storage.Reader) map[string]string {
	t.Helper()
	it, err := r.Iterate(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for ok := it.First(); ok; ok = it.Next() {
		found[string(it.Key())] = string(it.Value())
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		t.Fatal(err)
	}
	return found
}

// Ensure that the transactions of a group see those before them, that one that
// fails leaves nothing and uses up no number, and that all of them are one
// batch.
func TestGroup_InOrder(t *testing.T) {
	for _, keys := range []int{1, 3, 20} {
		t.Run(fmt.Sprint(keys, " keys each"), func(t *testing.T) {
			e := openDisk(t, storagetest.NewDisk())
			defer e.Close()
			refused := errors.New("refused")
			want := make(map[string]string)
			var updates []update
			for i := range 24 {
				fails := i%3 == 1
				updates = append(updates, update{true, func(tx storage.Tx) error {
					n, err := tx.Sequence()
					if err != nil {
						return err
					}
					if good := uint64(i - (i+1)/3 + 1); n != good {
						t.Errorf("transaction %d has number %d, want %d", i, n, good)
					}
					last := ""
					value, closer, err := tx.Get([]byte("last"))
					if err == nil {
						last = string(value)
						err = closer.Close()
					}
					if err != nil && err != storage.ErrNotFound {
						return err
					}
					before := i - 1
					if before%3 == 1 {
						before-- // which has failed
					}
					if good := fmt.Sprint(before); i > 0 && last != good {
						t.Errorf("transaction %d finds %q, want %q", i, last, good)
					}
					for k := range keys {
						tx.Set(fmt.Appendf(nil, "%d/%d", i%7, k), fmt.Append(nil, i), nil)
					}
					tx.Set([]byte("last"), fmt.Append(nil, i), nil)
					if fails {
						tx.Delete([]byte("0/0"))
						return refused
					}
					return nil
				}})
				if !fails {
					for k := range keys {
						want[fmt.Sprintf("%d/%d", i%7, k)] = fmt.Sprint(i)
					}
					want["last"] = fmt.Sprint(i)
				}
			}
			before := e.Applied()
			for i, err := range asGroup(e, updates) {
				if i%3 == 1 && err != refused || i%3 != 1 && err != nil {
					t.Errorf("transaction %d: %v", i, err)
				}
			}
			if n := e.Applied() - before; n != 1 {
				t.Errorf("%d batches, want 1: this was no group", n)
			}
			if got := contents(t, e); !maps.Equal(got, want) {
				t.Errorf("found %v, want %v", got, want)
			}
		})
	}
}

// Ensure that an iterator of a transaction sees those before it in the group.
func TestGroup_Iterate(t *testing.T) {
	e := openDisk(t, storagetest.NewDisk())
	defer e.Close()
	runs := new(atomic.Int32)
	count := func(tx storage.Tx) (n int, err error) {
		it, err := tx.Iterate([]byte("k"), []byte("l"))
		if err != nil {
			return 0, err
		}
		for ok := it.First(); ok; ok = it.Next() {
			n++
		}
		return n, errors.Join(it.Error(), it.Close())
	}
	var updates []update
	for i := range 9 {
		updates = append(updates, update{i%2 == 0, func(tx storage.Tx) error {
			if i%4 == 3 {
				runs.Add(1)
				n, err := count(tx)
				if err == nil && n != i {
					t.Errorf("transaction %d finds %d keys", i, n)
				}
				if err != nil && i != 7 { // that one swallows the error, and must run again, too
					return err
				}
			}
			tx.Set(fmt.Append(nil, "k", i), nil, nil)
			n, err := tx.Sequence()
			if err == nil && n != uint64(i+1) {
				t.Errorf("transaction %d has number %d", i, n)
			}
			return err
		}})
	}
	for i, err := range asGroup(e, updates) {
		if err != nil {
			t.Errorf("transaction %d: %v", i, err)
		}
	}
	if n := runs.Load(); n != 4 {
		t.Errorf("two transactions with iterators ran %d times, want 4: nothing was before them in their group", n)
	}
	if got := contents(t, e); len(got) != 9 {
		t.Errorf("found %v", got)
	}
}

// Ensure that a function that does not return harms no other request, and that a
// panic reaches the goroutine whose function it was.
func TestGroup_Panic(t *testing.T) {
	e := openDisk(t, storagetest.NewDisk())
	defer e.Close()
	var updates []update
	for i := range 6 {
		updates = append(updates, update{true, func(tx storage.Tx) error {
			tx.Set(fmt.Append(nil, "k", i), nil, nil)
			switch i {
			case 2:
				panic("oh dear")
			case 4:
				if _, err := tx.Iterate(nil, nil); err == nil {
					t.Error("it is not in a group")
				}
				runtime.Goexit() // on the leader's goroutine, that of asGroup
			}
			return nil
		}})
	}
	for i, err := range asGroup(e, updates) {
		text := fmt.Sprint(err)
		switch {
		case i == 2 && text == "panic: oh dear":
		case i == 4 && strings.Contains(text, "ended its goroutine"):
		case i != 2 && i != 4 && err == nil:
		default:
			t.Errorf("transaction %d: %v", i, err)
		}
	}
	if got := slices.Sorted(maps.Keys(contents(t, e))); !slices.Equal(got, []string{"k0", "k1", "k3", "k5"}) {
		t.Errorf("found %v", got)
	}
	if err := set(e, "after", ""); err != nil {
		t.Error(err)
	}
}

// Ensure that what was read before a group does not count as unchanged for a
// transaction that comes behind a change in the group.
func TestGroup_Unchanged(t *testing.T) {
	e := openDisk(t, storagetest.NewDisk())
	defer e.Close()
	w := e.TrackWrites()
	defer w.Close()
	ask := func(want bool) update {
		return update{true, func(tx storage.Tx) error {
			if got := tx.Unchanged(w, []byte("k")); got != want {
				t.Errorf("unchanged: %v, want %v", got, want)
			}
			return nil
		}}
	}
	change := func(err error) update {
		return update{true, func(tx storage.Tx) error {
			tx.Set([]byte("k"), nil, nil)
			return err
		}}
	}
	asGroup(e, []update{ask(true), change(errors.New("refused")), ask(true), change(nil), ask(false)})
}

// Ensure that large transactions have batches of their own, in order.
func TestGroup_Large(t *testing.T) {
	e := openDisk(t, storagetest.NewDisk())
	defer e.Close()
	var updates []update
	for i := range 8 {
		updates = append(updates, update{true, func(tx storage.Tx) error {
			size := 1
			if i%4 == 2 {
				size = 100_000
			}
			tx.Set([]byte("k"), fmt.Append(nil, i), make([]byte, size))
			return nil
		}})
	}
	before := e.Applied()
	for i, err := range asGroup(e, updates) {
		if err != nil {
			t.Errorf("transaction %d: %v", i, err)
		}
	}
	if n := e.Applied() - before; n != 5 {
		t.Errorf("%d batches, want 5", n)
	}
	if got := contents(t, e)["k"]; got != "7\x00" {
		t.Errorf("found %q", got)
	}
}

// Ensure that a transaction without writes in a group is answered only when
// what it saw is on disk, whether or not the others wait for that.
func TestGroup_NothingStaged(t *testing.T) {
	disk := storagetest.NewDisk()
	e := openDisk(t, disk)
	defer e.Close()
	if err := set(e, "before", ""); err != nil {
		t.Fatal(err)
	}
	before := disk.Syncs()
	errs := asGroup(e, []update{
		{false, func(tx storage.Tx) error { tx.Set([]byte("k"), nil, nil); return nil }},
		{true, func(tx storage.Tx) error {
			_, closer, err := tx.Get([]byte("k"))
			if err != nil {
				return err
			}
			return closer.Close()
		}},
	})
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if disk.Syncs() == before {
		t.Error("it was answered without a sync")
	}
}

// Ensure that commits that come while the disk is busy share its next sync,
// that one that needs no sync is not held up, and what is in the queue goes with it.
func TestGroup_BusyDisk(t *testing.T) {
	disk := storagetest.NewDisk()
	e := openDisk(t, disk)
	defer e.Close()
	before := disk.Syncs()
	busy := make(chan struct{})
	disk.OnSync(func() { <-busy })

	var all sync.WaitGroup
	one := func(key string) {
		all.Go(func() {
			if err := set(e, key, "v"); err != nil {
				t.Error(err)
			}
		})
	}
	one("first")
	for !has(t, e, "first") {
		runtime.Gosched() // committed, but not yet on disk
	}
	for i := range 16 {
		one(fmt.Sprint(i))
	}
	for e.Queued() < 16 {
		runtime.Gosched()
	}
	err := e.Update(ctx, false, func(tx storage.Tx) error {
		tx.Set([]byte("eager"), nil, nil)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(contents(t, e)); n != 18 {
		t.Errorf("%d keys can be read, want 18", n)
	}
	one("last") // stays in the queue
	for e.Queued() < 1 {
		runtime.Gosched()
	}
	close(busy)
	all.Wait()
	if syncs := disk.Syncs() - before; syncs > 3 {
		t.Errorf("%d syncs, want at most 3", syncs)
	}
}

// Ensure that a disk that fails under a group answers each of its
// transactions that its outcome is unknown, and those in the queue that the engine
// failed.
func TestGroup_DiskFails(t *testing.T) {
	disk := storagetest.NewDisk()
	e := openDisk(t, disk)
	defer e.Close()
	busy := make(chan struct{})
	disk.OnSync(func() { <-busy })
	disk.FailAfter(0)

	var all sync.WaitGroup
	first := make(chan error, 1)
	all.Go(func() { first <- set(e, "first", "v") })
	for !has(t, e, "first") {
		runtime.Gosched()
	}
	rest := make([]error, 10)
	for i := range rest {
		all.Go(func() { rest[i] = set(e, fmt.Sprint(i), "v") })
	}
	for e.Queued() < len(rest) {
		runtime.Gosched()
	}
	close(busy)
	all.Wait()
	if err := <-first; !errors.Is(err, storage.ErrUnknownOutcome) {
		t.Errorf("the first: %v", err)
	}
	for i, err := range rest {
		if !errors.Is(err, storage.ErrFailed) {
			t.Errorf("transaction %d: %v", i, err)
		}
	}
	if got := contents(t, e); len(got) != 1 {
		t.Errorf("found %v", got)
	}
}

// Ensure that a read error of one transaction is no other's.
func TestGroup_ReadErrorOfAnother(t *testing.T) {
	disk := storagetest.NewDisk()
	e := openDisk(t, disk)
	for i := range 2000 {
		if err := e.Update(ctx, false, func(tx storage.Tx) error {
			tx.Set(fmt.Appendf(nil, "k%06d", i*10), []byte(strings.Repeat(fmt.Sprint(i), 100)), nil)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		var err error
		if e, err = lsm.Open("db", lsm.Options{FS: disk, CacheBytes: 1}); err != nil {
			t.Fatal(err)
		}
	}
	defer e.Close()
	taken := errors.New("taken")
	errs := asGroup(e, []update{
		{true, func(tx storage.Tx) error { tx.Set([]byte("zz"), nil, nil); return nil }},
		{true, func(tx storage.Tx) error {
			for i := range 8 {
				if i == 6 {
					disk.FailReads(1)
				}
				_, closer, err := tx.Get(fmt.Appendf(nil, "k%06d", i*2500))
				if err != nil {
					return err
				}
				closer.Close()
			}
			return nil
		}},
		{true, func(tx storage.Tx) error {
			_, closer, err := tx.Get([]byte("zz"))
			if err != nil {
				return err
			}
			closer.Close()
			return taken
		}},
	})
	disk.FailReads(0)
	if errs[1] == nil {
		t.Fatal("no read failed")
	}
	if errs[0] != nil {
		t.Errorf("a transaction that reads nothing: %v", errs[0])
	}
	if errs[2] == taken && !has(t, e, "zz") {
		t.Error("a transaction was refused for a key that was never committed")
	}
}

// Ensure that a transaction without writes is not answered as durable when the
// sync of what it saw has failed.
func TestGroup_NothingStagedAfterFailure(t *testing.T) {
	disk := storagetest.NewDisk()
	e := openDisk(t, disk)
	defer e.Close()
	if err := set(e, "before", ""); err != nil {
		t.Fatal(err)
	}
	busy := make(chan struct{})
	disk.OnSync(func() { <-busy })
	disk.FailAfter(0)
	first := make(chan error, 1)
	go func() { first <- set(e, "k", "v") }()
	for !has(t, e, "k") {
		runtime.Gosched()
	}
	seen := false
	err := e.Update(ctx, false, func(tx storage.Tx) error {
		tx.RequireSync()
		_, closer, err := tx.Get([]byte("k"))
		if err != nil {
			return err
		}
		seen = true
		close(busy)
		if err := <-first; !errors.Is(err, storage.ErrUnknownOutcome) {
			t.Errorf("the first: %v", err)
		}
		return closer.Close()
	})
	crashed := openDisk(t, disk.Crash(0, rand.New(rand.NewPCG(1, 2))))
	defer crashed.Close()
	if err == nil && seen && !has(t, crashed, "k") {
		t.Error("a synced Update that saw k was acknowledged, and k is lost")
	}
}

// Ensure that functions that end the leader's goroutine stop no other caller, while
// the disk is busy and after it.
func TestGroup_GoexitOfAnother(t *testing.T) {
	disk := storagetest.NewDisk()
	e := openDisk(t, disk)
	busy := make(chan struct{})
	disk.OnSync(func() { <-busy })
	var all sync.WaitGroup
	all.Go(func() { _ = set(e, "first", "") })
	for !has(t, e, "first") {
		runtime.Gosched()
	}
	exit := func(storage.Tx) error { runtime.Goexit(); return nil }
	ended := make([]error, 8)
	for i := range ended {
		all.Go(func() { ended[i] = e.Update(ctx, true, exit) })
	}
	for e.Queued() < len(ended) {
		runtime.Gosched()
	}
	err := e.Update(ctx, false, func(tx storage.Tx) error { tx.Set([]byte("innocent"), nil, nil); return nil })
	if err != nil {
		t.Errorf("one in the same group: %v", err)
	}
	close(busy)
	all.Wait()
	for i, err := range ended {
		if err == nil || !strings.Contains(err.Error(), "ended its goroutine") {
			t.Errorf("transaction %d: %v", i, err)
		}
	}
	if err := set(e, "after", ""); err != nil {
		t.Error(err)
	}
	if got := contents(t, e); len(got) != 3 {
		t.Errorf("found %v", got)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// Ensure that a panic keeps its value.
func TestGroup_PanicValue(t *testing.T) {
	e := openDisk(t, storagetest.NewDisk())
	defer e.Close()
	oops := errors.New("oops")
	defer func() {
		if v := recover(); v != oops {
			t.Errorf("recovered %T, want the value that was given to panic", v)
		}
	}()
	_ = e.Update(ctx, true, func(storage.Tx) error { panic(oops) })
}

// Ensure that a transaction that stages nothing uses up no number.
func TestGroup_SequenceOfNothing(t *testing.T) {
	e := openDisk(t, storagetest.NewDisk())
	defer e.Close()
	var updates []update
	for i := range 4 {
		updates = append(updates, update{true, func(tx storage.Tx) error {
			if n, err := tx.Sequence(); err != nil || n != 1 {
				t.Errorf("transaction %d has number %d (%v)", i, n, err)
			}
			if i == 3 {
				tx.Set([]byte("k"), nil, nil)
			}
			return nil
		}})
	}
	if err := errors.Join(asGroup(e, updates)...); err != nil {
		t.Error(err)
	}
}
