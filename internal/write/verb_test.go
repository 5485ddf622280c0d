package write_test

// That verbs do what their answers say is checked with the ops that only the packages of
// Jay make.

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/patch"
)

// opOf returns an op of a verb, or nil if this test knows none.
func opOf(t *testing.T, db *jay.DB, v write.Verb, id string) *write.Op {
	t.Helper()
	o := &write.Op{Request: write.Request{Verb: v, RequestID: id}}
	switch v {
	case write.Put, write.Insert, write.Replace:
		o.Body = []byte(`{"N":7}`)
	case write.Patch:
		o.Patched().Edits = []patch.Edit{patch.Increment("N", 1)}
	case write.Attach:
		u, err := parts.Of(db).Upload(context.Background(), strings.NewReader("text"))
		if err != nil {
			t.Fatal(err)
		}
		o.Attached().Changes = []write.AttachmentChange{{Entry: format.Attachment{Name: "notes", Size: u.Size(), Hash: u.Hash()}, Upload: u}}
	case write.Exchange:
		o.Exchanging, o.Body = new(write.Exchanging), []byte(`7`)
	case write.Delete, write.Keep:
	default:
		return nil
	}
	return o
}

// Ensure that each verb is prepared and staged, and does to a document, to one that is not
// there, and with a request for an ID what it is said to do.
func TestVerb_Answers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := memoryDB(t)
	writeOp := func(v write.Verb, id string) (*write.Op, error) {
		o := opOf(t, db, v, id)
		if o == nil {
			t.Fatalf("verb %d: this test knows no op of it", v)
		}
		return o, parts.Of(db).Write(ctx, []*write.Op{o})
	}
	for v := range write.VerbCount {
		id := "docs/" + v.Operation()
		if _, err := writeOp(v, "none/"+id); errors.Is(err, errs.ErrNotFound) != (v.MustExist() || v.KeepsBody() || v.KeepsVersion()) {
			t.Errorf("%s without a document: %v", v, err)
		}

		before, err := db.Put(ctx, id, []byte(`{"N":1}`))
		if err != nil {
			t.Fatal(err)
		}
		_, err = writeOp(v, id)
		if errors.Is(err, errs.ErrExists) != v.MustBeNew() {
			t.Errorf("%s over a document: %v", v, err)
		}
		if v.MustBeNew() {
			if err := db.Delete(ctx, id); err != nil {
				t.Fatal(err)
			}
			if _, err := writeOp(v, id); err != nil {
				t.Errorf("%s again: %v", v, err)
			}
		}
		doc, err := db.Get(ctx, id)
		if errors.Is(err, errs.ErrNotFound) != v.Deletes() {
			t.Errorf("%s: a document afterwards: %v", v, err)
		}
		if err == nil {
			want := `{"N":1}`
			switch {
			case v.GivesBody():
				want = `{"N":7}`
			case v.Edits():
				want = `{"N":2}`
			}
			if got := string(doc.Body()); got != want {
				t.Errorf("%s: got %s, want %s", v, got, want)
			}
			changed := v.GivesBody() || v.Edits() || v.KeepsBody()
			if (doc.ChangeVector() != before.ChangeVector) != changed {
				t.Errorf("%s: the version was %s and is %s", v, before.ChangeVector, doc.ChangeVector())
			}
			if v.KeepsVersion() != (doc.Metadata().Flags&metadata.HasRevisions != 0) {
				t.Errorf("%s: the flags are %q", v, doc.Metadata().Flags)
			}
		}

		o, err := writeOp(v, id+"/")
		if refused := errors.Is(err, ids.ErrInvalid) || errors.Is(err, ids.ErrUsage); refused != v.NeedsID() {
			t.Errorf("%s of a request for an id: %v", v, err)
		}
		if err == nil && (o.ID == id+"/") != v.IsLiteral() {
			t.Errorf("%s of a request for an id: it has made %q", v, o.ID)
		}
	}
}
