package model_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that a session does what a simple model of it does: a map of
// documents, a list of entities with what they were loaded as, a list of
// deletions. Other programs write meanwhile, saves are refused, the disk fails
// in the middle of a save and the session moves to the reopened database.
func TestSession_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &sessionModel{docs: make(map[string]modelled), used: make(map[string]bool), disk: storagetest.NewDisk()}
		m.optimistic = rapid.Bool().Draw(t, "optimistic")
		m.open(t)
		defer func() { _ = m.db.Close() }()
		m.begin()
		t.Repeat(map[string]func(*rapid.T){
			"store a new one":           m.store,
			"store under a known id":    m.storeKnown,
			"load":                      m.load,
			"load one that came before": m.load,
			"change":                    m.change,
			"delete":                    m.delete,
			"delete by id":              m.deleteID,
			"evict":                     m.evict,
			"refresh":                   m.refresh,
			"save":                      m.save,
			"save, too":                 m.save,
			"save, refused":             m.saveRefused,
			"save, and the disk fails":  m.saveFailing,
			"another program writes":    m.otherWrites,
			"clear":                     func(*rapid.T) { m.begin() },
			"":                          m.check,
		})
		m.save(t)
	})
}

// ok fails the history at an error that the model does not know.
func ok(err error) {
	if err != nil {
		panic(err)
	}
}

// modelled is a document of the model.
type modelled struct {
	name    string
	version int
}

// kept is an entity of the model.
type kept struct {
	v       *customer
	id      string // as Store or Load gave it, or a request
	fresh   bool
	made    bool // the session made the ID
	name    string
	version int
}

// dropped is a deletion of the model.
type dropped struct {
	id      string
	version int // that it must have; 0 for any
}

type sessionModel struct {
	disk       *storagetest.Disk
	db         *jay.DB
	s          *jay.Session
	optimistic bool

	docs     map[string]modelled
	used     map[string]bool // IDs that Jay made
	versions int
	entities []*kept
	deletes  []dropped
	names    int
}

func (m *sessionModel) open(t *rapid.T) {
	opts := jay.Options{}
	opts.FS = m.disk
	var err error
	m.db, err = jay.Open("db", &opts)
	ok(err)
}

func (m *sessionModel) begin() {
	if m.s == nil {
		var opts []jay.SessionOption
		if m.optimistic {
			opts = append(opts, jay.OptimisticConcurrency())
		}
		m.s = m.db.OpenSession(opts...)
	}
	m.s.Clear()
	m.entities, m.deletes = nil, nil
}

func (m *sessionModel) newName() string { m.names++; return fmt.Sprint("name ", m.names) }

func (m *sessionModel) held(id string) *kept {
	for _, e := range m.entities {
		if strings.EqualFold(e.id, id) && !isRequest(id) {
			return e
		}
	}
	return nil
}

func isRequest(id string) bool { return strings.HasSuffix(id, "|") || strings.HasSuffix(id, "/") }

func (m *sessionModel) deleted(id string) bool {
	return slices.ContainsFunc(m.deletes, func(d dropped) bool { return strings.EqualFold(d.id, id) })
}

func knownID(t *rapid.T) string {
	id := fmt.Sprintf("c/%d", rapid.IntRange(0, 5).Draw(t, "id"))
	if rapid.Bool().Draw(t, "upper") {
		return strings.ToUpper(id)
	}
	return id
}

func (m *sessionModel) store(t *rapid.T) {
	v := &customer{ID: rapid.SampledFrom([]string{"", "c|", "c/", " "}).Draw(t, "request"), Name: m.newName()}
	request := v.ID
	ok(m.s.Store(ctx, v))
	e := &kept{v: v, id: v.ID, fresh: true, made: !isRequest(v.ID)}
	if e.made {
		if m.used[v.ID] {
			t.Fatalf("%s came twice", v.ID)
		}
		m.used[v.ID] = true
	} else if v.ID != request {
		t.Fatalf("request %q became %q", request, v.ID)
	}
	m.entities = append(m.entities, e)
}

func (m *sessionModel) storeKnown(t *rapid.T) {
	v := &customer{ID: knownID(t), Name: m.newName()}
	err := m.s.Store(ctx, v)
	if m.held(v.ID) != nil {
		if !errors.Is(err, jay.ErrUsage) {
			t.Fatalf("another entity as %s: %v", v.ID, err)
		}
		return
	}
	ok(err)
	m.entities = append(m.entities, &kept{v: v, id: v.ID, fresh: true})
}

func (m *sessionModel) load(t *rapid.T) {
	id := knownID(t)
	v, err := jay.Load[customer](ctx, m.s, id)
	if e := m.held(id); e != nil {
		if v != e.v || err != nil {
			t.Fatalf("load of %s, which is held: %v, %v", id, v, err)
		}
		return
	}
	doc, found := m.docs[strings.ToLower(id)]
	if !found || m.deleted(id) {
		if !errors.Is(err, jay.ErrNotFound) {
			t.Fatalf("load of %s: %v, %v", id, v, err)
		}
		return
	}
	ok(err)
	if v.Name != doc.name {
		t.Fatalf("load of %s: %v, want %v", id, v, doc)
	}
	m.entities = append(m.entities, &kept{v: v, id: v.ID, name: doc.name, version: doc.version})
}

// pick draws an entity, or nil if there is none.
func (m *sessionModel) pick(t *rapid.T) *kept {
	if len(m.entities) == 0 {
		return nil
	}
	return m.entities[rapid.IntRange(0, len(m.entities)-1).Draw(t, "entity")]
}

func (m *sessionModel) remove(e *kept) {
	m.entities = slices.DeleteFunc(m.entities, func(other *kept) bool { return other == e })
}

func (m *sessionModel) change(t *rapid.T) {
	e := m.pick(t)
	if e == nil {
		return
	}
	e.v.Name = m.newName()
	if !e.fresh && rapid.IntRange(0, 3).Draw(t, "back") == 0 {
		e.v.Name = e.name
	}
}

func (m *sessionModel) delete(t *rapid.T) {
	e := m.pick(t)
	if e == nil {
		return
	}
	ok(m.s.Delete(e.v))
	m.forget(e)
}

func (m *sessionModel) forget(e *kept) {
	m.remove(e)
	if e.fresh {
		return
	}
	d := dropped{id: e.id}
	if m.optimistic {
		d.version = e.version
	}
	m.deletes = append(m.deletes, d)
}

func (m *sessionModel) deleteID(t *rapid.T) {
	id := knownID(t)
	ok(m.s.DeleteID(id))
	switch e := m.held(id); {
	case e == nil:
		m.deletes = append(m.deletes, dropped{id: id})
	case e.fresh && !e.made: // there may be a document, which it would have replaced
		m.remove(e)
		m.deletes = append(m.deletes, dropped{id: id})
	default:
		m.forget(e)
	}
}

func (m *sessionModel) evict(t *rapid.T) {
	if e := m.pick(t); e != nil {
		ok(m.s.Evict(e.v))
		m.remove(e)
	}
}

func (m *sessionModel) refresh(t *rapid.T) {
	e := m.pick(t)
	if e == nil {
		return
	}
	before := *e.v
	err := m.s.Refresh(ctx, e.v)
	doc, found := m.docs[strings.ToLower(e.id)]
	switch {
	case isRequest(e.id):
		if !errors.Is(err, jay.ErrUsage) || *e.v != before {
			t.Fatalf("refresh of a request: %v", err)
		}
	case !found:
		if !errors.Is(err, jay.ErrNotFound) || *e.v != before {
			t.Fatalf("refresh of %s, which is gone: %v", e.id, err)
		}
	default:
		ok(err)
		if e.v.Name != doc.name || !strings.EqualFold(e.v.ID, e.id) {
			t.Fatalf("refresh of %s: %v, want %v", e.id, e.v, doc)
		}
		*e = kept{v: e.v, id: e.v.ID, name: doc.name, version: doc.version}
	}
}

// predict returns the documents after a save, without those whose ID the
// database makes, and how many documents are written or deleted; or the error.
func (m *sessionModel) predict() (docs map[string]modelled, writes int, err error) {
	docs = maps.Clone(m.docs)
	for _, d := range m.deletes {
		there, found := docs[strings.ToLower(d.id)]
		if d.version != 0 && there.version != d.version {
			return nil, 0, jay.ErrConflict
		}
		if found {
			writes++
		}
		delete(docs, strings.ToLower(d.id))
	}
	for _, e := range m.entities {
		if !e.fresh && e.v.Name == e.name {
			continue
		}
		writes++
		if isRequest(e.id) {
			continue
		}
		folded := strings.ToLower(e.id)
		there, found := docs[folded]
		switch {
		case e.made && found:
			return nil, 0, jay.ErrExists
		case e.made:
		case m.optimistic && there.version != e.version:
			return nil, 0, jay.ErrConflict
		}
		m.versions++
		docs[folded] = modelled{e.v.Name, m.versions}
	}
	return docs, writes, nil
}

func (m *sessionModel) save(t *rapid.T) {
	docs, _, want := m.predict()
	before := m.dump()
	err := m.s.SaveChanges(ctx)
	if want != nil {
		if !errors.Is(err, want) {
			t.Fatalf("save: %v, want %v", err, want)
		}
		if now := m.dump(); now != before {
			t.Fatalf("a refused save changed\n%s to\n%s", before, now)
		}
		m.begin() // a user would look at what is wrong: here, all is given up
		return
	}
	if err != nil {
		t.Fatalf("save: %v", err)
	}
	m.saved(t, docs)
}

// saved takes over what a save has done.
func (m *sessionModel) saved(t *rapid.T, docs map[string]modelled) {
	m.docs, m.deletes = docs, nil
	var took []*kept // a new ID, which one whose document is gone may have had
	defer func() {
		for _, e := range took {
			m.entities = slices.DeleteFunc(m.entities, func(other *kept) bool { return other != e && strings.EqualFold(other.id, e.id) })
		}
	}()
	for _, e := range m.entities {
		if isRequest(e.id) {
			if m.used[e.v.ID] || isRequest(e.v.ID) {
				t.Fatalf("request %q became %q", e.id, e.v.ID)
			}
			if _, taken := m.docs[strings.ToLower(e.v.ID)]; taken {
				t.Fatalf("%s was taken", e.v.ID)
			}
			m.used[e.v.ID] = true
			m.versions++
			m.docs[strings.ToLower(e.v.ID)] = modelled{e.v.Name, m.versions}
		}
		made := isRequest(e.id)
		e.id, e.fresh, e.made, e.name = e.v.ID, false, false, e.v.Name
		if made {
			took = append(took, e)
		}
		// One that was not written keeps the version that it was loaded in.
		if now := m.docs[strings.ToLower(e.id)]; now.name == e.name {
			e.version = now.version
		}
	}
	if got, want := m.dump(), m.want(); got != want {
		t.Fatalf("got\n%s want\n%s", got, want)
	}
}

// saveRefused saves with a cancelled context and with an entity that cannot be
// stored; the session keeps what it has.
func (m *sessionModel) saveRefused(t *rapid.T) {
	before := m.dump()
	_, writes, _ := m.predict()
	if rapid.Bool().Draw(t, "cancelled") {
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		if err := m.s.SaveChanges(cancelled); err == nil && writes > 0 {
			t.Fatal("a cancelled save worked")
		}
	} else {
		bad := &anything{Any: make(chan int)}
		ok(m.s.Store(ctx, bad))
		if err := m.s.SaveChanges(ctx); !errors.Is(err, jay.ErrType) {
			t.Fatalf("save of a channel: %v", err)
		}
		ok(m.s.Evict(bad))
	}
	if now := m.dump(); now != before {
		t.Fatalf("a refused save changed\n%s to\n%s", before, now)
	}
}

// saveFailing saves while the disk fails, reopens the database with or without
// the save, and saves again.
func (m *sessionModel) saveFailing(t *rapid.T) {
	if _, writes, err := m.predict(); err != nil || writes == 0 {
		return
	}
	_, err := m.db.Put(ctx, "warm", []byte(`{}`)) // so that nothing but the save syncs
	ok(err)
	m.disk.FailAfter(0)
	if err := m.s.SaveChanges(ctx); !errors.Is(err, jay.ErrUnknownOutcome) {
		t.Fatalf("save on a failing disk: %v", err)
	}
	survive := rapid.SampledFrom([]int{0, 100}).Draw(t, "percent that survives")
	crashed := m.disk.Crash(survive, rand.New(rand.NewPCG(1, 2)))
	_ = m.db.Close()
	m.disk = crashed
	m.open(t)
	ok(m.s.Reattach(m.db))
	for _, e := range m.entities {
		if (e.fresh || e.v.Name != e.name) && rapid.Bool().Draw(t, "changed meanwhile") {
			e.v.Name = m.newName()
		}
	}
	docs, _, err := m.predict()
	ok(err)
	if err := m.s.SaveChanges(ctx); err != nil {
		t.Fatalf("save after the reopen (%d%%): %v", survive, err)
	}
	m.saved(t, docs)
}

func (m *sessionModel) otherWrites(t *rapid.T) {
	id := knownID(t)
	if e := m.pick(t); e != nil && !isRequest(e.id) && rapid.Bool().Draw(t, "of an entity") {
		id = e.id
	}
	if rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
		ok(m.db.Delete(ctx, id))
		delete(m.docs, strings.ToLower(id))
		return
	}
	m.versions++
	doc := modelled{m.newName(), m.versions}
	_, err := m.db.Put(ctx, id, fmt.Appendf(nil, `{"Other":[1],"Name":%q}`, doc.name), jay.InCollection("Customers"))
	ok(err)
	m.docs[strings.ToLower(id)] = doc
}

// check compares what the session says about itself.
func (m *sessionModel) check(t *rapid.T) {
	writes := len(m.deletes)
	for _, e := range m.entities {
		if e.fresh || e.v.Name != e.name {
			writes++
		}
	}
	changes, err := m.s.WhatChanged()
	ok(err)
	has, err := m.s.HasChanges()
	ok(err)
	if len(changes) != writes || has != (writes > 0) {
		t.Fatalf("%d changes, %v, want %d", len(changes), has, writes)
	}
	for _, e := range m.entities {
		if id, err := m.s.IDOf(e.v); err != nil || id != e.id {
			t.Fatalf("IDOf: %q, %v, want %q", id, err, e.id)
		}
	}
}

// dump returns the IDs and names of all documents, by folded ID.
func (m *sessionModel) dump() string {
	var all strings.Builder
	for doc, err := range m.db.Documents(ctx, jay.Scan{Collection: "Customers"}) {
		ok(err)
		var v customer
		ok(doc.Decode(&v))
		fmt.Fprintf(&all, "%s %s\n", strings.ToLower(doc.ID()), v.Name)
	}
	return all.String()
}

func (m *sessionModel) want() string {
	var all strings.Builder
	for _, id := range slices.Sorted(maps.Keys(m.docs)) {
		fmt.Fprintf(&all, "%s %s\n", id, m.docs[id].name)
	}
	return all.String()
}
