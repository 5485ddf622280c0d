package sealed

import (
	"bufio"
	"crypto/cipher"
	"errors"
	"fmt"
	"io"

	"github.com/jaydb/jay/internal/errs"
)

// A stream is for what is written once and read once, from its beginning to its end, and belongs to no directory: a backup. It begins with
// bytes of its owner in the clear, which say what it is. Then follow the slot of a header (240 bytes, see header.go),
// whose name is streamName, and pages of 65,536 bytes, of which the last may be shorter:
//
//	nonce (12) | encrypted bytes (65508, of the last page 0 to 65508) | tag (16)
//
// The bytes of the owner are authenticated with the wrapped key. With each page its number, which counts from 0, and 1 for the last page or 0 for any
// other are authenticated, both as 8 bytes, big-endian. As each stream has a random key, a page of another stream is found out, too.
//
// Part of the format. Must not change.
const (
	streamName   = "backup"
	streamPage   = 64 << 10
	streamLength = streamPage - sealBytes // plaintext of a page
)

// StreamWriter writes a stream. Its methods are called one at a time.
type StreamWriter struct {
	w      io.Writer
	aead   cipher.AEAD
	broken broken
	place  place
	pages  uint64
	ended  bool
	rest   []byte // of the plaintext: at most one page, as it may be the last one
	out    []byte
}

// NewStream begins a stream whose owner's bytes are about, and writes those and the slot. The key is the newest one.
func NewStream(w io.Writer, keys Keys, about []byte) (s *StreamWriter, keyID string, err error) {
	key, err := keys.ask("")
	if err != nil {
		return nil, "", err
	}
	fileKey := newFileKey()
	aead, err := newAEAD(fileKey)
	if err != nil {
		return nil, "", err
	}
	slot, err := makeSlot(key, fileKey, about, streamName)
	if err != nil {
		return nil, "", err
	}
	if _, err := w.Write(append(append([]byte(nil), about...), slot...)); err != nil {
		return nil, "", err
	}
	return &StreamWriter{w: w, aead: aead, rest: make([]byte, 0, streamLength)}, key.ID, nil
}

// Write implements io.Writer. It writes the pages that are known not to be the last.
func (s *StreamWriter) Write(b []byte) (int, error) {
	if err := s.broken.check(); err != nil {
		return 0, err
	}
	if s.ended && len(b) > 0 {
		return 0, errEnded
	}
	n := len(b)
	for len(b) > 0 {
		if len(s.rest) == streamLength {
			if err := s.seal(0); err != nil {
				return 0, err
			}
		}
		k := copy(s.rest[len(s.rest):streamLength], b)
		s.rest, b = s.rest[:len(s.rest)+k], b[k:]
	}
	return n, nil
}

// seal writes a page with the rest.
func (s *StreamWriter) seal(last uint64) error {
	if s.pages == MaxSeals {
		return errTooMany
	}
	s.out = s.aead.Seal(s.out[:0], nil, s.rest, s.place.set(s.pages, last))
	s.pages, s.rest = s.pages+1, s.rest[:0]
	if _, err := s.w.Write(s.out); err != nil {
		s.broken.err = err
		return err
	}
	return nil
}

// End writes the last page. A stream without it counts as cut short. Nothing can be written afterwards. Later calls do nothing.
func (s *StreamWriter) End() error {
	if err := s.broken.check(); err != nil || s.ended {
		return err
	}
	s.ended = true
	return s.seal(1)
}

// StreamReader reads a stream, behind the bytes of its owner. Bytes are returned when their page was found authentic, and io.EOF when the stream has
// ended with its last page. It belongs to one goroutine.
type StreamReader struct {
	r     *bufio.Reader
	aead  cipher.AEAD
	place place
	start int64  // of the first page in the stream
	page  int64  // number of the next one
	size  int64  // of the stream so far
	buf   []byte // a page as it is stored
	plain []byte // the memory of its plaintext
	text  []byte // what is left of that
	err   error  // with which every further Read ends
}

// ReadStreamKey reads the slot of a stream, behind the bytes of its owner, and returns the ID of its key. It asks for no key. A slot
// that is not whole is a *Damage.
func ReadStreamKey(r io.Reader, about []byte) (id string, slot []byte, err error) {
	slot = make([]byte, slotBytes)
	n, err := io.ReadFull(r, slot)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "", nil, &Damage{streamName, int64(len(about) + n), "it ends here, within its wrapped key: it was cut short"}
	}
	if err != nil {
		return "", nil, err
	}
	id, name, ok := parseSlot(slot)
	if !ok || name != streamName {
		return "", nil, &Damage{streamName, int64(len(about)), "the wrapped key does not have its checksum"}
	}
	return id, slot, nil
}

// OpenStream opens a stream whose slot ReadStreamKey has read from r. A key that is missing, or that has another secret than the one that
// encrypted the stream, is an errs.ErrKey.
func OpenStream(r io.Reader, keys Keys, about []byte, id string, slot []byte) (*StreamReader, error) {
	key, err := keys.ask(id)
	if err != nil {
		return nil, err
	}
	fileKey, ok, err := openSlot(key, slot, about)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: the key %q is not the one that it was encrypted with", errs.ErrKey, id)
	}
	aead, err := newAEAD(fileKey)
	if err != nil {
		return nil, err
	}
	return &StreamReader{r: bufio.NewReaderSize(r, streamPage), aead: aead, start: int64(len(about) + slotBytes), size: int64(len(about) + slotBytes), buf: make([]byte, streamPage), plain: make([]byte, 0, streamLength)}, nil
}

// Read implements io.Reader. A page that is not the one that was written there is a *Damage.
func (s *StreamReader) Read(b []byte) (int, error) {
	for len(s.text) == 0 && s.err == nil && len(b) > 0 {
		s.text, s.err = s.next()
	}
	if len(s.text) == 0 && len(b) > 0 {
		return 0, s.err
	}
	n := copy(b, s.text)
	s.text = s.text[n:]
	return n, nil
}

// next returns the plaintext of the next page, with io.EOF if it is the last one.
func (s *StreamReader) next() ([]byte, error) {
	at := s.start + s.page*streamPage
	n, err := io.ReadFull(s.r, s.buf)
	last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	if err != nil && !last {
		return nil, err
	}
	if !last {
		if _, err := s.r.Peek(1); errors.Is(err, io.EOF) {
			last = true
		} else if err != nil {
			return nil, err
		}
	}
	page := s.buf[:n]
	flag := uint64(0)
	if last {
		flag = 1
	}
	text, err := s.aead.Open(s.plain[:0], nil, page, s.place.set(uint64(s.page), flag))
	if err != nil {
		return nil, &Damage{streamName, at, s.problem(page, last)}
	}
	s.page, s.size = s.page+1, s.size+int64(n)
	if last {
		return text, io.EOF
	}
	return text, nil
}

// problem says what is wrong with a page that cannot be opened.
func (s *StreamReader) problem(page []byte, last bool) string {
	if last && len(page) < streamPage {
		return "the encrypted stream was cut short, or its last page is not authentic"
	}
	if last {
		if _, err := s.aead.Open(nil, nil, page, s.place.set(uint64(s.page), 0)); err == nil {
			return "it ends here, without its last page: it was cut short, or never completed"
		}
	}
	return "a page of the encrypted stream is not authentic: it was changed, or belongs elsewhere"
}

// Offset returns where in the stream a byte of the plaintext is.
func (s *StreamReader) Offset(plain int64) int64 {
	return s.start + plain/streamLength*streamPage + nonceBytes + plain%streamLength
}

// Size returns the bytes of the stream up to the page that was read last, with those of its owner.
func (s *StreamReader) Size() int64 { return s.size }
