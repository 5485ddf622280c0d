package passphrase_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/keys/passphrase"
)

// A database with a passphrase in a file, such as a mounted secret.
func ExampleInDir() {
	dir, err := os.MkdirTemp("", "jay")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("oak elm ash fir yew box\n"), 0o600); err != nil {
		log.Fatal(err)
	}
	shop := filepath.Join(dir, "shop.db")
	db, err := jay.Open(shop, &jay.Options{EncryptionKeys: passphrase.InDir(shop, passphrase.File(secret))})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(db.Close())
	// Output: <nil>
}

// A database with a passphrase. The ID stands in the program's configuration: passphrase.NewID(passphrase.DefaultWork) has made it.
func ExampleKeys() {
	dir, err := os.MkdirTemp("", "jay")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	const id = "$argon2id$v=19$m=65536,t=3,p=4$2rj7HhFTfJ2CjNTLfCrsBg"
	open := func(words string) error {
		keys := passphrase.Keys(id, func(string) ([]byte, error) { return []byte(words), nil })
		db, err := jay.Open(filepath.Join(dir, "shop.db"), &jay.Options{EncryptionKeys: keys})
		if err != nil {
			return err
		}
		return db.Close()
	}
	fmt.Println(open("oak elm ash fir yew box"))
	fmt.Println(errors.Is(open("oak elm ash fir yew fig"), jay.ErrKey))
	// Output:
	// <nil>
	// true
}

// Work that takes four times the memory of the default.
func ExampleWork() {
	w := passphrase.DefaultWork
	w.MemoryKiB *= 4
	id, err := passphrase.NewID(w)
	fmt.Println(id[:len("$argon2id$v=19$m=262144")], err)
	// Output: $argon2id$v=19$m=262144 <nil>
}

// A key that cannot be.
func ExampleError() {
	_, err := passphrase.NewID(passphrase.Work{MemoryKiB: 64, Passes: 3, Threads: 4})
	fmt.Println(err)
	// Output: key from a passphrase: m is 64 KiB, and must be 19456 to 1048576
}
