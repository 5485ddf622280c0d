package raven

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
)

// streamRoutes are the endpoints of streams.
var streamRoutes = []*serve.Route{
	{Method: "GET", Path: "{D}/streams/docs", Run: streamDocuments, Stream: true, Takes: "exclude format matches pageSize start startAfter startsWith"},
	{Method: "GET", Path: "{D}/streams/queries", Run: streamQuery, Stream: true, Takes: "format pageSize query start"},
	{Method: "POST", Path: "{D}/streams/queries", Run: streamQuery, Body: true, Stream: true, Needs: serve.ReadRight, Takes: "format"},
}

// streamDocuments sends documents in the order of their IDs, holding one at a time.
func streamDocuments(c *serve.Call) error {
	start, size, err := c.Params.Page()
	if err != nil {
		return err
	}
	out := &rowStream{head: `{"Results":[`, skip: start}
	if out.lines, err = streamsLines(c); err != nil {
		return err
	}
	scan := jay.Scan{Prefix: c.Params.Get("startsWith"), Matches: c.Params.Get("matches"), Exclude: c.Params.Get("exclude"), After: c.Params.Get("startAfter"), Limit: start + size}
	ctx, cancel := c.StreamContext()
	defer cancel()
	documents := c.DB.Documents(ctx, scan)
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
func streamQuery(c *serve.Call) error {
	request, err := readQuery(c)
	if p, is := err.(*serve.Problem); is && p.Kind == verbs.TypeIndexMissing {
		return c.Empty(http.StatusNotFound) // as for a query
	}
	if err != nil {
		return err
	}
	given, err := verbs.Parameters(c, request.Query, request.QueryParameters)
	if err != nil {
		return err
	}
	out := &rowStream{item: true}
	if out.lines, err = streamsLines(c); err != nil {
		return err
	}
	if parsed, err := query.Parse(request.Query, given); err == nil && parsed.IncludesMore() { // while it can be said
		return serve.NotSupported("%s %s: a stream brings no included documents, highlights or explanations", c.Route.Method, c.Route.Path)
	}
	ctx, cancel := c.StreamContext()
	defer cancel()
	ctx = c.Reading(ctx, 1)
	return c.DB.View(ctx, func(tx *jay.Tx) error {
		a, err := request.answers(c, tx, given)
		if err != nil {
			return err
		}
		total, err := a.count(ctx)
		if err != nil {
			return err
		}
		// The Go client requires the members in this order.
		stats := fmt.Sprintf(`"ResultEtag":0,"IsStale":false,"IndexName":%s,"TotalResults":%d,"IndexTimestamp":%q`, serve.MustJSON(cmp.Or(c.Index, "collection")), total, c.Server.Options.Now().UTC().Format(serve.RavenTime))
		out.head = "{" + stats + `,"Results":[`
		if out.lines {
			out.head = `{"Stats":{` + stats + "}}\n"
		}
		for row, err := range a.iterate(ctx, request.QueryPage) {
			if err != nil {
				return err
			}
			if row.JSON, err = request.columns.project(row); err != nil {
				return err
			}
			if err := out.add(c, row.Document, row.JSON); err != nil {
				return err
			}
		}
		return out.end(c)
	})
}

// streamsLines reports whether the stream has one result per line.
func streamsLines(c *serve.Call) (bool, error) {
	switch format := c.Params.Get("format"); format {
	case "", "json":
		return false, nil
	case "jsonl":
		return true, nil
	default:
		return false, serve.BadRequest("format is json or jsonl, not %.100q", format)
	}
}

// rowStream writes documents and rows, as an object whose last member is Results, or one
// per line.
type rowStream struct {
	head  string // text before the first result; for lines, only if item is set
	lines bool
	item  bool // the result is the Item of its line
	skip  int

	w       *serve.StreamWriter
	written int
	line    []byte
	large   serve.Largest // the memory of the largest result; earlier ones are not held
}

// begin sends the head.
func (d *rowStream) begin(c *serve.Call) (err error) {
	kind := "application/json; charset=utf-8"
	if d.lines {
		kind = "application/x-ndjson; charset=utf-8"
	}
	d.w = c.StartStream(kind)
	if !d.lines || d.item {
		_, err = d.w.Write([]byte(d.head))
	}
	return err
}

// add writes a document, or the row of a query that selects.
func (d *rowStream) add(c *serve.Call, doc *jay.Document, row []byte) (err error) {
	if d.skip > 0 {
		d.skip--
		return nil
	}
	size := int64(len(row)) + 1024
	if doc != nil {
		size += int64(len(doc.Body()))
	}
	d.large.Memory = c.Held()
	if err := d.large.Need(3 * size); err != nil { // as it was read, as JSON, and as a line
		return err
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
		d.line = append(d.line, row...)
	} else if d.line, err = verbs.AppendDocument(d.line, doc, false); err != nil {
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
func (d *rowStream) end(c *serve.Call) error {
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
	return d.w.Close()
}
