package jay_test

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

// temporaryDir makes a directory for an example.
func temporaryDir() (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "jay")
	if err != nil {
		log.Fatal(err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }
}

// A key has an ID, which is no secret, and 32 random bytes, which no message shows.
func ExampleEncryptionKey() {
	key, err := keys.New("2026-01")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(key, len(key.Secret))
	// Output: key "2026-01" 32
}

// vault stands for a service that keeps secrets.
type vault map[string][]byte

// Newest implements jay.EncryptionKeys.
func (v vault) Newest() (jay.EncryptionKey, error) { return v.Key("shop-2") }

// Key implements jay.EncryptionKeys.
func (v vault) Key(id string) (jay.EncryptionKey, error) {
	secret, found := v[id]
	if !found {
		return jay.EncryptionKey{}, fmt.Errorf("the vault has no secret %q", id)
	}
	return jay.EncryptionKey{ID: id, Secret: secret}, nil
}

// Keys of a service: two methods. Without the key, the database does not open.
func ExampleEncryptionKeys() {
	dir, remove := temporaryDir()
	defer remove()
	path := filepath.Join(dir, "shop.db")
	db, err := jay.Open(path, &jay.Options{EncryptionKeys: vault{"shop-2": make([]byte, 32)}})
	if err != nil {
		log.Fatal(err)
	}
	if err := db.Close(); err != nil {
		log.Fatal(err)
	}
	_, err = jay.Open(path, nil)
	fmt.Println("without keys:", errors.Is(err, jay.ErrKey))
	// Output: without keys: true
}

// A database that was not encrypted is, and says how far it is meanwhile.
func ExampleConvertProgress() {
	dir, remove := temporaryDir()
	defer remove()
	path := filepath.Join(dir, "shop.db")
	db, err := jay.Open(path, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := db.Close(); err != nil {
		log.Fatal(err)
	}

	key, err := keys.New("2026-01")
	if err != nil {
		log.Fatal(err)
	}
	opts := &jay.Options{EncryptionKeys: keys.Of(key)}
	var last jay.ConvertProgress
	done, err := jay.EncryptDir(context.Background(), path, opts, func(p jay.ConvertProgress) { last = p })
	fmt.Println(done == last, done.Bytes == done.Total, err)
	// Output: true true <nil>
}
