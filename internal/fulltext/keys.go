package fulltext

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// The keys of an index, behind its number. An ordinal is the number of a document in the blocks, from 1 on, 8 bytes; no two documents ever
// have the same one, and a document that changes gets another one.
//
//	63 00                         by storage.Tx.Add: how many records there are under 6b
//	62 field term 00 00 ordinal   a block: postings of a term, the first of which has this ordinal. A zero in the term is 00 ff
//	64 id 00                      of a document: the first 16 bytes of the SHA-256 of its texts, and its ordinal, 0 while it is in the tail
//	6b ordinal                    of a document that has changed since it was settled: the sum of its postings that blocks may still have
//	6c field                      by storage.Tx.Add: how many documents in the blocks have texts in the field, and how many terms
//	6f ordinal                    of a document in the blocks: the sum of its postings, 8 bytes, of each field a uvarint of how many
//	                              terms it has, and its ID
//	73 00                         the next ordinal, how many records of ordinals have been removed, how many blocks there are, and how many
//	                              blocks and records under 6b there were after the last sweep, 8 bytes each; a uvarint of the length of the version of the analyzers that all blocks are of, the version, and where a sweep goes on: the
//	                              key of a block behind 62, nothing without a sweep; then the CRC-32C of all this
//	74 id 00                      of a document in the tail: its texts
//
// The sum of postings is that of the FNV-1a hash of each; it is there to be verified.
//
// Part of the on-disk format. Must not change.
const (
	keyBlock   = 'b'
	keyCount   = 'c'
	keyOf      = 'd'
	keyDead    = 'k'
	keyLengths = 'l'
	keySettled = 'o'
	keyState   = 's'
	keyTail    = 't'
)

func (k *keeper) key(kind byte) []byte {
	return append(format.AppendIndexPrefix(make([]byte, 0, 64), k.ix.Number), kind)
}

func (k *keeper) stateKey() []byte { return append(k.key(keyState), 0) }

func (k *keeper) countKey() []byte { return append(k.key(keyCount), 0) }

func (k *keeper) lengthsKey(field int) []byte { return append(k.key(keyLengths), byte(field)) }

func (k *keeper) documentKey(kind byte, folded string) []byte {
	return append(append(k.key(kind), folded...), 0)
}

// tailID returns the folded ID in a key of the tail.
func tailID(key []byte) []byte { return key[6 : len(key)-1] }

func (k *keeper) ordinalKey(kind byte, ordinal uint64) []byte {
	return binary.BigEndian.AppendUint64(k.key(kind), ordinal)
}

// termKey returns the beginning of the keys of the blocks of a term.
func (k *keeper) termKey(field int, term string) []byte {
	return k.appendTermKey(make([]byte, 0, 64), field, term)
}

func (k *keeper) appendTermKey(dst []byte, field int, term string) []byte {
	return append(k.appendPrefixKey(dst, field, term), 0, 0)
}

// prefixKey returns the beginning of the keys of the blocks of all terms that begin so.
func (k *keeper) prefixKey(field int, prefix string) []byte {
	return k.appendPrefixKey(make([]byte, 0, 64), field, prefix)
}

func (k *keeper) appendPrefixKey(key []byte, field int, prefix string) []byte {
	key = append(format.AppendIndexPrefix(key, k.ix.Number), keyBlock, byte(field))
	for i := range len(prefix) {
		if key = append(key, prefix[i]); prefix[i] == 0 {
			key = append(key, 0xff)
		}
	}
	return key
}

// cutBlockKey returns the parts of the key of a block.
func cutBlockKey(key []byte) (field int, term []byte, first uint64, ok bool) {
	if len(key) < 7 {
		return 0, nil, 0, false
	}
	field, rest := int(key[6]), key[7:]
	for {
		i := bytes.IndexByte(rest, 0)
		if i < 0 || i+1 == len(rest) {
			return 0, nil, 0, false
		}
		term = append(term, rest[:i]...)
		escaped := rest[i+1] == 0xff
		if rest = rest[i+2:]; !escaped {
			break
		}
		term = append(term, 0)
	}
	if len(rest) != 8 {
		return 0, nil, 0, false
	}
	return field, term, binary.BigEndian.Uint64(rest), true
}

// ofDocument is the record of a document under keyOf.
type ofDocument struct {
	print   [16]byte // of its texts
	ordinal uint64   // 0 in the tail
}

// printOf returns what says whether texts have changed.
func printOf(texts []byte) (print [16]byte) {
	sum := sha256.Sum256(texts)
	return [16]byte(sum[:16])
}

func (d *ofDocument) append(dst []byte) []byte {
	return binary.BigEndian.AppendUint64(append(dst, d.print[:]...), d.ordinal)
}

func decodeOf(value []byte) (d ofDocument, err error) {
	if len(value) != 24 {
		return d, fmt.Errorf("record %x of a document with words: %w", value, errs.ErrCorrupt)
	}
	copy(d.print[:], value)
	d.ordinal = binary.BigEndian.Uint64(value[16:])
	return d, nil
}

// state is the record under keyState.
type state struct {
	next    uint64 // ordinal
	removed uint64 // records of ordinals
	blocks  uint64 // how many there are
	swept   uint64 // how many there were after the last sweep
	left    uint64 // how many dead ordinals there were after it
	version string // of the analyzers; empty without blocks
	sweep   []byte // where the sweep goes on
}

func (s *state) append() (dst []byte) {
	for _, n := range []uint64{s.next, s.removed, s.blocks, s.swept, s.left} {
		dst = binary.BigEndian.AppendUint64(dst, n)
	}
	dst = append(append(binary.AppendUvarint(dst, uint64(len(s.version))), s.version...), s.sweep...)
	return catalog.AppendSum(dst)
}

// decodeState decodes the record, nil if it is not there.
func decodeState(value []byte) (s state, err error) {
	if value == nil {
		return state{next: 1}, nil
	}
	bad := fmt.Errorf("state %x of an index of words: %w", value, errs.ErrCorrupt)
	whole, ok := catalog.CutSum(value)
	if !ok || len(whole) < 41 {
		return s, bad
	}
	for i, to := range []*uint64{&s.next, &s.removed, &s.blocks, &s.swept, &s.left} {
		*to = binary.BigEndian.Uint64(value[8*i:])
	}
	rest := whole[40:]
	length, size := binary.Uvarint(rest)
	if size <= 0 || length > uint64(len(rest)-size) || s.next == 0 || s.removed >= s.next {
		return s, bad
	}
	s.version, s.sweep = string(rest[size:size+int(length)]), rest[size+int(length):]
	return s, nil
}

// checkState refuses blocks that r shows if they are of other versions of the analyzers.
func (k *keeper) checkState(r storage.Reader) error {
	value, err := catalog.ValueAt(r, k.stateKey())
	if err != nil {
		return err
	}
	s, err := decodeState(value)
	if err != nil {
		return err
	}
	return k.check(s)
}

// check refuses blocks of other versions of the analyzers.
func (k *keeper) check(s state) error {
	if s.version != "" && s.version != k.version {
		return fmt.Errorf("%w: index %q has words of %q, and this program makes those of %q: drop the index and make it again", errs.ErrIndex, k.ix.Info.Name, s.version, k.version)
	}
	return nil
}

// settled is the record of a document under keySettled.
type settled struct {
	sum     int64
	lengths []int  // by field
	folded  []byte // in the memory of the value
}

func (s *settled) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(s.sum))
	for _, n := range s.lengths {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	return append(dst, s.folded...)
}

func (k *keeper) settledAt(value []byte) (s settled, err error) {
	bad := fmt.Errorf("settled document %x: %w", value, errs.ErrCorrupt)
	if len(value) < 8 {
		return s, bad
	}
	s.sum = int64(binary.BigEndian.Uint64(value))
	s.folded = value[8:]
	for range k.ix.Fields {
		n, size := binary.Uvarint(s.folded)
		if size <= 0 || n > 1<<40 {
			return s, bad
		}
		s.lengths, s.folded = append(s.lengths, int(n)), s.folded[size:]
	}
	if len(s.folded) == 0 {
		return s, bad
	}
	return s, nil
}

// addLengths adds the lengths of a document to those of all in the blocks, or takes them away.
func (k *keeper) addLengths(tx storage.Tx, lengths []int, sign int64) {
	for field, n := range lengths {
		if n > 0 {
			tx.Add(k.lengthsKey(field), sign, sign*int64(n))
		}
	}
}

// Describe implements catalog.Keeper.
func (k *keeper) Describe(key []byte) string {
	if len(key) < 6 {
		return "one of its keys"
	}
	switch rest := key[6:]; key[5] {
	case keyBlock:
		if field, term, _, ok := cutBlockKey(key); ok && field < len(k.ix.Fields) {
			return fmt.Sprintf("documents with the word %.100q in %s", term, k.ix.Fields[field].Text)
		}
	case keyOf, keyTail:
		return fmt.Sprintf("the words of document %.100q", bytes.TrimSuffix(rest, []byte{0}))
	case keyDead, keySettled:
		if len(rest) == 8 {
			return fmt.Sprintf("the words of the document with number %d", binary.BigEndian.Uint64(rest))
		}
	case keyCount:
		return "how many documents have changed since their words were settled"
	case keyLengths:
		if len(rest) == 1 && int(rest[0]) < len(k.ix.Fields) {
			return fmt.Sprintf("how many words %s has", k.ix.Fields[rest[0]].Text)
		}
	case keyState:
		return "how far its words are settled"
	}
	return catalog.Hex(key)
}
