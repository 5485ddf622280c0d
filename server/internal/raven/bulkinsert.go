package raven

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
)

// bulkInsertRoutes has the endpoint of bulk inserts.
var bulkInsertRoutes = []*serve.Route{
	{Method: "POST", Path: "{D}/bulk_insert", Run: bulkInsert, Begins: "bulk insert", Stream: true, Upload: true, Takes: "id skipOverwriteIfUnchanged"},
}

const (
	// heartbeatSilences is for how many times Options.SilenceTimeout heartbeats alone keep
	// a bulk insert. RavenDB's clients send them while the program prepares documents.
	heartbeatSilences = 15

	// maxUnchangedIDs and maxUnchangedBytes bound the IDs that a bulk insert remembers if it
	// skips unchanged documents. It pays for the bytes in advance.
	maxUnchangedIDs   = 10_000
	maxUnchangedBytes = 1 << 20
	unchangedOverhead = 64 // bytes that an ID takes beside its text
)

// The exceptions of a bulk insert.
const typeBulkProtocol = serve.ExceptionPrefix + "Documents.BulkInsert.BulkInsertProtocolViolationException"

// bulkCommand is an element of the stream.
type bulkCommand struct {
	kind, id, name, contentType string
	unknown                     string // another member, or one that is there twice
	seen                        int    // bits of the members of bulkMembers that are there
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
func bulkInsert(c *serve.Call) error {
	id, err := c.Params.Number("id", 0)
	if err != nil {
		return err
	}
	skip, err := c.Params.Flag("skipOverwriteIfUnchanged")
	if err != nil {
		return err
	}
	if err := c.CheckContentType(); err != nil {
		return err
	}
	need := int64(verbs.BulkMemory)
	if skip {
		need += maxUnchangedBytes
	}
	if err := c.Take(need); err != nil {
		return err
	}
	streamContext, cancel := c.StreamContext()
	defer cancel()
	ctx, o, err := c.Server.Operations.Start(streamContext, c.Database.Key, id, c.About())
	if err != nil {
		return err
	}
	// The Node.js client sends the end of the array and waits for the reply before it ends
	// its stream, so the reply must not wait for the end of the stream.
	control := http.NewResponseController(c.Writer)
	_ = control.EnableFullDuplex()
	b := &bulkInsertion{c: c, o: o, large: serve.Largest{Memory: c.Held()}, seen: make(map[string]bool), skip: skip}
	err = b.protected(ctx)
	progress := b.progress()
	if err == nil {
		c.Server.Operations.Progress(o, progress)
		progress.Type = "Raven.Client.Documents.Operations.BulkOperationResult, Raven.Client"
		c.Server.Operations.Finish(o, serve.OperationState{Status: serve.OperationCompleted, Result: progress})
		// The end of this stream may still arrive on the connection.
		c.Reply.Set("Connection", "close")
		_ = control.SetReadDeadline(time.Now().Add(time.Second))
		return c.Empty(http.StatusOK)
	}
	p := b.problem(ctx, err)
	c.Server.Operations.Progress(o, progress)
	c.Server.Operations.Finish(o, serve.OperationState{Status: serve.OperationFaulted, Result: serve.Failure(p)})
	return p
}

// bulkInsertion is a bulk insert under way.
type bulkInsertion struct {
	c           *serve.Call
	o           *serve.Operation
	w           *jay.BulkWriter
	large       serve.Largest   // what it takes to store the largest document
	skip        bool            // skip unchanged documents
	seen        map[string]bool // folded IDs that were put since the last flush. For skip.
	seenBytes   int             // of seen
	attachments atomic.Int64

	mu   sync.Mutex
	last string // ID that was added last. Guarded by mu.

	began time.Time // when the last element that is no heartbeat came, or the stream began
}

// protected runs the bulk insert, and turns a panic into an error.
func (b *bulkInsertion) protected(ctx context.Context) (err error) {
	_, err = serve.RunOperation(ctx, b.o, func(ctx context.Context, _ *serve.Operation) (any, error) { return nil, b.run(ctx) })
	return err
}

// run reads the stream to its end.
func (b *bulkInsertion) run(ctx context.Context) (err error) {
	b.began = b.c.Server.Options.Now()
	body, stop, err := verbs.QuietBody(b.c, ctx)
	defer stop()
	if err != nil {
		return err
	}
	b.w, err = b.c.DB.BulkInsert(&jay.BulkOptions{BatchBytes: verbs.BulkBatchBytes, Progress: func(jay.BulkProgress) {
		b.c.Server.Operations.Progress(b.o, b.progress())
	}})
	if err != nil {
		return err
	}
	defer func() {
		if closed := b.w.Close(); err == nil {
			err = closed
		}
	}()
	elements := serve.NewElementReader(body, b.c.Server.Options.MaxBodyBytes, b.c.Take)
	for {
		element, err := elements.Next()
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
		if command.kind != "HeartBeat" {
			b.began = b.c.Server.Options.Now()
		}
		if command.id != "" {
			b.mu.Lock()
			b.last = command.id
			b.mu.Unlock()
		}
	}
}

// carryOut carries out one element.
func (b *bulkInsertion) carryOut(ctx context.Context, command bulkCommand, elements *serve.ElementReader) error {
	if command.unknown != "" && refusedCommands[command.kind] == "" {
		return serve.BadRequest("element %d of the stream has the member %.100q, which is not known here or is there twice", elements.Read, command.unknown)
	}
	if has, known := bulkKinds[command.kind]; known && command.seen&^has != 0 {
		return serve.BadRequest("element %d of the stream, of type %s, has no %s", elements.Read, command.kind, bulkMembers[bits.TrailingZeros(uint(command.seen&^has))])
	}
	switch command.kind {
	case "HeartBeat":
		if most := heartbeatSilences * b.c.Server.Options.SilenceTimeout; b.c.Server.Options.Now().Sub(b.began) > most {
			return &serve.Problem{Status: http.StatusBadRequest, Kind: serve.TypeBulkAborted, Message: fmt.Sprintf("the client has sent only heartbeats for %s, which is the most", most)}
		}
		return nil
	case "PUT":
		if len(command.document) == 0 || command.document[0] != '{' {
			return serve.BadRequest("element %d of the stream is a PUT without a Document", elements.Read)
		}
		if len(command.document) > serve.ElementBufferBytes {
			if err := b.large.Need(serve.StoreBytes(command.document)); err != nil {
				return err
			}
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
			return serve.BadRequest("element %d of the stream is an AttachmentPUT without a ContentLength", elements.Read)
		}
		// The command may need a document of the present batch.
		if err := b.w.Flush(ctx); err != nil {
			return err
		}
		content := elements.Raw(command.contentLength)
		if _, err := b.c.DB.Attachments(command.id).Put(ctx, command.name, content, attachmentOptions(command.contentType)...); err != nil {
			return noDocument(command.id, err)
		}
		b.attachments.Add(1)
		return nil
	}
	if reason, found := refusedCommands[command.kind]; found {
		return serve.NotSupported("%s in a bulk insert: %s", command.kind, reason)
	}
	return serve.BadRequest("element %d of the stream has the unknown type %.100q", elements.Read, command.kind)
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
	if len(b.seen) >= maxUnchangedIDs || b.seenBytes+len(key)+unchangedOverhead > maxUnchangedBytes {
		if err := b.w.Flush(ctx); err != nil {
			return false, err
		}
		clear(b.seen)
		b.seenBytes = 0
	}
	if b.seen[key] { // its newest version may not be stored yet
		return false, nil
	}
	if !ids.Classify(command.id, ids.DefaultSeparator).Made() {
		doc, err := b.c.DB.Get(ctx, command.id)
		same := false
		if err == nil {
			same, err = b.same(doc, command.document)
		}
		if same || err != nil && !serve.IsMissing(err) {
			return same, err
		}
	}
	b.seen[key] = true
	b.seenBytes += len(key) + unchangedOverhead
	return false, nil
}

// same is sameDocument, for which it pays while it runs.
func (b *bulkInsertion) same(doc *jay.Document, given []byte) (bool, error) {
	stored, err := doc.MarshalJSON()
	if err != nil {
		return false, err
	}
	memory := b.c.Server.Memory.Holding(b.c.Sender())
	defer memory.End()
	for _, text := range [][]byte{stored, given} {
		n, err := serve.AnyBytes(text)
		if err == nil {
			err = memory.Take(n)
		}
		if err != nil {
			return false, err
		}
	}
	return sameDocument(stored, given), nil
}

// sameDocument reports whether writing the given JSON would change only the version of the
// stored document.
func sameDocument(stored, given []byte) bool {
	var a, b map[string]any
	if serve.DecodeNumbers(stored, &a) != nil || serve.DecodeNumbers(given, &b) != nil {
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

// problem returns the reply for a bulk insert that has failed.
func (b *bulkInsertion) problem(ctx context.Context, err error) *serve.Problem {
	var p *serve.Problem
	switch {
	case context.Cause(ctx) == serve.ErrKilled:
		p = serve.ErrBulkKilled
	case b.c.Server.Ctx.Err() != nil:
		p = serve.ErrShutdown
	case errors.Is(err, os.ErrDeadlineExceeded):
		p = &serve.Problem{Status: http.StatusBadRequest, Kind: serve.TypeBulkAborted, Message: "the client has sent nothing for " + b.c.Server.Options.SilenceTimeout.String()}
	case context.Cause(ctx) != nil:
		p = &serve.Problem{Status: http.StatusBadRequest, Kind: serve.TypeBulkAborted, Message: "the bulk insert was cut short"}
	case errors.Is(err, serve.ErrElement), errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		p = &serve.Problem{Status: http.StatusBadRequest, Kind: typeBulkProtocol, Message: err.Error()}
	case errors.Is(err, io.ErrUnexpectedEOF):
		p = &serve.Problem{Status: http.StatusBadRequest, Kind: typeBulkProtocol, Message: "the stream ends before its end"}
	default:
		p = serve.ProblemOf(err)
	}
	return serve.Closing(p) // the rest of the stream is not read
}

// bulkMembers are the members of the elements of a bulk insert.
var bulkMembers = []string{"Id", "Type", "Document", "Name", "ContentType", "ContentLength"}

// bulkKinds has the members of the elements of each type, as bits of bulkMembers.
var bulkKinds = map[string]int{"HeartBeat": 0b000010, "PUT": 0b000111, "AttachmentPUT": 0b111011}

// parseBulkCommand parses an element. The result shares the element's memory.
func parseBulkCommand(element []byte) (command bulkCommand, err error) {
	command.contentLength = -1
	err = serve.EachMember(element, func(name, value []byte) (err error) {
		member := slices.Index(bulkMembers, string(name))
		if member < 0 || command.seen&(1<<member) != 0 {
			command.unknown = string(name)
		} else if string(value) != "null" {
			command.seen |= 1 << member
		}
		switch string(name) {
		case "Id":
			command.id, err = serve.TextOf(value)
		case "Type":
			command.kind, err = serve.TextOf(value)
		case "Name":
			command.name, err = serve.TextOf(value)
		case "ContentType":
			command.contentType, err = serve.TextOf(value)
		case "Document":
			command.document = value
		case "ContentLength":
			if command.contentLength, err = strconv.ParseInt(string(value), 10, 64); err != nil || command.contentLength < 0 {
				err = serve.BadRequest("ContentLength must be a whole number, not %.100q", value)
			}
		}
		return err
	})
	return command, err
}
