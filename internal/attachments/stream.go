package attachments

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"sync/atomic"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/errs"
)

// Stream reads a content like a file. When it is read in order, from the beginning to the
// end, the bytes are compared with the hash, and the last bytes are returned only if the
// hash is right. It holds at most one chunk in memory. It is used by one goroutine at a
// time, except for ReadAt.
type Stream struct {
	content *Content
	enter   func() error // enters the gate, before a read from the engine
	exit    func()       // leaves the gate

	offset int64
	buffer []byte // the chunk that begins at start; empty for none
	start  int64
	hash   hash.Hash
	hashed int64 // number of bytes that hash has
	failed error // set when the content is found to be damaged
	closed atomic.Bool
}

// NewStream returns a stream over a content, which its Close closes. enter and exit
// surround each read from the engine.
func NewStream(c *Content, enter func() error, exit func()) *Stream {
	return &Stream{content: c, enter: enter, exit: exit, hash: sha256.New()}
}

func (s *Stream) check() error {
	if s.closed.Load() {
		return fmt.Errorf("read an attachment: %w", fs.ErrClosed)
	}
	return s.failed
}

// fetch calls Content.readAt, inside the gate if that reads from the engine.
func (s *Stream) fetch(p []byte, offset int64) (int, error) {
	if s.content.only == nil {
		if err := s.enter(); err != nil {
			return 0, err
		}
		defer s.exit()
	}
	return s.content.readAt(p, offset)
}

// next returns the bytes from the offset to the end of its chunk, at least one.
func (s *Stream) next() ([]byte, error) {
	if only := s.content.only; only != nil {
		return only[s.offset:], nil
	}
	if s.offset < s.start || s.offset >= s.start+int64(len(s.buffer)) {
		size := s.content.record.ChunkBytes
		s.start = s.offset / size * size
		n := int(min(size, s.content.Size()-s.start))
		if cap(s.buffer) < n {
			s.buffer = make([]byte, n)
		}
		got, err := s.fetch(s.buffer[:n], s.start)
		s.buffer = s.buffer[:got]
		if err != nil {
			s.buffer = s.buffer[:0]
			return nil, err
		}
	}
	return s.buffer[s.offset-s.start:], nil
}

// pass adds p, the bytes at the offset, to the hash before they are returned.
func (s *Stream) pass(p []byte) error {
	if s.offset == s.hashed {
		s.hash.Write(p) // never fails
		s.hashed += int64(len(p))
		if err := s.verify(); err != nil {
			return err
		}
	}
	s.offset += int64(len(p))
	return nil
}

// verify compares the hash once all bytes were read.
func (s *Stream) verify() error {
	if s.hashed == s.content.Size() && [sha256.Size]byte(s.hash.Sum(nil)) != s.content.hash {
		s.failed = fmt.Errorf("read an attachment: its bytes do not have its hash: %w", errs.ErrCorrupt)
	}
	return s.failed
}

// Read implements io.Reader.
func (s *Stream) Read(p []byte) (int, error) {
	if err := s.check(); err != nil {
		return 0, err
	}
	if s.offset >= s.content.Size() {
		if s.content.Size() == 0 {
			if err := s.verify(); err != nil {
				return 0, err
			}
		}
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	from, err := s.next()
	if err != nil {
		return 0, err
	}
	n := copy(p, from)
	if err := s.pass(p[:n]); err != nil {
		clear(p[:n])
		return 0, err
	}
	return n, nil
}

// WriteTo implements io.WriterTo.
func (s *Stream) WriteTo(w io.Writer) (n int64, err error) {
	if err := s.check(); err != nil {
		return 0, err
	}
	for s.offset < s.content.Size() {
		p, err := s.next()
		if err != nil {
			return n, err
		}
		if err := s.pass(p); err != nil {
			return n, err
		}
		wrote, err := w.Write(p)
		n += int64(wrote)
		if err == nil && wrote < len(p) {
			err = io.ErrShortWrite
		}
		if err != nil {
			s.offset -= int64(len(p) - max(0, min(wrote, len(p))))
			return n, err
		}
	}
	return n, nil
}

// ReadAt implements io.ReaderAt. It does not verify the hash.
func (s *Stream) ReadAt(p []byte, offset int64) (n int, err error) {
	if offset < 0 {
		return 0, fmt.Errorf("%w: read an attachment at %d", ids.ErrUsage, offset)
	}
	if s.closed.Load() {
		return 0, s.check()
	}
	for n < len(p) {
		at := offset + int64(n)
		if at >= s.content.Size() || at < 0 {
			return n, io.EOF
		}
		got, err := s.fetch(p[n:], at)
		if err != nil {
			return n, err
		}
		n += got
	}
	return n, nil
}

// Seek implements io.Seeker.
func (s *Stream) Seek(offset int64, whence int) (int64, error) {
	if err := s.check(); err != nil {
		return 0, err
	}
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += s.offset
	case io.SeekEnd:
		offset += s.content.Size()
	default:
		return 0, fmt.Errorf("%w: seek in an attachment with whence %d", ids.ErrUsage, whence)
	}
	if offset < 0 {
		return 0, fmt.Errorf("%w: seek in an attachment to %d", ids.ErrUsage, offset)
	}
	s.offset = offset
	return offset, nil
}

// Close ends the stream. It is idempotent.
func (s *Stream) Close() {
	if s.closed.CompareAndSwap(false, true) {
		s.content.Close()
	}
}
