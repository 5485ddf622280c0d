package sqlkv_test

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/sqlkv"
)

// number returns the number at a key.
func number(t *testing.T, r storage.Reader, key string) int64 {
	t.Helper()
	text := get(t, r, key)
	if text == "absent" {
		return 0
	}
	return int64(binary.BigEndian.Uint64([]byte(text)))
}

// Ensure that a commit whose answer is lost is made once: its outcome is asked for, and what was not committed is done again.
func TestUpdate_LostAnswer(t *testing.T) {
	for how, runs := range map[int32]int32{cutBefore: 2, cutAfter: 1} {
		name, p := newName(t), newProxy(t)
		e := open(t, new(sqlkv.Driver), p.name(name))
		must(t, put(e, "before", ""))
		p.cut.Store(how)
		var ran atomic.Int32
		must(t, e.Update(ctx, true, func(tx storage.Tx) error {
			ran.Add(1)
			tx.Add([]byte("n"), 1)
			return nil
		}))
		equal(t, p.cut.Load(), cutNothing)
		equal(t, ran.Load(), runs)
		equal(t, number(t, e, "n"), int64(1))
		must(t, put(e, "later", "1"))
		equal(t, get(t, e, "later"), "1")
		must(t, e.Close())
	}
}

// decided counts how often it is told.
type decided struct{ times atomic.Int32 }

func (d *decided) Decided() { d.times.Add(1) }

// Ensure that an outcome that cannot be asked for is unknown after Driver.Timeout, that calls are refused until the server is back, and that
// who waits for the decision is told then.
func TestUpdate_UnknownOutcome(t *testing.T) {
	name, p := newName(t), newProxy(t)
	e := open(t, &sqlkv.Driver{Timeout: time.Second}, p.name(name))
	defer e.Close()
	must(t, put(e, "before", ""))
	p.cut.Store(cutAfter)
	p.refuses.Store(true)
	d := new(decided)
	err := e.Update(ctx, true, func(tx storage.Tx) error {
		tx.OnDecided(d)
		tx.Set([]byte("k"), []byte("1"), nil)
		return nil
	})
	if !errors.Is(err, storage.ErrUnknownOutcome) {
		t.Fatalf("got %v, want ErrUnknownOutcome", err)
	}
	equal(t, d.times.Load(), 0)
	if err := put(e, "refused", ""); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	p.refuses.Store(false)
	for until := time.Now().Add(time.Minute); d.times.Load() == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("it is not decided")
		}
	}
	must(t, put(e, "later", ""))
	equal(t, d.times.Load(), 1)
	equal(t, get(t, e, "k"), "1")
	equal(t, get(t, e, "refused"), "absent")
}

// Ensure that the engine goes on by itself when connections were lost while nothing happened.
func TestEngine_Reconnects(t *testing.T) {
	name, p := newName(t), newProxy(t)
	e := open(t, new(sqlkv.Driver), p.name(name))
	defer e.Close()
	for range 3 {
		must(t, put(e, "k", "v"))
		equal(t, get(t, e, "k"), "v")
		s := e.Snapshot()
		equal(t, get(t, s, "k"), "v")
		must(t, s.Close())
		p.closeAll()
	}
}

// Ensure that a call ends with its context while another process has the lock of the store, and that nothing was changed.
func TestUpdate_ContextEnds(t *testing.T) {
	name := newName(t)
	a, b := open(t, new(sqlkv.Driver), name), open(t, new(sqlkv.Driver), name)
	defer a.Close()
	defer b.Close()
	must(t, put(a, "k", "1"))

	// A function that runs is waited for.
	short, cancel := context.WithCancel(ctx)
	returned := false
	err := a.Update(short, true, func(tx storage.Tx) error {
		cancel()
		time.Sleep(10 * time.Millisecond)
		tx.Set([]byte("k"), []byte("2"), nil)
		returned = true
		return nil
	})
	if !errors.Is(err, context.Canceled) || !returned {
		t.Errorf("got %v, returned %v", err, returned)
	}
	equal(t, get(t, b, "k"), "1")

	// One whose turn has not come is not run.
	begun, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var all sync.WaitGroup
	all.Go(func() {
		err := a.Update(ctx, true, func(storage.Tx) error {
			once.Do(func() { close(begun) })
			<-release
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-begun
	short, cancel = context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	err = a.Update(short, true, func(storage.Tx) error { t.Error("it ran"); return nil })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want DeadlineExceeded", err)
	}
	close(release)
	all.Wait()
}
