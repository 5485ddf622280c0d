package patch_test

import (
	"errors"
	"testing"

	"github.com/jaydb/jay/patch"
)

// Ensure that a strict edit makes nothing that is missing, and is the edit itself where
// everything is there.
func TestStrict(t *testing.T) {
	for _, test := range []struct {
		body string
		edit patch.Edit
		want string // "" for an error
	}{
		{`{}`, patch.Set("a", 1), `{"a":1}`},
		{`{}`, patch.Set("a.b", 1), ""},
		{`{"a":null}`, patch.Set("a.b", 1), ""},
		{`{"a":{}}`, patch.Set("a.b", 1), `{"a":{"b":1}}`},
		{`{"a":[]}`, patch.Set("a.b", 1), ""},
		{`{"a":[1]}`, patch.Set("a[0]", 2), `{"a":[2]}`},
		{`{"a":[{},{"b":1}]}`, patch.Set("a[].b", 2), `{"a":[{"b":2},{"b":2}]}`},
		{`{"a":[{},1]}`, patch.Set("a[].b", 2), ""},
		{`{"a":[]}`, patch.Set("a[].b", 2), `{"a":[]}`},
		{`{}`, patch.Increment("a", 1), ""},
		{`{"a":null}`, patch.Increment("a", 1), `{"a":1}`},
		{`{"a":1}`, patch.Increment("a", 1), `{"a":2}`},
		{`{"a":[1,2]}`, patch.Increment("a[]", 1), `{"a":[2,3]}`},
		{`{}`, patch.Append("a", 1), ""},
		{`{"a":null}`, patch.AddToSet("a", 1), ""},
		{`{"a":[1]}`, patch.AddToSet("a", 1, 2), `{"a":[1,2]}`},
		{`{}`, patch.Remove("a", 1), ""},
		{`{"a":null}`, patch.PopLast("a"), ""},
		{`{"a":[1]}`, patch.PopFirst("a"), `{"a":[]}`},
		{`{"b":1}`, patch.Unset("a"), `{"b":1}`},
		{`{}`, patch.Unset("a.b"), ""},
		{`{"a":[1]}`, patch.Unset("a[0]"), `{"a":[]}`},
		{`{"a":{}}`, patch.Rename("a.b", "c"), `{"a":{}}`},
		{`{}`, patch.Rename("a.b", "c"), ""},
		{`{}`, patch.Merge([]byte(`{"a":{"b":1}}`)), `{"a":{"b":1}}`},
		{`{}`, patch.Set("@metadata", 1), ""},
		{`{}`, patch.Edit{}, ""},
	} {
		for _, edits := range [][]patch.Edit{{patch.Strict(test.edit)}, {patch.Set("z", 1), patch.Unset("z"), patch.Strict(test.edit)}} {
			out, _, err := patch.Apply([]byte(test.body), edits, patch.Limits{})
			if test.want == "" && !errors.Is(err, patch.ErrInvalid) || test.want != "" && (err != nil || string(out) != test.want) {
				t.Errorf("%s of %s: got %s, %v, want %q", test.edit, test.body, out, err, test.want)
			}
		}
	}
}
