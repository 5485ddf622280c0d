package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster/clustertest"
	"github.com/jaydb/jay/storage/storagetest"
)

// agreement is a coordinator in memory, the members that agree through it, and what is known of the values
// that they agree on.
type agreement struct {
	memory  *clustertest.Memory
	members []member
	client  *clustertest.Client // of the member of the step
	values  map[string]*agreed
	serial  int
	power   *storagetest.PowerCut // that of the machine of the step
	decide  func()                // after the next Open: a commit in doubt has happened in all its parts or in none
	away    bool                  // the member of the step cannot reach a majority, or its commits meet faults
}

// member is what a member has of its own, while it is not the one of the step.
type member struct {
	model    *model
	disk     *storagetest.Disk
	db       *jay.DB
	client   *clustertest.Client
	clock    *atomic.Int64
	feed     string
	backup   *kept
	renaming *[2]string
	passed   bool
	unready  bool
}

// agreed is a compare-exchange value of the cluster: the one that is there, and those of calls with unknown
// outcomes, which may come to be there at any time as long as the value has the index that they were compared with.
type agreed struct {
	n     int // 0 for none
	index uint64
	maybe []int
}

// swap exchanges the parts of a member with those of the world.
func (m *member) swap(w *world) {
	m.model, w.model = w.model, m.model
	m.disk, w.disk = w.disk, m.disk
	m.db, w.db = w.db, m.db
	m.client, w.agreement.client = w.agreement.client, m.client
	m.clock, w.clock = w.clock, m.clock
	m.feed, w.feed = w.feed, m.feed
	m.backup, w.backup = w.backup, m.backup
	m.renaming, w.renaming = w.renaming, m.renaming
	m.passed, w.passed = w.passed, m.passed
	m.unready, w.unready = w.unready, m.unready
}

// as makes a member that of the step, while fn runs.
func (w *world) as(at int, fn func()) {
	w.at = at
	w.agreement.members[at].swap(w)
	defer w.agreement.members[at].swap(w)
	fn()
}

// openMembers opens the members of a cluster. They know the same IDs that were made.
func (w *world) openMembers() {
	w.agreement = &agreement{memory: clustertest.NewMemory(), values: make(map[string]*agreed)}
	first := w.model
	for i := range 3 {
		m := member{model: newModel(), disk: storagetest.NewDisk().Repeatable(), clock: new(atomic.Int64)}
		m.model.ever, m.model.used = first.ever, first.used
		w.agreement.members = append(w.agreement.members, m)
		w.as(i, func() {
			w.connect()
			var err error
			w.db, err = jay.Open(dir, w.options())
			w.must(err)
			w.prepare()
		})
	}
}

// endMembers opens each member once more, and compares what it has.
func (w *world) endMembers() {
	for i := range w.agreement.members {
		w.as(i, func() {
			w.model.sync()
			w.reopen(w.disk, false)
			for _, name := range slices.Sorted(maps.Keys(w.agreement.values)) {
				w.readAgreed(name)
			}
			w.must(w.db.Close())
			w.db = nil
		})
	}
}

// tag is the node tag of the member of the step.
func (w *world) tag() string { return string(rune('A' + w.at)) }

// connect gives the member of the step a connection of its own. It breaks when the power goes: what the process would
// have done after that reaches nobody.
func (w *world) connect() {
	a := w.agreement
	if a == nil {
		return
	}
	client := a.memory.Connect()
	client.Before(func(clustertest.Call) {
		if a.power != nil && a.power.Happened() {
			client.Cut()
		}
	})
	a.client, a.power = client, nil
}

// disconnect breaks the connection of a member whose machine or process has ended.
func (w *world) disconnect() {
	if w.agreement != nil {
		w.agreement.client.Cut()
	}
}

// cutPower is that of the disk. It cuts the connection to the coordinator, too.
func (w *world) cutPower(syncs int) *storagetest.PowerCut {
	cut := w.disk.CutPower(syncs, w.intn(101), w.pieces())
	if w.reader != nil {
		w.reader.mu.Lock()
		w.reader.power = cut
		w.reader.mu.Unlock()
	}
	if w.live != nil {
		w.live.mu.Lock()
		w.live.power = cut
		w.live.mu.Unlock()
	}
	if w.follower != nil {
		w.follower.link.mu.Lock()
		w.follower.link.power = cut
		w.follower.link.mu.Unlock()
	}
	if w.agreement != nil {
		w.agreement.power = cut
	}
	return cut
}

// clusterFaults are those of a coordinator's network.
var clusterFaults = []fault{
	{"majority is lost", 8, func(w *world) {
		w.agreement.away = true
		w.agreement.memory.LoseMajority()
	}, afterAway},
	{"member is cut off", 8, func(w *world) {
		w.agreement.away = true
		w.agreement.client.Cut()
	}, afterAway},
	{"majority comes back", 8, func(w *world) {
		w.agreement.memory.LoseMajority()
		time.AfterFunc(time.Second, w.agreement.memory.RestoreMajority)
	}, func(w *world) { time.Sleep(time.Second) }},
	{"commits happen, unheard", 10, failAgreement(clustertest.Happens), afterAway},
	{"commits never happen", 8, failAgreement(clustertest.Never), afterAway},
	{"commits happen later", 8, failAgreement(clustertest.Withhold), afterAway},
}

// failAgreement makes the next commits of the member meet a fault.
func failAgreement(f clustertest.Fault) func(w *world) {
	return func(w *world) {
		w.agreement.away = true
		if w.intn(2) == 0 {
			w.agreement.client.Fail(clustertest.Passes)
		}
		w.agreement.client.Fail(slices.Repeat([]clustertest.Fault{f}, 1+w.intn(3))...)
	}
}

// afterAway ends a fault of the coordinator. Commits that were withheld take effect now. Some members are opened again.
func afterAway(w *world) {
	w.agreement.memory.RestoreMajority()
	w.agreement.client.Mend()
	w.agreement.client.Deliver()
	w.agreement.away = false
	if w.intn(3) == 0 || w.agreement.decide != nil {
		fmt.Fprint(w.log, "restarted. ")
		w.model.sync()
		w.reopen(w.disk, false)
		return
	}
	w.must(w.db.Flush(ctx)) // what is read counts as safe
	w.examine()
}

// clustered are the verbs of members.
var clustered = []verb{
	{name: "agree on a value", weight: 30, do: agree},
	{name: "read a value", weight: 15, do: func(w *world) { w.readAgreed(w.valueName()) }},
	{name: "identities of members", weight: 25, do: identityOfMembers},
	{name: "cluster-wide session", weight: 25, do: sessionOfMembers},
}

func (w *world) valueName() string { return fmt.Sprintf("lock/%d", w.intn(6)) }

// limited returns a context for a call that needs a majority.
func (w *world) limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 20*time.Second)
}

// agree puts or deletes a value under the index that is known, or another one.
func agree(w *world) {
	name := w.valueName()
	v := w.agreement.values[name]
	if v == nil {
		v = new(agreed)
		w.agreement.values[name] = v
	}
	w.agreement.serial++
	n, index := w.agreement.serial, v.index
	right := w.intn(4) > 0
	if !right {
		index++
	}
	if v.n != 0 && w.intn(4) == 0 {
		n = 0
	}
	fmt.Fprintf(w.log, "%s = %d under %d. ", name, n, index)
	ctx, cancel := w.limited()
	defer cancel()
	var next uint64
	var err error
	if n == 0 {
		err = w.db.CompareExchange().Delete(ctx, name, index)
	} else {
		next, err = w.db.CompareExchange().Put(ctx, name, n, index)
	}
	lost := w.cut != nil && w.cut.Happened() || w.failed
	switch {
	case err == nil && !right:
		w.fail("%s = %d under index %d, which it does not have: %v", name, n, index, v)
	case err == nil:
		if n != 0 && next <= v.index {
			w.fail("%s has index %d after %d", name, next, v.index)
		}
		*v = agreed{n: n, index: next}
	case errors.Is(err, jay.ErrConflict):
		if right && len(v.maybe) == 0 {
			w.fail("%s = %d under index %d: %v, want %v", name, n, index, err, v)
		}
		fmt.Fprint(w.log, "refused. ")
	case errors.Is(err, jay.ErrUnknownOutcome) || lost:
		fmt.Fprint(w.log, "in doubt. ")
		if right {
			v.maybe = append(v.maybe, n)
		}
	case errors.Is(err, jay.ErrNoMajority) && w.agreement.away:
		fmt.Fprint(w.log, "no majority. ")
	default:
		w.fail("%s = %d under index %d: %v", name, n, index, err)
	}
}

// readAgreed reads a value, which must be the newest one.
func (w *world) readAgreed(name string) {
	v := w.agreement.values[name]
	if v == nil {
		return
	}
	ctx, cancel := w.limited()
	defer cancel()
	read, err := w.db.CompareExchange().Get(ctx, name)
	n := 0
	switch {
	case err == nil:
		w.must(read.Decode(&n))
	case errors.Is(err, jay.ErrNotFound):
	case w.agreement.away && (errors.Is(err, jay.ErrNoMajority) || errors.Is(err, jay.ErrUnknownOutcome)), w.failed:
		fmt.Fprint(w.log, "no majority. ")
		return
	default:
		w.fail("%s: %v", name, err)
	}
	fmt.Fprintf(w.log, "%s is %d. ", name, n)
	switch {
	case n == v.n && (n == 0 || read.Index == v.index):
	case slices.Contains(v.maybe, n):
		*v = agreed{n: n, index: read.Index}
	default:
		w.fail("%s is %d under index %d, want %+v", name, n, read.Index, v)
	}
}

// identityOfMembers uses the next number of an identity that all members share.
func identityOfMembers(w *world) {
	name := []string{"users|", "orders|", "other|"}[w.intn(3)]
	w.call(new(entry), nil, func() (func(), error) {
		ctx, cancel := w.limited()
		defer cancel()
		n, err := w.db.NextIdentity(ctx, name)
		return func() {
			w.identity(name, n)
			fmt.Fprintf(w.log, "%s%d. ", name, n)
		}, err
	})
}

// sessionOfMembers changes a document of the member and a value of all members in one cluster-wide session.
func sessionOfMembers(w *world) {
	name := w.valueName()
	v := w.agreement.values[name]
	if v == nil {
		v = new(agreed)
		w.agreement.values[name] = v
	}
	if len(v.maybe) > 0 {
		w.readAgreed(name)
	}
	key := w.pick(w.model.documents("Users"))
	if len(v.maybe) > 0 || key == "" {
		return
	}
	ctx, cancel := w.limited()
	defer cancel()
	unit := w.db.OpenSession(jay.ClusterWide())
	old := w.model.state[key]
	user, err := jay.Load[User](ctx, unit, old.id)
	if err != nil && (w.agreement.away || w.failed || w.cut != nil) {
		fmt.Fprint(w.log, "it cannot be loaded. ")
		return
	}
	if err != nil || user.N != old.n {
		w.fail("a cluster-wide session loads %s: %v, %v, want %v", old.id, user, err, old)
	}
	to := *old
	w.model.serial++
	w.agreement.serial++
	to.n, to.version = w.model.serial, ""
	user.N = to.n
	e := &entry{changes: []change{{key, w.after(old, &to)}}}
	if w.intn(5) == 0 {
		w.must(unit.Delete(user))
		e.changes[0].to = w.deletion(old)
	}
	n, index := w.agreement.serial, v.index
	var want error
	if w.intn(5) == 0 {
		index, want = index+1, jay.ErrConflict
	}
	fmt.Fprintf(w.log, "%v, %s = %d under %d. ", e.changes[0].to, name, n, index)
	w.must(unit.PutCompareExchange(name, n, index))
	if w.call(e, want, func() (func(), error) { return nil, unit.SaveChanges(ctx) }) {
		*v = agreed{n: -1, maybe: []int{n}} // its index is not known
		w.readAgreed(name)
		return
	}
	if want != nil || w.begun != e {
		return
	}
	v.maybe = append(v.maybe, n)
	before, relaxed := w.model.state[key], w.settings.relaxed
	w.agreement.decide = func() {
		w.readAgreed(name)
		after := w.model.state[key]
		if happened := same(e.changes[0].to, after); happened != (v.n == n) && (after != nil || !relaxed) { // which may have lost the document with what was before
			w.fail("a cluster-wide session has left %v, which was %v, and %s is %d, not %d", after, before, name, v.n, n)
		}
	}
}
