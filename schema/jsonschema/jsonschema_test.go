package jsonschema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay/schema"
	"github.com/jaydb/jay/schema/jsonschema"
)

func compiled(t *testing.T, text string) schema.Validator {
	t.Helper()
	v, err := jsonschema.New().Compile([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// Ensure that each keyword of JSON Schema is applied, and that a violation has the path, the keyword and a message.
func TestValidate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		schema, fits, not string
		want              []string // path and keyword of each violation
	}{
		{`{"required":["a","b"]}`, `{"a":1,"b":null}`, `{}`, []string{" required", " required"}},
		{`{"properties":{"a":{"type":"integer"}}}`, `{"a":1.0}`, `{"a":1.5}`, []string{"/a type"}},
		{`{"properties":{"a":{"type":["string","null"]}}}`, `{"a":null}`, `{"a":[]}`, []string{"/a type"}},
		{`{"properties":{"a/b~c":{"const":7}}}`, `{"a/b~c":7.0}`, `{"a/b~c":8}`, []string{"/a~1b~0c const"}},
		{`{"properties":{"a":{"enum":["x",1]}}}`, `{"a":1}`, `{"a":"y"}`, []string{"/a enum"}},
		{`{"properties":{"a":true},"additionalProperties":false}`, `{"a":1}`, `{"b":1,"c":1}`, []string{"/b additionalProperties", "/c additionalProperties"}},
		{`{"properties":{"a":false}}`, `{"b":1}`, `{"a":1}`, []string{"/a false"}},
		{`{"patternProperties":{"^x":{"type":"string"}}}`, `{"x1":""}`, `{"x1":1}`, []string{"/x1 type"}},
		{`{"propertyNames":{"maxLength":2}}`, `{"ab":1}`, `{"abc":1}`, []string{"/abc propertyNames"}},
		{`{"minProperties":1}`, `{"a":1}`, `{}`, []string{" minProperties"}},
		{`{"maxProperties":1}`, `{"a":1}`, `{"a":1,"b":1}`, []string{" maxProperties"}},
		{`{"dependentRequired":{"a":["b"]}}`, `{"b":1}`, `{"a":1}`, []string{" dependentRequired"}},
		{`{"dependentSchemas":{"a":{"required":["b"]}}}`, `{"a":1,"b":1}`, `{"a":1}`, []string{" required"}},
		{`{"properties":{"a":{"minimum":1,"exclusiveMaximum":2}}}`, `{"a":1}`, `{"a":2}`, []string{"/a exclusiveMaximum"}},
		{`{"properties":{"a":{"multipleOf":0.01}}}`, `{"a":19.99}`, `{"a":19.999}`, []string{"/a multipleOf"}},
		{`{"properties":{"a":{"minLength":2,"maxLength":3}}}`, `{"a":"äö"}`, `{"a":"ä"}`, []string{"/a minLength"}},
		{`{"properties":{"a":{"pattern":"^[a-z]+$"}}}`, `{"a":"abc"}`, `{"a":"aBc"}`, []string{"/a pattern"}},
		{`{"properties":{"a":{"format":"date-time"}}}`, `{"a":"2026-01-02T03:04:05Z"}`, `{"a":"yesterday"}`, []string{"/a format"}},
		{`{"properties":{"a":{"format":"our-own"}}}`, `{"a":"anything"}`, ``, nil},
		{`{"properties":{"a":{"items":{"type":"number"}}}}`, `{"a":[1,2]}`, `{"a":[1,"2",null]}`, []string{"/a/1 type", "/a/2 type"}},
		{`{"properties":{"a":{"prefixItems":[{"type":"number"}],"items":false}}}`, `{"a":[1]}`, `{"a":[1,2]}`, []string{"/a/1 false"}},
		{`{"properties":{"a":{"uniqueItems":true}}}`, `{"a":[1,2]}`, `{"a":[1,2,1.0]}`, []string{"/a uniqueItems"}},
		{`{"properties":{"a":{"contains":{"const":1}}}}`, `{"a":[0,1]}`, `{"a":[0]}`, []string{"/a contains"}},
		{`{"properties":{"a":{"minItems":1,"maxItems":2}}}`, `{"a":[1]}`, `{"a":[1,2,3]}`, []string{"/a maxItems"}},
		{`{"allOf":[{"required":["a"]},{"required":["b"]}]}`, `{"a":1,"b":2}`, `{}`, []string{" required", " required"}},
		{`{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{"b":2}`, `{}`, []string{" anyOf"}},
		{`{"oneOf":[{"required":["a"]},{"required":["b"]}]}`, `{"b":2}`, `{"a":1,"b":2}`, []string{" oneOf"}},
		{`{"not":{"required":["a"]}}`, `{}`, `{"a":1}`, []string{" not"}},
		{`{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{"c":1}`, `{"a":1}`, []string{" required"}},
		{`{"properties":{"a":true},"unevaluatedProperties":false}`, `{"a":1}`, `{"b":1}`, []string{"/b false"}},
		{`{"$defs":{"n":{"type":"number"}},"properties":{"a":{"$ref":"#/$defs/n"}}}`, `{"a":1}`, `{"a":""}`, []string{"/a type"}},
		{`{"$id":"https://example.com/s","$defs":{"n":{"$anchor":"n","type":"number"}},"properties":{"a":{"$ref":"s#n"}}}`, `{"a":1}`, `{"a":""}`, []string{"/a type"}},
		{`{"properties":{"child":{"$ref":"#"}},"required":["v"]}`, `{"v":1,"child":{"v":2}}`, `{"v":1,"child":{"v":1,"child":{}}}`, []string{"/child/child required"}},
		{`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}`, `{}`, ``, nil},
		{`{"properties":{"big":{"minimum":9007199254740993}}}`, `{"big":9007199254740993}`, `{"big":9007199254740992}`, []string{"/big minimum"}},
	} {
		v := compiled(t, c.schema)
		if found, n := v.Validate([]byte(c.fits), 100); n != 0 {
			t.Errorf("%s: %s violates it: %v", c.schema, c.fits, found)
		}
		if c.not == "" {
			continue
		}
		found, n := v.Validate([]byte(c.not), 100)
		var got []string
		for _, one := range found {
			if got = append(got, one.Path+" "+one.Keyword); one.Message == "" {
				t.Errorf("%s: %s has no message", c.schema, one.Path)
			}
		}
		if n != len(c.want) || !slices.Equal(got, c.want) {
			t.Errorf("%s: %s: got %d: %q, want %q", c.schema, c.not, n, found, c.want)
		}
	}
}

// Ensure that at most as many violations are returned as are asked for, and that all are counted.
func TestValidate_Most(t *testing.T) {
	t.Parallel()
	v := compiled(t, `{"additionalProperties":{"type":"string"}}`)
	found, n := v.Validate([]byte(`{"c":1,"b":2,"a":3,"ok":""}`), 2)
	if n != 3 || len(found) != 2 || found[0].Path != "/a" || found[1].Path != "/b" {
		t.Errorf("got %d, %v", n, found)
	}
}

// Ensure that a schema is refused that this package does not run, by an error that names the rule and where.
func TestCompile_Refused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"type":"strin"}`: "/type", // a message of the metaschema
		`{"required":"a"}`: "/required",
		`{"minimum":"1"}`:  "/minimum",
		`{"$schema":"http://json-schema.org/draft-07/schema#"}`:       "dialect",
		`{"$ref":"https://example.com/other.json"}`:                   "no other document",
		`{"$ref":"other.json"}`:                                       "no other document",
		`{"$ref":"file:///etc/passwd"}`:                               "no other document",
		`{"$ref":"#/$defs/missing"}`:                                  "$defs/missing",
		`{"$ref":"#"}`:                                                "itself",
		`{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"$ref":"#"}}}`: "itself",
		`{"pattern":"a(?=b)"}`:                                        "lookahead",
		`{"pattern":"(?!b)"}`:                                         "lookahead",
		`{"pattern":"(?<=b)a"}`:                                       "lookbehind",
		`{"pattern":"(a)\\1"}`:                                        "back-references",
		`{"pattern":"("}`:                                             "missing closing",
		`{"patternProperties":{"(":{}}}`:                              "missing closing",
		`{"pattern":"` + strings.Repeat("a", 1001) + `"}`:             "1000 bytes",
		`{"pattern":"((a{30}){30}){30}"}`:                             "repeat",
		`{"pattern":"` + strings.Repeat(`[a-z]{1000}`, 11) + `"}`:     "instructions",
		`{"minimum":1e401}`:                                           "exponent",
		`{"minimum":` + strings.Repeat("1", 401) + `}`:                "characters",
		`[]`: "object",
		`{`:  "JSON",
	} {
		_, err := jsonschema.New().Compile([]byte(text))
		var refused *schema.RuleError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: got %v, want a RuleError with %q", text, err, want)
		}
	}
}

// Ensure that numbers that would take gigabytes to compute with are refused at once.
func TestValidate_Numbers(t *testing.T) {
	t.Parallel()
	v := compiled(t, `{"properties":{"a":{"multipleOf":3}}}`)
	for _, number := range []string{"1e1000000000", "1e-999999", "1e401", strings.Repeat("7", 401)} {
		begun := time.Now()
		found, n := v.Validate([]byte(`{"a":`+number+`}`), 100)
		if n != 1 || found[0].Keyword != "number" || time.Since(begun) > 5*time.Second {
			t.Errorf("%.20s: got %d, %v after %v", number, n, found, time.Since(begun))
		}
	}
	if _, n := v.Validate([]byte(`{"a":3e400}`), 100); n != 0 {
		t.Error("a number within the bounds is refused")
	}
}

// Ensure that a schema whose work would double with each level of a document ends, and refuses the document.
func TestValidate_Steps(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"$ref":"#/$defs/x","$defs":{"x":{"allOf":[{"properties":{"a":{"$ref":"#/$defs/x"}}},{"properties":{"a":{"$ref":"#/$defs/x"}}}]}}}`,
		`{"$ref":"#/$defs/x","$defs":{"x":{"patternProperties":{"a":{"$ref":"#/$defs/x"},"^a":{"$ref":"#/$defs/x"},"a$":{"$ref":"#/$defs/x"}}}}}`,
		`{"not":{"$ref":"#/$defs/x"},"$defs":{"x":{"patternProperties":{"a":{"$ref":"#/$defs/x"},"^a":{"$ref":"#/$defs/x"},"a$":{"$ref":"#/$defs/x"}},"required":["a"]}}}`,
		`{"$defs":{"x":{"$dynamicAnchor":"x","properties":{"a":{"anyOf":[{"$dynamicRef":"#x"},{"$dynamicRef":"#x"}]}},"required":["a"]}},"$ref":"#/$defs/x"}`,
	} {
		v := compiled(t, text)
		begun := time.Now()
		deep := strings.Repeat(`{"a":`, 60) + `{}` + strings.Repeat(`}`, 60)
		found, n := v.Validate([]byte(deep), 100)
		if n != 1 || !strings.Contains(found[0].Message, "steps") {
			t.Errorf("%s: got %d, %v", text, n, found)
		}
		if took := time.Since(begun); took > 30*time.Second {
			t.Errorf("%s took %v", text, took)
		}
		if _, n := v.Validate([]byte(`{"a":{"a":{}}}`), 100); n != 0 && !strings.Contains(text, "required") {
			t.Errorf("%s refuses a small document", text)
		}
	}
}

// Ensure that a large document that violates its schema everywhere is refused as a whole, in bounded memory.
func TestValidate_Large(t *testing.T) {
	t.Parallel()
	v := compiled(t, `{"properties":{"a":{"items":{"type":"string"}}}}`)
	found, n := v.Validate([]byte(`{"a":[1`+strings.Repeat(",1", 150_000)+`]}`), 100)
	if n != 1 || !strings.Contains(found[0].Message, "not listed") {
		t.Errorf("got %d, %v", n, found)
	}
	found, n = v.Validate([]byte(`{"a":[1`+strings.Repeat(",1", 50_000)+`]}`), 100)
	if n != 50_001 || len(found) != 100 {
		t.Errorf("got %d, %d are listed", n, len(found))
	}
	if _, n := v.Validate([]byte(`{"a":[""`+strings.Repeat(`,""`, 150_000)+`]}`), 100); n != 0 {
		t.Error("a large document that fits is refused")
	}
}

// Ensure that many goroutines can validate with one validator, and get their own answers.
func TestValidate_Concurrent(t *testing.T) {
	t.Parallel()
	v := compiled(t, `{"properties":{"a":{"items":{"type":"integer","format":"x"}}}}`)
	var group sync.WaitGroup
	for w := range 8 {
		group.Go(func() {
			for i := range 50 {
				text, _ := json.Marshal(map[string]any{"a": slices.Repeat([]any{"s"}, (w+i)%7)})
				if _, n := v.Validate(text, 100); n != (w+i)%7 {
					t.Errorf("%s: got %d violations", text, n)
				}
			}
		})
	}
	group.Wait()
}

func ExampleNew() {
	v, err := jsonschema.New().Compile([]byte(`{"required": ["total"], "properties": {"total": {"type": "number"}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	violations, count := v.Validate([]byte(`{"total": "12"}`), schema.MaxViolations)
	fmt.Println(count, violations[0].Path, violations[0].Keyword)
	// Output: 1 /total type
}
