package own

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
	"github.com/jaydb/jay/transfer"
	"github.com/jaydb/jay/transfer/smuggler"
)

// downloadRoutes has the endpoint of exports.
var downloadRoutes = []*serve.Route{
	{Method: "GET", Path: "{J}/export", Run: download, Begins: "export", Stream: true, Takes: "bare collection compression delimiter format id* operation parameters query spreadsheet startsWith"},
}

// exportProgress is the progress of an export.
type exportProgress struct {
	Documents   int64            `json:"documents"`
	Attachments int64            `json:"attachments,omitempty"`
	Revisions   int64            `json:"revisions,omitempty"`
	Bytes       int64            `json:"bytes"`             // before compression
	Total       int64            `json:"total,omitempty"`   // documents of a collection, or of all, when it began
	LeftOut     map[string]int64 `json:"leftOut,omitempty"` // what the format cannot hold
}

// exporting is an export under way.
type exporting struct {
	c           *serve.Call
	o           *serve.Operation
	format      *smuggler.Format
	compression string
	options     smuggler.ExportOptions

	total    int64
	reported time.Time
}

// download sends documents, with what belongs to them, in one of the formats of an import:
// all, those of a collection, those with a prefix, the results of a query, or some by their
// IDs. All are from one snapshot. It holds one document at a time.
func download(c *serve.Call) error {
	e, err := newExport(c)
	if err != nil {
		return err
	}
	held := int64(1 << 20)
	if e.format == smuggler.RavenDBDump {
		held += smuggler.DumpMemory
	}
	if err := c.Take(held); err != nil {
		return err
	}
	ctx, cancel := c.StreamContext()
	defer cancel()
	ctx = c.Reading(ctx, 1)
	return watched(c, ctx, func(ctx context.Context, o *serve.Operation) (any, error) {
		e.o = o
		exporter := smuggler.NewExporter(c.DB, e.options)
		err := e.run(ctx, exporter)
		return e.progress(exporter.Progress()), err
	})
}

// newExport reads the parameters.
func newExport(c *serve.Call) (e *exporting, err error) {
	e = &exporting{c: c, compression: c.Params.Get("compression")}
	large := serve.Largest{}
	e.options = smuggler.ExportOptions{
		Collection: c.Params.Get("collection"), Prefix: c.Params.Get("startsWith"), IDs: c.Params.All("id"),
		Name: c.Database.Record.Name,
		Room: func(n int64) error {
			large.Memory = c.Held()
			return large.Need(n)
		},
		Report: e.report,
	}
	o, query := &e.options, c.Params.Get("query")
	if e.format, err = formats.Named(c.Params.Get("format")); err != nil {
		return nil, serve.BadRequest("%s", formatProblem(err))
	}
	if o.Comma, err = smuggler.Comma(c.Params.Get("delimiter"), ""); err != nil {
		return nil, err
	}
	if o.Spreadsheet, err = c.Params.Flag("spreadsheet"); err != nil {
		return nil, err
	}
	if o.Bare, err = c.Params.Flag("bare"); err != nil {
		return nil, err
	}
	if o.Spreadsheet && e.format != smuggler.CSV {
		return nil, serve.BadRequest("spreadsheet=true is for format=csv, not for %s", e.format.Name)
	}
	switch e.compression {
	case "", "gzip", "zstd":
	default:
		return nil, serve.BadRequest("compression is gzip or zstd, not %.40q", e.compression)
	}
	chosen := 0
	for _, is := range []bool{o.Collection != "" || o.Prefix != "", query != "", len(o.IDs) > 0} {
		if is {
			chosen++
		}
	}
	if chosen > 1 {
		return nil, serve.BadRequest("an export takes a collection and a prefix, a query, or IDs: one of the three")
	}
	if o.Counters = chosen == 0; query != "" {
		if err := e.readQuery(query); err != nil {
			return nil, err
		}
	}
	c.Subject = cmp.Or(query, o.Collection, o.Prefix)
	return e, nil
}

// readQuery makes the export one of the results of a query.
func (e *exporting) readQuery(query string) error {
	var given map[string]json.RawMessage
	if text := e.c.Params.Get("parameters"); text != "" {
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			return serve.BadRequest("parameters is no JSON object: %v", err)
		}
		if err := e.c.PayFor([]byte(text), &given); err != nil { // it also refuses a name that is there twice
			return err
		}
	}
	values, err := verbs.Parameters(e.c, query, given)
	if err != nil {
		return err
	}
	e.options.Query = func(tx *jay.Tx) (q jay.Query[jay.Row], err error) {
		text, found, err := verbs.FromIndex(e.c, query)
		if err != nil {
			return q, err
		}
		text, given, err := found.AdaptText(text, values)
		if err != nil {
			return q, err
		}
		return tx.RQL(text, given)
	}
	return nil
}

// run writes the export.
func (e *exporting) run(ctx context.Context, exporter *smuggler.Exporter) error {
	o := &e.options
	now, err := e.c.DB.Stats(e.c.Listing(ctx))
	if err != nil {
		return err
	}
	for _, one := range now.Collections {
		if o.Counters || o.Prefix == "" && o.Collection == one.Name {
			e.total += one.Documents
		}
	}
	out := &exportWriter{e: e, kind: e.format.MediaType, name: describe(e.c.Database.Record.Name, "-", cmp.Or(o.Collection, "documents")) + e.format.Extensions[0]}
	if err := out.open(); err != nil {
		return err
	}
	if err := exporter.Write(ctx, e.format, out.pack); err != nil {
		return err
	}
	return out.close()
}

// report publishes the progress now and then.
func (e *exporting) report(p smuggler.ExportProgress) {
	if now := time.Now(); e.o != nil && now.Sub(e.reported) > 200*time.Millisecond {
		e.reported = now
		report(e.c, e.o, e.progress(p))
	}
}

// progress returns the progress for a client.
func (e *exporting) progress(p smuggler.ExportProgress) exportProgress {
	return exportProgress{Documents: p.Documents, Attachments: p.Attachments, Revisions: p.Revisions, Bytes: p.Bytes, Total: e.total, LeftOut: p.LeftOut}
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
	c          *serve.Call
	kind, name string
	w          *serve.PacedWriter
}

func (h *headWriter) begin() error {
	if h.w == nil {
		h.c.Started, h.c.Status = true, http.StatusOK
		h.c.Reply.Set("Content-Type", h.kind)
		attach(h.c, h.name)
		h.c.Writer.WriteHeader(http.StatusOK)
		h.w = serve.NewPacedWriter(h.c)
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

// describe returns the file name of a download.
func describe(parts ...string) string {
	var name strings.Builder
	for _, part := range parts {
		for _, r := range part {
			if name.Len() > 100 {
				break
			}
			switch {
			case r < 0x80 && serve.NameCharacter(r):
				name.WriteRune(r)
			default:
				name.WriteByte('-')
			}
		}
	}
	return name.String()
}

// attach makes the reply a download with this name.
func attach(c *serve.Call, name string) {
	c.Reply.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s"`, name))
	c.Reply.Set("X-Content-Type-Options", "nosniff")
}
