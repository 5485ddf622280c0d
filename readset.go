package jay

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// readSet is the read set of a transaction: the commit checks that it is unchanged.
type readSet struct {
	versions map[string]version // by folded ID
	walks    []*rangeRead

	order []string // the IDs of versions, sorted: look-ups in ascending order are cheaper
	after uint64   // changes up to this etag were found to touch no range
}

// version is the version that a document was read in. The zero value means that it
// did not exist.
type version struct{ node, etag uint64 }

// rangeRead is a range of documents that was read. Texts are folded.
type rangeRead struct {
	collection string // "" for all
	named      string // the collection as the caller wrote it
	prefix     string
	after      string
	last       string // where the iteration stopped; "" if it reached the end
}

// saw adds a document to the read set, found or missing. A transaction that cannot
// write has nothing to check at its end, and records nothing: it may read any
// number of documents.
func (t *Tx) saw(folded string, v version) {
	if t.writable {
		t.reads.document(folded, v)
	}
}

// document records the version of a document. The first one counts: the snapshot
// never changes.
func (f *readSet) document(folded string, v version) {
	if f.versions == nil {
		f.versions = make(map[string]version)
	}
	f.versions[folded] = v
}

// covers reports whether a change to a document may have changed the range. HiLo
// documents, which drawing IDs changes at any time, count only for ranges over
// their collection or a prefix.
func (w *rangeRead) covers(collection, folded string) bool {
	if collection == format.HiLoCollection && w.collection == "" && w.prefix == "" {
		return false
	}
	return (w.collection == "" || w.collection == collection) &&
		strings.HasPrefix(folded, w.prefix) &&
		folded > w.after && (w.last == "" || folded <= w.last)
}

// prepare does the part of the check that needs no lock: it sorts the IDs, and
// checks the changes since the snapshot, so that the commit has only the newest
// changes to check.
func (f *readSet) prepare(ctx context.Context, db *DB, snapshot storage.Snapshot) error {
	f.order = f.order[:0]
	for id := range f.versions {
		f.order = append(f.order, id)
	}
	slices.Sort(f.order)
	if len(f.walks) == 0 {
		return nil
	}
	last, err := lastEtag(snapshot, db.env.Node)
	if err != nil {
		return err
	}
	f.after = last
	if err := ctx.Err(); err != nil {
		return err
	}
	latest := db.env.Engine.Latest()
	return errs.First(f.checkWalks(db, latest), latest.Close())
}

// check compares the state that a transaction commits on with the read set.
func (f *readSet) check(t *transaction) error {
	for _, id := range f.order {
		now, err := t.version(id)
		if err != nil {
			return err
		}
		if seen := f.versions[id]; now != seen {
			return lostError{&ConflictError{ID: t.written(id), Expected: t.db.versionText(seen), Actual: t.db.versionText(now)}}
		}
	}
	if len(f.walks) == 0 {
		return nil
	}
	return f.checkWalks(t.db, t.tx)
}

// versionText returns the change vector of a version, "" for a missing document.
func (db *DB) versionText(v version) string {
	if v == (version{}) {
		return ""
	}
	return db.env.ChangeVector(v.node, v.etag)
}

// checkWalks looks for changes after f.after that touch a range read. Every change
// of a document has an entry, and the newest is never removed.
func (f *readSet) checkWalks(db *DB, r interface {
	docs.Getter
	Iterate(lo, hi []byte) (storage.Iterator, error)
}) (err error) {
	it, err := r.Iterate(format.ChangeKey(nil, db.env.Node, f.after+1), format.ChangeKey(nil, db.env.Node, math.MaxUint64))
	if err != nil {
		return err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	after := f.after
	for ok := it.First(); ok; ok = it.Next() {
		c, err := format.DecodeChange(it.Value())
		if err != nil {
			return err
		}
		if after, err = format.EtagOf(it.Key()); err != nil {
			return err
		}
		for _, w := range f.walks {
			if w.covers(format.CollectionKey(c.Collection), c.FoldedID) {
				return lostError{&ConflictError{ID: writtenIn(r, c.FoldedID), Walk: w.String(), Actual: db.env.ChangeVector(db.env.Node, after)}}
			}
		}
	}
	f.after = after
	return it.Error()
}

// String describes the range.
func (w *rangeRead) String() string {
	text := "documents"
	if w.collection != "" {
		text = fmt.Sprintf("collection %.100s", cmp.Or(w.named, w.collection))
	}
	if w.prefix != "" {
		text += fmt.Sprintf(" with prefix %.100q", w.prefix)
	}
	return text
}

// version returns the version of a document that a transaction commits on.
func (t *transaction) version(folded string) (version, error) {
	t.key = format.DocumentKey(t.key[:0], folded)
	return versionAt(t.tx, t.key)
}

// versionAt returns the version of the document at a key, or none if there is none.
func versionAt(r docs.Getter, key []byte) (version, error) {
	record, closer, err := r.Get(key)
	if err == storage.ErrNotFound {
		return version{}, nil
	}
	if err != nil {
		return version{}, err
	}
	h, _, err := metadata.Decode(record)
	return version{h.Node, h.Etag}, errs.First(err, closer.Close())
}

// lastEtag returns the etag of the last change that r sees of a node.
func lastEtag(r storage.Reader, node uint64) (uint64, error) {
	last, err := lastKey(r, format.ChangeKey(nil, node, 0)[:5])
	if err != nil || last == nil {
		return 0, err
	}
	return format.EtagOf(last)
}
