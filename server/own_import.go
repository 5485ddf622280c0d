package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/transfer"
)

// Bounds of an import.
const (
	importDocuments = 1000    // of a batch, which is one transaction
	maxImportNotes  = 20      // rejects whose reasons are kept
	maxRejects      = 10_000  // of one import
	maxRejectBytes  = 8 << 20 // of one import
	maxRejectLists  = 8       // imports whose rejects are kept
)

// importProgress is the progress of an import.
type importProgress struct {
	Documents int64            `json:"documents"`          // documents that were stored
	Bytes     int64            `json:"bytes,omitempty"`    // bytes of these documents
	Read      int64            `json:"read,omitempty"`     // bytes read of the body
	Rejected  int64            `json:"rejected,omitempty"` // records that were left out
	Problems  []importNote     `json:"problems,omitempty"` // the reasons for the first 20 of them
	LeftOut   map[string]int64 `json:"leftOut,omitempty"`  // number of records that the server does not import, by kind
}

// importNote is the reason for a rejected record.
type importNote struct {
	Place   string `json:"place"` // such as "line 3"
	Message string `json:"message"`
}

// importRecord is a record that a source has read.
type importRecord struct {
	text  []byte // a JSON object, valid until the next read
	place string // such as "line 3"
}

// importSource reads the records of a format.
type importSource interface {
	// next returns the next record, or io.EOF. After a *badRecord the source can continue.
	// The place is set with an error, too.
	next() (importRecord, error)
}

// badRecord is the error for one invalid record, after which the source can continue.
type badRecord struct {
	raw []byte // the text of the record, on one line
	err error
}

func (b *badRecord) Error() string { return b.err.Error() }

// Unwrap returns the reason.
func (b *badRecord) Unwrap() error { return b.err }

// importer stores the records of a stream, in batches.
type importer struct {
	c          *call
	o          *operation // nil if the import is not an operation
	request    string     // the ID to request for documents without one
	collection string     // collection of documents that have neither an ID nor a collection
	insert     bool       // a document must not exist already
	rejects    *rejects   // nil if the first bad record ends the import
	read       *countedReader

	batch jay.Batch
	items []importItem
	arena []byte
	done  importProgress
}

// importItem is a document in the present batch.
type importItem struct {
	importRecord
	plan importPlan
}

// ownImport stores the documents of a stream. It holds one record and one batch. Documents
// that were stored before an error stay.
func (c *call) ownImport() error {
	if err := c.checkEncoding(); err != nil {
		return closing(err)
	}
	if err := c.take(bulkMemory); err != nil {
		return err
	}
	im, format, err := c.newImporter()
	if err != nil {
		return closing(err)
	}
	ctx, cancel := c.streamContext()
	defer cancel()
	defer func() { _ = http.NewResponseController(c.w).SetReadDeadline(time.Time{}) }()
	return c.watched(ctx, func(ctx context.Context, o *operation) (any, error) {
		im.o = o
		place, err := im.run(ctx, format)
		im.report()
		if err != nil {
			return im.snapshot(), c.importProblem(ctx, err, place, im.done)
		}
		reply := im.snapshot()
		reply.Bytes, reply.Read = 0, 0 // these are only for clients that watch the operation
		return im.snapshot(), c.json(http.StatusOK, reply)
	})
}

// newImporter reads the parameters of an import.
func (c *call) newImporter() (im *importer, format importFormat, err error) {
	im = &importer{c: c, request: c.params.get("id"), collection: c.params.get("collection")}
	c.subject = c.params.get("name")
	if format, err = c.importFormat(); err != nil {
		return nil, format, err
	}
	if im.insert, err = c.params.flag("insert"); err != nil {
		return nil, format, err
	}
	most, err := c.params.count("rejects", 0)
	if err != nil {
		return nil, format, err
	}
	id, err := c.params.number("operation", 0)
	switch {
	case err != nil:
		return nil, format, err
	case most > maxRejects:
		return nil, format, badRequest("rejects must be between 0 and %d, not %d", maxRejects, most)
	case most > 0 && id == 0:
		return nil, format, badRequest("rejects needs operation=, by whose number they are asked for")
	case most > 0:
		im.rejects = c.s.rejects.open(operationID{c.database.key, id}, most)
	}
	return im, format, nil
}

// run reads the body to its end. With an error it also returns the place of the record.
func (im *importer) run(ctx context.Context, format importFormat) (place string, err error) {
	body, stop, err := im.c.quietBody(ctx)
	defer stop()
	if err != nil {
		return "", badRequest("the body is not what gzip makes")
	}
	im.read = &countedReader{r: body}
	source, err := format.open(im.c, im.read)
	if err != nil {
		return "", err
	}
	if dump, is := source.(*dumpSource); is {
		dump.im, dump.ctx = im, ctx
	}
	for {
		record, err := source.next()
		if err == nil {
			if place, err = im.add(ctx, record); err != nil {
				return place, err
			}
			continue
		}
		// First store the records before it.
		if place, stop := im.flush(ctx); stop != nil || err == io.EOF {
			return place, stop
		}
		bad, is := errors.AsType[*badRecord](err)
		if !is {
			return record.place, im.read.explain(err)
		}
		if err := im.reject(record.place, bad.raw, bad.err); err != nil {
			return record.place, err
		}
	}
}

// add adds a record to the batch, after storing the batch if it is full.
func (im *importer) add(ctx context.Context, record importRecord) (place string, err error) {
	if len(im.items) == importDocuments || len(im.items) > 0 && len(record.text) > cap(im.arena)-len(im.arena) {
		if place, err := im.flush(ctx); err != nil {
			return place, err
		}
	}
	plan, err := im.planOf(record.text)
	if err == nil && plan.counters != nil {
		if place, err := im.flush(ctx); err != nil {
			return place, err
		}
		err = im.c.db.RaiseCounters(ctx, *plan.counters)
		if err == nil || !isRefusal(err) {
			return record.place, err
		}
	}
	if err != nil {
		if place, err := im.flush(ctx); err != nil {
			return place, err
		}
		return record.place, im.reject(record.place, record.text, err)
	}
	record.text = im.hold(record.text)
	im.items = append(im.items, importItem{record, plan})
	return "", nil
}

// hold returns a copy of text that is valid until the next flush.
func (im *importer) hold(text []byte) []byte {
	if im.arena == nil {
		im.arena = make([]byte, 0, bulkBatchBytes)
	}
	if len(text) > cap(im.arena)-len(im.arena) {
		return bytes.Clone(text)
	}
	start := len(im.arena)
	im.arena = append(im.arena, text...)
	return im.arena[start:len(im.arena):len(im.arena)]
}

// flush stores the batch.
func (im *importer) flush(ctx context.Context) (place string, err error) {
	place, err = im.apply(ctx, im.items)
	clear(im.items)
	im.items, im.arena = im.items[:0], im.arena[:0]
	return place, err
}

// apply stores items in their order, in one transaction if the database accepts all of
// them. Otherwise it halves them until each refused one is alone.
func (im *importer) apply(ctx context.Context, items []importItem) (place string, err error) {
	if len(items) == 0 {
		return "", nil
	}
	im.batch.Reset()
	for i := range items {
		items[i].addTo(&im.batch)
	}
	// Without cancellation: a batch is short, and cancelling it could leave a gap of HiLo
	// numbers.
	if err = ctx.Err(); err == nil {
		_, err = im.c.db.Apply(context.WithoutCancel(ctx), &im.batch)
	}
	switch {
	case err == nil:
		im.done.Documents += int64(len(items))
		for i := range items {
			im.done.Bytes += int64(len(items[i].text))
		}
		im.report()
		return "", nil
	case !isRefusal(err):
		return items[0].place, err
	case len(items) == 1:
		return items[0].place, im.reject(items[0].place, items[0].text, err)
	}
	half := len(items) / 2
	if place, err := im.apply(ctx, items[:half]); err != nil {
		return place, err
	}
	return im.apply(ctx, items[half:])
}

// refusals are errors that concern one document, after which others can still be stored.
var refusals = []error{jay.ErrInvalidDocument, jay.ErrInvalidID, jay.ErrCollection, jay.ErrConflict, jay.ErrExists, jay.ErrUnique, jay.ErrTooLarge, jay.ErrUsage, jay.ErrInvalidAttachment}

// isRefusal reports whether an error is one of refusals, or of the record itself.
func isRefusal(err error) bool {
	if p, is := errors.AsType[*problem](err); is {
		return p.status == http.StatusBadRequest
	}
	return slices.ContainsFunc(refusals, func(target error) bool { return errors.Is(err, target) })
}

// reject keeps a refused record, or ends the import.
func (im *importer) reject(place string, text []byte, err error) error {
	if im.rejects == nil || !isRefusal(err) && !errors.Is(err, transfer.ErrInvalid) && !errors.Is(err, errElement) {
		return err
	}
	if err := im.c.s.rejects.add(im.rejects, text); err != nil {
		return err
	}
	im.done.Rejected++
	if len(im.done.Problems) < maxImportNotes {
		im.done.Problems = append(im.done.Problems, importNote{place, importMessage(err)})
	}
	im.report()
	return nil
}

// importMessage returns the reason to report for a record.
func importMessage(err error) string {
	switch {
	case errors.Is(err, transfer.ErrInvalid):
		return oneLine(err.Error())
	case errors.Is(err, errElement):
		return "it is not JSON"
	}
	return problemOf(err).message
}

// leaveOut counts a record of a kind that the server does not import.
func (im *importer) leaveOut(what string) {
	if im.done.LeftOut == nil {
		im.done.LeftOut = make(map[string]int64)
	}
	if _, found := im.done.LeftOut[what]; found || len(im.done.LeftOut) < 32 {
		im.done.LeftOut[what]++
	}
}

// snapshot returns a copy of the progress.
func (im *importer) snapshot() importProgress {
	p := im.done
	if im.read != nil {
		p.Read = im.read.n
	}
	p.LeftOut, p.Problems = maps.Clone(p.LeftOut), slices.Clip(p.Problems)
	return p
}

func (im *importer) report() { im.c.report(im.o, im.snapshot()) }

// importProblem returns the reply for an import that has failed at a place, with what it
// has stored.
func (c *call) importProblem(ctx context.Context, err error, place string, done importProgress) error {
	var p *problem
	switch {
	case c.s.ctx.Err() != nil:
		p = errShutdown
	case errors.Is(err, os.ErrDeadlineExceeded):
		p = badRequest("the client has sent nothing for %s", c.s.opts.SilenceTimeout)
	case context.Cause(ctx) != nil:
		p = &problem{status: http.StatusInternalServerError, kind: typeRequestCancelled, message: "the import was cut short"}
	case errors.Is(err, errElement):
		p = badRequest("the stream is no JSON objects, one behind the other or in an array")
	case errors.Is(err, errDamaged):
		p = badRequest("the stream ends before its end, or is damaged")
	case errors.Is(err, transfer.ErrInvalid):
		p = badRequest("%s", oneLine(err.Error()))
	default:
		p = problemOf(err)
	}
	out := *p
	if place != "" {
		out.message = fmt.Sprintf("%s: %s", place, p.message)
	}
	out.fields = map[string]any{"documents": done.Documents, "rejected": done.Rejected}
	return closing(&out)
}

// errDamaged is wrapped by the errors for a stream that was cut off or cannot be
// decompressed.
var errDamaged = errors.New("the stream ends before its end, or is damaged")

// countedReader counts the bytes read of the body, before decompression, and keeps its
// last error.
type countedReader struct {
	r   io.Reader
	n   int64
	err error
}

// Read implements io.Reader.
func (c *countedReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

// explain returns the error of the body itself, in place of one that follows from it. A
// complete body that cannot be decompressed is damaged.
func (c *countedReader) explain(err error) error {
	switch {
	case c.err != nil && !errors.Is(c.err, io.ErrUnexpectedEOF) && !errors.Is(c.err, gzip.ErrChecksum):
		return c.err
	case errors.Is(err, transfer.ErrInvalid), errors.Is(err, errElement):
		return err
	}
	if _, is := errors.AsType[*problem](err); is {
		return err
	}
	return fmt.Errorf("%w: %w", errDamaged, err)
}
