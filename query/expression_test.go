package query_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/query"
)

// computed returns what a text computes from a document, as JSON; "missing" for nothing.
func computed(t *testing.T, text, body string) string {
	t.Helper()
	f, err := query.ParseExpression(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	again, err := query.ParseExpression(f.String())
	if err != nil || again.String() != f.String() {
		t.Fatalf("%s is printed %s, and that is %v, %v", text, f, again, err)
	}
	var got [2]string
	for i, f := range []query.Field{f, again} {
		r := query.NewReader([]query.Field{f}).Clone()
		r.Reset(query.Doc{Body: []byte(body)})
		got[i] = "missing"
		for _, v := range r.Values(0) {
			got[i] = v.String()
		}
	}
	if got[0] != got[1] {
		t.Errorf("%s of %s is %s, and as it is printed, %s, %s", text, body, got[0], f, got[1])
	}
	return got[0]
}

// Ensure that each operator and function computes what it says, and nothing where it cannot.
func TestExpression(t *testing.T) {
	t.Parallel()
	const body = `{"a":7,"b":-2,"d":0.1,"big":123456789012345678901234567890,"t":"Ada ","u":"Ärger","n":null,"o":{"x":[1,2]},` +
		`"l":[{"p":2,"q":3},{"p":5,"q":1}],"at":"2026-03-01T23:59:59.9999999Z","to":"2026-03-03T00:00:00+01:00","bare":"2026-03-01T10:00:00","First Name":"Ada","year":3}`
	for _, test := range []struct{ text, want string }{
		{"a + b", "5"},
		{"a - b", "9"},
		{"a * b", "-14"},
		{"a / b", "-3.5"},
		{"a % b", "1"},
		{"b % a", "-2"},
		{"1 / 3", "0.33333333333333333"},
		{"2 / 3", "0.66666666666666667"},
		{"1 / 8", "0.125"},
		{"-1 / 3", "-0.33333333333333333"},
		{"5 % 0.3", "0.2"},
		{"d + 0.2", "0.3"},
		{"d * d", "0.01"},
		{"big * big", "1.52415787532388367504953515625361987875019051998750190521e+58"},
		{"9223372036854775807 + 1", "9223372036854775808"},
		{"999999999999999999 * 999999999999999999", "9.99999999999999998000000000000000001e+35"},
		{"a -1", "6"},
		{"a - -1", "8"},
		{"-a", "-7"},
		{"-(a + b) * 2", "-10"},
		{"a + b * 2", "3"},
		{"(a + b) * 2", "10"},
		{"a - (b - 1)", "10"},
		{"a - b - 1", "8"},
		{"a / (b * 7)", "-0.5"},
		{"abs(b)", "2"},
		{"round(2.5) + round(-2.5)", "0"},
		{"round(2.345, 2)", "2.35"},
		{"round(1250, -2)", "1300"},
		{"round(0.04)", "0"},
		{"floor(-0.1)", "-1"},
		{"ceiling(0.1)", "1"},
		{"floor(-1e-900)", "-1"},
		{"ceiling(7)", "7"},
		{"t + 'x'", `"Ada x"`},
		{"concat(t, a, n, nothing, true)", `"Ada 7true"`},
		{"text(1.50)", `"1.5"`},
		{"number('1.50') + 1", "2.5"},
		{"lower(u)", `"ärger"`},
		{"upper(u)", `"ÄRGER"`},
		{"trim(t)", `"Ada"`},
		{"length(u)", "5"},
		{"substring(u, 1, 3)", `"rge"`},
		{"substring(u, 4)", `"r"`},
		{"substring(u, 9)", `""`},
		{"replace(u, 'r', 'll')", `"Ällgell"`},
		{"coalesce(nothing, n, a, b)", "7"},
		{"coalesce(nothing, n)", "null"},
		{"if(a > 5 and not exists(nothing), 'large', 'small')", `"large"`},
		{"if(startsWith(t, 'x'), 1, a / 0)", "missing"},
		{"if(a > 5, 1, a / 0)", "1"}, // the other one is not computed
		{"if(a * 2 = 14, if(true, 'in', 1), 0)", `"in"`},
		{"field('First Name') + '!'", `"Ada!"`},
		{"year + 1", "4"},
		{"day(at) + ''", `"2026-03-01"`},
		{"dateDiff('day', at, to)", "0"},
		{"dateDiff('hour', to, at)", "-23"},
		{"dateDiff('hour', at, to)", "23"},
		{"dateDiff('millisecond', '2026-01-01T00:00:00.0009Z', '2026-01-01T00:00:01Z')", "999"},
		{"dateDiff('millisecond', '2026-01-01T00:00:01Z', '2026-01-01T00:00:00.0009Z')", "-999"},
		{"dateDiff('second', '0000-01-01T00:00:00Z', '9999-12-31T23:59:59Z')", "315569519999"},
		{"datePart('week', at) * 100 + datePart('weekday', at)", "907"},
		{"datePart('quarter', at) + datePart('dayOfYear', at)", "61"},
		{"dateTrunc('week', at)", `"2026-02-23T00:00:00.0000000Z"`},
		{"dateTrunc('MONTH', at)", `"2026-03-01T00:00:00.0000000Z"`},
		{"datePart('hour', bare)", "missing"},
		{"datePart('hour', bare as utc)", "10"},
		{"l[0].p * l[0].q", "6"},
		{"l.p * 2", "missing"}, // two values
		{"o.x[1] + 1", "3"},
		{"o + 1", "missing"},
		{"n + 1", "null"},
		{"nothing + n", "missing"},
		{"nothing + 1", "missing"},
		{"a / 0", "missing"},
		{"a % 0", "missing"},
		{"t + a", "missing"},
		{"t * 2", "missing"},
		{"(1e600 + 1) * (1e600 + 1)", "missing"}, // more than 1,000 digits
		{"1e600 * 1e600", "1e+1200"},
		{"1e2000 + 1", "missing"},
		{"1e600 * 1e300 / 1e900", "1"},
		{"(a)", "7"},
	} {
		if got := computed(t, test.text, body); got != test.want {
			t.Errorf("%s is %s, want %s", test.text, got, test.want)
		}
	}
}

// Ensure that what cannot be an expression is refused, with the place and what is wanted instead.
func TestExpression_Refused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, message string }{
		{"", "ends"},
		{"a +", "ends"},
		{"a + + b", `"+"`},
		{"a b", `unexpected "b"`},
		{"(a", `")"`},
		{"a + 'x' * 2", "takes numbers"},
		{"'First Name' - 1", "field('First Name')"},
		{"true + 1", "takes numbers"},
		{"lower()", "one operand"},
		{"lower(a, b)", "one operand"},
		{"substring(a)", "2 to 3 operands"},
		{"if(a, 1, 2)", "between"},
		{"if(a > 1)", "behind the condition of if()"},
		{"if(a > 1, 2, 3, 4)", "a condition"},
		{"join(a)", "2 operands"},
		{"if(id() = 'a', 1, 2)", "id()"},
		{"if(count() > 1, 1, 2)", "of groups"},
		{"if(a", "ends"},
		{"sum(a) + 1", "sum()"},
		{"1 + sum(a)", "of groups"},
		{"datePart('fortnight', a)", "one of year"},
		{"datePart('yaer', a)", "did you mean year?"},
		{"datePart(a, b)", "a unit in quotes"},
		{"(lower(a) as utc) + 1", `")"`},
		{"unknown(a) + 1", "unknown"},
		{strings.Repeat("(", 300) + "a", "too deep"},
		{strings.Repeat("-", 300) + "a", `"--"`},
		{strings.Repeat("- ", 300) + "a", "too deep"},
		{strings.Repeat("a + ", 1000) + "a", "too many operands"},
	} {
		f, err := query.ParseExpression(test.text)
		if !errors.Is(err, query.ErrSyntax) || !strings.Contains(err.Error(), test.message) {
			t.Errorf("%.40s is %v, %v, want %q", test.text, f, err, test.message)
		}
	}
}

// Ensure that expressions stand wherever a query has a field: in conditions of either side, in those of elements, in orders,
// groups and columns.
func TestExpression_InQueries(t *testing.T) {
	t.Parallel()
	const body = `{"Price":2.5,"Quantity":4,"Name":"Ada","At":"2026-03-01T10:00:00Z","Lines":[{"p":2,"q":3},{"p":5,"q":1}]}`
	for _, test := range []struct {
		where string
		want  bool
	}{
		{"Price * Quantity = 10", true},
		{"Price * Quantity > 10", false},
		{"5 + 5 = Price * Quantity", true},
		{"(Price + 1) * 2 between 6 and 7", true},
		{"(Price > 1 and Quantity > 1) and Price < Quantity - 1", true},
		{"((Price) * (Quantity)) = ((10))", true},
		{"lower(Name) in ('ada', 'bob')", true},
		{"exact(lower(Name) = 'ADA')", false},
		{"lower(Name) = 'ADA'", true},
		{"startsWith(concat(Name, '-', Price), 'ada-2')", true},
		{"not exists(Price / 0)", true},
		{"Price / 0 = null", false},
		{"exists(Price / 1)", true},
		{"elemMatch(Lines, p * q > 5)", true},
		{"elemMatch(Lines, p * q > 6)", false},
		{"elemMatch(Lines, if(p * q > 5, 1, 0) = 1)", true},
		{"elemMatch(Lines, if(p * q > 6, 1, 0) = 1)", false},
		{"dateTrunc('day', At) = '2026-03-01T00:00:00.0000000Z'", true},
		{"if(Price > 2, 'dear', 'cheap') = 'dear'", true},
		{"Price > -2", true},
		{"Quantity % 3 = 1", true},
	} {
		q, err := query.Parse("from Orders where "+test.where, nil)
		if err != nil {
			t.Errorf("%s: %v", test.where, err)
			continue
		}
		again, err := query.Parse(q.String(), nil)
		if err != nil {
			t.Errorf("%s is printed %s: %v", test.where, q, err)
			continue
		}
		for _, e := range []query.Expr{q.Where, again.Where} {
			m, err := query.Compile(e)
			if err != nil {
				t.Errorf("%s: %v", test.where, err)
				continue
			}
			if got := m.Clone().Match(query.Doc{Body: []byte(body)}); got != test.want {
				t.Errorf("%s is %v", test.where, got)
			}
		}
	}

	q, err := query.Parse("from Orders select Price * Quantity as Total, upper(Name), Name, Price / 0 as None, Lines[0].p + 1", nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := query.NewProjector(q.Select)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(p.Append(nil, query.Doc{Body: []byte(body)})), `{"Total":10,"upper(Name)":"ADA","Name":"Ada","None":null,"Lines[0].p + 1":3}`; got != want {
		t.Errorf("columns: %s, want %s", got, want)
	}

	q, err = query.Parse("from Orders group by dateTrunc('month', At), Quantity % 2 select dateTrunc('month', At) as Month, sum(Price * Quantity) as Total", nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := query.NewGroups(q.GroupBy, q.Select, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := g.Add(query.Doc{Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
	rows := 0
	for row := range g.Rows() {
		rows++
		if got, want := string(query.AppendRow(nil, q.Select, row)), `{"Month":"2026-03-01T00:00:00.0000000Z","Total":30}`; got != want {
			t.Errorf("group %s, want %s", got, want)
		}
	}
	if rows != 1 {
		t.Errorf("%d groups", rows)
	}
}

// Ensure that sums, differences, products and remainders are exact, and that a quotient has the 17 digits nearest to it, as
// rational numbers of package math/big say.
func TestExpression_Exact(t *testing.T) {
	t.Parallel()
	today := sample.Of(t, 10)
	random := rand.New(rand.NewPCG(today.Seed(), 1))
	number := func() string {
		text := fmt.Sprint(random.Int64N(2_000_001) - 1_000_000)
		switch random.IntN(4) {
		case 0:
			text = fmt.Sprint(random.Int64() - random.Int64())
		case 1:
			text = fmt.Sprint(random.IntN(100))
		}
		if random.IntN(2) == 0 {
			text += fmt.Sprintf(".%0*d", 1+random.IntN(9), random.IntN(1_000_000_000))
		}
		if random.IntN(6) == 0 {
			text += fmt.Sprintf("e%d", random.IntN(81)-40)
		}
		return text
	}
	for range today.Rounds(20_000) {
		a, b, op := number(), number(), "+-*/%"[random.IntN(5)]
		x, okX := new(big.Rat).SetString(a)
		y, okY := new(big.Rat).SetString(b)
		if !okX || !okY {
			t.Fatalf("%s or %s is no number", a, b)
		}
		got := computed(t, fmt.Sprintf("a %c b", op), fmt.Sprintf(`{"a":%s,"b":%s}`, a, b))
		want := new(big.Rat)
		switch op {
		case '+':
			want.Add(x, y)
		case '-':
			want.Sub(x, y)
		case '*':
			want.Mul(x, y)
		default:
			if y.Sign() == 0 {
				if got != "missing" {
					t.Errorf("%s %c %s is %s", a, op, b, got)
				}
				continue
			}
			want.Quo(x, y)
			if op == '%' {
				whole := new(big.Int).Quo(want.Num(), want.Denom()) // towards zero
				want.Sub(x, new(big.Rat).Mul(y, new(big.Rat).SetInt(whole)))
			}
		}
		result, ok := new(big.Rat).SetString(got)
		if !ok || !json.Valid([]byte(got)) {
			t.Errorf("%s %c %s is %s", a, op, b, got)
			continue
		}
		if op != '/' {
			if result.Cmp(want) != 0 {
				t.Errorf("%s %c %s is %s, want %s", a, op, b, got, want.RatString())
			}
			continue
		}
		// At most half a unit of the 17th digit away: 5e-17 of it, at the most.
		off := new(big.Rat).Sub(result, want)
		if off.Abs(off).Cmp(new(big.Rat).Mul(new(big.Rat).Abs(want), big.NewRat(5, 100_000_000_000_000_000))) > 0 {
			t.Errorf("%s / %s is %s, which is %s off", a, b, got, off.FloatString(40))
		}
	}
}

// Ensure that a text that grows beyond the bound is no value, and that its memory is not taken.
func TestExpression_Bytes(t *testing.T) {
	t.Parallel()
	body := fmt.Sprintf(`{"t":%q}`, strings.Repeat("x", 1000))
	if got := computed(t, "concat(replace(t, 'x', t), replace(t, 'x', t))", body); got != "missing" {
		t.Errorf("%d bytes were computed", len(got))
	}
	if got := computed(t, "length(replace(t, 'x', t))", body); got != "1000000" {
		t.Errorf("%s bytes, want a million", got)
	}
	if got := computed(t, "replace(concat(t, t), 'x', t)", body); got != "missing" {
		t.Errorf("%d bytes were computed", len(got))
	}
}

// Ensure that a query whose expressions compute too much of one document fails, wherever they stand, and does not go on
// without them.
func TestExpression_BytesOfDocument(t *testing.T) {
	t.Parallel()
	body := []byte(fmt.Sprintf(`{"t":%q,"l":[{"t":%[1]q}]}`, strings.Repeat("x", 900_000)))
	many := func(format, join string, n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(format, i))
		}
		return strings.Join(all, join)
	}
	nested := "upper(t) = 'a'"
	for i := range 30 {
		nested = fmt.Sprintf("(upper(concat(t, %d)) = 'a' or if(%s, 1, 2) = 1)", i, nested)
	}
	for name, test := range map[string]struct {
		where string
		fails bool
	}{
		"few":             {many("concat(t, %d) = 'a'", " or ", 10), false},
		"many":            {many("concat(t, %d) = 'a'", " or ", 30), true},
		"of one":          {"length(" + strings.Repeat("trim(upper(", 15) + "t" + strings.Repeat("))", 15) + ") = 1", true},
		"of conditions":   {many("if(concat(t, %d) = 'a', 1, 2) = 1", " or ", 10), false}, // one after the other
		"in conditions":   {nested, true},
		"of elements":     {"elemMatch(l, " + many("concat(t, %d) = 'a'", " or ", 30) + ")", true},
		"beside elements": {many("concat(t, %d) = 'a'", " or ", 12) + " or elemMatch(l, " + many("concat(t, %d) = 'a'", " or ", 12) + ")", true},
	} {
		e, err := query.ParseCondition(test.where, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		m, err := query.Compile(e)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		pace := new(query.Pace)
		m.SetPace(pace)
		m.Match(query.Doc{Body: body})
		if err := pace.Settle(); errors.Is(err, query.ErrLimit) != test.fails || (err != nil) != test.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A condition on an expression beside one on a field.
func BenchmarkMatcher_Expression(b *testing.B) {
	doc := query.Doc{Body: []byte(`{"Name":"Chai","Supplier":"suppliers/1-A","Category":"categories/1-A","Price":18.5,"Stock":39,"Discontinued":false}`)}
	for _, condition := range []string{"Price > 1000", "Price * Stock > 1000", "Stock + Stock > 1000", "lower(Name) = 'tea'", "round(Price * 1.081, 2) > 1000"} {
		b.Run(condition, func(b *testing.B) {
			e, err := query.ParseCondition(condition, nil)
			if err != nil {
				b.Fatal(err)
			}
			m, err := query.Compile(e)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if m.Match(doc) {
					b.Fatal("it matches")
				}
			}
		})
	}
}

// Ensure that what is computed leaves the instants of other fields as they are: the first operand that is wanted has the document read, and with it all fields.
func TestReader_ComputedBeforeInstants(t *testing.T) {
	t.Parallel()
	instant := query.Field{Path: jsonpath.MustParse("W"), Date: query.DateInstant, UTC: true}
	for _, text := range []string{"concat(A, '-', B)", "A * 1000 + 7", "spatial.point(A, B)", "spatial.distance(spatial.point(A, B), spatial.point(1, 2))", "dateDiff('day', W, '2026-01-01T00:00:00Z')", "if(A > 1, text(B), 'none')"} {
		f, err := query.ParseExpression(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, first := range []int{0, 1} {
			r := query.NewReader([]query.Field{f, instant})
			r.Reset(query.Doc{Body: []byte(`{"A":1,"W":"2025-01-01 12:00:00","B":1}`)}) // from now on there is memory
			r.Values(1)
			r.Values(0)
			r.Reset(query.Doc{Body: []byte(`{"A":12,"W":"2026-03-01 12:00:00","B":34.5}`)})
			before := fmt.Sprint(r.Values(first))
			r.Values(1 - first)
			if after := fmt.Sprint(r.Values(first)); after != before {
				t.Errorf("%s, field %d first: %s has become %s", text, first, before, after)
			}
			if got := fmt.Sprint(r.Values(1)); !strings.Contains(got, "2026-03-01T12:00:00") {
				t.Errorf("%s, field %d first: the instant is %s", text, first, got)
			}
		}
	}
}
