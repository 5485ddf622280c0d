package metadata_test

import (
	"fmt"

	"github.com/jaydb/jay/metadata"
)

func ExampleScan() {
	limits := metadata.Limits{MaxBytes: 1 << 20, MaxDepth: 100}
	scanned, err := metadata.Scan([]byte(`{ "Name": "Ann", "@metadata": {"@collection": "Users", "k": 1} }`), limits)
	fmt.Printf("%s %v\n", scanned.Body, err)
	given, err := metadata.Parse(scanned.Metadata)
	fmt.Printf("%s %s %v\n", given.Collection, given.Custom, err)
	_, err = metadata.Scan([]byte(`{"a":1,"a":2}`), limits)
	fmt.Println(err)
	// Output:
	// {"Name":"Ann"} <nil>
	// Users {"k":1} <nil>
	// invalid document: keys must not repeat within an object: "a" is there twice (byte 7)
}

func ExampleHeader() {
	h := metadata.Header{Etag: 42, Collection: []byte("Users")}
	record := append(h.AppendTail(h.AppendHead(nil)), `{"Name":"Ann"}`...)
	decoded, body, err := metadata.Decode(record)
	fmt.Printf("%d %s %s %v\n", decoded.Etag, decoded.Collection, body, err)
	// Output: 42 Users {"Name":"Ann"} <nil>
}
