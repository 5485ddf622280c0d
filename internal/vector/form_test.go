package vector_test

import (
	"encoding/base64"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/vector"
)

// Ensure bytes and bits are read from arrays, base64 and objects, as RavenDB's clients write them, and packed as they are.
func TestForm_Read(t *testing.T) {
	for _, row := range []struct {
		form vector.Form
		raw  string
		want []float32
	}{
		{vector.Int8, `[127,-64,0,0,0,0,64]`, []float32{2, -64. * 2 / 127, 0}}, // 2 is 0x40000000
		{vector.Int8, `[127,192,0,0,0,0,64]`, []float32{2, -64. * 2 / 127, 0}}, // unsigned
		{vector.Int8, `"f8AAAAAAQA=="`, []float32{2, -64. * 2 / 127, 0}},
		{vector.Int8, `{"@vector":[127,0,0,0,64]}`, []float32{2}},
		{vector.Int8, `[0,0,0,0,0]`, []float32{0}},
		{vector.Bits, `[161]`, []float32{1, -1, 1, -1, -1, -1, -1, 1}},
		{vector.Bits, `[-95]`, []float32{1, -1, 1, -1, -1, -1, -1, 1}},
		{vector.Bits, `"oQ=="`, []float32{1, -1, 1, -1, -1, -1, -1, 1}},
		{vector.Signs, `[0.5,-2]`, []float32{0.5, -2}},
	} {
		got, err := row.form.Read([]float32{9}, []byte(row.raw))
		if err != nil || !slices.Equal(got, append([]float32{9}, row.want...)) {
			t.Errorf("%s %s: got %v, %v, want %v", row.form, row.raw, got, err, row.want)
		}
	}
	for _, v := range [][]float32{{2, -1, 0.5}, {0}, {-1, -2, -3, -4, -5, -6, -7, -8, 9}} {
		packed := vector.Int8.Pack(v)
		for i, got := range vector.Int8.Unpack(nil, packed) {
			if math.Abs(float64(got-v[i])) > 9./127/2+1e-6 {
				t.Errorf("%v: number %d is %v", v, i, got)
			}
		}
		for i, got := range vector.Bits.Unpack(nil, vector.Bits.Pack(v)) {
			if want := i < len(v) && v[i] >= 0; (got == 1) != want {
				t.Errorf("%v: bit %d is %v", v, i, got)
			}
		}
	}
}

// Ensure what is no vector of bytes or bits is refused.
func TestForm_ReadRefused(t *testing.T) {
	many := func(n int) string { return "[" + strings.Repeat("1,", n-1) + "1]" }
	for _, row := range []struct {
		form      vector.Form
		raw, want string
	}{
		{vector.Int8, `[1,2,3,4]`, "at least one number"},
		{vector.Int8, `[]`, "at least one number"},
		{vector.Bits, `[]`, "at least one number"},
		{vector.Bits, `""`, "at least one number"},
		{vector.Bits, `[256]`, "whole numbers"},
		{vector.Bits, `[-129]`, "whole numbers"},
		{vector.Bits, `[0.5]`, "whole numbers"},
		{vector.Int8, `[1,0,0,192,127]`, "greatest number"}, // NaN
		{vector.Int8, `[1,0,0,128,127]`, "greatest number"}, // infinite
		{vector.Int8, `[1,0,0,128,191]`, "greatest number"}, // -1
		{vector.Int8, `7`, "an array of bytes"},
		{vector.Int8, `"*"`, "base64"},
		{vector.Int8, `{"x":[1]}`, "@vector"},
		{vector.Int8, many(8197), "at most 8192 numbers"},
		{vector.Bits, many(1025), "at most 8192 numbers"},
		{vector.Bits, `"` + base64.StdEncoding.EncodeToString(make([]byte, 1100)) + `"`, "at most 8192 numbers"},
	} {
		if got, err := row.form.Read(nil, []byte(row.raw)); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s %.30s: got %v, %v, want %q", row.form, row.raw, got, err, row.want)
		}
	}
	if v, err := vector.Bits.Read(nil, []byte(many(1024))); err != nil || len(v) != 8192 {
		t.Errorf("got %d numbers, %v", len(v), err)
	}
}

// Ensure the distance of bits is the share of those that differ, of whole bytes.
func TestTarget_Hamming(t *testing.T) {
	r := rand.New(rand.NewPCG(37, 9))
	for n := 1; n < 40; n++ {
		v, w := make([]float32, n), make([]float32, n)
		for i := range v {
			v[i], w[i] = float32(r.IntN(3)-1), float32(r.IntN(3)-1)
		}
		differ := 0
		a, b := vector.Bits.Pack(v), vector.Bits.Pack(w)
		for i := range a {
			differ += bits.OnesCount8(a[i] ^ b[i])
		}
		target, err := vector.NewTarget(vector.Hamming, v)
		if err != nil {
			t.Fatal(err)
		}
		want := float64(differ) / float64(8*len(a))
		if got, is := target.Distance(w); !is || got != want {
			t.Errorf("%v and %v: got %v, %v, want %v", v, w, got, is, want)
		}
		target, err = vector.NewTarget(vector.Hamming, vector.Bits.Unpack(nil, a))
		if got, is := target.Distance(vector.Bits.Unpack(nil, b)); err != nil || !is || got != want {
			t.Errorf("packed: got %v, %v, %v, want %v", got, is, err, want)
		}
	}
	if _, known := vector.ParseMetric("hamming"); known {
		t.Error("hamming is of bits, and no metric of numbers")
	}
	if got := fmt.Sprint(vector.Hamming); got != "hamming" {
		t.Errorf("got %s", got)
	}
}
