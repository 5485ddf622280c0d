package script_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/script"
)

// testdata/node.txt has what Node says that programs return: a line for each, as JSON. With JAY_NODE=1, a test runs Node and
// compares; with JAY_NODE=write it writes the file.
const (
	nodeFile     = "testdata/node.txt"
	nodeVariable = "JAY_NODE"
)

// shown returns a script that calls an expression with what a program returns, as text that says what kind of value it is.
func shown(call, program string) string {
	return `function show(x) {
  if (!Array.isArray(x)) return x === null ? 'null' : typeof x === 'object' ? JSON.stringify(x) : typeof x === 'function' ? 'function' : typeof x === 'string' ? x : typeof x + ' ' + String(x);
  let list = '';
  for (let i = 0; i < x.length; i++) list += (i > 0 ? ',' : '') + show(x[i]);
  return '[' + list + ']';
}
` + call + "show((function () {" + program + "\n})())"
}

// programs returns the programs that are compared: expressions of each operator and native with values at their edges,
// and statements.
func programs() []string {
	var all []string
	expr := func(format string, args ...any) { all = append(all, "return "+fmt.Sprintf(format, args...)) }
	positions := []string{"", "0", "1", "2", "-1", "-2", "99", "-99", "1.7", "'1'", "undefined", "null", "0/0", "1/0"}
	texts := []string{`''`, `'abc'`, `'abab'`, `'aéb'`, `'x😀y'`, `' \t x\n'`, `'a,b,,c'`, `'12'`}
	pick := func(list []string, n int) []string { return list[:min(n, len(list))] }

	// Texts.
	for _, t := range texts {
		for _, m := range []string{"indexOf", "lastIndexOf", "includes", "startsWith", "endsWith"} {
			expr("%s.%s()", t, m)
			for _, s := range []string{`''`, `'a'`, `'b'`, `'ab'`, `'zz'`, "1", "undefined", "null"} {
				expr("%s.%s(%s)", t, m, s)
			}
			for _, p := range positions[1:] {
				expr("%s.%s('b', %s)", t, m, p)
				expr("%s.%s('', %s)", t, m, p)
			}
		}
		for _, m := range []string{"slice", "substring", "substr"} {
			for _, p := range positions {
				expr("%s.%s(%s)", t, m, p)
				if p != "" && !strings.Contains(t, "😀") {
					for _, q := range positions[1:9] {
						expr("%s.%s(%s, %s)", t, m, p, q)
					}
				}
			}
		}
		for _, p := range positions {
			if !strings.Contains(t, "😀") { // half of a pair is no text of JSON
				expr("%s.charAt(%s)", t, p)
			}
			if p != "" && p != "1/0" && !strings.Contains(t, "😀") {
				expr("%s[%s]", t, p)
			}
		}
		for _, s := range []string{"", "','", "'b'", "'zz'", "undefined", "null", "'1'"} {
			expr("%s.split(%s)", t, s)
			for _, n := range []string{"0", "1", "2", "99", "-1", "undefined", "null", "1.9"} {
				if s != "" {
					expr("%s.split(%s, %s)", t, s, n)
				}
			}
		}
		for _, s := range []string{`''`, `'a'`, `'b'`, `'zz'`, "1", "undefined"} {
			for _, by := range []string{`''`, `'-'`, `'aa'`, "7", "undefined"} {
				expr("%s.replace(%s, %s)", t, s, by)
				expr("%s.replaceAll(%s, %s)", t, s, by)
			}
		}
		for _, n := range []string{"", "0", "1", "3", "1.9", "'2'", "undefined", "-1", "0/0", "1/0"} {
			expr("%s.repeat(%s)", t, n)
		}
		expr("%s.length", t)
		expr("%s.concat('x', 1, null)", t)
		expr("%s.concat()", t)
		expr("[%s.trim(), %s.toUpperCase(), %s.toLowerCase(), %s.toString()]", t, t, t, t)
		expr("[...%s]", t)
		expr("[%s.trimStart(), %s.trimEnd()]", t, t)
		for _, n := range []string{"", "0", "3", "9", "10.9", "-1", "'8'"} {
			expr("[%s.padStart(%s), %s.padEnd(%s, 'xy'), String(%s.charCodeAt(%s))]", t, n, t, n, t, n)
		}
		all = append(all, fmt.Sprintf("var s = %s, t = ''; for (var i = 0; i < s.length; i++) t += s[i]; return [t, t === s]", t), fmt.Sprintf("var s = %s; return [s.split('').join(''), [...s].length, Object.keys(s), s.slice(0, 2) + s.slice(2)]", t),
			fmt.Sprintf("var s = %s; return `${s.charAt(0)}${s.charAt(1)}${s.substring(2)}`", t))
		if !strings.Contains(t, "😀") {
			expr("%s.split('')", t)
		}
	}
	for _, c := range []string{`\u0009`, `\u000b`, `\u000c`, `\u0020`, `\u00a0`, `\u0085`, `\u1680`, `\u180e`, `\u2003`, `\u200b`, `\u2028`, `\u202f`, `\u3000`, `\ufeff`} {
		expr("('%s' + 'x' + '%s').trim().length", c, c)
		expr("Number('%s1%s')", c, c)
		expr("parseInt('%s1')", c)
	}
	for _, t := range []string{`'ß'`, `'ǆ'`, `'İ'`, `'Σας'`, `'ŉ'`, `'ﬁ'`} {
		expr("%s.toUpperCase()", t)
		expr("%s.toLowerCase()", t)
	}

	// Numbers of texts, and texts of numbers.
	for _, t := range []string{`''`, `' '`, `'1'`, `' 12 '`, `'1.50'`, `'.5'`, `'5.'`, `'.'`, `'-'`, `'+1'`, `'--1'`, `'1e3'`, `'1e'`, `'1e+2'`, `'1E-2'`, `'e3'`, `'0x1f'`, `'-0x1f'`, `'0b11'`, `'0o17'`, `'0x'`,
		`'1_000'`, `'12px'`, `'1.5.5'`, `'Infinity'`, `'-Infinity'`, `'infinity'`, `'Inf'`, `'nan'`, `'NaN'`, `'1n'`, `'0123'`, `'-0'`, `'1 2'`, `'9007199254740993'`, `'9223372036854775808'`, `'1e400'`, `'0x1p3'`, `'١'`} {
		expr("[String(Number(%s)), String(+%s), String(parseInt(%s)), String(parseFloat(%s)), isNaN(%s)]", t, t, t, t, t)
		for _, base := range []string{"0", "2", "8", "10", "16", "36", "1", "37", "undefined", "null", "'16'", "16.9"} {
			expr("String(parseInt(%s, %s))", t, base)
		}
	}
	for _, v := range []string{"", "null", "undefined", "true", "false", "[]", "[5]", "[1,2]", "({})", "1.9", "-1.9", "0/0", "1/0", "x => x"} {
		expr("String(Number(%s))", v)
		expr("String(parseInt(%s))", v)
		expr("String(parseFloat(%s))", v)
		if v != "x => x" {
			expr("String(%s)", v)
		}
		expr("Boolean(%s)", v)
		expr("isNaN(%s)", v)
		if v != "" {
			expr("String(+(%s))", v)
			expr("!(%s)", v)
			expr("typeof (%s)", v)
		}
	}
	numbers := []string{"0", "-0", "1", "-1", "0.5", "-0.5", "1.5", "2.5", "-2.5", "1.25", "1.005", "1.45", "0.000001", "0.0000001", "123456789.125", "1e20", "1e21", "1.5e21", "1e-7", "5e-324", "1.7976931348623157e308", "0.1+0.2", "0.49999999999999994",
		"4503599627370495.5", "9007199254740992", "9007199254740991", "100", "1/3", "0/0", "1/0", "-1/0"}
	for _, n := range numbers {
		expr("String(%s)", n)
		expr("(%s).toString()", n)
		for _, base := range []string{"10", "undefined", "2", "16", "36", "1", "37", "null", "'16'", "0/0"} {
			expr("(%s).toString(%s)", n, base)
		}
		for _, d := range []string{"", "0", "1", "2", "3", "20", "100", "-1", "101", "1.9", "'2'", "undefined"} {
			expr("(%s).toFixed(%s)", n, d)
		}
		for _, f := range []string{"floor", "ceil", "round", "trunc", "abs", "sign", "sqrt"} {
			expr("[String(Math.%s(%s)), String(1 / Math.%s(%s))]", f, n, f, n)
		}
	}
	for _, f := range []string{"floor", "ceil", "round", "trunc", "abs", "sign", "sqrt"} {
		for _, v := range []string{"", "null", "undefined", "true", "'7.5'", "'x'", "[]", "[4]", "({})"} {
			expr("String(Math.%s(%s))", f, v)
		}
	}
	for _, p := range [][2]string{{"2", "10"}, {"2", "-1"}, {"-8", "1/3"}, {"0", "0"}, {"1", "1/0"}, {"0/0", "0"}, {"'2'", "'3'"}, {"2", "undefined"}, {"10", "308"}, {"10", "309"}, {"-2", "3"}} {
		expr("String(Math.pow(%s, %s))", p[0], p[1])
	}
	for _, args := range []string{"", "1", "1, 2", "2, 1", "'10', '9'", "'5', 1", "true", "null, -1", "undefined", "1, 'x'", "[]", "[3], 2", "0, -0", "-0, 0", "0/0, 1", "({})", "1/0", "1, 1.0"} {
		expr("String(Math.max(%s))", args)
		expr("String(Math.min(%s))", args)
		expr("typeof Math.max(%s)", args)
	}

	// Operators.
	values := []string{"0", "1", "-1", "1.5", "2", "3", "''", "'a'", "'b'", "'1'", "'10'", "null", "undefined", "true", "false", "[]", "[1]", "({})", "0/0", "1/0", "-0", "4503599627370496"}
	for _, op := range []string{"+", "-", "*", "/", "%", "==", "===", "!=", "!==", "<", "<=", ">", ">=", "&&", "||", "??", "**", "&", "|", "^", "<<", ">>", ">>>"} {
		for _, a := range values {
			var parts []string
			for _, b := range values {
				parts = append(parts, fmt.Sprintf("String((%s) %s (%s))", a, op, b))
			}
			expr("[%s]", strings.Join(parts, ", "))
		}
	}
	for _, a := range values {
		expr("[typeof (%s), String(-(%s)), String(+(%s)), !(%s), String((%s) ? 1 : 2)]", a, a, a, a, a)
		expr("`<${%s}>`", a)
		expr("[%s].join()", a)
		expr("JSON.stringify(%s)", a)
		expr("JSON.stringify({a: %s, b: [%s]})", a, a)
		expr("[~(%s)]", a)
		all = append(all, fmt.Sprintf("var x = %s; return [String(x++), String(x)]", a), fmt.Sprintf("var x = %s; return [String(--x), String(x)]", a),
			fmt.Sprintf("var x = %s; x += 1; return String(x)", a), fmt.Sprintf("var x = %s; x ||= 5; return String(x)", a), fmt.Sprintf("var x = %s; x ??= 5; return String(x)", a), fmt.Sprintf("var x = %s; x &&= 5; return String(x)", a))
	}

	// Arrays.
	arrays := []string{"[]", "[1, 2, 3]", "[3, 1, 2]", "['b', 'a', 'C', 'ä']", "[10, 9, 1]", "[1, [2, [3, [4]]]]", "[null, undefined, 1]", "[0/0, 0, -0]", "[true, '1', 1]", "[{a: 1}, {a: 0}]", "['\\ue000', '😀', 'z']", "[3, undefined, 1]"}
	for _, a := range arrays {
		for _, p := range positions {
			all = append(all, fmt.Sprintf("var a = %s; var r = a.splice(%s); return [r, a]", a, p))
			expr("%s.slice(%s)", a, p)
			expr("%s.indexOf(1, %s)", a, p)
			expr("%s.includes(1, %s)", a, p)
			expr("%s.flat(%s)", a, strings.ReplaceAll(p, "1/0", "9"))
			if p != "" {
				for _, q := range pick(positions[1:], 9) {
					all = append(all, fmt.Sprintf("var a = %s; var r = a.splice(%s, %s, 'x', 'y'); return [r, a]", a, p, q))
					expr("%s.slice(%s, %s)", a, p, q)
				}
				expr("%s[%s]", a, p)
			}
		}
		for _, v := range []string{"", "undefined", "null", "0/0", "0", "-0", "1", "'1'", "true", "3"} {
			expr("[%s.indexOf(%s), %s.includes(%s)]", a, v, a, v)
			expr("%s.lastIndexOf(%s)", a, v)
		}
		for _, s := range []string{"", "''", "'-'", "undefined", "null", "1"} {
			expr("%s.join(%s)", a, s)
		}
		for _, f := range []string{"sort()", "sort((x, y) => y - x)", "sort((x, y) => x < y ? 1 : -1)", "sort(undefined)", "reverse()", "push()", "push(1, [2])", "pop()", "shift()", "unshift()", "unshift(8, 9)", "concat()", "concat(1, [2, [3]])", "toString()", "length"} {
			all = append(all, fmt.Sprintf("var a = %s; var r = a.%s; return [r, a]", a, f))
		}
		for _, f := range []string{"map(x => x)", "map((x, i) => i)", "map((x, i, all) => all.length)", "filter(x => x)", "filter((x, i) => i % 2 === 0)", "some(x => x > 2)", "every(x => x > 0)", "some(x => x)", "every(x => x)", "find(x => x > 1)", "findIndex(x => x > 1)",
			"find(x => x === 77)", "findIndex(x => x === 77)", "reduce((s, x) => s + x, '')", "reduce((s, x, i) => s + i, 0)", "reduce((s, x) => s + x)", "reduce((s, x) => s, undefined)", "forEach(x => x)", "flatMap(x => [x, x])", "flatMap(x => x)", "map(String)", "map(Number)", "map(parseInt)"} {
			expr("%s.%s", a, f)
		}
		for _, f := range []string{"map", "filter", "forEach", "some", "every", "find", "findIndex"} {
			all = append(all, fmt.Sprintf("var a = %s, n = 0; a.%s(x => { n++; if (n < 9) a.push(n) }); return [n, a]", a, f), fmt.Sprintf("var a = %s, n = 0; a.%s(x => { n++; a.pop() }); return [n, a]", a, f))
		}
		all = append(all, fmt.Sprintf("var a = %s, s = ''; for (var i in a) s += i + ','; return s", a), fmt.Sprintf("var a = %s, s = ''; for (var v of a) s += v + ','; return s", a),
			fmt.Sprintf("var a = %s; a.length = 2; return a", a), fmt.Sprintf("var a = %s; a[a.length] = 'x'; return [a, a.length]", a), fmt.Sprintf("return [...%s, 0]", a), fmt.Sprintf("return Math.max(...%s)", a), fmt.Sprintf("return Array.isArray(%s)", a),
			fmt.Sprintf("return '0' in %s", a), fmt.Sprintf("return %s.hasOwnProperty('0')", a), fmt.Sprintf("return Object.keys(%s)", a), fmt.Sprintf("var o = {...%s}; return o", a))
	}

	// Objects.
	for _, o := range []string{"{}", "{a: 1, b: 2}", "{b: 1, a: undefined, c: null}", "{'a b': 1, ['c' + 1]: 2}", "{a: {b: [1]}}"} {
		expr("[Object.keys(%s), Object.values(%s), Object.entries(%s)]", o, o, o)
		expr("JSON.stringify(%s)", o)
		expr("Object.assign({}, %s, {z: 9})", o)
		expr("({...%s, a: 5})", o)
		expr("'a' in %s", o)
		expr("(%s).hasOwnProperty('a')", o)
		expr("String(%s)", o)
		expr("(%s).a?.b", o)
		expr("(%s)['a']", o)
		all = append(all, fmt.Sprintf("var o = %s; delete o.a; return o", o), fmt.Sprintf("var o = %s, s = ''; for (var k in o) s += k; return s", o), fmt.Sprintf("var o = %s; o.a = 7; o['q r'] = 8; return o", o),
			fmt.Sprintf("var o = %s; var p = o; p.x = 1; return [o === p, o, o == {}]", o))
	}
	for _, t := range []string{`'{"a":[1,2.50,null,true,"x"]}'`, `'[]'`, `'1e2'`, `'"é"'`, `'{'`, `''`, `'{"a":1,"a":2}'`, `'01'`, `' 1 '`, `'nul'`, `'"\\ud83d\\ude00"'`} {
		expr("JSON.parse(%s)", t)
		expr("JSON.stringify(JSON.parse(%s))", t)
	}
	for _, v := range []string{"[1, {a: 'é'}]", "'a\"b\\\\c\\n\\u0001\\u2028'", "{a: undefined}", "[undefined]", "[x => x]", "1.0", "-0", "'<&>'", "{a: {}, b: []}"} {
		expr("JSON.stringify(%s)", v)
		expr("JSON.stringify(%s, null, 2)", v)
		expr("JSON.stringify(%s, null, '--')", v)
	}

	// Dates, in UTC.
	for _, d := range []string{"'2020-02-29'", "'2020-02-29T10:11:12'", "'2020-02-29T10:11:12Z'", "'2020-02-29T10:11:12.5Z'", "'2020-02-29T10:11:12.1234567Z'", "'2020-02-29T10:11:12+02:00'", "'2020-02'", "'2020'", "'x'", "''", "0", "1e12", "-1", "8.64e15", "8.64e15+1", "'1582881072000'", "2020, 1, 29", "2020, 0", "2020, 12, 1, 25, 61, 61, 1001", "99, 0, 1", "2020, 1, 30", "0/0", "null", "true"} {
		for _, m := range []string{"getTime", "getFullYear", "getMonth", "getDate", "getDay", "getHours", "getMinutes", "getSeconds", "getMilliseconds", "getUTCFullYear", "toISOString", "toJSON", "valueOf"} {
			expr("new Date(%s).%s()", d, m)
		}
	}

	// Statements.
	return append(all,
		`var s = ''; for (var i = 0; i < 3; i++) { s += i } return s + i`,
		`let s = ''; for (let i = 0; i < 3; i++) { let i = 9; s += i } return s`,
		`let f = []; for (let i = 0; i < 3; i++) f.push(() => i); return f.map(g => g())`,
		`var f = []; for (var i = 0; i < 3; i++) f.push(() => i); return f.map(g => g())`,
		`let f = []; for (let x of [1, 2]) f.push(() => x); return f.map(g => g())`,
		`let f = []; for (const k in {a: 1, b: 2}) f.push(() => k); return f.map(g => g())`,
		`var x = 1; { var x = 2 } return x`,
		`let x = 1; { let x = 2 } return x`,
		`const x = 1; x = 2; return x`,
		`let x; return x`,
		`return typeof later; var later = 1`,
		`later = 1; var later; return later`,
		`return early; let early = 1`,
		`return hoisted(); function hoisted() { return 5 }`,
		`function f() { return typeof g; var g = 1 } return f()`,
		`function f(a, b = a + 1, ...c) { return [a, b, c] } return [f(1), f(1, undefined, 3), f(1, 2, 3, 4), f()]`,
		`function f(a) { a = 5; return a } var x = 1; f(x); return x`,
		`function f(o) { o.a = 5 } var x = {}; f(x); return x`,
		`function counter() { let n = 0; return () => ++n } var c = counter(), d = counter(); c(); c(); return [c(), d()]`,
		`const fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2); return fib(15)`,
		`function even(n) { return n === 0 || odd(n - 1) } function odd(n) { return n !== 0 && even(n - 1) } return [even(10), odd(7)]`,
		`var o = {n: 1, f: function () { return this.n }, g() { return this.n + 1 }}; return [o.f(), o.g()]`,
		`var o = {n: 1, f: function () { return [1].map(x => this.n) }}; return o.f()`,
		`var i = 0; while (i < 10) { i++; if (i % 2) continue; if (i > 6) break } return i`,
		`var i = 0; do i++; while (i < 5); return i`,
		`var n = 0; for (var i = 0; i < 3; i++) for (var j = 0; j < 3; j++) { if (j === 1) continue; if (i === 2) break; n += 10 * i + j } return n`,
		`var n = 0; for (;;) { if (++n > 4) break } return n`,
		`if (0) return 1; else if ('') return 2; else return 3`,
		`return 1
		+ 2`,
		`var a = 1
		var b = 2
		return a + b`,
		`return
		5`,
		`var x = 5; return x > 3 ? x > 4 ? 'a' : 'b' : 'c'`,
		`return 1 + 2 * 3 - 4 / 2 % 3`, `return 2 ** 3 ** 2`, `return -(2 ** 2)`, `return (1, 2)`, `return !1 + !0`, `return - -1`, `return +-+1`, `return 1 < 2 < 3`, `return 3 > 2 > 1`, `return 1 + +'2'`, `return '3' - - '3'`,
		`return typeof typeof 1`, `return !!'0'`, `return null ?? undefined ?? 0`, `return (null || undefined) ?? 'z'`, `return 0 || null && 1`, `return 1 ? 2 : 3, 4`,
		"return `a${1}${`b${2}`}c`", "return `\\n\\u0041\\x41\\``", "return `${[1, 2]}${{}}${null}`", `return 'a\
b'`, `return '\0\x41\u0041\u{1f600}\v\'\"'.length`,
		`return 0x1F + 0b11 + 0o17 + 1e3 + .5 + 5.`, `return 1_000`, `return 017`,
		`var o = {a: {b: {c: 1}}}; return [o?.a?.b?.c, o.x?.y.z.w, o.x?.[1], o.f?.(1), o['a']['b'].c]`,
		`var o = {}; o.a = o.b = 3; return o`, `var a = [1, 2]; a[5] = 1; return [a.length, a]`, `var a = [1, , 3]; return [a.length, a[1]]`, `var a = [1, 2, 3]; delete a[1]; return [a.length, a[1]]`,
		`var a = [1, 2, 3]; a.length = 0; return a`, `var a = []; a.x = 1; return a.x`, `var s = 'abc'; s[0] = 'x'; return s`, `var s = 'abc'; s.x = 1; return s.x`,
		`var o = {}; o[1] = 'a'; o[1.5] = 'b'; o[null] = 'c'; o[true] = 'd'; return Object.keys(o).sort()`,
		`var o = {b: 1, 2: 1, a: 1, 1: 1}; return Object.keys(o)`,
		`var o = {a: 1}; for (var k in o) { o.b = 2; delete o.a } return o`,
		`var a = [1, 2]; for (var x of a) { if (a.length < 5) a.push(x * 2) } return a`,
		`for (var c of 'a😀b') { if (c.length === 2) return c } return 'none'`,
		`throw 'x'`, `return x`, `return undefined.a`, `return null.a`, `var f; f()`, `return (1)()`, `return 'a'()`, `return {}.a.b`, `var a = 1; a.b.c = 1`, `return [].reduce((a, b) => a)`,
		`return 'a' in 'b'`, `return 1 instanceof Object`, `return void 0`, `return delete {}.a`, `return [1, 2, 3][1]`, `return 'abc'[1]`, `return ({a: 1}).a`, `var {a} = {a: 1}; return a`, `var [a] = [1]; return a`,
		`switch (1) { case 1: return 'one' }`, `try { throw 1 } catch (e) { return e }`, `a: for (;;) break a; return 1`, `return /a/.test('a')`, `return new Object()`, `class A {} return 1`, `return (function () { return arguments.length })(1, 2)`,
		`var r = []; [3, 1, 2].sort((a, b) => a - b).forEach(x => r.push(x * x)); return r`,
		`var words = 'to be or not to be'.split(' '), n = {}; for (var w of words) n[w] = (n[w] || 0) + 1; return n`,
		`var lines = [{p: 1.5, q: 2}, {p: 0.1, q: 3}]; return lines.map(l => l.p * l.q).reduce((a, b) => a + b, 0)`,
		`var t = 0; for (var i = 1; i <= 100; i++) if (i % 15 === 0) t += 100; else if (i % 5 === 0) t += 10; else if (i % 3 === 0) t++; return t`,
		`function primes(n) { var p = []; outer: for (var i = 2; i < n; i++) { p.push(i) } return p } return primes(4)`,
		`function primes(n) { var p = []; for (var i = 2; i < n; i++) { if (p.every(d => i % d)) p.push(i) } return p } return primes(50)`,
		`function hanoi(n, a, b, c) { return n === 0 ? 0 : hanoi(n - 1, a, c, b) + 1 + hanoi(n - 1, c, b, a) } return hanoi(8, 'a', 'b', 'c')`,
		`var m = [[1, 2], [3, 4]]; return m[0].map((_, i) => m.map(row => row[i]))`,
	)
}

// apart are the programs in which the language of scripts is another than JavaScript, each with what it gives and why:
// docs/server/patches.md says the same. A program that is refused because the language does not have it is not here.
var apart = map[string]string{
	// Half of a character cannot be stored.
	`return 'x😀y'.slice(2)`: halved, `return 'x😀y'.slice(-2)`: halved, `return 'x😀y'.substring(2)`: halved, `return 'x😀y'.substr(2)`: halved, `return 'x😀y'.substr(-2)`: halved,
	// An empty text is found between characters, and not in them.
	`return 'x😀y'.replaceAll('', '-')`: "-x-😀-y-", `return 'x😀y'.replaceAll('', 'aa')`: "aaxaa😀aayaa", `return 'x😀y'.replaceAll('', 7)`: "7x7😀7y7",
	`return 'x😀y'.replaceAll('', undefined)`: "undefinedxundefined😀undefinedyundefined",
	// JavaScript leaves the last digit of a long number in such a base to who implements it.
	`return String(parseInt('9007199254740993', 36))`: "1.989698611603181e+24", `return String(parseInt('9223372036854775808', 36))`: "9.341944695669712e+28",
	// Numbers keep their digits.
	`return JSON.parse('{"a":[1,2.50,null,true,"x"]}')`: `{"a":[1,2.50,null,true,"x"]}`, `return JSON.stringify(JSON.parse('{"a":[1,2.50,null,true,"x"]}'))`: `{"a":[1,2.50,null,true,"x"]}`,
	`return JSON.stringify(JSON.parse('1e2'))`: "1e2", `return JSON.stringify(1.0)`: "1.0",
	// The same text, spelt otherwise.
	`return JSON.stringify('a"b\\c\n\u0001\u2028')`: `"a\"b\\c\n\u0001\u2028"`,
	// Each character has one capital and one small letter, as in upper() of RQL and in RavenDB.
	`return 'ß'.toUpperCase()`: "ß", `return 'İ'.toLowerCase()`: "i", `return 'ŉ'.toUpperCase()`: "ŉ", `return 'ﬁ'.toUpperCase()`: "ﬁ",
	// Members keep their order.
	`var o = {b: 1, 2: 1, a: 1, 1: 1}; return Object.keys(o)`: "[b,2,a,1]",
	// Errors, where JavaScript makes something that JSON does not have, or ignores what is written.
	`var a = []; a.length = 2; return a`: "throws the length of an array can only be made less", `var a = []; a.x = 1; return a.x`: "throws an array has no member x",
	`var s = 'abc'; s[0] = 'x'; return s`: "throws abc has no members: 0 cannot be set", `var s = 'abc'; s.x = 1; return s.x`: "throws abc has no members: x cannot be set",
	`return (function () { return arguments.length })(1, 2)`: "throws arguments is not defined",
}

const halved = "throws a text is not valid Unicode: a script has cut it inside a character"

// returned runs a program, and returns what it returns as show says, and whether it was refused.
func returned(t *testing.T, program string) (result string, missing bool) {
	t.Helper()
	p, err := script.Parse(shown("this.r = ", program))
	if err != nil {
		return "throws", true
	}
	r, err := p.Run(t.Context(), script.Input{Document: []byte(`{}`)}, store{})
	if err != nil {
		problem, is := err.(*script.Error)
		if !is {
			t.Errorf("%s: %v", program, err)
			return "throws", false
		}
		return "throws " + problem.Message, problem.Missing
	}
	var left struct{ R string }
	if err := json.Unmarshal(r.Document, &left); err != nil {
		t.Errorf("%s leaves %s", program, r.Document)
	}
	return left.R, false
}

// Ensure that programs return what they return in Node, and that one which uses what the language does not have is
// refused.
func TestNode(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile(nodeFile)
	if err != nil {
		t.Fatal(err)
	}
	results := strings.Split(strings.TrimSuffix(string(file), "\n"), "\n")
	all := programs()
	if len(results) != len(all) {
		t.Fatalf("%s has %d results of %d programs", nodeFile, len(results), len(all))
	}
	refused := 0
	for i, program := range all {
		var want string
		if err := json.Unmarshal([]byte(results[i]), &want); err != nil {
			t.Fatalf("%s: %q: %v", nodeFile, results[i], err)
		}
		got, missing := returned(t, program)
		switch other, is := apart[program]; {
		case is:
			want = other
		case missing:
			refused++
			continue
		}
		if got != want && !(want == "throws" && strings.HasPrefix(got, "throws")) {
			t.Errorf("%s\n gives %s\n, in Node %s", program, got, want)
		}
	}
	t.Logf("%d programs, of which %d need what there is not", len(all), refused)
	if refused > len(all)/10 {
		t.Errorf("%d of %d programs are refused", refused, len(all))
	}
}

// Ensure that testdata/node.txt is what Node says, when there is one.
func TestNode_Says(t *testing.T) {
	how := os.Getenv(nodeVariable)
	if how == "" {
		t.Skip("needs Node: " + nodeVariable + "=1")
	}
	var in, out bytes.Buffer
	all := programs()
	for _, p := range all {
		quoted, err := json.Marshal(shown("return ", p))
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(quoted, '\n'))
	}
	node := exec.CommandContext(t.Context(), "node", "testdata/node.js")
	node.Stdin, node.Stdout, node.Stderr, node.Env = &in, &out, os.Stderr, append(os.Environ(), "TZ=UTC")
	if err := node.Run(); err != nil {
		t.Fatal(err)
	}
	file := out.String()
	if n := strings.Count(file, "\n"); n != len(all) {
		t.Fatalf("Node has said %d lines of %d", n, len(all))
	}
	if how == "write" {
		if err := os.WriteFile(nodeFile, []byte(file), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	was, err := os.ReadFile(nodeFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(was) != file {
		t.Errorf("%s is not what Node says: %s=write writes it", nodeFile, nodeVariable)
	}
}
