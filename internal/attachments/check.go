package attachments

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"

	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// ErrInconsistent means that contents, references and chunks contradict one another.
var ErrInconsistent = errors.New("the contents of attachments are inconsistent")

// Check compares the contents of a snapshot with references, which its documents have. It
// compares the chunks with the contents, the uploads and the streams marked for removal.
// It reads all chunks.
func Check(ctx context.Context, r storage.Reader, references map[format.Hash]uint64) error {
	c := checker{contents: make(map[uint64]*checked), others: make(map[uint64]uint32)}
	if err := c.contentsOf(ctx, r, references); err != nil {
		return err
	}
	for _, prefix := range [][]byte{format.GarbagePrefix(), format.UploadPrefix()} {
		err := each(ctx, r, prefix, func(it storage.Iterator) error {
			stream, err := format.StreamOf(it.Key())
			if err != nil {
				return err
			}
			if _, found := c.others[stream]; found || c.contents[stream] != nil {
				return fmt.Errorf("%w: stream %d has two owners", ErrInconsistent, stream)
			}
			c.others[stream], err = format.DecodeChunks(it.Value())
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := each(ctx, r, []byte{format.SpaceChunks}, c.chunk); err != nil {
		return err
	}
	for stream, one := range c.contents {
		if one.chunks != one.record.Chunks() || one.size != one.record.Size || format.Hash(one.sum.Sum(nil)) != one.hash {
			return fmt.Errorf("%w: the %d chunks of stream %d, %d bytes, are not the content with the record %+v", ErrInconsistent, one.chunks, stream, one.size, one.record)
		}
	}
	next, err := NextStream(r)
	if err != nil {
		return err
	}
	for stream := range c.contents {
		if stream >= next {
			return fmt.Errorf("%w: stream %d is used, and %d the next one", ErrInconsistent, stream, next)
		}
	}
	return nil
}

// checker holds what Check has read so far.
type checker struct {
	contents map[uint64]*checked // by stream
	others   map[uint64]uint32   // chunks of streams without references
}

// checked is a content and what was read of its chunks.
type checked struct {
	record format.Content
	hash   format.Hash
	chunks uint32
	size   int64
	sum    hash.Hash
}

// contentsOf reads the records of contents.
func (c *checker) contentsOf(ctx context.Context, r storage.Reader, references map[format.Hash]uint64) error {
	err := each(ctx, r, format.ContentPrefix(), func(it storage.Iterator) error {
		record, err := format.DecodeContent(it.Value())
		if err != nil {
			return err
		}
		hash := format.Hash(it.Key()[2:])
		if record.References != references[hash] {
			return fmt.Errorf("%w: documents have %d references to content %x, its record says %d", ErrInconsistent, references[hash], hash, record.References)
		}
		if c.contents[record.Stream] != nil {
			return fmt.Errorf("%w: two contents have stream %d", ErrInconsistent, record.Stream)
		}
		c.contents[record.Stream] = &checked{record: record, hash: hash, sum: sha256.New()}
		return nil
	})
	if err == nil && len(c.contents) != len(references) {
		err = fmt.Errorf("%w: there are %d contents, and documents have %d", ErrInconsistent, len(c.contents), len(references))
	}
	return err
}

// chunk checks the chunk under the iterator.
func (c *checker) chunk(it storage.Iterator) error {
	stream, i, err := format.SplitChunkKey(it.Key())
	if err != nil {
		return err
	}
	if one := c.contents[stream]; one != nil {
		if i != one.chunks {
			return fmt.Errorf("%w: chunk %d of stream %d follows %d others", ErrInconsistent, i, stream, one.chunks)
		}
		one.chunks++
		one.size += int64(len(it.Value()))
		one.sum.Write(it.Value())
		return nil
	}
	if chunks, found := c.others[stream]; !found || i >= chunks {
		return fmt.Errorf("%w: nothing refers to chunk %d of stream %d", ErrInconsistent, i, stream)
	}
	return nil
}
