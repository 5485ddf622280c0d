package format

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/metadata"
)

// The key spaces of attachments. Their contents are kept once each, as chunks under a
// stream number that is never used again.
//
//	'a' 'c' hash(32)        → Content     a content that documents have
//	'a' 'g' stream(8)       → chunks      a stream whose chunks are to be removed
//	'a' 'n'                 → number(8)   the next stream number; 1 without the record
//	'a' 'u' stream(8)       → chunks      a stream that is being written
//	'b' stream(8) chunk(4)  → bytes       a chunk, counted from 0
//
// chunks is the number of chunks, uvarint. Part of the on-disk format. Must not change.
const (
	SpaceAttachments = 'a'
	SpaceChunks      = 'b'

	partContent  = 'c'
	partGarbage  = 'g'
	partNext     = 'n'
	partUploaded = 'u'
)

// Hash is the SHA-256 of a content.
type Hash = [sha256.Size]byte

// ContentPrefix begins the keys of all contents.
func ContentPrefix() []byte { return []byte{SpaceAttachments, partContent} }

// ContentKey is the key of a content.
func ContentKey(hash *Hash) []byte { return append(ContentPrefix(), hash[:]...) }

// GarbagePrefix begins the keys of all streams whose chunks are to be removed.
func GarbagePrefix() []byte { return []byte{SpaceAttachments, partGarbage} }

// GarbageKey is the key of a stream whose chunks are to be removed.
func GarbageKey(stream uint64) []byte {
	return binary.BigEndian.AppendUint64(GarbagePrefix(), stream)
}

// NextStreamKey is the key of the next stream number.
func NextStreamKey() []byte { return []byte{SpaceAttachments, partNext} }

// UploadPrefix begins the keys of all streams that are being written.
func UploadPrefix() []byte { return []byte{SpaceAttachments, partUploaded} }

// UploadKey is the key of a stream that is being written.
func UploadKey(stream uint64) []byte { return binary.BigEndian.AppendUint64(UploadPrefix(), stream) }

// StreamOf returns the stream of a key of GarbageKey or UploadKey.
func StreamOf(key []byte) (uint64, error) {
	if len(key) != 10 {
		return 0, fmt.Errorf("stream key %x: %w", key, errs.ErrCorrupt)
	}
	return binary.BigEndian.Uint64(key[2:]), nil
}

// ChunkKey is the key of a chunk.
func ChunkKey(stream uint64, chunk uint32) []byte {
	key := make([]byte, 0, 13)
	key = binary.BigEndian.AppendUint64(append(key, SpaceChunks), stream)
	return binary.BigEndian.AppendUint32(key, chunk)
}

// SplitChunkKey is the inverse of ChunkKey.
func SplitChunkKey(key []byte) (stream uint64, chunk uint32, err error) {
	if len(key) != 13 {
		return 0, 0, fmt.Errorf("chunk key %x: %w", key, errs.ErrCorrupt)
	}
	return binary.BigEndian.Uint64(key[1:]), binary.BigEndian.Uint32(key[9:]), nil
}

// AppendChunks appends the record of a stream that is written or removed.
func AppendChunks(dst []byte, chunks uint32) []byte {
	return binary.AppendUvarint(dst, uint64(chunks))
}

// DecodeChunks is the inverse of AppendChunks.
func DecodeChunks(record []byte) (uint32, error) {
	n, size := binary.Uvarint(record)
	if size <= 0 || size != len(record) || n > math.MaxUint32 {
		return 0, fmt.Errorf("record of a stream %x: %w", record, errs.ErrCorrupt)
	}
	return uint32(n), nil
}

// Content is the record of a content: a version, 1, and four uvarints. Part of the
// on-disk format. Must not change.
type Content struct {
	Stream     uint64 // has its chunks
	Size       int64  // in bytes
	ChunkBytes int64  // of each chunk but the last
	References uint64 // entries in lists of attachments, of all documents
}

const contentVersion = 1

// Append appends the record to dst.
func (c *Content) Append(dst []byte) []byte {
	dst = append(dst, contentVersion)
	for _, field := range []uint64{c.Stream, uint64(c.Size), uint64(c.ChunkBytes), c.References} {
		dst = binary.AppendUvarint(dst, field)
	}
	return dst
}

// Chunks returns how many chunks the content has.
func (c *Content) Chunks() uint32 { return uint32((c.Size + c.ChunkBytes - 1) / c.ChunkBytes) }

// DecodeContent is the inverse of Content.Append.
func DecodeContent(record []byte) (c Content, err error) {
	var fields [4]uint64
	rest := record
	if len(rest) > 0 && rest[0] == contentVersion {
		rest = rest[1:]
		for i := range fields {
			n, size := binary.Uvarint(rest)
			if size <= 0 {
				return Content{}, fmt.Errorf("record of a content %x: %w", record, errs.ErrCorrupt)
			}
			fields[i], rest = n, rest[size:]
		}
	}
	c = Content{fields[0], int64(fields[1]), int64(fields[2]), fields[3]}
	if len(rest) > 0 || c.Size < 0 || c.ChunkBytes <= 0 || c.References == 0 || (c.Size-1)/c.ChunkBytes >= math.MaxUint32 {
		return Content{}, fmt.Errorf("record of a content %x: %w", record, errs.ErrCorrupt)
	}
	return c, nil
}

// Attachment is an entry in the list of a document's attachments.
type Attachment struct {
	Name        string
	ContentType string
	Size        int64
	Hash        Hash
}

// AppendAttachments appends the list of a document's attachments, in the order of
// their folded names: for each the name (string), the content type (string), the size
// (uvarint) and the hash (32 bytes). Part of the on-disk format. Must not change.
func AppendAttachments(dst []byte, all []Attachment) []byte {
	for i := range all {
		a := &all[i]
		dst = append(binary.AppendUvarint(dst, uint64(len(a.Name))), a.Name...)
		dst = append(binary.AppendUvarint(dst, uint64(len(a.ContentType))), a.ContentType...)
		dst = binary.AppendUvarint(dst, uint64(a.Size))
		dst = append(dst, a.Hash[:]...)
	}
	return dst
}

// DecodeAttachments is the inverse of AppendAttachments. The result shares no memory
// with list.
func DecodeAttachments(list []byte) (all []Attachment, err error) {
	text := func() (s string) {
		n, size := binary.Uvarint(list)
		if size <= 0 || n > uint64(len(list)-size) {
			err = errs.ErrCorrupt
			return ""
		}
		s, list = string(list[size:size+int(n)]), list[size+int(n):]
		return s
	}
	whole := list
	for len(list) > 0 && err == nil {
		a := Attachment{Name: text(), ContentType: text()}
		n, size := binary.Uvarint(list)
		if err != nil || size <= 0 || n > math.MaxInt64 || len(list)-size < len(a.Hash) {
			return nil, fmt.Errorf("list of attachments %.100x: %w", whole, errs.ErrCorrupt)
		}
		a.Size = int64(n)
		list = list[size+copy(a.Hash[:], list[size:]):]
		all = append(all, a)
	}
	return all, nil
}

// Describe returns what callers are told about the attachment.
func (a *Attachment) Describe() metadata.Attachment {
	return metadata.Attachment{Name: a.Name, Hash: base64.StdEncoding.EncodeToString(a.Hash[:]), ContentType: a.ContentType, Size: a.Size}
}

// DescribeAttachments describes the attachments of a stored list, nil for none. It
// leaves out what cannot be decoded: writes report it.
func DescribeAttachments(list []byte) []metadata.Attachment {
	if len(list) == 0 {
		return nil
	}
	all, _ := DecodeAttachments(list)
	out := make([]metadata.Attachment, len(all))
	for i := range all {
		out[i] = all[i].Describe()
	}
	return out
}
