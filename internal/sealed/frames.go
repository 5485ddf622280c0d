package sealed

import (
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"sort"
)

// Frames are for files that grow at their end and are synced in between. Behind the header each write
// is one or more frames, none of which is written a second time. All numbers are big-endian:
//
//	offset size
//	     0    8  offset of the plaintext in the file
//	     8    4  length of the plaintext, 1 to 32768
//	    12    4  CRC-32C of these 12 bytes
//	    16    n  nonce (12), encrypted bytes, tag (16)
//
// The offset and the length are authenticated with the bytes, both as 8 bytes, big-endian.
//
// A power loss may leave any part of what was not synced. What of a file is not a whole and authentic frame reads as
// zeros, and a file ends with its last such frame: a log that was damaged looks as one that was never written there,
// and the checks of its records decide which of the two it was. Frames that follow damage are found by their checksum.
//
// Part of the on-disk format. Must not change.
const (
	frameHeader = 16
	frameSum    = 12
	frameLength = 32 << 10 // plaintext of a frame at most
)

// FrameWriter writes frames. Its methods are called one at a time.
type FrameWriter struct {
	w      io.Writer
	aead   cipher.AEAD
	broken broken
	place  place

	frames   uint64
	size     int64
	physical int64
	out      []byte
}

// NewFrames begins a new file, and writes its header.
func (r *Ring) NewFrames(w io.Writer, name string) (*FrameWriter, error) {
	header, aead, err := r.newHeader(Frames, name)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(header); err != nil {
		return nil, err
	}
	return &FrameWriter{w: w, aead: aead, physical: headerBytes}, nil
}

// Write implements io.Writer. What it has returned for is in the file.
func (f *FrameWriter) Write(b []byte) (int, error) {
	if err := f.broken.check(); err != nil {
		return 0, err
	}
	f.out = f.out[:0]
	size := f.size
	for rest := b; len(rest) > 0; {
		n := min(len(rest), frameLength)
		if f.frames == MaxSeals {
			return 0, errTooMany
		}
		f.frames++
		at := len(f.out)
		f.out = binary.BigEndian.AppendUint64(f.out, uint64(size))
		f.out = binary.BigEndian.AppendUint32(f.out, uint32(n))
		f.out = binary.BigEndian.AppendUint32(f.out, crc32.Checksum(f.out[at:], castagnoli))
		f.out = f.aead.Seal(f.out, nil, rest[:n], f.place.set(uint64(size), uint64(n)))
		size += int64(n)
		rest = rest[n:]
	}
	if _, err := f.w.Write(f.out); err != nil {
		f.broken.err = err
		return 0, err
	}
	f.physical += int64(len(f.out))
	f.size = size
	return len(b), nil
}

// Size returns how many bytes were written.
func (f *FrameWriter) Size() int64 { return f.size }

// Physical returns how many bytes of the file they take.
func (f *FrameWriter) Physical() int64 { return f.physical }

// frame is a whole and authentic frame.
type frame struct {
	offset int64 // of its plaintext
	at     int64 // of its encrypted bytes in the file
	length int32 // of its plaintext
}

// FrameReader reads frames.
type FrameReader struct {
	f      io.ReaderAt
	aead   cipher.AEAD // nil without a header
	name   string
	frames []frame // in their order
	size   int64
	damage *Damage
}

// OpenFrames opens a file that has this many physical bytes, and reads all of it once. It keeps 24 bytes for each
// frame. A file whose header is not whole, or belongs to another file, has nothing in it. If the key is not to be had, the
// error is an errs.ErrKey.
func (r *Ring) OpenFrames(f io.ReaderAt, physical int64, name string) (*FrameReader, error) {
	header, err := ReadHeader(f)
	if err != nil {
		return nil, err
	}
	aead, err := r.openHeader(header, Frames, name)
	if damage := (*Damage)(nil); errors.As(err, &damage) {
		return &FrameReader{f: f, name: name, damage: damage}, nil
	}
	if err != nil {
		return nil, err
	}
	reader := &FrameReader{f: f, aead: aead, name: name}
	if err := reader.find(physical); err != nil {
		return nil, err
	}
	return reader, nil
}

// Size returns how many bytes can be read.
func (r *FrameReader) Size() int64 { return r.size }

// Damage returns the first place at which the file does not have the frame that follows, or nil. A file that was not synced to its
// end before a power loss has such a place, too.
func (r *FrameReader) Damage() *Damage { return r.damage }

// find finds all frames.
func (r *FrameReader) find(physical int64) error {
	w := window{f: r.f, end: physical}
	var place place
	text := make([]byte, 0, frameLength)
	for at := int64(headerBytes); ; {
		if r.damage != nil {
			skipped, err := w.skipZeros(at)
			if err != nil {
				return err
			}
			at = skipped
		}
		head, err := w.bytes(at, frameHeader)
		if err != nil {
			return err
		}
		if len(head) == 0 {
			return nil
		}
		length, err := r.take(&w, &place, text, head, at)
		if err != nil {
			return err
		}
		if length > 0 {
			at += frameHeader + sealBytes + int64(length)
			continue
		}
		r.noteDamage(at)
		at++
	}
}

// take adds the frame at this place, whose header was read, and returns the length of its plaintext; 0 if
// there is none.
func (r *FrameReader) take(w *window, place *place, text, head []byte, at int64) (length int, err error) {
	offset, length, ok := parseFrame(head)
	if !ok || offset < r.size || offset > at-headerBytes {
		return 0, nil
	}
	body, err := w.bytes(at+frameHeader, length+sealBytes)
	if err != nil || len(body) < length+sealBytes {
		return 0, err
	}
	if _, err := r.aead.Open(text, nil, body, place.set(uint64(offset), uint64(length))); err != nil {
		return 0, nil
	}
	if offset > r.size {
		r.noteDamage(at)
	}
	r.frames = append(r.frames, frame{offset, at + frameHeader, int32(length)})
	r.size = offset + int64(length)
	return length, nil
}

// noteDamage notes the first place at which the frame that follows is not there.
func (r *FrameReader) noteDamage(at int64) {
	if r.damage == nil {
		r.damage = &Damage{r.name, at, "the frame of the encrypted file that belongs here is not there, or is not authentic"}
	}
}

// parseFrame reads the header of a frame. It returns false if that is not whole.
func parseFrame(b []byte) (offset int64, length int, ok bool) {
	if len(b) < frameHeader || binary.BigEndian.Uint32(b[frameSum:]) != crc32.Checksum(b[:frameSum], castagnoli) {
		return 0, 0, false
	}
	o, n := binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:])
	return int64(o), int(n), o < 1<<62 && n > 0 && n <= frameLength
}

// ReadAt implements io.ReaderAt. Where the file has no frame it reads zeros. A frame that was whole when the file was
// opened, and is not any more, is a *Damage.
func (r *FrameReader) ReadAt(b []byte, offset int64) (n int, err error) {
	if offset < 0 {
		return 0, errNegative
	}
	short := offset+int64(len(b)) > r.size
	if short {
		b = b[:max(0, r.size-offset)]
	}
	clear(b)
	i := sort.Search(len(r.frames), func(i int) bool { return r.frames[i].offset+int64(r.frames[i].length) > offset })
	w := window{f: r.f, end: r.physicalEnd()}
	var place place
	var text []byte
	for ; i < len(r.frames) && r.frames[i].offset < offset+int64(len(b)); i++ {
		one := r.frames[i]
		body, err := w.bytes(one.at, int(one.length)+sealBytes)
		if err != nil {
			return 0, err
		}
		text, err = r.aead.Open(text[:0], nil, body, place.set(uint64(one.offset), uint64(one.length)))
		if err != nil {
			return 0, &Damage{r.name, one.at - frameHeader, "a frame of the encrypted file was changed after the file was opened"}
		}
		if skip := offset - one.offset; skip > 0 {
			copy(b, text[skip:])
		} else {
			copy(b[-skip:], text)
		}
	}
	if short {
		return len(b), io.EOF
	}
	return len(b), nil
}

// physicalEnd returns where the last frame ends in the file.
func (r *FrameReader) physicalEnd() int64 {
	if len(r.frames) == 0 {
		return headerBytes
	}
	last := r.frames[len(r.frames)-1]
	return last.at + int64(last.length) + sealBytes
}

// window is the part of a file that was read last.
type window struct {
	f     io.ReaderAt
	end   int64 // of the file
	start int64
	buf   []byte
}

// windowBytes is how much is read at once: more than a frame has.
const windowBytes = 64 << 10

// bytes returns n bytes of the file, or as many as there are. They are valid until the next call.
func (w *window) bytes(at int64, n int) ([]byte, error) {
	n = int(max(0, min(int64(n), w.end-at)))
	if n == 0 {
		return nil, nil
	}
	if at < w.start || at+int64(n) > w.start+int64(len(w.buf)) {
		if w.buf == nil {
			w.buf = make([]byte, windowBytes)
		}
		buf := w.buf[:min(int64(windowBytes), w.end-at)]
		k, err := w.f.ReadAt(buf, at)
		if err != nil && !(errors.Is(err, io.EOF)) {
			w.buf = w.buf[:0]
			return nil, err
		}
		w.start, w.buf = at, buf[:k]
		n = min(n, k) // the file may have become shorter
	}
	i := int(at - w.start)
	return w.buf[i : i+n], nil
}

// leadingZeros is the most zeros with which a frame begins: an offset of 0, and all but the last byte of a length.
const leadingZeros = 11

// skipZeros returns the first offset, from this one on, at which a frame may begin. It skips space that was allocated and not written.
func (w *window) skipZeros(at int64) (int64, error) {
	for {
		b, err := w.bytes(at, windowBytes/2)
		if err != nil || len(b) == 0 {
			return at, err
		}
		if i := slices.IndexFunc(b, func(x byte) bool { return x != 0 }); i >= 0 {
			return max(at, at+int64(i)-leadingZeros), nil
		}
		if len(b) < frameHeader {
			return at + int64(len(b)), nil
		}
		at += int64(len(b)) - leadingZeros
	}
}
