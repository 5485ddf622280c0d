package transfer_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jaydb/jay/transfer"
)

func ExampleCSVReader() {
	file := "no,Name,Age:number,Address.City\n7,Ann,41,Bern\n8,Bob,unknown,\n9,Cyd,,\n"
	r := transfer.NewCSVReader(strings.NewReader(file), transfer.CSVOptions{
		IDColumn: "no",
		Placing:  transfer.Placing{IDPrefix: "users/", Collection: "Users"},
	})
	for {
		record, err := r.Next()
		if err == io.EOF {
			break
		}
		var bad *transfer.Error
		is := errors.As(err, &bad)
		switch {
		case is && bad.Raw != nil:
			fmt.Printf("skipped %s: %v\n", bad.Raw, err)
		case err != nil:
			fmt.Println(err)
			return
		default:
			fmt.Printf("%s\n", record.Text)
		}
	}
	// Output:
	// {"Name":"Ann","Age":41,"Address":{"City":"Bern"},"@metadata":{"@id":"users/7","@collection":"Users"}}
	// skipped ["8","Bob","unknown",""]: a number must be one of JSON's, such as -1.50 or 1e6: "unknown" in column 3 (line 3)
	// {"Name":"Cyd","@metadata":{"@id":"users/9","@collection":"Users"}}
}

func ExampleCSVWriter() {
	documents := []transfer.Document{
		{ID: "users/1", Collection: "Users", Body: []byte(`{"Name":"Ann","Total":1.10,"Tags":["a"]}`)},
		{ID: "users/2", Collection: "Users", Body: []byte(`{"Name":"","Address":{"City":"Bern"}}`)},
	}
	var columns transfer.CSVColumns
	for i := range documents {
		if err := columns.Add(&documents[i]); err != nil {
			fmt.Println(err)
			return
		}
	}
	w, err := transfer.NewCSVWriter(os.Stdout, &columns, ',')
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range documents {
		if err := w.Write(&documents[i]); err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output:
	// @id,@collection,Name,Total:number,Tags:json,Address.City
	// users/1,Users,Ann,1.10,"[""a""]",
	// users/2,Users,"",,,Bern
}

func ExampleFromExtended() {
	text := `{"_id":{"$oid":"507f1f77bcf86cd799439011"},"total":{"$numberDecimal":"1.10"},"at":{"$date":{"$numberLong":"1700000000123"}}}`
	document, err := transfer.FromExtended(nil, []byte(text), transfer.Placing{Collection: "Orders"})
	fmt.Printf("%s %v\n", document, err)
	// Output:
	// {"total":1.10,"at":"2023-11-14T22:13:20.123Z","@metadata":{"@id":"507f1f77bcf86cd799439011","@collection":"Orders"}} <nil>
}

func ExampleToExtended() {
	text, err := transfer.ToExtended(nil, &transfer.Document{ID: "orders/1", Collection: "Orders", Body: []byte(`{"n":7,"total":1.10}`)})
	fmt.Printf("%s %v\n", text, err)
	// Output:
	// {"_id":"orders/1","n":7,"total":{"$numberDecimal":"1.10"},"@metadata":{"@collection":"Orders"}} <nil>
}

func ExampleDumpReader() {
	var dump strings.Builder
	w, err := transfer.NewDumpWriter(&dump, "shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	err = errors.Join(
		w.Section(transfer.DumpDocuments),
		w.Attachment("hash", "tag", 5, strings.NewReader("hello")),
		w.Item([]byte(`{"n":1.10,"@metadata":{"@id":"a"}}`)),
		w.Section(transfer.DumpIdentities),
		w.Identity("users|", 3),
		w.Close(),
	)
	if err != nil {
		fmt.Println(err)
		return
	}

	r := transfer.NewDumpReader(strings.NewReader(dump.String()), transfer.DumpOptions{})
	for {
		item, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %s\n", item.Section, item.Text)
		if item.Attachment != nil {
			if _, err := io.Copy(os.Stdout, item.Attachment); err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println()
		}
	}
	// Output:
	// BuildVersion: 54000
	// DatabaseRecord: {"DatabaseName":"shop","Encrypted":false,"UnusedDatabaseIds":[]}
	// Docs: {"@metadata":{"@export-type":"Attachment"},"Hash":"hash","Size":5,"Tag":"tag"}
	// hello
	// Docs: {"n":1.10,"@metadata":{"@id":"a"}}
	// Identities: {"Key":"users|","Value":"3"}
}
