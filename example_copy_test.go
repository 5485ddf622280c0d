package jay_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage"
	inmemory "github.com/jaydb/jay/storage/memory"
)

// oaks makes a database with a document in a directory of its own, and returns both.
func oaks() (dir, from string) {
	dir, err := os.MkdirTemp("", "jay-copy-")
	if err != nil {
		panic(err)
	}
	from = filepath.Join(dir, "from")
	db, err := jay.Open(from, nil)
	if err != nil {
		panic(err)
	}
	defer db.Close()
	if _, err := db.Put(context.Background(), "trees/oak", []byte(`{"Name":"oak"}`)); err != nil {
		panic(err)
	}
	return dir, from
}

// A database moves to a store of another engine. With a sqlkv.Driver as the Engine, that is a schema of PostgreSQL.
func ExampleCopyOptions() {
	dir, from := oaks()
	defer os.RemoveAll(dir)
	_, err := jay.Copy(context.Background(), from, "to", jay.CopyOptions{SameTag: true, To: &jay.Options{Engine: new(inmemory.Driver)}})
	fmt.Println(err)
	// Output: <nil>
}

func ExampleCopyInfo() {
	dir, from := oaks()
	defer os.RemoveAll(dir)
	info, err := jay.Copy(context.Background(), from, filepath.Join(dir, "to"), jay.CopyOptions{CopyTag: "B"})
	if err != nil {
		panic(err)
	}
	fmt.Println(info.Documents, info.NodeTag)
	// Output: 1 B
}

func ExampleCopyProgress() {
	dir, from := oaks()
	defer os.RemoveAll(dir)
	_, err := jay.Copy(context.Background(), from, filepath.Join(dir, "to"), jay.CopyOptions{SameTag: true, Progress: func(p jay.CopyProgress) {
		if p.Keys > 0 {
			fmt.Println(p.Step, p.Documents)
		}
	}})
	if err != nil {
		panic(err)
	}
	// Output:
	// copy 1
	// compare 1
}

func ExampleCopyError() {
	dir, from := oaks()
	defer os.RemoveAll(dir)
	to := filepath.Join(dir, "to")
	for range 2 {
		_, err := jay.Copy(context.Background(), from, to, jay.CopyOptions{SameTag: true})
		var refused *jay.CopyError
		if errors.As(err, &refused) {
			fmt.Printf("%s: %s; %s\n", refused.Rule, refused.Problem, refused.Do)
		}
	}
	// Output: empty target: there is a database in it; name another target, or remove this one
}

func ExampleCopyLimitError() {
	dir, from := oaks()
	defer os.RemoveAll(dir)
	db, err := jay.Open(from, nil)
	if err != nil {
		panic(err)
	}
	if _, err := db.Put(context.Background(), "trees/ash", []byte(`{"Text":"`+strings.Repeat("a", 2000)+`"}`)); err != nil {
		panic(err)
	}
	if err := db.Close(); err != nil {
		panic(err)
	}
	small := &inmemory.Driver{Limits: storage.Limits{ValueBytes: 1000}}
	_, err = jay.Copy(context.Background(), from, "to", jay.CopyOptions{SameTag: true, To: &jay.Options{Engine: small}})
	var refused *jay.CopyLimitError
	fmt.Println(errors.As(err, &refused), refused.Found, strings.HasPrefix(refused.Records[0], `document "trees/ash": a value of 2`))
	// Output: true 1 true
}
