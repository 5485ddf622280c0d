package query_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that a page that its bytes end is sorted although all answers up to its limit are
// more than a query may hold: large documents come one on a page, and none is missing.
func TestQuery_PageBytes_LargeDocumentsSorted(t *testing.T) {
	db, err := jay.Open(t.TempDir(), &jay.Options{MaxQueryBytes: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	var want []string
	var b jay.Batch
	for i := range 60 {
		size := 10
		if i%7 == 0 {
			size = 40_000
		}
		id := fmt.Sprintf("a/%02d", i)
		b.Put(id, json.RawMessage(fmt.Sprintf(`{"n":%d,"t":%q}`, i*17%60, strings.Repeat("x", size))), jay.InCollection("A"))
	}
	if _, err := db.Apply(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	for n := range 60 {
		for i := range 60 {
			if i*17%60 == n {
				want = append(want, fmt.Sprintf("a/%02d", i))
			}
		}
	}
	for _, pageBytes := range []int{1, 1_000, 30_000} {
		q := db.Query("A").OrderBy("n").Limit(50).PageBytes(pageBytes)
		var got []string
		for cursor := ""; ; {
			page, err := q.After(cursor).Page(t.Context())
			if err != nil {
				t.Fatalf("pages of %d bytes: %v", pageBytes, err)
			}
			for _, doc := range page.Items {
				got = append(got, doc.ID())
			}
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("pages of %d bytes: got %v, want %v", pageBytes, got, want)
		}
	}
	if _, err := db.Query("A").OrderBy("n").Limit(50).Page(t.Context()); err == nil {
		t.Error("a page that its bytes do not end holds more than a query may")
	}
}
