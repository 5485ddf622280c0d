package vectors_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/kindtest"
	"github.com/jaydb/jay/internal/vectors"
)

// numbers returns a vector: of a few that are alike, or of any others.
func numbers(r *rand.Rand, dimensions int) []float32 {
	v := make([]float32, dimensions)
	around := r.IntN(6)
	for i := range v {
		v[i] = float32(r.NormFloat64())
		if around > 0 {
			v[i] = float32((around*7+i*3)%5-2) + v[i]/[]float32{1e6, 50, 10}[r.IntN(3)]
		}
	}
	return v
}

// written returns a vector in one of its forms in JSON.
func written(r *rand.Rand, v []float32) string {
	array, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	switch r.IntN(3) {
	case 0:
		var b []byte
		for _, f := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
		}
		return `"` + base64.StdEncoding.EncodeToString(b) + `"`
	case 1:
		return `{"@vector":` + string(array) + `}`
	}
	return string(array)
}

// body returns a document with a vector, several or none; with lenient, also one that the index cannot have.
func body(dimensions int, lenient bool) func(r *rand.Rand) string {
	return func(r *rand.Rand) string {
		at := written(r, numbers(r, dimensions))
		switch r.IntN(10) {
		case 0:
			return fmt.Sprintf(`{"Size":%d}`, r.IntN(9))
		case 1:
			at = "[" + at + "," + written(r, numbers(r, dimensions)) + "]"
		case 2:
			at = "null"
		case 3:
			if lenient {
				at = []string{`"none"`, `7`, `[]`, `[1,2]`, `[1,"x",3]`, `{}`, `[` + strings.Repeat("0,", dimensions-1) + `0]`}[r.IntN(7)]
			}
		}
		return fmt.Sprintf(`{"At":%s,"Size":%d}`, at, r.IntN(9))
	}
}

// condition returns a condition on the field.
func condition(dimensions int) func(r *rand.Rand) string {
	return func(r *rand.Rand) string {
		v, _ := json.Marshal(numbers(r, dimensions))
		one := fmt.Sprintf("vector.search(At, %s, %v)", v, []float64{-1, 0, 0.5, 0.9, 0.999}[r.IntN(5)])
		switch r.IntN(4) {
		case 0:
			return one + " and Size > 4"
		case 1:
			return one + " and vector.distance(At, " + string(v) + ", 'euclidean') < 9"
		}
		return one
	}
}

func subject(options map[string]string, dimensions int, lenient bool, order string) kindtest.Subject {
	s := kindtest.Subject{
		Name:      vectors.Name,
		Kind:      catalog.Kind{},
		Index:     jay.Index{Fields: []string{"At"}, Options: options},
		Body:      body(dimensions, lenient),
		Condition: condition(dimensions),
		Order:     order,
		Likely:    true,
		Explained: "vectors",
		Settles:   true,
		Trails:    true,
		Invalid: []jay.Index{{}, {Fields: []string{"At"}}, {Fields: []string{"-At"}, Options: options}, {Fields: []string{"At as date"}, Options: options}, {Fields: []string{"At", "Size"}, Options: options}, {Fields: []string{"Size * 2"}, Options: options},
			{Fields: []string{"At"}, Options: map[string]string{"dimensions": "0"}}, {Fields: []string{"At"}, Options: map[string]string{"dimensions": "8193"}}},
	}
	if !lenient {
		s.Refused = `{"At":[1,2]}`
	}
	return s
}

// Ensure that a strict index of cosines is a kind of index, and finds what a scan finds.
func TestVectors(t *testing.T) {
	t.Cleanup(vectors.Quickly())
	kindtest.Run(t, subject(map[string]string{"dimensions": "6"}, 6, false, "vector.distance(At, [1, -2, 0.5, 0, 1, 1])"))
}

// Ensure the same of an index of lengths that leaves out what is no vector.
func TestVectors_Lenient(t *testing.T) {
	t.Cleanup(vectors.Quickly())
	kindtest.Run(t, subject(map[string]string{"dimensions": "9", "metric": "euclidean", "strict": "no"}, 9, true, "vector.distance(At, [1, -2, 0.5, 0, 1, 1, 2, 2, 2], 'euclidean')"))
}

// Ensure the same of an index of products.
func TestVectors_Dot(t *testing.T) {
	t.Cleanup(vectors.Quickly())
	kindtest.Run(t, subject(map[string]string{"dimensions": "3", "metric": "dot"}, 3, false, "exact(vector.distance(At, [1, -2, 0.5], 'dot'))"))
}
