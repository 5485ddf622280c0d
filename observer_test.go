package jay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
)

// recorder is an Observer that keeps the operations, and checks that each has its end.
type recorder struct {
	t    *testing.T
	mu   sync.Mutex
	open map[*jay.Operation]bool
	all  []jay.Operation
}

type recorded struct{}

func (r *recorder) Begin(ctx context.Context, o *jay.Operation) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = make(map[*jay.Operation]bool)
	}
	if o.Verb == "" || o.Began.IsZero() || o.Duration != 0 || o.Documents != 0 || o.Err != nil {
		r.t.Errorf("begins as %+v", *o)
	}
	r.open[o] = true
	return context.WithValue(ctx, recorded{}, o)
}

func (r *recorder) End(ctx context.Context, o *jay.Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.open[o] || ctx.Value(recorded{}) != o {
		r.t.Errorf("%+v ends, and has not begun with this context", *o)
	}
	delete(r.open, o)
	r.all = append(r.all, *o)
}

// take returns the operations since the last call, as text.
func (r *recorder) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.open) > 0 {
		r.t.Errorf("%d operations have no end", len(r.open))
	}
	var texts []string
	for _, o := range r.all {
		text := fmt.Sprintf("%s %s %s %d", o.Verb, o.Collection, o.ID, o.Documents)
		if o.Query != nil {
			text += " " + o.Query()
		}
		if o.Err != nil {
			text += ": " + o.Err.Error()
		}
		texts = append(texts, strings.Join(strings.Fields(text), " "))
	}
	r.all = nil
	return strings.Join(texts, "; ")
}

// Ensure that each verb is observed once, with what it was about.
func TestObserver(t *testing.T) {
	ctx := context.Background()
	r := &recorder{t: t}
	db := memory(t, &jay.Options{Observer: r})
	type User struct {
		ID   string `json:"-"`
		Name string
	}
	users, err := jay.CollectionOf[User](db)
	must(t, err)
	ignore := func(*jay.RawDocument) error { return nil }
	for _, c := range []struct {
		name string
		call func() error
		want string
	}{
		{"Put", func() error {
			return errOf(db.Put(ctx, "users/1", json.RawMessage(`{"Name":"Ann"}`), jay.InCollection("Users")))
		}, "put Users users/1 1"},
		{"Insert of one that is there", func() error { return errOf(db.Insert(ctx, "users/1", json.RawMessage(`{}`))) }, `insert users/1 0: insert "users/1": jay: document exists`},
		{"Collection.Insert", func() error { return errOf(users.Insert(ctx, &User{Name: "Bob"})) }, "insert Users users/1-A 1"},
		{"Replace", func() error { return errOf(db.Replace(ctx, "users/1", json.RawMessage(`{"Name":"Ann"}`))) }, "replace users/1 1"},
		{"Patch", func() error { return errOf(db.Patch(ctx, "users/1", jay.Set("Name", "Eva"))) }, "patch users/1 1"},
		{"InsertMany", func() error { return errOf(users.InsertMany(ctx, []*User{{Name: "a"}, {Name: "b"}})) }, "batch Users 2"},
		{"Get", func() error { return errOf(db.Get(ctx, "users/1")) }, "get Users users/1 1"},
		{"Get of nothing", func() error { _, _ = db.Get(ctx, "nobody"); return nil }, `get nobody 0: get "nobody": jay: document not found`},
		{"Collection.Get", func() error { return errOf(users.Get(ctx, "users/1")) }, "get Users users/1 1"},
		{"GetMany", func() error { return errOf(db.GetMany(ctx, "users/1", "x")) }, "get many 2"},
		{"Exists", func() error { return errOf(db.Exists(ctx, "users/1")) }, "exists users/1 0"},
		{"Read", func() error { return db.Read(ctx, "users/1", ignore) }, "read users/1 1"},
		{"Query", func() error { return errOf(users.Query().Limit(2).All(ctx)) }, "query Users 2 from Users limit 2"},
		{"Count", func() error { return errOf(users.Query().Count(ctx)) }, "count Users 4 from Users"},
		{"a loop that is left", func() error {
			for range users.Query().Iter(ctx) {
				break
			}
			return nil
		}, "query Users 1 from Users"},
		{"Documents", func() error {
			for range db.Documents(ctx, jay.Scan{Collection: "Users"}) {
			}
			return nil
		}, "scan Users 4"},
		{"Update", func() error {
			return db.Update(ctx, func(tx *jay.Tx) error {
				must(t, errOf(tx.Put(ctx, "users/2", json.RawMessage(`{}`))))
				return tx.Delete(ctx, "users/1-A")
			})
		}, "update 2"},
		{"an Update that fails", func() error {
			_ = db.Update(ctx, func(*jay.Tx) error { return errors.New("no") })
			return nil
		}, "update 0: no"},
		{"View", func() error {
			return db.View(ctx, func(tx *jay.Tx) error { return errOf(users.In(tx).Query().All(ctx)) })
		}, "query Users 3 from Users; view 0"},
		{"Delete", func() error { return db.Delete(ctx, "users/2") }, "delete users/2 1"},
		{"CompareExchange.Put", func() error { return errOf(db.CompareExchange().Put(ctx, "lock", 1, 0)) }, "compare exchange lock 1"},
		{"CompareExchange.Delete of nothing", func() error { _ = db.CompareExchange().Delete(ctx, "none", 5); return nil },
			`compare exchange none 0: compare exchange "none": jay: conflict on compare-exchange key "none": expected index 5, but there is no value`},
		{"a batch with a value", func() error {
			var b jay.Batch
			b.PutCompareExchange("other", 1, 0)
			return errOf(db.Apply(ctx, &b))
		}, "compare exchange other 1"},
		{"a batch that is repeated", func() error {
			for range 2 {
				var b jay.Batch
				b.PutCompareExchange("once", 1, 0)
				must(t, errOf(db.Apply(ctx, &b, jay.RequestID("1"))))
			}
			return nil
		}, "compare exchange once 1; compare exchange once 0"},
		{"BulkInsert", func() error {
			w, err := db.BulkInsert(nil)
			must(t, err)
			must(t, errOf(w.Put(ctx, "a/1", json.RawMessage(`{}`))))
			must(t, errOf(w.Put(ctx, "a/2", json.RawMessage(`{}`))))
			return w.Close()
		}, "bulk 2"},
		{"Flush", func() error { return db.Flush(ctx) }, "flush 0"},
		{"Sweep", func() error { return errOf(db.Sweep(ctx)) }, "sweep 0"},
		{"Compact", func() error { return db.Compact(ctx) }, "compact 0"},
		{"attachments", func() error { return errOf(db.Attachments("users/1").Put(ctx, "a", strings.NewReader("x"))) }, "get Users users/1 1; attach users/1 1"},
	} {
		r.take()
		err := c.call()
		got := r.take()
		if (err != nil) != (c.name == "Insert of one that is there") {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.want != "" && got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	must(t, db.Close())
	if errOf(db.Get(ctx, "users/1")) == nil {
		t.Error("a closed database answers")
	}
	if got := r.take(); !strings.HasPrefix(got, "get users/1 0: ") {
		t.Errorf("after Close: %q", got)
	}
}

// Ensure that the time of a loop over answers is not that of the query, and that an
// operation which panics ends, too.
func TestObserver_Duration(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := &recorder{t: t}
	db := memory(t, &jay.Options{Observer: r})
	must(t, errOf(db.Put(ctx, "a", json.RawMessage(`{}`))))
	r.take()
	began := time.Now()
	for range db.Documents(ctx, jay.Scan{}) {
		time.Sleep(50 * time.Millisecond)
	}
	whole := time.Since(began)
	if took := r.all[0].Duration; took <= 0 || took > whole-50*time.Millisecond {
		t.Errorf("the scan took %v of %v, 50 ms of which were those of the loop", took, whole)
	}
	r.take()
	func() {
		defer func() { recover() }()
		_ = db.View(ctx, func(*jay.Tx) error { panic("no") })
	}()
	if got := r.take(); got != "view 0: the operation was cut short by a panic" {
		t.Errorf("got %q", got)
	}
	must(t, db.Close())
}

// Ensure that slow operations are logged, with their texts cut, and quick ones are not.
func TestSlowOperation(t *testing.T) {
	ctx := context.Background()
	var log bytes.Buffer
	opts := &jay.Options{SlowOperation: time.Nanosecond, Logger: slog.New(slog.NewJSONHandler(&log, nil))}
	db := memory(t, opts)
	must(t, errOf(db.Put(ctx, "users/1", json.RawMessage(`{"Name":"Ann"}`), jay.InCollection("Users"))))
	long := strings.Repeat("ä", 2000)
	q, err := db.RQL("from Users where Name = '"+long+"'", nil)
	must(t, err)
	must(t, errOf(q.All(ctx)))
	_, _ = db.Get(ctx, "nobody")
	must(t, db.Close())

	type line struct {
		Msg, Level, Verb, Collection, ID, Query, Err string
		Took                                         int64
		Documents                                    int
	}
	var lines []line
	for text := range strings.Lines(log.String()) {
		var l line
		must(t, json.Unmarshal([]byte(text), &l))
		if l.Msg != "jay: slow operation" {
			continue
		}
		if l.Level != "WARN" || l.Took <= 0 {
			t.Errorf("%+v", l)
		}
		lines = append(lines, l)
	}
	if len(lines) != 3 {
		t.Fatalf("got %d slow operations, want 3:\n%s", len(lines), log.String())
	}
	if l := lines[0]; l.Verb != "put" || l.Collection != "Users" || l.ID != "users/1" || l.Documents != 1 {
		t.Errorf("%+v", l)
	}
	if l := lines[1]; l.Verb != "query" || !strings.HasPrefix(l.Query, "from Users where Name = 'ä") || len(l.Query) > 1010 || !strings.HasSuffix(l.Query, "ä…") {
		t.Errorf("%+v", l)
	}
	if l := lines[2]; l.Verb != "get" || l.Err == "" {
		t.Errorf("%+v", l)
	}

	log.Reset()
	opts.SlowOperation = time.Hour
	db = memory(t, opts)
	must(t, errOf(db.Put(ctx, "users/1", json.RawMessage(`{}`))))
	must(t, db.Close())
	if strings.Contains(log.String(), "slow") {
		t.Errorf("the log has %s", log.String())
	}

	for _, wrong := range []*jay.Options{{SlowOperation: -1, Logger: opts.Logger}, {SlowOperation: 1}} {
		if _, err := jay.OpenMemory(wrong); !errors.Is(err, jay.ErrOption) {
			t.Errorf("%v: got %v, want ErrOption", wrong.SlowOperation, err)
		}
	}
}
