// Package follow keeps a standby: a store whose keys are those that the store of another database, its source, had
// after one of its commits.
//
// A [Source] remembers the newest commits of its engine, for as long as standbys read them, up to MemoryBytes. A standby asks with the
// position that it has come to. If the commits after it are remembered, a [Stream] sends those, and each is
// applied as it is. If not, as after the source was opened anew, both compare their keys: the standby sends checksums of ranges of its
// keys, and the source sends the ranges that differ. A standby without keys has one range, which
// differs. What differs is gathered in tables, and one Ingest takes them in with the new position: however large the
// copy, readers see the state before or the state after, and a crash leaves one of them.
//
// Only what is on the source's disk is sent, so the source cannot lose a commit that a standby has. Commits that the source makes during
// a copy are sent in between; the standby keeps them in a file until the copy is in.
//
// Indexes, counts and all else that is derived are keys like others: a standby derives nothing.
//
// A request and a stream consist of frames:
//
//	offset size
//	     0    4  CRC-32C of the rest of the frame
//	     4    1  kind
//	     5    4  n, big-endian
//	     9    n  payload
//
// The request is a frame of kind request, with JSON, then frames of checksums, and an end. The stream begins with a frame of kind hello. The
// line [Magic] stands before the first frame of both.
package follow

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// Magic begins a request and a stream. Its number rises with each change of either.
const Magic = "jay standby, version 1\n"

// Kinds of frames.
const (
	kindRequest   = 'q' // JSON: Request
	kindSums      = 's' // checksums of ranges: 32 bytes and the key at which the next range begins, again and again
	kindEnd       = 'z' // the end of the request, or of the ranges of a copy
	kindHello     = 'h' // JSON: hello
	kindRange     = 'r' // a range that differs: its bounds; an empty upper one is none
	kindKeys      = 'k' // keys of that range, ascending, as writes
	kindCommit    = 'c' // number and instant, 8 bytes each, and the writes of a commit
	kindMoment    = 'm' // number and instant: nothing was committed after this one before the instant
	kindCompare   = 'x' // the standby must ask again, with checksums
	kindFormat    = 'f' // JSON: the format of the source, which has risen; before the first commit that needs it
	frameHeader   = 9
	momentBytes   = 16
	opSet         = 1
	opDelete      = 2
	maxFrame      = storage.MaxTxBytes + 64<<20 // a commit is the largest
	maxSums       = 256 << 20                   // of a request
	maxHead       = 1 << 20                     // of a frame with JSON
	blockBytes    = 256 << 10                   // of keys in a frame, unless one is longer
	firstRange    = 64 << 10                    // keys and values of a range, at least
	desiredRanges = 200_000
)

// ErrFrame is returned for a request or a stream that is damaged, or of another version.
var ErrFrame = errors.New("stream of a standby is damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame appends a frame.
func appendFrame(dst []byte, kind byte, payload ...[]byte) []byte {
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0, kind, 0, 0, 0, 0)
	for _, part := range payload {
		dst = append(dst, part...)
	}
	binary.BigEndian.PutUint32(dst[at+5:], uint32(len(dst)-at-frameHeader))
	binary.BigEndian.PutUint32(dst[at:], crc32.Checksum(dst[at+4:], castagnoli))
	return dst
}

// reader reads frames.
type reader struct {
	in      *bufio.Reader
	payload bytes.Buffer
	head    [frameHeader]byte
}

func newReader(r io.Reader) *reader { return &reader{in: bufio.NewReaderSize(r, 64<<10)} }

// begin reads the line before the first frame.
func (r *reader) begin() error {
	line := make([]byte, len(Magic))
	if _, err := io.ReadFull(r.in, line); err != nil {
		return err
	}
	if string(line) != Magic {
		return fmt.Errorf("%w: it begins with %q, and not with %q", ErrFrame, line, Magic)
	}
	return nil
}

// next returns the next frame. The payload is valid until the next call. Memory is taken as bytes arrive, whatever length a frame claims.
func (r *reader) next() (kind byte, payload []byte, err error) {
	if _, err := io.ReadFull(r.in, r.head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(r.head[5:])
	if n > maxFrame {
		return 0, nil, fmt.Errorf("%w: a frame of %d bytes, %d are the most", ErrFrame, n, uint32(maxFrame))
	}
	if r.payload.Cap() > 16<<20 {
		r.payload = bytes.Buffer{} // do not keep the memory of one huge commit
	}
	r.payload.Reset()
	if _, err := io.CopyN(&r.payload, r.in, int64(n)); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	sum := crc32.Update(crc32.Checksum(r.head[4:], castagnoli), castagnoli, r.payload.Bytes())
	if sum != binary.BigEndian.Uint32(r.head[:]) {
		return 0, nil, fmt.Errorf("%w: the checksum of a frame differs", ErrFrame)
	}
	return r.head[4], r.payload.Bytes(), nil
}

// buffered reports whether more has arrived.
func (r *reader) buffered() bool { return r.in.Buffered() > frameHeader }

func appendString(dst, s []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// cutString returns the string at the beginning of b, and what follows it.
func cutString(b []byte) (s, rest []byte, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, fmt.Errorf("%w: a string is cut off", ErrFrame)
	}
	return b[size : size+int(n)], b[size+int(n):], nil
}

// appendWrite appends a write: its kind, key and value.
func appendWrite(dst []byte, w storage.Write) []byte {
	if w.Deleted {
		return appendString(append(dst, opDelete), w.Key)
	}
	return appendString(appendString(append(dst, opSet), w.Key), w.Value)
}

// eachWrite calls fn with the writes in b.
func eachWrite(b []byte, fn func(storage.Write) error) (err error) {
	for len(b) > 0 {
		op := b[0]
		var w storage.Write
		if w.Key, b, err = cutString(b[1:]); err != nil {
			return err
		}
		switch {
		case len(w.Key) == 0:
			return fmt.Errorf("%w: an empty key", ErrFrame)
		case op == opDelete:
			w.Deleted = true
		case op == opSet:
			if w.Value, b, err = cutString(b); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%w: a write of kind %d", ErrFrame, op)
		}
		if err := fn(w); err != nil {
			return err
		}
	}
	return nil
}

// The keys that a standby has for itself: nothing is sent of them, and they are in no checksum. The version of definitions tells the readers
// of a standby, which use it as a shared store, that definitions have changed.
var (
	standbyKey     = format.AppendKey(nil, format.SpaceMeta, format.StandbyName)
	definitionsKey = format.AppendKey(nil, format.SpaceMeta, format.DefinitionsName)
)

func isLocal(key []byte) bool {
	return bytes.Equal(key, standbyKey) || bytes.Equal(key, definitionsKey)
}
