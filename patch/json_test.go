package patch_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/jaydb/jay/patch"
)

// Ensure that an edit does the same after a way through JSON, that its arguments are the same bytes, and that edits which cannot go there are refused.
func TestEdit_JSON(t *testing.T) {
	const body = `{"a":{"b.c":[1,2.50,"<x>",{"k":1}],"n":1.10},"t":["p","q"],"s":"x"}`
	for _, e := range []patch.Edit{
		patch.Set("a.n", json.RawMessage(`{"x":"<&>\u2028","y":1.50}`)),
		patch.Set("a.'b.c'[3].k", "it's"),
		patch.Set("t[]", nil),
		patch.Unset("a.'b.c'[0]"),
		patch.Increment("a.n", json.Number("0.25")),
		patch.Increment("new.n", -3),
		patch.Append("t", "<r>", 1.5, json.RawMessage(`[1.0]`)),
		patch.Append("t"),
		patch.AddToSet("t", "p", "z"),
		patch.Remove("a.'b.c'", 2.5),
		patch.PopFirst("t"),
		patch.PopLast("t"),
		patch.Rename("s", "new <name>"),
		patch.Merge([]byte(`{"a":{"n":null},"z":{"<":[1.0]}}`)),
		patch.JSONPatch([]byte(`[{"op":"test","path":"/a/n","value":1.10},{"op":"copy","from":"/a/b.c/3","path":"/t/-"},{"op":"move","from":"/s","path":"/m~1n"},{"op":"replace","path":"/a/n","value":"<"},{"op":"remove","path":"/t/0"},{"op":"add","path":"/nil","value":null}]`)),
		patch.JSONPatch([]byte(`[{"op":"test","path":"/a/n","value":2}]`)),
		patch.Strict(patch.Set("no.where", 1)),
		patch.Strict(patch.Increment("a.n", 1)),
		patch.Strict(patch.Append("no", 1)),
	} {
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatalf("%s: %v", e, err)
		}
		var back patch.Edit
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatalf("%s: %s: %v", e, text, err)
		}
		want, wantErr := applied(t, body, e)
		got, gotErr := applied(t, body, back)
		if got != want || (gotErr == nil) != (wantErr == nil) || gotErr != nil && gotErr.Error() != wantErr.Error() {
			t.Errorf("%s: got %s, %v, want %s, %v", text, got, gotErr, want, wantErr)
		}
		if got, want := back.AppendArguments(nil), e.AppendArguments(nil); string(got) != string(want) {
			t.Errorf("%s: the arguments are %q, want %q", text, got, want)
		}
	}
	for name, e := range map[string]patch.Edit{"no path": patch.Set("a[", 1), "a condition": patch.RemoveWhere("t", longer(1)), "none": {}} {
		if _, err := e.MarshalJSON(); !errors.Is(err, patch.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	kept := patch.Set("a", 1)
	for _, text := range []string{
		`{"verb":"explode","path":"a"}`, `{"verb":"set","path":"a"}`, `{"verb":"merge","values":["[]"]}`, `{"verb":"increment","path":"a","amount":"x"}`,
		`{"verb":"set","path":"@metadata.x","values":["1"]}`, `{"verb":"append","path":"a","values":["{"]}`, `[]`, `{"verb":"JSON Patch","operations":"{}"}`,
	} {
		if err := json.Unmarshal([]byte(text), &kept); !errors.Is(err, patch.ErrInvalid) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if kept.String() != "set a" || strings.Contains(string(kept.AppendArguments(nil)), "explode") {
		t.Errorf("an edit that JSON was refused for: %s", kept)
	}
}
