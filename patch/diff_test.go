package patch_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay/patch"
)

// Ensure that Diff returns the differences, by path, and nothing else.
func TestDiff(t *testing.T) {
	tests := []struct{ name, before, after, want string }{
		{"nothing", `{"a":1}`, `{"a":1}`, ""},
		{"order", `{"a":1,"b":{"c":2,"d":3}}`, `{"b":{"d":3,"c":2},"a":1}`, ""},
		{"numbers by value", `{"a":1,"b":100,"c":-0.0,"d":0.10}`, `{"a":1.0,"b":1e2,"c":0,"d":1E-1}`, ""},
		{"numbers beyond float64", `{"a":9007199254740993,"b":1e400}`, `{"a":9007199254740992,"b":1e401}`, "changed a 9007199254740993 9007199254740992, changed b 1e400 1e401"},
		{"signs", `{"a":1}`, `{"a":-1}`, "changed a 1 -1"},
		{"escapes", `{"\u0061":"\u0041","s":"/"}`, `{"a":"A","s":"\/"}`, ""},
		{"added and removed", `{"a":1,"b":2}`, `{"c":3,"b":2,"d":4}`, "removed a 1 , added c  3, added d  4"},
		{"deeper", `{"a":{"b":{"c":1,"x":0}}}`, `{"a":{"b":{"c":2}}}`, "changed a.b.c 1 2, removed a.b.x 0 "},
		{"elements", `{"a":[1,{"b":2},3]}`, `{"a":[1,{"b":4}]}`, "changed a[1].b 2 4, removed a[2] 3 "},
		{"longer", `{"a":[[]]}`, `{"a":[[1],2]}`, "added a[0][0]  1, added a[1]  2"},
		{"other kind", `{"a":[1],"b":"1","c":null}`, `{"a":{"0":1},"b":1,"c":false}`, `changed a [1] {"0":1}, changed b "1" 1, changed c null false`},
		{"odd names", `{"x.y":{"it's":1,"":2}}`, `{"x.y":{"it's":2,"":3}}`, `changed 'x.y'.'it\'s' 1 2, changed 'x.y'.'' 2 3`},
		{"from nothing", ``, `{"a":1}`, "added a  1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, c := range patch.Diff([]byte(test.before), []byte(test.after)) {
				got = append(got, fmt.Sprintf("%v %s %s %s", c.Kind, c.Path, c.Old, c.New))
			}
			if g := strings.Join(got, ", "); g != test.want {
				t.Errorf("got %s, want %s", g, test.want)
			}
		})
	}
}

// Ensure that a change is JSON as people read it, with the name of its kind, and comes back.
func TestChange_KindIsANumber(t *testing.T) {
	changes := patch.Diff([]byte(`{"Total":1,"Gone":true}`), []byte(`{"Total":2,"New":"x"}`))
	text, err := json.Marshal(changes)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"path":"Total","kind":"changed","old":1,"new":2},{"path":"Gone","kind":"removed","old":true},{"path":"New","kind":"added","new":"x"}]`
	if string(text) != want {
		t.Errorf("got %s, want %s", text, want)
	}
	var back []patch.Change
	if err := json.Unmarshal(text, &back); err != nil || fmt.Sprint(back) != fmt.Sprint(changes) {
		t.Errorf("came back as %v, %v", back, err)
	}
	if err := json.Unmarshal([]byte(`[{"kind":"moved"}]`), &back); err == nil {
		t.Error("an unknown kind was accepted")
	}
}
