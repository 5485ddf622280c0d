package keys_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/keys"
)

// A database whose key is in a file. Without the key it does not open.
func ExampleFile() {
	dir, err := os.MkdirTemp("", "jay")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	key, err := keys.New("2026-01") // or: jay key new keys.txt
	if err != nil {
		log.Fatal(err)
	}
	file := filepath.Join(dir, "keys.txt") // better not on the disk of the database
	if err := os.WriteFile(file, []byte(keys.Line(key)), 0o600); err != nil {
		log.Fatal(err)
	}

	path := filepath.Join(dir, "shop.db")
	db, err := jay.Open(path, &jay.Options{EncryptionKeys: keys.File(file)})
	if err != nil {
		log.Fatal(err)
	}
	stored, err := db.Put(context.Background(), "users/ann", []byte(`{"Name":"Ann"}`))
	if err != nil {
		log.Fatal(err)
	}
	if err := db.Close(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("stored", stored.ID)

	_, err = jay.Open(path, nil)
	fmt.Println("without the key:", errors.Is(err, jay.ErrKey))
	// Output:
	// stored users/ann
	// without the key: true
}

// Keys in an environment variable, as a container has them.
func ExampleEnv() {
	key, err := keys.New("2026-01")
	if err != nil {
		log.Fatal(err)
	}
	if err := os.Setenv("SHOP_KEYS", keys.Line(key)); err != nil { // the container does this
		log.Fatal(err)
	}
	newest, err := keys.Env("SHOP_KEYS").Newest()
	fmt.Println(newest, err)
	// Output: key "2026-01" <nil>
}

// Keys that the program has, such as those of a test.
func ExampleOf() {
	older, err := keys.New("2026-01")
	if err != nil {
		log.Fatal(err)
	}
	newest, err := keys.New("2026-07")
	if err != nil {
		log.Fatal(err)
	}
	k, err := keys.Of(newest, older).Newest()
	fmt.Println(k, err)
	// Output: key "2026-07" <nil>
}

// A program gives an open database another key.
func ExampleProgress() {
	dir, err := os.MkdirTemp("", "jay")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "shop.keys")
	add := func(id string) {
		key, err := keys.New(id)
		if err != nil {
			log.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			log.Fatal(err)
		}
		if _, err := f.WriteString(keys.Line(key)); err != nil {
			log.Fatal(err)
		}
		if err := f.Close(); err != nil {
			log.Fatal(err)
		}
	}
	add("2026-01")
	db, err := jay.Open(filepath.Join(dir, "shop.db"), &jay.Options{EncryptionKeys: keys.File(path)})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	add("2026-07")
	done, err := keys.Rotate(context.Background(), db, func(p keys.Progress) {
		// p.Done files so far
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(done.Key, done.Done > 0)
	// Output: 2026-07 true
}
