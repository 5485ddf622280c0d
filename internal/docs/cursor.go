package docs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Filter reports whether a stored document is to be copied. Its arguments are valid
// until it returns.
type Filter func(folded []byte, h *metadata.Header, body []byte) bool

// Cursor iterates over documents in the order of their folded IDs, or in the opposite
// one. It merges two sources: the documents clustered under the prefix of their collection, which are
// one key range, and the other documents of the collection, which have a membership
// entry each.
type Cursor struct {
	reader     *Reader
	collection string // folded; "" for all
	Want       Filter // documents to be copied; nil for all
	moment     time.Time

	// Interrupt, if it is not nil, is called by Next before each document. Next returns its error, and may then be called again.
	Interrupt func() error

	mu          sync.Mutex // guards what follows, against DB.Close
	snapshot    storage.Reader
	owned       storage.Snapshot // closed with the cursor; nil if the caller owns the snapshot
	clustered   storage.Iterator
	others      storage.Iterator // over membership entries; nil for a cursor over all collections
	clusteredOK bool
	othersOK    bool
	failed      error            // what ended an iterator before its end; the Cursor ends with it
	skip        int              // length of a membership key before its ID
	closed      error            // why it is closed; nil while it is open
	docs        storage.Iterator // over all documents, to find those of others; nil until needed
	otherKey    []byte           // scratch
	apart       int              // consecutive members whose documents were not adjacent
	member      Membership
	reverse     bool // from the greatest ID to the least
}

// Scan opens a Cursor over the documents of s in the snapshot that take returns.
func (r *Reader) Scan(s Range, take func() storage.Snapshot) (*Cursor, error) {
	snapshot := take()
	w, err := r.NewCursor(s, snapshot)
	if err != nil {
		return nil, errors.Join(err, snapshot.Close())
	}
	w.owned = snapshot
	return w, nil
}

// NewCursor opens the iterators of s on a snapshot, which must outlive the Cursor.
func (r *Reader) NewCursor(s Range, snapshot storage.Reader) (*Cursor, error) {
	if err := metadata.CheckCollection(s.Collection); err != nil {
		return nil, err
	}
	prefix, after := r.env.Rules.Fold(s.Prefix), r.env.Rules.Fold(s.After)
	want, err := r.wantLike(s, len(prefix))
	if err != nil {
		return nil, err
	}
	w := &Cursor{reader: r, snapshot: snapshot, Want: want, moment: s.Moment, reverse: s.Reverse}
	limits := idRange{prefix: prefix, after: after, low: s.Low, high: s.High, reverse: s.Reverse}
	// Clustered documents are one range: that of the collection's prefix.
	base := ""
	if s.Collection != "" {
		w.collection = format.CollectionKey(s.Collection)
		w.member = MembershipOf(w.collection)
		base = w.collection + r.env.FoldedSeparator
	}

	if lo, hi, any := limits.bounds([]byte{format.SpaceDocument}, base); any {
		if w.clustered, err = w.snapshot.Iterate(lo, hi); err != nil {
			return nil, errors.Join(err, w.Release(err))
		}
		w.clusteredOK = w.first(w.clustered)
	}
	// The others have a membership entry each, in the same order of IDs.
	if w.collection != "" {
		space := format.AppendKey(nil, format.SpaceMembers, w.collection)
		w.skip = len(space)
		if lo, hi, any := limits.bounds(space, ""); any {
			if w.others, err = w.snapshot.Iterate(lo, hi); err != nil {
				return nil, errors.Join(err, w.Release(err))
			}
			w.othersOK = w.first(w.others)
		}
	}

	r.env.Register(w)
	return w, nil
}

// PayWith makes the caller of a context pay for long documents: see Reader.For.
func (w *Cursor) PayWith(ctx context.Context) { w.reader = w.reader.For(ctx) }

// wantLike returns a Filter for IDs that match s.Matches and do not match
// s.Exclude, or nil if neither is given.
func (r *Reader) wantLike(s Range, prefixBytes int) (Filter, error) {
	matches, err := parseGlob(r.env.Rules.Fold(s.Matches))
	if err != nil {
		return nil, err
	}
	exclude, err := parseGlob(r.env.Rules.Fold(s.Exclude))
	if err != nil || matches == nil && exclude == nil {
		return nil, err
	}
	return func(folded []byte, _ *metadata.Header, _ []byte) bool {
		rest := string(folded[prefixBytes:])
		return (matches == nil || matches.match(rest)) && !exclude.match(rest)
	}, nil
}

// first moves an iterator to where the Cursor begins.
func (w *Cursor) first(it storage.Iterator) bool {
	if w.reverse {
		return w.moved(it, it.Last())
	}
	return w.moved(it, it.First())
}

// advance moves an iterator on, in the direction of the Cursor.
func (w *Cursor) advance(it storage.Iterator) bool {
	if w.reverse {
		return w.moved(it, it.Prev())
	}
	return w.moved(it, it.Next())
}

// moved keeps the error of an iterator that has failed. A snapshot may fail for one iterator
// only, such as one that needs another page of a store on a server. What the other iterator
// still shows must not be returned: a caller would take it for all up to there.
func (w *Cursor) moved(it storage.Iterator, ok bool) bool {
	if !ok {
		w.failed = errs.First(w.failed, it.Error())
	}
	return ok
}

// going reports whether there may be another document.
func (w *Cursor) going() bool { return w.failed == nil && (w.clusteredOK || w.othersOK) }

// idRange is the range of IDs that a Cursor is bounded by: see Range.
type idRange struct {
	prefix, after string
	low, high     string
	reverse       bool
}

// bounds returns the keys of the IDs in a key space that begin with both base and
// the prefix and are within the other bounds. any is false if no ID can be.
func (r *idRange) bounds(space []byte, base string) (lo, hi []byte, any bool) {
	longer, shorter := base, r.prefix
	if len(shorter) > len(longer) {
		longer, shorter = shorter, longer
	}
	if longer[:len(shorter)] != shorter || strings.Contains(longer, "\x00") {
		return nil, nil, false
	}
	key := func(id string, end ...byte) []byte { return append(append(bytes.Clone(space), id...), end...) }
	lo = key(longer)
	hi = format.PrefixEnd(lo)
	if r.low != "" {
		lo = later(lo, key(r.low))
	}
	if r.high != "" {
		hi = earlier(hi, key(r.high))
	}
	switch {
	case r.after == "":
	case r.reverse:
		hi = earlier(hi, key(r.after, 0))
	default:
		lo = later(lo, key(r.after, 1))
	}
	if bytes.Compare(lo, hi) >= 0 {
		return nil, nil, false
	}
	return lo, hi, true
}

func later(a, b []byte) []byte {
	if bytes.Compare(a, b) > 0 {
		return a
	}
	return b
}

func earlier(a, b []byte) []byte {
	if bytes.Compare(a, b) < 0 {
		return a
	}
	return b
}

// Next returns the next document, or nil at the end.
func (w *Cursor) Next(ctx context.Context) (*Document, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed != nil {
		return nil, w.closed
	}
	for n := 1; w.going(); n++ {
		if n%256 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		if w.Interrupt != nil {
			if err := w.Interrupt(); err != nil {
				return nil, err
			}
		}
		if doc, err := w.takeNext(); doc != nil || err != nil {
			return doc, err
		}
	}
	return nil, w.failed
}

// Peek calls fn with the header of the next document, which it does not copy, and reports
// whether there is one. fn must not keep its argument.
func (w *Cursor) Peek(ctx context.Context, fn func(h *metadata.Header)) (found bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed != nil {
		return false, w.closed
	}
	want := w.Want
	defer func() { w.Want = want }()
	w.Want = func(id []byte, h *metadata.Header, body []byte) bool {
		if found = want == nil || want(id, h, body); found {
			fn(h)
		}
		return false // so that it is not copied
	}
	for !found && w.going() {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if _, err := w.takeNext(); err != nil {
			return false, err
		}
	}
	if found {
		return true, nil
	}
	return false, w.failed
}

// takeNext returns the next document under the iterators, or nil if it is not wanted.
func (w *Cursor) takeNext() (*Document, error) {
	if w.clusteredFirst() {
		return w.takeClustered()
	}
	return w.takeOther()
}

// Records calls fn with the next documents as they are stored, until it returns false,
// and reports whether there may be more. Nothing is copied, and nothing decoded: the
// Filter is not asked, and a document may be of another collection. Several goroutines
// may share the documents of a Cursor.
func (w *Cursor) Records(ctx context.Context, fn func(folded, record []byte) bool) (more bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed != nil {
		return false, w.closed
	}
	for going := true; going; {
		switch {
		case !w.going():
			return false, w.failed
		case w.clusteredFirst():
			key := w.clustered.Key()
			going = fn(key[1:len(key)-1], w.clustered.Value())
			w.clusteredOK = w.advance(w.clustered)
		default:
			id := w.others.Key()[w.skip:]
			if err := w.findOther(id); err != nil {
				return false, w.otherError(id, err)
			}
			going = fn(id[:len(id)-1], w.docs.Value())
			w.othersOK = w.advance(w.others)
		}
	}
	return true, nil
}

// Headers calls fn with the next n documents under the clustered iterator, without
// copying them, and reports whether there are more. fn must not keep its arguments.
func (w *Cursor) Headers(ctx context.Context, n int, fn func(id []byte, h *metadata.Header, size int)) (more bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed != nil {
		return false, w.closed
	}
	for ; n > 0 && w.clusteredOK; n-- {
		key, value := w.clustered.Key(), w.clustered.Value()
		id := key[1 : len(key)-1]
		h, _, err := metadata.Decode(value)
		if err != nil {
			return false, fmt.Errorf("document %q: %w", id, err)
		}
		fn(id, &h, len(value))
		w.clusteredOK = w.clustered.Next()
	}
	return w.clusteredOK, w.clustered.Error()
}

// Use calls fn with the snapshot of the Cursor, which is not closed meanwhile.
func (w *Cursor) Use(fn func(storage.Reader) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed != nil {
		return w.closed
	}
	return fn(w.snapshot)
}

func (w *Cursor) clusteredFirst() bool {
	if !w.clusteredOK || !w.othersOK {
		return w.clusteredOK
	}
	return (bytes.Compare(w.clustered.Key()[1:], w.others.Key()[w.skip:]) < 0) != w.reverse
}

// takeClustered returns the document under the clustered iterator, or nil if it
// belongs to another collection or is not wanted, and advances the iterator.
func (w *Cursor) takeClustered() (*Document, error) {
	key := w.clustered.Key()
	doc, err := w.take(key[1:len(key)-1], w.clustered.Value(), w.collection != "")
	w.clusteredOK = w.advance(w.clustered)
	return doc, err
}

// take copies a document if it is wanted and, with check, in the collection.
func (w *Cursor) take(id, value []byte, check bool) (*Document, error) {
	if w.Want != nil || !w.moment.IsZero() {
		h, body, err := metadata.Decode(value)
		if err != nil {
			return nil, fmt.Errorf("document %q: %w", id, err)
		}
		if check && !w.member.Has(h.Collection) || IsGone(&h, w.moment) || w.Want != nil && !w.Want(id, &h, body) {
			return nil, nil
		}
		check = false
	}
	doc, err := w.reader.CopyDocument(id, value)
	if err == nil && check && !w.member.Has(doc.bytes(doc.collection)) {
		return nil, nil
	}
	return doc, err
}

// takeOther returns the document of the membership entry under the others iterator,
// and advances the iterator.
func (w *Cursor) takeOther() (*Document, error) {
	id := w.others.Key()[w.skip:]
	var doc *Document
	err := w.findOther(id)
	if err == nil {
		doc, err = w.take(id[:len(id)-1], w.docs.Value(), false)
	}
	if err != nil {
		err = w.otherError(id, err)
	}
	w.othersOK = w.advance(w.others)
	return doc, err
}

// otherError makes a document that is missing damage.
func (w *Cursor) otherError(id []byte, err error) error {
	if err == errs.ErrNotFound {
		return fmt.Errorf("member %q of %q has no document: %w", id[:len(id)-1], w.collection, storage.ErrCorrupt)
	}
	return err
}

// maxApart is the number of non-adjacent documents in a row after which the cursor
// seeks every document, and no longer tries the next one first.
const maxApart = 3

// findOther moves w.docs to a document that is not clustered. Members come in the order of
// their documents, so that the iterator often stands right before the next one: a
// step is then much cheaper than a seek.
func (w *Cursor) findOther(id []byte) error {
	if w.docs == nil {
		var err error
		if w.docs, err = w.snapshot.Iterate([]byte{format.SpaceDocument}, []byte{format.SpaceDocument + 1}); err != nil {
			return err
		}
	}
	found := w.apart < maxApart && w.docs.Valid() && w.advance(w.docs) && bytes.Equal(w.docs.Key()[1:], id)
	if w.apart++; found {
		w.apart = 0
	} else {
		w.otherKey = append(append(w.otherKey[:0], format.SpaceDocument), id...)
		if !w.docs.SeekGE(w.otherKey) || !bytes.Equal(w.docs.Key(), w.otherKey) {
			return errs.First(w.docs.Error(), errs.ErrNotFound)
		}
	}
	return nil
}

// Membership decides whether documents are in a collection. It is not safe for concurrent use.
type Membership struct {
	collection string // folded; "" for all documents
	name       string // the collection as the last member has it
}

// MembershipOf returns the Membership of a folded collection; "" is all documents.
func MembershipOf(collection string) Membership { return Membership{collection: collection} }

// Has reports whether a document whose collection is written so is in it. Nearly all members have the collection
// in the same case, so the last name is kept and compared first.
func (m *Membership) Has(name []byte) bool {
	if m.collection == "" || m.name != "" && string(name) == m.name {
		return true
	}
	if !SameCollection(name, m.collection) {
		return false
	}
	m.name = string(name)
	return true
}

// SameCollection compares a collection as written with a folded one.
func SameCollection(name []byte, folded string) bool {
	if len(name) == 0 {
		return folded == metadata.Empty
	}
	return string(name) == folded || ids.EqualFold(string(name), folded)
}

// Close releases the cursor.
func (w *Cursor) Close() {
	// Nothing can be done about an iterator that cannot be closed; its read
	// errors have been returned.
	_ = w.Release(errs.ErrClosed)
	w.reader.env.Unregister(w) // last: Close of the database waits for registered handles
}

// Release implements env.Handle.
func (w *Cursor) Release(cause error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed != nil {
		return nil
	}
	w.closed = cause
	var err error
	if w.clustered != nil {
		err = w.clustered.Close()
	}
	if w.others != nil {
		err = errors.Join(err, w.others.Close())
	}
	if w.docs != nil {
		err = errors.Join(err, w.docs.Close())
	}
	if w.owned != nil {
		err = errors.Join(err, w.owned.Close())
	}
	return err
}

// Range selects the documents of a Cursor: see Scan of package jay.
type Range struct {
	Collection string
	Prefix     string
	Matches    string // alternatives; "" for all
	Exclude    string
	After      string
	Reverse    bool // from the greatest ID to the least

	// Moment is the instant at which documents that have expired are left out; zero for
	// none: see Reader.Moment.
	Moment time.Time

	// Low and High bound the keys of the folded IDs, each an ID and 00: from Low up to
	// but not including High. "" is no bound.
	Low, High string
}
