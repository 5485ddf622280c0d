// Package accord is what an open database does with the coordinator of its cluster: it
// keeps its node tag, reserves numbers of identities, and reads and commits compare-exchange
// values.
//
// The coordinator is a map with a conditional commit (package cluster); everything else is
// decided here. A commit whose outcome is not known is made again with the same conditions.
// One of them is on a record that the commit itself changes, so that it cannot happen
// twice, and that record then says which commit has changed it.
package accord

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/internal/background"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// Options are what the database was opened with.
type Options struct {
	Coordinator cluster.Coordinator
	Address     string
	Period      time.Duration // without a heartbeat for so long, a node is taken for dead
	Patience    time.Duration // how long Open waits for a majority, and Close
	Limit       time.Duration // how long a call waits whose context has no deadline
	Still       bool          // no heart beats in the background: tests call Beat
	Refused     func()        // called when the node must not make tagged IDs any more
}

// Bounds of Options.Period.
const (
	LeastPeriod   = 100 * time.Millisecond
	DefaultPeriod = 10 * time.Second
	MostPeriod    = 5 * time.Minute
)

// mostCandidates bounds the runs of which it is not known whether the coordinator has seen
// them. Without the oldest, a run may be taken for that of a copy, and never the other way
// round.
const mostCandidates = 64

// Node is an open database as a member of its cluster. It is safe for concurrent use.
type Node struct {
	env     *env.Env
	c       cluster.Coordinator // watch
	watch   *watched
	options Options
	own     format.Origin
	run     string // made at random for this Node
	group   *background.Group

	refusal atomic.Pointer[error] // why no tagged IDs are made; nil if they are

	cluster  atomic.Pointer[string] // its name, when it is known
	lastBeat atomic.Uint64          // index of the newest heartbeat of this database, of earlier runs too

	joining sync.Mutex // held by join and Beat
	local   format.Membership
	asked   bool // a claim of the tag may have reached the coordinator. Guarded by joining, as are all that follow.
	claimed bool // the beat is that of this run
	member  cluster.Member
	at      uint64 // index of the record of the member
	beat    cluster.Beat
	beatAt  uint64

	recovering sync.Mutex
	recovered  atomic.Bool // what earlier runs have left is recorded
	floors     atomic.Bool // see format.Membership

	identities identities
	values     values
}

// Read returns what the database knows of its cluster; a record without a Cluster if it
// belongs to none.
func Read(e *env.Env) (m format.Membership, err error) {
	value, closer, err := e.Engine.Get(format.AppendKey(nil, format.SpaceMeta, format.MembershipName))
	if err == storage.ErrNotFound {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(value, &m); err != nil {
		return m, errors.Join(fmt.Errorf("record of the cluster: %w: %w", errs.ErrCorrupt, err), closer.Close())
	}
	return m, closer.Close()
}

// Belongs reports whether the database of e belongs to a cluster.
func Belongs(e *env.Env) (bool, error) {
	m, err := Read(e)
	return m.Cluster != "" && m.Database == e.Origins[e.Node].ID, err
}

// Open joins the cluster, or goes on as a member of it. Without a majority it succeeds for
// a database that is a member already, and Beat joins later. Close must follow.
//
// It returns a *cluster.TagError if another database has the tag, the tag is retired, or
// another copy of the database runs.
func Open(ctx context.Context, e *env.Env, o Options) (*Node, error) {
	n := &Node{env: e, watch: &watched{Coordinator: o.Coordinator}, options: o, own: e.Origins[e.Node], group: background.NewGroup()}
	n.c, n.watch.found = n.watch, n.goneBack
	n.identities.names = make(map[string]*sequence)
	var err error
	if n.run, err = randomName(e.Random()); err != nil {
		return nil, err
	}
	n.openValues() // its slots have the name of the run
	if err := n.begin(ctx); err != nil {
		return nil, err
	}
	err = n.join(ctx, false)
	switch tag := (*cluster.TagError)(nil); {
	case errors.As(err, &tag) && tag.Reason == cluster.TagCopied:
		n.refuse(err)
	case n.watch.err() != nil:
		n.group.Stop()
		n.giveUp()
		return nil, fmt.Errorf("join the cluster: %w", n.watch.err())
	case n.local.Cluster != "" && (errors.Is(err, cluster.ErrNoMajority) || errors.Is(err, cluster.ErrUnknownOutcome)):
		n.warn("jay: the cluster has no majority; the database is open without it", err)
	case err != nil:
		n.group.Stop()
		n.giveUp()
		return nil, err
	}
	if !o.Still {
		n.group.Go(n.live)
	}
	return n, nil
}

// randomName returns 16 random bytes as text.
func randomName(random io.Reader) (string, error) {
	var id [16]byte
	if _, err := io.ReadFull(random, id[:]); err != nil {
		return "", fmt.Errorf("make a name at random: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(id[:]), nil
}

// begin notes on disk that this run may become known to the coordinator.
func (n *Node) begin(ctx context.Context) (err error) {
	if n.local, err = Read(n.env); err != nil {
		return err
	}
	n.floors.Store(n.local.Floors)
	if n.local.Database != n.own.ID { // the first time, or a copy
		n.local = format.Membership{Database: n.own.ID, Former: cmp.Or(n.local.Cluster, n.local.Former)}
	}
	if n.local.Cluster == "" {
		if err := n.checkValues(); err != nil {
			return err
		}
	} else {
		n.setCluster(n.local.Cluster)
		if err := n.beginWatching(); err != nil {
			return err
		}
	}
	n.local.Candidates = append(n.local.Candidates, n.run)
	if extra := len(n.local.Candidates) - mostCandidates; extra > 0 {
		n.local.Candidates = slices.Delete(n.local.Candidates, 0, extra)
	}
	return n.store(ctx)
}

// store writes the local record.
func (n *Node) store(ctx context.Context) error {
	return n.env.Engine.Update(ctx, true, func(tx storage.Tx) error {
		if err := env.SetJSON(tx, format.AppendKey(nil, format.SpaceMeta, format.MembershipName), n.local); err != nil {
			return err
		}
		return n.StageSeen(tx)
	})
}

// isMine reports whether a run is one of this database, as far as this directory knows.
func (n *Node) isMine(run string) bool {
	return run == n.local.Run && run != "" || slices.Contains(n.local.Candidates, run)
}

// refuse makes tagged IDs impossible, because of err; possible with nil.
func (n *Node) refuse(err error) {
	if err == nil {
		if n.refusal.Swap(nil) != nil && n.env.Logger != nil {
			n.env.Logger.Info("jay: the node tag was given back", "tag", n.own.Tag)
		}
		return
	}
	if n.refusal.Swap(&err) == nil {
		n.warn("jay: the database must not make ids with its node tag", err)
		if n.options.Refused != nil {
			n.options.Refused()
		}
	}
}

func (n *Node) warn(message string, err error) {
	if n.env.Logger != nil {
		n.env.Logger.Warn(message, "tag", n.own.Tag, "err", err)
	}
}

// CheckTag returns why the database must not make IDs with its node tag; nil if it may.
// On a nil Node it may.
func (n *Node) CheckTag() error {
	if n == nil {
		return nil
	}
	if refusal := n.refusal.Load(); refusal != nil {
		return *refusal
	}
	return nil
}

// checkMember returns an error if the database has left the cluster.
func (n *Node) checkMember() error {
	var tag *cluster.TagError
	if err := n.CheckTag(); errors.As(err, &tag) && (tag.Reason == cluster.TagRetired || tag.Reason == cluster.TagTaken) {
		return err
	}
	return nil
}

// Status is what a node knows of itself.
type Status struct {
	Cluster string
	Run     string
	Joined  bool  // the coordinator has seen this run
	Refusal error // why no tagged IDs are made, or no identities
}

// Status returns what the node knows of itself.
func (n *Node) Status() Status {
	n.joining.Lock()
	defer n.joining.Unlock()
	return Status{Cluster: n.local.Cluster, Run: n.run, Joined: n.claimed, Refusal: errs.First(n.CheckTag(), n.watch.err())}
}

// live is the heart of the node.
func (n *Node) live() {
	ctx := n.group.Context()
	timer := time.NewTimer(n.options.Period / 4)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		if err := n.Beat(ctx); err != nil && ctx.Err() == nil && n.env.Logger != nil {
			n.env.Logger.Debug("jay: heartbeat", "tag", n.own.Tag, "err", err)
		}
		timer.Reset(n.options.Period / 4)
	}
}

// Beat is one heartbeat: it says that the node is alive, and finds out whether another one
// has its tag. A node that has not joined yet tries to.
func (n *Node) Beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(n.options.Period, n.options.Patience))
	defer cancel()
	if !n.isClaimed() {
		if err := n.join(ctx, true); err != nil {
			return err
		}
		return n.recover(ctx)
	}
	n.joining.Lock()
	err := n.beatOnce(ctx)
	n.joining.Unlock()
	if err == nil {
		err = n.recover(ctx)
	}
	return err
}

func (n *Node) isClaimed() bool {
	n.joining.Lock()
	defer n.joining.Unlock()
	return n.claimed
}

// beatOnce is a heartbeat of a node that has joined.
func (n *Node) beatOnce(ctx context.Context) error {
	next := n.beat
	next.N++
	next.At, next.Period = n.env.Now().UTC(), n.options.Period
	change, err := record(cluster.BeatPrefix+n.own.Tag, next)
	if err != nil {
		return err
	}
	memberKey, beatKey := cluster.MemberPrefix+n.own.Tag, cluster.BeatPrefix+n.own.Tag
	result, err := n.c.Commit(ctx, []cluster.Condition{{Key: memberKey, Index: n.at}, {Key: beatKey, Index: n.beatAt}}, []cluster.Change{change})
	if err != nil {
		return err // if it has happened all the same, the next beat finds that
	}
	if result.Committed() {
		n.beat, n.beatAt = next, result.Index
		n.lastBeat.Store(result.Index)
		return n.keepSeen(ctx, false) // what is lost of it, the next one keeps
	}
	return n.met(ctx, result.Actual[0], result.Actual[1])
}

// met decides what it means that the records of the tag are not as this node has left
// them.
func (n *Node) met(ctx context.Context, member, beat cluster.Record) error {
	m, err := decode[cluster.Member](member)
	if err != nil {
		return err
	}
	n.member, n.at = m, member.Index
	if err := n.checkOwner(member.Index, m); err != nil {
		n.claimed = false
		n.refuse(err)
		return err
	}
	b, err := decode[cluster.Beat](beat)
	if err != nil {
		return err
	}
	switch {
	case beat.Index == 0: // resolved: whichever claims the tag first has it
		n.claimed = false
		return nil
	case b.Run == n.run: // a beat whose answer was lost
		n.beat, n.beatAt = b, beat.Index
		return nil
	}
	return n.markCopied(ctx, b.Run)
}

// checkOwner returns a *cluster.TagError if the tag is not this database's to use.
func (n *Node) checkOwner(index uint64, m cluster.Member) error {
	reason := cluster.TagReason("")
	switch {
	case index == 0: // records of members are never removed
		return n.watch.refuse(n.watch.newest.Load(), fmt.Errorf("%w: the record of the node tag %q is gone. "+goOn, cluster.ErrRestored, n.own.Tag))
	case m.Database != n.own.ID:
		reason = cluster.TagTaken
	case !m.Left.IsZero():
		reason = cluster.TagRetired
	case !m.Copied.IsZero():
		reason = cluster.TagCopied
	default:
		return nil
	}
	return &cluster.TagError{Tag: n.own.Tag, Reason: reason, Member: m}
}

// markCopied records that another run has had the tag, so that neither makes IDs with it
// from now on. joining is held, and n.member is that at n.at.
func (n *Node) markCopied(ctx context.Context, other string) error {
	n.claimed = false
	m := n.member
	m.Copied, m.Runs = n.env.Now().UTC(), []string{other, n.run}
	refusal := &cluster.TagError{Tag: n.own.Tag, Reason: cluster.TagCopied, Member: m}
	n.refuse(refusal) // at once, whether or not the coordinator answers
	change, err := record(cluster.MemberPrefix+n.own.Tag, m)
	if err != nil {
		return err
	}
	if _, err := n.c.Commit(ctx, []cluster.Condition{{Key: change.Key, Index: n.at}}, []cluster.Change{change}); err != nil {
		return err // the next beat tries again
	}
	return refusal
}

// record returns the change that puts v as JSON.
func record(key string, v any) (cluster.Change, error) {
	text, err := json.Marshal(v)
	return cluster.Change{Key: key, Value: text}, err
}

// decode returns the value of a record that is JSON; the zero value if there is none.
func decode[T any](r cluster.Record) (v T, err error) {
	if r.Index == 0 {
		return v, nil
	}
	if err := json.Unmarshal(r.Value, &v); err != nil {
		return v, fmt.Errorf("record %.200q of the cluster's coordinator: %w: %w", r.Key, errs.ErrCorrupt, err)
	}
	return v, nil
}

// bounded returns a context with a deadline.
func (n *Node) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, n.options.Limit)
}

// Stop ends what runs in the background. Calls that wait for the coordinator end.
func (n *Node) Stop() { n.group.Stop() }

// Close says to the coordinator that the node is closed, if it answers soon, so that the
// next Open need not wait. Stop comes first.
func (n *Node) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), n.options.Patience)
	defer cancel()
	n.closeIdentities(ctx)
	n.joining.Lock()
	defer n.joining.Unlock()
	if !n.claimed {
		return
	}
	last := n.beat
	last.N++
	last.Closed, last.At = true, n.env.Now().UTC()
	change, err := record(cluster.BeatPrefix+n.own.Tag, last)
	var result cluster.Result
	if err == nil {
		result, err = n.c.Commit(ctx, []cluster.Condition{{Key: change.Key, Index: n.beatAt}}, []cluster.Change{change})
	}
	if err == nil {
		n.lastBeat.Store(max(result.Index, n.lastBeat.Load()))
		if err := n.keepSeen(ctx, true); err != nil {
			n.warn("jay: what was seen of the coordinator could not be kept", err)
		}
	}
	if err != nil {
		n.warn("jay: the coordinator was not told that the database is closed: its next Open waits until it counts as dead", err)
	}
	n.claimed = false
}
