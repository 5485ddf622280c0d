package jay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage/storagetest"
)

// vectorsOf returns the change vectors of the revisions of a document, newest first.
func vectorsOf(t testing.TB, db *jay.DB, id string) (out []string) {
	t.Helper()
	for rev, err := range db.Revisions().List(ctx, id, jay.RevisionPage{}) {
		must(t, err)
		out = append(out, rev.ChangeVector())
	}
	return out
}

// Ensure that nothing is kept unless it is configured.
func TestRevisions_Off(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "users/1", `{"n":1}`)
	put(t, db, "users/1", `{"n":2}`)
	must(t, db.Delete(ctx, "users/1"))
	equal(t, jaytest.RevisionBodies(t, db, "users/1", jay.RevisionPage{}), "")
	counts, err := db.Revisions().Counts(ctx)
	must(t, err)
	equal(t, len(counts), 0)
	c := db.Revisions().Configuration()
	equal(t, c.Default == nil && len(c.Collections) == 0, true)
}

// Ensure that the version from before the first rule is kept, and what the revisions
// look like.
func TestRevisions_Look(t *testing.T) {
	clock := newClock()
	db := memory(t, &jay.Options{Now: clock.Now})
	put(t, db, "users/Ann", `{"n":1,"@metadata":{"@collection":"Users","mine":true}}`)
	jaytest.KeepRevisions(t, db, jay.RevisionRule{})
	clock.Advance(time.Minute)
	put(t, db, "users/ann", `{"n":2}`)
	clock.Advance(time.Minute)
	must(t, db.Delete(ctx, "USERS/ANN"))

	var lines []string
	for rev, err := range db.Revisions().List(ctx, "users/ann", jay.RevisionPage{}) {
		must(t, err)
		text, err := json.Marshal(rev)
		must(t, err)
		lines = append(lines, string(text))
		equal(t, rev.Current(), false)
	}
	vectors := vectorsOf(t, db, "users/ann")
	equal(t, strings.Join(lines, "\n"), `{"@metadata":{"@collection":"Users","@change-vector":"`+vectors[0]+`","@flags":"HasRevisions, DeleteRevision","@id":"users/ann","@last-modified":"2026-11-21T12:02:00.0000000Z"}}
{"n":2,"@metadata":{"@collection":"Users","@change-vector":"`+vectors[1]+`","@flags":"HasRevisions, Revision","@id":"users/ann","@last-modified":"2026-11-21T12:01:00.0000000Z"}}
{"n":1,"@metadata":{"mine":true,"@collection":"Users","@change-vector":"`+vectors[2]+`","@flags":"HasRevisions, Revision","@id":"users/Ann","@last-modified":"2026-11-21T12:00:00.0000000Z"}}`)

	put(t, db, "users/ann", `{"n":3,"@metadata":{"@flags":"Revision"}}`, jay.InCollection("Users"))
	text, err := json.Marshal(mustGet(t, db, "users/ann"))
	must(t, err)
	if !strings.Contains(string(text), `"@flags":"HasRevisions","@id"`) {
		t.Errorf("the document is %s", text)
	}
	equal(t, jaytest.RevisionBodies(t, db, "users/ann", jay.RevisionPage{}), `{"n":3} - {"n":2} {"n":1}`)
}

// Ensure that pages of a list begin and end where they are asked to, and go on behind
// one another.
func TestRevisions_Pages(t *testing.T) {
	db := memory(t, nil)
	jaytest.KeepRevisions(t, db, jay.RevisionRule{})
	for i := range 200 {
		put(t, db, "a", fmt.Sprintf(`{"n":%d}`, i))
		put(t, db, "a\u00a0", `{}`) // its keys lie beside those of a
	}
	all := vectorsOf(t, db, "a")
	equal(t, len(all), 200)
	equal(t, jaytest.RevisionBodies(t, db, "a", jay.RevisionPage{Limit: 3}), `{"n":199} {"n":198} {"n":197}`)
	equal(t, jaytest.RevisionBodies(t, db, "a", jay.RevisionPage{Before: all[2], Limit: 2}), `{"n":196} {"n":195}`)
	equal(t, jaytest.RevisionBodies(t, db, "a", jay.RevisionPage{Before: all[199]}), ``)
	for i, vector := range all {
		rev, err := db.Revisions().Get(ctx, "a", vector)
		must(t, err)
		equal(t, string(rev.Body()), fmt.Sprintf(`{"n":%d}`, 199-i))
		equal(t, rev.Current(), i == 0)
	}
	for range db.Revisions().List(ctx, "a", jay.RevisionPage{}) {
		put(t, db, "a", `{"n":"written meanwhile"}`) // is not listed
		break
	}
	for _, page := range []jay.RevisionPage{{Limit: -1}, {Before: "A:1-x"}, {Before: "none"}} {
		for rev, err := range db.Revisions().List(ctx, "a", page) {
			if rev != nil || !errors.Is(err, jay.ErrUsage) && !errors.Is(err, jay.ErrNotFound) {
				t.Errorf("%+v: %v, %v", page, rev, err)
			}
		}
	}
}

// Ensure that no text that is no change vector of a revision finds one, as those of
// other documents.
func TestRevisions_Get_NotFound(t *testing.T) {
	db := memory(t, nil)
	jaytest.KeepRevisions(t, db, jay.RevisionRule{})
	other := put(t, db, "b", `{}`).ChangeVector
	put(t, db, "a", `{}`)
	first := put(t, db, "a", `{"n":1}`).ChangeVector
	put(t, db, "a", `{"n":2}`)
	id := first[strings.Index(first, "-"):]
	for _, vector := range []string{"", "A", "A:", other, "A:0" + id, "A:3", "B:3" + id, "A:3-" + id, "A:03" + id, "A:99" + id, "A:-3" + id, "A:18446744073709551615" + id, first + "x", strings.Repeat("9", 10_000)} {
		if rev, err := db.Revisions().Get(ctx, "a", vector); !errors.Is(err, jay.ErrNotFound) {
			t.Errorf("%.100q finds %v, %v", vector, rev, err)
		}
	}
	if _, err := db.Revisions().Get(ctx, "none", first); !errors.Is(err, jay.ErrNotFound) {
		t.Error(err)
	}
}

// Ensure that a configuration is refused that cannot be, and changes nothing.
func TestRevisions_Configure_Refused(t *testing.T) {
	db := memory(t, nil)
	jaytest.KeepRevisions(t, db, jay.RevisionRule{Keep: 7})
	many := make(map[string]jay.RevisionRule)
	for i := range 1001 {
		many[fmt.Sprint(i)] = jay.RevisionRule{}
	}
	for name, c := range map[string]jay.RevisionsConfiguration{
		"keep":        {Default: &jay.RevisionRule{Keep: 1<<40 + 1}},
		"time":        {Default: &jay.RevisionRule{KeepFor: -1}},
		"of one":      {Collections: map[string]jay.RevisionRule{"Users": {KeepFor: -time.Hour}}},
		"twice":       {Collections: map[string]jay.RevisionRule{"Users": {}, "users": {}}},
		"no name":     {Collections: map[string]jay.RevisionRule{"": {}}},
		"hilo":        {Collections: map[string]jay.RevisionRule{"@HiLo": {}}},
		"bad name":    {Collections: map[string]jay.RevisionRule{"a\x00": {}}},
		"too many":    {Collections: many},
		"long name":   {Collections: map[string]jay.RevisionRule{strings.Repeat("x", 513): {}}},
		"broken UTF8": {Collections: map[string]jay.RevisionRule{"\xff": {}}},
	} {
		if err := db.Revisions().Configure(ctx, c); !errors.Is(err, jay.ErrUsage) && !errors.Is(err, jay.ErrInvalidDocument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	equal(t, db.Revisions().Configuration().Default.Keep, 7)
	delete(many, "0")
	must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Collections: many}))
	must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{}))
	equal(t, configText(t, db.Revisions().Configuration()), "{}")
}

// Ensure that the documents of HiLo have no revisions, whatever the default is.
func TestRevisions_NoneOfHiLo(t *testing.T) {
	db := memory(t, nil)
	jaytest.KeepRevisions(t, db, jay.RevisionRule{})
	for range 200 {
		store(t, db, "Users")
	}
	equal(t, jaytest.RevisionBodies(t, db, "Raven/HiLo/users", jay.RevisionPage{}), "")
	equal(t, mustGet(t, db, "Raven/HiLo/users").Metadata().Flags, 0)
	equal(t, jaytest.RevisionBodies(t, db, "users/1-A", jay.RevisionPage{}), `{}`)
}

// Ensure that Revert is an ordinary write: it obeys conditions, indexes and
// collections, and brings a deleted document back, with its metadata.
func TestRevisions_Revert(t *testing.T) {
	db := memory(t, nil)
	r := db.Revisions()
	jaytest.KeepRevisions(t, db, jay.RevisionRule{})
	must(t, db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"mail"}, Unique: true}))
	first := put(t, db, "users/Ann", `{"mail":"a","@metadata":{"k":1}}`, jay.InCollection("Users"))
	second := put(t, db, "users/Ann", `{"mail":"b"}`)
	if _, err := r.Revert(ctx, "users/ann", first.ChangeVector, jay.IfMatch(first.ChangeVector)); !errors.Is(err, jay.ErrConflict) {
		t.Errorf("with another version: %v", err)
	}
	third, err := r.Revert(ctx, "users/ann", first.ChangeVector, jay.IfMatch(second.ChangeVector))
	must(t, err)
	equal(t, third.ID+third.Collection+string(third.Custom), `users/AnnUsers{"k":1}`)
	equal(t, body(t, db, "users/ann"), `{"mail":"a"}`)
	equal(t, jaytest.RevisionBodies(t, db, "users/ann", jay.RevisionPage{}), `{"mail":"a"} {"mail":"b"} {"mail":"a"}`)

	must(t, db.Delete(ctx, "users/ann"))
	put(t, db, "users/bob", `{"mail":"b"}`, jay.InCollection("Users"))
	if _, err := r.Revert(ctx, "users/ann", second.ChangeVector); !errors.Is(err, jay.ErrUnique) {
		t.Errorf("to the mail of another one: %v", err)
	}
	_, err = r.Revert(ctx, "users/ann", first.ChangeVector)
	must(t, err)
	equal(t, jaytest.RevisionBodies(t, db, "users/ann", jay.RevisionPage{}), `{"mail":"a"} - {"mail":"a"} {"mail":"b"} {"mail":"a"}`)
	changes, err := r.Diff(ctx, "users/ann", second.ChangeVector, "")
	must(t, err)
	equal(t, fmt.Sprintf("%s %s %s %s", changes[0].Path, changes[0].Kind, changes[0].Old, changes[0].New), `mail changed "b" "a"`)

	must(t, db.Delete(ctx, "users/ann"))
	put(t, db, "users/ann", `{}`, jay.InCollection("Other"))
	if _, err := r.Revert(ctx, "users/ann", first.ChangeVector); !errors.Is(err, jay.ErrCollection) {
		t.Errorf("from another collection: %v", err)
	}
	must(t, checks.Revisions(db))
}

// Ensure that the last versions of deleted documents can be found and that a document
// that is there again is not among them.
func TestRevisions_Deleted(t *testing.T) {
	db := memory(t, nil)
	jaytest.KeepRevisions(t, db, jay.RevisionRule{Keep: 1})
	for i := range 150 {
		id := fmt.Sprintf("users/%03d", i)
		put(t, db, id, `{}`)
		must(t, db.Delete(ctx, id))
	}
	put(t, db, "users/004", `{}`)
	jaytest.KeepRevisions(t, db, jay.RevisionRule{Disabled: true})
	put(t, db, "users/005", `{}`)
	n := 0
	for rev, err := range db.Revisions().Deleted(ctx, "") {
		must(t, err)
		if id := rev.ID(); id == "users/004" || id == "users/005" || !rev.Deletion() {
			t.Errorf("%s is listed: %v", id, rev.Deletion())
		}
		n++
	}
	equal(t, n, 148)
	for rev, err := range db.Revisions().Deleted(ctx, "Users/147") {
		must(t, err)
		equal(t, rev.ID(), "users/148")
		break
	}
	equal(t, jaytest.RevisionBodies(t, db, "users/148", jay.RevisionPage{}), "- {}") // Keep 1 keeps the last version
	must(t, checks.Revisions(db))
}

// Ensure that a document which was written and deleted without a rule is not listed as deleted, and that
// its older revisions can be read and purged.
func TestRevisions_Deleted_WithoutRule(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	clock := newClock()
	db := memory(t, &jay.Options{Now: clock.Now})
	jaytest.KeepRevisions(t, db, jay.RevisionRule{})
	put(t, db, "users/1", `{"n":1}`)
	jaytest.KeepRevisions(t, db, jay.RevisionRule{Disabled: true})
	put(t, db, "users/1", `{"n":2}`)
	must(t, db.Delete(ctx, "users/1"))
	for rev, err := range db.Revisions().Deleted(ctx, "") {
		must(t, err)
		t.Errorf("%s is listed", rev.ID())
	}
	equal(t, jaytest.RevisionBodies(t, db, "users/1", jay.RevisionPage{}), `{"n":1}`)
	done, err := db.Revisions().Purge(ctx, jay.RevisionPurge{Deleted: true, Before: clock.Now().Add(time.Hour)})
	must(t, err)
	equal(t, done.Revisions, 1)
	must(t, checks.Revisions(db))
}

// Ensure that a purge removes nothing that it was not asked to, and says what it does.
func TestRevisions_Purge(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	clock := newClock()
	db := memory(t, &jay.Options{Now: clock.Now})
	r := db.Revisions()
	for _, p := range []jay.RevisionPurge{{}, {Collection: "Users"}, {Deleted: true}, {Retention: true, Before: clock.Now()}, {ID: "a", Collection: "a\x01"}} {
		if _, err := r.Purge(ctx, p); !errors.Is(err, jay.ErrUsage) && !errors.Is(err, jay.ErrInvalidDocument) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	jaytest.KeepRevisions(t, db, jay.RevisionRule{})
	fill := func() {
		for i := range 70 {
			id := fmt.Sprint("users/", i)
			for range 40 {
				put(t, db, id, fmt.Sprintf(`{"n":%d}`, i), jay.InCollection("Users"))
			}
			if i%2 == 1 {
				must(t, db.Delete(ctx, id))
			}
		}
	}
	fill()
	var progress []jay.RevisionsPurged
	done, err := r.Purge(ctx, jay.RevisionPurge{Collection: "USERS", Deleted: true, Before: clock.Now().Add(100), Progress: func(p jay.RevisionsPurged) { progress = append(progress, p) }})
	must(t, err)
	equal(t, done.Revisions, 35*41)
	equal(t, done.Next, "")
	if len(progress) < 2 || progress[0].Next == "" || progress[len(progress)-1] != done {
		t.Errorf("progress %+v", progress)
	}
	must(t, checks.Revisions(db))
	equal(t, jaytest.RevisionBodies(t, db, "users/1", jay.RevisionPage{}), "")
	equal(t, len(vectorsOf(t, db, "users/2")), 40)

	done, err = r.Purge(ctx, jay.RevisionPurge{Before: clock.Now()})
	must(t, err)
	equal(t, done.Revisions, 0) // all was replaced at this moment, not before it
	jaytest.KeepRevisions(t, db, jay.RevisionRule{Keep: 3})
	done, err = r.Purge(ctx, jay.RevisionPurge{Retention: true, ID: "users/2"})
	must(t, err)
	equal(t, done.Revisions, 37)
	done, err = r.Purge(ctx, jay.RevisionPurge{Retention: true, After: "users/6"})
	must(t, err)
	equal(t, done.Revisions, 37*6) // users/60, 62, 64, 66, 68 and users/8
	equal(t, len(vectorsOf(t, db, "users/4")), 40)
	done, err = r.Purge(ctx, jay.RevisionPurge{ID: "users/4"})
	must(t, err)
	equal(t, done.Revisions, 39)
	equal(t, len(vectorsOf(t, db, "users/4")), 1) // the document
	must(t, checks.Revisions(db))
	fill()
	must(t, checks.Revisions(db))
}

// Ensure that versions stay for as long as the rule says after they were replaced, not
// after they were written: a document that was not touched for long can be read as it
// was before the write.
func TestRevisions_KeepFor(t *testing.T) {
	clock := newClock()
	db := memory(t, &jay.Options{Now: clock.Now})
	jaytest.KeepRevisions(t, db, jay.RevisionRule{KeepFor: time.Hour})
	put(t, db, "a", `{"n":1}`)
	clock.Advance(1000 * time.Hour)
	put(t, db, "a", `{"n":2}`)
	clock.Advance(time.Hour)
	put(t, db, "a", `{"n":3}`)
	equal(t, jaytest.RevisionBodies(t, db, "a", jay.RevisionPage{}), `{"n":3} {"n":2} {"n":1}`)
	rev, err := db.Revisions().AsOf(ctx, "a", clock.Now().Add(-time.Hour-1))
	must(t, err)
	equal(t, string(rev.Body()), `{"n":1}`)
	clock.Advance(time.Nanosecond * 100)
	put(t, db, "a", `{"n":4}`)
	equal(t, jaytest.RevisionBodies(t, db, "a", jay.RevisionPage{}), `{"n":4} {"n":3} {"n":2}`)
	must(t, db.Delete(ctx, "a"))
	clock.Advance(2 * time.Hour)
	_, err = db.Revisions().Purge(ctx, jay.RevisionPurge{Retention: true})
	must(t, err)
	equal(t, jaytest.RevisionBodies(t, db, "a", jay.RevisionPage{}), ``)
	for range db.Revisions().Deleted(ctx, "") {
		t.Error("a is still listed")
	}
	must(t, checks.Revisions(db))
}

// Ensure that a document whose made ID had a document before, as its identity was set back,
// goes on with the history of that.
func TestRevisions_MadeIDs(t *testing.T) {
	db := memory(t, nil)
	jaytest.KeepRevisions(t, db, jay.RevisionRule{})
	for n := range 3 {
		put(t, db, "users/1", fmt.Sprintf(`{"n":%d}`, n))
	}
	must(t, db.Delete(ctx, "users/1"))
	_, err := db.Revisions().Import(ctx, []json.RawMessage{[]byte(`{"n":7,"@metadata":{"@collection":"Cats","@id":"cats/1-A","@flags":"Revision","@change-vector":"B:2-old","@last-modified":"2026-11-21T12:00:00.0000000Z"}}`)})
	must(t, err)
	m := put(t, db, "users|", `{"n":3}`)
	equal(t, m.ID, "users/1")
	equal(t, jaytest.RevisionBodies(t, db, "users/1", jay.RevisionPage{}), `{"n":3} - {"n":2} {"n":1} {"n":0}`)
	equal(t, store(t, db, "Cats"), "cats/1-A")
	must(t, checks.Revisions(db))
	put(t, db, "users/1", `{"n":4}`)
	put(t, db, "cats/1-A", `{"n":8}`, jay.InCollection("Cats"))
	equal(t, jaytest.RevisionBodies(t, db, "users/1", jay.RevisionPage{}), `{"n":4} {"n":3} - {"n":2} {"n":1} {"n":0}`)
	must(t, checks.Revisions(db))
}

// Ensure that what KeepFor keeps no longer goes without a write, once its time has come by
// the database's clock: also after the database was opened again, and after a rule was
// made; that other rules are left to the writes; and that Close ends it.
func TestRevisions_Retention(t *testing.T) {
	defer checks.SetRetention(time.Millisecond)()
	clock := newClock()
	disk := storagetest.NewDisk()
	opts := jay.Options{Now: clock.Now}
	db := onDisk(t, disk, opts)
	r := db.Revisions()
	configure := func(rule jay.RevisionRule) {
		must(t, r.Configure(ctx, jay.RevisionsConfiguration{Collections: map[string]jay.RevisionRule{"Short": rule, "Kept": {Keep: 3}}}))
	}
	fill := func() {
		for n := range 3 {
			for _, id := range []string{"short/1", "short/2", "short/3"} {
				put(t, db, id, fmt.Sprintf(`{"n":%d}`, n), jay.InCollection("Short"))
			}
		}
	}
	await := func(id, want string) {
		t.Helper()
		got := ""
		for more := jaytest.Patience(); more(got == want); {
			got = jaytest.RevisionBodies(t, db, id, jay.RevisionPage{})
		}
		equal(t, got, want)
	}
	configure(jay.RevisionRule{KeepFor: time.Hour})
	fill()
	for n := range 5 {
		put(t, db, "kept/1", fmt.Sprintf(`{"n":%d}`, n), jay.InCollection("Kept"))
	}
	must(t, r.Configure(ctx, jay.RevisionsConfiguration{Collections: map[string]jay.RevisionRule{"Short": {KeepFor: time.Hour}, "Kept": {Keep: 2}}}))
	must(t, db.Delete(ctx, "short/3"))
	clock.Advance(time.Hour)
	put(t, db, "short/2", `{"n":3}`, jay.InCollection("Short"))
	clock.Advance(time.Hour)
	await("short/1", `{"n":2}`)
	await("short/2", `{"n":3} {"n":2}`)
	await("short/3", "")
	equal(t, jaytest.RevisionBodies(t, db, "kept/1", jay.RevisionPage{}), `{"n":4} {"n":3} {"n":2}`)
	must(t, checks.Revisions(db))

	closeDB(t, db)
	clock.Advance(time.Hour)
	db = onDisk(t, disk, opts)
	r = db.Revisions()
	await("short/2", `{"n":3}`)

	// Without such a rule nothing goes, and with one again it does.
	configure(jay.RevisionRule{})
	fill()
	clock.Advance(24 * time.Hour)
	equal(t, jaytest.RevisionBodies(t, db, "short/1", jay.RevisionPage{}), `{"n":2} {"n":1} {"n":0} {"n":2}`)
	configure(jay.RevisionRule{KeepFor: time.Minute})
	await("short/1", `{"n":2}`)
	must(t, checks.Revisions(db))
	closeDB(t, db)
}

// Ensure that a large batch of deletions, whose documents are read beforehand, keeps
// them, also if the configuration changes in between.
func TestRevisions_LargeBatches(t *testing.T) {
	db := memory(t, nil)
	var puts, deletes jay.Batch
	for i := range 500 {
		puts.Put(fmt.Sprint("users/", i), []byte(`{"n":1}`))
		deletes.Delete(fmt.Sprint("users/", i))
	}
	_, err := db.Apply(ctx, &puts)
	must(t, err)
	jaytest.KeepRevisions(t, db, jay.RevisionRule{})
	_, err = db.Apply(ctx, &puts)
	must(t, err)
	_, err = db.Apply(ctx, &deletes)
	must(t, err)
	for i := range 500 {
		equal(t, jaytest.RevisionBodies(t, db, fmt.Sprint("users/", i), jay.RevisionPage{}), `- {"n":1} {"n":1}`)
	}
	must(t, checks.Revisions(db))
}

// Ensure that a copy under another node tag has the revisions of its original.
func TestRevisions_Copy(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	jaytest.KeepRevisions(t, db, jay.RevisionRule{})
	first := put(t, db, "a", `{"n":1}`).ChangeVector
	put(t, db, "a", `{"n":2}`)
	closeDB(t, db)
	db = onDisk(t, disk, jay.Options{CopyTag: "C"})
	defer closeDB(t, db)
	second := put(t, db, "a", `{"n":3}`).ChangeVector
	equal(t, second[0], 'C')
	put(t, db, "a", `{"n":4}`)
	equal(t, jaytest.RevisionBodies(t, db, "a", jay.RevisionPage{}), `{"n":4} {"n":3} {"n":2} {"n":1}`)
	for vector, want := range map[string]string{first: `{"n":1}`, second: `{"n":3}`} {
		rev, err := db.Revisions().Get(ctx, "a", vector)
		must(t, err)
		equal(t, string(rev.Body()), want)
	}
	must(t, checks.Revisions(db))
}

// Ensure that revisions that are imported are those that were exported, and that an
// import can be done again.
func TestRevisions_Import(t *testing.T) {
	clock := newClock()
	from := memory(t, &jay.Options{Now: clock.Now})
	jaytest.KeepRevisions(t, from, jay.RevisionRule{})
	for i := range 5 {
		clock.Advance(-time.Minute) // the order of the times is not that of the versions
		put(t, from, "users/Ann", fmt.Sprintf(`{"n":%d,"@metadata":{"k":%d}}`, i, i), jay.InCollection("Users"))
		put(t, from, "gone", fmt.Sprintf(`{"n":%d}`, i))
	}
	must(t, from.Delete(ctx, "gone"))
	var lines []json.RawMessage
	for rev, err := range from.Revisions().All(ctx, "") {
		must(t, err)
		text, err := json.Marshal(rev)
		must(t, err)
		lines = append(lines, text)
	}
	equal(t, len(lines), 4+6)

	to := memory(t, &jay.Options{NodeTag: "T"})
	jaytest.KeepRevisions(t, to, jay.RevisionRule{})
	for _, want := range []int{10, 0} {
		stored, err := to.Revisions().Import(ctx, lines)
		must(t, err)
		equal(t, stored, want)
		must(t, checks.Revisions(to))
	}
	put(t, to, "users/ann", `{"n":"later"}`, jay.InCollection("Users"))
	stored, err := to.Revisions().Import(ctx, lines)
	must(t, err)
	equal(t, stored, 0)
	put(t, to, "users/ann", `{"n":"again"}`)
	equal(t, jaytest.RevisionBodies(t, to, "users/ann", jay.RevisionPage{}), `{"n":"again"} {"n":"later"} {"n":3} {"n":2} {"n":1} {"n":0}`)
	equal(t, jaytest.RevisionBodies(t, to, "gone", jay.RevisionPage{}), `- {"n":4} {"n":3} {"n":2} {"n":1} {"n":0}`)
	var again []json.RawMessage
	for rev, err := range to.Revisions().All(ctx, "") {
		must(t, err)
		text, err := json.Marshal(rev)
		must(t, err)
		if !strings.Contains(string(text), "later") {
			again = append(again, text)
		}
		got, err := to.Revisions().Get(ctx, rev.ID(), rev.ChangeVector())
		must(t, err)
		equal(t, string(got.Body()), string(rev.Body()))
	}
	equal(t, fmt.Sprintf("%s", again), fmt.Sprintf("%s", lines))

	other := memory(t, nil)
	put(t, other, "gone", `{}`)
	if _, err := other.Revisions().Import(ctx, lines); !errors.Is(err, jay.ErrExists) {
		t.Errorf("the past of a document that is there: %v", err)
	}
	if _, err := to.Revisions().Import(ctx, []json.RawMessage{[]byte(strings.Replace(string(lines[0]), `"n":0`, `"n":7`, 1))}); !errors.Is(err, jay.ErrExists) {
		t.Errorf("another revision with the change vector: %v", err)
	}
	equal(t, jaytest.RevisionBodies(t, other, "users/ann", jay.RevisionPage{}), "")
	for _, line := range []string{``, `{}`, `[]`, `{"@metadata":{"@id":"a"}}`,
		`{"@metadata":{"@id":"a","@flags":"Revision","@change-vector":"A:1-x","@last-modified":"yesterday"}}`,
		`{"@metadata":{"@id":"a","@flags":"Revision","@change-vector":"A:x","@last-modified":"2026-11-21T12:02:00.0000000Z"}}`,
		`{"@metadata":{"@id":"a","@flags":"Revision","@change-vector":"A:9223372036854775807-x","@last-modified":"2026-11-21T12:02:00.0000000Z"}}`,
		`{"@metadata":{"@id":"a","@flags":"Revision","@change-vector":"A:1-\"","@last-modified":"2026-11-21T12:02:00.0000000Z"}}`,
		`{"@metadata":{"@id":"","@flags":"Revision","@change-vector":"A:1-x","@last-modified":"2026-11-21T12:02:00.0000000Z"}}`,
		`{"@metadata":{"@id":"a\u0000","@flags":"Revision","@change-vector":"A:1-x","@last-modified":"2026-11-21T12:02:00.0000000Z"}}`,
		`{"n":1,"@metadata":{"@id":"a","@flags":"DeleteRevision","@change-vector":"A:1-x","@last-modified":"2026-11-21T12:02:00.0000000Z"}}`,
	} {
		if _, err := other.Revisions().Import(ctx, []json.RawMessage{json.RawMessage(line)}); !errors.Is(err, jay.ErrInvalidDocument) && !errors.Is(err, jay.ErrInvalidID) && !errors.Is(err, jay.ErrUsage) {
			t.Errorf("%s: %v", line, err)
		}
	}
	if _, err := other.Revisions().Import(ctx, make([]json.RawMessage, 1001)); !errors.Is(err, jay.ErrUsage) {
		t.Error(err)
	}
	must(t, checks.Revisions(other))
}

// Ensure that a session reads revisions as values, does not hold them, and forces
// revisions of what it holds.
func TestRevisions_Session(t *testing.T) {
	db := memory(t, nil)
	docs := collectionOf[pastDoc](t, db, jay.Named("Docs"))
	s := db.OpenSession(jay.WithCollections(docs))
	d := &pastDoc{ID: "docs/1", N: 1}
	must(t, s.Store(ctx, d))
	if err := s.ForceRevision(&pastDoc{}); !errors.Is(err, jay.ErrUsage) {
		t.Error(err)
	}
	must(t, s.SaveChanges(ctx))
	equal(t, jaytest.RevisionBodies(t, db, "docs/1", jay.RevisionPage{}), "")
	for n := 2; n < 4; n++ {
		must(t, s.ForceRevision(d))
		d.N = n
		must(t, s.SaveChanges(ctx))
	}
	d.N = 4
	must(t, s.SaveChanges(ctx)) // replaces a revision, and is none
	equal(t, jaytest.RevisionBodies(t, db, "docs/1", jay.RevisionPage{}), `{"n":3} {"n":2} {"n":1}`)
	found, err := jay.LoadRevisions[pastDoc](ctx, s, "docs/1", jay.RevisionPage{})
	must(t, err)
	equal(t, fmt.Sprint(*found[0], *found[1], *found[2], len(found)), "{docs/1 3} {docs/1 2} {docs/1 1} 3")
	found[0].N = 99
	must(t, s.SaveChanges(ctx))
	equal(t, body(t, db, "docs/1"), `{"n":4}`)
	one, err := jay.LoadRevision[pastDoc](ctx, s, "docs/1", vectorsOf(t, db, "docs/1")[1])
	must(t, err)
	equal(t, one.N, 2)

	must(t, s.ForceRevision(d))
	changes, err := s.WhatChanged()
	must(t, err)
	equal(t, len(changes), 0)
	has, err := s.HasChanges()
	must(t, err)
	equal(t, has, true)
	must(t, db.Delete(ctx, "docs/1"))
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("a revision of a missing document: %v", err)
	}
	type other struct{ ID string }
	if _, err := jay.LoadRevisions[other](ctx, s, "docs/1", jay.RevisionPage{}); !errors.Is(err, jay.ErrCollection) {
		t.Errorf("as another type: %v", err)
	}
}

// Ensure that the history of a document goes on in the collection that its own is
// renamed to.
func TestRevisions_RenamedCollection(t *testing.T) {
	db := memory(t, nil)
	jaytest.KeepRevisions(t, db, jay.RevisionRule{})
	put(t, db, "a", `{"n":1}`, jay.InCollection("Old"))
	put(t, db, "a", `{"n":2}`)
	_, err := db.RenameCollection(ctx, "Old", "New")
	must(t, err)
	put(t, db, "a", `{"n":3}`)
	equal(t, jaytest.RevisionBodies(t, db, "a", jay.RevisionPage{}), `{"n":3} {"n":2} - {"n":2} {"n":1}`)
	must(t, checks.Revisions(db))
}

type pastDoc struct {
	ID string
	N  int `json:"n"`
}

func configText(t *testing.T, c jay.RevisionsConfiguration) string {
	t.Helper()
	text, err := json.Marshal(c)
	must(t, err)
	return string(text)
}

func mustGet(t *testing.T, db *jay.DB, id string) *jay.Document {
	t.Helper()
	doc, err := db.Get(ctx, id)
	must(t, err)
	return doc
}

// revisionSteps are random calls that number versions of a few documents, keep them and remove them. The same
// seed gives the same calls.
func revisionSteps(seed uint64, n int) (steps []func(db *jay.DB) error) {
	random := rand.New(rand.NewPCG(seed, 29))
	ids := []string{"a/1", "a/2", "a/3", "b/1", "b/2", "Wide/1"}
	for i := range n {
		id := ids[random.IntN(len(ids))]
		in := jay.InCollection(map[byte]string{'a': "A", 'b': "B", 'W': "Wide"}[id[0]])
		body := json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))
		var step func(db *jay.DB) error
		switch random.IntN(14) {
		case 0, 1, 2:
			step = func(db *jay.DB) error { return second(db.Put(ctx, id, body, in)) }
		case 3:
			step = func(db *jay.DB) error { return second(db.Put(ctx, id, body, in, jay.KeepRevision())) }
		case 4, 5:
			step = func(db *jay.DB) error { return second(db.Patch(ctx, id, jay.Set("p", i))) }
		case 6, 7:
			step = func(db *jay.DB) error { return db.Delete(ctx, id) }
		case 8:
			rules := map[string]jay.RevisionRule{}
			for _, c := range []string{"A", "B", "Wide"} {
				switch random.IntN(3) {
				case 0:
					rules[c] = jay.RevisionRule{}
				case 1:
					rules[c] = jay.RevisionRule{Keep: uint64(1 + random.IntN(3))}
				}
			}
			step = func(db *jay.DB) error {
				return db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Collections: rules})
			}
		case 9:
			step = func(db *jay.DB) error {
				return second(db.Revisions().Purge(ctx, jay.RevisionPurge{ID: id, Before: start.Add(time.Duration(random.IntN(2)*i) * time.Second)}))
			}
		case 10:
			step = func(db *jay.DB) error { return second(db.Revisions().Force(ctx, id)) }
		case 11:
			step = func(db *jay.DB) error {
				return second(db.Attachments(id).Put(ctx, "f", strings.NewReader(fmt.Sprint(i))))
			}
		default:
			step = func(db *jay.DB) error {
				var b jay.Batch
				b.Put("a/1", body, jay.InCollection("A"))
				b.Patch("b/1", jay.Set("p", i), jay.OrInsert(body), jay.InCollection("B"))
				b.Delete("a/3")
				return second(db.Apply(ctx, &b))
			}
		}
		steps = append(steps, step)
	}
	return steps
}

var start = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)

// versionsOf returns what is there of the documents of revisionSteps: bodies, flags, and the revisions. It fails the
// test where a flag contradicts the revisions.
func versionsOf(t *testing.T, what string, db *jay.DB) string {
	t.Helper()
	var out strings.Builder
	for _, id := range []string{"a/1", "a/2", "a/3", "b/1", "b/2", "Wide/1"} {
		d, err := db.Get(ctx, id)
		if err == nil {
			fmt.Fprintf(&out, "%s %s [%v]", id, d.Body(), d.Metadata().Flags)
		} else if !errors.Is(err, jay.ErrNotFound) {
			t.Fatal(err)
		}
		for r, err := range db.Revisions().List(ctx, id, jay.RevisionPage{}) {
			must(t, err)
			fmt.Fprintf(&out, " %s [%v]", r.Body(), r.Metadata().Flags)
		}
		out.WriteByte('\n')
	}
	report, err := db.Verify(ctx, &jay.VerifyOptions{SkipFiles: true})
	must(t, err)
	for _, d := range report.Damages {
		t.Errorf("%s: %v", what, d)
	}
	return out.String()
}

// Ensure that after a loss of power at any sync of puts, patches, deletes, purges and changes of the rules, the flag
// HasRevisions of each document and its revisions are those before or after the call that was under way, and that a
// backup of it restores to the same, and so does a repair.
func TestRevisions_CrashAtEverySync(t *testing.T) {
	const calls = 40
	rounds := 3
	if more, err := strconv.Atoi(os.Getenv("JAY_REVISION_ROUNDS")); err == nil {
		rounds = more
	}
	for round := range rounds {
		percent, seed := round%3*50, uint64(round+1)
		for n := 1; ; n += 1 + n%5 {
			if testing.Short() && n > 20 {
				break
			}
			disk, now := storagetest.NewDisk(), atomic.Int64{}
			opts := jay.Options{FS: disk, Now: func() time.Time { return start.Add(time.Duration(now.Load()) * time.Second) }}
			db, err := jay.Open("db", &opts)
			must(t, err)
			cut := disk.CutPower(n, percent, rand.New(rand.NewPCG(seed, uint64(n))))
			before := versionsOf(t, "new", db)
			happened := false
			for i, step := range revisionSteps(seed, calls) {
				now.Store(int64(i))
				if err := step(db); err != nil && !errors.Is(err, jay.ErrNotFound) {
					t.Fatalf("call %d: %v", i, err)
				}
				after := versionsOf(t, fmt.Sprintf("call %d", i), db)
				if happened = cut.Happened(); happened {
					what := fmt.Sprintf("round %d, sync %d, call %d", round, n, i)
					checkCut(t, what, cut.Disk(), opts, before, after, n%4 == 0)
					break
				}
				before = after
			}
			must(t, db.Close())
			if !happened {
				break
			}
		}
	}
}

// checkCut compares a disk after a loss of power with the versions before and after a call.
func checkCut(t *testing.T, what string, disk *storagetest.Disk, opts jay.Options, before, after string, copies bool) {
	t.Helper()
	left := disk.Crash(100, rand.New(rand.NewPCG(1, 1)))
	opts.FS = disk
	db, err := jay.Open("db", &opts)
	must(t, err)
	got := versionsOf(t, what, db)
	if got != before && got != after {
		t.Fatalf("%s: there is\n%safter\n%sand before\n%s", what, got, before, after)
	}
	if copies {
		var stream bytes.Buffer
		must(t, second(db.Backup(ctx, &stream)))
		restored := restoreMemory(t, jay.Options{Now: opts.Now}, stream.Bytes())
		if other := versionsOf(t, what+", restored", restored); other != got {
			t.Errorf("%s: restored is\n%sof\n%s", what, other, got)
		}
		dir := filepath.Join(t.TempDir(), "repaired")
		report, err := jay.Repair(ctx, "db", dir, &jay.Options{FS: left, Now: opts.Now}, nil)
		if err != nil || len(report.Lost) > 0 || report.After.Found > 0 {
			t.Errorf("%s: repair: %+v, %v", what, report, err)
		} else {
			repaired := open(t, dir, &jay.Options{Now: opts.Now})
			if other := versionsOf(t, what+", repaired", repaired); other != got {
				t.Errorf("%s: repaired is\n%sof\n%s", what, other, got)
			}
			must(t, repaired.Close())
		}
	}
	must(t, db.Close())
}

// flagRun is a database that several flagWriters write to until its power goes.
type flagRun struct {
	db      *jay.DB
	cut     *storagetest.PowerCut
	seconds *atomic.Int64 // the clock

	mu    sync.Mutex // held while the rules change, or a collection is renamed
	rules map[string]jay.RevisionRule
}

// flagWriter writes three documents of its own, which are in one collection, and some
// that all write.
type flagWriter struct {
	name       string
	collection string
	random     *rand.Rand
	flags      map[string]bool // of its documents: whether they must have HasRevisions

	states []string // of its documents, in their order: see flagWriter.state
	least  int      // the first of states that a crash may leave
}

func (w *flagWriter) ids() []string { return []string{w.name + "/1", w.name + "/2", w.name + "/3"} }

// rule returns the rule of its collection, and whether there is one.
func (w *flagWriter) rule(r *flagRun) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, found := r.rules[w.collection]
	return found
}

// configure changes the rule of the writer's collection, and of the one that it is renamed to.
func (w *flagWriter) configure(r *flagRun) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	rules := maps.Clone(r.rules)
	for _, name := range []string{w.name, w.name + "Renamed", "Shared"} {
		rule := jay.RevisionRule{}
		switch w.random.IntN(4) {
		case 0:
			delete(rules, name)
			continue
		case 1:
			rule.Keep = uint64(1 + w.random.IntN(3))
		case 2:
			rule.KeepFor = time.Duration(1+w.random.IntN(60)) * time.Second
		}
		rules[name] = rule
	}
	if err := r.db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Collections: rules}); err != nil {
		return err
	}
	r.rules = rules
	return nil
}

// rename puts the writer's documents into its other collection.
func (w *flagWriter) rename(r *flagRun) error {
	to := w.name + "Renamed"
	if w.collection == to {
		to = w.name
	}
	r.mu.Lock()
	_, err := r.db.RenameCollection(ctx, w.collection, to)
	r.mu.Unlock()
	if errors.Is(err, jay.ErrNotFound) {
		return nil // it has no documents
	}
	if err != nil {
		return err
	}
	w.collection = to
	on := w.rule(r)
	for id := range w.flags {
		w.flags[id] = on
	}
	return nil
}

// shared writes a document that the others write as well.
func (w *flagWriter) shared(r *flagRun, body json.RawMessage) error {
	id, in := fmt.Sprintf("s/%d", w.random.IntN(3)), jay.InCollection("Shared")
	due := start.Add(time.Duration(r.seconds.Load()+int64(w.random.IntN(3))) * time.Second)
	switch w.random.IntN(8) {
	case 0:
		return second(r.db.Put(ctx, id, body, in, jay.ExpiresAt(due)))
	case 1:
		return second(r.db.Put(ctx, id, body, in, jay.RefreshAt(due)))
	case 2:
		return second(r.db.Revisions().Force(ctx, id))
	case 3:
		return r.db.Delete(ctx, id)
	case 4:
		return second(r.db.Revisions().Purge(ctx, jay.RevisionPurge{Retention: true}))
	case 5:
		return second(r.db.Put(ctx, id, body, in, jay.KeepReplaced()))
	}
	return second(r.db.Patch(ctx, id, jay.Set("p", string(body)), jay.OrInsert(body), in))
}

// step makes one random call, and notes what it has made of the flags.
func (w *flagWriter) step(r *flagRun) error {
	n := r.seconds.Add(1) // no patch changes nothing, which would keep the flag
	id := w.ids()[w.random.IntN(3)]
	_, there := w.flags[id]
	body, in := json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)), jay.InCollection(w.collection)
	on := w.rule(r)
	db := r.db
	switch w.random.IntN(23) {
	case 0, 1, 2:
		w.flags[id] = on
		return second(db.Put(ctx, id, body, in))
	case 3:
		w.flags[id] = true
		return second(db.Put(ctx, id, body, in, jay.KeepRevision()))
	case 4:
		w.flags[id] = on
		return second(db.Put(ctx, id, body, in, jay.KeepReplaced()))
	case 5:
		if !there {
			return nil
		}
		w.flags[id] = on
		return second(db.Patch(ctx, id, jay.Set("p", n)))
	case 6:
		delete(w.flags, id)
		return db.Delete(ctx, id)
	case 7:
		return w.configure(r)
	case 8:
		return second(db.Revisions().Purge(ctx, jay.RevisionPurge{ID: id}))
	case 9:
		return second(db.Revisions().Purge(ctx, jay.RevisionPurge{Retention: true}))
	case 10, 11:
		var b jay.Batch
		ids := w.ids()
		b.Put(ids[0], body, in)
		b.Patch(ids[1], jay.Set("p", n), jay.OrInsert(body), in)
		b.Patch(ids[0], jay.Set("q", n))
		b.Delete(ids[2])
		w.flags[ids[0]], w.flags[ids[1]] = on, on
		delete(w.flags, ids[2])
		return second(db.Apply(ctx, &b))
	case 12:
		if !there {
			return nil
		}
		w.flags[id] = true
		return second(db.Revisions().Force(ctx, id))
	case 13:
		if !there {
			return nil
		}
		w.flags[id] = on
		return second(db.Attachments(id).Put(ctx, "f", strings.NewReader(fmt.Sprint(n))))
	case 14:
		return w.rename(r)
	case 15:
		w.flags[id] = on
		return db.Update(ctx, func(tx *jay.Tx) error {
			if _, err := tx.Get(ctx, "s/1"); err != nil && !errors.Is(err, jay.ErrNotFound) {
				return err
			}
			return second(tx.Put(ctx, id, body, in))
		}, jay.Retry(100))
	case 16:
		return db.Flush(ctx)
	case 17:
		clear(w.flags)
		return second(db.DropCollection(ctx, w.collection))
	case 18:
		w.flags[id] = on
		return bulkPut(db, id, body, in)
	case 19:
		var b jay.Batch
		for i := range 130 { // so many that what they replace is read before the transaction
			b.Put(fmt.Sprintf("%s/wide/%d", w.name, i), body, jay.InCollection("Shared"))
		}
		for _, id := range w.ids() {
			b.Put(id, body, in)
			w.flags[id] = on
		}
		return second(db.Apply(ctx, &b))
	}
	return w.shared(r, body)
}

// bulkPut puts a document by a bulk writer, on disk.
func bulkPut(db *jay.DB, id string, body json.RawMessage, opts ...jay.WriteOption) error {
	bulk, err := db.BulkInsert(nil)
	if err != nil {
		return err
	}
	_, err = bulk.Put(ctx, id, body, opts...)
	return errors.Join(err, bulk.Close(), db.Flush(ctx))
}

// state returns the writer's documents with their flags, and an error for a flag that
// contradicts the revisions.
func (w *flagWriter) state(db *jay.DB) (string, error) {
	var out strings.Builder
	for _, id := range w.ids() {
		d, err := db.Get(ctx, id)
		if errors.Is(err, jay.ErrNotFound) {
			continue
		}
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "%s in %s: %s [%v]\n", id, d.Collection(), d.Body(), d.Metadata().Flags)
		if err := agrees(db, d); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

// agrees returns an error if the flag of a document that nobody writes contradicts its revisions.
func agrees(db *jay.DB, d *jay.Document) error {
	listed := false
	for r, err := range db.Revisions().List(ctx, d.ID(), jay.RevisionPage{Limit: 1}) {
		if err != nil {
			return err
		}
		listed = r.ChangeVector() == d.ChangeVector()
	}
	if flag := d.Metadata().Flags&metadata.HasRevisions != 0; flag != listed {
		return fmt.Errorf("%s: HasRevisions is %t, and that it is a revision is %t", d.ID(), flag, listed)
	}
	return nil
}

// check compares the documents with the flags that they must have, and returns their state.
func (w *flagWriter) check(db *jay.DB) (string, error) {
	state, err := w.state(db)
	if err != nil {
		return "", err
	}
	for _, id := range w.ids() {
		want, there := w.flags[id]
		d, err := db.Get(ctx, id)
		if there != (err == nil) || err == nil && want != (d.Metadata().Flags&metadata.HasRevisions != 0) {
			return "", fmt.Errorf("%s must be there: %t, with HasRevisions: %t; %v; there is\n%s", id, there, want, err, state)
		}
	}
	return state, nil
}

// work makes calls until the power goes.
func (w *flagWriter) work(r *flagRun, relaxed bool, calls int) error {
	for n := range calls {
		if r.cut.Happened() {
			return nil
		}
		err := w.step(r)
		if err != nil && !errors.Is(err, jay.ErrNotFound) {
			return fmt.Errorf("%s, call %d: %w", w.name, n, err)
		}
		state, err := w.check(r.db)
		if err != nil {
			return fmt.Errorf("%s, call %d: %w", w.name, n, err)
		}
		w.states = append(w.states, state)
		if !relaxed && !r.cut.Happened() {
			w.least = len(w.states) - 1
		}
	}
	return nil
}

// reopened takes what a crash has left for what is there, if it may have left that.
func (w *flagWriter) reopened(db *jay.DB) error {
	state, err := w.state(db)
	if err != nil {
		return err
	}
	if !slices.Contains(w.states[w.least:], state) {
		return fmt.Errorf("%s: there is\n%sand not one of\n%s", w.name, state, strings.Join(w.states[w.least:], "or\n"))
	}
	clear(w.flags)
	for _, id := range w.ids() {
		if d, err := db.Get(ctx, id); err == nil {
			w.flags[id] = d.Metadata().Flags&metadata.HasRevisions != 0
			w.collection = d.Collection()
		}
	}
	w.states, w.least = append(w.states[:0], state), 0
	return nil
}

// Ensure that after a loss of power beside several writers, who put, patch, delete, force, purge, drop, rename and change
// the rules, the flag HasRevisions of each document is what the call before it or the one that was under way has made of it,
// under both durabilities, and that it agrees with the revisions; in a backup and a repair of it, too.
func TestRevisions_FlagsAfterCrashesOfManyWriters(t *testing.T) {
	rounds := 4
	if more, err := strconv.Atoi(os.Getenv("JAY_REVISION_ROUNDS")); err == nil {
		rounds = more
	}
	first := 0
	if n, err := strconv.Atoi(os.Getenv("JAY_REVISION_SEED")); err == nil {
		first = n
	}
	for round := first; round < first+rounds; round++ {
		flagRound(t, round)
	}
}

// flagRound is a few crashes of one database.
func flagRound(t *testing.T, round int) {
	random := rand.New(rand.NewPCG(uint64(round), 69))
	seconds := new(atomic.Int64)
	disk := storagetest.NewDisk()
	opts := jay.Options{Now: func() time.Time { return start.Add(time.Duration(seconds.Load()) * time.Second) }, ExactExpiry: round%3 == 0}
	if round%2 == 1 {
		opts.Durability = jay.Relaxed
	}
	if round%4 > 1 {
		opts.DocumentCacheBytes = -1
	}
	var writers []*flagWriter
	for _, name := range []string{"a", "b", "c", "d"} {
		writers = append(writers, &flagWriter{name: name, collection: name, flags: make(map[string]bool), states: []string{""}, random: rand.New(rand.NewPCG(uint64(round), uint64(name[0])))})
	}
	for crash := range 4 {
		what := fmt.Sprintf("round %d, crash %d", round, crash)
		opts.FS = disk
		db, err := jay.Open("db", &opts)
		must(t, err)
		run := &flagRun{db: db, seconds: seconds, rules: make(map[string]jay.RevisionRule)}
		maps.Copy(run.rules, db.Revisions().Configuration().Collections)
		for _, w := range writers {
			if err := w.reopened(db); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		checkFlags(t, what, db)
		run.cut = disk.CutPower(1+random.IntN(40), random.IntN(3)*50, random)
		failures := make(chan error, len(writers))
		var working sync.WaitGroup
		for _, w := range writers {
			working.Go(func() { failures <- w.work(run, opts.Durability == jay.Relaxed, 60) })
		}
		working.Wait()
		for range writers {
			if err := <-failures; err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		must(t, db.Close())
		if left := run.cut.Disk(); left != nil {
			disk = left
		}
	}
	opts.FS = disk
	db, err := jay.Open("db", &opts)
	must(t, err)
	var stream bytes.Buffer
	must(t, second(db.Backup(ctx, &stream)))
	must(t, db.Close())
	restored := restoreMemory(t, jay.Options{Now: opts.Now}, stream.Bytes())
	dir := filepath.Join(t.TempDir(), "repaired")
	_, err = jay.Repair(ctx, "db", dir, &jay.Options{FS: disk, Now: opts.Now}, nil)
	must(t, err)
	repaired := open(t, dir, &jay.Options{Now: opts.Now})
	for _, copied := range []*jay.DB{restored, repaired} {
		for _, w := range writers {
			if err := w.reopened(copied); err != nil {
				t.Fatalf("round %d, a copy: %v", round, err)
			}
		}
		checkFlags(t, fmt.Sprintf("round %d, a copy", round), copied)
		must(t, copied.Close())
	}
}

// checkFlags checks all that is stored, and what all of the writers write.
func checkFlags(t *testing.T, what string, db *jay.DB) {
	t.Helper()
	report, err := db.Verify(ctx, &jay.VerifyOptions{SkipFiles: true})
	must(t, err)
	for _, d := range report.Damages {
		t.Errorf("%s: %v", what, d)
	}
}

// Ensure that the first version of a document with an ID that the database makes has the number after the revisions of
// a document that had the same ID: otherwise the next write replaces one of them.
func TestRevisions_MadeIDWithAPast(t *testing.T) {
	db, err := jay.OpenMemory(nil)
	must(t, err)
	defer db.Close()
	must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: &jay.RevisionRule{}}))
	first, err := db.Put(ctx, "users/", json.RawMessage(`{}`))
	must(t, err)
	digits, _ := strings.CutSuffix(strings.TrimPrefix(first.ID, "users/"), "-A")
	n, err := strconv.Atoi(digits)
	must(t, err)
	id := fmt.Sprintf("users/%0*d-A", len(digits), n+3) // the put has the etag n+1, and the deletion n+2
	must(t, second(db.Put(ctx, id, json.RawMessage(`{"n":1}`))))
	must(t, db.Delete(ctx, id))
	made, err := db.Put(ctx, "users/", json.RawMessage(`{"n":2}`))
	must(t, err)
	if made.ID != id {
		t.Fatalf("%s was made, and not %s", made.ID, id)
	}
	must(t, second(db.Put(ctx, id, json.RawMessage(`{"n":3}`))))
	var bodies []string
	for r, err := range db.Revisions().List(ctx, id, jay.RevisionPage{}) {
		must(t, err)
		bodies = append(bodies, string(r.Body()))
	}
	if got := strings.Join(bodies, " "); got != `{"n":3} {"n":2} {} {"n":1}` {
		t.Errorf("the revisions are %s", got)
	}
	checkFlags(t, "after", db)
}

// Ensure that a repaired database lists a document as deleted whose newest revision is a deletion, though the document
// is there again, as no revision: when it is deleted again, nothing else says so.
func TestRepair_DeletedAndPutWithoutARule(t *testing.T) {
	disk := storagetest.NewDisk()
	db, err := jay.Open("db", &jay.Options{FS: disk})
	must(t, err)
	must(t, second(db.Put(ctx, "a", json.RawMessage(`{}`), jay.KeepRevision())))
	must(t, db.Delete(ctx, "a"))
	must(t, second(db.Put(ctx, "a", json.RawMessage(`{}`))))
	must(t, db.Close())
	dir := filepath.Join(t.TempDir(), "repaired")
	must(t, second(jay.Repair(ctx, "db", dir, &jay.Options{FS: disk}, nil)))
	repaired := open(t, dir, nil)
	must(t, repaired.Delete(ctx, "a"))
	checkFlags(t, "repaired", repaired)
}
