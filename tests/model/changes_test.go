package model_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/knobs"
)

// Ensure that feeds, with and without filters, show what a plain log of all writes does:
// each document's newest change behind the token, in order, and no other; that at the
// end of the present their readers hold what the database holds; and that a token is
// refused exactly if deletions behind it may be gone. Between their steps there are
// writes, removals of old records, clean closes and copies.
//
//	go test -run TestChanges_Model -count=1 -rapid.checks=20000 ./tests/model
func TestChanges_Model(t *testing.T) {
	defer func(kept, held uint64) { knobs.KeptChanges, knobs.HeldEtags = kept, held }(knobs.KeptChanges, knobs.HeldEtags)
	test := t
	rapid.Check(t, func(t *rapid.T) {
		knobs.KeptChanges = uint64(rapid.IntRange(0, 3).Draw(t, "kept"))
		knobs.HeldEtags = uint64(rapid.SampledFrom([]int{2, 10, 1000}).Draw(t, "held"))
		m := &changesModel{t: t, place: jaytest.NewPlace(test), docs: make(map[string]logged), log: make(map[uint64]logged)}
		m.open("")
		for i := range rapid.IntRange(1, 3).Draw(t, "feeds") {
			m.feeds = append(m.feeds, m.newFeed(i))
		}
		t.Repeat(map[string]func(*rapid.T){
			"write":         m.write,
			"write, too":    m.write,
			"batch":         m.batch,
			"drop":          m.drop,
			"remove":        m.remove,
			"reopen":        m.reopen,
			"step":          m.step,
			"step, too":     m.step,
			"leave":         m.leave,
			"catch up":      m.catchUp,
			"catch up, too": m.catchUp,
		})
		for _, f := range m.feeds {
			m.toEnd(f)
			f.end()
		}
		jaytest.Verify(t, m.db)
		noError(t, m.db.Close())
	})
}

// noError ends the test at an error.
func noError(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// logged is one change of the model.
type logged struct {
	id, collection, body string
	etag                 uint64
	deleted              bool
}

type changesModel struct {
	t      *rapid.T
	place  *jaytest.Place
	db     *jay.DB
	docs   map[string]logged // by ID
	log    map[uint64]logged // by etag, all there ever were
	last   uint64            // etag
	serial int
	copies int
	feeds  []*modelFeed
}

// modelFeed is a reader and what it holds.
type modelFeed struct {
	name                       string
	collections, prefixes, ids []string
	token                      string
	etag                       uint64
	copies                     int // of the database, when it made the token
	have                       map[string]logged
	next                       func() (jay.Change, error, bool) // nil while it is not open
	stop                       func()
}

func (m *changesModel) open(tag string) {
	db, err := m.place.Open(jay.Options{Durability: jay.Relaxed, CopyTag: tag})
	noError(m.t, err)
	m.db = db
}

func (m *changesModel) newFeed(i int) *modelFeed {
	f := &modelFeed{name: fmt.Sprint("feed ", i), have: make(map[string]logged)}
	some := func(of []string, label string) []string {
		if rapid.IntRange(0, 2).Draw(m.t, label+"?") > 0 {
			return nil
		}
		return rapid.SliceOfNDistinct(rapid.SampledFrom(of), 1, 2, rapid.ID[string]).Draw(m.t, label)
	}
	f.collections = some([]string{"Users", "Orders", "@empty"}, "collections")
	f.prefixes = some([]string{"users/", "orders/1", ""}, "prefixes")
	f.ids = some(changedIDs, "ids")
	return f
}

var changedIDs = []string{"users/1", "users/2", "orders/1", "orders/10", "x"}

func (f *modelFeed) wants(c logged) bool {
	within := func(of []string, is func(string) bool) bool { return of == nil || slices.ContainsFunc(of, is) }
	return within(f.collections, func(name string) bool { return name == c.collection }) &&
		within(f.prefixes, func(p string) bool { return strings.HasPrefix(c.id, p) }) &&
		within(f.ids, func(id string) bool { return id == c.id })
}

// begin opens the feed where it was.
func (f *modelFeed) begin(m *changesModel) {
	if f.next != nil {
		return
	}
	opts := []jay.ChangesOption{jay.WithDocuments(), jay.WithCheckpoints(), jay.UntilCaughtUp()}
	if f.collections != nil {
		opts = append(opts, jay.OfCollections(f.collections...))
	}
	if f.prefixes != nil {
		opts = append(opts, jay.OfPrefixes(f.prefixes...))
	}
	if f.ids != nil {
		opts = append(opts, jay.OfIDs(f.ids...))
	}
	f.next, f.stop = iter.Pull2(m.db.Changes(ctx, f.token, opts...))
}

func (f *modelFeed) end() {
	if f.next != nil {
		f.stop()
		f.next = nil
	}
}

// record notes a write of the database.
func (m *changesModel) record(c logged) {
	if c.etag <= m.last {
		m.t.Fatalf("etag %d comes after %d", c.etag, m.last)
	}
	m.log[c.etag], m.last = c, c.etag
	if c.deleted {
		delete(m.docs, c.id)
	} else {
		m.docs[c.id] = c
	}
}

// etagNow is the etag of the newest write.
func (m *changesModel) etagNow() uint64 {
	c, err := m.db.Counters(ctx)
	noError(m.t, err)
	return c.Etag
}

func (m *changesModel) collection(id string) string {
	if old, found := m.docs[id]; found {
		return old.collection
	}
	return rapid.SampledFrom([]string{"Users", "Orders", "@empty"}).Draw(m.t, "collection")
}

func (m *changesModel) write(t *rapid.T) {
	id := rapid.SampledFrom(changedIDs).Draw(t, "id")
	if old, found := m.docs[id]; found && rapid.Bool().Draw(t, "delete") {
		noError(t, m.db.Delete(ctx, id))
		m.record(logged{id: id, collection: old.collection, etag: m.etagNow(), deleted: true})
		return
	}
	m.serial++
	c := logged{id: id, collection: m.collection(id), body: fmt.Sprintf(`{"n":%d}`, m.serial)}
	written, err := m.db.Put(ctx, id, json.RawMessage(c.body), jay.InCollection(c.collection))
	noError(t, err)
	c.etag = written.Etag
	m.record(c)
}

// batch writes and deletes in one commit, perhaps one document twice.
func (m *changesModel) batch(t *rapid.T) {
	noError(t, m.db.Update(ctx, func(tx *jay.Tx) error {
		for range rapid.IntRange(1, 4).Draw(t, "writes") {
			id := rapid.SampledFrom(changedIDs).Draw(t, "id")
			if _, found := m.docs[id]; !found {
				continue
			}
			m.serial++
			if _, err := tx.Put(ctx, id, json.RawMessage(fmt.Sprintf(`{"n":%d}`, m.serial)), jay.InCollection(m.docs[id].collection)); err != nil {
				return err
			}
		}
		return nil
	}))
	m.reread()
}

// reread takes over what was written in one commit, as the database has it.
func (m *changesModel) reread() {
	var written []logged
	for doc, err := range m.db.Documents(ctx, jay.Scan{}) {
		noError(m.t, err)
		if md := doc.Metadata(); md.Etag > m.last {
			written = append(written, logged{id: doc.ID(), collection: doc.Collection(), body: string(doc.Body()), etag: md.Etag})
		}
	}
	slices.SortFunc(written, func(a, b logged) int { return int(a.etag) - int(b.etag) })
	for _, c := range written {
		m.record(c)
	}
	m.last = max(m.last, m.etagNow())
}

func (m *changesModel) drop(t *rapid.T) {
	name := rapid.SampledFrom([]string{"Users", "Orders"}).Draw(t, "collection")
	first := m.etagNow() + 1
	_, err := m.db.DropCollection(ctx, name)
	noError(t, err)
	var gone []string
	for id, c := range m.docs {
		if c.collection == name {
			gone = append(gone, id)
		}
	}
	slices.Sort(gone)
	for i, id := range gone {
		m.record(logged{id: id, collection: name, etag: first + uint64(i), deleted: true})
	}
}

// remove removes the records of deletions that nothing needs.
func (m *changesModel) remove(t *rapid.T) { noError(t, m.db.Compact(ctx)) }

func (m *changesModel) reopen(t *rapid.T) {
	noError(t, m.db.Close())
	for _, f := range m.feeds {
		if f.next != nil {
			for {
				_, err, more := f.next()
				if err != nil && !errors.Is(err, jay.ErrClosed) {
					t.Fatalf("%s after Close: %v", f.name, err)
				}
				if !more {
					break
				}
			}
			f.end() // what it was given since is forgotten, and comes again behind its token
		}
	}
	tag := ""
	if !m.place.Shared() && rapid.IntRange(0, 5).Draw(t, "copy") == 0 {
		m.copies++
		tag = string(rune('A' + m.copies))
	}
	m.open(tag)
}

func (m *changesModel) feed(t *rapid.T) *modelFeed {
	return rapid.SampledFrom(m.feeds).Draw(t, "feed")
}

func (m *changesModel) step(t *rapid.T) { m.advance(m.feed(t)) }

func (m *changesModel) leave(t *rapid.T) { m.feed(t).end() }

func (m *changesModel) catchUp(t *rapid.T) { m.toEnd(m.feed(t)) }

// toEnd reads until the feed has caught up, and compares.
func (m *changesModel) toEnd(f *modelFeed) {
	f.end() // begin anew: the present of an open one may be the past
	for m.advance(f) {
	}
	for id, c := range m.docs {
		if f.wants(c) && f.have[id] != c {
			m.t.Fatalf("%s has %+v, and the database %+v", f.name, f.have[id], c)
		}
	}
	for id, c := range f.have {
		if m.docs[id] != c {
			m.t.Fatalf("%s has %+v, and the database %+v", f.name, c, m.docs[id])
		}
	}
}

// advance takes one change of the feed, and reports whether there was one, or the feed
// must begin again.
func (m *changesModel) advance(f *modelFeed) bool {
	f.begin(m)
	c, err, more := f.next()
	switch {
	case errors.Is(err, jay.ErrChangesGone):
		if f.copies == m.copies && !m.deletedSince(f.etag) {
			m.t.Fatalf("%s is behind etag %d, and nothing was deleted since: %v", f.name, f.etag, err)
		}
		if f.token == "" {
			m.t.Fatalf("%s has just begun, with nothing: %v", f.name, err)
		}
		f.end()
		f.token, f.have, f.etag = "", make(map[string]logged), 0
		return true
	case err != nil:
		m.t.Fatalf("%s: %v", f.name, err)
	case !more:
		f.end()
		return false
	}
	if c.Etag <= f.etag {
		m.t.Fatalf("%s: etag %d comes after %d", f.name, c.Etag, f.etag)
	}
	f.etag, f.token, f.copies = c.Etag, c.Token(), m.copies
	if c.Checkpoint {
		return true
	}
	got := logged{id: c.ID, collection: c.Collection, etag: c.Etag, deleted: c.Deleted}
	if c.Document != nil {
		got.body = string(c.Document.Body())
	}
	if want := m.log[c.Etag]; got != want || !f.wants(got) {
		m.t.Fatalf("%s: %+v, and the log has %+v", f.name, got, want)
	}
	if c.Deleted {
		delete(f.have, c.ID)
	} else {
		f.have[c.ID] = got
	}
	return true
}

// deletedSince reports whether there was a deletion behind an etag.
func (m *changesModel) deletedSince(etag uint64) bool {
	for _, c := range m.log {
		if c.deleted && c.etag > etag {
			return true
		}
	}
	return false
}
