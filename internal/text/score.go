package text

import (
	"math"
	"math/bits"
)

// The parameters of BM25: how soon more occurrences of a word count no more, and how much longer texts count less.
const (
	K1 = 1.2
	B  = 0.75
)

// Rarity returns what an occurrence of a clause counts that is found in some of the documents: the inverse document frequency
// of BM25, which is above 0 also for what is found in most of them.
func Rarity(documents, found int64) float64 {
	return math.Log1p((float64(documents-found) + 0.5) / (float64(found) + 0.5))
}

// Weight returns the part of BM25 that depends on the document: a clause occurs count times in a text of length terms, where
// texts have average of them. It is 0 for a count of 0, and below K1+1. The score of a document is the sum, over the clauses that are found in
// it, of their boosts times Rarity times Weight.
func Weight(count, length int, average float64) float64 {
	if count == 0 {
		return 0
	}
	tf := float64(count)
	relative := 1.0
	if average > 0 {
		relative = float64(length) / average
	}
	return tf * (K1 + 1) / (tf + K1*(1-B+B*relative))
}

// LengthClass is a length of a text in a byte: exact below 32, and then in steps of a sixteenth to a thirty-second.
type LengthClass uint8

// ClassOf returns the class of a length. All lengths from about half a million on are one class.
func ClassOf(length int) LengthClass {
	if length < 32 {
		return LengthClass(max(length, 0))
	}
	shift := bits.Len(uint(length)) - 5 // what remains is 16 to 31
	if shift > 14 {
		return math.MaxUint8
	}
	return LengthClass(16*shift + length>>shift)
}

// Length returns the least length of the class.
func (c LengthClass) Length() int {
	if c < 32 {
		return int(c)
	}
	shift := c/16 - 1
	return (int(c%16) + 16) << shift
}
