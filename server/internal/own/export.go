package own

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
	"github.com/jaydb/jay/transfer"
)

// exportRoutes has the endpoint that exports chosen rows.
var exportRoutes = []*serve.Route{
	{Method: "POST", Path: "{J}/export", Run: exportRows, Body: true, Stream: true, Needs: serve.ReadRight},
}

// Bounds of the columns of CSV.
const (
	maxCSVColumns     = 10_000
	maxCSVHeaderBytes = 1 << 20
)

// exportRows sends all results of a query, as lines of JSON or as CSV. The columns of CSV
// are all members that occur in any result; so it reads the results twice, in one
// snapshot.
//
// A spreadsheet may take a text that begins with =, +, - or @ for a formula. Unless exact is
// set, such texts are guarded (transfer.GuardText); numbers are never changed.
func exportRows(c *serve.Call) error {
	var body struct {
		Query      string                     `json:"query"`
		Parameters map[string]json.RawMessage `json:"parameters"`
		Format     string                     `json:"format"`
		Exact      bool                       `json:"exact"`
	}
	if err := c.Decode(&body); err != nil {
		return err
	}
	if body.Format != "csv" && body.Format != "ndjson" {
		return serve.BadRequest("format is csv or ndjson, not %.100q", body.Format)
	}
	given, err := verbs.Parameters(c, body.Query, body.Parameters)
	if err != nil {
		return err
	}
	ctx, cancel := c.StreamContext()
	defer cancel()
	ctx = c.Reading(ctx, 1)
	return c.DB.View(ctx, func(tx *jay.Tx) error {
		q, err := tx.RQL(body.Query, given)
		if err != nil {
			return err
		}
		out := &exportStream{c: c}
		if body.Format == "csv" {
			out.csv = &csvRows{exact: body.Exact, columns: make(map[string]int)}
			for row, err := range q.Iter(ctx) {
				if err != nil {
					return err
				}
				if err := out.csv.see(row); err != nil {
					return err
				}
			}
		}
		for row, err := range q.Iter(ctx) {
			if err != nil {
				return err
			}
			if err := out.add(row); err != nil {
				return err
			}
		}
		return out.end()
	})
}

// exportStream writes the results of a query.
type exportStream struct {
	c     *serve.Call
	w     *serve.StreamWriter
	csv   *csvRows // nil for lines of JSON
	line  []byte
	large serve.Largest // the memory of the largest result; earlier ones are not held
}

// begin sends the head of the reply.
func (x *exportStream) begin() error {
	if x.w != nil {
		return nil
	}
	if x.csv == nil {
		x.w = x.c.StartStream("application/x-ndjson; charset=utf-8")
		return nil
	}
	x.w = x.c.StartStream("text/csv; charset=utf-8; header=present")
	_, err := x.w.Write(x.csv.header())
	return err
}

// add writes a result.
func (x *exportStream) add(row *jay.Row) error {
	size := int64(len(row.JSON)) + 1024
	if row.Document != nil {
		size += int64(len(row.Document.Body()))
	}
	x.large.Memory = x.c.Held()
	if err := x.large.Need(3 * size); err != nil { // as it was read, as JSON, and as a line
		return err
	}
	if err := x.begin(); err != nil {
		return err
	}
	x.line = x.line[:0]
	switch {
	case x.csv != nil:
		x.line = x.csv.append(x.line, row)
	case row.Document != nil:
		var err error
		if x.line, err = verbs.AppendDocument(x.line, row.Document, false); err != nil {
			return err
		}
		x.line = append(x.line, '\n')
	default:
		x.line = append(append(x.line, row.JSON...), '\n')
	}
	_, err := x.w.Write(x.line)
	return err
}

// end finishes the stream.
func (x *exportStream) end() error {
	if err := x.begin(); err != nil {
		return err
	}
	return x.w.Close()
}

// csvRows makes CSV rows as in RFC 4180. Lines end with a carriage return and a line feed,
// as spreadsheets expect. A cell is a scalar, or JSON.
type csvRows struct {
	exact     bool
	documents bool           // the results are documents, and the first column is the ID
	columns   map[string]int // by name
	names     []string
	bytes     int
	cells     []gjson.Result
	safe      []byte // the present cell, guarded
}

// see adds the members of a result to the columns.
func (t *csvRows) see(row *jay.Row) (err error) {
	text := row.JSON
	if row.Document != nil {
		t.documents, text = true, row.Document.Body()
	}
	gjson.ParseBytes(text).ForEach(func(key, _ gjson.Result) bool {
		name := key.String()
		if _, found := t.columns[name]; found {
			return true
		}
		if t.bytes += len(name); len(t.names) == maxCSVColumns || t.bytes > maxCSVHeaderBytes {
			err = serve.TooLarge("the answers have more than %d different members, or %d bytes of names: select the columns, or take ndjson", maxCSVColumns, maxCSVHeaderBytes)
			return false
		}
		t.columns[name] = len(t.names)
		t.names = append(t.names, name)
		return true
	})
	return err
}

// header returns the header row, or nothing if there are no results.
func (t *csvRows) header() []byte {
	if len(t.names) == 0 && !t.documents {
		return nil
	}
	var dst []byte
	if t.documents {
		dst = append(dst, "id()"...)
	}
	for i, name := range t.names {
		if i > 0 || t.documents {
			dst = append(dst, ',')
		}
		dst = t.appendText(dst, name)
	}
	return append(dst, "\r\n"...)
}

// append appends the row of a result.
func (t *csvRows) append(dst []byte, row *jay.Row) []byte {
	text := row.JSON
	if row.Document != nil {
		text = row.Document.Body()
		dst = t.appendText(dst, row.Document.ID())
	}
	t.cells = append(t.cells[:0], make([]gjson.Result, len(t.names))...)
	gjson.ParseBytes(text).ForEach(func(key, value gjson.Result) bool {
		t.cells[t.columns[key.String()]] = value // of repeated names the last one counts, as for readers of JSON
		return true
	})
	for i, cell := range t.cells {
		if i > 0 || t.documents {
			dst = append(dst, ',')
		}
		switch cell.Type {
		case gjson.Null:
		case gjson.String:
			dst = t.appendText(dst, cell.String())
		case gjson.JSON:
			dst = t.appendJSON(dst, cell.Raw)
		default:
			dst = append(dst, cell.Raw...) // with every digit
		}
	}
	return append(dst, "\r\n"...)
}

// appendText appends a text, protected from being taken for a formula.
func (t *csvRows) appendText(dst []byte, text string) []byte {
	if !t.exact {
		t.safe = transfer.GuardText(t.safe[:0], []byte(text), ',')
		text = string(t.safe)
	}
	return appendCSV(dst, text)
}

// appendJSON appends JSON, whose texts are protected alike.
func (t *csvRows) appendJSON(dst []byte, raw string) []byte {
	if !t.exact {
		t.safe = transfer.GuardJSON(t.safe[:0], []byte(raw), ',')
		raw = string(t.safe)
	}
	return appendCSV(dst, raw)
}

// appendCSV appends a cell, in quotes if it needs them. An empty text needs them, to
// differ from a missing value.
func appendCSV(dst []byte, text string) []byte {
	if text != "" && !strings.ContainsAny(text, ",\"\r\n") && !strings.HasPrefix(text, " ") && !strings.HasSuffix(text, " ") {
		return append(dst, text...)
	}
	return fmt.Appendf(dst, `"%s"`, bytes.ReplaceAll([]byte(text), []byte(`"`), []byte(`""`)))
}
