package jsonpath

import (
	"bytes"
	"strconv"
)

// maxExponent bounds the exponents of numbers written 0.d₁d₂d₃… × 10^exponent
// with d₁ not 0. Index keys do not distinguish numbers beyond it. It equals
// query.MaxExponent, which imports this package.
const maxExponent = 1_000_000_000_000_000

// SafeDigits is the number of digits up to which an exponent needs no check: no
// document has enough other digits to move such an exponent beyond the bound.
const SafeDigits = 14

// IsBeyond reports whether the exponent of a valid JSON number is beyond what documents
// may hold, -10^15 to 10^15 in the form of maxExponent. Every way into the database asks
// it, so that what is stored can be stored again.
func IsBeyond(number []byte) bool {
	e := bytes.IndexAny(number, "eE")
	if e < 0 || len(number)-e-1 <= SafeDigits {
		return false
	}
	negative := number[e+1] == '-'
	digits := bytes.TrimLeft(number[e+1:], "+-")
	if digits = bytes.TrimLeft(digits, "0"); len(digits) <= SafeDigits {
		return false
	}
	mantissa := bytes.TrimLeft(number[:e], "-0")
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	// In the form 0.d₁d₂d₃… the point moves in front of the first digit that is
	// not 0: 12.5 moves it left by 2, 0.0025 right by 2.
	first := int64(len(whole))
	if len(whole) == 0 {
		rest := bytes.TrimLeft(fraction, "0")
		if len(rest) == 0 {
			return false // zero
		}
		first = -int64(len(fraction) - len(rest))
	}
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || n > 2*maxExponent { // first cannot bring it back
		return true
	}
	if negative {
		n = -n
	}
	return n+first > maxExponent || n+first < -maxExponent
}
