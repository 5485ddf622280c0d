package transfer

import (
	"fmt"
	"io"
	"strconv"
)

// dumpBuild is the build of RavenDB as which a dump is written: RavenDB reads dumps by
// the format of their build, and that of 5.4 is the newest that says nothing Jay lacks.
const dumpBuild = 54_000

// DumpWriter writes a dump of RavenDB, as DumpReader reads it, without compression. RavenDB
// compresses its dumps with gzip: [NewPacked] does the same.
type DumpWriter struct {
	w       io.Writer
	section string
	first   bool
	buf     []byte
	failed  error
}

// NewDumpWriter writes the beginning of a dump of a database with this name.
func NewDumpWriter(w io.Writer, database string) (*DumpWriter, error) {
	d := &DumpWriter{w: w}
	d.buf = append(d.buf, `{"`+DumpBuildVersion+`":`...)
	d.buf = strconv.AppendInt(d.buf, dumpBuild, 10)
	d.buf = append(d.buf, `,"`+DumpDatabaseRecord+`":{"DatabaseName":`...)
	d.buf = AppendString(d.buf, database)
	d.buf = append(d.buf, `,"Encrypted":false,"UnusedDatabaseIds":[]}`...)
	return d, d.flush()
}

// flush writes buf. The first error is sticky.
func (d *DumpWriter) flush() error {
	if d.failed == nil {
		_, d.failed = d.w.Write(d.buf)
	}
	if d.buf = d.buf[:0]; cap(d.buf) > 1<<20 {
		d.buf = nil
	}
	return d.failed
}

// Section ends the current section, and begins a new one, an array of items.
func (d *DumpWriter) Section(name string) error {
	d.endSection()
	d.buf = append(AppendString(append(d.buf, ','), name), ':', '[')
	d.section, d.first = name, true
	return d.flush()
}

func (d *DumpWriter) endSection() {
	if d.section != "" {
		d.buf = append(d.buf, ']')
	}
	d.section = ""
}

// Item writes an item of the section: a JSON object.
func (d *DumpWriter) Item(text []byte) error {
	d.comma()
	if err := d.flush(); err != nil {
		return err
	}
	_, d.failed = d.w.Write(text)
	return d.failed
}

func (d *DumpWriter) comma() {
	if !d.first {
		d.buf = append(d.buf, ',')
	}
	d.first = false
}

// Identity writes an item of the section Identities.
func (d *DumpWriter) Identity(prefix string, value int64) error {
	d.comma()
	d.buf = AppendString(append(d.buf, `{"Key":`...), prefix)
	d.buf = fmt.Appendf(d.buf, `,"Value":"%d"}`, value)
	return d.flush()
}

// Attachment writes the content of an attachment: size bytes of r. Call it before the documents
// that name its hash are written. The tag says where the attachment is from. Jay ignores it.
func (d *DumpWriter) Attachment(hash, tag string, size int64, r io.Reader) error {
	d.comma()
	d.buf = AppendString(append(d.buf, `{"@metadata":{"@export-type":"Attachment"},"Hash":`...), hash)
	d.buf = fmt.Appendf(d.buf, `,"Size":%d,"Tag":`, size)
	d.buf = append(AppendString(d.buf, tag), '}')
	if err := d.flush(); err != nil {
		return err
	}
	n, err := io.Copy(d.w, io.LimitReader(r, size))
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	d.failed = err
	return err
}

// Close ends the dump. It does not close the underlying writer.
func (d *DumpWriter) Close() error {
	d.endSection()
	d.buf = append(d.buf, '}')
	return d.flush()
}
