package smuggler_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/schema"
	"github.com/jaydb/jay/transfer/smuggler"
)

// openWith returns an empty database with options.
func openWith(t *testing.T, o *jay.Options) *jay.DB {
	t.Helper()
	db, err := jay.OpenMemory(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// put stores a document.
func put(t *testing.T, db *jay.DB, id, body string, o ...jay.WriteOption) {
	t.Helper()
	if _, err := db.Put(t.Context(), id, []byte(body), o...); err != nil {
		t.Fatal(err)
	}
}

// attach stores an attachment.
func attach(t *testing.T, db *jay.DB, id, name, content string) {
	t.Helper()
	if _, err := db.Attachments(id).Put(t.Context(), name, strings.NewReader(content)); err != nil {
		t.Fatal(err)
	}
}

// attached returns the content of an attachment, or "none".
func attached(t *testing.T, db *jay.DB, id, name string) string {
	t.Helper()
	r, err := db.Attachments(id).Get(t.Context(), name)
	if errors.Is(err, jay.ErrNotFound) {
		return "none"
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// export returns an export of a database with all that the format can hold.
func export(t *testing.T, db *jay.DB, f *smuggler.Format) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := smuggler.NewExporter(db, smuggler.ExportOptions{Counters: true}).Write(t.Context(), f, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// load imports an input, and returns what is done.
func load(t *testing.T, db *jay.DB, f *smuggler.Format, input []byte, o smuggler.ImportOptions) (smuggler.ImportProgress, error) {
	t.Helper()
	im := smuggler.NewImporter(db, o)
	if _, err := im.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := im.Load(t.Context(), f, smuggler.Input{Name: "in", Reader: bytes.NewReader(input)})
	if err == nil {
		err = im.Finish(t.Context())
	}
	return im.Progress(), err
}

// Ensure that a content that documents of a dump share is never another one, whatever is
// written meanwhile to the attachment from which it is read, and that the loss of it is an
// error of the attachment that gets none.
func TestImporter_SharedContent(t *testing.T) {
	t.Parallel()
	from := open(t)
	for _, id := range []string{"users/1", "users/2", "users/3"} {
		put(t, from, id, `{"n":1}`)
		attach(t, from, id, "logo", "LOGO")
	}
	attach(t, from, "users/3", "other", "OTHER")
	dump := export(t, from, smuggler.RavenDBDump)
	for _, test := range []struct {
		name      string
		stored    int64 // attachments that are stored before change is called
		change    func(db *jay.DB) error
		at3       string // the logo of the last document
		refused   int
		documents int64 // without rejects
	}{
		{"nothing", 1, func(*jay.DB) error { return nil }, "LOGO", 0, 3},
		{"replaced", 1, func(db *jay.DB) error {
			_, err := db.Attachments("users/1").Put(t.Context(), "logo", strings.NewReader("PRIVATE"))
			return err
		}, "none", 2, 2},
		{"deleted", 1, func(db *jay.DB) error { return db.Attachments("users/1").Delete(t.Context(), "logo") }, "none", 2, 2},
		{"deleted with its document", 1, func(db *jay.DB) error { return db.Delete(t.Context(), "users/1") }, "none", 2, 2},
		{"deleted when there is another one", 2, func(db *jay.DB) error { return db.Delete(t.Context(), "users/1") }, "LOGO", 0, 3},
		{"replaced when there is another one", 2, func(db *jay.DB) error {
			_, err := db.Attachments("users/1").Put(t.Context(), "logo", strings.NewReader("PRIVATE"))
			return err
		}, "LOGO", 0, 3},
	} {
		for _, skips := range []bool{true, false} {
			t.Run(test.name, func(t *testing.T) {
				db := open(t)
				var rejects refused
				changed := false
				o := smuggler.ImportOptions{Report: func(p smuggler.ImportProgress) {
					if changed || p.Attachments != test.stored {
						return
					}
					changed = true
					if err := test.change(db); err != nil {
						t.Error(err)
					}
				}}
				if skips {
					o.Rejects = &rejects
				}
				p, err := load(t, db, smuggler.RavenDBDump, dump, o)
				if skips {
					if err != nil || p.Documents != 3 || len(rejects.whys) != test.refused {
						t.Fatalf("got %v with %d documents and the rejects %v, want %d", err, p.Documents, rejects.whys, test.refused)
					}
					if got := attached(t, db, "users/3", "logo"); got != test.at3 {
						t.Errorf("got the content %q, want %q", got, test.at3)
					}
					if got := attached(t, db, "users/3", "other"); got != "OTHER" {
						t.Errorf("got the content %q of another attachment, want it to be stored", got)
					}
					for _, why := range rejects.whys {
						err = errors.Join(err, why)
					}
				}
				if !skips && p.Documents != test.documents {
					t.Errorf("got %d documents, want %d", p.Documents, test.documents)
				}
				if test.refused == 0 {
					if err != nil {
						t.Errorf("got %v", err)
					}
					return
				}
				if err == nil || !errors.Is(err, jay.ErrInvalidDocument) || !strings.Contains(err.Error(), `"logo" of "users/2"`) {
					t.Errorf("got %v, want the error of the attachment", err)
				}
			})
		}
	}
}

// Ensure that a content is that of the dump when an earlier record with other case has
// replaced the attachment from which it is read.
func TestImporter_SharedContent_Case(t *testing.T) {
	t.Parallel()
	from := openWith(t, &jay.Options{CaseSensitive: true})
	for _, one := range []struct{ id, name, content string }{
		{"users/A", "f", "FIRST"}, {"users/a", "f", "SECOND"}, {"users/b", "f", "FIRST"},
		{"zoo/1", "G", "THIRD"}, {"zoo/1", "g", "FOURTH"}, {"zoo/2", "h", "THIRD"},
	} {
		put(t, from, one.id, `{"n":1}`)
		attach(t, from, one.id, one.name, one.content)
	}
	var rejects refused
	to := open(t)
	if _, err := load(t, to, smuggler.RavenDBDump, export(t, from, smuggler.RavenDBDump), smuggler.ImportOptions{Rejects: &rejects}); err != nil {
		t.Fatal(err)
	}
	for id, name := range map[string]string{"users/b": "f", "zoo/2": "h"} {
		if got := attached(t, to, id, name); got != "none" {
			t.Errorf("got the content %q for %s, want none", got, id)
		}
	}
	if len(rejects.whys) != 2 {
		t.Errorf("got the rejects %v, want 2", rejects.whys)
	}
}

// Ensure that an import that is resumed gives a later document the content of the dump, also if
// the attachment with it has another content by then, or is gone.
func TestImporter_SharedContent_Resumed(t *testing.T) {
	t.Parallel()
	from := open(t)
	put(t, from, "users/1", `{"n":1}`)
	attach(t, from, "users/1", "f", "LOGO")
	put(t, from, "users/2", `{"n":2}`)
	put(t, from, "users/3", `{"n":3}`)
	attach(t, from, "users/3", "f", "LOGO")
	dump := export(t, from, smuggler.RavenDBDump)
	for name, change := range map[string]func(to *jay.DB) error{
		"as it was": func(*jay.DB) error { return nil },
		"replaced": func(to *jay.DB) error {
			_, err := to.Attachments("users/1").Put(t.Context(), "f", strings.NewReader("PRIVATE"))
			return err
		},
		"deleted": func(to *jay.DB) error { return to.Delete(t.Context(), "users/1") },
	} {
		to := open(t)
		o := smuggler.ImportOptions{Resume: "r"}
		cut := bytes.Index(dump, []byte(`{"n":3`)) // the checkpoint is behind users/2
		if _, err := load(t, to, smuggler.RavenDBDump, dump[:cut], o); err == nil {
			t.Fatal("got no error of a dump that is cut off")
		}
		if err := change(to); err != nil {
			t.Fatal(err)
		}
		if _, err := load(t, to, smuggler.RavenDBDump, dump, o); err != nil {
			t.Errorf("%s: got %v", name, err)
		}
		if got := attached(t, to, "users/3", "f"); got != "LOGO" {
			t.Errorf("%s: got the content %q, want that of the dump", name, got)
		}
	}
}

// Ensure that a content whose first document is refused or gone waits for the later documents
// with it, and that contents that wait in a small file leave room for those that come.
func TestImporter_SharedContent_Waits(t *testing.T) {
	t.Parallel()
	const documents = 8
	for _, test := range []struct {
		name   string
		insert bool  // the first document of each content is refused; otherwise it is deleted at once
		most   int64 // bytes of the file; with a limit the contents are not shared
	}{{"gone", false, 0}, {"refused", true, 0}, {"gone, in a small file", false, 2500}, {"refused, in a small file", true, 2500}} {
		from, to := open(t), open(t)
		content := func(i int) string { return strings.Repeat(string(rune('A'+i)), 1000) }
		want := int64(0)
		for i := range documents {
			id := string(rune('a' + i))
			put(t, from, id+"/1", `{"n":1}`)
			attach(t, from, id+"/1", "f", content(i))
			put(t, from, id+"/2", `{"n":2}`)
			attach(t, from, id+"/2", "x", "another content of "+id)
			attach(t, from, id+"/2", "y", content(i)+"and more")
			if want += 2; test.most == 0 {
				put(t, from, id+"/3", `{"n":3}`)
				attach(t, from, id+"/3", "f", content(i))
				want++
			}
			if test.insert {
				put(t, to, id+"/1", `{"n":0}`)
			}
		}
		var rejects refused
		p, err := load(t, to, smuggler.RavenDBDump, export(t, from, smuggler.RavenDBDump), smuggler.ImportOptions{Insert: test.insert, MaxSpoolBytes: test.most, Rejects: &rejects, Report: func(p smuggler.ImportProgress) {
			if strings.HasSuffix(p.Last, "/1") {
				if err := to.Delete(t.Context(), p.Last); err != nil {
					t.Error(err)
				}
			}
		}})
		if err != nil || p.Attachments != want || test.insert && len(rejects.whys) != documents || !test.insert && len(rejects.whys) > 0 {
			t.Errorf("%s: got %v with %d attachments and the rejects %v, want %d", test.name, err, p.Attachments, rejects.whys, want)
		}
		for i := range documents {
			id := string(rune('a' + i))
			if attached(t, to, id+"/2", "y") != content(i)+"and more" || test.most == 0 && attached(t, to, id+"/3", "f") != content(i) {
				t.Errorf("%s: got other contents for %s", test.name, id)
			}
		}
	}
}

// Ensure that a content that an earlier document has left in a full file and that comes again,
// as RavenDB may write it, is stored.
func TestImporter_SharedContent_Repeated(t *testing.T) {
	t.Parallel()
	var dump bytes.Buffer
	dump.WriteString(`{"BuildVersion":54000,"Docs":[`)
	content := func(hash string, size int) {
		fmt.Fprintf(&dump, `{"@metadata":{"@export-type":"Attachment"},"Hash":%q,"Size":%d,"Tag":"t"}%s,`, hash, size, strings.Repeat(hash, size))
	}
	content("C", 1000)
	content("A", 1000)
	dump.WriteString(`{"@metadata":{"@id":"docs/1","@attachments":[{"Name":"a","Hash":"A"},{"Name":"c","Hash":"C"}]}},`)
	content("A", 1000)
	content("B", 1600)
	dump.WriteString(`{"@metadata":{"@id":"docs/2","@attachments":[{"Name":"a","Hash":"A"},{"Name":"b","Hash":"B"}]}}]}`)
	to := open(t)
	put(t, to, "docs/1", `{"n":0}`)
	var rejects refused
	_, err := load(t, to, smuggler.RavenDBDump, dump.Bytes(), smuggler.ImportOptions{Insert: true, MaxSpoolBytes: 3000, Rejects: &rejects})
	if err != nil || len(rejects.whys) != 1 {
		t.Errorf("got %v and the rejects %v, want the first document", err, rejects.whys)
	}
	if attached(t, to, "docs/2", "a") != strings.Repeat("A", 1000) || attached(t, to, "docs/2", "b") != strings.Repeat("B", 1600) {
		t.Error("got other contents")
	}
}

// Ensure that the attachments of a document that is refused are refused, too, and do not
// replace those of the document that is there, whatever the reason, and that a later import of
// the rejects stores all of it.
func TestImporter_RefusedOwner(t *testing.T) {
	t.Parallel()
	from := open(t)
	for _, id := range []string{"users/1", "users/2", "users/3"} {
		put(t, from, id, `{"mail":"`+id+`"}`, jay.InCollection("Users"))
		attach(t, from, id, "f", "COPY")
		attach(t, from, id, "g", strings.Repeat("LONG", 1<<15))
	}
	for _, test := range []struct {
		name   string
		insert bool
		change func(db *jay.DB, lines []byte) ([]byte, error)
	}{
		{"it exists", true, func(_ *jay.DB, lines []byte) ([]byte, error) { return lines, nil }},
		{"a schema", false, func(db *jay.DB, lines []byte) ([]byte, error) {
			rule := schema.Rule{Collection: "Users", Mode: schema.Refuse, Schema: []byte(`{"required":["mail"]}`)}
			return bytes.Replace(lines, []byte(`{"mail":"users/2"`), []byte(`{"other":"users/2"`), 1), db.Definitions().Schemas().Set(t.Context(), rule)
		}},
		{"a unique index", false, func(db *jay.DB, lines []byte) ([]byte, error) {
			return bytes.Replace(lines, []byte(`{"mail":"users/2"`), []byte(`{"mail":"users/1"`), 1), db.EnsureIndex(t.Context(), "Users", jay.Index{Fields: []string{"mail"}, Unique: true})
		}},
		{"a name that comes twice", false, func(_ *jay.DB, lines []byte) ([]byte, error) {
			return bytes.Replace(lines, []byte(`{"mail":"users/2"`), []byte(`{"mail":1,"mail":2`), 1), nil
		}},
		{"malformed", false, func(_ *jay.DB, lines []byte) ([]byte, error) {
			return bytes.Replace(lines, []byte(`{"mail":"users/2"`), []byte(`{"mail" "users/2"`), 1), nil
		}},
	} {
		for _, f := range []*smuggler.Format{smuggler.NDJSON, smuggler.RavenDBDump} {
			if test.name == "malformed" && f != smuggler.NDJSON {
				continue // a dump ends there
			}
			db := openWith(t, &jay.Options{Schemas: named{}})
			put(t, db, "users/2", `{"mail":"present"}`, jay.InCollection("Users"))
			attach(t, db, "users/2", "f", "PRESENT")
			input, err := test.change(db, export(t, from, f))
			if err != nil {
				t.Fatal(err)
			}
			var rejects refused
			p, err := load(t, db, f, input, smuggler.ImportOptions{Rejects: &rejects, Insert: test.insert})
			if err != nil || p.Documents != 2 || p.Attachments != 4 {
				t.Errorf("%s, %s: got %v with %d documents and %d attachments, want 2 and 4", test.name, f.Name, err, p.Documents, p.Attachments)
			}
			if got := attached(t, db, "users/2", "f"); got != "PRESENT" {
				t.Errorf("%s, %s: got the attachment %q, want the one that was there", test.name, f.Name, got)
			}
			if f != smuggler.NDJSON || !test.insert {
				continue
			}
			if err := db.Delete(t.Context(), "users/2"); err != nil {
				t.Fatal(err)
			}
			if p, err := load(t, db, f, rejects.Bytes(), smuggler.ImportOptions{Insert: true}); err != nil || p.Documents != 1 || p.Attachments != 2 {
				t.Errorf("%s: got %v with %d documents and %d attachments of the rejects", test.name, err, p.Documents, p.Attachments)
			}
		}
	}
}

// reaching calls fn when so many bytes of r were read.
type reaching struct {
	r    io.Reader
	left int
	fn   func()
}

// Read implements io.Reader, for one byte.
func (r *reaching) Read(p []byte) (int, error) {
	if r.left--; r.left == 0 {
		r.fn()
	}
	return r.r.Read(p[:1])
}

// Ensure that an import leaves out the attachments of a document that has expired or was
// deleted since it was stored, counts them, and stores what follows.
func TestImporter_OwnerIsGone(t *testing.T) {
	t.Parallel()
	from := open(t)
	put(t, from, "logins/1", `{"n":1}`, jay.WithTTL(time.Hour))
	attach(t, from, "logins/1", "a", strings.Repeat("LONG", 1<<15))
	attach(t, from, "logins/1", "b", "B")
	put(t, from, "users/1", `{"n":2}`)
	attach(t, from, "users/1", "c", "C")
	for _, f := range []*smuggler.Format{smuggler.NDJSON, smuggler.JSON, smuggler.RavenDBDump} {
		input := export(t, from, f)
		firstBytes, secondLine := len(input), len(input)
		if at := bytes.Index(input, []byte(`"attachment-data"`)); at > 0 {
			firstBytes = at + 1000
			secondLine = firstBytes + bytes.Index(input[firstBytes:], []byte(`"attachment-data"`)) + 1000
		}
		for name, at := range map[string]int{"expired": -1, "deleted at once": 0, "deleted in the first bytes": firstBytes, "deleted in later bytes": secondLine} {
			if at == len(input) {
				continue // a dump has no such lines
			}
			o := &jay.Options{}
			if at < 0 {
				o = &jay.Options{ExactExpiry: true, Now: func() time.Time { return time.Now().Add(2 * time.Hour) }}
			}
			to := openWith(t, o)
			gone := func() {
				if err := to.Delete(t.Context(), "logins/1"); err != nil {
					t.Error(err)
				}
			}
			var options smuggler.ImportOptions
			if at == 0 {
				options.Report = func(p smuggler.ImportProgress) {
					if p.Documents == 1 && p.Attachments == 0 && p.LeftOut == nil {
						gone()
					}
				}
			}
			im := smuggler.NewImporter(to, options)
			err := im.Load(t.Context(), f, smuggler.Input{Name: "in", Reader: &reaching{bytes.NewReader(input), at, gone}})
			p := im.Progress()
			if err != nil || p.Documents != 2 || p.Attachments != 1 || p.LeftOut[smuggler.LeftAttachments] != 2 {
				t.Errorf("%s, %s: got %v and %+v, want two documents, one attachment, and two that are left out", f.Name, name, err, p)
			}
			if got := attached(t, to, "users/1", "c"); got != "C" {
				t.Errorf("%s, %s: got the attachment %q of the next document", f.Name, name, got)
			}
		}
	}
}

// Ensure that an import that is resumed leaves out the attachments that follow its checkpoint,
// if their document has expired meanwhile.
func TestImporter_OwnerIsGone_Resumed(t *testing.T) {
	t.Parallel()
	from := open(t)
	put(t, from, "logins/1", `{"n":1}`)
	attach(t, from, "logins/1", "a", "A")
	put(t, from, "users/1", `{"n":2}`)
	for _, f := range []*smuggler.Format{smuggler.NDJSON, smuggler.RavenDBDump} {
		input, to := export(t, from, f), open(t)
		cut := bytes.Index(input, []byte(`{"n":2`))
		if _, err := load(t, to, f, input[:cut+1], smuggler.ImportOptions{Resume: "r"}); err == nil {
			t.Fatal("got no error of an input that is cut off")
		}
		if err := to.Delete(t.Context(), "logins/1"); err != nil {
			t.Fatal(err)
		}
		p, err := load(t, to, f, input, smuggler.ImportOptions{Resume: "r"})
		if found, _ := to.Exists(t.Context(), "users/1"); err != nil || !found {
			t.Errorf("%s: got %v and %+v, want the last document", f.Name, err, p)
		}
	}
}
