package query

import (
	"maps"
	"math/big"
	"slices"
)

// maxSumDigits is the most digits of a sum. One that has more, as 1e999999999 +
// 1 has a billion, is rounded to so many, half to even.
const maxSumDigits = 20_000

// avgDigits is the number of digits of a mean.
const avgDigits = 17

// windowDigits is the number of digits that a window of a total is apart from
// the next.
const windowDigits = 100

// total is an exact sum of numbers, however far apart their digits are. The
// zero total is 0, of no numbers.
//
// Nearly all numbers have few digits, and are summed in small. What does not
// fit is summed in windows of 100 digits each: the sum is small / 10^scale, and
// of each window its value × 10^(100 × its key). A window may be below zero, or
// have more than 100 digits. There are no windows between those of the digits
// that came, so that 1e999999999 takes no more memory than 1.
type total struct {
	count   int64
	small   int64
	scale   int // of small: its digits behind the point
	windows map[int64]*big.Int
}

// Bytes that a window takes, about: of itself, and of a word of its number.
const (
	windowBytes = 120
	wordBytes   = 8
)

// add adds a JSON number, and returns by how many bytes the memory of t grew.
// It returns ErrNumber, and adds nothing, for one beyond MaxExponent, which only
// documents of older versions can have.
func (t *total) add(raw []byte) (grown int, err error) {
	if n, small := smallInt(raw); small {
		t.count++
		return t.addSmall(n, 0), nil
	}
	n := parseNumber(raw)
	if n.beyond {
		return 0, errBeyond(raw)
	}
	t.count++
	scale := int64(n.len()) - n.exp // digits behind the point; below 0, zeros before it
	zeros := max(-scale, 0)
	if int64(n.len())+zeros <= 18 && scale <= 18 {
		return t.addSmall(n.units(int(zeros)), int(max(scale, 0))), nil
	}
	return t.addDigits(n), nil
}

// units returns the digits of n as a whole number, with zeros behind them:
// both together at most 18.
func (n number) units(zeros int) int64 {
	var units int64
	for i := range n.len() + zeros {
		units = units*10 + int64(n.at(i))
	}
	if n.neg {
		return -units
	}
	return units
}

// addSmall adds units / 10^scale.
func (t *total) addSmall(units int64, scale int) (grown int) {
	a, fits := shift(t.small, scale-t.scale)
	b, fitsToo := shift(units, t.scale-scale)
	if sum := a + b; fits && fitsToo && (sum > a) == (b > 0) {
		t.small, t.scale = sum, max(t.scale, scale)
		return 0
	}
	grown = t.addUnits(big.NewInt(t.small), -int64(t.scale))
	t.small, t.scale = units, scale
	return grown
}

// shift returns n × 10^by, or n if by is below 0, and whether that fits.
func shift(n int64, by int) (shifted int64, fits bool) {
	for ; by > 0 && n != 0; by-- {
		next := n * 10
		if next/10 != n {
			return 0, false
		}
		n = next
	}
	return n, true
}

// addDigits adds a number to the windows that its digits are in.
func (t *total) addDigits(n number) (grown int) {
	digits := n.head
	if len(n.tail) > 0 {
		digits = slices.Concat(n.head, n.tail)
	}
	exp := n.exp - int64(len(digits)) // of the last digit
	for len(digits) > 0 {
		// As many digits as end in one window, from the last on.
		in := int(windowDigits - (exp - windowOf(exp)*windowDigits))
		part := digits[max(0, len(digits)-in):]
		digits = digits[:len(digits)-len(part)]
		units, _ := new(big.Int).SetString(string(part), 10)
		if n.neg {
			units.Neg(units)
		}
		grown += t.addUnits(units, exp)
		exp += int64(len(part))
	}
	return grown
}

// windowOf returns the key of the window in which a digit is.
func windowOf(exp int64) int64 {
	if exp < 0 {
		return -((-exp + windowDigits - 1) / windowDigits)
	}
	return exp / windowDigits
}

// addUnits adds units × 10^exp to the window of exp. It may change units.
func (t *total) addUnits(units *big.Int, exp int64) (grown int) {
	if units.Sign() == 0 {
		return 0
	}
	key := windowOf(exp)
	units.Mul(units, powerOfTen(exp-key*windowDigits))
	w, found := t.windows[key]
	if !found {
		if t.windows == nil {
			t.windows = make(map[int64]*big.Int)
		}
		t.windows[key] = units
		return windowBytes + wordBytes*len(units.Bits())
	}
	before := len(w.Bits())
	w.Add(w, units)
	return wordBytes * (len(w.Bits()) - before)
}

// lowPowers are the powers of ten that are wanted most.
var lowPowers = func() (powers [windowDigits + 1]*big.Int) {
	powers[0] = big.NewInt(1)
	for i := range windowDigits {
		powers[i+1] = new(big.Int).Mul(powers[i], big.NewInt(10))
	}
	return powers
}()

// powerOfTen returns a number that must not be changed.
func powerOfTen(n int64) *big.Int {
	if n < int64(len(lowPowers)) {
		return lowPowers[n]
	}
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil)
}

// leading is the beginning of a sum: units × 10^exp and, if rest is not 0,
// something above or below zero that is less than one half of 10^exp.
type leading struct {
	units *big.Int
	exp   int64
	rest  int
}

// leading returns the beginning of the sum: all of it, unless its digits are so
// far apart that it has more than maxSumDigits.
func (t *total) leading() leading {
	if len(t.windows) == 0 {
		return leading{units: big.NewInt(t.small), exp: -int64(t.scale)}
	}
	t.addUnits(big.NewInt(t.small), -int64(t.scale))
	t.small, t.scale = 0, 0
	keys := t.carry()
	if len(keys) == 0 {
		return leading{units: new(big.Int)}
	}
	key := keys[0]
	out := leading{units: new(big.Int).Set(t.windows[key]), exp: key * windowDigits}
	for _, next := range keys[1:] {
		if (key-next)*windowDigits > maxSumDigits+3*windowDigits {
			out.rest = t.windows[next].Sign()
			out.shift(max(0, out.exp-key*windowDigits+maxSumDigits+windowDigits))
			break
		}
		out.shift(out.exp - next*windowDigits)
		out.units.Add(out.units, t.windows[next])
	}
	return out
}

// shift makes the units smaller by n digits, without changing the value.
func (l *leading) shift(n int64) {
	l.units.Mul(l.units, powerOfTen(n))
	l.exp -= n
}

// carry leaves of each window, from the lowest up, what is within half of the
// next one's unit from zero, and gives the rest to that one: the highest window
// then has the sign of the sum, and all below one are less than half of its
// unit. It returns the keys of those that are not zero, the highest first.
func (t *total) carry() []int64 {
	unit := powerOfTen(windowDigits)
	half := new(big.Int).Rsh(unit, 1)
	keys := slices.Sorted(maps.Keys(t.windows))
	var left []int64
	for i := 0; i < len(keys); i++ {
		key := keys[i]
		w := t.windows[key]
		up := new(big.Int)
		up.DivMod(new(big.Int).Add(w, half), unit, w)
		w.Sub(w, half)
		if up.Sign() != 0 {
			if i+1 == len(keys) || keys[i+1] != key+1 {
				keys = slices.Insert(keys, i+1, key+1)
				t.windows[key+1] = new(big.Int)
			}
			t.windows[key+1].Add(t.windows[key+1], up)
		}
		if w.Sign() != 0 {
			left = append(left, key)
		}
	}
	slices.Reverse(left)
	return left
}

// sum returns the sum, 0 of no numbers.
func (t *total) sum() Value {
	if len(t.windows) == 0 {
		return decimal(big.NewInt(t.small), -int64(t.scale))
	}
	return t.leading().round(maxSumDigits, big.NewInt(1))
}

// mean returns the sum divided by the count, to avgDigits digits, half to
// even; null of no numbers.
func (t *total) mean() Value {
	if t.count == 0 {
		return null
	}
	l, count := t.leading(), big.NewInt(t.count)
	// The quotient has more digits than are wanted, so that what is cut off,
	// with the remainder, tells how to round.
	if n := avgDigits + 1 - len(new(big.Int).Abs(l.units).String()) + len(count.String()); n > 0 {
		l.shift(int64(n))
	}
	return l.round(avgDigits, count)
}

// round returns the value divided by count, to a number of digits, half to
// even.
func (l leading) round(digits int, count *big.Int) Value {
	units := new(big.Int).Abs(l.units)
	rest := l.rest * l.units.Sign() // away from zero, or towards it
	quotient, remainder := units.QuoRem(units, count, new(big.Int))
	exp := l.exp
	if excess := len(quotient.String()) - digits; excess > 0 {
		unit := powerOfTen(int64(excess))
		cut := new(big.Int)
		quotient.QuoRem(quotient, unit, cut)
		half := cut.Lsh(cut, 1).Cmp(unit)
		if half == 0 {
			if half = remainder.Sign(); half == 0 {
				half = rest
			}
			if half == 0 && quotient.Bit(0) == 1 {
				half = 1
			}
		}
		if half > 0 {
			quotient.Add(quotient, big.NewInt(1))
		}
		exp += int64(excess)
	}
	if l.units.Sign() < 0 {
		quotient.Neg(quotient)
	}
	return decimal(quotient, exp)
}

// decimal returns units × 10^exp as a value.
func decimal(units *big.Int, exp int64) Value {
	text := new(big.Int).Abs(units).String()
	n := number{head: []byte(text), exp: exp, neg: units.Sign() < 0}
	return ValueOf(n.trimmed().append(nil))
}
