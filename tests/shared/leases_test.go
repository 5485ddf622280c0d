package shared_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage"
)

// period is that of the leases of tests about lost ones.
const period = 200 * time.Millisecond

// cuttable is a driver whose engines can be cut off: they answer no transaction until they are let go on, as those of a process that stands still.
type cuttable struct {
	storage.Driver
	mu   sync.Mutex
	wait chan struct{} // nil if they answer. Guarded by mu.
}

// Open implements storage.Driver.
func (c *cuttable) Open(name string, o storage.OpenOptions) (storage.Engine, error) {
	e, err := c.Driver.Open(name, o)
	if err != nil {
		return nil, err
	}
	return &cutEngine{e, c}, nil
}

// cut cuts them off until the function that it returns is called.
func (c *cuttable) cut() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wait := make(chan struct{})
	c.wait = wait
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.wait = nil
		close(wait)
	})
}

func (c *cuttable) await() {
	c.mu.Lock()
	wait := c.wait
	c.mu.Unlock()
	if wait != nil {
		<-wait
	}
}

type cutEngine struct {
	storage.Engine
	driver *cuttable
}

// Update implements storage.Engine.
func (e *cutEngine) Update(ctx context.Context, sync bool, fn func(storage.Tx) error) error {
	e.driver.await()
	return e.Engine.Update(ctx, sync, fn)
}

func tagOf(t *testing.T, db *jay.DB) string {
	t.Helper()
	s, err := db.Stats(ctx)
	must(t, err)
	return s.NodeTag
}

// until calls fn until it returns true.
func until(t *testing.T, what string, fn func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !fn(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 30 seconds", what)
		}
	}
}

// Ensure that each process has a node tag of its own, which its IDs end in: the one that it asks for, or the first that is free; that a tag which a live
// process has is refused, with the name of that process; and that Close gives it back.
func TestTags(t *testing.T) {
	o := jay.Options{Engine: jaytest.SharedDriver(t), ClusterPeriod: period}
	a := jaytest.Open(t, "db", &o)
	b := jaytest.Open(t, "db", &o)
	named := o
	named.NodeTag = "D"
	d := jaytest.Open(t, "db", &named)
	for want, db := range map[string]*jay.DB{"A": a, "B": b, "D": d} {
		if got := tagOf(t, db); got != want {
			t.Errorf("the tag is %s, want %s", got, want)
		}
		for _, request := range []string{"users/", ""} {
			if m := put(t, db, request, `{}`, jay.InCollection("Users")); request != "" && !strings.HasSuffix(m.ID, "-"+want) {
				t.Errorf("%s has made %s", want, m.ID)
			}
		}
	}
	if _, err := jay.Open("db", &named); !errors.Is(err, jay.ErrNodeTag) || !strings.Contains(err.Error(), `"D"`) || !strings.Contains(err.Error(), "process ") {
		t.Errorf("a tag that is taken: %v, want ErrNodeTag", err)
	}
	named.NodeTag = "d"
	if _, err := jay.Open("db", &named); !errors.Is(err, jay.ErrOption) {
		t.Errorf("no tag: %v, want ErrOption", err)
	}
	must(t, b.Close())
	b = jaytest.Open(t, "db", &o)
	if got := tagOf(t, b); got != "B" {
		t.Errorf("after Close the tag is %s, want B", got)
	}
	agree(t, a, b, d)
	must(t, errors.Join(a.Close(), b.Close(), d.Close()))
	reader := o
	reader.ReadOnly, reader.ClusterPeriod = true, 0
	r := jaytest.Open(t, "db", &reader) // it leases nothing
	a = jaytest.Open(t, "db", &o)
	if got := tagOf(t, a); got != "A" {
		t.Errorf("beside one that only reads the tag is %s, want A", got)
	}
	must(t, errors.Join(a.Close(), r.Close()))
	own := jay.Options{ClusterPeriod: period}
	if _, err := jay.Open(t.TempDir(), &own); !errors.Is(err, jay.ErrOption) {
		t.Errorf("ClusterPeriod on a store of one's own: %v, want ErrOption", err)
	}
}

// Ensure that the tag of a process that stands still for longer than its lease is taken over, and that nothing it does afterwards is committed,
// also what it had begun before; and that it goes on when the tag is free again.
func TestTags_Fenced(t *testing.T) {
	driver := &cuttable{Driver: jaytest.SharedDriver(t)}
	o := jay.Options{Engine: driver, ClusterPeriod: period, NodeTag: "B"}
	late := jaytest.Open(t, "db", &o)
	put(t, late, "users/1", `{"n":1}`)
	resume := driver.cut()
	defer resume()
	written := make(chan error)
	go func() {
		_, err := late.Put(ctx, "users/1", []byte(`{"n":2}`))
		written <- err
	}()
	o.Engine = driver.Driver
	begun := time.Now()
	next := jaytest.Open(t, "db", &o)
	if waited := time.Since(begun); waited < period*9/10 {
		t.Errorf("the tag was taken over after %v, and the lease lasts %v", waited, period)
	}
	put(t, next, "users/1", `{"n":3}`)
	resume()
	if err := <-written; !errors.Is(err, jay.ErrLeaseLost) {
		t.Errorf("a write that was begun before: %v, want ErrLeaseLost", err)
	}
	for range 20 {
		if _, err := late.Put(ctx, "users/1", []byte(`{"n":4}`)); !errors.Is(err, jay.ErrLeaseLost) {
			t.Errorf("a write after the loss: %v, want ErrLeaseLost", err)
		}
		time.Sleep(period / 20)
	}
	want(t, "the document", get(t, late, "users/1"), `{"n":3}`)
	must(t, next.Close())
	until(t, "the tag is leased again", func() bool {
		_, err := late.Put(ctx, "users/1", []byte(`{"n":5}`))
		if err != nil && !errors.Is(err, jay.ErrLeaseLost) {
			t.Fatal(err)
		}
		return err == nil
	})
	agree(t, late)
	must(t, late.Close())
}

// Ensure that the lease of a process that has ended without Close is removed by the others, and that its tag is free then; and that a process
// whose lease was removed while it stood still leases it again.
func TestTags_Over(t *testing.T) {
	driver := &cuttable{Driver: jaytest.SharedDriver(t)}
	dead := jaytest.Open(t, "db", &jay.Options{Engine: driver, ClusterPeriod: period})
	resume := driver.cut()
	defer resume()
	o := jay.Options{Engine: driver.Driver, ClusterPeriod: period}
	b := jaytest.Open(t, "db", &o)
	if got := tagOf(t, b); got != "B" {
		t.Errorf("the tag is %s, want B: A is still leased", got)
	}
	until(t, "tag A is free", func() bool {
		c := jaytest.Open(t, "db", &o)
		got := tagOf(t, c)
		must(t, c.Close())
		return got == "A"
	})
	resume()
	until(t, "the lease is taken again", func() bool {
		_, err := dead.Put(ctx, "users/1", []byte(`{}`))
		if err != nil && !errors.Is(err, jay.ErrLeaseLost) {
			t.Fatal(err)
		}
		return err == nil
	})
	agree(t, dead, b)
	must(t, errors.Join(dead.Close(), b.Close()))
}

// Ensure that no lease is over while nobody can commit, however long that takes.
func TestTags_StoreAway(t *testing.T) {
	driver := &cuttable{Driver: jaytest.SharedDriver(t)}
	o := jay.Options{Engine: driver, ClusterPeriod: period}
	a, b := jaytest.Open(t, "db", &o), jaytest.Open(t, "db", &o)
	resume := driver.cut()
	time.Sleep(3 * period)
	resume()
	for range 40 {
		for _, db := range []*jay.DB{a, b} {
			put(t, db, "users/1", `{}`)
		}
		time.Sleep(period / 20)
	}
	agree(t, a, b)
	must(t, errors.Join(a.Close(), b.Close()))
}

// Ensure that processes that open a store at once, again and again, all have different tags, and that none of their IDs comes twice.
func TestTags_Race(t *testing.T) {
	o := jay.Options{Engine: jaytest.SharedDriver(t), ClusterPeriod: 2 * time.Second}
	var mu sync.Mutex
	open, ids := make(map[string]bool), make(map[string]bool)
	var total atomic.Int64
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			for range 5 {
				db, err := jay.Open("db", &o)
				if err != nil {
					t.Error(err)
					return
				}
				s, err := db.Stats(ctx)
				mu.Lock()
				if err != nil || open[s.NodeTag] {
					t.Errorf("two have the tag %s; %v", s.NodeTag, err)
				}
				open[s.NodeTag] = true
				mu.Unlock()
				for _, request := range []string{"users/", "users|"} {
					m, err := db.Put(ctx, request, []byte(`{}`))
					mu.Lock()
					if err != nil || ids[m.ID] {
						t.Errorf("%s came twice; %v", m.ID, err)
					}
					ids[m.ID] = true
					mu.Unlock()
					total.Add(1)
				}
				mu.Lock()
				delete(open, s.NodeTag) // before Close gives it back
				mu.Unlock()
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	want(t, "IDs", fmt.Sprint(len(ids)), fmt.Sprint(total.Load()))
}

// Ensure that IDs count as made here that any process on the store has made, whichever tag it had, and also when it has ended: in the report of IDs and
// in what Verify looks at.
func TestTags_IDs(t *testing.T) {
	o := jay.Options{Engine: jaytest.SharedDriver(t)}
	a, b := jaytest.Open(t, "db", &o), jaytest.Open(t, "db", &o)
	in := jay.InCollection("Users")
	last := int64(0)
	for _, db := range []*jay.DB{a, b} {
		m, err := db.Store(ctx, "Users", json.RawMessage(`{}`))
		must(t, err)
		number, _, _ := strings.Cut(strings.TrimPrefix(m.ID, "users/"), "-")
		last, err = strconv.ParseInt(number, 10, 64)
		must(t, err)
	}
	stats, err := b.Stats(ctx)
	must(t, err)
	must(t, b.Close())
	put(t, a, fmt.Sprint("users/", last+100_000, "-ZZ"), `{}`, in) // of another database
	report, err := a.InspectIDs(ctx, nil)
	must(t, err)
	for _, p := range report.Prefixes {
		if p.Prefix == "users/" {
			want(t, "the highest number", p.HighestHiLo, last)
		}
	}
	want(t, "tags", len(report.HiLo), 1)
	want(t, "the highest number of the tag", report.HiLo[0].Highest, last)
	verified, err := a.Verify(ctx, nil)
	must(t, err)
	want(t, "warnings", len(verified.Warnings), 0)
	beyond := fmt.Sprint("users/", last+100_000, "-", stats.NodeTag)
	put(t, a, beyond, `{}`, in)
	verified, err = a.Verify(ctx, nil)
	must(t, err)
	if len(verified.Warnings) != 1 || !strings.Contains(verified.Warnings[0].Problem, strings.ToLower(beyond)) {
		t.Errorf("Verify warns of %v, want %s", verified.Warnings, beyond)
	}
	must(t, a.Close())
}
