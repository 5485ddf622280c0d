// Package sorter sorts entries of a key and a value, of which there are more than memory
// holds: an external merge sort.
//
// Several goroutines fill a [Buffer] each. A full one is sorted and written to a
// temporary file, a run. When all are filled, [Sorter.Merge] merges the runs with what is still in the
// buffers. A Sorter takes the memory that New is given, and while it merges a block of
// 64 KiB for each of at most 64 runs. More runs are merged into fewer before.
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
	"sync"
)

// Sorter sorts entries. Its methods but NewBuffer are called when no Buffer is being
// filled any more.
type Sorter struct {
	create func() (File, error)
	share  int // bytes of a Buffer

	mu      sync.Mutex
	buffers []*Buffer // Guarded by mu.
	runs    []File    // finished. Guarded by mu.
}

// maxMerge is how many runs are merged at once. A variable for tests.
var maxMerge = 64

// New returns a Sorter for so many buffers, which take about so many bytes of memory
// together. create makes the files of runs.
func New(bytes, buffers int, create func() (File, error)) *Sorter {
	return &Sorter{create: create, share: bytes / max(1, buffers)}
}

// Buffer takes the entries of one goroutine.
type Buffer struct {
	s     *Sorter
	arena []byte
	refs  []ref
}

// ref is an entry of a Buffer: its key, and behind that its value, begin at start in the
// arena.
type ref struct {
	prefix      uint64 // the first 8 bytes of the key, big-endian, with zeros for those it has not got
	start       uint32
	key, length uint32 // bytes of the key; of key and value
}

const refBytes = 24

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
	if n := len(b.arena) + len(key) + len(value) + refBytes*(len(b.refs)+1); n > b.s.share && len(b.refs) > 0 {
		if err := b.spill(); err != nil {
			return err
		}
	}
	b.refs = append(b.refs, ref{prefixOf(key), uint32(len(b.arena)), uint32(len(key)), uint32(len(key) + len(value))})
	b.arena = append(append(b.arena, key...), value...)
	return nil
}

func prefixOf(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var first [8]byte
	copy(first[:], key)
	return binary.BigEndian.Uint64(first[:])
}

func (b *Buffer) keyOf(r *ref) []byte   { return b.arena[r.start : r.start+r.key] }
func (b *Buffer) valueOf(r *ref) []byte { return b.arena[r.start+r.key : r.start+r.length] }

// Sort sorts what is in the buffer. Goroutines that fill buffers call it at their end, so
// that Merge need not do it for all.
func (b *Buffer) Sort() {
	slices.SortFunc(b.refs, func(x, y ref) int {
		if x.prefix != y.prefix {
			if x.prefix < y.prefix {
				return -1
			}
			return 1
		}
		return bytes.Compare(b.keyOf(&x), b.keyOf(&y))
	})
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
	b.arena, b.refs = b.arena[:0], b.refs[:0]
	return b.s.keep(w)
}

// Merge calls fn with all entries in the order of their keys. Those of equal keys come
// one after another, in any order. fn must not keep its
// arguments.
func (s *Sorter) Merge(ctx context.Context, fn func(key, value []byte) error) (err error) {
	for len(s.runs) > maxMerge {
		if err := s.mergeSome(ctx); err != nil {
			return err
		}
	}
	sources := make([]source, 0, len(s.buffers)+len(s.runs))
	for _, b := range s.buffers {
		b.Sort()
		sources = append(sources, &bufferSource{b: b, at: -1})
	}
	return merge(ctx, sources, s.runs, fn)
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

// Close removes the runs. It may be called more than once.
func (s *Sorter) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for _, run := range s.runs {
		err = errors.Join(err, run.Remove())
	}
	s.runs, s.buffers = nil, nil
	return err
}
