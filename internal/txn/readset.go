package txn

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/counters"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/turns"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

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

// checkWalks looks for changes after f.after that touch a range read. The newest
// change of each document has an entry; that of a deletion stays at least as long
// as the transaction: see begin.
func (f *readSet) checkWalks(e *env.Env, r interface {
	docs.Getter
	Iterate(lo, hi []byte) (storage.Iterator, error)
}) (err error) {
	it, err := r.Iterate(format.ChangeKey(nil, e.Node, f.after+1), format.ChangeKey(nil, e.Node, math.MaxUint64))
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
				conflict := &metadata.ConflictError{ID: write.WrittenIn(r, c.FoldedID), Walk: w.String()}
				if c.Kind != format.ChangeDelete {
					conflict.Actual = e.ChangeVector(e.Node, after)
				}
				return write.LostError{Cause: conflict, Over: turns.Range(w.collection, w.prefix)}
			}
		}
	}
	f.after = after
	return it.Error()
}

// check compares the state that a transaction commits on with the read set.
func (f *readSet) check(t *write.Txn) error {
	for _, id := range f.order {
		if err := t.CheckRead(id); err != nil {
			return err
		}
		now, err := t.AliveVersion(id)
		if err != nil {
			return err
		}
		if seen := f.versions[id]; now != seen {
			conflict := &metadata.ConflictError{ID: t.Written(id), Expected: t.Writer.VersionText(seen), Actual: t.Writer.VersionText(now)}
			return write.LostError{Cause: conflict, Over: turns.Document(id)}
		}
	}
	if len(f.walks) == 0 {
		return nil
	}
	for _, w := range f.walks {
		if err := t.CheckReadRange(w.covers); err != nil {
			return err
		}
	}
	mark, err := counters.Mark(t.Tx)
	if err != nil {
		return err
	}
	if mark > f.begun {
		// A deletion since the snapshot may be without a record. This process keeps
		// those that its transactions need (horizon.Hold); another one may not.
		return write.LostError{Cause: &metadata.ConflictError{Walk: f.walks[0].String(), Actual: t.Writer.Env.ChangeVector(t.Writer.Env.Node, mark)}}
	}
	return f.checkWalks(t.Writer.Env, t.Tx)
}

// prepare does the part of the check that needs no lock: it sorts the IDs, and
// checks the changes since the snapshot, so that the commit has only the newest
// changes to check.
func (f *readSet) prepare(ctx context.Context, e *env.Env, snapshot storage.Snapshot) error {
	f.order = f.order[:0]
	for id := range f.versions {
		f.order = append(f.order, id)
	}
	slices.Sort(f.order)
	if len(f.walks) == 0 {
		return nil
	}
	last, err := counters.NewestChange(e, snapshot)
	if err != nil {
		return err
	}
	f.begun, f.after = last, last
	if err := ctx.Err(); err != nil || e.Engine.Shared() {
		// A shared engine has few snapshots, and this transaction holds one: if all that hold one
		// wanted another, each would wait for the others.
		return err
	}
	latest := e.Engine.Latest()
	return errs.First(f.checkWalks(e, latest), latest.Close())
}

// covers reports whether a change to a document may have changed the range. HiLo
// documents, which drawing IDs changes at any time, count only for ranges over
// their collection or a prefix.
func (w *rangeRead) covers(collection, folded string) bool {
	if collection == format.HiLoCollection && w.collection == "" && w.prefix == "" {
		return false
	}
	if w.collection != "" && w.collection != collection || !strings.HasPrefix(folded, w.prefix) || folded < w.low || w.high != "" && folded > w.high {
		return false
	}
	if w.reverse {
		return (w.after == "" || folded < w.after) && folded >= w.last
	}
	return folded > w.after && (w.last == "" || folded <= w.last)
}

// document records the version of a document. The first one counts: the snapshot
// never changes.
func (f *readSet) document(folded string, v write.Version) {
	if f.versions == nil {
		f.versions = make(map[string]write.Version)
	}
	f.versions[folded] = v
}

// rangeRead is a range of documents that was read. Texts are folded.
type rangeRead struct {
	collection string // "" for all
	named      string // the collection as the caller wrote it
	prefix     string
	after      string
	last       string // where the iteration stopped; "" if it reached the end
	reverse    bool   // from the greatest ID to the least
	low, high  string // the least and the greatest ID that it looked at; "" for no bound
}

// readSet is the read set of a transaction: the commit checks that it is unchanged.
type readSet struct {
	versions map[string]write.Version // by folded ID
	walks    []*rangeRead

	order []string // the IDs of versions, sorted: look-ups in ascending order are cheaper
	begun uint64   // newest change that the snapshot sees
	after uint64   // changes up to this etag were found to touch no range
}
