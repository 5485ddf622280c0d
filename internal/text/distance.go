package text

import "unicode/utf8"

// MaxDistance is the greatest distance of a fuzzy word.
const MaxDistance = 2

// within returns how many changes make a term of a word, or more than limit, of which each puts in, leaves out or replaces one character, or makes two
// neighbours change places, none of them twice: the optimal string alignment distance. The work is the length of the word
// times twice the limit.
func within(word []rune, term []byte, limit int) int {
	n := utf8.RuneCount(term)
	if n > len(word)+limit || n < len(word)-limit {
		return limit + 1
	}
	distance, _ := distanceOf(word, term, limit)
	return distance
}

// Speller compares terms with a word. It is immutable, and safe for concurrent use.
type Speller struct {
	word  []rune
	limit int
}

// NewSpeller returns the Speller of a word, for terms that differ by at most limit changes, MaxDistance at most.
func NewSpeller(word string, limit int) *Speller {
	return &Speller{[]rune(word), min(limit, MaxDistance)}
}

// Distance returns how many changes make a term of the word, as in fuzzy words, or more than the limit. If all terms are too far away that begin as
// this one does, hopeless is the length of this beginning in bytes; else it is 0.
func (s *Speller) Distance(term []byte) (distance, hopeless int) {
	return distanceOf(s.word, term, s.limit)
}

// distanceOf returns the distance of a term from a word, or more than limit, and the length of its beginning that cannot be that of a nearer one; 0 for none.
func distanceOf(word []rune, term []byte, limit int) (distance, hopeless int) {
	// Only entries of the table within limit of the diagonal can be small enough. A row has the entries for the
	// characters i-limit to i+limit of the word.
	const far = MaxDistance + 1
	width := 2*limit + 1
	var rows [3][2*MaxDistance + 1]int
	before, last, row := rows[0][:width], rows[1][:width], rows[2][:width]
	for k := range width { // the empty term: entry k is for k-limit characters of the word
		before[k], last[k] = far, far
		if j := k - limit; j >= 0 && j <= len(word) {
			last[k] = j
		}
	}
	var previous rune
	n := 0
	for at := 0; at < len(term); {
		r, size := utf8.DecodeRune(term[at:])
		at += size
		n++
		least := far
		for k := range width {
			j := n + k - limit
			row[k] = far
			if j < 0 || j > len(word) {
				continue
			}
			d := far
			if j > 0 {
				d = last[k] // (n-1, j-1)
				if word[j-1] != r {
					d++
				}
				if k > 0 {
					d = min(d, row[k-1]+1) // (n, j-1)
				}
				if n > 1 && j > 1 && word[j-1] == previous && word[j-2] == r {
					d = min(d, before[k]+1) // (n-2, j-2)
				}
			}
			if k+1 < width {
				d = min(d, last[k+1]+1) // (n-1, j)
			}
			row[k] = min(d, far)
			least = min(least, row[k])
		}
		if least > limit { // a change of places in the next row begins in the row before this one, and was counted in it
			return far, at
		}
		before, last, row = last, row, before
		previous = r
	}
	if k := len(word) - n + limit; k >= 0 && k < width {
		return last[k], 0
	}
	return far, 0
}
