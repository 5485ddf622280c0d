package transfer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// CSVOptions are options of a CSVReader.
type CSVOptions struct {
	Placing
	// Comma is the byte between cells. The default is ','.
	Comma byte
	// MaxBytes is the size of the largest row. The default is 32 MiB.
	MaxBytes int
	// Infer infers the type of each column without a type from its cells: number if all unquoted cells
	// are numbers or null, boolean if all are true, false or null, and otherwise string. Without Infer
	// these columns are strings.
	Infer bool
	// Kinds are the types that [ScanCSV] has inferred from the whole file. Without Kinds, Infer reads
	// the first MiB in advance, which decides. Then a later cell of another type makes its row an
	// error, because a column has one type in all documents.
	Kinds *CSVKinds
	// IDColumn is the column with the IDs. The column "@id" always has IDs.
	IDColumn string
}

// CSVReader reads the rows of a CSV file (RFC 4180) as documents. The first row is the
// header:
//
//	@id,@collection,Name,Age:number,Address.City,Tags:json
//	users/1,Users,Ann,41,Bern,"[""a"",""b""]"
//
// The type follows the name: string, which is the default, number, boolean or json. Dots separate
// the keys of nested fields. A backslash before a dot, a colon, a backslash or a leading @ makes
// the character a part of the key. @id, @collection and @metadata:json are the document's metadata.
//
// An empty cell means that the document lacks the field. "" in a column of strings is the empty
// string. In columns of numbers and booleans null is null. Every row must have as many cells as the
// header. The reader skips blank lines.
type CSVReader struct {
	src     io.Reader
	options CSVOptions

	buf     []byte
	i       int
	base    int64 // offset of buf[0] in the input
	readErr error
	line    int64 // of the next byte

	cells  []byte // of the row, without quotes
	ends   []int  // where each cell ends in cells
	quoted []bool

	root     *csvNode
	types    []csvType
	inferred []bool
	kinds    []csvKind // of columns whose type is inferred
	names    [][]byte  // of columns, if types are inferred
	text     []byte
	raw      []byte
	record   Record
	failed   error
}

// Record is a document that a reader has read.
type Record struct {
	Number int64  // from 1
	Line   int64  // of its first byte, from 1; 0 if the format has no lines
	Offset int64  // of its first byte, from 0
	Text   []byte // a JSON object, valid until the next call of Next
}

// NewCSVReader returns a reader of src. The first call of Next reads the header.
func NewCSVReader(src io.Reader, options CSVOptions) *CSVReader {
	if options.Comma == 0 {
		options.Comma = ','
	}
	if options.MaxBytes <= 0 {
		options.MaxBytes = 32 << 20
	}
	return &CSVReader{src: src, options: options, buf: make([]byte, 0, 256<<10), line: 1}
}

// Next returns the next document, or io.EOF at the end. After an *Error with Raw, Next can be
// called again. Any other error is final.
func (c *CSVReader) Next() (Record, error) {
	if c.failed != nil {
		return c.record, c.failed
	}
	r, err := c.next()
	if bad, is := err.(*Error); is {
		bad.Record, bad.Line, bad.Offset = r.Number, r.Line, r.Offset
		if bad.Raw != nil {
			return r, bad
		}
	}
	c.failed = err
	return r, err
}

func (c *CSVReader) next() (Record, error) {
	if c.root == nil {
		if err := c.header(); err != nil {
			return c.record, err
		}
	}
	c.record.Number++
	bad, err := c.row()
	if err != nil {
		if err == io.EOF {
			c.record.Number--
		}
		return c.record, err
	}
	if bad == nil && len(c.ends) != len(c.types) {
		bad = invalid("a row has as many cells as the header", "the header has %d, this row %d", len(c.types), len(c.ends))
	}
	if bad == nil {
		bad = c.document()
	}
	if bad != nil {
		bad.Raw = c.rawRow()
		return c.record, bad
	}
	r := c.record
	r.Text = c.text
	return r, nil
}

func (c *CSVReader) header() error {
	if c.options.Infer && c.options.Kinds == nil {
		c.learn()
	}
	c.skipMark()
	bad, err := c.row()
	if err == io.EOF {
		return invalid("a CSV file begins with a header", "it is empty")
	}
	if err != nil {
		return err
	}
	if bad != nil {
		return bad
	}
	names := make([]string, len(c.ends))
	for i := range names {
		names[i] = string(c.at(i))
	}
	root, types, inferred, err := csvTree(names, c.options.Infer, c.options.IDColumn)
	if err != nil {
		return err
	}
	c.root, c.types, c.inferred = root, types, inferred
	if c.options.Infer {
		c.kinds = make([]csvKind, len(types))
		copy(c.kinds, c.options.Kinds.kinds)
		for _, name := range names {
			c.names = append(c.names, []byte(name))
		}
	}
	return nil
}

// skipMark skips a byte order mark. Other characters begin with a part of its bytes, such as
// those of full width: these are given back.
func (c *CSVReader) skipMark() {
	const mark = "\xef\xbb\xbf"
	n := 0
	for n < len(mark) {
		if b, err := c.peek(); err != nil || b != mark[n] {
			break
		}
		c.i++
		n++
	}
	if n == 0 || n == len(mark) {
		return
	}
	rest := append(make([]byte, 0, cap(c.buf)+n), mark[:n]...)
	rest = append(rest, c.buf[c.i:]...)
	c.base += int64(c.i - n)
	c.buf, c.i = rest, 0
}

// at returns a cell of the row.
func (c *CSVReader) at(i int) []byte {
	start := 0
	if i > 0 {
		start = c.ends[i-1]
	}
	return c.cells[start:c.ends[i]]
}

// peek returns the next byte of the input.
func (c *CSVReader) peek() (byte, error) {
	if c.i < len(c.buf) {
		return c.buf[c.i], nil
	}
	for range 100 {
		if c.readErr != nil {
			return 0, c.readErr
		}
		c.base += int64(len(c.buf))
		n, err := c.src.Read(c.buf[:cap(c.buf)])
		c.buf, c.i, c.readErr = c.buf[:n], 0, err
		if n > 0 {
			return c.buf[0], nil
		}
	}
	return 0, io.ErrNoProgress
}

// row reads a row into cells. It returns an *Error as bad if the row is wrong and ended;
// err is final.
func (c *CSVReader) row() (bad *Error, err error) {
	b, err := c.peek()
	for err == nil && (b == '\n' || b == '\r') { // blank lines
		if b == '\n' {
			c.line++
		}
		c.i++
		b, err = c.peek()
	}
	c.record.Line, c.record.Offset = c.line, c.base+int64(c.i)
	if err != nil {
		return nil, err
	}
	if cap(c.cells) > 1<<20 {
		c.cells = nil
	}
	c.cells, c.ends, c.quoted = c.cells[:0], c.ends[:0], c.quoted[:0]
	for {
		var more bool
		if b, err := c.peek(); err == nil && b == '"' {
			bad, more, err = c.quotedCell()
			if err != nil {
				return nil, err
			}
			c.quoted = append(c.quoted, true)
		} else {
			bad, more, err = c.plainCell()
			if err != nil {
				return nil, err
			}
			c.quoted = append(c.quoted, false)
		}
		c.ends = append(c.ends, len(c.cells))
		if bad != nil || !more {
			return bad, nil
		}
		if len(c.ends) == MaxCSVColumns {
			return nil, invalid(fmt.Sprintf("a CSV file has at most %d columns", MaxCSVColumns), "this row has more")
		}
	}
}

// plainCell reads a cell without quotes, with the comma or the line break behind it.
func (c *CSVReader) plainCell() (bad *Error, more bool, err error) {
	for {
		if _, err := c.peek(); err == io.EOF {
			return nil, false, nil
		} else if err != nil {
			return nil, false, err
		}
		start := c.i
		for c.i < len(c.buf) {
			b := c.buf[c.i]
			if b == c.options.Comma || b == '\n' || b == '"' {
				break
			}
			c.i++
		}
		if err := c.keep(c.buf[start:c.i]); err != nil {
			return nil, false, err
		}
		if c.i == len(c.buf) {
			continue
		}
		b := c.buf[c.i]
		c.i++
		switch b {
		case c.options.Comma:
			return nil, true, nil
		case '\n':
			c.line++
			c.trimReturn()
			return nil, false, nil
		}
		bad := invalid("a cell with a quote in it must be quoted", "cell %d begins %q", len(c.ends)+1, cutText(c.cells[c.lastEnd():]))
		c.cells = append(c.cells, b)
		return bad, false, c.restOfLine()
	}
}

// lastEnd returns where the cell begins that is being read.
func (c *CSVReader) lastEnd() int {
	if len(c.ends) == 0 {
		return 0
	}
	return c.ends[len(c.ends)-1]
}

// trimReturn drops the carriage return in front of a line feed.
func (c *CSVReader) trimReturn() {
	if n := len(c.cells); n > c.lastEnd() && c.cells[n-1] == '\r' {
		c.cells = c.cells[:n-1]
	}
}

// quotedCell reads a cell in quotes, with the comma or the line break behind it.
func (c *CSVReader) quotedCell() (bad *Error, more bool, err error) {
	opened := c.line
	c.i++
	for {
		if _, err := c.peek(); err == io.EOF {
			return nil, false, invalid("a quoted cell ends with a quote", "the quote that line %d opens is never closed", opened)
		} else if err != nil {
			return nil, false, err
		}
		rest := c.buf[c.i:]
		n := bytes.IndexByte(rest, '"')
		if n < 0 {
			n = len(rest)
		}
		c.line += int64(bytes.Count(rest[:n], []byte{'\n'}))
		if err := c.keep(rest[:n]); err != nil {
			err.Detail += fmt.Sprintf("; line %d opens a quote that is not closed in time", opened)
			return nil, false, err
		}
		if c.i += n; n == len(rest) {
			continue
		}
		c.i++
		b, err := c.peek()
		switch {
		case err == io.EOF:
			return nil, false, nil
		case err != nil:
			return nil, false, err
		case b == '"':
			c.i++
			c.cells = append(c.cells, '"')
			continue
		}
		c.i++
		switch b {
		case c.options.Comma:
			return nil, true, nil
		case '\n':
			c.line++
			return nil, false, nil
		case '\r':
			if b, err := c.peek(); err == nil && b == '\n' {
				c.i++
				c.line++
				return nil, false, nil
			}
		}
		bad := invalid("a comma or a line break follows a quoted cell", "%q follows cell %d", b, len(c.ends)+1)
		c.cells = append(c.cells, b)
		return bad, false, c.restOfLine()
	}
}

// restOfLine adds what is left of the line to the cell that is being read.
func (c *CSVReader) restOfLine() error {
	for {
		if _, err := c.peek(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		rest := c.buf[c.i:]
		n := bytes.IndexByte(rest, '\n')
		if n < 0 {
			n = len(rest)
		}
		if err := c.keep(rest[:n]); err != nil {
			return err
		}
		if c.i += n; n < len(rest) {
			c.i++
			c.line++
			c.trimReturn()
			return nil
		}
	}
}

// keep appends to the cell that is being read.
func (c *CSVReader) keep(part []byte) *Error {
	if len(c.cells)+len(part) > c.options.MaxBytes {
		return invalid(fmt.Sprintf("a row has at most %d bytes", c.options.MaxBytes), "this one has more")
	}
	c.cells = append(c.cells, part...)
	return nil
}

// document makes the document of the row.
func (c *CSVReader) document() *Error {
	if cap(c.text) > 1<<20 {
		c.text = nil
	}
	c.text = append(c.text[:0], '{')
	if _, err := c.members(c.root); err != nil {
		return err
	}
	var p place
	for i, t := range c.types {
		cell := c.at(i)
		switch {
		case t == csvID && len(cell) > 0:
			p.id = cell
		case t == csvCollection:
			p.collection, p.hasCollection = cell, true
		case t == csvMetadata && len(cell) > 0:
			if p.custom = bytes.TrimSpace(cell); !json.Valid(cell) || p.custom[0] != '{' {
				return c.badCell(i, "@metadata must be a JSON object")
			}
		}
	}
	start := len(c.text)
	c.text = appendComma(c.text, 1)
	comma := len(c.text)
	if c.text = p.append(c.text, c.options.Placing); len(c.text) == comma {
		c.text = c.text[:start]
	}
	c.text = append(c.text, '}')
	return nil
}

// members appends the members of an object that have cells, and returns whether there is
// one.
func (c *CSVReader) members(n *csvNode) (found bool, err *Error) {
	for _, child := range n.children {
		if child.column >= 0 && len(c.at(child.column)) == 0 && (c.types[child.column] != csvString || !c.quoted[child.column]) {
			continue
		}
		start := len(c.text)
		if found {
			c.text = append(c.text, ',')
		}
		c.text = append(c.text, child.key...)
		if child.column >= 0 {
			if err := c.value(child.column); err != nil {
				return false, err
			}
			found = true
			continue
		}
		c.text = append(c.text, '{')
		some, err := c.members(child)
		if err != nil {
			return false, err
		}
		if !some {
			c.text = c.text[:start]
			continue
		}
		c.text, found = append(c.text, '}'), true
	}
	return found, nil
}

// value appends the value of a cell that is there.
func (c *CSVReader) value(i int) *Error {
	cell := c.at(i)
	literal := string(cell) == "null"
	switch {
	case c.types[i] == csvNumber:
		if !literal && !isNumber(cell) {
			return c.badCell(i, "a number must be one of JSON's, such as -1.50 or 1e6")
		}
	case c.types[i] == csvBoolean:
		if !literal && string(cell) != "true" && string(cell) != "false" {
			return c.badCell(i, "a boolean is true or false")
		}
	case c.types[i] == csvJSON:
		if !json.Valid(cell) {
			return c.badCell(i, "a cell of a column of JSON must be JSON")
		}
	case c.inferred[i]:
		return c.inferredValue(i)
	default:
		c.text = AppendString(c.text, cell)
		return nil
	}
	c.text = append(c.text, cell...)
	return nil
}

func (c *CSVReader) badCell(i int, rule string) *Error {
	return invalid(rule, "%q in column %d", cutText(c.at(i)), i+1)
}

// rawRow returns the row as an array of its cells.
func (c *CSVReader) rawRow() []byte {
	c.raw = append(c.raw[:0], '[')
	for i := range c.ends {
		c.raw = AppendString(appendComma(c.raw, 1), c.at(i))
	}
	c.raw = append(c.raw, ']')
	return c.raw
}
