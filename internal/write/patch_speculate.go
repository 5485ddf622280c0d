package write

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/internal/schemas"
	"github.com/jaydb/jay/internal/turns"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/patch"
	"github.com/jaydb/jay/schema"
	"github.com/jaydb/jay/storage"
)

// ErrStale ends a transaction that found another version than the one that was
// patched.
var ErrStale = errors.New("a document has changed since it was patched")

const (
	// MaxWorkHere is the most units of work (patch.Limits.MaxWork) that a patch
	// may take in a transaction: that of a document of some KiB, in about 0.1 ms.
	MaxWorkHere = 128 << 10

	// MaxPatchesHere is the most patches that are made in one transaction.
	MaxPatchesHere = 8
)

// MaxPatchedBytes is how many bytes of bodies the patches of one transaction may
// make. It is the limit of what a transaction may stage, which would be noticed
// only when all of the bodies are in memory. A variable for tests.
var MaxPatchedBytes = storage.MaxTxBytes

// speculation is the result of a patch, computed before the transaction. It is
// valid if the transaction finds the same version of the document.
type speculation struct {
	made    bool
	watch   storage.WriteTracker // from before the document was read, nil if after writes it
	of      Version              // of the document; none if after writes it
	header  metadata.Header      // of the document that was read
	after   *Op                  // of the same batch, or nil
	base    []byte               // the document's body
	Body    []byte
	changed bool
	err     error // the edits cannot be made

	folded  string // folded collection of the document
	indexed *catalog.Collection
	entries *catalog.Entries // of body
	refused error            // why the indexes refuse body
	rule    *schemas.Rule    // of the collection, that body was checked against; nil for none
	unfit   *schema.Error    // what body violates in it
}

// Speculations are the speculative results of the patches of one write.
type Speculations struct {
	writer *Writer
	Ops    []*Op
	watch  storage.WriteTracker // of the documents that the newest Again has read
	caller turns.Caller         // in line for the documents whose patches have lost
}

// SpeculatePatches computes the patches among ops, or returns nil if there are
// none.
func (w *Writer) SpeculatePatches(ctx context.Context, ops []*Op) (*Speculations, error) {
	caller, found := w.Lines.Worker(), false
	for _, o := range ops {
		if o.Verb.Edits() {
			found = true
			_, met := caller.Meets(turns.Doc{ID: o.FoldedID})
			o.Patching.Guess, o.Patching.stale = speculation{}, met
		}
	}
	if !found {
		return nil, nil
	}
	g := &Speculations{writer: w, Ops: ops, caller: caller}
	if err := g.Again(ctx); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// Close ends the turns, for the next patches of the same documents.
func (g *Speculations) Close() {
	if g == nil {
		return
	}
	g.caller.Leave()
	if g.watch != nil {
		g.watch.Close()
		g.watch = nil
	}
	for _, o := range g.Ops {
		if o.Verb.Edits() {
			o.Patching.Guess = speculation{} // a Batch may live for long
		}
	}
}

// Again recomputes the patches whose document has changed. Patches that have lost
// before wait for their turn, so that patches of one large document do not
// invalidate each other's work for ever.
func (g *Speculations) Again(ctx context.Context) error {
	if err := g.takeTurns(ctx); err != nil {
		return err
	}
	g.trackWrites()
	var latest map[string]*Op // by folded ID, the op that will write it last
	if len(g.Ops) > 1 {
		latest = make(map[string]*Op)
	}
	made := 0
	for _, o := range g.Ops {
		if o.Verb.Edits() {
			if err := g.speculatePatch(ctx, o, latest[o.FoldedID]); err != nil {
				return OpError(g.Ops, o, err)
			}
			if made += o.Patching.madeBytes(); made > MaxPatchedBytes {
				return OpError(g.Ops, o, errPatchedBytes())
			}
		}
		if latest != nil && o.FoldedID != "" {
			latest[o.FoldedID] = o
		}
	}
	return nil
}

// trackWrites begins to track writes anew. A result whose document is not looked at
// again has no tracker any more: the transaction reads its document.
func (g *Speculations) trackWrites() {
	if g.watch != nil {
		g.watch.Close()
	}
	g.watch = g.writer.Env.Engine.TrackWrites()
	for _, o := range g.Ops {
		if o.Verb.Edits() {
			o.Patching.Guess.watch = nil
		}
	}
}

func errPatchedBytes() error {
	return fmt.Errorf("%w: the patches make more than %d bytes; use several batches", storage.ErrTooLarge, MaxPatchedBytes)
}

// takeTurns waits for the turns of the patches that have lost before.
func (g *Speculations) takeTurns(ctx context.Context) error {
	var lost []turns.Key
	for _, o := range g.Ops {
		if o.Verb.Edits() && o.Patching.stale {
			lost = append(lost, turns.Document(o.FoldedID))
		}
	}
	if len(lost) == 0 {
		return ctx.Err()
	}
	return g.caller.Wait(ctx, lost, nil)
}

// inTurn reports whether the patches have their turn.
func (g *Speculations) inTurn() bool { return g != nil && g.caller.Held() }

// speculatePatch computes one patch: of the document that an earlier op of the
// batch will have written, or of the current one. It returns only errors that do
// not depend on the document.
func (g *Speculations) speculatePatch(ctx context.Context, o, after *Op) error {
	w, p := g.writer, o.Patching
	next := speculation{made: true, after: after}
	if after != nil {
		next.base = after.willWrite()
		if p.Guess.made && p.Guess.after == after && sameMemory(p.Guess.base, next.base) {
			return nil
		}
		next.folded = after.willBelongTo()
	} else {
		if p.Guess.made && p.Guess.after == nil {
			current, err := w.currentHeader(o.FoldedID)
			if err != nil {
				return err
			}
			if (Version{current.Node, current.Etag}) == p.Guess.of {
				// Two flags change without a new version: see env.Rewritten.
				p.Guess.header.Revision, p.Guess.header.Timed = current.Revision, current.Timed
				p.Guess.watch = g.watch
				return nil
			}
		}
		// Not from the cache: a caller may have changed the bytes of a body it was
		// given, and that must not be stored.
		newest, done := w.Env.Newest() // as the transaction will see it, durable or not
		doc, err := w.Docs.ReadKey(newest, format.NewDocumentKey([]byte(o.FoldedID)))
		err = errs.First(err, done())
		if doc, err = w.Docs.Alive(doc, err); err != nil && err != errs.ErrNotFound {
			return err
		}
		if err == nil {
			next.watch, next.header, next.base = g.watch, doc.Header(), doc.JSON()
			next.of = Version{next.header.Node, next.header.Etag}
			next.folded = format.CollectionKey(string(next.header.Collection))
		}
	}
	if next.base != nil {
		next.Body, next.changed, next.err = w.ApplyEdits(ctx, o, next.base, 0)
		if err := ctx.Err(); err != nil {
			return err
		}
		if next.extract(w, o.Timing != nil); next.err == nil {
			next.fit(w)
		}
	} else if p.Insert != nil {
		_ = w.PatchInsert(ctx, o, 0) // an error counts only if there is something to insert
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	p.Guess = next
	return nil
}

// madeBytes returns the size of the body that a patch has made.
func (p *Patching) madeBytes() int {
	if p.Guess.base == nil && p.inserted {
		return len(p.Insert.JSON)
	}
	return len(p.Guess.Body)
}

// willWrite returns the body that o will write, or nil if there will be no document
// or o cannot be carried out.
func (o *Op) willWrite() []byte {
	if !o.Verb.Edits() {
		return o.JSON // none of a delete
	}
	p := o.Patching
	if p.Guess.base == nil && p.Insert != nil {
		return p.Insert.JSON
	}
	return p.Guess.Body
}

// willBelongTo returns the folded collection of the document that o will write.
func (o *Op) willBelongTo() string {
	if !o.Verb.Edits() {
		return o.FoldedCollection
	}
	if p := o.Patching; p.Guess.base == nil && p.Insert != nil {
		return p.Insert.FoldedCollection
	}
	return o.Patching.Guess.folded
}

// wrote returns the body that o has staged.
func (o *Op) wrote() []byte {
	if o.Verb.Edits() && o.Patching.Status == StatusCreated {
		return o.Patching.Insert.JSON
	}
	return o.JSON
}

func sameMemory(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// currentHeader returns the header of the committed version of the document as headerAt
// does, or the zero one if there is none.
func (w *Writer) currentHeader(folded string) (_ metadata.Header, err error) {
	var scratch [128]byte
	moment := w.Docs.Moment()
	newest, done := w.Env.Newest()
	defer func() { err = errs.First(err, done()) }()
	h, err := headerAt(newest, format.DocumentKey(scratch[:0], folded))
	if err != nil || docs.IsGone(&h, moment) {
		return metadata.Header{}, err
	}
	return h, nil
}

// ApplyEdits returns the result of a patch on a body. It takes at most maxWork
// units of work, or as many as the database allows if that is 0. A patch of a
// collection must not create members that would be read as the ID or the version of
// a value.
func (w *Writer) ApplyEdits(ctx context.Context, o *Op, body []byte, maxWork int64) (out []byte, changed bool, err error) {
	limits := patch.Limits{MaxBytes: w.Env.Limits.MaxBytes, MaxDepth: w.Env.Limits.MaxDepth, MaxWork: maxWork}
	if out, changed, err = patch.ApplyContext(ctx, body, o.Patching.Edits, limits); err != nil || !changed {
		return out, changed, err
	}
	for _, name := range o.LeaveOut {
		if _, found := jsonpath.FindMember(out, name); !found {
			continue
		}
		if _, before := jsonpath.FindMember(body, name); !before {
			return nil, false, &patch.Error{Rule: "the id and the version are not part of a document's body", Path: name, Edit: -1}
		}
	}
	return out, changed, nil
}

// stagePatch stages the result of a patch on the document found.
func (t *Txn) stagePatch(o *Op) error {
	h, g, err := t.patchFound(o)
	if err == nil && docs.IsGone(&h, t.moment) {
		err = storage.ErrNotFound
	}
	if err == storage.ErrNotFound {
		return t.stageMissing(o)
	}
	if err != nil {
		return err
	}
	if g.err != nil {
		return g.err
	}
	if t.patched += len(g.Body); t.patched > MaxPatchedBytes {
		return errPatchedBytes()
	}
	p, key := o.Patching, format.CollectionKey(string(h.Collection))
	before := h
	retimed, err := o.Retime(&h)
	if err != nil {
		return err
	}
	old := oldFrom(&before, o.Collection)
	old.Body, old.Size, old.ID = g.base, before.Size()+len(g.base), docs.WrittenID(&before, o.FoldedID)
	if (g.changed || retimed) && o.keeps(t.rules(), &before) {
		old.keepVersion(&before, g.base)
	}

	o.Header = h
	o.ID, o.JSON, o.FoldedCollection = old.ID, g.Body, key
	if !g.changed && !retimed {
		p.Status, o.Outcome = StatusNotModified, Present
		return nil
	}
	p.Status = StatusPatched
	o.Header.Modified, o.Header.Node = p.modified, t.Writer.Env.Node
	o.Tail = o.Header.AppendTail(o.Tail[:0])
	o.indexed, o.entries, o.refused, o.Late = g.indexed, g.entries, g.refused, !g.made
	o.rule, o.unfit, o.sameBody = g.rule, g.unfit, !g.changed
	etag, err := t.Sequence()
	if err != nil {
		return err
	}
	return t.stageDocument(o, etag, &old, true)
}

// patchFound returns the header of the document that o finds, and the result of the
// patch: the speculative one, or one computed here if it is little work. Otherwise
// it returns errStale, and storage.ErrNotFound unwrapped if there is no document.
func (t *Txn) patchFound(o *Op) (h metadata.Header, g speculation, err error) {
	g = o.Patching.Guess
	if after := g.after; after != nil && after.Outcome == Present && g.base != nil && sameMemory(g.base, after.wrote()) {
		h = cloneHeader(&after.Header)
		return h, g, t.checkPatched(o, &h)
	}
	t.key = format.DocumentKey(t.key[:0], o.FoldedID)
	if g.watch != nil && t.Tx.Unchanged(g.watch, t.key) {
		// Not read again: of a large document that takes tens of milliseconds, for
		// which every other write would wait.
		h = cloneHeader(&g.header)
		return h, g, t.checkPatched(o, &h)
	}
	value, closer, err := t.Tx.Get(t.key)
	if err != nil {
		return h, g, err
	}
	defer func() { err = errs.First(err, closer.Close()) }()
	shared, body, err := metadata.Decode(value)
	if err != nil {
		return h, g, err
	}
	h = cloneHeader(&shared)
	if err := t.checkPatched(o, &h); err != nil {
		return h, g, err
	}
	if g.made && g.after == nil && (g.of == Version{h.Node, h.Etag}) {
		return h, g, nil
	}
	if rules := t.schemas(); rules != nil && rules.Of(format.CollectionKey(string(h.Collection))) != nil { // it is checked outside of the transaction
		o.Patching.stale = true
		return h, g, ErrStale
	}
	g, err = t.patchHere(o, body)
	return h, g, err
}

// checkPatched checks that a patch applies to the document that it finds.
func (t *Txn) checkPatched(o *Op, h *metadata.Header) error {
	if err := t.checkVersion(o, &OldDocument{Node: h.Node, Etag: h.Etag}, true); err != nil {
		return err
	}
	if o.InCollection != "" && format.CollectionKey(string(h.Collection)) != o.InCollection {
		return &metadata.CollectionError{ID: o.ID, Current: OrEmpty(string(h.Collection)), Given: o.Collection}
	}
	return nil
}

// cloneHeader returns a header with memory of its own.
func cloneHeader(h *metadata.Header) metadata.Header {
	own := *h
	own.Collection, own.ID, own.Custom = bytes.Clone(h.Collection), bytes.Clone(h.ID), bytes.Clone(h.Custom)
	own.Attachments = bytes.Clone(h.Attachments)
	return own
}

// patchHere computes a patch in the transaction, if it is little work. It does not
// keep body.
func (t *Txn) patchHere(o *Op, body []byte) (speculation, error) {
	if t.here++; t.here > MaxPatchesHere || len(body) > MaxWorkHere {
		o.Patching.stale = true
		return speculation{}, ErrStale
	}
	g := speculation{base: bytes.Clone(body)}
	g.Body, g.changed, g.err = t.Writer.ApplyEdits(context.Background(), o, g.base, MaxWorkHere)
	if errors.Is(g.err, patch.ErrTooMuchWork) {
		o.Patching.stale = true
		return speculation{}, ErrStale
	}
	return g, nil
}

// extract extracts the entries of the document that a patch would make. One that may
// change nothing but the metadata needs them, too.
func (g *speculation) extract(db *Writer, metadataToo bool) {
	g.indexed, g.entries, g.refused = db.Indexes.Load().Of(g.folded), nil, nil
	if g.indexed != nil && (g.changed || metadataToo) {
		g.entries, g.refused = g.indexed.Extract(g.Body, nil)
	}
}

// Version is the version that a document was read in. The zero value means that it
// did not exist.
type Version struct{ Node, Etag uint64 }

// versionAt returns the version of the document at a key, or none if there is none.
func versionAt(r docs.Getter, key []byte) (Version, error) {
	record, closer, err := r.Get(key)
	if err == storage.ErrNotFound {
		return Version{}, nil
	}
	if err != nil {
		return Version{}, err
	}
	h, _, err := metadata.Decode(record)
	return Version{h.Node, h.Etag}, errs.First(err, closer.Close())
}

// VersionText returns the change vector of a version, "" for a missing document.
func (w *Writer) VersionText(v Version) string {
	if v == (Version{}) {
		return ""
	}
	return w.Env.ChangeVector(v.Node, v.Etag)
}
