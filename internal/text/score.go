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
// of BM25, which is above 0 also for what is found in most of them. More found than documents count as all of them: an index counts
// those that have changed until a sweep.
func Rarity(documents, found int64) float64 {
	found = min(found, documents)
	return math.Log1p((float64(documents-found) + 0.5) / (float64(found) + 0.5))
}

// Frequencies say how often the words of a search are in the texts of one field of all documents.
type Frequencies struct {
	Documents int64   // with terms in the field
	Terms     int64   // that the field has in all of them
	Found     []int64 // by clause: in how many documents it occurs
	Weight    float64 // of the field, by which scores are multiplied
}

// Average returns how many terms the field has in a document on the average.
func (f *Frequencies) Average() float64 {
	if f.Documents == 0 {
		return 0
	}
	return float64(f.Terms) / float64(f.Documents)
}

// Ranking scores the texts of one field by one search. It is immutable, and safe for concurrent use.
type Ranking struct {
	factors  []float64                  // by clause
	dampings [math.MaxUint8 + 1]float64 // by class of length: what the count of a clause is compared with
}

// NewRanking returns the Ranking of a search where its words are as frequent as f says.
func NewRanking(s *Search, f *Frequencies) *Ranking {
	r := &Ranking{factors: make([]float64, len(s.Clauses))}
	for i := range s.Clauses {
		if c := &s.Clauses[i]; c.Occur != MustNot {
			r.factors[i] = c.Boost * f.Weight * Rarity(f.Documents, f.Found[i])
		}
	}
	for class := range r.dampings {
		r.dampings[class] = damping(LengthClass(class).Length(), f.Average())
	}
	return r
}

// Score returns what a clause counts that occurs count times in a text of a class of length. The score of a document is the sum over the
// clauses of the search in their order.
func (r *Ranking) Score(clause, count int, class LengthClass) float64 {
	if count == 0 {
		return 0
	}
	return r.factors[clause] * (float64(count) * (K1 + 1) / (float64(count) + r.dampings[class]))
}

// damping returns by how much a count is damped in a text of length terms.
func damping(length int, average float64) float64 {
	relative := 1.0
	if average > 0 {
		relative = float64(length) / average
	}
	return K1 * (1 - B + B*relative)
}

// Weight returns the part of BM25 that depends on the document: a clause occurs count times in a text of length terms, where
// texts have average of them. It is 0 for a count of 0, and below K1+1. The score of a document is the sum, over the clauses that are found in
// it, of their boosts times Rarity times Weight.
func Weight(count, length int, average float64) float64 {
	if count == 0 {
		return 0
	}
	return float64(count) * (K1 + 1) / (float64(count) + damping(length, average))
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
