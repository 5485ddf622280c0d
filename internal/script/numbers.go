package script

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// isSpace reports whether JavaScript counts a character as a blank or the end of a line. Those of Go differ in two.
func isSpace(c rune) bool {
	switch c {
	case '\t', '\n', '\v', '\f', '\r', ' ', 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff:
		return true
	}
	return c >= 0x2000 && c <= 0x200a
}

// numberText returns a number as JavaScript spells it.
func numberText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case f == 0:
		return "0"
	case math.Abs(f) < 1e21 && math.Abs(f) >= 1e-6:
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	text := strconv.FormatFloat(f, 'e', -1, 64)
	text = strings.Replace(text, "e-0", "e-", 1)
	return strings.Replace(text, "e+0", "e+", 1)
}

// integer returns a value as an int64, if it is one.
func integer(v value) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case json.Number:
		if len(v) > maxNumberBytes {
			return 0, false
		}
		n, err := strconv.ParseInt(string(v), 10, 64)
		return n, err == nil
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case nil:
		return 0, true
	}
	return 0, false
}

// maxNumberBytes bounds the digits of a number in calculations, for which no steps are
// counted. A longer one can be stored as it is, but is NaN in calculations.
const maxNumberBytes = 1024

// number converts a value to a number.
func number(v value) float64 {
	switch v := v.(type) {
	case nil:
		return 0
	case bool:
		if v {
			return 1
		}
		return 0
	case int64:
		return float64(v)
	case float64:
		return v
	case *date:
		return v.milliseconds()
	case json.Number:
		if len(v) > maxNumberBytes {
			return math.NaN()
		}
		f, _ := strconv.ParseFloat(string(v), 64) // too large a number is infinite
		return f
	case string:
		return numberOfText(v)
	case *array:
		return numberOfArray(v)
	}
	return math.NaN()
}

// numberOfText returns the number that a whole text spells, in decimal, or in another base with a prefix.
func numberOfText(text string) float64 {
	if len(text) > maxNumberBytes {
		return math.NaN()
	}
	text = strings.TrimFunc(text, isSpace)
	if text == "" {
		return 0
	}
	if len(text) > 2 && text[0] == '0' {
		if base := map[byte]int{'x': 16, 'X': 16, 'o': 8, 'O': 8, 'b': 2, 'B': 2}[text[1]]; base != 0 {
			if digits := digitsOf(text[2:], base); digits < len(text)-2 {
				return math.NaN()
			}
			return wholeNumber(text[2:], base)
		}
	}
	if n := decimal(text); n < len(text) {
		return math.NaN()
	}
	return decimalNumber(text)
}

// numberOfArray returns the number of an array, which is that of its text: an empty one is 0, and one with a single number
// or text is that one.
func numberOfArray(a *array) float64 {
	for range maxNesting {
		switch len(a.elements) {
		case 0:
			return 0
		case 1:
		default:
			return math.NaN()
		}
		switch one := a.elements[0].(type) {
		case nil, undefinedType:
			return 0
		case json.Number, int64, float64, string:
			return number(one)
		case *array:
			a = one
		default:
			return math.NaN()
		}
	}
	return math.NaN()
}

// decimal returns how many bytes at the beginning of a text spell a decimal number, or Infinity.
func decimal(text string) int {
	i := 0
	if i < len(text) && (text[i] == '-' || text[i] == '+') {
		i++
	}
	if strings.HasPrefix(text[i:], "Infinity") {
		return i + len("Infinity")
	}
	digits := digitsOf(text[i:], 10)
	i += digits
	if i < len(text) && text[i] == '.' {
		more := digitsOf(text[i+1:], 10)
		if digits += more; digits > 0 {
			i += 1 + more
		}
	}
	if digits == 0 {
		return 0
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		j := i + 1
		if j < len(text) && (text[j] == '-' || text[j] == '+') {
			j++
		}
		if n := digitsOf(text[j:], 10); n > 0 {
			return j + n
		}
	}
	return i
}

// decimalNumber returns the number that a text spells of which decimal has taken all.
func decimalNumber(text string) float64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(f, 0) {
		return math.NaN() // no digits
	}
	return f
}

// digitsOf returns how many bytes at the beginning of a text are digits in a base.
func digitsOf(text string, base int) int {
	for i := range len(text) {
		c, digit := text[i], 99
		switch {
		case c >= '0' && c <= '9':
			digit = int(c - '0')
		case c >= 'a' && c <= 'z':
			digit = int(c-'a') + 10
		case c >= 'A' && c <= 'Z':
			digit = int(c-'A') + 10
		}
		if digit >= base {
			return i
		}
	}
	return len(text)
}

// wholeNumber returns the number of digits in a base.
func wholeNumber(digits string, base int) float64 {
	if digits = strings.TrimLeft(digits, "0"); digits == "" {
		return 0
	}
	if n, err := strconv.ParseUint(digits, base, 64); err == nil {
		return float64(n)
	}
	if len(digits) > maxNumberBytes { // more than 2 to the power of 1024
		return math.Inf(1)
	}
	n, _ := new(big.Int).SetString(digits, base)
	f, _ := new(big.Float).SetInt(n).Float64()
	return f
}

// numeral returns the text that a function is given to read a number from, without the space before it.
func numeral(r *run, place int, args []value) (string, error) {
	text, err := r.text(arg(args, 0))
	if err == nil {
		err = r.steps(place, int64(len(text))/64)
	}
	return strings.TrimLeftFunc(text, isSpace), err
}

// parseInt returns the whole number at the beginning of a text.
func parseInt(r *run, place int, args []value) (value, error) {
	text, err := numeral(r, place, args)
	if err != nil {
		return nil, err
	}
	minus := strings.HasPrefix(text, "-")
	if minus || strings.HasPrefix(text, "+") {
		text = text[1:]
	}
	base := int(int32(toUint32(number(arg(args, 1)))))
	if (base == 0 || base == 16) && len(text) > 1 && text[0] == '0' && text[1]|' ' == 'x' {
		text, base = text[2:], 16
	}
	if base == 0 {
		base = 10
	}
	if base < 2 || base > 36 {
		return math.NaN(), nil
	}
	n := digitsOf(text, base)
	if n == 0 {
		return math.NaN(), nil
	}
	f := wholeNumber(text[:n], base)
	if base == 10 && n <= maxNumberBytes {
		f = decimalNumber(text[:n])
	}
	if minus {
		f = -f
	}
	return tidy(f), nil
}

// parseFloat returns the decimal number at the beginning of a text.
func parseFloat(r *run, place int, args []value) (value, error) {
	text, err := numeral(r, place, args)
	if err != nil {
		return nil, err
	}
	n := decimal(text)
	if n > maxNumberBytes {
		return nil, fail(place, "parseFloat: the number has %d characters, of %d at most", n, maxNumberBytes)
	}
	return tidy(decimalNumber(text[:n])), nil
}

// toUint32 returns what is left of a number without what exceeds 32 bits.
func toUint32(f float64) uint32 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return uint32(int64(math.Mod(math.Trunc(f), 1<<32)))
}

// numberToString is toString of numbers, which takes a base.
func numberToString(r *run, place int, this value, args []value) (value, error) {
	base := 10
	if v := arg(args, 0); v != undefined {
		f := number(v)
		if base = int(f); !(f >= 2 && f < 37) {
			return nil, fail(place, "toString needs a base of 2 to 36")
		}
	}
	if base == 10 {
		return r.text(this)
	}
	if n, is := integer(this); is {
		return strconv.FormatInt(n, base), nil
	}
	f := number(this)
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatInt(int64(f), base), nil
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return numberText(f), nil
	}
	return nil, &Error{place: place, Message: "toString of a fraction in another base is not there", Missing: true}
}

// toFixed is that of numbers.
func toFixed(r *run, place int, this value, args []value) (value, error) {
	f, n := number(this), argInt(args, 0, 0)
	switch {
	case n < 0 || n > 100:
		return nil, fail(place, "toFixed needs 0 to 100 digits")
	case math.IsNaN(f) || math.Abs(f) >= 1e21:
		return numberText(f), nil
	}
	if err := r.steps(place, 32); err != nil {
		return nil, err
	}
	if whole, is := integer(this); is {
		text := strconv.FormatInt(whole, 10)
		if n > 0 {
			text += "." + strings.Repeat("0", n)
		}
		return text, nil
	}
	exact := strconv.FormatFloat(math.Abs(f), 'f', 1074, 64) // all digits that a number can have
	text := roundHalfUp(exact, n)
	if f < 0 {
		text = "-" + text
	}
	return text, nil
}

// roundHalfUp rounds a decimal number with a point, and more than n digits after it, to n digits. Halves go up, where Go's
// go to the even digit.
func roundHalfUp(exact string, n int) string {
	point := strings.IndexByte(exact, '.')
	digits := []byte(exact[:point] + exact[point+1:])
	end := point + n
	up := digits[end] >= '5'
	digits = digits[:end]
	for i := end - 1; up && i >= 0; i-- {
		if up = digits[i] == '9'; up {
			digits[i] = '0'
		} else {
			digits[i]++
		}
	}
	if up {
		digits, point = append([]byte{'1'}, digits...), point+1
	}
	if n == 0 {
		return string(digits)
	}
	return string(digits[:point]) + "." + string(digits[point:])
}

// tidy returns a whole number as an int64, and other numbers unchanged.
func tidy(f float64) value {
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 && !(f == 0 && math.Signbit(f)) {
		return int64(f)
	}
	return f
}

// rounding returns a function that rounds a number, and leaves integers as they are.
func rounding(fn func(x float64) float64) *function {
	return native(func(_ *run, _ int, args []value) (value, error) {
		if n, is := integer(arg(args, 0)); is {
			return n, nil
		}
		return tidy(fn(number(arg(args, 0)))), nil
	})
}

// round returns the whole number that is next, and of two the greater one.
func round(x float64) float64 {
	low := math.Floor(x)
	if x-low < 0.5 {
		return low
	}
	return math.Copysign(low+1, x) // -0.5 becomes -0
}

// power is math.Pow but for a base of 1 or -1 with no finite exponent, which is NaN.
func power(x, y float64) float64 {
	if math.Abs(x) == 1 && (math.IsNaN(y) || math.IsInf(y, 0)) {
		return math.NaN()
	}
	if n := int(y); x == 10 && float64(n) == y {
		return math.Pow10(n) // exact where math.Pow is not
	}
	return math.Pow(x, y)
}

// sign returns 1, -1, or a number that is neither more nor less than 0.
func sign(_ *run, _ int, args []value) (value, error) {
	f := number(arg(args, 0))
	switch {
	case f > 0:
		return int64(1), nil
	case f < 0:
		return int64(-1), nil
	}
	return tidy(f), nil
}

func absolute(_ *run, _ int, args []value) (value, error) {
	if n, is := integer(arg(args, 0)); is && n != math.MinInt64 {
		return max(n, -n), nil
	}
	return tidy(math.Abs(number(arg(args, 0)))), nil
}

// better is Raven_Max or Raven_Min, with which RavenDB's client for .NET writes Max and Min of a list: the
// better one of two values, which may be texts. A missing one is worse than any other.
func better(operator string) *function {
	return native(func(r *run, place int, args []value) (value, error) {
		a, b := arg(args, 0), arg(args, 1)
		switch {
		case a == nil || a == undefined:
			return b, nil
		case b == nil || b == undefined:
			return a, nil
		}
		is, err := r.compare(place, operator, b, a)
		if err == nil && truth(is) {
			a = b
		}
		return a, err
	})
}

// best returns Math.min or Math.max.
func best(operator string, none float64) *function {
	return native(func(r *run, place int, args []value) (value, error) {
		var found value = none
		for i, v := range args {
			if !isNumber(v) {
				v = tidy(number(v))
			}
			f := number(v)
			if math.IsNaN(f) {
				found = f
			}
			if math.IsNaN(number(found)) {
				continue
			}
			better, err := r.compare(place, operator, v, found)
			if err != nil {
				return nil, err
			}
			if f == 0 && number(found) == 0 { // -0 is less than 0
				better = math.Signbit(f) == (operator == "<")
			}
			if i == 0 || better == true {
				found = v
			}
		}
		return found, nil
	})
}
