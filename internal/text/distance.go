package text

import "unicode/utf8"

// MaxDistance is the greatest distance of a fuzzy word.
const MaxDistance = 2

// within reports whether a term is a word but for at most limit changes, of which each puts in, leaves out or replaces one character, or makes two
// neighbours change places, none of them twice: the optimal string alignment distance. The work is the length of the word
// times twice the limit.
func within(word []rune, term []byte, limit int) bool {
	n := utf8.RuneCount(term)
	if n > len(word)+limit || n < len(word)-limit {
		return false
	}
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
	for i := 1; i <= n; i++ {
		r, size := utf8.DecodeRune(term)
		term = term[size:]
		least := far
		for k := range width {
			j := i + k - limit
			row[k] = far
			if j < 0 || j > len(word) {
				continue
			}
			d := far
			if j > 0 {
				d = last[k] // (i-1, j-1)
				if word[j-1] != r {
					d++
				}
				if k > 0 {
					d = min(d, row[k-1]+1) // (i, j-1)
				}
				if i > 1 && j > 1 && word[j-1] == previous && word[j-2] == r {
					d = min(d, before[k]+1) // (i-2, j-2)
				}
			}
			if k+1 < width {
				d = min(d, last[k+1]+1) // (i-1, j)
			}
			row[k] = min(d, far)
			least = min(least, row[k])
		}
		if least > limit {
			return false
		}
		before, last, row = last, row, before
		previous = r
	}
	return last[len(word)-n+limit] <= limit
}
