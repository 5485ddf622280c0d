package patch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/patch"
)

// FuzzApply ensures that no edit makes Apply panic or return what is no body.
func FuzzApply(f *testing.F) {
	for verb := range byte(11) {
		f.Add(verb, []byte(`{"a":{"b":[1,{"c":2}]},"n":1.5}`), "a.b[].c", []byte(`{"x":null}`))
		f.Add(verb, []byte(`{"a":{"b":[1,{"c":2}]},"n":1.5}`), "n", []byte(`1e5`))
		f.Add(verb, []byte(`{"a":[1]}`), "a", []byte(`[{"op":"move","from":"/a/0","path":"/b"},{"op":"copy","from":"","path":"/a/-"}]`))
	}
	limits := metadata.Limits{MaxBytes: 1 << 16, MaxDepth: 100}
	f.Fuzz(func(t *testing.T, verb byte, body []byte, path string, value []byte) {
		scanned, err := metadata.Scan(body, limits)
		if err != nil {
			return
		}
		raw := json.RawMessage(value)
		edit := []func() patch.Edit{
			func() patch.Edit { return patch.Set(path, raw) },
			func() patch.Edit { return patch.Unset(path) },
			func() patch.Edit { return patch.Increment(path, json.Number(value)) },
			func() patch.Edit { return patch.Append(path, raw, raw) },
			func() patch.Edit { return patch.Remove(path, raw) },
			func() patch.Edit { return patch.Rename(path, string(value)) },
			func() patch.Edit { return patch.Merge(value) },
			func() patch.Edit { return patch.JSONPatch(value) },
			func() patch.Edit { return patch.AddToSet(path, raw, raw) },
			func() patch.Edit { return patch.PopLast(path) },
			func() patch.Edit { return patch.RemoveWhere(path, longer(len(value))) },
		}[verb%11]()
		for _, edits := range [][]patch.Edit{{edit}, {edit, patch.Set("zz.z", 1), edit}} {
			before := string(scanned.Body)
			out, changed, err := patch.Apply(scanned.Body, edits, patch.Limits{MaxBytes: limits.MaxBytes, MaxDepth: limits.MaxDepth})
			if before != string(scanned.Body) {
				t.Fatalf("%v changed its input %s", edits, before)
			}
			if err != nil {
				if !errors.Is(err, patch.ErrInvalid) {
					t.Fatal(err)
				}
				continue
			}
			again, err := metadata.Scan(out, limits)
			if err != nil || !bytes.Equal(again.Body, out) || again.Metadata != nil || changed == (string(out) == before) {
				t.Fatalf("%s %v: got %s, %v: %v", before, edits, out, changed, err)
			}
			patch.Diff(scanned.Body, out)
		}
	})
}
