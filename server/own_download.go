package server

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/transfer"
)

// exportProgress is the progress of an export.
type exportProgress struct {
	Documents int64            `json:"documents"`
	Bytes     int64            `json:"bytes"`             // before compression
	Total     int64            `json:"total,omitempty"`   // documents of a collection, or of all, when it began
	LeftOut   map[string]int64 `json:"leftOut,omitempty"` // what the format cannot hold
}

// exporting is an export under way.
type exporting struct {
	c           *call
	o           *operation
	format      string
	compression string
	comma       byte
	collection  string
	prefix      string
	query       string
	given       map[string]any
	ids         []string

	taken    int64
	reported time.Time
	done     exportProgress
}

// ownDownload sends documents in one of the formats of an import: all, those of a
// collection, those with a prefix, the results of a query, or some by their IDs. All are
// from one snapshot. It holds one document at a time.
func (c *call) ownDownload() error {
	e, err := c.newExport()
	if err != nil {
		return err
	}
	if err := c.take(1 << 20); err != nil {
		return err
	}
	ctx, cancel := c.streamContext()
	defer cancel()
	return c.watched(ctx, func(ctx context.Context, o *operation) (any, error) {
		e.o = o
		err := e.run(ctx)
		return e.snapshot(), err
	})
}

// newExport reads the parameters.
func (c *call) newExport() (e *exporting, err error) {
	e = &exporting{c: c, collection: c.params.get("collection"), prefix: c.params.get("startsWith"), query: c.params.get("query"), ids: c.params.all("id"), compression: c.params.get("compression")}
	if e.format, err = c.formatName(); err != nil {
		return nil, err
	}
	if e.comma, err = c.comma(); err != nil {
		return nil, err
	}
	switch e.compression {
	case "", "gzip", "zstd":
	default:
		return nil, badRequest("compression is gzip or zstd, not %.40q", e.compression)
	}
	chosen := 0
	for _, is := range []bool{e.collection != "" || e.prefix != "", e.query != "", len(e.ids) > 0} {
		if is {
			chosen++
		}
	}
	if chosen > 1 {
		return nil, badRequest("an export takes a collection and a prefix, a query, or IDs: one of the three")
	}
	if e.query != "" {
		request := queryRequest{Query: e.query}
		if text := c.params.get("parameters"); text != "" {
			if err := json.Unmarshal([]byte(text), &request.QueryParameters); err != nil {
				return nil, badRequest("parameters is no JSON object: %v", err)
			}
		}
		if e.given, err = request.parameters(); err != nil {
			return nil, err
		}
	}
	c.subject = cmp.Or(e.query, e.collection, e.prefix)
	return e, nil
}

// run writes the export.
func (e *exporting) run(ctx context.Context) error {
	whole := e.collection == "" && e.prefix == "" && e.query == "" && len(e.ids) == 0
	now, err := e.c.db.Stats(ctx)
	if err != nil {
		return err
	}
	for _, one := range now.Collections {
		if whole || e.prefix == "" && e.collection == one.Name {
			e.done.Total += one.Documents
		}
	}
	e.done.LeftOut = make(map[string]int64)
	if whole {
		for _, one := range now.Revisions {
			e.leaveOut("revisions", one.Revisions)
		}
	}
	out := &exportWriter{e: e, kind: exportTypes[e.format], name: describe(e.c.database.record.Name, "-", cmp.Or(e.collection, "documents")) + exportEndings[e.format]}
	if err := out.open(); err != nil {
		return err
	}
	err = e.c.db.View(ctx, func(tx *jay.Tx) error {
		switch e.format {
		case "csv":
			return e.writeCSV(ctx, tx, out)
		case "extjson":
			return e.writeExtended(ctx, tx, out)
		case "ravendbdump":
			return e.writeDump(ctx, tx, out, now.Counters)
		}
		return e.writeJSON(ctx, tx, out, whole, now.Counters)
	})
	if err != nil {
		return err
	}
	return out.close()
}

var (
	exportTypes   = map[string]string{"ndjson": "application/x-ndjson; charset=utf-8", "json": "application/json; charset=utf-8", "csv": "text/csv; charset=utf-8", "extjson": "application/x-ndjson; charset=utf-8", "ravendbdump": "application/octet-stream"}
	exportEndings = map[string]string{"ndjson": ".ndjson", "json": ".json", "csv": ".csv", "extjson": ".ejson", "ravendbdump": ".ravendbdump"}
)

// exported is a document of the export, or a row of a query that selects.
type exported struct {
	doc *jay.Document // nil for an answer
	row json.RawMessage
}

// each calls fn with each document or row of the export.
func (e *exporting) each(ctx context.Context, tx *jay.Tx, fn func(one exported) error) error {
	switch {
	case e.query != "":
		text, err := e.c.fromIndex(e.query)
		if err != nil {
			return err
		}
		q, err := tx.RQL(text, e.given)
		if err != nil {
			return err
		}
		for row, err := range q.Iter(ctx) {
			if err != nil {
				return err
			}
			if err := e.visit(exported{row.Document, row.JSON}, fn); err != nil {
				return err
			}
		}
		return nil
	case len(e.ids) > 0:
		for _, id := range e.ids {
			doc, err := tx.Get(ctx, id)
			if isMissing(err) {
				continue
			}
			if err == nil {
				err = e.visit(exported{doc: doc}, fn)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	for doc, err := range tx.Documents(ctx, jay.Scan{Collection: e.collection, Prefix: e.prefix}) {
		if err == nil {
			err = e.visit(exported{doc: doc}, fn)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// visit calls fn with a document, whose memory it takes from the budget; there is one at a
// time.
func (e *exporting) visit(one exported, fn func(exported) error) error {
	size := int64(len(one.row))
	if one.doc != nil {
		size = int64(len(one.doc.Body()))
	}
	if size *= 2; size > e.taken {
		if err := e.c.take(size - e.taken); err != nil {
			return err
		}
		e.taken = size
	}
	return fn(one)
}

// wrote counts a document, and publishes the progress now and then.
func (e *exporting) wrote(one exported) {
	e.done.Documents++
	if one.doc != nil {
		e.leaveOut("attachments", int64(len(one.doc.Metadata().Attachments)))
	}
	if now := time.Now(); e.o != nil && now.Sub(e.reported) > 200*time.Millisecond {
		e.reported = now
		e.c.report(e.o, e.snapshot())
	}
}

func (e *exporting) leaveOut(what string, n int64) {
	if n > 0 {
		e.done.LeftOut[what] += n
	}
}

// snapshot returns a copy of the progress.
func (e *exporting) snapshot() exportProgress {
	p := e.done
	p.LeftOut = maps.Clone(p.LeftOut)
	return p
}

// document returns the document in the form of package transfer.
func (one exported) document() *transfer.Document {
	if one.doc == nil {
		return &transfer.Document{Collection: "@empty", Body: one.row}
	}
	m := one.doc.Metadata()
	return &transfer.Document{ID: m.ID, Collection: m.Collection, Custom: m.Custom, Body: one.doc.Body()}
}

// named adds the document to an error.
func (one exported) named(err error) error {
	if err == nil || one.doc == nil {
		return err
	}
	return badRequest("document %.200q: %s", one.doc.ID(), oneLine(err.Error()))
}

// json returns the JSON of a document, with its metadata.
func (one exported) json() ([]byte, error) {
	if one.doc == nil {
		return one.row, nil
	}
	return one.doc.MarshalJSON()
}

// writeJSON writes one document per line, or all in an array. An export of all documents
// begins with the counters, so that a copy repeats no number.
func (e *exporting) writeJSON(ctx context.Context, tx *jay.Tx, w io.Writer, whole bool, counters jay.Counters) error {
	open, between, end := "", "\n", "\n"
	if e.format == "json" {
		open, between, end = "[\n", ",\n", "\n]\n"
	}
	n := 0
	write := func(text []byte) error {
		if n > 0 {
			open = between
		}
		n++
		if _, err := io.WriteString(w, open); err != nil {
			return err
		}
		_, err := w.Write(text)
		return err
	}
	if whole {
		line := mustJSON(struct {
			Metadata json.RawMessage `json:"@metadata"`
			jay.Counters
		}{json.RawMessage(`{"@jay":"counters"}`), counters})
		if err := write(line); err != nil {
			return err
		}
	}
	err := e.each(ctx, tx, func(one exported) error {
		text, err := one.json()
		if err == nil {
			err = write(text)
		}
		e.wrote(one)
		return err
	})
	if err != nil {
		return err
	}
	if n == 0 {
		end = ""
		if e.format == "json" {
			end = "[]\n"
		}
	}
	_, err = io.WriteString(w, end)
	return err
}

// writeCSV reads the documents twice: for the columns, and for the rows.
func (e *exporting) writeCSV(ctx context.Context, tx *jay.Tx, w io.Writer) error {
	var columns transfer.CSVColumns
	err := e.each(ctx, tx, func(one exported) error {
		d := one.document()
		return one.named(columns.Add(&transfer.Document{Custom: d.Custom, Body: d.Body}))
	})
	if err != nil {
		return err
	}
	rows, err := transfer.NewCSVWriter(w, &columns, e.comma)
	if err != nil {
		return badRequest("%s", oneLine(err.Error()))
	}
	return e.each(ctx, tx, func(one exported) error {
		e.wrote(one)
		return one.named(rows.Write(one.document()))
	})
}

// writeExtended writes MongoDB's Extended JSON, one document per line.
func (e *exporting) writeExtended(ctx context.Context, tx *jay.Tx, w io.Writer) error {
	var line []byte
	return e.each(ctx, tx, func(one exported) (err error) {
		if line, err = transfer.ToExtended(line[:0], one.document()); err != nil {
			return one.named(err)
		}
		e.wrote(one)
		_, err = w.Write(append(line, '\n'))
		return err
	})
}

// writeDump writes a dump of RavenDB, without attachments.
func (e *exporting) writeDump(ctx context.Context, tx *jay.Tx, w io.Writer, counters jay.Counters) error {
	dump, err := transfer.NewDumpWriter(w, e.c.database.record.Name)
	if err != nil {
		return err
	}
	if err := dump.Section(transfer.DumpDocuments); err != nil {
		return err
	}
	err = e.each(ctx, tx, func(one exported) error {
		if one.doc == nil {
			return badRequest("the query selects: a dump has whole documents")
		}
		text, err := one.json()
		if err != nil {
			return err
		}
		e.wrote(one)
		return dump.Item(text)
	})
	if err != nil {
		return err
	}
	if err := dump.Section(transfer.DumpIdentities); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(counters.Identities)) {
		if err := dump.Identity(name, counters.Identities[name]); err != nil {
			return err
		}
	}
	return dump.Close()
}

// exportWriter writes the reply of an export. It sends the head with the first 64 KiB, so
// that an error before them can have a status.
type exportWriter struct {
	e          *exporting
	kind, name string
	head       headWriter
	buffer     *bufio.Writer
	pack       io.WriteCloser
}

func (w *exportWriter) open() (err error) {
	if w.e.compression == "gzip" {
		w.kind, w.name = "application/gzip", w.name+".gz"
	}
	if w.e.compression == "zstd" {
		w.kind, w.name = "application/zstd", w.name+".zst"
	}
	w.head = headWriter{c: w.e.c, kind: w.kind, name: w.name}
	w.buffer = bufio.NewWriterSize(&w.head, 64<<10)
	w.pack, err = transfer.NewPacked(w.buffer, w.e.compression)
	return err
}

// Write implements io.Writer.
func (w *exportWriter) Write(text []byte) (int, error) {
	n, err := w.pack.Write(text)
	w.e.done.Bytes += int64(n)
	return n, err
}

// close completes the reply.
func (w *exportWriter) close() error {
	if err := w.pack.Close(); err != nil {
		return err
	}
	if err := w.buffer.Flush(); err != nil {
		return err
	}
	return w.head.begin()
}

// headWriter sends the head of a download with the first bytes.
type headWriter struct {
	c          *call
	kind, name string
	w          *pacedWriter
}

func (h *headWriter) begin() error {
	if h.w == nil {
		h.c.started, h.c.status = true, http.StatusOK
		h.c.reply.Set("Content-Type", h.kind)
		h.c.attach(h.name)
		h.c.w.WriteHeader(http.StatusOK)
		h.w = &pacedWriter{c: h.c, since: time.Now()}
	}
	return nil
}

// Write implements io.Writer.
func (h *headWriter) Write(text []byte) (int, error) {
	if err := h.begin(); err != nil {
		return 0, fmt.Errorf("the head: %w", err)
	}
	return h.w.Write(text)
}
