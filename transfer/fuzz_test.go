package transfer_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/jaydb/jay/transfer"
)

// FuzzCSV looks for input that makes a reader of CSV panic, go on for ever, or return what
// is no JSON object, and for documents that do not come back.
func FuzzCSV(f *testing.F) {
	f.Add([]byte("@id,@collection,@metadata:json,a.b:number,c:json,d:boolean\nx,Y,\"{\"\"k\"\":1}\",1.10,[1],true\n"), false)
	f.Add([]byte("a,b\n\"x\"\"\ny\",\r\n\n1,a\"b\n"), true)
	f.Fuzz(func(t *testing.T, input []byte, infer bool) {
		r := transfer.NewCSVReader(bytes.NewReader(input), transfer.CSVOptions{Infer: infer, MaxBytes: 1 << 16})
		for range 2*len(input) + 2 {
			rec, err := r.Next()
			var bad *transfer.Error
			is := errors.As(err, &bad)
			switch {
			case is && bad.Raw != nil:
				if bytes.Equal(bytes.ToValidUTF8(bad.Raw, nil), bad.Raw) && !json.Valid(bad.Raw) {
					t.Fatalf("a reject is no JSON: %q", bad.Raw)
				}
			case err != nil:
				return
			default:
				text := bytes.ToValidUTF8(rec.Text, []byte("?")) // the database refuses what is no UTF-8
				if !json.Valid(text) || text[0] != '{' {
					t.Fatalf("got %q", rec.Text)
				}
			}
		}
		t.Fatal("no end")
	})
}

// FuzzFromExtended looks for input that makes the conversion panic or return what is no
// JSON object.
func FuzzFromExtended(f *testing.F) {
	f.Add([]byte(`{"_id":{"$oid":"507f1f77bcf86cd799439011"},"a":[{"$date":{"$numberLong":"1"}},{"$binary":{}}],"@metadata":{"k":1}}`))
	f.Add([]byte(`{"n":{"$numberDecimal":"1.10"},"$x":{"\u0024oid":1}}`))
	f.Fuzz(func(t *testing.T, input []byte) {
		got, err := transfer.FromExtended(nil, input, transfer.Placing{IDPrefix: "a/", Collection: "B"})
		switch {
		case err != nil && !errors.Is(err, transfer.ErrInvalid):
			t.Fatalf("got %v", err)
		case err == nil && (!json.Valid(got) || got[0] != '{'):
			t.Fatalf("got %q of %q", got, input)
		}
	})
}

// FuzzBodies looks for documents that do not come back from CSV or Extended JSON.
func FuzzBodies(f *testing.F) {
	for _, body := range corners {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		body = bytes.ToValidUTF8(body, nil)
		if !json.Valid(body) || repeatsKeys(body) {
			return
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, body); err != nil || compact.Bytes()[0] != '{' {
			return
		}
		d := transfer.Document{ID: "a", Collection: "B", Body: compact.Bytes()}
		want := withMetadata(compact.String(), `{"@id":"a","@collection":"B"}`)
		if bytes.Contains(body, []byte("@metadata")) {
			return // no body has it at its top
		}

		var columns transfer.CSVColumns
		var out bytes.Buffer
		if err := columns.Add(&d); err == nil {
			w, err := transfer.NewCSVWriter(&out, &columns, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Write(&d); err != nil {
				t.Fatal(err)
			}
			rec, err := transfer.NewCSVReader(&out, transfer.CSVOptions{}).Next()
			if err != nil || !equal(t, rec.Text, want) {
				t.Fatalf("CSV: got %s, %v, want %s", rec.Text, err, want)
			}
		}
		text, err := transfer.ToExtended(nil, &d)
		if err != nil {
			return
		}
		got, err := transfer.FromExtended(nil, text, transfer.Placing{})
		if err != nil || !equal(t, got, want) {
			t.Fatalf("Extended JSON: got %s, %v, want %s, by %s", got, err, want, text)
		}
	})
}

// repeatsKeys reports whether an object in a text has a key twice: no document has.
func repeatsKeys(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	type level struct {
		keys map[string]bool // nil in an array
		key  bool            // a key comes next
	}
	var open []level
	for {
		token, err := d.Token()
		if err != nil {
			return err != io.EOF
		}
		top := len(open) - 1
		if top >= 0 && open[top].keys != nil {
			if name, is := token.(string); is && open[top].key {
				if open[top].keys[name] {
					return true
				}
				open[top].keys[name], open[top].key = true, false
				continue
			}
			open[top].key = true
		}
		switch token {
		case json.Delim('{'):
			open = append(open, level{make(map[string]bool), true})
		case json.Delim('['):
			open = append(open, level{})
		case json.Delim('}'), json.Delim(']'):
			open = open[:top]
			if top > 0 && open[top-1].keys != nil {
				open[top-1].key = true
			}
		}
	}
}

// FuzzDump looks for input that makes a reader of dumps panic or go on for ever.
func FuzzDump(f *testing.F) {
	f.Add([]byte(northwind))
	f.Add([]byte(`{"Docs":[{"@metadata":{"@export-type":"Attachment"},"Hash":"h","Size":3,"Tag":""}abc,{}]}`))
	f.Fuzz(func(t *testing.T, input []byte) {
		d := transfer.NewDumpReader(bytes.NewReader(input), transfer.DumpOptions{MaxBytes: 1 << 16})
		for range len(input) + 2 {
			item, err := d.Next()
			if err != nil {
				return
			}
			if len(item.Text) == 0 || len(item.Section) > len(input) {
				t.Fatalf("got %+v", item)
			}
		}
		t.Fatal("no end")
	})
}
