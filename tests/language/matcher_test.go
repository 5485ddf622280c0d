package language_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/query"
)

func field(path string) query.Field { return query.Field{Path: jsonpath.MustParse(path)} }

func value(raw string) query.Value { return query.ValueOf([]byte(raw)) }

// Ensure that conditions mean what they mean to an evaluator that shares no
// code with the Matcher.
func TestMatcher_Naive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool := rapid.SliceOfN(genScalar(), 3, 5).Draw(t, "pool")
		expr := genExpr(4, pool).Draw(t, "expr")
		m, err := query.Compile(expr)
		if err != nil {
			t.Fatal(err)
		}
		for _, body := range rapid.SliceOfN(genObject(4, pool), 1, 6).Draw(t, "bodies") {
			meta := metadata{
				query.MetaID: genText().Draw(t, "id"), query.MetaCollection: "Orders",
				query.MetaLastModified: "2026-01-31T10:00:00.0000000Z", query.MetaChangeVector: "A:1-x",
			}
			want := newNaive([]byte(body), meta).holds(expr)
			if got := m.Match(query.Doc{Body: []byte(body), Meta: meta}); got != want {
				t.Errorf("%#v\nof %s %v:\ngot %v, want %v", expr, body, meta, got, want)
			}
			if got := m.Clone().Match(query.Doc{Body: []byte(body), Meta: meta}); got != want {
				t.Errorf("the clone: got %v, want %v", got, want)
			}
		}
	})
}

// Ensure what each condition means where it is easy to get wrong.
func TestMatcher_Match(t *testing.T) {
	const body = `{"n":5,"big":9007199254740993,"s":"Ada","no":null,"t":true,"tags":["x","Y",1],"none":[],"nested":[[1,2],[3]],` +
		`"lines":[{"p":"A","q":1},{"p":"B","q":20},{"q":null}],"esc":"\u0041\n","twice":[1,1.0]}`
	compare := func(path string, op query.Op, raw string) query.Expr {
		return query.Compare{Field: field(path), Op: op, Value: value(raw)}
	}
	tests := []struct {
		name string
		expr query.Expr
		want bool
	}{
		{"no condition", nil, true},
		{"and of nothing", query.And{}, true},
		{"or of nothing", query.Or{}, false},
		{"number in another spelling", compare("n", query.Equal, "50e-1"), true},
		{"beyond 2^53", compare("big", query.Equal, "9007199254740992"), false},
		{"number above text", compare("s", query.Greater, "5"), false},
		{"text below number", compare("n", query.Less, `"x"`), false},
		{"null equals null", compare("no", query.Equal, "null"), true},
		{"missing equals null", compare("gone", query.Equal, "null"), false},
		{"missing is not equal", query.Not{Expr: compare("gone", query.Equal, "1")}, true},
		{"null up to null", compare("no", query.LessOrEqual, "null"), true},
		{"null below number", compare("no", query.Less, "1"), false},
		{"true above false", compare("t", query.Greater, "false"), true},
		{"true equals false", compare("t", query.Equal, "false"), false},
		{"any element", compare("tags", query.Equal, `"x"`), true},
		{"an element of another kind", compare("tags", query.Equal, "1"), true},
		{"element by its place", compare("tags[1]", query.Equal, `"Y"`), true},
		{"case is regarded", compare("s", query.Equal, `"ada"`), false},
		{"case is disregarded", query.Compare{Field: field("s"), Value: value(`"ADA"`), Fold: true}, true},
		{"empty array equals nothing", compare("none", query.Equal, "null"), false},
		{"empty array exists", query.Exists{Field: field("none")}, true},
		{"null exists", query.Exists{Field: field("no")}, true},
		{"missing exists", query.Exists{Field: field("gone")}, false},
		{"member of a scalar", query.Exists{Field: field("n.x")}, false},
		{"array in an array is no number", compare("nested", query.Equal, "1"), false},
		{"members of elements", compare("lines.p", query.Equal, `"B"`), true},
		{"members of elements, with brackets", compare("lines[].q", query.Greater, "19"), true},
		{"two conditions, two elements", query.And{compare("lines.p", query.Equal, `"A"`), compare("lines.q", query.Equal, "20")}, true},
		{"between needs one value", query.Between{Field: field("lines.q"), Lo: value("2"), Hi: value("19")}, false},
		{"between includes its bounds", query.Between{Field: field("n"), Lo: value("5"), Hi: value("5.0")}, true},
		{"between of two kinds", query.Between{Field: field("n"), Lo: value("1"), Hi: value(`"x"`)}, false},
		{"in", query.In{Field: field("n"), Values: []query.Value{value("null"), value(`"x"`), value("5.0")}}, true},
		{"in nothing", query.In{Field: field("n")}, false},
		{"all in", query.In{Field: field("tags"), Values: []query.Value{value(`"Y"`), value("1.0"), value("1")}, All: true}, true},
		{"all in, one missing", query.In{Field: field("tags"), Values: []query.Value{value(`"Y"`), value("2")}, All: true}, false},
		{"all in, one twice", query.In{Field: field("twice"), Values: []query.Value{value("1"), value("2")}, All: true}, false},
		{"all of nothing", query.In{Field: field("gone"), All: true}, true},
		{"escapes are read", query.StartsWith{Field: field("esc"), Text: "A"}, true},
		{"ends with", query.EndsWith{Field: field("esc"), Text: "a\n", Fold: true}, true},
		{"contains nothing", query.Contains{Field: field("s"), Text: ""}, true},
		{"contains in no text", query.Contains{Field: field("n"), Text: ""}, false},
		{"regexp is not anchored", query.Regexp{Field: field("s"), Pattern: "d"}, true},
		{"regexp regards case", query.Regexp{Field: field("s"), Pattern: "^a"}, false},
		{"regexp disregards case", query.Regexp{Field: field("s"), Pattern: "^a|z", Fold: true}, true},
		{"id disregards case", query.Compare{Field: query.Field{Meta: query.MetaID}, Value: value(`"ORDERS/1"`)}, true},
		{"id between disregards case", query.Between{Field: query.Field{Meta: query.MetaID}, Lo: value(`"ORDERS/0"`), Hi: value(`"ORDERS/1"`)}, true},
		{"collection disregards case", query.Compare{Field: query.Field{Meta: query.MetaCollection}, Value: value(`"orders"`)}, true},
		{"no change vector", query.Exists{Field: query.Field{Meta: query.MetaChangeVector}}, false},
	}
	meta := metadata{query.MetaID: "orders/1", query.MetaCollection: "Orders"}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m, err := query.Compile(test.expr)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if got := m.Match(query.Doc{Body: []byte(body), Meta: meta}); got != test.want {
					t.Errorf("got %v, want %v", got, test.want)
				}
			}
		})
	}
}

// Ensure that IDs regard case in a database where they do.
func TestCompile_SensitiveIDs(t *testing.T) {
	m, err := query.Compile(query.Compare{Field: query.Field{Meta: query.MetaID}, Value: value(`"ORDERS/1"`)}, query.SensitiveIDs())
	if err != nil {
		t.Fatal(err)
	}
	if m.Match(query.Doc{Body: []byte("{}"), Meta: metadata{query.MetaID: "orders/1"}}) {
		t.Error("ORDERS/1 matches orders/1")
	}
}

func nested(levels int) query.Expr {
	var e query.Expr = query.Exists{Field: field("a")}
	for range levels - 1 {
		e = query.Not{Expr: e}
	}
	return e
}

// Ensure that conditions without meaning and beyond the bounds are refused,
// and that those at the bounds are not.
func TestCompile_Refused(t *testing.T) {
	many := make(query.And, query.MaxConditions)
	for i := range many {
		many[i] = query.Exists{Field: field("a")}
	}
	compare := query.Compare{Field: field("a"), Value: value("1")}
	values := make([]query.Value, query.MaxValues+1)
	for i := range values {
		values[i] = value("1")
	}
	tests := []struct {
		name string
		expr query.Expr
		want error
	}{
		{"deep", nested(query.MaxConditionDepth), nil},
		{"too deep", nested(query.MaxConditionDepth + 1), query.ErrLimit},
		{"far too deep", nested(1_000_000), query.ErrLimit},
		{"many", many[:query.MaxConditions-1], nil},
		{"too many", many, query.ErrLimit},
		{"long list", query.In{Field: field("a"), Values: values[1:]}, nil},
		{"too long a list", query.In{Field: field("a"), Values: values}, query.ErrLimit},
		{"long lists", query.And{query.In{Field: field("a"), Values: values[1:]}, query.In{Field: field("a"), Values: values[:1]}}, query.ErrLimit},
		{"nil inside", query.And{nil}, query.ErrCondition},
		{"not nil", query.Not{}, query.ErrCondition},
		{"pointer", &compare, query.ErrCondition},
		{"no field", query.Exists{}, query.ErrCondition},
		{"no value", query.Compare{Field: field("a")}, query.ErrCondition},
		{"array", query.Compare{Field: field("a"), Value: value("[1]")}, query.ErrCondition},
		{"object in a list", query.In{Field: field("a"), Values: []query.Value{value("{}")}}, query.ErrCondition},
		{"no such comparison", query.Compare{Field: field("a"), Op: 9, Value: value("1")}, query.ErrCondition},
		{"regexp", query.Regexp{Field: field("a"), Pattern: `^[a-z]{1,100}(\d+)?$`}, nil},
		{"bad regexp", query.Regexp{Field: field("a"), Pattern: "("}, query.ErrCondition},
		{"no way out of the group", query.Regexp{Field: field("a"), Pattern: "a)(b", Fold: true}, query.ErrCondition},
		{"long regexp", query.Regexp{Field: field("a"), Pattern: strings.Repeat("a", query.MaxRegexpBytes+1)}, query.ErrLimit},
		{"regexp that explodes", query.Regexp{Field: field("a"), Pattern: strings.Repeat("x{1000}", 140)}, query.ErrLimit},
		{"regexp that explodes inside", query.Regexp{Field: field("a"), Pattern: "((x{30}){30}){30}"}, query.ErrCondition},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := query.Compile(test.expr); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

// Ensure that a pattern that stalls other engines does not stall this one.
func TestMatcher_Match_Regexp(t *testing.T) {
	m, err := query.Compile(query.Regexp{Field: field("a"), Pattern: "(a+)+(a*)*$"})
	if err != nil {
		t.Fatal(err)
	}
	body := `{"a":"` + strings.Repeat("a", 100_000) + `!"}`
	if m.Match(query.Doc{Body: []byte(body)}) {
		t.Error("it matches, though no a is before the end")
	}
}

// Ensure that a pattern that is anchored at the beginning matches nowhere else in
// a long text, which is matched in pieces: its literal prefix must not be
// searched for.
func TestMatcher_Match_AnchoredInLongText(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, test := range []struct {
		pattern, text string
		want          bool
	}{
		{"^abc", long + "abc", false},
		{"^abc$", long + "abc", false},
		{`\Aabcx*$`, long + "abc", false},
		{"^abc", "abc" + long, true},
		{"(?m)^abc", long + "\\nabc", true},
		{"(?m)^abc", long + "abc", false},
		{`\babc`, long + "abc", false},
		{`\babc`, long + " abc", true},
		{`abc\b`, long + "abcx abc", true},
		{"abc", long + "abc", true},
		{"abc$", long + "abcx", false},
	} {
		m, err := query.Compile(query.Regexp{Field: field("a"), Pattern: test.pattern})
		if err != nil {
			t.Fatal(err)
		}
		m.SetPace(new(query.Pace))
		body := []byte(`{"a":"` + test.text + `"}`)
		if got := m.Match(query.Doc{Body: body}); got != test.want {
			t.Errorf("%s: got %v, want %v", test.pattern, got, test.want)
		}
	}
}

// Ensure that each field is there once, in the order of its first use.
func TestFields(t *testing.T) {
	e := query.Or{
		query.Not{Expr: query.Exists{Field: field("b")}},
		query.And{query.Exists{Field: field("a.c")}, query.Exists{Field: field("b")}},
		query.Exists{Field: query.Field{Meta: query.MetaID}},
	}
	var got []string
	for _, f := range query.Fields(e) {
		got = append(got, f.Path.String())
	}
	if strings.Join(got, " ") != "b a.c " {
		t.Errorf("got %q", got)
	}
}

// order is a document of 550 bytes.
const order = `{"Company":"companies/34-A","Employee":"employees/5-A","Freight":32.38,"Lines":[{"Discount":0,"PricePerUnit":14,"Product":"products/11-A",` +
	`"ProductName":"Queso Cabrales","Quantity":12},{"Discount":0.15,"PricePerUnit":9.8,"Product":"products/42-A","ProductName":"Singaporean Hokkien Fried Mee",` +
	`"Quantity":10}],"OrderedAt":"1996-07-04T00:00:00.0000000","RequireAt":"1996-08-01T00:00:00.0000000","ShipTo":{"City":"Reims","Country":"France",` +
	`"Line1":"59 rue de l'Abbaye","PostalCode":"51100"},"ShipVia":"shippers/3-A","ShippedAt":"1996-07-16T00:00:00.0000000"}`

func orderCondition() query.Expr {
	return query.And{
		query.Compare{Field: field("Freight"), Op: query.Greater, Value: value("10")},
		query.Compare{Field: field("ShipTo.Country"), Value: value(`"FRANCE"`), Fold: true},
		query.Compare{Field: field("Lines.Quantity"), Op: query.GreaterOrEqual, Value: value("12")},
	}
}

// Ensure that Match allocates nothing once it has seen such a document.
func TestMatcher_Match_Allocations(t *testing.T) {
	expr := query.And{
		orderCondition(),
		query.Contains{Field: field("Lines.ProductName"), Text: "hokkien", Fold: true},
		query.In{Field: field("ShipTo.PostalCode"), Values: []query.Value{value(`"51100"`), value("1")}, All: false},
		query.In{Field: field("ShipTo.PostalCode"), Values: []query.Value{value(`"51100"`)}, All: true},
		query.Regexp{Field: field("Company"), Pattern: "^companies/"},
		query.StartsWith{Field: query.Field{Meta: query.MetaID}, Text: "Orders/"},
	}
	m, err := query.Compile(expr)
	if err != nil {
		t.Fatal(err)
	}
	doc := query.Doc{Body: []byte(order), Meta: metadata{query.MetaID: "orders/1"}}
	if !m.Match(doc) {
		t.Fatal("no match")
	}
	if n := testing.AllocsPerRun(100, func() { m.Match(doc) }); n > 0 {
		t.Errorf("%v allocations per document", n)
	}
}

func BenchmarkMatcher(b *testing.B) {
	m, err := query.Compile(orderCondition())
	if err != nil {
		b.Fatal(err)
	}
	doc := query.Doc{Body: []byte(order)}
	b.SetBytes(int64(len(order)))
	b.ReportAllocs()
	for b.Loop() {
		if !m.Match(doc) {
			b.Fatal("no match")
		}
	}
}

func BenchmarkAppendKey(b *testing.B) {
	for _, raw := range []string{"42", "1234567", "32.38", `"Ada Lovelace"`, `"1996-07-04T00:00:00.0000000"`, `"Äpfel"`} {
		v := value(raw)
		b.Run(raw, func(b *testing.B) {
			var key []byte
			for b.Loop() {
				key, _ = query.AppendKey(key[:0], v, false)
			}
			b.ReportMetric(float64(len(key)), "bytes")
		})
	}
}
