package accord

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/internal/counters"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
)

// joinRecords holds the records that join reads, raw and decoded.
type joinRecords struct {
	info, member, beat cluster.Record
	i                  cluster.Info
	m                  cluster.Member
	b                  cluster.Beat
}

// join claims the node tag for this run. open says that the database is in use already.
//
// If the record of the beat belongs to another run, two cases differ. At Open, a run that
// is alive keeps the tag, and this run is refused. With open, both runs may have made
// IDs, so neither may use the tag until an operator resolves it.
func (n *Node) join(ctx context.Context, open bool) error {
	n.joining.Lock()
	defer n.joining.Unlock()
	for {
		newest := n.watch.newest.Load()
		f, err := n.readRecords(ctx)
		if err != nil {
			return err
		}
		if err := n.check(f, newest); err != nil {
			if open {
				n.refuse(err)
			}
			return err
		}
		if f.b.Run == n.run { // an earlier claim was committed, and only its answer was lost
			return n.joined(ctx, f.beat.Index, f)
		}
		if f.b.Closed {
			n.ended = f.b.Run
		}
		older := f.beat.Index < n.lastBeat.Load()
		if f.beat.Index != 0 {
			if older { // than this database has left it, whoever's it is
				n.watch.suspect(newest)
			}
			alive, err := n.isAlive(ctx, f)
			if err != nil {
				return err
			}
			if alive && !open {
				return &cluster.TagError{Tag: n.own.Tag, Reason: cluster.TagRunning, Member: f.m}
			}
			n.member, n.memberIndex = f.m, f.member.Index
			// Another run has the tag. If an operator has resolved it for that run, this
			// one only steps back.
			if n.resolvedFor(f) {
				err := &cluster.TagError{Tag: n.own.Tag, Reason: cluster.TagRunning, Member: f.m}
				n.refuse(err)
				return err
			}
			switch {
			case alive:
				return n.markCopied(ctx, f.b.Run)
			// An earlier run of this directory, or a beat older than the last one of this
			// database, which a restore has brought back: claim the tag from it.
			case n.isMine(f.b.Run), older:
			default:
				return n.markCopied(ctx, f.b.Run)
			}
		}
		committed, err := n.claim(ctx, f)
		if err != nil {
			return err
		}
		if committed {
			return nil
		}
	}
}

// resolvedFor reports whether an operator has resolved a copied tag and another run has
// claimed it first. This run has made no ID since it was refused, so there is no new
// conflict to record.
func (n *Node) resolvedFor(f joinRecords) bool {
	refusal := n.refusal.Load()
	return refusal != nil && !n.isMine(f.b.Run)
}

// readRecords reads and decodes the records.
func (n *Node) readRecords(ctx context.Context) (f joinRecords, err error) {
	ctx, cancel := context.WithTimeout(ctx, n.options.Patience)
	defer cancel()
	records, err := n.c.Read(ctx, cluster.InfoKey, cluster.MemberPrefix+n.own.Tag, cluster.BeatPrefix+n.own.Tag)
	if err != nil {
		return f, fmt.Errorf("join the cluster: %w", err)
	}
	f.info, f.member, f.beat = records[0], records[1], records[2]
	if f.i, err = decode[cluster.Info](f.info); err != nil {
		return f, err
	}
	if f.m, err = decode[cluster.Member](f.member); err != nil {
		return f, err
	}
	f.b, err = decode[cluster.Beat](f.beat)
	return f, err
}

// check compares the coordinator's records with the settings and the history of this
// database. newest is the newest index that was seen before they were read.
func (n *Node) check(f joinRecords, newest uint64) error {
	rules := n.env.Rules
	switch {
	case n.local.Cluster != "" && f.info.Index == 0:
		return fmt.Errorf("%w: this database belongs to the cluster %s, and the coordinator has no records: a wrong address or prefix, or it has lost its data", cluster.ErrOtherCluster, n.local.Cluster)
	case n.local.Cluster != "" && f.i.Cluster != n.local.Cluster:
		return fmt.Errorf("%w: this database belongs to the cluster %s, and the coordinator has the records of %s", cluster.ErrOtherCluster, n.local.Cluster, f.i.Cluster)
	case f.info.Index != 0 && f.i.Separator != rules.Separator:
		return fmt.Errorf("%w: the separator of this database is %q, that of its cluster %q", errs.ErrFixed, rules.Separator, f.i.Separator)
	case f.info.Index != 0 && f.i.CaseSensitive != rules.CaseSensitive:
		return fmt.Errorf("%w: ids are case-sensitive in this database or in its cluster, but not in both", errs.ErrFixed)
	case f.member.Index == 0 && n.local.Cluster == "":
		return nil
	case f.member.Index == 0:
		// Member records are never removed, so the coordinator was restored. Whether an
		// operator has accepted that, the index of the next commit shows.
		n.watch.suspect(newest)
		return nil
	}
	return n.checkOwner(f.member.Index, f.m)
}

// isAlive reports whether the run that has the tag still beats. It watches the record for
// one period of that run, by the monotonic clock of this machine, so that clocks need not
// agree.
func (n *Node) isAlive(ctx context.Context, f joinRecords) (bool, error) {
	if f.b.Closed {
		return false, nil
	}
	period := min(max(f.b.Period, LeastPeriod), MostPeriod)
	key := cluster.BeatPrefix + n.own.Tag
	begun := time.Now() // by the monotonic clock
	for {
		over := time.Since(begun) >= period // taken before the read, so that the last read is after the period
		now, err := n.c.Read(ctx, key)
		if err != nil {
			return false, fmt.Errorf("join the cluster: %w", err)
		}
		if now[0].Index != f.beat.Index {
			b, err := decode[cluster.Beat](now[0])
			if err != nil {
				return false, err
			}
			// Closed or resolved meanwhile. The claim that follows is conditional on the
			// record as readRecords found it; so it fails, and join reads again.
			return now[0].Index != 0 && !b.Closed, nil
		}
		if over {
			return false, nil
		}
		timer := time.NewTimer(period / 8)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false, fmt.Errorf("join the cluster: watching the run that had the node tag: %w: %w", cluster.ErrNoMajority, ctx.Err())
		case <-n.group.Context().Done():
			timer.Stop()
			return false, errs.ErrClosed
		}
	}
}

// claim commits the tag to this run, on the condition that no record has changed since
// look. It creates the cluster's record and the member's if they are missing.
func (n *Node) claim(ctx context.Context, f joinRecords) (bool, error) {
	now, err := n.env.Date()
	if err != nil {
		return false, err
	}
	conditions := []cluster.Condition{{Key: f.info.Key, Index: f.info.Index}, {Key: f.member.Key, Index: f.member.Index}, {Key: f.beat.Key, Index: f.beat.Index}}
	var changes []cluster.Change
	put := func(key string, v any) error {
		change, err := record(key, v)
		changes = append(changes, change)
		return err
	}
	if f.info.Index == 0 {
		name, err := randomName(n.env.Random())
		if err != nil {
			return false, err
		}
		f.i = cluster.Info{Cluster: name, Created: now, Separator: n.env.Rules.Separator, CaseSensitive: n.env.Rules.CaseSensitive}
		if err := put(f.info.Key, f.i); err != nil {
			return false, err
		}
	}
	if f.member.Index == 0 || f.m.Address != n.options.Address {
		if f.member.Index == 0 {
			f.m = cluster.Member{Tag: n.own.Tag, Database: n.own.ID, Joined: now}
		}
		f.m.Address = n.options.Address
		if err := put(f.member.Key, f.m); err != nil {
			return false, err
		}
	}
	f.b = cluster.Beat{Run: n.run, N: 1, At: now, Period: n.options.Period}
	if err := put(f.beat.Key, f.b); err != nil {
		return false, err
	}
	n.asked = true
	result, err := n.c.Commit(ctx, conditions, changes)
	if err != nil {
		return false, fmt.Errorf("join the cluster: %w", err)
	}
	if !result.Committed() {
		return false, nil
	}
	for _, change := range changes {
		if change.Key == f.member.Key {
			f.member.Index = result.Index
		}
	}
	return true, n.joined(ctx, result.Index, f)
}

// giveUp says to the coordinator that this run, which Open has refused, is closed, if it
// has its heartbeat: otherwise the next Open would wait for another beat. A coordinator that has
// gone back is asked this, too: nothing depends on the answer.
func (n *Node) giveUp() {
	n.joining.Lock()
	defer n.joining.Unlock()
	if !n.asked {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), n.options.Patience)
	defer cancel()
	c, key := n.watch.Coordinator, cluster.BeatPrefix+n.own.Tag
	records, err := c.Read(ctx, key)
	if err == nil {
		var b cluster.Beat
		if b, err = decode[cluster.Beat](records[0]); err == nil && b.Run == n.run {
			_, err = n.endBeat(ctx, c, b, records[0].Index)
		}
	}
	n.warnNotEnded(err)
}

// endBeat replaces the beat last, which has this index, by one that says that the run is
// closed.
func (n *Node) endBeat(ctx context.Context, c cluster.Coordinator, last cluster.Beat, index uint64) (cluster.Result, error) {
	last.N++
	last.Closed, last.At = true, n.env.Now().UTC()
	change, err := record(cluster.BeatPrefix+n.own.Tag, last)
	if err != nil {
		return cluster.Result{}, err
	}
	return c.Commit(ctx, []cluster.Condition{{Key: change.Key, Index: index}}, []cluster.Change{change})
}

// warnNotEnded logs the error of endBeat, which may be nil.
func (n *Node) warnNotEnded(err error) {
	if err != nil {
		n.warn("jay: the coordinator was not told that the database is closed: its next Open waits until it counts as dead", err)
	}
}

// joined records, on disk and then in memory, that this run has the tag. Before that, a
// database that joins its first cluster raises the cluster's identities to its own.
func (n *Node) joined(ctx context.Context, beatIndex uint64, f joinRecords) error {
	if n.local.Cluster == "" {
		if err := n.contribute(ctx); err != nil {
			return fmt.Errorf("join the cluster: %w", err)
		}
		n.local.Floors = n.env.Node > 0 && n.local.Former != f.i.Cluster
	}
	n.local.Cluster, n.local.Run, n.local.Candidates = f.i.Cluster, n.run, nil
	name := f.i.Cluster
	n.cluster.Store(&name) // for StageSeen, which runs without joining
	n.lastBeat.Store(beatIndex)
	if err := n.store(ctx); err != nil {
		return err
	}
	n.member, n.memberIndex, n.beat, n.beatIndex, n.claimed = f.m, f.member.Index, f.b, beatIndex, true
	n.floors.Store(n.local.Floors)
	n.refuse(nil)
	return nil
}

// contribute raises the cluster's identities to those of this database, so that no number
// that this database has used is given again.
func (n *Node) contribute(ctx context.Context) error {
	own := make(map[string]int64)
	err := counters.EachKey(ctx, n.env.Engine, format.SpaceIdentity, func(name string, value []byte) error {
		r, err := format.DecodeIdentity(value)
		own[name] = int64(max(r.Last, r.Ceiling))
		return err
	})
	if err != nil {
		return err
	}
	for name, last := range own {
		if err := n.raise(ctx, name, last); err != nil {
			return err
		}
	}
	return nil
}

// raise makes the counter of an identity at least last.
func (n *Node) raise(ctx context.Context, name string, last int64) error {
	for {
		records, err := n.c.Read(ctx, cluster.IdentityPrefix+name)
		if err != nil {
			return err
		}
		at, err := decodeCounter(records[0])
		if err != nil || at.Last >= last {
			return err
		}
		// Raising twice does no harm, so an unknown outcome needs no slot.
		_, err = n.c.Commit(ctx, []cluster.Condition{{Key: records[0].Key, Index: records[0].Index}}, []cluster.Change{counterChange(name, counterRecord{last, at.Set + 1})})
		if err != nil {
			return err
		}
	}
}

// recover recovers the slots that earlier runs of this database left with the
// coordinator. It deletes those of a run that was closed, and those that another run has
// recovered before; the others it marks: see take. It succeeds once; later calls return at
// once.
func (n *Node) recover(ctx context.Context) error {
	if n.recovered.Load() {
		return nil
	}
	n.recovering.Lock()
	defer n.recovering.Unlock()
	if n.recovered.Load() {
		return nil
	}
	if !n.isClaimed() {
		return nil // another run may be alive and use these slots
	}
	n.joining.Lock()
	ended := n.ended
	n.joining.Unlock()
	prefix := cluster.CallPrefix + n.own.ID + "/"
	for after := ""; ; {
		page, err := n.c.Page(ctx, prefix, after, cluster.MaxPage)
		if err != nil {
			return fmt.Errorf("what earlier runs have left with the coordinator: %w", err)
		}
		if len(page) == 0 {
			n.recovered.Store(true)
			return nil
		}
		for _, r := range page {
			after = r.Key
			run, name, ok := strings.Cut(strings.TrimPrefix(r.Key, prefix), "/")
			if !ok || run == n.run {
				continue
			}
			c, err := decode[callRecord](r)
			if err != nil {
				return err
			}
			if c.Taken == n.run {
				continue
			}
			if counter, is := strings.CutPrefix(name, identityCall); is {
				if err := n.recoverIdentity(ctx, counter, r); err != nil {
					return err
				}
			} else if busy, err := n.hasIntent(r.Key); err != nil || busy {
				if err != nil {
					return err
				}
				continue // the write's recovery needs this slot, and deletes it afterwards
			}
			if c.Taken != "" || run == ended {
				_, err = n.c.Commit(ctx, []cluster.Condition{{Key: r.Key, Index: r.Index}}, []cluster.Change{{Key: r.Key, Delete: true}})
			} else {
				err = n.take(ctx, r, c)
			}
			if err != nil {
				return fmt.Errorf("what earlier runs have left with the coordinator: %w", err)
			}
		}
	}
}

// hasIntent reports whether a stored intent, that is a commit in doubt, refers to a slot.
func (n *Node) hasIntent(slot string) (bool, error) {
	lo, hi := format.IntentBounds()
	it, err := n.env.Engine.Iterate(lo, hi)
	if err != nil {
		return false, err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		in, err := format.DecodeIntent(it.Value())
		if err != nil {
			return false, err
		}
		if in.Slot == slot {
			return true, nil
		}
	}
	return false, it.Error()
}

// counterRecord is the value of an identity's record at the coordinator.
type counterRecord struct {
	Last int64 `json:"last"`
	// Set counts how often the counter was set, and not counted up. Numbers that were drawn
	// before are not given again.
	Set uint64 `json:"set,omitempty"`
}

func decodeCounter(r cluster.Record) (counterRecord, error) {
	c, err := decode[counterRecord](r)
	if err == nil && c.Last < 0 {
		err = fmt.Errorf("record %.200q of the cluster's coordinator: %w: the last number is %d", r.Key, errs.ErrCorrupt, c.Last)
	}
	return c, err
}

func counterChange(name string, c counterRecord) cluster.Change {
	text, _ := json.Marshal(c) // a struct of numbers cannot fail to encode
	return cluster.Change{Key: cluster.IdentityPrefix + name, Value: text}
}
