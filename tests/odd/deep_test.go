package odd_test

import (
	"fmt"
	"net/http"
	"strings"
)

// nests are beginnings and ends of what stands in itself, and what stands in the middle.
var nests = []struct{ before, middle, after string }{
	{"(", "A = 1", ")"},
	{"not ", "A = 1", ""},
	{"not (", "A = 1", ")"},
	{"exact(", "A = 1", ")"},
	{"A = 1 and ", "A = 1", ""},
	{"A = 1 or ", "A = 1", ""},
	{"A = 1 and (", "B = 1", " or C = 2)"},
	{"elemMatch(A, ", "A = 1", ")"},
	{"boost(", "search(T, 'a')", ", 2)"},
	{"if(", "A = 1", ", true) = 1"},
	{"abs(", "A", ") = 1"},
	{"abs(", "A", ")"},
	{"coalesce(A, ", "B", ")"},
	{"if(A = 1, ", "B", ", 2)"},
	{"load(", "Ref", ").Ref"},
	{"-", "A", ""},
	{"(", "A", ")"},
	{"A + ", "B", ""},
	{"A.", "B", ""},
	{"A[0].", "B", ""},
	{"lower(", "T", ")"},
}

// scriptNests are the same for scripts.
var scriptNests = []struct{ before, middle, after string }{
	{"(", "1", ")"}, {"[", "1", "]"}, {"!", "1", ""}, {"-", "1", ""}, {"- -", "1", ""}, {"1 ? 1 : ", "1", ""}, {"1 ? ", "1", " : 1"}, {"({ a: ", "1", " })"}, {"x => ", "1", ""}, {"f(", "1", ")"}, {"`${", "1", "}`"}, {"1 + ", "1", ""}, {"this.A = ", "1", ""}, {"typeof ", "1", ""}, {"a.", "b", ""}, {"this[", "'A'", "]"}, {"1 && ", "1", ""}, {"1 ?? ", "1", ""}, {"[...", "[]", "]"},
	{"{ ", "1;", " }"}, {"if (1) ", "1;", ""}, {"if (0) 1; else ", "1;", ""}, {"for (;;) ", "break;", ""}, {"while (1) ", "break;", ""}, {"function f() { ", "1", " }"}, {"do ", "1;", " while (0);"},
}

// endless are scripts that need much.
var endless = []string{
	"while (true) {}", "for (;;) this.A = [this.A]", "let x = {}; for (let i = 0; i < 300; i++) x = { a: x }; this.X = x", "let x = []; for (let i = 0; i < 90000; i++) x = [x]; this.X = x", "let x = []; for (let i = 0; i < 20000; i++) x = [x]; this.X = JSON.stringify(x)", "let x = []; x.push(x); this.X = x", "let x = {}; x.a = x; this.X = JSON.stringify(x)", "this.X = 'x'.repeat(1e9)", "this.X = 'x'.padEnd(1e9)", "this.X = 'x'.padStart(2147483648, 'ab')", "let s = 'x'; for (let i = 0; i < 60; i++) s += s; this.X = s", "function f() { return f() } f()", "function f(n) { return n ? [f(n - 1)] : [] } this.X = f(50000)", "const f = x => f(x); f(1)", "let a = []; for (let i = 0; i < 1e9; i++) a.push(i)", "let a = []; a[1e9] = 1; this.X = a", "let a = []; a.length = 1e9", "this.X = [1, 2, 3].sort(() => { throw 1 })", "let a = [3, 2, 1]; a.sort((x, y) => { a.push(1); return x - y }); this.X = a", "let a = [1]; for (const x of a) a.push(x)", "let a = [1]; a.forEach(x => a.push(x)); this.X = a", "let a = [1]; a.map(x => { a.length = 0; return x })", "this.X = [[1]].flat(1e9)", "let a = [1]; a[0] = a; this.X = a.flat(Infinity)", "let a = []; a[0] = a; this.X = a.join()", "let a = []; a[0] = a; this.X = '' + a", "this.X = 'a'.split('')", "this.X = 'x'.replaceAll('', 'yy')", "this.X = (1e21).toFixed(101)", "this.X = (255).toString(37)", "this.X = (0.1).toString(2)", "this.X = (1e400).toFixed(2)", "this.X = parseInt('z'.repeat(1000), 36)", "this.X = JSON.parse('['.repeat(100000))", "this.X = JSON.parse('[' .repeat(5000) + ']'.repeat(5000))", "this.X = new Date(8.64e15 + 1).toISOString()", "this.X = new Date('x').toISOString()", "this.X = new Date(NaN).toJSON()", "this.X = new Date(1e400)", "this.X = Object.assign({}, this, { a: this })", "for (const k in this) delete this[k]", "this['@metadata'] = 5", "this['@metadata'] = null", "delete this['@metadata']", "this['@metadata'] = { '@id': 5, '@collection': 7 }", "put('odd/', this)", "put('odd|', {})", "put('', {})", "put('odd/1', 5)", "put('odd/1', [])", "put('odd/1', null)", "put(5, {})", "put('odd/9', { '@metadata': 5 })", "put('odd/9', { '@metadata': { '@collection': {} } })", "put('odd/9', {}, 5)", "put('odd/9', {}, 'A:1-x')", "del()", "del(null)", "del('odd/1', 'x')", "del(id(this))", "put(id(this), {})", "load()", "load(null)", "load([])", "load([null, 5, 'odd/1'])", "this.X = load(['odd/1', 'none'])", "this.X = load('odd/1')", "lastModified(5)", "this.X = lastModified(this)", "getMetadata(null)", "getMetadata(5)['a'] = 1", "id()", "this.X = id({})", "output(this)", "output(output)", "this.X = output", "this.X = x => x", "this.X = Math", "this.X = [undefined, NaN]", "this.X = -0", "this.X = this.N * 1e308 * 1e308", "this.N++", "this.T--", "this.A.B.C = 1", "null.x", "undefined[0]", "args = 5; this.X = args", "this = 5", "const c = 1; c = 2", "let a = 1; let a = 2", "a = b", "this.X = ((a = 1, b = a) => b)()", "this.X = ((...a) => a)(1, 2)", "return 5", "throw { a: this }", "throw null", "throw 'x'.repeat(1e6)", "break", "this.X = '\\ud800'", "this['\\ud800'] = 1", "this.X = '😀'[0] + '😀'[1]", "this.X = 0x1F + 0b11 + 0o17 + 1_000", "this.X = 9007199254740993 + 1", "this.X = 9223372036854775807 + 1", "this.X = -9223372036854775808 / -1", "this.X = -9223372036854775808 % -1", "this.X = 5 % 0", "this.X = 2 ** 3",
}

// nested makes something that stands in itself many times.
func (o *odds) nested() request {
	n := []int{10, 100, 300, 1000, 5000, 30_000, 200_000}[o.IntN(7)]
	switch o.IntN(6) {
	case 0, 1:
		k := nests[o.IntN(len(nests))]
		text := strings.Repeat(k.before, n) + k.middle + strings.Repeat(k.after, n)
		query := o.pick("from Odd where "+text, "from Odd where "+text+" = 1", "from Odd select "+text+" as X", "from Odd order by "+text, "from Odd group by "+text+" select count()")
		return request{method: http.MethodPost, path: "/databases/" + wild + "/queries", body: `{"Query":` + quoted(query) + `}`}
	case 2:
		k := scriptNests[o.IntN(len(scriptNests))]
		text := strings.Repeat(k.before, n) + k.middle + strings.Repeat(k.after, n)
		return request{method: http.MethodPatch, path: "/databases/" + wild + "/docs?id=odd/1", body: `{"Patch":{"Script":` + quoted(o.pick("", "this.X = ")+text) + `},"PatchIfMissing":{"Script":"this.A = 1"}}`}
	case 3:
		k := scriptNests[o.IntN(len(scriptNests))]
		text := strings.Repeat(k.before, n) + strings.ReplaceAll(k.middle, "'", `"`) + strings.Repeat(k.after, n)
		return request{method: http.MethodPut, path: "/databases/" + wild + "/admin/indexes", body: fmt.Sprintf(`{"Indexes":[{"Name":"Odd/Deep","Maps":[%s]}]}`, quoted(o.pick("map('Odd', d => ({ X: "+text+" }))", "from d in docs.Odd select new { X = "+text+" }")))}
	case 4:
		k := nests[o.IntN(len(nests))]
		text := strings.Repeat(k.before, n) + k.middle + strings.Repeat(k.after, n)
		return request{method: http.MethodPut, path: "/jay/v1/databases/" + wild + "/indexes", body: fmt.Sprintf(`{"collection":"Odd","index":{"name":"deep","fields":[%s]%s}}`, quoted(o.pick(text, "A")), o.pick("", `,"where":`+quoted(text)))}
	default:
		text := o.pick(endless...)
		if o.chance(50) {
			row := strings.NewReplacer("this.X = ", "o.X = ", "this", "o").Replace(text)
			return request{method: http.MethodPost, path: "/databases/" + wild + "/queries", body: `{"Query":` + quoted("declare function f(o) { "+row+"; return { X: o.X }; } from Odd as o select f(o)") + `}`}
		}
		return request{method: http.MethodPatch, path: "/databases/" + wild + "/docs?id=odd/" + fmt.Sprint(o.IntN(9)), body: `{"Patch":{"Script":` + quoted(text) + `},"PatchIfMissing":{"Script":"this.A = 1"}}`}
	}
}
