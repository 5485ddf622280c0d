package backups_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/backups"
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
