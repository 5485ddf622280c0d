package query_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay/query"
)

// Ensure conditions on vectors are true of vectors that are so similar, and of nothing that is no vector, or has another number of dimensions.
func TestSimilar(t *testing.T) {
	for _, row := range []struct {
		name, where string
		true, false []string
	}{
		{"an array", "vector.search(V, [1, 0], 0.9)",
			[]string{`{"V":[1,0]}`, `{"V":[2.5,1e-3]}`, `{"V":[0.9,0.43]}`},
			[]string{`{"V":[0.9,0.44]}`, `{"V":[-1,0]}`, `{"V":[0,1]}`, `{"V":[0,0]}`, `{"V":[1]}`, `{"V":[1,0,0]}`, `{"V":[]}`, `{"V":[1,null]}`, `{"V":[1,"a"]}`, `{"V":[1,1e39]}`, `{"V":5}`, `{"V":null}`, `{}`}},
		{"base64, and RavenDB's object", "vector.search(V, [1, 0], 0.9)",
			[]string{`{"V":"AACAPwAAAAA="}`, `{"V":"AACAPwAAAAA"}`, `{"V":{"@vector":[1,0]}}`},
			[]string{`{"V":"AACAPwAAgD8="}`, `{"V":"AACAPw=="}`, `{"V":"AACAPwAAwH8="}`, `{"V":"AACAPwAA"}`, `{"V":"oak"}`, `{"V":"AACAPw\n"}`, `{"V":{"vector":[1,0]}}`, `{"V":{"@vector":5}}`}},
		{"several", "vector.search(V, [1, 0], 0.9)",
			[]string{`{"V":[[0,1],[1,0]]}`, `{"V":["","AACAPwAAAAA="]}`, `{"V":[{"@vector":[0,1]},{"@vector":[1,0]}]}`},
			[]string{`{"V":[[0,1],[0,2]]}`, `{"V":[[[1,0]]]}`, `{"V":[1,[1,0]]}`}},
		{"of elements", "vector.search(Parts[].V, [1, 0], 0.9)", []string{`{"Parts":[{"V":[0,1]},{"V":[1,0]}]}`}, []string{`{"Parts":[{"V":[0,1]},{"W":[1,0]}]}`, `{"Parts":[1,0]}`}},
		{"one element", "elemMatch(Parts, vector.search(V, [1, 0], 0.9) and Open = true)",
			[]string{`{"Parts":[{"V":[0,1],"Open":true},{"V":[1,0],"Open":true}]}`}, []string{`{"Parts":[{"V":[0,1],"Open":true},{"V":[1,0],"Open":false}]}`}},
		{"the least similarity of all", "vector.search(V, [1, 0], -1)", []string{`{"V":[-1,0]}`, `{"V":[3,4]}`}, []string{`{"V":[0,0]}`}},
		{"the usual one", "vector.search(V, [1, 0])", []string{`{"V":[0.76,0.65]}`}, []string{`{"V":[0.74,0.67]}`}},
		{"a distance", "vector.distance(V, [1, 2], 'euclidean') between 4.9 and 5", []string{`{"V":[4,6]}`, `{"V":[[40,60],[4,6]]}`}, []string{`{"V":[4,7]}`, `{"V":[1,2]}`, `{"V":[4]}`}},
		{"a product", "vector.distance(V, [1, 2], 'dot') <= -10", []string{`{"V":[4,3]}`, `{"V":[1e30,0]}`}, []string{`{"V":[4,2]}`, `{"V":[0,0]}`}},
		{"beside the elements", "vector.search(V, [1, 0], 0.9) and V = 1 and size(V) = 2", []string{`{"V":[1,0]}`}, []string{`{"V":[2,0]}`, `{"V":[[1,0],[1,0]]}`}},
	} {
		t.Run(row.name, func(t *testing.T) {
			e, err := query.ParseCondition(row.where, nil)
			if err != nil {
				t.Fatal(err)
			}
			m, err := query.Compile(e)
			if err != nil {
				t.Fatal(err)
			}
			again, err := query.ParseCondition(query.FormatCondition(e), nil)
			if err != nil || query.FormatCondition(again) != query.FormatCondition(e) {
				t.Errorf("%s is read as %v, %v", query.FormatCondition(e), again, err)
			}
			for i, bodies := range [][]string{row.true, row.false} {
				for _, body := range bodies {
					if got := m.Clone().Match(query.Doc{Body: []byte(body)}); got != (i == 0) {
						t.Errorf("%s: got %v", body, got)
					}
				}
			}
		})
	}
}

// Ensure vectors of bytes and of bits are compared as they are packed, and the signs of numbers as bits, with the vector of the query in each form; and that
// what is written reads as the same.
func TestSimilar_Forms(t *testing.T) {
	v := []float32{3, -1, 0.5, -2, 1, 1, -1, 0, 2}
	w := []float32{3, -1, -0.5, -2, 1, -1, -1, 0, 2} // two signs differ, of 16 bits
	body := func(v any) string {
		raw, err := json.Marshal(map[string]any{"V": v})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	ints := func(packed []byte) (list []int) {
		for _, b := range packed {
			list = append(list, int(int8(b)))
		}
		return list
	}
	for _, row := range []struct {
		name, where string
		param       any
		true, false []string
	}{
		{"bytes", "vector.search(embedding.i8(V), $v, 0.999)", ints(query.PackVector("i8", v)),
			[]string{body(ints(query.PackVector("i8", v))), body(query.PackVector("i8", v)), body([]any{ints(query.PackVector("i8", w)), ints(query.PackVector("i8", v))})},
			[]string{body(v), body(query.PackVector("i8", w)), body(nil), body(query.PackVector("i8", v[:8])), body("*")}},
		{"bytes of numbers", "vector.search(embedding.i8(V), $v, 0.999, null)", v, []string{body(query.PackVector("i8", v))}, []string{body(query.PackVector("i8", w))}},
		{"bytes in base64", "vector.search(embedding.i8(V), $v, null, 16)", query.PackVector("i8", v), []string{body(query.PackVector("i8", v))}, []string{body(query.PackVector("i8", []float32{-3, 1, 0, 0, 0, 0, 0, 0, 1}))}},
		{"bits", "vector.search(embedding.i1(V), $v, 0.875)", query.PackVector("i1", v), []string{body(ints(query.PackVector("i1", v))), body(query.PackVector("i1", w))}, []string{body(query.PackVector("i1", []float32{3, -1, -0.5, -2, 1, -1, -1, 0, -2})), body(v), body(query.PackVector("i1", v[:8]))}},
		{"signs", "vector.search(embedding.f32_i1(V), $v, 0.875)", v, []string{body(v), body(w), body(query.Numbers(w)), body([]float32{9, -9, 9, -9, 9, 9, -9, 0, 9})}, []string{body([]float32{3, -1, -0.5, -2, 1, -1, -1, 0, -2}), body(v[:8])}},
		{"a distance of bits", "vector.distance(embedding.i1(V), $v) <= 0.125", query.Numbers(v), []string{body(query.PackVector("i1", w))}, []string{body(query.PackVector("i1", []float32{-3, 1, -0.5, 2, 1, -1, -1, 0, 2}))}},
		{"a distance of bytes", "vector.distance(embedding.i8(V), $v, 'euclidean') < 0.05", v, []string{body(query.PackVector("i8", v))}, []string{body(query.PackVector("i8", w))}},
		{"one of several", "vector.search(V, $v, 0.999)", [][]float32{v, {1, 2}}, []string{body(v), body([]float32{2, 4})}, []string{body(w), body([]float32{2, 3})}},
		{"as they are", "vector.search(embedding.f32_i8(V), $v, 0.999)", v, []string{body(v)}, []string{body(w), body(query.PackVector("i8", v))}},
	} {
		t.Run(row.name, func(t *testing.T) {
			e, err := query.ParseCondition(row.where, map[string]any{"v": row.param})
			if err != nil {
				t.Fatal(err)
			}
			again, err := query.ParseCondition(query.FormatCondition(e), nil)
			if err != nil || query.FormatCondition(again) != query.FormatCondition(e) {
				t.Fatalf("%s is read as %v, %v", query.FormatCondition(e), again, err)
			}
			for _, e := range []query.Expr{e, again} {
				m, err := query.Compile(e)
				if err != nil {
					t.Fatal(err)
				}
				for i, bodies := range [][]string{row.true, row.false} {
					for _, body := range bodies {
						if got := m.Match(query.Doc{Body: []byte(body)}); got != (i == 0) {
							t.Errorf("%s: got %v", body, got)
						}
					}
				}
			}
		})
	}
	for text, want := range map[string]string{
		"vector.search(embedding.text(V), 'oak')":               "without a model",
		"vector.search(embedding.text_i8(V, ai.task('x')), $v)": "without a model",
		"vector.search(embedding.i4(V), $v)":                    "there is no embedding.i4()",
		"vector.search(V, embedding.fordoc($v))":                "the vector of a query is a value",
		"vector.search(embedding.i8(V), [1, 2, 3, 4])":          "at least one number",
		"vector.search(embedding.i8(V), [1, 2, 3, 4, 500])":     "whole numbers",
		"vector.distance(embedding.i1(V), [1], 'cosine') < 1":   "the metric of bits is hamming",
		"vector.distance(V, [1], 'hamming') < 1":                "a metric is cosine, dot, euclidean",
		"vector.search(embedding.i8(V), '*', 0.5)":              "base64",
		"vector.search(embedding.i8(V), [0, 0, 0, 0, 0])":       "a direction",
	} {
		params := map[string]any{"v": v}
		if !strings.Contains(text, "$v") {
			params = nil
		}
		if _, err := query.ParseCondition(text, params); !errors.Is(err, query.ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	if _, err := query.ParseCondition("vector.search(V, $v)", map[string]any{"v": slices.Repeat([][]float32{{1}}, query.MaxSimilars+1)}); !errors.Is(err, query.ErrSyntax) || !strings.Contains(err.Error(), "more than 64 vectors") {
		t.Errorf("many vectors: got %v", err)
	}
	one, err := query.ParseCondition("vector.search(embedding.i1(V), [3], 0.5)", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%#v", one.(query.Similar).Vector); got != "query.Vector(embedding.i1('Aw=='))" {
		t.Errorf("got %s", got) // a hash of it is kept
	}
	if query.PackVector("f32", v) != nil || query.PackVector("i8", nil) != nil {
		t.Error("what is no vector of bytes is packed")
	}
}

// Ensure an order by distance has documents without a vector last, and with desc first.
func TestVectorDistance_Order(t *testing.T) {
	bodies := []string{`{"V":[0,1]}`, `{}`, `{"V":[1,0]}`, `{"V":"here"}`, `{"V":[[0,1],[1,0.5]]}`, `{"V":[-1,0]}`}
	for text, want := range map[string][]int{
		"vector.distance(V, [1, 0])":              {2, 4, 0, 5, 1, 3},
		"vector.distance(V, [1, 0]) desc":         {1, 3, 5, 0, 4, 2},
		"vector.distance(V, [1, 0], 'euclidean')": {2, 4, 0, 5, 1, 3},
		"vector.distance(V, [-2, 0], 'dot')":      {5, 0, 4, 2, 1, 3},
	} {
		q, err := query.Parse("from Notes order by "+text, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := query.NewSorter(q.OrderBy)
		if err != nil {
			t.Fatal(err)
		}
		got := []int{0, 1, 2, 3, 4, 5}
		slices.SortStableFunc(got, func(a, b int) int {
			return s.Compare(query.Doc{Body: []byte(bodies[a])}, query.Doc{Body: []byte(bodies[b])})
		})
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// Ensure vectors that are none are refused with the rule and the value, and too many conditions with the bound.
func TestVector_Refused(t *testing.T) {
	for _, row := range []struct {
		numbers             []float32
		metric, rule, value string
	}{
		{nil, "", "a vector has at least one number", "[]"},
		{make([]float32, 100_000), "dot", "a vector has at most 8192 numbers", "there are 100000"},
		{[]float32{1, float32(math.NaN())}, "", "a vector is of numbers that float32 can hold", "number 2 is NaN"},
		{[]float32{float32(math.Inf(-1))}, "", "a vector is of numbers that float32 can hold", "number 1 is -Inf"},
		{[]float32{0, 0}, "cosine", "a vector has a direction, if its cosine is asked for", "all of its 2 numbers are 0"},
		{[]float32{1}, "manhattan", "a metric is cosine, dot, euclidean", "manhattan"},
	} {
		_, err := query.NewVector(row.numbers, row.metric)
		var e *query.VectorError
		if !errors.As(err, &e) || e.Rule != row.rule || e.Value != row.value {
			t.Errorf("%.4v, %s: got %v", row.numbers, row.metric, err)
		}
	}
	v, err := query.NewVector([]float32{1}, "")
	if err != nil {
		t.Fatal(err)
	}
	f, err := query.ParseExpression("V")
	if err != nil {
		t.Fatal(err)
	}
	many := slices.Repeat([]query.Expr{query.Similar{Field: f, Vector: v}}, query.MaxSimilars+1)
	if _, err := query.Compile(query.Or(many[1:])); err != nil {
		t.Error(err)
	}
	var limit *query.LimitError
	if _, err := query.Compile(query.Or(many)); !errors.As(err, &limit) || limit.Limit != query.MaxSimilars || limit.What != "conditions on vectors" {
		t.Errorf("got %v", err)
	}
	for _, e := range []query.Similar{{Field: f}, {Field: f, Vector: v, Minimum: math.NaN()}, {Vector: v}} {
		if _, err := query.Compile(e); !errors.Is(err, query.ErrCondition) {
			t.Errorf("%v: got %v", e, err)
		}
	}
}

func ExampleSimilar() {
	e, err := query.ParseCondition("vector.search(Embedding, [1, 0], 0.9)", nil)
	if err != nil {
		panic(err)
	}
	m, err := query.Compile(e)
	if err != nil {
		panic(err)
	}
	fmt.Println(m.Match(query.Doc{Body: []byte(`{"Embedding":[0.9,0.1]}`)}), m.Match(query.Doc{Body: []byte(`{"Embedding":[0.1,0.9]}`)}))
	// Output: true false
}

func ExampleVector() {
	v, err := query.NewVector([]float32{1, 0.5}, "euclidean")
	fmt.Println(v, err)
	// Output: [1, 0.5] <nil>
}

func ExampleVectorDistance() {
	f, err := query.ParseExpression("vector.distance(Embedding, [1, 0.5], 'dot')")
	if err != nil {
		panic(err)
	}
	d, is := f.VectorDistance()
	fmt.Println(is, d.Field, d.Vector)
	// Output: true Embedding [1, 0.5]
}

func ExampleVectorError() {
	_, err := query.NewVector([]float32{0, 0}, "cosine")
	fmt.Println(err)
	// Output: a vector has a direction, if its cosine is asked for: all of its 2 numbers are 0
}

func ExampleNumbers() {
	text, err := query.Numbers{1, 0.5}.MarshalJSON()
	fmt.Println(string(text), err)
	// Output: "AACAPwAAAD8=" <nil>
}
