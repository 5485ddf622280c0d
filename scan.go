package jay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Scan says which documents DB.Documents walks over. The zero value means
// all of them.
type Scan struct {
	// Collection limits the walk to one collection; "@empty" is one too.
	Collection string
	// Prefix limits the walk to IDs that begin with it, compared as IDs are.
	Prefix string
	// Matches limits the walk to IDs whose part behind Prefix is like this
	// pattern, and Exclude leaves out those that are like this one. * stands for
	// any characters, ? for one, and | separates alternatives, as in RavenDB's
	// LoadStartingWith: "*-A|*-B". Patterns are compared as IDs are. Every ID
	// behind Prefix is looked at. At most 1,024 bytes each, else ErrUsage.
	Matches string
	Exclude string
	// After begins behind this ID, whether or not it is there: for paging.
	After string
	// Limit is the most documents to walk over; 0 means no limit.
	Limit int
}

// Documents walks over documents in the byte order of their folded IDs, so
// that users/10-A comes before users/2-A. All are as they were when the walk
// began. Each document belongs to the caller. A broken loop releases all it
// held; the error of a failed walk comes with a nil document, as its last
// pair.
//
// A collection is read as one range of documents where its IDs begin with its
// name, as Orders' orders/33-A does; the others cost a look-up each.
func (db *DB) Documents(ctx context.Context, s Scan) iter.Seq2[*Document, error] {
	return func(yield func(*Document, error) bool) {
		w, err := db.startScan(s, db.env.Engine.Snapshot)
		if err != nil {
			yield(nil, fmt.Errorf("documents: %w", err))
			return
		}
		defer w.close()
		for n := 0; s.Limit <= 0 || n < s.Limit; n++ {
			doc, err := w.next(ctx)
			if err != nil {
				yield(nil, fmt.Errorf("documents: %w", err))
				return
			}
			if doc == nil || !yield(doc, nil) {
				return
			}
		}
	}
}

// scan is a walk under way: over a range of documents, and over the members
// of a collection that are away from home, merged in the order of IDs.
type scan struct {
	db         *DB
	collection string // folded; "" for all
	want       wanted // documents that are to be copied; nil for all

	mu       sync.Mutex // guards what follows, against DB.Close
	snapshot storage.Reader
	owned    storage.Snapshot // to be closed with the walk, or nil
	home     storage.Iterator
	away     storage.Iterator // nil when all are at home
	homeOK   bool
	awayOK   bool
	skip     int              // length of an away key before its ID
	closed   error            // why it is closed; nil while it is open
	docs     storage.Iterator // over all documents, for those away; nil until needed
	awayKey  []byte           // scratch
	apart    int              // members in a row that did not stand next to each other
	spelling string           // of the collection in the last member
}

// startScan opens a walk over the documents of the snapshot that take takes.
func (db *DB) startScan(s Scan, take func() storage.Snapshot) (*scan, error) {
	if err := db.env.Enter(); err != nil {
		return nil, err
	}
	defer db.env.Exit()
	snapshot := take()
	w, err := db.newScan(s, snapshot)
	if err != nil {
		return nil, errors.Join(err, snapshot.Close())
	}
	w.owned = snapshot
	return w, nil
}

// newScan opens the iterators of s on a snapshot, which must outlive the walk.
func (db *DB) newScan(s Scan, snapshot storage.Reader) (*scan, error) {
	if err := metadata.CheckCollection(s.Collection); err != nil {
		return nil, err
	}
	prefix, after := db.env.Rules.Fold(s.Prefix), db.env.Rules.Fold(s.After)
	want, err := db.wantLike(s, len(prefix))
	if err != nil {
		return nil, err
	}
	w := &scan{db: db, snapshot: snapshot, want: want}
	base := ""
	if s.Collection != "" {
		w.collection = format.CollectionKey(s.Collection)
		base = w.collection + db.env.FoldedSeparator
	}

	if lo, hi, any := bounds([]byte{format.SpaceDocument}, base, prefix, after); any {
		if w.home, err = w.snapshot.Iterate(lo, hi); err != nil {
			return nil, errors.Join(err, w.Release(err))
		}
		w.homeOK = w.home.First()
	}
	if w.collection != "" {
		space := format.AppendKey(nil, format.SpaceMembers, w.collection)
		w.skip = len(space)
		if lo, hi, any := bounds(space, "", prefix, after); any {
			if w.away, err = w.snapshot.Iterate(lo, hi); err != nil {
				return nil, errors.Join(err, w.Release(err))
			}
			w.awayOK = w.away.First()
		}
	}

	db.env.Register(w)
	return w, nil
}

// wantLike returns what tells whether an ID is like s.Matches and not like
// s.Exclude, or nil if neither is given.
func (db *DB) wantLike(s Scan, prefixBytes int) (wanted, error) {
	matches, err := parseGlob(db.env.Rules.Fold(s.Matches))
	if err != nil {
		return nil, err
	}
	exclude, err := parseGlob(db.env.Rules.Fold(s.Exclude))
	if err != nil || matches == nil && exclude == nil {
		return nil, err
	}
	return func(folded []byte, _ *metadata.Header, _ []byte) bool {
		rest := string(folded[prefixBytes:])
		return (matches == nil || matches.match(rest)) && !exclude.match(rest)
	}, nil
}

// bounds returns the keys of the IDs in a key space that begin with both base
// and prefix and stand behind after. any is false if no ID can.
func bounds(space []byte, base, prefix, after string) (lo, hi []byte, any bool) {
	longer, shorter := base, prefix
	if len(shorter) > len(longer) {
		longer, shorter = shorter, longer
	}
	if longer[:len(shorter)] != shorter || strings.Contains(longer, "\x00") {
		return nil, nil, false
	}
	lo = append(append([]byte(nil), space...), longer...)
	hi = format.PrefixEnd(lo)
	if after != "" {
		behind := append(append(append([]byte(nil), space...), after...), 1)
		if bytes.Compare(behind, lo) > 0 {
			lo = behind
		}
	}
	if bytes.Compare(lo, hi) >= 0 {
		return nil, nil, false
	}
	return lo, hi, true
}

// next returns the next document, or nil at the end.
func (w *scan) next(ctx context.Context) (*Document, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed != nil {
		return nil, w.closed
	}
	for n := 1; w.homeOK || w.awayOK; n++ {
		if n%256 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		var doc *Document
		var err error
		if w.homeFirst() {
			doc, err = w.takeHome()
		} else {
			doc, err = w.takeAway()
		}
		if doc != nil || err != nil {
			return doc, err
		}
	}
	var err error
	if w.home != nil {
		err = w.home.Error()
	}
	if w.away != nil {
		err = errs.First(err, w.away.Error())
	}
	return nil, err
}

// headers calls fn with the next n documents under the home iterator, without
// copying them, and tells whether there are more. fn must not keep what it is
// given.
func (w *scan) headers(ctx context.Context, n int, fn func(id []byte, h *metadata.Header, size int)) (more bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed != nil {
		return false, w.closed
	}
	for ; n > 0 && w.homeOK; n-- {
		key, value := w.home.Key(), w.home.Value()
		id := key[1 : len(key)-1]
		h, _, err := metadata.Decode(value)
		if err != nil {
			return false, fmt.Errorf("document %q: %w", id, err)
		}
		fn(id, &h, len(value))
		w.homeOK = w.home.Next()
	}
	return w.homeOK, w.home.Error()
}

func (w *scan) homeFirst() bool {
	return w.homeOK && (!w.awayOK || bytes.Compare(w.home.Key()[1:], w.away.Key()[w.skip:]) < 0)
}

// takeHome returns the document under the home iterator, or nil if it belongs
// to another collection or is not wanted, and moves on.
func (w *scan) takeHome() (*Document, error) {
	key := w.home.Key()
	doc, err := w.take(key[1:len(key)-1], w.home.Value(), w.collection != "")
	w.homeOK = w.home.Next()
	return doc, err
}

// take copies a document if it is wanted and, with check, in the collection.
func (w *scan) take(id, value []byte, check bool) (*Document, error) {
	if w.want != nil {
		h, body, err := metadata.Decode(value)
		if err != nil {
			return nil, fmt.Errorf("document %q: %w", id, err)
		}
		if check && !w.isMember(h.Collection) || !w.want(id, &h, body) {
			return nil, nil
		}
		check = false
	}
	doc, err := w.db.copyDocument(id, value)
	if err == nil && check && !w.isMember(doc.header.Collection) {
		return nil, nil
	}
	return doc, err
}

// takeAway returns the document that the away iterator points at.
func (w *scan) takeAway() (*Document, error) {
	key := w.away.Key()
	doc, err := w.readAway(key[w.skip:])
	if err == ErrNotFound {
		err = fmt.Errorf("member %q of %q has no document: %w", key[w.skip:len(key)-1], w.collection, ErrCorrupt)
	}
	w.awayOK = w.away.Next()
	return doc, err
}

// maxApart is when a walk stops to hope that the next member is the next
// document.
const maxApart = 3

// readAway returns a member away from home. Members come in the order of
// their documents, so that an iterator often stands right before the next.
func (w *scan) readAway(id []byte) (*Document, error) {
	if w.docs == nil {
		var err error
		if w.docs, err = w.snapshot.Iterate([]byte{format.SpaceDocument}, []byte{format.SpaceDocument + 1}); err != nil {
			return nil, err
		}
	}
	found := w.apart < maxApart && w.docs.Valid() && w.docs.Next() && bytes.Equal(w.docs.Key()[1:], id)
	if w.apart++; found {
		w.apart = 0
	} else {
		w.awayKey = append(append(w.awayKey[:0], format.SpaceDocument), id...)
		if !w.docs.SeekGE(w.awayKey) || !bytes.Equal(w.docs.Key(), w.awayKey) {
			return nil, errs.First(w.docs.Error(), ErrNotFound)
		}
	}
	return w.take(id[:len(id)-1], w.docs.Value(), false)
}

// isMember tells whether a document's collection, as written, is the one that
// is walked over. Nearly all members have it in one spelling.
func (w *scan) isMember(name []byte) bool {
	if w.spelling != "" && string(name) == w.spelling {
		return true
	}
	if !sameCollection(name, w.collection) {
		return false
	}
	w.spelling = string(name)
	return true
}

// sameCollection compares a collection as written with a folded one.
func sameCollection(name []byte, folded string) bool {
	if len(name) == 0 {
		return folded == metadata.Empty
	}
	return string(name) == folded || ids.EqualFold(string(name), folded)
}

// close ends the walk.
func (w *scan) close() {
	// Nothing can be done about an iterator that cannot be closed; its read
	// errors have been returned.
	_ = w.Release(ErrClosed)
	w.db.env.Unregister(w) // last: Close waits for those that are held
}

// release implements holder.
func (w *scan) Release(cause error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed != nil {
		return nil
	}
	w.closed = cause
	var err error
	if w.home != nil {
		err = w.home.Close()
	}
	if w.away != nil {
		err = errors.Join(err, w.away.Close())
	}
	if w.docs != nil {
		err = errors.Join(err, w.docs.Close())
	}
	if w.owned != nil {
		err = errors.Join(err, w.owned.Close())
	}
	return err
}
