package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/storage"
	stores "github.com/jaydb/jay/storage/memory"
	"github.com/jaydb/jay/storage/storagetest"
)

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
			f.t.Fatalf("after %s: %v, %t; want %s", jaytest.ChangesText(all), err, ok, text)
		}
		all = append(all, c)
	}
	equal(f.t, jaytest.ChangesText(all), text)
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
	f.want("+users/a@3 -users/B@4")
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
			equal(t, jaytest.ChangesText(changed(t, db, "", test.opts...)), test.want)
		})
	}

	sensitive := memory(t, &jay.Options{CaseSensitive: true})
	put(t, sensitive, "users/A", `{}`)
	put(t, sensitive, "users/a", `{}`)
	equal(t, jaytest.ChangesText(changed(t, sensitive, "", jay.OfIDs("users/A"))), "+users/A@1")
	equal(t, jaytest.ChangesText(changed(t, sensitive, "", jay.OfPrefixes("Users"))), "")

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
			equal(t, jaytest.ChangesText(changed(t, db, c.Token())), jaytest.ChangesText(all[i+1:]))
			equal(t, jaytest.ChangesText(changed(t, db, c.ChangeVector())), jaytest.ChangesText(all[i+1:]))
		}
		equal(t, jaytest.ChangesText(changed(t, db, m.ChangeVector)), "")
		closeDB(t, db)
		db = open(t, dir, nil)
	}
	last := put(t, db, "docs/9", `{}`)
	equal(t, jaytest.ChangesText(changed(t, db, all[4].Token())), fmt.Sprint("+docs/9@", last.Etag))
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
	equal(t, jaytest.ChangesText(all), "+a@1 +b@2")
	equal(t, strings.HasPrefix(all[0].ChangeVector(), "A:1-"), true)
	equal(t, strings.HasPrefix(all[0].Token(), "B:1-"), true)
	equal(t, jaytest.ChangesText(changed(t, db, all[0].Token())), "+b@2")
	put(t, db, "a", `{}`)
	equal(t, jaytest.ChangesText(changed(t, db, all[0].Token())), "+b@2 +a@3")
	follow(t, db.Changes(ctx, all[0].ChangeVector())).wantError(jay.ErrChangesGone)
	closeDB(t, db)
}

// Ensure that SinceNow shows nothing of the past, and that its tokens are good even if
// nothing has ever been written.
func TestChanges_SinceNow(t *testing.T) {
	db := memory(t, nil)
	f := follow(t, db.Changes(ctx, jay.SinceNow, jay.WithCheckpoints()))
	go func() { // the feed has begun when it waits
		for checks.FeedsWaiting(db) == 0 {
			time.Sleep(time.Millisecond)
		}
		put(t, db, "a", `{}`)
	}()
	f.want("+a@1")
	equal(t, jaytest.ChangesText(changed(t, db, jay.SinceNow)), "")
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
	equal(t, jaytest.ChangesText(all), "+docs/3@4 =10")
	equal(t, jaytest.ChangesText(changed(t, db, all[1].Token(), only...)), "")
	equal(t, all[1].ChangeVector(), "")
	equal(t, jaytest.ChangesText(changed(t, db, "", jay.WithCheckpoints())), jaytest.ChangesText(changed(t, db, "")))

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
	equal(t, jaytest.ChangesText(changed(t, db, "")), "+docs/1@1 +docs/2@2")
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
	equal(t, jaytest.ChangesText(changed(t, db, "")), "-docs/1@2 +docs/1@3")
	equal(t, jaytest.ChangesText(changed(t, db, "", jay.OfCollections("Docs"))), "-docs/1@2")
	equal(t, jaytest.ChangesText(changed(t, db, "", jay.OfCollections("Papers"))), "+docs/1@3")
}

// Ensure that a deletion has the document's ID as it was written, whatever deletes it, however the deletion spells it, and whether
// the old version is known from memory or read; that backups and standing filters have it, too; and that only the first
// deletion of an ID that is not as it is folded raises the format.
func TestChanges_DeletedID(t *testing.T) {
	for name, opts := range map[string]*jay.Options{
		"as it is":              {},
		"without memory":        {DocumentCacheBytes: -1},
		"in a store of several": {DocumentCacheBytes: -1, Engine: &stores.Driver{Shared: true}},
	} {
		t.Run(name, func(t *testing.T) {
			defer checks.NoSweeper()()
			clock := newClock()
			opts.Now, opts.FS = clock.Now, storagetest.NewDisk()
			if opts.Engine != nil {
				opts.FS = nil
			}
			db := open(t, "db", opts)
			defer closeDB(t, db)
			must(t, db.EnsureIndex(ctx, "Indexed", jay.Index{Fields: []string{"n"}}))
			must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Collections: map[string]jay.RevisionRule{"Kept": {}}}))
			docs := collectionOf[struct{ ID string }](t, db, jay.Named("Docs"))
			if opts.Engine == nil {
				subscribed(t, db, jay.Subscription{Name: "all", Query: "from @all_docs", Deletions: true})
			}

			put(t, db, "plain/1", `{}`)
			must(t, db.Delete(ctx, "Plain/1"))
			equal(t, jaytest.ChangesText(changed(t, db, "")), "-plain/1@2")
			number := func(db *jay.DB) int { return parts.Of(db).Env.Engine.Format().Number }
			equal(t, number(db), storage.BaseFormat)

			info, base := jaytest.BackUp(t, db)
			since := changed(t, db, "")[0].Token()
			for _, id := range []string{"docs/1-A", "docs/2-A", "docs/3-A", "docs/4-A", "docs/5-A", "docs/6-A", "docs/É-7"} {
				put(t, db, id, `{"n":0}`, jay.InCollection("Docs"))
				put(t, db, id, `{"n":1}`, jay.InCollection("Docs")) // now its head is in memory
			}
			put(t, db, "Indexed/1-A", `{"n":1}`, jay.InCollection("Indexed"))
			put(t, db, "Kept/1-A", `{"n":1}`, jay.InCollection("Kept"))
			put(t, db, "Due/1-A", `{}`, jay.WithTTL(time.Minute))
			many := make([]string, 200)
			for i := range many {
				many[i] = fmt.Sprint("Many/", i)
				put(t, db, many[i], `{}`, jay.InCollection("Many"))
			}

			must(t, db.Delete(ctx, "DOCS/1-a"))
			var b jay.Batch
			b.Delete("docs/2-A")
			b.Put("docs/3-a", []byte(`{}`), jay.InCollection("Docs"))
			b.Delete("docs/3-A")
			must(t, second(db.Apply(ctx, &b)))
			must(t, db.Update(ctx, func(tx *jay.Tx) error { return tx.Delete(ctx, "docs/4-a") }))
			must(t, docs.Delete(ctx, "docs/5-a"))
			session := db.OpenSession()
			must(t, session.DeleteID("docs/6-a"))
			must(t, session.SaveChanges(ctx))
			must(t, second(db.Query("Docs").Delete(ctx)))
			must(t, db.Delete(ctx, "indexed/1-a"))
			must(t, db.Delete(ctx, "kept/1-a"))
			clock.Advance(2 * time.Minute)
			swept(t, db, 1, 0)
			must(t, second(db.DropCollection(ctx, "Many")))

			var got []string
			for _, c := range changed(t, db, since) {
				equal(t, c.Deleted, true)
				if c.Collection != "Many" {
					got = append(got, c.ID)
					continue
				}
				if !slices.Contains(many, c.ID) {
					t.Errorf("a deletion of %s", c.ID)
				}
			}
			const want = "docs/1-A docs/2-A docs/3-a docs/4-A docs/5-A docs/6-A docs/É-7 Indexed/1-A Kept/1-A Due/1-A"
			equal(t, strings.Join(got, " "), want)
			equal(t, len(changed(t, db, since)), 210)
			equal(t, len(changed(t, db, since, jay.OfPrefixes("MANY/1"))), 111)
			if opts.Engine == nil {
				batches, want := sent(t, db, "all", jay.WorkOptions{}), "-plain/1 -"+strings.ReplaceAll(want, " ", " -")
				equal(t, batches[:min(len(batches), len(want))], want)
			}
			equal(t, number(db), storage.FeatureDeletedIDs.Format)
			jaytest.Verify(t, db)

			_, more := jaytest.BackUp(t, db, jay.BackupSince(info.ID))
			restored := restoreMemory(t, jay.Options{}, base, more)
			equal(t, jaytest.ChangesText(changed(t, restored, "", jay.OfPrefixes("docs/1"))), jaytest.ChangesText(changed(t, db, "", jay.OfPrefixes("docs/1"))))
			equal(t, number(restored), storage.FeatureDeletedIDs.Format)
			jaytest.Verify(t, restored)
		})
	}
}

// Ensure that with case-sensitive IDs a deletion needs no new format.
func TestChanges_DeletedID_CaseSensitive(t *testing.T) {
	db := memory(t, &jay.Options{CaseSensitive: true})
	put(t, db, "docs/1-A", `{}`)
	must(t, db.Delete(ctx, "docs/1-a"))
	must(t, db.Delete(ctx, "docs/1-A"))
	equal(t, jaytest.ChangesText(changed(t, db, "")), "-docs/1-A@2")
	equal(t, parts.Of(db).Env.Engine.Format().Number, storage.BaseFormat)
	jaytest.Verify(t, db)
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
	equal(t, jaytest.ChangesText(changed(t, db, "")), "+a@1")
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
		for checks.FeedsWaiting(db) == 0 {
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
		for checks.FeedsWaiting(db) == 0 {
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
		disk.FailAfter(0)
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
		equal(t, checks.FeedsOpen(db), 0)
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
	for checks.FeedsWaiting(db) < len(readers) {
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
	for checks.FeedsWaiting(db) < n {
		time.Sleep(time.Millisecond)
	}
	bytes := int(memoryInUse()-before) / n
	t.Logf("each of %d feeds that wait takes %d bytes, with the stack of its goroutine", n, bytes)
	if bytes > 64<<10 && !jaytest.Allocates {
		t.Errorf("each of %d feeds takes %d bytes", n, bytes)
	}
	start := time.Now()
	put(t, db, "news", `{}`)
	jaytest.Await(t, "the change in each feed", jaytest.Finished(&missing))
	t.Logf("all have seen a change after %s", time.Since(start))
	stop()
	feeds.Wait()
	equal(t, checks.FeedsOpen(db), 0)
}

// memoryInUse returns the bytes of objects that are alive, and of stacks.
func memoryInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
