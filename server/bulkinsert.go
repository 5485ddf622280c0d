package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay"
)

const (
	// bulkBatchBytes bounds a batch of a bulk insert. There are up to three at a time.
	bulkBatchBytes = 2 << 20

	// bulkMemory is what a bulk insert takes from the server's memory budget, beside its
	// largest element.
	bulkMemory = 4*bulkBatchBytes + 2*elementBufferBytes

	// maxUnchangedIDs bounds the IDs that a bulk insert remembers if it skips unchanged
	// documents.
	maxUnchangedIDs = 10_000
)

// The exceptions of a bulk insert.
const (
	typeBulkAborted  = raven + "Documents.BulkInsert.BulkInsertAbortedException"
	typeBulkProtocol = raven + "Documents.BulkInsert.BulkInsertProtocolViolationException"
)

// bulkCommand is an element of the stream.
type bulkCommand struct {
	kind, id, name, contentType string
	document                    []byte
	contentLength               int64
}

// bulkProgress is the progress of a bulk insert, in RavenDB's format.
type bulkProgress struct {
	Type                 string `json:"$type"`
	Total                int64
	BatchCount           int64
	LastProcessedID      string `json:"LastProcessedId"`
	DocumentsProcessed   int64
	AttachmentsProcessed int64
	CountersProcessed    int64
	TimeSeriesProcessed  int64
}

// bulkInsert stores the documents of a stream, as an operation whose number the client has
// got before. It holds one document and up to three batches, and makes a client that is
// faster than the disk wait. Documents that were stored before an error stay.
func (c *call) bulkInsert() error {
	id, err := c.params.number("id", 0)
	if err != nil {
		return err
	}
	skip, err := c.params.flag("skipOverwriteIfUnchanged")
	if err != nil {
		return err
	}
	if err := c.checkContentType(); err != nil {
		return err
	}
	if err := c.take(bulkMemory); err != nil {
		return err
	}
	streamContext, cancel := c.streamContext()
	defer cancel()
	ctx, o, err := c.s.operations.start(streamContext, c.database.key, id, c.about())
	if err != nil {
		return err
	}
	// The Node.js client sends the end of the array and waits for the reply before it ends
	// its stream, so the reply must not wait for the end of the stream.
	control := http.NewResponseController(c.w)
	_ = control.EnableFullDuplex()
	b := &bulkInsertion{c: c, o: o, seen: make(map[string]bool), skip: skip}
	err = b.protected(ctx)
	progress := b.progress()
	if err == nil {
		c.s.operations.progress(o, progress)
		progress.Type = "Raven.Client.Documents.Operations.BulkOperationResult, Raven.Client"
		c.s.operations.finish(o, operationState{Status: operationCompleted, Result: progress})
		// The end of this stream may still arrive on the connection.
		c.reply.Set("Connection", "close")
		_ = control.SetReadDeadline(time.Now().Add(time.Second))
		return c.empty(http.StatusOK)
	}
	p := b.problem(ctx, err)
	c.s.operations.progress(o, progress)
	c.s.operations.finish(o, operationState{Status: operationFaulted, Result: failure(p)})
	return p
}

// bulkInsertion is a bulk insert under way.
type bulkInsertion struct {
	c           *call
	o           *operation
	w           *jay.BulkWriter
	skip        bool            // skip unchanged documents
	seen        map[string]bool // folded IDs that were put since the last flush. For skip.
	attachments atomic.Int64

	mu   sync.Mutex
	last string // ID that was added last. Guarded by mu.
}

// protected runs the bulk insert, and turns a panic into an error.
func (b *bulkInsertion) protected(ctx context.Context) (err error) {
	_, err = runOperation(ctx, b.o, func(ctx context.Context, _ *operation) (any, error) { return nil, b.run(ctx) })
	return err
}

// run reads the stream to its end.
func (b *bulkInsertion) run(ctx context.Context) (err error) {
	body, stop, err := b.c.quietBody(ctx)
	defer stop()
	if err != nil {
		return err
	}
	b.w, err = b.c.db.BulkInsert(&jay.BulkOptions{BatchBytes: bulkBatchBytes, Progress: func(jay.BulkProgress) {
		b.c.s.operations.progress(b.o, b.progress())
	}})
	if err != nil {
		return err
	}
	defer func() {
		if closed := b.w.Close(); err == nil {
			err = closed
		}
	}()
	elements := newElementReader(body, b.c.s.opts.MaxBodyBytes, b.c.take)
	for {
		element, err := elements.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		command, err := parseBulkCommand(element)
		if err != nil {
			return err
		}
		if err := b.carryOut(ctx, command, elements); err != nil {
			return err
		}
		if command.id != "" {
			b.mu.Lock()
			b.last = command.id
			b.mu.Unlock()
		}
	}
}

// carryOut carries out one element.
func (b *bulkInsertion) carryOut(ctx context.Context, command bulkCommand, elements *elementReader) error {
	switch command.kind {
	case "HeartBeat":
		return nil
	case "PUT":
		if len(command.document) == 0 || command.document[0] != '{' {
			return badRequest("element %d of the stream is a PUT without a Document", elements.read)
		}
		if b.skip {
			unchanged, err := b.unchanged(ctx, command)
			if err != nil || unchanged {
				return err
			}
		}
		_, err := b.w.Put(ctx, command.id, command.document)
		return err
	case "AttachmentPUT":
		if command.contentLength < 0 {
			return badRequest("element %d of the stream is an AttachmentPUT without a ContentLength", elements.read)
		}
		// The command may need a document of the present batch.
		if err := b.w.Flush(ctx); err != nil {
			return err
		}
		content := elements.raw(command.contentLength)
		if _, err := b.c.db.Attachments(command.id).Put(ctx, command.name, content, attachmentOptions(command.contentType)...); err != nil {
			return noDocument(command.id, err)
		}
		b.attachments.Add(1)
		return nil
	}
	if reason, found := refusedCommands[command.kind]; found {
		return notSupported("%s in a bulk insert: %s", command.kind, reason)
	}
	return badRequest("element %d of the stream has the unknown type %.100q", elements.read, command.kind)
}

// progress returns the progress of the bulk insert.
func (b *bulkInsertion) progress() bulkProgress {
	b.mu.Lock()
	last := b.last
	b.mu.Unlock()
	p := bulkProgress{Type: "Raven.Client.Documents.Operations.BulkInsertProgress, Raven.Client", LastProcessedID: last, AttachmentsProcessed: b.attachments.Load()}
	if b.w != nil {
		done := b.w.Progress()
		p.BatchCount, p.DocumentsProcessed = done.Batches, done.Documents
	}
	p.Total = p.DocumentsProcessed + p.AttachmentsProcessed
	return p
}

// unchanged reports whether the stored document is the same.
func (b *bulkInsertion) unchanged(ctx context.Context, command bulkCommand) (bool, error) {
	key := strings.ToLower(command.id)
	if len(b.seen) >= maxUnchangedIDs {
		if err := b.w.Flush(ctx); err != nil {
			return false, err
		}
		clear(b.seen)
	}
	if b.seen[key] { // its newest version may not be stored yet
		return false, nil
	}
	if command.id != "" && !strings.HasSuffix(command.id, "/") && !strings.HasSuffix(command.id, "|") {
		doc, err := b.c.db.Get(ctx, command.id)
		if err == nil && sameDocument(doc, command.document) {
			return true, nil
		}
		if err != nil && !isMissing(err) {
			return false, err
		}
	}
	b.seen[key] = true
	return false, nil
}

// sameDocument reports whether writing this JSON would change only the version of the
// document.
func sameDocument(doc *jay.Document, given []byte) bool {
	stored, err := doc.MarshalJSON()
	if err != nil {
		return false
	}
	var a, b map[string]any
	if decodeNumbers(stored, &a) != nil || decodeNumbers(given, &b) != nil {
		return false
	}
	for _, m := range []map[string]any{a, b} {
		if meta, is := m["@metadata"].(map[string]any); is {
			for _, own := range []string{"@id", "@change-vector", "@last-modified", "@flags", "@attachments"} {
				delete(meta, own)
			}
			if len(meta) == 0 {
				delete(m, "@metadata")
			}
		}
	}
	return reflect.DeepEqual(a, b)
}

// decodeNumbers decodes JSON whose numbers keep their digits.
func decodeNumbers(text []byte, v any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(v)
}

// problem returns the reply for a bulk insert that has failed.
func (b *bulkInsertion) problem(ctx context.Context, err error) *problem {
	var p *problem
	switch {
	case context.Cause(ctx) == errKilled:
		p = errBulkKilled
	case b.c.s.ctx.Err() != nil:
		p = errShutdown
	case errors.Is(err, os.ErrDeadlineExceeded):
		p = &problem{status: http.StatusBadRequest, kind: typeBulkAborted, message: "the client has sent nothing for " + b.c.s.opts.SilenceTimeout.String()}
	case context.Cause(ctx) != nil:
		p = &problem{status: http.StatusBadRequest, kind: typeBulkAborted, message: "the bulk insert was cut short"}
	case errors.Is(err, errElement), errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		p = &problem{status: http.StatusBadRequest, kind: typeBulkProtocol, message: err.Error()}
	case errors.Is(err, io.ErrUnexpectedEOF):
		p = &problem{status: http.StatusBadRequest, kind: typeBulkProtocol, message: "the stream ends before its end"}
	default:
		p = problemOf(err)
	}
	return closing(p) // the rest of the stream is not read
}

// parseBulkCommand parses an element. The result shares the element's memory.
func parseBulkCommand(element []byte) (command bulkCommand, err error) {
	command.contentLength = -1
	err = eachMember(element, func(name, value []byte) (err error) {
		switch string(name) {
		case "Id":
			command.id, err = textOf(value)
		case "Type":
			command.kind, err = textOf(value)
		case "Name":
			command.name, err = textOf(value)
		case "ContentType":
			command.contentType, err = textOf(value)
		case "Document":
			command.document = value
		case "ContentLength":
			if command.contentLength, err = strconv.ParseInt(string(value), 10, 64); err != nil || command.contentLength < 0 {
				err = badRequest("ContentLength must be a whole number, not %.100q", value)
			}
		}
		return err
	})
	return command, err
}

// quietBody returns the decompressed body of a stream. Its reads end with ctx. The caller
// must call stop, also after an error.
func (c *call) quietBody(ctx context.Context) (body io.Reader, stop func() bool, err error) {
	source := &quietReader{ctx: ctx, c: c, r: c.r.Body}
	stop = source.watch()
	if !strings.EqualFold(c.header.Get("Content-Encoding"), "gzip") {
		return source, stop, nil
	}
	body, err = gzip.NewReader(source)
	return body, stop, err
}

// quietReader reads a body whose sender may be slow, but must not be silent for longer
// than Options.SilenceTimeout.
type quietReader struct {
	ctx context.Context
	c   *call
	r   io.Reader

	mu sync.Mutex // guards the deadline, so that none is set after ctx has ended
}

// watch makes a running read end when ctx ends. The caller must call stop.
func (q *quietReader) watch() (stop func() bool) {
	return context.AfterFunc(q.ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		_ = http.NewResponseController(q.c.w).SetReadDeadline(time.Unix(1, 0))
	})
}

// Read implements io.Reader.
func (q *quietReader) Read(b []byte) (int, error) {
	q.mu.Lock()
	if q.ctx.Err() != nil {
		q.mu.Unlock()
		return 0, context.Cause(q.ctx)
	}
	// A ResponseWriter that has no deadlines is one of a test, or wrapped by a user.
	_ = http.NewResponseController(q.c.w).SetReadDeadline(time.Now().Add(q.c.s.opts.SilenceTimeout))
	q.mu.Unlock()
	return q.r.Read(b)
}
