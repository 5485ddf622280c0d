package sqlkv_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/sqlkv"
)

func errOf(_ jay.Metadata, err error) error { return err }

// Ensure that a function does not run again when its Update has returned, as the context had ended while its group was being committed: what it
// uses belongs to the caller.
func TestUpdate_NotAfterReturn(t *testing.T) {
	name := newName(t)
	a, b := open(t, new(sqlkv.Driver), name), open(t, new(sqlkv.Driver), name)
	defer a.Close()
	defer b.Close()
	must(t, put(a, "k", "1"))
	short, cancel := context.WithCancel(ctx)
	buf := []byte("good")
	var returned, after atomic.Bool
	var runs atomic.Int32
	var release func()
	go func() { time.Sleep(time.Second); cancel() }()
	err := a.Update(short, true, func(tx storage.Tx) error {
		if returned.Load() {
			after.Store(true)
		}
		_, c, err := tx.Get([]byte("k"))
		if err != nil {
			return err
		}
		c.Close()
		if runs.Add(1) == 1 {
			if err := put(b, "k", "2"); err != nil { // another process
				return err
			}
			release = holdLock(t, name) // a third one
		}
		tx.Set([]byte("out"), nil, buf)
		return nil
	})
	if !errors.Is(err, storage.ErrUnknownOutcome) && !errors.Is(err, context.Canceled) {
		t.Errorf("a call whose context has ended returns %v", err)
	}
	returned.Store(true)
	copy(buf, "BAD!")
	release()
	must(t, put(a, "later", ""))
	if got := get(t, a, "out"); after.Load() || got != "absent" {
		t.Errorf("the function ran after Update had returned: %t; it has committed %q", after.Load(), got)
	}
}

// Ensure that a body is not committed that the caller has changed after Put has returned with an unknown outcome.
func TestPut_NotAfterReturn(t *testing.T) {
	name := newName(t)
	p := newProxy(t)
	d := &sqlkv.Driver{Timeout: 20 * time.Second}
	db, err := jay.Open(p.name(name), &jay.Options{Engine: d})
	must(t, err)
	defer db.Close()
	other, err := jay.Open(name, &jay.Options{Engine: d})
	must(t, err)
	defer other.Close()
	must(t, errOf(db.Put(ctx, "notes/0", json.RawMessage(`{"N":1}`), jay.InCollection("Notes"))))
	short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	body := json.RawMessage(`{"N":12345678}`)
	p.refuses.Store(true)
	p.cut.Store(cutBefore)
	_, err = db.Put(short, "notes/1", body, jay.InCollection("Notes"))
	if !errors.Is(err, storage.ErrUnknownOutcome) {
		t.Errorf("a commit whose answer was lost: %v", err)
	}
	copy(body, "XXXXXXXXXXXXXXXXXXXXXX") // Put does not keep body: the caller may reuse it
	p.refuses.Store(false)
	must(t, errOf(db.Put(ctx, "notes/2", json.RawMessage(`{"N":2}`), jay.InCollection("Notes")))) // everything before it is decided
	switch doc, err := other.Get(ctx, "notes/1"); {
	case errors.Is(err, jay.ErrNotFound):
	case err != nil:
		t.Errorf("the document of a call that returned early: %v", err)
	default:
		equal(t, string(doc.Body()), `{"N":12345678}`)
	}
}

// Ensure that the outcome of a commit is asked for when the server ends with an error while it syncs it: it may find the commit when it recovers.
func TestCommit_ServerPanics(t *testing.T) {
	name, p := newName(t), newProxy(t)
	e := open(t, new(sqlkv.Driver), p.name(name))
	defer e.Close()
	must(t, put(e, "before", ""))
	p.panics.Store(true)
	p.cut.Store(cutAfter)
	err := e.Update(ctx, true, func(tx storage.Tx) error {
		tx.Add([]byte("n"), 1)
		return nil
	})
	p.panics.Store(false)
	n := number(t, e, "n")
	if err != nil || n != 1 {
		t.Errorf("got %v, and the number is %d", err, n)
	}
}

// Ensure that a call reads what its process has seen before the call, although the group of a call before it reads an older moment.
func TestUpdate_JoinsNothingOld(t *testing.T) {
	name := newName(t)
	a, b := open(t, new(sqlkv.Driver), name), open(t, new(sqlkv.Driver), name)
	defer a.Close()
	defer b.Close()
	must(t, put(a, "k", "1"))
	begun, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var all sync.WaitGroup
	all.Go(func() {
		if err := a.Update(ctx, true, func(tx storage.Tx) error {
			_, _, err := tx.Get([]byte("x"))
			once.Do(func() { close(begun) })
			<-release
			if err == storage.ErrNotFound {
				err = nil
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	})
	<-begun
	must(t, put(b, "k", "2"))
	equal(t, get(t, a, "k"), "2") // this process has seen it
	all.Go(func() {
		err := a.Update(ctx, true, func(tx storage.Tx) error {
			v, c, err := tx.Get([]byte("k"))
			if err != nil {
				return err
			}
			defer c.Close()
			if string(v) != "2" {
				return fmt.Errorf("refused: k is %q", v)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	time.Sleep(100 * time.Millisecond)
	close(release)
	all.Wait()
}

// Ensure that a tracker notices that a commit is missing between others: rows are removed by the time when their transactions began, which are not
// in the order of their numbers.
func TestTracker_Hole(t *testing.T) {
	name := newName(t)
	keep := &sqlkv.Driver{Retention: time.Hour}
	a := open(t, keep, name)
	defer a.Close()
	must(t, put(a, "k", "old"))
	// Another process begins its group, waits for the lock, and gets it after a third one.
	c, err := pgx.Connect(ctx, server.URL())
	must(t, err)
	defer c.Close(ctx)
	sql := func(s string, args ...any) {
		t.Helper()
		_, err := c.Exec(ctx, s, args...)
		must(t, err)
	}
	sc := schemaOf(name)
	sql("begin isolation level read committed")
	sql("select now()")
	time.Sleep(2 * time.Second)
	must(t, put(a, "other", "1")) // n
	w := a.TrackWrites()
	defer w.Close()
	sql("select features from " + sc + ".store where one = 1 for update")
	var n int64
	must(t, c.QueryRow(ctx, "select n from "+sc+".commits order by n desc limit 1").Scan(&n))
	sql("update " + sc + ".kv set v = 'new' where k = 'k'")
	sql("insert into "+sc+".commits (n, token, keys, made) values ($1, 'x', $2, now())", n+1, [][]byte{[]byte("k")})
	sql("commit")
	must(t, put(a, "other", "2")) // n + 2
	pruner := open(t, &sqlkv.Driver{Retention: 3 * time.Second, PollInterval: time.Second}, name)
	defer pruner.Close()
	for until := time.Now().Add(6 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		there := count(t, fmt.Sprintf("select count(*) from %s.commits where n = %d", sc, n))
		hole := count(t, fmt.Sprintf("select count(*) from %s.commits where n = %d", sc, n+1)) == 0
		if there == 1 && hole {
			must(t, a.Update(ctx, true, func(tx storage.Tx) error {
				if tx.Unchanged(w, []byte("k")) {
					t.Error("k has changed since the tracker began, and Unchanged says that it has not")
				}
				return nil
			}))
			return
		}
	}
	t.Error("no row was removed before the one that it follows")
}

// Ensure that a batch of new documents is committed while readers hold all snapshots, and wait for it.
func TestBatch_NeedsNoSnapshot(t *testing.T) {
	db, err := jay.Open(newName(t), &jay.Options{Engine: &sqlkv.Driver{Timeout: 4 * time.Second}})
	must(t, err)
	defer db.Close()
	must(t, errOf(db.Put(ctx, "users/1", json.RawMessage(`{}`), jay.InCollection("Users"))))
	for _, n := range []int{100, 200} {
		written := make(chan struct{})
		var readers, reading sync.WaitGroup
		for range 14 {
			reading.Add(1)
			readers.Go(func() {
				err := db.View(ctx, func(tx *jay.Tx) error {
					_, err := tx.Get(ctx, "users/1")
					reading.Done()
					<-written
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		reading.Wait()
		var b jay.Batch
		for range n {
			b.Store("Users", json.RawMessage(`{}`))
		}
		if _, err := db.Apply(ctx, &b); err != nil {
			t.Errorf("a batch of %d: %v", n, err)
		}
		close(written)
		readers.Wait()
	}
}

// Ensure that a call whose server cannot be reached says that nothing was changed, and not that its outcome is unknown.
func TestPut_ServerAway(t *testing.T) {
	p := newProxy(t)
	db, err := jay.Open(p.name(newName(t)), &jay.Options{Engine: &sqlkv.Driver{Timeout: 2 * time.Second}})
	must(t, err)
	defer db.Close()
	must(t, errOf(db.Put(ctx, "notes/1", json.RawMessage(`{}`), jay.InCollection("Notes"))))
	p.refuses.Store(true)
	p.closeAll()
	_, err = db.Put(ctx, "notes/2", json.RawMessage(`{}`), jay.InCollection("Notes"))
	if !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, storage.ErrUnknownOutcome) {
		t.Errorf("got %v", err)
	}
	p.refuses.Store(false)
}
