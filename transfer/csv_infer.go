package transfer

import (
	"bytes"
	"errors"
	"io"
)

// inferBytes is the size of the part of an input by which a CSVReader infers the types of
// columns.
const inferBytes = 1 << 20

// csvKind is what the cells of a column without a type have looked like.
type csvKind uint8

const (
	kindNone    csvKind = iota // there was no cell
	kindNull                   // all are null
	kindNumber                 // numbers and nulls
	kindBoolean                // true, false and nulls
	kindText                   // anything else
)

// CSVKinds are the types of columns that [ScanCSV] has inferred from a file.
type CSVKinds struct{ kinds []csvKind }

// ScanCSV reads a CSV file to its end and infers the types of columns without a type, for
// CSVOptions.Kinds. It skips invalid rows, which the import reports.
func ScanCSV(src io.Reader, o CSVOptions) (*CSVKinds, error) {
	o.Infer, o.Kinds = true, &CSVKinds{} // nothing to look at in advance
	c := NewCSVReader(src, o)
	err := c.scan()
	if err != nil && !errors.Is(err, ErrInvalid) {
		return nil, err
	}
	return &CSVKinds{c.kinds}, nil
}

// scan reads all rows, and notes what their cells look like.
func (c *CSVReader) scan() error {
	if err := c.header(); err != nil {
		return err
	}
	for {
		bad, err := c.row()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case bad != nil || len(c.ends) != len(c.types):
			continue
		}
		for i := range c.kinds {
			if cell := c.at(i); len(cell) > 0 || c.quoted[i] {
				c.kinds[i], _ = c.kinds[i].with(kindOf(cell, c.quoted[i]))
			}
		}
	}
}

// kindOf returns what one cell looks like.
func kindOf(cell []byte, quoted bool) csvKind {
	switch {
	case quoted:
		return kindText
	case string(cell) == "null":
		return kindNull
	case string(cell) == "true", string(cell) == "false":
		return kindBoolean
	case isNumber(cell):
		return kindNumber
	}
	return kindText
}

// with returns the kind of a column of kind k that has a cell of kind one, too, and whether
// the cells before keep their meaning.
func (k csvKind) with(one csvKind) (both csvKind, same bool) {
	switch {
	case k == kindNone, k == one, k == kindText:
		return max(k, one), true
	case one == kindNull:
		return k, true
	case k == kindNull:
		return one, one != kindText
	}
	return kindText, false
}

// learn infers the types of columns from the first part of the input, and puts that back.
// Those of a column that has no cell there come from its first cell.
func (c *CSVReader) learn() {
	part := make([]byte, inferBytes)
	n, err := 0, error(nil)
	for n < len(part) && err == nil { // io.ReadFull takes the error of a stream that was cut off for its end
		var more int
		more, err = c.src.Read(part[n:])
		n += more
	}
	part = part[:n]
	rest := c.src
	if err != nil {
		rest = errorReader{err}
	} else if end := bytes.LastIndexByte(part, '\n'); end >= 0 {
		n = end + 1 // the last row may be cut
	}
	o := c.options
	o.Kinds = &CSVKinds{}
	first := NewCSVReader(bytes.NewReader(part[:n]), o)
	_ = first.scan() // what is wrong is found again when the rows are read
	c.options.Kinds = &CSVKinds{first.kinds}
	c.src = io.MultiReader(bytes.NewReader(part), rest)
}

// errorReader returns an error.
type errorReader struct{ err error }

// Read implements io.Reader.
func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

// kindNames and pluralKinds name what cells look like, for errors.
var (
	kindNames   = [...]string{kindNull: "null", kindNumber: "a number", kindBoolean: "a boolean", kindText: "a text"}
	pluralKinds = [...]string{kindNull: "null", kindNumber: "numbers", kindBoolean: "booleans"}
)

// inferredValue appends a cell of a column whose type is inferred. A cell of another type than
// those before it is refused: a column has one type in all documents.
func (c *CSVReader) inferredValue(i int) *Error {
	cell := c.at(i)
	one := kindOf(cell, c.quoted[i])
	both, same := c.kinds[i].with(one)
	if !same {
		return invalid("a column has one type", "%q in column %d is %s, and the cells before it are %s: name a type in the header, such as %s:string", cutText(cell), i+1, kindNames[one], pluralKinds[c.kinds[i]], cutText(c.names[i]))
	}
	if c.kinds[i] = both; both == kindText {
		c.text = AppendString(c.text, cell)
		return nil
	}
	c.text = append(c.text, cell...)
	return nil
}
