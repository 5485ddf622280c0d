package jay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
)

// noted is a document with a vector in each form.
type noted struct {
	ID, Name string
	Compact  jay.Vector `json:",omitempty"`
	Array    []float32  `json:",omitempty"`
}

// Ensure queries of the builder find vectors and order by their distance, in both forms, as a computation in memory does, beside
// other conditions and with own writes of a transaction; and that a mistake in a vector is the query's.
func TestQuery_Vectors(t *testing.T) {
	db := jaytest.Memory(t, nil)
	notes, err := jay.CollectionOf[noted](db)
	jaytest.Must(t, err)
	r := rand.New(rand.NewPCG(37, 3))
	random := func() []float32 {
		v := make([]float32, 20)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	var all []noted
	for i := range 300 {
		v := random()
		n := noted{Name: fmt.Sprint("n", i%3), Compact: v, Array: v}
		if i%10 == 0 {
			n.Compact, n.Array = nil, nil
		}
		_, err := notes.Insert(ctx, &n)
		jaytest.Must(t, err)
		all = append(all, n)
	}
	to := random()
	far := func(n noted) float64 {
		var dot, a, b float64
		for i, f := range n.Array {
			dot += float64(f) * float64(to[i])
			a += float64(f) * float64(f)
			b += float64(to[i]) * float64(to[i])
		}
		if len(n.Array) == 0 {
			return math.Inf(1)
		}
		return 1 - dot/math.Sqrt(a*b)
	}
	want := slices.DeleteFunc(slices.Clone(all), func(n noted) bool { return n.Name != "n1" || far(n) > 0.9 })
	slices.SortFunc(want, func(a, b noted) int {
		if far(a) < far(b) {
			return -1
		}
		return 1
	})
	for _, field := range []string{"Compact", "Array"} {
		var got []string
		for n, err := range notes.Query().Where(jay.Eq("Name", "n1"), jay.Similar(field, to, 0.1)).OrderBy(jay.Nearest(field, to)).Iter(ctx) {
			jaytest.Must(t, err)
			got = append(got, n.ID)
		}
		if len(got) != len(want) || len(got) < 10 {
			t.Fatalf("%s: %d answers, want %d", field, len(got), len(want))
		}
		for i, n := range want {
			if got[i] != n.ID {
				t.Fatalf("%s: answer %d is %s, want %s", field, i, got[i], n.ID)
			}
		}
	}
	jaytest.Must(t, db.Update(ctx, func(tx *jay.Tx) error {
		_, err := tx.Put(ctx, "noteds/mine", json.RawMessage(fmt.Sprintf(`{"Name":"mine","Array":%s}`, mustMarshal(t, to))), jay.InCollection("noteds"))
		jaytest.Must(t, err)
		list, err := tx.Query("noteds").OrderBy(jay.Distance("Array", to, "euclidean")).Limit(1).All(ctx)
		if err != nil || len(list) != 1 || list[0].ID() != "noteds/mine" {
			t.Errorf("got %v, %v", list, err)
		}
		return nil
	}))

	var e *jay.VectorError
	_, err = notes.Query().Where(jay.Similar("Array", nil, 0.5)).Count(ctx)
	if !errors.As(err, &e) || !errors.Is(err, jay.ErrQuery) || e.Rule != "a vector has at least one number" {
		t.Errorf("got %v", err)
	}
	for _, bad := range [][]float32{nil, {1, float32(math.NaN())}, make([]float32, 5), make([]float32, 9000)} {
		if _, err = notes.Query().OrderBy(jay.Nearest("Array", bad)).Count(ctx); !errors.As(err, &e) || !errors.Is(err, jay.ErrQuery) {
			t.Errorf("%.3v: got %v", bad, err)
		}
	}
	if _, err = notes.Query().Where(jay.Similar("Array", to, 1.5)).Count(ctx); !errors.Is(err, jay.ErrQuery) {
		t.Errorf("got %v", err)
	}
	if _, err = json.Marshal(noted{Compact: jay.Vector{float32(math.Inf(1))}}); !errors.As(err, &e) {
		t.Errorf("got %v", err)
	}
}

// Ensure a Vector reads each form, and writes base64.
func TestVector_JSON(t *testing.T) {
	for _, text := range []string{`"AACAPwAAAL8="`, `"AACAPwAAAL8\u003d"`, ` [ 1, -5e-1 ] `, `{"@vector": [1, -0.5]}`} {
		var v jay.Vector
		if err := json.Unmarshal([]byte(text), &v); err != nil || !slices.Equal(v, jay.Vector{1, -0.5}) {
			t.Errorf("%s: got %v, %v", text, v, err)
		}
		if got, err := json.Marshal(v); err != nil || string(got) != `"AACAPwAAAL8="` {
			t.Errorf("got %s, %v", got, err)
		}
	}
	v := jay.Vector{1}
	if err := json.Unmarshal([]byte("null"), &v); err != nil || v != nil {
		t.Errorf("got %v, %v", v, err)
	}
	var e *jay.VectorError
	for _, text := range []string{`5`, `[]`, `[1,"x"]`, `"oak"`, `{"a":[1]}`} {
		if err := json.Unmarshal([]byte(text), &v); !errors.As(err, &e) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func ExampleVector() {
	type Note struct {
		ID, Text  string
		Embedding jay.Vector
	}
	notes, err := jay.CollectionOf[Note](example())
	check(err)
	_, err = notes.InsertMany(ctx, []*Note{{Text: "oak", Embedding: jay.Vector{1, 0.1}}, {Text: "maple", Embedding: jay.Vector{0.9, 0.2}}, {Text: "wrench", Embedding: jay.Vector{-0.2, 1}}})
	check(err)
	tree := []float32{1, 0.2}
	for n, err := range notes.Query().Where(jay.Similar("Embedding", tree, 0.5)).OrderBy(jay.Nearest("Embedding", tree)).Limit(10).Iter(ctx) {
		check(err)
		fmt.Println(n.Text)
	}
	// Output:
	// maple
	// oak
}

func ExampleVectorError() {
	_, err := example().Query("Notes").Where(jay.Similar("Embedding", []float32{0, 0}, 0.5)).Count(ctx)
	var e *jay.VectorError
	if errors.As(err, &e) {
		fmt.Println(e.Rule)
	}
	// Output: a vector has a direction, if its cosine is asked for
}
