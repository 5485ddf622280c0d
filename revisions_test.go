package jay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
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

// Ensure that a purge removes nothing that it was not asked to, and says what it does.
func TestRevisions_Purge(t *testing.T) {
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
