package vector_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/vector"
)

// Ensure a vector is read as it was written, in each of its forms, and appended to what is there.
func TestRead(t *testing.T) {
	r := rand.New(rand.NewPCG(37, 1))
	for range 300 {
		v := make([]float32, 1+r.IntN(40))
		if r.IntN(20) == 0 {
			v = make([]float32, vector.MaxDimensions)
		}
		for i := range v {
			for v[i] = math.Float32frombits(r.Uint32()); math.IsNaN(float64(v[i])) || math.IsInf(float64(v[i]), 0); {
				v[i] = math.Float32frombits(r.Uint32())
			}
		}
		array, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		base64 := `"` + string(vector.AppendBase64(nil, v)) + `"`
		for _, text := range []string{string(array), base64, strings.TrimRight(base64, `="`) + `"`, `{"x":[7],"@vector":` + string(array) + `}`} {
			got, err := vector.Read([]float32{7}, []byte(text))
			if err != nil || !slices.Equal(got[1:], v) || got[0] != 7 {
				t.Fatalf("%.100s: got %.5v, %v, want %.5v", text, got, err, v)
			}
		}
	}
}

// Ensure what is no vector is refused with the rule and the value, and leaves what was there.
func TestRead_Refused(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{`5`, "a vector is an array of numbers, or its base64: 5"},
		{`null`, "a vector is an array of numbers, or its base64: null"},
		{``, "a vector is an array of numbers, or its base64: "},
		{`[]`, "a vector has at least one number: []"},
		{`""`, `a vector has at least one number: ""`},
		{`{"@vector":[]}`, `a vector has at least one number: {"@vector":[]}`},
		{`{"vector":[1]}`, `an object that is a vector has its numbers in @vector: {"vector":[1]}`},
		{`[1,"2"]`, `a vector is of numbers that float32 can hold: number 2 is "2"`},
		{`[1,[2]]`, `a vector is of numbers that float32 can hold: number 2 is [2]`},
		{`[1,3.5e38]`, `a vector is of numbers that float32 can hold: number 2 is 3.5e38`},
		{`"AACAPwAA"`, "a vector in base64 has four bytes for each number: there are 6"},
		{`"AAC*PwAAAAA="`, "a vector in base64 has letters, digits, + and /: AAC*PwAAAAA"},
		{`"AACA\/wAAAAA="`, `a vector in base64 has letters, digits, + and /: "AACA\/wAAAAA="`},
		{`"AADAfw=="`, "a vector is of numbers that float32 can hold: number 1 is NaN"},
		{`"AACAfw=="`, "a vector is of numbers that float32 can hold: number 1 is +Inf"},
		{`[` + strings.Repeat("1,", 8192) + `1]`, "a vector has at most 8192 numbers: there are 8193"},
		{`"` + strings.Repeat("AACAPwAAgD8AAIA/", 10_000) + `"`, "a vector has at most 8192 numbers: there are 30000"},
	} {
		got, err := vector.Read([]float32{7}, []byte(row.text))
		var e *vector.Error
		if !errors.As(err, &e) || err.Error() != row.want || len(got) != 1 {
			t.Errorf("%.60s: got %v, %v, want %s", row.text, got, err, row.want)
		}
	}
}

// exactly computes a distance with 300 bits.
func exactly(m vector.Metric, a, b []float32) float64 {
	number := func(f float64) *big.Float { return new(big.Float).SetPrec(300).SetFloat64(f) }
	dot, aa, bb, diff := number(0), number(0), number(0), number(0)
	add := func(to *big.Float, x, y float64) {
		to.Add(to, new(big.Float).SetPrec(300).Mul(number(x), number(y)))
	}
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		add(dot, x, y)
		add(aa, x, x)
		add(bb, y, y)
		d := new(big.Float).SetPrec(300).Sub(number(x), number(y))
		diff.Add(diff, new(big.Float).SetPrec(300).Mul(d, d))
	}
	f := number(0)
	switch m {
	case vector.Dot:
		f.Neg(dot)
	case vector.Euclidean:
		f.Sqrt(diff)
	default:
		f.Mul(f.Sqrt(aa), new(big.Float).SetPrec(300).Sqrt(bb))
		f.Sub(number(1), f.Quo(dot, f))
	}
	got, _ := f.Float64()
	return got
}

// Ensure distances are those that 300 bits give, but for rounding, for all sizes of vectors.
func TestTarget_Distance(t *testing.T) {
	r := rand.New(rand.NewPCG(37, 2))
	for n := 1; n < 300; n += 1 + n/20 {
		a, b := make([]float32, n), make([]float32, n)
		for i := range a {
			a[i], b[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
		}
		if n%7 == 0 {
			copy(b, a)
		}
		for _, name := range vector.Metrics() {
			m, found := vector.ParseMetric(strings.ToUpper(name))
			if !found {
				t.Fatal(name)
			}
			to, err := vector.NewTarget(m, a)
			if err != nil {
				t.Fatal(err)
			}
			got, is := to.Distance(b)
			if want := exactly(m, a, b); !is || math.Abs(got-want) > 1e-13*(1+math.Abs(want)) {
				t.Fatalf("%s, %d numbers: got %v, %v, want %v", name, n, got, is, want)
			}
			if _, is := to.Distance(a[1:]); is {
				t.Errorf("%s: vectors of %d and %d numbers have a distance", name, n, n-1)
			}
			if _, is := to.Distance(make([]float32, n)); is != (m != vector.Cosine) {
				t.Errorf("%s: the distance of a vector of zeros: %v", name, is)
			}
		}
	}
	to, err := vector.NewTarget(vector.Cosine, []float32{math.MaxFloat32, math.MaxFloat32})
	if err != nil {
		t.Fatal(err)
	}
	if d, is := to.Distance([]float32{-math.MaxFloat32, -math.MaxFloat32}); !is || d != 2 {
		t.Errorf("got %v, %v", d, is)
	}
	if d, is := to.Distance([]float32{math.SmallestNonzeroFloat32, math.SmallestNonzeroFloat32}); !is || math.Abs(d) > 1e-15 {
		t.Errorf("got %v, %v", d, is)
	}
}

func BenchmarkTarget_Distance(b *testing.B) {
	for _, n := range []int{768, 1536} {
		v, w := make([]float32, n), make([]float32, n)
		for i := range v {
			v[i], w[i] = float32(i+1), float32(n-i)
		}
		for _, name := range vector.Metrics() {
			m, _ := vector.ParseMetric(name)
			to, err := vector.NewTarget(m, v)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprint(name, " of ", n), func(b *testing.B) {
				for range b.N {
					to.Distance(w)
				}
			})
		}
	}
}

func BenchmarkRead(b *testing.B) {
	v := make([]float32, 768)
	for i := range v {
		v[i] = float32(i) / 768
	}
	array, err := json.Marshal(v)
	if err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string][]byte{"array": array, "base64": []byte(`"` + string(vector.AppendBase64(nil, v)) + `"`)} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				if v, err = vector.Read(v[:0], text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
