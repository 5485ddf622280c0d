package jaytest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/jaytest"
)

// inTest runs a function as a test does that gets t from the testing package.
func inTest(test func(t jaytest.T)) {
	if text := run("TestExample", test); text != "" {
		fmt.Println(text)
	}
}

// IDs, also random ones, and times are the same in every run.
func ExampleOpen() {
	inTest(func(t jaytest.T) {
		db := jaytest.Open(t, nil)
		for _, request := range []string{"users/", "users|", ""} {
			m, err := db.Put(ctx, request, json.RawMessage(`{"Name":"Ann"}`))
			if err != nil {
				t.Fatalf("put: %v", err)
			}
			fmt.Println(m.ID, m.LastModified)
		}
	})
	// Output:
	// users/0000000000000000001-A 2026-01-01 12:00:00 +0000 UTC
	// users/1 2026-01-01 12:00:00 +0000 UTC
	// 7ee6f2de-92a2-45f7-a644-a68f961f901c 2026-01-01 12:00:00 +0000 UTC
}

// A database fails as its disk does, and goes on after a restart.
func ExampleDB() {
	inTest(func(t jaytest.T) {
		db := jaytest.Open(t, nil)
		db.FillDisk()
		_, err := db.Put(ctx, "users/ann", json.RawMessage(`{}`))
		fmt.Println(errors.Is(err, jay.ErrUnknownOutcome))
		db.Restart()
		_, err = db.Put(ctx, "users/ann", json.RawMessage(`{}`))
		fmt.Println(err)
	})
	// Output:
	// true
	// <nil>
}

// Two weeks pass in no time.
func ExampleClock() {
	inTest(func(t jaytest.T) {
		db := jaytest.Open(t, nil)
		if _, err := db.Put(ctx, "sessions/7", json.RawMessage(`{}`), jay.WithTTL(time.Hour)); err != nil {
			t.Fatalf("put: %v", err)
		}
		db.Advance(14 * 24 * time.Hour)
		found, err := db.Exists(ctx, "sessions/7")
		fmt.Println(db.Clock.Now().Format(time.DateOnly), found, err)
	})
	// Output: 2026-01-15 false <nil>
}

// The power goes at every sync of an operation, in turn.
func ExampleEveryPowerCut() {
	inTest(func(t jaytest.T) {
		transfer := func(db *jaytest.DB) {
			if err := db.Update(ctx, func(tx *jay.Tx) error {
				if _, err := tx.Patch(ctx, "accounts/a", jay.Increment("Balance", -10)); err != nil {
					return err
				}
				_, err := tx.Patch(ctx, "accounts/b", jay.Increment("Balance", 10))
				return err
			}); err != nil {
				t.Errorf("%v", err)
			}
		}
		cuts := jaytest.EveryPowerCut(t, nil,
			func(db *jaytest.DB) {
				var b jay.Batch
				b.Put("accounts/a", json.RawMessage(`{"Balance":100}`))
				b.Put("accounts/b", json.RawMessage(`{"Balance":0}`))
				if _, err := db.Apply(ctx, &b); err != nil {
					t.Fatalf("%v", err)
				}
			},
			transfer,
			func(db *jaytest.DB) {
				sum := 0
				for doc, err := range db.Documents(ctx, jay.Scan{Prefix: "accounts/"}) {
					var account struct{ Balance int }
					if err != nil || doc.Decode(&account) != nil {
						t.Fatalf("%v", err)
					}
					sum += account.Balance
				}
				if sum != 100 {
					t.Errorf("the accounts have %d, want 100", sum)
				}
			})
		fmt.Println(cuts > 0)
	})
	// Output: true
}

// A dump is the same for databases with the same content.
func ExampleDump() {
	inTest(func(t jaytest.T) {
		db := jaytest.Open(t, nil)
		if _, err := db.Put(ctx, "users/ann", json.RawMessage(`{"Name":"Ann"}`), jay.InCollection("Users")); err != nil {
			t.Fatalf("put: %v", err)
		}
		fmt.Println(strings.TrimSpace(jaytest.Dump(t, db.DB)))
	})
	// Output:
	// # documents
	// users/ann (Users)
	//   {
	//     "Name": "Ann"
	//   }
}

// A backup is restored in the test of the program that makes it.
func ExampleCheckBackup() {
	inTest(func(t jaytest.T) {
		db := jaytest.Open(t, nil)
		if _, err := db.Put(ctx, "users/ann", json.RawMessage(`{}`)); err != nil {
			t.Fatalf("put: %v", err)
		}
		var backup bytes.Buffer
		if _, err := db.Backup(ctx, &backup); err != nil {
			t.Fatalf("backup: %v", err)
		}
		fmt.Println(jaytest.CheckBackup(t, backup.Bytes()).Documents)
	})
	// Output: 1
}
