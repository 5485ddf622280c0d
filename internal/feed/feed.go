// Package feed reads the changes of an open database from disk, in the order of their
// etags, and waits for new ones.
//
// Every document has one change record, that of its newest write. A deletion leaves a
// record too, which package horizon removes when no reader needs it. A [Feed] reads these
// records in batches, from its position on. Each batch comes from one snapshot, which is
// closed before the caller gets the batch: so a slow reader holds no snapshot, no lock,
// and no more memory than one batch. A feed that has read all changes waits for the [Hub].
//
// No change is missed. Etags rise in the order of commits, so a snapshot that shows one
// etag shows all below it, and a later version of a document has a greater etag. Records
// of deletions are kept for an open feed, within a bound (horizon.Follower). If a feed
// exceeds the bound, it sees from the mark in the snapshot that records may be missing,
// and ends with a [GoneError].
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
	maxBytes   = 1 << 20 // of documents; the last one may exceed it
	maxRecords = 4096    // change records that were read
)

// keptChanges bounds the capacity of the batch, in changes, that a waiting feed keeps.
const keptChanges = 8

// Source opens the feeds of a database. Its exported fields must not change after that.
type Source struct {
	Env     *env.Env
	Docs    *docs.Reader
	Horizon *horizon.Horizon
	Hub     *Hub

	shared [3]shared // batches without documents, with them, and of States
}

// Change is one change of a document.
type Change struct {
	Node, Etag uint64
	Deleted    bool
	Expired    bool           // the document is there, and counts as deleted; only with Filter.States
	Collection string         // as written
	ID         string         // as written; folded for a deletion
	Modified   uint64         // in ticks; 0 for a deletion
	Document   *docs.Document // if the filter asks for documents; nil for a deletion
}

// Feed is an open feed. It is used by one goroutine at a time.
type Feed struct {
	source   *Source
	filter   Filter
	follower *horizon.Follower
	nodes    []uint64 // whose records are read: those that may have changes after position
	position uint64   // etag up to which changes were read
	base     uint64   // deletions up to this etag are not needed: the reader began after them, with no documents
	batch    []Change
	next     <-chan struct{} // closed when there may be changes after the last batch; nil before the first Wait
	woken    int             // number of feeds that the last wake has woken, this one included
	caughtUp bool            // the last batch reached the newest change
	ended    error           // why no more changes will come. Wait returns it once all were read.
	key      []byte          // scratch
}

// Open opens a feed of the changes after the token since. The caller must close it.
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
	if f.follower, least, err = s.Horizon.Follow(max(f.position, f.base)); err != nil {
		return nil, s.gone(since, least)
	}
	return f, nil
}

// OpenAt opens a feed after a position that the database has stored, for a reader that
// began with no documents at the etag base. A feed without deletions keeps no records of
// them.
func (s *Source) OpenAt(position, base uint64, filter Filter) (*Feed, error) {
	f := s.newFeed(filter)
	f.position, f.base = position, base
	if filter.NoDeletions {
		return f, nil
	}
	var least uint64
	var err error
	if f.follower, least, err = s.Horizon.Follow(max(position, base)); err != nil {
		return nil, s.gone(Token(s.Env.Origins, s.Env.Node, position, base), least)
	}
	return f, nil
}

// newFeed returns a feed without a hold on the records of deletions.
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

// begin places a new feed before the first change or, with now, after the newest one.
func (f *Feed) begin(now bool) (err error) {
	f.follower = f.source.Horizon.FollowNow() // before the snapshot, so that no record that it shows is removed
	snapshot := f.source.Env.Engine.Snapshot()
	defer func() {
		if err = errs.First(err, snapshot.Close()); err != nil {
			f.follower.Close()
		}
	}()
	if f.base, err = counters.NewestChange(f.source.Env, snapshot); now {
		f.position = f.base
	}
	return err
}

// Close closes the feed.
func (f *Feed) Close() {
	if f.follower != nil {
		f.follower.Close()
	}
}

// Position returns the etag up to which f has read the changes, matching or not.
func (f *Feed) Position() uint64 { return f.position }

// Base returns the etag up to which the reader needs no deletions: see Token.
func (f *Feed) Base() uint64 { return f.base }

// Read returns the next changes, and whether there were more in the snapshot. Changes are
// valid until the next call. There may be none although records were read, as the filter
// leaves changes out. Deletions after the position are kept until the next call.
func (f *Feed) Read() (changes []Change, more bool, err error) {
	f.begun()
	read := false
	if f.woken > 1 && f.caughtUp {
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

// ReadIn is Read from a snapshot of the caller, which must show all that f has read. So
// several feeds can come to the same place, the newest change of the snapshot.
func (f *Feed) ReadIn(snapshot storage.Reader) (changes []Change, more bool, err error) {
	f.begun()
	_, more, err = f.readFrom(snapshot)
	if f.caughtUp = !more; err != nil {
		return nil, false, err
	}
	return f.batch, more, nil
}

// Skip moves f forward to an etag, up to which the caller knows the changes from
// elsewhere. It does nothing if f has come further.
func (f *Feed) Skip(etag uint64) {
	if f.position = max(f.position, etag); f.follower != nil {
		f.follower.Advance(max(f.position, f.base))
	}
}

// begun forgets the last batch, whose deletions need not be kept any longer.
func (f *Feed) begun() {
	clear(f.batch)
	f.batch = f.batch[:0]
	if f.follower != nil {
		f.follower.Advance(max(f.position, f.base))
	}
}

// readDisk reads a batch from a new snapshot, and returns the mark in it.
func (f *Feed) readDisk() (mark uint64, more bool, err error) {
	snapshot := f.source.Env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	return f.readFrom(snapshot)
}

// readFrom reads a batch from a snapshot, and returns the mark in it.
func (f *Feed) readFrom(snapshot storage.Reader) (mark uint64, more bool, err error) {
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

// checkMark returns a GoneError if records of deletions that f needs may be missing in a
// snapshot with this mark.
func (f *Feed) checkMark(mark uint64) error {
	if mark <= max(f.position, f.base) || f.filter.NoDeletions {
		return nil
	}
	return f.source.gone(Token(f.source.Env.Origins, f.source.Env.Node, f.position, f.base), mark)
}

// read reads a batch from the merged records. If an error comes after some changes, read
// returns these changes without the error, and the next call finds the error again.
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
			f.nodes = append(f.nodes[:0], f.source.Env.Node) // only this node gets new changes
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

// change converts a change record. wanted reports whether the filter selects it.
func (f *Feed) change(snapshot storage.Reader, node, etag uint64, record []byte) (c Change, wanted bool, err error) {
	parts, err := format.SplitChange(record)
	if err != nil || !f.filter.wants(parts.Collection, parts.FoldedID) {
		return c, false, err
	}
	c = Change{Node: node, Etag: etag, Collection: string(parts.Collection)}
	switch parts.Kind {
	case format.ChangeDelete:
		if f.filter.NoDeletions {
			return c, false, nil
		}
		if f.filter.States { // it was stored again if it is there
			f.key = format.AppendDocumentKey(f.key[:0], parts.FoldedID)
			if again, err := docs.Exists(snapshot, f.key); again || err != nil {
				return c, false, err
			}
		}
		c.Deleted, c.ID = true, parts.WrittenID()
		return c, true, nil
	case format.ChangePut:
		there, err := f.load(snapshot, &c, parts.FoldedID)
		return c, there, err
	}
	return c, false, fmt.Errorf("change %d of %q has the kind %d: %w", etag, parts.FoldedID, parts.Kind, errs.ErrCorrupt)
}

// load completes c from the document. It returns false for a document that has expired and
// counts as deleted: its deletion will follow.
func (f *Feed) load(snapshot storage.Reader, c *Change, folded []byte) (there bool, err error) {
	f.key = format.AppendDocumentKey(f.key[:0], folded)
	if f.filter.Documents {
		return f.loadDocument(snapshot, c)
	}
	record, closer, err := snapshot.Get(f.key)
	if err == storage.ErrNotFound {
		return false, missing(c, folded)
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errs.First(err, closer.Close()) }()
	h, _, err := metadata.Decode(record)
	if err != nil {
		return false, fmt.Errorf("document %q: %w", folded, err)
	}
	if err := check(c, folded, h.Node, h.Etag); err != nil {
		return false, err
	}
	c.ID, c.Modified = docs.WrittenID(&h, string(folded)), h.Modified
	return f.isThere(c, h.Timed && docs.IsGone(&h, f.source.Docs.Moment())), nil
}

// loadDocument is load with the document, whose key is f.key.
func (f *Feed) loadDocument(snapshot storage.Reader, c *Change) (there bool, err error) {
	folded := format.DocumentID(f.key)
	d, err := f.source.Docs.ReadKey(snapshot, f.key)
	if err == errs.ErrNotFound {
		return false, missing(c, folded)
	}
	if err != nil {
		return false, err
	}
	node, etag := d.Version()
	if err := check(c, folded, node, etag); err != nil {
		return false, err
	}
	c.ID, c.Modified, c.Document = d.ID(), d.Modified(), d
	return f.isThere(c, d.IsGone(f.source.Docs.Moment())), nil
}

// missing is the error of a change whose document is not there.
func missing(c *Change, folded []byte) error {
	return fmt.Errorf("change %d of %q has no document: %w", c.Etag, folded, errs.ErrCorrupt)
}

// check returns an error if the document of a change is of another version.
func check(c *Change, folded []byte, node, etag uint64) error {
	if etag != c.Etag || node != c.Node {
		return fmt.Errorf("change %d of %q has a document of etag %d: %w", c.Etag, folded, etag, errs.ErrCorrupt)
	}
	return nil
}

// isThere notes in c whether its document has expired, and reports whether the filter wants it.
func (f *Feed) isThere(c *Change, expired bool) bool {
	c.Expired = expired
	return !expired || f.filter.States
}

// Wait returns when Read, which has reached the newest change, may find more. It must be
// called outside the gate of the database.
//
// A feed always gets the channel to wait on before it reads: the first call only gets it
// and returns at once, and each later call waits on it and then gets the next one. So no
// commit between a read and the wait is missed.
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
	f.next, f.woken, f.ended = f.source.Hub.Await()
	return nil
}
