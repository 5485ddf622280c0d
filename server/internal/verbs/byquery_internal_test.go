package verbs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
)

// FuzzSplitUpdate ensures that a query and its script are parts of the text.
func FuzzSplitUpdate(f *testing.F) {
	for _, seed := range []string{`from A update { this.x = 1 }`, "from A where x = 'update {' // update {\n update{}", `from A /* update { */ Update {a}} `, `from A update {`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		query, source, err := SplitUpdate(text)
		if err == nil && (!strings.HasPrefix(text, query) || !strings.Contains(text, strings.TrimLeft(source, "\n"))) {
			t.Fatalf("%q: %q and %q", text, query, source)
		}
	})
}

// Ensure that a change by query leaves documents as they are that other writes have changed
// since the query found them, so that they do not satisfy its condition any more.
func TestByQuery_Overtaken(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var all jay.Batch
	for i := range 2 * byQueryBatch {
		all.Put(fmt.Sprintf("n/%03d", i), []byte(`{"old":true}`), jay.InCollection("Ns"))
	}
	if _, err := db.Apply(ctx, &all); err != nil {
		t.Fatal(err)
	}
	s := &serve.Server{Options: serve.Options{Now: time.Now}, Operations: serve.NewOperations(time.Now)}
	s.Operations.Changed = func(string, int64, serve.OperationState) {}
	const changed, gone = "n/200", "n/201" // of the second batch
	b := &ByQuery{Text: "from Ns where old = true", Missing: "NotFound", Details: true}
	q, err := db.RQL(b.Text, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b.matcher, err = q.Matcher(); err != nil {
		t.Fatal(err)
	}
	overtaken := false
	b.Each = func(ctx context.Context, tx *jay.Tx, id string) (string, error) {
		if !overtaken {
			overtaken = true
			if _, err := db.Put(ctx, changed, []byte(`{"old":false}`), jay.InCollection("Ns")); err != nil {
				return "", err
			}
			if err := db.Delete(ctx, gone); err != nil {
				return "", err
			}
		}
		return "Deleted", tx.Delete(ctx, id)
	}
	result, err := changeAll(s, ctx, db, new(serve.Operation), b, new(serve.Budget).Holding(""), int64(2*byQueryBatch))
	if err != nil {
		t.Fatal(err)
	}
	left, err := db.RQL("from @all_docs", nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := left.Count(ctx); err != nil || n != 1 {
		t.Errorf("%d documents are left, %v, want 1", n, err)
	}
	if doc, err := db.Get(ctx, changed); err != nil || string(doc.Body()) != `{"old":false}` {
		t.Errorf("the one that another write has changed: %v", err)
	}
	var details []struct{ Status string }
	if err := json.Unmarshal(result.(serve.Detailed).Details, &details); err != nil {
		t.Fatal(err)
	}
	for i, want := range map[int]string{199: "Deleted", 200: PatchSkipped, 201: "NotFound"} {
		if got := details[i].Status; got != want {
			t.Errorf("document %d: %v, want %s", i, got, want)
		}
	}
}
