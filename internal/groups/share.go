package groups

import (
	"encoding/binary"
	"fmt"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/query"
)

// share is what one document gives to one group.
//
// The key of a group has a part of query.AppendMember for each member. The value is
//
//	flags(1)                        01 others follow, 02 members follow, 04 the number of elements follows
//	if 04                           uvarint: of so many elements of the document is the share; 1 without it
//	for each sum                    count and four limbs, varints: see query.Limbs
//	if 01, for each sum             uvarint n, and n times: uvarint length, a JSON number that the limbs cannot hold
//	if 02, for each member          uvarint length, its JSON, which is too long for a part; length 0 if it is not
//
// Of a document with 02 nothing is added: two long texts may have one part, and are two groups.
//
// Part of the on-disk format. Must not change.
type share struct {
	key      []byte
	elements int64 // that it is of; 1 for a share of the whole document
	sums     []query.SumShare
	long     [][]byte // parallel to the members; nil without 02
}

// Flags of the value of a share. Part of the on-disk format. Must not change.
const (
	flagOthers = 1 << 0
	flagLong   = 1 << 1
	flagCount  = 1 << 2
)

// limbs is how many numbers a sum has beside its count.
const limbs = len(query.Limbs{})

// appendValue appends the value of a share.
func (s *share) appendValue(dst []byte) []byte {
	at := len(dst)
	dst = append(dst, 0)
	if s.elements > 1 {
		dst[at] |= flagCount
		dst = binary.AppendUvarint(dst, uint64(s.elements))
	}
	others := false
	for i := range s.sums {
		sum := &s.sums[i]
		dst = binary.AppendVarint(dst, sum.Count)
		for _, limb := range sum.Limbs {
			dst = binary.AppendVarint(dst, limb)
		}
		others = others || len(sum.Others) > 0
	}
	if others {
		dst[at] |= flagOthers
		for i := range s.sums {
			dst = binary.AppendUvarint(dst, uint64(len(s.sums[i].Others)))
			for _, number := range s.sums[i].Others {
				dst = appendBytes(dst, number)
			}
		}
	}
	if s.long != nil {
		dst[at] |= flagLong
		for _, member := range s.long {
			dst = appendBytes(dst, member)
		}
	}
	return dst
}

func appendBytes(dst, text []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// isRest reports whether the share has a record of its own, as the sums of its group do not have all of it.
func isRest(value []byte) bool { return value[0]&^flagCount != 0 }

// decoder reads what appendValue has written. After an error it returns zeros.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) varint() int64 {
	n, size := binary.Varint(d.rest)
	if size <= 0 {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *decoder) uvarint() uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if n > uint64(len(d.rest)) {
		d.bad, d.rest = true, nil
		return nil
	}
	text := d.rest[:n:n]
	d.rest = d.rest[n:]
	return text
}

// decode returns the share with this key and value, whose memory it keeps.
func (k keeper) decode(key, value []byte) (s share, err error) {
	return s, k.decodeInto(&s, key, value)
}

// decodeInto is decode in the memory of s.
func (k keeper) decodeInto(s *share, key, value []byte) error {
	*s = share{key: key, elements: 1, sums: append(s.sums[:0], make([]query.SumShare, len(k.sums))...)}
	if len(value) > 0 && value[0]&^(flagOthers|flagLong|flagCount) == 0 && k.decodeValue(s, value) {
		return nil
	}
	return fmt.Errorf("the share %x of group %x: %w", value, key, errs.ErrCorrupt)
}

// decodeValue decodes a value whose flags are known; false if it is not valid.
func (k keeper) decodeValue(s *share, value []byte) bool {
	d := decoder{rest: value[1:]}
	if value[0]&flagCount != 0 {
		if s.elements = int64(d.uvarint()); s.elements < 2 {
			return false
		}
	}
	for i := range s.sums {
		s.sums[i].Count = d.varint()
		for j := range s.sums[i].Limbs {
			s.sums[i].Limbs[j] = d.varint()
		}
	}
	if value[0]&flagOthers != 0 {
		for i := range s.sums {
			for n := d.uvarint(); n > 0 && !d.bad; n-- {
				s.sums[i].Others = append(s.sums[i].Others, d.bytes())
			}
		}
	}
	if value[0]&flagLong != 0 {
		for range k.members {
			s.long = append(s.long, d.bytes())
		}
	}
	return !d.bad && len(d.rest) == 0
}

// cutKey returns the part of a key that names a group, and what follows it.
func (k keeper) cutKey(key []byte) (group, rest []byte, ok bool) {
	rest = key
	for range k.members {
		if rest, ok = query.SkipKey(rest); !ok {
			return nil, nil, false
		}
	}
	return key[:len(key)-len(rest)], rest, true
}

// membersOf returns the members of the group of a share.
func (k keeper) membersOf(s *share) []query.Value {
	members, rest := make([]query.Value, len(k.members)), s.key
	for i := range members {
		if s.long != nil && len(s.long[i]) > 0 {
			members[i] = query.ValueOf(s.long[i])
		} else {
			members[i], _ = query.DecodeKey(rest)
		}
		rest, _ = query.SkipKey(rest)
	}
	return members
}
