// Package accord connects an open database to the coordinator of its cluster: it claims
// and keeps the node tag, reserves numbers of identities, and reads and commits
// compare-exchange values.
//
// The coordinator is only a map with a conditional commit (package cluster); this package
// decides what the records mean. A commit in doubt is sent again with the same
// conditions. One condition is on a record that the commit itself changes, a slot
// (call.go): so it cannot take effect twice, and afterwards the slot shows whether it
// did.
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

// Options are the settings of the database that concern its cluster.
type Options struct {
	Coordinator cluster.Coordinator
	Address     string
	Period      time.Duration // a node without a heartbeat for this long counts as dead
	Patience    time.Duration // how long Open and Close wait for a majority
	Limit       time.Duration // how long a call without a deadline in its context waits
	Still       bool          // no heartbeats in the background: tests call Beat
	Refused     func()        // called when the node loses the right to make tagged IDs
}

// Bounds of Options.Period.
const (
	LeastPeriod   = 100 * time.Millisecond
	DefaultPeriod = 10 * time.Second
	MostPeriod    = 5 * time.Minute
)

// mostCandidates bounds the list of earlier runs that may have claimed the tag without
// learning the answer. A run that was dropped from the list is taken for that of a copy
// when its claim is found. The opposite mistake cannot happen.
const mostCandidates = 64

// Node is an open database as a member of its cluster. It is safe for concurrent use.
type Node struct {
	env     *env.Env
	c       cluster.Coordinator // watch, under the interface
	watch   *watched
	options Options
	own     format.Origin
	run     string // random name of this Node's lifetime
	group   *background.Group

	refusal atomic.Pointer[error] // why no tagged IDs may be made; nil if they may be

	cluster  atomic.Pointer[string] // the cluster's name; nil until it is known
	lastBeat atomic.Uint64          // index of this database's newest heartbeat, earlier runs included

	joining     sync.Mutex // held by join and Beat
	local       format.Membership
	asked       bool   // a claim of the tag may have reached the coordinator. Guarded by joining, as are all fields that follow.
	claimed     bool   // this run holds the tag
	ended       string // a run of this database that was closed; "" if none is known
	member      cluster.Member
	memberIndex uint64 // index of member's record at the coordinator
	beat        cluster.Beat
	beatIndex   uint64

	recovering sync.Mutex
	recovered  atomic.Bool // earlier runs have been recovered
	floors     atomic.Bool // see format.Membership

	identities identities
	values     values
}

// Read returns the record of the database's membership in a cluster. Its Cluster is empty
// if the database belongs to none.
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

// Open joins the cluster of o.Coordinator, or resumes the membership. A database that is
// a member already can be opened without a majority; then a later Beat joins. The caller
// must call Stop and Close.
//
// Open returns a *cluster.TagError if another database has the tag, the tag is retired,
// or another copy of the database runs.
func Open(ctx context.Context, e *env.Env, o Options) (*Node, error) {
	n := &Node{env: e, watch: &watched{Coordinator: o.Coordinator}, options: o, own: e.Origins[e.Node], group: background.NewGroup()}
	n.c, n.watch.onRestored = n.watch, n.storeRestored
	n.identities.names = make(map[string]*sequence)
	var err error
	if n.run, err = randomName(e.Random()); err != nil {
		return nil, err
	}
	n.openValues() // after run is set: the slots' keys contain it
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
		n.group.Go(n.beatLoop)
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

// begin records this run on disk before the coordinator can learn of it.
func (n *Node) begin(ctx context.Context) (err error) {
	if n.local, err = Read(n.env); err != nil {
		return err
	}
	n.floors.Store(n.local.Floors)
	if n.local.Database != n.own.ID { // a first join, or a copy of a member
		n.local = format.Membership{Database: n.own.ID, Former: cmp.Or(n.local.Cluster, n.local.Former)}
	}
	if n.local.Cluster == "" {
		if err := n.checkValues(); err != nil {
			return err
		}
	} else {
		name := n.local.Cluster
		n.cluster.Store(&name) // for StageSeen, which runs without joining
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

// store writes the membership to disk, together with what was seen of the coordinator.
func (n *Node) store(ctx context.Context) error {
	return n.env.Engine.Update(ctx, true, func(tx storage.Tx) error {
		if err := env.SetJSON(tx, format.AppendKey(nil, format.SpaceMeta, format.MembershipName), n.local); err != nil {
			return err
		}
		return n.StageSeen(tx)
	})
}

// isMine reports whether a run is one of this directory's, as far as its records go back.
func (n *Node) isMine(run string) bool {
	return run == n.local.Run && run != "" || slices.Contains(n.local.Candidates, run)
}

// refuse forbids tagged IDs because of err. With nil it permits them again.
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

// CheckTag returns the reason why the database must not make IDs with its node tag, or
// nil if it may. A nil Node permits them.
func (n *Node) CheckTag() error {
	if n == nil {
		return nil
	}
	if refusal := n.refusal.Load(); refusal != nil {
		return *refusal
	}
	return nil
}

// checkMember returns an error if the database's tag is retired or belongs to another
// database.
func (n *Node) checkMember() error {
	var tag *cluster.TagError
	if err := n.CheckTag(); errors.As(err, &tag) && (tag.Reason == cluster.TagRetired || tag.Reason == cluster.TagTaken) {
		return err
	}
	return nil
}

// Status is the state of a node, for Stats.
type Status struct {
	Cluster string
	Run     string
	Joined  bool  // this run has claimed the tag
	Refusal error // why no tagged IDs are made, or no identities
}

// Status returns the state of the node.
func (n *Node) Status() Status {
	n.joining.Lock()
	defer n.joining.Unlock()
	return Status{Cluster: n.local.Cluster, Run: n.run, Joined: n.claimed, Refusal: errs.First(n.CheckTag(), n.watch.err())}
}

// beatLoop sends a heartbeat four times per period, until the node is stopped.
func (n *Node) beatLoop() {
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

// Beat sends one heartbeat, and finds out whether another run has claimed the tag. If
// this run has not joined yet, Beat tries to join instead. Afterwards it recovers earlier
// runs, once.
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

// beatOnce sends the heartbeat of a run that has joined. joining is held.
func (n *Node) beatOnce(ctx context.Context) error {
	now, err := n.env.Date()
	if err != nil {
		return err
	}
	next := n.beat
	next.N++
	next.At, next.Period = now, n.options.Period
	change, err := record(cluster.BeatPrefix+n.own.Tag, next)
	if err != nil {
		return err
	}
	memberKey, beatKey := cluster.MemberPrefix+n.own.Tag, cluster.BeatPrefix+n.own.Tag
	result, err := n.c.Commit(ctx, []cluster.Condition{{Key: memberKey, Index: n.memberIndex}, {Key: beatKey, Index: n.beatIndex}}, []cluster.Change{change})
	if err != nil {
		return err // if it was committed all the same, the next beat notices
	}
	if result.Committed() {
		n.beat, n.beatIndex = next, result.Index
		n.lastBeat.Store(result.Index)
		return n.keepSeen(ctx, false) // not synced: the next beat stores a newer index
	}
	return n.onBeatConflict(ctx, result.Actual[0], result.Actual[1])
}

// onBeatConflict handles a heartbeat whose conditions failed: another commit has changed the
// member's record or the beat.
func (n *Node) onBeatConflict(ctx context.Context, member, beat cluster.Record) error {
	m, err := decode[cluster.Member](member)
	if err != nil {
		return err
	}
	n.member, n.memberIndex = m, member.Index
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
	case beat.Index == 0: // an operator has resolved the tag: the first run to claim it gets it
		n.claimed = false
		return nil
	case b.Run == n.run: // an earlier beat of ours, whose answer was lost
		n.beat, n.beatIndex = b, beat.Index
		return nil
	}
	return n.markCopied(ctx, b.Run)
}

// checkOwner returns a *cluster.TagError if this database must not use the tag. index is
// that of the member's record m; without a record the coordinator must have been
// restored.
func (n *Node) checkOwner(index uint64, m cluster.Member) error {
	reason := cluster.TagReason("")
	switch {
	case index == 0: // member records are never removed
		return n.watch.refuse(n.watch.newest.Load(), fmt.Errorf("%w: the record of the node tag %q is gone. "+acceptAdvice, cluster.ErrRestored, n.own.Tag))
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

// markCopied records that another run has used the tag too, so that neither run makes IDs
// with it until an operator resolves it. joining is held, and n.member is the record with
// index n.memberIndex.
func (n *Node) markCopied(ctx context.Context, other string) error {
	n.claimed = false
	m := n.member
	m.Copied, m.Runs = n.env.Now().UTC(), []string{other, n.run}
	refusal := &cluster.TagError{Tag: n.own.Tag, Reason: cluster.TagCopied, Member: m}
	n.refuse(refusal) // before the commit, as the coordinator may not answer
	change, err := record(cluster.MemberPrefix+n.own.Tag, m)
	if err != nil {
		return err
	}
	if _, err := n.c.Commit(ctx, []cluster.Condition{{Key: change.Key, Index: n.memberIndex}}, []cluster.Change{change}); err != nil {
		return err // the next beat tries again
	}
	return refusal
}

// record returns the change that stores v, as JSON, under key.
func record(key string, v any) (cluster.Change, error) {
	text, err := json.Marshal(v)
	return cluster.Change{Key: key, Value: text}, err
}

// decode decodes the JSON of a record. Without a record it returns the zero value.
func decode[T any](r cluster.Record) (v T, err error) {
	if r.Index == 0 {
		return v, nil
	}
	if err := json.Unmarshal(r.Value, &v); err != nil {
		return v, fmt.Errorf("record %.200q of the cluster's coordinator: %w: %w", r.Key, errs.ErrCorrupt, err)
	}
	return v, nil
}

// Bounded returns ctx if it has a deadline, or else ctx limited to Options.Limit.
func (n *Node) Bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, n.options.Limit)
}

// Stop ends the goroutines of the node and the calls that wait for the coordinator.
func (n *Node) Stop() { n.group.Stop() }

// Close marks the run as closed at the coordinator, so that the next Open need not wait
// for the heartbeat to expire. It gives up after Options.Patience. Call Stop first.
func (n *Node) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), n.options.Patience)
	defer cancel()
	n.closeIdentities(ctx)
	n.joining.Lock()
	defer n.joining.Unlock()
	if !n.claimed {
		return
	}
	result, err := n.endBeat(ctx, n.c, n.beat, n.beatIndex)
	if err == nil {
		n.lastBeat.Store(max(result.Index, n.lastBeat.Load()))
		if err := n.keepSeen(ctx, true); err != nil {
			n.warn("jay: what was seen of the coordinator could not be kept", err)
		}
	}
	n.warnNotEnded(err)
	n.claimed = false
}
