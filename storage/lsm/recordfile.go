package lsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pebble's logs and manifests are sequences of records (Pebble's package record).
// A file consists of blocks of 32 KiB, a block of chunks, and a record of one chunk
// or several; a chunk never crosses the end of a block. Pebble's Reader takes a
// damaged chunk of a manifest, and nearly every damaged chunk of a log, for the
// end of the file. So the files are read here before Pebble reads them. All
// numbers are little-endian:
//
//	CRC (4) | size of the payload (2) | type (1) | payload                     manifest
//	CRC (4) | size (2) | type (1) | log number (4) | payload                   the first log of a store
//	CRC (4) | size (2) | type (1) | log number (4) | sync offset (8) | payload all other logs
//
// The CRC covers everything from the type on. A log that was closed ends with a
// header that has the next log's number, and neither CRC nor size.
const (
	blockSize = 32 << 10

	manifestHeader = 7
	firstLogHeader = 11
	logHeader      = 19
)

// Positions of a chunk in its record.
const (
	wholeRecord = iota + 1
	firstOfRecord
	middleOfRecord
	lastOfRecord
)

// chunk is one chunk of a file.
type chunk struct {
	start, end int64 // in the file, with the header
	position   int   // in its record
	synced     uint64
	payload    []byte // valid until another block is read
}

// finding says what is at an offset.
type finding int

const (
	foundChunk finding = iota
	foundPadding
	foundTrailer // of a log that was closed
	foundEnd     // of the file
	foundDamage  // or an unfinished write
)

// recordFile reads the chunks of one file, block by block.
type recordFile struct {
	f      vfs.File
	size   int64
	log    bool
	number uint32 // of a log

	block [blockSize]byte
	start int64 // of the block in the file; -1 before the first
	n     int   // bytes of the block
}

// openRecordFile opens a manifest, or, if number is not 0, the log of that number.
func openRecordFile(fs vfs.FS, path string, number uint64) (*recordFile, error) {
	f, err := openRegular(fs, path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &recordFile{f: f, size: info.Size(), log: number != 0, number: uint32(number), start: -1}, nil
}

// errNotRegular is the error of a name in a store's directory that is no file.
var errNotRegular = errors.New("it is no regular file")

// openRegular opens a file for reading. It returns errNotRegular for a named pipe, which would
// wait for a writer for ever, and for a device, which may have no end.
func openRegular(fs vfs.FS, path string) (vfs.File, error) {
	info, err := fs.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	return fs.Open(path)
}

func (c *recordFile) close() { _ = c.f.Close() }

// load reads the block that contains offset, unless it is the current one.
func (c *recordFile) load(offset int64) error {
	start := offset - offset%blockSize
	if start == c.start {
		return nil
	}
	n, err := c.f.ReadAt(c.block[:min(blockSize, c.size-start)], start)
	if err != nil && !errors.Is(err, io.EOF) {
		c.start = -1
		return err
	}
	c.start, c.n = start, n
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maskedCRC is the checksum of Pebble's package crc.
func maskedCRC(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// at reads what is at offset.
func (c *recordFile) at(offset int64) (chunk, finding, error) {
	if offset >= c.size {
		return chunk{}, foundEnd, nil
	}
	if err := c.load(offset); err != nil {
		return chunk{}, foundDamage, err
	}
	b := c.block[offset-c.start : c.n]
	if len(b) < manifestHeader {
		if c.n < blockSize {
			return chunk{}, foundDamage, nil
		}
		return chunk{}, foundPadding, nil // too short for a header: Pebble skips it
	}
	sum, size, kind := binary.LittleEndian.Uint32(b), int(binary.LittleEndian.Uint16(b[4:])), int(b[6])
	if sum == 0 && size == 0 && kind == 0 {
		// Pebble fills the end of a block that is too short for a header with zeros.
		// Zeros elsewhere are space that was allocated and not written.
		if len(b) < logHeader && allZero(b) && (c.log || len(b) < firstLogHeader) {
			return chunk{}, foundPadding, nil
		}
		return chunk{}, foundDamage, nil
	}

	// Each of the three formats has four types, one for each position.
	header := manifestHeader
	switch {
	case !c.log && kind >= 1 && kind <= 4:
	case c.log && kind >= 5 && kind <= 8:
		header = firstLogHeader
	case c.log && kind >= 9 && kind <= 12:
		header = logHeader
	default:
		return chunk{}, foundDamage, nil
	}
	if len(b) < header {
		return chunk{}, foundDamage, nil
	}
	if c.log {
		if number := binary.LittleEndian.Uint32(b[7:]); number == c.number+1 && sum == 0 && size == 0 && kind == 5 {
			return chunk{start: offset, end: offset + firstLogHeader}, foundTrailer, nil
		} else if number != c.number {
			return chunk{}, foundDamage, nil
		}
	}
	if len(b) < header+size || maskedCRC(b[6:header+size]) != sum {
		return chunk{}, foundDamage, nil
	}
	k := chunk{start: offset, end: offset + int64(header+size), position: (kind-1)%4 + 1, payload: b[header : header+size]}
	if header == logHeader {
		k.synced = binary.LittleEndian.Uint64(b[firstLogHeader:])
	}
	return k, foundChunk, nil
}

func allZero(b []byte) bool { return !slices.ContainsFunc(b, func(x byte) bool { return x != 0 }) }

// scan reads the file from its beginning. It returns the offset at which it
// stopped, what it found there (foundTrailer, foundEnd or foundDamage), and the end
// of the last whole record. A file that ends within a record is damaged there.
// record, if not nil, is called with each whole record; it must not keep the bytes.
func (c *recordFile) scan(record func(start int64, text []byte) error) (stop int64, what finding, whole int64, err error) {
	var text []byte
	var start int64
	inside := false
	for offset := int64(0); ; {
		k, what, err := c.at(offset)
		switch {
		case err != nil:
			return offset, what, whole, err
		case what == foundPadding:
			offset += blockSize - offset%blockSize
			continue
		case what == foundTrailer && !inside:
			return offset, what, whole, nil
		case what == foundEnd && !inside:
			return offset, what, whole, nil
		case what != foundChunk:
			return offset, foundDamage, whole, nil
		}
		begins := k.position == wholeRecord || k.position == firstOfRecord
		if begins == inside {
			return offset, foundDamage, whole, nil
		}
		if begins {
			start, text = offset, text[:0]
		}
		if record != nil {
			text = append(text, k.payload...)
		}
		offset = k.end
		inside = k.position == firstOfRecord || k.position == middleOfRecord
		if !inside {
			if record != nil {
				if err := record(start, text); err != nil {
					return start, foundDamage, whole, err
				}
			}
			whole = offset
		}
	}
}

// eachAfter calls visit for each whole chunk behind offset until it returns false.
// It tries every offset after a damaged chunk, as the size of that cannot be
// trusted.
func (c *recordFile) eachAfter(offset int64, visit func(chunk) bool) error {
	for offset++; offset < c.size; {
		k, what, err := c.at(offset)
		if err != nil {
			return err
		}
		if what == foundChunk {
			if !visit(k) {
				return nil
			}
			offset = k.end
			continue
		}
		offset = c.nextCandidate(offset + 1)
	}
	return nil
}

// nextCandidate returns the next offset, from this one on, at which a chunk can
// begin. In a log that is where the log's number is found. The block that
// contains offset-1 is current.
func (c *recordFile) nextCandidate(offset int64) int64 {
	next := c.start + blockSize
	if offset >= next {
		return next
	}
	if !c.log { // no type is 0, and a type is the last byte of a header
		from := int(offset - c.start)
		for i, b := range c.block[min(from, c.n):c.n] {
			if b != 0 {
				return offset + int64(max(0, i-manifestHeader+1))
			}
		}
		return next
	}
	var number [4]byte
	binary.LittleEndian.PutUint32(number[:], c.number)
	from := int(offset-c.start) + manifestHeader
	if from >= c.n {
		return next
	}
	i := bytes.Index(c.block[from:c.n], number[:])
	if i < 0 {
		return next
	}
	return offset + int64(i)
}

// checksum returns the CRC-32C of the first length bytes.
func (c *recordFile) checksum(length int64) (uint32, error) {
	h := crc32.New(castagnoli)
	_, err := io.Copy(h, io.NewSectionReader(c.f, 0, length))
	return h.Sum32(), err
}
