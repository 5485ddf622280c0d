package query_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/query"
)

// repeated returns n copies of part with a comma between them.
func repeated(part string, n int) string {
	return strings.TrimSuffix(strings.Repeat(part+", ", n), ", ")
}

// Ensure what is within the bounds is a query, and what is beyond is refused,
// soon and by name.
func TestParse_Bounds(t *testing.T) {
	const from = "from Orders where "
	list := func(n int) map[string]any { return map[string]any{"p": make([]int, n)} }
	long := strings.Repeat("n", query.MaxName)

	for _, test := range []struct {
		name   string
		text   string
		params map[string]any
		want   string // in the error; "" if there is none
	}{
		{"the longest text", "from Orders" + strings.Repeat(" ", query.MaxText-11), nil, ""},
		{"a longer text", "from Orders" + strings.Repeat(" ", query.MaxText-10), nil, "65537 bytes"},
		{"a text of 1 MB", from + strings.Repeat("a = 1 or ", 1<<20/9) + "a = 1", nil, "bytes: 65536 are the most"},

		{"the deepest parentheses", from + strings.Repeat("(", query.MaxTextDepth) + "a = 1" + strings.Repeat(")", query.MaxTextDepth), nil, ""},
		{"deeper parentheses", from + strings.Repeat("(", 251) + "a = 1" + strings.Repeat(")", 251), nil, "250 levels"},
		{"10,000 parentheses", from + strings.Repeat("(", 10_000), nil, "250 levels"},
		{"10,000 nots", from + strings.Repeat("not ", 10_000) + "a = 1", nil, "250 levels"},
		{"the most nots", from + strings.Repeat("not ", 250) + "a = 1", nil, ""},
		{"5,000 exacts", from + strings.Repeat("exact(", 5_000), nil, "250 levels"},
		{"10,000 parentheses closed", from + "a = 1" + strings.Repeat(")", 10_000), nil, `unexpected ")"`},
		{"10,000 brackets", from + "a" + strings.Repeat("[]", 10_000) + " = 1", nil, "64 steps"},
		{"parentheses beside one another", from + strings.Repeat("(a = 1) and ", 1_000) + "(not (a = 1))", nil, ""},

		{"a flat or", from + strings.Repeat("a = 1 or ", 7_000) + "a = 1", nil, ""},
		{"a flat and", from + strings.Repeat("a = 1 and ", 6_000) + "a = 1", nil, ""},
		{"a flat or of ands", from + strings.Repeat("a=1 or a=1 and ", 4_000) + "a = 1", nil, ""},

		{"the most values", from + "a in ($p)", list(query.MaxInValues), ""},
		{"more values", from + "a in ($p)", list(query.MaxInValues + 1), "10000 are the most"},
		{"more values in two", from + "a in ($p, 1)", list(query.MaxInValues), "10000 are the most"},
		{"the most values written", from + "a in (" + repeated("1", query.MaxInValues) + ")", nil, ""},
		{"more values written", from + "a in (" + repeated("1", query.MaxInValues+1) + ")", nil, "10000 are the most"},

		{"the longest name", "from " + long, nil, ""},
		{"a longer name", "from " + long + "n", nil, "1024 are the most"},
		{"a longer name in quotes", "from '" + long + "n'", nil, "1024 are the most"},
		{"a longer alias", "from a as '" + long + "n'", nil, "1024 are the most"},
		{"a longer column", "from a select b as '" + long + "n'", nil, "1024 are the most"},
		{"a longer parameter", from + "a = $" + long + "n", nil, "1024 are the most"},
		{"a longer member", from + "'" + long + "n' = 1", nil, "1024 are the most"},
		{"the longest path", from + "a" + strings.Repeat(".a", 63) + " = 1", nil, ""},
		{"a longer path", from + "a" + strings.Repeat(".a", 64) + " = 1", nil, "64 steps"},
		{"a path of 30,000 members", from + "a" + strings.Repeat(".a", 30_000) + " = 1", nil, "64 steps"},
		{"a path of long members", from + long[1:] + "." + long[1:] + " = 1", nil, "bytes is too long"},

		{"the most columns", "from a order by " + repeated("a", query.MaxColumns), nil, ""},
		{"more orders", "from a order by " + repeated("a", query.MaxColumns+1), nil, "256 are the most"},
		{"more includes", "from a include " + repeated("a", query.MaxColumns+1), nil, "256 are the most"},
		{"more columns", "from a select " + repeated("count()", query.MaxColumns+1), nil, "256 are the most"},
		{"more groups", "from a group by " + repeated("a", query.MaxColumns+1), nil, "256 are the most"},

		{"not UTF-8", "from a where b = '\xff'", nil, "not UTF-8"},
		{"a replacement character", "from a where b = '\ufffd'", nil, ""},
		{"a NUL", "from a\x00", nil, "unexpected character"},
		{"a long wrong text", "from a select b " + "'" + strings.Repeat("é", 1000) + "'", nil, "unexpected text 'éé"},
		{"a long value in place of a field", from + strings.Repeat("9", 1000) + " = a", nil, "unexpected number 99"},
	} {
		t.Run(test.name, func(t *testing.T) {
			q, err := query.Parse(test.text, test.params)
			if test.want == "" {
				if err != nil {
					t.Fatalf("got error %.300v", err)
				}
				if again, err := query.Parse(q.String(), nil); len(q.String()) <= query.MaxText && (err != nil || !reflect.DeepEqual(q, again)) {
					t.Fatalf("got another query or error %.300v for what it prints", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got error %.300v, want %q in it", err, test.want)
			}
			if e := checkError(t, test.text, err); len(e.Error()) > 400 || len(e.Caret()) > 800 {
				t.Fatalf("got an error of %d bytes and a caret of %d", len(e.Error()), len(e.Caret()))
			}
		})
	}
}

// Ensure a long chain of one operator is one condition, however long.
func TestParse_FlatChain(t *testing.T) {
	q, err := query.Parse("from a where "+strings.Repeat("b = 1 or ", 5_000)+"b = 1", nil)
	if err != nil {
		t.Fatal(err)
	}
	or, ok := q.Where.(query.Or)
	if !ok || len(or) != 5_001 {
		t.Fatalf("got %T of %d conditions, want Or of 5001", q.Where, len(or))
	}
}

// named is a parameter's type that only reflection knows.
type named string

// Ensure parameters of Go's types are the values that JSON has for them.
func TestParse_Parameters(t *testing.T) {
	text := "it's"
	for _, test := range []struct {
		name  string
		value any
		want  string // "" if it is refused
	}{
		{"text", "a", "'a'"},
		{"a named text", named("a"), "'a'"},
		{"a pointer", &text, `'it\'s'`},
		{"nil", nil, "null"},
		{"a nil pointer", (*string)(nil), "null"},
		{"true", true, "true"},
		{"int", -5, "-5"},
		{"uint64", uint64(1<<64 - 1), "18446744073709551615"},
		{"float64", 1.5, "1.5"},
		{"json.Number", json.Number("9007199254740993"), "9007199254740993"},
		{"time.Time", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "'2026-01-02T03:04:05.0000000Z'"},
		{"a Value", query.TextValue("a"), "'a'"},
		{"an empty list", []string{}, ""},
		{"a list", []string{"a", "b"}, "'a', 'b'"},
		{"a list of anything", []any{"a", 1, nil}, "'a', 1, null"},
		{"an array", [2]named{"a", "b"}, "'a', 'b'"},
		{"a nil list", []int(nil), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			q, err := query.Parse("from a where b in ($p)", map[string]any{"p": test.value})
			if err != nil {
				t.Fatal(err)
			}
			field := "b"
			if _, isTime := test.value.(time.Time); isTime {
				field = "b as date"
			}
			if got, want := q.String(), "from a where "+field+" in ("+test.want+")"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}

	for _, value := range []any{[]byte("a"), struct{}{}, map[string]any{}, func() {}, []any{[]int{1}}, []any{struct{}{}}} {
		_, err := query.Parse("from a where b in ($p)", map[string]any{"p": value})
		if !errors.Is(err, query.ErrValue) || !errors.Is(err, query.ErrSyntax) {
			t.Errorf("%T: got error %v, want ErrValue and ErrSyntax", value, err)
		}
	}
}

// Ensure a count may come as any whole number that Go has.
func TestParse_CountParameters(t *testing.T) {
	type count uint8
	for _, value := range []any{5, int64(5), uint(5), count(5), 5.0, float32(5), json.Number("5")} {
		q, err := query.Parse("from a limit $p", map[string]any{"p": value})
		if err != nil || !q.HasLimit || q.Limit != 5 {
			t.Errorf("%T: got %+v and error %v, want limit 5", value, q, err)
		}
	}
	for _, value := range []any{-1, 1.5, "5", true, json.Number("5.0"), json.Number("x"), 1e300, uint64(1 << 63), []int{5}} {
		if _, err := query.Parse("from a limit $p", map[string]any{"p": value}); !errors.Is(err, query.ErrSyntax) {
			t.Errorf("%T %v: got error %v, want ErrSyntax", value, value, err)
		}
	}
}

// Ensure a count without a value is none: RavenDB's clients send "limit $p0, $p1" with a
// null for what was not asked for.
func TestParse_NullLimits(t *testing.T) {
	for _, test := range []struct {
		text   string
		p0, p1 any
		want   string
	}{
		{"from 'Users' limit $p0, $p1", nil, 5, "from Users limit 5"},
		{"from 'Users' limit $p0, $p1", 5, nil, "from Users offset 5"},
		{"from 'Users' limit $p0, $p1", nil, nil, "from Users"},
		{"from 'Users' limit $p0, $p1", 2, 0, "from Users limit 0 offset 2"},
		{"from 'Users' limit $p0 offset $p1", nil, 5, "from Users offset 5"},
		{"from 'Users' limit $p0 offset $p1", 5, nil, "from Users limit 5"},
	} {
		q, err := query.Parse(test.text, map[string]any{"p0": test.p0, "p1": test.p1})
		if err != nil || q.String() != test.want {
			t.Errorf("%s with %v, %v: got %v, %v, want %s", test.text, test.p0, test.p1, q, err, test.want)
		}
	}
}

// Ensure a condition alone is what stands behind where, and nothing else.
func TestParseCondition(t *testing.T) {
	got, err := query.ParseCondition("Total > $p and exact(Name = 'x')", map[string]any{"p": 5})
	if err != nil {
		t.Fatal(err)
	}
	q, err := query.Parse("from a where Total > 5 and exact(Name = 'x')", nil)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, q.Where) {
		t.Errorf("got %s, want %s", query.FormatCondition(got), query.FormatCondition(q.Where))
	}

	for _, text := range []string{"", "where a = 1", "a = 1 order by b", "a = 1)", "from a", "a = $p"} {
		if _, err := query.ParseCondition(text, nil); !errors.Is(err, query.ErrSyntax) {
			t.Errorf("%q: got error %v, want ErrSyntax", text, err)
		}
	}
}

// A wrong query shows the place and what was expected there.
func ExampleSyntaxError() {
	_, err := query.Parse("from Orders\nwhere Total bewteen 1 and 5", nil)

	var wrong *query.SyntaxError
	if errors.As(err, &wrong) {
		fmt.Println(wrong)
		fmt.Println(wrong.Caret())
	}
	// Output:
	// query: line 2, column 13: unexpected "bewteen", expected =, !=, <, <=, >, >=, between, in or all in; did you mean between?
	// where Total bewteen 1 and 5
	//             ^
}

// A query's text with parameters, and the way Explain shows it.
func ExampleParse() {
	q, err := query.Parse(`
		from Orders as o
		where o.Company in ($companies) and not exists(o.ShippedAt)
		order by o.OrderedAt desc
		limit 20, 10`, map[string]any{"companies": []string{"companies/1-A", "companies/2-A"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(q)
	// Output:
	// from Orders where Company in ('companies/1-A', 'companies/2-A') and not exists(ShippedAt) order by OrderedAt desc limit 10 offset 20
}
