package memory_test

import (
	"context"
	"errors"
	"io/fs"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/enginetest"
	"github.com/jaydb/jay/storage/memory"
)

var ctx = context.Background()

func open(t *testing.T, d *memory.Driver, name string) storage.Engine {
	t.Helper()
	e, err := d.Open(name, storage.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Ensure that the engine keeps the contract, alone and beside another, and with limits.
func TestEngine_Contract(t *testing.T) {
	for name, d := range map[string]*memory.Driver{
		"alone":  {},
		"shared": {Shared: true},
		"limits": {Limits: storage.Limits{KeyBytes: 2000, ValueBytes: 1 << 20}},
		"small":  {Limits: storage.Limits{TxBytes: 1 << 20}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			enginetest.Run(t, func(t *testing.T) storage.Engine { return open(t, d, t.Name()) })
		})
	}
	t.Run("two", func(t *testing.T) {
		t.Parallel()
		d := &memory.Driver{Shared: true}
		enginetest.RunShared(t, func(t *testing.T) (a, b storage.Engine) { return open(t, d, t.Name()), open(t, d, t.Name()) })
	})
}

// Ensure that a store that is not shared is locked, that it is there after Close, and that
// one that is not there is not made against the options.
func TestDriver_Open(t *testing.T) {
	d := new(memory.Driver)
	for _, o := range []storage.OpenOptions{{MustExist: true}, {ReadOnly: true}} {
		if _, err := d.Open("a", o); !errors.Is(err, storage.ErrNoDatabase) {
			t.Errorf("%+v: %v, want ErrNoDatabase", o, err)
		}
	}
	e := open(t, d, "a")
	if _, err := d.Open("a", storage.OpenOptions{}); !errors.Is(err, storage.ErrLocked) {
		t.Errorf("a second time: %v, want ErrLocked", err)
	}
	put := func(e storage.Engine) error {
		return e.Update(ctx, true, func(tx storage.Tx) error { tx.Set([]byte("k"), []byte("v"), nil); return nil })
	}
	if err := errors.Join(put(e), e.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
	e, err := d.Open("a", storage.OpenOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if value, _, err := e.Get([]byte("k")); string(value) != "v" || err != nil {
		t.Errorf("after a Close: %q, %v", value, err)
	}
	if err := put(e); !errors.Is(err, storage.ErrReadOnly) {
		t.Errorf("read only: %v, want ErrReadOnly", err)
	}
}

// Ensure that a store that is being made has another name until it is whole.
func TestDriver_Prepare(t *testing.T) {
	d := new(memory.Driver)
	made, err := d.Prepare("a")
	if err != nil {
		t.Fatal(err)
	}
	e := open(t, d, made.Name())
	if err := made.Commit(); err == nil {
		t.Error("an open store was given its name")
	}
	if _, err := d.Prepare("a"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second time: %v, want fs.ErrExist", err)
	}
	if err := errors.Join(e.Close(), made.Commit()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Prepare("a"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("of a store that is there: %v, want fs.ErrExist", err)
	}
	e, err = d.Open("a", storage.OpenOptions{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}

	made, err = d.Prepare("b")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(open(t, d, made.Name()).Close(), open(t, d, "b").Close()); err != nil {
		t.Fatal(err)
	}
	if err := made.Commit(); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a store with that name is there: %v, want fs.ErrExist", err)
	}
	made, err = d.Prepare("c")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(open(t, d, made.Name()).Close(), made.Abandon()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Open(made.Name(), storage.OpenOptions{MustExist: true}); !errors.Is(err, storage.ErrNoDatabase) {
		t.Errorf("after Abandon: %v, want ErrNoDatabase", err)
	}
}

// Ensure that a store that cannot be reached does nothing, and answers again later.
func TestEngine_Unavailable(t *testing.T) {
	e := open(t, new(memory.Driver), "a").(*memory.Engine)
	defer e.Close()
	cause := errors.New("the server is restarted")
	e.SetUnavailable(cause)
	ran := false
	fn := func(tx storage.Tx) error { ran = true; return nil }
	if err := e.Update(ctx, true, fn); !errors.Is(err, storage.ErrUnavailable) || !errors.Is(err, cause) || errors.Is(err, storage.ErrFailed) || ran {
		t.Errorf("got %v, and the function ran: %v", err, ran)
	}
	e.SetUnavailable(nil)
	if err := e.Update(ctx, true, fn); err != nil || !ran {
		t.Errorf("later: %v, and the function ran: %v", err, ran)
	}
}

// Ensure that versions that nobody can read are forgotten, and the others are not.
func TestEngine_Compact(t *testing.T) {
	e := open(t, new(memory.Driver), "a")
	defer e.Close()
	write := func(value string) {
		if err := e.Update(ctx, true, func(tx storage.Tx) error {
			if value == "" {
				tx.Delete([]byte("k"))
			} else {
				tx.Set([]byte("k"), []byte(value), nil)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	write("1")
	s := e.Snapshot()
	for range 100 {
		write("22")
	}
	write("")
	if err := e.Compact(ctx, nil, nil); err != nil {
		t.Fatal(err)
	}
	if value, _, err := s.Get([]byte("k")); string(value) != "1" || err != nil {
		t.Errorf("a snapshot from before: %q, %v", value, err)
	}
	if err := errors.Join(s.Close(), e.Compact(ctx, nil, nil)); err != nil {
		t.Fatal(err)
	}
	if n := e.Stats().MemTableBytes; n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}

// Ensure that a version that does not know a feature opens a store until it is used, and then writes
// nothing more to it, also if it had it open.
func TestEngine_Features(t *testing.T) {
	birds := storage.Feature{Format: storage.BaseFormat + 1, Name: "birds"}
	d := &memory.Driver{Shared: true, Features: storage.Features{}}
	older := open(t, d, "a")
	d.Features = storage.Features{birds}
	newer := open(t, d, "a")
	put := func(e storage.Engine, key string, features ...storage.Feature) error {
		return e.Update(ctx, true, func(tx storage.Tx) error {
			for _, f := range features {
				tx.RequireFeature(f)
			}
			tx.Set([]byte(key), []byte("v"), nil)
			return nil
		})
	}
	if err := errors.Join(put(older, "a"), put(newer, "b"), put(older, "c"), put(newer, "d", birds), put(newer, "d", birds)); err != nil {
		t.Fatal(err)
	}
	if f := older.Format(); f.Number != birds.Format || len(f.Features) != 1 || f.Features[0] != birds {
		t.Errorf("the store has %v", f)
	}
	refused := func(err error) {
		t.Helper()
		var f *storage.FormatError
		if !errors.As(err, &f) || f.Found != birds.Format || f.Newest != storage.BaseFormat || len(f.Features) != 1 || f.Features[0] != "birds" {
			t.Errorf("got %v, want a FormatError", err)
		}
	}
	refused(put(older, "e"))
	if _, _, err := newer.Get([]byte("e")); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the older one has written: %v", err)
	}
	d.Features = storage.Features{}
	_, err := d.Open("a", storage.OpenOptions{})
	refused(err)
	if err := errors.Join(older.Close(), newer.Close()); err != nil {
		t.Fatal(err)
	}
}

// Ensure that snapshots which expire keep the contract, and that they do expire.
func TestEngine_ShortSnapshots(t *testing.T) {
	var now atomic.Int64
	d := &memory.Driver{Limits: storage.Limits{SnapshotAge: time.Minute}, Now: func() time.Time { return time.Unix(0, now.Load()) }}
	pass := func(by time.Duration) { now.Add(int64(by)) }
	enginetest.RunShortSnapshots(t, func(t *testing.T) (storage.Engine, func(time.Duration)) { return open(t, d, t.Name()), pass })

	e := open(t, d, "a")
	defer e.Close()
	s := e.Snapshot()
	defer s.Close()
	it, err := s.Iterate(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	pass(time.Minute + 1)
	if _, _, err := s.Get([]byte("k")); !errors.Is(err, storage.ErrSnapshotExpired) {
		t.Errorf("get: %v", err)
	}
	if err := s.(storage.ManyGetter).GetMany([][]byte{[]byte("k")}, func(int, []byte) error { return nil }); !errors.Is(err, storage.ErrSnapshotExpired) {
		t.Errorf("get many: %v", err)
	}
	if it.First() || !errors.Is(it.Error(), storage.ErrSnapshotExpired) {
		t.Errorf("iterator: %v", it.Error())
	}
}
