package sqlkv_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/child"
	"github.com/jaydb/jay/internal/pgtest"
	"github.com/jaydb/jay/storage/sqlkv"
)

func database(t testing.TB, name string) *jay.DB {
	t.Helper()
	db, err := jay.Open(name, &jay.Options{Engine: new(sqlkv.Driver)})
	must(t, err)
	return db
}

// Ensure that several databases on one store, each with several writers, give every document an ID and an etag of its own, and that each sees what
// the others have written.
func TestJay_Several(t *testing.T) {
	const databases, writers, each = 3, 4, 20
	name := newName(t)
	var all []*jay.DB
	for range databases {
		db := database(t, name)
		defer db.Close()
		all = append(all, db)
	}
	var mu sync.Mutex
	etags := make(map[string]string)
	var wg sync.WaitGroup
	for d, db := range all {
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					m, err := db.Store(ctx, "Users", json.RawMessage(fmt.Sprintf(`{"name":"%d.%d.%d"}`, d, w, i)))
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					if other, taken := etags[m.ChangeVector]; taken {
						t.Errorf("%s and %s have the change vector %s", other, m.ID, m.ChangeVector)
					}
					etags[m.ChangeVector] = m.ID
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	ids := make(map[string]bool)
	for _, id := range etags {
		ids[id] = true
	}
	equal(t, len(ids), databases*writers*each)
	for _, db := range all {
		for id := range ids {
			if _, err := db.Get(ctx, id); err != nil {
				t.Errorf("get %s: %v", id, err)
			}
		}
		report, err := db.Verify(ctx, nil)
		must(t, err)
		equal(t, report.Found, 0)
	}
	_, err := all[0].Get(ctx, "users/none")
	equal(t, errors.Is(err, jay.ErrNotFound), true)
}

// writerOf is the environment of the process of TestJay_Killed.
const writerOf = "JAY_SQL_WRITER"

// TestJay_Killed_Writer writes until it is killed, and prints what was acknowledged.
func TestJay_Killed_Writer(t *testing.T) {
	name := os.Getenv(writerOf)
	if name == "" {
		t.Skip("only in a process of TestJay_Killed")
	}
	db := database(t, name)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				for _, id := range []string{"users/", "invoices|", ""} {
					m, err := db.Insert(ctx, id, json.RawMessage(`{"by":"a process that is killed"}`), jay.InCollection("Users"))
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					fmt.Println("acknowledged", m.ID, m.ChangeVector)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
}

// Ensure that nothing that was acknowledged is lost when a process is killed while it writes, that no ID and no change vector comes twice, and that
// another process, which writes to the same store, goes on.
func TestJay_Killed(t *testing.T) {
	name := newName(t)
	db := database(t, name)
	defer db.Close()
	vectors := make(map[string]string) // of documents, by ID
	versions := make(map[string]bool)
	note := func(id, vector string) {
		if vectors[id] != "" || versions[vector] {
			t.Errorf("%s with %s came twice", id, vector)
		}
		vectors[id], versions[vector] = vector, true
	}
	goesOn := func() {
		m, err := db.Insert(ctx, "invoices|", json.RawMessage(`{"by":"a process that goes on"}`), jay.InCollection("Users"))
		must(t, err)
		note(m.ID, m.ChangeVector)
	}
	for round := range 3 {
		writer := child.Start(t, "TestJay_Killed_Writer", writerOf+"="+name, pgtest.URL+"="+server.URL())
		got := 0
		writer.KillAt(func(line string) bool {
			if id, vector, is := strings.Cut(strings.TrimPrefix(line, "acknowledged "), " "); is && strings.HasPrefix(line, "acknowledged ") {
				note(id, vector)
				goesOn() // while the other one writes
				got++
			}
			return got >= 60+round
		})
		if got < 60 {
			t.Fatalf("%d documents were acknowledged", got)
		}
		for range 10 {
			goesOn()
		}
	}
	for id, vector := range vectors {
		doc, err := db.Get(ctx, id)
		if err != nil || doc.ChangeVector() != vector {
			t.Errorf("%s was acknowledged with %s: %v", id, vector, err)
		}
	}
	report, err := db.Verify(ctx, nil)
	must(t, err)
	equal(t, report.Found, 0)
}

// Ensure that no error of package jay, no name and no message of the log has the password of an address.
func TestJay_NoPassword(t *testing.T) {
	const secret = "s3cret-p4ss"
	var log bytes.Buffer
	o := &jay.Options{Engine: new(sqlkv.Driver), Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	name := with(t, url.UserPassword("jay", secret), "jay_schema="+schemaOf(newName(t)))
	db, err := jay.Open(name, o)
	must(t, err)
	said := []string{db.Dir()}
	must(t, db.Close())
	for _, wrong := range []jay.Options{{NodeTag: "RAFT"}, {CopyTag: "B"}, {MaxDepth: -1}} {
		wrong.Engine, wrong.Logger = o.Engine, o.Logger
		db, err := jay.Open(name, &wrong)
		if err == nil {
			t.Errorf("%+v was accepted", wrong)
			db.Close()
			continue
		}
		said = append(said, err.Error())
	}
	_, err = jay.VerifyDir(ctx, name, &jay.Options{Engine: o.Engine, MaxDepth: -1}, nil)
	said = append(said, fmt.Sprint(err), log.String())
	for _, text := range said {
		if text == "" || strings.Contains(text, secret) {
			t.Errorf("it is said: %s", text)
		}
	}
}
