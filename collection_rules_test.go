package jay_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jaydb/jay"
)

// stamp has a version field.
type stamp struct {
	ID      string
	N       int
	Version string `jay:"version"`
}

// Ensure that Replace of a value without a version replaces whatever version is
// there, and nothing else, in a transaction as well.
func TestCollection_Replace_AnyVersion(t *testing.T) {
	db := memory(t, nil)
	stamps := collectionOf[stamp](t, db)
	if _, err := stamps.Replace(ctx, &stamp{ID: "stamps/1"}); !errors.Is(err, jay.ErrNotFound) || errors.Is(err, jay.ErrConflict) {
		t.Errorf("of a missing document: %v, want ErrNotFound", err)
	}
	first := &stamp{ID: "stamps/1", N: 1}
	_, err := stamps.Put(ctx, first)
	must(t, err)
	second := &stamp{ID: "stamps/1", N: 2}
	_, err = stamps.Replace(ctx, second)
	must(t, err)
	if second.Version == "" || second.Version == first.Version {
		t.Errorf("the version is %q", second.Version)
	}
	if _, err := stamps.Replace(ctx, first); !errors.Is(err, jay.ErrConflict) {
		t.Errorf("with an old version: %v, want ErrConflict", err)
	}
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		_, err := stamps.In(tx).Replace(ctx, &stamp{ID: "stamps/1", N: 3})
		return err
	}))
	if _, err := stamps.Put(ctx, &stamp{ID: "stamps/1", N: 4}); !errors.Is(err, jay.ErrExists) {
		t.Errorf("Put without a version: %v, want ErrExists", err)
	}
	equal(t, body(t, db, "stamps/1"), `{"N":3}`)
}

// Ensure that AnyVersion makes the write of a value with a version field an upsert,
// and that the last of it and IfMatch counts.
func TestAnyVersion(t *testing.T) {
	db := memory(t, nil)
	stamps := collectionOf[stamp](t, db)
	for n := range 2 {
		_, err := stamps.Put(ctx, &stamp{ID: "stamps/1", N: n, Version: "A:99-old"}, jay.AnyVersion())
		must(t, err)
	}
	w, err := db.BulkInsert(nil)
	must(t, err)
	must(t, stamps.BulkStore(ctx, w, &stamp{ID: "stamps/1", N: 7}, jay.AnyVersion()))
	must(t, stamps.BulkStore(ctx, w, &stamp{ID: "stamps/2", N: 8}, jay.AnyVersion()))
	must(t, w.Close())
	equal(t, body(t, db, "stamps/1")+body(t, db, "stamps/2"), `{"N":7}{"N":8}`)
	if _, err := stamps.Put(ctx, &stamp{ID: "stamps/1"}, jay.AnyVersion(), jay.IfMatch("A:99-old")); !errors.Is(err, jay.ErrConflict) {
		t.Errorf("IfMatch behind AnyVersion: %v", err)
	}
	_, err = stamps.Put(ctx, &stamp{ID: "stamps/1"}, jay.IfMatch("A:99-old"), jay.AnyVersion())
	must(t, err)
}

// Ensure that what a value holds cannot make its generator's result a request for
// another strategy, and that the value keeps its empty ID.
func TestWithIDs_SemanticOnly(t *testing.T) {
	byName := func(_ context.Context, u *User) (string, error) { return "users/" + u.Name, nil }
	whole := func(_ context.Context, u *User) (string, error) { return u.Name, nil }
	inDatabase := jay.Conventions{ID: func(ctx context.Context, _ string, v any) (string, error) { return byName(ctx, v.(*User)) }}
	for _, test := range []struct {
		name string
		opts *jay.Options
		of   []jay.CollectionOption
		user string
	}{
		{"server-side", nil, []jay.CollectionOption{jay.WithIDs(byName)}, ""},
		{"server-side by a part", nil, []jay.CollectionOption{jay.WithIDs(byName)}, "ends/"},
		{"identity", nil, []jay.CollectionOption{jay.WithIDs(byName)}, "ann|"},
		{"GUID", nil, []jay.CollectionOption{jay.WithIDs(whole)}, ""},
		{"blank", nil, []jay.CollectionOption{jay.WithIDs(whole)}, " \t"},
		{"convention", &jay.Options{Conventions: inDatabase}, nil, "ann|"},
		{"after a request", nil, []jay.CollectionOption{jay.WithIDRequest("users|"), jay.WithIDs(byName)}, "ann|"},
	} {
		t.Run(test.name, func(t *testing.T) {
			db := memory(t, test.opts)
			users := collectionOf[User](t, db, test.of...)
			before := dump(t, db)
			u := &User{Name: test.user}
			_, err := users.Insert(ctx, u)
			var wrong *jay.IDError
			if !errors.As(err, &wrong) || !errors.Is(err, jay.ErrInvalidID) || u.ID != "" {
				t.Errorf("got %v and the id %q, want an *IDError", err, u.ID)
			}
			if err := db.OpenSession(jay.WithCollections(users)).Store(ctx, u); !errors.Is(err, jay.ErrInvalidID) || u.ID != "" {
				t.Errorf("in a session: got %v and the id %q, want an *IDError", err, u.ID)
			}
			equal(t, dump(t, db), before)
			good := &User{Name: "a|b/c"}
			_, err = users.Insert(ctx, good)
			must(t, err)
		})
	}
}

// Ensure that a convention can name the request for the IDs of all collections, and
// that options of a collection replace it.
func TestConventions_IDRequest(t *testing.T) {
	db := memory(t, &jay.Options{Conventions: jay.Conventions{IDRequest: func(collection string) string { return collection + "|" }}})
	for _, test := range []struct {
		opts []jay.CollectionOption
		want string
	}{
		{nil, "Users/1"},
		{[]jay.CollectionOption{jay.WithIDRequest("people|")}, "people/1"},
		{[]jay.CollectionOption{jay.WithIDs(func(context.Context, *User) (string, error) { return "users/ann", nil })}, "users/ann"},
	} {
		u := &User{}
		_, err := collectionOf[User](t, db, test.opts...).Insert(ctx, u)
		must(t, err)
		equal(t, u.ID, test.want)
	}
}
