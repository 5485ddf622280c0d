package indexer

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/sorter"
	"github.com/jaydb/jay/metadata"
)

// extractor is one goroutine of step 1: it walks over ranges of documents and adds their entries to
// buffers of its own.
type extractor struct {
	b       *tableBuild
	parts   []*part          // those that go on
	buffers []*sorter.Buffer // parallel to parts
	sums    []*sums          // parallel to parts; nil for one of no Tabler
	flags   []byte           // parallel to parts

	own     *catalog.Builder // of the parts only
	among   *catalog.Builder // of the parts among all indexes of the collection; nil until it is needed
	amongOf *catalog.Collection

	entries    catalog.Entries
	key, value []byte
	written    string // the name of the collection in the last document of it
	last       []byte // the ID of the last document
}

// extract is the work of one goroutine: it ends when there are no more documents.
func (b *tableBuild) extract(ctx context.Context, documents *ranges) error {
	x := &extractor{b: b}
	for _, p := range b.parts {
		buffer, adder := p.sorter.NewBuffer(), (*sums)(nil)
		if p.tabler != nil {
			adder = newSums(buffer)
		}
		x.parts, x.buffers, x.sums, x.flags = append(x.parts, p), append(x.buffers, buffer), append(x.sums, adder), append(x.flags, 0)
	}
	x.prepare()
	if err := documents.walk(ctx, func(over idRange) error { return x.walk(ctx, documents, over) }); err != nil {
		return err
	}
	for i, p := range x.parts {
		if x.sums[i] != nil {
			if err := x.sums[i].flush(); err != nil {
				return sortError(err)
			}
		}
		x.buffers[i].Sort()
		p.flags.Or(uint32(x.flags[i]))
	}
	return nil
}

// cursor opens a cursor on the snapshot.
func (b *tableBuild) cursor(over docs.Range) (*docs.Cursor, error) {
	if err := b.in.env.Enter(); err != nil {
		return nil, err
	}
	defer b.in.env.Exit()
	over.Collection = b.name
	return b.in.docs.NewCursor(over, b.from)
}

// walk adds the entries of the documents of a range, but for what it hands over to others.
func (x *extractor) walk(ctx context.Context, documents *ranges, over idRange) error {
	w, err := x.b.cursor(docs.Range{Low: over.low, High: over.high})
	if err != nil {
		return err
	}
	defer w.Close()
	for {
		if err := x.b.in.env.Room.Wait(ctx); err != nil {
			return err
		}
		x.b.to.GiveWay()
		if x.leaveOut(); len(x.parts) == 0 {
			return nil
		}
		if more, err := x.batch(ctx, w, over.high); err != nil || !more {
			return err
		}
		over.high = documents.divide(x.last, over.high)
	}
}

// batch adds the entries of some documents below high, and reports whether there may be more, behind
// last.
func (x *extractor) batch(ctx context.Context, w *docs.Cursor, high string) (more bool, err error) {
	n, size := 0, 0
	isBeyond := false
	var failed error
	more, err = w.Records(ctx, func(folded, stored []byte) bool {
		if isBeyond = string(folded) >= high; isBeyond {
			return false
		}
		failed = x.document(folded, stored)
		n++
		size += len(stored)
		if n < batchDocuments && size < batchBytes && failed == nil {
			return true
		}
		x.last = append(x.last[:0], folded...)
		return false
	})
	for _, p := range x.parts {
		p.t.documents.Add(int64(n))
	}
	return more && !isBeyond, errs.First(failed, err)
}

// prepare makes the builders of what the parts are now.
func (x *extractor) prepare() {
	x.own, x.among, x.amongOf = catalog.Only(x.indexes()...).NewBuilder(x.numbers()...), nil, nil
}

func (x *extractor) indexes() []*catalog.Index {
	indexes := make([]*catalog.Index, len(x.parts))
	for i, p := range x.parts {
		indexes[i] = p.ix
	}
	return indexes
}

func (x *extractor) numbers() []uint32 {
	numbers := make([]uint32, len(x.parts))
	for i, p := range x.parts {
		numbers[i] = p.ix.Number
	}
	return numbers
}

// leaveOut drops the parts that have ended.
func (x *extractor) leaveOut() {
	n := 0
	for i, p := range x.parts {
		if p.cause() == nil {
			x.parts[n], x.buffers[n], x.sums[n], x.flags[n] = p, x.buffers[i], x.sums[i], x.flags[i]
			n++
		}
	}
	if n < len(x.parts) {
		x.parts, x.buffers, x.sums, x.flags = x.parts[:n], x.buffers[:n], x.sums[:n], x.flags[:n]
		x.prepare()
	}
}

// document adds the entries of a document.
func (x *extractor) document(folded, stored []byte) error {
	h, body, err := metadata.Decode(stored)
	if err != nil {
		return fmt.Errorf("document %q: %w", folded, err)
	}
	if x.written == "" || string(h.Collection) != x.written {
		if !docs.SameCollection(h.Collection, x.b.collection) {
			return nil
		}
		x.written = string(h.Collection)
	}
	id := folded
	if h.ID != nil {
		id = h.ID
	}
	if x.builder(body).Extract(&x.entries, body) != nil {
		return x.apart(id, folded, body)
	}
	return x.add(&x.entries, id, folded)
}

// builder returns what makes the entries of a document. A body without an array has one entry
// in each ordered index, and MaxPerCollection of the longest are within the bounds: then
// the other indexes need not be considered. The same holds for a short one in narrow indexes.
func (x *extractor) builder(body []byte) *catalog.Builder {
	current := x.b.in.indexes.Load()
	all := current.Of(x.b.collection)
	if all == nil || len(all.Indexes) == 1 {
		return x.own
	}
	if bytes.IndexByte(body, '[') < 0 && (current.AllOrdered || all.Narrow && len(body) <= catalog.NarrowBytes) {
		return x.own
	}
	if all != x.amongOf {
		x.among, x.amongOf = all.NewBuilder(x.numbers()...), all
	}
	return x.among
}

// apart adds the entries of a document that is beyond a bound in one of the indexes, or in all
// together. It ends the parts that must not have the document: each index counts with those that
// were declared before it, as if they had been built one after another.
func (x *extractor) apart(id, folded, body []byte) error {
	var counted []*catalog.Index // together
	if all := x.b.in.indexes.Load().Of(x.b.collection); all != nil {
		for _, ix := range all.Indexes {
			if !slices.Contains(x.b.begun, ix.Number) {
				counted = append(counted, ix)
			}
		}
	}
	for _, p := range x.parts {
		if p.cause() != nil {
			continue
		}
		counted = append(counted, p.ix)
		entries, err := catalog.Only(counted...).ExtractForBuild(body, p.ix.Number)
		if err != nil {
			p.refuse(fmt.Errorf("document %q: %w", id, catalog.WithID(err, string(id))))
			counted = counted[:len(counted)-1]
			continue
		}
		if err := x.add(entries, id, folded); err != nil {
			return err
		}
	}
	return nil
}

// add adds entries of a document to the buffers.
func (x *extractor) add(entries *catalog.Entries, id, folded []byte) error {
	for i, s := range x.sums {
		if s == nil {
			continue
		}
		if err := x.parts[i].tabler.Fill(s, folded, entries.Of(x.parts[i].ix)); err != nil {
			return err
		}
		if s.err != nil {
			return sortError(s.err)
		}
	}
	at := 0
	for i := range entries.List {
		entry := &entries.List[i]
		if entry.Index.Stager != nil {
			continue
		}
		for x.parts[at].ix.Number != entry.Index.Number {
			at = (at + 1) % len(x.parts)
		}
		x.key, x.value = catalog.AppendEntryKey(x.key[:0], entry, folded), catalog.AppendEntryValue(x.value[:0], entry, id, folded)
		if err := x.buffers[at].Add(x.key[prefixBytes:], x.value); err != nil {
			return sortError(err)
		}
	}
	for _, f := range entries.Flags {
		for i, p := range x.parts {
			if p.ix.Number == f.Number {
				x.flags[i] |= f.Flags
			}
		}
	}
	return nil
}
