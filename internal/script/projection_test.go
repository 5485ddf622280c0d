package script_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/script"
)

// order is the document of projections.
const order = `{"Customer":"Ann","Company":"companies/1","Total":12.50,"Big":9007199254740993,"At":"2026-11-27T22:15:00.1234567Z","Lines":[{"Product":"a","Price":2.5,"Quantity":2},{"Product":"b","Price":1,"Quantity":7}],"Tags":["x","y"],"None":null,"@metadata":{"@id":"orders/1","@collection":"Orders"}}`

// projected returns what a projection of an order gives, or its error.
func projected(t *testing.T, source string, limits script.Limits) string {
	t.Helper()
	p := &script.ProjectionParser{Source: source}
	at := 0
	for strings.HasPrefix(source[at:], "function ") {
		end, err := p.Function(at + len("function "))
		if err != nil {
			return err.Error()
		}
		at = end + len(source[end:]) - len(strings.TrimLeft(source[end:], " \n"))
	}
	if _, err := p.Result(at); err != nil {
		return err.Error()
	}
	s := store{"companies/1": `{"Name":"Oak","Address":{"City":"Rome"}}`, "companies/2": `{"Name":"Elm"}`}
	raw, _, err := p.Projection().Run(t.Context(), script.Projected{
		ID: "orders/1", Document: []byte(order), Alias: "o", Parameters: map[string]json.RawMessage{"p0": json.RawMessage(`3`)}, Limits: limits,
		Loaded: []script.Loaded{{Name: "c", IDs: []string{"companies/1"}}, {Name: "all", IDs: []string{"companies/2", "", "companies/9"}, List: true}, {Name: "nobody"}},
	}, s)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// Ensure that projections give what they give in JavaScript, and null where something is missing.
func TestProjection(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ source, want string }{
		// What RavenDB's clients send.
		{`{ Name: o.Customer, Total: o.Lines.map(l => l.Price * l.Quantity).reduce((a, b) => a + b, 0) }`, `{"Name":"Ann","Total":12}`},
		{"function out(o) { return { Customer: o.Customer }; }\nout(o)", `{"Customer":"Ann"}`},
		{"function sum(lines) { var s = 0; for (var i = 0; i < lines.length; i++) s += lines[i].Quantity; return s }\nfunction out(o, c) { var n = sum(o.Lines); return { n, c: c.Name } }\nout(o, c)", `{"n":9,"c":"Oak"}`},
		{`{ FullName: o.Customer + " of " + c.Name, City: c.Address.City, Id: id(o), In: getMetadata(o)["@collection"] }`, `{"FullName":"Ann of Oak","City":"Rome","Id":"orders/1","In":"Orders"}`},
		{`{ Company: load(o.Company).Name, Other: load('companies/2').Name, No: load('companies/7'), Nobody: nobody, All: all.map(x => x?.Name) }`, `{"Company":"Oak","Other":"Elm","No":null,"Nobody":null,"All":["Elm",null,null]}`},
		{`{ n: o.Lines.length + $p0, t: ` + "`${o.Customer}: ${$p0 * 2}`" + ` }`, `{"n":5,"t":"Ann: 6"}`},
		{`{ ...o.Lines[0], Tags: [...o.Tags, 'z'].join('-') }`, `{"Product":"a","Price":2.5,"Quantity":2,"Tags":"x-y-z"}`},

		// What is kept as it is, and what is missing.
		{`{ Total: o.Total, Big: o.Big, All: this.Tags, None: o.None, Missing: o.Missing }`, `{"Total":12.50,"Big":9007199254740993,"All":["x","y"],"None":null,"Missing":null}`},
		{`{ a: o.Missing.City.Name, b: o.Missing.map(x => x), c: o.None.length, d: o.Missing * 2, e: o.Lines.map(l => l.Color) }`, `{"a":null,"b":null,"c":null,"d":null,"e":[null,null]}`},
		{`{ a: o.Customer.length(), b: 1 }`, `script: line 1: a number is no function`},
		{`{ a: o.Customer.shout() }`, `script: line 1: shout is no function`},

		// Arrays, objects, texts and numbers.
		{`{ f: o.Lines.filter(l => l.Quantity > 3).map(l => l.Product), find: o.Lines.find(l => l.Price < 2).Product, some: o.Lines.some(l => l.Price > 2), every: o.Lines.every(l => l.Price > 2) }`, `{"f":["b"],"find":"b","some":true,"every":false}`},
		{`{ k: Object.keys(o.Lines[0]), v: Object.values(o.Lines[0]), e: Object.entries({a:1}), flat: [[1,[2]],3].flat(), fm: o.Lines.flatMap(l => [l.Product, l.Product]), at: o.Tags.at(-1) }`, `{"k":["Product","Price","Quantity"],"v":["a",2.5,2],"e":[["a",1]],"flat":[1,[2],3],"fm":["a","a","b","b"],"at":"y"}`},
		{`{ m: Math.max(...o.Lines.map(l => l.Price)), r: Math.round(2.5), s: Math.sign(-3), j: JSON.stringify({ a: [1, undefined], b: undefined }), p: JSON.parse('{"x":[1]}').x[0] }`, `{"m":2.5,"r":3,"s":-1,"j":"{\"a\":[1,null]}","p":1}`},
		{`{ a: o?.Tags?.[1], b: o.Missing?.[0]?.x, c: o.Missing?.(), d: o.Tags?.map(x => x) }`, `{"a":"y","b":null,"c":null,"d":["x","y"]}`},
		{"function add(a, b = a * 2) { return a + b }\n{ x: add(1), y: add(1, 5), z: ((a, b = 7) => a + b)(1) }", `{"x":3,"y":6,"z":8}`},

		// Dates.
		{`{ y: new Date(o.At).getFullYear(), m: new Date(o.At).getMonth(), d: new Date(o.At).getUTCDate(), w: new Date(o.At).getDay(), h: new Date(o.At).getHours(), ms: new Date(o.At).getMilliseconds(), t: new Date(o.At).getTime() }`, `{"y":2026,"m":10,"d":27,"w":5,"h":22,"ms":123,"t":1795817700123}`},
		{`{ iso: new Date(o.At), day: new Date(2024, 1, 30), days: (new Date('2026-12-24') - new Date('2026-12-20')) / 86400000, before: new Date('2026-01-01') < new Date('2026-01-02'), bad: new Date('x').getTime(), none: new Date('x') }`, `{"iso":"2026-11-27T22:15:00.123Z","day":"2024-03-01T00:00:00.000Z","days":4,"before":true,"bad":null,"none":null}`},

		// What is refused, by name.
		{`{ a: new Date() }`, `script: line 1: new Date() of the present time is not there`},
		{`{ a: new Map() }`, `script: line 1: new Map is not there`},
		{`{ a: /x/ }`, `script: line 1: a regular expression is not there`},
		{`{ a: Date.now() }`, `script: line 1: Date.now is not there`},
		{`{ a: put('a', {}) }`, `script: line 1: put is not defined`},
		{"function out(o) {\n  return { a: 1 }\n}\nfunction out(o) { return {} }\nout(o)", `script: line 4: there is a function out already`},
		{`out(o)`, `script: line 1: out is not defined`},
		{"function out(o) { return o.Tags }\nout(o)", `script: line 2: a projection makes an object of each document, and not an array`},
		{"function out(o) { }\nout(o)", `script: line 2: a projection makes an object of each document, and not undefined`},
		{`{ a: 1`, `script: line 1: the script has no end: a bracket is open`},
		{"{\n a: 1,\n b: o.x y }", `script: line 3: unexpected "y": expected "}"`},
		{"function out(o) { while (true) ; }\nout(o)", `script: line 1: the script takes more steps than the most`},
		{"function out(o) { return out(o) }\nout(o)", `script: line 1: functions call each other too deep: 64 levels are the most`},
		{`{ a: 'x'.repeat(1e9) }`, `script: line 1: the script takes more memory than the most`},
	} {
		if got := projected(t, test.source, script.Limits{Steps: 20_000, Bytes: 1 << 20}); got != test.want {
			t.Errorf("%s\ngot  %s\nwant %s", test.source, got, test.want)
		}
	}
}

// Ensure that an error has its line, its column in characters, and its offset in bytes.
func TestProjection_Places(t *testing.T) {
	t.Parallel()
	p := &script.ProjectionParser{Source: "from Orders as ö\nselect { ä: 1, b: o.Customer.shout() } limit 5"}
	at := strings.Index(p.Source, "{")
	end, err := p.Result(at)
	if err != nil || p.Source[end:] != " limit 5" {
		t.Fatalf("got %q, %v", p.Source[end:], err)
	}
	_, _, err = p.Projection().Run(t.Context(), script.Projected{ID: "orders/1", Document: []byte(order), Alias: "o"}, store{})
	var e *script.Error
	if !errors.As(err, &e) || e.Line != 2 || e.Column != 35 || e.Offset != strings.Index(p.Source, "() }") {
		t.Errorf("got %+v", e)
	}
}

// Ensure that parameters are found, and replaced by what they stand for.
func TestWithParameters(t *testing.T) {
	t.Parallel()
	const source = "{ a: $p0, b: o.$p0, c: `x${$p1 + `${$p0}`}$p0` /* $p0 */, d: '$p0', e: $other }"
	p := &script.ProjectionParser{Source: source}
	if _, err := p.Result(0); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(p.Projection().Parameters(), " "); !strings.Contains(got, "p0") || !strings.Contains(got, "p1") || !strings.Contains(got, "other") {
		t.Errorf("got %s", got)
	}
	got := script.WithParameters(source, func(name string) []byte { return map[string][]byte{"p0": []byte("1"), "p1": []byte(`{"x":2}`)}[name] })
	if want := "{ a: (1), b: o.$p0, c: `x${({\"x\":2}) + `${(1)}`}$p0` /* $p0 */, d: '$p0', e: $other }"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Projections of all kinds neither panic nor exceed their bounds, and their ends are found.
func FuzzProjection(f *testing.F) {
	for _, text := range []string{"{ a: o.x }", "{ a: `${o.x}` }", "out(o, [1])", "{ a: new Date(o.At).getTime() }", "{ ...o, b: o.Lines.map(l => l?.[0]) }", "{ a: o.x.flat(9), b: JSON.parse('[[1]]') }", "{a:((x=1)=>x)(...[])}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := &script.ProjectionParser{Source: text}
		end, err := p.Result(0)
		if err != nil {
			return
		}
		if end < 1 || end > len(text) {
			t.Fatalf("an end at %d of %d", end, len(text))
		}
		raw, left, err := p.Projection().Run(t.Context(), script.Projected{ID: "a", Document: []byte(order), Alias: "o", Limits: script.Limits{Steps: 5000, Bytes: 1 << 20, Calls: 10}}, store{})
		if err == nil && !json.Valid(raw) {
			t.Fatalf("%q is no JSON", raw)
		}
		if left.Steps > 5000 || left.Bytes > 1<<20 {
			t.Fatalf("left %+v", left)
		}
		script.WithParameters(text[:end], func(string) []byte { return []byte("1") })
	})
}

// Ensure that brackets in texts, templates and comments end nothing.
func TestProjection_Brackets(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"{ a: '}', b: 1 }", "{ a: `}${'}'}}`, b: 1 } ", "{ /* } */ a: 1, // }\n b: [')'] }", "out({a: ')'})"} {
		p := &script.ProjectionParser{Source: source + " limit 1"}
		end, err := p.Result(0)
		if err != nil || strings.TrimSpace(source[:end]) != strings.TrimSpace(source) {
			t.Errorf("%s: ends at %d, %v", source, end, err)
		}
	}
}
