package feed

import (
	"math"
	"sync"
)

// shared is the batch of changes behind a wake, which the feeds that it has woken read
// together: the first of them reads it from the disk, unfiltered, and the others take from
// it what they want. So a hundred feeds that have caught up cost little more than one.
//
// It is as good as what a feed reads for itself: it comes from one snapshot, taken after
// the channel was asked for on which the feed waits next, so that a later commit wakes it.
type shared struct {
	mu      sync.Mutex
	wait    <-chan struct{} // on which those wait next who may read the batch; nil for none. Guarded by mu.
	readers int             // that have yet to come. Guarded by mu.
	from    uint64          // the batch has the changes behind it. Guarded by mu.
	to      uint64          // and up to here. Guarded by mu.
	more    bool            // there were others behind to. Guarded by mu.
	mark    uint64          // of the snapshot. Guarded by mu.
	changes []sharedChange  // Guarded by mu.
}

// sharedChange is a change, and what filters look at.
type sharedChange struct {
	Change
	collection, folded []byte
}

// readShared reads from the batch that f shares with others. It returns false if f has to
// read for itself.
func (f *Feed) readShared() (more, read bool, err error) {
	s := &f.source.shared[0]
	if f.filter.Documents {
		s = &f.source.shared[1]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wait != f.next {
		s.drop()
		if err := s.fill(f); err != nil {
			return false, false, nil // f meets it again, behind the changes before it
		}
	}
	if f.position < s.from || f.position > s.to && s.more {
		return false, false, nil
	}
	if err := f.checkMark(s.mark); err != nil {
		return false, false, err
	}
	for i := range s.changes {
		c := &s.changes[i]
		if c.Etag > f.position && !(c.Deleted && f.filter.NoDeletions) && f.filter.wants(c.collection, c.folded) {
			f.batch = append(f.batch, c.Change)
		}
	}
	f.position, more = max(f.position, s.to), s.more
	if s.readers--; s.readers <= 0 {
		s.drop()
	}
	return more, true, nil
}

// drop lets the memory of the batch go. s.mu is held.
func (s *shared) drop() {
	clear(s.changes)
	s.changes, s.wait = s.changes[:0], nil
}

// fill reads the batch behind the position of f. s.mu is held.
func (s *shared) fill(f *Feed) (err error) {
	// Each of its readers compares the mark with what it needs itself.
	all := Feed{source: f.source, nodes: f.nodes, position: f.position, base: math.MaxUint64, filter: Filter{Documents: f.filter.Documents}}
	if s.mark, s.more, err = all.readDisk(); err != nil {
		return err
	}
	s.changes = s.changes[:0]
	for _, c := range all.batch {
		s.changes = append(s.changes, sharedChange{c, []byte(c.Collection), []byte(f.source.Env.Rules.Fold(c.ID))})
	}
	s.from, s.to, s.wait, s.readers = f.position, all.position, f.next, f.fellows
	return nil
}
