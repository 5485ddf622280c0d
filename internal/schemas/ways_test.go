package schemas_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/schema"
	"github.com/jaydb/jay/standby"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that a standby has what its source has, documents that violate the rule included, that a program without a compiler follows as well, and
// that its writes are checked after the promotion.
func TestWays_Standby(t *testing.T) {
	t.Parallel()
	db := open(t, &jay.Options{Schemas: new(required)})
	put(t, db, "orders/1", `{}`)
	set(t, db, rule(schema.Warn, "Total"))
	put(t, db, "orders/2", `{}`)
	disk := storagetest.NewDisk()
	s, err := standby.Open("copy", standby.From(db), standby.Options{Database: &jay.Options{FS: disk}})
	jaytest.Must(t, err)
	put(t, db, "orders/3", `{}`)
	set(t, db, rule(schema.Refuse, "Total"))
	report, err := db.Definitions().Schemas().Wait(ctx, "Orders")
	jaytest.Must(t, err)
	reader, err := s.DB(ctx)
	jaytest.Must(t, err)
	there := func() bool {
		copied, err := reader.Definitions().Schemas().Report(ctx, "Orders")
		return err == nil && copied.Violating == 3 && copied.Number == report.Number && copied.Ended.Equal(report.Ended)
	}
	for more := jaytest.Patience(); more(there()); {
	}
	if !there() {
		t.Error("the standby has not the report of its source")
	}
	if found, err := reader.Exists(ctx, "orders/3"); !found || err != nil {
		t.Errorf("got %v, %v", found, err)
	}
	jaytest.Must(t, s.Close())

	promoted := &jay.Options{FS: disk, Schemas: new(required), MustExist: true}
	_, err = jay.Promote(ctx, "copy", jay.PromoteOptions{CopyTag: "B", Options: &jay.Options{FS: disk}})
	jaytest.Must(t, err)
	own, err := jay.Open("copy", promoted)
	jaytest.Must(t, err)
	defer func() { _ = own.Close() }()
	_, err = own.Put(ctx, "orders/3", []byte(`{"Note":"n"}`))
	wantRefused(t, "a write after the promotion", err, 1)
	put(t, own, "orders/3", `{"Total":1}`)
	jaytest.Verify(t, own)
}

// Ensure that those who only read, at a standby or beside the program that has the database, validate by the rules as they are, though
// they remember them.
func TestWays_Readers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := jay.Open(dir, &jay.Options{Schemas: new(required)})
	jaytest.Must(t, err)
	defer func() { _ = db.Close() }()
	put(t, db, "orders/1", `{"Total":1}`)
	s, err := standby.Open("copy", standby.From(db), standby.Options{Database: &jay.Options{FS: storagetest.NewDisk(), Schemas: new(required)}})
	jaytest.Must(t, err)
	defer func() { _ = s.Close() }()
	follows, err := s.DB(ctx)
	jaytest.Must(t, err)
	looks, err := jay.Look(dir, &jay.Options{Schemas: new(required)})
	jaytest.Must(t, err)
	defer func() { _ = looks.Close() }()
	validate := func(text string, refused bool) {
		t.Helper()
		jaytest.Must(t, db.Flush(ctx))
		for name, reader := range map[string]*jay.DB{"a standby": follows, "a look": looks} {
			agrees := func() bool {
				err := reader.Definitions().Schemas().Validate(ctx, "Orders", []byte(`{"Note":"n"}`))
				violated := (*jay.SchemaError)(nil)
				return errors.As(err, &violated) == refused && (refused || err == nil)
			}
			for more := jaytest.Patience(); more(agrees()); {
			}
			if !agrees() {
				t.Fatalf("%s, %s: a violation counts: %v", text, name, !refused)
			}
		}
	}
	validate("no rule", false)
	set(t, db, rule(schema.Refuse, "Total"))
	validate("a rule", true)
	set(t, db, rule(schema.Refuse, "Note"))
	validate("another rule", false)
	set(t, db, rule(schema.Refuse, "Total"))
	validate("the first rule again", true)
	jaytest.Must(t, db.Definitions().Schemas().Remove(ctx, "Orders"))
	validate("none", false)
}

// Ensure that Repair copies rules and documents without checking these, and needs no compiler.
func TestWays_Repair(t *testing.T) {
	t.Parallel()
	disk := storagetest.NewDisk()
	db, err := jay.Open("db", &jay.Options{FS: disk, Schemas: new(required)})
	jaytest.Must(t, err)
	put(t, db, "orders/1", `{}`)
	set(t, db, rule(schema.Refuse, "Total"))
	jaytest.Must(t, db.Close())
	dir := filepath.Join(t.TempDir(), "repaired")
	report, err := jay.Repair(ctx, "db", dir, &jay.Options{FS: disk}, nil)
	if err != nil || len(report.Lost) > 0 {
		t.Fatalf("got %+v, %v", report, err)
	}
	db, err = jay.Open(dir, &jay.Options{Schemas: new(required), MustExist: true})
	jaytest.Must(t, err)
	defer func() { _ = db.Close() }()
	if doc, err := db.Get(ctx, "orders/1"); err != nil || string(doc.Body()) != `{}` {
		t.Errorf("got %v, %v", doc, err)
	}
	_, err = db.Put(ctx, "orders/1", []byte(`{"Note":"n"}`))
	wantRefused(t, "a write into what was repaired", err, 1)
	if got, err := db.Definitions().Schemas().Wait(ctx, "Orders"); err != nil || got.Violating != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	jaytest.Verify(t, db)
}

// Ensure that reverting a document to a revision is a write of the old body: it is refused if that violates the rule, and the document stays.
func TestWays_Revert(t *testing.T) {
	t.Parallel()
	db := open(t, &jay.Options{Schemas: new(required)})
	jaytest.Must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: &jay.RevisionRule{}}))
	old, err := db.Put(ctx, "orders/1", []byte(`{}`), jay.InCollection("Orders"))
	jaytest.Must(t, err)
	fits, err := db.Put(ctx, "orders/1", []byte(`{"Total":1}`))
	jaytest.Must(t, err)
	put(t, db, "orders/1", `{"Total":2}`)
	set(t, db, rule(schema.Refuse, "Total"))
	_, err = db.Revisions().Revert(ctx, "orders/1", old.ChangeVector)
	wantRefused(t, "a revision that violates the rule", err, 1)
	if doc, err := db.Get(ctx, "orders/1"); err != nil || string(doc.Body()) != `{"Total":2}` {
		t.Errorf("got %v, %v", doc, err)
	}
	if _, err := db.Revisions().Revert(ctx, "orders/1", fits.ChangeVector); err != nil {
		t.Error(err)
	}
	jaytest.Must(t, db.Delete(ctx, "orders/1"))
	_, err = db.Revisions().Revert(ctx, "orders/1", old.ChangeVector)
	wantRefused(t, "a revision of what was deleted", err, 1)
}

// Ensure that the program that has the database open checks the writes of the ones that look into it, which need no compiler, and that the error
// comes back whole.
func TestWays_LookWrites(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "db")
	c := new(required)
	db, err := jay.Open(dir, &jay.Options{Schemas: c, LookWrites: true})
	jaytest.Must(t, err)
	defer func() { _ = db.Close() }()
	put(t, db, "orders/1", `{"Total":1}`)
	set(t, db, rule(schema.Refuse, "Total", "Note"))
	far, err := jay.Look(dir, nil)
	jaytest.Must(t, err)
	defer func() { _ = far.Close() }()
	_, err = far.Put(ctx, "orders/2", []byte(`{}`), jay.InCollection("Orders"))
	wantRefused(t, "a put", err, 2)
	var refused *jay.SchemaError
	if errors.As(err, &refused) && (len(refused.Violations) != 2 || refused.Violations[1].Keyword != "required" || refused.ID != "orders/2") {
		t.Errorf("got %+v", refused)
	}
	_, err = far.Patch(ctx, "orders/1", jay.Set("Total", 2))
	wantRefused(t, "a patch", err, 1)
	b := new(jay.Batch)
	b.Put("orders/3", []byte(`{"Total":1,"Note":"n"}`), jay.InCollection("Orders"))
	b.Put("orders/4", []byte(`{"Total":1}`), jay.InCollection("Orders"))
	_, err = far.Apply(ctx, b)
	wantRefused(t, "a batch", err, 1)
	if found, err := far.Exists(ctx, "orders/3"); found || err != nil {
		t.Errorf("a part of the batch is there: %v, %v", found, err)
	}
	put(t, far, "orders/2", `{"Total":1,"Note":"n"}`)
	if n := c.compiled.Load(); n != 2 { // by Set, which tries it, and by the database
		t.Errorf("the rule was compiled %d times", n)
	}
}

// Ensure that a cluster-wide transaction is refused as a whole, before its compare-exchange values change.
func TestWays_ClusterWide(t *testing.T) {
	t.Parallel()
	db := open(t, &jay.Options{Schemas: new(required)})
	set(t, db, rule(schema.Refuse, "Total", "Note"))
	save := func(o *Order) error {
		s := db.OpenSession(jay.ClusterWide())
		if err := s.Store(ctx, o); err != nil {
			return err
		}
		if err := s.PutCompareExchange("names/a", "x", 0); err != nil {
			return err
		}
		return s.SaveChanges(ctx)
	}
	wantRefused(t, "a cluster-wide transaction", save(&Order{Total: 1}), 1)
	if value, err := db.CompareExchange().Get(ctx, "names/a"); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("its compare-exchange value is there: %v, %v", value, err)
	}
	jaytest.Must(t, save(&Order{Total: 1, Note: "n"}))
}

// Ensure that the sweep deletes and refreshes documents that violate the rule, also in a program that cannot check.
func TestWays_Sweep(t *testing.T) {
	t.Parallel()
	for _, compiler := range []schema.Compiler{new(required), nil} {
		disk := storagetest.NewDisk()
		clock := jaytest.DumpTime
		o := jay.Options{FS: disk, Schemas: new(required), Now: func() time.Time { return clock }}
		db, err := jay.Open("db", &o)
		jaytest.Must(t, err)
		put(t, db, "orders/1", `{}`, jay.InCollection("Orders"), jay.ExpiresAt(clock.Add(time.Hour)))
		before, err := db.Put(ctx, "orders/2", []byte(`{}`), jay.InCollection("Orders"), jay.RefreshAt(clock.Add(time.Hour)))
		jaytest.Must(t, err)
		set(t, db, rule(schema.Refuse, "Total"))
		jaytest.Must(t, db.Close())
		clock = clock.Add(2 * time.Hour)
		o.Schemas = compiler
		db, err = jay.Open("db", &o)
		jaytest.Must(t, err)
		swept, err := db.Sweep(ctx)
		jaytest.Must(t, err)
		if swept.Deleted != 1 || swept.Refreshed != 1 {
			t.Errorf("with %T: got %+v", compiler, swept)
		}
		if found, err := db.Exists(ctx, "orders/1"); found || err != nil {
			t.Errorf("with %T: what expired is there: %v, %v", compiler, found, err)
		}
		if doc, err := db.Get(ctx, "orders/2"); err != nil || doc.ChangeVector() == before.ChangeVector {
			t.Errorf("with %T: it was not refreshed: %v", compiler, err)
		}
		jaytest.Must(t, db.Close())
	}
}
