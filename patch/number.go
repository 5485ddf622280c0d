package patch

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"strconv"
)

// maxDigits is the greatest number of digits of a decimal, written without an
// exponent. Every float64 has fewer.
const maxDigits = 1000

// addend is a number to add to others, parsed once.
type addend struct {
	text    []byte
	zero    bool
	small   small
	isSmall bool // small is its value
}

func newAddend(text []byte) addend {
	a := addend{text: text, zero: isZero(text)}
	a.small, a.isSmall = parseSmall(text)
	return a
}

// appendSum appends the sum of a JSON number and a. If there is none, detail says
// why.
func (a *addend) appendSum(w *work, dst, number []byte) (text []byte, detail string, err error) {
	if err := w.spend(workPerSum); err != nil {
		return nil, "", err
	}
	if a.isSmall {
		if b, ok := parseSmall(number); ok {
			if text, ok := appendSmallSum(dst, b, a.small); ok {
				return text, "", nil
			}
		}
	}
	if err := w.spend(workPerDigit * (digitsOf(number) + digitsOf(a.text))); err != nil {
		return nil, "", err
	}
	text, detail = sum(number, a.text)
	return text, detail, nil
}

// sum returns the sum of two JSON numbers. If there is none, detail says why.
func sum(a, b []byte) (text []byte, detail string) {
	if !isInteger(a) || !isInteger(b) {
		return sumOfDecimals(a, b)
	}
	x, ok := parseInt(a)
	if !ok {
		return nil, fmt.Sprintf("%.60s does not fit in 64 bits", a)
	}
	y, ok := parseInt(b)
	if !ok {
		return nil, fmt.Sprintf("%.60s does not fit in 64 bits", b)
	}
	if y > 0 && x > math.MaxInt64-y || y < 0 && x < math.MinInt64-y { // x + y would overflow
		return nil, fmt.Sprintf("%d + %d does not fit in 64 bits", x, y)
	}
	return strconv.AppendInt(nil, x+y, 10), ""
}

// digitsOf returns an upper bound on the number of digits of a number, written
// without an exponent.
func digitsOf(number []byte) int {
	mantissa, exponent, ok := cutExponent(number)
	if !ok {
		return len(number)
	}
	return len(mantissa) + int(min(maxDigits, max(exponent, -exponent)))
}

// isInteger reports whether a JSON number has neither point nor exponent.
func isInteger(number []byte) bool { return !bytes.ContainsAny(number, ".eE") }

// parseInt returns the value of an integer, if it is an int64.
func parseInt(integer []byte) (value int64, ok bool) {
	if len(integer) > len("-9223372036854775808") {
		return 0, false
	}
	value, err := strconv.ParseInt(string(integer), 10, 64)
	return value, err == nil
}

// isZero reports whether a JSON number is zero.
func isZero(number []byte) bool {
	mantissa, _, _ := cutExponent(number)
	return !bytes.ContainsAny(mantissa, "123456789")
}

// sumOfDecimals is sum for numbers of which at least one is not an integer.
func sumOfDecimals(a, b []byte) (text []byte, detail string) {
	x, ok := parseDecimal(a)
	if !ok {
		return nil, fmt.Sprintf("%.60s has more than %d digits", a, maxDigits)
	}
	y, ok := parseDecimal(b)
	if !ok {
		return nil, fmt.Sprintf("%.60s has more than %d digits", b, maxDigits)
	}
	// Align the decimal points, and add the digits.
	decimals := max(x.decimals, y.decimals)
	x.scaleTo(decimals)
	y.scaleTo(decimals)
	x.digits.Add(&x.digits, &y.digits)

	text = x.append(nil)
	if _, err := strconv.ParseFloat(string(text), 64); err != nil {
		return nil, fmt.Sprintf("%.60s + %.60s is beyond the range of a float64", a, b)
	}
	return text, ""
}

// small is the number digits / 10^decimals. Most numbers fit in one.
type small struct {
	digits   int64
	decimals int
}

// maxSmallDigits is the greatest number of digits of a small: the sum of two fits
// in an int64.
const maxSmallDigits = 18

// parseSmall parses a JSON number. It is not ok if the number has an exponent or
// too many digits.
func parseSmall(number []byte) (s small, ok bool) {
	if len(number) > maxSmallDigits {
		return s, false
	}
	point := len(number)
	for i, c := range number {
		switch {
		case '0' <= c && c <= '9':
			s.digits = s.digits*10 + int64(c-'0')
		case c == '.':
			point = i + 1
		case c != '-':
			return s, false
		}
	}
	if s.decimals = len(number) - point; number[0] == '-' {
		s.digits = -s.digits
	}
	return s, true
}

// appendSmallSum appends the sum of a and b. It returns false if scaling one of
// them to the decimals of the other could overflow.
func appendSmallSum(dst []byte, a, b small) ([]byte, bool) {
	if a.decimals > b.decimals {
		a, b = b, a
	}
	const limit = 1e17
	for ; a.decimals < b.decimals; a.decimals++ {
		if a.digits > limit || a.digits < -limit {
			return nil, false
		}
		a.digits *= 10
	}
	digits := a.digits + b.digits
	if digits < 0 {
		dst, digits = append(dst, '-'), -digits
	}
	start := len(dst)
	dst = strconv.AppendInt(dst, digits, 10)
	if b.decimals == 0 {
		return dst, true
	}
	for len(dst)-start <= b.decimals { // pad with zeros: a digit must precede the point
		dst = append(dst, 0)
		copy(dst[start+1:], dst[start:])
		dst[start] = '0'
	}
	dst = append(dst, 0) // shift the decimals by one byte for the point
	point := len(dst) - 1 - b.decimals
	copy(dst[point+1:], dst[point:])
	dst[point] = '.'
	return dst, true
}

// decimal is the number digits / 10^decimals.
type decimal struct {
	digits   big.Int
	decimals int // not negative
}

// parseDecimal parses a JSON number. It is not ok if the number, written without an
// exponent, would exceed maxDigits.
func parseDecimal(number []byte) (d decimal, ok bool) {
	mantissa, exponent, ok := cutExponent(number)
	if !ok || len(mantissa) > maxDigits {
		return d, false
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	if _, ok := d.digits.SetString(string(whole)+string(fraction), 10); !ok {
		return d, false
	}
	if d.digits.Sign() == 0 {
		exponent = 0
	}
	if exponent < -maxDigits || exponent > maxDigits {
		return d, false
	}
	if d.decimals = len(fraction) - int(exponent); d.decimals < 0 {
		d.scaleTo(0)
	}
	return d, d.decimals <= maxDigits
}

// cutExponent splits a JSON number into mantissa and exponent. It is not ok if the
// exponent has more than 18 digits.
func cutExponent(number []byte) (mantissa []byte, exponent int64, ok bool) {
	i := bytes.IndexAny(number, "eE")
	if i < 0 {
		return number, 0, true
	}
	digits := bytes.TrimPrefix(number[i+1:], []byte("+"))
	negative := digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	digits = bytes.TrimLeft(digits, "0")
	if len(digits) > 18 {
		return number[:i], 0, false
	}
	for _, c := range digits {
		exponent = exponent*10 + int64(c-'0')
	}
	if negative {
		exponent = -exponent
	}
	return number[:i], exponent, true
}

// scaleTo raises the number of decimals of d without changing its value.
func (d *decimal) scaleTo(decimals int) {
	if n := decimals - d.decimals; n > 0 {
		d.digits.Mul(&d.digits, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil))
	}
	d.decimals = decimals
}

// append appends d without an exponent.
func (d *decimal) append(dst []byte) []byte {
	text := d.digits.Append(nil, 10)
	if text[0] == '-' {
		dst, text = append(dst, '-'), text[1:]
	}
	if d.decimals == 0 {
		return append(dst, text...)
	}
	if missing := d.decimals + 1 - len(text); missing > 0 {
		text = append(bytes.Repeat([]byte("0"), missing), text...)
	}
	point := len(text) - d.decimals
	dst = append(dst, text[:point]...)
	dst = append(dst, '.')
	return append(dst, text[point:]...)
}

// sameNumber reports whether two JSON numbers have the same exact value.
// Exponents of more than 18 digits are compared as text.
func sameNumber(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if isZero(a) || isZero(b) {
		return isZero(a) && isZero(b)
	}
	if isInteger(a) && isInteger(b) { // without leading zeros, so that other text is another number
		return false
	}
	digitsA, exponentA, okA := normalized(a)
	digitsB, exponentB, okB := normalized(b)
	return okA && okB && exponentA == exponentB && (a[0] == '-') == (b[0] == '-') && bytes.Equal(digitsA, digitsB)
}

// normalized returns the magnitude of a number other than zero as 0.digits ×
// 10^exponent, the digits without leading and trailing zeros. Equal numbers have
// equal digits and exponents.
func normalized(number []byte) (digits []byte, exponent int64, ok bool) {
	mantissa, exponent, ok := cutExponent(bytes.TrimPrefix(number, []byte("-")))
	whole, fraction, found := bytes.Cut(mantissa, []byte("."))
	digits = whole
	if found {
		digits = append(append(make([]byte, 0, len(mantissa)), whole...), fraction...)
	}
	exponent += int64(len(whole))
	significant := bytes.TrimLeft(digits, "0")
	exponent -= int64(len(digits) - len(significant))
	return bytes.TrimRight(significant, "0"), exponent, ok
}
