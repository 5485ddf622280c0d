package docs

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"unsafe"

	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/metadata"
)

// Internal: the room of a document cannot be seen from outside.

// Ensure that a document has the room it was asked for, all of it its own, in
// one allocation, whatever its size.
func TestAllocDocument(t *testing.T) {
	var doc *Document
	var room []byte
	for n := range maxDocAlloc + 1 {
		allocs := testing.AllocsPerRun(10, func() { doc, room = allocDocument(n) })
		if allocs != 1 || len(room) != n || !bytes.Equal(room, make([]byte, n)) || doc.JSON() != nil || doc.FoldedID() != "" {
			t.Fatalf("%d bytes: %v allocations, room for %d, document %v", n, allocs, len(room), doc)
		}
	}
}

// Ensure that a document shares no memory with the record it was made of, that
// nothing can be appended to its body into other parts of it, and that an ID that
// is kept does not keep the document.
func TestCopyDocument(t *testing.T) {
	r := NewReader(env.New(), 0)
	for _, id := range []string{"", "Users/1-A"} {
		for size := 2; size < maxDocAlloc+100; size += 7 {
			h := metadata.Header{Etag: 300, Collection: []byte("Users"), Custom: []byte(`{"k":1}`)}
			if id != "" {
				h.ID = []byte(id)
			}
			body := append(append([]byte{'{'}, bytes.Repeat([]byte{' '}, size-2)...), '}')
			record := append(h.AppendTail(h.AppendHead(nil)), body...)
			folded := []byte("users/1-a")

			doc, err := r.CopyDocument(folded, record)
			if err != nil {
				t.Fatal(err)
			}
			clear(record)
			clear(folded)
			_ = append(doc.JSON(), "a body has no room behind it"...)
			want := "users/1-a"
			if id != "" {
				want = id
			}
			if doc.FoldedID() != "users/1-a" || doc.ID() != want || doc.Collection() != "Users" || !bytes.Equal(doc.JSON(), body) ||
				string(doc.Metadata().Custom) != `{"k":1}` || doc.Header().Etag != 300 {
				t.Fatalf("body of %d bytes, ID %q: got %q, %+v", size, id, doc.FoldedID(), doc.Metadata())
			}
			if cap(doc.JSON()) != len(doc.JSON()) {
				t.Fatalf("body of %d bytes has room for %d", size, cap(doc.JSON()))
			}
			if kept := doc.ID(); unsafe.StringData(kept) == unsafe.StringData(doc.FoldedID()) {
				t.Fatalf("the ID %q is in the document's memory", kept)
			}
		}
	}
}

// Ensure that a record that is not one is errs.ErrCorrupt at every size.
func TestCopyDocument_Corrupt(t *testing.T) {
	r := NewReader(env.New(), 0)
	for size := range maxDocAlloc + 100 {
		if doc, err := r.CopyDocument([]byte("users/1-a"), make([]byte, size)); doc != nil || !errors.Is(err, errs.ErrCorrupt) {
			t.Fatalf("%d bytes: got %v, %v", size, doc, err)
		}
	}
}

// Ensure that a document has the header that it was made of, in memory of its own, and that it is
// as small as its sizes of allocations were chosen for.
func TestDocument_Header(t *testing.T) {
	if documentBytes > 128 {
		t.Errorf("a document has %d bytes beside its ID and its record", documentBytes)
	}
	r := NewReader(env.New(), 0)
	for parts := range 32 {
		h := metadata.Header{Node: 3, Etag: 300, Modified: 1 << 60, Timed: parts&16 != 0}
		for i, text := range []*[]byte{&h.Collection, &h.ID, &h.Custom} {
			if parts&(1<<i) != 0 {
				*text = []byte([]string{"Users", "Users/1-A", `{"k":1}`}[i])
			}
		}
		if parts&8 != 0 {
			h.Attachments, h.Revision = []byte("a list"), 7
		}
		check := func(how string, d *Document) {
			t.Helper()
			got := d.Header()
			if len(h.Collection) == 0 {
				got.Collection = nil // as good as an empty one
			}
			if !reflect.DeepEqual(got, h) {
				t.Errorf("%s: header %+v, want %+v", how, got, h)
			}
			if d.Collection() != string(h.Collection) && len(h.Collection) > 0 || d.Metadata().Etag != 300 || string(d.JSON()) != "{}" {
				t.Errorf("%s: %+v %s", how, d.Metadata(), d.JSON())
			}
		}
		record := append(h.AppendTail(h.AppendHead(nil)), "{}"...)
		copied, err := r.CopyDocument([]byte("users/1-a"), record)
		if err != nil {
			t.Fatal(err)
		}
		check("copied", copied)
		pinned, err := r.Pinned(append([]byte{'d'}, "users/1-a\x00"...), record)
		if err != nil {
			t.Fatal(err)
		}
		check("pinned", &pinned)

		given := h
		for _, text := range []*[]byte{&given.Collection, &given.ID, &given.Custom, &given.Attachments} {
			*text = bytes.Clone(*text)
		}
		made := Make(nil, "users/1-a", given, []byte("{}"))
		for _, text := range [][]byte{given.Collection, given.ID, given.Custom, given.Attachments} {
			clear(text)
		}
		check("made", &made)
		made.SetRevision(9)
		if made.Header().Revision != 9 {
			t.Error("the revision was not set")
		}
	}
}
