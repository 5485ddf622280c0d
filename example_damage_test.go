package jay_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/jaydb/jay"
)

// A database that has lost a file is not opened, and nothing in it changes.
func ExampleDamageError() {
	dir, err := os.MkdirTemp("", "jay")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := jay.Open(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := db.Close(); err != nil {
		log.Fatal(err)
	}
	markers, err := filepath.Glob(filepath.Join(dir, "marker.manifest.*"))
	if err != nil {
		log.Fatal(err)
	}
	if err := os.Remove(markers[0]); err != nil { // as a tool that skips empty files does
		log.Fatal(err)
	}

	_, err = jay.Open(dir, nil)
	var damage *jay.DamageError
	if errors.As(err, &damage) {
		fmt.Println(damage.File)
		fmt.Println(damage.Problem)
		fmt.Println("lost without it:", damage.Loss)
	}
	// Output:
	// marker.manifest.*
	// the file is missing: no manifest is named
	// lost without it: everything
}
