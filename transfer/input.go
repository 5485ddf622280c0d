package transfer

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
)

// NewInput is like [NewUnpacked], for a stream of documents. If the decompressed content cannot be
// of any of the formats, such as a SQLite database or text in UTF-16, the first Read returns an
// *Error, which says what the content is and what reads it.
func NewInput(r io.Reader) io.Reader { return &input{r: bufio.NewReaderSize(NewUnpacked(r), 4<<10)} }

// input looks at the first bytes of a stream.
type input struct {
	r      *bufio.Reader
	looked bool
	err    error // with which the first bytes end, if they are all
}

// Read implements io.Reader.
func (in *input) Read(p []byte) (int, error) {
	if !in.looked {
		var first []byte
		if first, in.err = in.r.Peek(16); in.err == nil || in.err == io.EOF {
			if err := foreign(first); err != nil {
				return 0, err
			}
		}
		in.looked = true
	}
	if in.err != nil && in.r.Buffered() == 0 {
		return 0, in.err // Peek has taken it from the reader
	}
	return in.r.Read(p)
}

// magics are the first bytes of files that are no text, what the files are, and what to do.
var magics = []struct{ begins, kind, remedy string }{
	{"SQLite format 3\x00", "a SQLite database", "jay import --format sqlite reads the file"},
	{"\x1f\x8b", "packed twice, with gzip inside", "unpack it once"},
	{"\x28\xb5\x2f\xfd", "packed twice, with zstd inside", "unpack it once"},
	{"PK\x03\x04", "a ZIP archive, or a file of a spreadsheet", "unpack it, or save it as CSV"},
	{"PAR1\x15", "a Parquet file", "convert it to NDJSON or CSV"},
	{"Obj\x01", "an Avro file", "convert it to NDJSON"},
	{"\xfd7zXZ\x00", "packed with xz", "unpack it, or pack it with gzip or zstd"},
	{"BZh91AY&SY", "packed with bzip2", "unpack it, or pack it with gzip or zstd"},
	{"\x04\x22\x4d\x18", "packed with lz4", "unpack it, or pack it with gzip or zstd"},
	{"7z\xbc\xaf\x27\x1c", "an archive of 7-Zip", "unpack it"},
	{"\xff\xfe", "text in UTF-16", "save it as UTF-8"},
	{"\xfe\xff", "text in UTF-16", "save it as UTF-8"},
}

// foreign returns the error for an input that begins with these bytes, or nil.
func foreign(first []byte) error {
	const rule = "an import reads text in UTF-8"
	for _, m := range magics {
		if bytes.HasPrefix(first, []byte(m.begins)) {
			return invalid(rule, "this is %s: %s", m.kind, m.remedy)
		}
	}
	if len(first) >= 4 && (first[0] == 0) != (first[1] == 0) && (first[0] == 0) == (first[2] == 0) && (first[1] == 0) == (first[3] == 0) {
		return invalid(rule, "this is text in UTF-16: save it as UTF-8")
	}
	// A document of BSON begins with its length in 32 bits and the type of its first member.
	if len(first) >= 6 && first[3] == 0 && binary.LittleEndian.Uint32(first) >= 5 && (first[4] >= 1 && first[4] <= 0x13 || first[4] == 0x7f || first[4] == 0xff) {
		return invalid(rule, "this is BSON, as mongodump writes it: mongoexport and bsondump write Extended JSON")
	}
	return nil
}
