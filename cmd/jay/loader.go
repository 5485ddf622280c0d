package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
)

// loader stores values as documents, in batches: while one batch is stored, the next one
// is read. It is used by one goroutine. Another one, which stores a batch in the background,
// uses only that batch and the database; settle records the outcome.
type loader struct {
	db         *jay.DB
	collection string  // collection of documents that name none
	request    *string // requested ID of documents without an @id; nil means HiLo
	maxBytes   int
	maxDepth   int
	insert     bool        // a document with an @id must not exist already
	rejects    *rejects    // nil if an invalid document ends the import
	resume     *resumption // nil without --resume
	file       string      // name of the input, for errors

	filling pendingBatch // of the documents that are read
	storing pendingBatch // is stored in the background if stored is not nil, and empty if it is nil
	stored  chan outcome // of storing; nil if nothing is stored in the background

	incoming *incoming // the attachment that is being read, or nil
	skipping bool      // skip the bytes of a rejected attachment

	documents, bytes int64
	first, last      string

	past      []pastLine // revisions of the next batch
	pastBytes int
	revisions int64 // number of imported revisions
}

// item is a document of the next batch.
type item struct {
	value
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

// A batch has at most so many documents and about so many bytes.
const (
	batchDocuments = 1000
	batchBytes     = 4 << 20
)

// add adds a copy of a value to the batch. It flushes the batch first if that is
// full.
func (l *loader) add(ctx context.Context, v value) error {
	if err := l.makeRoom(ctx, v); err != nil {
		return err
	}
	// Some lines of an export are not documents, which their @metadata shows.
	m := metadataOf(v.text)
	if l.incoming != nil || m.Str != "" || strings.Contains(m.Raw, `"@jay"`) {
		if err := l.settle(ctx); err != nil {
			return err
		}
	}
	found, err := l.addAttachment(ctx, v, m)
	if !found {
		found, err = l.addCounters(ctx, v, m)
	}
	if found {
		return l.refuse(ctx, v, err)
	}
	if found, err := l.addRevision(ctx, v, m); found || err != nil {
		return err
	}
	if err := l.flushRevisions(ctx); err != nil {
		return err
	}
	if found, err = l.addSubscription(ctx, v, m); !found {
		found, err = l.addExchange(ctx, v, m)
	}
	if found {
		return l.refuse(ctx, v, err)
	}
	return l.addDocument(ctx, v, m)
}

// makeRoom begins to store the batch if it is full.
func (l *loader) makeRoom(ctx context.Context, v value) error {
	b := &l.filling
	if len(b.items) == batchDocuments || len(b.items) > 0 && len(v.text) > cap(b.arena)-len(b.arena) {
		return l.store(ctx)
	}
	return nil
}

// addDocument adds a copy of a document, whose @metadata is m, to the batch, which has
// room.
func (l *loader) addDocument(ctx context.Context, v value, m gjson.Result) error {
	it, err := l.plan(v, m)
	if err != nil {
		return l.refuse(ctx, v, err)
	}
	it.text, it.mark = l.filling.hold(v.text), l.resume.mark()
	l.filling.items = append(l.filling.items, it)
	return nil
}

// refuse rejects a value that cannot go into a batch. It stores the documents before
// the value first. If err is nil, it does nothing.
func (l *loader) refuse(ctx context.Context, v value, err error) error {
	if err == nil {
		return nil
	}
	if stop := l.flush(ctx); stop != nil {
		return stop
	}
	return l.reject(v, err)
}

// hold returns a copy of text that stays valid until the next reset.
func (b *pendingBatch) hold(text []byte) []byte {
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

const (
	metadataKey  = "@metadata"
	metadataPath = `\@metadata` // for gjson, where a bare @ begins a modifier
)

// metadataOf returns the @metadata of a document. Most documents have none, which
// a search for the key finds out without parsing; without its first quote, as quotes are
// everywhere. A key with escapes has \u00 in it: @ and letters have no shorter escapes.
func metadataOf(text []byte) gjson.Result {
	if !bytes.Contains(text, []byte(metadataKey+`"`)) && !bytes.Contains(text, []byte(`\u00`)) {
		return gjson.Result{}
	}
	return gjson.GetBytes(text, metadataPath)
}

// decodeLine decodes a line of an export that is not a document. An unknown field is an
// error: a newer jay has written it.
func decodeLine(text []byte, line any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(line)
}

// hasCollection reports whether a @metadata object names a collection, with a valid
// value or not.
func hasCollection(m gjson.Result) bool {
	return m.Get(`\@collection`).Exists() || m.Get("Raven-Entity-Name").Exists()
}

// plan decides how a document with the @metadata m is stored.
func (l *loader) plan(v value, m gjson.Result) (item, error) {
	it := item{value: v, request: l.request, collection: l.collection}
	if !m.Exists() {
		return it, l.checkPlan(it)
	}
	if !m.IsObject() {
		// The database refuses it with the better error, whatever the request.
		it.request = new("")
		return it, nil
	}
	if id := m.Get(`\@id`); id.Type == gjson.String {
		it.request, it.keep, it.collection = &id.Str, !l.insert, ""
		if !hasCollection(m) {
			it.collection = "@empty" // an export names all others
		}
		return it, nil
	}
	if hasCollection(m) {
		it.collection = ""
		return it, nil
	}
	return it, l.checkPlan(it)
}

// checkPlan refuses a document without requested ID and collection. It passes
// invalid documents, which the database refuses with a better error.
func (l *loader) checkPlan(it item) error {
	if it.request != nil || it.collection != "" || it.text[0] != '{' || !json.Valid(it.text) {
		return nil
	}
	return errNoCollection
}

// errNoCollection is the error of checkPlan.
var errNoCollection = &jay.DocumentError{Rule: "must have an @id or a @collection in its @metadata, unless --collection or --id is given"}

// store begins to store the batch in the background, when the one before it is stored.
func (l *loader) store(ctx context.Context) error {
	if err := l.settle(ctx); err != nil {
		return err
	}
	if err := l.flushRevisions(ctx); err != nil {
		return err
	}
	l.filling, l.storing = l.storing, l.filling
	before, stored := l.documents, make(chan outcome, 1)
	l.stored = stored
	go func() { stored <- l.write(ctx, &l.storing, l.storing.items, before) }()
	return nil
}

// settle waits for the batch that is stored in the background. All that is told of what is
// stored, such as the number of documents in an error, is right only behind it.
func (l *loader) settle(ctx context.Context) error {
	if l.stored == nil {
		return nil
	}
	o := <-l.stored
	l.stored = nil
	defer l.storing.reset()
	return l.conclude(ctx, &l.storing, l.storing.items, o)
}

// end waits for the batch that is stored in the background, before the input is left with
// err. An error of the batch comes first, as its documents do.
func (l *loader) end(ctx context.Context, err error) error {
	return cmp.Or(l.settle(ctx), err)
}

// flush stores everything that was read.
func (l *loader) flush(ctx context.Context) error {
	if err := l.settle(ctx); err != nil {
		return err
	}
	if err := l.flushRevisions(ctx); err != nil {
		return err
	}
	defer l.filling.reset()
	return l.apply(ctx, &l.filling, l.filling.items)
}

// apply stores items of b in order.
func (l *loader) apply(ctx context.Context, b *pendingBatch, items []item) error {
	if len(items) == 0 {
		return nil
	}
	return l.conclude(ctx, b, items, l.write(ctx, b, items, l.documents))
}

// conclude notes that items of b are stored. If the database has refused one of them,
// nothing of the batch is stored. Then conclude bisects the batch until the refused document
// is the only one.
func (l *loader) conclude(ctx context.Context, b *pendingBatch, items []item, o outcome) error {
	switch {
	case o.err == nil:
		l.note(items, o.stored)
		return nil
	case !isRefusal(o.err) && !isShortage(o.err):
		return l.fail(value{}, o.err)
	case len(items) == 1:
		return l.reject(items[0].value, o.err)
	}
	half := len(items) / 2
	if err := l.apply(ctx, b, items[:half]); err != nil {
		return err
	}
	return l.apply(ctx, b, items[half:])
}

// write stores items of b in order, in one transaction, behind as many documents that the
// import has stored before.
func (l *loader) write(ctx context.Context, b *pendingBatch, items []item, before int64) outcome {
	b.writes.Reset()
	for i := range items {
		items[i].addTo(&b.writes)
	}
	// The checkpoint is part of the transaction, so it always matches the documents
	// that are stored.
	if last := &items[len(items)-1]; l.resume != nil && !last.unmarked {
		if err := l.resume.addTo(&b.writes, last.mark, before+l.resume.found.Documents+int64(len(items)), false); err != nil {
			return outcome{err: err}
		}
	}

	// Without cancellation: the batch is short, and cancelling it would leave a gap of
	// the HiLo numbers that it has drawn.
	if err := ctx.Err(); err != nil {
		return outcome{err: err}
	}
	stored, err := l.db.Apply(context.WithoutCancel(ctx), &b.writes)
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
		b.Store(it.collection, it.text)
		return
	case it.collection != "":
		options = append(options, jay.InCollection(it.collection))
	}
	if it.keep {
		b.Put(*it.request, it.text, options...)
		return
	}
	// All documents have the same request, so one must not overwrite another.
	b.Insert(*it.request, it.text, options...)
}

// note counts stored items for the summary.
func (l *loader) note(items []item, stored []jay.Metadata) {
	if l.documents == 0 {
		l.first = stored[0].ID
	}
	l.last = stored[len(stored)-1].ID
	l.documents += int64(len(items))
	for i := range items {
		l.bytes += int64(len(items[i].text))
	}
}

// refusals are the errors of a single document. Other documents can still be
// stored.
var refusals = []error{
	jay.ErrInvalidDocument, jay.ErrInvalidAttachment, jay.ErrInvalidID, jay.ErrCollection, jay.ErrConflict, jay.ErrExists, jay.ErrUnique, jay.ErrTooLarge, jay.ErrUsage,
}

// isRefusal reports whether an error is one of refusals.
func isRefusal(err error) bool { return isAny(err, refusals) }

// isShortage reports whether an error is that of a counter without numbers. It ends
// the import even where invalid documents are skipped: the user must decide about
// the counter, and most of the following documents will need it, too.
func isShortage(err error) bool {
	return isAny(err, []error{jay.ErrNeedsFloor, jay.ErrNeedsCapacity, jay.ErrExhausted, jay.ErrLeadTooLarge})
}

func isAny(err error, targets []error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

// reject writes a refused document to the rejects, or ends the import.
func (l *loader) reject(v value, err error) error {
	if l.rejects == nil || !isRefusal(err) {
		return l.fail(v, err)
	}
	if writeErr := l.rejects.keep(v.text); writeErr != nil {
		return l.fail(value{}, writeErr)
	}
	l.explainReject(v, err)
	return nil
}

// skip writes a value on which the source failed to the rejects, and moves the
// source after it.
func (l *loader) skip(values source, v value, err error) error {
	skipErr := values.skip(l.rejects)
	if skipErr = errors.Join(skipErr, l.rejects.endLine()); skipErr != nil {
		return l.fail(value{}, skipErr)
	}
	l.explainReject(v, err)
	return nil
}

// explainReject prints why a value was skipped.
func (l *loader) explainReject(v value, err error) {
	at := l.fail(v, err)
	at.skipped = true
	l.rejects.explain(at)
}

// fail returns an error with its place in the input. The zero value stands for no
// particular document.
func (l *loader) fail(v value, err error) *importError {
	// Offsets are relative to the input, not to the value. The texts that wrap errors
	// of a document are left out.
	if bad, is := errors.AsType[*jay.DocumentError](err); is {
		moved := *bad
		moved.Offset += int(v.offset)
		if err = &moved; v.converted { // an offset in the converted text means nothing in the input
			err = &convertedError{*bad}
		}
	} else if bad, is := errors.AsType[*jay.IDError](err); is {
		err = bad
	} else if bad, is := errors.AsType[*jay.CollectionError](err); is {
		err = bad
	} else if bad, is := errors.AsType[*jay.UniqueError](err); is {
		err = bad
	}
	return &importError{file: l.file, number: v.number, line: v.line, offset: v.offset, stored: l.documents, err: err}
}

// convertedError is the error of a document that was made from another format.
type convertedError struct{ jay.DocumentError }

// Error returns the rule, and what was found.
func (e *convertedError) Error() string {
	text := "invalid document: " + e.Rule
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Limit > 0 {
		text += fmt.Sprintf(", it has %d", e.Actual)
	}
	return text
}

// Unwrap returns the error of the document.
func (e *convertedError) Unwrap() error { return &e.DocumentError }

func (l *loader) summary(took time.Duration) importSummary {
	s := importSummary{Documents: l.documents, Bytes: l.bytes, Seconds: took.Seconds(), First: l.first, Last: l.last, Revisions: l.revisions}
	if l.rejects != nil {
		s.Rejected = l.rejects.count
	}
	return s
}
