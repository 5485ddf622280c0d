package lsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// manifest is what a manifest of Pebble's says: which files the store consists
// of.
type manifest struct {
	size    int64 // of the file
	stop    int64 // where reading ended
	what    finding
	records int
	minLog  uint64 // logs from this number on are replayed

	tables   map[tableKey]int64 // that are files of their own, and their sizes
	backings map[uint64]int64   // files of which others show a part
	blobs    map[uint64]int64
}

// tableKey is a table on a level. A version edit that moves a table adds it to one
// level and deletes it from another, in any order.
type tableKey struct{ level, number uint64 }

// readManifest reads a manifest up to its end, or to its first damaged record.
func readManifest(c *recordFile) (*manifest, error) {
	m := &manifest{size: c.size, tables: make(map[tableKey]int64), backings: make(map[uint64]int64), blobs: make(map[uint64]int64)}
	var err error
	m.stop, m.what, _, err = c.scan(func(_ int64, text []byte) error {
		m.records++
		return m.apply(text)
	})
	return m, err
}

// files returns the files that must be there, with their sizes.
func (m *manifest) files() map[string]int64 {
	names := make(map[string]int64, len(m.tables)+len(m.backings))
	for key, size := range m.tables {
		names[fmt.Sprintf("%06d.sst", key.number)] = size
	}
	for number, size := range m.backings {
		names[fmt.Sprintf("%06d.sst", number)] = size
	}
	for number, size := range m.blobs {
		names[fmt.Sprintf("%06d.blob", number)] = size
	}
	return names
}

// tinyTableBytes is below what a table that a full memtable was written to has.
const tinyTableBytes = 64 << 10

// tinyTables returns how many tiny tables are on level 0.
func (m *manifest) tinyTables() int {
	n := 0
	for key, size := range m.tables {
		if key.level == 0 && size < tinyTableBytes {
			n++
		}
	}
	return n
}

// errEdit is the error of a version edit that cannot be read although its
// checksum is right.
var errEdit = errors.New("a version edit cannot be read")

// apply applies one version edit, a sequence of tagged fields: see
// VersionEdit.Decode in Pebble's package manifest.
func (m *manifest) apply(edit []byte) error {
	d := editReader{r: bytes.NewReader(edit)}
	for d.err == nil && d.r.Len() > 0 {
		switch tag := d.uvarint(); tag {
		case 1: // comparer
			d.bytes()
		case 2: // smallest log that was not flushed
			m.minLog = d.uvarint()
		case 3, 4, 9: // next file number, last sequence number, previous log
			d.uvarint()
		case 5: // compaction pointer
			d.uvarint()
			d.bytes()
		case 6: // deleted table
			delete(m.tables, tableKey{level: d.uvarint(), number: d.uvarint()})
		case 7, 100, 102, 103, 104: // new table
			m.addTable(&d, tag)
		case 105: // a file of which tables show a part
			number := d.uvarint()
			m.backings[number] = int64(d.uvarint())
		case 106:
			delete(m.backings, d.uvarint())
		case 107: // new blob file
			d.uvarint()
			number := d.uvarint()
			m.blobs[number] = int64(d.uvarint())
			d.uvarint()
			d.uvarint()
		case 108:
			d.uvarint()
			delete(m.blobs, d.uvarint())
		default:
			return fmt.Errorf("%w: tag %d is not known", errEdit, tag)
		}
	}
	return d.err
}

// addTable applies a new table, whose fields depend on the tag.
func (m *manifest) addTable(d *editReader, tag uint64) {
	const withPathID, withFields, withRangeKeys = 102, 103, 104
	key := tableKey{level: d.uvarint(), number: d.uvarint()}
	if tag == withPathID {
		d.uvarint()
	}
	size := d.uvarint()
	if tag == withRangeKeys && d.byte()&1 == 0 { // no point keys
		d.bytes()
		d.bytes()
	} else {
		d.bytes()
		d.bytes()
		if tag == withRangeKeys {
			d.bytes()
			d.bytes()
		}
	}
	if tag != 7 {
		d.uvarint()
		d.uvarint()
	}
	virtual := false
	for tag >= withFields && d.err == nil {
		field := d.uvarint()
		if field == 1 { // the last one
			break
		}
		switch field {
		case 66: // a part of another file
			virtual = true
			d.uvarint()
		case 69: // references to blob files
			d.uvarint()
			for n := d.uvarint(); n > 0 && d.err == nil; n-- {
				d.uvarint()
				d.uvarint()
			}
		default:
			d.bytes()
		}
	}
	if !virtual {
		m.tables[key] = int64(size)
	}
}

// editReader reads the fields of a version edit. After an error it returns
// zeros.
type editReader struct {
	r   *bytes.Reader
	err error
}

func (d *editReader) fail() {
	if d.err == nil {
		d.err = fmt.Errorf("%w: it ends too early", errEdit)
	}
}

func (d *editReader) uvarint() uint64 {
	n, err := binary.ReadUvarint(d.r)
	if err != nil {
		d.fail()
		return 0
	}
	return n
}

func (d *editReader) byte() byte {
	b, err := d.r.ReadByte()
	if err != nil {
		d.fail()
	}
	return b
}

// bytes skips a length and so many bytes.
func (d *editReader) bytes() {
	n := d.uvarint()
	if n > uint64(d.r.Len()) {
		d.fail()
		return
	}
	_, _ = d.r.Seek(int64(n), io.SeekCurrent) // within the reader
}

// syncFile makes what a file holds durable.
func syncFile(fs vfs.FS, path string) error {
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
