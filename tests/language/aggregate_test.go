package language_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/jaydb/jay/query"
)

// group returns the rows of documents as JSON.
func group(t rapid.TB, by []query.Field, columns []query.Column, bodies ...string) []string {
	t.Helper()
	g, err := query.NewGroups(by, columns, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range bodies {
		if err := g.Add(query.Doc{Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
	var rows []string
	for row := range g.Rows() {
		rows = append(rows, string(query.AppendRow(nil, columns, row)))
	}
	if len(rows) != g.Len() {
		t.Errorf("%d rows of %d groups", len(rows), g.Len())
	}
	return rows
}

// Ensure what each function makes of all documents.
func TestGroups_Functions(t *testing.T) {
	columns := []query.Column{
		{Name: "n", Func: query.FuncCount},
		{Name: "sum", Func: query.FuncSum, Field: field("v")},
		{Name: "avg", Func: query.FuncAvg, Field: field("v")},
		{Name: "min", Func: query.FuncMin, Field: field("v")},
		{Name: "max", Func: query.FuncMax, Field: field("v")},
	}
	tests := []struct {
		name, values, want string
	}{
		{"no documents", ``, `{"n":0,"sum":0,"avg":null,"min":null,"max":null}`},
		{"whole numbers", `1 2 4`, `{"n":3,"sum":7,"avg":2.3333333333333333,"min":1,"max":4}`},
		{"decimals", `0.1 0.2 -0.30`, `{"n":3,"sum":0,"avg":0,"min":-0.3,"max":0.2}`},
		{"above 64 bits", `9223372036854775807 1 0.5`, `{"n":3,"sum":9223372036854775808.5,"avg":3074457345618258600,"min":0.5,"max":9223372036854775807}`},
		{"below 64 bits", `-999999999999999999 -9223372036854775808`, `{"n":2,"sum":-10223372036854775807,"avg":-5111686018427387900,"min":-9223372036854775808,"max":-999999999999999999}`},
		{"over 64 bits", strings.Repeat("999999999999999999 ", 10), `{"n":10,"sum":9999999999999999990,"avg":1000000000000000000,"min":999999999999999999,"max":999999999999999999}`},
		{"under 64 bits", strings.Repeat("-999999999999999999 ", 10), `{"n":10,"sum":-9999999999999999990,"avg":-1000000000000000000,"min":-999999999999999999,"max":-999999999999999999}`},
		{"far apart", `1e25 -1e25 1e-25`, `{"n":3,"sum":1e-25,"avg":3.3333333333333333e-26,"min":-1e+25,"max":1e+25}`},
		{"two thirds below zero", `-2 0 0`, `{"n":3,"sum":-2,"avg":-0.66666666666666667,"min":-2,"max":0}`},
		{"a billion digits", `1e999999999 1`, `{"n":2,"sum":1e+999999999,"avg":5e+999999998,"min":1,"max":1e+999999999}`},
		{"a billion digits that cancel out", `1e999999999 2.5 -1e999999999 1e-999999999`, `{"n":4,"sum":2.5,"avg":0.625,"min":-1e+999999999,"max":1e+999999999}`},
		{"half to even, and a little less", `100000000000000005 -1e-999999`, `{"n":2,"sum":100000000000000005,"avg":50000000000000002,"min":-1e-999999,"max":100000000000000005}`},
		{"half to even, and a little more", `100000000000000005 1e-999999`, `{"n":2,"sum":100000000000000005,"avg":50000000000000003,"min":1e-999999,"max":100000000000000005}`},
		{"the largest numbers", `9e999999999999999 9e999999999999999`, `{"n":2,"sum":1.8e+1000000000000000,"avg":9e+999999999999999,"min":9e+999999999999999,"max":9e+999999999999999}`},
		{"the smallest numbers", `1e-1000000000000000 -3e-1000000000000000`, `{"n":2,"sum":-2e-1000000000000000,"avg":-1e-1000000000000000,"min":-3e-1000000000000000,"max":1e-1000000000000000}`},
		{"all kinds", `null true "x" "A" 2.50 [1,[2]] {}`, `{"n":7,"sum":3.5,"avg":1.75,"min":null,"max":{}}`},
		{"no numbers", `"b" "a"`, `{"n":2,"sum":0,"avg":null,"min":"a","max":"b"}`},
		{"half to even", `123456789012345670.5 1.5`, `{"n":2,"sum":123456789012345672,"avg":61728394506172836,"min":1.5,"max":123456789012345670.5}`},
		{"half to even, down", `10000000000000000.5`, `{"n":1,"sum":10000000000000000.5,"avg":10000000000000000,"min":10000000000000000.5,"max":10000000000000000.5}`},
		{"half to even, up", `-10000000000000001.5`, `{"n":1,"sum":-10000000000000001.5,"avg":-10000000000000002,"min":-10000000000000001.5,"max":-10000000000000001.5}`},
	}
	for _, test := range tests {
		var bodies []string
		for _, v := range strings.Fields(test.values) {
			bodies = append(bodies, `{"v":`+v+`}`)
		}
		if got := group(t, nil, columns, bodies...); len(got) != 1 || got[0] != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

// Ensure that sums are exact, and means to 17 digits, for numbers of any size.
func TestGroups_SumNaive(t *testing.T) {
	columns := []query.Column{
		{Name: "sum", Func: query.FuncSum, Field: field("v")},
		{Name: "avg", Func: query.FuncAvg, Field: field("v")},
	}
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfN(genNumber(), 1, 6).Draw(t, "numbers")
		var bodies []string
		sum := new(big.Rat)
		for _, n := range numbers {
			bodies = append(bodies, `{"v":[`+n+`]}`)
			sum.Add(sum, naiveNumber(json.Number(n)))
		}
		var got struct{ Sum, Avg json.Number }
		if err := json.Unmarshal([]byte(group(t, nil, columns, bodies...)[0]), &got); err != nil {
			t.Fatal(err)
		}
		if naiveNumber(got.Sum).Cmp(sum) != 0 {
			t.Errorf("sum of %v: got %s, want %s", numbers, got.Sum, sum)
		}
		// The error of a mean is at most half a unit of its 17th digit.
		mean := new(big.Rat).Quo(sum, big.NewRat(int64(len(numbers)), 1))
		diff := new(big.Rat).Sub(naiveNumber(got.Avg), mean)
		bound := new(big.Rat).Mul(mean.Abs(mean), big.NewRat(1, 20_000_000_000_000_000))
		digits, _, _ := strings.Cut(strings.TrimLeft(strings.ReplaceAll(string(got.Avg), ".", ""), "-0"), "e")
		if diff.Abs(diff).Cmp(bound) > 0 || len(strings.TrimRight(digits, "0")) > 17 {
			t.Errorf("mean of %v: got %s, off by %s", numbers, got.Avg, diff)
		}
	})
}

// Ensure that values group by what they are, that missing counts as null, and
// that a document is in each of its groups once.
func TestGroups_By(t *testing.T) {
	count := query.Column{Name: "n", Func: query.FuncCount}
	a := query.Column{Name: "a", Field: field("a")}
	bodies := []string{
		`{"a":1,"q":1}`, `{"a":1.0,"q":2}`, `{"a":"x","q":3}`, `{"a":"X","q":4}`, `{"a":"\u0078","q":5}`, `{"q":6}`, `{"a":null,"q":7}`,
		`{"a":[1,"x",1],"q":8}`, `{"a":-0.0,"q":9}`, `{"a":0,"q":10}`, `{"a":[],"q":11}`, `{"a":"1","q":12}`,
	}
	sum := query.Column{Name: "q", Func: query.FuncSum, Field: field("q")}
	got := group(t, []query.Field{field("a")}, []query.Column{a, count, sum}, bodies...)
	want := []string{
		`{"a":1,"n":3,"q":11}`, `{"a":"x","n":3,"q":16}`, `{"a":"X","n":1,"q":4}`, `{"a":null,"n":3,"q":24}`, `{"a":0,"n":2,"q":19}`, `{"a":"1","n":1,"q":12}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %s\nwant %s", got, want)
	}

	b := query.Column{Name: "b", Field: field("l.p")}
	got = group(t, []query.Field{field("l.p"), field("a")}, []query.Column{a, b, count}, `{"a":["x","y"],"l":[{"p":1},{"p":2}]}`, `{"a":"y","l":[{"p":2}]}`)
	want = []string{`{"a":"x","b":1,"n":1}`, `{"a":"x","b":2,"n":1}`, `{"a":"y","b":1,"n":1}`, `{"a":"y","b":2,"n":2}`}
	if !slices.Equal(got, want) {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// Ensure that sums of numbers whose digits are far apart are those of big.Rat,
// rounded to 20,000 digits, in whatever order they come.
func TestGroups_SumFarApart(t *testing.T) {
	columns := []query.Column{{Name: "sum", Func: query.FuncSum, Field: field("v")}, {Name: "avg", Func: query.FuncAvg, Field: field("v")}}
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			sign := rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign")
			digits := rapid.StringMatching(`[1-9][0-9]{0,40}|9{99,301}|50{98,99}|10{198,201}`).Draw(t, "digits")
			return fmt.Sprintf("%s%se%d", sign, digits, rapid.SampledFrom([]int{-25_001, -20_300, -301, -100, -99, -1, 0, 1, 99, 100, 101, 9_999, 20_001}).Draw(t, "exponent"))
		}), 1, 6).Draw(t, "numbers")
		var forwards, backwards []string
		sum := new(big.Rat)
		for _, n := range numbers {
			forwards = append(forwards, `{"v":[`+n+`]}`)
			r, _ := new(big.Rat).SetString(n)
			sum.Add(sum, r)
		}
		for i := range forwards {
			backwards = append(backwards, forwards[len(forwards)-1-i])
		}
		got := group(t, nil, columns, forwards...)[0]
		if again := group(t, nil, columns, backwards...)[0]; again != got {
			t.Fatalf("%v: got %.100s forwards and %.100s backwards", numbers, got, again)
		}
		var row struct{ Sum, Avg json.Number }
		if err := json.Unmarshal([]byte(got), &row); err != nil {
			t.Fatal(err)
		}
		mean := new(big.Rat).Quo(sum, big.NewRat(int64(len(numbers)), 1))
		checkRounded(t, row.Sum, sum, 20_000)
		checkRounded(t, row.Avg, mean, 17)
	})
}

// checkRounded checks that got has at most so many digits, and is off by no
// more than half a unit of the last one.
func checkRounded(t rapid.TB, got json.Number, want *big.Rat, digits int64) {
	t.Helper()
	g, ok := new(big.Rat).SetString(got.String())
	if !ok {
		t.Fatalf("%.100s is no number", got)
	}
	mantissa, _, _ := strings.Cut(strings.TrimPrefix(got.String(), "-"), "e")
	if n := len(strings.Trim(strings.ReplaceAll(mantissa, ".", ""), "0")); int64(n) > digits {
		t.Errorf("%.100s… has %d digits", got, n)
	}
	// |got - want| × 2 × 10^digits <= |want| × 10 bounds it by the first digit.
	diff := new(big.Rat).Sub(g, want)
	diff.Mul(diff.Abs(diff), new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(digits-1), nil)))
	if diff.Add(diff, diff).Cmp(new(big.Rat).Abs(want)) > 0 {
		t.Errorf("%.100s is off by more than half a unit of digit %d", got, digits)
	}
}

// Ensure that a number beyond the bound of exponents, which documents of older
// versions may have, is shown as it is, not as another one, and is not summed.
func TestGroups_BeyondExponent(t *testing.T) {
	const beyond = "1e99999999999999999999999999"
	columns := []query.Column{{Name: "v", Field: field("v")}, {Name: "max", Func: query.FuncMax, Field: field("v")}}
	got := group(t, []query.Field{field("v")}, columns, `{"v":`+beyond+`}`)
	if want := `{"v":` + beyond + `,"max":` + beyond + `}`; len(got) != 1 || got[0] != want {
		t.Errorf("got %s, want %s", got, want)
	}
	g, err := query.NewGroups(nil, []query.Column{{Name: "sum", Func: query.FuncSum, Field: field("v")}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Add(query.Doc{Body: []byte(`{"v":` + beyond + `}`)}); !errors.Is(err, query.ErrNumber) {
		t.Errorf("got %v, want %v", err, query.ErrNumber)
	}
	for _, v := range []any{json.Number(beyond), json.Number("-1e-99999999999999999"), query.ValueOf([]byte(beyond))} {
		if _, err := query.NewValue(v); !errors.Is(err, query.ErrNumber) {
			t.Errorf("%v: got %v, want %v", v, err, query.ErrNumber)
		}
	}
}

// Ensure that values are in one group exactly if they are equal.
func TestGroups_Identity(t *testing.T) {
	a := query.Column{Name: "a", Field: field("a")}
	rapid.Check(t, func(t *rapid.T) {
		v, w := genScalar().Draw(t, "v"), genScalar().Draw(t, "w")
		rows := group(t, []query.Field{field("a")}, []query.Column{a}, `{"a":`+v+`}`, `{"a":`+w+`}`)
		if equal := value(v).Equal(value(w)); (len(rows) == 1) != equal {
			t.Errorf("%s and %s: %d groups, equal %v", v, w, len(rows), equal)
		}
	})
}

// Ensure that columns without meaning are refused, and that what grows is
// bounded.
func TestGroups_Refused(t *testing.T) {
	count := query.Column{Name: "n", Func: query.FuncCount}
	for name, columns := range map[string][]query.Column{
		"not grouped by": {count, {Name: "a", Field: field("a")}},
		"no name":        {{Func: query.FuncCount}},
		"name twice":     {count, count},
		"no function":    {{Name: "x", Func: 99}},
	} {
		if _, err := query.NewGroups([]query.Field{field("b")}, columns, 0); !errors.Is(err, query.ErrColumn) {
			t.Errorf("%s: got %v, want %v", name, err, query.ErrColumn)
		}
	}

	sum := query.Column{Name: "s", Func: query.FuncSum, Field: field("a")}
	big := "[" + strings.Repeat("1,2,3,4,5,6,7,8,9,0,", 11) + "0]"
	tests := []struct {
		name, body string
		by         []query.Field
		limit      int
	}{
		{"sum of digits far apart", `{"a":[1e99999,1e88888,1e77777,1e66666,1e55555,1e44444,1e33333,1e22222]}`, nil, 5_000},
		{"many groups of one document", `{"a":` + big + `,"b":` + big + `}`, []query.Field{field("a"), field("b")}, 0},
		{"memory", `{"a":"` + strings.Repeat("x", 10_000) + `"}`, []query.Field{field("a")}, 10_000},
	}
	for _, test := range tests {
		g, err := query.NewGroups(test.by, []query.Column{sum}, test.limit)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Add(query.Doc{Body: []byte(test.body)}); !errors.Is(err, query.ErrLimit) {
			t.Errorf("%s: got %v, want %v", test.name, err, query.ErrLimit)
		}
	}
}

// Ensure that rows are distinguished by their values, in bounded memory.
func TestDistinct(t *testing.T) {
	d := query.NewDistinct(1000)
	for i, row := range []string{`{"a":1}`, `{"b":1}`, `{"a":1.0}`, `{}`, `{}`, `{"b":1e0}`} {
		if first, err := d.Add([]byte(row)); err != nil || first != (i < 2 || i == 3) {
			t.Errorf("row %d: got %v, %v", i, first, err)
		}
	}
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		_, err = d.Add(fmt.Appendf(nil, `{"a":%d}`, i))
	}
	if !errors.Is(err, query.ErrLimit) {
		t.Errorf("got %v, want %v", err, query.ErrLimit)
	}
}
