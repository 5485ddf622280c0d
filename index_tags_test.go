package jay_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jaydb/jay"
)

type taggedAddress struct {
	City string `json:"city" jay:"index=place"`
	Zip  string `jay:"index=place,desc"`
}

type taggedUser struct {
	ID    string
	Email string          `jay:"unique"`
	Born  time.Time       `json:",omitempty" jay:"index,desc,index=byNameAndBirth"`
	Name  string          `jay:"index=byNameAndBirth"`
	Tags  []string        `jay:"index"`
	Homes []taggedAddress `json:"homes.all"`
	Boss  *taggedUser
}

// Ensure that tags declare indexes, and that queries use them.
func TestCollection_EnsureIndexes(t *testing.T) {
	db := memory(t, nil)
	users := collectionOf[taggedUser](t, db)
	declared, err := users.DeclaredIndexes()
	must(t, err)
	want := `[{Email [Email] true } {-Born [-Born as date] false } {byNameAndBirth [Born as date Name] false } {Tags [Tags] false } {place ['homes.all'.city -'homes.all'.Zip] false }]`
	if got := fmt.Sprint(declared); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for range 2 {
		must(t, users.EnsureIndexes(ctx))
	}
	if list, err := db.Indexes(ctx, users.Name()); err != nil || len(list) != 5 {
		t.Errorf("got %v, %v", list, err)
	}
	_, err = users.Insert(ctx, &taggedUser{Email: "a", Tags: []string{"x", "y"}})
	must(t, err)
	if _, err := users.Insert(ctx, &taggedUser{Email: "a"}); !errors.Is(err, jay.ErrUnique) {
		t.Errorf("second a: %v", err)
	}
	if n, err := users.Query().Where(jay.Eq("Tags", "y")).NoScan().Count(ctx); n != 1 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}

	type both struct { // "index,unique" is one index
		ID   string
		Name string `jay:"index,unique"`
		Size int    `jay:"unique,desc,index"`
	}
	declared, err = collectionOf[both](t, db).DeclaredIndexes()
	must(t, err)
	if got, want := fmt.Sprint(declared), `[{Name [Name] true } {-Size [-Size] true } {Size [Size] false }]`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	type misspelt struct {
		ID   string
		Name string `jay:"indexed"`
	}
	bad := collectionOf[misspelt](t, db)
	if err := bad.EnsureIndexes(ctx); !errors.Is(err, jay.ErrIndex) {
		t.Errorf("a tag that means nothing: %v", err)
	}
}
