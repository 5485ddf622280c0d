package attachments

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"sync"
	"sync/atomic"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Upload is a content that is being written. It holds one chunk in memory, and neither a
// lock nor a snapshot. It is used by one goroutine at a time.
//
// Fill and Write alternate until Fill reaches the end of the input. After that
// transactions may refer to the content. Close must follow in any case.
type Upload struct {
	store      *Store
	hash       hash.Hash
	sum        format.Hash
	size       int64
	chunkBytes int
	buffer     *[]byte
	chunk      []byte // the chunk that is not written yet, in buffer
	stream     uint64 // stream number; 0 before the first Write
	chunks     uint32 // number of chunks that were written
}

// syncChunks is the number of chunks between two syncs: other commits would have to wait
// for a longer backlog.
const syncChunks = 4

// buffers has buffers of Store.ChunkBytes.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// NewUpload begins an upload.
func (s *Store) NewUpload() *Upload {
	u := &Upload{store: s, hash: sha256.New(), chunkBytes: s.ChunkBytes, buffer: buffers.Get().(*[]byte)}
	if cap(*u.buffer) != u.chunkBytes {
		*u.buffer = make([]byte, u.chunkBytes)
	}
	return u
}

// maxEmptyReads is the number of empty reads in a row after which an input fails.
const maxEmptyReads = 100

// Fill reads the next chunk from r, which is user code. full is false at the end of
// the input. Errors of r are returned as they are.
func (u *Upload) Fill(r io.Reader) (full bool, err error) {
	n, empty := 0, 0
	buffer := (*u.buffer)[:u.chunkBytes]
	for n < len(buffer) && err == nil {
		var read int
		read, err = r.Read(buffer[n:])
		if read < 0 || read > len(buffer)-n {
			return false, fmt.Errorf("the reader returned %d bytes of %d", read, len(buffer)-n)
		}
		if n += read; read > 0 {
			empty = 0
		} else if empty++; empty == maxEmptyReads && err == nil {
			return false, io.ErrNoProgress
		}
	}
	if err != nil && err != io.EOF {
		return false, err
	}
	u.chunk = buffer[:n]
	u.size += int64(n)
	if u.size > u.store.MaxBytes {
		return false, &metadata.AttachmentError{Rule: "bytes of an attachment", Limit: u.store.MaxBytes, Actual: u.size}
	}
	u.hash.Write(u.chunk) // never fails
	if err == io.EOF {
		u.hash.Sum(u.sum[:0])
		return false, nil
	}
	return true, nil
}

// errSwept means that the record of an upload is missing.
var errSwept = fmt.Errorf("the record of an upload is missing: %w", errs.ErrCorrupt)

// Write writes the chunk that Fill has read.
func (u *Upload) Write(ctx context.Context) error {
	if u.chunks == math.MaxUint32 {
		return fmt.Errorf("%w: more than %d chunks", storage.ErrTooLarge, uint32(math.MaxUint32))
	}
	room := u.store.env.Room
	room.Look()
	if err := room.Spend(len(u.chunk)); err != nil {
		return err
	}
	sync := u.store.env.Synced && u.chunks%syncChunks == syncChunks-1
	var drawn atomic.Uint64 // atomic, as the engine may still run the function after Update has failed
	err := u.store.env.Engine.Update(ctx, sync, func(tx storage.Tx) (err error) {
		stream := u.stream
		if stream == 0 {
			stream, err = newStream(tx)
			drawn.Store(stream)
		} else {
			err = u.checkWritten(tx)
		}
		if err != nil {
			return err
		}
		tx.Set(format.ChunkKey(stream, u.chunks), nil, u.chunk)
		tx.Set(format.UploadKey(stream), format.AppendChunks(nil, u.chunks+1), nil)
		return nil
	})
	if u.stream == 0 && (err == nil || errors.Is(err, storage.ErrUnknownOutcome)) {
		u.stream = drawn.Load() // Close removes the stream
	}
	if err == nil {
		u.chunks++
		u.chunk = nil
	}
	return err
}

// checkWritten returns an error unless the record of the upload is there.
func (u *Upload) checkWritten(tx storage.Tx) error {
	value, closer, err := tx.Get(format.UploadKey(u.stream))
	if err == storage.ErrNotFound {
		return errSwept
	}
	if err != nil {
		return err
	}
	chunks, err := format.DecodeChunks(value)
	if err == nil && chunks != u.chunks {
		err = fmt.Errorf("an upload of %d chunks has %d: %w", u.chunks, chunks, errs.ErrCorrupt)
	}
	return errs.First(err, closer.Close())
}

// finish stages the last chunk, and returns the record of the content with one
// reference.
func (u *Upload) finish(tx storage.Tx) (c format.Content, err error) {
	stream := u.stream
	if stream == 0 {
		stream, err = newStream(tx)
	} else {
		err = u.checkWritten(tx)
		tx.Delete(format.UploadKey(stream))
	}
	if err != nil {
		return c, err
	}
	if len(u.chunk) > 0 {
		tx.Set(format.ChunkKey(stream, u.chunks), nil, u.chunk)
	}
	return format.Content{Stream: stream, Size: u.size, ChunkBytes: int64(u.chunkBytes), References: 1}, nil
}

// Shrink releases the memory that the last chunk does not need.
func (u *Upload) Shrink() {
	if len(u.chunk) < u.chunkBytes/2 {
		own := bytes.Clone(u.chunk)
		buffers.Put(u.buffer)
		u.buffer, u.chunk = &own, own
	}
}

// HeldBytes returns the number of bytes of the content in memory.
func (u *Upload) HeldBytes() int { return len(u.chunk) }

// Size returns the number of bytes read.
func (u *Upload) Size() int64 { return u.size }

// Hash returns the hash of the content. Fill must have reached the end of the input.
func (u *Upload) Hash() format.Hash { return u.sum }

// Close ends the upload. referred says whether a transaction refers to it; if none does,
// its chunks are removed in the background. Close is idempotent. No transaction may refer
// to the upload afterwards.
func (u *Upload) Close(referred bool) {
	if u.buffer == nil {
		return
	}
	if referred && cap(*u.buffer) == u.chunkBytes { // otherwise a commit in doubt may still read the buffer
		buffers.Put(u.buffer)
	}
	u.buffer, u.chunk = nil, nil
	if u.stream != 0 && !referred {
		u.store.abandon(u.stream)
	}
}
