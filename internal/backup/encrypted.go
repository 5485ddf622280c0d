package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/sealed"
)

// An encrypted stream begins with the line "jay backup, format 2\n". A stream of package sealed follows, of which that line is authenticated, and whose
// plaintext is a whole stream of format 1, with its own first line.
//
// Part of the format. Must not change.
const (
	plainFormat     = 1
	encryptedFormat = 2
)

// Keyed is a stream with the keys that may decrypt it. NewReader, Verify and Apply take it as the io.Reader that it is; a stream
// that is not encrypted is read without asking for a key.
type Keyed struct {
	io.Reader
	Keys sealed.Keys // nil for none
}

// counted counts what is written.
type counted struct {
	w io.Writer
	n int64
}

// Write implements io.Writer.
func (c *counted) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return n, err
}

// encrypt makes what is written from now on an encrypted stream.
func (w *Writer) encrypt(keys sealed.Keys) (err error) {
	if w.sealed, w.KeyID, err = sealed.NewStream(&w.out, keys, []byte(firstLine(encryptedFormat))); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	w.w = w.sealed
	return nil
}

// decrypt makes the rest of a stream, whose first line was read, the stream that is encrypted in it.
func (r *Reader) decrypt(line []byte) error {
	id, slot, err := sealed.ReadStreamKey(r.r, line)
	if err != nil {
		return r.readError(err)
	}
	r.KeyID = id
	if r.keys == nil {
		return r.keyError(fmt.Sprintf("it is encrypted with the key %q, and no keys were given", id), errs.ErrKey)
	}
	opened, err := sealed.OpenStream(r.r, r.keys, line, id, slot)
	if errors.Is(err, errs.ErrKey) {
		return r.keyError("it is encrypted", err)
	}
	if err != nil {
		return err
	}
	r.r, r.sealed, r.at = opened, opened, 0
	r.hash.Reset()
	return nil
}

// keyError is the error of a stream that the keys do not open.
func (r *Reader) keyError(problem string, cause error) error {
	return &Error{Stream: r.stream, Offset: -1, Problem: problem, Key: r.KeyID, Cause: cause}
}

// readError returns the error of a read. Damage to an encrypted stream is an Error.
func (r *Reader) readError(err error) error {
	if damage := (*sealed.Damage)(nil); errors.As(err, &damage) {
		return &Error{Stream: r.stream, Offset: damage.Offset, Problem: damage.Problem, Cause: errs.ErrCorrupt}
	}
	return fmt.Errorf("read the backup, at byte %d: %w", r.Bytes, err)
}

// CheckKey reads the beginning of a stream, which is the one at this position in its chain. It returns an error if that is encrypted and its
// key is missing or wrong, and nil for all else, damage among it.
func CheckKey(r io.Reader, stream int) error {
	in, err := NewReader(r, stream)
	if errors.Is(err, errs.ErrKey) {
		return err
	}
	if err == nil {
		in.Close()
	}
	return nil
}

// peeker is a reader whose next bytes can be seen without reading them, such as a bufio.Reader.
type peeker interface {
	Peek(n int) ([]byte, error)
}

// peekBytes is more than the first line and the wrapped key of an encrypted stream have.
const peekBytes = 512

// CheckPeeked is CheckKey for a stream whose beginning can be seen without reading it. It does nothing for any other.
func CheckPeeked(r io.Reader, stream int) error {
	keyed, is := r.(*Keyed)
	if !is {
		keyed = &Keyed{Reader: r}
	}
	from, is := keyed.Reader.(peeker)
	if !is {
		return nil
	}
	begin, _ := from.Peek(peekBytes) // an error comes again when it is read
	return CheckKey(&Keyed{bytes.NewReader(begin), keyed.Keys}, stream)
}
