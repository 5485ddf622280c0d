package own

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
	"github.com/jaydb/jay/transfer"
	"github.com/jaydb/jay/transfer/smuggler"
)

// importRoutes has the endpoint of imports.
var importRoutes = []*serve.Route{
	{Method: "POST", Path: "{J}/import", Run: runImport, Begins: "import", Stream: true, Upload: true, Takes: "collection delimiter format id idColumn idPrefix infer insert name operation rejects"},
}

// Bounds of an import.
const (
	importBuffer      = 256 << 10 // which a source reads ahead
	maxImportSpool    = 1 << 30   // contents of a dump that wait for their document
	maxRecordOfFormat = 32 << 20  // of a format other than Jay's own
	maxImportNotes    = 20        // rejects whose reasons are kept
	maxRejects        = 10_000    // of one import
)

// formats are the formats of imports and exports.
var formats = smuggler.All()

// importProgress is the progress of an import.
type importProgress struct {
	Documents   int64            `json:"documents"`             // documents that were stored
	Bytes       int64            `json:"bytes,omitempty"`       // bytes of these documents
	Read        int64            `json:"read,omitempty"`        // bytes read of the body
	Attachments int64            `json:"attachments,omitempty"` // stored
	Revisions   int64            `json:"revisions,omitempty"`   // stored
	Rejected    int64            `json:"rejected,omitempty"`    // records that were left out
	Problems    []importNote     `json:"problems,omitempty"`    // the reasons for the first 20 of them
	LeftOut     map[string]int64 `json:"leftOut,omitempty"`     // number of records that are not imported, by kind
	Note        string           `json:"note,omitempty"`        // what is no error and should be known
}

// importNote is the reason for a rejected record.
type importNote struct {
	Place   string `json:"place"` // such as "line 3"
	Message string `json:"message"`
}

// importing is an import under way. It keeps the rejects.
type importing struct {
	c       *serve.Call
	o       *serve.Operation // nil if the import is not an operation
	format  *smuggler.Format
	options smuggler.ImportOptions
	comma   byte
	rejects *serve.Rejects // nil if the first bad record ends the import

	most      int   // rejects that the client wants at most
	operation int64 // by whose number it asks for them
	problems  []importNote
	read      *bodyReader
}

// runImport stores the documents of a stream, and what belongs to them. It holds one record
// and one batch. What was stored before an error stays.
func runImport(c *serve.Call) error {
	if err := serve.CheckEncoding(c.Header); err != nil {
		return serve.Closing(err)
	}
	if err := c.Take(verbs.BulkMemory + importBuffer); err != nil {
		return err
	}
	im, err := newImport(c)
	if err != nil {
		return serve.Closing(err)
	}
	ctx, cancel := c.StreamContext()
	defer cancel()
	defer func() { _ = http.NewResponseController(c.Writer).SetReadDeadline(time.Time{}) }()
	return watched(c, ctx, func(ctx context.Context, o *serve.Operation) (any, error) {
		im.o = o
		im.openRejects() // of an import that has begun: the client may try one with this number again
		defer im.closeRejects()
		importer := smuggler.NewImporter(c.DB, im.options)
		err := im.run(ctx, importer)
		done := im.progress(importer.Progress())
		report(c, o, done)
		if err != nil {
			return done, importProblem(c, ctx, err, done)
		}
		reply := done
		reply.Bytes, reply.Read = 0, 0 // these are only for clients that watch the operation
		return done, c.JSON(http.StatusOK, reply)
	})
}

// newImport reads the parameters of an import.
func newImport(c *serve.Call) (im *importing, err error) {
	c.Subject = c.Params.Get("name")
	im = &importing{c: c}
	if im.format, err = formats.Named(c.Params.Get("format")); err != nil {
		return nil, serve.BadRequest("%s", formatProblem(err))
	}
	if im.comma, err = smuggler.Comma(c.Params.Get("delimiter"), ""); err != nil {
		return nil, err
	}
	large := serve.Largest{Memory: c.Held()}
	im.options = smuggler.ImportOptions{
		Collection: c.Params.Get("collection"), IDPrefix: c.Params.Get("idPrefix"), IDColumn: c.Params.Get("idColumn"),
		MaxBytes: int(c.Server.Options.MaxBodyBytes), MaxDepth: c.Server.Options.Database.MaxDepth,
		BatchBytes: verbs.BulkBatchBytes, SpoolDir: c.Server.Options.Data, MaxSpoolBytes: maxImportSpool,
		NoSettings: !c.Who.May(c.Database.Key, serve.AdminRight),
		Room:       large.Need, Keep: c.Take,
		Report: func(p smuggler.ImportProgress) { report(c, im.o, im.progress(p)) },
		Names:  smuggler.Names{Place: "collection or id"},
	}
	if id := c.Params.Get("id"); id != "" {
		im.options.Request = &id
	}
	if im.options.Infer, err = c.Params.Flag("infer"); err != nil {
		return nil, err
	}
	if im.options.Insert, err = c.Params.Flag("insert"); err != nil {
		return nil, err
	}
	if im.format == smuggler.CSV || im.format == smuggler.RavenDBDump {
		im.options.MaxBytes = min(im.options.MaxBytes, maxRecordOfFormat)
		if err := c.Take(int64(im.options.MaxBytes)); err != nil {
			return nil, err
		}
	}
	if im.most, err = c.Params.Count("rejects", 0); err != nil {
		return nil, err
	}
	im.operation, err = c.Params.Number("operation", 0)
	switch {
	case err != nil:
		return nil, err
	case im.most > maxRejects:
		return nil, serve.BadRequest("rejects must be between 0 and %d, not %d", maxRejects, im.most)
	case im.most > 0 && im.operation == 0:
		return nil, serve.BadRequest("rejects needs operation=, by whose number they are asked for")
	}
	return im, nil
}

// openRejects begins to keep rejects, if the client wants that.
func (im *importing) openRejects() {
	c := im.c
	if im.most > 0 {
		im.rejects = c.Server.Rejects.Open(c.About().Owner(c.Database.Key), serve.OperationID{Database: c.Database.Key, ID: im.operation}, im.most, c.Server.Memory.Holding(c.Sender()))
		im.options.Rejects = im
	}
}

// closeRejects notes that the import has ended, after which its rejects are kept for a while.
func (im *importing) closeRejects() {
	if im.rejects != nil {
		im.c.Server.Rejects.Close(im.rejects, im.c.Server.Options.Now())
	}
}

// run reads the body to its end.
func (im *importing) run(ctx context.Context, importer *smuggler.Importer) error {
	body, stop, err := verbs.QuietBody(im.c, ctx)
	defer stop()
	if err != nil {
		return serve.BadRequest("the body is not what gzip makes")
	}
	im.read = &bodyReader{r: body}
	unpacked := &damageReader{body: im.read, r: transfer.NewInput(&heldReader{c: im.c, r: im.read})}
	return importer.Load(ctx, im.format, smuggler.Input{Name: "body", Reader: unpacked, Comma: im.comma})
}

// Write implements smuggler.Rejects.
func (im *importing) Write(p []byte) (int, error) { return im.c.Server.Rejects.Write(im.rejects, p) }

// Reject implements smuggler.Rejects.
func (im *importing) Reject(why *smuggler.ImportError) {
	if len(im.problems) < maxImportNotes {
		im.problems = append(im.problems, importNote{placeOf(why), reasonOf(why.Err).Message})
	}
}

// progress returns the progress for a client.
func (im *importing) progress(p smuggler.ImportProgress) importProgress {
	out := importProgress{Documents: p.Documents, Bytes: p.Bytes, Attachments: p.Attachments, Revisions: p.Revisions, Rejected: p.Rejected, Problems: slices.Clip(im.problems), LeftOut: p.LeftOut}
	if im.read != nil {
		out.Read = im.read.n
	}
	if p.LooksExtended {
		out.Note = "the first documents look like Extended JSON of MongoDB, and are stored as they are: format=extjson makes IDs, times and numbers of it"
	}
	return out
}

// placeOf returns the place of a record, or "" for none. Where each record has one line, the
// line says it.
func placeOf(at *smuggler.ImportError) string {
	switch {
	case at.Number == 0:
		return ""
	case at.Line == 0:
		return fmt.Sprintf("record %d", at.Number)
	case at.Line == at.Number:
		return fmt.Sprintf("line %d", at.Line)
	}
	return fmt.Sprintf("record %d (line %d)", at.Number, at.Line)
}

// reasonOf returns the reply for a record that is refused.
func reasonOf(err error) *serve.Problem {
	if errors.Is(err, transfer.ErrInvalid) {
		return serve.BadRequest("%s", serve.OneLine(err.Error()))
	}
	return serve.ProblemOf(err)
}

// importProblem returns the reply for an import that has failed, with what it has stored.
func importProblem(c *serve.Call, ctx context.Context, err error, done importProgress) error {
	place := ""
	var at *smuggler.ImportError
	if errors.As(err, &at) {
		place, err = placeOf(at), at.Err
	}
	var p *serve.Problem
	switch {
	case c.Server.Ctx.Err() != nil:
		p = serve.ErrShutdown
	case errors.Is(err, os.ErrDeadlineExceeded):
		p = serve.BadRequest("the client has sent nothing for %s", c.Server.Options.SilenceTimeout)
	case context.Cause(ctx) != nil:
		p = &serve.Problem{Status: http.StatusInternalServerError, Kind: serve.TypeRequestCancelled, Message: "the import was cut short"}
	case errors.Is(err, errDamaged):
		p = serve.BadRequest("the stream ends before its end, or is damaged")
	default:
		p = reasonOf(err)
	}
	out := *p
	if place != "" {
		out.Message = fmt.Sprintf("%s: %s", place, p.Message)
	}
	out.Fields = map[string]any{"documents": done.Documents, "rejected": done.Rejected}
	return serve.Closing(&out)
}

// errDamaged is wrapped by the errors for a stream that was cut off or cannot be
// decompressed.
var errDamaged = errors.New("the stream ends before its end, or is damaged")

// bodyReader counts the bytes read of the body, before decompression, and keeps its last
// error.
type bodyReader struct {
	r   io.Reader
	n   int64
	err error
}

// Read implements io.Reader.
func (b *bodyReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.n += int64(n)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

// damageReader reads what a body has, unpacked. It returns the error of the body itself, in
// place of one that follows from it; a complete body that cannot be unpacked is damaged.
type damageReader struct {
	body *bodyReader
	r    io.Reader
}

// Read implements io.Reader.
func (d *damageReader) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	problem := errors.As(err, new(*serve.Problem))
	switch own := d.body.err; {
	case err == nil, err == io.EOF:
	case own != nil && !errors.Is(own, io.ErrUnexpectedEOF) && !errors.Is(own, gzip.ErrChecksum):
		err = own
	case problem, errors.Is(err, transfer.ErrInvalid):
	default:
		err = fmt.Errorf("%w: %w", errDamaged, err)
	}
	return n, err
}

// heldReader takes memory for the window of zstd, whose size is in the first bytes of a
// stream.
type heldReader struct {
	c     *serve.Call
	r     io.Reader
	first []byte // the first bytes, until there are four
	done  bool
}

// Read implements io.Reader.
func (h *heldReader) Read(b []byte) (int, error) {
	n, err := h.r.Read(b)
	if !h.done {
		h.first = append(h.first, b[:min(n, 4-len(h.first))]...)
		if h.done = len(h.first) == 4; h.done && bytes.Equal(h.first, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
			if err := h.c.Take(transfer.MaxWindowBytes); err != nil {
				return 0, err
			}
		}
	}
	return n, err
}

// formatProblem returns the text of an error of Formats.Named.
func formatProblem(err error) string {
	return strings.TrimPrefix(err.Error(), smuggler.ErrFormat.Error()+": ")
}
