package metadata

import (
	"bytes"
	"strconv"
)

// maxExponent bounds the exponents of numbers written 0.d₁d₂d₃… × 10^exponent,
// the first digit being no zero. The order of values in indexes ends there:
// numbers beyond could not be told apart. It is query.MaxExponent.
const maxExponent = 1_000_000_000_000_000

// safeDigits is how many digits an exponent may have without a closer look: no
// document has enough other digits to carry it beyond the bound.
const safeDigits = 14

// isBeyond tells whether a valid JSON number is beyond the bound. Exponent is
// where its exponent begins, behind the sign.
func isBeyond(number []byte, exponent int) bool {
	digits := bytes.TrimLeft(number[exponent:], "0")
	if len(digits) <= safeDigits {
		return false
	}
	mantissa := bytes.TrimLeft(number[:bytes.IndexAny(number, "eE")], "-0")
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	first := int64(len(whole)) // where the first digit is, counted from the point
	if len(whole) == 0 {
		rest := bytes.TrimLeft(fraction, "0")
		if len(rest) == 0 {
			return false // zero
		}
		first = -int64(len(fraction) - len(rest))
	}
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || n > 2*maxExponent {
		return true
	}
	if number[exponent-1] == '-' {
		n = -n
	}
	return n+first > maxExponent || n+first < -maxExponent
}
