package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/jaydb/jay/internal/attachments"
	"github.com/jaydb/jay/internal/counters"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Source produces the operations of a backup from a snapshot, a block at a time. Each
// kind of key has its way into an incremental backup, which format.Spaces has:
//
//	documents            those that a record of a change names since the base; membership and what is due follow from them
//	records of changes   those since the base; the reader removes the ones that they replaced
//	revisions            those of the documents that have changed
//	chunks               those of streams that were begun since the base; streams do not change
//	entries of indexes   none: the reader builds the indexes anew
//	everything else      all of it
//
// It is not safe for concurrent use.
type Source struct {
	Etag uint64        // of the newest change in the snapshot
	Made format.Backup // what the database is to remember; without an ID

	env      *env.Env
	snapshot storage.Reader
	base     *format.Backup // nil for a full backup
	left     *LeftOut
	parts    []part
}

// part produces a part of the operations, some at each call.
type part interface {
	// next appends operations to w until it is full. done is true when there are no more.
	next(ctx context.Context, w *Writer) (done bool, err error)
	close() error
}

// NewSource prepares a backup of what a snapshot shows: a full one without a base, or
// what has changed since. It returns a *BaseError if that is not known. Close must
// follow.
func NewSource(e *env.Env, snapshot storage.Reader, base string) (*Source, error) {
	s := &Source{env: e, snapshot: snapshot}
	var err error
	if s.Etag, err = counters.NewestChange(e, snapshot); err != nil {
		return nil, err
	}
	if err := s.note(); err != nil {
		return nil, err
	}
	if base == "" {
		s.parts = s.full()
		return s, nil
	}
	if err := s.follow(base); err != nil {
		return nil, err
	}
	s.parts = s.since()
	return s, nil
}

// note finds what the next backup will need to know of this one.
func (s *Source) note() (err error) {
	s.Made = format.Backup{Etag: s.Etag}
	if s.Made.Rewritten, err = numberAt(s.snapshot, format.RewrittenName); err != nil {
		return err
	}
	if s.Made.Revised, err = numberAt(s.snapshot, format.RevisedName); err != nil {
		return err
	}
	if s.Made.Revisions, err = hasAny(s.snapshot, format.SpaceRevisions); err != nil {
		return err
	}
	if s.Made.Streams, err = attachments.NextStream(s.snapshot); err != nil {
		return err
	}
	// A stream that is being written may be completed later: those from it on belong
	// to the next backup.
	if s.left, err = FindLeftOut(s.snapshot); err != nil {
		return err
	}
	if uploads := s.left.uploads; len(uploads) > 0 {
		s.Made.Streams = min(s.Made.Streams, uploads[0])
	}
	return nil
}

// follow finds the base.
func (s *Source) follow(id string) error {
	known, err := Known(s.snapshot)
	if err != nil {
		return err
	}
	mark, err := counters.Mark(s.snapshot)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(known.Made, func(b format.Backup) bool { return b.ID == id })
	if i < 0 {
		return &BaseError{Base: id, Oldest: mark, Problem: fmt.Sprintf("this database has not made it, or it was not to be followed, or it is none of the last %d", MaxKnown)}
	}
	base := known.Made[i]
	if base.Etag < mark {
		return &BaseError{Base: id, Etag: base.Etag, Oldest: mark, Problem: fmt.Sprintf("it has etag %d, and records of deletions up to etag %d are gone: a backup from etag %d on could be followed", base.Etag, mark, mark)}
	}
	s.base = &base
	return nil
}

// Base returns the etag of the base, 0 for a full backup.
func (s *Source) Base() uint64 {
	if s.base == nil {
		return 0
	}
	return s.base.Etag
}

// full is all keys that are not made anew.
func (s *Source) full() (parts []part) {
	for _, r := range carried {
		parts = append(parts, &keys{from: s.snapshot, lo: r[0], hi: r[1], skip: s.left.Has})
	}
	return parts
}

// carried are the ranges of keys that a full backup has, and wholes those that an incremental
// one has whole. Keys of no space that is known are in both.
var (
	carried = without(format.NotCarried)
	wholes  = without(format.CarriedSinceBase, format.FollowsDocuments, format.NotCarried)
)

// without returns the ranges of all keys but those of the spaces that backups carry in one of
// these ways.
func without(ways ...format.BackupWay) (ranges [][2][]byte) {
	var lo []byte
	for _, s := range format.Spaces {
		if !slices.Contains(ways, s.Backup) {
			continue
		}
		if hi := []byte{s.First}; !bytes.Equal(lo, hi) {
			ranges = append(ranges, [2][]byte{lo, hi})
		}
		lo = []byte{s.First + 1}
	}
	return append(ranges, [2][]byte{lo, nil})
}

// changes are the parts of an incremental backup that have what has changed since its base in
// the spaces of format.CarriedSinceBase, in the order of the stream.
var changes = []struct {
	space byte
	part  func(s *Source) part // nil for none
}{
	{format.SpaceRevisions, (*Source).revised},
	{format.SpaceChanges, (*Source).changed},
	{format.SpaceDocument, (*Source).rewritten},
	{format.SpaceChunks, (*Source).streamed},
}

// since is what has changed since the base.
func (s *Source) since() (parts []part) {
	for _, r := range wholes {
		parts = append(parts, &keys{from: s.snapshot, lo: r[0], hi: r[1], clear: true, skip: s.left.Has})
	}
	for _, c := range changes {
		if p := c.part(s); p != nil {
			parts = append(parts, p)
		}
	}
	return parts
}

// revised is all revisions, if some have changed without a change of their document. Else those
// of documents that have changed come with these.
func (s *Source) revised() part {
	if s.Made.Revised == s.base.Revised {
		return nil
	}
	return &keys{from: s.snapshot, lo: []byte{format.SpaceRevisions}, hi: []byte{format.SpaceRevisions + 1}, clear: true}
}

// changed is the records of changes, with the documents that they name.
func (s *Source) changed() part {
	return &changed{source: s, revisions: s.Made.Revised == s.base.Revised && (s.Made.Revisions || s.base.Revisions)}
}

// rewritten is the documents with flags, if some have changed without a change.
func (s *Source) rewritten() part {
	if s.Made.Rewritten == s.base.Rewritten {
		return nil
	}
	return &keys{from: s.snapshot, lo: []byte{format.SpaceDocument}, hi: []byte{format.SpaceDocument + 1}, take: isFlagged}
}

// streamed is the chunks of the streams that were begun since.
func (s *Source) streamed() part {
	return &keys{from: s.snapshot, lo: format.ChunkKey(s.base.Streams, 0), hi: []byte{format.SpaceChunks + 1}, skip: s.left.Has}
}

// isFlagged reports whether a document has a flag that changes without an etag.
func isFlagged(record []byte) (bool, error) {
	h, _, err := metadata.Decode(record)
	return h.Timed || h.Revision != 0, err
}

// Next appends operations until w is full, and reports whether there are no more.
func (s *Source) Next(ctx context.Context, w *Writer) (done bool, err error) {
	for !w.Full() {
		if len(s.parts) == 0 {
			return true, nil
		}
		done, err := s.parts[0].next(ctx, w)
		if err != nil {
			return false, err
		}
		if done {
			if err := s.parts[0].close(); err != nil {
				return false, err
			}
			s.parts = s.parts[1:]
		}
	}
	return false, nil
}

// Close closes what is open. The snapshot is the caller's.
func (s *Source) Close() (err error) {
	for _, p := range s.parts {
		err = errs.First(err, p.close())
	}
	s.parts = nil
	return err
}

// checkEvery is after how many keys the context is looked at.
const checkEvery = 1024

// keys sets all keys of a range.
type keys struct {
	from   storage.Reader
	lo, hi []byte
	clear  bool                             // first
	skip   func(key []byte) bool            // or nil
	take   func(value []byte) (bool, error) // or nil
	it     storage.Iterator
}

func (k *keys) next(ctx context.Context, w *Writer) (done bool, err error) {
	ok := true
	if k.it == nil {
		if k.it, err = k.from.Iterate(k.lo, k.hi); err != nil {
			return false, err
		}
		if k.clear {
			w.Clear(k.lo, k.hi)
		}
		ok = k.it.First()
	} else {
		ok = k.it.Next()
	}
	for n := 1; ok; ok = k.it.Next() {
		if n++; n%checkEvery == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		if k.skip != nil && k.skip(k.it.Key()) {
			continue
		}
		if k.take != nil {
			if take, err := k.take(k.it.Value()); err != nil {
				return false, fmt.Errorf("key %q: %w", k.it.Key(), err)
			} else if !take {
				continue
			}
		}
		w.Set(k.it.Key(), k.it.Value())
		if w.Full() {
			return false, nil
		}
	}
	return true, k.it.Error()
}

func (k *keys) close() error { return closeOnce(&k.it) }

// closeOnce closes an iterator, if there is one, and takes it away: Pebble uses an iterator
// that is closed again.
func closeOnce(it *storage.Iterator) (err error) {
	if *it != nil {
		err, *it = (*it).Close(), nil
	}
	return err
}

// changed is the documents that have changed since the base, and their records of
// changes, in the order of etags.
type changed struct {
	source    *Source
	revisions bool // there may be some, and those of these documents are needed
	nodes     []uint64
	it        storage.Iterator
	begun     bool
	kept      []*keys // revisions of the document that was written last; a document may have many
}

func (c *changed) next(ctx context.Context, w *Writer) (done bool, err error) {
	if !c.begun {
		c.begun = true
		for node := range c.source.env.Origins {
			c.nodes = append(c.nodes, node)
		}
		slices.Sort(c.nodes)
	}
	for n := 1; ; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		if done, err := c.writeKept(ctx, w); err != nil || !done {
			return false, err
		}
		if w.Full() {
			return false, nil
		}
		ok, err := c.advance()
		if err != nil || !ok {
			return !ok, err
		}
		if err := c.write(w, c.it.Key(), c.it.Value()); err != nil {
			return false, err
		}
	}
}

// writeKept writes the revisions in kept. It reports whether it has come to their end.
func (c *changed) writeKept(ctx context.Context, w *Writer) (done bool, err error) {
	for ; len(c.kept) > 0; c.kept = c.kept[1:] {
		if done, err := c.kept[0].next(ctx, w); err != nil || !done {
			return false, err
		}
		if err := c.kept[0].close(); err != nil {
			return false, err
		}
	}
	return true, nil
}

// advance moves to the next record of a change. It reports false at the end.
func (c *changed) advance() (bool, error) {
	for {
		if c.it != nil {
			if c.it.Next() {
				return true, nil
			}
			if err := errs.First(c.it.Error(), closeOnce(&c.it)); err != nil {
				return false, err
			}
		}
		if len(c.nodes) == 0 {
			return false, nil
		}
		lo, hi := format.ChangeKey(nil, c.nodes[0], c.source.base.Etag+1), format.ChangeKey(nil, c.nodes[0], math.MaxUint64)
		c.nodes = c.nodes[1:]
		var err error
		if c.it, err = c.source.snapshot.Iterate(lo, hi); err != nil {
			return false, err
		}
		if c.it.First() {
			return true, nil
		}
	}
}

// write writes a record of a change, and the document that it names.
func (c *changed) write(w *Writer, key, value []byte) error {
	change, err := format.SplitChange(value)
	if err != nil {
		return err
	}
	w.Set(key, value)
	kind, folded := change.Kind, string(change.FoldedID)
	document := format.NewDocumentKey(folded)
	record, closer, err := c.source.snapshot.Get(document)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		if kind != format.ChangeDelete {
			return fmt.Errorf("document %q: a change names it, and it is not there: %w", folded, errs.ErrCorrupt)
		}
		w.Delete(document)
	case err != nil:
		return err
	case kind == format.ChangeDelete:
		// It was made again, and a later record names it.
		return closer.Close()
	default:
		w.Set(document, record)
		if err := closer.Close(); err != nil {
			return err
		}
	}
	if !c.revisions {
		return nil
	}
	deleted, history := format.DeletedKey(nil, folded), format.HistoryKey(nil, folded)
	c.kept = append(c.kept[:0],
		&keys{from: c.source.snapshot, lo: deleted, hi: append(bytes.Clone(deleted), 0), clear: true},
		&keys{from: c.source.snapshot, lo: history, hi: format.PrefixEnd(history), clear: true})
	return nil
}

func (c *changed) close() (err error) {
	for _, k := range c.kept {
		err = errs.First(err, k.close())
	}
	return errs.First(err, closeOnce(&c.it))
}

// numberAt returns a number under 'm', 0 if there is none.
func numberAt(r docs.Getter, name string) (int64, error) {
	n, _, err := env.NumberAt(r, recordKey(name))
	return int64(n), err
}

// hasAny reports whether a key space has a key.
func hasAny(r storage.Reader, space byte) (found bool, err error) {
	it, err := r.Iterate([]byte{space}, []byte{space + 1})
	if err != nil {
		return false, err
	}
	found = it.First()
	return found, errs.First(it.Error(), it.Close())
}

// streams returns the streams that the keys with a prefix name, ascending.
func streams(r storage.Reader, prefix []byte) (all []uint64, err error) {
	it, err := r.Iterate(prefix, format.PrefixEnd(prefix))
	if err != nil {
		return nil, err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		stream, err := format.StreamOf(it.Key())
		if err != nil {
			return nil, err
		}
		all = append(all, stream)
	}
	return all, it.Error()
}

var _ io.Closer = (*Source)(nil)
