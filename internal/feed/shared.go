package feed

import (
	"math"
	"sync"
)

// shared is a batch of changes that the feeds of one wake share. The first of them reads
// it from disk, unfiltered, and the others select from it what they want. So a hundred
// feeds that have caught up cost little more than one.
//
// A shared batch is as safe as one that a feed reads itself. It comes from one snapshot,
// which was taken after the feeds got the channel that they wait on next, so a later
// commit wakes them.
type shared struct {
	mu      sync.Mutex
	wait    <-chan struct{} // channel of the wake that the readers of this batch wait for next; nil for no batch. Guarded by mu.
	readers int             // feeds that have not read the batch yet. Guarded by mu.
	from    uint64          // the batch has the changes after this etag. Guarded by mu.
	to      uint64          // and up to this one. Guarded by mu.
	more    bool            // there were changes after to. Guarded by mu.
	mark    uint64          // of the snapshot. Guarded by mu.
	changes []sharedChange  // Guarded by mu.
}

// sharedChange is a change, with the folded names that filters compare.
type sharedChange struct {
	Change
	collection, folded []byte
}

// readShared reads from the shared batch. read is false if f has to read from disk.
func (f *Feed) readShared() (more, read bool, err error) {
	s := &f.source.shared[0]
	switch {
	case f.filter.States:
		s = &f.source.shared[2]
	case f.filter.Documents:
		s = &f.source.shared[1]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wait != f.next {
		s.drop()
		if err := s.fill(f); err != nil {
			return false, false, nil // f reads from disk, and returns the error after the changes before it
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

// drop releases the changes of the batch. s.mu is held.
func (s *shared) drop() {
	clear(s.changes)
	s.changes, s.wait = s.changes[:0], nil
}

// fill reads the batch of the changes after f's position. s.mu is held.
func (s *shared) fill(f *Feed) (err error) {
	// The greatest base disables the check of the mark: each reader checks it for itself.
	all := Feed{source: f.source, nodes: f.nodes, position: f.position, base: math.MaxUint64, filter: Filter{Documents: f.filter.Documents || f.filter.States, States: f.filter.States}}
	if s.mark, s.more, err = all.readDisk(); err != nil {
		return err
	}
	s.changes = s.changes[:0]
	for _, c := range all.batch {
		s.changes = append(s.changes, sharedChange{c, []byte(c.Collection), []byte(f.source.Env.Rules.Fold(c.ID))})
	}
	s.from, s.to, s.wait, s.readers = f.position, all.position, f.next, f.woken
	return nil
}
