package jaytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/jaytest"
)

// Dump returns the whole database as text: what must not change when a write
// is refused.
func Dump(t testing.TB, db *jay.DB) string {
	t.Helper()
	var b strings.Builder
	for doc, err := range db.Documents(ctx, jay.Scan{}) {
		if err != nil {
			t.Fatal(err)
		}
		text, err := doc.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	counters, err := db.Counters(ctx)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(counters)
	if err != nil {
		t.Fatal(err)
	}
	b.Write(text)
	return b.String()
}

// BackUp returns a backup of db. In a run in full, a full backup of a database without damage is restored once.
func BackUp(t testing.TB, db *jay.DB, opts ...jay.BackupOption) (jay.BackupInfo, []byte) {
	t.Helper()
	var stream bytes.Buffer
	info, err := db.Backup(ctx, &stream, opts...)
	if err != nil {
		t.Fatal(err)
	}
	if info.Bytes != int64(stream.Len()) {
		t.Errorf("%d bytes are written, and %d are reported", stream.Len(), info.Bytes)
	}
	if !testing.Short() && info.Base == "" {
		if r, err := db.Verify(ctx, nil); err == nil && r.Found == 0 { // else Restore refuses it
			jaytest.CheckBackup(t, stream.Bytes())
		}
	}
	return info, stream.Bytes()
}

// Documents returns all documents of a database with their metadata, by ID.
func Documents(t testing.TB, db *jay.DB) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for doc, err := range db.Documents(ctx, jay.Scan{}) {
		if err != nil {
			t.Fatal(err)
		}
		text, err := doc.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		all[doc.ID()] = string(text)
	}
	return all
}

// Incompressible returns a database with so many documents of a few kB.
func Incompressible(t testing.TB, n int) *jay.DB {
	t.Helper()
	db := Memory(t, nil)
	state := uint64(1)
	var b jay.Batch
	for i := range n {
		var text strings.Builder
		for text.Len() < 4000 {
			state = state*6364136223846793005 + 1442695040888963407
			fmt.Fprintf(&text, "%x", state)
		}
		b.Put(fmt.Sprint("docs/", i), []byte(`{"s":"`+text.String()+`"}`), jay.InCollection("Docs"))
	}
	if _, err := db.Apply(ctx, &b); err != nil {
		t.Fatal(err)
	}
	return db
}

// Changes returns the changes behind a token, until the feed has caught up.
func Changes(t testing.TB, db *jay.DB, since string, opts ...jay.ChangesOption) (all []jay.Change) {
	t.Helper()
	for c, err := range db.Changes(ctx, since, append(opts, jay.UntilCaughtUp())...) {
		Must(t, err)
		all = append(all, c)
	}
	return all
}

// BulkInsert begins a bulk load, which is closed at the end of the test at the latest.
func BulkInsert(t testing.TB, db *jay.DB, opts *jay.BulkOptions) *jay.BulkWriter {
	t.Helper()
	w, err := db.BulkInsert(opts)
	Must(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// ChangesText says in a line what happened to which document.
func ChangesText(all []jay.Change) string {
	var b strings.Builder
	for i, c := range all {
		if i > 0 {
			b.WriteByte(' ')
		}
		switch {
		case c.Checkpoint:
			fmt.Fprintf(&b, "=%d", c.Etag)
		case c.Deleted:
			fmt.Fprintf(&b, "-%s@%d", c.ID, c.Etag)
		default:
			fmt.Fprintf(&b, "+%s@%d", c.ID, c.Etag)
		}
		if c.Document != nil {
			fmt.Fprintf(&b, "%s", c.Document.Body())
		}
	}
	return b.String()
}

// KeepRevisions configures a default rule.
func KeepRevisions(t testing.TB, db *jay.DB, rule jay.RevisionRule) {
	t.Helper()
	Must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: &rule}))
}

// RevisionBodies returns the bodies of a document's revisions, newest first; of those
// that are deletions "-".
func RevisionBodies(t testing.TB, db *jay.DB, id string, page jay.RevisionPage) string {
	t.Helper()
	var out []string
	for rev, err := range db.Revisions().List(ctx, id, page) {
		Must(t, err)
		if rev.Deletion() {
			out = append(out, "-")
		} else {
			out = append(out, string(rev.Body()))
		}
	}
	return strings.Join(out, " ")
}
