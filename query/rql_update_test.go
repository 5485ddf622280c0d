package query_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/query"
)

// printed returns the statements of an update, one a line.
func printed(u *query.Update) string {
	lines := make([]string, len(u.Assignments))
	for i, a := range u.Assignments {
		op := [...]string{"set", "copy", "add", "push", "pop", "shift", "delete"}[a.Op]
		lines[i] = strings.TrimSpace(fmt.Sprintf("%s %s %s%s", op, a.Path, a.Value, a.From))
	}
	return strings.Join(lines, "; ")
}

var updateParams = map[string]any{"n": 5, "neg": json.Number("-1.50"), "s": "it's", "list": []any{1, "b"}, "o": map[string]any{"a": nil},
	"t": time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "bad": math.NaN(), "latin": "\xff"}

// paramsOf returns those of updateParams that a text has.
func paramsOf(text string) map[string]any {
	params := make(map[string]any)
	for name, value := range updateParams {
		if at := strings.Index(text, "$"+name); at >= 0 && (at+1+len(name) == len(text) || !strings.ContainsAny(text[at+1+len(name):at+2+len(name)], "abcdefghijklmnopqrstuvwxyz")) {
			params[name] = value
		}
	}
	return params
}

// Ensure that statements mean what they do in JavaScript.
func TestParseUpdate(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"this.Small = true", "set Small true"},
		{"this.Small = true;", "set Small true"},
		{";;this.Small = true;;", "set Small true"},
		{"this.A = 1; o.B = 'x'", `set A 1; set B "x"`},
		{"this.A = 1\nthis.B = null // a comment\n/* another\n */ this.C = -1.50", "set A 1; set B null; set C -1.50"},
		{"this.A = 1 /*\n*/ this.B = 2", "set A 1; set B 2"},
		{"this.A = [1, 'b', [], {}, {x: 1, 'y z': [null,],},]", `set A [1,"b",[],{},{"x":1,"y z":[null]}]`},
		{"this.A = []; this.B = {}", "set A []; set B {}"},
		{"this.A={delete:1,if:2}", `set A {"delete":1,"if":2}`},
		{`this.A = "q\"\u0041\n'"`, `set A "q\"A\n'"`},
		{`this['a b']["c"].d[0].e = 1`, `set 'a b'.c.d[0].e 1`},
		{"this.where.from.update = 1", "set where.from.update 1"},
		{"this.N += 1; this.N -= 1; this.N += -1; this.N -= -1", "add N 1; add N -1; add N -1; add N 1"},
		{"this.N++; this.N--; ++this.N; --this.N", "add N 1; add N -1; add N 1; add N -1"},
		{"this.N+=1_000.50", "add N 1000.50"},
		{"this.N += $n; this.N -= $neg; this.N -= $n", "add N 5; add N 1.50; add N -5"},
		{"this.A\n=\n1", "set A 1"},
		{"this\n.A\n.B = 1", "set A.B 1"},
		{"this.A\n++\nthis.B", "refused"},
		{"this.Tags.push('x')", `push Tags ["x"]`},
		{"this.Tags.push()", `push Tags []`},
		{"this.Tags.push('x', $n, {a: $s}, [])", `push Tags ["x",5,{"a":"it's"},[]]`},
		{"this.A.B.pop(); this.C.shift()", "pop A.B; shift C"},
		{"this.push = 1; this.push.push(1)", "set push 1; push push [1]"},
		{"delete this.Old; delete this.A['b']", "delete Old; delete A.b"},
		{"this.A = this.B; this.C.D = o.E[0].F", "copy A B; copy C.D E[0].F"},
		{"this.A = this.B; this.B = 1; delete this.C", "copy A B; set B 1; delete C"},
		{"this.A = this.B; delete this.B", "copy A B; delete B"},
		{"this.B = this.B.C", "copy B B.C"},
		{"this.A = $list; this.B = $o; this.C = $t; this.D = $n", `set A [1,"b"]; set B {"a":null}; set C "2026-01-02T03:04:05.0000000Z"; set D 5`},
		{"this.A = [$list, $list]", `set A [[1,"b"],[1,"b"]]`},
		{"this.T.push($o); this.T.push($o)", `push T [{"a":null}]; push T [{"a":null}]`},
		{"this.T.push($o); this.T.push($o, $o); this.T.push(1)", `push T [{"a":null}]; push T [{"a":null},{"a":null}]; push T [1]`},
		{"this.T = [$o]; this.T.push($o)", `set T [{"a":null}]; push T [{"a":null}]`},
		{"this.A = 9007199254740993", "set A 9007199254740993"},
	} {
		u, err := query.ParseUpdate("from Orders as o where a = 1 order by b desc limit 5 update {"+test.text+"}", paramsOf(test.text))
		switch {
		case err != nil && test.want != "refused":
			t.Errorf("%s: %v", test.text, err)
		case err == nil && (printed(u) != test.want || u.Query.String() != "from Orders where a = 1 order by b desc limit 5"):
			t.Errorf("%s: got %s, %s, want %s", test.text, printed(u), u.Query, test.want)
		}
	}
}

// Ensure that all other JavaScript is refused, with the place and what to write instead.
func TestParseUpdate_Refused(t *testing.T) {
	deep := strings.Repeat("[", 251) + strings.Repeat("]", 251)
	for _, test := range []struct{ text, want string }{
		{"", "changes nothing"}, {";", "changes nothing"},
		{"this = 1", "as a whole"}, {"this.A", `expected "=", "+="`}, {"A = 1", "the document is this: this.A"},
		{"this.A = 1 this.B = 2", `expected ";", a new line or "}"`},
		{"this.A = this.B + 1", "do not calculate"}, {"this.A = 1 + 1", "do not calculate"}, {"this.A = this.B\n+ 1", "do not calculate|unexpected"},
		{"this.A = -this.B", "do not calculate"}, {"this.A = !this.B", "do not calculate"}, {"this.A = (1)", "do not calculate"},
		{"this.A *= 2", "do not calculate"}, {"this.A == 1", "a condition stands in where"}, {"this.A = B", "this.B"},
		{"this.A = undefined", "delete removes"}, {"this.A = NaN", "no such number"}, {"this.A = True", "lower case"}, {"this.A = NULL", "lower case"},
		{"this.A = new Date()", "as a parameter"}, {"this.A = this", "as a whole"}, {"this.A = [this.B]", "as a parameter"},
		{"this.A = this.B = 1", `expected ";"`}, {"this.A = this.B.push(1)", "there is no function push()"},
		{"this.N += this.M", "text is not joined"}, {"this.N += 'x'", "text is not joined"}, {"this.N += true", "only a number"}, {"this.N += $s", "only a number"},
		{"this.N + = 1", "unexpected"}, {"this.N + + ", "unexpected"},
		{"this.A.push(this.B)", "as a parameter"}, {"this.A.splice(0, 1)", "there is no function splice()"}, {"this.push(1)", "there is no function push()"},
		{"this.A.push(1", `")"`}, {"this.A.pop(1)", `")"`}, {"this.A.push(1).x = 1", `expected ";"`},
		{"delete this.A[0]", "leaves a hole"}, {"delete this", "as a whole"}, {"delete A", "this"},
		{"if (this.A) this.B = 1", "a condition stands in where"}, {"for (;;) {}", "no loops"}, {"var x = 1", "no variables"}, {"let x = 1", "no variables"},
		{"put('a', {})", "put() is not there"}, {"this.A = load('x')", "text stands in quotes"}, {"args.x", "$name"},
		{"this.A[] = 1", "no loops"}, {"this.A[this.B] = 1", "expected the number"}, {"this.A[-1] = 1", "element's number"}, {"this.A[1.5] = 1", "element's number"},
		{"this[0] = 1", "no elements"}, {"this?.A = 1", "as a whole|unexpected"}, {"this.'a' = 1", "in brackets"}, {"this.@id = 1", "in brackets"},
		{"this['@metadata'].x = 1", "@metadata is not a part"}, {"this['@metadata']['@collection'] = 'B'", "RenameCollection"},
		{"this.A = this['@metadata'].x", "@metadata is not a part"}, {"this.__proto__ = 1", "__proto__"}, {"this.A = {'__proto__': 1}", "__proto__"},
		{"this.A = {a: 1, a: 2}", "not twice"}, {"this.A = {a}", `":"`}, {"this.A = {1: 2}", "the name of a member"}, {"this.A = [,1]", "expected a text"},
		{"this.A = 'it''s'", `not doubled`}, {"this.A = 'a\nb'", "one line"}, {"this['a''b'] = 1", "not doubled"}, {`this.A = '\q'`, `unknown escape`},
		{"this.A = `x`", "unexpected character"}, {"this.A = 01", "cannot begin with 0"}, {"this.A = 0x10", "in a number"}, {"this.A = .5", "unexpected"},
		{"this.A = 1e99999999999999999999", "beyond"}, {"this.A = " + deep, "too deep"},
		{"this.A = $nope", "has no value"}, {"this.A = $bad", "is not JSON"}, {"this.A = $latin", "is not JSON"},
		{"this.A[0] = this.B", "element cannot be a copy"}, {"this.A['0'] = this.B", "element cannot be a copy"}, {"this.A['-'] = this.B", "element cannot be a copy"},
		{"this.A.B = this.A", "a part of itself"}, {"this.A = this.A", "a part of itself"},
		{"this.A = this.B; this.A.C = 1", "would also change"}, {"this.A = this.B; this.B.C.D = 1", "would also change"}, {"this.A = this.B; this.B.push(1)", "would also change"},
		{"this.A = this.L[0]; this.L['0'].x = 1", "would also change"}, {"this.A = this.B; delete this.A.C", "would also change"},
		{"this.A = $o; this.B = $o; this.B.a = 1", "would also change"}, {"this.A = $o; this.A.b = 1; this.B = $o", "would also change"},
		{"this.A = $list; this.A.push($list)", "would also change"}, {"this.A = $o; this.A.b = $o", "would also change"}, {"this.T.push($list); this.T[0].push($list)", "would also change"},
		{"this.A = [$o, $o]; this.A[0].b = 1", "would also change"},
		{"this.A = 1", "the query has no parameter $unused"},
	} {
		text := "from Orders as o update {" + test.text + "}"
		params := paramsOf(test.text)
		if strings.Contains(test.want, "$unused") {
			params["unused"] = 1
		}
		u, err := query.ParseUpdate(text, params)
		if err == nil {
			t.Errorf("%s: got %s, want an error", test.text, printed(u))
			continue
		}
		checkError(t, text, err)
		found := false
		for want := range strings.SplitSeq(test.want, "|") {
			found = found || strings.Contains(err.Error(), want)
		}
		if !found {
			t.Errorf("%s: got %v, want %s", test.text, err, test.want)
		}
	}
}

// Ensure that the query of an update is one whose documents can be changed, that Parse
// refuses updates as such, and that the braces are the end.
func TestParseUpdate_Clauses(t *testing.T) {
	for text, want := range map[string]string{
		"from Orders": "changes nothing", "from Orders select a update { this.A = 1 }": "select does not go with update",
		"from Orders group by a update { this.A = 1 }": "group by does not go", "from Orders include a update { this.A = 1 }": "include does not go",
		"from Orders update": `"{" behind update`, "from Orders update { this.A = 1": `unexpected|ends here`, "from Orders update { this.A = 1 } limit 5": "the end behind",
		"from Orders update { this.A = 1 };": "the end behind", "update { this.A = 1 }": "a query begins with from", "": "empty",
		"from Orders as o update { p.A = 1 }": "the document is this", "from Orders where x update { this.A = 1 }": "",
	} {
		_, err := query.ParseUpdate(text, nil)
		if err == nil {
			t.Errorf("%s: want an error", text)
			continue
		}
		checkError(t, text, err)
		found := false
		for want := range strings.SplitSeq(want, "|") {
			found = found || strings.Contains(err.Error(), want)
		}
		if !found || errors.Is(err, query.ErrUpdate) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"from Orders update { this.A = 1 }", "from Orders where a = 1 UPDATE {"} {
		if _, err := query.Parse(text, nil); !errors.Is(err, query.ErrUpdate) || !errors.Is(err, query.ErrSyntax) {
			t.Errorf("Parse of %s: got %v, want ErrUpdate", text, err)
		}
	}
	for _, text := range []string{"from Orders where a = 1", "update x", "from Orders filter a = 1"} {
		if _, err := query.Parse(text, nil); errors.Is(err, query.ErrUpdate) {
			t.Errorf("Parse of %s: got %v", text, err)
		}
	}
}

// Ensure that the number of statements and of values is bounded.
func TestParseUpdate_Bounds(t *testing.T) {
	for _, test := range []struct {
		text string
		ok   bool
	}{
		{strings.Repeat("this.A = 1;", query.MaxAssignments), true},
		{strings.Repeat("this.A = 1;", query.MaxAssignments+1), false},
		{"this.A = [" + strings.Repeat("1,", query.MaxUpdateValues-1) + "]", true},
		{"this.A = [" + strings.Repeat("1,", query.MaxUpdateValues) + "]", false},
		{"this.A = [" + strings.Repeat("$o,", query.MaxUpdateValues-1) + "]", true},
		{strings.Repeat("this.A = $o;", 45), true}, // 990 pairs of places that are one
		{strings.Repeat("this.A = $o;", 46), false},
	} {
		_, err := query.ParseUpdate("from A update {"+test.text+"}", paramsOf(test.text))
		if (err == nil) != test.ok {
			t.Errorf("%.40s, %d bytes: got %v", test.text, len(test.text), err)
		}
	}
}

// Ensure that a parameter that stands in many places is not multiplied without end.
func TestParseUpdate_ParameterBytes(t *testing.T) {
	large := map[string]any{"large": strings.Repeat("x", query.MaxUpdateBytes/64-2)} // and two quotes
	for n, ok := range map[int]bool{64: true, 65: false} {
		_, err := query.ParseUpdate("from A update { this.A = ["+strings.Repeat("[$large],", n)+"] }", large)
		if (err == nil) != ok || !ok && !errors.Is(err, query.ErrSyntax) {
			t.Errorf("%d times: got %v", n, err)
		}
	}
}

// FuzzParseUpdate gives any text to ParseUpdate. It must not panic, its errors must have
// their place in the text, and its statements must be whole.
func FuzzParseUpdate(f *testing.F) {
	for _, text := range []string{"this.Small = true", "this.A += 1; o.B.push('x', [$n, {a: null}]); delete this['a b'].c\nthis.D = this.E[0]", "++this.A; this.B--; this.C -= $n; this.D = $list", "if (1) {}"} {
		f.Add("from Orders as o where a = 1 update { " + text + " }")
	}
	f.Fuzz(func(t *testing.T, text string) {
		params := map[string]any{"n": 5, "list": []any{1, "b"}}
		for range 3 { // parameters that are not met are refused
			u, err := query.ParseUpdate(text, params)
			if err != nil {
				e := checkError(t, text, err)
				if name, found := strings.CutPrefix(e.Message, "the query has no parameter $"); found {
					name, _, _ = strings.Cut(name, ",")
					delete(params, name)
					continue
				}
				return
			}
			if len(u.Assignments) == 0 || len(u.Assignments) > query.MaxAssignments {
				t.Fatalf("%q has %d statements", text, len(u.Assignments))
			}
			for _, a := range u.Assignments {
				needsValue := a.Op == query.AssignValue || a.Op == query.AssignAdd || a.Op == query.AssignPush
				if a.Path.IsZero() || a.Path.FansOut() || json.Valid(a.Value) != needsValue || a.From.IsZero() == (a.Op == query.AssignPath) {
					t.Fatalf("%q has the statement %+v", text, a)
				}
			}
			return
		}
	})
}
