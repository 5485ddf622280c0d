package query

import "math/big"

// Limbs is an exact sum of numbers that an index can maintain by additions. Two Limbs are added
// limb by limb, in any order and without carrying, and a number that was added can be subtracted
// again. The sum is
//
//	Limbs[0]  +  Limbs[1] / 10⁹  +  Limbs[2] × 10⁹  +  Limbs[3] × 10¹⁸
//
// A number adds less than 10⁹ to each limb, with its own sign. So 9,000,000,000 numbers fit, whatever they are.
//
// The meaning of the limbs is part of the on-disk format. It must not change.
type Limbs [4]int64

// What a digit of a number is worth in its limb, and the limb, by its exponent from leastLimb on.
const (
	limbDigits = 9
	leastLimb  = -limbDigits    // the exponent of the last digit that has a place
	limbsEnd   = 3 * limbDigits // behind the exponent of the first one
)

// limbAt is the index of the limb of nine digits, from the least on.
var limbAt = [4]int{1, 0, 2, 3}

// unitOf is 10ⁿ.
var unitOf = [limbDigits]int64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8}

// Add adds a number. It returns false, and adds nothing, for a value that is not a number, and for
// a number with digits outside of 10²⁷ to 10⁻⁹.
func (l *Limbs) Add(v Value) bool {
	if v.kind != KindNumber {
		return false
	}
	if n, small := smallInt(v.raw); small {
		l[0] += n % 1e9
		l[2] += n / 1e9
		return true
	}
	n := parseNumber(v.raw)
	if n.beyond || n.len() > 0 && (n.exp > limbsEnd || n.exp-int64(n.len()) < leastLimb) {
		return false
	}
	for i := range n.len() {
		at := int(n.exp) - 1 - i - leastLimb // of the digit, from the least one on
		digit := int64(n.at(i)) * unitOf[at%limbDigits]
		if n.neg {
			digit = -digit
		}
		l[limbAt[at/limbDigits]] += digit
	}
	return true
}

// addLimbs adds the sum of count numbers, and returns by how many bytes the memory of t has grown.
func (t *total) addLimbs(count int64, l Limbs) (grown int) {
	t.count += count
	grown = t.addSmall(l[0], 0) + t.addSmall(l[1], limbDigits)
	return grown + t.addUnits(big.NewInt(l[2]), limbDigits) + t.addUnits(big.NewInt(l[3]), 2*limbDigits)
}
