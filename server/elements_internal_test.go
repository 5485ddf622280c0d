package server

import (
	"bytes"
	"fmt"
	"io"
	"testing"
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
		elements := newElementReader(bytes.NewReader(stream), 1<<20, func(int64) error { return nil })
		n := 0
		for {
			element, err := elements.next()
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
