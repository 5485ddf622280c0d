package smuggler_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/transfer/smuggler"
)

// lookalikes are documents that look like what formats have beside documents.
var lookalikes = []string{
	`{"n":1,"@metadata":{"@jay":"counters"}}`,
	`{"version":1,"id":"docs/0","name":"n","type":"","size":0,"hash":"","@metadata":{"@jay":"attachment"}}`,
	`{"n":1,"@metadata":{"@jay":"attachment","needs":"a newer version of jay"}}`,
	`{"data":"aGVsbG8=","@metadata":{"@jay":"attachment-data"}}`,
	`{"n":1,"@metadata":{"@jay":"unknown"}}`,
	`{"n":1,"@metadata":{"@export-type":"Attachment"}}`,
	`{"Hash":"h","Size":10,"Tag":"t","@metadata":{"@export-type":"Attachment"}}`,
	`{"@raven-blob-size":0}`,
	`{"@raven-blob-size":300}`,
	`{"@raven-blob-size":3,"@raven-data":{"DocId":"x"}}`,
	`{"Key":"users|","Value":"{\"Object\":1}"}`,
	`{"@jay":"counters","etag":9}`,
	`{"@id":"other","@collection":"Others","@metadata:json":{"@id":"x"}}`,
}

// Ensure that documents that look like an attachment, a blob or a line of another kind come
// back exactly from an export in each format, and that none of them hides another one.
func TestExporter_Lookalikes(t *testing.T) {
	t.Parallel()
	from := open(t)
	if err := from.Revisions().Configure(t.Context(), jay.RevisionsConfiguration{Default: &jay.RevisionRule{}}); err != nil {
		t.Fatal(err)
	}
	for i, text := range lookalikes {
		for range 2 { // the first version is a revision
			put(t, from, fmt.Sprintf("docs/%d", i), text, jay.InCollection("Docs"))
		}
	}
	put(t, from, "files/1", `{}`)
	attach(t, from, "files/1", "a", "A")
	for _, f := range smuggler.All() {
		to := open(t)
		if _, err := load(t, to, f, export(t, from, f), smuggler.ImportOptions{}); err != nil {
			t.Errorf("%s: got %v", f.Name, err)
			continue
		}
		for i := range lookalikes {
			id := fmt.Sprintf("docs/%d", i)
			want, err := from.Get(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			got, err := to.Get(t.Context(), id)
			if err != nil {
				t.Errorf("%s: got %v", f.Name, err)
				continue
			}
			if !bytes.Equal(got.Body(), want.Body()) || !bytes.Equal(got.Metadata().Custom, want.Metadata().Custom) || got.Metadata().Collection != "Docs" {
				t.Errorf("%s: got %s of %s with %s, want %s with %s", f.Name, got.Body(), got.Metadata().Collection, got.Metadata().Custom, want.Body(), want.Metadata().Custom)
			}
		}
		if f == smuggler.CSV || f == smuggler.ExtendedJSON {
			continue
		}
		if got := attached(t, to, "files/1", "a"); got != "A" {
			t.Errorf("%s: got the attachment %q", f.Name, got)
		}
		checkPast(t, f, from, to)
	}
}

// checkPast checks that a database has the revisions that another one has of the lookalikes.
func checkPast(t *testing.T, f *smuggler.Format, from, to *jay.DB) {
	t.Helper()
	n := 0
	for rev, err := range from.Revisions().All(t.Context(), "Docs") {
		if err != nil {
			t.Fatal(err)
		}
		n++
		got, err := to.Revisions().Get(t.Context(), rev.ID(), rev.ChangeVector())
		if err != nil {
			t.Errorf("%s: got %v for a revision of %s", f.Name, err, rev.ID())
			continue
		}
		if !bytes.Equal(got.Body(), rev.Body()) || !bytes.Equal(got.Metadata().Custom, rev.Metadata().Custom) {
			t.Errorf("%s: got the revision %s with %s, want %s with %s", f.Name, got.Body(), got.Metadata().Custom, rev.Body(), rev.Metadata().Custom)
		}
	}
	if n < len(lookalikes) {
		t.Errorf("got %d revisions, want at least %d", n, len(lookalikes))
	}
}
