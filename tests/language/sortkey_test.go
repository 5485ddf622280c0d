package language_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/jaydb/jay/query"
)

// Ensure that keys of orders sort as Compare does wherever they say that they
// are exact, and that both agree with a look at all values.
func TestSorter_Naive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool := rapid.SliceOfN(genScalar(), 3, 5).Draw(t, "pool")
		orders := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) query.Order {
			return query.Order{Field: genField().Draw(t, "field"), Descending: rapid.Bool().Draw(t, "descending"), As: query.Cast(rapid.IntRange(0, 3).Draw(t, "as"))}
		}), 1, 3).Draw(t, "orders")
		s, err := query.NewSorter(orders)
		if err != nil {
			t.Fatal(err)
		}
		bodies := rapid.SliceOfN(genObject(3, pool), 2, 5).Draw(t, "bodies")
		for _, a := range bodies {
			for _, b := range bodies {
				docA, docB := query.Doc{Body: []byte(a)}, query.Doc{Body: []byte(b)}
				want, known := naiveOrder(orders, newNaive([]byte(a), nil), newNaive([]byte(b), nil))
				if !known {
					continue
				}
				if got := s.Clone().Compare(docA, docB); want != 0 && got != want || want == 0 && got != 0 {
					t.Fatalf("%+v: %s and %s compare %d, want %d", orders, a, b, got, want)
				}
				keyA, exactA := s.AppendKey(nil, docA)
				keyB, exactB := s.AppendKey(nil, docB)
				if got := bytes.Compare(keyA, keyB); exactA && exactB && got != want {
					t.Fatalf("%+v: keys %x and %x of %s and %s compare %d, want %d", orders, keyA, keyB, a, b, got, want)
				}
			}
		}
	})
}

// naiveOrder compares two documents, if they do not differ in arrays or
// objects first, whose JSON text naive does not have.
func naiveOrder(orders []query.Order, a, b naive) (order int, known bool) {
	for _, o := range orders {
		pick := func(n naive) query.Value {
			var picked []query.Value
			for _, v := range n.reached(o.Field) {
				if w, ok := naiveCast(v, o.As); ok {
					picked = append(picked, w)
				}
			}
			if len(picked) == 0 {
				return query.Value{}
			}
			slices.SortFunc(picked, query.Value.Compare)
			if o.Descending {
				return picked[len(picked)-1]
			}
			return picked[0]
		}
		v, w := pick(a), pick(b)
		if v.Kind() == w.Kind() && v.Kind() >= query.KindArray {
			return 0, false
		}
		c := v.Compare(w)
		if o.Descending {
			c = -c
		}
		if c != 0 {
			return c, true
		}
	}
	return 0, true
}

// Ensure what casts make of each kind of value.
func TestSorter_Casts(t *testing.T) {
	tests := []struct {
		as    query.Cast
		order string // documents whose member v is this, in order; "=" joins equals
	}{
		{query.CastNone, `missing null=null false true -1 0 2=2.0 10 "10" "2" "a" "B" [[1]] {}`},
		{query.CastLong, `missing=null=true="x"="0x1" -1=-1.9="-1.5" 0=0.9=-0.9 2="2.7" 10=10.5=1e1 12345678901234567890.5="12345678901234567890"`},
		{query.CastDouble, `missing=null=true="x"=" 1" -1.9 -0.5 0 "\u0030.5"=0.5 2 "10"`},
		{query.CastString, `missing=null={} "" 10="10" 2 "a" false="false" true`},
	}
	for _, test := range tests {
		s, err := query.NewSorter([]query.Order{{Field: field("v"), As: test.as}})
		if err != nil {
			t.Fatal(err)
		}
		down, err := query.NewSorter([]query.Order{{Field: field("v"), As: test.as, Descending: true}})
		if err != nil {
			t.Fatal(err)
		}
		type ranked struct {
			doc  query.Doc
			rank int
		}
		var docs []ranked
		for rank, group := range strings.Split(strings.ReplaceAll(test.order, `" 1"`, `"\u00201"`), " ") {
			for raw := range strings.SplitSeq(group, "=") {
				body := `{"v":` + raw + `}`
				if raw == "missing" {
					body = "{}"
				}
				docs = append(docs, ranked{query.Doc{Body: []byte(body)}, rank})
			}
		}
		for _, a := range docs {
			for _, b := range docs {
				want := min(1, max(-1, a.rank-b.rank))
				keyA, _ := s.AppendKey(nil, a.doc)
				keyB, _ := s.AppendKey(nil, b.doc)
				if got, byKey := s.Compare(a.doc, b.doc), bytes.Compare(keyA, keyB); got != want || byKey != want {
					t.Errorf("cast %d: %s and %s: got %d, by key %d, want %d", test.as, a.doc.Body, b.doc.Body, got, byKey, want)
				}
				if got := down.Compare(a.doc, b.doc); got != -want {
					t.Errorf("cast %d, descending: %s and %s: got %d, want %d", test.as, a.doc.Body, b.doc.Body, got, -want)
				}
			}
		}
	}
}

// Ensure that the least value of an array counts ascending, the greatest
// descending, and that what is too long for a key is said to be.
func TestSorter_AppendKey(t *testing.T) {
	long := `{"v":["` + strings.Repeat("x", 600) + `",5,1]}`
	up, err := query.NewSorter([]query.Order{{Field: field("v")}})
	if err != nil {
		t.Fatal(err)
	}
	down, err := query.NewSorter([]query.Order{{Field: field("v"), Descending: true}})
	if err != nil {
		t.Fatal(err)
	}
	one, _ := query.AppendKey(nil, value("1"), false)
	if key, exact := up.AppendKey(nil, query.Doc{Body: []byte(long)}); !bytes.Equal(key, one) || !exact {
		t.Errorf("ascending: got %x, exact %v, want %x", key, exact, one)
	}
	if key, exact := down.AppendKey(nil, query.Doc{Body: []byte(long)}); exact {
		t.Errorf("descending: got %x, which is not exact", key)
	}
	if _, err := query.NewSorter([]query.Order{{Column: "c"}}); !errors.Is(err, query.ErrColumn) {
		t.Errorf("got %v, want %v", err, query.ErrColumn)
	}
}

// Ensure that a value that a cast made outlives those that follow it.
func TestSorter_AppendKey_Cast(t *testing.T) {
	for _, descending := range []bool{false, true} {
		s, err := query.NewSorter([]query.Order{{Field: field("v"), As: query.CastLong, Descending: descending}})
		if err != nil {
			t.Fatal(err)
		}
		want, _ := query.AppendKey(nil, value(map[bool]string{false: "2", true: "30"}[descending]), descending)
		for _, body := range []string{`{"v":[10.5,2.5,30.5]}`, `{"v":[2.5,10.5,30.5,7.5]}`, `{"v":["30.5","\u0032.5",7.5]}`} {
			if got, _ := s.AppendKey(nil, query.Doc{Body: []byte(body)}); !bytes.Equal(got, want) {
				t.Errorf("%s, descending %v: got %x, want %x", body, descending, got, want)
			}
		}
	}
}

// Ensure that rows sort by the columns that orders name.
func TestRowSorter(t *testing.T) {
	columns := []query.Column{{Name: "city"}, {Name: "n"}}
	s, err := query.NewRowSorter([]query.Order{{Column: "n", Descending: true}, {Column: "city"}}, columns)
	if err != nil {
		t.Fatal(err)
	}
	rows := [][]query.Value{
		{value(`"Oslo"`), value("10")}, {value("null"), value("2")}, {value(`"Bonn"`), value("2.0")}, {value(`"Wien"`), {}},
	}
	for i, a := range rows {
		for j, b := range rows {
			keyA, _ := s.AppendKey(nil, a)
			keyB, _ := s.AppendKey(nil, b)
			want := min(1, max(-1, i-j))
			if got, byKey := s.Compare(a, b), bytes.Compare(keyA, keyB); got != want || byKey != want {
				t.Errorf("%v and %v: got %d, by key %d, want %d", a, b, got, byKey, want)
			}
		}
	}
	if _, err := query.NewRowSorter([]query.Order{{Column: "m"}}, columns); !errors.Is(err, query.ErrColumn) {
		t.Errorf("got %v, want %v", err, query.ErrColumn)
	}
}
