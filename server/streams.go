package server

import (
	"context"
	"fmt"
	"math"

	"github.com/jaydb/jay"
)

// streamDocuments sends documents in the order of their IDs, holding one at a time.
func (c *call) streamDocuments() error {
	start, size, err := c.params.page()
	if err != nil {
		return err
	}
	out := &rowStream{head: `{"Results":[`, skip: start}
	if out.lines, err = c.streamsLines(); err != nil {
		return err
	}
	scan := jay.Scan{Prefix: c.params.get("startsWith"), Matches: c.params.get("matches"), Exclude: c.params.get("exclude"), After: c.params.get("startAfter"), Limit: start + size}
	ctx, cancel := c.streamContext()
	defer cancel()
	documents := c.db.Documents(ctx, scan)
	if size == 0 {
		documents = func(func(*jay.Document, error) bool) {}
	}
	for doc, err := range documents {
		if err != nil {
			return err // before the first document an error is replied as usual
		}
		if err := out.add(c, doc, nil); err != nil {
			return err
		}
	}
	return out.end(c)
}

// streamQuery sends the results of a query one after the other. The query runs on one
// snapshot, which takes disk space as long as the stream runs.
func (c *call) streamQuery() error {
	request, err := c.queryRequest()
	if err != nil {
		return err
	}
	given, err := request.parameters()
	if err != nil {
		return err
	}
	out := &rowStream{item: true}
	if out.lines, err = c.streamsLines(); err != nil {
		return err
	}
	ctx, cancel := c.streamContext()
	defer cancel()
	return c.db.View(ctx, func(tx *jay.Tx) error {
		q, err := request.query(tx, given)
		if err != nil {
			return err
		}
		total, err := q.Skip(0).Limit(math.MaxInt).Count(ctx)
		if err != nil {
			return err
		}
		// The Go client requires the members in this order.
		stats := fmt.Sprintf(`"ResultEtag":0,"IsStale":false,"IndexName":"collection","TotalResults":%d,"IndexTimestamp":%q`, total, c.s.opts.Now().UTC().Format(ravenTime))
		out.head = "{" + stats + `,"Results":[`
		if out.lines {
			out.head = `{"Stats":{` + stats + "}}\n"
		}
		for row, err := range q.Iter(ctx) {
			if err != nil {
				return err
			}
			if len(row.Included) > 0 {
				return notSupported("%s %s: a stream brings no included documents", c.route.method, c.route.path)
			}
			if err := out.add(c, row.Document, row.JSON); err != nil {
				return err
			}
		}
		return out.end(c)
	})
}

// streamContext returns a context that also ends with the server, with the database
// of the call, and when its sender loses the right to it.
func (c *call) streamContext() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(c.ctx)
	ofServer := context.AfterFunc(c.s.ctx, cancel)
	ofDatabase := context.AfterFunc(c.s.databases.contextOf(c.database), cancel)
	unfollow := c.s.auth.follow(c, cancel)
	return ctx, func() {
		unfollow()
		ofServer()
		ofDatabase()
		cancel()
	}
}

// streamsLines reports whether the stream has one result per line.
func (c *call) streamsLines() (bool, error) {
	switch format := c.params.get("format"); format {
	case "", "json":
		return false, nil
	case "jsonl":
		return true, nil
	default:
		return false, badRequest("format is json or jsonl, not %.100q", format)
	}
}

// rowStream writes documents and rows, as an object whose last member is Results, or one
// per line.
type rowStream struct {
	head  string // text before the first result; for lines, only if item is set
	lines bool
	item  bool // the result is the Item of its line
	skip  int

	w       *streamWriter
	written int
	line    []byte
	taken   int64 // bytes of the server's budget, for the largest result
}

// begin sends the head.
func (d *rowStream) begin(c *call) (err error) {
	kind := "application/json; charset=utf-8"
	if d.lines {
		kind = "application/x-ndjson; charset=utf-8"
	}
	d.w = c.startStream(kind)
	if !d.lines || d.item {
		_, err = d.w.Write([]byte(d.head))
	}
	return err
}

// add writes a document, or the row of a query that selects.
func (d *rowStream) add(c *call, doc *jay.Document, row []byte) (err error) {
	if d.skip > 0 {
		d.skip--
		return nil
	}
	size := int64(len(row)) + 1024
	if doc != nil {
		size += int64(len(doc.Body()))
	}
	if size > d.taken { // earlier results are not held
		if err := c.take(size - d.taken); err != nil {
			return err
		}
		d.taken = size
	}
	if d.w == nil {
		if err := d.begin(c); err != nil {
			return err
		}
	}
	if err := d.compose(doc, row); err != nil {
		return err
	}
	d.written++
	_, err = d.w.Write(d.line)
	return err
}

// compose sets line to a result with its surroundings.
func (d *rowStream) compose(doc *jay.Document, row []byte) (err error) {
	d.line = d.line[:0]
	switch {
	case d.lines && d.item:
		d.line = append(d.line, `{"Item":`...)
	case !d.lines && d.written > 0:
		d.line = append(d.line, ',')
	}
	if doc == nil {
		d.line = appendProjection(d.line, row)
	} else if d.line, err = appendDocument(d.line, doc, false); err != nil {
		return err
	}
	if d.lines && d.item {
		d.line = append(d.line, '}')
	}
	if d.lines {
		d.line = append(d.line, '\n')
	}
	return nil
}

// end finishes the stream.
func (d *rowStream) end(c *call) error {
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
