package language_test

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/query"
)

// rangeOf returns the range of keys that answers a condition, if there is one.
func rangeOf(e query.Expr, descending bool) (r query.KeyRange, ok bool) {
	switch e := e.(type) {
	case query.Compare:
		return query.CompareRange(e.Op, e.Value, e.Fold, descending), true
	case query.Between:
		return query.BetweenRange(e.Lo, e.Hi, e.Fold, descending), true
	case query.StartsWith:
		return query.PrefixRange(e.Text, e.Fold, descending), true
	case query.Exists:
		return presentRange(descending), true
	case query.In:
		if len(e.Values) == 1 {
			return query.EqualRange(e.Values[0], e.Fold, descending), true
		}
	}
	return query.KeyRange{}, false
}

// presentRange returns the range of all values that are not missing: what lies
// behind the keys of those that are, and in descending order before them.
func presentRange(descending bool) query.KeyRange {
	missing := query.EqualRange(query.Value{}, false, descending)
	if descending {
		return query.KeyRange{Lo: []byte{}, Hi: missing.Lo}
	}
	return query.KeyRange{Lo: missing.Hi, Hi: []byte{0xff}}
}

// checkRange fails unless the range of a condition on the field v holds the
// keys of those values of which it is true, and of no others unless it says
// that they are to be rechecked.
func checkRange(t rapid.TB, e query.Expr, values []query.Value) {
	t.Helper()
	for _, descending := range []bool{false, true} {
		r, ok := rangeOf(e, descending)
		if !ok {
			return
		}
		m, err := query.Compile(e)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			body := []byte("{}")
			if !v.IsMissing() {
				body = append(append([]byte(`{"v":[`), v.Raw()...), "]}"...)
			}
			want := m.Match(query.Doc{Body: body})
			key, _ := query.AppendKey(nil, v, descending)
			key = append(key, "\xff more"...)
			got := bytes.Compare(r.Lo, key) <= 0 && bytes.Compare(key, r.Hi) < 0
			if want && !got || got && !want && !r.Recheck {
				t.Fatalf("%#v: %v is in the range from %x to %x (recheck %v): got %v, want %v; its key is %x",
					e, v, r.Lo, r.Hi, r.Recheck, got, want, key)
			}
			if r.Empty() && want {
				t.Fatalf("%#v: the range is empty, but there is %v", e, v)
			}
		}
	}
}

// Ensure that ranges hold what conditions are true of.
func TestKeyRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(genValue(), 1, 8).Draw(t, "values")
		pool := []string{"1", `"a"`}
		for _, v := range values {
			if v.IsScalar() {
				pool = append(pool, string(v.Raw()))
			}
		}
		for range 5 {
			e := genLeaf(pool).Draw(t, "leaf")
			checkRange(t, on(e, query.Field{Path: jsonpath.MustParse("v")}), values)
		}
	})
}

// Ensure that ranges hold values that are cut, which are in no order.
func TestKeyRange_Cut(t *testing.T) {
	var values []query.Value
	for _, end := range []string{"", "a", "A", "b", "c", "ä"} {
		values = append(values, query.TextValue(strings.Repeat("x", 512)+end))
	}
	for _, end := range []string{"", "1", "2", "30"} {
		digits := strings.Repeat("7", 256)
		values = append(values, value(digits+"."+end+"1"), value("-"+digits+"."+end+"1"))
	}
	f := query.Field{Path: jsonpath.MustParse("v")}
	for _, v := range values {
		for op := query.Equal; op <= query.GreaterOrEqual; op++ {
			checkRange(t, query.Compare{Field: f, Op: op, Value: v}, values)
			checkRange(t, query.Compare{Field: f, Op: op, Value: v, Fold: true}, values)
		}
		for _, w := range values {
			checkRange(t, query.Between{Field: f, Lo: v, Hi: w}, values)
			checkRange(t, query.Between{Field: f, Lo: v, Hi: w, Fold: true}, values)
		}
		checkRange(t, query.In{Field: f, Values: []query.Value{v}}, values)
		checkRange(t, query.In{Field: f, Values: []query.Value{v}, Fold: true}, values)
		checkRange(t, query.StartsWith{Field: f, Text: v.Text()}, values)
		checkRange(t, query.StartsWith{Field: f, Text: v.Text(), Fold: true}, values)
	}
}

// on returns a condition on another field.
func on(e query.Expr, f query.Field) query.Expr {
	switch e := e.(type) {
	case query.Compare:
		e.Field = f
		return e
	case query.Between:
		e.Field = f
		return e
	case query.StartsWith:
		e.Field = f
		return e
	case query.In:
		e.Field, e.All = f, false
		return e
	case query.Exists:
		return query.Exists{Field: f}
	}
	return e
}

// Ensure that ranges are to be rechecked only where they must.
func TestKeyRange_Recheck(t *testing.T) {
	long := query.TextValue(strings.Repeat("x", 600))
	tests := []struct {
		name string
		r    query.KeyRange
		want bool
	}{
		{"equal", query.EqualRange(value(`"Ada"`), false, false), false},
		{"equal without case", query.EqualRange(value(`"Ada"`), true, true), false},
		{"equal to a long text", query.EqualRange(long, false, false), true},
		{"above", query.CompareRange(query.Greater, value("1.5"), false, true), false},
		{"up to a long text", query.CompareRange(query.LessOrEqual, long, false, false), true},
		{"between", query.BetweenRange(value("1"), value("2"), false, false), false},
		{"prefix without case", query.PrefixRange("Or", true, false), false},
		{"prefix", query.PrefixRange("Or", false, false), true},
		{"prefix that has no case", query.PrefixRange("2026-01", false, true), false},
		{"long prefix", query.PrefixRange(long.Text(), true, false), true},
		{"present", presentRange(false), false},
		{"missing", query.EqualRange(query.Value{}, false, true), false},
	}
	for _, test := range tests {
		if test.r.Recheck != test.want || test.r.Empty() {
			t.Errorf("%s: got recheck %v, empty %v, want %v", test.name, test.r.Recheck, test.r.Empty(), test.want)
		}
	}
	if r := query.BetweenRange(value("1"), value(`"x"`), false, false); !r.Empty() {
		t.Errorf("between two kinds: got %x to %x, want nothing", r.Lo, r.Hi)
	}
}
