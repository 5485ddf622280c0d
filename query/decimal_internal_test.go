package query

// This test compares the short way to the key of a number with the one for all numbers.

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
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

// Ensure that numbers of few digits compare as all numbers do.
func TestFixed(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	number := func() []byte {
		if random.IntN(20) == 0 {
			return []byte([]string{"0", "-0", "0.0", "-0.00"}[random.IntN(4)])
		}
		digits := 1 + random.IntN(19)
		raw := []byte{"123456789"[random.IntN(9)]}
		for range digits - 1 {
			raw = append(raw, "0000123459"[random.IntN(10)])
		}
		if point := random.IntN(digits + 1); point < digits {
			if raw = slices.Insert(raw, point, '.'); point == 0 {
				raw = slices.Insert(raw, 0, '0')
			}
			if raw[len(raw)-1] == '.' {
				raw = append(raw, '0')
			}
		}
		if random.IntN(2) == 0 {
			raw = append([]byte{'-'}, raw...)
		}
		return raw
	}
	short, equal := 0, 0
	for range 300_000 {
		a, b := number(), number()
		switch random.IntN(4) {
		case 0: // nearly the same
			b = bytes.Clone(a)
			b[len(b)-1] = "0123456789"[random.IntN(10)]
		case 1: // the same, written otherwise
			if b = bytes.Clone(a); bytes.IndexByte(b, '.') > 0 {
				b = append(b, '0')
			} else {
				b = append(b, ".00"...)
			}
		}
		x, fits := toFixed(a)
		y, fitsToo := toFixed(b)
		want := parseNumber(a).compare(parseNumber(b))
		if fits && fitsToo {
			short++
			if got := x.compare(y); got != want {
				t.Fatalf("%s and %s: %d, want %d", a, b, got, want)
			}
		}
		v, w := numberValue(a), numberValue(b)
		o := newOperand(w)
		if v.Compare(w) != want || o.compareNumber(v) != want || v.Equal(w) != (want == 0) {
			t.Fatalf("%s and %s: want %d", a, b, want)
		}
		if want == 0 {
			equal++
		}
	}
	if short < 100_000 || equal < 30_000 {
		t.Errorf("%d went the short way, %d were equal: the test does not test it", short, equal)
	}
}

func numberValue(raw []byte) Value { return Value{kind: KindNumber, raw: raw} }
