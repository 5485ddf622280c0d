package patch_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/patch"
)

// applied applies edits and ensures what holds for every Apply: the body is
// untouched, the result is a body, and changed is correct.
func applied(t testing.TB, body string, edits ...patch.Edit) (string, error) {
	t.Helper()
	given := []byte(body)
	out, changed, err := patch.Apply(given, edits, patch.Limits{})
	if string(given) != body {
		t.Fatalf("the body was changed to %s", given)
	}
	if err != nil {
		var e *patch.Error
		if !errors.As(err, &e) || !errors.Is(err, patch.ErrInvalid) || out != nil || changed {
			t.Fatalf("got %s, %v, %v; want an *Error alone", out, changed, err)
		}
		return "", err
	}
	if changed != (string(out) != body) {
		t.Errorf("%s became %s, changed is %v", body, out, changed)
	}
	scanned, err := metadata.Scan(out, metadata.Limits{MaxBytes: 32 << 20, MaxDepth: 256})
	if err != nil || string(scanned.Body) != string(out) {
		t.Errorf("%s became %s, which is no body: %v", body, out, err)
	}
	return string(out), nil
}

// longer is the condition that an element is longer than so many bytes.
type longer int

func (l longer) Err() error {
	if l < 0 {
		return errors.New("nothing is so short")
	}
	return nil
}

func (l longer) Begin(spend func(n int) error) func(element []byte) (bool, error) {
	return func(element []byte) (bool, error) { return len(element) > int(l), spend(len(element)) }
}

// Ensure that every edit does what its documentation says, alone, where it may
// be cut into the bytes, and behind another, where it goes through a tree.
func TestApply(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	tests := []struct {
		name, body string
		edit       patch.Edit
		want       string
	}{
		{"set a member", `{"a":1,"b":2}`, patch.Set("a", "x"), `{"a":"x","b":2}`},
		{"set a new member", `{"a":1}`, patch.Set("b", nil), `{"a":1,"b":null}`},
		{"set in nothing", `{}`, patch.Set("a.b.c", true), `{"a":{"b":{"c":true}}}`},
		{"set an element", `{"a":[1,2,3]}`, patch.Set("a[1]", raw(`{"x":1}`)), `{"a":[1,{"x":1},3]}`},
		{"set every element", `{"a":[1,2]}`, patch.Set("a[]", 0), `{"a":[0,0]}`},
		{"set in every element", `{"a":[{"n":1},{}]}`, patch.Set("a[].x.y", 0), `{"a":[{"n":1,"x":{"y":0}},{"x":{"y":0}}]}`},
		{"set in no element", `{"a":[]}`, patch.Set("a[].x", 0), `{"a":[]}`},
		{"set in elements of nothing", `{"b":1}`, patch.Set("a.c[].x", 0), `{"b":1}`},
		{"set what is there", `{"a":{"b":1,"c":"\u0041"}}`, patch.Set("a", raw(`{"c":"A","b":1}`)), `{"a":{"b":1,"c":"\u0041"}}`},
		{"set another text of a number", `{"a":1.1}`, patch.Set("a", raw(`1.10`)), `{"a":1.10}`},
		{"set keeps HTML", `{"x":"<&>"}`, patch.Set("a", "<b>&"), `{"x":"<&>","a":"<b>&"}`},
		{"set compacts", `{}`, patch.Set("a", raw(" [ 1 , 2 ] ")), `{"a":[1,2]}`},
		{"set an odd name", `{}`, patch.Set(`'a "b".c'`, 1), `{"a \"b\".c":1}`},
		{"set an escaped key", `{"\u0061":1}`, patch.Set("a", 2), `{"\u0061":2}`},
		{"unset a member", `{"a":1,"b":2,"c":3}`, patch.Unset("b"), `{"a":1,"c":3}`},
		{"unset the first", `{"a":1,"b":2}`, patch.Unset("a"), `{"b":2}`},
		{"unset the only", `{"a":{"b":1}}`, patch.Unset("a.b"), `{"a":{}}`},
		{"unset an element", `{"a":[1,2,3]}`, patch.Unset("a[0]"), `{"a":[2,3]}`},
		{"unset every element", `{"a":[1,2]}`, patch.Unset("a[]"), `{"a":[]}`},
		{"unset in every element", `{"a":[{"x":1},{"x":2,"y":3},4]}`, patch.Unset("a[].x"), `{"a":[{},{"y":3},4]}`},
		{"unset nothing", `{"a":1}`, patch.Unset("b.c"), `{"a":1}`},
		{"unset in a number", `{"a":1}`, patch.Unset("a.b"), `{"a":1}`},
		{"unset beyond the end", `{"a":[1]}`, patch.Unset("a[1]"), `{"a":[1]}`},
		{"increment", `{"a":1,"b":2}`, patch.Increment("a", -3), `{"a":-2,"b":2}`},
		{"increment nothing", `{}`, patch.Increment("a.b", uint8(5)), `{"a":{"b":5}}`},
		{"increment to the limit", `{"a":9223372036854775806}`, patch.Increment("a", 1), `{"a":9223372036854775807}`},
		{"increment beyond float64", `{"a":9007199254740993}`, patch.Increment("a", 2), `{"a":9007199254740995}`},
		{"increment a decimal", `{"a":1.1}`, patch.Increment("a", 0.1), `{"a":1.2}`},
		{"increment by a float32", `{"a":1.1}`, patch.Increment("a", float32(0.1)), `{"a":1.2}`},
		{"increment money", `{"a":1.50}`, patch.Increment("a", json.Number("0.5")), `{"a":2.00}`},
		{"increment below zero", `{"a":0.05}`, patch.Increment("a", json.Number("-0.10")), `{"a":-0.05}`},
		{"increment an integer by a decimal", `{"a":10}`, patch.Increment("a", json.Number("0.25")), `{"a":10.25}`},
		{"increment an exponent", `{"a":1e3}`, patch.Increment("a", 1), `{"a":1001}`},
		{"increment a small exponent", `{"a":1.5E-2}`, patch.Increment("a", json.Number("1e-3")), `{"a":0.016}`},
		{"increment by zero", `{"a":1.5e0}`, patch.Increment("a", json.Number("0.00")), `{"a":1.5e0}`},
		{"increment by a million", `{"a":1}`, patch.Increment("a", 1e6), `{"a":1000001}`},
		{"increment a huge zero", `{"a":0e999999999}`, patch.Increment("a", json.Number("0.5")), `{"a":0.5}`},
		{"increment every", `{"a":[1,2]}`, patch.Increment("a[]", 1), `{"a":[2,3]}`},
		{"increment in every", `{"a":[{"n":1},{}]}`, patch.Increment("a[].n", 1), `{"a":[{"n":2},{"n":1}]}`},
		{"append", `{"a":[1]}`, patch.Append("a", 2, "x"), `{"a":[1,2,"x"]}`},
		{"append to nothing", `{}`, patch.Append("a.b", 1), `{"a":{"b":[1]}}`},
		{"append nothing", `{}`, patch.Append("a"), `{}`},
		{"append to every", `{"a":[{"b":[]},{}]}`, patch.Append("a[].b", 1), `{"a":[{"b":[1]},{"b":[1]}]}`},
		{"remove", `{"a":[1,"x",2,1.0,10e-1,"1",true]}`, patch.Remove("a", 1, true), `{"a":["x",2,"1"]}`},
		{"remove objects", `{"a":[{"x":1,"y":[2]},{"x":1}]}`, patch.Remove("a", map[string]any{"y": []int{2}, "x": 1.0}), `{"a":[{"x":1}]}`},
		{"remove many, written otherwise", `{"a":[{"y":[2],"\u0078":1},"\u0041",10e-1,-0.0,7,{"x":1,"y":[2,2]},"B",1e400,[1,{"b":2,"a":1}]]}`,
			patch.Remove("a", raw(`{"x":1.0,"y":[2]}`), "A", 1, 0, raw(`10e399`), raw(`[1,{"a":1,"b":2}]`), 3, 4, 5, 6), `{"a":[7,{"x":1,"y":[2,2]},"B"]}`},
		{"remove from nothing", `{}`, patch.Remove("a", 1), `{}`},
		{"add to a set", `{"a":["x",1.0]}`, patch.AddToSet("a", 1, "y", "x", "y"), `{"a":["x",1.0,"y"]}`},
		{"add what is there", `{"a":[{"y":[2],"x":1},"\u0041",1.0]}`, patch.AddToSet("a", raw(`{"x":1,"y":[2.0]}`), "A", 1), `{"a":[{"y":[2],"x":1},"\u0041",1.0]}`},
		{"add to what is no set", `{"a":[1,1]}`, patch.AddToSet("a", 1, 2), `{"a":[1,1,2]}`},
		{"add many", `{"a":[3,4.0,"z"]}`, patch.AddToSet("a", 1, 2, 3, 4, 5, 6, 7, 8, 9, raw(`9.0`), "z", nil), `{"a":[3,4.0,"z",1,2,5,6,7,8,9,null]}`},
		{"add to nothing", `{}`, patch.AddToSet("a.b", 1, 2, 1), `{"a":{"b":[1,2]}}`},
		{"add to null", `{"a":null}`, patch.AddToSet("a", 1), `{"a":[1]}`},
		{"add to an empty set", `{"a":[]}`, patch.AddToSet("a", nil), `{"a":[null]}`},
		{"add nothing", `{"a":null}`, patch.AddToSet("a"), `{"a":null}`},
		{"add to every", `{"a":[{"b":[1]},{},{"b":null},{"b":[2]}]}`, patch.AddToSet("a[].b", 1), `{"a":[{"b":[1]},{"b":[1]},{"b":[1]},{"b":[2,1]}]}`},
		{"pop first", `{"a":[1,2,3]}`, patch.PopFirst("a"), `{"a":[2,3]}`},
		{"pop last", `{"a":[1,2,{"x":3}]}`, patch.PopLast("a"), `{"a":[1,2]}`},
		{"pop the only", `{"a":[1]}`, patch.PopLast("a"), `{"a":[]}`},
		{"pop of an empty array", `{"a":[]}`, patch.PopFirst("a"), `{"a":[]}`},
		{"pop of null", `{"a":null}`, patch.PopLast("a"), `{"a":null}`},
		{"pop of nothing", `{}`, patch.PopFirst("a.b"), `{}`},
		{"pop of every", `{"a":[{"b":[1,2]},{},{"b":[]},{"b":null}]}`, patch.PopLast("a[].b"), `{"a":[{"b":[1]},{},{"b":[]},{"b":null}]}`},
		{"remove where", `{"a":[1,"long",{"b":"long"},2]}`, patch.RemoveWhere("a", longer(2)), `{"a":[1,2]}`},
		{"remove where none is so", `{"a":[1,2]}`, patch.RemoveWhere("a", longer(2)), `{"a":[1,2]}`},
		{"remove where all are so", `{"a":[100,200]}`, patch.RemoveWhere("a", longer(2)), `{"a":[]}`},
		{"remove where in nothing", `{}`, patch.RemoveWhere("a.b", longer(2)), `{}`},
		{"remove where in null", `{"a":null}`, patch.RemoveWhere("a", longer(2)), `{"a":null}`},
		{"remove where in every", `{"a":[{"b":[1,100]},{"b":[200]},{}]}`, patch.RemoveWhere("a[].b", longer(2)), `{"a":[{"b":[1]},{"b":[]},{}]}`},
		{"rename", `{"a":1,"b":{"c":2},"d":3}`, patch.Rename("b", "x.y"), `{"a":1,"x.y":{"c":2},"d":3}`},
		{"rename in every", `{"a":[{"x":1},{},{"x":2}]}`, patch.Rename("a[].x", "y"), `{"a":[{"y":1},{},{"y":2}]}`},
		{"rename nothing", `{"a":1}`, patch.Rename("b", "a"), `{"a":1}`},
		{"rename to itself", `{"a":1}`, patch.Rename("a", "a"), `{"a":1}`},
		{"merge keeps what it must", `{"n":9007199254740993,"x":1.10,"s":"<\u0041>"}`, patch.Merge([]byte(`{"n2":9007199254740993,"s2":"<>"}`)), `{"n":9007199254740993,"x":1.10,"s":"<\u0041>","n2":9007199254740993,"s2":"<>"}`},
		{"merge keeps null in arrays", `{}`, patch.Merge([]byte(`{"a":[null,{"b":null}]}`)), `{"a":[null,{"b":null}]}`},
		{"merge nothing new", `{"a":{"b":[1]}}`, patch.Merge([]byte(`{"a":{"b":[ 1 ]},"c":null}`)), `{"a":{"b":[1]}}`},
		{"set below null", `{"a":null,"z":1}`, patch.Set("a.b.c", 1), `{"a":{"b":{"c":1}},"z":1}`},
		{"set below a null element", `{"a":[null,{"x":null},{}]}`, patch.Set("a[].x.y", 1), `{"a":[{"x":{"y":1}},{"x":{"y":1}},{"x":{"y":1}}]}`},
		{"set in every element of null", `{"a":null}`, patch.Set("a[].x", 1), `{"a":null}`},
		{"set in every element below null", `{"a":null}`, patch.Set("a.b[].x", 1), `{"a":null}`},
		{"increment null", `{"a":null}`, patch.Increment("a", 7), `{"a":7}`},
		{"increment null by zero", `{"a":null}`, patch.Increment("a", 0), `{"a":0}`},
		{"increment below null", `{"a":null}`, patch.Increment("a.b", 0.5), `{"a":{"b":0.5}}`},
		{"increment every null", `{"a":[null,{"n":null}]}`, patch.Increment("a[].n", 1), `{"a":[{"n":1},{"n":1}]}`},
		{"append to null", `{"a":null}`, patch.Append("a", 1, "x"), `{"a":[1,"x"]}`},
		{"append to every null", `{"a":[{"b":null},{"b":[1]}]}`, patch.Append("a[].b", 2), `{"a":[{"b":[2]},{"b":[1,2]}]}`},
		{"append below null", `{"a":null}`, patch.Append("a.b", 1), `{"a":{"b":[1]}}`},
		{"append nothing to null", `{"a":null}`, patch.Append("a"), `{"a":null}`},
		{"remove from null", `{"a":null}`, patch.Remove("a", nil), `{"a":null}`},
		{"remove from every null", `{"a":[{"b":null},{"b":[1]}]}`, patch.Remove("a[].b", 1), `{"a":[{"b":null},{"b":[]}]}`},
		{"unset below null", `{"a":null}`, patch.Unset("a.b"), `{"a":null}`},
		{"rename below null", `{"a":null}`, patch.Rename("a.b", "c"), `{"a":null}`},
		{"merge below null", `{"a":null}`, patch.Merge([]byte(`{"a":{"b":1}}`)), `{"a":{"b":1}}`},
		{"metadata deeper is data", `{}`, patch.Set("a.'@metadata'", 1), `{"a":{"@metadata":1}}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := test.edit.Err(); err != nil {
				t.Fatal(err)
			}
			got, err := applied(t, test.body, test.edit)
			if got != test.want || err != nil {
				t.Errorf("alone: got %s, %v; want %s", got, err, test.want)
			}
			got, err = applied(t, test.body, patch.Set("zz", 1), test.edit, patch.Unset("zz"))
			if got != test.want || err != nil {
				t.Errorf("with others: got %s, %v; want %s", got, err, test.want)
			}
		})
	}
}

// marshaler encodes as it likes.
type marshaler string

func (m marshaler) MarshalJSON() ([]byte, error) { return []byte(m), nil }

// Ensure that what cannot be done is an error that names the edit and the
// path, and that nothing is done.
func TestApply_Refused(t *testing.T) {
	cyclic := map[string]any{}
	cyclic["a"] = cyclic
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	tests := []struct {
		name, body string
		edit       patch.Edit
		path, says string
	}{
		{"no edit", `{}`, patch.Edit{}, "", "made by a function"},
		{"no path", `{}`, patch.Set("", 1), "", "its path must be one"},
		{"bad path", `{}`, patch.Unset("a..b"), "a..b", "member name expected at byte 2"},
		{"metadata", `{}`, patch.Set("@metadata", 1), "@metadata", "@metadata"},
		{"in metadata", `{}`, patch.Increment("'@metadata'.n", 1), "@metadata.n", "@metadata"},
		{"rename to metadata", `{"a":1}`, patch.Rename("a", "@metadata"), "a", "@metadata"},
		{"merge metadata", `{}`, patch.Merge([]byte(`{"@metadata":null}`)), "", "@metadata"},
		{"merge escaped metadata", `{}`, patch.Merge([]byte(`{"\u0040metadata":{}}`)), "", "@metadata"},
		{"patch metadata", `{}`, patch.JSONPatch([]byte(`[{"op":"add","path":"/@metadata","value":1}]`)), "/@metadata", "@metadata"},
		{"patch metadata by the root", `{}`, patch.JSONPatch([]byte(`[{"op":"add","path":"","value":{"@metadata":1}}]`)), "", "@metadata"},
		{"patch metadata by a copy", `{"a":{"@metadata":1}}`, patch.JSONPatch([]byte(`[{"op":"copy","from":"/a","path":""}]`)), "", "@metadata"},
		{"a channel", `{}`, patch.Set("a", make(chan int)), "a", "unsupported type"},
		{"NaN", `{}`, patch.Set("a", math.NaN()), "a", "NaN"},
		{"cyclic", `{}`, patch.Set("a", cyclic), "a", "cycle"},
		{"bad JSON", `{}`, patch.Set("a", raw(`{`)), "a", "unexpected end"},
		{"bad number", `{}`, patch.Set("a", json.Number("1x")), "a", "1x"},
		{"repeated keys", `{}`, patch.Append("a", raw(`[{"b":1,"\u0062":2}]`)), "a", "twice"},
		{"bad UTF-8", `{}`, patch.Set("a", marshaler("\"\xff\"")), "a", "UTF-8"},
		{"through a number", `{"a":{"b":1}}`, patch.Set("a.b.c", 1), "a.b.c", `"a.b" is a number`},
		{"through an array", `{"a":[{}]}`, patch.Increment("a.b", 1), "a.b", `"a" is an array`},
		{"element of an object", `{"a":{}}`, patch.Set("a[0]", 1), "a[0]", `"a" is an object`},
		{"elements of a string", `{"a":"x"}`, patch.Set("a[]", 1), "a[]", `"a" is a string`},
		{"beyond the end", `{"a":[1]}`, patch.Set("a[1]", 1), "a[1]", "the array has 1"},
		{"element of nothing", `{}`, patch.Set("a[0]", 1), "a[0]", `"a" is missing`},
		{"increment text", `{"a":"x"}`, patch.Increment("a", 1), "a", `it is "x"`},
		{"an element of null", `{"a":{"b":null}}`, patch.Set("a.b[0]", 1), "a.b[0]", `"a.b" is missing or null`},
		{"an element below null", `{"a":null}`, patch.Increment("a.b[0].c", 1), "a.b[0].c", `"a.b" is missing or null`},
		{"increment by text", `{"a":1}`, patch.Increment("a", "1"), "a", "type string"},
		{"increment by nothing", `{"a":1}`, patch.Increment("a", nil), "a", "type <nil>"},
		{"increment by no number", `{"a":1}`, patch.Increment("a", json.Number("1 ")), "a", `"1 "`},
		{"increment by NaN", `{"a":1}`, patch.Increment("a", math.NaN()), "a", "NaN"},
		{"increment by infinity", `{"a":1}`, patch.Increment("a", math.Inf(-1)), "a", "-Inf"},
		{"increment by too much", `{"a":1}`, patch.Increment("a", uint64(math.MaxUint64)), "a", "18446744073709551615"},
		{"overflow", `{"a":9223372036854775807}`, patch.Increment("a", 1), "a", "9223372036854775807 + 1"},
		{"underflow", `{"a":-9223372036854775808}`, patch.Increment("a", -1), "a", "-9223372036854775808 + -1"},
		{"overflown already", `{"a":9223372036854775808}`, patch.Increment("a", 1), "a", "9223372036854775808"},
		{"huge exponent", `{"a":1e999999999}`, patch.Increment("a", 1), "a", "1e999999999"},
		{"exponent beyond numbers", `{"a":1e99999999999999999999}`, patch.Increment("a", 1), "a", "1e99999999999999999999"},
		{"tiny exponent", `{"a":1}`, patch.Increment("a", json.Number("1e-999999999")), "a", "1e-999999999"},
		{"beyond float64", `{"a":1.7e308}`, patch.Increment("a", json.Number("1.7e308")), "a", "range of a float64"},
		{"append to an object", `{"a":{}}`, patch.Append("a", 1), "a", "it is an object"},
		{"remove from a string", `{"a":"x"}`, patch.Remove("a", 1), "a", "it is a string"},
		{"add to an object", `{"a":{}}`, patch.AddToSet("a", 1), "a", "it is an object"},
		{"add repeated keys", `{}`, patch.AddToSet("a", raw(`{"b":1,"b":2}`)), "a", "twice"},
		{"pop of text", `{"a":"x"}`, patch.PopFirst("a"), "a", "it is a string"},
		{"remove where from a number", `{"a":1}`, patch.RemoveWhere("a", longer(2)), "a", "it is a number"},
		{"remove where nothing is asked", `{}`, patch.RemoveWhere("a", nil), "a", "there is none"},
		{"remove where the condition is wrong", `{}`, patch.RemoveWhere("a", longer(-1)), "a", "nothing is so short"},
		{"rename to another", `{"a":1,"b":2}`, patch.Rename("a", "b"), "a", `"b" is there`},
		{"rename an element", `{"a":[1]}`, patch.Rename("a[0]", "b"), "a[0]", "ends with an element"},
		{"rename to no text", `{"a":1}`, patch.Rename("a", "\xff"), "a", "UTF-8"},
		{"merge no object", `{}`, patch.Merge([]byte(`[1]`)), "", "it is an array"},
		{"merge no JSON", `{}`, patch.Merge([]byte(`{"a":}`)), "", "invalid character"},
		{"half of a character", `{}`, patch.Set("a", raw(`"\ud800"`)), "a", "surrogates must come in pairs"},
		{"merge halves of characters as names", `{"\ud800":1}`, patch.Merge([]byte(`{"\ud801":2}`)), "", "surrogates must come in pairs"},
		{"JSON Patch with half of a character in a path", `{}`, patch.JSONPatch([]byte(`[{"op":"add","path":"/\ud800","value":1}]`)), "", "surrogates must come in pairs"},
		{"merge repeated keys", `{}`, patch.Merge([]byte(`{"a":1,"a":2}`)), "", "twice"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for index, edits := range [][]patch.Edit{{test.edit}, {patch.Set("zz", 1), test.edit}} {
				_, err := applied(t, test.body, edits...)
				var e *patch.Error
				if !errors.As(err, &e) {
					t.Fatalf("got %v, want an *Error", err)
				}
				if e.Path != test.path || e.Edit != index || !strings.Contains(err.Error(), test.says) {
					t.Errorf("got %v; want %q about edit %d, path %q", err, test.says, index, test.path)
				}
			}
		})
	}
	if _, err := applied(t, `[1]`); err == nil {
		t.Error("an array was edited")
	}
}

// Ensure that the result is held to its limits, and that only the result is.
func TestApply_Limits(t *testing.T) {
	limits := patch.Limits{MaxBytes: 20, MaxDepth: 3}
	tests := []struct {
		name, body string
		edit       patch.Edit
		says       string
	}{
		{"as large as may be", `{"a":""}`, patch.Set("a", strings.Repeat("x", 12)), ""},
		{"too large", `{"a":""}`, patch.Set("a", strings.Repeat("x", 13)), "at most 20 bytes: it has 21"},
		{"too large in a tree", `{"a":""}`, patch.Set("b", strings.Repeat("x", 20)), "at most 20 bytes"},
		{"smaller than it was", `{"a":"xxxxxxxxxxxxxxxxxxxx"}`, patch.Set("a", 1), ""},
		{"unchanged", `{"a":"xxxxxxxxxxxxxxxxxxxx"}`, patch.Unset("b"), ""},
		{"as deep as may be", `{"a":1}`, patch.Set("a", [][]int{{1}}), ""},
		{"too deep", `{"a":1}`, patch.Set("a", [][][]int{{{}}}), "at most 3 levels deep: it has 4"},
		{"too deep by the path", `{}`, patch.Set("a.b.c.d", 1), "at most 3 levels"},
		{"too deep by an append", `{}`, patch.Append("a", [][]int{{}}), "at most 3 levels"},
		{"too deep by a merge", `{}`, patch.Merge([]byte(`{"a":{"b":{"c":{}}}}`)), "at most 3 levels"},
		{"too deep by an array in a merge", `{}`, patch.Merge([]byte(`{"a":[[[]]]}`)), "at most 3 levels"},
		{"too deep by a copy", `{"a":{"b":{}}}`, patch.JSONPatch([]byte(`[{"op":"copy","from":"/a","path":"/a/c"}]`)), "at most 3 levels"},
		{"copies of copies", `{"a":[1,2]}`, patch.JSONPatch([]byte(`[{"op":"copy","from":"","path":"/b"},{"op":"copy","from":"","path":"/b"}]`)), "at most 20 bytes may be copied"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			out, _, err := patch.Apply([]byte(test.body), []patch.Edit{test.edit}, limits)
			if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("got %s, %v; want %q", out, err, test.says)
			}
		})
	}
}

// Ensure that edits see what those before them did, and that one that fails
// undoes all.
func TestApply_InOrder(t *testing.T) {
	got, err := applied(t, `{"a":{"b":1},"l":[]}`,
		patch.Increment("a.b", 1), patch.Rename("a", "c"), patch.Set("c.d", 0), patch.Append("l", 1, 2), patch.Append("l", 3),
		patch.Remove("l", 2), patch.Increment("l[1]", 10), patch.Set("a", 5), patch.Unset("c.b"), patch.Merge([]byte(`{"a":{"x":1}}`)))
	if want := `{"c":{"d":0},"l":[1,13],"a":{"x":1}}`; got != want || err != nil {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}

	got, err = applied(t, `{"a":1}`, patch.Set("a", 2), patch.Set("b", 1), patch.Unset("b"), patch.Set("a", 1))
	if got != `{"a":1}` || err != nil {
		t.Errorf("there and back: got %s, %v", got, err)
	}
}

// Ensure that an edit says what it is.
func TestEdit_String(t *testing.T) {
	for want, edit := range map[string]patch.Edit{
		"set a.'b c'[]": patch.Set("a.'b c'[]", 1), "merge": patch.Merge([]byte(`{}`)), "JSON Patch": patch.JSONPatch([]byte(`[]`)),
	} {
		if got := edit.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Ensure that an edit keeps no memory of what it was made of, and that an
// object with many members is edited as any other.
func TestApply_Memory(t *testing.T) {
	value, doc := json.RawMessage(`[1,2]`), []byte(`{"m":1}`)
	set, merge := patch.Set("a", value), patch.Merge(doc)
	value[1], doc[2] = '9', 'x'
	got, err := applied(t, `{}`, set, merge)
	if got != `{"a":[1,2],"m":1}` || err != nil {
		t.Errorf("got %s, %v", got, err)
	}

	body := []byte(`{`)
	var edits []patch.Edit
	for i := range 100 {
		name := "k" + strings.Repeat("x", i)
		body = append(append(append(body, '"'), name...), `":0,`...)
		edits = append(edits, patch.Increment(name, i), patch.Rename(name, "r"+name), patch.Unset("r"+name))
	}
	body[len(body)-1] = '}'
	got, err = applied(t, string(body), append(edits, patch.Set("new", 1), patch.Unset("new"), patch.Set("new", 2), patch.Set("k", 3))...)
	if got != `{"new":2,"k":3}` || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
}
