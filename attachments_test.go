package jay_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
)

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// Ensure that an attachment comes back as it was put, that its document lists it as
// RavenDB does, and that each change of it is a write of the document.
func TestAttachments_PutGetDelete(t *testing.T) {
	db := memory(t, nil)
	before := put(t, db, "users/Ann", `{"Name":"Ann"}`, jay.InCollection("Users"))
	a := db.Attachments("USERS/ann")

	var m jay.Metadata
	photo := randomBytes(1, 1000)
	info, err := a.Put(ctx, "Photo.png", bytes.NewReader(photo), jay.ContentType("image/png"), jay.Returning(&m), jay.IfMatch(before.ChangeVector))
	must(t, err)
	equal(t, info, jay.Attachment{Name: "Photo.png", Hash: hashOf(photo), ContentType: "image/png", Size: 1000})
	if m.Etag <= before.Etag || m.ID != "users/Ann" || m.Collection != "Users" {
		t.Errorf("the write has metadata %+v", m)
	}
	equal(t, fmt.Sprint(m.Attachments), fmt.Sprint([]jay.Attachment{info}))

	doc, err := db.Get(ctx, "users/ann")
	must(t, err)
	equal(t, doc.ChangeVector(), m.ChangeVector)
	text, err := doc.MarshalJSON()
	must(t, err)
	want := `{"Name":"Ann","@metadata":{"@attachments":[{"Name":"Photo.png","Hash":"` + info.Hash + `","ContentType":"image/png","Size":1000}],"@collection":"Users","@change-vector":"` + m.ChangeVector + `","@flags":"HasAttachments","@id":"users/Ann","@last-modified":"`
	if !strings.HasPrefix(string(text), want) || !json.Valid(text) {
		t.Errorf("got %s, want %s…", text, want)
	}

	// Names are compared as IDs are.
	got, err := attached(t, a, "photo.PNG")
	must(t, err)
	equal(t, string(got), string(photo))
	stat, err := a.Stat(ctx, "PHOTO.png")
	must(t, err)
	equal(t, stat, info)

	// Another one under the name takes its place.
	attach(t, db, "users/Ann", "photo.png", []byte("small"))
	attach(t, db, "users/Ann", "another", []byte("small"))
	list, err := a.List(ctx)
	must(t, err)
	equal(t, fmt.Sprint(list), fmt.Sprint([]jay.Attachment{{Name: "another", Hash: hashOf([]byte("small")), Size: 5}, {Name: "photo.png", Hash: hashOf([]byte("small")), Size: 5}}))
	jaytest.CheckContents(t, db)

	// A delete of one that is not there writes nothing.
	doc, err = db.Get(ctx, "users/ann")
	must(t, err)
	must(t, a.Delete(ctx, "nothing"))
	again, err := db.Get(ctx, "users/ann")
	must(t, err)
	equal(t, again.ChangeVector(), doc.ChangeVector())
	must(t, a.Delete(ctx, "ANOTHER", jay.Returning(&m)))
	equal(t, len(m.Attachments), 1)
	must(t, a.Delete(ctx, "photo.png"))
	doc, err = db.Get(ctx, "users/ann")
	must(t, err)
	text, err = doc.MarshalJSON()
	must(t, err)
	if strings.Contains(string(text), "attachments") || strings.Contains(string(text), "flags") {
		t.Errorf("without attachments: %s", text)
	}
	jaytest.CheckContents(t, db)
	equal(t, jaytest.ChunkKeys(t, db), 0)
}

// Ensure that what cannot be is refused by a typed error before the stream is read, and
// changes nothing.
func TestAttachments_Refused(t *testing.T) {
	db := memory(t, &jay.Options{MaxAttachmentBytes: 100, MaxAttachments: 3})
	m := put(t, db, "users/1", `{}`)
	unread := iotest.ErrReader(errors.New("it was read"))
	for name, rule := range map[string]string{
		"": "empty", "a\x00b": "control", "\x1f": "control", "a\nb": "control", "a\x7f": "control", "a\xff": "UTF-8", strings.Repeat("x", 513): "bytes", strings.Repeat("é", 500): "bytes",
	} {
		a := db.Attachments("users/1")
		_, putErr := a.Put(ctx, name, unread)
		_, getErr := a.Get(ctx, name)
		_, statErr := a.Stat(ctx, name)
		for _, err := range []error{putErr, getErr, statErr, a.Delete(ctx, name)} {
			var refused *jay.AttachmentError
			if !errors.As(err, &refused) || !errors.Is(err, jay.ErrInvalidAttachment) || !strings.Contains(refused.Rule, rule) || refused.Name != name {
				t.Errorf("%.20q: got %v, want an AttachmentError about %q", name, err, rule)
			}
		}
		if name == "" {
			continue // the name stays
		}
		for _, err := range []error{a.Rename(ctx, "x", name), a.Copy(ctx, name, "users/1", "y")} {
			if err == nil {
				t.Errorf("%.20q: no error", name)
			}
		}
	}
	for _, contentType := range []string{"a\x00", "\xff", strings.Repeat("x", 257)} {
		if _, err := db.Attachments("users/1").Put(ctx, "x", unread, jay.ContentType(contentType)); !errors.Is(err, jay.ErrInvalidAttachment) {
			t.Errorf("content type %.20q: %v", contentType, err)
		}
	}

	for what, test := range map[string]struct {
		err  error
		want error
	}{
		"no document":          {second(db.Attachments("users/2").Put(ctx, "x", unread)), jay.ErrNotFound},
		"a request for an id":  {second(db.Attachments("users|").Put(ctx, "x", unread)), jay.ErrNotFound},
		"no document, version": {second(db.Attachments("users/2").Put(ctx, "x", unread, jay.IfMatch("A:1-x"))), jay.ErrConflict},
		"another version":      {second(db.Attachments("users/1").Put(ctx, "x", unread, jay.IfMatch("A:1-x"))), jay.ErrConflict},
		"not to be there":      {second(db.Attachments("users/1").Put(ctx, "x", unread, jay.IfMatch(""))), jay.ErrConflict},
		"no reader":            {second(db.Attachments("users/1").Put(ctx, "x", nil)), jay.ErrUsage},
		"a collection":         {second(db.Attachments("users/1").Put(ctx, "x", strings.NewReader(""), jay.InCollection("Users"))), jay.ErrUsage},
		"metadata":             {second(db.Attachments("users/1").Put(ctx, "x", strings.NewReader(""), jay.WithMetadata([]byte(`{"k":1}`)))), jay.ErrUsage},
		"type of a put":        {second(db.Put(ctx, "users/1", []byte(`{}`), jay.ContentType("x"))), jay.ErrUsage},
		"type of a delete":     {db.Delete(ctx, "users/1", jay.ContentType("x")), jay.ErrUsage},
		"type of a removal":    {db.Attachments("users/1").Delete(ctx, "x", jay.ContentType("x")), jay.ErrUsage},
		"type of a patch":      {second(db.Patch(ctx, "users/1", jay.Set("a", 1), jay.ContentType("x"))), jay.ErrUsage},
		"get: no document":     {second(db.Attachments("users/2").Get(ctx, "x")), jay.ErrNotFound},
		"get: no attachment":   {second(db.Attachments("users/1").Get(ctx, "x")), jay.ErrNoAttachment},
		"stat: no attachment":  {second(db.Attachments("users/1").Stat(ctx, "x")), jay.ErrNotFound},
		"list: no document":    {second(db.Attachments("users/2").List(ctx)), jay.ErrNotFound},
		"delete: no document":  {db.Attachments("users/2").Delete(ctx, "x"), jay.ErrNotFound},
		"delete: version":      {db.Attachments("users/1").Delete(ctx, "x", jay.IfMatch("A:1-x")), jay.ErrConflict},
		"copy: no attachment":  {db.Attachments("users/1").Copy(ctx, "x", "users/1", "y"), jay.ErrNoAttachment},
		"too long":             {second(db.Attachments("users/1").Put(ctx, "x", bytes.NewReader(make([]byte, 101)))), jay.ErrInvalidAttachment},
		"broken":               {second(db.Attachments("users/1").Put(ctx, "x", iotest.ErrReader(io.ErrUnexpectedEOF))), io.ErrUnexpectedEOF},
		"no progress":          {second(db.Attachments("users/1").Put(ctx, "x", nothing{})), io.ErrNoProgress},
		"cancelled":            {second(db.Attachments("users/1").Put(cancelled(), "x", unread)), context.Canceled},
	} {
		if !errors.Is(test.err, test.want) {
			t.Errorf("%s: got %v, want %v", what, test.err, test.want)
		}
	}
	doc, err := db.Get(ctx, "users/1")
	must(t, err)
	equal(t, doc.ChangeVector(), m.ChangeVector)
	jaytest.CheckContents(t, db)

	// At the limits.
	attach(t, db, "users/1", strings.Repeat("é", 256), make([]byte, 100), jay.ContentType(strings.Repeat("x", 256)))
	attach(t, db, "users/1", "../../etc/passwd", nil)
	attach(t, db, "users/1", `C:\"<>|*?`, []byte("x"))
	attach(t, db, "users/1", "../../etc/passwd", []byte("y"))
	var refused *jay.AttachmentError
	if _, err := db.Attachments("users/1").Put(ctx, "fourth", strings.NewReader("")); !errors.As(err, &refused) || refused.Limit != 3 || refused.Actual != 4 {
		t.Errorf("a fourth attachment: %v", err)
	}
	jaytest.CheckContents(t, db)
	text, err := doc.MarshalJSON()
	must(t, err)
	if !json.Valid(text) {
		t.Errorf("%s", text)
	}
}

// nothing reads nothing.
type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, nil }

func second[T any](_ T, err error) error { return err }

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// Ensure that contents of all sizes around the bounds of chunks come back, whole, in
// small pieces, in ranges, at offsets, and by WriteTo.
func TestAttachments_Sizes(t *testing.T) {
	sample.OneGoroutine(t)
	defer checks.SetChunkBytes(1000)()
	db := memory(t, &jay.Options{Durability: jay.Relaxed})
	put(t, db, "a/1", `{}`)
	random := rand.New(rand.NewPCG(1, 2))
	sizes := []int{0, 1, 2, 999, 1000, 1001, 1999, 2000, 2001, 3000, 12_345, 100_000}
	for range 10 {
		sizes = append(sizes, random.IntN(20_000))
	}
	for i, size := range sizes {
		content := randomBytes(uint64(i), size)
		var from io.Reader = bytes.NewReader(content)
		switch i % 4 {
		case 1:
			from = iotest.HalfReader(from)
		case 2:
			from = iotest.DataErrReader(from)
		}
		info, err := db.Attachments("a/1").Put(ctx, "x", from)
		must(t, err)
		equal(t, info, jay.Attachment{Name: "x", Hash: hashOf(content), Size: int64(size)})
		r, err := db.Attachments("a/1").Get(ctx, "x")
		must(t, err)
		equal(t, r.Info(), info)
		must(t, iotest.TestReader(r, content)) // reads, ranges, seeks, offsets
		_, err = r.Seek(0, io.SeekStart)
		must(t, err)
		var whole bytes.Buffer
		n, err := r.WriteTo(&whole)
		must(t, err)
		if n != int64(size) || !bytes.Equal(whole.Bytes(), content) {
			t.Errorf("size %d: WriteTo wrote %d bytes, others or not", size, n)
		}
		if size > 10 {
			_, err = r.Seek(5, io.SeekStart)
			must(t, err)
			whole.Reset()
			if _, err = r.WriteTo(&failingWriter{w: &whole, left: size / 2}); !errors.Is(err, io.ErrShortWrite) {
				t.Errorf("a short write: %v", err)
			}
			rest, err := io.ReadAll(r)
			must(t, err)
			equal(t, whole.String()+string(rest), string(content[5:]))
		}
		must(t, r.Close())
		must(t, r.Close())
		if _, err := r.Read(make([]byte, 1)); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
	jaytest.CheckContents(t, db)
}

// failingWriter writes no more than some bytes.
type failingWriter struct {
	w    io.Writer
	left int
}

func (f *failingWriter) Write(p []byte) (int, error) {
	n := min(len(p), f.left)
	f.left -= n
	return f.w.Write(p[:n])
}

// Ensure that some MB come back with chunks as they are.
func TestAttachments_Large(t *testing.T) {
	t.Parallel()
	db := open(t, t.TempDir(), &jay.Options{Durability: jay.Relaxed})
	defer closeDB(t, db)
	put(t, db, "a/1", `{}`)
	content := randomBytes(9, 6_000_000)
	attach(t, db, "a/1", "large", content)
	equal(t, jaytest.ChunkKeys(t, db), 23)
	got, err := attached(t, db.Attachments("a/1"), "large")
	must(t, err)
	if !bytes.Equal(got, content) {
		t.Error("other bytes came back")
	}
	must(t, db.Delete(ctx, "a/1"))
	jaytest.CheckContents(t, db)
	equal(t, jaytest.ChunkKeys(t, db), 0)
}

// names lists the attachments of a document, as a transaction or the database has it.
func names(t testing.TB, a jay.Attachments) string {
	t.Helper()
	list, err := a.List(ctx)
	must(t, err)
	out := []string{}
	for _, one := range list {
		out = append(out, one.Name)
	}
	return strings.Join(out, " ")
}

// Ensure that a transaction sees its own changes of attachments, in the documents that
// it writes too, and that they are there when it commits, or not at all.
func TestTx_Attachments(t *testing.T) {
	defer checks.SetChunkBytes(10)()
	db := memory(t, nil)
	put(t, db, "a/1", `{"n":1}`)
	put(t, db, "a/2", `{"n":2}`)
	attach(t, db, "a/1", "x", randomBytes(1, 35))
	attach(t, db, "a/1", "y", randomBytes(2, 5))
	for _, commit := range []bool{false, true} {
		err := db.Update(ctx, func(tx *jay.Tx) error {
			one, two := tx.Attachments("a/1"), tx.Attachments("a/2")
			if _, err := tx.Put(ctx, "a/1", []byte(`{"n":3}`)); err != nil { // it has not read the document
				return err
			}
			doc, err := tx.Get(ctx, "a/1")
			must(t, err)
			equal(t, len(doc.Metadata().Attachments), 2)
			must(t, one.Copy(ctx, "x", "a/2", "copy"))
			must(t, one.Move(ctx, "y", "a/2", ""))
			must(t, one.Rename(ctx, "X", "z"))
			_, err = two.Put(ctx, "new", strings.NewReader("a content of three chunks"), jay.ContentType("text/plain"))
			must(t, err)
			equal(t, names(t, one), "z")
			equal(t, names(t, two), "copy new y")
			if _, err := tx.Put(ctx, "a/2", []byte(`{"n":4}`)); err != nil {
				return err
			}
			equal(t, names(t, two), "copy new y")
			got, err := attached(t, two, "copy")
			must(t, err)
			equal(t, string(got), string(randomBytes(1, 35)))
			if _, err := two.Get(ctx, "new"); !errors.Is(err, jay.ErrUsage) {
				t.Errorf("what was put: %v", err)
			}
			if err := one.Delete(ctx, "y"); err != nil { // it is not there any more
				return err
			}
			must(t, tx.Delete(ctx, "a/1"))
			if _, err := one.List(ctx); !errors.Is(err, jay.ErrNotFound) {
				t.Errorf("of a deleted document: %v", err)
			}
			if _, err := tx.Insert(ctx, "a/1", []byte(`{"n":5}`)); err != nil {
				return err
			}
			equal(t, names(t, one), "")
			err = tx.Savepoint(ctx, func() error {
				_, err := one.Put(ctx, "undone", strings.NewReader("a content that is undone"))
				must(t, err)
				return errSkipped
			})
			equal(t, err, errSkipped)
			equal(t, names(t, one), "")
			if !commit {
				return errSkipped
			}
			return nil
		})
		if want := errSkipped; commit {
			must(t, err)
		} else {
			equal(t, err, want)
			equal(t, names(t, db.Attachments("a/1")), "x y")
			equal(t, names(t, db.Attachments("a/2")), "")
		}
		jaytest.CheckContents(t, db)
	}
	equal(t, names(t, db.Attachments("a/1")), "")
	equal(t, names(t, db.Attachments("a/2")), "copy new y")
	got, err := attached(t, db.Attachments("a/2"), "new")
	must(t, err)
	equal(t, string(got), "a content of three chunks")
	equal(t, body(t, db, "a/2"), `{"n":4}`)
}

// Ensure that a transaction that has looked at attachments loses against a change of
// them, with a ConflictError, and that its readers end with it.
func TestTx_Attachments_Conflict(t *testing.T) {
	defer checks.SetChunkBytes(10)()
	db := memory(t, nil)
	put(t, db, "a/1", `{}`)
	put(t, db, "a/2", `{}`)
	attach(t, db, "a/1", "x", randomBytes(1, 35))
	for i, look := range []func(tx *jay.Tx) error{
		func(tx *jay.Tx) error { return second(tx.Attachments("a/1").List(ctx)) },
		func(tx *jay.Tx) error { return tx.Attachments("a/1").Copy(ctx, "x", "a/2", "") },
		func(tx *jay.Tx) error {
			if _, err := tx.Put(ctx, "a/1", []byte(`{}`)); err != nil {
				return err
			}
			return second(tx.Attachments("a/1").List(ctx))
		},
	} {
		var r *jay.AttachmentReader
		err := db.Update(ctx, func(tx *jay.Tx) (err error) {
			r, err = tx.Attachments("a/1").Get(ctx, "x")
			must(t, err)
			must(t, look(tx))
			attach(t, db, "a/1", "other", []byte(fmt.Sprint(i)))
			must(t, checks.RemoveContents(db))
			content, err := io.ReadAll(r)
			must(t, err)
			equal(t, string(content), string(randomBytes(1, 35)))
			_, err = tx.Put(ctx, "b", []byte(`{}`))
			return err
		})
		if !errors.Is(err, jay.ErrConflict) {
			t.Errorf("%d: %v, want ErrConflict", i, err)
		}
		_, err = r.Seek(0, io.SeekStart)
		must(t, err)
		if _, err := io.ReadAll(r); !errors.Is(err, jay.ErrTxDone) {
			t.Errorf("a reader after the transaction: %v", err)
		}
		must(t, r.Close())
	}
	err := db.View(ctx, func(tx *jay.Tx) error {
		got, err := attached(t, tx.Attachments("a/1"), "x")
		must(t, err)
		equal(t, len(got), 35)
		return tx.Attachments("a/1").Delete(ctx, "x")
	})
	if !errors.Is(err, jay.ErrUsage) {
		t.Errorf("a delete in a View: %v", err)
	}
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		var m jay.Metadata
		if _, err := tx.Attachments("a/1").Put(ctx, "z", strings.NewReader("z"), jay.IfMatch("A:1-x")); !errors.Is(err, jay.ErrConflict) {
			t.Errorf("another version: %v", err)
		}
		return tx.Attachments("a/1").Delete(ctx, "x", jay.Returning(&m))
	}))
	jaytest.CheckContents(t, db)
}

// Ensure that a collection that is dropped takes its attachments along.
func TestAttachments_DropCollection(t *testing.T) {
	defer checks.SetChunkBytes(10)()
	db := memory(t, nil)
	for i := range 20 {
		put(t, db, fmt.Sprint("users/", i), `{}`, jay.InCollection("Users"))
		attach(t, db, fmt.Sprint("users/", i), "x", randomBytes(uint64(i%5), 35))
	}
	put(t, db, "other", `{}`)
	must(t, db.Attachments("users/3").Copy(ctx, "x", "other", "y"))
	_, err := db.DropCollection(ctx, "Users")
	must(t, err)
	jaytest.CheckContents(t, db)
	equal(t, jaytest.ChunkKeys(t, db), 4)
	got, err := attached(t, db.Attachments("other"), "y")
	must(t, err)
	equal(t, string(got), string(randomBytes(3, 35)))
}

// Ensure that the writes of a document keep its attachments: all verbs, one by one and in
// batches that are read ahead, with an index and without.
func TestAttachments_StayWithDocument(t *testing.T) {
	for _, indexed := range []bool{false, true} {
		db := memory(t, &jay.Options{DocumentCacheBytes: -1})
		if indexed {
			must(t, db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"n"}}))
		}
		put(t, db, "users/1", `{"n":1}`, jay.InCollection("Users"))
		info := attach(t, db, "users/1", "x", []byte("hello"))
		check := func(what string) {
			t.Helper()
			list, err := db.Attachments("users/1").List(ctx)
			must(t, err)
			if len(list) != 1 || list[0] != info {
				t.Errorf("%s: %v", what, list)
			}
			must(t, checks.Contents(db))
		}
		put(t, db, "users/1", `{"n":2}`)
		check("put")
		_, err := db.Replace(ctx, "Users/1", []byte(`{"n":3,"@metadata":{"@attachments":[{"Name":"y"}],"@flags":"x"}}`))
		must(t, err)
		check("replace")
		_, err = db.Patch(ctx, "users/1", jay.Increment("n", 1))
		must(t, err)
		check("patch")
		var b jay.Batch
		for i := range 300 {
			b.Put(fmt.Sprint("users/", i), []byte(`{"n":5}`), jay.InCollection("Users"))
		}
		b.Patch("users/1", jay.Increment("n", 1))
		_, err = db.Apply(ctx, &b)
		must(t, err)
		check("large batch")
		must(t, db.Update(ctx, func(tx *jay.Tx) error { _, err := tx.Put(ctx, "users/1", []byte(`{"n":6}`)); return err }))
		check("transaction")
		_, err = db.Query("Users").Where(jay.Eq("n", 6)).Patch(ctx, jay.Set("n", 7))
		must(t, err)
		check("query")
		n, err := db.Query("Users").Where(jay.Eq("n", 7)).Count(ctx)
		must(t, err)
		equal(t, n, 1)
		if indexed {
			must(t, checks.Indexes(db))
		}
		must(t, db.Attachments("users/1").Rename(ctx, "x", "y"))
		n, err = db.Query("Users").Where(jay.Eq("n", 7)).Count(ctx)
		must(t, err)
		equal(t, n, 1)
	}
}

// Ensure that a stream that breaks at any byte, in any way, stores nothing.
func TestAttachments_BrokenStream(t *testing.T) {
	defer checks.SetChunkBytes(10)()
	db := memory(t, &jay.Options{MaxAttachmentBytes: 60})
	m := put(t, db, "a/1", `{}`)
	for n := range 45 {
		broken := io.MultiReader(bytes.NewReader(randomBytes(4, n)), iotest.ErrReader(io.ErrUnexpectedEOF))
		if _, err := db.Attachments("a/1").Put(ctx, "x", broken); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("broken after %d bytes: %v", n, err)
		}
		func() {
			defer func() { equal(t, fmt.Sprint(recover()), "a panic") }()
			_, err := db.Attachments("a/1").Put(ctx, "x", io.MultiReader(bytes.NewReader(randomBytes(4, n)), panicReader{}))
			t.Errorf("a panic after %d bytes: %v", n, err)
		}()
		if n%9 == 0 {
			jaytest.CheckContents(t, db)
			equal(t, jaytest.ChunkKeys(t, db), 0)
		}
	}
	if _, err := db.Attachments("a/1").Put(ctx, "x", bytes.NewReader(make([]byte, 61))); !errors.Is(err, jay.ErrInvalidAttachment) {
		t.Errorf("a byte too many: %v", err)
	}
	jaytest.CheckContents(t, db)
	equal(t, jaytest.ChunkKeys(t, db), 0)
	doc, err := db.Get(ctx, "a/1")
	must(t, err)
	equal(t, doc.ChangeVector(), m.ChangeVector)
}

// panicReader panics.
type panicReader struct{}

func (panicReader) Read([]byte) (int, error) { panic("a panic") }

// Ensure that a reader shows the whole of what it has opened, though the attachment is
// deleted, replaced and put again meanwhile and its chunks could be removed, and that
// they are when it is closed.
func TestAttachments_Reader_Deleted(t *testing.T) {
	defer checks.SetChunkBytes(10)()
	for _, size := range []int{0, 5, 10, 11, 95} {
		db := memory(t, nil)
		put(t, db, "a/1", `{}`)
		content := randomBytes(6, size)
		attach(t, db, "a/1", "x", content)
		chunks := jaytest.ChunkKeys(t, db)
		var readers []*jay.AttachmentReader
		for range 2 {
			r, err := db.Attachments("a/1").Get(ctx, "x")
			must(t, err)
			readers = append(readers, r)
		}
		begin := make([]byte, size/2)
		_, err := io.ReadFull(readers[0], begin)
		must(t, err)
		must(t, db.Attachments("a/1").Delete(ctx, "x"))
		must(t, checks.RemoveContents(db))
		attach(t, db, "a/1", "x", content)
		attach(t, db, "a/1", "x", []byte("other"))
		must(t, checks.RemoveContents(db))
		rest, err := io.ReadAll(readers[0])
		must(t, err)
		equal(t, string(begin)+string(rest), string(content))
		must(t, readers[0].Close())
		must(t, checks.RemoveContents(db))
		must(t, iotest.TestReader(readers[1], content))
		if size > 10 {
			equal(t, jaytest.ChunkKeys(t, db), chunks+1)
		}
		must(t, readers[1].Close())
		jaytest.CheckContents(t, db)
		equal(t, jaytest.ChunkKeys(t, db), 1)
	}
}

// Ensure that a reader that is open at Close ends with ErrClosed, and that an upload in
// progress does, and that Close does not wait for either.
func TestAttachments_Close(t *testing.T) {
	defer checks.SetChunkBytes(10)()
	db := open(t, t.TempDir(), nil)
	put(t, db, "a/1", `{}`)
	attach(t, db, "a/1", "x", randomBytes(7, 100))
	r, err := db.Attachments("a/1").Get(ctx, "x")
	must(t, err)
	_, err = io.ReadFull(r, make([]byte, 5))
	must(t, err)
	_, err = db.Attachments("a/1").Put(ctx, "y", &jaytest.HookReader{R: bytes.NewReader(randomBytes(8, 100)), After: 55, Do: func() { closeDB(t, db) }})
	if !errors.Is(err, jay.ErrClosed) {
		t.Errorf("an upload: %v", err)
	}
	if rest, err := io.ReadAll(r); !errors.Is(err, jay.ErrClosed) || len(rest) != 5 {
		t.Errorf("a reader: %d bytes, %v", len(rest), err)
	}
	must(t, r.Close())
	if _, err := db.Attachments("a/1").Get(ctx, "x"); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("a get: %v", err)
	}
	db = open(t, db.Dir(), nil) // sweeps
	jaytest.CheckContents(t, db)
	equal(t, jaytest.ChunkKeys(t, db), 10)
	closeDB(t, db)
}

var errSkipped = errors.New("the transaction changes nothing")

// Ensure that writers, readers and removals of the same few contents at once lose
// nothing: each reader sees whole contents, and what is left fits.
func TestAttachments_Concurrent(t *testing.T) {
	defer checks.SetChunkBytes(50)()
	db := memory(t, nil)
	contents := make(map[string]bool)
	for i := range 4 {
		contents[string(randomBytes(uint64(i), 10+i*80))] = true
	}
	var workers sync.WaitGroup
	for w := range 8 {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 12))
			for range 60 {
				id := fmt.Sprint("docs/", random.IntN(3))
				a := db.Attachments(id)
				var err error
				switch i := random.IntN(4); random.IntN(6) {
				case 0:
					_, err = db.Put(ctx, id, []byte(`{}`))
				case 1, 2:
					_, err = a.Put(ctx, "x", bytes.NewReader(randomBytes(uint64(i), 10+i*80)))
				case 3:
					err = a.Delete(ctx, "x")
				case 4:
					var got []byte
					got, err = attached(t, a, "x")
					if err == nil && !contents[string(got)] {
						t.Errorf("a reader saw %d bytes that nobody wrote", len(got))
					}
				default:
					if i == 0 {
						err = db.Delete(ctx, id)
					} else {
						err = checks.RemoveContents(db)
					}
				}
				if err != nil && !errors.Is(err, jay.ErrNotFound) {
					t.Errorf("worker %d: %v", w, err)
				}
			}
		})
	}
	workers.Wait()
	jaytest.CheckContents(t, db)
}

// Ensure that what is to be removed goes in batches, also where there are more streams, or
// more chunks, than one batch has.
func TestAttachments_Sweep_Batches(t *testing.T) {
	defer checks.SetChunkBytes(1)()
	defer checks.KeepChunks()()
	db := memory(t, &jay.Options{Durability: jay.Relaxed})
	put(t, db, "a/1", `{}`)
	put(t, db, "a/2", `{}`)
	for i := range 150 {
		attach(t, db, "a/1", fmt.Sprint(i), []byte(fmt.Sprintf("%03d", i)))
	}
	attach(t, db, "a/1", "large", randomBytes(1, 2500))
	for range 100 {
		broken := io.MultiReader(strings.NewReader("12345"), iotest.ErrReader(io.ErrUnexpectedEOF))
		if _, err := db.Attachments("a/2").Put(ctx, "x", broken); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
	}
	must(t, db.Delete(ctx, "a/1"))
	equal(t, jaytest.AttachmentCounts(t, db).Removing, 151)
	all, batches := jaytest.ChunkKeys(t, db), 0
	equal(t, all, 150*3+2500+100*5)
	for more := true; more; batches++ {
		var err error
		more, err = checks.RemoveSomeContents(db)
		must(t, err)
		left := jaytest.ChunkKeys(t, db)
		if all-left > 1024 {
			t.Errorf("a batch has removed %d chunks", all-left)
		}
		all = left
		must(t, checks.Contents(db))
	}
	equal(t, all, 0)
	if batches < 4 {
		t.Errorf("%d batches", batches)
	}
	jaytest.CheckContents(t, db)
}

// Ensure that a change of attachments makes a revision where revisions are kept, and that
// a revert leaves the attachments that there are.
func TestAttachments_Revisions(t *testing.T) {
	db := memory(t, nil)
	must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: &jay.RevisionRule{}}))
	first := put(t, db, "a/1", `{"n":1}`)
	attach(t, db, "a/1", "x", []byte("hello"))
	put(t, db, "a/1", `{"n":2}`)
	must(t, db.Attachments("a/1").Rename(ctx, "x", "y"))
	_, err := db.Revisions().Revert(ctx, "a/1", first.ChangeVector)
	must(t, err)
	equal(t, body(t, db, "a/1"), `{"n":1}`)
	list, err := db.Attachments("a/1").List(ctx)
	must(t, err)
	equal(t, len(list), 1)
	equal(t, list[0].Name, "y")
	revisions := 0
	for _, err := range db.Revisions().List(ctx, "a/1", jay.RevisionPage{}) {
		must(t, err)
		revisions++
	}
	equal(t, revisions, 5)
	jaytest.CheckContents(t, db)
	must(t, db.Delete(ctx, "a/1"))
	jaytest.CheckContents(t, db)
	equal(t, jaytest.ChunkKeys(t, db), 0)
}

// Ensure that an upload that stalls holds nothing up: writes, reads, removals and Flush
// go on beside it.
func TestAttachments_Upload_Stalls(t *testing.T) {
	defer checks.SetChunkBytes(10)()
	db := memory(t, nil)
	put(t, db, "a/1", `{}`)
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := second(db.Attachments("a/1").Put(ctx, "x", r))
		_ = r.CloseWithError(errors.New("the put has ended"))
		done <- err
	}()
	_, err := w.Write(randomBytes(1, 25))
	must(t, err)
	put(t, db, "a/1", `{"n":1}`)
	attach(t, db, "a/1", "x", []byte("other"))
	must(t, checks.RemoveContents(db))
	must(t, db.Flush(ctx))
	must(t, db.Compact(ctx))
	_, err = w.Write(randomBytes(2, 25))
	must(t, err)
	must(t, w.Close())
	must(t, <-done)
	got, err := attached(t, db.Attachments("a/1"), "x")
	must(t, err)
	equal(t, string(got), string(randomBytes(1, 25))+string(randomBytes(2, 25)))
	jaytest.CheckContents(t, db)
}
