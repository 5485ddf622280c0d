package verify

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"maps"
	"slices"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// contents is what is known of the contents of attachments while their chunks are read.
type contents struct {
	stream uint64 // that is being read
	hash   hash.Hash
	chunks uint32
	size   int64
	gap    bool
	first  int64 // bytes of the first chunk
	last   int64 // of the one that was read last
	uneven bool  // a chunk before the last has another size than the first

	highest  uint64 // stream number in use
	next     uint64
	others   bool            // streams are written, or to be removed
	unowned  map[uint64]bool // streams that have no content that is theirs
	tooMany  bool
	explains map[uint64]bool // of those, the ones that a damaged content explains
}

// readAttachments reads the contents of attachments and their chunks.
func (v *verifier) readAttachments() error {
	v.contents = contents{next: 1, unowned: make(map[uint64]bool), explains: make(map[uint64]bool)}
	if err := v.readAll(format.SpaceAttachments, v.content); err != nil {
		return err
	}
	if err := v.readAll(format.SpaceChunks, v.chunk); err != nil {
		return err
	}
	if err := v.use(v.endStream); err != nil {
		return err
	}
	v.compareTallies()
	if c := &v.contents; c.highest >= c.next {
		v.damage(StreamNumber, format.NextStreamKey(), "the next stream number is %d, and %d is in use", c.next, c.highest)
	}
	// Streams without a content are noted by the last step, when it is known which of
	// them belong to contents that are damaged.
	if len(v.contents.unowned) > 0 && v.ledger.isEven() {
		return v.noteUnowned()
	}
	return nil
}

// content looks at one record about contents.
func (v *verifier) content(r storage.Reader, key, value []byte) error {
	c := &v.contents
	if len(key) < 2 {
		v.damage(KeyMalformed, key, "the key is too short")
		return nil
	}
	switch key[1] {
	case 'n':
		if len(key) != 2 || len(value) != 8 {
			v.damage(StreamRecord, key, "its record is no number: %x", shorten(value))
			return nil
		}
		c.next = binary.BigEndian.Uint64(value)
	case 'g', 'u':
		stream, err := format.StreamOf(key)
		if err == nil {
			_, err = format.DecodeChunks(value)
		}
		if err != nil {
			v.damage(StreamRecord, key, "%v", err)
			return nil
		}
		c.others, c.highest = true, max(c.highest, stream)
	case 'c':
		if len(key) != 2+sha256.Size {
			v.damage(KeyMalformed, key, "the key of a content has %d bytes, this one has %d", 2+sha256.Size, len(key))
			return nil
		}
		return v.contentRecord(r, key, value)
	default:
		v.damage(KeyUnknown, key, "no key of this kind is known")
	}
	return nil
}

func (v *verifier) contentRecord(_ storage.Reader, key, value []byte) error {
	record, err := format.DecodeContent(value)
	if err != nil {
		v.damage(ContentRecord, key, "its record cannot be decoded: %x", shorten(value))
		v.tallies.unknown = true
		return nil
	}
	v.tallies.found.References += int64(record.References)
	v.tallies.found.Bytes += int64(record.References) * record.Size
	v.tallies.found.Contents++
	v.tallies.found.StoredBytes += record.Size
	v.report.Contents++
	v.report.ContentBytes += record.Size
	v.contents.highest = max(v.contents.highest, record.Stream)
	hash := format.Hash(key[2:])
	v.ledger.add(countedReference(&hash, record.Size), nil, -int64(record.References))
	if record.Size > 0 {
		v.ledger.add(countedContent(&hash), nil, 1)
	} else if hash != sha256.Sum256(nil) {
		v.damage(ChunkMissing, key, "it is empty, and its hash is not that of nothing")
	}
	return nil
}

// chunk looks at one chunk.
func (v *verifier) chunk(r storage.Reader, key, value []byte) error {
	stream, number, err := format.SplitChunkKey(key)
	if err != nil {
		v.damage(KeyMalformed, key, "the key of a chunk has 13 bytes, this one has %d", len(key))
		return nil
	}
	c := &v.contents
	if c.hash == nil || stream != c.stream {
		if err := v.endStream(r); err != nil {
			return err
		}
		c.stream, c.hash, c.chunks, c.size, c.gap = stream, sha256.New(), 0, 0, false
		c.first, c.uneven = int64(len(value)), false
	} else {
		c.uneven = c.uneven || c.last != c.first
	}
	c.last = int64(len(value))
	c.gap = c.gap || number != c.chunks
	c.chunks = number + 1
	c.size += int64(len(value))
	c.hash.Write(value)
	return nil
}

// endStream looks for the content of the stream that was read. It is that whose hash the
// chunks have.
func (v *verifier) endStream(r storage.Reader) error {
	c := &v.contents
	if c.hash == nil {
		return nil
	}
	sum := format.Hash(c.hash.Sum(nil))
	c.hash = nil
	c.highest = max(c.highest, c.stream)
	value, found, known, err := v.get(r, format.ContentKey(&sum))
	if err != nil {
		return err
	}
	owned := false
	if found && known {
		record, err := format.DecodeContent(value)
		if owned = err == nil && record.Stream == c.stream && record.Size == c.size && !c.gap && c.isCutAs(record); owned {
			v.ledger.add(countedContent(&sum), nil, -1)
		}
	}
	if !c.others && owned {
		return nil
	}
	return v.otherOwners(r, owned)
}

// isCutAs reports whether the chunks that were read have the sizes that a reader of the content
// expects.
func (c *contents) isCutAs(record format.Content) bool {
	return c.chunks == record.Chunks() && (c.chunks == 1 || !c.uneven && c.first == record.ChunkBytes)
}

// otherOwners looks whether a stream is being written or removed.
func (v *verifier) otherOwners(r storage.Reader, owned bool) error {
	c := &v.contents
	for _, key := range [][]byte{format.GarbageKey(c.stream), format.UploadKey(c.stream)} {
		value, found, known, err := v.get(r, key)
		if err != nil || !known {
			return err
		}
		if !found {
			continue
		}
		if owned {
			v.damage(StreamShared, key, "its chunks are those of a content that attachments have")
		} else if chunks, err := format.DecodeChunks(value); err == nil && c.chunks > chunks {
			v.damage(ChunkExtra, format.ChunkKey(c.stream, c.chunks-1), "the stream has %d chunks, its record says %d", c.chunks, chunks)
		}
		return nil
	}
	if owned {
		return nil
	}
	if len(c.unowned) >= maxGroups {
		c.tooMany = true
		return nil
	}
	c.unowned[c.stream] = true
	return nil
}

// contentsAgain looks at contents whose chunks are not theirs, and at streams that no
// content has.
func (v *verifier) contentsAgain() error {
	prefix := format.ContentPrefix()
	err := v.walk(prefix, format.PrefixEnd(prefix), func(r storage.Reader, key, value []byte) error {
		record, err := format.DecodeContent(value)
		if err != nil || len(key) != 2+sha256.Size {
			return nil
		}
		hash := format.Hash(key[2:])
		if name := countedReference(&hash, record.Size); v.ledger.differs(name, nil) {
			v.groups.kept(name, key, int64(record.References))
		}
		if record.Size == 0 || !v.ledger.differs(countedContent(&hash), nil) {
			return nil
		}
		return v.contentAgain(r, slices.Clone(key), hash, record)
	})
	if err != nil {
		return err
	}
	return v.noteUnowned()
}

// contentAgain reads the chunks of one content.
func (v *verifier) contentAgain(r storage.Reader, key []byte, want format.Hash, record format.Content) (err error) {
	lo, hi := format.ChunkKey(record.Stream, 0), format.ChunkKey(record.Stream+1, 0)
	it, err := r.Iterate(lo, hi)
	if err != nil {
		return err
	}
	defer func() {
		if closed := it.Close(); !IsDamage(closed) {
			err = errs.First(err, closed)
		}
	}()
	h, size, next, asRecorded := sha256.New(), int64(0), uint32(0), true
	for ok := it.First(); ok; ok = it.Next() {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		_, number, err := format.SplitChunkKey(it.Key())
		if err != nil {
			return nil // noted before
		}
		if number != next {
			break
		}
		next++
		asRecorded = asRecorded && int64(len(it.Value())) == min(record.ChunkBytes, record.Size-size)
		size += int64(len(it.Value()))
		h.Write(it.Value())
	}
	if err := it.Error(); err != nil {
		if IsDamage(err) {
			return nil // noted before
		}
		return err
	}
	v.contents.explains[record.Stream] = true
	subject := fmt.Sprintf("content %x", want[:])
	switch whole := size == record.Size && format.Hash(h.Sum(nil)) == want; {
	case whole && asRecorded: // something else has the same sum
	case whole:
		v.about(ContentRecord, key, subject, "its %d bytes are whole, in %d chunks of other sizes than its record says: %d of %d bytes", size, next, record.Chunks(), record.ChunkBytes)
	case next < record.Chunks():
		v.about(ChunkMissing, format.ChunkKey(record.Stream, next), subject, "chunk %d of the %d of stream %d is missing", next, record.Chunks(), record.Stream)
	case size != record.Size || next != record.Chunks():
		v.about(ChunkChanged, key, subject, "its chunks have %d bytes, its record says %d", size, record.Size)
	case format.Hash(h.Sum(nil)) != want:
		v.about(ChunkChanged, key, subject, "its %d bytes have another SHA-256", size)
	}
	return nil
}

// noteUnowned notes the streams that nothing has.
func (v *verifier) noteUnowned() error {
	c := &v.contents
	for _, stream := range slices.Sorted(maps.Keys(c.unowned)) {
		if !c.explains[stream] && v.report.Unread == 0 {
			v.damage(ChunkExtra, format.ChunkKey(stream, 0), "no attachment has stream %d, and it is not to be removed", stream)
		}
	}
	if c.tooMany {
		v.lacks("streams that no attachment has, beyond %d", maxGroups)
	}
	clear(c.unowned)
	return nil
}
