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

// found are the records that a join looks at.
type found struct {
	info, member, beat cluster.Record
	i                  cluster.Info
	m                  cluster.Member
	b                  cluster.Beat
}

// join makes this run the one that has the tag. open says that the database is in use
// already: then another run that is found has run beside it, or still does, and neither
// makes IDs with the tag any more. Else a run that is alive has the tag, and this one is
// refused.
func (n *Node) join(ctx context.Context, open bool) error {
	n.joining.Lock()
	defer n.joining.Unlock()
	for {
		f, err := n.look(ctx)
		if err != nil {
			return err
		}
		if err := n.check(f); err != nil {
			if open {
				n.refuse(err)
			}
			return err
		}
		if f.b.Run == n.run { // a claim whose answer was lost
			return n.joined(ctx, f.beat.Index, f)
		}
		older := f.beat.Index < n.lastBeat.Load()
		if f.beat.Index != 0 {
			if older { // than this database has left it, whoever's it is
				n.watch.suspect()
			}
			alive, err := n.isAlive(ctx, f)
			if err != nil {
				return err
			}
			if alive && !open {
				return &cluster.TagError{Tag: n.own.Tag, Reason: cluster.TagRunning, Member: f.m}
			}
			n.member, n.at = f.m, f.member.Index
			if n.resolvedFor(f) {
				err := &cluster.TagError{Tag: n.own.Tag, Reason: cluster.TagRunning, Member: f.m}
				n.refuse(err)
				return err
			}
			switch {
			case alive:
				return n.markCopied(ctx, f.b.Run)
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

// resolvedFor reports whether the tag was given back, after this run had to give it up,
// and another run was first to take it. This run has made no ID since, so that there is
// nothing to be resolved again.
func (n *Node) resolvedFor(f found) bool {
	refusal := n.refusal.Load()
	return refusal != nil && !n.isMine(f.b.Run)
}

// look reads the records.
func (n *Node) look(ctx context.Context) (f found, err error) {
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

// check compares the records with what the database knows.
func (n *Node) check(f found) error {
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
		// Records of members are never removed: it was restored, and is accepted or not.
		n.watch.suspect()
		return nil
	}
	return n.checkOwner(f.member.Index, f.m)
}

// isAlive reports whether the run that has the tag is alive: it watches its heart.
func (n *Node) isAlive(ctx context.Context, f found) (bool, error) {
	if f.b.Closed {
		return false, nil
	}
	period := min(max(f.b.Period, LeastPeriod), MostPeriod)
	key := cluster.BeatPrefix + n.own.Tag
	begun := time.Now() // by the monotonic clock
	for {
		over := time.Since(begun) >= period // before the read: the last one comes after the period
		now, err := n.c.Read(ctx, key)
		if err != nil {
			return false, fmt.Errorf("join the cluster: %w", err)
		}
		if now[0].Index != f.beat.Index {
			b, err := decode[cluster.Beat](now[0])
			if err != nil {
				return false, err
			}
			// Closed meanwhile, or resolved: the claim, which is for the record as it
			// was, fails, and the next look finds that.
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

// claim makes the tag that of this run, if nothing has changed since the look.
func (n *Node) claim(ctx context.Context, f found) (bool, error) {
	now := n.env.Now().UTC()
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
// has its heartbeat: else the next Open would wait for another one. A coordinator that has
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
			b.N++
			b.Closed, b.At = true, n.env.Now().UTC()
			var change cluster.Change
			if change, err = record(key, b); err == nil {
				_, err = c.Commit(ctx, []cluster.Condition{{Key: key, Index: records[0].Index}}, []cluster.Change{change})
			}
		}
	}
	if err != nil {
		n.warn("jay: the coordinator was not told that the database is closed: its next Open waits until it counts as dead", err)
	}
}

// joined notes that this run has the tag, in memory and on disk. A database that was in no
// cluster before first raises the cluster's identities to its own.
func (n *Node) joined(ctx context.Context, beatAt uint64, f found) error {
	if n.local.Cluster == "" {
		if err := n.contribute(ctx); err != nil {
			return fmt.Errorf("join the cluster: %w", err)
		}
		n.local.Floors = n.env.Node > 0 && n.local.Former != f.i.Cluster
	}
	n.local.Cluster, n.local.Run, n.local.Candidates = f.i.Cluster, n.run, nil
	n.setCluster(f.i.Cluster)
	n.lastBeat.Store(beatAt)
	if err := n.store(ctx); err != nil {
		return err
	}
	n.member, n.at, n.beat, n.beatAt, n.claimed = f.m, f.member.Index, f.b, beatAt, true
	n.floors.Store(n.local.Floors)
	n.refuse(nil)
	return nil
}

// contribute raises the identities of the cluster to those of this database, so that no
// number that it has used is given again.
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
		if err != nil || at >= last {
			return err
		}
		// To raise it twice does no harm.
		_, err = n.c.Commit(ctx, []cluster.Condition{{Key: records[0].Key, Index: records[0].Index}}, []cluster.Change{counterChange(name, last)})
		if err != nil {
			return err
		}
	}
}

// recover records what earlier runs of this database have left behind with the coordinator,
// and removes it there. It is done once.
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
		return nil // another run may be alive, and its numbers in use
	}
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
			if counter, is := strings.CutPrefix(name, identityCall); is {
				if err := n.recoverIdentity(ctx, counter, r); err != nil {
					return err
				}
			} else if busy, err := n.hasIntent(r.Key); err != nil || busy {
				if err != nil {
					return err
				}
				continue // it is removed when the intent is decided
			}
			if _, err := n.c.Commit(ctx, []cluster.Condition{{Key: r.Key, Index: r.Index}}, []cluster.Change{{Key: r.Key, Delete: true}}); err != nil {
				return fmt.Errorf("what earlier runs have left with the coordinator: %w", err)
			}
		}
	}
}

// hasIntent reports whether an undecided intent refers to the record of a call.
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

// counterRecord is the record of an identity.
type counterRecord struct {
	Last int64 `json:"last"`
}

func decodeCounter(r cluster.Record) (int64, error) {
	c, err := decode[counterRecord](r)
	if err == nil && c.Last < 0 {
		err = fmt.Errorf("record %.200q of the cluster's coordinator: %w: the last number is %d", r.Key, errs.ErrCorrupt, c.Last)
	}
	return c.Last, err
}

func counterChange(name string, last int64) cluster.Change {
	text, _ := json.Marshal(counterRecord{last}) // a number: it cannot fail
	return cluster.Change{Key: cluster.IdentityPrefix + name, Value: text}
}
