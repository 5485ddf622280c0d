package jaytest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/jaytest"
	"github.com/jaydb/jay/storage/storagetest"
)

var ctx = context.Background()

// fakeT is a test inside a test, whose failures are looked at.
type fakeT struct {
	name     string
	errors   []string
	cleanups []func()
}

// fatal is the panic of Fatalf, as a fakeT has no goroutine of its own to end.
type fatal struct{}

func (f *fakeT) Helper()             {}
func (f *fakeT) Name() string        { return f.name }
func (f *fakeT) Logf(string, ...any) {}
func (f *fakeT) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}
func (f *fakeT) Cleanup(fn func()) { f.cleanups = append(f.cleanups, fn) }
func (f *fakeT) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	panic(fatal{})
}

// run runs a test and its cleanups, and returns what it complained of.
func run(name string, test func(t jaytest.T)) string {
	f := &fakeT{name: name}
	each := func(fn func()) {
		defer func() {
			if r := recover(); r != nil && r != (fatal{}) {
				panic(r)
			}
		}()
		fn()
	}
	each(func() { test(f) })
	for i := len(f.cleanups) - 1; i >= 0; i-- {
		each(f.cleanups[i])
	}
	return strings.Join(f.errors, "\n")
}

func put(t *testing.T, db *jay.DB, id, body string, opts ...jay.WriteOption) jay.Metadata {
	t.Helper()
	m, err := db.Put(ctx, id, json.RawMessage(body), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Ensure that IDs, times and change vectors are the same in every run, and differ between
// the databases of one test.
func TestOpen_Deterministic(t *testing.T) {
	var first [2]string
	for round := range 2 {
		var seen []string
		if text := run("TestX", func(ft jaytest.T) {
			for range 2 {
				db := jaytest.Open(ft, nil)
				guid, hilo := put(t, db.DB, "", `{}`), put(t, db.DB, "users|", `{}`)
				seen = append(seen, guid.ID, guid.ChangeVector, guid.LastModified.String(), hilo.ID)
			}
		}); text != "" {
			t.Fatal(text)
		}
		first[round] = fmt.Sprint(seen)
		if seen[0] == seen[4] || seen[1] == seen[5] {
			t.Errorf("two databases of a test make the same: %q", seen)
		}
	}
	if first[0] != first[1] {
		t.Errorf("first %s, then %s", first[0], first[1])
	}
}

// Ensure that the clock stands still until it is moved, and that what is due is done when
// Advance returns.
func TestAdvance(t *testing.T) {
	db := jaytest.Open(t, nil)
	if m := put(t, db.DB, "a", `{}`, jay.WithTTL(time.Hour)); !m.LastModified.Equal(jaytest.Start) {
		t.Errorf("got %s, want %s", m.LastModified, jaytest.Start)
	}
	db.Advance(time.Hour - time.Nanosecond*100)
	if found, err := db.Exists(ctx, "a"); !found || err != nil {
		t.Errorf("before it expires: %v, %v", found, err)
	}
	db.Advance(100 * time.Nanosecond)
	if found, err := db.Exists(ctx, "a"); found || err != nil {
		t.Errorf("after it has expired: %v, %v", found, err)
	}
	db.Clock.Set(jaytest.Start)
	if !db.Clock.Now().Equal(jaytest.Start) {
		t.Error("the clock was not set back")
	}
}

// Ensure that each fault is met as the error that it is, and is gone after a restart.
func TestFaults(t *testing.T) {
	for _, row := range []struct {
		name  string
		fault func(db *jaytest.DB)
		meet  func(db *jay.DB) error
		want  []error
	}{
		{"a full disk", func(db *jaytest.DB) { db.FillDisk() },
			func(db *jay.DB) error { _, err := db.Put(ctx, "b", json.RawMessage(`{}`)); return err }, []error{jay.ErrUnknownOutcome, syscall.ENOSPC, storagetest.ErrFull}},
		{"a failing sync", func(db *jaytest.DB) { db.FailSyncs(0) },
			func(db *jay.DB) error { _, err := db.Put(ctx, "b", json.RawMessage(`{}`)); return err }, []error{jay.ErrUnknownOutcome, storagetest.ErrInjected}},
		{"unreadable tables", func(db *jaytest.DB) { db.FailReads() },
			func(db *jay.DB) error { _, err := db.Get(ctx, "a"); return err }, []error{jay.ErrUnreadable}},
	} {
		t.Run(row.name, func(t *testing.T) {
			db := jaytest.Open(t, nil)
			put(t, db.DB, "a", `{"n":1}`)
			row.fault(db)
			err := row.meet(db.DB)
			for _, want := range row.want {
				if !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
			}
			db.Restart()
			if doc, err := db.Get(ctx, "a"); err != nil || string(doc.Body()) != `{"n":1}` {
				t.Errorf("after a restart: %v, %v", doc, err)
			}
			put(t, db.DB, "c", `{}`)
		})
	}
}

// Ensure that after a write of unknown outcome those reads fail that would have to show it, and no others.
func TestFillDisk_Reads(t *testing.T) {
	db := jaytest.Open(t, nil)
	put(t, db.DB, "orders/1", `{"n":1}`, jay.InCollection("Orders"))
	put(t, db.DB, "orders/2", `{"n":1}`, jay.InCollection("Orders"))
	put(t, db.DB, "others/1", `{"n":1}`, jay.InCollection("Others"))
	if err := db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"n"}}); err != nil {
		t.Fatal(err)
	}
	db.FillDisk()
	if _, err := db.Put(ctx, "orders/1", json.RawMessage(`{"n":20}`)); !errors.Is(err, jay.ErrUnknownOutcome) {
		t.Fatalf("got %v", err)
	}
	get := func(id string) error { _, err := db.Get(ctx, id); return err }
	all := func(q jay.Query[jay.Document]) error { _, err := q.All(ctx); return err }
	count := func(collection string) error { _, err := db.Query(collection).Count(ctx); return err }
	for name, err := range map[string]error{
		"Get": get("orders/1"), "a query by an index": all(db.Query("Orders").Where(jay.Eq("n", 1)).NoScan()),
		"a query by a scan": all(db.Query("Orders").NoIndex()), "Count": count("Orders"),
	} {
		if !errors.Is(err, jay.ErrUnknownOutcome) {
			t.Errorf("%s: %v, want ErrUnknownOutcome", name, err)
		}
	}
	for name, err := range map[string]error{"Get of another document": get("orders/2"), "a query of another collection": all(db.Query("Others")), "Count of another": count("Others")} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := db.Put(ctx, "orders/3", json.RawMessage(`{}`)); !errors.Is(err, jay.ErrFailed) {
		t.Errorf("a later write: %v, want ErrFailed", err)
	}
	db.Restart()
	if err := errors.Join(get("orders/1"), all(db.Query("Orders")), count("Orders")); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}

// Ensure that a loss of power takes what was not synced, and nothing else.
func TestCutPower(t *testing.T) {
	for _, durability := range []jay.Durability{jay.Synced, jay.Relaxed} {
		db := jaytest.Open(t, &jay.Options{Durability: durability})
		put(t, db.DB, "a", `{}`)
		if err := db.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		put(t, db.DB, "b", `{}`)
		db.CutPower(0)
		for id, want := range map[string]bool{"a": true, "b": durability == jay.Synced} {
			if found, err := db.Exists(ctx, id); found != want || err != nil {
				t.Errorf("durability %d: %s is there: %v, %v, want %v", durability, id, found, err, want)
			}
		}
	}
}

// Ensure that every power failure of an operation is tested, and that one that leaves half
// of it is found.
func TestEveryPowerCut(t *testing.T) {
	both := func(db *jaytest.DB) {
		t.Helper()
		for _, id := range []string{"a", "b"} {
			put(t, db.DB, id, `{}`)
		}
	}
	half := 0
	cuts := jaytest.EveryPowerCut(t, nil, nil, both, func(db *jaytest.DB) {
		a, errA := db.Exists(ctx, "a")
		b, errB := db.Exists(ctx, "b")
		if errA != nil || errB != nil {
			t.Error(errA, errB)
		}
		if a != b {
			half++
		}
	})
	if cuts < 4 || half == 0 {
		t.Errorf("%d failures, %d left one write of two; want at least 4, and some", cuts, half)
	}
	text := run("TestX", func(ft jaytest.T) {
		jaytest.EveryPowerCut(ft, nil, nil, func(*jaytest.DB) {}, func(*jaytest.DB) {})
	})
	if !strings.Contains(text, "synced nothing") {
		t.Errorf("an operation that writes nothing: got %q", text)
	}
}

// Ensure that a dump has all that a database holds, and nothing that a write of the same
// again changes.
func TestDump(t *testing.T) {
	db := jaytest.Open(t, nil)
	fill(t, db)
	before := jaytest.Dump(t, db.DB)
	jaytest.Golden(t, db.DB, "dump")
	db.Advance(time.Minute)
	db.Restart()
	if _, err := db.Put(ctx, "b", json.RawMessage(`{"n":[1,2]}`)); err != nil {
		t.Fatal(err)
	}
	if after := jaytest.Dump(t, db.DB); after != before {
		t.Errorf("got %s\nwant %s", after, before)
	}
}

// fill stores something of every kind.
func fill(t *testing.T, db *jaytest.DB) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	put(t, db.DB, "users/ann", `{"Name":"Ann","@metadata":{"@collection":"Users","mine":true}}`)
	put(t, db.DB, "b", `{"n":[1,2]}`)
	put(t, db.DB, "invoices|", `{}`)
	must(db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"Name"}, Unique: true, Where: "Name != null"}))
	must(db.Subscriptions().Ensure(ctx, jay.Subscription{Name: "mail", Query: "from Users"}))
	must(db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: &jay.RevisionRule{Keep: 5}}))
	put(t, db.DB, "users/ann", `{"Name":"Anna","@metadata":{"@collection":"Users","mine":true}}`)
	put(t, db.DB, "users/ann", `{"Name":"Ann","@metadata":{"@collection":"Users","mine":true}}`)
	must(db.Revisions().Configure(ctx, jay.RevisionsConfiguration{}))
	_, err := db.Attachments("users/ann").Put(ctx, "photo", strings.NewReader("bytes"), jay.ContentType("image/png"))
	must(err)
}

// Ensure that a database that differs from its golden file is shown, and that the flag
// writes it.
func TestGolden(t *testing.T) {
	t.Chdir(t.TempDir())
	golden := func(text string) string {
		return run("TestX", func(ft jaytest.T) {
			db := jaytest.Open(ft, nil)
			put(t, db.DB, "a", text)
			jaytest.Golden(ft, db.DB, "x")
		})
	}
	if got := golden(`{"n":1}`); !strings.Contains(got, "-jaytest.update writes it") {
		t.Errorf("without a file: got %q", got)
	}
	t.Setenv("JAYTEST_UPDATE", "1")
	if got := golden(`{"n":1}`); got != "" {
		t.Errorf("update: %s", got)
	}
	t.Setenv("JAYTEST_UPDATE", "")
	if got := golden(`{"n":1}`); got != "" {
		t.Errorf("the same: %s", got)
	}
	got := golden(`{"n":2}`)
	for _, want := range []string{"line 4 ", ` -     "n": 1`, ` +     "n": 2`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s\nwant %q in it", got, want)
		}
	}
	text, err := os.ReadFile(filepath.Join("testdata", "x.golden"))
	if err != nil || !strings.Contains(string(text), `"n": 1`) {
		t.Errorf("the file: %q, %v", text, err)
	}
	for _, name := range []string{"", "../x", "/x"} {
		if got := run("TestX", func(ft jaytest.T) { jaytest.Golden(ft, nil, name) }); !strings.Contains(got, "below testdata") {
			t.Errorf("name %q: got %q", name, got)
		}
	}
}

// Ensure that options which would take the clock and the disk away are refused.
func TestOpen_Refused(t *testing.T) {
	for name, opts := range map[string]*jay.Options{
		"Options.FS":  {FS: storagetest.NewDisk()},
		"Options.Now": {Now: time.Now},
	} {
		if got := run("TestX", func(ft jaytest.T) { jaytest.Open(ft, opts) }); !strings.Contains(got, name) {
			t.Errorf("got %q, want %q in it", got, name)
		}
	}
}
