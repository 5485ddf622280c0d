package backups_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/backups"
	"github.com/jaydb/jay/keys"
)

// A program keeps backups of its database, and restores the newest after a loss.
func ExampleKeeper() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "jay-backups-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	keeper, err := backups.Open(db, backups.Options{Dir: dir + "/shop", Every: time.Hour, Keep: 48})
	if err != nil {
		log.Fatal(err)
	}
	defer keeper.Close()
	// go keeper.Run(ctx) makes one every hour; Make makes one now.
	for _, id := range []string{"users/ann", "users/bob"} {
		db.Put(ctx, id, []byte(`{}`))
		made, err := keeper.Make(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(made.Number, "full:", made.Base == "")
	}
	s := keeper.Status()
	fmt.Println(s.Backups, "backups, late:", s.Late)

	chain, err := backups.Chain(nil, dir+"/shop")
	if err != nil {
		log.Fatal(err)
	}
	restored, err := jay.RestoreFrom(ctx, dir+"/restored", jay.RestoreOptions{CopyTag: "B"}, chain[0].Path, chain[1].Path)
	fmt.Println(restored.Documents, "documents", err)
	// Output:
	// 1 full: true
	// 2 full: false
	// 2 backups, late: false
	// 2 documents <nil>
}

// Each new backup is copied elsewhere, in order, and again until that succeeds.
func ExampleOptions() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "jay-backups-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	answers := false
	keeper, err := backups.Open(db, backups.Options{
		Dir: dir,
		Each: func(ctx context.Context, b backups.Backup) error {
			if !answers {
				return errors.New("the object store does not answer")
			}
			fmt.Println("copied", filepath.Base(b.Path))
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer keeper.Close()
	for range 2 {
		if _, err := keeper.Make(ctx); err != nil {
			log.Fatal(err)
		}
		fmt.Println("not copied:", keeper.Status().Unsent)
		answers = true
	}
	// Output:
	// not copied: 1
	// copied 00000001-full.jaybackup
	// copied 00000002-since.jaybackup
	// not copied: 0
}

// A database is opened for each backup, and closed after it.
func ExampleSource() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "jay-backups-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	var source backups.Source = func(context.Context) (*jay.DB, func(), error) {
		db, err := jay.Open(filepath.Join(dir, "shop.jay"), nil)
		if err != nil {
			return nil, nil, err
		}
		return db, func() { db.Close() }, nil
	}
	keeper, err := backups.OpenFrom(ctx, source, backups.Options{Dir: filepath.Join(dir, "copies")})
	if err != nil {
		log.Fatal(err)
	}
	defer keeper.Close()
	made, err := keeper.Make(ctx)
	fmt.Println(made.Number, made.Documents, err)
	// Output: 1 0 <nil>
}

// Status says what to be woken up by.
func ExampleStatus() {
	dir, err := os.MkdirTemp("", "jay-backups-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	now := time.Now()
	keeper, err := backups.Open(db, backups.Options{Dir: dir, Now: func() time.Time { return now }})
	if err != nil {
		log.Fatal(err)
	}
	defer keeper.Close()
	fmt.Println(keeper.Status().Late)
	now = now.Add(4 * time.Hour) // and nothing has called Make or Run
	fmt.Println(keeper.Status().Late)
	// Output:
	// false
	// true
}

// What a backup is can be read from its file.
func ExampleBackup() {
	dir, err := os.MkdirTemp("", "jay-backups-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	_, err = backups.Chain(nil, dir)
	fmt.Println(errors.Is(err, backups.ErrNoBackup))
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	keeper, err := backups.Open(db, backups.Options{Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	defer keeper.Close()
	made, err := keeper.Make(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	chain, err := backups.Chain(nil, dir)
	if err != nil {
		log.Fatal(err)
	}
	var b backups.Backup = chain[0]
	fmt.Println(b.Number, b.ID == made.ID, b.Bytes == made.Bytes, b.Base == "")
	// Output:
	// true
	// 1 true true true
}

// A directory of encrypted backups is read with their keys.
func ExampleFiles() {
	dir, err := os.MkdirTemp("", "jay-backups-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	key, err := keys.New("2026-01")
	if err != nil {
		log.Fatal(err)
	}
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	keeper, err := backups.Open(db, backups.Options{Dir: dir, EncryptionKeys: keys.Of(key)})
	if err != nil {
		log.Fatal(err)
	}
	defer keeper.Close()
	if _, err := keeper.Make(context.Background()); err != nil {
		log.Fatal(err)
	}
	_, err = backups.Chain(nil, dir)
	fmt.Println(errors.Is(err, jay.ErrKey))
	chain, err := backups.Files{EncryptionKeys: keys.Of(key)}.Chain(dir)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(chain), chain[0].EncryptionKey)
	// Output:
	// true
	// 1 2026-01
}
