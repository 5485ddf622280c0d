package jsonschema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay/schema/jsonschema"
)

// Ensure that what is proposed is a schema that all documents fit, with types, required members, enums and dates, and refuses others.
func TestInference(t *testing.T) {
	t.Parallel()
	var in jsonschema.Inference
	var docs []string
	for i := range 40 {
		state := []string{"open", "paid", "sent"}[i%3]
		optional := ""
		if i%2 == 0 {
			optional = `,"note":null`
		}
		docs = append(docs, fmt.Sprintf(`{"total":%d.5,"count":%d,"state":%q,"at":"2026-01-02T03:04:%02dZ","day":"2026-01-%02d","name":"n%d","lines":[{"sku":"a","n":1},{"sku":"b"}]%s}`, i, i, state, i%60, i%28+1, i, optional))
	}
	for _, doc := range docs {
		if err := in.Add([]byte(doc)); err != nil {
			t.Fatal(err)
		}
	}
	v := compiled(t, string(in.Schema()))
	for _, doc := range docs {
		if found, n := v.Validate([]byte(doc), 10); n != 0 {
			t.Errorf("%s does not fit what was made of it: %v", doc, found)
		}
	}
	full := docs[0]
	for what, doc := range map[string]string{
		"a missing member":    strings.Replace(full, `"count":0,`, ``, 1),
		"another type":        strings.Replace(full, `"count":0`, `"count":"0"`, 1),
		"no integer":          strings.Replace(full, `"count":0`, `"count":0.5`, 1),
		"another text":        strings.Replace(full, `"open"`, `"lost"`, 1),
		"no time":             strings.Replace(full, `T03:04:00Z`, `soon`, 1),
		"no date":             strings.Replace(full, `"2026-01-01"`, `"2026-13-01"`, 1),
		"an element's type":   strings.Replace(full, `"sku":"b"`, `"sku":1`, 1),
		"an element's member": strings.Replace(full, `{"sku":"b"}`, `{}`, 1),
	} {
		if doc == full {
			t.Errorf("%s: the case changes nothing", what)
		}
		if _, n := v.Validate([]byte(doc), 10); n != 1 {
			t.Errorf("%s: %d violations by\n%s", what, n, in.Schema())
		}
	}
	if in.Documents() != 40 {
		t.Errorf("got %d documents", in.Documents())
	}
}

// Ensure that objects with too many members, and deep ones, are not described, and that the result is still a schema.
func TestInference_Bounds(t *testing.T) {
	t.Parallel()
	var in jsonschema.Inference
	for i := range 1000 {
		if err := in.Add(fmt.Appendf(nil, `{"map":{"k%d":1},"deep":%s1%s}`, i, strings.Repeat(`{"a":`, 100), strings.Repeat(`}`, 100))); err != nil {
			t.Fatal(err)
		}
	}
	text := in.Schema()
	compiled(t, string(text))
	if len(text) > 5000 || strings.Contains(string(text), `"k7"`) {
		t.Errorf("the schema has %d bytes", len(text))
	}
	var none jsonschema.Inference
	if err := none.Add([]byte(`{`)); err == nil {
		t.Error("no JSON was accepted")
	}
	compiled(t, string(none.Schema()))
}

func ExampleInference() {
	var in jsonschema.Inference
	_ = in.Add([]byte(`{"total": 12}`))
	_ = in.Add([]byte(`{"total": 3, "note": "late"}`))
	fmt.Print(string(in.Schema()))
	// Output:
	// {
	//   "$schema": "https://json-schema.org/draft/2020-12/schema",
	//   "properties": {
	//     "note": {
	//       "type": "string"
	//     },
	//     "total": {
	//       "type": "integer"
	//     }
	//   },
	//   "required": [
	//     "total"
	//   ],
	//   "type": "object"
	// }
}
