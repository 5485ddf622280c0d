package live_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	internal "github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/jaytest"
	"github.com/jaydb/jay/query"
)

type item struct {
	ID  string
	N   int
	Tag string
}

func put(t *testing.T, db *jay.DB, collection, id string, n int) {
	t.Helper()
	internal.Put(t, db, id, fmt.Sprintf(`{"N":%d}`, n), jay.InCollection(collection))
}

// next returns the next event, as text.
func next[T any](t *testing.T, pull func() (jay.LiveEvent[T], error, bool)) (string, jay.LiveEvent[T]) {
	t.Helper()
	e, err, ok := pull()
	if err != nil || !ok {
		t.Fatalf("%v, %t", err, ok)
	}
	text := e.Kind.String()
	if e.ID != "" {
		text += " " + e.ID
	}
	if e.CatchingUp {
		text += " again"
	}
	return text, e
}

func expect[T any](t *testing.T, pull func() (jay.LiveEvent[T], error, bool), want ...string) (last jay.LiveEvent[T]) {
	t.Helper()
	for _, w := range want {
		got, e := next(t, pull)
		if got != w {
			t.Fatalf("%s, want %s", got, w)
		}
		last = e
	}
	return last
}

// Ensure that a live query begins with the answers, and goes on with what enters, changes
// and leaves them; and that it goes on after its token.
func TestLive(t *testing.T) {
	ctx := context.Background()
	db := internal.Memory(t, nil)
	items := internal.CollectionOf[item](t, db)
	put(t, db, "items", "items/1", 1)
	put(t, db, "items", "items/2", 2)
	q := items.Query().Where(jay.Gt("N", 1))
	pull, stop := iter.Pull2(q.Live(ctx, ""))
	defer func() { stop() }()
	if e := expect(t, pull, "enter items/2"); e.Value == nil || e.Value.N != 2 || e.ChangeVector == "" || e.Token != "" {
		t.Errorf("%+v", e)
	}
	expect(t, pull, "current")
	put(t, db, "items", "items/1", 5)
	expect(t, pull, "enter items/1", "current")
	put(t, db, "items", "items/2", 6)
	expect(t, pull, "change items/2", "current")
	put(t, db, "items", "items/1", 0)
	expect(t, pull, "leave items/1", "current")
	internal.Must(t, db.Update(ctx, func(tx *jay.Tx) error {
		for i := range 3 {
			if _, err := tx.Put(ctx, fmt.Sprintf("items/t%d", i), []byte(fmt.Sprintf(`{"N":%d}`, i+1)), jay.InCollection("items")); err != nil {
				return err
			}
		}
		return tx.Delete(ctx, "items/2")
	}))
	token := expect(t, pull, "enter items/t1", "enter items/t2", "leave items/2", "current").Token
	stop()

	put(t, db, "items", "items/2", 9)
	put(t, db, "items", "items/t1", 0)
	pull, stop = iter.Pull2(q.Live(ctx, token))
	expect(t, pull, "enter items/2 again", "leave items/t1 again", "current")
	internal.Must(t, db.Delete(ctx, "items/2"))
	expect(t, pull, "leave items/2", "current")
}

// Ensure that a query whose answers are no set of documents that each decide for themselves
// is refused by the name of what it has, before anything is read.
func TestLive_Refused(t *testing.T) {
	ctx := context.Background()
	db := internal.Memory(t, nil)
	for text, want := range map[string]string{
		"from Ants order by N":                   "order",
		"from Ants limit 3":                      "limit",
		"from Ants group by N select N, count()": "group by",
		"from Ants select count()":               "functions of groups",
		"from Ants select distinct N":            "distinct",
		"from Ants include Other":                "include",
		"from Ants where search(Text, 'oak')":    "search for words",
		"from Ants where boost(N = 1, 2)":        "boost",
		"from Ants where load(Other).N = 1":      "load",
		"from Ants select load(Other).N as ON":   "load",
	} {
		q, err := db.RQL(text, nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if err := firstError(q.Live(ctx, "")); !errors.Is(err, jay.ErrQuery) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want ErrQuery and %q", text, err, want)
		}
	}
	internal.Must(t, db.View(ctx, func(tx *jay.Tx) error {
		if err := firstError(tx.Query("Ants").Live(ctx, "")); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("of a transaction: %v", err)
		}
		return nil
	}))
	if err := firstError(jay.Query[jay.Row]{}.Live(ctx, "")); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("a zero query: %v", err)
	}
	defer func(most int) { knobs.LiveReaders = most }(knobs.LiveReaders)
	knobs.LiveReaders = 1
	pull, stop := iter.Pull2(db.Query("Ants").Live(ctx, ""))
	expect(t, pull, "current")
	var limit *query.LimitError
	if err := firstError(db.Query("Bees").Live(ctx, "")); !errors.Is(err, jay.ErrQuery) || !errors.As(err, &limit) || limit.Limit != 1 {
		t.Errorf("one too many: %v", err)
	}
	stop()
	pull, stop = iter.Pull2(db.Query("Bees").Live(ctx, ""))
	expect(t, pull, "current")
	stop()
}

// firstError returns the error of the first pair.
func firstError[T any](all iter.Seq2[jay.LiveEvent[T], error]) error {
	for _, err := range all {
		return err
	}
	return nil
}

// Ensure that no token is taken for another one: garbage, that of another query, of another
// database, and one before deletions that are forgotten have typed errors.
func TestLive_Tokens(t *testing.T) {
	ctx := context.Background()
	db, other := internal.OpenForgetting(t, t.TempDir()), internal.Memory(t, nil)
	put(t, other, "Ants", "a/1", 1)
	tokenOf := func(db *jay.DB, collection string) string {
		pull, stop := iter.Pull2(db.Query(collection).Live(ctx, ""))
		defer stop()
		for {
			if text, e := next(t, pull); text == "current" {
				return e.Token
			}
		}
	}
	put(t, db, "Ants", "a/1", 1)
	own, foreign := tokenOf(db, "Ants"), tokenOf(other, "Ants")
	for _, token := range []string{"x", "now", ".", own + "x", own[1:], own[:17], own[:17] + "now", own + "~5", strings.Repeat("a", 100_000), tokenOf(db, "Bees")} {
		if err := firstError(db.Query("Ants").Live(ctx, token)); !errors.Is(err, jay.ErrUsage) && !errors.Is(err, jay.ErrChangesGone) {
			t.Errorf("%.50q: %v", token, err)
		}
	}
	if err := firstError(db.Query("Ants").Live(ctx, "x")); err == nil || !strings.HasSuffix(err.Error(), `"x" is not a token of a live query`) {
		t.Errorf("no token: %v", err)
	}
	if err := firstError(db.Query("Ants").Live(ctx, foreign)); !errors.Is(err, jay.ErrChangesGone) {
		t.Errorf("of another database: %v", err)
	}
	defer func(held uint64) { knobs.HeldEtags = held }(knobs.HeldEtags)
	knobs.HeldEtags = 100
	internal.PutAndDelete(t, db, 500)
	internal.Must(t, db.Compact(ctx))
	if err := firstError(db.Query("Ants").Live(ctx, own)); !errors.Is(err, jay.ErrChangesGone) {
		t.Errorf("before what is forgotten: %v", err)
	}
}

// Ensure that each way to end a live query ends it, and that no goroutine is left.
func TestLive_Ends(t *testing.T) {
	before := runtime.NumGoroutine()
	db, err := internal.OpenMemory(nil)
	internal.Must(t, err)
	put(t, db, "Ants", "a/1", 1)
	ctx, cancel := context.WithCancel(context.Background())
	ends := make(chan error, 2)
	begun := make(chan struct{}, 2)
	for _, ctx := range []context.Context{ctx, context.Background()} {
		go func() {
			for e, err := range db.Query("Ants").Live(ctx, "") {
				if e.Kind == jay.LiveCurrent {
					begun <- struct{}{}
				}
				if err != nil {
					ends <- err
				}
			}
		}()
	}
	<-begun
	<-begun
	cancel()
	if err := internal.Within(t, ends, "the one whose context has ended"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the error of the context", err)
	}
	internal.Must(t, db.Close())
	if err := internal.Within(t, ends, "the one whose database was closed"); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
	if err := firstError(db.Query("Ants").Live(context.Background(), "")); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("of a closed database: %v", err)
	}
	for more := internal.Patience(); more(runtime.NumGoroutine() <= before); {
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, and %d before", n, before)
	}
}

// Ensure that a loop may close the database, and that a panic of a loop ends its live query.
func TestLive_FromTheLoop(t *testing.T) {
	db, err := internal.OpenMemory(nil)
	internal.Must(t, err)
	ctx := context.Background()
	func() {
		defer func() { _ = recover() }()
		for range db.Query("Ants").Live(ctx, "") {
			panic("of the loop")
		}
	}()
	var last error
	for e, err := range db.Query("Ants").Live(ctx, "") {
		if last = err; e.Kind == jay.LiveCurrent {
			internal.Must(t, db.Close())
		}
	}
	if !errors.Is(last, jay.ErrClosed) {
		t.Errorf("%v, want ErrClosed", last)
	}
}

// Ensure that answers for which there is no memory end their live query with ErrMemory, and
// that other live queries go on; and that what a live query held is there for the next.
func TestLive_Memory(t *testing.T) {
	ctx := context.Background()
	db := jaytest.Open(t, &jay.Options{MaxMemory: 64 << 20})
	w, err := db.BulkInsert(nil)
	internal.Must(t, err)
	long := strings.Repeat("x", 400)
	for i := range 15_000 {
		_, err := w.Put(ctx, fmt.Sprintf("all/%s%d", long, i), []byte(`{}`), jay.InCollection("All"))
		internal.Must(t, err)
	}
	internal.Must(t, w.Close())
	pull, stop := iter.Pull2(db.Query("Few").Live(ctx, ""))
	defer stop()
	expect(t, pull, "current")
	for range 2 {
		var last error
		for _, err := range db.Query("All").Live(ctx, "") {
			if last = err; err != nil {
				break
			}
		}
		if !errors.Is(last, jay.ErrMemory) {
			t.Fatalf("%v, want ErrMemory", last)
		}
	}
	put(t, db.DB, "Few", "few/1", 1)
	expect(t, pull, "enter few/1", "current")
}

// Ensure that documents that expire leave when they are deleted, and that the renaming of a
// collection is seen on both sides.
func TestLive_ExpiryAndRenames(t *testing.T) {
	ctx := context.Background()
	db := jaytest.Open(t, nil)
	as, stop := iter.Pull2(db.Query("Ants").Live(ctx, ""))
	defer stop()
	bs, stop := iter.Pull2(db.Query("Bees").Live(ctx, ""))
	defer stop()
	expect(t, as, "current")
	expect(t, bs, "current")
	internal.Put(t, db.DB, "a/1", `{}`, jay.InCollection("Ants"), jay.WithTTL(time.Hour))
	put(t, db.DB, "Ants", "a/2", 1)
	for _, want := range []string{"enter a/1", "enter a/2"} {
		for {
			if got, _ := next(t, as); got == want {
				break
			} else if got != "current" {
				t.Fatalf("%s, want %s", got, want)
			}
		}
	}
	expect(t, as, "current")
	db.Advance(2 * time.Hour)
	expect(t, as, "leave a/1", "current")
	_, err := db.RenameCollection(ctx, "Ants", "Bees")
	internal.Must(t, err)
	expect(t, as, "leave a/2", "current")
	expect(t, bs, "enter a/2", "current")
}

// Ensure that a live query sees what another process commits to the same store.
func TestLive_Shared(t *testing.T) {
	ctx := context.Background()
	o := jay.Options{Engine: internal.SharedDriver(t)}
	dir := t.TempDir()
	db, other := internal.Open(t, dir, &o), internal.Open(t, dir, &o)
	put(t, other, "Ants", "a/1", 1)
	pull, stop := iter.Pull2(db.Query("Ants").Where(jay.Gt("N", 0)).Live(ctx, ""))
	defer stop()
	expect(t, pull, "enter a/1", "current")
	put(t, other, "Ants", "a/2", 2)
	expect(t, pull, "enter a/2", "current")
	internal.Must(t, other.Delete(ctx, "a/1"))
	expect(t, pull, "leave a/1", "current")
}

// Ensure that a reader without events gets newer tokens, and at most one in a second: a thousand readers that are
// woken for every few commits would take the processors from the writers.
func TestLive_IdleTokens(t *testing.T) {
	db := internal.Memory(t, nil)
	items := internal.CollectionOf[item](t, db)
	q := items.Query().Where(jay.Eq("N", -1))
	pull, stop := iter.Pull2(q.Live(context.Background(), ""))
	defer stop()
	first := expect(t, pull, "current")
	done, written := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(written)
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
				_, _ = db.Put(context.Background(), fmt.Sprintf("items/%d", i%1000), []byte(`{"N":1}`), jay.InCollection("items"))
			}
		}
	}()
	begun := time.Now()
	second := expect(t, pull, "current")
	third := expect(t, pull, "current")
	took := time.Since(begun)
	close(done)
	<-written
	if took < time.Second {
		t.Errorf("two tokens in %v", took)
	}
	if first.Token == second.Token || second.Token == third.Token {
		t.Errorf("the tokens %q, %q and %q", first.Token, second.Token, third.Token)
	}
}
