package loads_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/internal/loads"
	"github.com/jaydb/jay/query"
)

func specOf(t *testing.T, texts ...string) *loads.Spec {
	t.Helper()
	var paths []jsonpath.Path
	for _, text := range texts {
		f, err := query.ParseExpression(text)
		if err != nil {
			t.Fatal(err)
		}
		if f.Expression != nil { // whether there is a document, in if()
			f = f.Expression.Fields()[0]
		}
		paths = append(paths, f.Path)
	}
	return loads.NewSpec(paths)
}

func loadOf(all map[string]string) loads.Load {
	return func(folded string) ([]byte, error) {
		if body, found := all[folded]; found {
			return []byte(body), nil
		}
		return nil, nil
	}
}

// Ensure that what a body refers to stands beside the reference, and that the references are known, whether there is a document or not.
func TestExpand(t *testing.T) {
	load := loadOf(map[string]string{"a/1": `{"N":1,"Next":"a/2"}`, "a/2": `{"N":2,"Next":"a/1"}`})
	for _, test := range []struct {
		paths      []string
		body, want string
		references string
	}{
		{[]string{"load(R).N"}, `{"R":"A/1"}`, `{"R":"A/1","!R":{"N":1,"Next":"a/2"}}`, "a/1"},
		{[]string{"load(R).N"}, `{"R":"none"}`, `{"R":"none","!R":null}`, "none"},
		{[]string{"load(R).N"}, `{"R":7,"S":"a/1"}`, `{"R":7,"S":"a/1","!R":null}`, ""},
		{[]string{"load(R).N"}, `{"R":["a/1",["a/2"],null]}`, `{"R":["a/1",["a/2"],null],"!R":[{"N":1,"Next":"a/2"},[{"N":2,"Next":"a/1"}],null]}`, "a/1 a/2"},
		{[]string{"load(load(R).Next).N"}, `{"R":"a/1"}`, `{"R":"a/1","!R":{"N":1,"Next":"a/2","!Next":{"N":2,"Next":"a/1"}}}`, "a/1 a/2"},
		{[]string{"load(L.R).N", "load(R).N"}, `{"L":[{"R":"a/1"},{"x":1}]}`, `{"L":[{"R":"a/1","!R":{"N":1,"Next":"a/2"}},{"x":1}]}`, "a/1"},
		{[]string{"load(R).N"}, `{}`, `{}`, ""},
	} {
		e, err := specOf(t, test.paths...).Expand([]byte(test.body), strings.ToLower, load)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.ReplaceAll(string(e.Body), "\xff", "!")
		if got != test.want || strings.Join(e.References, " ") != test.references {
			t.Errorf("%s of %s: got %s, %q", test.paths, test.body, got, e.References)
		}
		if back := specOf(t, test.paths...).Contract(e.Body); string(back) != test.body {
			t.Errorf("%s of %s: contracted to %s", test.paths, test.body, back)
		}
	}
}

// Ensure that what one document loads is bounded.
func TestExpand_Bounds(t *testing.T) {
	spec := specOf(t, "load(R).N")
	ids := make([]string, loads.MaxDocuments+1)
	for i := range ids {
		ids[i] = fmt.Sprintf("%q", fmt.Sprint("a/", i))
	}
	big := `{"N":"` + strings.Repeat("x", 1<<20) + `"}`
	load := loadOf(map[string]string{"big": big})
	body := func(ids []string) []byte { return []byte(`{"R":[` + strings.Join(ids, ",") + `]}`) }
	for what, test := range map[string]struct {
		ids   []string
		limit int
	}{
		"as many documents as may be": {ids[1:], 0},
		"one more":                    {ids, loads.MaxDocuments},
		"as many bytes as may be":     {slices.Repeat([]string{`"big"`}, 31), 0},
		"more bytes":                  {slices.Repeat([]string{`"big"`}, 32), loads.MaxBytes},
	} {
		_, err := spec.Expand(body(test.ids), strings.ToLower, load)
		var large *query.LimitError
		if errors.As(err, &large) != (test.limit > 0) || test.limit > 0 && large.Limit != test.limit {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// Ensure that only a change of what is loaded is one.
func TestDiffers(t *testing.T) {
	spec := specOf(t, "load(R).N", "load(load(R).Next).M.x", "if(type(load(R)) = 'object', 1, 2)")
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{`{"N":1}`, `{"N":1,"Z":2}`, false},
		{`{"N":1}`, `{"N":2}`, true},
		{`{"Next":"a"}`, `{"Next":"b"}`, true},
		{`{"M":{"x":1}}`, `{"M":{"y":1}}`, true},
		{`{"M":{"x":1}}`, `{"M":{"x":1,"y":1}}`, false},
		{`{"M":[{"x":1}]}`, `{"M":[{"x":1},{"x":2}]}`, true},
		{``, `{}`, true},
		{``, ``, false},
	} {
		bytes := func(s string) []byte {
			if s == "" {
				return nil
			}
			return []byte(s)
		}
		if got := spec.Differs(bytes(test.a), bytes(test.b)); got != test.want {
			t.Errorf("%s and %s: got %v", test.a, test.b, got)
		}
	}
}
