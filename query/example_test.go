package query_test

import (
	"bytes"
	"fmt"

	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/query"
)

func ExampleCompile() {
	m, err := query.Compile(query.And{
		query.Compare{Field: query.Field{Path: jsonpath.MustParse("Lines.Qty")}, Op: query.Greater, Value: query.ValueOf([]byte("10"))},
		query.StartsWith{Field: query.Field{Path: jsonpath.MustParse("City")}, Text: "os", Fold: true},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Match(query.Doc{Body: []byte(`{"City":"Oslo","Lines":[{"Qty":2},{"Qty":12}]}`)}))
	fmt.Println(m.Match(query.Doc{Body: []byte(`{"City":"Oslo","Lines":[]}`)}))
	// Output:
	// true
	// false
}

func ExampleNewValue() {
	for _, v := range []any{nil, true, 0.5, "Ada", []int{1}} {
		value, err := query.NewValue(v)
		fmt.Println(value, value.Kind(), err)
	}
	// Output:
	// null null <nil>
	// true true <nil>
	// 0.5 number <nil>
	// "Ada" text <nil>
	// missing missing not a value that a query can compare: []int
}

func ExampleValue_Compare() {
	a, b := query.ValueOf([]byte("9007199254740993")), query.ValueOf([]byte("9007199254740992.0"))
	fmt.Println(a.Compare(b), a.Equal(b))
	fmt.Println(query.TextValue("Ada").Compare(query.TextValue("ada")), query.TextValue("Ada").EqualFold(query.TextValue("ada")))
	// Output:
	// 1 false
	// -1 true
}

func ExampleAppendKey() {
	var key []byte
	key, _ = query.AppendKey(key, query.TextValue("Ada"), false)
	key, _ = query.AppendKey(key, query.ValueOf([]byte("12.50")), true)
	fmt.Printf("%x\n", key)

	for len(key) > 0 {
		v, exact := query.DecodeKey(key)
		fmt.Println(v, exact)
		key, _ = query.SkipKey(key)
	}
	// Output:
	// 40616461000180cfe69b
	// "Ada" true
	// 12.5 true
}

func ExampleKeyRange() {
	adults := query.CompareRange(query.GreaterOrEqual, query.ValueOf([]byte("18")), false, false)
	for _, raw := range []string{"17.9", "18.0", "1e3", `"old"`} {
		key, _ := query.AppendKey(nil, query.ValueOf([]byte(raw)), false)
		fmt.Println(raw, bytes.Compare(adults.Lo, key) <= 0 && bytes.Compare(key, adults.Hi) < 0)
	}
	// Output:
	// 17.9 false
	// 18.0 true
	// 1e3 true
	// "old" false
}

func ExampleReader() {
	r := query.NewReader([]query.Field{{Path: jsonpath.MustParse("Tags")}, {Path: jsonpath.MustParse("Lines.Qty")}})
	r.Reset(query.Doc{Body: []byte(`{"Tags":[],"Lines":[{"Qty":2},{"Qty":12}]}`)})
	fmt.Println(r.Values(0), r.Found(0))
	fmt.Println(r.Values(1), r.Found(1))
	// Output:
	// [] true
	// [2 12] true
}

func ExampleSorter() {
	s, err := query.NewSorter([]query.Order{{Field: query.Field{Path: jsonpath.MustParse("Price")}, As: query.CastDouble, Descending: true}})
	if err != nil {
		fmt.Println(err)
		return
	}
	a, b := query.Doc{Body: []byte(`{"Price":"9.5"}`)}, query.Doc{Body: []byte(`{"Price":10}`)}
	keyA, _ := s.AppendKey(nil, a)
	keyB, _ := s.AppendKey(nil, b)
	fmt.Println(bytes.Compare(keyA, keyB), s.Compare(a, b))
	// Output: 1 1
}

func ExampleGroups() {
	city := query.Field{Path: jsonpath.MustParse("City")}
	columns := []query.Column{
		{Name: "City", Field: city},
		{Name: "Orders", Func: query.FuncCount},
		{Name: "Total", Func: query.FuncSum, Field: query.Field{Path: jsonpath.MustParse("Lines.Price")}},
	}
	g, err := query.NewGroups([]query.Field{city}, columns, 1<<20)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, body := range []string{`{"City":"Oslo","Lines":[{"Price":0.1},{"Price":0.2}]}`, `{"City":"Bonn"}`, `{"City":"Oslo","Lines":[{"Price":1}]}`} {
		if err := g.Add(query.Doc{Body: []byte(body)}); err != nil {
			fmt.Println(err)
		}
	}

	byTotal, err := query.NewRowSorter([]query.Order{{Column: "Total"}}, columns)
	if err != nil {
		fmt.Println(err)
		return
	}
	for row := range g.Rows() {
		_, exact := byTotal.AppendKey(nil, row)
		fmt.Printf("%s %v\n", query.AppendRow(nil, columns, row), exact)
	}
	// Output:
	// {"City":"Oslo","Orders":2,"Total":1.3} true
	// {"City":"Bonn","Orders":1,"Total":0} true
}

func ExampleDistinct() {
	d := query.NewDistinct(1 << 20)
	for _, row := range []string{`{"City":"Oslo"}`, `{"City":"Bonn"}`, `{"City":"Oslo"}`} {
		first, err := d.Add([]byte(row))
		fmt.Println(first, err)
	}
	// Output:
	// true <nil>
	// true <nil>
	// false <nil>
}

func ExampleProjector() {
	p, err := query.NewProjector([]query.Column{
		{Name: "City", Field: query.Field{Path: jsonpath.MustParse("ShipTo.City")}},
		{Name: "Products", Field: query.Field{Path: jsonpath.MustParse("Lines.Product")}},
		{Name: "Gone", Field: query.Field{Path: jsonpath.MustParse("Gone")}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	body := `{"ShipTo":{"City":"Oslo"},"Lines":[{"Product":"tea"},{"Product":"salt"}]}`
	fmt.Printf("%s\n", p.Append(nil, query.Doc{Body: []byte(body)}))
	// Output: {"City":"Oslo","Products":["tea","salt"],"Gone":null}
}

func ExampleParseExpression() {
	f, err := query.ParseExpression("round(Price * Quantity * 1.081, 2)")
	if err != nil {
		panic(err)
	}
	r := query.NewReader([]query.Field{f})
	r.Reset(query.Doc{Body: []byte(`{"Price":2.5,"Quantity":3}`)})
	fmt.Println(f, "=", r.Values(0)[0])
	// Output: round(Price * Quantity * 1.081, 2) = 8.11
}

// A boost changes what a condition counts for scores, and not what it finds.
func ExampleFuzzy() {
	e, err := query.ParseCondition("fuzzy(Name = 'Ernts', 0.5)", nil)
	if err != nil {
		panic(err)
	}
	m, err := query.Compile(e)
	if err != nil {
		panic(err)
	}
	fmt.Println(e.(query.Fuzzy).Similarity)
	fmt.Println(m.Match(query.Doc{Body: []byte(`{"Name":"Ernst"}`)}))
	fmt.Println(m.Match(query.Doc{Body: []byte(`{"Name":"Ernest Hemingway"}`)}))
	// Output:
	// 0.5
	// true
	// false
}

func ExampleBoost() {
	q, err := query.Parse("from Notes where search(Text, 'oak') or boost(search(Title, 'oak'), 2) order by score()", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(q.IsScored(), query.Boosts(q.Where))
	fmt.Println(query.FormatCondition(query.Unboosted(q.Where)))
	// Output:
	// true true
	// search(Text, 'oak') or search(Title, 'oak')
}
