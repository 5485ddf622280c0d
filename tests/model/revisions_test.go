package model_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/metadata"
)

// version is a version of a document in the model of its revisions.
type version struct {
	vector   string
	body     string
	modified time.Time
	deletion bool
	kept     bool // of the newest one: the next write must keep it
}

// pastOf is the model of one document and its revisions.
type pastOf struct {
	collection string
	now        *version
	past       []version // oldest first
	listed     bool      // a deletion under a rule
}

// pasts is a naive model of the revisions of a database: it knows the rules, and
// nothing of numbers.
type pasts struct {
	t      *testing.T
	db     *jay.DB
	clock  func() time.Time
	config jay.RevisionsConfiguration
	all    map[string]*pastOf // by ID
	body   int
}

func (m *pasts) of(id string) *pastOf {
	if m.all[id] == nil {
		m.all[id] = &pastOf{}
	}
	return m.all[id]
}

func (m *pasts) rule(collection string) *jay.RevisionRule {
	if rule, found := m.config.Collections[collection]; found {
		if rule.Disabled {
			return nil
		}
		return &rule
	}
	if d := m.config.Default; d != nil && !d.Disabled {
		return d
	}
	return nil
}

// goes reports whether a rule lets a revision go that this many newer versions have
// replaced, the first of them then.
func goes(rule *jay.RevisionRule, newer int, replaced, now time.Time) bool {
	if rule == nil || rule.Keep == 0 && rule.KeepFor == 0 || rule.Keep > 0 && newer < int(rule.Keep) {
		return false
	}
	return rule.KeepFor == 0 || replaced.Before(now.Add(-rule.KeepFor))
}

// trim lets go what the rule allows of the past that next follows, with this many
// versions from next on.
func (p *pastOf) trim(rule *jay.RevisionRule, limit, newest int, next version, now time.Time) {
	for ; limit > 0 && len(p.past) > 0; limit-- {
		replaced := next.modified
		if len(p.past) > 1 {
			replaced = p.past[1].modified
		}
		if !goes(rule, len(p.past)-1+newest, replaced, now) {
			return
		}
		p.past = p.past[1:]
	}
}

// wrote notes a write.
func (m *pasts) wrote(id, collection, body string, meta jay.Metadata, forced bool) {
	p := m.of(id)
	v := version{vector: meta.ChangeVector, body: body, modified: meta.LastModified}
	rule := m.rule(collection)
	v.kept = rule != nil || forced
	old := p.now
	switch {
	case old == nil:
		p.listed = p.listed && !v.kept
	case v.kept || old.kept:
		p.trim(rule, 8, 2, *old, v.modified)
		if len(p.past) > 0 || !goes(rule, 1, v.modified, v.modified) {
			p.past = append(p.past, *old)
		}
	}
	p.now, p.collection = &v, collection
	flags := metadata.Flags(0)
	if v.kept {
		flags = metadata.HasRevisions
	}
	if meta.Flags != flags {
		m.t.Errorf("%s: the flags of a write are %q, want %q", id, meta.Flags, flags)
	}
}

// deleted notes a deletion. Its change vector is not known.
func (m *pasts) deleted(id string) {
	p := m.of(id)
	old := p.now
	if old == nil {
		return
	}
	p.now = nil
	rule := m.rule(p.collection)
	if rule == nil && !old.kept {
		return
	}
	now := m.clock()
	p.trim(rule, 8, 1, *old, now)
	p.past = append(p.past, *old, version{body: "{}", modified: now, deletion: true})
	p.listed = true
}

// purged notes a purge by a rule, or of everything that was replaced before a time.
func (m *pasts) purged(want func(id string, p *pastOf) bool, retention bool, before time.Time) {
	for id, p := range m.all {
		if !want(id, p) || len(p.past) == 0 {
			continue
		}
		rule := m.rule(p.collection)
		if retention && rule == nil {
			continue
		}
		last, newest := p.past[len(p.past)-1], 0
		switch {
		case p.now != nil:
			last, newest = *p.now, 1
		case last.deletion:
			newest = -1
		}
		if retention {
			p.trim(rule, 1<<30, newest, last, m.clock())
		} else {
			p.trim(&jay.RevisionRule{KeepFor: 1}, 1<<30, newest, last, before.Add(1))
		}
		if len(p.past) == 0 && (p.now == nil || !p.now.kept) {
			p.listed = false
		}
	}
}

// revisionsOf returns the revisions that a document must have, newest first.
func (p *pastOf) revisions() []version {
	out := slices.Clone(p.past)
	if p.now != nil && p.now.kept {
		out = append(out, *p.now)
	}
	slices.Reverse(out)
	return out
}

// check compares the revisions of a document with the model.
func (m *pasts) check(id string) {
	m.t.Helper()
	p := m.of(id)
	want := p.revisions()
	r := m.db.Revisions()
	i := 0
	for rev, err := range r.List(ctx, id, jay.RevisionPage{}) {
		must(m.t, err)
		if i == len(want) {
			m.t.Fatalf("%s has more than %d revisions: %s", id, i, rev.ChangeVector())
		}
		w := want[i]
		if string(rev.Body()) != w.body || !rev.LastModified().Equal(w.modified) || rev.Deletion() != w.deletion || rev.Current() != (p.now != nil && i == 0 && p.now.kept) {
			m.t.Fatalf("%s: revision %d of %d from the newest is %s of %v, want %+v", id, i, len(want), rev.Body(), rev.LastModified(), w)
		}
		if w.deletion { // its vector is not known from its write
			p.past[len(p.past)-1-i+len(want)-len(p.past)].vector = rev.ChangeVector()
		} else if rev.ChangeVector() != w.vector {
			m.t.Fatalf("%s: the change vector is %s, want %s", id, rev.ChangeVector(), w.vector)
		}
		got, err := r.Get(ctx, id, rev.ChangeVector())
		must(m.t, err)
		equal(m.t, string(got.Body())+got.Metadata().Flags.String(), w.body+rev.Metadata().Flags.String())
		i++
	}
	if i != len(want) {
		m.t.Fatalf("%s has %d revisions, want %d", id, i, len(want))
	}
	m.checkAsOf(id, p)
}

// checkAsOf reads a document as of the times of its versions, and just before them.
func (m *pasts) checkAsOf(id string, p *pastOf) {
	m.t.Helper()
	for _, v := range p.revisions() {
		for _, at := range []time.Time{v.modified, v.modified.Add(-100)} {
			want := "none"
			if p.now != nil && !p.now.modified.After(at) {
				want = p.now.body
			} else if i := lastBy(p.past, at); i >= 0 && !p.past[i].deletion {
				want = p.past[i].body
			}
			got := "none"
			rev, err := m.db.Revisions().AsOf(ctx, id, at)
			if err == nil {
				got = string(rev.Body())
			} else if !errors.Is(err, jay.ErrNotFound) {
				m.t.Fatal(err)
			}
			if got != want {
				m.t.Fatalf("%s as of %v is %s, want %s", id, at, got, want)
			}
		}
	}
}

func lastBy(past []version, at time.Time) int {
	for i, v := range slices.Backward(past) {
		if !v.modified.After(at) {
			return i
		}
	}
	return -1
}

// checkAll compares everything.
func (m *pasts) checkAll() {
	m.t.Helper()
	var deleted []string
	counts := make(map[string]int64)
	for _, id := range slices.Sorted(maps.Keys(m.all)) {
		p := m.all[id]
		m.check(id)
		if p.now == nil && p.listed && len(p.past) > 0 {
			deleted = append(deleted, id)
		}
		if n := int64(len(p.past)); n > 0 {
			counts[strings.ToLower(p.collection)] += n
		}
	}
	var listed []string
	for rev, err := range m.db.Revisions().Deleted(ctx, "") {
		must(m.t, err)
		listed = append(listed, rev.ID())
	}
	equal(m.t, fmt.Sprint(listed), fmt.Sprint(deleted))
	found, err := m.db.Revisions().Counts(ctx)
	must(m.t, err)
	kept := make(map[string]int64)
	for _, c := range found {
		kept[c.Collection] = c.Revisions
	}
	equal(m.t, fmt.Sprint(kept), fmt.Sprint(counts))
	must(m.t, checks.Revisions(m.db))
}

func (m *pasts) newBody() string {
	m.body++
	return fmt.Sprintf(`{"n":%d}`, m.body)
}

// rounds returns how many histories are tried, and of how many steps each.
func revisionRounds() (histories, steps int) {
	if n, err := strconv.Atoi(os.Getenv("JAY_REVISION_ROUNDS")); err == nil {
		return n, 600
	}
	return 4, 200
}

// Ensure that random histories of documents leave the revisions that a naive model
// has: through puts, patches, batches, transactions, sessions, a bulk writer, queries
// that delete, reverts, purges, other configurations, clocks that are set back, and
// reopens.
func TestRevisions_Model(t *testing.T) {
	histories, steps := revisionRounds()
	for seed := range histories {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			runHistory(t, uint64(seed), steps)
		})
	}
}

type pastDoc struct {
	ID string
	N  int `json:"n"`
}

func runHistory(t *testing.T, seed uint64, steps int) {
	random := rand.New(rand.NewPCG(seed, 16))
	clock := newClock()
	place := jaytest.NewPlace(t)
	opts := jay.Options{Now: clock.Now}
	m := &pasts{t: t, clock: clock.Now, all: make(map[string]*pastOf)}
	m.db = openAt(t, place, opts)
	defer func() { closeDB(t, m.db) }()
	if seed%2 == 1 { // old documents are then known before the transaction
		must(t, m.db.EnsureIndex(ctx, "Docs", jay.Index{Fields: []string{"n"}}))
	}
	pick := func() (id, collection string) {
		if n := random.IntN(9); n < 6 {
			return fmt.Sprint("docs/", n), "Docs"
		} else {
			return fmt.Sprint("note", n), "Notes"
		}
	}
	for step := range steps {
		switch random.IntN(4) {
		case 0:
			clock.Advance(time.Duration(random.IntN(60)) * time.Minute)
		case 1:
			if random.IntN(8) == 0 {
				clock.Advance(-time.Hour)
			} else {
				clock.Advance(time.Second)
			}
		}
		id, collection := pick()
		m.step(random, id, collection)
		if t.Failed() {
			t.Fatalf("step %d", step)
		}
		m.check(id)
		if random.IntN(25) == 0 {
			m.checkAll()
		}
		if random.IntN(60) == 0 {
			closeDB(t, m.db)
			m.db = openAt(t, place, opts)
			equal(t, configText(t, m.db.Revisions().Configuration()), configText(t, m.config))
		}
	}
	m.checkAll()
}

func configText(t *testing.T, c jay.RevisionsConfiguration) string {
	t.Helper()
	text, err := json.Marshal(c)
	must(t, err)
	return string(text)
}

// step does something, mostly to one document.
func (m *pasts) step(random *rand.Rand, id, collection string) {
	t, db := m.t, m.db
	t.Helper()
	in := jay.InCollection(collection)
	put := func(body string, opts ...jay.WriteOption) jay.Metadata {
		meta, err := db.Put(ctx, id, []byte(body), append(opts, in)...)
		must(t, err)
		return meta
	}
	switch random.IntN(17) {
	case 0:
		must(t, db.Delete(ctx, id))
		m.deleted(id)
	case 1:
		r, err := db.Patch(ctx, id, jay.Set("n", m.body+1))
		must(t, err)
		if r.Status == jay.PatchPatched {
			m.wrote(id, collection, m.newBody(), r.Metadata, false)
		}
	case 2:
		m.batch(random, id, collection)
	case 3:
		m.inTx(random, id, collection)
	case 4:
		m.inSession(random, id, collection)
	case 5:
		w, err := db.BulkInsert(nil)
		must(t, err)
		var metas [3]jay.Metadata
		for i := range metas {
			_, err := w.Put(ctx, id, []byte(fmt.Sprintf(`{"n":%d}`, m.body+1+i)), in, jay.Returning(&metas[i]))
			must(t, err)
		}
		must(t, w.Close())
		for _, meta := range metas {
			m.wrote(id, collection, m.newBody(), meta, false)
		}
	case 6:
		if random.IntN(3) > 0 {
			return
		}
		_, err := db.DropCollection(ctx, collection)
		must(t, err)
		for id, p := range m.all {
			if p.now != nil && p.collection == collection {
				m.deleted(id)
			}
		}
	case 7, 8:
		m.configure(random)
	case 9:
		m.purge(random, id, collection)
	case 10:
		m.revert(random, id)
	case 11:
		_, err := db.Revisions().Force(ctx, id)
		if p := m.of(id); p.now == nil {
			if !errors.Is(err, jay.ErrNotFound) {
				t.Errorf("force of a missing document: %v", err)
			}
		} else {
			must(t, err)
			p.now.kept = true
		}
	case 12:
		m.wrote(id, collection, m.newBody(), put(fmt.Sprintf(`{"n":%d}`, m.body), jay.KeepRevision()), true)
	default:
		meta := put(m.newBody())
		m.wrote(id, collection, fmt.Sprintf(`{"n":%d}`, m.body), meta, false)
	}
}

// batch writes one document several times in a batch, sometimes a large one, whose old
// documents are read beforehand.
func (m *pasts) batch(random *rand.Rand, id, collection string) {
	var b jay.Batch
	type write struct {
		verb int
		body string
	}
	var writes []write
	for range 1 + random.IntN(6) {
		w := write{verb: random.IntN(4)}
		switch w.verb {
		case 0:
			b.Delete(id)
		case 1:
			b.Patch(id, jay.Set("n", m.body+1), jay.OrInsert(map[string]int{"n": m.body + 1}), jay.InCollection(collection))
			w.body = m.newBody()
		default:
			w.body = m.newBody()
			b.Put(id, []byte(w.body), jay.InCollection(collection))
		}
		writes = append(writes, w)
	}
	if random.IntN(4) == 0 {
		for i := range 140 {
			b.Put(fmt.Sprint("other/", i), []byte(`{}`))
		}
	}
	metas, err := m.db.Apply(ctx, &b)
	must(m.t, err)
	for i := range 140 {
		if i+len(writes) < len(metas) {
			m.wrote(fmt.Sprint("other/", i), "@empty", `{}`, metas[i+len(writes)], false)
		}
	}
	for i, w := range writes {
		if w.verb == 0 {
			m.deleted(id)
		} else {
			m.wrote(id, collection, w.body, metas[i], false)
		}
	}
}

// inTx writes in a transaction, which commits the newest write of a document.
func (m *pasts) inTx(random *rand.Rand, id, collection string) {
	var meta jay.Metadata
	body, remove := m.newBody(), random.IntN(3) == 0
	must(m.t, m.db.Update(ctx, func(tx *jay.Tx) error {
		if there, err := tx.Exists(ctx, id); err != nil || remove && there {
			return cmp.Or(err, tx.Delete(ctx, id))
		}
		_, err := tx.Put(ctx, id, []byte(body), jay.InCollection(collection), jay.Returning(&meta))
		return err
	}))
	if remove && m.of(id).now != nil {
		m.deleted(id)
	} else {
		m.wrote(id, collection, body, meta, false)
	}
}

// inSession changes, deletes or forces a revision of an entity.
func (m *pasts) inSession(random *rand.Rand, id, collection string) {
	docs := collectionOf[pastDoc](m.t, m.db, jay.Named(collection))
	s := m.db.OpenSession(jay.WithCollections(docs))
	d, err := jay.Load[pastDoc](ctx, s, id)
	if errors.Is(err, jay.ErrNotFound) {
		d = &pastDoc{ID: id, N: m.body + 1}
		must(m.t, s.Store(ctx, d))
		must(m.t, s.SaveChanges(ctx))
		meta, err := s.Metadata(d)
		must(m.t, err)
		m.wrote(id, collection, m.newBody(), meta, false)
		return
	}
	must(m.t, err)
	kind := random.IntN(4)
	if kind == 0 {
		must(m.t, s.Delete(d))
		must(m.t, s.SaveChanges(ctx))
		m.deleted(id)
		return
	}
	if kind > 1 {
		must(m.t, s.ForceRevision(d))
	}
	if kind < 3 {
		d.N = m.body + 1
	}
	must(m.t, s.SaveChanges(ctx))
	meta, err := s.Metadata(d)
	must(m.t, err)
	if kind < 3 {
		m.wrote(id, collection, m.newBody(), meta, kind > 1)
	} else {
		m.of(id).now.kept = true
		equal(m.t, meta.Flags, metadata.HasRevisions)
	}
	must(m.t, s.SaveChanges(ctx)) // nothing is left to do
	equal(m.t, mustGet(m.t, m.db, id).ChangeVector(), meta.ChangeVector)
}

func mustGet(t *testing.T, db *jay.DB, id string) *jay.Document {
	t.Helper()
	doc, err := db.Get(ctx, id)
	must(t, err)
	return doc
}

func (m *pasts) configure(random *rand.Rand) {
	rule := func() jay.RevisionRule {
		r := jay.RevisionRule{Disabled: random.IntN(6) == 0}
		if random.IntN(2) == 0 {
			r.Keep = uint64(1 + random.IntN(6))
		}
		if random.IntN(3) == 0 {
			r.KeepFor = time.Duration(1+random.IntN(120)) * time.Minute
		}
		return r
	}
	m.config = jay.RevisionsConfiguration{}
	if random.IntN(2) == 0 {
		d := rule()
		m.config.Default = &d
	}
	if random.IntN(2) == 0 {
		m.config.Collections = map[string]jay.RevisionRule{"Docs": rule()}
	}
	must(m.t, m.db.Revisions().Configure(ctx, m.config))
}

func (m *pasts) purge(random *rand.Rand, id, collection string) {
	var p jay.RevisionPurge
	if p.Retention = random.IntN(2) == 0; !p.Retention {
		p.Before = m.clock().Add(-time.Duration(random.IntN(180)) * time.Minute)
	}
	switch random.IntN(4) {
	case 0:
		p.ID = id
		if !p.Retention && random.IntN(3) == 0 {
			p.Before = time.Time{}
		}
	case 1:
		p.Collection = collection
	}
	p.Deleted = random.IntN(4) == 0
	before := make(map[string]int)
	for id, one := range m.all {
		before[id] = len(one.past)
	}
	done, err := m.db.Revisions().Purge(ctx, p)
	must(m.t, err)
	at := p.Before
	if at.IsZero() {
		at = m.clock().Add(1000 * time.Hour)
	}
	m.purged(func(one string, past *pastOf) bool {
		return (p.ID == "" || p.ID == one) && (p.Collection == "" || past.collection == collection) && (!p.Deleted || past.now == nil)
	}, p.Retention, at)
	gone := 0
	for id, one := range m.all {
		gone += before[id] - len(one.past)
	}
	equal(m.t, done.Revisions, int64(gone))
	m.checkAll()
}

func (m *pasts) revert(random *rand.Rand, id string) {
	p := m.of(id)
	revisions := p.revisions()
	if len(revisions) == 0 {
		return
	}
	m.check(id) // for the change vectors of deletions
	to := p.revisions()[random.IntN(len(revisions))]
	meta, err := m.db.Revisions().Revert(ctx, id, to.vector)
	if to.deletion {
		if !errors.Is(err, jay.ErrUsage) {
			m.t.Errorf("revert to a deletion: %v", err)
		}
		return
	}
	must(m.t, err)
	m.wrote(id, p.collection, to.body, meta, false)
}
