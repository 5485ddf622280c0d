package format

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/jaydb/jay/internal/errs"
)

// SpaceExchange is the key space of compare-exchange values.
//
//	'v' key 00 → Exchange    the value of a key, which is folded
//
// Part of the on-disk format. Must not change.
const SpaceExchange = 'v'

// GuardPrefix begins the keys of the guards of documents; the folded ID follows. Part of
// the on-disk format, and of RavenDB's protocol. Must not change.
const GuardPrefix = "rvn-atomic/"

// ExchangeKey appends the key of a compare-exchange value. With an empty one it is
// smaller than all others.
func ExchangeKey(dst []byte, folded string) []byte { return AppendKey(dst, SpaceExchange, folded) }

// ExchangeName returns the folded key in a key of ExchangeKey, in its memory.
func ExchangeName(key []byte) []byte { return key[1 : len(key)-1] }

// ExchangeBounds are those of the keys that begin with a prefix, which is folded.
func ExchangeBounds(prefix string) (lo, hi []byte) {
	lo = append([]byte{SpaceExchange}, prefix...)
	return lo, PrefixEnd(lo)
}

// Exchange is the record of a compare-exchange value.
type Exchange struct {
	Index    uint64 // the etag that the newest write of it has drawn
	Key      []byte // as it was written, only if it differs from the folded one
	Metadata []byte // a JSON object, or nil
	Value    []byte // JSON
}

// Version and flags of the record. Part of the on-disk format. Must not change.
const (
	exchangeVersion     = 1
	exchangeHasKey      = 1 << 0
	exchangeHasMetadata = 1 << 1
	exchangeFlags       = exchangeHasKey | exchangeHasMetadata
)

// AppendHead appends the record up to the value.
//
//	offset  size  what
//	0       1     version of the record: 1
//	1       1     flags: 1 a key follows, 2 metadata follows; others must be 0
//	2       n     index, uvarint
//	        n+len key in its original case, string, only with flag 1
//	        n+len metadata, string holding a JSON object, only with flag 2
//	        rest  the value: JSON without white space between tokens
//
// Part of the on-disk format. Must not change.
func (x *Exchange) AppendHead(dst []byte) []byte {
	flags := byte(0)
	if x.Key != nil {
		flags |= exchangeHasKey
	}
	if x.Metadata != nil {
		flags |= exchangeHasMetadata
	}
	dst = append(dst, exchangeVersion, flags)
	dst = binary.AppendUvarint(dst, x.Index)
	for _, text := range [][]byte{x.Key, x.Metadata} {
		if text != nil {
			dst = binary.AppendUvarint(dst, uint64(len(text)))
			dst = append(dst, text...)
		}
	}
	return dst
}

// DecodeExchange decodes a record, in its memory.
func DecodeExchange(record []byte) (x Exchange, err error) {
	bad := func() error { return fmt.Errorf("compare-exchange value %.40x: %w", record, errs.ErrCorrupt) }
	if len(record) < 2 || record[0] != exchangeVersion || record[1]&^exchangeFlags != 0 {
		return Exchange{}, bad()
	}
	flags, rest := record[1], record[2:]
	index, n := binary.Uvarint(rest)
	if n <= 0 || index == 0 || index > math.MaxInt64 {
		return Exchange{}, bad()
	}
	x.Index, rest = index, rest[n:]
	text := func(flag byte) (found []byte) {
		if flags&flag == 0 || err != nil {
			return nil
		}
		size, n := binary.Uvarint(rest)
		if n <= 0 || size == 0 || size > uint64(len(rest)-n) {
			err = bad()
			return nil
		}
		found, rest = rest[n:n+int(size)], rest[n+int(size):]
		return found
	}
	x.Key, x.Metadata = text(exchangeHasKey), text(exchangeHasMetadata)
	if x.Value = rest; err == nil && len(rest) == 0 {
		err = bad()
	}
	if err != nil {
		return Exchange{}, err
	}
	return x, nil
}
