package txn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/storage/storagetest"
)

// turnLimit sets the limit of turns for the databases of a test.
func turnLimit(t *testing.T, limit time.Duration) {
	before := knobs.TurnLimit
	knobs.TurnLimit = limit
	t.Cleanup(func() { knobs.TurnLimit = before })
}

// minute is a context for what ends at once, or hangs.
func minute(t *testing.T) context.Context {
	of, cancel := context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancel)
	return of
}

// answer returns what comes out of a channel, or ends the test.
func answer[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(time.Minute):
		t.Fatal("no answer after a minute")
	}
	return v
}

// inLine returns when so many transactions have a turn or wait for one.
func inLine(t *testing.T, db *jay.DB, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); checks.InLine(db) != n; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d in line, want %d", checks.InLine(db), n)
		}
	}
}

// queue is a transaction in its turn for the document n, and one that waits for it.
type queue struct {
	db      *jay.DB
	cancel  func()        // ends the context of the one that waits
	release chan struct{} // close it to let the function in its turn go on
	holder  chan error
	waiter  chan error
}

// newQueue makes a queue. The function in its turn blocks, calls inTurn, and then
// adds one to n; so does the one that waits.
func newQueue(t *testing.T, db *jay.DB, inTurn func()) *queue {
	t.Helper()
	put(t, db, "n", `{"N":0}`)
	waiting, cancel := context.WithCancel(ctx)
	t.Cleanup(cancel)
	q := &queue{db, cancel, make(chan struct{}), make(chan error, 1), make(chan error, 1)}
	began, goOn, runs := make(chan struct{}), make(chan struct{}), 0
	go func() {
		q.waiter <- db.Update(waiting, func(tx *jay.Tx) error {
			if runs++; runs == 1 {
				close(began)
				<-goOn
			}
			return increment(tx, "n")
		}, jay.Retry())
	}()
	answer(t, began)

	has := make(chan struct{})
	go func() {
		run := 0
		returned := false
		defer func() {
			if !returned { // a panic, or runtime.Goexit
				recover()
				q.holder <- nil
			}
		}()
		err := db.Update(ctx, func(tx *jay.Tx) error {
			switch run++; run {
			case 1:
				if _, err := db.Put(ctx, "n", json.RawMessage(`{"N":10}`)); err != nil {
					return err
				}
			case 2:
				close(has)
				<-q.release
				inTurn()
			}
			return increment(tx, "n")
		}, jay.Retry())
		returned = true
		q.holder <- err
	}()
	answer(t, has)
	close(goOn)
	inLine(t, db, 2)
	return q
}

// Ensure that many goroutines which count in one document, or in a few, all commit,
// with as few retries as the guides have.
func TestUpdate_Retry_AllCommit(t *testing.T) {
	turnLimit(t, time.Hour)
	for _, test := range []struct {
		goroutines, each, docs int
		durability             jay.Durability
	}{{64, 50, 1, jay.Synced}, {64, 50, 1, jay.Relaxed}, {16, 50, 3, jay.Synced}} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			db := memory(t, &jay.Options{Durability: test.durability})
			for doc := range test.docs {
				put(t, db, fmt.Sprint("n/", doc), `{"N":0}`)
			}
			var all sync.WaitGroup
			for g := range test.goroutines {
				all.Go(func() {
					for i := range test.each {
						err := db.Update(ctx, func(tx *jay.Tx) error { return increment(tx, fmt.Sprint("n/", (g+i)%test.docs)) }, jay.Retry(10))
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			sum := 0
			for doc := range test.docs {
				var n struct{ N int }
				if err := json.Unmarshal([]byte(body(t, db, fmt.Sprint("n/", doc))), &n); err != nil {
					t.Fatal(err)
				}
				sum += n.N
			}
			equal(t, sum, test.goroutines*test.each)
			equal(t, checks.InLine(db), 0)
		})
	}
}

// Ensure that transactions which read several documents, and write them, all commit,
// though each pair of them is in conflict with others.
func TestUpdate_Retry_SeveralDocuments(t *testing.T) {
	turnLimit(t, time.Hour)
	const docs = 5
	db := memory(t, nil)
	for doc := range docs {
		put(t, db, fmt.Sprint("n/", doc), `{"N":0}`)
	}
	var all sync.WaitGroup
	for g := range 16 {
		all.Go(func() {
			for i := range 20 {
				err := db.Update(minute(t), func(tx *jay.Tx) error {
					if err := increment(tx, fmt.Sprint("n/", (g+i)%docs)); err != nil {
						return err
					}
					return increment(tx, fmt.Sprint("n/", (g+3*i+1)%docs))
				}, jay.Retry())
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	equal(t, checks.InLine(db), 0)
}

// Ensure that transactions that lose over a range have turns for the range.
func TestUpdate_Retry_Ranges(t *testing.T) {
	turnLimit(t, time.Hour)
	db := memory(t, nil)
	const goroutines, each = 8, 10
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for range each {
				scan := jay.Scan{Prefix: "items/"}
				if g%2 == 0 {
					scan = jay.Scan{Collection: "Items"}
				}
				err := db.Update(minute(t), func(tx *jay.Tx) error {
					n := 0
					for _, err := range tx.Documents(ctx, scan) {
						if err != nil {
							return err
						}
						n++
					}
					runtime.Gosched()
					_, err := tx.Put(ctx, fmt.Sprint("items/", n), json.RawMessage(`{}`), jay.InCollection("Items"))
					return err
				}, jay.Retry())
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for i := range goroutines * each {
		body(t, db, fmt.Sprint("items/", i))
	}
	equal(t, checks.InLine(db), 0)
}

// Ensure that a transaction whose function takes longer than those of others commits,
// whatever they write with, though each of its runs waits until one of theirs is
// through or some time has passed.
func TestUpdate_Retry_SlowAmongFast(t *testing.T) {
	document := json.RawMessage(`{"N":1}`)
	for name, write := range map[string]func(db *jay.DB) error{
		"Put": func(db *jay.DB) error { _, err := db.Put(ctx, "n", document); return err },
		"Update": func(db *jay.DB) error {
			return db.Update(ctx, func(tx *jay.Tx) error { return increment(tx, "n") }, jay.Retry())
		},
		"Update without Retry": func(db *jay.DB) error {
			return db.Update(ctx, func(tx *jay.Tx) error { _, err := tx.Put(ctx, "n", document); return err })
		},
		"Patch": func(db *jay.DB) error { _, err := db.Patch(ctx, "n", jay.Increment("N", 1)); return err },
		"Apply": func(db *jay.DB) error {
			var b jay.Batch
			b.Put("other", document)
			b.Put("n", document)
			_, err := db.Apply(ctx, &b)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := memory(t, nil)
			put(t, db, "n", `{"N":0}`)
			var through atomic.Int64
			var done atomic.Bool
			var fast sync.WaitGroup
			for range 2 {
				fast.Go(func() {
					for !done.Load() {
						if err := write(db); err != nil {
							t.Error(err)
							return
						}
						through.Add(1)
					}
				})
			}
			runs := 0
			err := db.Update(minute(t), func(tx *jay.Tx) error {
				runs++
				if err := increment(tx, "n"); err != nil {
					return err
				}
				before := through.Load()
				for limit := time.Now().Add(5 * time.Millisecond); through.Load() < before+3 && time.Now().Before(limit); {
					runtime.Gosched()
				}
				return nil
			}, jay.Retry())
			done.Store(true)
			fast.Wait()
			if err != nil {
				t.Error(err)
			}
			t.Logf("%d runs, while %d others were through", runs, through.Load())
		})
	}
}

// Ensure that a call inside the function that has a turn does not wait for that turn:
// neither an Update nor a Patch, on the same goroutine or on another, and neither when
// it loses itself.
func TestUpdate_Nested_DoesNotWaitForItself(t *testing.T) {
	turnLimit(t, time.Hour)
	large := fmt.Sprintf(`{"N":0,"pad":"%s"}`, strings.Repeat("x", 300<<10)) // too large to be patched in the commit
	add := func(db *jay.DB) error {
		return db.Update(ctx, func(tx *jay.Tx) error { return increment(tx, "n") }, jay.Retry())
	}
	for name, nested := range map[string]func(db *jay.DB) error{
		"Update": add,
		"an Update that loses": func(db *jay.DB) error {
			runs := 0
			return db.Update(ctx, func(tx *jay.Tx) error {
				if runs++; runs == 1 {
					if _, err := db.Put(ctx, "n", json.RawMessage(`{"N":5}`)); err != nil {
						return err
					}
				}
				return increment(tx, "n")
			}, jay.Retry())
		},
		"Updates side by side": func(db *jay.DB) error {
			var all sync.WaitGroup
			errs := make([]error, 4)
			for i := range errs {
				all.Go(func() { errs[i] = add(db) })
			}
			all.Wait()
			return errors.Join(errs...)
		},
		"Patch":        func(db *jay.DB) error { _, err := db.Patch(ctx, "n", jay.Increment("N", 1)); return err },
		"a write":      func(db *jay.DB) error { _, err := db.Put(ctx, "n", json.RawMessage(large)); return err },
		"Update twice": func(db *jay.DB) error { return errors.Join(add(db), add(db)) },
	} {
		for _, elsewhere := range []bool{false, true} {
			t.Run(fmt.Sprint(name, elsewhere), func(t *testing.T) {
				db := memory(t, nil)
				put(t, db, "n", large)
				result := make(chan error, 1)
				go func() {
					runs := 0
					result <- db.Update(ctx, func(tx *jay.Tx) error {
						if err := increment(tx, "n"); err != nil {
							return err
						}
						if runs++; runs > 5 {
							return nil
						}
						if !elsewhere {
							return nested(db)
						}
						done := make(chan error)
						go func() { done <- nested(db) }()
						return <-done
					}, jay.Retry())
				}()
				if err := answer(t, result); err != nil {
					t.Error(err)
				}
				equal(t, checks.InLine(db), 0)
			})
		}
	}
}

// Ensure that a transaction in line returns when its context ends, and that the one
// before it commits.
func TestUpdate_Queue_ContextEnds(t *testing.T) {
	turnLimit(t, time.Hour)
	db := memory(t, nil)
	q := newQueue(t, db, func() {})
	q.cancel()
	if err := answer(t, q.waiter); !errors.Is(err, context.Canceled) || errors.Is(err, jay.ErrConflict) {
		t.Errorf("got %v", err)
	}
	equal(t, checks.InLine(db), 1)
	close(q.release)
	if err := answer(t, q.holder); err != nil {
		t.Error(err)
	}
	equal(t, body(t, db, "n"), `{"N":11}`)
	equal(t, checks.InLine(db), 0)
}

// Ensure that Close ends the wait in line, though the function whose turn it is does
// not return.
func TestUpdate_Queue_Close(t *testing.T) {
	turnLimit(t, time.Hour)
	db := memory(t, nil)
	q := newQueue(t, db, func() {})
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if err := answer(t, q.waiter); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("in line: %v", err)
	}
	close(q.release)
	if err := answer(t, q.holder); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("in its turn: %v", err)
	}
}

// Ensure that a turn passes on when its function fails, panics or ends its goroutine,
// and when it takes too long.
func TestUpdate_Queue_PassesOn(t *testing.T) {
	for name, inTurn := range map[string]func(){
		"returns":       func() {},
		"panic":         func() { panic("in its turn") },
		"Goexit":        runtime.Goexit,
		"never in time": nil,
	} {
		t.Run(name, func(t *testing.T) {
			limit := time.Hour
			if inTurn == nil {
				limit = time.Millisecond
			}
			turnLimit(t, limit)
			db := memory(t, nil)
			if inTurn == nil {
				tooLong(t, db)
				return
			}
			q := newQueue(t, db, inTurn)
			close(q.release)
			if err := answer(t, q.waiter); err != nil {
				t.Error(err)
			}
			if err := answer(t, q.holder); err != nil {
				t.Error(err)
			}
			want := `{"N":11}`
			if name == "returns" {
				want = `{"N":12}`
			}
			equal(t, body(t, db, "n"), want)
			equal(t, checks.InLine(db), 0)
		})
	}
}

// tooLong has a function in its turn wait for a transaction that stands behind it.
func tooLong(t *testing.T, db *jay.DB) {
	put(t, db, "n", `{"N":0}`)
	began, second := make(chan struct{}), make(chan struct{})
	behind := make(chan error, 1)
	go func() {
		runs := 0
		behind <- db.Update(ctx, func(tx *jay.Tx) error {
			if runs++; runs == 1 {
				close(began)
				<-second
			}
			return increment(tx, "n")
		}, jay.Retry())
	}()
	answer(t, began)
	result := make(chan error, 1)
	go func() {
		runs := 0
		result <- db.Update(ctx, func(tx *jay.Tx) error {
			switch runs++; runs {
			case 1:
				put(t, db, "n", `{"N":10}`)
			case 2:
				close(second)
				if err := answer(t, behind); err != nil {
					return err
				}
			}
			return increment(tx, "n")
		}, jay.Retry())
	}()
	if err := answer(t, result); err != nil {
		t.Error(err)
	}
	equal(t, body(t, db, "n"), `{"N":12}`)
	equal(t, checks.InLine(db), 0)
}

// Ensure that the next in line runs, and commits, while the commit before it waits
// for the disk, and that neither returns before it is on disk.
func TestUpdate_Queue_SharesSync(t *testing.T) {
	turnLimit(t, time.Hour)
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	var held *storagetest.Hold
	q := newQueue(t, db, func() { held = disk.Hold(storagetest.Logs, storagetest.Syncs) })
	close(q.release)
	inLine(t, db, 0) // both have committed
	answer(t, held.Met())
	select {
	case err := <-q.holder:
		t.Errorf("the first has returned: %v", err)
	case err := <-q.waiter:
		t.Errorf("the second has returned: %v", err)
	default:
	}
	equal(t, body(t, db, "n"), `{"N":10}`) // reads show what is on disk
	held.Release()
	if err := errors.Join(answer(t, q.holder), answer(t, q.waiter)); err != nil {
		t.Error(err)
	}
	equal(t, body(t, db, "n"), `{"N":12}`)
	closeDB(t, db)
}

// Ensure that a commit in its turn whose sync fails is in doubt.
func TestUpdate_Queue_DiskFails(t *testing.T) {
	turnLimit(t, time.Hour)
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	q := newQueue(t, db, func() { disk.FailAfter(0) })
	close(q.release)
	if err := answer(t, q.holder); !errors.Is(err, jay.ErrUnknownOutcome) {
		t.Errorf("in its turn: %v", err)
	}
	if err := answer(t, q.waiter); !errors.Is(err, jay.ErrUnknownOutcome) && !errors.Is(err, jay.ErrFailed) {
		t.Errorf("in line: %v", err)
	}
	_ = db.Close() // it has failed
}

// Ensure that Retry without a number goes on until the context ends, and that a
// number bounds the runs.
func TestRetry(t *testing.T) {
	turnLimit(t, time.Hour)
	for _, test := range []struct {
		name   string
		option jay.TxOption
		runs   int
		want   error
	}{
		{"0", jay.Retry(0), 1, jay.ErrConflict},
		{"7", jay.Retry(7), 8, jay.ErrConflict},
		{"no number", jay.Retry(), 10, context.Canceled},
		{"negative", jay.Retry(-1), 0, jay.ErrUsage},
		{"two numbers", jay.Retry(1, 2), 0, jay.ErrUsage},
	} {
		t.Run(test.name, func(t *testing.T) {
			db := memory(t, nil)
			put(t, db, "n", `{"N":0}`)
			of, cancel := context.WithCancel(ctx)
			defer cancel()
			runs := 0
			err := db.Update(of, func(tx *jay.Tx) error {
				if err := increment(tx, "n"); err != nil {
					return err
				}
				if runs++; runs == 10 {
					cancel()
				}
				_, err := db.Patch(ctx, "n", jay.Increment("N", 1)) // it defeats itself
				return err
			}, test.option)
			if !errors.Is(err, test.want) || runs != test.runs {
				t.Errorf("%d runs, %v", runs, err)
			}
			equal(t, checks.InLine(db), 0)
		})
	}
}

// Ensure that a function runs again only when what its lost run has seen is on disk.
func TestUpdate_Retry_LostRunIsDurable(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	put(t, db, "m", `{}`) // reserves etags, which takes a sync
	committed := make(chan int64, 1)
	w, err := db.BulkInsert(&jay.BulkOptions{ // whose commits wait for no sync
		BatchDocuments: 1, Progress: func(p jay.BulkProgress) { committed <- p.Documents },
	})
	must(t, err)
	write := func(n int64) {
		_, err := w.Put(ctx, "n", fmt.Appendf(nil, `{"N":%d}`, n))
		must(t, err)
		equal(t, answer(t, committed), n)
	}
	held := disk.Hold(storagetest.Logs, storagetest.Syncs)
	write(1)
	var released atomic.Bool
	lost, runs, done := make(chan struct{}), 0, make(chan error, 1)
	go func() {
		done <- db.Update(ctx, func(tx *jay.Tx) error {
			doc, err := tx.Get(ctx, "n")
			if err != nil {
				return err
			}
			if runs++; runs == 1 {
				equal(t, string(doc.Body()), `{"N":1}`) // not on disk
				write(2)
				close(lost)
			} else if !released.Load() {
				t.Error("the function runs again, and what it has seen is not on disk")
			}
			_, err = tx.Put(ctx, "m", json.RawMessage(`{}`))
			return err
		}, jay.Retry(3))
	}()
	<-lost
	answer(t, held.Met())
	time.Sleep(20 * time.Millisecond) // in which a run that does not wait would begin
	released.Store(true)
	held.Release()
	must(t, answer(t, done))
	equal(t, runs, 2)
	must(t, w.Close())
	closeDB(t, db)
}
