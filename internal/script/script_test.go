package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/internal/script"
)

// store is a Host in memory.
type store map[string]string

func (s store) Load(id string) ([]byte, error) {
	if text, found := s[id]; found {
		return []byte(text), nil
	}
	return nil, nil
}

func (s store) Put(id string, document []byte, changeVector string) (string, error) {
	if changeVector == "stale" {
		return "", errors.New("stale")
	}
	s[id] = string(document)
	return id, nil
}

func (s store) Delete(id string) (bool, error) {
	_, found := s[id]
	delete(s, id)
	return found, nil
}

// runScript runs a script on a document, and returns what it leaves or the error.
func runScript(t *testing.T, source, document, args string, s store) string {
	t.Helper()
	p, err := script.Parse(source)
	if err != nil {
		return err.Error()
	}
	r, err := p.Run(t.Context(), script.Input{ID: "docs/1", Document: []byte(document), Args: json.RawMessage(args), Names: []string{"d"}, Parameters: map[string]json.RawMessage{"p": json.RawMessage(`{"x":[1]}`)}}, s)
	if err != nil {
		return err.Error()
	}
	return strings.Join(append([]string{string(r.Document)}, r.Output...), "|")
}

// Ensure that scripts do what they do in JavaScript.
func TestRun(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ source, document, args, want string }{
		// What RavenDB's clients send.
		{`this.x = args.val_0;`, `{"x":1,"y":1.50}`, `{"val_0":{"a":[1,null]}}`, `{"x":{"a":[1,null]},"y":1.50}`},
		{`this.n = this.n ? this.n + args.val_0 : args.val_0;`, `{"n":41}`, `{"val_0":1}`, `{"n":42}`},
		{`this.n = this.n ? this.n + args.val_0 : args.val_0;`, `{}`, `{"val_0":1}`, `{"n":1}`},
		{`this.n = this.n ? this.n + args.val_0 : args.val_0`, `{"n":9007199254740993}`, `{"val_0":1}`, `{"n":9007199254740994}`},
		{"this.a.push(args.val_0_0,args.val_1_0);\nthis.a.splice(args.val_2_0, 1);", `{"a":[1,2]}`, `{"val_0_0":3,"val_1_0":4,"val_2_0":0}`, `{"a":[2,3,4]}`},
		{"this.m.k = args.v;\ndelete this.m.old;", `{"m":{"old":1}}`, `{"v":"x"}`, `{"m":{"k":"x"}}`},
		{`this.items = this.items.filter(function (x) { return x !== args.v; });`, `{"items":["a","b","a"]}`, `{"v":"a"}`, `{"items":["b"]}`},
		{`this.items = this.items.filter(x => x != args.v)`, `{"items":[1,2]}`, `{"v":"1"}`, `{"items":[2]}`},
		{`this.stuff[1].phone = args.p; d.seen = true`, `{"stuff":[{},{"phone":1}]}`, `{"p":2}`, `{"stuff":[{},{"phone":2}],"seen":true}`},
		{`this.A = $p.x[0] + 1`, `{}`, ``, `{"A":2}`},

		// Statements.
		{`var s = 0; for (var i = 0; i < this.l.length; i++) { if (this.l[i] < 0) continue; s += this.l[i]; if (s > 5) break } this.s = s`, `{"l":[1,-5,2,3,4,5]}`, ``, `{"l":[1,-5,2,3,4,5],"s":6}`},
		{`for (const x of this.l) this.s += x; for (let k in this.o) this.s += k`, `{"l":[1,2],"o":{"a":1,"b":2},"s":0}`, ``, `{"l":[1,2],"o":{"a":1,"b":2},"s":"3ab"}`},
		{`let i = 0; while (true) { i++; if (i === 3) break; } do { i += 10 } while (i < 20); this.i = i`, `{}`, ``, `{"i":23}`},
		{`function add(a, b) { if (b === undefined) return a; return a + b } this.a = add(1); this.b = add(1, 2)`, `{}`, ``, `{"a":1,"b":3}`},
		{`const f = (a) => ({ a, b: a.x ?? 'none' }); this.r = f({})`, `{}`, ``, `{"r":{"a":{},"b":"none"}}`},
		{`if (this.a) { this.b = 1 } else if (this.c) { this.b = 2 } else this.b = 3; return; this.b = 4`, `{"c":1}`, ``, `{"c":1,"b":2}`},
		{`throw 'no ' + this.a`, `{"a":1}`, ``, `script: line 1: the script throws no 1`},

		// Operators and values.
		{`this.r = [1 + '2', '3' * '4', 7 / 2, 8 / 2, 7 % 3, -this.n, +'5', !0, typeof this.x, typeof 1, null ?? 1, 0 || 'a', '' && 1]`, `{"n":2}`, ``, `{"n":2,"r":["12",12,3.5,4,1,-2,5,true,"undefined","number",1,"a",""]}`},
		{`this.r = [1 == '1', 1 === '1', null == undefined, null === undefined, 1.0 === 1, 'a' < 'b', 2 < 10, '2' < '10', NaN == NaN].map(x => x)`, `{}`, ``, `script: line 1: NaN is not defined`},
		{`this.r = [1 == '1', 1 === '1', null == undefined, null === undefined, 1.0 === 1, 'a' < 'b', 2 < 10, '2' < '10', 'a' in this]`, `{"a":0}`, ``, `{"a":0,"r":[true,false,true,false,true,true,true,false,true]}`},
		{`this.a ??= 1; this.b ||= 2; this.c &&= 3; this.d -= 1; this.e *= 2; this.e++; --this.e`, `{"c":1,"d":3,"e":4}`, ``, `{"c":3,"d":2,"e":8,"a":1,"b":2}`},
		{"this.t = `${this.a} und ${this.b.map(x => x * 2)}`", `{"a":"é","b":[1,2]}`, ``, `{"a":"é","b":[1,2],"t":"é und 2,4"}`},
		{`this.x = this.a?.b?.c; this.y = {...this.o, z: 1}; this.l = [...this.l, 3]; delete this.o`, `{"o":{"q":1},"l":[1]}`, ``, `{"l":[1,3],"y":{"q":1,"z":1}}`},
		{`this.t = '\u00e9\n\x41\ud83d\ude00'; this.n = this.t.length`, `{}`, ``, `{"t":"é\nA😀","n":5}`},
		{`this.m = this.n; this.a = this.n > 1; this.b = +'` + strings.Repeat("0", 1023) + `5' === 5`, `{"n":1` + strings.Repeat("0", 1024) + `}`, ``, `{"n":1` + strings.Repeat("0", 1024) + `,"m":1` + strings.Repeat("0", 1024) + `,"a":false,"b":true}`},
		{`this.n = 0.1 + 0.2; this.m = 1e21; this.k = 9223372036854775807 + 1`, `{}`, ``, `{"n":0.30000000000000004,"m":1e21,"k":9223372036854776000}`},

		// Natives.
		{`this.r = [this.a.concat(4, [5]).join('-'), this.a.slice(-2), this.a.indexOf(2), this.a.includes(9), this.a.reverse(), this.a.some(x => x > 2), this.a.every(x => x > 2)]`, `{"a":[1,2,3]}`, ``, `{"a":[3,2,1],"r":["1-2-3-4-5",[2,3],1,false,[3,2,1],true,false]}`},
		{`this.r = [this.a.sort((x, y) => y - x), this.a.find(x => x < 3), this.a.findIndex(x => x === 1), this.a.reduce((s, x) => s + x, 0)]; this.a.pop(); this.a.shift(); this.a.unshift(9)`, `{"a":[1,3,2]}`, ``, `{"a":[9,2],"r":[[9,2],2,2,6]}`},
		{`this.r = ['aBc'.toUpperCase(), ' x '.trim(), 'a,b'.split(','), 'abc'.substring(1), 'abc'.substr(-2, 1), 'abc'.slice(-1), 'abab'.replace('a', 'x'), 'abc'.startsWith('ab'), 'abc'.indexOf('c'), 'abc'[1], 'abc'.charAt(2)]`, `{}`, ``, `{"r":["ABC","x",["a","b"],"bc","b","c","xbab",true,2,"b","c"]}`},
		{`this.r = Math.min()`, `{}`, ``, `script: JSON has no Infinity: the script has calculated with what is no number`},
		{`this.r = [Math.floor(1.7), Math.round(-1.5), Math.abs(-3), Math.max(1, 5, 2), Number('12'), String(1.50), parseInt('12px'), parseFloat('1.5x'), (1.005).toFixed(1)]`, `{}`, ``, `{"r":[1,-1,3,5,12,"1.5",12,1.5,"1.0"]}`},
		{`this.r = [Object.keys(this.o), Object.values(this.o), Object.entries(this.o), Object.assign({}, this.o, {c: 3}), Array.isArray([])]`, `{"o":{"a":1,"b":2}}`, ``, `{"o":{"a":1,"b":2},"r":[["a","b"],[1,2],[["a",1],["b",2]],{"a":1,"b":2,"c":3},true]}`},

		// Documents.
		{`this.i = id(this); this.j = id(d); var o = load('o/1'); this.n = o.n; this.k = id(o); this.m = load('none'); put('o/2', {n: o.n + 1}); del('o/1'); output('seen', 1); output(o)`, `{}`, ``, `{"i":"docs/1","j":"docs/1","n":7,"k":"o/1","m":null}|seen|{"n":7}`},
		{`var a = ['o/1', 7]; a.push(a); this.l = load(a)`, `{}`, ``, `{"l":[{"n":7},null,null]}`},
		{`getMetadata(this)['@collection'] = 'X'; this['@metadata'].y = 1`, `{"@metadata":{"@collection":"Y"}}`, ``, `{"@metadata":{"@collection":"X","y":1}}`},
		{`put('o/2', {}, 'stale')`, `{}`, ``, `script: line 1: stale`},

		// What is refused.
		{`this.t = new Date()`, `{}`, ``, `script: line 1: new Date() of the present time is not there`},
		{`this.t = Date.now()`, `{}`, ``, `script: line 1: Date.now is not there`},
		{`this.t = Math.random()`, `{}`, ``, `script: line 1: Math.random is not there`},
		{`this.t = /a/.test('a')`, `{}`, ``, `script: line 1: a regular expression is not there`},
		{"\n\nclass A {}", `{}`, ``, `script: line 3: a class is not there`},
		{`this = 1`, `{}`, ``, `script: line 1: this cannot be assigned to`},
		{`Math.floor = 1`, `{}`, ``, `script: line 1: floor of a namespace cannot be set`},
		{`this.a.b.c = 1`, `{}`, ``, `script: line 1: undefined has no member b`},
		{`this.a = `, `{}`, ``, `script: line 1: the script ends here: expected a value`},
		{`this.a = x + 1`, `{}`, ``, `script: line 1: x is not defined`},
		{`this.a = this.b + 1`, `{}`, ``, `script: JSON has no NaN: the script has calculated with what is no number`},
		{`this.__proto__ = {}`, `{}`, ``, `script: line 1: __proto__ cannot be assigned to`},
		{`this.a = this`, `{}`, ``, `script: the document is nested too deep, or in itself`},
	} {
		if got := runScript(t, test.source, test.document, test.args, store{"o/1": `{"n":7}`}); got != test.want {
			t.Errorf("%s\n%s: got\n%s, want\n%s", test.source, test.document, got, test.want)
		}
	}
}

// Ensure that JSON of too many levels is the fault of who sends it: a cause would be one of the program.
func TestRun_DeepJSON(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 2002) + strings.Repeat("]", 2002)
	for _, test := range []struct{ source, args string }{
		{`this.x = JSON.parse('['.repeat(2002) + ']'.repeat(2002))`, ``},
		{`this.x = 1`, `{"x":` + deep + `}`},
	} {
		p, err := script.Parse(test.source)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Run(t.Context(), script.Input{Document: []byte(`{}`), Args: json.RawMessage(test.args)}, store{})
		var e *script.Error
		if !errors.As(err, &e) || e.Cause != nil || !strings.Contains(e.Message, "2000 levels are the most") {
			t.Errorf("%s: got %v", test.source, err)
		}
	}
}

// Ensure that a script which loops, or eats memory, ends with an error, and that neither
// a native nor a nesting goes around the bounds.
func TestRun_Bounds(t *testing.T) {
	t.Parallel()
	today := sample.Of(t, 4)
	for i, source := range []string{
		`while (true) {}`,
		`for (;;) this.n++`,
		`do {} while (1)`,
		`function f() { return f() } f()`,
		`const f = () => f(); f()`,
		`var s = 'x'; while (true) s += s`,
		`var s = 'x'; while (true) s = s.concat(s)`,
		"var s = 'x'; while (true) s = `${s}${s}`",
		`this.s = 'abcdefgh'.repeat(100000000)`,
		`this.s = ''.repeat(2000000000) + 'x'.repeat(2000000000)`,
		`var a = [1]; while (true) a = a.concat(a)`,
		`var a = [1]; while (true) a = [...a, ...a]`,
		`var a = [1]; while (true) a.push(a)`,
		`var a = [1]; while (true) a.unshift(1)`,
		`var a = [1]; while (true) a.splice(0, 0, 1, 2, 3)`,
		`var a = [1]; while (true) a = a.slice(0).concat(a.map(x => x))`,
		`var a = []; a[100000000] = 1`,
		`var a = []; for (var i = 1; ; i++) a[i * 50000] = 1`,
		`var a = [1]; for (var x of a) a.push(x)`,
		`var a = [1]; for (var i = 0; i < 20; i++) a = a.concat(a); while (true) a.lastIndexOf(2)`,
		`var s = 'a'.repeat(1000000); while (true) s.padStart(2000000, 'xy')`,
		`'x'.padEnd(2000000000)`,
		`var s = 'a'.repeat(1000000); while (true) s.lastIndexOf('b')`,
		`var s = '1'.repeat(1000000); while (true) parseFloat(s + 'x')`,
		`while (true) (1.5).toFixed(100)`,
		`var s = 'a'.repeat(1000000); while (true) for (var c of s) break`,
		`var s = 'a'.repeat(1000000); while (true) Object.keys(s)`,
		`for (let i = 0; ; i++) (() => i)`,
		`var a = [1]; for (var i = 0; i < 20; i++) a = a.concat(a); while (true) a.sort((x, y) => 0)`,
		`var a = [1]; for (var i = 0; i < 20; i++) a = a.concat(a); while (true) a.reverse()`,
		`var a = [1]; for (var i = 0; i < 20; i++) a = a.concat(a); while (true) a.indexOf(2)`,
		`var a = [1]; for (var i = 0; i < 20; i++) a = a.concat(a); while (true) a.shift()`,
		`var a = []; for (var i = 0; i < 50; i++) a = [a, a]; a.join()`,
		`var a = []; a.push(a); a.join()`,
		`var a = []; for (var i = 0; i < 50; i++) a = [a, a]; this.a = a`,
		`var o = {}; for (var i = 0; ; i++) o['x' + i] = i`,
		`var s = 'a'.repeat(1000000); while (true) s.toUpperCase()`,
		`var s = 'a'.repeat(1000000); while (true) s.split('')`,
		`var s = 'a'.repeat(1000000); while (true) s.length`,
		`var s = 'a'.repeat(1000000); while (true) s.replaceAll('a', 'bbbb')`,
		`var s = 'a'.repeat(1000000); while (true) s[999999]`,
		`while (true) put('x', {})`,
		`while (true) load('x')`,
		`while (true) output('x')`,
		`var a = [1]; for (var i = 0; i < 20; i++) a = a.concat(a); while (true) load(a)`,
		`var t = 'x'.repeat(30000000); ''.concat(` + strings.Repeat("t,", 20_000) + `t)`,
		`var s = '1'.repeat(10000000); while (true) -s`,
		`var s = '1'.repeat(10000000); while (true) s < 1`,
		`var s = '1'.repeat(10000000); while (true) s == 1`,
		`var s = '1'.repeat(10000000); while (true) parseInt(s)`,
		`var s = '1'.repeat(10000000), t = '1'.repeat(10000000); while (true) s === t`,
		`var s = '1'.repeat(10000000), t = '1'.repeat(10000000); while (true) s != t`,
		`var s = '1'.repeat(10000000), t = '1'.repeat(10000000); while (true) [s, s, s].includes(t)`,
		`var s = '1'.repeat(10000000); while (true) this[s]`,
		`var s = '1'.repeat(10000000); while (true) s in this`,
		`var s = '1'.repeat(10000000); while (true) this.hasOwnProperty(s)`,
		`var s = '1'.repeat(10000000); while (true) delete this[s]`,
		`var o = {a: 1}; while (true) Object.assign(o, {b: 2}, o)`,
		`var o = {}; for (var i = 0; i < 5000; i++) o['x' + i] = i; while (true) Object.keys(o)`,
		`var s = 'x'.repeat(1000000), o = {}; o[s] = 1; var a = []; for (var i = 0; i < 200; i++) a.push(o); this.a = a`,
		`this.a = ` + strings.Repeat("[", 200) + strings.Repeat("]", 200),
		`this.a = ` + strings.Repeat("-", 200) + "1",
		`this.a = ` + strings.Repeat("1+", 200) + "1",
		`this.a = ` + strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200),
		`this.a = this` + strings.Repeat(".a", 200),
		strings.Repeat("{", 200) + strings.Repeat("}", 200),
		strings.Repeat("if(1)", 200) + "1",
		`this.a = ` + strings.Repeat("x=>", 200) + "1",
		strings.Repeat("a;", 40_000),
	} {
		if !today.Has(i) {
			continue
		}
		got := runScript(t, source, `{"n":0}`, ``, store{})
		if !strings.HasPrefix(got, "script: ") {
			t.Errorf("%.80s: got %.200s, want an error", source, got)
		}
	}
}

// Ensure that the digits of numbers and the names of members count when a value is
// written: a text may have many references to a long one.
func TestRun_Bounds_References(t *testing.T) {
	t.Parallel()
	const refer = `var a = []; for (var i = 0; i < 80; i++) a.push(args.v); this.a = a`
	for _, args := range []string{`{"v":` + strings.Repeat("1", 1_000_000) + `}`, `{"v":{"` + strings.Repeat("k", 1_000_000) + `":1}}`, `{"v":"` + strings.Repeat("k", 1_000_000) + `"}`} {
		if got := runScript(t, refer, `{}`, args, store{}); !strings.Contains(got, "than the most") {
			t.Errorf("%.20s: got %.200s, want an error", args, got)
		}
	}
}

// Ensure that a run pays for its memory before it takes it: for what its documents and
// parameters are decoded into, and for what it makes.
func TestRun_Take(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for _, test := range []struct {
		source, args string
		least        int64
	}{
		{`this.a = 1`, `{"v":[` + strings.Repeat("0,", 100_000) + `0]}`, 5_000_000},
		{`this.a = 1`, `{"v":[` + strings.Repeat("{},", 100_000) + `{}]}`, 10_000_000},
		{`var s = 'x'.repeat(10000000)`, `{}`, 10_000_000},
		{`var a = []; for (var i = 0; i < 50000; i++) a.push({})`, `{}`, 3_000_000},
	} {
		p, err := script.Parse(test.source)
		if err != nil {
			t.Fatal(err)
		}
		paid := int64(0)
		in := script.Input{Document: []byte(`{}`), Args: json.RawMessage(test.args), Take: func(n int64) error { paid += n; return nil }}
		if _, err := p.Run(t.Context(), in, store{}); err != nil || paid < test.least {
			t.Errorf("%s %.20s: paid %d, want %d at least, %v", test.source, test.args, paid, test.least, err)
		}
		left := test.least / 2
		in.Take = func(n int64) error {
			if left -= n; left < 0 {
				return refused
			}
			return nil
		}
		if _, err := p.Run(t.Context(), in, store{}); !errors.Is(err, refused) {
			t.Errorf("%s %.20s: got %v, want the refusal", test.source, test.args, err)
		}
	}
}

// Ensure that a run ends with its context.
func TestRun_Context(t *testing.T) {
	t.Parallel()
	p, err := script.Parse(`while (true) {}`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = p.Run(ctx, script.Input{Document: []byte(`{}`)}, store{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

// Ensure that runs share nothing.
func TestRun_Shared(t *testing.T) {
	t.Parallel()
	p, err := script.Parse(`if (typeof seen !== 'undefined') this.bad = 1; seen = true; this.n = (this.n || 0) + 1`)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r, err := p.Run(t.Context(), script.Input{Document: []byte(`{}`)}, store{})
		if err != nil || string(r.Document) != `{"n":1}` || !r.Changed {
			t.Errorf("%s, %v", r.Document, err)
		}
	}
}

// FuzzParse ensures that no script fails inside the package, and that what a script
// leaves is JSON.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`this.x = args.v;`, `this.n = this.n ? this.n + 1 : 2`, `this.a.push(1, 'x'); this.a.splice(0, 1)`, `for (const x of this.a) { this.s += x }`,
		"this.t = `a${this.n}b`", `function f(a) { return a * 2 } this.n = f(21)`, `this.a = this.a.filter(x => x > 1).map(x => ({x}))`, `delete this.a[0]; this.a.length = 0`,
		`this.o = {...this.o, 'a b': [1, , 2]}`, `put('x', load('y')); del('z'); output(getMetadata(this))`, `this.a?.b.c; typeof zz; !1 + -'3'`, `if (1) ; else { throw 'x' }`,
		`this.s = 'é😀'.substring(1, 2)`, `while (true) { break }`, "/* a */ // b\nthis.x = 1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		p, err := script.Parse(source)
		var problem *script.Error
		if err != nil {
			if !errors.As(err, &problem) {
				t.Fatalf("%q: %v", source, err)
			}
			return
		}
		in := script.Input{Document: []byte(`{"n":1,"a":[1,2,3],"o":{"b":1.50},"s":"é"}`), Args: json.RawMessage(`{"v":1}`), Limits: script.Limits{Steps: 10_000, Bytes: 1 << 20}}
		r, err := p.Run(context.Background(), in, store{"y": `{"n":2}`})
		if err != nil {
			if !errors.As(err, &problem) {
				t.Fatalf("%q: %v", source, err)
			}
			return
		}
		if !json.Valid(r.Document) {
			t.Fatalf("%q leaves %s", source, r.Document)
		}
	})
}

func Example() {
	p, err := script.Parse(`this.Visits += args.n`)
	if err != nil {
		panic(err)
	}
	r, err := p.Run(context.Background(), script.Input{ID: "users/1", Document: []byte(`{"Visits":1}`), Args: json.RawMessage(`{"n":2}`)}, nil)
	fmt.Println(string(r.Document), err)
	// Output: {"Visits":3} <nil>
}
