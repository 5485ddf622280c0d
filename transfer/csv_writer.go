package transfer

import (
	"bytes"
	"io"
)

// CSVWriter writes documents as rows of CSV (RFC 4180). Lines end in a line feed.
type CSVWriter struct {
	w     io.Writer
	root  *csvNode
	types []csvType
	cells [][]byte // raw JSON of the row, by column
	row   []byte
	comma byte
	guard bool // against formulas
	safe  []byte
}

// NewCSVWriter writes the header. A comma of 0 means ','. An import of the file makes the same
// documents. A spreadsheet may take texts in the file for formulas: [NewSpreadsheetWriter] prevents
// that.
func NewCSVWriter(w io.Writer, columns *CSVColumns, comma byte) (*CSVWriter, error) {
	return newCSVWriter(w, columns, comma, false)
}

func newCSVWriter(w io.Writer, columns *CSVColumns, comma byte, guard bool) (*CSVWriter, error) {
	root, header, types, err := columns.nodes()
	if err != nil {
		return nil, err
	}
	if comma == 0 {
		comma = ','
	}
	c := &CSVWriter{w: w, root: root, types: types, cells: make([][]byte, len(types)), comma: comma, guard: guard}
	for i, name := range header {
		if i > 0 {
			c.row = append(c.row, comma)
		}
		if types[i] >= csvID { // a name of Jay's own
			c.quote([]byte(name))
			continue
		}
		c.cell(name)
	}
	return c, c.endRow()
}

// Write writes a document, which must have been added to the columns.
func (c *CSVWriter) Write(d *Document) error {
	clear(c.cells)
	if len(d.Body) == 0 || d.Body[0] != '{' {
		return errNoObject(d.Body)
	}
	if end, err := c.members(c.root, d.Body, 0); err != nil {
		return err
	} else if end != len(d.Body) {
		return errNoObject(d.Body)
	}
	for i, raw := range c.cells {
		if i > 0 {
			c.row = append(c.row, c.comma)
		}
		switch c.types[i] {
		case csvID:
			c.cell(d.ID)
		case csvCollection:
			if d.Collection != "@empty" {
				c.cell(d.Collection)
			}
		case csvMetadata:
			if len(d.Custom) > 2 {
				c.json(d.Custom)
			}
		case csvString:
			if raw == nil {
				continue
			}
			if bytes.IndexByte(raw, '\\') < 0 {
				c.text(raw[1 : len(raw)-1])
				continue
			}
			text, _ := unquote(raw)
			c.cell(text)
		case csvJSON:
			if raw != nil {
				c.json(raw)
			}
		default:
			c.row = append(c.row, raw...)
		}
	}
	return c.endRow()
}

func (c *CSVWriter) endRow() error {
	c.row = append(c.row, '\n')
	_, err := c.w.Write(c.row)
	if c.row = c.row[:0]; cap(c.row) > 1<<20 {
		c.row = nil
	}
	if cap(c.safe) > 1<<20 {
		c.safe = nil
	}
	return err
}

// members notes the cells of the members of an object that begins at i, and returns its
// end.
func (c *CSVWriter) members(n *csvNode, src []byte, i int) (end int, err error) {
	begin := i
	if i = skipSpace(src, i+1); i < len(src) && src[i] == '}' {
		return i + 1, nil
	}
	for more := true; more; {
		key, value := skipKey(src, i)
		if value < 0 || value >= len(src) {
			return 0, errNoObject(src[begin:])
		}
		child := n.named[string(key)]
		if child == nil && bytes.IndexByte(key, '\\') >= 0 { // the same key with other escapes
			text, _ := unquote(append(append([]byte{'"'}, key...), '"'))
			quoted := AppendString(nil, text)
			child = n.named[string(quoted[1:len(quoted)-1])]
		}
		switch {
		case child == nil, child.column < 0 && src[value] != '{':
			return 0, invalid("the columns must be those of the documents", "none is for the field %q", cutText(key))
		case child.column < 0:
			if i, err = c.members(child, src, value); err != nil {
				return 0, err
			}
		default:
			if i = skipValue(src, value); i < 0 {
				return 0, errNoObject(src[begin:])
			}
			c.cells[child.column] = src[value:i]
		}
		if i, more = afterValue(src, i, '}'); i < 0 {
			return 0, errNoObject(src[begin:])
		}
	}
	return i, nil
}

func (c *CSVWriter) cell(text string) { c.text([]byte(text)) }

// text appends a cell that is text.
func (c *CSVWriter) text(text []byte) {
	if c.guard {
		c.safe = GuardText(c.safe[:0], text, c.comma)
		text = c.safe
	}
	c.quote(text)
}

// json appends a cell that is JSON.
func (c *CSVWriter) json(raw []byte) {
	if c.guard {
		c.safe = GuardJSON(c.safe[:0], raw, c.comma)
		raw = c.safe
	}
	c.quote(raw)
}

// quote appends a cell. It is quoted if it has to be, and an empty one always, which an
// absent one is not.
func (c *CSVWriter) quote(text []byte) {
	if len(text) > 0 && text[0] != ' ' && text[len(text)-1] != ' ' && !bytes.ContainsAny(text, "\"\r\n") && bytes.IndexByte(text, c.comma) < 0 {
		c.row = append(c.row, text...)
		return
	}
	c.row = append(c.row, '"')
	for {
		i := bytes.IndexByte(text, '"')
		if i < 0 {
			break
		}
		c.row = append(append(c.row, text[:i+1]...), '"')
		text = text[i+1:]
	}
	c.row = append(append(c.row, text...), '"')
}
