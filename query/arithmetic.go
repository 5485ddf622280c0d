package query

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
)

// maxDigits is the greatest number of digits of a number that an expression computes, leading and trailing
// zeros between the first digit and the point included: 1e2000 + 1 has 2,001. It bounds the work of a step.
const maxDigits = 1000

// quotientDigits is the number of digits of a quotient, as that of a mean.
const quotientDigits = avgDigits

// exact is a number in an expression: units / 10^scale, where scale may be negative.
type exact struct {
	units *big.Int
	scale int64
}

// exactOf returns a JSON number. It fails for one with more than maxDigits digits.
func exactOf(raw []byte) (exact, error) {
	if n, small := smallInt(raw); small {
		return exact{units: big.NewInt(n)}, nil
	}
	n := parseNumber(raw)
	if n.beyond {
		return exact{}, errBeyond(raw)
	}
	if err := checkDigits(int64(n.len())); err != nil {
		return exact{}, err
	}
	units, ok := new(big.Int).SetString(string(n.head)+string(n.tail)+"0", 10)
	if !ok {
		return exact{}, fmt.Errorf("%w: %.60s", ErrNumber, raw)
	}
	if n.neg {
		units.Neg(units)
	}
	return exact{units, int64(n.len()) - n.exp + 1}, nil
}

func checkDigits(n int64) error {
	if n > maxDigits {
		return &LimitError{"digits of a number", maxDigits, int(n)}
	}
	return nil
}

// digitsOf returns about how many decimal digits n has, at most one too many.
func digitsOf(n *big.Int) int64 { return int64(n.BitLen())*30103/100000 + 1 }

// value returns the number as it is written in documents, or an error for one with too many digits.
func (x exact) value() (Value, error) {
	if err := checkDigits(digitsOf(x.units) - 1); err != nil { // it is one too many at the most
		return Value{}, err
	}
	if x.scale > MaxExponent || x.scale < -MaxExponent {
		return Value{}, fmt.Errorf("%w: its exponent is beyond %d", ErrNumber, MaxExponent)
	}
	return decimal(x.units, -x.scale), nil
}

// aligned returns the units of two numbers with the same number of decimals.
func aligned(x, y exact) (a, b *big.Int, scale int64, err error) {
	scale = max(x.scale, y.scale)
	raise := func(n exact) *big.Int {
		by := scale - n.scale
		if n.units.Sign() == 0 || by == 0 {
			return n.units
		}
		if e := checkDigits(by + digitsOf(n.units) - 1); e != nil {
			err = e
			return n.units
		}
		return new(big.Int).Mul(n.units, powerOfTen(by))
	}
	return raise(x), raise(y), scale, err
}

var errZero = errors.New("a division by zero")

// arithmetic computes x op y, where op is + - * / or %. A sum, a difference and a product are exact. A quotient
// has quotientDigits digits, half to even. A remainder is exact, and has the sign of x.
func arithmetic(op byte, x, y exact) (exact, error) {
	switch op {
	case '*':
		if err := checkDigits(digitsOf(x.units) + digitsOf(y.units) - 2); err != nil {
			return exact{}, err
		}
		return exact{new(big.Int).Mul(x.units, y.units), x.scale + y.scale}, nil
	case '/':
		return quotient(x, y)
	}
	a, b, scale, err := aligned(x, y)
	if err != nil {
		return exact{}, err
	}
	switch op {
	case '+':
		return exact{new(big.Int).Add(a, b), scale}, nil
	case '-':
		return exact{new(big.Int).Sub(a, b), scale}, nil
	}
	if b.Sign() == 0 {
		return exact{}, errZero
	}
	return exact{new(big.Int).Rem(a, b), scale}, nil
}

// quotient returns x / y, rounded.
func quotient(x, y exact) (exact, error) {
	if y.units.Sign() == 0 {
		return exact{}, errZero
	}
	l := leading{units: new(big.Int).Set(x.units), exp: y.scale - x.scale}
	by := new(big.Int).Set(y.units)
	if by.Sign() < 0 {
		by.Neg(by)
		l.units.Neg(l.units)
	}
	// At least one digit more than the result has: what is cut off decides how to round.
	if n := quotientDigits + 2 - digitsOf(l.units) + digitsOf(by); n > 0 {
		l.shift(n)
	}
	return exactOf(l.round(quotientDigits, by).raw)
}

// rounded returns x with so many decimals, where a negative number of them rounds to tens. How is how: 0 half away
// from zero, -1 down, towards negative numbers, and 1 up.
func (x exact) rounded(decimals int64, how int) exact {
	if x.scale <= decimals {
		return x
	}
	if x.scale-decimals > digitsOf(x.units)+1 { // far below the last digit that is kept
		x.units, x.scale = big.NewInt(int64(x.units.Sign())), decimals+2
	}
	unit := powerOfTen(x.scale - decimals)
	q, rest := new(big.Int).QuoRem(x.units, unit, new(big.Int))
	sign := int64(x.units.Sign())
	switch {
	case rest.Sign() == 0:
	case how == 0:
		if rest.Abs(rest).Lsh(rest, 1).Cmp(unit) >= 0 {
			q.Add(q, big.NewInt(sign))
		}
	case int64(how) == sign:
		q.Add(q, big.NewInt(sign))
	}
	return exact{q, decimals}
}

// avgDigits is the number of digits of a mean.
const avgDigits = 17

// manyPowers is how many powers of ten are at hand: those of a window of a total.
const manyPowers = 100

// lowPowers are the powers of ten from 1 to 10^100, which are needed most.
var lowPowers = func() (powers [manyPowers + 1]*big.Int) {
	powers[0] = big.NewInt(1)
	for i := range manyPowers {
		powers[i+1] = new(big.Int).Mul(powers[i], big.NewInt(10))
	}
	return powers
}()

// powerOfTen returns 10^n. The caller must not change it.
func powerOfTen(n int64) *big.Int {
	if n < int64(len(lowPowers)) {
		return lowPowers[n]
	}
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil)
}

// leading holds the leading digits of a sum: units × 10^exp. If rest is not 0, the
// sum differs from that by less than half of 10^exp, in the direction of the sign
// of rest.
type leading struct {
	units *big.Int
	exp   int64
	rest  int
}

// shift lowers exp by n without changing the value.
func (l *leading) shift(n int64) {
	l.units.Mul(l.units, powerOfTen(n))
	l.exp -= n
}

// round returns the value divided by count, rounded to a number of digits, half
// to even.
func (l leading) round(digits int, count *big.Int) Value {
	units := new(big.Int).Abs(l.units)
	rest := l.rest * l.units.Sign() // relative to |units|: +1 away from zero, -1 towards it
	quotient, remainder := units.QuoRem(units, count, new(big.Int))
	exp := l.exp
	if excess := len(quotient.String()) - digits; excess > 0 {
		unit := powerOfTen(int64(excess))
		cut := new(big.Int)
		quotient.QuoRem(quotient, unit, cut)
		// Compare what is cut off with one half. The remainder and the rest break
		// a tie; if both are 0, it is rounded to even.
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

// smallSum returns units / 10^scale as a value: decimal without a big.Int.
func smallSum(units int64, scale int) Value {
	var buf [20]byte
	abs := uint64(units)
	if units < 0 {
		abs = -abs
	}
	n := number{head: strconv.AppendUint(buf[:0], abs, 10), exp: -int64(scale), neg: units < 0}
	return ValueOf(n.trimmed().append(nil))
}

// decimal returns units × 10^exp as a value.
func decimal(units *big.Int, exp int64) Value {
	text := new(big.Int).Abs(units).String()
	n := number{head: []byte(text), exp: exp, neg: units.Sign() < 0}
	return ValueOf(n.trimmed().append(nil))
}
