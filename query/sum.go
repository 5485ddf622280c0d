package query

import (
	"maps"
	"math/big"
	"slices"
)

// maxSumDigits is the greatest number of digits of a sum. A longer sum is rounded
// to so many, half to even: 1e999999999 + 1 would have a billion.
const maxSumDigits = 20_000

// windowDigits is the number of decimal digits of a window of a total.
const windowDigits = manyPowers

// total is an exact sum of numbers, whatever their magnitudes. The zero total is
// the sum of no numbers, 0.
//
// Nearly all numbers have few digits and are summed in small. Other numbers are
// split into windows of 100 digits each, at fixed positions. The sum is
//
//	small / 10^scale  +  the sum of  windows[key] × 10^(100 × key)  over all keys
//
// A window may be negative or, until carry is called, have more than 100 digits.
// The map has only windows that numbers have touched, so that 1e999999999 takes
// no more memory than 1.
type total struct {
	count   int64
	small   int64
	scale   int // number of decimals of small
	windows map[int64]*big.Int
}

// Memory of a window in bytes, estimated: of the window, and of each word of its
// big.Int.
const (
	windowBytes = 120
	wordBytes   = 8
)

// add adds a JSON number and returns by how many bytes the memory of t has grown.
// It returns ErrNumber, and adds nothing, for a number beyond MaxExponent, which
// only documents of older versions can hold.
func (t *total) add(raw []byte) (grown int, err error) {
	if n, small := smallInt(raw); small {
		t.count++
		return t.addSmall(n, 0), nil
	}
	if n, pairs, small := smallDecimal(raw); small {
		t.count++
		return t.addSmall(n, 2*pairs), nil
	}
	n := parseNumber(raw)
	if n.beyond {
		return 0, errBeyond(raw)
	}
	t.count++
	scale := int64(n.len()) - n.exp // number of decimals; if negative, of trailing zeros
	zeros := max(-scale, 0)
	if int64(n.len())+zeros <= 18 && scale <= 18 {
		return t.addSmall(n.units(int(zeros)), int(max(scale, 0))), nil
	}
	return t.addDigits(n), nil
}

// units returns the digits of n, followed by zeros, as an integer of at most 18
// digits.
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
	// Bring both to the greater scale; a negative shift leaves a number as it is.
	a, fits := shift(t.small, scale-t.scale)
	b, fitsToo := shift(units, t.scale-scale)
	if sum := a + b; fits && fitsToo && (sum > a) == (b > 0) {
		t.small, t.scale = sum, max(t.scale, scale)
		return 0
	}
	// It overflows: move small into its window, and begin a new one.
	grown = t.addUnits(big.NewInt(t.small), -int64(t.scale))
	t.small, t.scale = units, scale
	return grown
}

// shift returns n × 10^by, or n if by is negative. Fits is false if that
// overflows.
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

// addDigits adds a number to the windows of its digits.
func (t *total) addDigits(n number) (grown int) {
	digits := n.head
	if len(n.tail) > 0 {
		digits = slices.Concat(n.head, n.tail)
	}
	exp := n.exp - int64(len(digits)) // of the last digit
	for len(digits) > 0 {
		// From the last digit on, the digits that lie in one window.
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

// windowOf returns the key of the window of the digit with value 10^exp: exp
// divided by windowDigits, rounded down.
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

// leading returns the leading digits of the sum. They are all its digits unless
// it has more than maxSumDigits.
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
	// Join the windows from the highest on. Those more than maxSumDigits below it
	// matter only by their sign, for rounding.
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

// carry normalises the windows, from the lowest up: it reduces each to the range
// of ±1/2 of the unit of the window above it, and adds the rest to that window.
// Then the highest window that is not zero has the sign of the sum, and all
// windows below a window together are at most about half of its unit. It returns
// the keys of the windows that are not zero, highest first.
func (t *total) carry() []int64 {
	unit := powerOfTen(windowDigits)
	half := new(big.Int).Rsh(unit, 1)
	keys := slices.Sorted(maps.Keys(t.windows))
	var left []int64
	for i := 0; i < len(keys); i++ {
		key := keys[i]
		w := t.windows[key]
		up := new(big.Int) // w + half = up × unit + remainder, and w becomes remainder - half
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

// sum returns the sum; 0 for no numbers.
func (t *total) sum() Value {
	if len(t.windows) == 0 {
		return smallSum(t.small, t.scale)
	}
	return t.leading().round(maxSumDigits, big.NewInt(1))
}

// mean returns the sum divided by the count, rounded to avgDigits digits, half to
// even; null for no numbers.
func (t *total) mean() Value {
	if t.count == 0 {
		return null
	}
	l, count := t.leading(), big.NewInt(t.count)
	// Make the quotient at least one digit longer than the result: the digits that
	// are cut off, and the remainder, decide how to round.
	if n := avgDigits + 1 - len(new(big.Int).Abs(l.units).String()) + len(count.String()); n > 0 {
		l.shift(int64(n))
	}
	return l.round(avgDigits, count)
}

// merge adds the sum of another total, which stays as it is, and returns by how many bytes the memory of t has grown.
func (t *total) merge(other *total) (grown int) {
	t.count += other.count
	grown = t.addSmall(other.small, other.scale)
	for key, w := range other.windows {
		grown += t.addUnits(new(big.Int).Set(w), key*windowDigits)
	}
	return grown
}
