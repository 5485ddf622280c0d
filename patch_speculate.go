package jay

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
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/patch"
	"github.com/jaydb/jay/storage"
)

// errStale ends a transaction that found another version than the one that was
// patched.
var errStale = errors.New("a document has changed since it was patched")

const (
	// maxWorkHere is the most units of work (patch.Limits.MaxWork) that a patch
	// may take in a transaction: that of a document of some KiB, in about 0.1 ms.
	maxWorkHere = 128 << 10

	// maxPatchesHere is the most patches that are made in one transaction.
	maxPatchesHere = 8
)

// maxPatchedBytes is how many bytes of bodies the patches of one transaction may
// make. It is the limit of what a transaction may stage, which would be noticed
// only when all of the bodies are in memory. A variable for tests.
var maxPatchedBytes = storage.MaxTxBytes

// speculation is the result of a patch, computed before the transaction. It is
// valid if the transaction finds the same version of the document.
type speculation struct {
	made    bool
	of      version // of the document; none if after writes it
	after   *op     // of the same batch, or nil
	base    []byte  // the document's body
	body    []byte
	changed bool
	err     error // the edits cannot be made

	folded  string // folded collection of the document
	indexed *catalog.Collection
	entries *catalog.Entries // of body
	refused error            // why the indexes refuse body
}

// speculations are the speculative results of the patches of one write.
type speculations struct {
	db    *DB
	ops   []*op
	leave func() // ends the turns that again acquired
}

// speculatePatches computes the patches among ops, or returns nil if there are
// none.
func (db *DB) speculatePatches(ctx context.Context, ops []*op) (*speculations, error) {
	found := false
	for _, o := range ops {
		if o.verb == verbPatch {
			found = true
			o.patching.guess, o.patching.stale = speculation{}, db.turns.awaited(o.foldedID)
		}
	}
	if !found {
		return nil, nil
	}
	g := &speculations{db: db, ops: ops}
	if err := g.again(ctx); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

// close ends the turns, for the next patches of the same documents.
func (g *speculations) close() {
	if g == nil {
		return
	}
	if g.leave != nil {
		g.leave()
		g.leave = nil
	}
	for _, o := range g.ops {
		if o.verb == verbPatch {
			o.patching.guess = speculation{} // a Batch may live for long
		}
	}
}

// again recomputes the patches whose document has changed. Patches that have lost
// before wait for their turn, so that patches of one large document do not
// invalidate each other's work for ever.
func (g *speculations) again(ctx context.Context) error {
	if err := g.takeTurns(ctx); err != nil {
		return err
	}
	var latest map[string]*op // by folded ID, the op that will write it last
	if len(g.ops) > 1 {
		latest = make(map[string]*op)
	}
	made := 0
	for _, o := range g.ops {
		if o.verb == verbPatch {
			if err := g.db.speculatePatch(ctx, o, latest[o.foldedID]); err != nil {
				return opError(g.ops, o, err)
			}
			if made += len(o.patching.guess.body); made > maxPatchedBytes {
				return opError(g.ops, o, errPatchedBytes())
			}
		}
		if latest != nil && o.foldedID != "" {
			latest[o.foldedID] = o
		}
	}
	return nil
}

func errPatchedBytes() error {
	return fmt.Errorf("%w: the patches make more than %d bytes; use several batches", ErrTooLarge, maxPatchedBytes)
}

// takeTurns waits for the turns of the patches that have lost before.
func (g *speculations) takeTurns(ctx context.Context) error {
	if g.leave != nil {
		g.leave() // there may be more now: take all or none, to avoid a cycle of waits
		g.leave = nil
	}
	var lost []string
	for _, o := range g.ops {
		if o.verb == verbPatch && o.patching.stale {
			lost = append(lost, o.foldedID)
		}
	}
	if len(lost) == 0 {
		return ctx.Err()
	}
	var err error
	g.leave, err = g.db.turns.take(ctx, lost)
	return err
}

// speculatePatch computes one patch: of the document that an earlier op of the
// batch will have written, or of the current one. It returns only errors that do
// not depend on the document.
func (db *DB) speculatePatch(ctx context.Context, o, after *op) error {
	p := o.patching
	next := speculation{made: true, after: after}
	if after != nil {
		next.base = after.willWrite()
		if p.guess.made && p.guess.after == after && sameMemory(p.guess.base, next.base) {
			return nil
		}
		next.folded = after.willBelongTo()
	} else {
		if p.guess.made && p.guess.after == nil {
			if current, err := db.currentVersion(o.foldedID); err != nil || current == p.guess.of {
				return err
			}
		}
		// Not from the cache: a caller may have changed the bytes of a body it was
		// given, and that must not be stored.
		latest := db.env.Engine.Latest() // as the transaction will see it, durable or not
		doc, err := db.docs.ReadKey(latest, format.NewDocumentKey([]byte(o.foldedID)))
		if err = errs.First(err, latest.Close()); err != nil && err != ErrNotFound {
			return err
		}
		if err == nil {
			next.of, next.base = version{doc.Header().Node, doc.Header().Etag}, doc.JSON()
			next.folded = format.CollectionKey(string(doc.Header().Collection))
		}
	}
	if next.base != nil {
		next.body, next.changed, next.err = db.applyEdits(ctx, o, next.base, 0)
		if err := ctx.Err(); err != nil {
			return err
		}
		next.extract(db)
	}
	p.guess = next
	return nil
}

// willWrite returns the body that o will write, or nil if there will be no document
// or o cannot be carried out.
func (o *op) willWrite() []byte {
	if o.verb != verbPatch {
		return o.json // none of a delete
	}
	p := o.patching
	if p.guess.base == nil && p.insert != nil {
		return p.insert.json
	}
	return p.guess.body
}

// willBelongTo returns the folded collection of the document that o will write.
func (o *op) willBelongTo() string {
	if o.verb != verbPatch {
		return o.foldedCollection
	}
	if p := o.patching; p.guess.base == nil && p.insert != nil {
		return p.insert.foldedCollection
	}
	return o.patching.guess.folded
}

// wrote returns the body that o has staged.
func (o *op) wrote() []byte {
	if o.verb == verbPatch && o.patching.status == statusCreated {
		return o.patching.insert.json
	}
	return o.json
}

func sameMemory(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// currentVersion returns the committed version of the document, or none if there is
// none.
func (db *DB) currentVersion(folded string) (_ version, err error) {
	var scratch [128]byte
	latest := db.env.Engine.Latest()
	defer func() { err = errs.First(err, latest.Close()) }()
	return versionAt(latest, format.DocumentKey(scratch[:0], folded))
}

// applyEdits returns the result of a patch on a body. It takes at most maxWork
// units of work, or as many as the database allows if that is 0. A patch of a
// collection must not create members that would be read as the ID or the version of
// a value.
func (db *DB) applyEdits(ctx context.Context, o *op, body []byte, maxWork int64) (out []byte, changed bool, err error) {
	limits := patch.Limits{MaxBytes: db.env.Limits.MaxBytes, MaxDepth: db.env.Limits.MaxDepth, MaxWork: maxWork}
	if out, changed, err = patch.ApplyContext(ctx, body, o.patching.edits, limits); err != nil || !changed {
		return out, changed, err
	}
	for _, name := range o.leaveOut {
		if _, found := jsonpath.FindMember(out, name); !found {
			continue
		}
		if _, before := jsonpath.FindMember(body, name); !before {
			return nil, false, &PatchError{Rule: "the id and the version are not part of a document's body", Path: name, Edit: -1}
		}
	}
	return out, changed, nil
}

// stagePatch stages the result of a patch on the document found.
func (t *transaction) stagePatch(o *op) error {
	h, g, err := t.patchFound(o)
	if err == storage.ErrNotFound {
		return t.stageMissing(o)
	}
	if err != nil {
		return err
	}
	if g.err != nil {
		return g.err
	}
	if t.patched += len(g.body); t.patched > maxPatchedBytes {
		return errPatchedBytes()
	}
	p, key := o.patching, format.CollectionKey(string(h.Collection))
	old := oldDocument{Node: h.Node, Etag: h.Etag, Collection: string(h.Collection), Body: g.base, ID: docs.WrittenID(&h, o.foldedID)}

	o.header = h
	o.id, o.json, o.foldedCollection = old.ID, g.body, key
	if !g.changed {
		p.status, o.outcome = statusNotModified, present
		return nil
	}
	p.status = statusPatched
	o.header.Modified, o.header.Node = p.modified, t.db.env.Node
	o.tail = o.header.AppendTail(o.tail[:0])
	o.indexed, o.entries, o.refused, o.late = g.indexed, g.entries, g.refused, !g.made
	etag, err := t.Sequence()
	if err != nil {
		return err
	}
	return t.stageDocument(o, etag, old, true)
}

// patchFound returns the header of the document that o finds, and the result of the
// patch: the speculative one, or one computed here if it is little work. Otherwise
// it returns errStale, and storage.ErrNotFound unwrapped if there is no document.
func (t *transaction) patchFound(o *op) (h metadata.Header, g speculation, err error) {
	g = o.patching.guess
	if after := g.after; after != nil && after.outcome == present && g.base != nil && sameMemory(g.base, after.wrote()) {
		h = cloneHeader(&after.header)
		return h, g, t.checkPatched(o, &h)
	}
	t.key = format.DocumentKey(t.key[:0], o.foldedID)
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
	if g.made && g.after == nil && (g.of == version{h.Node, h.Etag}) {
		return h, g, nil
	}
	g, err = t.patchHere(o, body)
	return h, g, err
}

// checkPatched checks that a patch applies to the document that it finds.
func (t *transaction) checkPatched(o *op, h *metadata.Header) error {
	if err := t.checkVersion(o, oldDocument{Node: h.Node, Etag: h.Etag}, true); err != nil {
		return err
	}
	if o.inCollection != "" && format.CollectionKey(string(h.Collection)) != o.inCollection {
		return &CollectionError{ID: o.id, Current: orEmpty(string(h.Collection)), Given: o.collection}
	}
	return nil
}

// cloneHeader returns a header with memory of its own.
func cloneHeader(h *metadata.Header) metadata.Header {
	own := *h
	own.Collection, own.ID, own.Custom = bytes.Clone(h.Collection), bytes.Clone(h.ID), bytes.Clone(h.Custom)
	return own
}

// patchHere computes a patch in the transaction, if it is little work. It does not
// keep body.
func (t *transaction) patchHere(o *op, body []byte) (speculation, error) {
	if t.here++; t.here > maxPatchesHere || len(body) > maxWorkHere {
		o.patching.stale = true
		return speculation{}, errStale
	}
	g := speculation{base: bytes.Clone(body)}
	g.body, g.changed, g.err = t.db.applyEdits(context.Background(), o, g.base, maxWorkHere)
	if errors.Is(g.err, ErrPatchWork) {
		o.patching.stale = true
		return speculation{}, errStale
	}
	return g, nil
}

// extract extracts the entries of the document that a patch would make.
func (g *speculation) extract(db *DB) {
	g.indexed, g.entries, g.refused = db.indexes.Load().Of(g.folded), nil, nil
	if g.indexed != nil && g.changed {
		g.entries, g.refused = g.indexed.Extract(g.body)
	}
}
