package write

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/parallel"
	"github.com/jaydb/jay/internal/revisions"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// ManyOps is the size of a batch from which several goroutines are worth their
// cost.
const ManyOps = 128

// opsPerPart is how many ops a goroutine takes at a time.
const opsPerPart = 32

// Prefetched is what was read before a transaction: the documents that its ops will
// find. A nil *prefetched holds nothing.
type Prefetched struct {
	watch   storage.WriteTracker
	catalog *catalog.Catalog // decided which bodies were kept
	rules   *revisions.Rules // too
	bodies  atomic.Int64     // bytes of them
	slow    storage.Reader   // of what the transaction reads besides; nil unless reads are slow
}

// MaxPrefetchBytes is about how many bytes of bodies are prefetched: the rest is
// read by the transaction. A variable for tests.
var MaxPrefetchBytes int64 = 32 << 20

// Prefetch reads the documents that many ops will find, or few ones as long as reads
// wait for the disk, with several goroutines and without blocking other writers. The
// transaction uses those that were not written since (storage.Tx.Unchanged).
func (w *Writer) Prefetch(ctx context.Context, ops []*Op) (*Prefetched, error) {
	slow := w.disk.slow() && !w.Env.Engine.Shared()
	if len(ops) < ManyOps && !slow {
		return nil, nil
	}
	return prefetching{w, slow}.read(ctx, ops)
}

// prefetching is a Prefetch that may be worth its cost.
type prefetching struct {
	w    *Writer
	slow bool // reads wait for the disk
}

// worthwhile returns how many documents of n ops it takes to be worth reading them before the transaction, on
// how many goroutines, and how many documents each of these takes at a time.
func (p prefetching) worthwhile(n int) (least, goroutines, part int) {
	if p.slow {
		return 1, readsAtOnce, min(1+n/readsAtOnce/4, opsPerPart)
	}
	return ManyOps, parallel.Workers(), opsPerPart
}

func (p prefetching) read(ctx context.Context, ops []*Op) (_ *Prefetched, err error) {
	w := p.w
	c, rules := w.Indexes.Load(), w.Revisions.Load()
	least, goroutines, part := p.worthwhile(len(ops))
	named, drawn := w.namedOps(ops, c, rules, p.slow), drawnOps(ops)
	if len(named) < least && len(drawn) < ManyOps {
		return nil, nil
	}
	a := &Prefetched{watch: w.Env.Engine.TrackWrites(), catalog: c, rules: rules}
	if p.slow {
		a.slow = w.Env.Engine
	}
	var mu sync.Mutex
	var looks []storage.BatchReader // one for each goroutine
	whole := false
	defer func() {
		for _, look := range looks {
			err = errs.First(err, look.Close())
		}
		if !whole || err != nil { // a context may panic
			a.Close(ops)
		}
	}()
	if err := a.readDrawn(drawn); err != nil {
		return nil, err
	}
	if len(named) < least {
		whole = true
		return a, nil
	}
	if many, is := a.watch.(storage.ManyGetter); is {
		if err = a.readMany(ctx, ops, named, many); err != nil {
			return nil, err
		}
		whole = true
		return a, nil
	}
	err = parallel.DoWaiting(goroutines, len(named), part, func() func(lo, hi int) error {
		look, err := a.watch.NewReader()
		if err != nil {
			return func(int, int) error { return err }
		}
		mu.Lock()
		looks = append(looks, look)
		mu.Unlock()
		return func(lo, hi int) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			begun := time.Now()
			defer func() { w.disk.took(hi-lo, time.Since(begun)) }()
			return a.read(ops, named[lo:hi], look)
		}
	})
	if err != nil {
		return nil, err
	}
	whole = true
	return a, nil
}

// Use makes what was read before known to the transaction.
func (t *Txn) Use(a *Prefetched) { t.prefetched = a }

// namedOps returns the ops whose document may exist and is to be read, sorted by ID:
// neighbours lie in the same blocks. If reads are slow, these are also ops of new HiLo IDs, unless
// drawnOps returns them: the transaction looks whether their IDs are free.
func (w *Writer) namedOps(ops []*Op, c *catalog.Catalog, rules *revisions.Rules, slow bool) []*Op {
	var named []*Op
	if len(ops) >= ManyOps {
		named = make([]*Op, 0, len(ops))
	}
	for _, o := range ops {
		fromRange := o.Strategy.FromRange() && (!slow || o.FoldedID == "" || len(ops) >= ManyOps)
		if o.Verb.Overwrites() && !o.Strategy.MadeByCommit() && !fromRange {
			if _, known := w.knownHead(o, c, rules); !known {
				named = append(named, o)
			}
		}
	}
	slices.SortFunc(named, func(a, b *Op) int { return strings.Compare(a.FoldedID, b.FoldedID) })
	return named
}

// read reads the documents of some of all ops, and who has their values in unique indexes, if reads are slow.
func (a *Prefetched) read(all, some []*Op, look storage.BatchReader) error {
	var scratch [128]byte
	found := make([]OldDocument, 0, len(some))
	for _, o := range some {
		if a.bodies.Load() > MaxPrefetchBytes {
			return nil
		}
		value, err := look.Get(format.DocumentKey(scratch[:0], o.FoldedID))
		switch err {
		case nil:
			found = append(found, OldDocument{})
			err = a.keep(o, value, &found[len(found)-1])
		case storage.ErrNotFound:
			o.prefetched, o.Before, err = true, nil, nil
		}
		if err == nil && a.slow != nil {
			err = a.readValues(o)
		}
		if err != nil {
			return OpError(all, o, err)
		}
	}
	return nil
}

// readValues reads the entries that others may have for the values that o has in unique indexes. What it finds
// does not count: the transaction reads it again, and finds it in memory.
func (a *Prefetched) readValues(o *Op) error {
	if o.entries == nil {
		return nil
	}
	var key []byte
	for i := range o.entries.List {
		e := &o.entries.List[i]
		if !e.Unique {
			continue
		}
		key = e.AppendKey(key[:0], o.FoldedID)
		_, closer, err := a.slow.Get(key)
		if err == nil {
			err = closer.Close()
		}
		if err != nil && err != storage.ErrNotFound {
			return err
		}
	}
	return nil
}

// keep keeps in old what the record says that o finds.
func (a *Prefetched) keep(o *Op, record []byte, old *OldDocument) (err error) {
	if *old, err = decodeOld(a.catalog, a.rules, o, record); err != nil {
		return err
	}
	o.prefetched, o.Before = true, old
	a.bodies.Add(int64(len(old.Body) + len(old.past.head) + len(old.past.body)))
	return nil
}

// askedAtOnce is how many documents a server is asked for at a time.
const askedAtOnce = 1000

// errEnough ends a reading of many documents that has MaxPrefetchBytes.
var errEnough = errors.New("enough was read")

// readMany is read for some of all ops, of a store that is asked for many keys at once.
func (a *Prefetched) readMany(ctx context.Context, all, some []*Op, from storage.ManyGetter) error {
	for part := range slices.Chunk(some, askedAtOnce) {
		if err := ctx.Err(); err != nil {
			return err
		}
		keys := make([][]byte, len(part))
		for i, o := range part {
			keys[i] = format.DocumentKey(nil, o.FoldedID)
		}
		err := from.GetMany(keys, func(i int, value []byte) error {
			if a.bodies.Load() > MaxPrefetchBytes {
				return errEnough
			}
			if err := a.keep(part[i], value, new(OldDocument)); err != nil {
				return OpError(all, part[i], err)
			}
			return nil
		})
		if err == errEnough {
			return nil
		}
		if err != nil {
			return err
		}
		for _, o := range part {
			o.prefetched = true // and those without Before are not there
		}
	}
	return nil
}

// Close stops the write tracker and releases what was read.
func (a *Prefetched) Close(ops []*Op) {
	if a == nil {
		return
	}
	a.watch.Close()
	for _, o := range ops {
		o.prefetched, o.Before = false, nil
	}
}

// decodeOld decodes what a write needs to know of a record. It does not keep the
// record.
func decodeOld(c *catalog.Catalog, rules *revisions.Rules, o *Op, record []byte) (OldDocument, error) {
	h, body, err := metadata.Decode(record)
	if err != nil {
		return OldDocument{}, err
	}
	old := oldOf(c, o, &h, body)
	old.Attachments = bytes.Clone(old.Attachments)
	if o.keeps(rules, &h) {
		own := bytes.Clone(record)
		head := len(record) - len(body)
		old.past = past{own[:head:head], own[head:]}
		old.ID = docs.WrittenID(&h, o.FoldedID)
		if old.Body != nil {
			old.Body = old.past.body
		}
		return old, nil
	}
	old.Body = bytes.Clone(old.Body)
	return old, nil
}

// oldFrom returns what the header says of a document that a write finds. The attachments
// are not copied. probable is the collection that it has in most cases.
func oldFrom(h *metadata.Header, probable string) OldDocument {
	old := OldDocument{Node: h.Node, Etag: h.Etag, Modified: h.Modified, Revision: h.Revision, Times: timesOf(h), Attachments: h.Attachments, Collection: probable}
	if string(h.Collection) != probable { // else an allocation is saved
		old.Collection = string(h.Collection)
	}
	return old
}

// oldOf returns what o needs to know of the document that it finds. Body and
// attachments are not copied.
func oldOf(c *catalog.Catalog, o *Op, h *metadata.Header, body []byte) OldDocument {
	old := oldFrom(h, o.Collection)
	old.Size = h.Size() + len(body)
	if o.Verb.Deletes() {
		old.ID = docs.WrittenID(h, o.FoldedID)
	}
	if len(c.ByCollection) > 0 && c.Of(format.CollectionKey(old.Collection)) != nil {
		old.Body, old.ID = body, docs.WrittenID(h, o.FoldedID)
	}
	return old
}

// New HiLo IDs are neighbours, and no document has one of them, unless it was put there
// by hand. So one walk over what lies between the first and the last of them answers for
// all, where a look-up of each takes longer than anything else in the transaction.

// leastDrawn is how many new IDs a walk is worth its cost for.
const leastDrawn = 32

// drawnOps returns the ops of new HiLo IDs, sorted by tag, number of digits, and ID.
func drawnOps(ops []*Op) []*Op {
	if len(ops) < ManyOps {
		return nil
	}
	var drawn []*Op
	for _, o := range ops {
		if o.Strategy.FromRange() && o.FoldedID != "" {
			if drawn == nil {
				drawn = make([]*Op, 0, len(ops))
			}
			drawn = append(drawn, o)
		}
	}
	order := func(a, b *Op) int {
		if a.Tag != b.Tag {
			return strings.Compare(a.Tag, b.Tag)
		}
		if len(a.FoldedID) != len(b.FoldedID) {
			return len(a.FoldedID) - len(b.FoldedID)
		}
		return strings.Compare(a.FoldedID, b.FoldedID)
	}
	if !slices.IsSortedFunc(drawn, order) { // as of several tags
		slices.SortFunc(drawn, order)
	}
	return drawn
}

// readDrawn notes of ops, those of new IDs, that their documents are missing, as far as
// a few walks can say so.
func (a *Prefetched) readDrawn(ops []*Op) (err error) {
	if len(ops) < leastDrawn {
		return nil
	}
	look, err := a.watch.NewReader()
	if err != nil {
		return err
	}
	defer func() { err = errs.First(err, look.Close()) }()
	arena := make([]byte, 0, len(ops)*(len(ops[0].FoldedID)+4))
	keys := make([][]byte, 0, len(ops))
	for len(ops) > 0 {
		n := neighbours(ops)
		if n >= leastDrawn {
			arena, keys = arena[:0], keys[:0]
			for _, o := range ops[:n] {
				start := len(arena)
				arena = format.DocumentKey(arena, o.FoldedID)
				keys = append(keys, arena[start:len(arena):len(arena)])
			}
			missing, err := look.Missing(keys)
			if err != nil {
				return err
			}
			for _, o := range ops[:n] {
				o.prefetched, o.Before = missing, nil
			}
		}
		ops = ops[n:]
	}
	return nil
}

// neighbours returns how many of ops, from the first on, have IDs of one tag with equally
// many digits. Between those of different lengths lie many others.
func neighbours(ops []*Op) int {
	n := 1
	for n < len(ops) && ops[n].Tag == ops[0].Tag && len(ops[n].FoldedID) == len(ops[0].FoldedID) {
		n++
	}
	return n
}
