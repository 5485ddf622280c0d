package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
)

// loader stores values as documents, in batches. It belongs to one goroutine.
type loader struct {
	db         *jay.DB
	collection string  // of documents that name none
	request    *string // the ID to ask for; nil means HiLo
	maxBytes   int
	maxDepth   int
	rejects    *rejects // nil if a bad document ends the import
	file       string   // for errors

	batch jay.Batch
	items []item
	room  []byte // holds the texts of items; never grows, so that they stay

	documents, bytes int64
	first, last      string
}

// item is a document that waits to be stored.
type item struct {
	value
	request    *string // as Put takes it; nil means Store
	keep       bool    // its own @id: it goes over what is there
	collection string  // "" if its @metadata decides
}

// A batch ends with so many documents or so many bytes, whichever comes first.
const (
	batchDocuments = 1000
	batchBytes     = 4 << 20
)

// add takes one more value, which it copies.
func (l *loader) add(ctx context.Context, v value) error {
	if len(l.items) == batchDocuments || len(l.items) > 0 && len(v.text) > cap(l.room)-len(l.room) {
		if err := l.flush(ctx); err != nil {
			return err
		}
	}
	counters, found, err := parseCounters(v.text)
	if err == nil && found {
		err = l.db.RaiseCounters(ctx, counters)
	}
	if err != nil {
		return l.refuse(ctx, v, err)
	}
	if found {
		return nil
	}
	it, err := l.plan(v)
	if err != nil {
		return l.refuse(ctx, v, err)
	}
	it.text = l.hold(v.text)
	l.items = append(l.items, it)
	return nil
}

// refuse deals with a value that cannot go into a batch.
func (l *loader) refuse(ctx context.Context, v value, err error) error {
	if stop := l.flush(ctx); stop != nil {
		return stop
	}
	return l.reject(v, err)
}

// hold copies text to a place where it stays until the next flush.
func (l *loader) hold(text []byte) []byte {
	if cap(l.room) == 0 {
		l.room = make([]byte, 0, batchBytes)
	}
	if len(text) > cap(l.room)-len(l.room) {
		return bytes.Clone(text)
	}
	start := len(l.room)
	l.room = append(l.room, text...)
	return l.room[start:len(l.room):len(l.room)]
}

const (
	metadataKey  = "@metadata"
	metadataPath = `\@metadata` // for gjson, where a bare @ begins a modifier
)

// metadataOf returns the @metadata of a document. Most have none, which a
// search for the word tells without parsing. A word written with escapes has
// a backslash and a u in it.
func metadataOf(text []byte) gjson.Result {
	if !bytes.Contains(text, []byte(`"`+metadataKey+`"`)) && !bytes.Contains(text, []byte(`\u00`)) {
		return gjson.Result{}
	}
	return gjson.GetBytes(text, metadataPath)
}

// hasCollection tells whether a @metadata object names a collection, rightly
// or not.
func hasCollection(m gjson.Result) bool {
	return m.Get(`\@collection`).Exists() || m.Get("Raven-Entity-Name").Exists()
}

// plan decides how a document is stored.
func (l *loader) plan(v value) (item, error) {
	m := metadataOf(v.text)
	it := item{value: v, request: l.request, collection: l.collection}
	if !m.Exists() {
		return it, l.checkPlan(it)
	}
	if !m.IsObject() {
		// Whatever is asked for, the database will refuse it and say why.
		it.request = new("")
		return it, nil
	}
	if id := m.Get(`\@id`); id.Type == gjson.String {
		it.request, it.keep, it.collection = &id.Str, true, ""
		return it, nil
	}
	if hasCollection(m) {
		it.collection = ""
		return it, nil
	}
	return it, l.checkPlan(it)
}

// checkPlan refuses a document that asks for no ID and belongs nowhere. One
// that is wrong in itself passes: the database will say why.
func (l *loader) checkPlan(it item) error {
	if it.request != nil || it.collection != "" || it.text[0] != '{' || !json.Valid(it.text) {
		return nil
	}
	return errNoCollection
}

// errNoCollection is the error of checkPlan.
var errNoCollection = &jay.DocumentError{Rule: "must have an @id or a @collection in its @metadata, unless --collection or --id is given"}

// flush stores what is waiting.
func (l *loader) flush(ctx context.Context) error {
	err := l.apply(ctx, l.items)
	clear(l.items)
	l.items = l.items[:0]
	l.room = l.room[:0]
	return err
}

// apply stores items in their order, in one batch if it can. If one of them is
// refused, nothing of the batch is stored: each half is tried by itself, until
// the bad document stands alone.
func (l *loader) apply(ctx context.Context, items []item) error {
	if len(items) == 0 {
		return nil
	}
	l.batch.Reset()
	for i := range items {
		items[i].addTo(&l.batch)
	}

	// An interruption waits for the batch, which is not long: one that breaks
	// off leaves a gap of the HiLo numbers that it has drawn.
	err := ctx.Err()
	var stored []jay.Metadata
	if err == nil {
		stored, err = l.db.Apply(context.WithoutCancel(ctx), &l.batch)
	}
	switch {
	case err == nil:
		l.note(items, stored)
		return nil
	case !isRefusal(err) && !isShortage(err):
		return l.fail(value{}, err)
	case len(items) == 1:
		return l.reject(items[0].value, err)
	}
	half := len(items) / 2
	if err := l.apply(ctx, items[:half]); err != nil {
		return err
	}
	return l.apply(ctx, items[half:])
}

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
	// The same request comes with every document: one must not go over the
	// other.
	b.Insert(*it.request, it.text, options...)
}

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

// refusals are the errors about a document and not about the database: another
// document may fare better.
var refusals = []error{
	jay.ErrInvalidDocument, jay.ErrInvalidID, jay.ErrCollection, jay.ErrConflict, jay.ErrExists, jay.ErrUnique, jay.ErrTooLarge, jay.ErrUsage,
}

// isRefusal tells whether an error is one of refusals.
func isRefusal(err error) bool { return isAny(err, refusals) }

// isShortage tells whether an error is about the numbers that a document asks
// for. Such documents end the import even where others are skipped: the counter
// wants a decision, and as a rule all documents to come want its numbers too.
func isShortage(err error) bool {
	return isAny(err, []error{jay.ErrNeedsFloor, jay.ErrNeedsCapacity, jay.ErrExhausted, jay.ErrLeadTooLarge})
}

func isAny(err error, targets []error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

// reject keeps a refused document, or ends the import.
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

// skip keeps a value that could not be split off, and goes on behind it.
func (l *loader) skip(values *splitter, v value, err error) error {
	skipErr := values.skip(l.rejects)
	if skipErr = errors.Join(skipErr, l.rejects.endLine()); skipErr != nil {
		return l.fail(value{}, skipErr)
	}
	l.explainReject(v, err)
	return nil
}

func (l *loader) explainReject(v value, err error) {
	at := l.fail(v, err)
	at.skipped = true
	l.rejects.explain(at)
}

// fail says where an error happened. The zero value stands for no document in
// particular.
func (l *loader) fail(v value, err error) *importError {
	if bad, is := errors.AsType[*jay.DocumentError](err); is {
		moved := *bad
		moved.Offset += int(v.offset)
		err = &moved
	} else if bad, is := errors.AsType[*jay.IDError](err); is {
		err = bad
	} else if bad, is := errors.AsType[*jay.CollectionError](err); is {
		err = bad
	} else if bad, is := errors.AsType[*jay.UniqueError](err); is {
		err = bad
	}
	return &importError{file: l.file, number: v.number, line: v.line, offset: v.offset, stored: l.documents, err: err}
}

func (l *loader) summary(took time.Duration) importSummary {
	s := importSummary{Documents: l.documents, Bytes: l.bytes, Seconds: took.Seconds(), First: l.first, Last: l.last}
	if l.rejects != nil {
		s.Rejected = l.rejects.count
	}
	return s
}
