package calls_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/child"
	"github.com/jaydb/jay/internal/jaytest"
)

var ctx = context.Background()

// owned opens a database that others may write to.
func owned(t testing.TB, dir string, o jay.Options) *jay.DB {
	t.Helper()
	o.LookWrites = true
	db, err := jay.Open(dir, &o)
	jaytest.Must(t, err)
	t.Cleanup(func() { jaytest.Must(t, db.Close()) })
	return db
}

// lookInto opens what another DB of this process has open.
func lookInto(t testing.TB, dir string) *jay.DB {
	t.Helper()
	db, err := jay.Look(dir, nil)
	jaytest.Must(t, err)
	t.Cleanup(func() { jaytest.Must(t, db.Close()) })
	return db
}

// fixed returns options under which two databases make the same of the same calls.
func fixed() jay.Options {
	var mu sync.Mutex
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return jay.Options{
		Rand: rand.NewChaCha8([32]byte{1}),
		Now: func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now
		},
	}
}

// as returns the error of a type that err is.
func as[E error](err error) (e E, is bool) {
	is = errors.As(err, &e)
	return e, is
}

// called is what a call has returned: a result, and an error with what it is.
func called(name string, result any, err error) string {
	text, _ := json.Marshal(result)
	said := ""
	if err != nil {
		said = " " + err.Error()
		for _, is := range []error{
			jay.ErrConflict, jay.ErrExists, jay.ErrNotFound, jay.ErrInvalidDocument, jay.ErrInvalidID, jay.ErrCollection, jay.ErrUnique, jay.ErrIndex,
			jay.ErrIndexExists, jay.ErrUsage, jay.ErrInvalidPatch, jay.ErrRequestID, jay.ErrQuery, jay.ErrReadOnly,
		} {
			if errors.Is(err, is) {
				said += " (" + is.Error() + ")"
			}
		}
		if conflict, is := as[*jay.ConflictError](err); is {
			said += fmt.Sprintf(" %+v", *conflict)
		}
		if other, is := as[*jay.CompareExchangeError](err); is {
			said += fmt.Sprintf(" %+v", *other)
		}
		if bad, is := as[*jay.DocumentError](err); is {
			said += fmt.Sprintf(" %+v", *bad)
		}
		if bad, is := as[*jay.UniqueError](err); is {
			said += fmt.Sprintf(" %+v", *bad)
		}
	}
	return name + ": " + string(text) + said
}

// writeAll makes each kind of call that is carried out for others, with what it refuses, and returns the results.
func writeAll(t testing.TB, db *jay.DB) (all []string) {
	t.Helper()
	body := func(text string) json.RawMessage { return json.RawMessage(text) }
	note := func(name string, result any, err error) { all = append(all, called(name, result, err)) }
	wrote := func(name string, m jay.Metadata, err error) {
		note(name, struct {
			jay.Metadata
			Custom string
		}{m, string(m.Custom)}, err)
	}
	put := func(id, text string, opts ...jay.WriteOption) jay.Metadata {
		m, err := db.Put(ctx, id, body(text), opts...)
		wrote("put "+id, m, err)
		return m
	}
	at := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

	// The five strategies, conditions, options.
	ann := put("users/ann", "{\"Name\": \"Ann <&>\", \"n\":1.50}", jay.InCollection("Users"))
	put("users/ann", `{"Name":"Ann","n":2}`, jay.IfMatch(ann.ChangeVector))
	put("users/ann", `{"Name":"Ann","n":3}`, jay.IfMatch(ann.ChangeVector))
	put("users|", `{"n":1}`, jay.InCollection("Users"), jay.ExpiresAt(at))
	put("users/", `{"n":2}`, jay.RefreshAt(at), jay.WithMetadata([]byte(`{"x": "<1>"}`)))
	put("", `{"n":3}`, jay.WithTTL(time.Hour))
	put("users/x", `{"n":`)
	put(strings.Repeat("x", 4000), `{}`)
	put("users/ann", `{}`, jay.InCollection("Others"))
	m, err := db.Store(ctx, "Users", body(`{"n":4}`))
	wrote("store", m, err)
	m, err = db.Insert(ctx, "users/ann", body(`{}`))
	wrote("insert", m, err)
	m, err = db.Replace(ctx, "users/nobody", body(`{}`))
	wrote("replace", m, err)
	var returned jay.Metadata
	put("users/bob", `{"Name":"Bob","n":5}`, jay.InCollection("Users"), jay.Returning(&returned))
	note("returned", returned.ID+returned.ChangeVector, nil)

	// Requests.
	for range 2 {
		m, err = db.Store(ctx, "Users", body(`{"n":6}`), jay.RequestID("once"))
		wrote("once", m, err)
	}
	m, err = db.Store(ctx, "Users", body(`{"n":7}`), jay.RequestID("once"))
	wrote("other", m, err)
	for range 2 {
		n, err := db.NextIdentity(ctx, "bills", jay.RequestID("bill"))
		note("next", n, err)
	}

	// Batches.
	var b jay.Batch
	b.Put("users/cyd", body(`{"Name":"Cyd","n":8}`), jay.InCollection("Users"))
	b.Store("Users", body(`{"n":9}`))
	b.Delete("users/bob")
	b.Patch("users/ann", jay.Increment("n", 1), jay.Append("Tags", "<a>", json.RawMessage(`1.50`)))
	b.PutCompareExchange("lock", 1, 0)
	written, err := db.Apply(ctx, &b)
	for _, m := range written {
		wrote("apply", m, err)
	}
	b.Reset()
	b.Put("users/dan", body(`{}`))
	b.Insert("users/ann", body(`{}`))
	_, err = db.Apply(ctx, &b)
	note("refused", nil, err)
	note("delete", nil, db.Delete(ctx, "users/dan"))
	note("delete", nil, db.Delete(ctx, "users/ann", jay.IfMatch("no")))

	// Patches.
	for _, edits := range [][]jay.PatchOption{
		{jay.Set("Address.City", "Bonn"), jay.Unset("Name"), jay.Rename("n", "m")},
		{jay.AddToSet("Tags", "b"), jay.Remove("Tags", "<a>"), jay.PopFirst("Tags"), jay.PopLast("Tags")},
		{jay.MergePatch(body(`{"a":{"b":[1,2]}}`)), jay.JSONPatch(body(`[{"op":"copy","from":"/a","path":"/c"},{"op":"test","path":"/c/b/0","value":1},{"op":"add","path":"/c/b/-","value":"<"}]`))},
		{jay.JSONPatch(body(`[{"op":"test","path":"/m","value":"no"}]`))},
		{jay.Increment("Address", 1)},
		{jay.Set("m", json.RawMessage(`{"x":1`))},
		{jay.ExpiresAt(at)},
		{},
	} {
		r, err := db.Patch(ctx, "users/ann", edits...)
		note("patch", []any{r.Status, r.Metadata.ChangeVector, r.Body}, err)
	}
	r, err := db.Patch(ctx, "users/new", jay.Increment("n", 1), jay.OrInsert(body(`{"n":7}`)))
	note("patch", []any{r.Status, r.Metadata.ID, r.Body}, err)

	// Numbers.
	n, err := db.NextIdentity(ctx, "users")
	note("next", n, err)
	n, err = db.SeedIdentity(ctx, "users|", 100, false)
	note("seed", n, err)
	n, err = db.SeedIdentity(ctx, "users|", 50, true)
	note("seed", n, err)
	n, err = db.NextIdentity(ctx, " ")
	note("next", n, err)
	note("raise", nil, db.RaiseCounters(ctx, jay.Counters{Etag: 5000, Identities: map[string]int64{"bills|": 7}, HiLo: map[string]int64{"users": 1000}}))
	note("raise", nil, db.RaiseCounters(ctx, jay.Counters{Identities: map[string]int64{"bills": 7}}))
	m, err = db.Store(ctx, "Users", body(`{"n":10}`))
	wrote("store", m, err)

	// Compare-exchange values.
	position, err := db.CompareExchange().Put(ctx, "emails/a", map[string]string{"x": "<"}, 0, jay.CompareExchangeMetadata(body(`{"y":1}`)))
	note("exchange", position, err)
	again, err := db.CompareExchange().Put(ctx, "emails/a", 2, 0)
	note("exchange", again, err)
	note("exchange", nil, db.CompareExchange().Delete(ctx, "emails/a", position))

	// Indexes, changes by query, collections.
	note("index", nil, db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"n"}}))
	note("index", nil, db.EnsureIndex(ctx, "Users", jay.Index{Name: "n", Fields: []string{"m"}}))
	note("index", nil, db.EnsureIndex(ctx, "Users", jay.Index{Name: "u", Fields: []string{"Name"}, Unique: true}))
	put("users/eve", `{"Name":"Cyd"}`, jay.InCollection("Users"))
	note("drop", nil, db.DropIndex(ctx, "Users", "none"))
	computed := jay.Computed{Name: "Users/ByName", Maps: []index.Map{{Collection: "Users", Select: []index.Member{{Name: "Name"}}}}, Reduce: &index.Reduce{GroupBy: []string{"Name"}, Select: []index.Member{{Name: "Name"}, {Name: "N", Expression: "count()"}}}}
	note("computed", nil, jay.ComputedOf(db).Ensure(ctx, computed))
	rows, err := jay.QueryIndex[json.RawMessage](db, "Users/ByName").NoScan().OrderBy("Name").All(ctx)
	note("returned rows of an index", rows, err)
	list, err := jay.ComputedOf(db).List(ctx)
	note("returned list", list, err)
	computed.Strict = true
	note("computed", nil, jay.ComputedOf(db).Ensure(ctx, computed))
	note("drop", nil, jay.ComputedOf(db).Drop(ctx, "none"))
	note("drop", nil, jay.ComputedOf(db).Drop(ctx, "users/byname"))
	q, edits, err := db.UpdateRQL(`from Users where n >= $n update { this.Small = "<"; this.n += 1 }`, map[string]any{"n": 2})
	jaytest.Must(t, err)
	done, err := q.Progress(func(jay.Changed) {}).Patch(ctx, edits...)
	note("update", done, err)
	done, err = db.Query("Users").Where(jay.Gt("n", 4), jay.Not(jay.Eq("Small", "x"))).OrderBy("-n").Skip(1).Patch(ctx, jay.Increment("n", 1))
	note("patch by query", done, err)
	done, err = db.Query("Users").Where(jay.Exists("n")).Patch(ctx, jay.Increment("Small", 1))
	note("patch by query", done, err)
	done, err = db.Query("Users").Where(jay.Eq("nothing", 4)).NoScan().Delete(ctx)
	note("delete by query", done, err)
	done, err = db.Query("Users").Where(jay.Eq("n", 6)).Delete(ctx)
	note("delete by query", done, err)
	n, err = db.RenameCollection(ctx, "Users", "People", jay.CollectionProgress(func(int64) {}))
	note("rename", n, err)
	n, err = db.RenameCollection(ctx, "Users", "People")
	note("rename", n, err)
	put("gone/1", `{}`, jay.InCollection("Gone"))
	n, err = db.DropCollection(ctx, "Gone")
	note("drop", n, err)
	note("expiration", db.ExpirationConfiguration(), db.ConfigureExpiration(ctx, jay.ExpirationConfiguration{Disabled: true}))
	note("expiration", db.ExpirationConfiguration(), nil)
	note("compact", nil, db.Compact(ctx))
	return all
}

// Ensure that each call which the owner carries out for another program returns what it returns to the owner itself, results and errors with their
// types, and leaves the same database behind.
func TestCalls(t *testing.T) {
	same := fixed()
	alone := jaytest.Open(t, filepath.Join(t.TempDir(), "db"), &same)
	want := writeAll(t, alone)
	dir := filepath.Join(t.TempDir(), "db")
	db := owned(t, dir, fixed())
	there := lookInto(t, dir)
	got := writeAll(t, there)
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("call %d: got\n%s\nwant\n%s", i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d results, want %d", len(got), len(want))
	}
	jaytest.Equal(t, jaytest.Dump(t, db), jaytest.Dump(t, alone))
	jaytest.Equal(t, jaytest.Dump(t, there), jaytest.Dump(t, alone))
	jaytest.Verify(t, db)
}

// Ensure that observers of the owner see the calls of others as its own.
func TestCalls_Observed(t *testing.T) {
	dir := t.TempDir()
	o := new(verbs)
	owned(t, dir, jay.Options{Observer: o})
	there := lookInto(t, dir)
	jaytest.Put(t, there, "users/1", `{"n":1}`, jay.InCollection("Users"))
	_, err := there.Query("Users").Delete(ctx)
	jaytest.Must(t, err)
	jaytest.Must(t, there.Compact(ctx))
	o.mu.Lock()
	defer o.mu.Unlock()
	if got := strings.Join(o.all, ","); !strings.Contains(got, "put users/1") || !strings.Contains(got, "update") {
		t.Errorf("seen: %s", got)
	}
}

// verbs is an Observer that keeps what it sees.
type verbs struct {
	mu  sync.Mutex
	all []string
}

func (*verbs) Begin(ctx context.Context, _ *jay.Operation) context.Context { return ctx }

func (v *verbs) End(_ context.Context, o *jay.Operation) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = append(v.all, o.Verb+" "+o.ID)
}

// Ensure that nothing is written for a program that looks without the option of the owner, or that has opened the database to be read only, or by what
// is not carried out for others; that the error says why and what to do; and that the database is unchanged.
func TestCalls_Refused(t *testing.T) {
	dir := t.TempDir()
	closed, err := jay.Open(dir, nil)
	jaytest.Must(t, err)
	jaytest.Put(t, closed, "users/ann", `{"Name":"Ann"}`)
	before := jaytest.Dump(t, closed)
	there, err := jay.Look(dir, nil)
	jaytest.Must(t, err)
	for _, result := range writeAll(t, there) {
		if strings.HasPrefix(result, "returned") || strings.HasPrefix(result, "expiration") && !strings.Contains(result, "read only") {
			continue
		}
		if !strings.Contains(result, "read only") && !strings.Contains(result, "invalid") && !strings.Contains(result, "usage") {
			t.Errorf("without the option: %s", result)
		}
	}
	_, err = there.Put(ctx, "x", json.RawMessage(`{}`))
	if !errors.Is(err, jay.ErrReadOnly) || !strings.Contains(err.Error(), "Options.LookWrites") || !strings.Contains(err.Error(), "let that program write, or end it") {
		t.Errorf("without the option: %v", err)
	}
	jaytest.Equal(t, jaytest.Dump(t, closed), before)
	jaytest.Must(t, errors.Join(there.Close(), closed.Close()))

	db := owned(t, dir, jay.Options{})
	only, err := jay.Look(dir, &jay.Options{ReadOnly: true})
	jaytest.Must(t, err)
	if _, err := only.Put(ctx, "x", json.RawMessage(`{}`)); !errors.Is(err, jay.ErrReadOnly) || !strings.Contains(err.Error(), "Options.ReadOnly") {
		t.Errorf("opened to be read only: %v", err)
	}
	jaytest.Must(t, only.Close())

	there = lookInto(t, dir)
	put := func(tx *jay.Tx) error {
		_, err := tx.Put(ctx, "x", json.RawMessage(`{}`))
		return err
	}
	_, attached := there.Attachments("users/ann").Put(ctx, "a", strings.NewReader("x"))
	_, condition := there.Patch(ctx, "users/ann", jay.RemoveWhere("Tags", jay.Eq("a", 1)))
	w, err := there.BulkInsert(nil)
	if err == nil {
		_, err = w.Store(ctx, "Users", json.RawMessage(`{}`))
		err = errors.Join(err, w.Close())
	}
	var guard jay.AtomicGuard
	_, guarded := there.Put(ctx, "x", json.RawMessage(`{}`), jay.Guarded(&guard))
	for name, err := range map[string]error{
		"a transaction": there.Update(ctx, put), "an attachment": attached, "a condition of Go": condition, "a bulk insert": err, "a guard": guarded,
		"revisions":     there.Revisions().Configure(ctx, jay.RevisionsConfiguration{}),
		"subscriptions": there.Subscriptions().Ensure(ctx, jay.Subscription{Name: "s", Query: "from Users"}),
	} {
		if !errors.Is(err, jay.ErrReadOnly) || !strings.Contains(err.Error(), "makes no such change for this one: let that program make it, or end it") {
			t.Errorf("%s: %v", name, err)
		}
	}
	jaytest.Equal(t, jaytest.Dump(t, db), before)
	jaytest.Must(t, there.Close())
	_, put1 := there.Put(ctx, "x", json.RawMessage(`{}`))
	_, next := there.NextIdentity(ctx, "x")
	for _, err := range []error{put1, next, there.Compact(ctx)} {
		if !errors.Is(err, jay.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}

	if _, err := jay.Open(t.TempDir(), &jay.Options{LookWrites: true, NoLook: true}); !errors.Is(err, jay.ErrOption) || !strings.Contains(err.Error(), "LookWrites") {
		t.Errorf("both options: %v", err)
	}
}

// Ensure that 64 programs that write at once, and the owner, get no ID twice, whatever makes it, and that all that was acknowledged is there.
func TestCalls_Concurrently(t *testing.T) {
	dir := t.TempDir()
	db := owned(t, dir, jay.Options{Durability: jay.Relaxed})
	const writers, rounds = 64, 8
	var mu sync.Mutex
	seen := make(map[string]int)
	write := func(t testing.TB, to *jay.DB, me int) {
		for round := range rounds {
			body := json.RawMessage(fmt.Sprintf(`{"by":%d,"round":%d}`, me, round))
			made := make([]string, 0, 5)
			m, err := to.Store(ctx, "Users", body)
			jaytest.Must(t, err)
			made = append(made, m.ID)
			for _, request := range []string{"users|", "users/", "", fmt.Sprintf("users/by-%d-%d", me, round)} {
				m, err := to.Put(ctx, request, body, jay.InCollection("Users"))
				jaytest.Must(t, err)
				made = append(made, m.ID)
			}
			mu.Lock()
			for _, id := range made {
				seen[id]++
			}
			mu.Unlock()
		}
	}
	var group sync.WaitGroup
	for me := range writers {
		there := lookInto(t, dir)
		group.Go(func() { write(t, there, me) })
	}
	for me := range 4 {
		group.Go(func() { write(t, db, writers+me) })
	}
	group.Wait()
	if want := (writers + 4) * rounds * 5; len(seen) != want {
		t.Errorf("%d different IDs, want %d", len(seen), want)
	}
	for id, times := range seen {
		if _, err := db.Get(ctx, id); err != nil || times > 1 {
			t.Errorf("%s: made %d times, %v", id, times, err)
		}
	}
}

// Ensure that what the owner has acknowledged to another program survives its death, that the call it dies in says that its outcome is not known,
// and that a repeated request is carried out once.
func TestCalls_Kill(t *testing.T) {
	dir := t.TempDir()
	other := child.Start(t, "TestCalls_Process", "JAY_CALLS_DIR="+dir)
	if line := other.Line(); line != "open" {
		t.Fatal(line)
	}
	there, err := jay.Look(dir, nil)
	jaytest.Must(t, err)
	var acknowledged []string
	var last string
	var failed error
	var n atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			last = fmt.Sprint("request ", i)
			m, err := there.Store(ctx, "Users", json.RawMessage(fmt.Sprintf(`{"i":%d}`, i)), jay.RequestID(last))
			if err != nil {
				failed = err
				return
			}
			acknowledged = append(acknowledged, m.ID)
			n.Add(1)
		}
	}()
	for more := jaytest.Patience(); more(n.Load() >= 50); time.Sleep(time.Millisecond) {
	}
	blocked, err := jay.Look(dir, nil)
	jaytest.Must(t, err)
	in := make(chan error)
	go func() {
		_, err := blocked.Put(ctx, "blocked", json.RawMessage(`{}`))
		in <- err
	}()
	if line := other.Line(); line != "blocked" {
		t.Fatal(line)
	}
	other.Kill()
	<-done
	if err := <-in; !errors.Is(err, jay.ErrUnknownOutcome) || !errors.Is(err, jay.ErrUnavailable) {
		t.Errorf("the call in which the owner dies: %v", err)
	}
	if !errors.Is(failed, jay.ErrUnavailable) {
		t.Errorf("a call beside it: %v", failed)
	}
	if _, err := there.Put(ctx, "x", json.RawMessage(`{}`)); !errors.Is(err, jay.ErrUnavailable) || errors.Is(err, jay.ErrUnknownOutcome) {
		t.Errorf("the call after it: %v", err)
	}
	jaytest.Must(t, errors.Join(there.Close(), blocked.Close()))

	db := owned(t, dir, jay.Options{})
	for _, id := range acknowledged {
		if _, err := db.Get(ctx, id); err != nil {
			t.Errorf("acknowledged: %v", err)
		}
	}
	i := len(acknowledged)
	m, err := lookInto(t, dir).Store(ctx, "Users", json.RawMessage(fmt.Sprintf(`{"i":%d}`, i)), jay.RequestID(last))
	jaytest.Must(t, err)
	count, err := db.Query("Users").Where(jay.Eq("i", i)).Count(ctx)
	jaytest.Must(t, err)
	if count != 1 || slices.Contains(acknowledged, m.ID) {
		t.Errorf("the repeated request: %d documents, %s", count, m.ID)
	}
}

// TestCalls_Process is the owner that TestCalls_Kill kills.
func TestCalls_Process(t *testing.T) {
	dir := os.Getenv("JAY_CALLS_DIR")
	if dir == "" {
		t.Skip("only in a process of TestCalls_Kill")
	}
	begun := make(chan struct{})
	owned(t, dir, jay.Options{Observer: blocking{begun, nil}})
	fmt.Println("open")
	<-begun
	fmt.Println("blocked")
	_, _ = os.Stdin.Read(make([]byte, 1)) // until it is killed
}

// Ensure that Close of the owner ends the calls of others that take long, and leaves no goroutine; and that a call whose program cancels it ends.
func TestCalls_Ended(t *testing.T) {
	dir := t.TempDir()
	before := runtime.NumGoroutine()
	begun := make(chan struct{}, 100)
	block := make(chan struct{})
	o := jay.Options{LookWrites: true, Observer: blocking{begun, block}}
	db, err := jay.Open(dir, &o)
	jaytest.Must(t, err)
	there, err := jay.Look(dir, nil)
	jaytest.Must(t, err)
	failed := make(chan error)
	canceled, cancel := context.WithCancel(ctx)
	go func() {
		_, err := there.Put(canceled, "blocked", json.RawMessage(`{}`))
		failed <- err
	}()
	<-begun
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("a call that is canceled: %v", err)
	}
	go func() {
		_, err := there.Put(ctx, "blocked", json.RawMessage(`{}`))
		failed <- err
	}()
	<-begun
	jaytest.Must(t, db.Close())
	if err := <-failed; !errors.Is(err, jay.ErrUnavailable) {
		t.Errorf("a call when the owner closes: %v", err)
	}
	jaytest.Must(t, there.Close())
	for more := jaytest.Patience(); more(runtime.NumGoroutine() <= before); time.Sleep(time.Millisecond) {
	}
	if left := runtime.NumGoroutine(); left > before {
		t.Errorf("%d goroutines, %d before", left, before)
	}
}

// blocking is an Observer that keeps writes of "blocked" from going on until their context ends.
type blocking struct{ begun, until chan struct{} }

func (b blocking) Begin(ctx context.Context, o *jay.Operation) context.Context {
	if o.ID == "blocked" {
		b.begun <- struct{}{}
		select {
		case <-ctx.Done():
		case <-b.until:
		}
	}
	return ctx
}

func (blocking) End(context.Context, *jay.Operation) {}

// BenchmarkPut is a put of the owner, and one of another program through it.
func BenchmarkPut(b *testing.B) {
	for _, through := range []bool{false, true} {
		b.Run(fmt.Sprintf("through=%t", through), func(b *testing.B) {
			dir := b.TempDir()
			db := owned(b, dir, jay.Options{})
			if through {
				db = lookInto(b, dir)
			}
			n := 0
			for b.Loop() {
				n++
				jaytest.Put(b, db, fmt.Sprintf("users/%d", n%1000), `{"Name":"Ann"}`)
			}
		})
	}
}
