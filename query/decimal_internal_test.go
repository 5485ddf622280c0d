package query

// This test compares the short way to the key of a number with the one for all numbers.

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// Ensure that decimals have the keys that any other spelling of them has, and that those
// that are said to be canonical are.
func TestSmallDecimal(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	short := 0
	for range 200_000 {
		raw := []byte(fmt.Sprintf("%d", random.Int64N([]int64{10, 1000, 100_000, 1e15, 1e17}[random.IntN(5)])))
		if fraction := random.IntN(10); fraction > 0 {
			raw = append(raw, '.')
			for range fraction {
				raw = append(raw, "0123456789"[random.IntN(10)])
			}
		}
		if random.IntN(2) == 0 {
			raw = append([]byte{'-'}, raw...)
		}
		if random.IntN(20) == 0 {
			raw = append(raw, "e3"...)
		}
		got, _ := appendNumberKey(nil, raw)
		if want, _ := appendParsedKey(nil, parseNumber(raw)); !bytes.Equal(got, want) {
			t.Fatalf("%s: %x, want %x", raw, got, want)
		}
		if _, _, small := smallDecimal(raw); small {
			short++
			if canonical := parseNumber(raw).append(nil); !bytes.Equal(canonical, raw) {
				t.Fatalf("%s is written %s", raw, canonical)
			}
		}
	}
	if short < 20_000 {
		t.Errorf("%d decimals went the short way: the test does not test it", short)
	}
}
