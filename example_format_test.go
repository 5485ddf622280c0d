package jay_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/jaydb/jay"
)

// A database that a newer version of Jay has upgraded is not opened, and stays as it is.
func ExampleFormatError() {
	dir, err := os.MkdirTemp("", "jay")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	// The file JAY has the number of the format.
	if err := os.WriteFile(filepath.Join(dir, "JAY"), []byte("jay database, format 1000\n"), 0o600); err != nil {
		log.Fatal(err)
	}

	_, err = jay.Open(dir, nil)
	var newer *jay.FormatError
	if errors.As(err, &newer) {
		fmt.Println(newer.What, newer.Found, newer.Found > newer.Newest, errors.Is(err, jay.ErrNewerFormat))
	}
	// Output: database 1000 true true
}
