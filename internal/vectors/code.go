package vectors

import (
	"encoding/binary"
	"math"

	"github.com/jaydb/jay/internal/vector"
)

// A code is a vector with a byte for each number:
//
//	scale(4) error(4) length(8) number...
//
// A number is about the byte, as a signed one, times the scale. The error is the length of the difference between the vector and what the code has for it, at
// least; the length is that of the vector. They are as IEEE 754 has them, big-endian. All is computed such that each processor has the same bits.
//
// Part of the on-disk format. Must not change.
const codeHead = 16

// codeSize returns how many bytes a code has.
func (k *keeper) codeSize() int { return codeHead + k.dimensions }

// appendCode appends the code of a vector.
func appendCode(dst []byte, v []float32) []byte {
	most := float32(0)
	for _, f := range v {
		most = max(most, f, -f)
	}
	scale := most / 127
	start := len(dst)
	dst = append(dst, make([]byte, codeHead)...)
	square, off := 0.0, 0.0
	for _, f := range v {
		n := int8(0)
		if scale > 0 {
			n = int8(max(-127, min(127, math.RoundToEven(float64(f)/float64(scale)))))
		}
		dst = append(dst, byte(n))
		square += float64(f) * float64(f) // exact
		d := float64(f) - float64(scale)*float64(n)
		off += float64(d * d)
	}
	head := dst[start:]
	binary.BigEndian.PutUint32(head, math.Float32bits(scale))
	binary.BigEndian.PutUint32(head[4:], math.Float32bits(float32(math.Sqrt(off)*(1+1e-6))))
	binary.BigEndian.PutUint64(head[8:], math.Float64bits(math.Sqrt(square)))
	return dst
}

// code is a code that has been read.
type code struct {
	scale, off, length float64
	numbers            []byte // signed
}

// cut returns the code in bytes of its size.
func cut(b []byte) code {
	return code{
		scale:   float64(math.Float32frombits(binary.BigEndian.Uint32(b))),
		off:     float64(math.Float32frombits(binary.BigEndian.Uint32(b[4:]))),
		length:  math.Float64frombits(binary.BigEndian.Uint64(b[8:])),
		numbers: b[codeHead:],
	}
}

// isSound reports whether a code may have been made by appendCode.
func (c *code) isSound() bool {
	return c.scale >= 0 && c.off >= 0 && c.length >= 0 && !math.IsInf(c.scale, 0) && !math.IsInf(c.off, 0) && !math.IsInf(c.length, 0)
}

// sight is a vector from which codes are looked at: its numbers are 12 bits, so that a sum of products with codes is an int32.
type sight struct {
	metric  vector.Metric
	numbers []int16
	scale   float64
	off     float64 // as in code
	length  float64
	share   float64 // of the greatest error that is reckoned with: 1 for all
}

// maxSight is the greatest number of a sight: with as many dimensions as there may be, times 127, it remains within an int32.
const maxSight = 2047

// newSight returns the sight of a vector.
func newSight(m vector.Metric, v []float32) *sight {
	most, square := 0.0, 0.0
	for _, f := range v {
		most = max(most, math.Abs(float64(f)))
		square += float64(f) * float64(f)
	}
	s := &sight{metric: m, numbers: make([]int16, len(v)), scale: most / maxSight, length: math.Sqrt(square), share: 1}
	if s.scale == 0 {
		return s
	}
	off := 0.0
	for i, f := range v {
		n := math.RoundToEven(float64(f) / s.scale)
		s.numbers[i] = int16(n)
		d := float64(f) - n*s.scale
		off += d * d
	}
	s.off = math.Sqrt(off)
	return s
}

// sightOf returns the sight of a code.
func sightOf(m vector.Metric, c *code) *sight {
	s := &sight{metric: m, numbers: make([]int16, len(c.numbers)), scale: c.scale / 16, length: c.length, share: 1}
	for i, n := range c.numbers {
		s.numbers[i] = 16 * int16(int8(n))
	}
	return s
}

// distance returns about how far the vector of a code is, and how far at least. A vector without a direction is at Inf, if the metric is Cosine.
func (s *sight) distance(c *code) (about, least float64) {
	dot := float64(dot(s.numbers, c.numbers)) * s.scale * c.scale
	off := s.share * (s.length*c.off + s.off*(c.length+c.off))
	switch s.metric {
	case vector.Dot:
		return -dot, -dot - off - rounding*s.length*c.length
	case vector.Euclidean:
		both := s.length*s.length + c.length*c.length
		return math.Sqrt(max(0, both-2*dot)), math.Sqrt(max(0, both-2*(dot+off)-rounding*both))
	}
	both := s.length * c.length
	if both == 0 {
		return math.Inf(1), math.Inf(1)
	}
	return 1 - dot/both, 1 - (dot+off)/both - rounding
}

// rounding is a share of the lengths that is more than what sums in floating point are off.
const rounding = 1e-6

// dot returns the sum of the products.
func dot(q []int16, c []byte) int32 {
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
