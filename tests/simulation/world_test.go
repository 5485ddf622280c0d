package simulation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/storage/memory"
	"github.com/jaydb/jay/storage/storagetest"
)

var ctx = context.Background()

// settings are what a run draws of its seed before the first step: which features meet in it.
type settings struct {
	world     string // what the run has: one of worlds
	relaxed   bool
	mixed     bool // the next Open may be with the other durability
	revisions bool
	cache     bool
	exact     bool  // Options.ExactExpiry
	small     bool  // bounds of the engine that a run of 400 steps can pass
	memory    int64 // MemTableBytes
	mode      jay.HiLoMode
	weights   []int // by verb; 0 for those that this run leaves out
	faults    []int // by fault
}

// What a run has.
const (
	machine = "machine" // one database on the disk of a machine
	shared  = "shared"  // two databases on a store that is in memory
	serving = "server"  // a machine whose program has a server, with clients
	members = "cluster" // three machines with a database each, and a coordinator
)

// worlds are drawn with these odds.
var worlds = []string{machine, machine, machine, machine, shared, shared, serving, serving, serving, members, members}

// draw returns the settings of a seed.
func draw(seed uint64) settings {
	r := rand.New(rand.NewPCG(seed, 1))
	s := settings{
		relaxed: r.IntN(3) == 0, revisions: r.IntN(3) == 0, cache: r.IntN(2) == 0, exact: r.IntN(3) == 0,
		memory: []int64{64 << 10, 256 << 10, 4 << 20}[r.IntN(3)],
		mode:   []jay.HiLoMode{jay.HiLo4, jay.HiLo4, jay.HiLo2}[r.IntN(3)],
		small:  r.IntN(2) == 0,
		mixed:  r.IntN(4) == 0,
	}
	switch s.world = worlds[r.IntN(len(worlds))]; s.world {
	case shared:
		s.relaxed, s.cache, s.mixed = false, false, false
	case members:
		s.mixed = false
		s.mode = jay.HiLo4 // the IDs of the older generation have no tag of the node
	}
	for _, v := range verbs {
		weight := v.weight
		switch r.IntN(5) {
		case 0:
			weight = 0
		case 1:
			weight *= 5
		}
		if !v.in(s.world) {
			weight = 0
		}
		s.weights = append(s.weights, weight)
	}
	often := []int{0, 1, 1, 2, 5}[r.IntN(5)] // one run of five has no faults
	for i, f := range faults {
		weight := f.weight
		if i > 0 {
			weight *= often
		}
		if i > 0 && (r.IntN(4) == 0 || !f.in(s.world)) {
			weight = 0
		}
		s.faults = append(s.faults, weight)
	}
	s.weights[0] = max(s.weights[0], 1)
	return s
}

func (s settings) String() string {
	var left []string
	for i, v := range verbs {
		if s.weights[i] == 0 && v.in(s.world) {
			left = append(left, v.name)
		}
	}
	return s.world + fmt.Sprintf(", relaxed %v, mixed %v, revisions %v, cache %v, exact expiry %v, small bounds %v, tables of %d KiB, HiLo mode %d, without %s",
		s.relaxed, s.mixed, s.revisions, s.cache, s.exact, s.small, s.memory>>10, s.mode, strings.Join(left, ", "))
}

// world is one machine with a database, over all its crashes. It runs in a bubble of synctest, in which time
// passes only when nothing else is left to do.
type world struct {
	settings settings
	model    *model
	disk     *storagetest.Disk
	db       *jay.DB              // the one of the step
	store    *storagetest.Commits // in which the databases are, or nil
	dbs      []*jay.DB            // of the store
	at       int                  // the place of db among them
	clock    *atomic.Int64        // how far the clock is from the bubble's, in nanoseconds
	ids      *rand.ChaCha8        // of Options.Rand
	log      io.Writer

	rand      *rand.Rand // of the step under way
	cut       *storagetest.PowerCut
	begun     *entry // the step under way, if its outcome is not known
	failed    bool   // the disk was made to fail: errors are to be expected
	unknown   bool   // a call of this step had an unknown outcome
	unready   bool   // an index may be there or not, as its creation was cut off
	again     func() // makes the call again that was cut off so
	feed      string // token of the feed's reader
	figures   *figures
	steps     int // that were begun
	verb      string
	copies    int
	renaming  *[2]string // a rename of a collection that was cut off, or nil
	backup    *kept
	passed    bool        // a newer backup has been begun, which may count as made
	front     *front      // or nil
	agreement *agreement  // or nil
	retry     func()      // makes a request of the step again, after its fault
	requests  int         // serial of the newest request ID
	looking   *looking    // or nil
	follower  *follower   // or nil
	reader    *reader     // or nil
	live      *liveReader // or nil
}

// failure is what the simulation has found.
type failure struct{ text string }

// fail ends the run.
func (w *world) fail(format string, args ...any) { panic(failure{fmt.Sprintf(format, args...)}) }

// must ends the run if err is not nil.
func (w *world) must(err error) {
	if err != nil {
		w.fail("%s: %v", w.verb, err)
	}
}

func (w *world) say(format string, args ...any) { fmt.Fprintf(w.log, format+"\n", args...) }

// rest returns when nothing goes on in the background.
func (w *world) rest() { synctest.Wait() }

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.clock.Load())) }

// intn returns a number of the step's own.
func (w *world) intn(n int) int { return w.rand.IntN(n) }

// run makes the steps, and returns what it has found.
func (w *world) run(steps []step) (err error) {
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(failure)
			if !ok {
				f = failure{fmt.Sprintf("panic: %v\n%s", p, debug.Stack())}
			}
			err = errors.New(f.text)
			w.say("FAILS: %s", f.text)
			w.disk.Heal()
			w.abandon()
			if w.front != nil && w.front.server != nil {
				_ = w.front.server.Close()
			}
			all := append(w.dbs, w.db)
			if w.agreement != nil {
				w.agreement.memory.RestoreMajority()
				for i := range w.agreement.members {
					all = append(all, w.agreement.members[i].db)
				}
			}
			for _, db := range all {
				if db != nil {
					_ = db.Close()
				}
			}
		}
	}()
	w.open()
	if w.agreement != nil {
		w.runMembers(steps)
		return nil
	}
	for i, s := range steps {
		w.steps++
		w.one(i, s)
	}
	w.verb = "the end"
	w.model.sync()
	if w.settings.world == shared {
		w.rand = rand.New(rand.NewPCG(0, 2))
		w.endBoth()
		return nil
	}
	w.reopen(w.disk, false)
	if w.follower != nil {
		w.catchUp()
	}
	w.dropStandby()
	w.leave()
	w.must(w.db.Close())
	w.db = nil
	return nil
}

// abandon ends what reads beside the database, after a failure.
func (w *world) abandon() {
	if w.reader != nil && w.reader.leave != nil {
		w.reader.leave()
	}
	if w.live != nil && w.live.leave != nil {
		w.live.leave()
	}
	if l := w.looking; l != nil {
		_ = errors.Join(l.db.Close(), l.listener.Close())
	}
	if f := w.follower; f != nil {
		f.link.hangUp()
		if f.standby != nil {
			_ = f.standby.Close()
		}
	}
}

// runMembers makes the steps, each at one of the members.
func (w *world) runMembers(steps []step) {
	for i, s := range steps {
		w.steps++
		w.as(int(s.seed%3), func() { w.one(i, s) })
	}
	w.verb, w.rand = "the end", rand.New(rand.NewPCG(0, 2))
	w.endMembers()
}

// one makes one step, with the fault that it meets.
func (w *world) one(i int, s step) {
	w.rand = rand.New(rand.NewPCG(s.seed, 2))
	v, f := verbs[verbNamed(s.verb)], faults[faultNamed(s.fault)]
	w.verb, w.begun, w.cut, w.again, w.retry, w.unknown = v.name, nil, nil, nil, nil, false
	fmt.Fprintf(w.log, "%d %s: ", i, s)
	w.figures.meet(w.settings.world, v.name, f.name)
	if w.settings.world == shared {
		w.turn(w.intn(2))
		fmt.Fprintf(w.log, "database %d: ", w.at+1)
	} else if w.agreement != nil {
		fmt.Fprintf(w.log, "member %s: ", w.tag())
	}
	f.before(w)
	begun := time.Now()
	v.do(w)
	if took := time.Since(begun); took > time.Minute && !v.waits && (w.agreement == nil || f.name == "") {
		w.fail("%s took %v, with nothing to wait for", v.name, took)
	}
	w.rest() // what the step has begun in the background lies on the disk, or does not
	f.after(w)
	if w.retry != nil {
		fmt.Fprint(w.log, "again: ")
		w.cut, w.failed = nil, false
		w.retry()
	}
	w.rest()
	w.noteKnown()
	fmt.Fprintln(w.log)
}

// call makes one call that changes what e says. On success learn notes what it returned, before the change
// is acknowledged; it may change e. want is the error that must come, nil for none.
func (w *world) call(e *entry, want error, fn func() (learn func(), err error)) bool {
	learn, err := fn()
	switch {
	case w.cut != nil && w.cut.Happened():
		fmt.Fprint(w.log, "in doubt. ")
		w.begun = e // it happened in a world that is gone
		return false
	case w.front != nil && w.front.lost:
		fmt.Fprint(w.log, "no answer. ")
		w.begun = e
		return false
	case (w.failed || w.agreement != nil && w.agreement.away) && err != nil && (want == nil || !errors.Is(err, want)):
		if w.agreement != nil && errors.Is(err, jay.ErrNoMajority) {
			fmt.Fprint(w.log, "no majority. ")
			return false
		}
		if !errors.Is(err, jay.ErrUnknownOutcome) && !errors.Is(err, jay.ErrFailed) && (w.store == nil || !errors.Is(err, jay.ErrUnavailable) && !errors.Is(err, jay.ErrConflict)) && !errors.Is(err, jay.ErrDiskFull) &&
			!errors.Is(err, storagetest.ErrInjected) && !errors.Is(err, storagetest.ErrFull) {
			w.fail("%s on a disk that fails: %v", w.verb, err)
		}
		fmt.Fprintf(w.log, "%s. ", w.failing())
		w.unknown = w.unknown || w.failed && errors.Is(err, jay.ErrUnknownOutcome)
		if errors.Is(err, jay.ErrUnknownOutcome) || e.each {
			w.begun = e
		}
		return false
	case want != nil:
		if !errors.Is(err, want) {
			w.fail("%s: %v, want %v", w.verb, err, want)
		}
		fmt.Fprintf(w.log, "refused: %v. ", want)
		return false
	case err != nil:
		w.fail("%s: %v", w.verb, err)
	}
	if learn != nil {
		learn()
	}
	w.model.acknowledge(*e, !w.settings.relaxed)
	return true
}

// failing says what fails.
func (w *world) failing() string {
	if w.store != nil {
		return "the store fails"
	}
	return "the disk fails"
}

// write is call for one document.
func (w *world) write(key string, to *doc, want error, fn func() (jay.Metadata, error)) bool {
	e := &entry{changes: []change{{key, to}}}
	return w.call(e, want, func() (func(), error) {
		m, err := fn()
		return func() { e.changes[0] = w.learn(e.changes[0], m) }, err
	})
}

// requestID returns the option of a call that is made once under a request ID, which some calls have; nil for the others.
func (w *world) requestID() []jay.RequestOption {
	if w.intn(6) > 0 {
		return nil
	}
	w.requests++
	return []jay.RequestOption{jay.RequestID(fmt.Sprint("call ", w.requests))}
}

// once makes a write that may have a request ID. If its outcome is not known it is made again after the fault, and some are made again that
// have gone well: they are carried out once, and answer as before.
func (w *world) once(r []jay.RequestOption, key string, to *doc, want error, fn func() (jay.Metadata, error)) {
	var first *jay.Metadata
	send := func() (jay.Metadata, error) {
		m, err := fn()
		if err == nil && first != nil && (m.ID != first.ID || m.ChangeVector != first.ChangeVector) {
			w.fail("a call that is made again has made %s %s, and before %s %s", m.ID, m.ChangeVector, first.ID, first.ChangeVector)
		}
		return m, err
	}
	relaxed := w.settings.relaxed
	e := &entry{changes: []change{{key, to}}}
	done := w.call(e, want, func() (func(), error) {
		m, err := send()
		return func() {
			e.changes[0] = w.learn(e.changes[0], m)
			first = &m
		}, err
	})
	switch {
	case len(r) == 0 || want != nil:
	case done && w.intn(2) == 0 && w.cut == nil && !w.failed && (w.agreement == nil || !w.agreement.away):
		fmt.Fprint(w.log, "again. ")
		w.must(second(send()))
	case !done && !relaxed:
		w.retry = func() {
			w.call(e, nil, func() (func(), error) {
				m, err := send()
				return func() { e.changes[0] = w.learn(e.changes[0], m) }, err
			})
		}
	}
}

// learn fills in what a write has returned: the ID that Jay made, and the change vector.
func (w *world) learn(c change, m jay.Metadata) change {
	to := *c.to
	to.version = m.ChangeVector
	if !strings.HasPrefix(c.key, made) {
		return change{c.key, &to}
	}
	to.id = m.ID
	key := ids.Fold(m.ID)
	source := key
	if w.settings.mode == jay.HiLo2 { // HiLo and identities count beside each other, to the same IDs
		source = c.to.request + " " + key
	}
	if there := w.there(key); there != nil && there.n == c.to.n { // of a call that was made again
		return change{key, there}
	}
	if w.model.ever[source] {
		w.fail("%s: the ID %s was made before", w.verb, m.ID)
	}
	if there := w.there(key); there != nil {
		w.fail("%s: the ID %s overwrites %v", w.verb, m.ID, there)
	}
	if before := w.model.state[key]; before != nil {
		to.revisions = append(to.revisions, before.revisions...)
	}
	w.model.ever[source] = true
	w.above(c.to.request, m.ID)
	fmt.Fprintf(w.log, "%s. ", m.ID)
	return change{key, &to}
}

const dir = "db"

// options are those of the database.
func (w *world) options() *jay.Options {
	o := w.copyOptions()
	if w.agreement != nil {
		o.Cluster, o.NodeTag, o.ClusterPeriod = w.agreement.client, w.tag(), 100*time.Millisecond
	}
	if w.store != nil {
		o.FS, o.Engine, o.MemTableBytes, o.CacheBytes = nil, w.store, 0, 0
	}
	return o
}

// copyOptions are those of a database of its own on the disk.
func (w *world) copyOptions() *jay.Options {
	clock := w.clock
	now := func() time.Time { return time.Now().Add(time.Duration(clock.Load())) }
	o := &jay.Options{
		FS: w.disk, Now: now, Rand: w.ids, MemTableBytes: w.settings.memory, CacheBytes: 1 << 20, HiLoMode: w.settings.mode,
		ExactExpiry: w.settings.exact, DocumentCacheBytes: -1, Schemas: atMost{},
	}
	if w.settings.cache {
		o.DocumentCacheBytes = 1 << 20
	}
	if w.settings.relaxed {
		o.Durability = jay.Relaxed
	}
	return o
}

// open opens the database for the first time.
func (w *world) open() {
	w.verb = "open"
	switch w.settings.world {
	case shared:
		w.store = &storagetest.Commits{Driver: &memory.Driver{Shared: true}}
		w.openBoth()
		w.prepare()
	case members:
		w.openMembers()
	default:
		var err error
		w.db, err = jay.Open(dir, w.options())
		w.must(err)
		if w.settings.world == serving {
			w.front = new(front)
			w.serve()
		}
		w.prepare()
	}
	w.say("opened: %v", w.settings)
}

// prepare configures a database that was opened for the first time.
func (w *world) prepare() {
	if w.settings.revisions {
		w.must(w.db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: new(jay.RevisionRule)}))
	}
	w.must(w.db.Flush(ctx))
}

// reopen goes on with a disk as a machine finds it. cut cuts the power once more, while the database is being
// opened.
func (w *world) reopen(found *storagetest.Disk, cut bool) {
	w.disk.Heal()
	w.disconnectStandby()
	w.leave()
	if found != w.disk {
		w.figures.crashes++
		w.disconnect()
	}
	err := w.db.Close()
	w.connect()
	if err != nil && !w.failed && found == w.disk {
		w.fail("close: %v", err)
	}
	if w.failed || w.settings.relaxed && found != w.disk {
		w.model.worked.forget()
	}
	w.disk, w.failed = found, false
	if cut {
		at := w.cutPower(w.intn(3))
		db, err := jay.Open(dir, w.options())
		if err != nil && !at.Happened() {
			w.fail("open: %v", err)
		}
		w.rest()
		again := at.Disk()
		if again == nil {
			again = w.disk.Crash(w.intn(101), w.pieces())
		}
		w.disconnect()
		if db != nil {
			_ = db.Close()
		}
		w.connect()
		w.figures.crashes++
		w.disk = again
		fmt.Fprint(w.log, "the power goes again, in recovery. ")
	}
	if w.settings.mixed && w.rand != nil && w.intn(3) == 0 {
		w.settings.relaxed = !w.settings.relaxed
	}
	if w.db, err = jay.Open(dir, w.options()); err != nil {
		w.db = nil
		w.fail("open: %v", err)
	}
	if w.front != nil {
		w.serve()
	}
	w.rest()
	w.examine()
	if w.agreement != nil && w.agreement.decide != nil {
		w.agreement.decide()
		w.agreement.decide = nil
	}
	w.resumeReader()
	w.openLive()
	if w.follower != nil {
		w.noteKnown()
		w.checkStandby() // it has nothing that its source has lost
		if w.intn(4) > 0 {
			w.connectStandby()
		}
	}
}

// leave ends what reads beside the database, and the server, if there is one.
func (w *world) leave() {
	w.leaveReader()
	w.leaveLive()
	w.ownerEnds()
	if w.front != nil && w.front.server != nil {
		w.must(w.front.server.Close())
		w.front.server = nil
	}
}

// examine reads everything after an Open, and compares it with what must be there.
func (w *world) examine() {
	w.sweep()
	read := w.read(w.db)
	w.expire(w.model.state)
	w.expire(w.model.safe)
	for _, e := range w.model.journal {
		w.expireChanges(e)
	}
	if w.begun != nil {
		w.expireChanges(*w.begun)
	}
	if err := w.model.recover(read, w.begun); err != nil {
		w.fail("%v", err)
	}
	w.begun = nil
	w.finishRename()
	w.checkIndexes()
	w.checkRule()
	w.verify(w.db)
}

// finishRename goes on with a rename that was cut off after it had moved all documents. It may have been
// over, too: then there is nothing to go on with.
func (w *world) finishRename() {
	if w.renaming == nil || len(w.model.documents(w.renaming[0])) > 0 {
		return
	}
	_, err := w.db.RenameCollection(ctx, w.renaming[0], w.renaming[1])
	if err != nil && !errors.Is(err, jay.ErrNotFound) && !errors.Is(err, jay.ErrUsage) {
		w.fail("a rename that has moved all documents goes on: %v", err)
	}
	w.renaming, w.unready = nil, true
}

// sweep deletes what has expired, so that time alone decides what is there.
func (w *world) sweep() {
	_, err := w.db.Sweep(ctx)
	w.must(err)
}

// expire removes what has expired from a state.
func (w *world) expire(s state) {
	for key, d := range s {
		if to, gone := w.expired(d); gone {
			s.set(change{key, to})
		}
	}
}

func (w *world) expireChanges(e entry) {
	for i, c := range e.changes {
		if to, gone := w.expired(c.to); gone {
			e.changes[i].to = to
		}
	}
}

// expired reports whether a document has expired, and returns what is left of it.
func (w *world) expired(d *doc) (*doc, bool) {
	if d == nil || d.gone || d.expires.IsZero() || d.expires.After(w.now()) {
		return nil, false
	}
	return w.deletion(d), true
}

// deletion returns what is left of a document that is deleted.
func (w *world) deletion(d *doc) *doc {
	if d == nil || !w.settings.revisions {
		return nil
	}
	return &doc{id: d.id, gone: true, n: d.n, revisions: append([]int{deleted}, d.revisions...)}
}

// read returns all that a database holds.
func (w *world) read(db *jay.DB) state {
	read := make(state)
	for d, err := range db.Documents(ctx, jay.Scan{}) {
		w.must(err)
		if d.Collection() != "@hilo" {
			read[ids.Fold(d.ID())] = w.decode(db, d)
		}
	}
	if w.settings.revisions {
		for r, err := range db.Revisions().Deleted(ctx, "") {
			w.must(err)
			key := ids.Fold(r.ID())
			if read[key] == nil && r.Collection() != "@hilo" {
				read[key] = &doc{id: r.ID(), gone: true, revisions: w.revisions(db, r.ID())}
			}
		}
	}
	if w.agreement != nil { // they agree on the values
		return read
	}
	after := ""
	for {
		values, err := db.CompareExchange().List(ctx, "", after, 100)
		w.must(err)
		if len(values) == 0 {
			return read
		}
		for _, x := range values {
			d := &doc{id: x.Key, index: x.Index}
			w.must(x.Decode(&d.n))
			read[exchange+ids.Fold(x.Key)] = d
			after = x.Key
		}
	}
}

// decode returns a document that was read as the model has it.
func (w *world) decode(db *jay.DB, d *jay.Document) *doc {
	to := decoded(w, d.ID(), d.Collection(), d.Body())
	to.version = d.ChangeVector()
	var custom struct {
		Expires time.Time `json:"@expires"`
	}
	m := d.Metadata()
	if len(m.Custom) > 0 {
		w.must(json.Unmarshal(m.Custom, &custom))
	}
	to.expires = custom.Expires
	for _, a := range m.Attachments {
		if to.files == nil {
			to.files = make(map[string]int)
		}
		to.files[a.Name] = w.contentOf(db, d.ID(), a.Name)
	}
	if w.settings.revisions {
		to.revisions = w.revisions(db, d.ID())
	}
	return to
}

// decoded returns a document of a body.
func decoded(w *world, id, collection string, body json.RawMessage) *doc {
	raw := struct {
		N, A, U *int
		T, W    string
	}{}
	w.must(json.Unmarshal(body, &raw))
	to := &doc{id: id, collection: collection, a: -1, u: -1, text: raw.T}
	to.when = slices.IndexFunc(whens, func(one when) bool { return one.text == raw.W })
	if raw.N != nil {
		to.n = *raw.N
	}
	if raw.A != nil {
		to.a = *raw.A
	}
	if raw.U != nil {
		to.u = *raw.U
	}
	return to
}

// epoch is before all that happens: clocks are set back from 2000 on, by no more than some hundred hours in a run.
var epoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)

// revisions returns the serials of the versions of a document, newest first.
func (w *world) revisions(db *jay.DB, id string) []int {
	var all []int
	for r, err := range db.Revisions().List(ctx, id, jay.RevisionPage{}) {
		w.must(err)
		if r.LastModified().Before(epoch) {
			w.fail("a revision of %s was made at %v", id, r.LastModified())
		}
		if r.Deletion() {
			all = append(all, deleted)
			continue
		}
		all = append(all, decoded(w, id, "", r.Body()).n)
	}
	return all
}

// content returns the content of an attachment with this serial.
func content(n int) string { return strings.Repeat(fmt.Sprintf("content %d\n", n), 1+n%400) }

// contentOf reads an attachment, and returns the serial of its content.
func (w *world) contentOf(db *jay.DB, id, name string) int {
	r, err := db.Attachments(id).Get(ctx, name)
	w.must(err)
	all, err := io.ReadAll(r)
	w.must(errors.Join(err, r.Close()))
	first, _, _ := strings.Cut(string(all), "\n")
	n, err := strconv.Atoi(strings.TrimPrefix(first, "content "))
	if err != nil || string(all) != content(n) {
		w.fail("attachment %s of %s is %.40q …, of %d bytes", name, id, all, len(all))
	}
	return n
}

// checkIndexes compares the indexes of a database that was opened with those that must be there.
func (w *world) checkIndexes() {
	for _, collection := range collections {
		have := make(map[string]bool)
		all, err := w.db.Indexes(ctx, collection)
		w.must(err)
		for _, ix := range all {
			switch {
			case strings.HasPrefix(ix.Name, partPrefix):
			case ix.State == jay.IndexReady:
				have[ix.Name] = true
			case ix.State == jay.IndexBuilding && !w.unready:
				w.fail("index %s of %s is %s", ix.Name, collection, ix.State)
			}
		}
		for name := range declarations {
			if want := w.model.indexes[collection][name]; have[name] != want && !w.unready {
				w.fail("index %s of %s: it is there: %v, want %v", name, collection, have[name], want)
			}
		}
		w.model.indexes[collection] = have
	}
	w.unready = false
}

// verify fails for anything that Verify finds.
func (w *world) verify(db *jay.DB) {
	report, err := db.Verify(ctx, nil)
	w.must(err)
	if report.Found > 0 {
		w.fail("Verify: %v", report.Damages[:min(len(report.Damages), 5)])
	}
}

// pick returns one of the keys, or "".
func (w *world) pick(keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	return keys[w.intn(len(keys))]
}
