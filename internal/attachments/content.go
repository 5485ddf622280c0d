package attachments

import (
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// Content is an open content. If it fits into one chunk, it is in memory. It is safe for
// concurrent use, except for Close.
type Content struct {
	store  *Store
	hash   format.Hash
	record format.Content
	only   []byte     // the one chunk; nil for several
	from   env.Getter // source of the chunks, if there are several
	pinned bool
}

// ErrGone means that a content was removed or replaced after a snapshot was taken. The
// caller must begin again with a new snapshot.
var ErrGone = errors.New("the content of an attachment has gone")

// OpenContent opens the content of an attachment in a snapshot, which may be closed
// afterwards. The chunks stay until Close, whatever happens to the attachment.
func (s *Store) OpenContent(snapshot storage.Reader, hash *format.Hash) (*Content, error) {
	c, err := s.OpenIn(snapshot, hash)
	if err != nil || c.only != nil {
		return c, err
	}
	// The worker removes only streams that no new reader can find (RemoveSome), and checks
	// the pins after that. So if the record still exists after the pin is set, the chunks
	// exist, and stay.
	c.from, c.pinned = s.env.Engine, true
	s.Pin(c.record.Stream)
	now, found, err := ContentOf(s.env.Engine, hash)
	if err == nil && (!found || now.Stream != c.record.Stream) {
		err = ErrGone
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// OpenIn opens the content of an attachment in a snapshot. The snapshot must outlive the
// Content.
func (s *Store) OpenIn(snapshot storage.Reader, hash *format.Hash) (*Content, error) {
	record, found, err := ContentOf(snapshot, hash)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, ErrNoContent
	}
	c := &Content{store: s, hash: *hash, record: record, from: snapshot}
	if record.Size <= record.ChunkBytes {
		only := make([]byte, record.Size)
		if _, err := c.readAt(only, 0); err != nil {
			return nil, err
		}
		c.only, c.from = only, nil
	}
	return c, nil
}

// Close unpins the chunks. It is idempotent.
func (c *Content) Close() {
	if c.pinned {
		c.pinned = false
		c.store.Unpin(c.record.Stream)
	}
}

// Size returns the number of bytes.
func (c *Content) Size() int64 { return c.record.Size }

// readAt copies bytes from offset on into p, up to the end of the chunk.
func (c *Content) readAt(p []byte, offset int64) (n int, err error) {
	if c.only != nil {
		return copy(p, c.only[offset:]), nil
	}
	if c.record.Size == 0 {
		return 0, nil
	}
	chunk := offset / c.record.ChunkBytes
	start := chunk * c.record.ChunkBytes
	value, closer, err := c.from.Get(format.ChunkKey(c.record.Stream, uint32(chunk)))
	if err == storage.ErrNotFound {
		return 0, fmt.Errorf("chunk %d: %w", chunk, ErrNoContent)
	}
	if err != nil {
		return 0, err
	}
	if want := min(c.record.ChunkBytes, c.record.Size-start); int64(len(value)) != want {
		err = fmt.Errorf("chunk %d of an attachment has %d bytes, not %d: %w", chunk, len(value), want, errs.ErrCorrupt)
	} else {
		n = copy(p, value[offset-start:])
	}
	return n, errs.First(err, closer.Close())
}
