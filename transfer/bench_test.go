package transfer_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/jaydb/jay/transfer"
)

// benchmarkDocuments are documents of 200 bytes.
func benchmarkDocuments(n int) (docs []transfer.Document) {
	for i := range n {
		body := fmt.Appendf(nil, `{"Name":"Customer %d","Number":%d,"Total":%d.%d0,"Active":%t,"Address":{"City":"Köln","Zip":"%05d"},"Tags":["a%d","b"],"Note":"a \"quoted\", text\nof two lines"}`, i, i, i, i%10, i%2 == 0, i%100_000, i%7)
		docs = append(docs, transfer.Document{ID: fmt.Sprintf("Customers/%07d", i), Collection: "Customers", Body: body})
	}
	return docs
}

func bodyBytes(docs []transfer.Document) (n int64) {
	for _, d := range docs {
		n += int64(len(d.Body))
	}
	return n
}

func BenchmarkCSV(b *testing.B) {
	docs := benchmarkDocuments(10_000)
	var file bytes.Buffer
	write := func(w io.Writer) {
		var columns transfer.CSVColumns
		for i := range docs {
			if err := columns.Add(&docs[i]); err != nil {
				b.Fatal(err)
			}
		}
		out, err := transfer.NewCSVWriter(w, &columns, 0)
		if err != nil {
			b.Fatal(err)
		}
		for i := range docs {
			if err := out.Write(&docs[i]); err != nil {
				b.Fatal(err)
			}
		}
	}
	write(&file)
	b.Run("write", func(b *testing.B) {
		b.SetBytes(bodyBytes(docs))
		for b.Loop() {
			write(io.Discard)
		}
	})
	b.Run("read", func(b *testing.B) {
		b.SetBytes(bodyBytes(docs))
		for b.Loop() {
			r := transfer.NewCSVReader(bytes.NewReader(file.Bytes()), transfer.CSVOptions{})
			for {
				if _, err := r.Next(); err == io.EOF {
					break
				} else if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

func BenchmarkExtended(b *testing.B) {
	docs := benchmarkDocuments(10_000)
	var texts [][]byte
	for i := range docs {
		text, err := transfer.ToExtended(nil, &docs[i])
		if err != nil {
			b.Fatal(err)
		}
		texts = append(texts, text)
	}
	var dst []byte
	b.Run("write", func(b *testing.B) {
		b.SetBytes(bodyBytes(docs))
		for b.Loop() {
			for i := range docs {
				dst, _ = transfer.ToExtended(dst[:0], &docs[i])
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		b.SetBytes(bodyBytes(docs))
		for b.Loop() {
			for _, text := range texts {
				dst, _ = transfer.FromExtended(dst[:0], text, transfer.Placing{})
			}
		}
	})
}

func BenchmarkDumpReader(b *testing.B) {
	docs := benchmarkDocuments(10_000)
	var file bytes.Buffer
	w, err := transfer.NewDumpWriter(&file, "x")
	if err != nil {
		b.Fatal(err)
	}
	if err := w.Section(transfer.DumpDocuments); err != nil {
		b.Fatal(err)
	}
	for i := range docs {
		if err := w.Item(docs[i].Body); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(bodyBytes(docs))
	for b.Loop() {
		r := transfer.NewDumpReader(bytes.NewReader(file.Bytes()), transfer.DumpOptions{})
		for {
			if _, err := r.Next(); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
}
