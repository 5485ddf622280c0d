package main

import (
	"fmt"
	"math"
	"strconv"
)

// thousands writes n with a comma between each three digits.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	first := 0
	if n < 0 {
		first = 1
	}
	for i := len(text) - 3; i > first; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// count returns "1 document", "2,000 documents".
func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return thousands(n) + " " + what + "s"
}

// size writes a number of bytes in the unit that leaves one to three digits before
// the point: a kB is 1,000 bytes.
func size(bytes int64) string {
	if bytes < 1000 {
		return fmt.Sprintf("%d B", bytes)
	}
	n := float64(bytes)
	for _, unit := range []string{"kB", "MB", "GB", "TB", "PB"} {
		n /= 1000
		if math.Round(n*10) < 10_000 {
			return fmt.Sprintf("%.1f %s", n, unit)
		}
	}
	return fmt.Sprintf("%.1f EB", n/1000)
}

// rate writes a rate with three significant digits, whole from 100 on.
func rate(n float64) string {
	if math.Abs(n) >= 100 && math.Abs(n) < math.MaxInt64 {
		return thousands(int64(math.Round(n)))
	}
	return strconv.FormatFloat(n, 'g', 3, 64)
}
