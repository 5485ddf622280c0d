package model_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/sample"
)

// Ensure that attachments are what a model of them says, and that right after each step,
// whatever it was, each content is stored once and counted as often as documents have it:
// puts, copies, moves, renames and deletions of attachments, deletions of documents and of
// collections, transactions that commit or not, streams that break, readers that stay
// open, and clean closes.
//
//	go test -run TestAttachments_Model -count=1 -rapid.checks=20000 ./tests/model
func TestAttachments_Model(t *testing.T) {
	sample.OneGoroutine(t)
	defer func(old int) { knobs.AttachmentChunkBytes = old }(knobs.AttachmentChunkBytes)
	knobs.AttachmentChunkBytes = 10
	test := t
	rapid.Check(t, func(t *rapid.T) {
		m := &attachmentsModel{t: t, place: jaytest.NewPlace(test), docs: make(map[string]map[string]string)}
		m.open()
		t.Repeat(map[string]func(*rapid.T){
			"":                            func(*rapid.T) { m.compare() },
			"put a document":              m.putDocument,
			"put":                         m.put,
			"put, too":                    m.put,
			"put a broken stream":         m.putBroken,
			"copy":                        m.copy,
			"move":                        m.move,
			"rename":                      m.rename,
			"delete":                      m.delete,
			"delete a document":           m.deleteDocument,
			"drop a collection":           m.drop,
			"transaction":                 m.transaction,
			"open a reader":               m.openReader,
			"read to the end":             m.readToEnd,
			"close and open the database": m.reopen,
		})
		m.endReaders()
		jaytest.Verify(t, m.db)
		noError(t, m.db.Close())
	})
}

type attachmentsModel struct {
	t       *rapid.T
	place   *jaytest.Place
	db      *jay.DB
	docs    map[string]map[string]string // contents, by document and name
	readers []modelReader
}

// modelReader is a reader that is open, and what it must read.
type modelReader struct {
	*jay.AttachmentReader
	content string
}

func (m *attachmentsModel) open() {
	db, err := m.place.Open(jay.Options{Durability: jay.Relaxed})
	noError(m.t, err)
	m.db = db
}

func attachmentID(t *rapid.T, label string) string {
	return rapid.SampledFrom([]string{"docs/1", "docs/2", "docs/3", "docs/4"}).Draw(t, label)
}

func attachmentName(t *rapid.T, label string) string {
	return rapid.SampledFrom([]string{"a", "b", "../c"}).Draw(t, label)
}

// attachmentContent draws a content: few of them, so that they meet, of none to four chunks.
func attachmentContent(t *rapid.T) string {
	size := rapid.SampledFrom([]int{0, 1, 9, 10, 11, 20, 35}).Draw(t, "size")
	return strings.Repeat(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "letter"), size)
}

// refused checks the error of a call whose document or attachment the model does not
// have, and reports whether that is so.
func (m *attachmentsModel) refused(is bool, err error) bool {
	m.t.Helper()
	if is {
		if !errors.Is(err, jay.ErrNotFound) {
			m.t.Fatalf("it is not there: %v", err)
		}
		return true
	}
	noError(m.t, err)
	return false
}

func (m *attachmentsModel) putDocument(t *rapid.T) {
	id := attachmentID(t, "id")
	_, err := m.db.Put(ctx, id, []byte(`{}`), jay.InCollection("Docs"))
	noError(t, err)
	if m.docs[id] == nil {
		m.docs[id] = make(map[string]string)
	}
}

func (m *attachmentsModel) put(t *rapid.T) {
	id, name, content := attachmentID(t, "id"), attachmentName(t, "name"), attachmentContent(t)
	_, err := m.db.Attachments(id).Put(ctx, name, strings.NewReader(content))
	if !m.refused(m.docs[id] == nil, err) {
		m.docs[id][name] = content
	}
}

// putBroken puts a stream that ends with an error: nothing of it may stay.
func (m *attachmentsModel) putBroken(t *rapid.T) {
	id, content := attachmentID(t, "id"), attachmentContent(t)
	broken := errors.New("broken")
	stream := io.MultiReader(strings.NewReader(content), errorReader{broken})
	_, err := m.db.Attachments(id).Put(ctx, attachmentName(t, "name"), stream)
	if m.docs[id] == nil && errors.Is(err, jay.ErrNotFound) {
		return
	}
	if !errors.Is(err, broken) {
		t.Fatalf("a broken stream: %v", err)
	}
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

func (m *attachmentsModel) copy(t *rapid.T) { m.transfer(t, jay.Attachments.Copy, false) }

func (m *attachmentsModel) move(t *rapid.T) { m.transfer(t, jay.Attachments.Move, true) }

func (m *attachmentsModel) transfer(t *rapid.T, do func(a jay.Attachments, ctx context.Context, name, toID, toName string, opts ...jay.WriteOption) error, moves bool) {
	from, name := attachmentID(t, "from"), attachmentName(t, "name")
	to, as := attachmentID(t, "to"), attachmentName(t, "as")
	content, found := m.docs[from][name]
	err := do(m.db.Attachments(from), ctx, name, to, as)
	if m.refused(!found || m.docs[to] == nil, err) {
		return
	}
	if moves {
		delete(m.docs[from], name)
	}
	m.docs[to][as] = content
}

func (m *attachmentsModel) rename(t *rapid.T) {
	id, name, as := attachmentID(t, "id"), attachmentName(t, "name"), attachmentName(t, "as")
	content, found := m.docs[id][name]
	if m.refused(!found, m.db.Attachments(id).Rename(ctx, name, as)) {
		return
	}
	delete(m.docs[id], name)
	m.docs[id][as] = content
}

func (m *attachmentsModel) delete(t *rapid.T) {
	id, name := attachmentID(t, "id"), attachmentName(t, "name")
	if !m.refused(m.docs[id] == nil, m.db.Attachments(id).Delete(ctx, name)) {
		delete(m.docs[id], name)
	}
}

func (m *attachmentsModel) deleteDocument(t *rapid.T) {
	id := attachmentID(t, "id")
	noError(t, m.db.Delete(ctx, id))
	delete(m.docs, id)
}

func (m *attachmentsModel) drop(t *rapid.T) {
	_, err := m.db.DropCollection(ctx, "Docs")
	noError(t, err)
	clear(m.docs)
}

// transaction changes several attachments, all or none.
func (m *attachmentsModel) transaction(t *rapid.T) {
	after := make(map[string]map[string]string)
	for id, all := range m.docs {
		after[id] = maps.Clone(all)
	}
	aborted := errors.New("aborted")
	aborts := rapid.Bool().Draw(t, "aborts")
	type change struct{ id, name, content, verb string }
	var changes []change
	for range rapid.IntRange(1, 4).Draw(t, "changes") {
		changes = append(changes, change{attachmentID(t, "id"), attachmentName(t, "name"), attachmentContent(t), rapid.SampledFrom([]string{"put", "delete", "delete document"}).Draw(t, "verb")})
	}
	for _, c := range changes {
		switch {
		case after[c.id] == nil:
		case c.verb == "put":
			after[c.id][c.name] = c.content
		case c.verb == "delete":
			delete(after[c.id], c.name)
		default:
			delete(after, c.id)
		}
	}
	err := m.db.Update(ctx, func(tx *jay.Tx) error {
		for _, c := range changes {
			var err error
			switch c.verb {
			case "put":
				_, err = tx.Attachments(c.id).Put(ctx, c.name, strings.NewReader(c.content))
			case "delete":
				err = tx.Attachments(c.id).Delete(ctx, c.name)
			default:
				err = tx.Delete(ctx, c.id)
			}
			if err != nil && !errors.Is(err, jay.ErrNotFound) {
				return err
			}
		}
		if aborts {
			return aborted
		}
		return nil
	})
	switch {
	case aborts && !errors.Is(err, aborted):
		t.Fatalf("an aborted transaction: %v", err)
	case !aborts:
		noError(t, err)
		m.docs = after
	}
}

// openReader opens a reader, which must read its content whatever happens to the attachment.
func (m *attachmentsModel) openReader(t *rapid.T) {
	id, name := attachmentID(t, "id"), attachmentName(t, "name")
	content, found := m.docs[id][name]
	r, err := m.db.Attachments(id).Get(ctx, name)
	if !m.refused(!found, err) {
		m.readers = append(m.readers, modelReader{r, content})
	}
}

func (m *attachmentsModel) readToEnd(t *rapid.T) {
	if len(m.readers) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.readers)-1).Draw(t, "reader")
	m.readers[i].read(t)
	m.readers = slices.Delete(m.readers, i, i+1)
}

func (r *modelReader) read(t *rapid.T) {
	t.Helper()
	got, err := io.ReadAll(r)
	noError(t, err)
	if string(got) != r.content {
		t.Fatalf("a reader got %q, want %q", got, r.content)
	}
	noError(t, r.Close())
}

func (m *attachmentsModel) endReaders() {
	for _, r := range m.readers {
		r.read(m.t)
	}
	m.readers = nil
}

func (m *attachmentsModel) reopen(*rapid.T) {
	m.endReaders()
	jaytest.Verify(m.t, m.db)
	noError(m.t, m.db.Close())
	m.open()
}

// compare compares the attachments and the counts of their contents.
func (m *attachmentsModel) compare() {
	m.t.Helper()
	want := jay.AttachmentStats{}
	contents := make(map[string]bool)
	for id, all := range m.docs {
		list, err := m.db.Attachments(id).List(ctx)
		noError(m.t, err)
		if names := slices.Sorted(maps.Keys(all)); len(list) != len(names) {
			m.t.Fatalf("%s has %v, want %v", id, list, names)
		}
		for _, info := range list {
			content, found := all[info.Name]
			if !found || info.Size != int64(len(content)) {
				m.t.Fatalf("%s has %v, want %q", id, info, content)
			}
			r, err := m.db.Attachments(id).Get(ctx, info.Name)
			noError(m.t, err)
			var got bytes.Buffer
			_, err = r.WriteTo(&got)
			noError(m.t, errors.Join(err, r.Close()))
			if got.String() != content {
				m.t.Fatalf("%s of %s is %q, want %q", info.Name, id, got.String(), content)
			}
			want.Attachments++
			want.Bytes += info.Size
			if !contents[content] {
				contents[content] = true
				want.Contents++
				want.StoredBytes += info.Size
			}
		}
	}
	got, err := m.db.Stats(ctx)
	noError(m.t, err)
	got.Attachments.Removing = 0 // it takes its time
	if got.Attachments != want {
		m.t.Fatalf("%+v, want %+v", got.Attachments, want)
	}
}
