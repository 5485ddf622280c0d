package server

import (
	"context"
	"math"

	"github.com/jaydb/jay"
)

// streamDocuments sends documents one after the other, in the order of their IDs. It
// holds one document at a time.
func (c *call) streamDocuments() error {
	start, err := c.params.count("start", 0)
	if err != nil {
		return err
	}
	size, err := c.params.count("pageSize", math.MaxInt32)
	if err != nil {
		return err
	}
	lines := false
	switch format := c.params.get("format"); format {
	case "", "json":
	case "jsonl":
		lines = true
	default:
		return badRequest("format is json or jsonl, not %.100q", format)
	}
	scan := jay.Scan{Prefix: c.params.get("startsWith"), Matches: c.params.get("matches"), Exclude: c.params.get("exclude"), After: c.params.get("startAfter"), Limit: start + size}

	// The stream ends with the server, and with its database.
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	defer context.AfterFunc(c.s.ctx, cancel)()
	defer context.AfterFunc(c.database.ctx, cancel)()
	documents := c.db.Documents(ctx, scan)
	if size == 0 {
		documents = func(func(*jay.Document, error) bool) {}
	}

	out := &documentStream{lines: lines, skip: start}
	for doc, err := range documents {
		if err != nil {
			return err // before the first document it is answered like any other
		}
		if err := out.add(c, doc); err != nil {
			return err
		}
	}
	return out.end(c)
}

// documentStream writes documents as an object with Results, or one a line.
type documentStream struct {
	lines bool
	skip  int

	w       *streamWriter
	written int
	line    []byte
	taken   int64 // of the server's memory, for the largest document
}

// begin sends the head.
func (d *documentStream) begin(c *call) (err error) {
	if d.lines {
		d.w = c.startStream("application/x-ndjson; charset=utf-8")
		return nil
	}
	d.w = c.startStream("application/json; charset=utf-8")
	_, err = d.w.Write([]byte(`{"Results":[`))
	return err
}

// add writes a document.
func (d *documentStream) add(c *call, doc *jay.Document) (err error) {
	if d.skip > 0 {
		d.skip--
		return nil
	}
	if d.w == nil {
		if err := d.begin(c); err != nil {
			return err
		}
	}
	if size := int64(len(doc.Body())) + 1024; size > d.taken { // the documents before it are gone
		if err := c.take(size - d.taken); err != nil {
			return err
		}
		d.taken = size
	}
	d.line = d.line[:0]
	if d.written > 0 && !d.lines {
		d.line = append(d.line, ',')
	}
	if d.line, err = appendDocument(d.line, doc, false); err != nil {
		return err
	}
	if d.lines {
		d.line = append(d.line, '\n')
	}
	d.written++
	_, err = d.w.Write(d.line)
	return err
}

// end finishes the stream.
func (d *documentStream) end(c *call) error {
	if d.w == nil {
		if err := d.begin(c); err != nil {
			return err
		}
	}
	if !d.lines {
		if _, err := d.w.Write([]byte("]}")); err != nil {
			return err
		}
	}
	return d.w.close()
}
