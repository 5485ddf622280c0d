package sorter

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/jaydb/jay/internal/keybytes"
	"github.com/jaydb/jay/storage"
)

// File is a temporary file.
type File = storage.Temporary

// blockBytes is the size of a run's blocks, unless one entry is larger.
const blockBytes = 64 << 10

// blockHeader is the bytes in front of a block's entries.
const blockHeader = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// runWriter writes a run.
type runWriter struct {
	file  File
	block []byte // with room for the header
}

func (s *Sorter) newRun() (*runWriter, error) {
	f, err := s.create()
	if err != nil {
		return nil, err
	}
	return &runWriter{f, make([]byte, blockHeader, blockBytes+blockHeader)}, nil
}

// keep finishes a run and adds it to those of the sorter.
func (s *Sorter) keep(w *runWriter) error {
	if err := errors.Join(w.flush(), w.file.Finish()); err != nil {
		return errors.Join(err, w.file.Remove())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = append(s.runs, w.file)
	return nil
}

func (w *runWriter) add(key, value []byte) error {
	if n := len(w.block) + len(key) + len(value) + 2*binary.MaxVarintLen32; n > blockBytes+blockHeader {
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.block = binary.AppendUvarint(w.block, uint64(len(key)))
	w.block = binary.AppendUvarint(w.block, uint64(len(value)))
	w.block = append(append(w.block, key...), value...)
	return nil
}

// flush writes the block, unless it is empty.
func (w *runWriter) flush() error {
	entries := w.block[blockHeader:]
	if len(entries) == 0 {
		return nil
	}
	binary.LittleEndian.PutUint32(w.block, uint32(len(entries)))
	binary.LittleEndian.PutUint32(w.block[4:], crc32.Checksum(entries, castagnoli))
	_, err := w.file.Write(w.block)
	w.block = w.block[:blockHeader]
	return err
}

// source is a sorted sequence of entries.
type source interface {
	// next moves to the next entry; false at the end.
	next() (bool, error)
	// prefix is that of ref, key and value are valid until next.
	prefix() uint64
	key() []byte
	value() []byte
}

// bufferSource reads the entries of a Buffer up to a position.
type bufferSource struct {
	b       *Buffer
	at, end int
}

func (s *bufferSource) next() (bool, error) { s.at++; return s.at < s.end, nil }
func (s *bufferSource) prefix() uint64      { return s.b.refs[s.at].prefix }
func (s *bufferSource) key() []byte         { return s.b.keyOf(&s.b.refs[s.at]) }
func (s *bufferSource) value() []byte       { return s.b.valueOf(&s.b.refs[s.at]) }

// runSource reads a run.
type runSource struct {
	file        io.ReadCloser
	block       []byte // memory of the block
	rest        []byte // unread entries of the block
	first       uint64
	theKey, val []byte
}

func (s *runSource) prefix() uint64 { return s.first }
func (s *runSource) key() []byte    { return s.theKey }
func (s *runSource) value() []byte  { return s.val }

func (s *runSource) next() (bool, error) {
	if len(s.rest) == 0 {
		if more, err := s.readBlock(); err != nil || !more {
			return false, err
		}
	}
	key, n := binary.Uvarint(s.rest)
	value, m := binary.Uvarint(s.rest[max(0, n):])
	if n <= 0 || m <= 0 || key > uint64(len(s.rest)) || value > uint64(len(s.rest)) || uint64(n+m)+key+value > uint64(len(s.rest)) {
		return false, errBlock
	}
	at := n + m
	s.theKey = s.rest[at : at+int(key)]
	s.val = s.rest[at+int(key) : at+int(key+value)]
	s.rest = s.rest[at+int(key+value):]
	s.first = keybytes.NumberAt(s.theKey, 0)
	return true, nil
}

// errBlock is the error of a temporary file that does not hold what was written to it.
var errBlock = fmt.Errorf("a temporary file of a sort: %w", storage.ErrCorrupt)

// maxBlockBytes bounds what the length of a block makes a reader allocate: an entry has less.
const maxBlockBytes = 64 << 20

// readBlock reads the next block; false at the end of the file.
func (s *runSource) readBlock() (bool, error) {
	var header [blockHeader]byte
	if _, err := io.ReadFull(s.file, header[:]); err == io.EOF {
		return false, nil
	} else if err != nil {
		return false, blockError(err)
	}
	n := binary.LittleEndian.Uint32(header[:])
	if n == 0 || n > maxBlockBytes {
		return false, errBlock
	}
	if uint32(cap(s.block)) < n {
		s.block = make([]byte, max(n, blockBytes))
	}
	s.rest = s.block[:n]
	if _, err := io.ReadFull(s.file, s.rest); err != nil {
		return false, blockError(err)
	}
	if crc32.Checksum(s.rest, castagnoli) != binary.LittleEndian.Uint32(header[4:]) {
		return false, errBlock
	}
	return true, nil
}

// blockError converts the early end of a file to errBlock.
func blockError(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errBlock
	}
	return err
}

// merge merges sources and runs.
func merge(ctx context.Context, sources []source, runs []File, fn func(key, value []byte) error) (err error) {
	for _, run := range runs {
		f, openErr := run.Open()
		if openErr != nil {
			return openErr
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		sources = append(sources, &runSource{file: f})
	}
	h := heap{}
	for _, s := range sources {
		more, err := s.next()
		if err != nil {
			return err
		}
		if more {
			h = append(h, s)
		}
	}
	h.init()
	for n := 0; len(h) > 0; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := fn(h[0].key(), h[0].value()); err != nil {
			return err
		}
		more, err := h[0].next()
		if err != nil {
			return err
		}
		if !more {
			h[0] = h[len(h)-1]
			h = h[:len(h)-1]
		}
		h.down(0)
	}
	return nil
}

// heap has the source with the least key first.
type heap []source

func (h heap) less(i, j int) bool {
	if a, b := h[i].prefix(), h[j].prefix(); a != b {
		return a < b
	}
	return bytes.Compare(h[i].key(), h[j].key()) < 0
}

func (h heap) init() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h heap) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h.less(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
