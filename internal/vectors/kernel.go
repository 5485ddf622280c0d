package vectors

// wideStep is how many numbers wide takes at once.
const wideStep = 32

// dot returns the sum of the products of numbers of up to maxSight and of those of a code, which has as many: vector.MaxDimensions at most, so the sum fits into
// an int32. Whichever way computes it, it is the same.
func dot(q []int16, c []byte) (sum int32) {
	c = c[:len(q)]
	if useWide && len(q) >= wideStep {
		whole := len(q) - len(q)%wideStep
		sum = wide(&q[0], &c[0], whole)
		q, c = q[whole:], c[whole:]
	}
	return sum + dotPlain(q, c)
}

// dotPlain is dot in Go.
func dotPlain(q []int16, c []byte) int32 {
	var s0, s1, s2, s3 int32
	for len(q) >= 8 && len(c) >= 8 {
		s0 += int32(q[0])*int32(int8(c[0])) + int32(q[4])*int32(int8(c[4]))
		s1 += int32(q[1])*int32(int8(c[1])) + int32(q[5])*int32(int8(c[5]))
		s2 += int32(q[2])*int32(int8(c[2])) + int32(q[6])*int32(int8(c[6]))
		s3 += int32(q[3])*int32(int8(c[3])) + int32(q[7])*int32(int8(c[7]))
		q, c = q[8:], c[8:]
	}
	for i := range min(len(q), len(c)) {
		s0 += int32(q[i]) * int32(int8(c[i]))
	}
	return s0 + s1 + s2 + s3
}
