// Package feed reads the changes of an open database in the order of their etags, from
// the disk, and waits for more.
//
// Every document has one change record, that of its newest write, and a deletion
// leaves one that package horizon removes when nothing needs it any more. A [Feed]
// reads batches of these records behind its position. Each batch is of one snapshot, which
// is closed before the caller gets the batch: a slow reader holds neither a snapshot nor
// more memory than a batch, and no lock at all. A feed that has read all there is waits
// for the [Hub].
//
// No change is missed. Etags rise in the order of commits, and a snapshot that shows
// one shows all below it; a later version of a document has a greater etag. Records of
// deletions that a feed needs are kept as long as it is open, within a bound
// (horizon.Follower); if that is exceeded, the mark in the snapshot shows it, and the
// feed ends with a [GoneError].
package feed

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jaydb/jay/internal/counters"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/horizon"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Bounds of one batch. docs/limits.md has them.
const (
	maxChanges = 256     // changes
	maxBytes   = 1 << 20 // of documents, but for the last one
	maxRecords = 4096    // change records looked at
)

// keptChanges is how many changes' worth of memory a feed keeps while it waits.
const keptChanges = 8

// Source is where the feeds of an open database read. Its exported fields do not change.
type Source struct {
	Env     *env.Env
	Docs    *docs.Reader
	Horizon *horizon.Horizon
	Hub     *Hub

	shared [2]shared // without documents, and with them
}

// Change is one change of a document.
type Change struct {
	Node, Etag uint64
	Deleted    bool
	Collection string         // as written
	ID         string         // as written; of a deletion folded
	Modified   uint64         // in ticks; 0 for a deletion
	Document   *docs.Document // if the filter asks for documents; nil for a deletion
}

// Feed is an open feed. Its methods must not be called at the same time.
type Feed struct {
	source   *Source
	filter   Filter
	hold     *horizon.Follower
	nodes    []uint64 // that may have changes behind the position
	position uint64   // all changes up to here were looked at
	base     uint64   // deletions up to here do not concern the reader: it began later, with nothing
	batch    []Change
	next     <-chan struct{} // when there may be more than the newest batch has; nil before the first wait
	fellows  int             // feeds that were woken together with it, itself included
	caughtUp bool            // the newest batch was all there was
	ended    error           // there will be no more, and why. Wait returns it when all was read.
	key      []byte          // scratch
}

// Open opens a feed behind since: see Token. Close must follow.
func (s *Source) Open(ctx context.Context, since string, filter Filter) (*Feed, error) {
	f := s.newFeed(filter)
	if since == "" || since == Now {
		return f, f.begin(since == Now)
	}
	t, err := s.parse(ctx, since)
	if err != nil {
		return nil, err
	}
	f.position, f.base = t.position, t.base
	var least uint64
	if f.hold, least, err = s.Horizon.Follow(max(f.position, f.base)); err != nil {
		return nil, s.gone(since, least)
	}
	return f, nil
}

// OpenAt opens a feed behind a position that the database has stored itself, for a
// reader that began with nothing at base. Without deletions it needs none of their records.
func (s *Source) OpenAt(position, base uint64, filter Filter) (*Feed, error) {
	f := s.newFeed(filter)
	f.position, f.base = position, base
	if filter.NoDeletions {
		return f, nil
	}
	var least uint64
	var err error
	if f.hold, least, err = s.Horizon.Follow(max(position, base)); err != nil {
		return nil, s.gone(Token(s.Env.Origins, s.Env.Node, position, base), least)
	}
	return f, nil
}

// newFeed returns a feed that holds nothing yet.
func (s *Source) newFeed(filter Filter) *Feed {
	return &Feed{source: s, filter: filter, nodes: slices.Collect(maps.Keys(s.Env.Origins))}
}

// Resolve returns the position and the base of a token.
func (s *Source) Resolve(ctx context.Context, since string) (position, base uint64, err error) {
	if since != "" && since != Now {
		t, err := s.parse(ctx, since)
		return t.position, t.base, err
	}
	newest, _, err := s.newest()
	if since == Now {
		return newest, 0, err
	}
	return 0, newest, err
}

// begin begins at the first change, or behind the newest one.
func (f *Feed) begin(now bool) (err error) {
	f.hold = f.source.Horizon.FollowNow() // before the snapshot
	snapshot := f.source.Env.Engine.Snapshot()
	defer func() {
		if err = errs.First(err, snapshot.Close()); err != nil {
			f.hold.Close()
		}
	}()
	if f.base, err = counters.NewestChange(f.source.Env, snapshot); now {
		f.position = f.base
	}
	return err
}

// Close ends f.
func (f *Feed) Close() {
	if f.hold != nil {
		f.hold.Close()
	}
}

// Position returns the etag up to which f has looked at the changes.
func (f *Feed) Position() uint64 { return f.position }

// Base returns the etag up to which deletions do not concern the reader: see Token.
func (f *Feed) Base() uint64 { return f.base }

// Read returns the next changes, and whether there were more at that moment. They are
// valid until the next call. Changes that the filter leaves out can be all that there
// was. The records of deletions behind the position are kept until the next call.
func (f *Feed) Read() (changes []Change, more bool, err error) {
	clear(f.batch)
	f.batch = f.batch[:0]
	if f.hold != nil {
		f.hold.Advance(max(f.position, f.base))
	}
	read := false
	if f.fellows > 1 && f.caughtUp {
		more, read, err = f.readShared()
	}
	if !read && err == nil {
		_, more, err = f.readDisk()
	}
	if f.caughtUp = !more; err != nil {
		return nil, false, err
	}
	return f.batch, more, nil
}

// readDisk reads a batch from the disk, and returns the mark of its snapshot.
func (f *Feed) readDisk() (mark uint64, more bool, err error) {
	snapshot := f.source.Env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	if mark, err = counters.Mark(snapshot); err != nil {
		return 0, false, err
	}
	if err := f.checkMark(mark); err != nil {
		return mark, false, err
	}
	m, err := f.merge(snapshot)
	if err != nil {
		return mark, false, err
	}
	defer func() { err = errs.First(err, m.close()) }()
	more, err = f.read(snapshot, m)
	return mark, more, err
}

// checkMark returns a GoneError if a snapshot with this mark may lack deletions that f
// needs.
func (f *Feed) checkMark(mark uint64) error {
	if mark <= max(f.position, f.base) || f.filter.NoDeletions {
		return nil
	}
	return f.source.gone(Token(f.source.Env.Origins, f.source.Env.Node, f.position, f.base), mark)
}

// read reads a batch from the merged records. An error comes after the changes before
// it: the next call meets it first.
func (f *Feed) read(snapshot storage.Reader, m *merge) (more bool, err error) {
	defer func() {
		if err != nil && len(f.batch) > 0 {
			more, err = true, nil
		}
	}()
	size := 0
	for records := 0; ; records++ {
		node, etag, record, err := m.next()
		if err != nil {
			return false, err
		}
		if record == nil {
			f.nodes = append(f.nodes[:0], f.source.Env.Node) // the others get no new ones
			return false, nil
		}
		if len(f.batch) == maxChanges || size >= maxBytes || records == maxRecords {
			return true, nil
		}
		change, wanted, err := f.change(snapshot, node, etag, record)
		if err != nil {
			return false, err
		}
		if f.position = etag; !wanted {
			continue
		}
		f.batch = append(f.batch, change)
		if change.Document != nil {
			size += len(change.Document.JSON())
		}
	}
}

// change makes a change of a record, if the filter wants it.
func (f *Feed) change(snapshot storage.Reader, node, etag uint64, record []byte) (c Change, wanted bool, err error) {
	kind, collection, folded, err := format.SplitChange(record)
	if err != nil || !f.filter.wants(collection, folded) {
		return c, false, err
	}
	c = Change{Node: node, Etag: etag, Collection: string(collection)}
	switch kind {
	case format.ChangeDelete:
		if f.filter.NoDeletions {
			return c, false, nil
		}
		c.Deleted, c.ID = true, string(folded)
		return c, true, nil
	case format.ChangePut:
		there, err := f.load(snapshot, &c, folded)
		return c, there, err
	}
	return c, false, fmt.Errorf("change %d of %q has the kind %d: %w", etag, folded, kind, errs.ErrCorrupt)
}

// load adds to c what the document has to say. It reports false for one that has
// expired, if that is as if it were deleted: its deletion will follow.
func (f *Feed) load(snapshot storage.Reader, c *Change, folded []byte) (there bool, err error) {
	f.key = append(append(append(f.key[:0], format.SpaceDocument), folded...), 0)
	record, closer, err := snapshot.Get(f.key)
	if err == storage.ErrNotFound {
		return false, fmt.Errorf("change %d of %q has no document: %w", c.Etag, folded, errs.ErrCorrupt)
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errs.First(err, closer.Close()) }()
	h, _, err := metadata.Decode(record)
	if err != nil {
		return false, fmt.Errorf("document %q: %w", folded, err)
	}
	if h.Etag != c.Etag || h.Node != c.Node {
		return false, fmt.Errorf("change %d of %q has a document of etag %d: %w", c.Etag, folded, h.Etag, errs.ErrCorrupt)
	}
	if h.Timed && docs.IsGone(&h, f.source.Docs.Moment()) {
		return false, nil
	}
	if c.ID, c.Modified = string(folded), h.Modified; h.ID != nil {
		c.ID = string(h.ID)
	}
	if f.filter.Documents {
		c.Document, err = f.source.Docs.CopyDocument(folded, record)
	}
	return true, err
}

// Wait returns when Read, which has just found all there was, may find more. It is
// called outside the gate of the database.
//
// The channel is asked for before each read, so that no commit is missed between a
// read and the wait.
func (f *Feed) Wait(ctx context.Context) error {
	if f.ended != nil {
		return f.ended
	}
	if f.next != nil {
		if clear(f.batch); cap(f.batch) > keptChanges {
			f.batch = nil
		}
		select {
		case <-f.next:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f.next, f.fellows, f.ended = f.source.Hub.Await()
	return nil
}
