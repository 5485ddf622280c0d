package odd_test

import (
	"fmt"
	"strings"
)

var (
	jsMembers = []string{"A", "B", "N", "M", "T", "Tags", "Lines", "O", "At", "Ref", "V", "nowhere", "Nil", "length", "0"}
	jsValues  = []string{"null", "undefined", "0", "-0", "1", "-1", "1.5", "1e400", "NaN", "Infinity", "''", "'a'", "'odd/1'", "[]", "[1, [2, [3]]]", "{}", "{ a: 1 }", "true", "9007199254740993", "1e21", "2147483648", "'2026-01-01T00:00:00Z'", "x => x", "(a, b) => b - a", "() => null", "this", "args.x", "args", "'\\u0000'", "'😀'[0]", "[,]", "-1e400", "Math", "JSON", "id(this)", "getMetadata(this)"}
	jsMethods = []string{"push", "pop", "shift", "unshift", "splice", "slice", "concat", "indexOf", "lastIndexOf", "includes", "join", "reverse", "sort", "filter", "map", "forEach", "some", "every", "find", "findIndex", "reduce", "flat", "flatMap", "at", "toUpperCase", "toLowerCase", "trim", "trimStart", "trimEnd", "padStart", "padEnd", "split", "substring", "substr", "charAt", "charCodeAt", "startsWith", "endsWith", "replace", "replaceAll", "repeat", "toFixed", "toString", "getFullYear", "toISOString", "getTime", "getDay", "toJSON", "length", "call"}
	jsCalls   = []string{"Object.keys", "Object.values", "Object.entries", "Object.assign", "Array.isArray", "JSON.stringify", "JSON.parse", "new Date", "Math.floor", "Math.ceil", "Math.round", "Math.trunc", "Math.abs", "Math.min", "Math.max", "Math.sqrt", "Math.pow", "Math.sign", "Number", "String", "Boolean", "parseInt", "parseFloat", "isNaN", "id", "getMetadata", "lastModified", "load", "typeof ", "-", "!", "output"}
	jsBinary  = []string{"+", "-", "*", "/", "%", "==", "===", "!=", "<", ">=", "&&", "||", "??", "in", "+", ","}
)

// expression makes an expression of JavaScript.
func (o *odds) expression(of string, depth int) string {
	if depth == 0 {
		if o.chance(50) {
			return of + "." + o.pick(jsMembers[:13]...)
		}
		return o.pick(jsValues...)
	}
	sub := func() string { return o.expression(of, depth-1) }
	switch o.IntN(12) {
	case 0, 1, 2:
		list := make([]string, o.IntN(3))
		for i := range list {
			list[i] = sub()
		}
		return "(" + sub() + ")" + o.pick(".", ".", "?.") + o.pick(jsMethods...) + "(" + strings.Join(list, ", ") + ")"
	case 3, 4:
		list := make([]string, o.IntN(3))
		for i := range list {
			list[i] = sub()
		}
		return o.pick(jsCalls...) + "(" + strings.Join(list, ", ") + ")"
	case 5, 6:
		return "(" + sub() + " " + o.pick(jsBinary...) + " " + sub() + ")"
	case 7:
		return "(" + sub() + ")[" + sub() + "]"
	case 8:
		return "(" + sub() + " ? " + sub() + " : " + sub() + ")"
	case 9:
		return "[" + o.pick("...", "") + "(" + sub() + "), " + sub() + "]"
	case 10:
		return "{ a: " + sub() + ", " + o.pick("...", "b: ") + "(" + sub() + ") }"
	default:
		return "(" + sub() + ")." + o.pick(jsMembers...)
	}
}

// script makes a script that changes a document.
func (o *odds) script() string {
	if o.chance(40) {
		return o.pick(scripts...)
	}
	list := make([]string, 1+o.IntN(3))
	for i := range list {
		e := o.expression("this", 1+o.IntN(3))
		switch o.IntN(9) {
		case 0:
			list[i] = "this[" + e + "] = " + o.expression("this", 1)
		case 1:
			list[i] = "for (const k " + o.pick("of", "in") + " " + e + ") { this.X = k }"
		case 2:
			list[i] = "delete (" + e + ")." + o.pick(jsMembers...)
		case 3:
			list[i] = o.pick("put", "put", "del", "load", "output", "id") + "(" + o.pick("'odd/', ", "'odd/7', ", "'odd/8', ", "null, ", "1, ", "'', ") + e + ")"
		case 4:
			list[i] = "getMetadata(this)[" + o.pick("'@collection'", "'x'", "'@id'", "'@expires'", "'@change-vector'") + "] = " + e
		case 5:
			list[i] = "this.Tags." + o.pick(jsMethods[:12]...) + "(" + e + ")"
		default:
			list[i] = "this." + o.pick("A", "B", "N", "X", "Tags") + " " + o.pick("=", "+=", "-=", "*=", "/=", "%=", "??=", "||=", "&&=") + " " + e
		}
	}
	return strings.Join(list, "; ")
}

// row makes the row of a projection.
func (o *odds) row() string {
	return fmt.Sprintf("{ X: %s, Y: %s }", o.expression("o", 1+o.IntN(2)), o.expression("o", 1))
}
