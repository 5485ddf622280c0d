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
	"testing"
	"testing/iotest"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
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
	defer jay.SetChunkBytes(1000)()
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
