package metadata_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/metadata"
)

var limits = metadata.Limits{MaxBytes: 1 << 20, MaxDepth: 16}

// Ensure that a body comes out without metadata, without the dropped member
// and without white space, and otherwise byte for byte.
func TestScan(t *testing.T) {
	tests := []struct{ name, src, drop, body, meta string }{
		{"as it is", `{"a":1}`, "", `{"a":1}`, ""},
		{"empty", `{}`, "", `{}`, ""},
		{"space around", " \n{\"a\":1}\t\r\n", "", `{"a":1}`, ""},
		{"space inside", `{ "a" : [ 1 , 2 ] , "b" : { } }`, "", `{"a":[1,2],"b":{}}`, ""},
		{"space in strings stays", `{ "a b" : " c \" d\\" }`, "", `{"a b":" c \" d\\"}`, ""},
		{"metadata first", `{"@metadata":{"x":1},"a":1}`, "", `{"a":1}`, `{"x":1}`},
		{"metadata last", `{"a":1,"@metadata":{"x":1}}`, "", `{"a":1}`, `{"x":1}`},
		{"metadata between", `{"a":1,"@metadata":{},"b":2}`, "", `{"a":1,"b":2}`, `{}`},
		{"only metadata", `{"@metadata":{}}`, "", `{}`, `{}`},
		{"metadata with an escape", `{"\u0040metadata":{"x":1}}`, "", `{}`, `{"x":1}`},
		{"metadata deeper is data", `{"a":{"@metadata":3}}`, "", `{"a":{"@metadata":3}}`, ""},
		{"dropped member", `{"ID":"users/1","a":1}`, "ID", `{"a":1}`, ""},
		{"dropped at the top only", `{"a":{"ID":1}}`, "ID", `{"a":{"ID":1}}`, ""},
		{"numbers keep their digits", `{"a":9007199254740993,"b":1.10,"c":-0.0e+01,"d":1E400}`, "", `{"a":9007199254740993,"b":1.10,"c":-0.0e+01,"d":1E400}`, ""},
		{"literals", `{"a":true,"b":false,"c":null}`, "", `{"a":true,"b":false,"c":null}`, ""},
		{"unicode", `{"ä":"日本\ud83d\ude00"}`, "", `{"ä":"日本\ud83d\ude00"}`, ""},
		{"same key in different objects", `{"a":{"b":1},"b":{"a":1,"b":2}}`, "", `{"a":{"b":1},"b":{"a":1,"b":2}}`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := metadata.Scan([]byte(test.src), limits, test.drop)
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Body) != test.body || string(got.Metadata) != test.meta {
				t.Errorf("got body %s, metadata %s; want %s, %s", got.Body, got.Metadata, test.body, test.meta)
			}
		})
	}
}

// Ensure that everything that is not one good JSON object is one *Error that
// says where.
func TestScan_Refused(t *testing.T) {
	deep := func(n int) string { return `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }
	many := func(last string) string {
		var b strings.Builder
		for i := range 200 {
			fmt.Fprintf(&b, `"key%d":1,`, i)
		}
		return "{" + b.String() + `"` + last + `":1}`
	}
	tests := []struct {
		name, src string
		offset    int
		says      string
	}{
		{"nothing", ``, 0, "a JSON object"},
		{"only space", "  \n", 3, "a JSON object"},
		{"array", `[1]`, 0, "must be a JSON object"},
		{"string", `"a"`, 0, "must be a JSON object"},
		{"number", `12`, 0, "must be a JSON object"},
		{"null", `null`, 0, "must be a JSON object"},
		{"word", `hello`, 0, "a JSON object"},
		{"unfinished", `{"a":1`, 6, "ends where"},
		{"unfinished string", `{"a":"b`, 7, "end of a string"},
		{"trailing comma", `{"a":1,}`, 7, "a key"},
		{"trailing comma in an array", `{"a":[1,]}`, 8, "a value"},
		{"missing colon", `{"a" 1}`, 5, "a colon"},
		{"single quotes", `{'a':1}`, 1, "a key"},
		{"comment", `{"a":1}// x`, 7, "more follows"},
		{"second document", `{"a":1}{"b":2}`, 7, "more follows"},
		{"NaN", `{"a":NaN}`, 5, "a value"},
		{"leading zero", `{"a":01}`, 6, "a comma or the end"},
		{"plus", `{"a":+1}`, 5, "a value"},
		{"bare fraction", `{"a":.5}`, 5, "a value"},
		{"open fraction", `{"a":1.}`, 7, "a digit"},
		{"open exponent", `{"a":1e}`, 7, "a digit"},
		{"only minus", `{"a":-}`, 6, "a digit"},
		{"hex", `{"a":0x10}`, 6, "a comma or the end"},
		{"broken literal", `{"a":tru}`, 5, "true"},
		{"control character", "{\"a\":\"b\nc\"}", 7, "control character"},
		{"bad escape", `{"a":"\x"}`, 6, "escape"},
		{"short escape", `{"a":"\u12"}`, 6, "escape"},
		{"invalid UTF-8 in a value", "{\"a\":\"x\xffy\"}", 7, "UTF-8"},
		{"invalid UTF-8 in a key", "{\"\xc3\x28\":1}", 2, "UTF-8"},
		{"surrogate as bytes", "{\"a\":\"\xed\xa0\x80\"}", 6, "UTF-8"},
		{"NUL", "{\"a\":1\x00}", 6, "a comma or the end"},
		{"repeated key", `{"a":1,"b":2,"a":3}`, 13, `"a" is there twice`},
		{"repeated key with an escape", `{"a":1,"\u0061":3}`, 7, "twice"},
		{"repeated key with an escape in the first", `{"\u0061":1,"b":{"\u0063":2},"a":3}`, 29, "twice"},
		{"repeated key with two escapes", `{"x":{"\u0061":1,"\u0062":2,"\u0062":3}}`, 28, "twice"},
		{"repeated key beyond ASCII", `{"é":1,"é":2}`, 8, "twice"},
		{"repeated key, deeper", `{"x":[{"a":1,"a":2}]}`, 13, "twice"},
		{"repeated empty key", `{"":1,"":2}`, 6, "twice"},
		{"repeated long key", `{"abcdefgh1":1,"abcdefgh2":1,"abcdefgh1":2}`, 29, "twice"},
		{"repeated metadata", `{"@metadata":{},"@metadata":{}}`, 16, "twice"},
		{"repeated among many", many("key3"), 2091, "twice"},
		{"repeated late among many", many("key150"), 2091, "twice"},
		{"metadata is an array", `{"@metadata":[]}`, 13, "@metadata must be"},
		{"metadata is null", `{"@metadata":null}`, 13, "@metadata must be"},
		{"metadata is text", `{"@metadata":"x"}`, 13, "@metadata must be"},
		{"too deep", deep(16), 20, "at most 16 levels"},
		{"far too deep", deep(100_000), 20, "at most 16 levels"},
		{"too large", `{"a":"` + strings.Repeat("x", 1<<20) + `"}`, 1 << 20, "at most 1048576 bytes"},
		{"byte order mark", "\ufeff{}", 0, "byte order mark"},
		{"half of a character in a value", `{"a":"x\ud800"}`, 7, `surrogates must come in pairs: \ud800`},
		{"half of a character in a key", `{"b":1,"\uDFAA":0}`, 8, `surrogates must come in pairs: \uDFAA`},
		{"two first halves", `{"a":["\ud83d\uD83D\udc3f"]}`, 7, `\ud83d is half`},
		{"halves in the wrong order", `{"a":"\udc3f\ud83d"}`, 6, `\udc3f is half`},
		{"two second halves", `{"a":"\udc3f\udc3f"}`, 6, `\udc3f is half`},
		{"half and a character", `{"a":"\ud83d\u0041"}`, 6, `\ud83d is half`},
		{"half and another escape", `{"a":"\ud83d\n"}`, 6, `\ud83d is half`},
		{"half and a broken escape", `{"a":"\ud83d\udc3x"}`, 6, `\ud83d is half`},
		{"half at the very end", `{"a":"\ud83d`, 6, `\ud83d is half`},
		{"half in the metadata", `{"@metadata":{"x":"\udbff"}}`, 19, `\udbff is half`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := metadata.Scan([]byte(test.src), limits)
			var e *metadata.Error
			if !errors.As(err, &e) || !errors.Is(err, metadata.ErrInvalid) {
				t.Fatalf("got %v, want *Error", err)
			}
			if !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %q, want it to say %q", err, test.says)
			}
			if e.Offset != test.offset {
				t.Errorf("got offset %d, want %d: %v", e.Offset, test.offset, err)
			}
		})
	}
}

// Ensure that the limits themselves are still within.
func TestScan_AtTheLimits(t *testing.T) {
	deepest := `{"a":` + strings.Repeat("[", 15) + strings.Repeat("]", 15) + `}`
	if _, err := metadata.Scan([]byte(deepest), limits); err != nil {
		t.Error(err)
	}
	largest := `{"a":"` + strings.Repeat("x", 1<<20-8) + `"}`
	if _, err := metadata.Scan([]byte(largest), limits); err != nil {
		t.Error(err)
	}
}

// Ensure that what Scan accepts is what encoding/json accepts, but for the
// rules that are Jay's own, and that nothing but white space and the metadata
// is lost.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, ` { "a" : [ 1.5e3 , "x\u00e9" , null ] , "@metadata" : { "b" : true } } `, `{"a":{"a":{}}}`, `[]`, `{"a":1,"a":2}`, "{\"\xff\":1}", `{"":-0}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		got, err := metadata.Scan(src, limits)
		if err != nil {
			var e *metadata.Error
			if !errors.As(err, &e) {
				t.Fatalf("%T %v", err, err)
			}
			if e.Offset < 0 || e.Offset > len(src) {
				t.Errorf("offset %d of %d", e.Offset, len(src))
			}
			ownRule := !strings.Contains(e.Rule, "well-formed") && !strings.Contains(e.Rule, "JSON object")
			if object(src) && !ownRule {
				t.Errorf("%q: %v, but encoding/json takes it", src, err)
			}
			return
		}
		if !object(src) {
			t.Fatalf("%q is accepted", src)
		}
		if !json.Valid(got.Body) {
			t.Fatalf("%q became %q", src, got.Body)
		}
		var all, body map[string]json.RawMessage
		if err := errors.Join(json.Unmarshal(src, &all), json.Unmarshal(got.Body, &body)); err != nil {
			t.Fatal(err)
		}
		delete(all, "@metadata")
		if len(all) != len(body) {
			t.Fatalf("%q became %q", src, got.Body)
		}
		for key, value := range all {
			var compact bytes.Buffer
			if err := json.Compact(&compact, value); err != nil || compact.String() != string(body[key]) {
				t.Errorf("%q: %q became %q", key, value, body[key])
			}
		}
	})
}

func object(src []byte) bool {
	return json.Valid(src) && bytes.HasPrefix(bytes.TrimLeft(src, " \t\r\n"), []byte("{"))
}

// Ensure that custom keys stay, computed keys go, and older systems' names are
// understood.
func TestParse(t *testing.T) {
	tests := []struct{ name, raw, collection, id, custom string }{
		{"empty", `{}`, "", "", ""},
		{"collection", `{"@collection":"Users"}`, "Users", "", ""},
		{"no collection by name", `{"@collection":"@empty"}`, "", "", ""},
		{"custom keys", `{"a":1,"b":{"c":[ 1, 2 ]}}`, "", "", `{"a":1,"b":{"c":[1,2]}}`},
		{"computed keys", `{"@id":"users/1","@change-vector":"A:1-x","@last-modified":"2026-01-01T00:00:00.0000000Z","@flags":"HasRevisions","@etag":7,"@index-score":1.5}`, "", "users/1", ""},
		{"null change vector", `{"@change-vector":null}`, "", "", ""},
		{"casing makes a custom key", `{"@ID":"x","@Collection":"y"}`, "", "", `{"@ID":"x","@Collection":"y"}`},
		{"expiry stays", `{"@expires":"2027-01-01T00:00:00Z"}`, "", "", `{"@expires":"2027-01-01T00:00:00Z"}`},
		{"older collection name", `{"Raven-Entity-Name":"Users"}`, "Users", "", ""},
		{"newer name wins", `{"Raven-Entity-Name":"Old","@collection":"New"}`, "New", "", ""},
		{"expiry in another spelling stays", `{"@expires":"2027-01-01T00:00:00.5+02:00"}`, "", "", `{"@expires":"2027-01-01T00:00:00.5+02:00"}`},
		{"refresh stays", `{"@refresh":"2027-01-01T00:00:00Z"}`, "", "", `{"@refresh":"2027-01-01T00:00:00Z"}`},
		{"null expiry and refresh", `{"@expires":null,"@refresh":null}`, "", "", ""},
		{"casing makes a custom key, of an expiry too", `{"@Expires":"soon"}`, "", "", `{"@Expires":"soon"}`},
		{"older expiry", `{"Raven-Expiration-Date":"2027-01-01T00:00:00.0000000Z"}`, "", "", `{"@expires":"2027-01-01T00:00:00.0000000Z"}`},
		{"newer expiry wins", `{"@expires":"2027-01-01T00:00:00Z","Raven-Expiration-Date":"a"}`, "", "", `{"@expires":"2027-01-01T00:00:00Z"}`},
		{"older keys go", `{"Raven-Last-Modified":"x","Last-Modified":"y","Raven-Replication-Source":"z","Raven-Clr-Type":"User"}`, "", "", `{"Raven-Clr-Type":"User"}`},
		{"escaped key", `{"\u0040collection":"Users"}`, "Users", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g, err := metadata.Parse([]byte(test.raw))
			if err != nil {
				t.Fatal(err)
			}
			if g.Collection != test.collection || g.ID != test.id || string(g.Custom) != test.custom {
				t.Errorf("got %q, %q, %s; want %q, %q, %s", g.Collection, g.ID, g.Custom, test.collection, test.id, test.custom)
			}
		})
	}
	for _, raw := range []string{
		`{"@collection":1}`, `{"@collection":null}`, `{"@collection":["Users"]}`, `{"@id":1}`, `{"@flags":[]}`, `{"@last-modified":7}`,
		`{"@expires":"tomorrow"}`, `{"@expires":"2027-01-01"}`, `{"@expires":"2027-01-01T00:00:00"}`, `{"@expires":7}`, `{"@expires":{}}`, `{"@expires":"0001-01-01T00:00:00Z"}`,
		`{"@refresh":""}`, `{"@refresh":true}`, `{"\u0040expires":"tomorrow"}`, `{"Raven-Expiration-Date":"2027-01-01"}`,
		`{"@collection":"a\u0000b"}`, `{"@collection":"` + strings.Repeat("x", 513) + `"}`,
	} {
		if _, err := metadata.Parse([]byte(raw)); !errors.Is(err, metadata.ErrInvalid) {
			t.Errorf("%.40s: got %v, want ErrInvalid", raw, err)
		}
	}
}

// Ensure that a document is given back with its metadata at the end.
func TestAppendDocument(t *testing.T) {
	m := metadata.Metadata{ID: `users/"1"`, Collection: "Users", ChangeVector: "A:1-x", LastModified: time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC), Custom: []byte(`{"k":1}`)}
	const tail = `"@change-vector":"A:1-x","@id":"users/\"1\"","@last-modified":"2026-01-02T03:04:05.0000006Z"}}`
	if got, want := string(metadata.AppendDocument(nil, []byte(`{"a":1}`), &m)), `{"a":1,"@metadata":{"k":1,"@collection":"Users",`+tail; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	m.Custom, m.Collection = nil, metadata.Empty
	if got, want := string(metadata.AppendDocument(nil, []byte(`{}`), &m)), `{"@metadata":{`+tail; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// golden is a record of format 1 with every part; docs/format.md takes it
// apart.
const golden = "\x01\x03\x00\x2a\x80\xc0\xb9\x82\x90\xfa\xf1\x1f\x05Users\x09Users/Ann\x07{\"k\":1}{\"Name\":\"Ann\"}"

func goldenHeader() metadata.Header {
	return metadata.Header{
		Node: 0, Etag: 42, Modified: metadata.Ticks(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)),
		Collection: []byte("Users"), ID: []byte("Users/Ann"), Custom: []byte(`{"k":1}`),
	}
}

// Ensure that the bytes of a stored document never change.
func TestHeader_Golden(t *testing.T) {
	h := goldenHeader()
	record := append(h.AppendTail(h.AppendHead(nil)), `{"Name":"Ann"}`...)
	if string(record) != golden {
		t.Errorf("got  %q\nwant %q", record, golden)
	}
	got, body, err := metadata.Decode([]byte(golden))
	if err != nil || string(body) != `{"Name":"Ann"}` || got.Etag != 42 || string(got.ID) != "Users/Ann" || string(got.Custom) != `{"k":1}` {
		t.Errorf("decoded %+v, %s, %v", got, body, err)
	}
	if at := metadata.Time(got.Modified); !at.Equal(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)) {
		t.Errorf("decoded time %v", at)
	}
}

// Ensure that no bytes make Decode panic, and that what it accepts it would
// write again.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(golden))
	f.Add([]byte("\x01\x00\x00\x01\x00\x00{}"))
	f.Add([]byte("\x01\x00\x00\x01\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01{}"))
	f.Fuzz(func(t *testing.T, record []byte) {
		h, body, err := metadata.Decode(record)
		if err != nil {
			if !errors.Is(err, metadata.ErrCorrupt) {
				t.Errorf("got %v", err)
			}
			return
		}
		again, body2, err := metadata.Decode(append(h.AppendTail(h.AppendHead(nil)), body...))
		if err != nil || !bytes.Equal(body, body2) || again.Etag != h.Etag || !bytes.Equal(again.ID, h.ID) {
			t.Errorf("%q does not survive: %v", record, err)
		}
	})
}

// Ensure that the validation stays a single cheap pass.
func BenchmarkScan(b *testing.B) {
	doc := []byte(`{"Company":"companies/1-A","Employee":"employees/5-A","OrderedAt":"2026-07-04T00:00:00.0000000","Lines":[{"Product":"products/11-A","PricePerUnit":14.0,"Quantity":12,"Discount":0.0},{"Product":"products/42-A","PricePerUnit":9.8,"Quantity":10,"Discount":0.0},{"Product":"products/72-A","PricePerUnit":34.8,"Quantity":5,"Discount":0.0}],"ShipTo":{"Line1":"59 rue de l'Abbaye","City":"Reims","Country":"France"},"Freight":32.38}`)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := metadata.Scan(doc, limits); err != nil {
			b.Fatal(err)
		}
	}
}

// Ensure that the number of a revision survives its record, and that a record with
// number 0 is refused.
func TestHeader_Revision(t *testing.T) {
	h := metadata.Header{Node: 1, Etag: 300, Modified: 5, Collection: []byte("Users"), Revision: 1 << 40}
	record := append(h.AppendTail(h.AppendHead(nil)), "{}"...)
	got, body, err := metadata.Decode(record)
	if err != nil || got.Revision != h.Revision || got.Etag != h.Etag || string(got.Collection) != "Users" || string(body) != "{}" {
		t.Errorf("got %+v, %s, %v", got, body, err)
	}
	if got.Flags() != metadata.HasRevisions {
		t.Errorf("flags %q", got.Flags())
	}
	for n := range record {
		if _, _, err := metadata.Decode(record[:n]); err == nil {
			t.Errorf("the first %d bytes are taken for a record", n)
		}
	}
	h.Revision = 1
	record = append(h.AppendTail(h.AppendHead(nil)), "{}"...)
	record[5] = 0
	if _, _, err := metadata.Decode(record); err == nil {
		t.Error("a record with revision 0 is accepted")
	}
}

// Ensure that flags are spelt as RavenDB spells them.
func TestFlags_String(t *testing.T) {
	for flags, want := range map[metadata.Flags]string{
		0:                     "",
		metadata.HasRevisions: "HasRevisions",
		metadata.HasRevisions | metadata.Revision:       "HasRevisions, Revision",
		metadata.HasRevisions | metadata.DeleteRevision: "HasRevisions, DeleteRevision",
	} {
		if got := flags.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
