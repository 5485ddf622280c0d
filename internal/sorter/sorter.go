// Package sorter sorts more entries, of a key and a value each, than fit into memory, with an
// external merge sort.
//
// Several goroutines fill a [Buffer] each. A full Buffer is sorted and written to a temporary file,
// a run. After the last entry, [Sorter.Split] divides the runs and the rest of the buffers into
// ranges of keys, which several goroutines may merge. A Sorter uses the memory that New is given
// and, while it merges, a block of 64 KiB for each of at most 64 runs. If there are more runs, they
// are first merged into fewer.
//
// A run consists of blocks: the length and the CRC-32C of what follows, 4 bytes each, and
// entries: the lengths of key and value as uvarints, key, value. It lives as long as the
// Sorter.
package sorter

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sort"
	"sync"

	"github.com/jaydb/jay/internal/keybytes"
)

// Sorter sorts entries. Its methods, except NewBuffer, must not be called while a Buffer is being
// filled.
type Sorter struct {
	create func() (File, error)
	share  int // bytes of a Buffer

	mu      sync.Mutex
	buffers []*Buffer // Guarded by mu.
	runs    []File    // finished. Guarded by mu.
}

// maxMerge is the number of runs that are merged at once. A variable for tests.
var maxMerge = 64

// New returns a Sorter for a number of buffers, which together use about this many bytes of memory.
// create creates the files of runs.
func New(bytes, buffers int, create func() (File, error)) *Sorter {
	return &Sorter{create: create, share: bytes / max(1, buffers)}
}

// chunkBits is how many bits of ref.start are the offset in a chunk, chunkBytes how large
// a chunk is that holds more than one entry.
const (
	chunkBits  = 18
	chunkBytes = 1 << chunkBits
)

// chunks holds unused chunks.
var chunks = sync.Pool{New: func() any { return new([chunkBytes]byte) }}

// Buffer takes the entries of one goroutine.
type Buffer struct {
	s      *Sorter
	chunks [][]byte // each with its full length
	at     int      // where the next entry begins in the last chunk
	bytes  int      // of all entries
	refs   []ref
	sorted bool
}

// ref is an entry of a Buffer. Its key begins at start, which is the number of a chunk and an
// offset. Behind the key are the length of the value as a uvarint, and the value.
type ref struct {
	prefix uint64 // the first 8 bytes of the key, big-endian, with zeros for those it has not got
	start  uint32
	key    uint32 // bytes of the key
}

// refBytes is the memory for an entry beside its bytes: a ref, and another one while the refs are sorted.
const refBytes = 2 * 16

// NewBuffer returns a Buffer. It may be called by several goroutines.
func (s *Sorter) NewBuffer() *Buffer {
	b := &Buffer{s: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buffers = append(s.buffers, b)
	return b
}

// Add adds an entry, which is copied.
func (b *Buffer) Add(key, value []byte) error {
	n := len(key) + len(value) + binary.MaxVarintLen32
	if b.bytes+n+refBytes*(len(b.refs)+1) > b.s.share && len(b.refs) > 0 {
		if err := b.spill(); err != nil {
			return err
		}
	}
	if len(b.chunks) == 0 || b.at+n > len(b.chunks[len(b.chunks)-1]) {
		b.grow(n)
	}
	last := len(b.chunks) - 1
	b.refs = append(b.refs, ref{keybytes.NumberAt(key, 0), uint32(last<<chunkBits | b.at), uint32(len(key))})
	dst := append(b.chunks[last][:b.at], key...)
	dst = append(binary.AppendUvarint(dst, uint64(len(value))), value...)
	b.bytes += len(dst) - b.at
	b.at = len(dst)
	b.sorted = false
	return nil
}

// grow adds a chunk for an entry of n bytes and others, or for this one only if it is large.
func (b *Buffer) grow(n int) {
	b.at = 0
	if n > chunkBytes {
		b.chunks = append(b.chunks, make([]byte, n))
	} else {
		b.chunks = append(b.chunks, chunks.Get().(*[chunkBytes]byte)[:])
	}
}

// reset removes all entries.
func (b *Buffer) reset() {
	for _, chunk := range b.chunks {
		if len(chunk) == chunkBytes {
			chunks.Put((*[chunkBytes]byte)(chunk))
		}
	}
	clear(b.chunks)
	b.chunks, b.at, b.bytes, b.refs = b.chunks[:0], 0, 0, b.refs[:0]
}

func (b *Buffer) keyOf(r *ref) []byte {
	at := r.start % chunkBytes
	return b.chunks[r.start>>chunkBits][at : at+r.key]
}

func (b *Buffer) valueOf(r *ref) []byte {
	rest := b.chunks[r.start>>chunkBits][r.start%chunkBytes+r.key:]
	n, size := binary.Uvarint(rest)
	return rest[size : size+int(n)]
}

// spill writes the entries to a run.
func (b *Buffer) spill() error {
	b.Sort()
	w, err := b.s.newRun()
	if err != nil {
		return err
	}
	for i := range b.refs {
		r := &b.refs[i]
		if err := w.add(b.keyOf(r), b.valueOf(r)); err != nil {
			return errors.Join(err, w.file.Remove())
		}
	}
	b.reset()
	return b.s.keep(w)
}

// Range has the entries of a Sorter from one key up to another. Several goroutines may merge one
// range each.
type Range struct {
	s     *Sorter
	spans [][2]int // of each buffer: where the entries begin and end
}

// Split returns at most n ranges of about the same size, which hold all entries, in the order of
// their keys. Entries of one key are in the same range. If there are runs, there is one range. There
// are no more ranges than would have least bytes of entries each.
func (s *Sorter) Split(ctx context.Context, n, least int) ([]*Range, error) {
	for len(s.runs) > maxMerge {
		if err := s.mergeSome(ctx); err != nil {
			return nil, err
		}
	}
	last := &Range{s: s, spans: make([][2]int, len(s.buffers))}
	var largest *Buffer
	size := 0
	for i, b := range s.buffers {
		b.Sort()
		last.spans[i][1] = len(b.refs)
		if size += b.bytes; largest == nil || len(b.refs) > len(largest.refs) {
			largest = b
		}
	}
	if n = min(n, size/max(1, least)); len(s.runs) > 0 {
		n = 1
	}
	var ranges []*Range
	for i := 1; i < n; i++ {
		bound := largest.keyOf(&largest.refs[i*len(largest.refs)/n])
		first := &Range{s: s, spans: slices.Clone(last.spans)}
		for j, b := range s.buffers {
			at := b.find(bound)
			first.spans[j][1], last.spans[j][0] = at, at
		}
		ranges = append(ranges, first)
	}
	return append(ranges, last), nil
}

// find returns the position of the first entry whose key is not below this one.
func (b *Buffer) find(key []byte) int {
	return sort.Search(len(b.refs), func(i int) bool { return bytes.Compare(b.keyOf(&b.refs[i]), key) >= 0 })
}

// Merge calls fn with the entries of the range in the order of their keys. Entries with equal keys
// follow one another in any order. fn must not keep its arguments.
func (r *Range) Merge(ctx context.Context, fn func(key, value []byte) error) error {
	sources := make([]source, 0, len(r.spans)+len(r.s.runs))
	for i, b := range r.s.buffers {
		sources = append(sources, &bufferSource{b: b, at: r.spans[i][0] - 1, end: r.spans[i][1]})
	}
	return merge(ctx, sources, r.s.runs, fn)
}

// mergeSome merges maxMerge runs into one.
func (s *Sorter) mergeSome(ctx context.Context) error {
	w, err := s.newRun()
	if err != nil {
		return err
	}
	if err := merge(ctx, nil, s.runs[:maxMerge], w.add); err != nil {
		return errors.Join(err, w.file.Remove())
	}
	for _, run := range s.runs[:maxMerge] {
		err = errors.Join(err, run.Remove())
	}
	s.runs = s.runs[maxMerge:]
	return errors.Join(err, s.keep(w))
}

// Close removes the runs and releases the memory of the buffers. It may be called more than once.
func (s *Sorter) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for _, run := range s.runs {
		err = errors.Join(err, run.Remove())
	}
	for _, b := range s.buffers {
		b.reset()
	}
	s.runs, s.buffers = nil, nil
	return err
}
