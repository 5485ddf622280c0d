package smuggler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/tidwall/sjson"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/transfer"
)

// ExportOptions say what an export has. The zero value is all documents with all that
// belongs to them, and all that belongs to the database.
type ExportOptions struct {
	// Collection and Prefix select documents. With a collection and without a prefix, the
	// export has the revisions of the collection, too.
	Collection, Prefix string

	// IDs selects documents by their IDs. An ID without a document is passed over.
	IDs []string

	// Query selects the results of a query, which may be rows that are no documents.
	Query func(tx *jay.Tx) (jay.Query[jay.Row], error)

	// Bare leaves out all that belongs to documents and to the database, but the counters.
	Bare bool

	// Counters begins an export in lines with the counters of the whole database, so that
	// a copy repeats no number.
	Counters bool

	// Name is that of the database, for a dump.
	Name string

	// Comma is the byte between the cells of CSV. The default is a comma.
	Comma byte

	// Spreadsheet writes CSV in which no cell is a formula.
	Spreadsheet bool

	// Room is called before the export holds n bytes for a document. An error ends it. The
	// default is not to count.
	Room func(n int64) error

	// Report is called with the progress behind every document.
	Report func(ExportProgress)
}

// history reports whether the export has revisions.
func (o *ExportOptions) history() bool {
	return !o.Bare && o.Prefix == "" && len(o.IDs) == 0 && o.Query == nil
}

// whole reports whether the export has what belongs to the database.
func (o *ExportOptions) whole() bool { return o.history() && o.Collection == "" }

// ExportProgress is what an export has written.
type ExportProgress struct {
	Documents   int64
	Revisions   int64
	Attachments int64
	Bytes       int64 // before compression

	// LeftOut counts what was to be exported and has no place in the format, by its kind.
	LeftOut map[string]int64
}

// What LeftOut counts.
const (
	LeftAttachments   = "attachments"
	LeftRevisions     = "revisions"
	LeftExchange      = "compare-exchange values"
	LeftSubscriptions = "subscriptions"
)

// Exporter writes documents, and what belongs to them, in a format. All documents are
// those of one moment.
type Exporter struct {
	db   *jay.DB
	tx   *jay.Tx // while it writes
	last uint64  // etag of the newest write when it began; only with revisions
	o    ExportOptions
	done ExportProgress
}

// NewExporter returns an exporter of a database.
func NewExporter(db *jay.DB, o ExportOptions) *Exporter {
	if o.Comma == 0 {
		o.Comma = ','
	}
	return &Exporter{db: db, o: o, done: ExportProgress{LeftOut: make(map[string]int64)}}
}

// Progress returns what is written so far.
func (e *Exporter) Progress() ExportProgress {
	p := e.done
	p.LeftOut = nil
	if len(e.done.LeftOut) > 0 {
		p.LeftOut = maps.Clone(e.done.LeftOut)
	}
	return p
}

// Write writes an export to w, once. It is a stream: it holds one document at a time.
func (e *Exporter) Write(ctx context.Context, f *Format, w io.Writer) error {
	if f.Write == nil {
		return fmt.Errorf("%w: the format %s is written to a file", jay.ErrUsage, f.Name)
	}
	return e.run(ctx, f, func() error { return f.Write(ctx, e, countingWriter{e, w}) })
}

// WriteFile writes an export in a format that needs a file, which is there and empty.
func (e *Exporter) WriteFile(ctx context.Context, f *Format, path string) error {
	if f.WriteFile == nil {
		return fmt.Errorf("%w: the format %s is a stream", jay.ErrUsage, f.Name)
	}
	return e.run(ctx, f, func() error { return f.WriteFile(ctx, e, path) })
}

// run calls fn with a snapshot, and then counts what the format has left out.
func (e *Exporter) run(ctx context.Context, f *Format, fn func() error) error {
	return e.db.View(ctx, func(tx *jay.Tx) error {
		e.tx = tx
		defer func() { e.tx = nil }()
		if e.o.history() && (f.Whole || f.dump) {
			// It may have one that was made since the snapshot, but it never lacks one.
			counters, err := e.db.Counters(ctx)
			if err != nil {
				return err
			}
			e.last = counters.Etag
		}
		if err := fn(); err != nil {
			return err
		}
		if f.Whole {
			return nil
		}
		return e.leftOut(ctx, f)
	})
}

// leftOut counts what the format cannot hold, beside attachments.
func (e *Exporter) leftOut(ctx context.Context, f *Format) error {
	if !f.dump && e.o.history() {
		counts, err := e.db.Revisions().Counts(ctx)
		if err != nil {
			return err
		}
		for _, one := range counts {
			if e.o.Collection == "" || strings.EqualFold(one.Collection, e.o.Collection) {
				e.leave(LeftRevisions, one.Revisions)
			}
		}
	}
	if !e.o.whole() {
		return nil // only an export of all documents would have the others
	}
	if !f.dump {
		err := e.eachExchange(ctx, func(*jay.CompareExchangeValue) error {
			e.leave(LeftExchange, 1)
			return nil
		})
		if err != nil {
			return err
		}
	}
	subs, err := e.db.Subscriptions().List(ctx)
	e.leave(LeftSubscriptions, int64(len(subs)))
	return err
}

// leave counts what is left out.
func (e *Exporter) leave(kind string, n int64) {
	if n > 0 {
		e.done.LeftOut[kind] += n
	}
}

// Exported is a document of an export, or a row of a query that selects.
type Exported struct {
	Document *jay.Document // nil for a row
	Row      json.RawMessage
}

// Each calls fn with everything that is to be exported, and counts it.
func (e *Exporter) Each(ctx context.Context, fn func(Exported) error) error {
	return e.Look(ctx, func(one Exported) error {
		if err := fn(one); err != nil {
			return err
		}
		e.done.Documents++
		if e.o.Report != nil {
			e.o.Report(e.Progress())
		}
		return nil
	})
}

// Look is like Each, and counts nothing: for a format that reads twice.
func (e *Exporter) Look(ctx context.Context, fn func(Exported) error) error {
	switch {
	case e.o.Query != nil:
		q, err := e.o.Query(e.tx)
		if err != nil {
			return err
		}
		for row, err := range q.Iter(ctx) {
			if err != nil {
				return err
			}
			if err := e.visit(Exported{row.Document, row.JSON}, fn); err != nil {
				return err
			}
		}
		return nil
	case len(e.o.IDs) > 0:
		for _, id := range e.o.IDs {
			doc, err := e.tx.Get(ctx, id)
			if errors.Is(err, jay.ErrNotFound) {
				continue
			}
			if err == nil {
				err = e.visit(Exported{Document: doc}, fn)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	for doc, err := range e.tx.Documents(ctx, jay.Scan{Collection: e.o.Collection, Prefix: e.o.Prefix}) {
		if err == nil {
			err = e.visit(Exported{Document: doc}, fn)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// visit calls fn with a document, whose memory is paid for; there is one at a time.
func (e *Exporter) visit(one Exported, fn func(Exported) error) error {
	size := len(one.Row)
	if one.Document != nil {
		size = len(one.Document.Body())
	}
	if err := e.room(size); err != nil {
		return err
	}
	err := fn(one)
	var bad *transfer.Error
	if errors.As(err, &bad) && one.Document != nil {
		return fmt.Errorf("document %.200q: %w", one.Document.ID(), &formatError{bad})
	}
	return err
}

// room pays for JSON of so many bytes: as it was read, with its metadata, and on its way out.
func (e *Exporter) room(size int) error {
	if e.o.Room == nil {
		return nil
	}
	return e.o.Room(3 * int64(size))
}

// eachRevision calls fn with the revisions of the documents of the export, and counts them.
// A version that was the newest one when the export began is a document, and later ones are
// none of its business, also those of a document that was not there by then.
func (e *Exporter) eachRevision(ctx context.Context, fn func(*jay.Revision) error) error {
	if !e.o.history() {
		return nil
	}
	id, end := "", uint64(0) // the revisions of a document before this etag
	for rev, err := range e.db.Revisions().All(ctx, e.o.Collection) {
		if err != nil {
			return err
		}
		if rev.ID() != id {
			doc, err := e.tx.Get(ctx, rev.ID())
			switch {
			case err == nil:
				end = doc.Metadata().Etag
			case errors.Is(err, jay.ErrNotFound):
				end = e.last + 1
			default:
				return err
			}
			id = rev.ID()
		}
		if rev.Metadata().Etag >= end {
			continue
		}
		if err := e.room(len(rev.Body())); err != nil {
			return err
		}
		if err := fn(rev); err != nil {
			return err
		}
		e.done.Revisions++
	}
	return nil
}

// attachments calls fn with the attachments of a document of the export.
func (e *Exporter) attachments(one Exported, fn func(a jay.Attachment) error) error {
	if one.Document == nil || e.o.Bare {
		return nil
	}
	for _, a := range one.Document.Metadata().Attachments {
		if err := fn(a); err != nil {
			return err
		}
		e.done.Attachments++
	}
	return nil
}

// eachExchange calls fn with all compare-exchange values.
func (e *Exporter) eachExchange(ctx context.Context, fn func(*jay.CompareExchangeValue) error) error {
	const page = 16
	after := ""
	for {
		values, err := e.tx.CompareExchange().List(ctx, "", after, page)
		if err != nil {
			return err
		}
		size := 0
		for _, v := range values {
			size += len(v.Value) + len(v.Metadata)
		}
		if err := e.room(size); err != nil {
			return err
		}
		for _, v := range values {
			if err := fn(v); err != nil {
				return err
			}
			after = v.Key
		}
		if len(values) < page {
			return nil
		}
	}
}

// Bare returns a document in the form of package transfer. Its attachments are left out, and
// counted.
func (e *Exporter) Bare(one Exported) *transfer.Document {
	if one.Document == nil {
		return &transfer.Document{Collection: "@empty", Body: one.Row}
	}
	m := one.Document.Metadata()
	if !e.o.Bare {
		e.leave(LeftAttachments, int64(len(m.Attachments)))
	}
	return &transfer.Document{ID: m.ID, Collection: m.Collection, Custom: m.Custom, Body: one.Document.Body()}
}

// json returns the JSON of a document, with its metadata, or that of a row. Attachments that
// are left out are not named.
func (e *Exporter) json(one Exported) ([]byte, error) {
	if one.Document == nil {
		return one.Row, nil
	}
	text, err := one.Document.MarshalJSON()
	if err == nil && e.o.Bare {
		text, err = sjson.DeleteBytes(text, metadataPath+`.\@attachments`)
	}
	return text, err
}

// Wrote counts bytes that a format has written to a file.
func (e *Exporter) Wrote(n int) { e.done.Bytes += int64(n) }

// countingWriter counts the bytes that an exporter writes.
type countingWriter struct {
	e *Exporter
	w io.Writer
}

// Write implements io.Writer.
func (c countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.e.Wrote(n)
	return n, err
}
