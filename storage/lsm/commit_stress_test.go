package lsm_test

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
	"github.com/jaydb/jay/storage/storagetest"
)

// event is what one transaction, or one reader, has seen and done, for the
// model. The key "serial" holds the number of the last commit.
type event struct {
	serial int               // that it drew; of a reader the last one it saw, plus one
	reads  map[string]string // what it found, "" for nothing
	all    bool              // reads are all that there is
	writes map[string]string // "" is a deletion; nil if it did not commit
	staged map[string]string // while it runs
}

// Errors of functions that fail on purpose.
var (
	errRefused = errors.New("refused")
	errPanic   = errors.New("panic")
)

// stress is a run of many goroutines.
type stress struct {
	engine  *lsm.Engine
	mu      sync.Mutex
	events  []*event     // Guarded by mu.
	durable atomic.Int64 // the last serial number that is known to be on disk
}

func (s *stress) note(e *event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

func valueOf(value []byte, closer io.Closer, err error) (string, error) {
	if err == storage.ErrNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	text := string(value)
	return text, closer.Close()
}

// transaction makes one at random. Its error is nil if the engine did what it
// should.
func (s *stress) transaction(random *rand.Rand) (failure, err error) {
	key := func() []byte { return fmt.Appendf(nil, "%c%02d", 'a'+random.IntN(3), random.IntN(20)) }
	durable, iterates := random.IntN(2) == 0, random.IntN(12) == 0
	steps, fate, large := random.IntN(12), random.IntN(10), random.IntN(30) == 0
	seed := random.Uint64()
	looked, before := key(), ""
	watch := s.engine.TrackWrites()
	defer watch.Close()
	look, err := watch.NewReader()
	if err != nil {
		return nil, err
	}
	value, err := look.Get(looked)
	if before, err = valueOf(value, io.NopCloser(nil), err); err == nil {
		err = look.Close()
	}
	if err != nil {
		return nil, err
	}

	var e *event
	seen := 0
	fn := func(tx storage.Tx) error {
		random = rand.New(rand.NewPCG(seed, 1)) // each run does the same
		e = &event{reads: make(map[string]string), staged: make(map[string]string)}
		get := func(key []byte) (string, error) {
			text, err := valueOf(tx.Get(key))
			if own, found := e.staged[string(key)]; err == nil && found && own != text {
				return "", fmt.Errorf("%s holds %.20q, want %.20q, which it staged", key, text, own)
			} else if err == nil && !found {
				e.reads[string(key)] = text
			}
			return text, err
		}
		serial, err := get([]byte("serial"))
		if err != nil {
			return err
		}
		seen = 0
		if serial != "" {
			if _, err := fmt.Sscan(serial, &seen); err != nil {
				return err
			}
		}
		e.serial = seen + 1
		if tx.Unchanged(watch, looked) {
			if text, err := get(looked); err != nil || text != before {
				return errors.Join(err, fmt.Errorf("%s is unchanged, and holds %.20q, was %.20q", looked, text, before))
			}
		}
		if fate == 0 {
			return nil // only reads
		}
		if n, err := tx.Sequence(); err != nil || n != uint64(e.serial) {
			return errors.Join(err, fmt.Errorf("number %d behind commit %d", n, seen))
		}
		tx.Set([]byte("serial"), fmt.Append(nil, e.serial), nil)
		e.staged["serial"] = fmt.Sprint(e.serial)
		for range steps {
			key := key()
			switch random.IntN(4) {
			case 0:
				tx.Delete(key)
				e.staged[string(key)] = ""
			case 1, 2:
				text := fmt.Sprint(e.serial, random.IntN(100))
				if large {
					text += string(make([]byte, 40_000))
				}
				tx.Set(key, []byte(text[:2]), []byte(text[2:]))
				e.staged[string(key)] = text
			default:
				if _, err := get(key); err != nil {
					return err
				}
			}
		}
		if iterates {
			it, err := tx.Iterate(nil, nil)
			if err != nil {
				return err
			}
			clear(e.reads)
			e.all = true
			for ok := it.First(); ok; ok = it.Next() {
				e.reads[string(it.Key())] = string(it.Value())
			}
			if err := errors.Join(it.Error(), it.Close()); err != nil {
				return err
			}
		}
		switch fate {
		case 1:
			return errRefused
		case 2:
			panic(errPanic)
		case 3:
			tx.RequireSync()
		}
		return nil
	}
	err = func() (err error) {
		defer func() {
			if recover() != nil {
				err = errPanic
			}
		}()
		return s.engine.Update(ctx, durable, fn)
	}()
	switch {
	case errors.Is(err, storage.ErrFailed):
		return err, nil // it did not run
	case errors.Is(err, storage.ErrUnknownOutcome):
		failure = err
	case err == errRefused && fate == 1 || err == errPanic && fate == 2:
	case err != nil:
		return nil, err
	case durable || fate == 3:
		last := e.serial
		if fate == 0 {
			last = seen
		}
		for old := s.durable.Load(); old < int64(last) && !s.durable.CompareAndSwap(old, int64(last)); old = s.durable.Load() {
		}
	}
	if fate > 2 {
		e.writes = e.staged
	}
	s.note(e)
	return failure, nil
}

// read notes all that a reader sees.
func (s *stress) read(t *testing.T, r storage.Reader) (serial int) {
	e := &event{reads: contents(t, r), all: true}
	if text := e.reads["serial"]; text != "" {
		if _, err := fmt.Sscan(text, &serial); err != nil {
			t.Error(err)
		}
	}
	e.serial = serial + 1
	s.note(e)
	return serial
}

// check replays the events in the order of their numbers.
func (s *stress) check(t *testing.T) {
	slices.SortStableFunc(s.events, func(a, b *event) int {
		writes := func(e *event) int { return min(len(e.writes), 1) } // behind those who saw what it saw
		return cmp.Or(cmp.Compare(a.serial, b.serial), cmp.Compare(writes(a), writes(b)))
	})
	last, model := 0, make(map[string]string)
	for _, e := range s.events {
		if e.serial != last+1 {
			t.Fatalf("number %d behind %d", e.serial, last)
		}
		if e.all && !maps.Equal(e.reads, model) {
			t.Errorf("number %d sees %.300q, want %.300q", e.serial, e.reads, model)
		}
		for key, text := range e.reads {
			if model[key] != text {
				t.Errorf("number %d finds %.20q at %s, want %.20q", e.serial, text, key, model[key])
			}
		}
		for key, text := range e.writes {
			last = e.serial
			if model[key] = text; text == "" {
				delete(model, key)
			}
		}
	}
}

// Ensure that whatever transactions come together, each sees exactly what those
// with lower numbers have committed; that readers and crashes find the commits
// up to some number, none of them in part; and that a crash takes nothing that
// was acknowledged as synced, also when the disk fails.
func TestGroup_Stress(t *testing.T) {
	const goroutines, rounds, crashes = 12, 100, 3
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprint("disk fails: ", fails), func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 1))
			disk := storagetest.NewDisk()
			e, err := lsm.Open("db", lsm.Options{FS: disk, MemTableBytes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			disk.OnSync(func() { time.Sleep(100 * time.Microsecond) })
			if fails {
				disk.FailAfter(random.IntN(100))
			}
			s := &stress{engine: e}
			var all sync.WaitGroup
			for g := range goroutines {
				random := rand.New(rand.NewPCG(seed, uint64(2+g)))
				all.Go(func() {
					for range rounds {
						failure, err := s.transaction(random)
						if err != nil {
							t.Error(err)
						}
						if failure != nil && !fails {
							t.Error(failure)
						}
						if random.IntN(20) == 0 {
							snapshot := e.Snapshot()
							s.read(t, snapshot)
							if err := snapshot.Close(); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
			crash := func(percent int) {
				durable := s.durable.Load()
				crashed := openDisk(t, disk.Crash(percent, random))
				if serial := s.read(t, crashed); int64(serial) < durable {
					t.Errorf("a crash leaves %d commits of %d that are on disk", serial, durable)
				}
				if err := crashed.Close(); err != nil {
					t.Error(err)
				}
			}
			for range crashes {
				time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
				crash(random.IntN(101))
			}
			all.Wait()
			s.read(t, e)
			crash(0)
			_ = e.Close() // may have failed
			s.check(t)
		})
	}
}
