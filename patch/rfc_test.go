package patch_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jaydb/jay/patch"
)

// Ensure that the cases of RFC 7386, appendix A, come out as they stand there,
// as far as both sides are objects; the others are put into a member.
func TestMerge_RFC7386(t *testing.T) {
	tests := []struct{ original, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	}
	for _, test := range tests {
		if test.original[0] == '{' && test.patch[0] == '{' {
			if got, err := applied(t, test.original, patch.Merge([]byte(test.patch))); got != test.want || err != nil {
				t.Errorf("%s and %s: got %s, %v; want %s", test.original, test.patch, got, err, test.want)
			}
		}
		in := func(s string) string { return `{"m":` + s + `}` }
		if got, err := applied(t, in(test.original), patch.Merge([]byte(in(test.patch)))); got != in(test.want) || err != nil {
			t.Errorf("%s and %s in a member: got %s, %v; want %s", test.original, test.patch, got, err, test.want)
		}
	}
}

// Ensure that JSON Patches do what RFC 6902 says: first what its appendix A
// shows, then what it says elsewhere.
func TestJSONPatch_RFC6902(t *testing.T) {
	tests := []struct{ name, body, ops, want string }{
		{"A.1 add a member", `{"foo":"bar"}`, `{"op":"add","path":"/baz","value":"qux"}`, `{"foo":"bar","baz":"qux"}`},
		{"A.2 add an element", `{"foo":["bar","baz"]}`, `{"op":"add","path":"/foo/1","value":"qux"}`, `{"foo":["bar","qux","baz"]}`},
		{"A.3 remove a member", `{"baz":"qux","foo":"bar"}`, `{"op":"remove","path":"/baz"}`, `{"foo":"bar"}`},
		{"A.4 remove an element", `{"foo":["bar","qux","baz"]}`, `{"op":"remove","path":"/foo/1"}`, `{"foo":["bar","baz"]}`},
		{"A.5 replace", `{"baz":"qux","foo":"bar"}`, `{"op":"replace","path":"/baz","value":"boo"}`, `{"baz":"boo","foo":"bar"}`},
		{"A.6 move a value", `{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}`, `{"op":"move","from":"/foo/waldo","path":"/qux/thud"}`, `{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}`},
		{"A.7 move an element", `{"foo":["all","grass","cows","eat"]}`, `{"op":"move","from":"/foo/1","path":"/foo/3"}`, `{"foo":["all","cows","eat","grass"]}`},
		{"A.8 test", `{"baz":"qux","foo":["a",2,"c"]}`, `{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}`, `{"baz":"qux","foo":["a",2,"c"]}`},
		{"A.10 add an object", `{"foo":"bar"}`, `{"op":"add","path":"/child","value":{"grandchild":{}}}`, `{"foo":"bar","child":{"grandchild":{}}}`},
		{"A.11 unknown members", `{"foo":"bar"}`, `{"op":"add","path":"/baz","value":"qux","xyz":123}`, `{"foo":"bar","baz":"qux"}`},
		{"A.14 escapes", `{"/":9,"~1":10}`, `{"op":"test","path":"/~01","value":10}`, `{"/":9,"~1":10}`},
		{"A.16 add an array", `{"foo":["bar"]}`, `{"op":"add","path":"/foo/-","value":["abc","def"]}`, `{"foo":["bar",["abc","def"]]}`},
		{"add replaces a member", `{"a":1,"b":2}`, `{"op":"add","path":"/a","value":null}`, `{"a":null,"b":2}`},
		{"root by an object", `{"a":1}`, `{"op":"replace","path":"","value":{"b":1.10}}`, `{"b":1.10}`},
		{"empty name", `{"":{"":1}}`, `{"op":"replace","path":"//","value":2}`, `{"":{"":2}}`},
		{"copy is a copy", `{"a":{"b":1}}`, `{"op":"copy","from":"/a","path":"/c"},{"op":"replace","path":"/c/b","value":2},{"op":"replace","path":"/a/b","value":3}`, `{"a":{"b":3},"c":{"b":2}}`},
		{"copy of what was changed", `{"a":1}`, `{"op":"replace","path":"/a","value":5},{"op":"copy","from":"","path":"/b"}`, `{"a":5,"b":{"a":5}}`},
		{"test by value", `{"a":[null,1.0,"\u0041",{"x":1,"y":2}]}`, `{"op":"test","path":"/a","value":[null,10e-1,"A",{"y":2,"x":1}]}`, `{"a":[null,1.0,"\u0041",{"x":1,"y":2}]}`},
		{"test of the root", `{"a":1}`, `{"op":"test","path":"","value":{"a":1}}`, `{"a":1}`},
		{"move to itself", `{"a":1,"b":2}`, `{"op":"move","from":"/a","path":"/a"}`, `{"a":1,"b":2}`},
		{"move over another", `{"a":1,"b":2}`, `{"op":"move","from":"/a","path":"/b"}`, `{"b":1}`},
		{"every digit", `{"a":9007199254740993,"b":[1.10,"<&>"]}`, `{"op":"add","path":"/b/0","value":12345678901234567890.10}`, `{"a":9007199254740993,"b":[12345678901234567890.10,1.10,"<&>"]}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, err := applied(t, test.body, patch.JSONPatch([]byte("["+test.ops+"]"))); got != test.want || err != nil {
				t.Errorf("got %s, %v; want %s", got, err, test.want)
			}
		})
	}
}

// Ensure that JSON Patches that RFC 6902 does not allow are refused, and that
// a failed test differs from them.
func TestJSONPatch_Refused(t *testing.T) {
	tests := []struct {
		name, body, doc, says string
		failed                bool
	}{
		{"A.9 failed test", `{"baz":"qux"}`, `[{"op":"test","path":"/baz","value":"bar"}]`, `it is "qux"`, true},
		{"A.12 no parent", `{"foo":"bar"}`, `[{"op":"add","path":"/baz/bat","value":"qux"}]`, "there is none (operation 0, add)", false},
		{"A.13 repeated members", `{}`, `[{"op":"add","path":"/baz","value":"qux","op":"remove"}]`, "twice", false},
		{"A.15 text is no number", `{"/":9,"~1":10}`, `[{"op":"test","path":"/~01","value":"10"}]`, "it is 10", true},
		{"test of nothing", `{}`, `[{"op":"test","path":"/a","value":null}]`, "no value", true},
		{"undone", `{"a":1}`, `[{"op":"remove","path":"/a"},{"op":"test","path":"/a","value":1}]`, "operation 1, test", true},
		{"no array", `{}`, `{"op":"remove","path":"/a"}`, "it is an object", false},
		{"null", `{}`, `null`, "it is null", false},
		{"no operation", `{}`, `[null]`, "unsupported operation", false},
		{"unknown", `{}`, `[{"op":"spin","path":"/a"}]`, "unsupported operation", false},
		{"no path", `{}`, `[{"op":"remove"}]`, "path", false},
		{"no value", `{}`, `[{"op":"add","path":"/a"}]`, "missing value", false},
		{"no value to test", `{}`, `[{"op":"test","path":"/a"}]`, "must have a value", false},
		{"no from", `{}`, `[{"op":"copy","path":"/a"}]`, "from", false},
		{"no slash", `{"a":1}`, `[{"op":"remove","path":"a"}]`, "slash", false},
		{"bad escape", `{"a":1}`, `[{"op":"remove","path":"/a~2"}]`, "neither ~0 nor ~1", false},
		{"bad escape at the end", `{"a":1}`, `[{"op":"remove","path":"/a~"}]`, "neither ~0 nor ~1", false},
		{"leading zero", `{"a":[1,2]}`, `[{"op":"remove","path":"/a/01"}]`, `"01"`, false},
		{"sign", `{"a":[1,2]}`, `[{"op":"add","path":"/a/+1","value":1}]`, `"+1"`, false},
		{"negative", `{"a":[1,2]}`, `[{"op":"remove","path":"/a/-1"}]`, `"-1"`, false},
		{"huge index", `{"a":[1]}`, `[{"op":"remove","path":"/a/99999999999999999999"}]`, "99999999999999999999", false},
		{"beyond the end", `{"a":[1]}`, `[{"op":"add","path":"/a/2","value":1}]`, "has 1 elements", false},
		{"replace behind the end", `{"a":[1]}`, `[{"op":"replace","path":"/a/1","value":1}]`, "has 1 elements", false},
		{"remove the end", `{"a":[1]}`, `[{"op":"remove","path":"/a/-"}]`, `"-"`, false},
		{"remove nothing", `{}`, `[{"op":"remove","path":"/a"}]`, "there is none", false},
		{"replace nothing", `{}`, `[{"op":"replace","path":"/a","value":1}]`, "there is none", false},
		{"add to a number", `{"a":1}`, `[{"op":"add","path":"/a/b","value":1}]`, "the parent is a number", false},
		{"move into itself", `{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":"/a/b/c"}]`, "into itself", false},
		{"root by an array", `{}`, `[{"op":"add","path":"","value":[]}]`, "must stay an object", false},
		{"root by null", `{}`, `[{"op":"replace","path":"","value":null}]`, "must stay an object", false},
		{"root by a copy", `{"a":1}`, `[{"op":"copy","from":"/a","path":""}]`, "must stay an object", false},
		{"no root", `{}`, `[{"op":"remove","path":""}]`, "cannot be removed", false},
		{"too many", `{}`, "[" + strings.Repeat(`{"op":"test","path":"","value":{}},`, 10_000) + `{"op":"test","path":"","value":{}}]`, "at most 10000", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := applied(t, test.body, patch.JSONPatch([]byte(test.doc)))
			if err == nil || !strings.Contains(err.Error(), test.says) || errors.Is(err, patch.ErrTestFailed) != test.failed {
				t.Errorf("got %v; want %q", err, test.says)
			}
		})
	}
}
