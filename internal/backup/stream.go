package backup

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"runtime"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/sealed"
	"github.com/jaydb/jay/storage"
)

// A stream begins with a line, "jay backup, format 1\n", which blocks follow: the
// header, blocks of data, and the trailer. For an encrypted one see encrypted.go.
//
//	offset size
//	     0    4  CRC-32C of the rest of the block, as it is stored
//	     4    1  kind: 1 header, 2 data, 3 trailer
//	     5    4  number of the block in the stream, from 0
//	     9    4  n, size as it is stored
//	    13    4  size before compression, at most 1 MiB
//	    17    n  a frame of zstd
//
// Numbers are big-endian. The data of all blocks together is a list of operations,
// which go on from one block to the next:
//
//	01 key value  set the key; key and value are strings: uvarint length and bytes
//	02 key        delete the key
//	03 lo hi      delete all keys from lo on and below hi; an empty hi is no bound
//
// Part of the format. Must not change.
const (
	linePrefix = "jay backup, format "

	blockHeader = 17
	kindHeader  = 1
	kindData    = 2
	kindTrailer = 3

	opSet    = 1
	opDelete = 2
	opClear  = 3

	// BlockBytes is the size of a block before compression, at most.
	BlockBytes = 1 << 20

	// MaxKey, MaxDocument and MaxValue bound what a reader accepts: a key; a record that holds a
	// document, whose JSON has at most 512 MiB under any options; any other value.
	MaxKey      = 1 << 20
	MaxDocument = 544 << 20
	MaxValue    = 65 << 20
)

// maxValue returns how long the value of a key can be. The results of all calls with a request
// ID together have 64 MiB, and no other value has as many.
func maxValue(key []byte) int {
	if holdsDocuments[key[0]] {
		return MaxDocument
	}
	return MaxValue
}

// holdsDocuments has the first bytes of keys whose values can hold a document.
var holdsDocuments = func() (first [256]bool) {
	for _, s := range format.Spaces {
		first[s.First] = s.Values == format.DocumentValues
	}
	return first
}()

// keepBytes is the size up to which the memory of a value is used again.
const keepBytes = 8 << 20

// maxStored is how large a block can be as it is stored: zstd adds a few bytes to what
// it cannot compress.
const maxStored = BlockBytes + BlockBytes/64 + 1024

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func firstLine(number int) string { return linePrefix + strconv.Itoa(number) + "\n" }

// Op is an operation of a stream.
type Op struct {
	Kind  byte
	Key   []byte // of opClear the lower bound
	Value []byte // of opClear the upper bound
}

// Writer writes a stream. Operations are gathered by Set, Delete and Clear, which do
// not write; Flush does. It is not safe for concurrent use.
type Writer struct {
	Trailer Trailer // as far as it has come
	KeyID   string  // of the key with which it is encrypted; "" for none

	out      counted
	sealed   *sealed.StreamWriter // nil if it is not encrypted
	w        io.Writer            // sealed or out
	hash     hash.Hash
	encoder  *zstd.Encoder
	raw      []byte
	number   uint32
	inFlight []*packing // oldest first
}

// packing is a block that is being compressed.
type packing struct {
	kind   byte
	number uint32
	raw    []byte
	packed []byte // header and frame
	done   chan struct{}
}

// NewWriter begins a stream with the first line and the header. It is encrypted with the newest of the keys, or not if they are nil. If that
// cannot be had, the error is an errs.ErrKey, and nothing was written.
func NewWriter(w io.Writer, h Header, keys sealed.Keys) (*Writer, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)), zstd.WithEncoderCRC(false), zstd.WithWindowSize(BlockBytes))
	if err != nil {
		return nil, err
	}
	out := &Writer{out: counted{w: w}, hash: sha256.New(), encoder: encoder}
	out.w = &out.out
	if keys != nil {
		if err := out.encrypt(keys); err != nil {
			return nil, err
		}
	}
	if err := out.write([]byte(firstLine(plainFormat))); err != nil {
		return nil, err
	}
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	out.start(kindHeader, text)
	return out, out.drain(0)
}

// Set appends a key with its value.
func (w *Writer) Set(key, value []byte) {
	w.Trailer.Keys++
	if key[0] == 'd' {
		w.Trailer.Documents++
	}
	w.raw = append(w.raw, opSet)
	w.raw = appendString(w.raw, key)
	w.raw = appendString(w.raw, value)
}

// Delete appends the removal of a key.
func (w *Writer) Delete(key []byte) {
	if key[0] == 'd' {
		w.Trailer.Deletions++
	}
	w.raw = appendString(append(w.raw, opDelete), key)
}

// Clear appends the removal of the keys from lo on and below hi; a nil hi is no bound.
func (w *Writer) Clear(lo, hi []byte) {
	w.raw = appendString(append(w.raw, opClear), lo)
	w.raw = appendString(w.raw, hi)
}

func appendString(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// Full reports whether a block or more is gathered.
func (w *Writer) Full() bool { return len(w.raw) >= BlockBytes }

// Flush writes whole blocks, and keeps the rest.
func (w *Writer) Flush() error {
	whole := len(w.raw) - len(w.raw)%BlockBytes
	if whole == 0 {
		return nil
	}
	// The blocks stay where they are until they are packed.
	blocks := w.raw[:whole:whole]
	w.raw = append(make([]byte, 0, BlockBytes+BlockBytes/4), w.raw[whole:]...)
	for ; len(blocks) > 0; blocks = blocks[BlockBytes:] {
		if err := w.cut(blocks[:BlockBytes:BlockBytes]); err != nil {
			return err
		}
	}
	return nil
}

// cut begins to pack a block of data, and writes what is packed.
func (w *Writer) cut(block []byte) error {
	w.Trailer.RawBytes += int64(len(block))
	w.Trailer.Blocks++
	w.start(kindData, block)
	return w.drain(runtime.GOMAXPROCS(0))
}

// start packs a block on a goroutine of its own.
func (w *Writer) start(kind byte, raw []byte) {
	p := &packing{kind: kind, number: w.number, raw: raw, done: make(chan struct{})}
	w.number++
	w.inFlight = append(w.inFlight, p)
	go func() {
		defer close(p.done)
		p.pack(w.encoder)
	}()
}

func (p *packing) pack(encoder *zstd.Encoder) {
	b := make([]byte, blockHeader, blockHeader+len(p.raw)/2+64)
	b = encoder.EncodeAll(p.raw, b)
	b[4] = p.kind
	binary.BigEndian.PutUint32(b[5:], p.number)
	binary.BigEndian.PutUint32(b[9:], uint32(len(b)-blockHeader))
	binary.BigEndian.PutUint32(b[13:], uint32(len(p.raw)))
	binary.BigEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	p.packed, p.raw = b, nil
}

// drain writes the oldest blocks, in their order, until at most left are being packed.
func (w *Writer) drain(left int) error {
	for len(w.inFlight) > left {
		p := w.inFlight[0]
		w.inFlight = w.inFlight[1:]
		<-p.done
		if err := w.write(p.packed); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) write(b []byte) error {
	w.hash.Write(b)
	if _, err := w.w.Write(b); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	return nil
}

// Bytes returns how many bytes of the stream were written.
func (w *Writer) Bytes() int64 { return w.out.n }

// Finish writes the rest and the trailer. Without it the stream counts as cut short.
func (w *Writer) Finish() error {
	if err := w.Flush(); err != nil {
		return err
	}
	if len(w.raw) > 0 {
		if err := w.cut(w.raw); err != nil {
			return err
		}
		w.raw = nil
	}
	if err := w.drain(0); err != nil {
		return err
	}
	w.Trailer.SHA256 = hex.EncodeToString(w.hash.Sum(nil))
	text, err := json.Marshal(w.Trailer)
	if err != nil {
		return err
	}
	w.start(kindTrailer, text)
	if err := w.drain(0); err != nil || w.sealed == nil {
		return err
	}
	if err := w.sealed.End(); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	return nil
}

// Close waits for the blocks that are being packed. It must be called, also after an
// error.
func (w *Writer) Close() error {
	for _, p := range w.inFlight {
		<-p.done
	}
	w.inFlight = nil
	return w.encoder.Close()
}

// Reader reads a stream, and checks all of it: each block, their order, the
// trailer, and that nothing follows. Its memory is bounded by a block and the longest
// value. It is not safe for concurrent use.
type Reader struct {
	Header  Header
	Trailer Trailer // of the end, when Next has returned io.EOF
	KeyID   string  // of the key with which it is encrypted; "" for none
	Bytes   int64   // read; of an encrypted stream, those of the page that is being read count as far as they are used

	stream  int
	keys    sealed.Keys          // nil for none
	sealed  *sealed.StreamReader // nil if it is not encrypted
	r       io.Reader
	at      int64 // bytes read from r
	hash    hash.Hash
	decoder *zstd.Decoder
	stored  []byte
	block   []byte // decoded
	rest    []byte // of block
	offset  int64  // of block
	number  uint32 // of the next block
	seen    Trailer
	key     []byte
	value   []byte
	err     error
}

// NewReader reads the beginning of a stream, which is the one at this position in its
// chain. An encrypted one needs a *Keyed. Close must follow.
func NewReader(r io.Reader, stream int) (*Reader, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*BlockBytes), zstd.WithDecoderMaxWindow(2*BlockBytes))
	if err != nil {
		return nil, err
	}
	in := &Reader{r: r, stream: stream, hash: sha256.New(), decoder: decoder}
	if keyed, is := r.(*Keyed); is {
		in.r, in.keys = keyed.Reader, keyed.Keys
	}
	if err := in.begin(); err != nil {
		decoder.Close()
		return nil, err
	}
	return in, nil
}

// Close releases the memory of the reader.
func (r *Reader) Close() { r.decoder.Close() }

// fail is the error of a stream that is not whole. offset counts what was read from r.r.
func (r *Reader) fail(offset int64, problem string, args ...any) error {
	if r.sealed != nil {
		offset = r.sealed.Offset(offset)
	}
	return &Error{Stream: r.stream, Offset: offset, Problem: fmt.Sprintf(problem, args...)}
}

// begin reads the first line and the header.
func (r *Reader) begin() error {
	n, err := r.beginFormat()
	if err == nil && n == encryptedFormat {
		err = r.decrypt([]byte(firstLine(n)))
		if err == nil {
			n, err = r.beginFormat()
		}
	}
	if err != nil {
		return err
	}
	if n != plainFormat {
		return r.fail(0, "what is encrypted is no backup of jay")
	}
	kind, err := r.readBlock()
	if err != nil {
		return err
	}
	if kind != kindHeader {
		return r.fail(r.offset, "the header is missing")
	}
	if err := json.Unmarshal(r.block, &r.Header); err != nil || r.Header.ID == "" || r.Header.Database == "" {
		return r.fail(r.offset, "the header is not one")
	}
	r.rest = nil
	return nil
}

// beginFormat reads the first line, and returns the format that it names.
func (r *Reader) beginFormat() (int, error) {
	line := make([]byte, len(linePrefix))
	if err := r.read(line, true); err != nil {
		return 0, err
	}
	if string(line) != linePrefix {
		return 0, r.fail(0, "it is no backup of jay")
	}
	number := make([]byte, 0, 12)
	for {
		var one [1]byte
		if err := r.read(one[:], true); err != nil {
			return 0, err
		}
		if one[0] == '\n' {
			break
		}
		if number = append(number, one[0]); len(number) > 10 {
			return 0, r.fail(0, "it is no backup of jay")
		}
	}
	n, err := strconv.Atoi(string(number))
	if err != nil || n < 1 || strings.TrimLeft(string(number), "0123456789") != "" {
		return 0, r.fail(0, "it is no backup of jay")
	}
	if n > Format {
		return 0, &Error{Stream: r.stream, Offset: 0, Problem: "it cannot be read", Cause: &storage.FormatError{What: "backup", Found: n, Newest: Format}}
	}
	return n, nil
}

// read fills b. hashed bytes count for the SHA-256.
func (r *Reader) read(b []byte, hashed bool) error {
	n, err := io.ReadFull(r.r, b)
	r.at += int64(n)
	if r.Bytes = r.at; r.sealed != nil {
		r.Bytes = r.sealed.Offset(r.at)
	}
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return r.fail(r.at, "it ends here, without its trailer: it was cut short, or never completed")
	case err != nil:
		return r.readError(err)
	}
	if hashed {
		r.hash.Write(b)
	}
	return nil
}

// readBlock reads the next block into r.block. The SHA-256 covers it, unless it is the
// trailer.
func (r *Reader) readBlock() (kind byte, err error) {
	r.offset = r.at
	var head [blockHeader]byte
	if err := r.read(head[:], false); err != nil {
		return 0, err
	}
	kind = head[4]
	number, stored, size := binary.BigEndian.Uint32(head[5:]), binary.BigEndian.Uint32(head[9:]), binary.BigEndian.Uint32(head[13:])
	if stored > maxStored || size > BlockBytes {
		return 0, r.fail(r.offset, "the head of block %d is damaged", r.number)
	}
	r.stored = append(r.stored[:0], make([]byte, stored)...)
	if err := r.read(r.stored, false); err != nil {
		return 0, err
	}
	sum := crc32.Update(crc32.Checksum(head[4:], castagnoli), castagnoli, r.stored)
	if sum != binary.BigEndian.Uint32(head[:]) {
		return 0, r.fail(r.offset, "block %d is damaged: its checksum is not that of its bytes", r.number)
	}
	if number != r.number {
		return 0, r.fail(r.offset, "block %d is here, and block %d is missing", number, r.number)
	}
	if r.block, err = r.decoder.DecodeAll(r.stored, r.block[:0]); err != nil || len(r.block) != int(size) {
		return 0, r.fail(r.offset, "block %d cannot be unpacked", r.number)
	}
	r.number++
	if kind != kindTrailer {
		r.hash.Write(head[:])
		r.hash.Write(r.stored)
	}
	return kind, nil
}

// fill reads the next block of data into r.rest. At the end it checks the trailer and
// returns io.EOF.
func (r *Reader) fill() error {
	kind, err := r.readBlock()
	if err != nil {
		return err
	}
	switch kind {
	case kindData:
		r.rest = r.block
		r.seen.Blocks++
		r.seen.RawBytes += int64(len(r.block))
		return nil
	case kindTrailer:
		return r.end()
	}
	return r.fail(r.offset, "block %d is of kind %d, which is not known", r.number-1, kind)
}

// end checks the trailer.
func (r *Reader) end() error {
	if err := json.Unmarshal(r.block, &r.Trailer); err != nil {
		return r.fail(r.offset, "the trailer is not one")
	}
	r.seen.SHA256 = hex.EncodeToString(r.hash.Sum(nil))
	if r.seen != r.Trailer {
		return r.fail(r.offset, "the trailer says %+v, and before it were %+v", r.Trailer, r.seen)
	}
	var one [1]byte
	if n, err := io.ReadFull(r.r, one[:]); n > 0 {
		return r.fail(r.at, "bytes follow its end")
	} else if !errors.Is(err, io.EOF) {
		return r.readError(err)
	}
	if r.sealed != nil {
		r.Bytes = r.sealed.Size()
	}
	return io.EOF
}

// Next returns the next operation, which is valid until the following call, or io.EOF
// when the stream was read to its end and found whole.
func (r *Reader) Next() (Op, error) {
	if r.err != nil {
		return Op{}, r.err
	}
	op, err := r.next()
	r.err = err
	return op, err
}

func (r *Reader) next() (op Op, err error) {
	for len(r.rest) == 0 {
		if err := r.fill(); err != nil {
			return op, err
		}
	}
	op.Kind, r.rest = r.rest[0], r.rest[1:]
	if op.Kind < opSet || op.Kind > opClear {
		return op, r.fail(r.offset, "operation %d is not known", op.Kind)
	}
	if r.key, err = r.text(r.key[:0], MaxKey); err != nil {
		return op, err
	}
	op.Key = r.key
	if len(op.Key) == 0 && op.Kind != opClear {
		return op, r.fail(r.offset, "a key is empty")
	}
	limit := MaxKey // of the upper bound
	if op.Kind == opSet {
		limit = maxValue(op.Key)
	}
	if cap(r.value) > keepBytes {
		r.value = nil
	}
	if op.Kind != opDelete {
		if r.value, err = r.text(r.value[:0], limit); err != nil {
			return op, err
		}
		op.Value = r.value
	}
	r.count(op)
	return op, nil
}

func (r *Reader) count(op Op) {
	switch {
	case op.Kind == opSet:
		if r.seen.Keys++; op.Key[0] == 'd' {
			r.seen.Documents++
		}
	case op.Kind == opDelete && op.Key[0] == 'd':
		r.seen.Deletions++
	}
}

// text appends a string, which may go on over several blocks. Memory is taken as bytes
// come, and not for what a length claims.
func (r *Reader) text(dst []byte, limit int) ([]byte, error) {
	length, err := r.uvarint()
	if err != nil {
		return dst, err
	}
	if length > uint64(limit) {
		return dst, r.fail(r.offset, "a key or value has %d bytes, at most %d are possible", length, limit)
	}
	for left := int(length); left > 0; {
		if err := r.more(); err != nil {
			return dst, err
		}
		n := min(left, len(r.rest))
		dst, r.rest, left = append(dst, r.rest[:n]...), r.rest[n:], left-n
	}
	return dst, nil
}

// more makes sure that there is a byte of the operation that was begun.
func (r *Reader) more() error {
	for len(r.rest) == 0 {
		if err := r.fill(); err == io.EOF {
			return r.fail(r.offset, "an operation has no end")
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (r *Reader) uvarint() (n uint64, err error) {
	var b [binary.MaxVarintLen64]byte
	for i := range b {
		if err := r.more(); err != nil {
			return 0, err
		}
		b[i], r.rest = r.rest[0], r.rest[1:]
		if b[i] < 0x80 {
			n, size := binary.Uvarint(b[:i+1])
			if size <= 0 {
				break
			}
			return n, nil
		}
	}
	return 0, r.fail(r.offset, "a length is not one")
}
