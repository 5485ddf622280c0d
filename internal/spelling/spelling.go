// Package spelling finds the word that was perhaps meant.
package spelling

import "strings"

// Nearest returns the one of words with the smallest edit distance to word. It
// returns "" if the distance exceeds one edit for every three letters, or two.
func Nearest(word string, words []string) string {
	const longest = 32
	if len(word) > longest {
		return ""
	}
	best, slips := "", min(2, len(word)/3)
	for _, candidate := range words {
		if len(candidate) > longest {
			continue
		}
		if n := distance(strings.ToLower(word), strings.ToLower(candidate)); n <= slips && n > 0 {
			best, slips = candidate, n-1
		}
	}
	return best
}

// distance returns the optimal string alignment distance of a and b: the least
// number of bytes to insert, delete, replace or swap with their neighbour.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}

	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			exchange := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				exchange++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, exchange)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
