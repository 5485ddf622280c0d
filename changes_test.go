package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage/storagetest"
)

// changed returns the changes behind a token, until the feed has caught up.
func changed(t testing.TB, db *jay.DB, since string, opts ...jay.ChangesOption) (all []jay.Change) {
	t.Helper()
	for c, err := range db.Changes(ctx, since, append(opts, jay.UntilCaughtUp())...) {
		must(t, err)
		all = append(all, c)
	}
	return all
}

// changesText says in a line what happened to which document.
func changesText(all []jay.Change) string {
	var b strings.Builder
	for i, c := range all {
		if i > 0 {
			b.WriteByte(' ')
		}
		switch {
		case c.Checkpoint:
			fmt.Fprintf(&b, "=%d", c.Etag)
		case c.Deleted:
			fmt.Fprintf(&b, "-%s@%d", c.ID, c.Etag)
		default:
			fmt.Fprintf(&b, "+%s@%d", c.ID, c.Etag)
		}
		if c.Document != nil {
			fmt.Fprintf(&b, "%s", c.Document.Body())
		}
	}
	return b.String()
}

// following is a feed whose next change a test asks for.
type following struct {
	t    testing.TB
	next func() (jay.Change, error, bool)
	stop func()
}

func follow(t testing.TB, feed iter.Seq2[jay.Change, error]) *following {
	next, stop := iter.Pull2(feed)
	t.Cleanup(stop)
	return &following{t, next, stop}
}

// want compares the next changes, for which it waits.
func (f *following) want(text string) {
	f.t.Helper()
	var all []jay.Change
	for range strings.Fields(text) {
		c, err, ok := f.next()
		if err != nil || !ok {
			f.t.Fatalf("after %s: %v, %t; want %s", changesText(all), err, ok, text)
		}
		all = append(all, c)
	}
	equal(f.t, changesText(all), text)
}

// wantError compares the error with which the feed ends.
func (f *following) wantError(want error) {
	f.t.Helper()
	c, err, _ := f.next()
	if !errors.Is(err, want) {
		f.t.Errorf("got %+v, %v; want %v", c, err, want)
	}
	if _, _, ok := f.next(); ok {
		f.t.Error("the feed goes on behind an error")
	}
}

// Ensure that a feed shows each document's newest change in the order of etags, the
// past first and then what comes, deletions included.
func TestChanges_PastAndLive(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "users/a", `{"n":1}`)
	put(t, db, "users/B", `{"n":2}`)
	put(t, db, "users/a", `{"n":3}`)
	must(t, db.Delete(ctx, "users/b"))

	f := follow(t, db.Changes(ctx, ""))
	f.want("+users/a@3 -users/b@4")
	put(t, db, "users/C", `{}`)
	f.want("+users/C@5")
	put(t, db, "users/d", `{}`)
	put(t, db, "users/d", `{}`)
	f.want("+users/d@7") // the one before is overwritten
	must(t, db.Delete(ctx, "users/d"))
	put(t, db, "users/d", `{}`)
	f.want("-users/d@8 +users/d@9") // both are there
}

// Ensure that a change says what the document's metadata does, and has the document
// if that is asked for.
func TestChanges_Fields(t *testing.T) {
	clock := newClock()
	db := memory(t, &jay.Options{Now: clock.Now})
	m := put(t, db, "Users/Ann", `{"n":1}`, jay.InCollection("Users"))
	put(t, db, "plain", `{}`)
	must(t, db.Delete(ctx, "Plain"))

	all := changed(t, db, "", jay.WithDocuments())
	equal(t, len(all), 2)
	c := all[0]
	equal(t, c.ID, "Users/Ann")
	equal(t, c.Collection, "Users")
	equal(t, c.Etag, m.Etag)
	equal(t, c.ChangeVector(), m.ChangeVector)
	equal(t, c.LastModified, m.LastModified)
	equal(t, c.Deleted, false)
	equal(t, string(c.Document.Body()), `{"n":1}`)
	equal(t, c.Document.ChangeVector(), m.ChangeVector)

	c = all[1]
	equal(t, c.ID, "plain")
	equal(t, c.Collection, "@empty")
	equal(t, c.Deleted, true)
	equal(t, c.Document == nil, true)
	equal(t, c.LastModified.IsZero(), true)
	equal(t, changed(t, db, "")[0].Document == nil, true)
	equal(t, jay.Change{}.Token()+jay.Change{}.ChangeVector(), "")
}

// Ensure that filters of one kind are alternatives, that those of several kinds all
// hold, and that names are compared as the database compares them.
func TestChanges_Filters(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "users/1", `{}`, jay.InCollection("Users"))
	put(t, db, "users/2", `{}`, jay.InCollection("Staff"))
	put(t, db, "orders/1", `{}`, jay.InCollection("Orders"))
	put(t, db, "orders/2", `{}`, jay.InCollection("Orders"))
	put(t, db, "loose", `{}`)
	must(t, db.Delete(ctx, "orders/2"))

	for _, test := range []struct {
		name string
		opts []jay.ChangesOption
		want string
	}{
		{"none", nil, "+users/1@1 +users/2@2 +orders/1@3 +loose@5 -orders/2@6"},
		{"collection", []jay.ChangesOption{jay.OfCollections("ORDERS")}, "+orders/1@3 -orders/2@6"},
		{"two collections", []jay.ChangesOption{jay.OfCollections("Users", "Staff")}, "+users/1@1 +users/2@2"},
		{"two collections, apart", []jay.ChangesOption{jay.OfCollections("Users"), jay.OfCollections("Staff")}, "+users/1@1 +users/2@2"},
		{"no collection", []jay.ChangesOption{jay.OfCollections("@empty")}, "+loose@5"},
		{"prefix", []jay.ChangesOption{jay.OfPrefixes("Users/")}, "+users/1@1 +users/2@2"},
		{"prefix of everything", []jay.ChangesOption{jay.OfPrefixes("")}, "+users/1@1 +users/2@2 +orders/1@3 +loose@5 -orders/2@6"},
		{"ids", []jay.ChangesOption{jay.OfIDs("ORDERS/2", "users/2", "missing")}, "+users/2@2 -orders/2@6"},
		{"collection and prefix", []jay.ChangesOption{jay.OfCollections("Staff"), jay.OfPrefixes("users/")}, "+users/2@2"},
		{"nothing", []jay.ChangesOption{jay.OfCollections("Nothing")}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			equal(t, changesText(changed(t, db, "", test.opts...)), test.want)
		})
	}

	sensitive := memory(t, &jay.Options{CaseSensitive: true})
	put(t, sensitive, "users/A", `{}`)
	put(t, sensitive, "users/a", `{}`)
	equal(t, changesText(changed(t, sensitive, "", jay.OfIDs("users/A"))), "+users/A@1")
	equal(t, changesText(changed(t, sensitive, "", jay.OfPrefixes("Users"))), "")

	many := make([]string, 129)
	for _, opt := range []jay.ChangesOption{jay.OfCollections(many...), jay.OfIDs(many...), jay.OfPrefixes(many...)} {
		follow(t, db.Changes(ctx, "", opt)).wantError(jay.ErrUsage)
	}
	follow(t, db.Changes(ctx, "", jay.OfCollections("a\x00b"))).wantError(jay.ErrInvalidDocument)
}

// Ensure that the token of each change leads to those behind it, in this process and in
// the next one, and that a change vector of the database is a token.
func TestChanges_Tokens(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, nil)
	for i := range 5 {
		put(t, db, fmt.Sprint("docs/", i), `{}`)
	}
	must(t, db.Delete(ctx, "docs/2"))
	m := put(t, db, "docs/0", `{}`)
	all := changed(t, db, "")
	equal(t, len(all), 5)
	for range 2 {
		for i, c := range all {
			equal(t, changesText(changed(t, db, c.Token())), changesText(all[i+1:]))
			equal(t, changesText(changed(t, db, c.ChangeVector())), changesText(all[i+1:]))
		}
		equal(t, changesText(changed(t, db, m.ChangeVector)), "")
		closeDB(t, db)
		db = open(t, dir, nil)
	}
	last := put(t, db, "docs/9", `{}`)
	equal(t, changesText(changed(t, db, all[4].Token())), fmt.Sprint("+docs/9@", last.Etag))
	closeDB(t, db)
}

// Ensure that what is no token is refused, and what is a token of another history is
// never taken for one of this.
func TestChanges_Tokens_Wrong(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, nil)
	put(t, db, "a", `{}`)
	token := changed(t, db, "")[0].Token()
	for _, since := range []string{"x", "A", "A:", "A:1", "A:1-", ":1-x", "A:-1-x", "A:x-y", "A:1-x~", "A:1-x~y", "1", "later", "A:9223372036854775807-x", strings.Repeat("x", 100_000), token + "~x", "A:\x00-x"} {
		_, err, _ := follow(t, db.Changes(ctx, since)).next()
		if !errors.Is(err, jay.ErrUsage) {
			t.Errorf("since %.40q: %v", since, err)
		} else if len(err.Error()) > 1000 {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
	}

	// Of the future, and of a database that is another one.
	future := strings.Replace(token, ":1-", ":2-", 1)
	other := memory(t, nil)
	put(t, other, "a", `{}`)
	for _, since := range []string{future, changed(t, other, "")[0].Token(), token + "~2"} {
		_, err, _ := follow(t, db.Changes(ctx, since)).next()
		var gone *jay.ChangesGoneError
		if !errors.As(err, &gone) || !errors.Is(err, jay.ErrChangesGone) || gone.Since != since {
			t.Errorf("since %q: %v", since, err)
		}
	}
	closeDB(t, db)

	// A copy: what the original did since has etags that the copy uses, too.
	db = open(t, dir, &jay.Options{CopyTag: "B"})
	follow(t, db.Changes(ctx, token)).wantError(jay.ErrChangesGone)
	put(t, db, "b", `{}`)
	all := changed(t, db, "")
	equal(t, changesText(all), "+a@1 +b@2")
	equal(t, strings.HasPrefix(all[0].ChangeVector(), "A:1-"), true)
	equal(t, strings.HasPrefix(all[0].Token(), "B:1-"), true)
	equal(t, changesText(changed(t, db, all[0].Token())), "+b@2")
	put(t, db, "a", `{}`)
	equal(t, changesText(changed(t, db, all[0].Token())), "+b@2 +a@3")
	follow(t, db.Changes(ctx, all[0].ChangeVector())).wantError(jay.ErrChangesGone)
	closeDB(t, db)
}

// Ensure that SinceNow shows nothing of the past, and that its tokens are good even if
// nothing has ever been written.
func TestChanges_SinceNow(t *testing.T) {
	db := memory(t, nil)
	f := follow(t, db.Changes(ctx, jay.SinceNow, jay.WithCheckpoints()))
	go func() { // the feed has begun when it waits
		for jay.FeedsWaiting(db) == 0 {
			time.Sleep(time.Millisecond)
		}
		put(t, db, "a", `{}`)
	}()
	f.want("+a@1")
	equal(t, changesText(changed(t, db, jay.SinceNow)), "")
}

// Ensure that what is written after Opened was called comes, and nothing from before.
func TestChanges_Opened(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "past", `{}`)
	opened := make(chan struct{})
	f := follow(t, db.Changes(ctx, jay.SinceNow, jay.Opened(func() { close(opened) })))
	go func() {
		<-opened
		put(t, db, "a", `{}`)
	}()
	f.want("+a@2")
}

// Ensure that checkpoints lead past what the filters leave out, and that there is none
// without need.
func TestChanges_Checkpoints(t *testing.T) {
	db := memory(t, nil)
	for i := range 10 {
		put(t, db, fmt.Sprint("docs/", i), `{}`)
	}
	only := []jay.ChangesOption{jay.OfIDs("docs/3", "docs/x"), jay.WithCheckpoints()}
	all := changed(t, db, "", only...)
	equal(t, changesText(all), "+docs/3@4 =10")
	equal(t, changesText(changed(t, db, all[1].Token(), only...)), "")
	equal(t, all[1].ChangeVector(), "")
	equal(t, changesText(changed(t, db, "", jay.WithCheckpoints())), changesText(changed(t, db, "")))

	f := follow(t, db.Changes(ctx, all[1].Token(), only...))
	put(t, db, "docs/1", `{}`)
	f.want("=11")
	put(t, db, "docs/x", `{}`)
	f.want("+docs/x@12")
}

// Ensure that more than one batch of changes comes in order and once each, however the
// bounds of batches fall.
func TestChanges_ManyBatches(t *testing.T) {
	t.Parallel()
	db := memory(t, &jay.Options{Durability: jay.Relaxed})
	var b jay.Batch
	want := 0
	for i := range 10_000 {
		collection := "Many"
		if i%5000 == 4999 {
			collection, want = "Few", want+1
		}
		b.Put(fmt.Sprint("docs/", i), json.RawMessage(`{}`), jay.InCollection(collection))
	}
	_, err := db.Apply(ctx, &b)
	must(t, err)
	for i, c := range changed(t, db, "") {
		if c.Etag != uint64(i+1) {
			t.Fatalf("change %d has etag %d", i, c.Etag)
		}
	}
	equal(t, len(changed(t, db, "")), 10_000)
	equal(t, len(changed(t, db, "", jay.OfCollections("Few"))), want)

	// Documents of more than a batch's bytes.
	for i := range 5 {
		put(t, db, fmt.Sprint("large/", i), `{"x":"`+strings.Repeat("x", 700<<10)+`"}`)
	}
	large := changed(t, db, "", jay.OfPrefixes("large/"), jay.WithDocuments())
	equal(t, len(large), 5)
	for _, c := range large {
		equal(t, len(c.Document.Body()) > 700<<10, true)
	}
}

// Ensure that everything that writes is seen: batches, transactions, sessions, patches,
// bulk writers, deletes by query, and the drop of a collection.
func TestChanges_OfEveryVerb(t *testing.T) {
	db := memory(t, nil)
	f := follow(t, db.Changes(ctx, ""))
	var b jay.Batch
	b.Put("docs/1", json.RawMessage(`{"n":1}`), jay.InCollection("Docs"))
	b.Put("docs/2", json.RawMessage(`{"n":2}`), jay.InCollection("Docs"))
	_, err := db.Apply(ctx, &b)
	must(t, err)
	f.want("+docs/1@1 +docs/2@2")

	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		if err := tx.Delete(ctx, "docs/1"); err != nil {
			return err
		}
		_, err := tx.Put(ctx, "docs/3", json.RawMessage(`{"n":3}`), jay.InCollection("Docs"))
		return err
	}))
	f.want("-docs/1@3 +docs/3@4")

	_, err = db.Patch(ctx, "docs/2", jay.Increment("n", 10))
	must(t, err)
	f.want("+docs/2@5")

	bulk, err := db.BulkInsert(nil)
	must(t, err)
	_, err = bulk.Put(ctx, "docs/4", json.RawMessage(`{"n":4}`), jay.InCollection("Docs"))
	must(t, err)
	must(t, bulk.Close())
	f.want("+docs/4@6")

	_, err = db.Query("Docs").Where(jay.Eq("n", 4)).Delete(ctx)
	must(t, err)
	f.want("-docs/4@7")

	_, err = db.DropCollection(ctx, "Docs")
	must(t, err)
	f.want("-docs/2@8 -docs/3@9")

	// What fails is not seen, and what changes nothing neither.
	if _, err := db.Put(ctx, "docs/5", json.RawMessage(`{`)); err == nil {
		t.Error("put bad JSON")
	}
	must(t, db.Delete(ctx, "missing"))
	put(t, db, "end", `{}`)
	c, err, _ := f.next()
	must(t, err)
	equal(t, c.ID, "end")
}

// Ensure that with ExactExpiry neither a feed nor a subscription shows a document that has
// expired.
func TestChanges_Expired(t *testing.T) {
	clock := newClock()
	db := memory(t, &jay.Options{Now: clock.Now, ExactExpiry: true})
	subscribed(t, db, jay.Subscription{Name: "all", Query: "from @all_docs"})
	put(t, db, "docs/1", `{}`, jay.WithTTL(time.Minute))
	put(t, db, "docs/2", `{}`)
	equal(t, changesText(changed(t, db, "")), "+docs/1@1 +docs/2@2")
	clock.Advance(2 * time.Minute)
	for _, c := range changed(t, db, "") {
		if c.ID == "docs/1" && !c.Deleted {
			t.Error("a feed shows a document that has expired")
		}
	}
	equal(t, sent(t, db, "all", jay.WorkOptions{}), "docs/2")
}

// Ensure that a renamed collection is seen as deletions in the old one, and documents in
// the new one.
func TestChanges_Rename(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "docs/1", `{}`, jay.InCollection("Docs"))
	_, err := db.RenameCollection(ctx, "Docs", "Papers")
	must(t, err)
	equal(t, changesText(changed(t, db, "")), "-docs/1@2 +docs/1@3")
	equal(t, changesText(changed(t, db, "", jay.OfCollections("Docs"))), "-docs/1@2")
	equal(t, changesText(changed(t, db, "", jay.OfCollections("Papers"))), "+docs/1@3")
}

// Ensure that a change is not seen before it is on disk, and comes when it is.
func TestChanges_OnlyWhenDurable(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	defer closeDB(t, db)
	put(t, db, "a", `{}`)
	f := follow(t, db.Changes(ctx, ""))
	f.want("+a@1")

	hold := disk.Hold(storagetest.Logs, storagetest.Syncs)
	answer := make(chan error, 1)
	go func() {
		_, err := db.Put(ctx, "b", json.RawMessage(`{}`))
		answer <- err
	}()
	jaytest.Await(t, "the sync of the log", hold.Met())
	equal(t, changesText(changed(t, db, "")), "+a@1")
	hold.Release()
	f.want("+b@2")
	must(t, within(t, answer, "put"))
}

// Ensure that a waiting feed ends with its context, with the database, and with a disk
// that fails; and that a loop that is left leaves nothing.
func TestChanges_End(t *testing.T) {
	t.Parallel()
	t.Run("context", func(t *testing.T) {
		db := memory(t, nil)
		ctx, cancel := context.WithCancel(ctx)
		f := follow(t, db.Changes(ctx, ""))
		cancel()
		f.wantError(context.Canceled)

		ctx, cancel = context.WithCancel(context.Background())
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			for _, err := range db.Changes(ctx, "") {
				ended <- err
			}
		}()
		for jay.FeedsWaiting(db) == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
		if err := within(t, ended, "the feed"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Run("close", func(t *testing.T) {
		db := open(t, t.TempDir(), nil)
		put(t, db, "a", `{}`)
		waiting, inside := make(chan error, 1), make(chan error, 1)
		go func() {
			for _, err := range db.Changes(ctx, jay.SinceNow) {
				waiting <- err
			}
		}()
		for jay.FeedsWaiting(db) == 0 {
			time.Sleep(time.Millisecond)
		}
		go func() {
			for c, err := range db.Changes(ctx, "") {
				if err != nil {
					inside <- err
					return
				}
				equal(t, c.ID, "a")
				closeDB(t, db) // Close does not wait for the body of the loop
			}
		}()
		for _, answer := range []chan error{waiting, inside} {
			if err := within(t, answer, "the feed"); !errors.Is(err, jay.ErrClosed) {
				t.Error(err)
			}
		}
		follow(t, db.Changes(ctx, "")).wantError(jay.ErrClosed)
	})
	t.Run("disk", func(t *testing.T) {
		disk := storagetest.NewDisk()
		db := onDisk(t, disk, jay.Options{})
		put(t, db, "a", `{}`)
		f := follow(t, db.Changes(ctx, ""))
		f.want("+a@1")
		disk.Fail()
		if _, err := db.Put(ctx, "b", json.RawMessage(`{}`)); !errors.Is(err, jay.ErrUnknownOutcome) {
			t.Errorf("put on a failing disk: %v", err)
		}
		c, err, _ := f.next()
		if !errors.Is(err, jay.ErrFailed) && !errors.Is(err, jay.ErrUnknownOutcome) {
			t.Errorf("got %+v, %v", c, err)
		}
		_ = db.Close() // the disk has failed
	})
	t.Run("break", func(t *testing.T) {
		db := memory(t, nil)
		put(t, db, "a", `{}`)
		for range db.Changes(ctx, "") {
			break
		}
		func() {
			defer func() { _ = recover() }()
			for range db.Changes(ctx, "") {
				panic("in the body")
			}
		}()
		equal(t, jay.FeedsOpen(db), 0)
	})
}

// Ensure that a canceled write that commits later is seen: its caller has left before
// the disk answered.
func TestChanges_CallerLeft(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	defer closeDB(t, db)
	put(t, db, "a", `{}`)
	f := follow(t, db.Changes(ctx, ""))
	f.want("+a@1")
	hold := disk.Hold(storagetest.Logs, storagetest.Syncs)
	leaving, leave := context.WithCancel(ctx)
	answer := make(chan error, 1)
	go func() {
		_, err := db.Put(leaving, "b", json.RawMessage(`{}`))
		answer <- err
	}()
	jaytest.Await(t, "the sync of the log", hold.Met())
	leave()
	if err := within(t, answer, "put"); !errors.Is(err, jay.ErrUnknownOutcome) {
		t.Error(err)
	}
	hold.Release()
	f.want("+b@2")
}

// replica is what a reader makes of the changes. It checks that etags rise, and that one
// etag has one content.
type replica struct {
	t       testing.TB
	token   string
	etag    uint64
	bodies  map[string]string // by folded ID
	etags   map[string]uint64
	content map[uint64]string // by etag; shared by all that read one history
}

func newReplica(t testing.TB, content map[uint64]string) *replica {
	return &replica{t: t, bodies: make(map[string]string), etags: make(map[string]uint64), content: content}
}

func (r *replica) apply(c jay.Change) {
	r.t.Helper()
	if c.Etag <= r.etag {
		r.t.Errorf("etag %d of %s comes after %d", c.Etag, c.ID, r.etag)
	}
	id := strings.ToLower(c.ID)
	text := id
	r.etag, r.token = c.Etag, c.Token()
	if c.Deleted {
		delete(r.bodies, id)
		delete(r.etags, id)
		text += " deleted"
	} else {
		r.bodies[id], r.etags[id] = string(c.Document.Body()), c.Etag
		text += " " + r.bodies[id]
	}
	if before, found := r.content[c.Etag]; found && before != text {
		r.t.Errorf("etag %d is %q, and was %q", c.Etag, text, before)
	}
	r.content[c.Etag] = text
}

// same compares the replica with the documents.
func (r *replica) same(db *jay.DB) {
	r.t.Helper()
	n := 0
	for doc, err := range db.Documents(ctx, jay.Scan{}) {
		must(r.t, err)
		id := strings.ToLower(doc.ID())
		if n++; r.bodies[id] != string(doc.Body()) || r.etags[id] != doc.Metadata().Etag {
			r.t.Errorf("%s is %s at %d, and the reader has %q at %d", id, doc.Body(), doc.Metadata().Etag, r.bodies[id], r.etags[id])
		}
	}
	equal(r.t, len(r.bodies), n)
}

// Ensure that after a loss of power, at any sync of the log and whatever part of the
// unsynced data survives, all that feeds have shown is there, and that a reader that
// goes on behind its last token comes to hold what the database holds.
func TestChanges_Crash_AtAnySync(t *testing.T) {
	for _, percent := range []int{0, 50, 100} {
		t.Run(fmt.Sprintf("%d%% of the unsynced data kept", percent), func(t *testing.T) {
			random := rand.New(rand.NewPCG(16, uint64(percent)))
			disk := storagetest.NewDisk()
			content := make(map[uint64]string)
			seen := newReplica(t, content)
			shown := 0
			for round := range 25 {
				db := onDisk(t, disk, jay.Options{})
				var mu sync.Mutex
				var crashed *storagetest.Disk
				var justBefore []jay.Change
				// Every second round goes on until the reader was shown something.
				left, before, more := random.IntN(40), shown, jaytest.Patience()
				disk.OnSync(func() {
					mu.Lock()
					defer mu.Unlock()
					if left--; left < 0 && crashed == nil && !more(round%2 == 0 || shown > before) {
						// A commit is in the engine, and not on disk.
						justBefore = changed(t, db, "", jay.WithDocuments())
						crashed = disk.Crash(percent, random)
					}
				})
				gone := func() bool { mu.Lock(); defer mu.Unlock(); return crashed != nil }

				var reader sync.WaitGroup
				reading, stop := context.WithCancel(ctx)
				reader.Go(func() {
					for c, err := range db.Changes(reading, seen.token, jay.WithDocuments()) {
						if err != nil {
							if !errors.Is(err, context.Canceled) {
								t.Errorf("round %d: %v", round, err)
							}
							return
						}
						mu.Lock()
						// What is shown after the power went is of a world that is gone.
						if crashed == nil {
							seen.apply(c)
							shown++
						}
						mu.Unlock()
					}
				})
				var writers sync.WaitGroup
				for w := range 4 {
					random := rand.New(rand.NewPCG(uint64(round), uint64(w)))
					writers.Go(func() {
						for i := 0; !gone() && !t.Failed(); i++ {
							id := fmt.Sprint("docs/", random.IntN(30))
							if random.IntN(4) == 0 {
								must(t, db.Delete(ctx, id))
							} else {
								put(t, db, id, fmt.Sprintf(`{"round":%d,"writer":%d,"i":%d}`, round, w, i))
							}
						}
					})
				}
				writers.Wait()
				stop()
				reader.Wait()
				disk.OnSync(func() {})
				closeDB(t, db)
				if disk = crashed; t.Failed() {
					t.Fatalf("round %d", round)
				}

				db = onDisk(t, disk, jay.Options{})
				newest := make(map[string]jay.Change)
				for _, c := range changed(t, db, "", jay.WithDocuments()) {
					newest[strings.ToLower(c.ID)] = c
				}
				for _, c := range justBefore {
					if now := newest[c.ID]; now.Etag < c.Etag || now.Etag == c.Etag && changesText([]jay.Change{c}) != changesText([]jay.Change{now}) {
						t.Errorf("a feed showed %s before the crash, and there is %s", changesText([]jay.Change{c}), changesText([]jay.Change{now}))
					}
				}
				for c, err := range db.Changes(ctx, seen.token, jay.WithDocuments(), jay.UntilCaughtUp()) {
					must(t, err)
					seen.apply(c)
				}
				seen.same(db)
				closeDB(t, db)
				if t.Failed() {
					t.Fatalf("round %d", round)
				}
			}
			t.Logf("%d changes shown while writers wrote", shown)
			if shown == 0 {
				t.Error("the feeds showed nothing while writers wrote: the test does not test them")
			}
		})
	}
}

// Ensure that readers that come and go while writers write see the last state of each
// document, in order, and nothing that was not written; that one that slept for the whole
// time catches up; and that workers of a subscription, who come and go too, are sent
// nothing twice, deletions included, and each last state.
func TestChanges_WritersAndReaders(t *testing.T) {
	length := 300 // writes of each writer
	if testing.Short() {
		length = 60
	}
	more := func(i int) bool { return i < length }
	if text := os.Getenv("JAY_FEEDS"); text != "" {
		d, err := time.ParseDuration(text)
		must(t, err)
		end := time.Now().Add(d)
		more = func(int) bool { return time.Now().Before(end) }
	}
	db := open(t, filepath.Join(t.TempDir(), "db"), nil)
	defer closeDB(t, db)
	put(t, db, "first", `{}`)
	var readers sync.WaitGroup
	sleeper := follow(t, db.Changes(ctx, "", jay.WithDocuments()))
	first, err, _ := sleeper.next() // and sleeps
	must(t, err)

	must(t, db.Subscriptions().Ensure(ctx, jay.Subscription{Name: "all", Query: "from @all_docs", Deletions: true, Since: jay.SinceNow}))
	sent := make(map[uint64]string) // by etag
	working, stop := context.WithCancel(ctx)
	defer stop()
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() { workInTurns(t, db, working, stop, sent) })
	}

	replicas := make([]*replica, 8)
	for i := range replicas {
		r := newReplica(t, make(map[uint64]string))
		replicas[i] = r
		readers.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(i)))
			for last := false; !last; {
				left := 1 + random.IntN(500) // changes until it comes again
				for c, err := range db.Changes(ctx, r.token, jay.WithDocuments()) {
					if err != nil {
						t.Errorf("reader %d: %v", i, err)
						return
					}
					r.apply(c)
					if last = c.ID == "last"; last {
						return
					}
					if left--; left == 0 {
						break
					}
				}
			}
		})
	}
	var written sync.Map // what each etag is of, as a replica has it
	concurrently(t, func(g int, random *rand.Rand) {
		for i := 0; more(i) && !t.Failed(); i++ {
			var b jay.Batch
			var texts []string
			writes := 1
			if random.IntN(6) == 0 {
				writes = random.IntN(20)
			}
			for range writes {
				id, body := fmt.Sprint("docs/", random.IntN(100)), fmt.Sprintf(`{"g":%d,"i":%d}`, g, i)
				if random.IntN(6) == 0 {
					b.Delete(id)
					texts = append(texts, id+" deleted")
				} else {
					b.Put(id, []byte(body))
					texts = append(texts, id+" "+body)
				}
			}
			metas, err := db.Apply(ctx, &b)
			if err != nil {
				t.Error(err)
			}
			for i, m := range metas {
				if m.Etag > 0 { // else there was nothing to delete
					written.Store(m.Etag, texts[i])
				}
			}
		}
	})
	written.Store(put(t, db, "last", `{}`).Etag, "last {}")
	jaytest.Await(t, "the readers", jaytest.Finished(&readers))
	jaytest.Await(t, "the workers", jaytest.Finished(&workers))
	wasWritten := func(who string, content map[uint64]string) {
		for etag, text := range content {
			if want, _ := written.Load(etag); text != want && text != "first {}" {
				t.Errorf("%s has seen %q at %d, and %v was written", who, text, etag, want)
			}
		}
	}
	for i, r := range replicas {
		r.same(db)
		wasWritten(fmt.Sprint("reader ", i), r.content)
	}
	wasWritten("the subscription", sent)
	for doc, err := range db.Documents(ctx, jay.Scan{}) {
		must(t, err)
		if sent[doc.Metadata().Etag] == "" && doc.ID() != "first" {
			t.Errorf("%s at %d was never sent", doc.ID(), doc.Metadata().Etag)
		}
	}
	r := newReplica(t, make(map[uint64]string))
	r.apply(first)
	for c := first; c.ID != "last"; {
		if c, err, _ = sleeper.next(); err != nil {
			t.Fatal(err)
		}
		r.apply(c)
	}
	r.same(db)
}

// Ensure that feeds which wait together, and share what one of them reads, see what each of
// them would read for itself: with filters, documents and deletions, and of commits that
// are larger than a batch.
func TestChanges_Shared(t *testing.T) {
	db := memory(t, &jay.Options{Durability: jay.Relaxed})
	filters := [][]jay.ChangesOption{
		nil,
		{jay.WithDocuments()},
		{jay.OfCollections("USERS")},
		{jay.OfPrefixes("users/1", "Orders/"), jay.WithDocuments()},
		{jay.OfIDs("users/3", "orders/3")},
	}
	text := func(c jay.Change) string {
		s := fmt.Sprintf("%s %s %d %t %s", c.ID, c.Collection, c.Etag, c.Deleted, c.Token())
		if c.Document != nil {
			s += " " + string(c.Document.Body())
		}
		return s
	}
	type reader struct {
		mu  sync.Mutex
		got []jay.Change
	}
	var readers [15]reader
	var feeds sync.WaitGroup
	reading, stop := context.WithCancel(ctx)
	for i := range readers {
		r := &readers[i]
		feeds.Go(func() {
			for c, err := range db.Changes(reading, jay.SinceNow, filters[i%len(filters)]...) {
				if err != nil {
					return
				}
				r.mu.Lock()
				r.got = append(r.got, c)
				r.mu.Unlock()
			}
		})
	}
	for jay.FeedsWaiting(db) < len(readers) {
		time.Sleep(time.Millisecond)
	}
	put(t, db, "first", `{}`)
	since := changed(t, db, "", jay.OfIDs("first"))[0].Token()
	random := rand.New(rand.NewPCG(3, 3))
	for round := range 30 {
		var b jay.Batch
		for range 1 + random.IntN(5)*(1+round%7*20) {
			collection := []string{"Users", "Orders"}[random.IntN(2)]
			id := fmt.Sprint(collection, "/", random.IntN(600))
			if random.IntN(5) == 0 {
				b.Delete(id)
			} else {
				b.Put(id, fmt.Appendf(nil, `{"round":%d}`, round), jay.InCollection(collection))
			}
		}
		_, err := db.Apply(ctx, &b)
		must(t, err)
	}
	for i := range readers {
		r := &readers[i]
		want := make(map[uint64]string)
		last := uint64(0)
		for _, c := range changed(t, db, since, filters[i%len(filters)]...) {
			want[c.Etag], last = text(c), c.Etag
		}
		there := false
		for more := jaytest.Patience(); more(there); {
			r.mu.Lock()
			there = len(r.got) > 0 && r.got[len(r.got)-1].Etag == last
			r.mu.Unlock()
			runtime.Gosched()
		}
		if !there {
			t.Fatalf("reader %d has not come to etag %d", i, last)
		}
		before := uint64(0)
		for _, c := range r.got {
			if c.Etag <= before {
				t.Errorf("reader %d: etag %d comes after %d", i, c.Etag, before)
			}
			if before = c.Etag; want[c.Etag] != "" && want[c.Etag] != text(c) {
				t.Errorf("reader %d: %q, want %q", i, text(c), want[c.Etag])
			}
			delete(want, c.Etag)
		}
		if len(want) > 0 {
			t.Errorf("reader %d has missed %v", i, want)
		}
	}
	stop()
	feeds.Wait()
}

// workInTurns works on the subscription "all" until the document "last" was sent, a few
// batches at a time, as others do, and notes what it is sent. All batches are acknowledged, so
// that nothing may come twice.
func workInTurns(t *testing.T, db *jay.DB, working context.Context, stop func(), sent map[uint64]string) {
	for working.Err() == nil && !t.Failed() {
		leaving, leave := context.WithCancel(working)
		left := 5
		err := db.Subscriptions().Work(leaving, "all", nil, func(_ context.Context, b *jay.SubscriptionBatch) error {
			for _, item := range b.Items { // one worker at a time: sent is its own
				if before, twice := sent[item.Etag]; twice {
					t.Errorf("%s at %d was acknowledged, and comes again", before, item.Etag)
				}
				text := item.ID + " deleted"
				if !item.Deleted {
					text = item.ID + " " + string(item.Body)
				}
				if sent[item.Etag] = text; item.ID == "last" {
					stop()
				}
			}
			if left--; left == 0 {
				leave() // the batch is acknowledged all the same
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		leave()
	}
}

// Ensure that ten thousand feeds that wait take little memory, and all see a change.
func TestChanges_TenThousand(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 500
	}
	db := memory(t, &jay.Options{Durability: jay.Relaxed})
	for i := range 20 {
		put(t, db, fmt.Sprint("docs/", i), `{}`)
	}
	before := memoryInUse()
	reading, stop := context.WithCancel(ctx)
	defer stop()
	var begun, feeds, missing sync.WaitGroup
	begun.Add(n)
	missing.Add(n)
	for range n {
		feeds.Go(func() {
			begin := sync.OnceFunc(begun.Done)
			for c, err := range db.Changes(reading, "") {
				if err != nil {
					return
				}
				begin()
				if c.ID == "news" {
					missing.Done()
				}
			}
		})
	}
	jaytest.Await(t, "the feeds' first change", jaytest.Finished(&begun))
	for jay.FeedsWaiting(db) < n {
		time.Sleep(time.Millisecond)
	}
	bytes := int(memoryInUse()-before) / n
	t.Logf("each of %d feeds that wait takes %d bytes, with the stack of its goroutine", n, bytes)
	if bytes > 64<<10 {
		t.Errorf("each of %d feeds takes %d bytes", n, bytes)
	}
	start := time.Now()
	put(t, db, "news", `{}`)
	jaytest.Await(t, "the change in each feed", jaytest.Finished(&missing))
	t.Logf("all have seen a change after %s", time.Since(start))
	stop()
	feeds.Wait()
	equal(t, jay.FeedsOpen(db), 0)
}

// memoryInUse returns the bytes of objects that are alive, and of stacks.
func memoryInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
