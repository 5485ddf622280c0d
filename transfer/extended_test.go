package transfer_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay/transfer"
)

// Ensure that documents come back from Extended JSON with every digit.
func TestExtended_RoundTrip(t *testing.T) {
	bodies := append([]string{
		`{"$keep":{"a":1.10},"b":{"$binary":{"base64":"aGk=","subType":"00"}}}`,
		`{"r":{"$regularExpression":{"pattern":"a","options":"i"}},"t":{"$timestamp":{"t":1,"i":1.10}}}`,
		`{"u":{"\u0024oid":1.10}}`,
	}, corners...)
	for i, body := range bodies {
		for _, custom := range []string{"", `{"x":"y","n":1.10}`} {
			d := transfer.Document{ID: "things/1", Collection: "Things", Custom: []byte(custom), Body: []byte(body)}
			if i%2 == 0 {
				d.Collection = "@empty"
			}
			text, err := transfer.ToExtended(nil, &d)
			if err != nil {
				t.Fatal(body, err)
			}
			got, err := transfer.FromExtended(nil, text, transfer.Placing{Collection: "Ignored"})
			if err != nil {
				t.Fatalf("%v of %s", err, text)
			}
			metadata := fmt.Sprintf(`{"@id":"things/1","@collection":%q`, d.Collection)
			if custom != "" {
				metadata += "," + custom[1:len(custom)-1]
			}
			if want := withMetadata(body, metadata+"}"); !equal(t, got, want) {
				t.Errorf("got %s, want %s, by %s", got, want, text)
			}
		}
	}
}

// Ensure that what mongoexport writes, canonical and relaxed, becomes plain JSON.
func TestFromExtended(t *testing.T) {
	to := transfer.Placing{IDPrefix: "users/", Collection: "Users"}
	const place = `,"@metadata":{"@id":"users/507f1f77bcf86cd799439011","@collection":"Users"}}`
	const id = `{"_id":{"$oid":"507f1f77bcf86cd799439011"},`
	for in, want := range map[string]string{
		id + `"n":{"$numberInt":"42"}}`:                                           `{"n":42` + place,
		id + `"n":{"$numberLong":"9007199254740993"}}`:                            `{"n":9007199254740993` + place,
		id + `"n":{"$numberDouble":"1.10"}}`:                                      `{"n":1.10` + place,
		id + `"n":{"$numberDouble":"-0.0"}}`:                                      `{"n":-0.0` + place,
		id + `"n":{"$numberDecimal":"1.10"}}`:                                     `{"n":1.10` + place,
		id + `"n":{"$numberDecimal":"1E+6144"}}`:                                  `{"n":1E+6144` + place,
		id + `"d":{"$date":"2026-01-02T03:04:05.678Z"}}`:                          `{"d":"2026-01-02T03:04:05.678Z"` + place,
		id + `"d":{"$date":"2026-01-02T03:04:05.678+0000"}}`:                      `{"d":"2026-01-02T03:04:05.678+0000"` + place,
		id + `"d":{"$date":{"$numberLong":"1700000000123"}}}`:                     `{"d":"2023-11-14T22:13:20.123Z"` + place,
		id + `"d":{"$date":{"$numberLong":"-1"}}}`:                                `{"d":"1969-12-31T23:59:59.999Z"` + place,
		id + `"d":{"$date":0}}`:                                                   `{"d":"1970-01-01T00:00:00.000Z"` + place,
		id + `"u":{"$uuid":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6"}}`:              `{"u":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6"` + place,
		id + `"s":{"$symbol":"x"},"v":{"$undefined":true}}`:                       `{"s":"x","v":null` + place,
		id + `"b":{"$binary":{"base64":"aGk=","subType":"00"}}}`:                  `{"b":{"$binary":{"base64":"aGk=","subType":"00"}}` + place,
		id + `"m":{"$minKey":1},"c":{"$code":"f()","$scope":{"n":1.10}}}`:         `{"m":{"$minKey":1},"c":{"$code":"f()","$scope":{"n":1.10}}` + place,
		id + `"a":[{"$numberInt":"1"},[{"$oid":"507f1f77bcf86cd799439011"}],{}]}`: `{"a":[1,["507f1f77bcf86cd799439011"],{}]` + place,
		id + `"o":{"p":{"q":{"$numberLong":"1"}}, "r" : [ ] }}`:                   `{"o":{"p":{"q":1},"r":[]}` + place,
		id + `"plain":1.10,"s":"$oid"}`:                                           `{"plain":1.10,"s":"$oid"` + place,
		`{"a":1,"_id":7}`:                                                         `{"a":1,"@metadata":{"@id":"users/7","@collection":"Users"}}`,
		`{"_id":"x"}`:                                                             `{"@metadata":{"@id":"users/x","@collection":"Users"}}`,
		`{"_id":{"$numberLong":"12"}}`:                                            `{"@metadata":{"@id":"users/12","@collection":"Users"}}`,
		`{"a":1}`:                                                                 `{"a":1}`,
		`{}`:                                                                      `{}`,
		`{"a":1,"@metadata":{"@collection":"Cats","k":1}}`:                        `{"a":1,"@metadata":{"@collection":"Cats","k":1}}`,
	} {
		got, err := transfer.FromExtended([]byte("before"), []byte(in), to)
		if err != nil || string(got) != "before"+want {
			t.Errorf("%s: got %s, %v, want %s", in, got, err, want)
		}
	}
}

// Ensure that what Extended JSON does not have is refused, by name.
func TestFromExtended_Refused(t *testing.T) {
	for in, rule := range map[string]string{
		`{"a":`:                              "well-formed",
		`[]`:                                 "JSON object",
		`null`:                               "JSON object",
		`{"n":{"$numberDouble":"NaN"}}`:      "one that JSON has",
		`{"n":{"$numberDouble":"Infinity"}}`: "one that JSON has",
		`{"n":{"$numberDecimal":"1,5"}}`:     "one that JSON has",
		`{"n":{"$numberDecimal":1}}`:         "one that JSON has",
		`{"n":{"$numberInt":"1.5"}}`:         "$numberInt",
		`{"n":{"$numberLong":"99999999999999999999"}}`:          "$numberLong",
		`{"n":{"$numberInt":"1","x":2}}`:                        "has no other",
		`{"n":{"$oid":"zz"}}`:                                   "$oid",
		`{"n":{"$oid":1}}`:                                      "$oid",
		`{"n":{"$date":"yesterday"}}`:                           "$date",
		`{"n":{"$date":{"$numberLong":"9999999999999999999"}}}`: "$date",
		`{"n":{"$date":{"$numberLong":"999999999999999"}}}`:     "$date",
		`{"n":{"$date":{}}}`:                                    "$date",
		`{"n":{"$undefined":1}}`:                                "$undefined",
		`{"_id":{"a":1}}`:                                       "an _id must be",
		`{"_id":""}`:                                            "an _id must be",
		`{"_id":1.5}`:                                           "an _id must be",
		`{"_id":null}`:                                          "an _id must be",
		`{"_id":"a","_id":"b"}`:                                 "one _id",
		`{"_id":"a","@metadata":{"@id":"b"}}`:                   "without @id",
		`{"_id":"a","@metadata":7}`:                             "must be an object",
	} {
		_, err := transfer.FromExtended(nil, []byte(in), transfer.Placing{})
		if !errors.Is(err, transfer.ErrInvalid) || !strings.Contains(err.Error(), rule) {
			t.Errorf("%s: got %v, want %q", in, err, rule)
		}
	}
	for body, rule := range map[string]string{
		`{"_id":1}`:             "its ID in _id",
		`{"a":{"$oid":"x"}}`:    "must not look like",
		`{"a":[{"$date":"x"}]}`: "must not look like",
	} {
		_, err := transfer.ToExtended(nil, &transfer.Document{ID: "a", Body: []byte(body)})
		if !errors.Is(err, transfer.ErrInvalid) || !strings.Contains(err.Error(), rule) {
			t.Errorf("%s: got %v, want %q", body, err, rule)
		}
	}
}

// Ensure that numbers are plain where an int64 or a double keeps their digits, and decimals
// elsewhere.
func TestToExtended_Numbers(t *testing.T) {
	for n, want := range map[string]string{
		"1": "1", "-1": "-1", "0": "0", "1.5": "1.5", "0.1": "0.1", "9007199254740993": "9007199254740993", "9223372036854775807": "9223372036854775807",
		"-0": "", "1.10": "", "1e5": "", "1e400": "", "9223372036854775808": "", "0.1000000000000000055511151231257827": "",
	} {
		if want == "" {
			want = `{"$numberDecimal":"` + n + `"}`
		}
		got, err := transfer.ToExtended(nil, &transfer.Document{ID: "a", Collection: "@empty", Body: []byte(`{"n":` + n + `}`)})
		if want := `{"_id":"a","n":` + want + `,"@metadata":{"@collection":"@empty"}}`; err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}
