package transfer_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// corners are bodies of documents that are hard to keep.
var corners = []string{
	`{}`,
	`{"n":1.10}`,
	`{"n":9007199254740993}`,
	`{"n":-0}`,
	`{"n":1e400}`,
	`{"n":12345678901234567890.123456789012345678901234567890}`,
	`{"n":0.1,"m":-1.5E-7,"k":1E+2,"j":100000000000000000000}`,
	`{"s":""}`,
	`{"s":"null","t":"true","u":"1.10","v":"{}"}`,
	`{"s":"Größe 日本 🙂"}`,
	`{"s":"a,b;c\td"}`,
	`{"s":"say \"hi\""}`,
	`{"s":"two\nlines\r\nand a \\ backslash"}`,
	`{"s":" blanks "}`,
	`{"s":"\u0000\u001f\u007f"}`,
	`{"s":"\ud800"}`,
	`{"s":null}`,
	`{"a":[]}`,
	`{"a":[1.10,"x",null,[],{}]}`,
	`{"o":{}}`,
	`{"o":{"p":{"q":{"r":1.50}}}}`,
	`{"o":{"p":1}}`,
	`{"b":true,"c":false}`,
	`{"b":null}`,
	`{"a.b":1,"c:number":2,"d\\e":3,"@id":"4","@metadata2":5,"":6}`,
	`{"":{"":{"":0}}}`,
	`{"mixed":1}`,
	`{"mixed":"1"}`,
	`{"mixed":{"x":1}}`,
	`{"deep":[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]}`,
	`{"<b>":"&amp;<>"}`,
}

// value returns what a JSON text says: numbers with their digits, objects without an order.
func value(t testing.TB, text []byte) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// equal compares two JSON texts.
func equal(t testing.TB, a, b []byte) bool {
	t.Helper()
	return reflect.DeepEqual(value(t, a), value(t, b))
}

// withMetadata returns the JSON that a reader has to make of a document.
func withMetadata(body, metadata string) []byte {
	if metadata == "" {
		return []byte(body)
	}
	comma := ","
	if body == "{}" {
		comma = ""
	}
	return []byte(body[:len(body)-1] + comma + `"@metadata":` + metadata + `}`)
}
