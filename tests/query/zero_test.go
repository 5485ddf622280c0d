package query_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/jaydb/jay"
)

// runAll runs a query in every way, and returns the errors.
func runAll[T any](q jay.Query[T]) map[string]error {
	found := make(map[string]error)
	for _, err := range q.Iter(ctx) {
		found["Iter"] = err
	}
	_, found["All"] = q.All(ctx)
	_, found["First"] = q.First(ctx)
	_, found["Exists"] = q.Exists(ctx)
	_, found["Count"] = q.Count(ctx)
	_, found["Page"] = q.Page(ctx)
	_, found["Page after"] = q.After("x").Page(ctx)
	_, found["Explain"] = q.Explain(ctx)
	_, found["Patch"] = q.Patch(ctx, jay.Set("a", 1))
	_, found["Delete"] = q.Delete(ctx)
	_, found["Rows"] = q.Rows().All(ctx)
	_, found["Select"] = jay.Select[json.RawMessage](q, "a").All(ctx)
	_, found["refined"] = q.Where(jay.Eq("a", 1)).OrderBy("a").GroupBy("b").Limit(1).All(ctx)
	return found
}

// Ensure that a query that no method has made, or one beside an error, fails with a
// typed error however it is run.
func TestQuery_Zero(t *testing.T) {
	t.Parallel()
	db := memory(t, nil)
	check := func(name string, found map[string]error, text string, want error) {
		t.Helper()
		for method, err := range found {
			if !errors.Is(err, want) {
				t.Errorf("%s, %s: got %v, want %v", name, method, err, want)
			}
		}
		if !strings.HasPrefix(text, "invalid query: ") {
			t.Errorf("%s: String is %q", name, text)
		}
	}
	var documents jay.Query[jay.Document]
	check("zero", runAll(documents), documents.String(), jay.ErrUsage)
	var typed jay.Query[versionedBike]
	check("zero, typed", runAll(typed), typed.String(), jay.ErrUsage)
	broken, err := db.RQL("from Bikes wher x = 1", nil)
	if !errors.Is(err, jay.ErrSyntax) {
		t.Fatalf("got %v", err)
	}
	check("beside an error", runAll(broken), broken.String(), jay.ErrSyntax)
	ofNothing := jay.QueryOf[versionedBike](nil)
	check("of no session", runAll(ofNothing), ofNothing.String(), jay.ErrUsage)
	invalid := db.Query("Bikes").Where(jay.Eq("a[", 1))
	check("with an invalid condition", runAll(invalid), invalid.String(), jay.ErrQuery)
}

// Ensure that a read of a document of another collection says where it is, and is both
// ErrNotFound and ErrCollection.
func TestCollection_ReadOfAnother(t *testing.T) {
	t.Parallel()
	db := memory(t, nil)
	bikes, err := jay.CollectionOf[versionedBike](db, jay.Named("Bikes"))
	must(t, err)
	_, err = db.Put(ctx, "customers/1-A", json.RawMessage(`{}`), jay.InCollection("Customers"))
	must(t, err)
	found := make(map[string]error)
	_, found["Get"] = bikes.Get(ctx, "customers/1-A")
	_, found["GetMany"] = bikes.GetMany(ctx, "customers/1-A")
	s := db.OpenSession(jay.WithCollections(bikes))
	_, found["Load"] = jay.Load[versionedBike](ctx, s, "customers/1-A")
	found["Tx"] = db.View(ctx, func(tx *jay.Tx) error {
		_, err := bikes.In(tx).Get(ctx, "customers/1-A")
		return err
	})
	for method, err := range found {
		var in *jay.CollectionError
		if !errors.As(err, &in) || in.Current != "Customers" || in.Given != "Bikes" || in.ID != "customers/1-A" ||
			!errors.Is(err, jay.ErrCollection) || !errors.Is(err, jay.ErrNotFound) {
			t.Errorf("%s: got %v", method, err)
		}
		if err == nil || !strings.Contains(err.Error(), `document "customers/1-A" is in collection "Customers", not in "Bikes"`) || strings.Contains(err.Error(), "move") {
			t.Errorf("%s: got %v", method, err)
		}
	}
	if _, err = bikes.Put(ctx, &versionedBike{ID: "customers/1-A"}, jay.AnyVersion()); !errors.Is(err, jay.ErrCollection) || errors.Is(err, jay.ErrNotFound) {
		t.Errorf("Put: got %v, want ErrCollection only", err)
	}
}
