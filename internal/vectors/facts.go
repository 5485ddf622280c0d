package vectors

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
)

// What is counted of an index:
//
//   - of each document that it has a record, of its codes
//   - of each of its vectors the code, wherever it is
//   - of the tail, and of each vector in a partition, that the record leads to it
//   - of each partition how many vectors it has, and that it has a center
//   - how many centers there are

func fact(kind byte, folded []byte, more ...byte) []byte {
	return append(append(append([]byte{kind}, folded...), 0), more...)
}

// vectorFact is the fact that a document has a code.
func vectorFact(folded []byte, i int, code []byte) []byte {
	return append(fact(keyVector, folded, byte(i>>8), byte(i)), code...)
}

// placeFact is the fact that a vector of a document, one of several or not, is in a partition.
func placeFact(folded []byte, i int, several bool, partition uint32) []byte {
	more := []byte{byte(i >> 8), byte(i), 0}
	if several {
		more[2] = 1
	}
	return fact('p', folded, binary.BigEndian.AppendUint32(more, partition)...)
}

func countFact(partition uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{keyCount}, partition)
}

// centerFact is the fact that a partition has a center: one that has vectors without it would be read by no query.
func centerFact(partition uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{keyCenter}, partition)
}

var centersFact = []byte{keyCenter}

// addVectors adds the facts of codes, one behind the other.
func (k *keeper) addVectors(folded, codes []byte, add func(fact []byte, weight int64) error) error {
	size := k.codeSize()
	for i := 0; i*size < len(codes); i++ {
		if err := add(vectorFact(folded, i, codes[i*size:(i+1)*size]), 1); err != nil {
			return err
		}
	}
	return nil
}

// GivenFacts implements catalog.Stager.
func (k *keeper) GivenFacts(folded string, e *catalog.Entry, add func(fact []byte, weight int64) error) error {
	print, codes := given(e)
	if err := add(fact(keyOf, []byte(folded), print[:]...), 1); err != nil {
		return err
	}
	return k.addVectors([]byte(folded), codes, add)
}

// StoredFacts implements catalog.Stager.
func (k *keeper) StoredFacts(key, value []byte, add func(fact []byte, weight int64) error) error {
	bad := fmt.Errorf("key %.100x, value %.60x, of vectors: %w", key, value, errs.ErrCorrupt)
	if len(key) < 6 {
		return bad
	}
	switch key[5] {
	case keyOf:
		return k.recordFacts(key, value, add)
	case keyTail:
		folded, err := cutID(key)
		if err != nil {
			return err
		}
		if _, err := k.codesIn(value); err != nil {
			return err
		}
		print := printOf(value)
		return errs.First(add(fact(keyTail, folded, print[:]...), -1), k.addVectors(folded, value, add))
	case keyVector:
		partition, folded, i, several, err := cutVectorKey(key)
		if err != nil {
			return err
		}
		if _, err := k.codeIn(value); err != nil {
			return err
		}
		err = errs.First(add(vectorFact(folded, i, value), 1), add(placeFact(folded, i, several, partition), -1))
		return errs.First(err, add(countFact(partition), 1))
	case keyCount:
		partition, err := cutPartition(key)
		if err != nil {
			return err
		}
		n, err := countIn(value)
		if err != nil {
			return bad
		}
		if err = add(centerFact(partition), -1); err == nil && n > 0 {
			err = add(countFact(partition), -n)
		}
		return err
	case keyCenter:
		partition, err := cutPartition(key)
		if err != nil {
			return err
		}
		if _, err := k.centerIn(value); err != nil {
			return err
		}
		return errs.First(add(centersFact, 1), add(centerFact(partition), 1))
	case keyState:
		s, err := decodeState(value)
		if err != nil || !bytes.Equal(key[6:], []byte{0}) {
			return bad
		}
		if s.live == 0 {
			return nil
		}
		return add(centersFact, -int64(s.live))
	}
	return bad
}

// recordFacts adds what the record of a document says.
func (k *keeper) recordFacts(key, value []byte, add func(fact []byte, weight int64) error) error {
	folded, err := cutID(key)
	if err != nil {
		return err
	}
	r, err := decodeRecord(value)
	if err != nil {
		return err
	}
	err = add(fact(keyOf, folded, r.print[:]...), 1)
	if r.where == isInTail {
		err = errs.First(err, add(fact(keyTail, folded, r.print[:]...), 1))
	}
	for i, partition := range r.partitions {
		err = errs.First(err, add(placeFact(folded, i, len(r.partitions) > 1, partition), 1))
	}
	return err
}
