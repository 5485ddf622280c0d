package query_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/loads"
	"github.com/jaydb/jay/query"
)

// Ensure that an element which is an ID is followed: to the document at its own place, through objects and arrays, and of what is loaded again.
func TestEach_LoadedElements(t *testing.T) {
	all := map[string]string{"p/1": `{"N":"one","Next":"p/2"}`, "p/2": `{"N":"two"}`}
	load := func(folded string) ([]byte, error) {
		if body, found := all[folded]; found {
			return []byte(body), nil
		}
		return nil, nil
	}
	for _, test := range []struct{ each, field, body, want string }{
		{"Ps as p", "load(p).N", `{"Ps":["p/1","P/2","p/9",7,null,"p/1"]}`, `"one" "two" - - - "one"`},
		{"Ps as p", "load(load(p).Next).N", `{"Ps":["p/2","p/1"]}`, `- "two"`},
		{"Ps as p", "load(p).N", `{"Ps":"p/1"}`, `"one"`},
		{"Ps as p", "load(Of).N", `{"Ps":[7],"Of":["p/1"]}`, `"one"`},
		{"Ps as p", "load(p).N", `{"Ps":null}`, ``},
		{"Ps as p", "load(p).N", `{}`, ``},
		{"A.Ps as p", "load(p).N", `{"A":{"Ps":["p/2"]}}`, `"two"`},
		{"Ls.Ps as p", "load(p).N", `{"Ls":[{"Ps":["p/2","p/1"]},{"x":1},{"Ps":null},{"Ps":"p/1"},7,{"Ps":[]},{"Ps":["p/2"]}]}`, `"two" "one" "one" "two"`},
		{"Ps[] as p", "load(p).N", `{"Ps":["p/2",["p/1","p/2"],"p/1"]}`, `"two" "one" "two" "one"`},
		{"Ps[1] as p", "load(p).N", `{"Ps":["p/2","p/1"]}`, `"one"`},
		{"Ps as p", "p", `{"Ps":["p/1","p/2"]}`, `"p/1" "p/2"`},
		{"Ps as p", "concat(p, ':', load(p).N)", `{"Ps":["p/1","p/9"]}`, `"p/1:one" "p/9:"`},
		{"Ps as p", "load(Of).N", `{"Ps":["p/1","p/2"],"Of":"p/2"}`, `"two" "two"`},
	} {
		name := fmt.Sprintf("%s of each %s of %s", test.field, test.each, test.body)
		each, err := query.ParseEach(test.each)
		if err != nil {
			t.Fatal(err)
		}
		f, err := query.ParseExpression(test.field)
		if err == nil {
			f, err = each.Field(f)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		// The other fields are loaded with it, so that elements stand beside other references.
		other, err := query.ParseExpression("load(Of).N")
		if err != nil {
			t.Fatal(err)
		}
		paths, err := query.LoadedPaths(each, []query.Field{f, other})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		expanded, err := loads.NewSpec(paths).Expand([]byte(test.body), strings.ToLower, load)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		r := query.NewReader([]query.Field{f})
		err = query.NewElements(each).Each(query.Doc{Body: expanded.Body}, func(doc query.Doc) error {
			r.Reset(doc)
			text := "-"
			for _, v := range r.Values(0) {
				text = v.String()
			}
			got = append(got, text)
			return nil
		})
		if err != nil || strings.Join(got, " ") != test.want {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, test.want)
		}
	}
}
