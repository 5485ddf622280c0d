package workload

import (
	"math"
	"math/rand/v2"
)

// zipfTheta is the skew of YCSB's workloads. (rand.Zipf wants more than 1.)
const zipfTheta = 0.99

// zipf draws numbers below n, 0 the most often and each next one less: as in
// Gray et al., "Quickly generating billion-record synthetic databases", 3.2.
type zipf struct {
	n                       int
	alpha, zeta, eta, theta float64
}

// newZipf takes time proportional to n.
func newZipf(n int, theta float64) *zipf {
	z := &zipf{n: n, theta: theta, alpha: 1 / (1 - theta)}
	for i := range n {
		z.zeta += 1 / math.Pow(float64(i+1), theta)
	}
	zeta2 := 1 + 1/math.Pow(2, theta)
	z.eta = (1 - math.Pow(2/float64(n), 1-theta)) / (1 - zeta2/z.zeta)
	return z
}

// next draws a number.
func (z *zipf) next(random *rand.Rand) int {
	u := random.Float64()
	switch uz := u * z.zeta; {
	case uz < 1 || z.n < 2:
		return 0
	case uz < 1+math.Pow(0.5, z.theta):
		return 1
	}
	return min(z.n-1, int(float64(z.n)*math.Pow(z.eta*u-z.eta+1, z.alpha)))
}

// scrambled draws a number too, but spreads the frequent ones over all.
func (z *zipf) scrambled(random *rand.Rand) int {
	const prime = 2_654_435_761 // no factor of any n here, so that none are drawn together
	return int(uint64(z.next(random)) * prime % uint64(z.n))
}
