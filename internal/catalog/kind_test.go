package catalog_test

// This file puts declarations into the store that this version does not write.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
)

// withUnknownKind returns a directory with a database in which an index that was declared as
// an ordered one is of a kind that is not known, and another one of the collection is ordered.
func withUnknownKind(t *testing.T) (dir string) {
	t.Helper()
	ctx := context.Background()
	dir = t.TempDir()
	db := jaytest.Open(t, dir, nil)
	jaytest.Must(t, db.EnsureIndexes(ctx, "Users", []jay.Index{{Name: "sound", Fields: []string{"Name"}}, {Name: "age", Fields: []string{"Age"}}}))
	jaytest.Put(t, db, "users/1", `{"Name":"Ann","Age":40}`, jay.InCollection("Users"))
	jaytest.Put(t, db, "things/1", `{"Name":"Ann"}`, jay.InCollection("Things"))
	checks.EditIndexes(db, func(record []byte) []byte {
		return []byte(strings.Replace(string(record), `"name":"sound",`, `"name":"sound","kind":"phonetic",`, 1))
	})
	jaytest.Must(t, db.Close())
	return dir
}

// unknownKind fails the test unless err names the kind and the index.
func unknownKind(t *testing.T, what string, err error) {
	t.Helper()
	var unknown *jay.KindError
	if !errors.As(err, &unknown) || *unknown != (jay.KindError{Index: "sound", Collection: "Users", Kind: "phonetic"}) || !errors.Is(err, jay.ErrIndex) {
		t.Errorf("%s: got %v", what, err)
	}
}

// Ensure that a database with an index of an unknown kind can be read, verified and queried by its
// other indexes, that each write into the collection is refused with the name of the kind, and that
// other collections are not concerned.
func TestKind_Unknown(t *testing.T) {
	ctx := context.Background()
	db := jaytest.Open(t, withUnknownKind(t), nil)
	defer jaytest.Close(t, db)

	jaytest.Equal(t, jaytest.Body(t, db, "users/1"), `{"Name":"Ann","Age":40}`)
	jaytest.Equal(t, strings.Join(jaytest.Rows(t, db, "from Users where Name = 'Ann' select Age"), " "), `{"Age":40}`)
	jaytest.Equal(t, strings.Join(jaytest.Rows(t, db, "from Users where Age = 40 select Name"), " "), `{"Name":"Ann"}`)
	x, err := db.Query("Users").Where(jay.Eq("Age", 40)).Explain(ctx)
	if err != nil || !strings.Contains(fmt.Sprint(x), `index "age"`) {
		t.Errorf("got %v, %v", x, err)
	}

	_, err = db.Put(ctx, "users/1", json.RawMessage(`{"Name":"Bob"}`), jay.InCollection("Users"))
	unknownKind(t, "replace", err)
	_, err = db.Put(ctx, "users/2", json.RawMessage(`{"Name":"Bob"}`), jay.InCollection("Users"))
	unknownKind(t, "insert", err)
	_, err = db.Patch(ctx, "users/1", jay.Set("Name", "Bob"))
	unknownKind(t, "patch", err)
	_, err = db.Attachments("users/1").Put(ctx, "a", strings.NewReader("x"))
	unknownKind(t, "attach", err)
	unknownKind(t, "delete", db.Delete(ctx, "users/1"))
	unknownKind(t, "declare", db.EnsureIndex(ctx, "Users", jay.Index{Name: "sound", Fields: []string{"Name"}, Kind: "phonetic"}))
	jaytest.Put(t, db, "things/1", `{"Name":"Bob"}`, jay.InCollection("Things"))
	jaytest.Equal(t, jaytest.Body(t, db, "users/1"), `{"Name":"Ann","Age":40}`)

	r, err := db.Verify(ctx, nil)
	if err != nil || r.Found != 0 || len(r.NotCompared) != 1 || !strings.Contains(r.NotCompared[0], `"phonetic"`) {
		t.Errorf("got %d damages, not compared %q, %v", r.Found, r.NotCompared, err)
	}
}

// Ensure that an index of an unknown kind is dropped with its entries, after which documents are
// written again, and that a hint for it says why it is not used.
func TestKind_UnknownDropped(t *testing.T) {
	ctx := context.Background()
	db := jaytest.Open(t, withUnknownKind(t), nil)
	defer jaytest.Close(t, db)
	_, err := db.Query("Users").UseIndex("sound").Where(jay.Eq("Name", "Ann")).All(ctx)
	if !errors.Is(err, jay.ErrNoIndex) || !strings.Contains(err.Error(), `"phonetic"`) {
		t.Errorf("got %v", err)
	}
	before, err := checks.IndexKeys(db)
	jaytest.Must(t, err)
	jaytest.Must(t, db.DropIndex(ctx, "Users", "sound"))
	after, err := checks.IndexKeys(db)
	jaytest.Must(t, err)
	jaytest.Equal(t, before-after, 1)
	jaytest.Put(t, db, "users/1", `{"Name":"Bob","Age":41}`, jay.InCollection("Users"))
	jaytest.Must(t, checks.Indexes(db))
}

// Ensure that a repair leaves an index of an unknown kind out, and says so.
func TestKind_UnknownRepaired(t *testing.T) {
	ctx := context.Background()
	dir, to := withUnknownKind(t), t.TempDir()+"/repaired"
	r, err := jay.Repair(ctx, dir, to, nil, nil)
	jaytest.Must(t, err)
	if len(r.Lost) != 1 || !strings.Contains(r.Lost[0].Why, `"phonetic"`) {
		t.Errorf("lost %v", r.Lost)
	}
	db := jaytest.Open(t, to, nil)
	defer jaytest.Close(t, db)
	list, err := db.Indexes(ctx, "")
	if err != nil || len(list) != 1 || list[0].Name != "age" {
		t.Errorf("got %v, %v", list, err)
	}
	jaytest.Put(t, db, "users/2", `{"Name":"Bob","Age":41}`, jay.InCollection("Users"))
}
