package query_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that an order in the words of RQL is refused with the builder's spelling.
func TestQuery_OrderBy_WordsOfRQL(t *testing.T) {
	t.Parallel()
	db := memory(t, nil)
	for text, want := range map[string]string{"serial desc": `descending is "-serial"`, "serial ASC": `ascending is "serial"`} {
		_, err := db.Query("Bikes").OrderBy(text).All(ctx)
		if !errors.Is(err, jay.ErrQuery) || !strings.Contains(err.Error(), want) {
			t.Errorf("OrderBy(%q): got %v, want %s", text, err, want)
		}
	}
}

// Ensure that Select into a struct refuses a column that the struct has no field for.
func TestSelect_ColumnWithoutField(t *testing.T) {
	t.Parallel()
	db := memory(t, nil)
	_, err := db.Put(ctx, "bikes/1", json.RawMessage(`{"serial":"a","year":2026}`), jay.InCollection("Bikes"))
	must(t, err)
	type inner struct{ Year int }
	type bike struct {
		ID string
		inner
		Name string `json:"serial"`
	}
	for _, columns := range [][]string{{"id()", "serial", "year"}, {"SERIAL"}, {"year as serial"}} {
		if _, err := jay.Select[map[string]any](db.Query("Bikes"), columns...).All(ctx); err != nil {
			t.Errorf("%q into a map: %v", columns, err)
		}
	}
	rows, err := jay.Select[bike](db.Query("Bikes"), "id()", "serial", "year").All(ctx)
	if err != nil || len(rows) != 1 || rows[0].ID != "bikes/1" || rows[0].Name != "a" || rows[0].Year != 2026 {
		t.Errorf("got %v, %v", rows, err)
	}
	for _, columns := range [][]string{{"Name"}, {"serial", "colour"}, {"count()"}} {
		if _, err := jay.Select[bike](db.Query("Bikes"), columns...).All(ctx); !errors.Is(err, jay.ErrQuery) || !strings.Contains(err.Error(), "has no field for the column") {
			t.Errorf("%q: got %v, want ErrQuery", columns, err)
		}
	}
}

// Ensure that the items of a page are an array in JSON, beside an error too.
func TestPage_ItemsAreAnArray(t *testing.T) {
	t.Parallel()
	db := memory(t, nil)
	for _, q := range []jay.Query[jay.Document]{db.Query("Bikes"), db.Query("Bikes").Limit(0), db.Query("Bikes").After("x"), {}} {
		page, _ := q.Page(ctx)
		if text, err := json.Marshal(page); err != nil || string(text) != `{"items":[]}` {
			t.Errorf("%v: got %s, %v", q, text, err)
		}
	}
	// So are those of a page that no query has made, and nothing is escaped twice.
	text, err := json.Marshal(map[string]any{"page": jay.Page[string]{}, "pointer": &jay.Page[string]{Next: "<"}})
	must(t, err)
	equal(t, string(text), `{"page":{"items":[]},"pointer":{"items":[],"next":"\u003c"}}`)
	var back jay.Page[string]
	must(t, json.Unmarshal([]byte(`{"items":["a"],"next":"n"}`), &back))
	if len(back.Items) != 1 || *back.Items[0] != "a" || back.Next != "n" {
		t.Errorf("got %+v", back)
	}
}

// Ensure that the error of a new document does not quote a phrase as if it were its ID.
func TestCollection_ErrorOfNewDocument(t *testing.T) {
	t.Parallel()
	db := memory(t, nil)
	bikes, err := jay.CollectionOf[versionedBike](db, jay.Named("Bikes"))
	must(t, err)
	must(t, db.EnsureIndex(ctx, "Bikes", jay.Index{Fields: []string{"Serial"}, Unique: true}))
	_, err = bikes.InsertMany(ctx, []*versionedBike{{Serial: "a"}, {Serial: "a"}})
	if !errors.Is(err, jay.ErrUnique) || !strings.Contains(err.Error(), "insert a new document of Bikes: ") {
		t.Errorf("got %v", err)
	}
}
