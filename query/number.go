package query

import (
	"bytes"
	"fmt"
	"strconv"
)

// MaxExponent bounds the exponents of numbers written 0.d₁d₂d₃… × 10^exponent
// with d₁ not 0. Documents and conditions with a number beyond it are refused.
// Documents of older versions may hold such numbers: they compare by their
// digits, as if their exponent were the bound.
//
// Part of the on-disk format. Must not change.
const MaxExponent = 1_000_000_000_000_000

// number is a parsed JSON number: 0.d₁d₂d₃… × 10^exp, negative if neg. The digits
// are those of head followed by those of tail, in ASCII, without leading and
// trailing zeros. Zero has no digits, no sign and no exponent. Equal numbers have
// the same digits, sign and exponent, however they are written.
type number struct {
	head, tail []byte // share memory with the JSON text
	exp        int64  // from -MaxExponent to MaxExponent
	neg        bool
	beyond     bool // the exponent was beyond the bound
}

// parseNumber parses a valid JSON number. It copies no digits.
func parseNumber(raw []byte) number {
	var n number
	i := 0
	if len(raw) > 0 && raw[0] == '-' {
		n.neg = true
		i++
	}
	n.head, i = digits(raw, i)
	if i < len(raw) && raw[i] == '.' {
		n.tail, i = digits(raw, i+1)
	}
	if i < len(raw) && raw[i]|0x20 == 'e' {
		n.exp = parseExponent(raw[i+1:])
	}
	return n.normal()
}

// digits returns the digits at i and the offset after them.
func digits(raw []byte, i int) ([]byte, int) {
	start := i
	for i < len(raw) && '0' <= raw[i] && raw[i] <= '9' {
		i++
	}
	return raw[start:i], i
}

// parseExponent returns an exponent, capped at 100 times the bound: no text is
// long enough for its other digits to bring it back within the bound.
func parseExponent(raw []byte) int64 {
	neg := false
	if len(raw) > 0 && (raw[0] == '+' || raw[0] == '-') {
		neg = raw[0] == '-'
		raw = raw[1:]
	}
	var exp int64
	for _, c := range raw {
		if exp = exp*10 + int64(c-'0'); exp > 100*MaxExponent {
			exp = 100 * MaxExponent
			break
		}
	}
	if neg {
		return -exp
	}
	return exp
}

// normal returns n in normal form, with its exponent within the bound. On entry
// head and tail are the digits before and after the decimal point.
func (n number) normal() number {
	n = n.trimmed()
	if n.exp < -MaxExponent || n.exp > MaxExponent {
		n.exp, n.beyond = max(-MaxExponent, min(n.exp, MaxExponent)), true
	}
	return n
}

// trimmed is normal, but leaves the exponent unbounded.
func (n number) trimmed() number {
	// Leading zeros: the point moves in front of the first digit that is not 0.
	n.head = bytes.TrimLeft(n.head, "0")
	n.exp += int64(len(n.head))
	if len(n.head) == 0 {
		rest := bytes.TrimLeft(n.tail, "0")
		n.exp -= int64(len(n.tail) - len(rest))
		n.head, n.tail = rest, nil
	}

	if n.tail = bytes.TrimRight(n.tail, "0"); len(n.tail) == 0 {
		n.head = bytes.TrimRight(n.head, "0")
	}
	if len(n.head) == 0 {
		return number{}
	}
	return n
}

// len returns the number of digits.
func (n number) len() int { return len(n.head) + len(n.tail) }

// at returns digit i as a number, 0 after the last digit.
func (n number) at(i int) byte {
	switch {
	case i < len(n.head):
		return n.head[i] - '0'
	case i < len(n.head)+len(n.tail):
		return n.tail[i-len(n.head)] - '0'
	}
	return 0
}

// sign returns -1, 0 or +1.
func (n number) sign() int {
	switch {
	case len(n.head) == 0:
		return 0
	case n.neg:
		return -1
	}
	return 1
}

// integerPart returns n without its decimals.
func (n number) integerPart() number {
	if n.exp <= 0 {
		return number{}
	}
	keep := min(n.exp, int64(n.len()))
	if keep <= int64(len(n.head)) {
		n.head, n.tail = n.head[:keep], nil
	} else {
		n.tail = n.tail[:keep-int64(len(n.head))]
	}
	if n.tail = bytes.TrimRight(n.tail, "0"); len(n.tail) == 0 {
		n.head = bytes.TrimRight(n.head, "0")
	}
	return n
}

// append appends n as JSON, as encoding/json and JavaScript write numbers: without
// an exponent from 0.000001 up to 21 digits, with one otherwise.
func (n number) append(dst []byte) []byte {
	count := int64(n.len())
	if count == 0 {
		return append(dst, '0')
	}
	if n.neg {
		dst = append(dst, '-')
	}
	switch {
	case n.exp < -5 || n.exp > 21: // d₁.d₂d₃…e±exp-1
		dst = append(dst, n.head[0])
		if count > 1 {
			dst = append(dst, '.')
			dst = append(append(dst, n.head[1:]...), n.tail...)
		}
		dst = append(dst, 'e')
		if n.exp > 0 {
			dst = append(dst, '+')
		}
		return strconv.AppendInt(dst, n.exp-1, 10)
	case n.exp <= 0: // 0.000d₁d₂…
		dst = append(dst, '0', '.')
		dst = appendZeros(dst, -n.exp)
		return append(append(dst, n.head...), n.tail...)
	}
	for i := range max(count, n.exp) {
		if i == n.exp {
			dst = append(dst, '.')
		}
		dst = append(dst, '0'+n.at(int(i)))
	}
	return dst
}

func appendZeros(dst []byte, n int64) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}

// smallInt returns the value of raw if it is written as an integer of at most 18
// digits, as nearly all numbers are.
func smallInt(raw []byte) (n int64, small bool) {
	i := 0
	if len(raw) > 0 && raw[0] == '-' {
		i = 1
	}
	if len(raw)-i > 18 || len(raw) == i {
		return 0, false
	}
	for _, c := range raw[i:] {
		if c -= '0'; c > 9 {
			return 0, false
		} else {
			n = n*10 + int64(c)
		}
	}
	if i == 1 {
		n = -n
	}
	return n, true
}

// smallDecimal returns n and pairs for a number n / 100^pairs, if it is written as prices are: with at most 17
// digits, on both sides of the point, of which neither the first one nor the last one is 0, and
// without an exponent. That is its canonical form.
func smallDecimal(raw []byte) (n int64, pairs int, small bool) {
	i := 0
	if len(raw) > 0 && raw[0] == '-' {
		i = 1
	}
	if len(raw)-i > 18 || len(raw)-i < 3 || raw[i] == '0' || raw[len(raw)-1] == '0' {
		return 0, 0, false
	}
	f, fits := toFixed(raw)
	return f.units, f.pairs, fits && f.pairs > 0
}

// fixed is the number units / 100^pairs, with fewer than 10^18 units and fewer than 10 pairs.
type fixed struct {
	units int64
	pairs int
}

// toFixed returns a number that is written without an exponent: with at most 18 digits, or 17 and a point.
func toFixed(raw []byte) (f fixed, fits bool) {
	i := 0
	if len(raw) > 0 && raw[0] == '-' {
		i = 1
	}
	if len(raw)-i > 18 || len(raw) == i {
		return f, false
	}
	point := -1
	for at := i; at < len(raw); at++ {
		c := raw[at] - '0'
		switch {
		case c <= 9:
			f.units = f.units*10 + int64(c)
		case raw[at] == '.' && point < 0:
			point = at
		default:
			return f, false
		}
	}
	if point >= 0 {
		decimals := len(raw) - 1 - point
		if decimals%2 != 0 {
			f.units *= 10
		}
		f.pairs = (decimals + 1) / 2
	}
	if i == 1 {
		f.units = -f.units
	}
	return f, true
}

// compare returns -1, 0 or 1.
func (f fixed) compare(other fixed) int {
	if f.pairs > other.pairs {
		return -other.compare(f)
	}
	for range other.pairs - f.pairs {
		if f.units >= manyUnits || f.units <= -manyUnits {
			return compareInts(f.units, 0) // with another pair it has more units than any number
		}
		f.units *= 100
	}
	return compareInts(f.units, other.units)
}

// manyUnits is a hundredth of what no fixed number has in units.
const manyUnits = int64(1e16)

// compareNumbers compares two JSON numbers by their exact values.
func compareNumbers(x, y []byte) int {
	if a, fits := toFixed(x); fits {
		if b, fits := toFixed(y); fits {
			return a.compare(b)
		}
	}
	return parseNumber(x).compare(parseNumber(y))
}

func compareInts(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// compare compares two numbers. Of numbers with the same sign, the one with the
// greater exponent has the greater magnitude, since neither has leading zeros.
func (n number) compare(m number) int {
	sign := n.sign()
	if other := m.sign(); sign != other {
		return compareInts(int64(sign), int64(other))
	}
	if n.exp != m.exp {
		return sign * compareInts(n.exp, m.exp)
	}
	for i := range min(n.len(), m.len()) {
		if a, b := n.at(i), m.at(i); a != b {
			return sign * compareInts(int64(a), int64(b))
		}
	}
	return sign * compareInts(int64(n.len()), int64(m.len()))
}

// checkNumber returns ErrNumber for a number whose exponent is beyond the bound.
func checkNumber(v Value) error {
	if v.kind != KindNumber {
		return nil
	}
	if _, small := smallInt(v.raw); !small && parseNumber(v.raw).beyond {
		return errBeyond(v.raw)
	}
	return nil
}

func errBeyond(raw []byte) error {
	return fmt.Errorf("%w: the exponent of %.60s is beyond %d", ErrNumber, raw, MaxExponent)
}

// isNumber reports whether text is a JSON number.
func isNumber(text []byte) bool {
	i := 0
	if len(text) > 0 && text[0] == '-' {
		i++
	}
	whole, i := digits(text, i)
	if len(whole) == 0 || len(whole) > 1 && whole[0] == '0' {
		return false
	}
	if i < len(text) && text[i] == '.' {
		var fraction []byte
		if fraction, i = digits(text, i+1); len(fraction) == 0 {
			return false
		}
	}
	if i < len(text) && text[i]|0x20 == 'e' {
		i++
		if i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		var exponent []byte
		if exponent, i = digits(text, i); len(exponent) == 0 {
			return false
		}
	}
	return i == len(text)
}
