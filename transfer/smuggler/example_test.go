package smuggler_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/transfer/smuggler"
)

// Rows of CSV become documents, and an export writes them as lines of JSON.
func Example() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	im := smuggler.NewImporter(db, smuggler.ImportOptions{
		Collection: "Trees", IDPrefix: "trees/", IDColumn: "key", Infer: true,
	})
	rows := strings.NewReader("key,Name,Height\noak,Red oak,28\nash,Ash,35.50\n")
	if err := im.Load(ctx, smuggler.CSV, smuggler.Input{Name: "trees.csv", Reader: rows, Comma: ','}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(im.Progress().Documents, "documents")

	e := smuggler.NewExporter(db, smuggler.ExportOptions{Collection: "Trees"})
	if err := e.Write(ctx, smuggler.CSV, os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 2 documents
	// @id,@collection,Name,Height:number
	// trees/ash,Trees,Ash,35.50
	// trees/oak,Trees,Red oak,28
}

// names is a source: a name a line.
type names struct {
	lines *bufio.Scanner
	n     int64
}

// Next implements smuggler.Source.
func (s *names) Next() (smuggler.Record, error) {
	if !s.lines.Scan() {
		if err := s.lines.Err(); err != nil {
			return smuggler.Record{}, err
		}
		return smuggler.Record{}, io.EOF
	}
	s.n++
	text, err := json.Marshal(map[string]string{"Name": s.lines.Text()})
	return smuggler.Record{Number: s.n, Line: s.n, Offset: -1, Text: text, Converted: true}, err
}

// Skip implements smuggler.Source. Next refuses no line.
func (s *names) Skip(io.Writer) error { return nil }

// A program adds a format of its own.
func ExampleFormat() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	formats := append(smuggler.All(), &smuggler.Format{
		Name: "names", Extensions: []string{".txt"},
		Open: func(_ context.Context, in smuggler.Input, _ *smuggler.ImportOptions) (smuggler.Source, error) {
			return &names{lines: bufio.NewScanner(in.Reader)}, nil
		},
	})

	im := smuggler.NewImporter(db, smuggler.ImportOptions{Collection: "Users"})
	if err := im.Load(ctx, formats.OfFile("users.txt"), smuggler.Input{Name: "users.txt", Reader: strings.NewReader("Ann\nBob\n")}); err != nil {
		log.Fatal(err)
	}
	if err := smuggler.NewExporter(db, smuggler.ExportOptions{Collection: "Users"}).Write(ctx, smuggler.ExtendedJSON, os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// {"_id":"users/1-A","Name":"Ann","@metadata":{"@collection":"Users"}}
	// {"_id":"users/2-A","Name":"Bob","@metadata":{"@collection":"Users"}}
}
