package jay_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Ensure that damage is one error, whichever package finds it.
func TestErrCorrupt_OneValue(t *testing.T) {
	if jay.ErrCorrupt != metadata.ErrCorrupt || jay.ErrCorrupt != storage.ErrCorrupt {
		t.Error("there are several ErrCorrupt")
	}
}

// Ensure that damage that the storage engine finds is ErrCorrupt for every
// reader of documents, on a line that names the file.
func TestErrCorrupt_DamagedTables(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "db")
	for range 2 { // the second Open writes the log into tables
		db := open(t, dir, nil)
		for _, id := range []string{"users/a", "users/b", "users/c"} {
			put(t, db, id, `{"n":"`+strings.Repeat("x", 10_000)+`"}`)
		}
		closeDB(t, db)
	}
	db := open(t, dir, nil)                // what it needs of the tables it has read
	defer func() { must(t, db.Close()) }() // it is damaged, and so not verified
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("tables %v, %v", tables, err)
	}
	for _, path := range tables {
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
	}

	reads := map[string]func() error{
		"Get":    func() error { _, err := db.Get(ctx, "users/a"); return err },
		"Exists": func() error { _, err := db.Exists(ctx, "users/b"); return err },
		"Put":    func() error { _, err := db.Put(ctx, "users/a", []byte(`{"n":1}`)); return err },
		"Documents": func() error {
			for _, err := range db.Documents(ctx, jay.Scan{}) {
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	for name, read := range reads {
		err := read()
		if !errors.Is(err, jay.ErrCorrupt) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), ".sst") {
			t.Errorf("%s: got %v, want ErrCorrupt on a line that names a table", name, err)
		}
	}
}
