// Package storm does everything at once: all verbs on many goroutines, and a Close in
// the middle of them, against an exact model.
package storm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
)

var (
	ctx = context.Background()

	open    = jaytest.Open
	closeDB = jaytest.Close
	put     = jaytest.Put
	must    = jaytest.Must
	within  = jaytest.Within
)

const (
	stormGoroutines = 64
	stormOwn        = 12 // documents that one goroutine writes and no other
	stormAccounts   = 16 // documents that all write, with a constant sum
	stormTallies    = 8  // documents that all increment
	stormBalance    = 1000
)

// stormDoc is a document of the storm. The order of its fields is that of the
// stored members.
type stormDoc struct {
	ID string
	G  int    `json:"g"` // the goroutine that owns it
	N  int    `json:"n"`
	F  int    `json:"f"`
	P  string `json:"p"`
}

func (d *stormDoc) body() []byte {
	return fmt.Appendf(nil, `{"g":%d,"n":%d,"f":%d,"p":%q}`, d.G, d.N, d.F, d.P)
}

// stormState is what a document must be.
type stormState struct {
	doc     stormDoc
	version string // its change vector, "" if it is not known
}

// storm is the model that all goroutines share. What one goroutine owns is in
// its gust.
type storm struct {
	t  *testing.T
	db *jay.DB

	mu       sync.Mutex
	made     map[string]string // folded ID of every document that Jay made an ID for, its body. Guarded by mu.
	maybe    map[string]bool   // bodies of documents that may be there, under an ID that was not returned. Guarded by mu.
	numbers  map[string]bool   // identity numbers and HiLo IDs without a document. Guarded by mu.
	identity map[string]int64  // the highest number of each identity that was returned. Guarded by mu.
	etag     uint64            // likewise. Guarded by mu.

	tallies  [stormTallies]atomic.Int64 // increments that were acknowledged
	unsure   [stormTallies]atomic.Int64 // and those of unknown outcome
	serial   atomic.Int64
	verbs    [32]atomic.Int64 // how often each was done
	failures atomic.Int64

	followers *followers
}

// gust is one goroutine.
type gust struct {
	*storm
	*rand.Rand
	g     int
	own   map[string]stormState // documents that are there
	index bool                  // its index is there
	timed
}

// stormVerbs are all that a goroutine does. Each returns an error only if the
// verb did not come to its end.
var stormVerbs = []struct {
	name string
	do   func(g *gust) error
}{
	{"Put", (*gust).put},
	{"Revisions.Configure", (*gust).configureRevisions},
	{"Revisions.List and Get", (*gust).readRevisions},
	{"Revisions.Purge", (*gust).purgeRevisions},
	{"Insert", (*gust).insert},
	{"Replace", (*gust).replace},
	{"Delete", (*gust).delete},
	{"Patch", (*gust).patch},
	{"IfMatch", (*gust).ifMatch},
	{"Apply", (*gust).apply},
	{"Store", (*gust).store},
	{"Put of an identity, a server-side ID, a GUID", (*gust).makeID},
	{"NextIdentity", (*gust).nextIdentity},
	{"a HiLo client", (*gust).client},
	{"Update", (*gust).transfer},
	{"View", (*gust).view},
	{"a session", (*gust).session},
	{"a bulk writer", (*gust).bulk},
	{"Increment", (*gust).tally},
	{"Get, GetMany, Exists, Read", (*gust).read},
	{"Put and Gets, twice", (*gust).getBetweenPuts},
	{"Query", (*gust).query},
	{"Documents", (*gust).scan},
	{"Changes", (*gust).changes},
	{"EnsureIndex and DropIndex", (*gust).changeIndex},
	{"Attachments: Put, Copy, Delete", (*gust).attach},
	{"Attachments: List, Get", (*gust).readAttachments},
	{"Put with ExpiresAt", (*gust).expire},
	{"Sweep", (*gust).sweep},
	{"a write whose context ends", (*gust).giveUp},
}

// Ensure that 64 goroutines with all verbs, and a Close in the middle of them,
// leave exactly what was acknowledged to each of them: documents and versions, indexes,
// sums, counters above every number that was given out, no ID twice, each attachment, no
// document that has expired, feeds and a subscription that have missed nothing, and no
// goroutine behind. JAY_STORM, such as 60s, lengthens it, JAY_STORM_SEED repeats
// the choices of a run.
func TestStorm(t *testing.T) {
	lasts := 2 * time.Second
	if text := os.Getenv("JAY_STORM"); text != "" {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("JAY_STORM_SEED"); text != "" {
		if _, err := fmt.Sscan(text, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("JAY_STORM_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	goroutines := runtime.NumGoroutine()

	// The long storm is one on a real disk.
	place, dir := jaytest.NewPlace(t), ""
	if lasts >= 10*time.Second && os.Getenv("JAY_ENGINE") == "" {
		dir = filepath.Join(t.TempDir(), "db")
	}
	reopen := func() *jay.DB {
		options := jay.Options{MemTableBytes: 1 << 20, CacheBytes: 4 << 20}
		if dir != "" {
			return open(t, dir, &options)
		}
		db, err := place.Open(options)
		must(t, err)
		return db
	}
	s := &storm{
		t: t, made: make(map[string]string), maybe: make(map[string]bool),
		numbers: make(map[string]bool), identity: make(map[string]int64), followers: newFollowers(),
	}
	s.db = reopen()
	s.prepare()
	gusts := make([]*gust, stormGoroutines)
	for g := range gusts {
		gusts[g] = &gust{storm: s, Rand: rand.New(rand.NewPCG(seed, uint64(g)+1)), g: g, own: make(map[string]stormState), timed: newTimed()}
	}
	rounds := 0
	everyVerb := func() bool {
		for i := range stormVerbs {
			if s.verbs[i].Load() == 0 {
				return false
			}
		}
		return true
	}
	more := jaytest.Patience()
	for end := time.Now().Add(lasts); (time.Now().Before(end) || more(testing.Short() || everyVerb())) && !t.Failed(); rounds++ {
		length := min(lasts/3, 5*time.Second)
		length = length/2 + time.Duration(random.Int64N(int64(length)))
		var group sync.WaitGroup
		s.begin(&group)
		for _, g := range gusts {
			group.Go(g.blow)
		}
		time.Sleep(length) // how long it blows, not how long anything takes
		closed := make(chan error, 1)
		go func() { closed <- s.db.Close() }()
		must(t, within(t, closed, "Close in the middle of the storm"))
		jaytest.Await(t, "the storm's end", jaytest.Finished(&group))
		s.db = reopen()
		s.check(gusts)
	}
	closeDB(t, s.db)
	if left := goroutinesAbove(goroutines); left > 0 {
		text := make([]byte, 1<<20)
		t.Errorf("%d goroutines are left:\n%s", left, text[:runtime.Stack(text, true)])
	}
	var done int64
	for i, verb := range stormVerbs {
		n := s.verbs[i].Load()
		done += n
		t.Logf("%8d × %s", n, verb.name)
		if n == 0 && !testing.Short() {
			t.Errorf("%s was never done", verb.name)
		}
	}
	t.Logf("%d rounds, %d verbs, %d made IDs", rounds, done, len(s.made)+len(s.numbers))
}

// prepare makes what all share.
func (s *storm) prepare() {
	for i := range stormAccounts {
		put(s.t, s.db, fmt.Sprint("accounts/", i), fmt.Sprintf(`{"balance":%d}`, stormBalance), jay.InCollection("Accounts"))
	}
	for i := range stormTallies {
		put(s.t, s.db, fmt.Sprint("tallies/", i), `{"n":0}`, jay.InCollection("Tallies"))
	}
	must(s.t, s.db.EnsureIndex(ctx, "Storm", jay.Index{Fields: []string{"g"}}))
	must(s.t, s.db.EnsureIndex(ctx, "Storm", jay.Index{Name: "pair", Fields: []string{"f", "-n"}}))
	must(s.t, s.db.Subscriptions().Ensure(ctx, jay.Subscription{Name: "storm", Query: "from Storm"}))
}

// wrong notes a failure. A storm that goes wrong has many.
func (s *storm) wrong(format string, args ...any) {
	if s.failures.Add(1) <= 20 {
		s.t.Errorf(format, args...)
	}
}

// blow does one verb after the other until the database is closed.
func (g *gust) blow() {
	for {
		i := g.IntN(len(stormVerbs))
		err := stormVerbs[i].do(g)
		switch {
		case errors.Is(err, jay.ErrClosed), errors.Is(err, jay.ErrClientClosed):
			return
		case err != nil:
			g.wrong("goroutine %d, %s: %v", g.g, stormVerbs[i].name, err)
			return
		}
		g.verbs[i].Add(1)
	}
}

var inStorm = jay.InCollection("Storm")

// id returns one of the goroutine's own IDs.
func (g *gust) id() string { return fmt.Sprintf("storm/%d/%d", g.g, g.IntN(stormOwn)) }

// fresh returns a document that no other is like.
func (g *gust) fresh(id string) stormDoc {
	return stormDoc{ID: id, G: g.g, N: int(g.serial.Add(1)), F: g.IntN(10), P: strings.Repeat("p", g.IntN(2000))}
}

// wrote notes a document that was acknowledged.
func (g *gust) wrote(doc stormDoc, m jay.Metadata) {
	g.own[doc.ID] = stormState{doc, m.ChangeVector}
	g.acknowledged(m)
}

// acknowledged notes the etag of a write.
func (s *storm) acknowledged(m jay.Metadata) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.etag = max(s.etag, m.Etag)
}

// newID notes a document whose ID Jay made.
func (s *storm) newID(id, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	folded := ids.Fold(id)
	if _, twice := s.made[folded]; twice || s.numbers[folded] {
		s.wrong("%s was made twice", id)
	}
	s.made[folded] = body
	s.countIdentity(folded)
}

// number notes a number, or an ID, without a document.
func (s *storm) number(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	folded := ids.Fold(id)
	if _, twice := s.made[folded]; twice || s.numbers[folded] {
		s.wrong("%s was given out twice", id)
	}
	s.numbers[folded] = true
	s.countIdentity(folded)
}

// countIdentity raises the highest number of an identity. s.mu is held.
func (s *storm) countIdentity(folded string) {
	var n int64
	if name, number, found := strings.Cut(folded, "/"); found && (name == "inv" || name == "bill") {
		if _, err := fmt.Sscan(number, &n); err == nil {
			s.identity[name+"|"] = max(s.identity[name+"|"], n)
		}
	}
}

func (g *gust) put() error { return g.putAt(g.id()) }

func (g *gust) putAt(id string) error {
	doc := g.fresh(id)
	m, err := g.db.Put(ctx, doc.ID, doc.body(), inStorm)
	if err == nil {
		g.wrote(doc, m)
	}
	return err
}

func (g *gust) insert() error {
	doc := g.fresh(g.id())
	_, there := g.own[doc.ID]
	m, err := g.db.Insert(ctx, doc.ID, doc.body(), inStorm)
	switch {
	case err == nil && there:
		g.wrong("Insert of %s, which is there", doc.ID)
	case err == nil:
		g.wrote(doc, m)
	case errors.Is(err, jay.ErrExists) && there:
		return nil
	}
	return err
}

func (g *gust) replace() error {
	doc := g.fresh(g.id())
	_, there := g.own[doc.ID]
	m, err := g.db.Replace(ctx, doc.ID, doc.body(), inStorm)
	switch {
	case err == nil && !there:
		g.wrong("Replace of %s, which is not there", doc.ID)
	case err == nil:
		g.wrote(doc, m)
	case errors.Is(err, jay.ErrNotFound) && !there:
		return nil
	}
	return err
}

func (g *gust) delete() error {
	id := g.id()
	err := g.db.Delete(ctx, id)
	if err == nil {
		delete(g.own, id)
	}
	return err
}

func (g *gust) patch() error {
	id := g.id()
	state, there := g.own[id]
	by := g.IntN(3) * 1e9 // so that n stays unique
	result, err := g.db.Patch(ctx, id, jay.Increment("n", by))
	if err != nil {
		return err
	}
	want := jay.PatchPatched
	switch {
	case !there:
		want = jay.PatchNotFound
	case by == 0:
		want = jay.PatchNotModified
	default:
		state.doc.N += by
		g.wrote(state.doc, result.Metadata)
	}
	if result.Status != want {
		g.wrong("Patch of %s by %d: %s, want %s", id, by, result.Status, want)
	}
	return nil
}

func (g *gust) ifMatch() error {
	doc := g.fresh(g.id())
	state, there := g.own[doc.ID]
	match := g.IntN(2) == 0 && there && state.version != ""
	version := "A:1-AAAAAAAAAAAAAAAAAAAAAA" // of no document
	if match {
		version = state.version
	}
	m, err := g.db.Put(ctx, doc.ID, doc.body(), jay.IfMatch(version), inStorm)
	switch {
	case err == nil && !match:
		g.wrong("Put of %s with a version that it never had", doc.ID)
	case err == nil:
		g.wrote(doc, m)
	case errors.Is(err, jay.ErrConflict) && !match:
		return nil
	}
	return err
}

// apply writes several of its own documents, some more than once, and is
// refused as a whole now and then.
func (g *gust) apply() error {
	var b jay.Batch
	after := maps.Clone(g.own)
	writes := 1 + g.IntN(6)
	for range writes {
		doc := g.fresh(g.id())
		if g.IntN(4) == 0 {
			b.Delete(doc.ID)
			delete(after, doc.ID)
		} else {
			b.Put(doc.ID, doc.body(), inStorm)
			after[doc.ID] = stormState{doc: doc}
		}
	}
	refused := g.IntN(4) == 0
	if refused {
		b.Replace("storm/nobody", []byte(`{}`), inStorm)
	}
	metas, err := g.db.Apply(ctx, &b)
	switch {
	case refused && errors.Is(err, jay.ErrNotFound):
		return nil
	case err != nil:
		return err
	case refused || len(metas) != writes:
		g.wrong("Apply of %d writes: %d metas, refused %t", writes, len(metas), refused)
		return nil
	}
	for _, m := range metas {
		g.acknowledged(m)
	}
	g.own = after
	return nil
}

func (g *gust) store() error {
	text := fmt.Sprintf(`{"serial":%d}`, g.serial.Add(1))
	m, err := g.db.Store(ctx, "Stored", json.RawMessage(text))
	if err == nil {
		g.newID(m.ID, text)
		g.acknowledged(m)
	}
	return err
}

func (g *gust) makeID() error {
	text := fmt.Sprintf(`{"serial":%d}`, g.serial.Add(1))
	request := []string{"inv|", "bill|", "logs/", ""}[g.IntN(4)]
	m, err := g.db.Put(ctx, request, json.RawMessage(text), jay.InCollection("Made"))
	if err == nil {
		g.newID(m.ID, text)
		g.acknowledged(m)
	}
	return err
}

func (g *gust) nextIdentity() error {
	name := []string{"inv", "bill"}[g.IntN(2)]
	n, err := g.db.NextIdentity(ctx, name)
	if err == nil {
		g.number(fmt.Sprint(name, "/", n))
	}
	return err
}

func (g *gust) client() error {
	client := g.db.NewHiLoClient()
	for range 1 + g.IntN(5) {
		id, err := client.Next(ctx, "stored")
		if err != nil {
			return err
		}
		g.number(id)
	}
	return client.Close(ctx)
}

// transfer moves money between two accounts; some transfers are refused.
func (g *gust) transfer() error {
	from, to := g.IntN(stormAccounts), g.IntN(stormAccounts)
	errBroke := errors.New("broke")
	err := g.db.Update(ctx, func(tx *jay.Tx) error {
		balances := make(map[int]int)
		for _, i := range []int{from, to} {
			doc, err := tx.Get(ctx, fmt.Sprint("accounts/", i))
			if err != nil {
				return err
			}
			if balances[i], _, err = jay.Value[int](doc, "balance"); err != nil {
				return err
			}
		}
		amount := g.IntN(50)
		balances[from] -= amount
		balances[to] += amount
		if balances[from] < 0 {
			return errBroke
		}
		for i, balance := range balances {
			if _, err := tx.Put(ctx, fmt.Sprint("accounts/", i), fmt.Appendf(nil, `{"balance":%d}`, balance), jay.InCollection("Accounts")); err != nil {
				return err
			}
		}
		return nil
	}, jay.Retry(3))
	if errors.Is(err, jay.ErrConflict) || errors.Is(err, errBroke) {
		return nil
	}
	return err
}

// accounts gets all accounts, one by one.
func accounts(get func(ctx context.Context, id string) (*jay.Document, error)) func(yield func(*jay.Document, error) bool) {
	return func(yield func(*jay.Document, error) bool) {
		for i := range stormAccounts {
			if !yield(get(ctx, fmt.Sprint("accounts/", i))) {
				return
			}
		}
	}
}

// sum returns the sum of some accounts.
func (s *storm) sum(docs func(yield func(*jay.Document, error) bool)) (sum int, err error) {
	for doc, err := range docs {
		if err != nil {
			return 0, err
		}
		balance, _, err := jay.Value[int](doc, "balance")
		if err != nil {
			return 0, err
		}
		sum += balance
	}
	return sum, nil
}

// halfway calls fn in the middle of a walk over the accounts.
func halfway(docs func(yield func(*jay.Document, error) bool), fn func() error) func(yield func(*jay.Document, error) bool) {
	return func(yield func(*jay.Document, error) bool) {
		n := 0
		for doc, err := range docs {
			if n++; n == stormAccounts/2 && err == nil {
				err = fn()
			}
			if !yield(doc, err) {
				return
			}
		}
	}
}

// view sums the accounts of one moment, though a transfer is made meanwhile.
func (g *gust) view() error {
	return g.db.View(ctx, func(tx *jay.Tx) error {
		all := accounts(tx.Get)
		if g.IntN(2) == 0 {
			all = tx.Documents(ctx, jay.Scan{Collection: "Accounts"})
		}
		sum, err := g.sum(halfway(all, g.transfer))
		if err != nil {
			return err
		}
		if sum != stormAccounts*stormBalance {
			g.wrong("the accounts of one moment come to %d, want %d", sum, stormAccounts*stormBalance)
		}
		return g.compare("Documents in a View", tx.Documents(ctx, jay.Scan{Prefix: fmt.Sprintf("storm/%d/", g.g)}))
	})
}

// session changes, deletes and adds some of its own documents.
func (g *gust) session() error {
	c, err := jay.CollectionOf[stormDoc](g.db, jay.Named("Storm"))
	if err != nil {
		return err
	}
	s := g.db.OpenSession(jay.WithCollections(c))
	after, touched := maps.Clone(g.own), make(map[string]bool)
	for range 1 + g.IntN(3) {
		id := g.id()
		if touched[id] {
			continue
		}
		touched[id] = true
		v, err := jay.Load[stormDoc](ctx, s, id)
		state, there := g.own[id]
		switch {
		case errors.Is(err, jay.ErrNotFound):
			if there {
				g.wrong("a session does not find %s", id)
				return nil
			}
			doc := g.fresh(id)
			if err := s.Store(ctx, &doc); err != nil {
				return err
			}
			after[id] = stormState{doc: doc}
		case err != nil:
			return err
		case !there || *v != state.doc:
			g.wrong("a session loads %+v, want %+v, there %t", *v, state.doc, there)
			return nil
		case g.IntN(3) == 0:
			if err := s.Delete(v); err != nil {
				return err
			}
			delete(after, id)
		default:
			v.N = int(g.serial.Add(1))
			after[id] = stormState{doc: *v}
		}
	}
	if err := s.SaveChanges(ctx); err != nil {
		return err
	}
	g.own = after
	return nil
}

// bulk writes new documents and puts its own by a bulk writer of its own. What
// the writer was given is there if its Close returns nil. If the database is
// closed first, batches are there or not.
func (g *gust) bulk() error {
	w, err := g.db.BulkInsert(&jay.BulkOptions{BatchDocuments: 1 + g.IntN(5)})
	if err != nil {
		return err
	}
	after := maps.Clone(g.own)
	type stored struct {
		meta *jay.Metadata
		text string
	}
	var all []stored
	var puts []stormDoc
	for range 1 + g.IntN(10) {
		if doc := g.fresh(g.id()); g.IntN(2) == 0 {
			puts = append(puts, doc)
			if _, err = w.Put(ctx, doc.ID, doc.body(), inStorm); err != nil {
				break
			}
			after[doc.ID] = stormState{doc: doc}
			continue
		}
		m, text := new(jay.Metadata), fmt.Sprintf(`{"serial":%d}`, g.serial.Add(1))
		all = append(all, stored{m, text})
		if g.IntN(2) == 0 {
			_, err = w.Store(ctx, "Stored", json.RawMessage(text), jay.Returning(m))
		} else {
			_, err = w.Put(ctx, "inv|", json.RawMessage(text), jay.InCollection("Made"), jay.Returning(m))
		}
		if err != nil {
			break
		}
	}
	if err := errors.Join(err, w.Close()); err != nil {
		// Some of it is there. The next round begins with what is found.
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, s := range all {
			g.maybe[s.text] = true
		}
		for _, doc := range puts {
			g.cut(doc)
		}
		return err
	}
	for _, s := range all {
		g.newID(s.meta.ID, s.text)
	}
	g.own = after
	return nil
}

// cut notes that a write may be there, so that check allows for it. g.mu is
// held.
func (g *gust) cut(doc stormDoc) { g.maybe[doc.ID+string(doc.body())] = true }

func (g *gust) tally() error {
	i := g.IntN(stormTallies)
	c := ctx
	if g.IntN(10) == 0 {
		limited, cancel := context.WithTimeout(ctx, time.Duration(g.IntN(2000))*time.Microsecond)
		defer cancel()
		c = limited
	}
	result, err := g.db.Patch(c, fmt.Sprint("tallies/", i), jay.Increment("n", 1))
	switch {
	case err == nil && result.Status == jay.PatchPatched:
		g.tallies[i].Add(1)
	case err == nil:
		g.wrong("a tally was %s", result.Status)
	case errors.Is(err, jay.ErrUnknownOutcome):
		g.unsure[i].Add(1)
		return nil
	case c.Err() != nil && errors.Is(err, c.Err()):
		return nil
	}
	return err
}

// want compares one document with the model.
func (g *gust) want(how, id, body, version string, err error) error {
	state, there := g.own[id]
	switch {
	case errors.Is(err, jay.ErrNotFound):
		if there {
			g.wrong("%s: %s is missing", how, id)
		}
		return nil
	case err != nil:
		return err
	case !there:
		g.wrong("%s: %s is there: %s", how, id, body)
	case body != string(state.doc.body()) || state.version != "" && version != state.version:
		g.wrong("%s: %s is %.60s, version %s, want %.60s, %s", how, id, body, version, state.doc.body(), state.version)
	}
	return nil
}

func (g *gust) get(id string) error {
	doc, err := g.db.Get(ctx, id)
	if err != nil {
		return g.want("Get", id, "", "", err)
	}
	return g.want("Get", id, string(doc.Body()), doc.ChangeVector(), nil)
}

// getBetweenPuts gets a document often enough that it is cached, and again after it has changed.
func (g *gust) getBetweenPuts() error {
	id := g.id()
	for range 2 {
		if err := g.putAt(id); err != nil {
			return err
		}
		for range 3 {
			if err := g.get(id); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *gust) read() error {
	id := g.id()
	if err := g.get(id); err != nil {
		return err
	}
	text, version := "", ""
	err := g.db.Read(ctx, id, func(doc *jay.RawDocument) error {
		text, version = string(doc.Body()), doc.ChangeVector()
		return nil
	})
	if err := g.want("Read", id, text, version, err); err != nil {
		return err
	}
	found, err := g.db.Exists(ctx, id)
	if err != nil {
		return err
	}
	if _, there := g.own[id]; found != there {
		g.wrong("Exists %s: %t", id, found)
	}
	some := []string{g.id(), g.id(), g.id()}
	docs, err := g.db.GetMany(ctx, some...)
	if err != nil {
		return err
	}
	for i, doc := range docs {
		err = jay.ErrNotFound
		if doc != nil {
			text, version, err = string(doc.Body()), doc.ChangeVector(), nil
		}
		if err := g.want("GetMany", some[i], text, version, err); err != nil {
			return err
		}
	}
	return nil
}

// compare holds a walk over all of its documents, in any order, against the
// model.
func (g *gust) compare(how string, docs func(yield func(*jay.Document, error) bool)) error {
	seen := make(map[string]bool)
	for doc, err := range docs {
		if err != nil {
			return err
		}
		if seen[doc.ID()] {
			g.wrong("%s: %s comes twice", how, doc.ID())
		}
		seen[doc.ID()] = true
		if err := g.want(how, doc.ID(), string(doc.Body()), doc.ChangeVector(), nil); err != nil {
			return err
		}
	}
	for id := range g.own {
		if !seen[id] {
			g.wrong("%s: %s is missing", how, id)
		}
	}
	return nil
}

func (g *gust) query() error {
	q := g.db.Query("Storm").Where(jay.Eq("g", g.g))
	switch g.IntN(4) {
	case 0:
		q = q.Where(jay.Between("f", 0, 9)).OrderBy("f", "-n")
	case 1:
		n, err := q.Count(ctx)
		if err == nil && n != int64(len(g.own)) {
			g.wrong("Count is %d, want %d", n, len(g.own))
		}
		return err
	case 2:
		f := g.IntN(10)
		want := 0
		for _, state := range g.own {
			if state.doc.F == f {
				want++
			}
		}
		n, err := q.Where(jay.Eq("f", f)).Count(ctx)
		if err == nil && n != int64(want) {
			g.wrong("Count of f = %d is %d, want %d", f, n, want)
		}
		return err
	}
	return g.compare("Query", q.Iter(ctx))
}

// configureRevisions keeps revisions of some documents, or of all, or no more.
func (g *gust) configureRevisions() error {
	var c jay.RevisionsConfiguration
	if g.IntN(4) > 0 {
		c.Default = &jay.RevisionRule{Keep: uint64(1 + g.IntN(4))}
	}
	if g.IntN(2) == 0 {
		c.Collections = map[string]jay.RevisionRule{"Storm": {Disabled: g.IntN(2) == 0}}
	}
	return g.db.Revisions().Configure(ctx, c)
}

// readRevisions lists the revisions of a document, and reads the last of them.
func (g *gust) readRevisions() error {
	id := g.id()
	etag := uint64(math.MaxUint64)
	var last *jay.Revision
	for rev, err := range g.db.Revisions().List(ctx, id, jay.RevisionPage{Limit: 10}) {
		if err != nil {
			return err
		}
		if m := rev.Metadata(); m.Etag >= etag {
			g.wrong("%s: revision %s comes behind one with etag %d", id, m.ChangeVector, etag)
		}
		last, etag = rev, rev.Metadata().Etag
	}
	if last == nil {
		return nil
	}
	found, err := g.db.Revisions().Get(ctx, id, last.ChangeVector())
	if errors.Is(err, jay.ErrNotFound) {
		return nil // another goroutine has purged it
	}
	if err == nil && string(found.Body()) != string(last.Body()) {
		g.wrong("%s: revision %s is %s and %s", id, last.ChangeVector(), last.Body(), found.Body())
	}
	return err
}

// purgeRevisions removes what no rule keeps, or everything of a document of its own.
func (g *gust) purgeRevisions() error {
	p := jay.RevisionPurge{Retention: true}
	if g.IntN(2) == 0 {
		p = jay.RevisionPurge{ID: g.id()}
	}
	_, err := g.db.Revisions().Purge(ctx, p)
	return err
}

func (g *gust) scan() error {
	return g.compare("Documents", g.db.Documents(ctx, jay.Scan{Prefix: fmt.Sprintf("storm/%d/", g.g)}))
}

// changes reads the changes of the goroutine's own documents: each that is there has one.
// It reads those of all others, too, and so is done now and then.
func (g *gust) changes() error {
	if g.IntN(20) != 0 {
		return nil
	}
	etag := uint64(0)
	return g.compare("Changes", func(yield func(*jay.Document, error) bool) {
		mine := jay.OfPrefixes(fmt.Sprintf("storm/%d/", g.g))
		for c, err := range g.db.Changes(ctx, "", mine, jay.WithDocuments(), jay.UntilCaughtUp()) {
			if err == nil && c.Etag <= etag {
				g.wrong("Changes: etag %d comes after %d", c.Etag, etag)
			}
			if etag = c.Etag; err == nil && c.Deleted {
				continue
			}
			if !yield(c.Document, err) {
				return
			}
		}
	})
}

// changeIndex makes or drops an index of the goroutine's own. Only some have
// one: there is a limit.
func (g *gust) changeIndex() (err error) {
	if g.g%8 != 0 || g.IntN(4) != 0 {
		return nil
	}
	name := fmt.Sprint("of-", g.g)
	if g.index {
		err = g.db.DropIndex(ctx, "Storm", name)
	} else {
		err = g.db.EnsureIndex(ctx, "Storm", jay.Index{Name: name, Fields: []string{"n", "f"}, Unique: g.g%16 == 0})
	}
	if err == nil {
		g.index = !g.index
	}
	return err
}

// giveUp writes with a context that ends soon, and then makes sure of the
// outcome by a write that waits.
func (g *gust) giveUp() error {
	limited, cancel := context.WithTimeout(ctx, time.Duration(g.IntN(1000))*time.Microsecond)
	defer cancel()
	doc := g.fresh(g.id())
	m, err := g.db.Put(limited, doc.ID, doc.body(), inStorm)
	switch {
	case err == nil:
		g.wrote(doc, m)
		return nil
	case errors.Is(err, jay.ErrUnknownOutcome) && errors.Is(err, context.DeadlineExceeded):
		g.mu.Lock()
		g.cut(doc) // if the next write comes too late
		g.mu.Unlock()
		doc = g.fresh(doc.ID)
		m, err := g.db.Put(ctx, doc.ID, doc.body(), inStorm)
		if err == nil {
			g.wrote(doc, m)
		}
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return nil
	}
	return err
}

// check compares a database that was just opened with the model.
func (s *storm) check(gusts []*gust) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	there := make(map[string]*jay.Document)
	bodies := make(map[string]string) // of documents with made IDs
	for doc, err := range s.db.Documents(ctx, jay.Scan{}) {
		must(s.t, err)
		switch doc.Collection() {
		case "Storm":
			there[doc.ID()] = doc
		case "Made", "Stored":
			bodies[ids.Fold(doc.ID())] = string(doc.Body())
		}
	}
	for _, g := range gusts {
		for i := range stormOwn {
			id := fmt.Sprintf("storm/%d/%d", g.g, i)
			g.checkOwn(id, there[id])
			delete(there, id)
		}
	}
	for id := range there {
		s.wrong("%s is there, which was never written", id)
	}
	for id, body := range s.made {
		if bodies[id] != body {
			s.wrong("%s is %q, want %q", id, bodies[id], body)
		}
		delete(bodies, id)
	}
	for id, body := range bodies {
		if !s.maybe[body] {
			s.wrong("%s is there, as %s, which was never returned", id, body)
		}
		s.made[id] = body
		s.countIdentity(id)
	}
	clear(s.maybe)

	sum, err := s.sum(s.db.Documents(ctx, jay.Scan{Collection: "Accounts"}))
	must(s.t, err)
	jaytest.Equal(s.t, sum, stormAccounts*stormBalance)
	for i := range s.tallies {
		doc, err := s.db.Get(ctx, fmt.Sprint("tallies/", i))
		must(s.t, err)
		n, _, err := jay.Value[int64](doc, "n")
		must(s.t, err)
		if sure := s.tallies[i].Load(); n < sure || n > sure+s.unsure[i].Load() {
			s.wrong("tally %d is %d, want %d and up to %d of unknown outcome", i, n, sure, s.unsure[i].Load())
		}
		s.tallies[i].Store(n)
		s.unsure[i].Store(0)
	}

	counters, err := s.db.Counters(ctx)
	must(s.t, err)
	if counters.Etag < s.etag {
		s.wrong("the etag counter is at %d, and %d was given out", counters.Etag, s.etag)
	}
	for name, n := range s.identity {
		if counters.Identities[name] < n {
			s.wrong("identity %s is at %d, and %d was given out", name, counters.Identities[name], n)
		}
	}
	s.checkAttachments(gusts)
	s.checkFollowers()
	jaytest.FinishIndexTasks(s.t, s.db)
	if err := checks.Counts(s.db); err != nil {
		s.wrong("%v", err)
	}
	if err := checks.Revisions(s.db); err != nil {
		s.wrong("%v", err)
	}
	if err := checks.Indexes(s.db); err != nil {
		s.wrong("indexes: %v", err)
	}
	jaytest.Verify(s.t, s.db)
	infos, err := s.db.Indexes(ctx, "Storm")
	must(s.t, err)
	for _, g := range gusts {
		g.index = slices.ContainsFunc(infos, func(info jay.IndexInfo) bool {
			return info.Name == fmt.Sprint("of-", g.g) && info.State == jay.IndexReady
		})
	}
}

// checkOwn compares one of a goroutine's own documents with the model, and
// takes over what Close may have cut. s.mu is held.
func (g *gust) checkOwn(id string, doc *jay.Document) {
	state, known := g.own[id]
	if doc == nil {
		if known {
			g.wrong("%s is missing", id)
			delete(g.own, id)
		}
		return
	}
	text := string(doc.Body())
	if known && text == string(state.doc.body()) && (state.version == "" || state.version == doc.ChangeVector()) {
		return
	}
	if !g.maybe[id+text] {
		g.wrong("%s is %.60s, want %.60s", id, text, state.doc.body())
	}
	found := stormDoc{ID: id}
	if err := doc.Decode(&found); err != nil {
		g.wrong("%s: %v", id, err)
	}
	g.own[id] = stormState{found, doc.ChangeVector()}
}

// goroutinesAbove returns how many goroutines more than before there are, once
// those that are about to end have ended.
func goroutinesAbove(before int) int {
	for deadline := time.Now().Add(jaytest.HangGuard); runtime.NumGoroutine() > before && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond) // between two looks
	}
	return runtime.NumGoroutine() - before
}
