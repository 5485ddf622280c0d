package vectors

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jaydb/jay/internal/vector"
)

// Ensure that a vector is never nearer than its code says; with all sizes, and at the greatest numbers, where sums of products must not overflow.
func TestSight(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	for _, m := range []vector.Metric{vector.Cosine, vector.Dot, vector.Euclidean} {
		for _, size := range []int{1, 2, 7, 8, 9, 100, 8192} {
			for round := range 40 {
				v, to := make([]float32, size), make([]float32, size)
				for i := range v {
					v[i], to[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
					switch round % 4 {
					case 1:
						to[i] = v[i] + to[i]/1000
					case 2:
						v[i], to[i] = 3e38, 3e38
					case 3:
						v[i] *= 1e-30
					}
				}
				target, err := vector.NewTarget(m, to)
				if err != nil {
					t.Fatal(err)
				}
				c := cut(appendCode(nil, v))
				about, least := newSight(m, to).distance(&c)
				far, _ := target.Distance(v)
				if least > far || about < least || !c.isSound() {
					t.Errorf("%v, %d numbers, round %d: %v, about %v, at least %v", m, size, round, far, about, least)
				}
			}
		}
	}
	if got := fmt.Sprintf("%x", appendCode(nil, []float32{1, -0.5, 0, 0.25})); got != goldenCode {
		t.Errorf("the code is %s, and was %s", got, goldenCode)
	}
}

// Ensure that two groups of unlike sizes are told apart, whichever is in front.
func TestHalve(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 0))
	for _, m := range []vector.Metric{vector.Cosine, vector.Euclidean} {
		for _, first := range []int{30, 70} {
			k := &keeper{metric: m, dimensions: 40}
			items := make([]*item, 100)
			for i := range items {
				v := make([]float32, k.dimensions)
				for d := range v {
					v[d] = float32(r.NormFloat64())
				}
				v[0] += 30
				if i < first {
					v[0] -= 60
				}
				items[i] = &item{i: i, raw: appendCode(nil, v)}
			}
			one, other := k.halve(items)
			for _, half := range [][]*item{one, other} {
				for _, x := range half {
					if len(half) != first && len(half) != 100-first || x.i < first != (half[0].i < first) {
						t.Fatalf("%v, %d in front: the halves have %d and %d, and not what belongs together", m, first, len(one), len(other))
					}
				}
			}
		}
	}
}

// goldenCode is a code as it is stored.
const goldenCode = "3c0102043b903c3a3ff2548eb9151e857fc00020"
