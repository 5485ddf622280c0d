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
	most := uint32(0) // finite numbers without a sign are in the order of their bits
	for _, f := range v {
		most = max(most, math.Float32bits(f)&^(1<<31))
	}
	scale := math.Float32frombits(most) / 127
	start := len(dst)
	dst = append(dst, make([]byte, codeHead+len(v))...)
	numbers := dst[start+codeHead:][:len(v)]
	square, off, unit := 0.0, 0.0, float64(scale)
	for i, f := range v {
		wide := float64(f)
		square += wide * wide // exact
		n := int32(0)
		if scale > 0 {
			n = max(-127, min(127, nearest(wide/unit)))
		}
		numbers[i] = byte(n)
		d := wide - unit*float64(n)
		off += float64(d * d)
	}
	head := dst[start:]
	binary.BigEndian.PutUint32(head, math.Float32bits(scale))
	binary.BigEndian.PutUint32(head[4:], math.Float32bits(float32(math.Sqrt(off)*(1+1e-6))))
	binary.BigEndian.PutUint64(head[8:], math.Float64bits(math.Sqrt(square)))
	return dst
}

// nearest returns the whole number nearest to x, and the even one of two; the absolute value of x is below 1<<31. A sum with 3<<51 has no bits for a fraction, so the processor
// rounds, and the lower 32 bits of the sum are the number.
func nearest(x float64) int32 { return int32(uint32(math.Float64bits(x + 3<<51))) }

// code is a code that has been read.
type code struct {
	scale, off, length float64
	numbers            []byte // signed
}

// cut returns the code in bytes of its size.
func cut(b []byte) code {
	return code{
		scale:   float64(math.Float32frombits(binary.BigEndian.Uint32(b))),
		off:     float64(math.Float32frombits(binary.BigEndian.Uint32(b[4:]))) + math.SmallestNonzeroFloat32, // it may have been rounded down by that
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
