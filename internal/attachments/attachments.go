// Package attachments stores the contents of attachments: streams of bytes, cut into
// chunks. A content is stored once, however many documents have it.
//
// A content that fits into one chunk is written by the transaction that refers to it. A
// longer one is written before, chunk by chunk, as a stream: an [Upload]. Its first
// transaction also writes a record of the upload, and the transaction that refers to the
// content removes that record ([References.Retain]). So every stream without a reference
// has a record by which it is found, and a stream is never removed while a transaction may
// still refer to it. Two uploads of one content are two streams; the second to commit
// leaves its own stream to be removed.
//
// A content has a record with the number of its references. Transactions read and write
// it, so transactions that change the references of one content conflict. The last release
// removes the record and leaves one that marks the stream for removal
// ([References.Release]).
//
// The worker removes the chunks of marked streams, in batches. It skips a stream that a
// [Reader] of this process reads. Stream numbers are never used again, so a reader finds
// the bytes of its content or none.
package attachments

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/jaydb/jay/internal/background"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// DefaultChunkBytes is the size of the chunks of new contents.
// docs/decisions/0034-attachments.md has the measurement.
const DefaultChunkBytes = 256 << 10

// Store is the contents of an open database. It is safe for concurrent use.
type Store struct {
	// MaxBytes bounds the size of one attachment, MaxPerDocument their number on one
	// document. ChunkBytes is the size of the chunks of new contents. They are set
	// before the first call.
	MaxBytes       int64
	MaxPerDocument int
	ChunkBytes     int

	env     *env.Env
	earlier uint64 // streams below this number were begun before the database was opened

	mu        sync.Mutex
	pins      map[uint64]int  // number of readers, by stream. Guarded by mu.
	passed    map[uint64]bool // streams that the worker has skipped because they are read. Guarded by mu.
	abandoned map[uint64]bool // streams whose upload has ended without a reference. Guarded by mu.

	batch  sync.Mutex // held while a batch is removed
	worker *background.Worker
}

// Open returns the contents of a database in which nothing was written since it was
// opened.
func Open(e *env.Env) (*Store, error) {
	s := &Store{env: e, ChunkBytes: DefaultChunkBytes, pins: make(map[uint64]int), passed: make(map[uint64]bool), abandoned: make(map[uint64]bool)}
	s.worker = background.NewWorker(s.RemoveSome, func(err error) { e.Warn("jay: removing the chunks of attachments", err) })
	var err error
	s.earlier, err = NextStream(e.Engine)
	return s, err
}

// NextStream returns the next stream number, as r sees it.
func NextStream(r env.Getter) (uint64, error) {
	n, found, err := env.NumberAt(r, format.NextStreamKey())
	if err != nil {
		return 0, fmt.Errorf("the next stream: %w", err)
	}
	if !found {
		n = 1
	}
	return n, nil
}

// newStream draws a stream number, and stages that it is used.
func newStream(tx storage.Tx) (uint64, error) {
	n, err := NextStream(tx)
	if err == nil {
		tx.Set(format.NextStreamKey(), binary.BigEndian.AppendUint64(nil, n+1), nil)
	}
	return n, err
}

// ContentOf returns the record of a content, as r sees it.
func ContentOf(r env.Getter, hash *format.Hash) (c format.Content, found bool, err error) {
	value, closer, err := r.Get(format.ContentKey(hash))
	if err == storage.ErrNotFound {
		return c, false, nil
	}
	if err != nil {
		return c, false, err
	}
	c, err = format.DecodeContent(value)
	return c, true, errs.First(err, closer.Close())
}

// ErrNoContent means that the content of a document's attachment is missing.
var ErrNoContent = fmt.Errorf("the content of an attachment is missing: %w", errs.ErrCorrupt)

// References stages changes of the references to contents, in one run of a transaction's
// function.
type References struct {
	Tx   storage.Tx
	Left bool // a stream was marked for removal: call Wake after the commit
}

// Retain stages a reference to the content of an upload or, if u is nil, to one that is
// stored already.
func (r *References) Retain(hash *format.Hash, u *Upload) error {
	c, found, err := ContentOf(r.Tx, hash)
	if err != nil {
		return err
	}
	switch {
	case found:
		if u != nil && c.Size != u.size {
			return fmt.Errorf("a content of %d bytes has the hash of one of %d: %w", u.size, c.Size, errs.ErrCorrupt)
		}
		c.References++
		r.Tx.Add(format.ContentTallyKey(), 1, c.Size)
		err = r.Discard(u)
	case u == nil:
		err = ErrNoContent
	default:
		c, err = u.finish(r.Tx)
		r.Tx.Add(format.ContentTallyKey(), 1, c.Size, 1, c.Size)
	}
	if err != nil {
		return err
	}
	r.Tx.Set(format.ContentKey(hash), c.Append(nil), nil)
	return nil
}

// Discard stages the removal of an upload's chunks, as its content is stored already. u
// may be nil.
func (r *References) Discard(u *Upload) error {
	if u == nil || u.stream == 0 {
		return nil
	}
	if err := u.checkWritten(r.Tx); err != nil {
		return err
	}
	r.Tx.Delete(format.UploadKey(u.stream))
	r.remove(u.stream, u.chunks)
	return nil
}

// Release stages the end of a reference.
func (r *References) Release(hash *format.Hash) error {
	c, found, err := ContentOf(r.Tx, hash)
	if err != nil {
		return err
	}
	if !found {
		return ErrNoContent
	}
	key := format.ContentKey(hash)
	if c.References--; c.References > 0 {
		r.Tx.Set(key, c.Append(nil), nil)
		r.Tx.Add(format.ContentTallyKey(), -1, -c.Size)
		return nil
	}
	r.Tx.Delete(key)
	r.Tx.Add(format.ContentTallyKey(), -1, -c.Size, -1, -c.Size)
	switch chunks := c.Chunks(); chunks {
	case 0:
	case 1:
		r.Tx.Delete(format.ChunkKey(c.Stream, 0)) // an only chunk: readers have it in memory
	default:
		r.remove(c.Stream, chunks)
	}
	return nil
}

// remove stages the mark that the chunks of a stream are to be removed.
func (r *References) remove(stream uint64, chunks uint32) {
	r.Tx.Set(format.GarbageKey(stream), format.AppendChunks(nil, chunks), nil)
	r.Left = true
}
