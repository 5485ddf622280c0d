package raven

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/jaydb/jay/server/internal/serve"
)

// BenchmarkElements reads a stream of documents, as a bulk insert does before it puts them.
func BenchmarkElements(b *testing.B) {
	stream := []byte{'['}
	for i := range 1000 {
		if i > 0 {
			stream = append(stream, ',')
		}
		stream = fmt.Appendf(stream, `{"Id":"orders/%d","Type":"PUT","Document":{"Number":%09d,"Company":"companies/%d-A","OrderedAt":"2026-03-05T14:00:00.0000000Z","Freight":12.5,`+
			`"ShipTo":{"Line1":"12 Oak Avenue","City":"Springfield","Location":{"Latitude":47.6,"Longitude":-122.3}},`+
			`"Lines":[{"Product":"products/11-A","ProductName":"Oat Flakes","PricePerUnit":14.25,"Quantity":12}],"Note":"%0100d","@metadata":{"@collection":"Orders"}}}`, i, i, i%90, i)
	}
	stream = append(stream, ']')
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		elements := serve.NewElementReader(bytes.NewReader(stream), 1<<20, func(int64) error { return nil })
		n := 0
		for {
			element, err := elements.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			if _, err := parseBulkCommand(element); err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 1000 {
			b.Fatalf("%d elements", n)
		}
	}
}

// FuzzElements ensures that the reader of a stream returns the elements which
// encoding/json finds in it, whatever the pieces are in which it comes, if the stream is
// valid, and fails on nothing.
func FuzzElements(f *testing.F) {
	for _, seed := range []string{`[]`, `[{}]`, ` [ {"Id":"a\"]}\\","Document":{"a":[1,"]"]}} , {"Type":"HeartBeat"} ] `, `[{"a":1},]`, `[{"a"`, `{}`, `[1]`, `[{} {}]`, `[{"a":"` + strings.Repeat("x", 5000) + `"}]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want []json.RawMessage
		valid := json.Unmarshal(text, &want) == nil && want != nil
		for _, one := range want {
			valid = valid && one[0] == '{'
		}
		for _, r := range []io.Reader{bytes.NewReader(text), iotest.OneByteReader(bytes.NewReader(text))} {
			e := serve.NewElementReader(r, 1<<20, func(int64) error { return nil })
			n := 0
			for {
				element, err := e.Next()
				if err == io.EOF && (!valid || n == len(want)) {
					break
				}
				if err != nil {
					if valid || !errors.Is(err, serve.ErrElement) && err != io.ErrUnexpectedEOF {
						t.Fatalf("%q: %v", text, err)
					}
					break
				}
				if valid && !bytes.Equal(element, want[n]) {
					t.Fatalf("%q: element %d is %s, want %s", text, n, element, want[n])
				}
				if valid {
					members := make(map[string]json.RawMessage)
					if err := json.Unmarshal(element, &members); err != nil {
						t.Fatal(err)
					}
					if err := serve.EachMember(element, func(name, value []byte) error {
						if !json.Valid(value) {
							t.Fatalf("%s: the member %s is %s", element, name, value)
						}
						return nil
					}); err != nil {
						t.Fatalf("%s: %v", element, err)
					}
				}
				if _, err := parseBulkCommand(element); err != nil {
					_ = serve.ProblemOf(err)
				}
				n++
			}
		}
	})
}
