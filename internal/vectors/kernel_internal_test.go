package vectors

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/jaydb/jay/internal/vector"
)

// ways are the ways to sum products.
var ways = map[string]func(q []int16, c []byte) int32{"as queries do": dot, "in Go": dotPlain}

// Ensure that all ways to sum products give the same sum: of all lengths, wherever the code begins in memory, and of the greatest numbers in as many dimensions as there may be.
func TestDot(t *testing.T) {
	r := rand.New(rand.NewPCG(37, 0))
	lengths := []int{767, 768, 1536, vector.MaxDimensions - 1, vector.MaxDimensions}
	for n := range 140 {
		lengths = append(lengths, n)
	}
	for _, n := range lengths {
		for round := range 12 {
			q, memory := make([]int16, n), make([]byte, n+round)
			c := memory[round:]
			sum := int64(0)
			for i := range n {
				switch round {
				case 0, 1, 2, 3:
					q[i], c[i] = int16(1-2*(round&1))*maxSight, []byte{127, 0x80}[round>>1]
				case 4:
					q[i], c[i] = int16(1-2*(i&1))*maxSight, []byte{127, 0x81}[i&1]
				default:
					q[i], c[i] = int16(r.IntN(2*maxSight+1)-maxSight), byte(r.Uint32())
				}
				sum += int64(q[i]) * int64(int8(c[i]))
			}
			for name, way := range ways {
				if got := way(q, c); int64(got) != sum {
					t.Fatalf("%s, %d numbers, round %d: %d, want %d", name, n, round, got, sum)
				}
			}
		}
	}
}

// Ensure that a code that is longer than the query is not read behind its end, and a shorter one not at all.
func TestDot_Lengths(t *testing.T) {
	q, c := make([]int16, 64), make([]byte, 200)
	for i := range c {
		q[i%64], c[i] = 1, 1
	}
	for _, n := range []int{64, 65, 200} {
		if got := dot(q, c[:n:n]); got != 64 {
			t.Errorf("a code of %d numbers has the sum %d", n, got)
		}
	}
	for _, n := range []int{0, 1, 32, 63} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a code of %d numbers is read behind its end", n)
				}
			}()
			dot(q, c[:n:n])
		}()
	}
}

// Ensure that codes are, to the last bit, what the plain formulas give: of numbers between two bytes, very small ones, and very large ones.
func TestAppendCode(t *testing.T) {
	plainly := func(v []float32) []byte {
		most := float32(0)
		for _, f := range v {
			most = max(most, f, -f)
		}
		scale, square, off := most/127, 0.0, 0.0
		code := make([]byte, codeHead)
		for _, f := range v {
			n := 0.0
			if scale > 0 {
				n = max(-127, min(127, math.RoundToEven(float64(f)/float64(scale))))
			}
			code = append(code, byte(int8(n)))
			square += float64(f) * float64(f)
			d := float64(f) - float64(scale)*n
			off += float64(d * d)
		}
		binary.BigEndian.PutUint32(code, math.Float32bits(scale))
		binary.BigEndian.PutUint32(code[4:], math.Float32bits(float32(math.Sqrt(off)*(1+1e-6))))
		binary.BigEndian.PutUint64(code[8:], math.Float64bits(math.Sqrt(square)))
		return code
	}
	r := rand.New(rand.NewPCG(38, 0))
	for round := range 2000 {
		v := make([]float32, 1+r.IntN(40))
		for i := range v {
			switch round % 5 {
			case 0:
				v[i] = float32(r.NormFloat64())
			case 1: // halves, of which the even one is taken
				v[i] = float32(r.IntN(255)-127) / 2
			case 2: // so small that the scale is one, or none, of the least numbers
				v[i] = math.Float32frombits(uint32(r.IntN(300)) | uint32(r.IntN(2))<<31)
			case 3:
				v[i] = math.Float32frombits(r.Uint32() &^ (1 << 30)) // of any size below 2
			case 4:
				v[i] = float32(1-2*r.IntN(2)) * math.MaxFloat32 / float32(1+r.IntN(3))
			}
		}
		if got, want := appendCode([]byte("before"), v), plainly(v); !bytes.Equal(got[len("before"):], want) {
			t.Fatalf("round %d, %v:\n%x, want\n%x", round, v, got[len("before"):], want)
		}
	}
}
