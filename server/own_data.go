package server

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/jaydb/jay"
)

// This file is the part of Jay's own interface by which data goes in and out: walks
// over IDs, imports, backups, and the figures of the database.

// ownStats answers the figures of the database. They are cheap: a page may ask for them
// every second.
func (c *call) ownStats() error {
	now, err := c.db.Stats(c.ctx)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, now)
}

// ownDocuments answers a page of documents in the order of their IDs, or in the opposite
// one, behind an ID.
func (c *call) ownDocuments() error {
	scan, size, err := c.pageScan()
	if err != nil {
		return err
	}
	if err := c.take(2 * pageBytes); err != nil { // what a page may hold, before one document
		return err
	}
	var page documentPage
	if err := page.read(c.db.Documents(c.ctx, scan), size); err != nil {
		return err
	}
	dst := []byte(`{"rows":[`)
	for i, doc := range page.docs {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendRow(dst, &jay.Row{Document: doc}); err != nil {
			return err
		}
	}
	dst = append(dst, ']')
	if page.more {
		dst = append(append(dst, `,"next":`...), mustJSON(page.docs[len(page.docs)-1].ID())...)
	}
	return c.text(http.StatusOK, append(dst, '}'))
}

// ownImport stores the documents of a stream, one a line, as streams/docs writes them: each
// has its ID in @metadata. It holds one document, and up to three batches. What was
// stored before an error stays.
func (c *call) ownImport() error {
	if err := c.checkEncoding(); err != nil {
		return closing(err)
	}
	if err := c.take(bulkMemory); err != nil {
		return err
	}
	ctx, cancel := c.streamContext()
	defer cancel()
	body, stop, err := c.quietBody(ctx)
	defer stop()
	if err != nil {
		return closing(badRequest("the body is not what gzip makes"))
	}
	w, err := c.db.BulkInsert(&jay.BulkOptions{BatchBytes: bulkBatchBytes})
	if err != nil {
		return err
	}
	elements := newElementReader(body, c.s.opts.MaxBodyBytes, c.take)
	elements.lines = true
	if err := importLines(ctx, w, elements); err != nil {
		return c.importProblem(ctx, err, elements.read, w.Progress().Documents)
	}
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Time{})
	return c.json(http.StatusOK, map[string]any{"documents": w.Progress().Documents})
}

// importLines adds the documents to the writer, and closes it.
func importLines(ctx context.Context, w *jay.BulkWriter, elements *elementReader) (err error) {
	defer func() {
		if closed := w.Close(); err == nil {
			err = closed
		}
	}()
	for {
		document, err := elements.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		id, err := idOf(document)
		if err != nil {
			return err
		}
		if _, err := w.Put(ctx, id, document); err != nil {
			return err
		}
	}
}

// idOf returns the ID in the metadata of a document.
func idOf(document []byte) (id string, err error) {
	err = eachMember(document, func(name, value []byte) error {
		if string(name) != "@metadata" || value[0] != '{' {
			return nil
		}
		return eachMember(value, func(name, value []byte) (err error) {
			if string(name) == "@id" {
				id, err = textOf(value)
			}
			return err
		})
	})
	if err == nil && id == "" {
		err = badRequest("the document has no @id in its @metadata")
	}
	return id, err
}

// importProblem says at which line an import has failed, and how many documents it has
// stored.
func (c *call) importProblem(ctx context.Context, err error, line int, stored int64) error {
	var p *problem
	switch {
	case c.s.ctx.Err() != nil:
		p = errShutdown
	case errors.Is(err, os.ErrDeadlineExceeded):
		p = badRequest("the client has sent nothing for %s", c.s.opts.SilenceTimeout)
	case context.Cause(ctx) != nil:
		p = &problem{status: http.StatusInternalServerError, kind: typeRequestCancelled, message: "the import was cut short"}
	case errors.Is(err, errElement):
		p = badRequest("the stream is no JSON objects, one behind the other")
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, gzip.ErrChecksum):
		p = badRequest("the stream ends before its end, or is damaged")
	default:
		p = problemOf(err)
	}
	out := *p
	out.message = fmt.Sprintf("line %d: %s", line, p.message)
	out.fields = map[string]any{"documents": stored}
	return closing(&out)
}

// ownBackup sends a backup of the database, which jay.Restore and jay restore take. The
// stream has an end that shows that it is whole.
func (c *call) ownBackup() error {
	var opts []jay.BackupOption
	if since := c.params.get("since"); since != "" {
		opts = append(opts, jay.BackupSince(since))
	}
	once, err := c.params.flag("once")
	if err != nil {
		return err
	}
	if once {
		opts = append(opts, jay.BackupOnce())
	}
	ctx, cancel := c.streamContext()
	defer cancel()
	out := &backupWriter{c: c}
	if _, err := c.db.Backup(ctx, out, opts...); err != nil {
		var base *jay.BackupBaseError
		if errors.As(err, &base) && !c.started {
			return badRequest("%s", strings.TrimPrefix(base.Error(), "jay: "))
		}
		return err
	}
	return nil
}

// backupWriter sends the head of the reply with the first bytes, so that an error before
// them has a status.
type backupWriter struct {
	c *call
	w *pacedWriter
}

// Write implements io.Writer.
func (b *backupWriter) Write(text []byte) (int, error) {
	if b.w == nil {
		b.c.started, b.c.status = true, http.StatusOK
		b.c.reply.Set("Content-Type", "application/octet-stream")
		b.c.w.WriteHeader(http.StatusOK)
		b.w = &pacedWriter{c: b.c, since: time.Now()}
	}
	return b.w.Write(text)
}
