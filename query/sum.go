package query

import "math/big"

// maxSumDigits bounds the digits of a sum on either side of the decimal
// point, as 1e999999999 + 1 would have a billion.
const maxSumDigits = 10_000

// avgDigits is the number of digits of a mean.
const avgDigits = 17

// total is an exact sum of numbers. The zero total is 0, of no numbers.
type total struct {
	count int64
	small int64    // the sum × 10^scale, unless large is there
	large *big.Int // the sum × 10^scale
	scale int      // digits behind the point
}

// add adds a JSON number.
func (t *total) add(raw []byte) error {
	t.count++
	if n, small := smallInt(raw); small {
		t.addSmall(n, 0)
		return nil
	}

	n := parseNumber(raw)
	scale := int64(n.len()) - n.exp // digits behind the point; below 0, zeros before it
	if n.exp > maxSumDigits || scale > maxSumDigits {
		return &LimitError{"digits of a sum", maxSumDigits, int(max(n.exp, scale))}
	}
	if zeros := max(-scale, 0); int64(n.len())+zeros <= 18 {
		t.addSmall(n.units(int(zeros)), int(max(scale, 0)))
		return nil
	}

	text := append(append([]byte(nil), n.head...), n.tail...)
	units, _ := new(big.Int).SetString(string(appendZeros(text, max(-scale, 0))), 10)
	if n.neg {
		units.Neg(units)
	}
	t.addLarge(units, int(max(scale, 0)))
	return nil
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
func (t *total) addSmall(units int64, scale int) {
	if t.large == nil {
		a, fits := shift(t.small, scale-t.scale)
		b, fitsToo := shift(units, t.scale-scale)
		if sum := a + b; fits && fitsToo && (sum > a) == (b > 0) {
			t.small, t.scale = sum, max(t.scale, scale)
			return
		}
	}
	t.addLarge(big.NewInt(units), scale)
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

func (t *total) addLarge(units *big.Int, scale int) {
	if t.large == nil {
		t.large = big.NewInt(t.small)
	}
	if scale > t.scale {
		t.large.Mul(t.large, powerOfTen(scale-t.scale))
		t.scale = scale
	} else if scale < t.scale {
		units.Mul(units, powerOfTen(t.scale-scale))
	}
	t.large.Add(t.large, units)
}

func powerOfTen(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// units returns the sum × 10^scale.
func (t *total) units() *big.Int {
	if t.large == nil {
		return big.NewInt(t.small)
	}
	return new(big.Int).Set(t.large)
}

// sum returns the sum, 0 of no numbers.
func (t *total) sum() Value { return decimal(t.units(), t.scale) }

// mean returns the sum divided by the count, to avgDigits digits, half to
// even; null of no numbers.
func (t *total) mean() Value {
	if t.count == 0 {
		return null
	}
	units, count := t.units(), big.NewInt(t.count)
	negative := units.Sign() < 0
	units.Abs(units)

	// The quotient has more digits than are wanted, so that what is cut off,
	// with the remainder, tells how to round.
	shift := max(0, avgDigits+1-len(units.String())+len(count.String()))
	quotient, remainder := units.Mul(units, powerOfTen(shift)).QuoRem(units, count, new(big.Int))
	scale := t.scale + shift
	if excess := len(quotient.String()) - avgDigits; excess > 0 {
		unit := powerOfTen(excess)
		cut := new(big.Int)
		quotient.QuoRem(quotient, unit, cut)
		half := cut.Lsh(cut, 1).Cmp(unit)
		if half > 0 || half == 0 && (remainder.Sign() > 0 || quotient.Bit(0) == 1) {
			quotient.Add(quotient, big.NewInt(1))
		}
		scale -= excess
	}
	if negative {
		quotient.Neg(quotient)
	}
	return decimal(quotient, scale)
}

// decimal returns units / 10^scale as a value.
func decimal(units *big.Int, scale int) Value {
	text := new(big.Int).Abs(units).String()
	n := number{head: []byte(text), exp: -int64(scale), neg: units.Sign() < 0}
	return ValueOf(n.normal().append(nil))
}
