package attachments_test

// These tests look at the contents of attachments as they lie in storage, which the public
// API does not show.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/attachments"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/storage"
)

// Ensure that the bytes of attachments are those of docs/format.md, which holds this
// dump.
func TestAttachments_Layout_Golden(t *testing.T) {
	defer checks.SetChunkBytes(4)()
	ctx := context.Background()
	db := jaytest.Dumped(t)
	defer db.Close()
	parts.Of(db).Contents.Stop() // nothing is removed
	var b jay.Batch
	b.Put("users/ann", []byte(`{"Name":"Ann"}`), jay.InCollection("Users"))
	b.Put("users/bob", []byte(`{"Name":"Bob"}`), jay.InCollection("Users"))
	if _, err := db.Apply(ctx, &b); err != nil {
		t.Fatal(err)
	}
	broken := io.MultiReader(strings.NewReader("broken"), errorReader{})
	if _, err := db.Attachments("users/ann").Put(ctx, "broken", broken); !errors.Is(err, errBrokenStream) {
		t.Fatal(err)
	}
	for _, a := range []struct{ id, name, content, contentType string }{
		{"users/ann", "Hi.txt", "hello", "text/plain"},
		{"users/ann", "a", "one", ""},
		{"users/bob", "hi", "hello", ""}, // once more
		{"users/ann", "none", "", ""},
		{"users/bob", "gone", "123456789", ""},
	} {
		if _, err := db.Attachments(a.id).Put(ctx, a.name, strings.NewReader(a.content), jay.ContentType(a.contentType)); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Attachments("users/bob").Delete(ctx, "gone"); err != nil {
		t.Fatal(err)
	}
	jaytest.InFormat(t, jaytest.KeysBetween(t, db, format.SpaceAttachments, format.SpaceChunks)+jaytest.KeysBetween(t, db, format.SpaceDocument, format.SpaceDocument))
}

var errBrokenStream = errors.New("the stream is broken")

// errorReader fails.
type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, errBrokenStream }

// Ensure that the records of attachments survive their encoding, and that damaged ones
// are refused and do not panic.
func TestAttachments_Records(t *testing.T) {
	content := format.Content{Stream: 300, Size: 1 << 40, ChunkBytes: 1 << 18, References: 129}
	record := content.Append(nil)
	if got, err := format.DecodeContent(record); got != content || err != nil {
		t.Errorf("got %+v, %v; want %+v", got, err, content)
	}
	for n := range record {
		if _, err := format.DecodeContent(record[:n]); !errors.Is(err, jay.ErrCorrupt) {
			t.Errorf("the first %d bytes are taken for a content", n)
		}
	}
	for _, bad := range []format.Content{{Size: 1, ChunkBytes: 0, References: 1}, {Size: -1, ChunkBytes: 1, References: 1}, {Size: 1, ChunkBytes: 1}, {Size: 1 << 40, ChunkBytes: 1, References: 1}} {
		if _, err := format.DecodeContent(bad.Append(nil)); !errors.Is(err, jay.ErrCorrupt) {
			t.Errorf("%+v is taken for a content", bad)
		}
	}

	list := []format.Attachment{{Name: "a", Size: 0}, {Name: strings.Repeat("b", 300), ContentType: "text/plain", Size: 1 << 35, Hash: format.Hash{1, 2, 3}}}
	stored := format.AppendAttachments(nil, list)
	if got, err := format.DecodeAttachments(stored); fmt.Sprint(got) != fmt.Sprint(list) || err != nil {
		t.Errorf("got %v, %v; want %v", got, err, list)
	}
	whole := 0
	for n := range stored {
		if got, err := format.DecodeAttachments(stored[:n]); err == nil {
			whole++ // none of them, or the first
			if len(got) > 1 {
				t.Errorf("the first %d bytes are taken for %v", n, got)
			}
		} else if !errors.Is(err, jay.ErrCorrupt) {
			t.Errorf("the first %d bytes: %v", n, err)
		}
	}
	if whole != 2 {
		t.Errorf("%d beginnings are lists, want 2", whole)
	}
	for _, chunks := range []uint32{0, 1, 1<<32 - 1} {
		if got, err := format.DecodeChunks(format.AppendChunks(nil, chunks)); got != chunks || err != nil {
			t.Errorf("got %d, %v; want %d", got, err, chunks)
		}
	}
	for _, bad := range []string{"", "\x80", "\x01\x01", "\xff\xff\xff\xff\x1f"} {
		if n, err := format.DecodeChunks([]byte(bad)); !errors.Is(err, jay.ErrCorrupt) {
			t.Errorf("%x is taken for %d", bad, n)
		}
	}
}

// damage changes what is stored at a key.
func damage(t *testing.T, db *jay.DB, fn func(tx storage.Tx) error) {
	t.Helper()
	if err := parts.Of(db).Env.Engine.Update(context.Background(), true, fn); err != nil {
		t.Fatal(err)
	}
}

// Ensure that a reader meets damage as ErrCorrupt: a chunk that is missing, has another
// length or other bytes, a content without a record. And that the check of contents
// finds it.
func TestAttachments_Damage(t *testing.T) {
	defer checks.SetChunkBytes(10)()
	ctx := context.Background()
	text := strings.Repeat("0123456789", 5) + "x"
	for name, harm := range map[string]func(tx storage.Tx, c format.Content, hash *format.Hash) error{
		"missing": func(tx storage.Tx, c format.Content, _ *format.Hash) error {
			tx.Delete(format.ChunkKey(c.Stream, 3))
			return nil
		},
		"short": func(tx storage.Tx, c format.Content, _ *format.Hash) error {
			tx.Set(format.ChunkKey(c.Stream, 2), []byte("0"), nil)
			return nil
		},
		"long": func(tx storage.Tx, c format.Content, _ *format.Hash) error {
			tx.Set(format.ChunkKey(c.Stream, 5), []byte("x1"), nil)
			return nil
		},
		"changed": func(tx storage.Tx, c format.Content, _ *format.Hash) error {
			tx.Set(format.ChunkKey(c.Stream, 0), []byte("9123456789"), nil)
			return nil
		},
		"no record": func(tx storage.Tx, _ format.Content, hash *format.Hash) error {
			tx.Delete(format.ContentKey(hash))
			return nil
		},
		"damaged record": func(tx storage.Tx, _ format.Content, hash *format.Hash) error {
			tx.Set(format.ContentKey(hash), []byte("?"), nil)
			return nil
		},
	} {
		db, err := jay.OpenMemory(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Put(ctx, "a/1", []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Attachments("a/1").Put(ctx, "x", strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		entry, err := entryOf(db, "a/1", "x")
		if err != nil {
			t.Fatal(err)
		}
		content, found, err := attachments.ContentOf(parts.Of(db).Env.Engine, &entry.Hash)
		if err != nil || !found || content.Chunks() != 6 {
			t.Fatalf("%+v, %v, %v", content, found, err)
		}
		damage(t, db, func(tx storage.Tx) error { return harm(tx, content, &entry.Hash) })

		r, err := db.Attachments("a/1").Get(ctx, "x")
		if err == nil {
			var got []byte
			got, err = io.ReadAll(r)
			if string(got) == text {
				t.Errorf("%s: all was read", name)
			}
			if name == "changed" && len(got) > 50 {
				t.Errorf("%s: %d bytes were read, the last chunk among them", name, len(got))
			}
			if _, again := r.Read(make([]byte, 1)); !errors.Is(again, jay.ErrCorrupt) {
				t.Errorf("%s: a later read: %v", name, again)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		if !errors.Is(err, jay.ErrCorrupt) {
			t.Errorf("%s: got %v, want ErrCorrupt", name, err)
		}
		if err := checks.Contents(db); !errors.Is(err, attachments.ErrInconsistent) && !errors.Is(err, jay.ErrCorrupt) {
			t.Errorf("%s: the check says %v", name, err)
		}
		damage(t, db, func(tx storage.Tx) error { // as it was, for the check at Close
			tx.Set(format.ContentKey(&entry.Hash), content.Append(nil), nil)
			for i := range content.Chunks() {
				tx.Set(format.ChunkKey(content.Stream, i), []byte(text[i*10:min(int(i)*10+10, len(text))]), nil)
			}
			return nil
		})
		if err := errors.Join(checks.Contents(db), db.Close()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Ensure that the check finds a wrong number of references, a chunk without an owner,
// and a stream with two.
func TestAttachments_Check_CanFail(t *testing.T) {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Put(ctx, "a/1", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Attachments("a/1").Put(ctx, "x", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	if err := checks.Contents(db); err != nil {
		t.Fatal(err)
	}
	for _, key := range [][]byte{format.ChunkKey(7, 0), format.GarbageKey(1), format.UploadKey(1), format.ChunkKey(1, 1)} {
		damage(t, db, func(tx storage.Tx) error { tx.Set(key, format.AppendChunks(nil, 1), nil); return nil })
		if err := checks.Contents(db); !errors.Is(err, attachments.ErrInconsistent) {
			t.Errorf("with key %x: %v", key, err)
		}
		damage(t, db, func(tx storage.Tx) error { tx.Delete(key); return nil })
	}
	entry, err := entryOf(db, "a/1", "x")
	if err != nil {
		t.Fatal(err)
	}
	content, _, err := attachments.ContentOf(parts.Of(db).Env.Engine, &entry.Hash)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []uint64{2, 1} {
		content.References = n
		damage(t, db, func(tx storage.Tx) error {
			tx.Set(format.ContentKey(&entry.Hash), content.Append(nil), nil)
			return nil
		})
		if err := checks.Contents(db); (err == nil) != (n == 1) {
			t.Errorf("with %d references: %v", n, err)
		}
	}
}

// Ensure that a reader that comes with an old snapshot, when the chunks are gone or about
// to go, does not begin: those it would miss could be removed at any time.
func TestAttachments_Reader_Late(t *testing.T) {
	defer checks.SetChunkBytes(10)()
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Put(ctx, "a/1", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	put := func() {
		t.Helper()
		if _, err := db.Attachments("a/1").Put(ctx, "x", strings.NewReader(strings.Repeat("0123456789", 5))); err != nil {
			t.Fatal(err)
		}
	}
	put()
	entry, err := entryOf(db, "a/1", "x")
	if err != nil {
		t.Fatal(err)
	}
	snapshot := parts.Of(db).Env.Engine.Snapshot()
	open := func() error {
		content, err := parts.Of(db).Contents.OpenContent(snapshot, &entry.Hash)
		if err == nil {
			content.Close()
		}
		return err
	}
	if err := open(); err != nil {
		t.Error(err)
	}
	if err := errors.Join(db.Attachments("a/1").Delete(ctx, "x"), checks.RemoveContents(db)); err != nil {
		t.Fatal(err)
	}
	if err := open(); !errors.Is(err, attachments.ErrGone) {
		t.Errorf("it was deleted: %v, want ErrGone", err)
	}
	put() // in another stream
	if err := open(); !errors.Is(err, attachments.ErrGone) {
		t.Errorf("it was put again: %v, want ErrGone", err)
	}
	if err := errors.Join(snapshot.Close(), checks.RemoveContents(db), checks.Contents(db)); err != nil {
		t.Error(err)
	}
}

// entryOf returns the entry of an attachment in the list of its document.
func entryOf(db *jay.DB, id, name string) (format.Attachment, error) {
	doc, err := db.Get(context.Background(), id)
	if err != nil {
		return format.Attachment{}, err
	}
	return parts.Of(db).EntryOf((*docs.Document)(doc).Header().Attachments, id, name)
}
