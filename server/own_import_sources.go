package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/transfer"
)

// importFormat is the format of a stream and its parameters.
type importFormat struct {
	name  string
	to    transfer.Placing
	id    string // the column with the IDs, of CSV
	comma byte
	infer bool
}

// formatNames are the formats of imports and exports.
var formatNames = []string{"ndjson", "json", "csv", "extjson", "ravendbdump"}

// importFormat reads the parameters of a format.
func (c *call) importFormat() (f importFormat, err error) {
	if f.name, err = c.formatName(); err != nil {
		return f, err
	}
	f.to = transfer.Placing{IDPrefix: c.params.get("idPrefix"), Collection: c.params.get("collection")}
	f.id = c.params.get("idColumn")
	if f.comma, err = c.comma(); err != nil {
		return f, err
	}
	f.infer, err = c.params.flag("infer")
	return f, err
}

func (c *call) formatName() (string, error) {
	given := c.params.get("format")
	if given == "" {
		return "ndjson", nil
	}
	for _, name := range formatNames {
		if given == name {
			return name, nil
		}
	}
	return "", badRequest("format is %s, not %.40q", strings.Join(formatNames, ", "), given)
}

// comma returns the byte between the cells of CSV.
func (c *call) comma() (byte, error) {
	given := c.params.get("delimiter")
	switch {
	case given == "":
		return ',', nil
	case given == "tab" || given == "\t":
		return '\t', nil
	case len(given) == 1 && given[0] >= ' ' && given[0] < 0x7f && given != `"`:
		return given[0], nil
	}
	return 0, badRequest("delimiter is one ASCII character that is no quote, or tab, not %.40q", given)
}

// maxRecordOfFormat bounds a record of a format other than Jay's own.
const maxRecordOfFormat = 32 << 20

// open returns the source that reads a stream.
func (f importFormat) open(c *call, body io.Reader) (importSource, error) {
	body = &heldReader{c: c, r: body}
	unpacked := transfer.NewUnpacked(body)
	most := min(c.s.opts.MaxBodyBytes, maxRecordOfFormat)
	switch f.name {
	case "csv":
		if err := c.take(most); err != nil {
			return nil, err
		}
		return &csvSource{transfer.NewCSVReader(unpacked, transfer.CSVOptions{Placing: f.to, Comma: f.comma, MaxBytes: int(most), Infer: f.infer, IDColumn: f.id})}, nil
	case "ravendbdump":
		if err := c.take(most); err != nil {
			return nil, err
		}
		return &dumpSource{items: transfer.NewDumpReader(unpacked, transfer.DumpOptions{MaxBytes: int(most)})}, nil
	}
	s := &jsonSource{elements: newElementReader(unpacked, c.s.opts.MaxBodyBytes, c.take)}
	if f.name == "extjson" {
		s.extended = &f.to
	}
	return s, nil
}

// heldReader takes memory for the window of zstd, whose size is in the first bytes of a
// stream.
type heldReader struct {
	c     *call
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
			if err := h.c.take(transfer.MaxWindowBytes); err != nil {
				return 0, err
			}
		}
	}
	return n, err
}

// jsonSource reads JSON objects, one after the other or in an array, plain or as Extended
// JSON.
type jsonSource struct {
	elements *elementReader
	extended *transfer.Placing // nil if they are plain
	begun    bool
	text     []byte
}

func (s *jsonSource) place() string {
	if s.elements.lines {
		return "line " + strconv.Itoa(s.elements.read)
	}
	return "record " + strconv.Itoa(s.elements.read)
}

func (s *jsonSource) next() (importRecord, error) {
	if !s.begun {
		if err := s.begin(); err != nil {
			return importRecord{place: "line 1"}, err
		}
	}
	text, err := s.elements.next()
	if err == io.EOF && !s.elements.lines {
		err = s.atEnd()
	}
	if err != nil {
		return importRecord{place: s.place()}, err
	}
	if s.extended == nil {
		return importRecord{text, s.place()}, nil
	}
	if cap(s.text) > 1<<20 {
		s.text = nil
	}
	s.text, err = transfer.FromExtended(s.text[:0], text, *s.extended)
	if err != nil {
		return importRecord{place: s.place()}, &badRecord{text, err}
	}
	return importRecord{s.text, s.place()}, nil
}

// begin finds out whether the stream is an array.
func (s *jsonSource) begin() error {
	s.begun = true
	mark, err := s.elements.r.Peek(3)
	if err != nil && err != io.EOF {
		return err
	}
	if bytes.Equal(mark, []byte("\ufeff")) {
		_, _ = s.elements.r.Discard(3) // they are buffered: no error
	}
	b, err := s.elements.skipSpace()
	if err == io.EOF {
		s.elements.lines = true
		return nil
	}
	if err != nil {
		return err
	}
	s.elements.lines = b != '['
	return s.elements.r.UnreadByte()
}

// atEnd returns io.EOF if nothing but white space follows the array.
func (s *jsonSource) atEnd() error {
	_, err := s.elements.skipSpace()
	if err == nil {
		return errElement
	}
	return err
}

// csvSource reads the rows of CSV.
type csvSource struct{ r *transfer.CSVReader }

func (s *csvSource) next() (importRecord, error) {
	r, err := s.r.Next()
	record := importRecord{r.Text, "record " + strconv.FormatInt(r.Number, 10)}
	if bad, is := errors.AsType[*transfer.Error](err); is {
		record.place = ""
		if bad.Raw != nil {
			return importRecord{place: "record " + strconv.FormatInt(bad.Record, 10)}, &badRecord{bad.Raw, err}
		}
	}
	return record, err
}

// dumpSource reads the documents of a RavenDB dump, and applies the identities between
// them.
type dumpSource struct {
	items *transfer.DumpReader
	im    *importer
	ctx   context.Context
}

func (s *dumpSource) next() (importRecord, error) {
	for {
		item, err := s.items.Next()
		record := importRecord{item.Text, "record " + strconv.FormatInt(item.Number, 10)}
		if err != nil {
			return record, err
		}
		switch {
		case item.Attachment != nil:
			s.im.leaveOut("attachments")
		case item.Section == transfer.DumpDocuments:
			return record, nil
		case item.Section == transfer.DumpIdentities:
			if err := s.identity(item.Text); err != nil {
				return record, err
			}
		case item.Section != transfer.DumpBuildVersion && item.Section != transfer.DumpDatabaseRecord:
			s.im.leaveOut(item.Section)
		}
	}
}

// identity raises an identity to the value that the dump has.
func (s *dumpSource) identity(text []byte) error {
	var item struct {
		Key   string
		Value json.RawMessage
	}
	if err := json.Unmarshal(text, &item); err != nil || item.Key == "" {
		return &badRecord{bytes.Clone(text), badRequest("an identity has a Key and a Value")}
	}
	n, err := strconv.ParseInt(strings.Trim(string(item.Value), `"`), 10, 64)
	if err != nil || n < 0 {
		return &badRecord{bytes.Clone(text), badRequest("the Value of the identity %.100q is no number", item.Key)}
	}
	err = s.im.c.db.RaiseCounters(s.ctx, jay.Counters{Identities: map[string]int64{item.Key: n}})
	if err != nil && isRefusal(err) {
		return &badRecord{bytes.Clone(text), err}
	}
	return err
}

// importPlan says how a document is to be stored.
type importPlan struct {
	id       string // ID in its metadata
	hasID    bool
	request  string // ID to request if it has none; "" for HiLo
	insert   bool
	in       string        // its collection; "" to take that of its metadata
	counters *jay.Counters // set if it is not a document but the counters of an export
}

// planOf decides how a document is stored.
func (im *importer) planOf(document []byte) (plan importPlan, err error) {
	plan = importPlan{request: im.request, insert: im.insert, in: im.collection}
	collected := false
	err = eachMember(document, func(name, value []byte) error {
		if string(name) != "@metadata" {
			return nil
		}
		if bytes.HasPrefix(value, []byte(`"jay revision`)) {
			return badRequest("this line is about revisions, which jay import takes and the server does not; a backup has them, too")
		}
		if value[0] != '{' {
			return nil
		}
		return eachMember(value, func(name, value []byte) (err error) {
			switch string(name) {
			case "@id":
				plan.id, err = textOf(value)
				plan.hasID = true
			case "@collection", "Raven-Entity-Name":
				collected = true
			case "@attachments":
				im.leaveOut("documents' attachments")
			case "@jay":
				plan.counters, err = special(document, value)
			}
			return err
		})
	})
	if err != nil || plan.counters != nil {
		return plan, err
	}
	if collected {
		plan.in = ""
	}
	switch {
	case plan.hasID && plan.id != "":
		plan.in = ""
		return plan, nil
	case plan.hasID, plan.request == "" && plan.in == "" && !collected:
		return plan, badRequest("the document has no @id in its @metadata")
	}
	return plan, nil
}

// special returns the counters from a line of an export, and refuses other lines that are
// no documents.
func special(document, kind []byte) (*jay.Counters, error) {
	name, err := textOf(kind)
	if err != nil {
		return nil, err
	}
	if name != "counters" {
		return nil, badRequest("this line is of the kind %.40q, which jay import takes and the server does not; a backup has it, too", name)
	}
	var line struct {
		Metadata json.RawMessage `json:"@metadata"`
		jay.Counters
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&line); err != nil {
		return nil, badRequest("the line of the counters: %v", err)
	}
	return &line.Counters, nil
}

// addTo adds the write of an item to a batch.
func (it *importItem) addTo(b *jay.Batch) {
	var options []jay.WriteOption
	if it.plan.in != "" {
		options = append(options, jay.InCollection(it.plan.in))
	}
	switch {
	case it.plan.hasID && it.plan.insert:
		b.Insert(it.plan.id, it.text, options...)
	case it.plan.hasID:
		b.Put(it.plan.id, it.text, options...)
	case it.plan.request != "": // all documents have this ID, so none may overwrite another
		b.Insert(it.plan.request, it.text, options...)
	default:
		b.Store(it.plan.in, it.text)
	}
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
			case r < 0x80 && nameCharacter(r):
				name.WriteRune(r)
			default:
				name.WriteByte('-')
			}
		}
	}
	return name.String()
}

// attach makes the reply a download with this name.
func (c *call) attach(name string) {
	c.reply.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s"`, name))
	c.reply.Set("X-Content-Type-Options", "nosniff")
}
