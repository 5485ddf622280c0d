package schemas_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/definitions"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/schema"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
	"github.com/jaydb/jay/storage/memory"
	"github.com/jaydb/jay/storage/storagetest"
)

// required is a Compiler of schemas that have only the keyword "required", so that the tests here need no other module. It counts what it does.
type required struct{ compiled, validated atomic.Int64 }

func (c *required) Compile(text []byte) (schema.Validator, error) {
	var s map[string]json.RawMessage
	var names []string
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	for key := range s {
		if key != "required" {
			return nil, &schema.RuleError{Path: "/" + key, Rule: "only required is known"}
		}
	}
	if err := json.Unmarshal(s["required"], &names); err != nil {
		return nil, err
	}
	c.compiled.Add(1)
	return &validator{c, names}, nil
}

type validator struct {
	of    *required
	names []string
}

func (v *validator) Validate(body []byte, most int) (all []schema.Violation, count int) {
	v.of.validated.Add(1)
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		panic(err)
	}
	for _, name := range v.names {
		if name == "panic" {
			panic("as asked")
		}
		if _, found := members[name]; !found {
			if count++; count <= most {
				all = append(all, schema.Violation{Path: "", Keyword: "required", Message: "missing property " + name})
			}
		}
	}
	return all, count
}

var ctx = context.Background()

func open(t *testing.T, o *jay.Options) *jay.DB {
	t.Helper()
	db, err := jay.OpenMemory(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func rule(mode schema.Mode, names ...string) schema.Rule {
	text, _ := json.Marshal(map[string]any{"required": names})
	return schema.Rule{Collection: "Orders", Mode: mode, Schema: text}
}

func set(t *testing.T, db *jay.DB, r schema.Rule) {
	t.Helper()
	if err := db.Definitions().Schemas().Set(ctx, r); err != nil {
		t.Fatal(err)
	}
}

// wantRefused fails unless err is a *jay.SchemaError of so many violations.
func wantRefused(t *testing.T, what string, err error, count int) {
	t.Helper()
	var refused *jay.SchemaError
	if !errors.As(err, &refused) || !errors.Is(err, jay.ErrSchema) || refused.Count != count || refused.Collection != "Orders" {
		t.Errorf("%s: got %v (%+v), want a SchemaError with %d violations", what, err, refused, count)
	}
}

// Ensure that each way to write a document is refused if the document violates the rule, that nothing is written then, and that a document that
// fits is written.
func TestRule_EveryWrite(t *testing.T) {
	t.Parallel()
	db := open(t, &jay.Options{Schemas: new(required)})
	orders, err := jay.CollectionOf[Order](db)
	jaytest.Must(t, err)
	put(t, db, "orders/old", `{"Note":"there before","Total":1}`)
	set(t, db, rule(schema.Refuse, "Total", "Note"))

	body := func(fits bool) []byte {
		if fits {
			return []byte(`{"Total":1,"Note":"n"}`)
		}
		return []byte(`{"Total":1}`)
	}
	value := func(fits bool) *Order {
		o := &Order{Total: 1}
		if fits {
			o.Note = "n"
		}
		return o
	}
	edit := func(fits bool) jay.PatchOption {
		if fits {
			return jay.Set("Note", fmt.Sprint("patched ", time.Now()))
		}
		return jay.Unset("Note")
	}
	in := jay.InCollection("Orders")
	writes := map[string]func(fits bool) error{
		"insert":  func(fits bool) error { _, err := db.Insert(ctx, "orders/", body(fits), in); return err },
		"put":     func(fits bool) error { _, err := db.Put(ctx, "orders/1", body(fits), in); return err },
		"store":   func(fits bool) error { _, err := db.Store(ctx, "Orders", body(fits)); return err },
		"replace": func(fits bool) error { _, err := db.Replace(ctx, "orders/old", body(fits)); return err },
		"put of what is there, without a collection": func(fits bool) error { _, err := db.Put(ctx, "orders/old", body(fits)); return err },
		"typed insert": func(fits bool) error { _, err := orders.Insert(ctx, value(fits)); return err },
		"patch":        func(fits bool) error { _, err := db.Patch(ctx, "orders/old", edit(fits)); return err },
		"patch or insert": func(fits bool) error {
			id := fmt.Sprint("orders/p", time.Now().UnixNano())
			_, err := db.Patch(ctx, id, jay.Set("Total", 2), jay.OrInsert(json.RawMessage(body(fits))), in)
			return err
		},
		"patch or insert patched": func(fits bool) error {
			id := fmt.Sprint("orders/q", time.Now().UnixNano())
			_, err := db.Patch(ctx, id, edit(fits), jay.OrInsertPatched(json.RawMessage(`{"Total":1,"Note":"to go"}`)), in)
			return err
		},
		"batch": func(fits bool) error {
			b := new(jay.Batch)
			b.Put("orders/a", body(true), in)
			b.Patch("orders/a", edit(fits))
			_, err := db.Apply(ctx, b)
			return err
		},
		"large batch": func(fits bool) error {
			b := new(jay.Batch)
			for i := range 200 {
				b.Put(fmt.Sprint("orders/large", i), body(fits || i != 150), in)
			}
			_, err := db.Apply(ctx, b)
			return err
		},
		"transaction": func(fits bool) error {
			return db.Update(ctx, func(tx *jay.Tx) error { _, err := tx.Put(ctx, "orders/t", body(fits), in); return err })
		},
		"patch in a transaction": func(fits bool) error {
			return db.Update(ctx, func(tx *jay.Tx) error { _, err := tx.Patch(ctx, "orders/old", edit(fits)); return err })
		},
		"session": func(fits bool) error {
			s := db.OpenSession()
			if err := s.Store(ctx, value(fits)); err != nil {
				return err
			}
			return s.SaveChanges(ctx)
		},
		"bulk": func(fits bool) error {
			w, err := db.BulkInsert(nil)
			if err != nil {
				return err
			}
			_, err = w.Put(ctx, "orders/bulk", body(fits), in)
			return errors.Join(err, w.Close())
		},
		"change by query": func(fits bool) error {
			_, err := db.Query("Orders").Where(jay.Eq("Total", 1)).Patch(ctx, edit(fits))
			return err
		},
	}
	for _, name := range slices.Sorted(maps.Keys(writes)) {
		wantRefused(t, name, writes[name](false), 1)
	}
	n, err := db.Query("Orders").Count(ctx)
	if err != nil || n != 1 {
		t.Errorf("got %d documents (%v) after refused writes, want 1", n, err)
	}
	for _, name := range slices.Sorted(maps.Keys(writes)) {
		if err := writes[name](true); err != nil {
			t.Errorf("%s of what fits: %v", name, err)
		}
	}
	jaytest.Must(t, db.Delete(ctx, "orders/1"))
	put(t, db, "elsewhere/1", `{}`, jay.InCollection("Others"))
	jaytest.Verify(t, db)
}

// Order is the entity of the session: its collection is Orders.
type Order struct {
	ID    string `json:"-"`
	Total int
	Note  string `json:",omitempty"`
}

func put(t *testing.T, db *jay.DB, id, body string, opts ...jay.WriteOption) {
	t.Helper()
	if len(opts) == 0 {
		opts = append(opts, jay.InCollection("Orders"))
	}
	if _, err := db.Put(ctx, id, []byte(body), opts...); err != nil {
		t.Fatal(err)
	}
}

// Ensure that a document is validated once for each write, without its @metadata, and that a program which keeps writing pays for nothing without a rule.
func TestRule_ValidatesOnce(t *testing.T) {
	t.Parallel()
	c := new(required)
	db := open(t, &jay.Options{Schemas: c})
	put(t, db, "orders/0", `{}`)
	if n := c.validated.Load(); n != 0 {
		t.Errorf("without a rule: %d validations", n)
	}
	set(t, db, rule(schema.Refuse, "Total"))
	if _, err := db.Definitions().Schemas().Wait(ctx, "orders"); err != nil {
		t.Fatal(err)
	}
	before := c.validated.Load()
	put(t, db, "orders/1", `{"Total":1}`)
	if n := c.validated.Load() - before; n != 1 {
		t.Errorf("an insert was validated %d times", n)
	}
	if _, err := db.Put(ctx, "orders/2", []byte(`{"@metadata":{"@collection":"Orders","Total":1}}`)); !errors.Is(err, jay.ErrSchema) {
		t.Errorf("a member of @metadata counts as one of the body: %v", err)
	}
	if _, err := db.Patch(ctx, "orders/0", jay.Set("Total", 3)); err != nil {
		t.Error(err)
	}
	if n := c.validated.Load() - before; n != 3 {
		t.Errorf("three writes were validated %d times", n)
	}
}

// Ensure that a write that was prepared before a rule was set is checked again when it commits: also in a transaction that is open meanwhile.
func TestRule_SetInTransaction(t *testing.T) {
	t.Parallel()
	db := open(t, &jay.Options{Schemas: new(required)})
	err := db.Update(ctx, func(tx *jay.Tx) error {
		if _, err := tx.Put(ctx, "orders/1", []byte(`{}`), jay.InCollection("Orders")); err != nil {
			return err
		}
		return db.Definitions().Schemas().Set(ctx, rule(schema.Refuse, "Total"))
	})
	wantRefused(t, "a transaction that was open", err, 1)
	if found, err := db.Exists(ctx, "orders/1"); found || err != nil {
		t.Errorf("it is there: %v, %v", found, err)
	}
}

// Ensure that no document that violates a rule is committed after Set has returned, however many writers there are, and that the report has all that
// were committed before.
func TestRule_SetBesideWriters(t *testing.T) {
	t.Parallel()
	db := open(t, &jay.Options{Schemas: new(required), Durability: jay.Relaxed})
	var accepted atomic.Int64
	stop := make(chan struct{})
	var group sync.WaitGroup
	for w := range 4 {
		group.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				_, err := db.Put(ctx, fmt.Sprintf("orders/%d-%d", w, i), []byte(`{}`), jay.InCollection("Orders"))
				switch {
				case err == nil:
					accepted.Add(1)
				case errors.Is(err, jay.ErrSchema):
					return
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	for accepted.Load() < 200 {
		runtime.Gosched()
	}
	set(t, db, rule(schema.Refuse, "Total"))
	group.Wait() // each has been refused
	close(stop)
	report, err := db.Definitions().Schemas().Wait(ctx, "Orders")
	jaytest.Must(t, err)
	if n := accepted.Load(); report.Documents != n || report.Violating != n || len(report.First) != schema.MaxReported {
		t.Errorf("%d were accepted, and the report has %d, %d of them violating, and lists %d", n, report.Documents, report.Violating, len(report.First))
	}
}

// Ensure that the report has all documents that the rule has not kept out, also if the pass looks for rules while this one is being set.
func TestRule_SetBesideLooks(t *testing.T) {
	t.Parallel()
	for round := range 100 {
		db := open(t, &jay.Options{Schemas: new(required), Durability: []jay.Durability{jay.Synced, jay.Relaxed}[round%2]})
		var accepted atomic.Int64
		var group sync.WaitGroup
		for w := range 8 {
			group.Go(func() {
				for i := 0; ; i++ {
					_, err := db.Put(ctx, fmt.Sprintf("orders/%d-%d", w, i), []byte(`{}`), jay.InCollection("Orders"))
					if errors.Is(err, jay.ErrSchema) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					accepted.Add(1)
				}
			})
		}
		looking, stop := context.WithCancel(ctx)
		group.Go(func() {
			for looking.Err() == nil {
				parts.Of(db).Validate.Wake()
				runtime.Gosched()
			}
		})
		for accepted.Load() < 20 {
			runtime.Gosched()
		}
		set(t, db, rule(schema.Refuse, "Total"))
		stop()
		group.Wait()
		report, err := db.Definitions().Schemas().Wait(ctx, "Orders")
		jaytest.Must(t, err)
		if n := accepted.Load(); report.Documents != n {
			t.Fatalf("%d were accepted, and the report has %d", n, report.Documents)
		}
	}
}

// Ensure that concurrent patches of one document, which find other versions than they were made for, are all checked.
func TestRule_ConcurrentPatches(t *testing.T) {
	t.Parallel()
	db := open(t, &jay.Options{Schemas: new(required), Durability: jay.Relaxed})
	put(t, db, "orders/1", `{"Total":0,"Note":"n"}`)
	set(t, db, rule(schema.Refuse, "Total", "Note"))
	var group sync.WaitGroup
	for w := range 4 {
		group.Go(func() {
			for i := range 50 {
				edit := jay.Increment("Total", 1)
				if w == 0 && i%5 == 0 {
					edit = jay.Unset("Note")
				}
				if _, err := db.Patch(ctx, "orders/1", edit); err != nil && !errors.Is(err, jay.ErrSchema) {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	jaytest.Must(t, db.Flush(ctx))
	doc, err := db.Get(ctx, "orders/1")
	jaytest.Must(t, err)
	if got := string(doc.Body()); got != `{"Total":190,"Note":"n"}` {
		t.Errorf("got %s", got)
	}
}

// Ensure that a rule that warns lets the write pass, counts documents and not runs, and logs at most once a second.
func TestRule_Warn(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	db := open(t, &jay.Options{Schemas: new(required), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	set(t, db, rule(schema.Warn, "Total"))
	for i := range 5 {
		put(t, db, fmt.Sprint("orders/", i), `{}`)
	}
	put(t, db, "orders/fits", `{"Total":1}`)
	if _, err := db.Insert(ctx, "orders/1", []byte(`{}`), jay.InCollection("Orders")); !errors.Is(err, jay.ErrExists) {
		t.Error(err)
	}
	stats, err := db.Stats(ctx)
	jaytest.Must(t, err)
	if want := []jay.SchemaWarning{{Collection: "Orders", Documents: 5}}; !slices.Equal(stats.SchemaWarnings, want) {
		t.Errorf("got %v, want %v", stats.SchemaWarnings, want)
	}
	jaytest.Must(t, db.Close())
	if n := strings.Count(log.String(), "violates the schema"); n < 1 || n > 3 {
		t.Errorf("%d messages:\n%s", n, &log)
	}
	if !strings.Contains(log.String(), "missing property Total") {
		t.Errorf("the messages do not name the violation:\n%s", &log)
	}
}

// Ensure that rules are refused that cannot be, by an error that names the rule, and change nothing.
func TestRule_Refused(t *testing.T) {
	t.Parallel()
	db := open(t, &jay.Options{Schemas: new(required)})
	with := func(edit func(r *schema.Rule)) schema.Rule {
		r := rule(schema.Refuse, "Total")
		edit(&r)
		return r
	}
	deep := strings.Repeat(`{"a":`, schema.MaxDepth) + `{}` + strings.Repeat(`}`, schema.MaxDepth)
	for name, r := range map[string]schema.Rule{
		"no collection":   with(func(r *schema.Rule) { r.Collection = "" }),
		"a system's name": with(func(r *schema.Rule) { r.Collection = "@hilo" }),
		"an unknown mode": with(func(r *schema.Rule) { r.Mode = "strict" }),
		"no mode":         with(func(r *schema.Rule) { r.Mode = "" }),
		"no schema":       with(func(r *schema.Rule) { r.Schema = nil }),
		"an array":        with(func(r *schema.Rule) { r.Schema = []byte(`[]`) }),
		"true":            with(func(r *schema.Rule) { r.Schema = []byte(`true`) }),
		"cut JSON":        with(func(r *schema.Rule) { r.Schema = []byte(`{"required":`) }),
		"a repeated key":  with(func(r *schema.Rule) { r.Schema = []byte(`{"required":[],"required":["a"]}`) }),
		"@metadata":       with(func(r *schema.Rule) { r.Schema = []byte(`{"required":[],"@metadata":{}}`) }),
		"too deep":        with(func(r *schema.Rule) { r.Schema = []byte(deep) }),
		"too long": with(func(r *schema.Rule) {
			r.Schema = []byte(`{"required":["` + strings.Repeat("a", schema.MaxBytes) + `"]}`)
		}),
		"of the compiler":  with(func(r *schema.Rule) { r.Schema = []byte(`{"type":"object"}`) }),
		"of the compiler2": with(func(r *schema.Rule) { r.Schema = []byte(`{"required":1}`) }),
	} {
		err := db.Definitions().Schemas().Set(ctx, r)
		var refused *jay.SchemaRuleError
		if !errors.As(err, &refused) || !errors.Is(err, jay.ErrSchemaRule) || refused.Collection != r.Collection || refused.Rule == "" {
			t.Errorf("%s: got %v", name, err)
		}
	}
	long := with(func(r *schema.Rule) { r.Collection = strings.Repeat("a", 513) })
	if err := db.Definitions().Schemas().Set(ctx, long); !errors.Is(err, jay.ErrInvalidDocument) {
		t.Errorf("a long name: got %v", err)
	}
	if all, err := db.Definitions().Schemas().List(ctx); len(all) != 0 || err != nil {
		t.Errorf("got %v, %v after refused rules", all, err)
	}
	if n := parts.Of(db).Env.Engine.Format().Number; n != storage.BaseFormat {
		t.Errorf("the format is %d after refused rules", n)
	}
	for _, err := range []error{db.Definitions().Schemas().Remove(ctx, "Orders"), second(db.Definitions().Schemas().Get(ctx, "Orders")), second(db.Definitions().Schemas().Report(ctx, "Orders")), second(db.Definitions().Schemas().Wait(ctx, "Orders"))} {
		if !errors.Is(err, jay.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	}
	// The names of the kinds cannot be used from outside.
	if err := db.Definitions().Change(ctx, jay.DefinitionChange{Kind: "@schemas", Name: "orders", Value: []byte(`{}`)}); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("got %v, want ErrUsage", err)
	}
}

func second[T any](_ T, err error) error { return err }

// Ensure that a database has at most so many rules, and bytes of schemas, and that a rule can be replaced at the limit.
func TestRule_Bounds(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	db := open(t, &jay.Options{Schemas: new(required), Durability: jay.Relaxed})
	filled := rule(schema.Refuse, strings.Repeat("a", schema.MaxBytes-100))
	fits := schema.MaxTotalBytes / len(filled.Schema)
	var changes []definitions.Change
	for i := range fits {
		filled.Collection = fmt.Sprint("C", i)
		value, err := json.Marshal(filled)
		jaytest.Must(t, err)
		changes = append(changes, definitions.Schemas.Change(filled.Collection, value))
	}
	jaytest.Must(t, parts.Of(db).Env.Engine.Update(ctx, true, func(tx storage.Tx) error { return definitions.Stage(tx, changes) }))
	filled.Collection = "more"
	var refused *jay.SchemaRuleError
	if err := db.Definitions().Schemas().Set(ctx, filled); !errors.As(err, &refused) || !strings.Contains(refused.Rule, fmt.Sprint(schema.MaxTotalBytes)) {
		t.Errorf("got %v beyond %d bytes", err, schema.MaxTotalBytes)
	}
	filled.Collection = "C0"
	set(t, db, filled)
}

// Ensure that a program without a compiler reads and deletes, is refused other writes by an error that says what to do, and can switch the rule off;
// and that what the compiler refuses is missing in the same way.
func TestRule_WithoutCompiler(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := jaytest.Open(t, dir, &jay.Options{Schemas: new(required)})
	put(t, db, "orders/1", `{"Total":1}`)
	put(t, db, "orders/2", `{"Total":1}`)
	set(t, db, rule(schema.Refuse, "Total"))
	if _, err := db.Definitions().Schemas().Wait(ctx, "Orders"); err != nil {
		t.Fatal(err)
	}
	jaytest.Must(t, db.Close())

	db = jaytest.Open(t, dir, nil)
	defer func() { _ = db.Close() }()
	var missing *jay.SchemaCompilerError
	for what, err := range map[string]error{
		"put":    second(db.Put(ctx, "orders/3", []byte(`{"Total":1}`), jay.InCollection("Orders"))),
		"patch":  second(db.Patch(ctx, "orders/1", jay.Set("Total", 2))),
		"update": db.Update(ctx, func(tx *jay.Tx) error { _, err := tx.Put(ctx, "orders/1", []byte(`{}`)); return err }),
		"set":    db.Definitions().Schemas().Set(ctx, rule(schema.Warn, "Note")),
		"check":  second(db.Definitions().Schemas().Check(ctx, rule(schema.Warn, "Note"), nil)),
	} {
		if !errors.As(err, &missing) || !errors.Is(err, jay.ErrSchemaRule) || !strings.Contains(err.Error(), "Options.Schemas") {
			t.Errorf("%s: got %v, want a SchemaCompilerError", what, err)
		}
	}
	if doc, err := db.Get(ctx, "orders/1"); err != nil || string(doc.Body()) != `{"Total":1}` {
		t.Errorf("got %v, %v", doc, err)
	}
	jaytest.Must(t, db.Delete(ctx, "orders/2"))
	put(t, db, "others/1", `{}`, jay.InCollection("Others"))
	if report, err := db.Definitions().Schemas().Report(ctx, "orders"); err != nil || report.Documents != 2 {
		t.Errorf("the report is %+v, %v", report, err)
	}
	off, err := db.Definitions().Schemas().Get(ctx, "ORDERS")
	jaytest.Must(t, err)
	off.Mode = schema.Off
	set(t, db, off)
	put(t, db, "orders/3", `{}`)
	jaytest.Verify(t, db)
}

// Ensure that a validator that panics refuses the document and not the program.
func TestRule_Panics(t *testing.T) {
	t.Parallel()
	db := open(t, &jay.Options{Schemas: new(required)})
	set(t, db, rule(schema.Refuse, "panic"))
	_, err := db.Store(ctx, "Orders", []byte(`{}`))
	wantRefused(t, "a panic", err, 1)
	if err == nil || !strings.Contains(err.Error(), "as asked") {
		t.Errorf("got %v", err)
	}
}

// Ensure that the report survives, that a rule that is set again is validated again, and that one whose validation did not end is validated when the
// database is opened.
func TestPass(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := new(required)
	db := jaytest.Open(t, dir, &jay.Options{Schemas: c})
	b := new(jay.Batch)
	for i := range 2500 {
		body := `{"Total":1}`
		if i%10 == 0 {
			body = `{}`
		}
		b.Put(fmt.Sprintf("orders/%04d", i), []byte(body), jay.InCollection("Orders"))
	}
	if _, err := db.Apply(ctx, b); err != nil {
		t.Fatal(err)
	}
	set(t, db, rule(schema.Warn, "Total"))
	report, err := db.Definitions().Schemas().Wait(ctx, "Orders")
	jaytest.Must(t, err)
	if report.Documents != 2500 || report.Violating != 250 || len(report.First) != schema.MaxReported || report.First[1].ID != "orders/0010" || report.Running {
		t.Errorf("got %d documents, %d violate, %d are listed", report.Documents, report.Violating, len(report.First))
	}
	jaytest.Must(t, db.Close())

	db = jaytest.Open(t, dir, &jay.Options{Schemas: c})
	validated := c.validated.Load()
	again, err := db.Definitions().Schemas().Wait(ctx, "Orders")
	jaytest.Must(t, err)
	if again.Violating != 250 || !again.Ended.Equal(report.Ended) || c.validated.Load() != validated {
		t.Errorf("after it was opened again: %d violate, it ended at %v and not at %v, and %d documents were validated", again.Violating, again.Ended, report.Ended, c.validated.Load()-validated)
	}
	set(t, db, rule(schema.Refuse, "Total"))
	jaytest.Must(t, db.Close()) // perhaps before the validation has ended

	db = jaytest.Open(t, dir, &jay.Options{Schemas: c})
	defer func() { _ = db.Close() }()
	third, err := db.Definitions().Schemas().Wait(ctx, "Orders")
	jaytest.Must(t, err)
	if third.Violating != 250 || third.Number <= again.Number {
		t.Errorf("of the rule that was set again: %d violate, number %d", third.Violating, third.Number)
	}
	var steps int
	tried, err := db.Definitions().Schemas().Check(ctx, rule(schema.Off, "Note"), func(int64) { steps++ })
	if err != nil || tried.Documents != 2500 || tried.Violating != 2500 || steps < 3 || tried.Number != 0 {
		t.Errorf("Check: %d of %d documents in %d steps, %v", tried.Violating, tried.Documents, steps, err)
	}
	jaytest.Verify(t, db)
}

// Ensure that renaming a collection moves its rule without checking its documents, and that a rule of the new name stands in the way.
func TestMeetings_Rename(t *testing.T) {
	t.Parallel()
	db := open(t, &jay.Options{Schemas: new(required)})
	put(t, db, "orders/1", `{}`)
	set(t, db, rule(schema.Refuse, "Total"))
	other := rule(schema.Refuse, "Note")
	other.Collection = "Sales"
	set(t, db, other)
	var refused *jay.SchemaRuleError
	if _, err := db.RenameCollection(ctx, "Orders", "Sales"); !errors.As(err, &refused) {
		t.Errorf("got %v, want a SchemaRuleError", err)
	}
	if _, err := db.RenameCollection(ctx, "Orders", "Deals"); err != nil { // the other one has not begun
		t.Errorf("after a refused rename: %v", err)
	}
	_, err := db.RenameCollection(ctx, "Deals", "Orders")
	jaytest.Must(t, err)
	jaytest.Must(t, db.Definitions().Schemas().Remove(ctx, "Sales"))
	if n, err := db.RenameCollection(ctx, "Orders", "Sales"); n != 1 || err != nil {
		t.Fatalf("got %d, %v", n, err)
	}
	all, err := db.Definitions().Schemas().List(ctx)
	if err != nil || len(all) != 1 || all[0].Collection != "Sales" || all[0].Mode != schema.Refuse {
		t.Errorf("got %v, %v", all, err)
	}
	if _, err := db.Store(ctx, "Sales", []byte(`{}`)); !errors.Is(err, jay.ErrSchema) {
		t.Errorf("got %v", err)
	}
	put(t, db, "orders/2", `{}`) // the old name is free
	jaytest.Verify(t, db)
}

// Ensure that a backup carries the rules and what violates them, and that the restored database has both.
func TestMeetings_Backup(t *testing.T) {
	t.Parallel()
	db := open(t, &jay.Options{Schemas: new(required)})
	put(t, db, "orders/1", `{}`)
	set(t, db, rule(schema.Refuse, "Total"))
	if _, err := db.Definitions().Schemas().Wait(ctx, "Orders"); err != nil {
		t.Fatal(err)
	}
	var stream bytes.Buffer
	if _, err := db.Backup(ctx, &stream); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "restored")
	_, err := jay.Restore(ctx, dir, jay.RestoreOptions{CopyTag: "B"}, &stream)
	jaytest.Must(t, err)
	again := jaytest.Open(t, dir, &jay.Options{Schemas: new(required)})
	defer func() { _ = again.Close() }()
	report, err := again.Definitions().Schemas().Report(ctx, "Orders")
	if err != nil || report.Violating != 1 {
		t.Errorf("got %+v, %v", report, err)
	}
	_, err = again.Put(ctx, "orders/1", []byte(`{"a":1}`))
	wantRefused(t, "a put", err, 1)
	jaytest.Verify(t, again)
}

// Ensure that documents with a rule expire, are refreshed and have their attachments changed though they violate it, also without a compiler.
func TestMeetings_BodyStays(t *testing.T) {
	t.Parallel()
	db := open(t, &jay.Options{Schemas: new(required)})
	put(t, db, "orders/1", `{}`)
	set(t, db, rule(schema.Refuse, "Total"))
	_, err := db.Patch(ctx, "orders/1", jay.ExpiresAt(time.Now().Add(time.Hour)))
	jaytest.Must(t, err)
	if _, err := db.Attachments("orders/1").Put(ctx, "a", strings.NewReader("text")); err != nil {
		t.Error(err)
	}
}

// Ensure that a program of an older version refuses a database with rules by the name of the feature, once the first rule is set.
func TestFeature_OlderProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := jaytest.Open(t, dir, &jay.Options{Schemas: new(required)})
	number := func() int { return parts.Of(db).Env.Engine.Format().Number }
	put(t, db, "orders/1", `{}`)
	if n := number(); n != storage.BaseFormat {
		t.Errorf("without a rule, the format is %d", n)
	}
	set(t, db, rule(schema.Refuse, "Total"))
	if n := number(); n != storage.FeatureSchemas.Format {
		t.Errorf("with a rule, the format is %d", n)
	}
	jaytest.Must(t, db.Close())
	older := storage.Features(storage.AllFeatures[:storage.FeatureSchemas.Format-storage.BaseFormat-1])
	_, err := jay.Open(dir, &jay.Options{Engine: lsm.Driver{Options: lsm.Options{Features: older}}})
	var newer *jay.FormatError
	if !errors.As(err, &newer) || newer.Found != 17 || !slices.Contains(newer.Features, "schemas") {
		t.Errorf("an older program: got %v", err)
	}
}

// held is a Compiler whose validators tell of a document, and wait until they may go on.
type held struct{ begun, goOn chan struct{} }

func (h held) Compile([]byte) (schema.Validator, error) { return h, nil }

func (h held) Validate([]byte, int) ([]schema.Violation, int) {
	select {
	case h.begun <- struct{}{}:
	default:
	}
	<-h.goOn
	return nil, 0
}

// Ensure that the validation in the background begins anew after an error of the moment: its report comes without a call, and without a reopen.
func TestPass_AfterAnError(t *testing.T) {
	t.Parallel()
	store := &storagetest.Commits{Driver: new(memory.Driver)}
	h := held{make(chan struct{}, 1), make(chan struct{})}
	db, err := jay.Open("store", &jay.Options{Engine: store, Schemas: h})
	jaytest.Must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	put(t, db, "orders/1", `{}`)
	set(t, db, rule(schema.Refuse))
	<-h.begun
	store.Fail(storagetest.Unavailable, 1) // the commit of the report
	close(h.goOn)
	var report schema.Report
	for end := time.Now().Add(time.Minute); report.Ended.IsZero() && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		report, err = db.Definitions().Schemas().Report(ctx, "Orders") // and not Wait, which wakes the validation
		jaytest.Must(t, err)
	}
	if report.Ended.IsZero() || report.Documents != 1 || report.Violating != 0 {
		t.Errorf("got %+v", report)
	}
}

// Ensure that processes that share a store follow a rule at once that one of them sets, changes or removes.
func TestMeetings_SharedStore(t *testing.T) {
	t.Parallel()
	driver := &memory.Driver{Shared: true}
	openShared := func(tag string) *jay.DB {
		db, err := jay.Open("store", &jay.Options{Engine: driver, NodeTag: tag, Schemas: new(required)})
		jaytest.Must(t, err)
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	a, b := openShared("A"), openShared("B")
	put(t, b, "orders/1", `{}`)
	set(t, a, rule(schema.Refuse, "Total"))
	_, err := b.Put(ctx, "orders/2", []byte(`{}`), jay.InCollection("Orders"))
	wantRefused(t, "the other process", err, 1)
	set(t, b, rule(schema.Refuse, "Total", "Note"))
	_, err = a.Put(ctx, "orders/2", []byte(`{}`), jay.InCollection("Orders"))
	wantRefused(t, "after a change", err, 2)
	report, err := a.Definitions().Schemas().Wait(ctx, "Orders")
	if err != nil || report.Violating != 1 {
		t.Errorf("got %+v, %v", report, err)
	}
	jaytest.Must(t, a.Definitions().Schemas().Remove(ctx, "Orders"))
	put(t, b, "orders/2", `{}`)
}

// Ensure that the report on the new name of a collection has all documents, though most were moved after the pass that began with the first of them.
func TestRename_Report(t *testing.T) {
	t.Parallel()
	db := open(t, &jay.Options{Schemas: new(required)})
	for i := range 300 {
		put(t, db, fmt.Sprint("orders/", i), `{}`)
	}
	set(t, db, rule(schema.Warn, "Total"))
	schemas := db.Definitions().Schemas()
	_, err := schemas.Wait(ctx, "Orders")
	jaytest.Must(t, err)
	_, err = db.RenameCollection(ctx, "Orders", "Sales", jay.CollectionProgress(func(int64) {
		if _, err := schemas.Wait(ctx, "Sales"); err != nil {
			t.Error(err)
		}
	}))
	jaytest.Must(t, err)
	report, err := schemas.Wait(ctx, "Sales")
	jaytest.Must(t, err)
	if report.Documents != 300 || report.Violating != 300 {
		t.Errorf("of 300 documents the report has %d, %d of them violating", report.Documents, report.Violating)
	}
}
