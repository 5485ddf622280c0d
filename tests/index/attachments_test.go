package index_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
)

// Ensure that a build does not leave out a document that got an attachment after the build had read it: its body is the same, but the build takes
// it for one whose write has staged the entries.
func TestBuild_BesideAttachments(t *testing.T) {
	for _, ix := range []jay.Index{{Name: "byA", Fields: []string{"a"}}, {Name: "byA", Fields: []string{"a"}, Unique: true}, {Name: "byA", Fields: []string{"a", "load(Owner).Name"}}} {
		db := jaytest.Memory(t, nil)
		jaytest.Put(t, db, "owners/1", `{"Name":"Ann"}`, jay.InCollection("Owners"))
		jaytest.Put(t, db, "things/1", `{"a":1}`, jay.InCollection("Things"))
		jaytest.Put(t, db, "things/2", `{"a":2,"Owner":"owners/1"}`, jay.InCollection("Things"))
		jaytest.Put(t, db, "things/3", `{"a":3}`, jay.InCollection("Things"))
		var once sync.Once
		restore := checks.OnBuildChunk(func(_ context.Context, state jay.IndexState) {
			if state == jay.IndexBuilding {
				once.Do(func() {
					if _, err := db.Attachments("things/2").Put(ctx, "x", strings.NewReader("abc")); err != nil {
						t.Error(err)
					}
				})
			}
		})
		err := db.EnsureIndex(ctx, "Things", ix)
		restore()
		jaytest.Must(t, err)
		all, err := db.Query("Things").Where(jay.Eq("a", 2)).UseIndex("byA").All(ctx)
		if err != nil || len(all) != 1 || checks.Indexes(db) != nil {
			t.Errorf("%+v: the query finds %d documents, %v; %v", ix, len(all), err, checks.Indexes(db))
		}
	}
}

// Ensure that two documents with one value are told when a unique index is built, although one of them gets an attachment meanwhile.
func TestBuild_UniqueBesideAttachments(t *testing.T) {
	db := jaytest.Memory(t, nil)
	jaytest.Put(t, db, "things/1", `{"a":1}`, jay.InCollection("Things"))
	jaytest.Put(t, db, "things/2", `{"a":1}`, jay.InCollection("Things"))
	var once sync.Once
	restore := checks.OnBuildChunk(func(_ context.Context, state jay.IndexState) {
		if state == jay.IndexBuilding {
			once.Do(func() { _, _ = db.Attachments("things/2").Put(ctx, "x", strings.NewReader("abc")) }) // it may be refused
		}
	})
	defer restore()
	if err := db.EnsureIndex(ctx, "Things", jay.Index{Name: "byA", Fields: []string{"a"}, Unique: true}); !errors.Is(err, jay.ErrUnique) {
		t.Errorf("got %v", err)
	}
}
