package look

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/jaydb/jay/storage"
)

// wire is a connection with frames. It is not safe for concurrent use.
type wire struct {
	conn net.Conn
	in   *bufio.Reader
	out  *bufio.Writer
}

func newWire(conn net.Conn) *wire {
	return &wire{conn, bufio.NewReaderSize(conn, 64<<10), bufio.NewWriterSize(stallWriter{conn}, 64<<10)}
}

// stallWriter fails when the other side takes nothing for as long as stall.
type stallWriter struct{ conn net.Conn }

func (w stallWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		if err = w.conn.SetWriteDeadline(time.Now().Add(stall)); err != nil {
			return n, err
		}
		var written int
		written, err = w.conn.Write(p[:min(len(p), 1<<20)])
		n, p = n+written, p[written:]
	}
	return n, err
}

// errFrame is returned for a frame that is larger than it may be, or has no kind.
var errFrame = errors.New("not a frame of this protocol")

// read reads a frame of at most so many bytes into buffer, if that is large enough. patience is how long
// it waits for the first byte; 0 is without end.
func (w *wire) read(buffer []byte, most uint32, patience time.Duration) (kind byte, content []byte, err error) {
	if err := w.wait(patience); err != nil {
		return 0, nil, err
	}
	var head [5]byte
	if _, err := io.ReadFull(w.in, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < 1 || n > most {
		return 0, nil, fmt.Errorf("%w: it has %d bytes, and may have 1 to %d", errFrame, n, most)
	}
	if n--; uint32(cap(buffer)) < n {
		buffer = make([]byte, n)
	}
	buffer = buffer[:n]
	for rest := buffer; len(rest) > 0; {
		if err := w.wait(stall); err != nil {
			return 0, nil, err
		}
		read, err := w.in.Read(rest)
		if err != nil {
			return 0, nil, err
		}
		rest = rest[read:]
	}
	return head[4], buffer, nil
}

func (w *wire) wait(patience time.Duration) error {
	if patience == 0 {
		return w.conn.SetReadDeadline(time.Time{})
	}
	return w.conn.SetReadDeadline(time.Now().Add(patience))
}

// write writes a frame, whose content is in parts.
func (w *wire) write(kind byte, parts ...[]byte) error {
	n := 1
	for _, p := range parts {
		n += len(p)
	}
	var head [5]byte
	binary.BigEndian.PutUint32(head[:], uint32(n))
	head[4] = kind
	_, err := w.out.Write(head[:])
	for _, p := range parts {
		if err == nil {
			_, err = w.out.Write(p)
		}
	}
	if err != nil {
		return err
	}
	return w.out.Flush()
}

func appendText(to, text []byte) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

// content is what is left to read of a frame.
type content struct {
	rest []byte
	bad  bool // it ended too early
}

func (c *content) number() uint64 {
	n, used := binary.Uvarint(c.rest)
	if used <= 0 {
		c.bad, used = true, len(c.rest)
	}
	c.rest = c.rest[used:]
	return n
}

// text returns a text, which shares the bytes of the frame.
func (c *content) text() []byte {
	n := c.number()
	if n > uint64(len(c.rest)) {
		c.bad, n = true, uint64(len(c.rest))
	}
	text := c.rest[:n:n]
	c.rest = c.rest[n:]
	return text
}

func (c *content) flag() byte {
	if len(c.rest) == 0 {
		c.bad = true
		return 0
	}
	flag := c.rest[0]
	c.rest = c.rest[1:]
	return flag
}

// codes are the errors that a reply can say, from 1 on; 255 is any other.
//
// Part of the protocol: what is added comes last.
var codes = []error{
	storage.ErrNotFound, storage.ErrSnapshotExpired, storage.ErrCorrupt, storage.ErrUnreadable,
	storage.ErrUnknownOutcome, storage.ErrFailed, storage.ErrUnavailable,
	storage.ErrReadOnly, storage.ErrTooLarge,
}

const otherError = 255

// codeOf returns the code of an error.
func codeOf(err error) byte {
	for i, known := range codes {
		if errors.Is(err, known) {
			return byte(i + 1)
		}
	}
	return otherError
}

// replyError is an error that the owner has returned.
type replyError struct {
	text string
	is   error // may be nil
}

func (e *replyError) Error() string { return e.text }

// Unwrap returns the error of package storage that it is.
func (e *replyError) Unwrap() error { return e.is }

// errorOf returns the error of a reply.
func errorOf(code byte, text []byte) error {
	var is error
	if int(code) <= len(codes) {
		is = codes[code-1]
	}
	if is == storage.ErrNotFound {
		return is // as callers compare it
	}
	return &replyError{string(text[:min(len(text), 4096)]), is}
}
