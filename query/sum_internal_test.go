package query

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// A small sum is written as the same number in a big.Int is.
func TestSmallSum(t *testing.T) {
	r := rand.New(rand.NewPCG(35, 1))
	all := []int64{0, 1, -1, 10, -10, 100, math.MaxInt64, math.MinInt64, 1e18, -1e18}
	for range 2000 {
		all = append(all, r.Int64()>>r.IntN(63), -r.Int64()>>r.IntN(63), (r.Int64()>>40)*1000)
	}
	for _, units := range all {
		for _, scale := range []int{0, 1, 2, 3, 6, 7, 18, 19, 25} {
			if got, want := smallSum(units, scale), decimal(big.NewInt(units), -int64(scale)); string(got.raw) != string(want.raw) {
				t.Fatalf("%d / 10^%d: %s, want %s", units, scale, got.raw, want.raw)
			}
		}
	}
}
