package fulltext

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
)

// What is counted of an index:
//
//   - of each document its texts: a record says so, and the record that it points at, of the tail or of the blocks, points back
//   - of each document the sum of its postings: the record of the tail or of the blocks says so
//   - of each ordinal the postings in the blocks, less the sum that its record says
//   - of each field, how many documents in the blocks have it, and how many terms
//   - of all ordinals, how many have a record, and how many of dead documents

func documentFact(kind byte, folded []byte, more ...byte) []byte {
	return append(append(append([]byte{kind}, folded...), 0), more...)
}

func ordinalFact(ordinal uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{keyBlock}, ordinal)
}

// stateFact is how many ordinals have a record, and deadFact how many of dead documents.
var stateFact, deadFact = []byte{keyState}, []byte{keyCount}

// lengthFact is how many documents have texts in a field, or how many terms they have.
func lengthFact(field byte, i byte) []byte { return []byte{keyLengths, field, i} }

func addLengthFacts(lengths []int, add func(fact []byte, weight int64) error) error {
	for field, n := range lengths {
		if n == 0 {
			continue
		}
		if err := errs.First(add(lengthFact(byte(field), 0), 1), add(lengthFact(byte(field), 1), int64(n))); err != nil {
			return err
		}
	}
	return nil
}

// weighed calls add unless the weight is nothing.
func weighed(add func([]byte, int64) error, fact []byte, weight int64) error {
	if weight == 0 {
		return nil
	}
	return add(fact, weight)
}

// GivenFacts implements catalog.Stager.
func (k *keeper) GivenFacts(folded string, e *catalog.Entry, add func(fact []byte, weight int64) error) error {
	_, texts := e.Given()
	print := printOf(texts)
	if err := add(documentFact(keyOf, []byte(folded), print[:]...), 1); err != nil {
		return err
	}
	return k.addSum([]byte(folded), texts, add)
}

// addSum adds the sum of the postings of texts.
func (k *keeper) addSum(folded, texts []byte, add func(fact []byte, weight int64) error) error {
	words, err := k.analyze(texts)
	if err != nil {
		return err
	}
	return weighed(add, documentFact('p', folded), words.sum())
}

// StoredFacts implements catalog.Stager.
func (k *keeper) StoredFacts(key, value []byte, add func(fact []byte, weight int64) error) error {
	bad := fmt.Errorf("key %x, value %.100x, of words: %w", key, value, errs.ErrCorrupt)
	if len(key) < 6 {
		return bad
	}
	rest := key[6:]
	switch key[5] {
	case keyOf, keyTail:
		folded, end, found := bytes.Cut(rest, []byte{0})
		if !found || len(end) > 0 || len(folded) == 0 {
			return bad
		}
		if key[5] == keyTail {
			print := printOf(value)
			return errs.First(add(documentFact(keyTail, folded, print[:]...), -1), k.addSum(folded, value, add))
		}
		d, err := decodeOf(value)
		if err != nil {
			return err
		}
		if err := add(documentFact(keyOf, folded, d.print[:]...), 1); err != nil {
			return err
		}
		if d.ordinal == 0 {
			return add(documentFact(keyTail, folded, d.print[:]...), 1)
		}
		return add(documentFact(keySettled, folded, binary.BigEndian.AppendUint64(nil, d.ordinal)...), 1)
	case keySettled:
		s, err := k.settledAt(value)
		if err != nil || len(rest) != 8 {
			return bad
		}
		err = errs.First(add(stateFact, 1), addLengthFacts(s.lengths, add))
		err = errs.First(err, add(documentFact(keySettled, s.folded, rest...), -1))
		err = errs.First(err, weighed(add, documentFact('p', s.folded), s.sum))
		return errs.First(err, weighed(add, ordinalFact(binary.BigEndian.Uint64(rest)), -s.sum))
	case keyLengths:
		if len(rest) != 1 || int(rest[0]) >= len(k.ix.Fields) || len(value) != 16 {
			return bad
		}
		return errs.First(weighed(add, lengthFact(rest[0], 0), -int64(binary.BigEndian.Uint64(value))), weighed(add, lengthFact(rest[0], 1), -int64(binary.BigEndian.Uint64(value[8:]))))
	case keyDead:
		if len(rest) != 8 || len(value) != 8 {
			return bad
		}
		if err := errs.First(add(stateFact, 1), add(deadFact, 1)); err != nil {
			return err
		}
		return weighed(add, ordinalFact(binary.BigEndian.Uint64(rest)), -int64(binary.BigEndian.Uint64(value)))
	case keyState:
		s, err := decodeState(value)
		if err != nil || !bytes.Equal(rest, []byte{0}) || s.next == 0 {
			return bad
		}
		return weighed(add, stateFact, -int64(s.next-1-s.removed))
	case keyCount:
		if !bytes.Equal(rest, []byte{0}) || len(value) != 8 {
			return bad
		}
		return weighed(add, deadFact, -int64(binary.BigEndian.Uint64(value)))
	case keyBlock:
		field, term, first, ok := cutBlockKey(key)
		if !ok || field >= len(k.ix.Fields) {
			return bad
		}
		block, err := decodeBlock(nil, first, value)
		if err != nil {
			return err
		}
		for i := range block {
			if err := weighed(add, ordinalFact(block[i].ordinal), weigh(&block[i], field, term)); err != nil {
				return err
			}
		}
		return nil
	}
	return bad
}
