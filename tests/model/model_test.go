package model_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that no number is handed out twice, no document is overwritten by an
// ID that Jay made, and nothing acknowledged is lost, whatever clients, users,
// crashes, clocks, copies and changes of mode do, in any order. The steps are those of
// steps_test.go; the model knows none of Jay's rules but the promises.
//
// The default is 100 histories of some 360 steps. For a quiet evening:
//
//	go test -run TestModel -count=1 -timeout=0 -rapid.checks=20000 -rapid.steps=100 ./tests/model
//
// A failure prints its seed, and -rapid.seed repeats it. Only the moment at
// which the clients of this process fetch ahead differs from run to run.
func TestModel(t *testing.T) {
	sample.OneGoroutine(t)
	rapid.Check(t, func(t *rapid.T) {
		m := &model{clock: newClock(), drawn: make(map[number]string), made: make(map[string]bool)}
		defer m.abandon()
		w := m.newWorld("A", storagetest.NewDisk())
		w.relaxed = rapid.Bool().Draw(t, "relaxed")
		w.open(t)

		actions := map[string]func(*rapid.T){
			"the clock jumps":           m.moveClock,
			"the power fails":           m.crash,
			"the power fails in a step": m.cut,
			"twin of a database":        m.copy,
		}
		for name, s := range steps {
			actions[name] = func(t *rapid.T) { m.run(t, s) }
			if strings.HasPrefix(name, "remote") {
				actions[name+", too"] = actions[name] // twice as often
			}
		}
		for range 12 {
			t.Repeat(actions)
		}

		for _, w := range m.worlds {
			w.check(t, false)
			w.close(t)
		}
	})
}

// model is what is known of a history: all databases that came of one, and
// every number that was returned.
type model struct {
	clock  *jaytest.Clock
	worlds []*world
	serial int

	drawn map[number]string // HiLo numbers handed out, by whom
	made  map[string]bool   // server-side IDs handed out
}

// number is a HiLo number of a tag, which stands for all its casings and
// separators, and for all generations: one database never gives the same
// number with a node tag and without. node names the database. What keeps
// numbers without a tag apart between a database and its copy is a floor, which
// the users of this model choose without a thought for the original.
type number struct {
	tag, node string
	n         int64
}

// world is one database, over all its crashes.
type world struct {
	m       *model
	tag     string // its node tag
	copied  bool
	disk    *storagetest.Disk
	db      *jay.DB
	relaxed bool

	mode     jay.HiLoMode // chosen anew by each open
	capacity int64        // Options.HiLoCapacity, likewise
	own      *local       // the database's own client
	locals   []*local     // other clients of this process

	docs  map[string]string // by folded ID, the body that must be there
	loose map[string]bool   // folded IDs written since the last sync: a crash may undo it
	maybe map[string]bool   // bodies of the step under way: a crash may keep them

	etag     uint64                    // the highest that was returned
	used     map[string]map[int64]bool // identity numbers handed out, but those that a forced seed gave free, by counter
	floor    map[string]int64          // seeds acknowledged, by counter
	seeded   map[string]bool           // in a copy: seeds tried, by counter
	released map[string]bool           // in a copy: HiLo tags that a raise was tried of, and true if it was acknowledged
	raised   map[string]int64          // HiLo numbers used elsewhere, as was said and acknowledged, by tag
	granted  map[string][]*grant       // by tag
	clients  []*remote
	returned []*grant // sealed and sent back, accepted or not, by all clients
	void     []*grant // of the original's clients, when this copy was made
	full     bool     // a client wrote a Max that leaves no numbers
	huge     bool     // a client wrote a Max that leaves none if a ServerHi is read with another capacity
	hi       bool     // there was a ServerHi, which needs its capacity
	needed   string   // a counter of the batch under way that has no floor
	waiting  bool     // so has a HiLo tag of it
}

// GoString names a client in rapid's reports.
func (c *remote) GoString() string { return c.name }

// grant is a range that a client was granted.
type grant struct {
	tag    string
	r      jay.Range
	byWhom string
	next   int64 // the number that its client draws next
	claim  int64 // the highest number that its client will ever use
	taken  bool  // a return of it was accepted
}

// remote is a HiLo client somewhere else.
type remote struct {
	name string
	tag  string
	last jay.RangeRequest // what it sends if it is honest
	open []*grant         // oldest first
}

// local is a HiLo client in this process, of the generation of the open
// database.
type local struct {
	name   string
	client *jay.HiLoClient // nil for the database's own
}

// GoString names a world in rapid's reports.
func (w *world) GoString() string { return w.tag }

// GoString names a range in rapid's reports.
func (g *grant) GoString() string {
	return fmt.Sprintf("%s %d..%d of %s", g.tag, g.r.Low, g.r.High, g.byWhom)
}

func (m *model) newWorld(tag string, disk *storagetest.Disk) *world {
	w := &world{
		m: m, tag: tag, disk: disk,
		docs: make(map[string]string), loose: make(map[string]bool), maybe: make(map[string]bool),
		used: make(map[string]map[int64]bool), floor: make(map[string]int64), seeded: make(map[string]bool), released: make(map[string]bool),
		raised: make(map[string]int64), granted: make(map[string][]*grant),
	}
	m.worlds = append(m.worlds, w)
	return w
}

// abandon closes what a failure left open.
func (m *model) abandon() {
	for _, w := range m.worlds {
		if w.db != nil {
			_ = w.db.Close()
		}
	}
}

// open opens the database, under Synced and Relaxed durability by turns, and
// in any mode.
func (w *world) open(t *rapid.T) {
	opts := jay.Options{Now: w.m.clock.Now, MemTableBytes: 256 << 10, CacheBytes: 1 << 20}
	if w.relaxed = !w.relaxed; w.relaxed {
		opts.Durability = jay.Relaxed
	}
	if w.copied {
		opts.CopyTag = w.tag
	}
	opts.HiLoMode = rapid.SampledFrom([]jay.HiLoMode{jay.HiLo4, jay.HiLo4, jay.HiLo2, jay.HiLo2010}).Draw(t, "mode")
	opts.HiLoCapacity = rapid.SampledFrom([]int64{0, 1, 3, 7, 32}).Draw(t, "capacity")
	switch opts.HiLoMode {
	case jay.HiLo2:
		opts.HiLo2Growth = rapid.SampledFrom([]jay.Growth{jay.Growth3, jay.Growth2, jay.GrowthNone}).Draw(t, "growth")
	case jay.HiLo2010:
		opts.HiLoCapacity = max(opts.HiLoCapacity, 1)
		w.hi = true
	}
	w.mode, w.capacity = opts.HiLoMode, opts.HiLoCapacity
	w.own, w.locals = &local{name: "the database's own client"}, nil
	opts.FS = w.disk
	var err error
	if w.db, err = jay.Open("db", &opts); err != nil {
		t.Fatalf("%s: open: %v", w.tag, err)
	}
}

func (w *world) close(t *rapid.T) {
	jaytest.Verify(t, w.db)
	if err := w.db.Close(); err != nil {
		t.Fatalf("%s: close: %v", w.tag, err)
	}
	w.db = nil
}

// step does something to a database. What it learns from the answer, learn
// notes; if the power goes before the answer is there, learn is not called.
type step func(w *world, t *rapid.T) (learn func())

// run does a step to one of the databases.
func (m *model) run(t *rapid.T, s step) {
	w := m.pick(t)
	s(w, t)()
	w.endStep()
}

func (m *model) pick(t *rapid.T) *world { return rapid.SampledFrom(m.worlds).Draw(t, "world") }

// endStep ends a step: its outcome is known and, under Synced durability, safe.
func (w *world) endStep() {
	clear(w.maybe)
	if !w.relaxed {
		clear(w.loose)
	}
}

// body returns a body that no other write has.
func (w *world) body() []byte {
	w.m.serial++
	text := fmt.Sprintf(`{"n":%d}`, w.m.serial)
	w.maybe[text] = true
	return []byte(text)
}

// wrote notes a document with an ID that the user chose.
func (w *world) wrote(m jay.Metadata, body []byte) {
	w.docs[ids.Fold(m.ID)] = string(body)
	w.loose[ids.Fold(m.ID)] = true
}

// acknowledged notes the etag of a write.
func (w *world) acknowledged(t *rapid.T, m jay.Metadata) {
	if m.Etag <= w.etag {
		t.Fatalf("%s: %s has etag %d after %d", w.tag, m.ID, m.Etag, w.etag)
	}
	w.etag = m.Etag
}

// madeDocument notes a document whose ID Jay made.
func (w *world) madeDocument(t *rapid.T, m jay.Metadata, body []byte) {
	if old, found := w.docs[ids.Fold(m.ID)]; found {
		t.Fatalf("%s: the new document %s overwrote %s", w.tag, m.ID, old)
	}
	w.wrote(m, body)
}

// cannotGrant reports whether err is one of those that a range may be refused
// with: a client wrote a Max that leaves no numbers, or there is a ServerHi
// and the capacity is not set.
func (w *world) cannotGrant(err error) bool {
	return errors.Is(err, jay.ErrExhausted) && (w.full || w.huge && w.hi) ||
		errors.Is(err, jay.ErrNeedsCapacity) && w.hi && w.capacity == 0
}

// waits reports whether the HiLo IDs of a tag have no node tag, and no floor, so
// that they may be refused with ErrNeedsFloor.
func (w *world) waits(tag string) bool {
	return w.copied && w.mode != jay.HiLo4 && !w.released[tag]
}

// usedIdentity notes an identity's number.
func (w *world) usedIdentity(t *rapid.T, counter string, n int64) {
	if w.copied && !w.seeded[counter] {
		t.Fatalf("%s: identity %s gave %d without a floor", w.tag, counter, n)
	}
	if w.used[counter] == nil {
		w.used[counter] = make(map[int64]bool)
	}
	if w.used[counter][n] {
		t.Fatalf("%s: identity %s gave %d twice", w.tag, counter, n)
	}
	if n <= w.floor[counter] {
		t.Fatalf("%s: identity %s gave %d, the seed was %d", w.tag, counter, n, w.floor[counter])
	}
	w.used[counter][n] = true
}

// draw notes that a HiLo number was returned. own is the range it is
// from, nil for the database's own client.
func (w *world) draw(t *rapid.T, tag string, n int64, who string, own *grant) {
	key := number{tag, w.tag, n}
	if before, found := w.m.drawn[key]; found {
		t.Fatalf("%s: %s %d-%s was given to %s and to %s", w.tag, tag, n, w.tag, before, who)
	}
	w.m.drawn[key] = who
	for _, g := range w.granted[tag] {
		if g != own && g.r.Low <= n && n <= g.claim {
			t.Fatalf("%s: %s %d was given to %s out of %d..%d, which %s has", w.tag, tag, n, who, g.r.Low, g.claim, g.byWhom)
		}
	}
}

// drawLocal notes a number that a client of this process was given.
func (w *world) drawLocal(t *rapid.T, tag string, n int64, l *local) {
	if n <= w.raised[tag] {
		t.Fatalf("%s: %s got %d of %s, but %d are used elsewhere", w.tag, l.name, n, tag, w.raised[tag])
	}
	if _, tried := w.released[tag]; w.copied && w.mode != jay.HiLo4 && !tried {
		t.Fatalf("%s: %s got %d of %s without a node tag and without a floor", w.tag, l.name, n, tag)
	}
	w.draw(t, tag, n, l.name, nil)
}

// grants notes a range. It must hold no number of another range.
func (w *world) grants(t *rapid.T, g *grant) {
	if g.r.Low <= w.raised[g.tag] {
		t.Fatalf("%s: %s got %d..%d of %s, but %d are used elsewhere", w.tag, g.byWhom, g.r.Low, g.r.High, g.tag, w.raised[g.tag])
	}
	if g.r.Low < 1 || g.r.High < g.r.Low || g.r.NodeTag != w.tag {
		t.Fatalf("%s: impossible range %+v", w.tag, g.r)
	}
	for _, other := range w.granted[g.tag] {
		if max(g.r.Low, other.r.Low) <= min(g.r.High, other.claim) {
			t.Fatalf("%s: %s got %d..%d of %s, but %s has %d..%d", w.tag, g.byWhom, g.r.Low, g.r.High, g.tag, other.byWhom, other.r.Low, other.claim)
		}
		if g.r.High == other.r.High {
			t.Fatalf("%s: two ranges of %s end at %d", w.tag, g.tag, g.r.High)
		}
	}
	for key, who := range w.m.drawn {
		if key.tag == g.tag && key.node == w.tag && g.r.Low <= key.n && key.n <= g.r.High {
			t.Fatalf("%s: %s got %d..%d of %s, but %s has had %d", w.tag, g.byWhom, g.r.Low, g.r.High, g.tag, who, key.n)
		}
	}
	w.granted[g.tag] = append(w.granted[g.tag], g)
}

// check compares the documents with what must be there. After a crash, the
// outcome of what was not synced is found out here.
func (w *world) check(t *rapid.T, crashed bool) {
	there := make(map[string]string)
	for doc, err := range w.db.Documents(ctx, jay.Scan{}) {
		if err != nil {
			t.Fatal(err)
		}
		if folded := ids.Fold(doc.ID()); doc.Collection() != "@hilo" {
			there[folded] = string(doc.Body())
		}
	}
	both := maps.Clone(w.docs)
	maps.Copy(both, there)
	for _, id := range slices.Sorted(maps.Keys(both)) {
		got, want := there[id], w.docs[id]
		if got != want && (!crashed || !w.loose[id] && !w.maybe[got]) {
			t.Fatalf("%s: document %s is %q, want %q", w.tag, id, got, want)
		}
	}
	if crashed {
		w.docs = there
		clear(w.loose)
		clear(w.maybe)
	}
}

// moveClock moves the clock of all, forward or back.
func (m *model) moveClock(t *rapid.T) {
	jumps := []time.Duration{time.Second, 30 * time.Second, 45 * time.Second, 61 * time.Second, 9000 * time.Hour, -time.Second, -2 * time.Hour}
	m.clock.Advance(rapid.SampledFrom(jumps).Draw(t, "by"))
}

// crash takes the power from a machine while nothing goes on.
func (m *model) crash(t *rapid.T) {
	w := m.pick(t)
	w.fallTo(t, w.disk.Crash(percent(t), random(t)))
}

// cut takes the power from a machine in the middle of a step, at one of the
// syncs of its log, or right after it: no caller learns of the outcome.
func (m *model) cut(t *rapid.T) {
	w := m.pick(t)
	s := steps[rapid.SampledFrom(slices.Sorted(maps.Keys(steps))).Draw(t, "step")]
	crashed := crashAtSync(w.disk, rapid.IntRange(0, 3).Draw(t, "sync"), percent(t), random(t))
	s(w, t)
	w.fallTo(t, crashed())
}

// fallTo goes on with the database as a crash left it.
func (w *world) fallTo(t *rapid.T, crashed *storagetest.Disk) {
	w.close(t)
	w.disk = crashed
	w.open(t)
	w.check(t, true)
}

// copy makes a second database of a running one, under a tag of its own. From
// here on both live. The power may go while the copy is first opened.
func (m *model) copy(t *rapid.T) {
	if len(m.worlds) == 3 || rapid.IntRange(0, 3).Draw(t, "really") > 0 {
		t.Skip("worlds enough")
	}
	w := m.pick(t)
	disk := w.disk.Crash(100, random(t))
	c := m.newWorld(string(rune('A'+len(m.worlds))), disk)
	c.copied, c.relaxed, c.etag, c.full, c.huge, c.hi = true, w.relaxed, w.etag, w.full, w.huge, w.hi
	c.docs, c.loose, c.raised = maps.Clone(w.docs), maps.Clone(w.loose), maps.Clone(w.raised)
	for counter, numbers := range w.used {
		c.used[counter] = maps.Clone(numbers)
	}
	for _, tag := range slices.Sorted(maps.Keys(w.granted)) {
		c.void = append(c.void, w.granted[tag]...)
	}

	if rapid.Bool().Draw(t, "cut") {
		crashed := crashAtSync(disk, rapid.IntRange(0, 4).Draw(t, "sync"), percent(t), random(t))
		c.open(t)
		c.close(t)
		c.disk = crashed()
	}
	c.open(t)
	c.check(t, true)
}

func percent(t *rapid.T) int { return rapid.SampledFrom([]int{0, 50, 100}).Draw(t, "percent kept") }

func random(t *rapid.T) *rand.Rand { return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)) }

// crashAtSync arms a disk to lose its power at the sync after this many. The
// function it returns disarms it and returns what was left at that sync or, if
// there was none, what is left now.
func crashAtSync(disk *storagetest.Disk, after, percent int, random *rand.Rand) func() *storagetest.Disk {
	var mu sync.Mutex
	var crashed *storagetest.Disk
	disk.OnSync(func() {
		mu.Lock()
		defer mu.Unlock()
		if after--; after == -1 {
			crashed = disk.Crash(percent, random)
		}
	})
	return func() *storagetest.Disk {
		disk.OnSync(func() {})
		mu.Lock()
		defer mu.Unlock()
		if crashed == nil {
			crashed = disk.Crash(percent, random)
		}
		return crashed
	}
}

// serverPrefixes are those that users of the older generations write.
var serverPrefixes = []string{"", "North/", "4,"}

// hiloNumber returns the number of a HiLo ID of the generation that is open.
func (w *world) hiloNumber(t *rapid.T, id, prefix string) int64 {
	if w.mode == jay.HiLo4 {
		return numberOf(t, id, prefix, "-"+w.tag)
	}
	for _, server := range serverPrefixes[1:] {
		if w.mode == jay.HiLo2 && strings.HasPrefix(id, prefix+server) {
			prefix += server
		}
	}
	return numberOf(t, id, prefix, "")
}

// numberOf returns the HiLo number of an ID that must be prefix, number and
// node tag.
func numberOf(t *rapid.T, id, prefix, node string) int64 {
	text, found := strings.CutPrefix(id, prefix)
	text, tagged := strings.CutSuffix(text, node)
	n, err := strconv.ParseInt(text, 10, 64)
	if !found || !tagged || err != nil {
		t.Fatalf("%s is not %sN%s", id, prefix, node)
	}
	return n
}
