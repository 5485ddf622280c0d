package smuggler

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/transfer"
)

// item is a document of the next batch.
type item struct {
	Record
	request    *string // requested ID; nil means that Store makes it
	keep       bool    // request is its own @id: overwrite an existing document
	unmarked   bool    // write the checkpoint later, with what belongs to the document
	mark       mark
	collection string // "" if its @metadata decides
}

// pendingBatch is documents that are stored together.
type pendingBatch struct {
	items  []item
	arena  []byte    // memory of the texts of items; never reallocated, so that they stay valid
	writes jay.Batch // of items, or of some of them
}

// outcome is what came of storing a batch.
type outcome struct {
	stored []jay.Metadata // of the items, in their order
	err    error
}

// batchDocuments is the number of documents that a batch has at most.
const batchDocuments = 1000

// makeRoom stores the batch, or begins to, if it is full.
func (im *Importer) makeRoom(ctx context.Context, v Record) error {
	b := &im.filling
	switch full := len(b.items) == batchDocuments || len(b.items) > 0 && len(v.Text) > cap(b.arena)-len(b.arena); {
	case !full:
		return nil
	case im.o.Ahead:
		return im.store(ctx)
	}
	return im.flush(ctx)
}

// addDocument adds a copy of a document, whose @metadata is m, to the batch, which has
// room.
func (im *Importer) addDocument(ctx context.Context, v Record, m gjson.Result) error {
	if !v.Converted && im.looked < 10 {
		im.looked++
		im.done.LooksExtended = im.done.LooksExtended || transfer.LooksExtended(v.Text)
	}
	im.latest = document{v.Number, m.Get(`\@id`).Str}
	it, err := im.plan(v, m)
	if err != nil {
		im.refused = v.Number
		return im.refuse(ctx, v, err)
	}
	if len(v.Text) > im.o.BatchBytes { // one at a time is held beside its source
		if err := im.settle(ctx); err != nil {
			return err
		}
	}
	it.Text, it.mark = im.filling.hold(v.Text, im.o.BatchBytes), im.resume.mark()
	im.filling.items = append(im.filling.items, it)
	return nil
}

// hold returns a copy of text that stays valid until the next reset.
func (b *pendingBatch) hold(text []byte, batchBytes int) []byte {
	if cap(b.arena) == 0 {
		b.arena = make([]byte, 0, batchBytes)
	}
	if len(text) > cap(b.arena)-len(b.arena) {
		return bytes.Clone(text)
	}
	start := len(b.arena)
	b.arena = append(b.arena, text...)
	return b.arena[start:len(b.arena):len(b.arena)]
}

// reset empties the batch and keeps its memory.
func (b *pendingBatch) reset() {
	clear(b.items)
	b.items, b.arena = b.items[:0], b.arena[:0]
	b.writes.Reset()
}

// hasCollection reports whether a @metadata object names a collection, with a valid
// value or not.
func hasCollection(m gjson.Result) bool {
	return m.Get(`\@collection`).Exists() || m.Get("Raven-Entity-Name").Exists()
}

// plan decides how a document with the @metadata m is stored.
func (im *Importer) plan(v Record, m gjson.Result) (item, error) {
	it := item{Record: v, request: im.o.Request, collection: im.o.Collection}
	if !m.Exists() {
		return it, im.checkPlan(it)
	}
	if !m.IsObject() {
		// The database refuses it with the better error, whatever the request.
		it.request = new(string)
		return it, nil
	}
	if id := m.Get(`\@id`); id.Type == gjson.String {
		if id.Str == "" {
			return it, errEmptyID
		}
		it.request, it.keep, it.collection = &id.Str, !im.o.Insert, ""
		if !hasCollection(m) {
			it.collection = "@empty" // an export names all others
		}
		return it, nil
	}
	if hasCollection(m) {
		it.collection = ""
		return it, nil
	}
	return it, im.checkPlan(it)
}

// checkPlan refuses a document without requested ID and collection. It passes
// invalid documents, which the database refuses with a better error.
func (im *Importer) checkPlan(it item) error {
	if it.request != nil || it.collection != "" || it.Text[0] != '{' || !json.Valid(it.Text) {
		return nil
	}
	rule := "must have an @id or a @collection in its @metadata"
	if place := im.o.Names.Place; place != "" {
		rule += ", unless " + place + " is given"
	}
	return &jay.DocumentError{Rule: rule}
}

// errEmptyID is the error of a document with an empty @id, which no export has.
var errEmptyID = &jay.DocumentError{Rule: "an @id must not be empty"}

// store begins to store the batch in the background, when the one before it is stored.
func (im *Importer) store(ctx context.Context) error {
	if err := im.settle(ctx); err != nil {
		return err
	}
	if err := im.flushRevisions(ctx); err != nil {
		return err
	}
	if err := im.syncRejects(); err != nil {
		return err
	}
	im.filling, im.storing = im.storing, im.filling
	before, stored := im.done.Documents, make(chan outcome, 1)
	im.stored = stored
	go func() { stored <- im.write(ctx, &im.storing, im.storing.items, before) }()
	return nil
}

// settle waits for the batch that is stored in the background. All that is told of what is
// stored, such as the number of documents in an error, is right only behind it.
func (im *Importer) settle(ctx context.Context) error {
	if im.stored == nil {
		return nil
	}
	o := <-im.stored
	im.stored = nil
	defer im.storing.reset()
	return im.conclude(ctx, &im.storing, im.storing.items, o)
}

// end waits for the batch that is stored in the background, before the input is left with
// err. An error of the batch comes first, as its documents do.
func (im *Importer) end(ctx context.Context, err error) error {
	return cmp.Or(im.settle(ctx), err)
}

// flush stores everything that was read.
func (im *Importer) flush(ctx context.Context) error {
	if err := im.settle(ctx); err != nil {
		return err
	}
	if err := im.flushRevisions(ctx); err != nil {
		return err
	}
	defer im.filling.reset()
	return im.apply(ctx, &im.filling, im.filling.items)
}

// apply stores items of b in order.
func (im *Importer) apply(ctx context.Context, b *pendingBatch, items []item) error {
	if len(items) == 0 {
		return nil
	}
	if err := im.syncRejects(); err != nil {
		return err
	}
	return im.conclude(ctx, b, items, im.write(ctx, b, items, im.done.Documents))
}

// conclude notes that items of b are stored. If the database has refused one of them,
// nothing of the batch is stored. Then conclude bisects the batch until the refused document
// is the only one.
func (im *Importer) conclude(ctx context.Context, b *pendingBatch, items []item, o outcome) error {
	switch {
	case o.err == nil:
		im.note(items, o.stored)
		return nil
	case !isRefusal(o.err) && !isShortage(o.err):
		return im.fail(Record{}, o.err)
	case len(items) == 1:
		im.refused = items[0].Number
		return im.reject(items[0].Record, o.err)
	}
	half := len(items) / 2
	if err := im.apply(ctx, b, items[:half]); err != nil {
		return err
	}
	return im.apply(ctx, b, items[half:])
}

// write stores items of b in order, in one transaction, behind as many documents that the
// import has stored before.
func (im *Importer) write(ctx context.Context, b *pendingBatch, items []item, before int64) outcome {
	b.writes.Reset()
	for i := range items {
		items[i].addTo(&b.writes)
	}
	// The checkpoint is part of the transaction, so it always matches the documents
	// that are stored.
	if last := &items[len(items)-1]; im.resume != nil && !last.unmarked {
		if err := im.resume.addTo(&b.writes, last.mark, before+im.resume.found.Documents+int64(len(items)), false); err != nil {
			return outcome{err: err}
		}
	}

	// Without cancellation: the batch is short, and cancelling it would leave a gap of
	// the HiLo numbers that it has drawn.
	if err := ctx.Err(); err != nil {
		return outcome{err: err}
	}
	stored, err := im.db.Apply(context.WithoutCancel(ctx), &b.writes)
	if err != nil {
		return outcome{err: err}
	}
	return outcome{stored: stored[:len(items)]}
}

// addTo adds the write of an item to a batch.
func (it *item) addTo(b *jay.Batch) {
	var options []jay.WriteOption
	switch {
	case it.request == nil:
		b.Store(it.collection, it.Text)
		return
	case it.collection != "":
		options = append(options, jay.InCollection(it.collection))
	}
	if it.keep {
		b.Put(*it.request, it.Text, options...)
		return
	}
	// All documents have the same request, so one must not overwrite another.
	b.Insert(*it.request, it.Text, options...)
}

// note counts stored items for the summary.
func (im *Importer) note(items []item, stored []jay.Metadata) {
	if im.done.Documents == 0 {
		im.done.First = stored[0].ID
	}
	im.done.Last = stored[len(stored)-1].ID
	im.done.Documents += int64(len(items))
	for i := range items {
		im.done.Bytes += int64(len(items[i].Text))
	}
	im.report()
}
