package disk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage/storagetest"
)

const (
	// readGrace is how long a read may wait for a sync that is held up before
	// the sync is released. The verdict does not depend on it: a read is judged by
	// what a crash leaves at the moment of its answer.
	readGrace = 30 * time.Millisecond
)

// thing is a document of these tests.
type thing struct {
	ID string
	N  int `json:"n"`
}

// durableRead is a way to learn what is in a database.
type durableRead struct {
	name string
	// read calls saw with what it has learned, at the moment at which its caller
	// has it: inside the function of a View, behind an Update.
	read func(db *jay.DB, saw func(string)) error
	// confirm returns what read would see, if read cannot be asked without a
	// change.
	confirm func(db *jay.DB) (string, error)
	deletes bool // what it sees of the new state is the absence of things/gone
	counts  bool // … or the identity inv
}

// look returns what a read sees of a database at rest.
func (r *durableRead) look(db *jay.DB) (seen string, err error) {
	if r.confirm != nil {
		return r.confirm(db)
	}
	err = r.read(db, func(s string) { seen = s })
	return seen, err
}

func textOf(doc *jay.Document, err error) (string, error) {
	switch {
	case errors.Is(err, jay.ErrNotFound), err == nil && doc == nil:
		return "absent", nil
	case err != nil:
		return "", err
	}
	return fmt.Sprintf("%s %s %s", doc.ID(), doc.ChangeVector(), doc.Body()), nil
}

func presence(found bool, err error) (string, error) {
	if found {
		return "present", err
	}
	return "absent", err
}

// textsOf joins the texts of some documents.
func textsOf(docs []*jay.Document, err error) (string, error) {
	texts := make([]string, len(docs))
	for i, doc := range docs {
		if err == nil {
			texts[i], err = textOf(doc, nil)
		}
	}
	return strings.Join(texts, "\n"), err
}

// walked returns the texts of the documents of a walk.
func walked(docs func(yield func(*jay.Document, error) bool)) (string, error) {
	var all []*jay.Document
	for doc, err := range docs {
		if err != nil {
			return "", err
		}
		all = append(all, doc)
	}
	return textsOf(all, nil)
}

// reader is what a *jay.DB and a *jay.Tx have in common.
type reader interface {
	Get(ctx context.Context, id string) (*jay.Document, error)
	GetMany(ctx context.Context, ids ...string) ([]*jay.Document, error)
	Exists(ctx context.Context, id string) (bool, error)
	Query(collection string) jay.Query[jay.Document]
	RQL(text string, params map[string]any) (jay.Query[jay.Row], error)
}

// questions are what both can be asked.
var questions = []struct {
	name    string
	deletes bool
	ask     func(r reader) (string, error)
}{
	{"Get", false, func(r reader) (string, error) { return textOf(r.Get(ctx, "things/changed")) }},
	{"Get of a new document", false, func(r reader) (string, error) { return textOf(r.Get(ctx, "things/new")) }},
	{"Get of a deleted document", true, func(r reader) (string, error) { return textOf(r.Get(ctx, "things/gone")) }},
	{"GetMany", false, func(r reader) (string, error) {
		return textsOf(r.GetMany(ctx, "things/kept", "things/new", "things/changed", "things/gone"))
	}},
	{"Exists", false, func(r reader) (string, error) { return presence(r.Exists(ctx, "things/new")) }},
	{"Exists of a deleted document", true, func(r reader) (string, error) { return presence(r.Exists(ctx, "things/gone")) }},
	{"query of a scan", false, func(r reader) (string, error) {
		return textsOf(r.Query("Things").Where(jay.Ge("m", 2)).All(ctx))
	}},
	{"query of an index", false, func(r reader) (string, error) {
		return textsOf(r.Query("Things").Where(jay.Between("n", 2, 3)).OrderBy("n").All(ctx))
	}},
	{"query of an index for a deleted document", true, func(r reader) (string, error) {
		return textsOf(r.Query("Things").Where(jay.Eq("n", 9)).All(ctx))
	}},
	{"count over an index", false, func(r reader) (string, error) {
		n, err := r.Query("Things").Where(jay.Between("n", 2, 3)).Count(ctx)
		return fmt.Sprint(n), err
	}},
	{"Exists of a query", false, func(r reader) (string, error) {
		return presence(r.Query("Things").Where(jay.Eq("n", 3)).Exists(ctx))
	}},
	{"page of a query", false, func(r reader) (string, error) {
		page, err := r.Query("Things").OrderBy("n").Limit(2).Page(ctx)
		text, err := textsOf(page.Items, err)
		return text + page.Next, err
	}},
	{"RQL with groups", false, func(r reader) (string, error) {
		q, err := r.RQL("from Things group by m select m, sum(n)", nil)
		if err != nil {
			return "", err
		}
		rows, err := q.All(ctx)
		var texts []string
		for _, row := range rows {
			texts = append(texts, string(row.JSON))
		}
		slices.Sort(texts)
		return strings.Join(texts, "\n"), err
	}},
}

var errReadOnly = errors.New("this transaction only reads")

// durableReads returns all of them.
func durableReads() []durableRead {
	var all []durableRead
	for _, q := range questions {
		once := func(ask func(r reader) (string, error), r reader, saw func(string)) error {
			text, err := ask(r)
			if err == nil {
				saw(text)
			}
			return err
		}
		all = append(all,
			durableRead{name: q.name, deletes: q.deletes, read: func(db *jay.DB, saw func(string)) error {
				return once(q.ask, db, saw)
			}},
			durableRead{name: q.name + " in View", deletes: q.deletes, read: func(db *jay.DB, saw func(string)) error {
				return db.View(ctx, func(tx *jay.Tx) error { return once(q.ask, tx, saw) })
			}},
			durableRead{name: q.name + " in an Update that only reads", deletes: q.deletes, read: func(db *jay.DB, saw func(string)) error {
				var text string
				err := db.Update(ctx, func(tx *jay.Tx) error { return once(q.ask, tx, func(s string) { text = s }) })
				if err == nil {
					saw(text)
				}
				return err
			}},
			durableRead{name: q.name + " in an Update that fails", deletes: q.deletes, read: func(db *jay.DB, saw func(string)) error {
				var text string
				err := db.Update(ctx, func(tx *jay.Tx) error {
					if err := once(q.ask, tx, func(s string) { text = s }); err != nil {
						return err
					}
					return errReadOnly
				})
				if errors.Is(err, errReadOnly) {
					saw(text)
					err = nil
				}
				return err
			}},
		)
	}
	return append(append(all, walks...), refusals...)
}

// things returns the collection of these tests.
func things(db *jay.DB) *jay.Collection[thing] {
	c, err := jay.CollectionOf[thing](db, jay.Named("Things"))
	if err != nil {
		panic(err) // the type and the name are constants
	}
	return c
}

// walks are reads that only a database has.
var walks = []durableRead{
	{name: "Documents", read: func(db *jay.DB, saw func(string)) error {
		text, err := walked(db.Documents(ctx, jay.Scan{Collection: "Things"}))
		saw(text)
		return err
	}},
	{name: "Documents, the first", read: func(db *jay.DB, saw func(string)) error {
		for doc, err := range db.Documents(ctx, jay.Scan{Prefix: "things/"}) {
			if err != nil {
				return err
			}
			text, err := textOf(doc, nil)
			saw(text)
			return err
		}
		return errors.New("no documents")
	}},
	{name: "Documents in View", read: func(db *jay.DB, saw func(string)) error {
		return db.View(ctx, func(tx *jay.Tx) error {
			text, err := walked(tx.Documents(ctx, jay.Scan{Prefix: "things/"}))
			saw(text)
			return err
		})
	}},
	{name: "Documents of deleted ones", deletes: true, read: func(db *jay.DB, saw func(string)) error {
		text, err := walked(db.Documents(ctx, jay.Scan{Prefix: "things/g"}))
		saw(text)
		return err
	}},
	{name: "Iter of a query, the first", read: func(db *jay.DB, saw func(string)) error {
		for doc, err := range db.Query("Things").OrderBy("n").Iter(ctx) {
			if err != nil {
				return err
			}
			text, err := textOf(doc, nil)
			saw(text)
			return err
		}
		return errors.New("no documents")
	}},
	{name: "Read", read: func(db *jay.DB, saw func(string)) error {
		return db.Read(ctx, "things/changed", func(doc *jay.RawDocument) error {
			saw(fmt.Sprintf("%s %s", doc.ChangeVector(), doc.Body()))
			return nil
		})
	}},
	{name: "Collection.Get", read: func(db *jay.DB, saw func(string)) error {
		v, err := things(db).Get(ctx, "things/changed")
		saw(fmt.Sprint(v))
		return err
	}},
	{name: "Collection.All", read: func(db *jay.DB, saw func(string)) error {
		var text strings.Builder
		for v, err := range things(db).All(ctx) {
			if err != nil {
				return err
			}
			fmt.Fprintln(&text, *v)
		}
		saw(text.String())
		return nil
	}},
	{name: "a session's Load", read: func(db *jay.DB, saw func(string)) error {
		s := db.OpenSession(jay.WithCollections(things(db)))
		v, err := jay.Load[thing](ctx, s, "things/changed")
		if err != nil {
			return err
		}
		m, err := s.Metadata(v)
		saw(fmt.Sprint(*v, m.ChangeVector))
		return err
	}},
	{name: "a session's LoadMany", read: func(db *jay.DB, saw func(string)) error {
		s := db.OpenSession(jay.WithCollections(things(db)))
		vs, err := jay.LoadMany[thing](ctx, s, []string{"things/changed", "things/new", "things/gone"})
		var text strings.Builder
		for _, v := range vs {
			if v == nil {
				v = &thing{ID: "absent"}
			}
			fmt.Fprintln(&text, *v)
		}
		saw(text.String())
		return err
	}},
	{name: "a session's Load of a deleted document", deletes: true, read: func(db *jay.DB, saw func(string)) error {
		s := db.OpenSession(jay.WithCollections(things(db)))
		_, err := jay.Load[thing](ctx, s, "things/gone")
		text, err := presence(err == nil, notFoundIsNil(err))
		saw(text)
		return err
	}},
	{name: "Stats", read: func(db *jay.DB, saw func(string)) error {
		stats, err := db.Stats(ctx)
		if err != nil {
			return err
		}
		text, err := json.Marshal(stats.Collections)
		saw(string(text))
		return err
	}},
	{name: "Identities", counts: true, read: func(db *jay.DB, saw func(string)) error {
		last, err := db.Identities(ctx)
		saw(fmt.Sprint(last["inv"], last["inv|"], last["inv/"]))
		return err
	}},
}

func notFoundIsNil(err error) error {
	if errors.Is(err, jay.ErrNotFound) {
		return nil
	}
	return err
}

// there returns a confirm that says whether a document exists.
func there(id string) func(db *jay.DB) (string, error) {
	return func(db *jay.DB) (string, error) { return presence(db.Exists(ctx, id)) }
}

// version is the confirm of writes that return a change vector.
func version(db *jay.DB) (string, error) {
	doc, err := db.Get(ctx, "things/changed")
	if err != nil {
		return "", err
	}
	return doc.ChangeVector(), nil
}

// conflict calls saw with the change vector that a conflict names.
func conflict(err error, saw func(string)) error {
	var found *jay.ConflictError
	switch {
	case errors.As(err, &found):
		saw(found.Actual)
		return nil
	case err == nil:
		saw("overwritten")
	}
	return err
}

// oldVersion is no version of any document.
const oldVersion = "A:1-AAAAAAAAAAAAAAAAAAAAAA"

// refusals are writes that are refused, or do nothing, because of what another
// has written: their callers learn of it.
var refusals = []durableRead{
	{name: "Insert", confirm: there("things/new"), read: func(db *jay.DB, saw func(string)) error {
		_, err := db.Insert(ctx, "things/new", []byte(`{"n":100}`), jay.InCollection("Things"))
		return refusal(err, jay.ErrExists, "present", saw)
	}},
	{name: "Insert in a batch", confirm: there("things/new"), read: func(db *jay.DB, saw func(string)) error {
		var b jay.Batch
		b.Put("things/other", []byte(`{}`))
		b.Insert("things/new", []byte(`{"n":100}`), jay.InCollection("Things"))
		_, err := db.Apply(ctx, &b)
		return refusal(err, jay.ErrExists, "present", saw)
	}},
	{name: "Insert in a transaction", confirm: there("things/new"), read: func(db *jay.DB, saw func(string)) error {
		err := db.Update(ctx, func(tx *jay.Tx) error {
			_, err := tx.Insert(ctx, "things/new", []byte(`{"n":100}`), jay.InCollection("Things"))
			return err
		})
		if errors.Is(err, jay.ErrExists) {
			err = jay.ErrConflict // it depends on whether the transaction's moment has it
		}
		return refusal(err, jay.ErrConflict, "present", saw)
	}},
	{name: "IfMatch", confirm: version, read: func(db *jay.DB, saw func(string)) error {
		_, err := db.Put(ctx, "things/changed", []byte(`{"n":100}`), jay.IfMatch(oldVersion), jay.InCollection("Things"))
		return conflict(err, saw)
	}},
	{name: "IfMatch of a Delete", confirm: version, read: func(db *jay.DB, saw func(string)) error {
		return conflict(db.Delete(ctx, "things/changed", jay.IfMatch(oldVersion)), saw)
	}},
	{name: "Replace of a deleted document", deletes: true, confirm: there("things/gone"), read: func(db *jay.DB, saw func(string)) error {
		_, err := db.Replace(ctx, "things/gone", []byte(`{"n":100}`), jay.InCollection("Things"))
		return refusal(err, jay.ErrNotFound, "absent", saw)
	}},
	{name: "Delete of a deleted document", deletes: true, confirm: there("things/gone"), read: func(db *jay.DB, saw func(string)) error {
		err := db.Delete(ctx, "things/gone")
		if err == nil {
			saw("absent")
		}
		return err
	}},
	{name: "Patch of a deleted document", deletes: true, confirm: there("things/gone"), read: func(db *jay.DB, saw func(string)) error {
		result, err := db.Patch(ctx, "things/gone", jay.Set("n", 100))
		if err == nil && result.Status == jay.PatchPatched {
			saw("patched")
		} else {
			saw("absent")
		}
		return err
	}},
	{name: "Patch that changes nothing", confirm: version, read: func(db *jay.DB, saw func(string)) error {
		result, err := db.Patch(ctx, "things/changed", jay.Set("n", 2))
		if err == nil && result.Status == jay.PatchPatched {
			saw("patched")
		} else {
			saw(result.Metadata.ChangeVector)
		}
		return err
	}},
	{name: "a unique index", confirm: func(db *jay.DB) (string, error) {
		return presence(db.Query("Things").Where(jay.Eq("u", "new")).Exists(ctx))
	}, read: func(db *jay.DB, saw func(string)) error {
		_, err := db.Put(ctx, "things/rival", []byte(`{"u":"new"}`), jay.InCollection("Things"))
		return refusal(err, jay.ErrUnique, "present", saw)
	}},
}

// refusal calls saw with what a refusal says.
func refusal(err, want error, says string, saw func(string)) error {
	switch {
	case errors.Is(err, want):
		saw(says)
		return nil
	case err == nil:
		saw("accepted")
	}
	return err
}

// freshWrites are ways to have commits that are not on disk. Each returns when
// they are under way, with what makes them durable.
var freshWrites = []struct {
	name string
	// bulk cannot delete and makes no identity.
	bulk  bool
	write func(t *testing.T, disk *storagetest.Disk, db *jay.DB) (finish func())
}{
	{"a commit whose sync is held up", false, func(t *testing.T, disk *storagetest.Disk, db *jay.DB) func() {
		return holdUntil(t, disk, db, 0)
	}},
	{"a large commit whose sync is held up", false, func(t *testing.T, disk *storagetest.Disk, db *jay.DB) func() {
		return holdUntil(t, disk, db, 300_000)
	}},
	{"a bulk writer without a Flush", true, func(t *testing.T, _ *storagetest.Disk, db *jay.DB) func() {
		committed := make(chan struct{}, 1)
		w, err := db.BulkInsert(&jay.BulkOptions{BatchDocuments: 2, MaxDelay: time.Hour, Progress: func(jay.BulkProgress) { committed <- struct{}{} }})
		must(t, err)
		for id, body := range map[string]string{"things/changed": changedBody, "things/new": newBody} {
			_, err := w.Put(ctx, id, []byte(body), jay.InCollection("Things"))
			must(t, err)
		}
		<-committed
		return func() { must(t, w.Close()) }
	}},
}

const (
	changedBody = `{"n":2,"m":2}`
	newBody     = `{"n":3,"m":3,"u":"new"}`
)

// hold begins a batch whose sync does not return before the Hold lets it. The
// Hold ends with the test.
func hold(t *testing.T, disk *storagetest.Disk, db *jay.DB, padding int) (*storagetest.Hold, <-chan error) {
	var b jay.Batch
	b.Put("things/changed", []byte(changedBody), jay.InCollection("Things"))
	b.Insert("things/new", []byte(newBody), jay.InCollection("Things"))
	b.Delete("things/gone")
	b.Insert("inv|", []byte(`{}`))
	if padding > 0 {
		b.Put("padding", fmt.Appendf(nil, `{"p":%q}`, strings.Repeat("x", padding)))
	}
	held := disk.Hold(storagetest.Logs, storagetest.Syncs)
	t.Cleanup(held.Release)
	written := make(chan error, 1)
	go func() {
		_, err := db.Apply(ctx, &b)
		written <- err
	}()
	<-held.Met()
	return held, written
}

// holdUntil is hold for freshWrites.
func holdUntil(t *testing.T, disk *storagetest.Disk, db *jay.DB, padding int) (finish func()) {
	held, written := hold(t, disk, db, padding)
	return func() {
		held.Release()
		must(t, within(t, written, "the writer"))
	}
}

// seedThings makes the state that is there, and on disk, before the writes.
func seedThings(t *testing.T, db *jay.DB) {
	t.Helper()
	for id, body := range map[string]string{
		"things/changed": `{"n":1,"m":1}`, "things/gone": `{"n":9,"m":9}`, "things/kept": `{"n":5,"m":5}`,
	} {
		put(t, db, id, body, jay.InCollection("Things"))
	}
	must(t, db.EnsureIndex(ctx, "Things", jay.Index{Fields: []string{"n"}}))
	must(t, db.EnsureIndex(ctx, "Things", jay.Index{Fields: []string{"u"}, Unique: true}))
}

// sight is what a read saw, and what was on disk at that moment.
type sight struct {
	seen string
	disk *storagetest.Disk
}

// Ensure that no read of any form shows what a crash at that moment undoes: not
// a document, not its absence, not a count, not a refusal. A read may wait for
// the sync that is held up, or show the state before it; once the write is
// acknowledged it shows the new one. What an unflushed bulk writer has committed
// is not shown before it is on disk either, and no read waits for its Flush.
func TestReads_ShowOnlyWhatIsDurable(t *testing.T) {
	for _, fresh := range freshWrites {
		for _, r := range durableReads() {
			if fresh.bulk && (r.deletes || r.counts) {
				continue
			}
			t.Run(fresh.name+"/"+r.name, func(t *testing.T) {
				t.Parallel()
				disk := storagetest.NewDisk()
				db := onDisk(t, disk, jay.Options{})
				defer func() { _ = db.Close() }() // closed below if all is well
				seedThings(t, db)
				var before string
				for range 3 { // the cache of documents takes what is read again
					var err error
					before, err = r.look(db)
					must(t, err)
				}

				finish := fresh.write(t, disk, db)
				answer := make(chan error, 1)
				var sights []sight
				go func() {
					answer <- r.read(db, func(seen string) {
						sights = append(sights, sight{seen, disk.Crash(0, rand.New(rand.NewPCG(1, 2)))})
					})
				}()
				if !fresh.bulk {
					select {
					case err := <-answer:
						answer <- err
					case <-time.After(readGrace):
					}
					finish()
				}
				must(t, within(t, answer, "the read"))
				if fresh.bulk {
					finish()
				}
				for _, s := range sights {
					left := onDisk(t, s.disk, jay.Options{})
					onIt, err := r.look(left)
					must(t, err)
					closeDB(t, left)
					if s.seen != before && s.seen != onIt {
						t.Fatalf("saw\n%s\nbut a crash at that moment leaves\n%s", s.seen, onIt)
					}
				}
				if len(sights) == 0 {
					t.Fatal("the read saw nothing")
				}

				after, err := r.look(db)
				must(t, err)
				left := onDisk(t, disk.Crash(0, rand.New(rand.NewPCG(1, 2))), jay.Options{})
				onIt, err := r.look(left)
				must(t, err)
				closeDB(t, left)
				if after != onIt || after == before {
					t.Fatalf("before the write %s\nonce it was acknowledged %s\non disk %s", before, after, onIt)
				}
				closeDB(t, db)
			})
		}
	}
}

// Ensure that a database whose disk fails in the middle of a commit answers
// from what is durable: what the commit would have changed has an unknown
// outcome and is neither shown nor denied, the rest is read as before, and a
// reopen agrees with every answer.
func TestReads_OfAFailedDatabase(t *testing.T) {
	for _, padding := range []int{0, 300_000} {
		t.Run(fmt.Sprintf("padding of %d bytes", padding), func(t *testing.T) {
			disk := storagetest.NewDisk()
			db := onDisk(t, disk, jay.Options{})
			seedThings(t, db)
			kept := body(t, db, "things/kept")
			before := make(map[string]string)
			reads := durableReads()
			for _, r := range reads {
				var err error
				before[r.name], err = r.look(db)
				must(t, err)
			}

			held, written := hold(t, disk, db, padding)
			held.Refuse()
			if err := within(t, written, "the writer"); !errors.Is(err, jay.ErrUnknownOutcome) {
				t.Fatalf("a commit whose sync fails: %v, want ErrUnknownOutcome", err)
			}

			if got := body(t, db, "things/kept"); got != kept {
				t.Errorf("an untouched document is %s, was %s", got, kept)
			}
			for _, id := range []string{"things/changed", "things/new", "things/gone"} {
				_, err := db.Get(ctx, id)
				wantUnknown(t, "Get "+id, err)
				_, err = db.Exists(ctx, id)
				wantUnknown(t, "Exists "+id, err)
				wantUnknown(t, "Read "+id, db.Read(ctx, id, func(*jay.RawDocument) error { return nil }))
			}
			for _, r := range reads {
				if r.confirm != nil {
					continue // a write, which is refused with ErrFailed
				}
				seen := ""
				err := r.read(db, func(s string) { seen = s })
				if err != nil && !errors.Is(err, jay.ErrUnknownOutcome) && !errors.Is(err, jay.ErrFailed) {
					t.Errorf("%s: %v", r.name, err)
				}
				if err == nil && seen != before[r.name] {
					t.Errorf("%s sees\n%s\nand saw before\n%s", r.name, seen, before[r.name])
				}
			}
			_, err := db.Put(ctx, "later", []byte(`{}`))
			if !errors.Is(err, jay.ErrFailed) {
				t.Errorf("a later write: %v, want ErrFailed", err)
			}
			_ = db.Close() // it cannot close cleanly; it must return

			left := onDisk(t, disk.Crash(0, rand.New(rand.NewPCG(1, 2))), jay.Options{})
			defer closeDB(t, left)
			for _, r := range reads {
				got, err := r.look(left)
				must(t, err)
				if got != before[r.name] {
					t.Errorf("after the reopen, %s sees %s, was %s", r.name, got, before[r.name])
				}
			}
		})
	}
}

func wantUnknown(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, jay.ErrUnknownOutcome) {
		t.Errorf("%s: %v, want ErrUnknownOutcome", what, err)
	}
}

// Ensure that under Relaxed durability a write is acknowledged, and read,
// without waiting for any sync.
func TestReads_Relaxed_ShowWhatIsAcknowledged(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{Durability: jay.Relaxed})
	defer closeDB(t, db)
	seedThings(t, db)
	held := disk.Hold(storagetest.Logs, storagetest.Syncs)
	defer held.Release()
	done := make(chan error, 1)
	go func() {
		_, err := db.Put(ctx, "things/changed", []byte(changedBody), jay.InCollection("Things"))
		if err == nil {
			_, err = db.Insert(ctx, "things/new", []byte(newBody), jay.InCollection("Things"))
		}
		if err == nil {
			err = db.Delete(ctx, "things/gone")
		}
		done <- err
	}()
	must(t, within(t, done, "a relaxed writer"))
	for _, r := range durableReads() {
		if r.confirm != nil || r.counts {
			continue
		}
		seen := ""
		go func() { done <- r.read(db, func(s string) { seen = s }) }()
		must(t, within(t, done, r.name))
		for _, old := range []string{`"n":1`, `"n":9`} {
			if strings.Contains(seen, old) {
				t.Errorf("%s sees %s", r.name, seen)
			}
		}
	}
	if got := body(t, db, "things/changed") + body(t, db, "things/new") + body(t, db, "things/gone"); got != changedBody+newBody+"absent" {
		t.Errorf("after the writes: %s", got)
	}
}
