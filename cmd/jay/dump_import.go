package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/transfer"
)

// dumpTag is the prefix of the tag of a content that jay export has written, whose hash
// is a SHA-256. RavenDB's hashes differ by version and serve here only as names.
const dumpTag = "jay sha256 "

// maxDumpContents is the number of contents that an import of a dump remembers, for
// later documents with the same content. maxDumpPending is the number of contents that
// may wait for one document, in a temporary file, and maxDumpContent their size.
const (
	maxDumpContents = 1 << 20
	maxDumpPending  = 10_000
	maxDumpContent  = 16 << 30
)

// dumpLoader stores the items of a dump.
type dumpLoader struct {
	*loader
	spool   *os.File // temporary file with contents that wait for their document
	size    int64    // of spool
	pending map[string]content
	known   map[string]place // where each content is stored

	hasPast bool             // the revisions are stored already
	begun   bool             // a document was read
	left    map[string]int64 // number of items that Jay cannot store, by section
}

// content is the position of a content in the spool.
type content struct {
	offset, size int64
}

// place identifies a stored attachment.
type place struct{ id, name string }

// loadDumpPast stores the revisions of a dump, and nothing else.
func (l *loader) loadDumpPast(ctx context.Context, r io.Reader) error {
	d := &dumpLoader{loader: l}
	items := transfer.NewDumpReader(r, transfer.DumpOptions{MaxBytes: l.maxBytes, MaxDepth: l.maxDepth})
	for {
		item, err := items.Next()
		v := value{number: item.Number, offset: item.Offset, text: item.Text}
		if err == io.EOF {
			return l.flushRevisions(ctx)
		}
		if err != nil {
			return l.fail(v, refused(err))
		}
		if item.Section == transfer.DumpRevisions && item.Attachment == nil {
			if err := d.revision(ctx, v, false); err != nil {
				return err
			}
		}
	}
}

// loadDump stores the contents of a dump. If hasPast is true, it leaves the revisions
// out, as loadPast has stored them.
func (l *loader) loadDump(ctx context.Context, a *app, r io.Reader, hasPast bool) (err error) {
	d := &dumpLoader{loader: l, hasPast: hasPast, pending: make(map[string]content), known: make(map[string]place), left: make(map[string]int64)}
	defer func() { err = andThen(d.end(ctx, err), d.closeSpool()) }()
	items := transfer.NewDumpReader(r, transfer.DumpOptions{MaxBytes: l.maxBytes, MaxDepth: l.maxDepth})
	for {
		item, err := items.Next()
		v := value{number: item.Number, offset: item.Offset, text: item.Text}
		if err == io.EOF {
			break
		}
		if err != nil {
			if stop := l.flush(ctx); stop != nil {
				return stop // an error of the items before this one comes first
			}
			return l.fail(v, refused(err))
		}
		if err := d.add(ctx, item, v); err != nil {
			return err
		}
	}
	for _, section := range slices.Sorted(maps.Keys(d.left)) {
		verb := "are"
		if d.left[section] == 1 {
			verb = "is"
		}
		a.note("%s of %s %s left out: Jay has no place for such items", count(d.left[section], "item"), section, verb)
	}
	return l.flush(ctx)
}

// add stores an item, or remembers it for later.
func (d *dumpLoader) add(ctx context.Context, item transfer.DumpItem, v value) error {
	again, err := d.resume.take(v.text)
	if err != nil {
		return d.fail(v, err)
	}
	if item.Attachment != nil || item.Section != transfer.DumpDocuments {
		if err := d.settle(ctx); err != nil {
			return err
		}
	}
	switch {
	case item.Attachment != nil && item.Section != transfer.DumpDocuments:
		if item.Section != transfer.DumpRevisions { // a time series
			d.left[item.Section]++
		}
		return nil
	case item.Attachment != nil:
		if again {
			return nil
		}
		v.text = bytes.Clone(v.text) // the content overwrites its memory
		return d.refuse(ctx, v, d.hold(ctx, item.Attachment, v.text))
	}
	switch item.Section {
	case transfer.DumpBuildVersion, transfer.DumpDatabaseRecord:
		return nil
	case transfer.DumpDocuments:
		d.begun = true
		return d.document(ctx, v, again)
	case transfer.DumpRevisions:
		if d.hasPast {
			return nil
		}
		if d.begun {
			// Revisions must be stored before their document, and RavenDB writes them
			// after it: see --revisions.
			d.left[item.Section]++
			return nil
		}
		return d.revision(ctx, v, again)
	case transfer.DumpIdentities:
		return d.refuse(ctx, v, d.identity(ctx, v.text))
	case transfer.DumpCompareExchange:
		return d.refuse(ctx, v, d.exchange(ctx, v.text))
	}
	d.left[item.Section]++
	return nil
}

// dumpExchange is a compare-exchange value in a dump. Value is a text of JSON, an object
// with the value as its member Object.
type dumpExchange struct {
	Key   string
	Value string
}

// exchangeValue is the Value of a dumpExchange.
type exchangeValue struct {
	Object json.RawMessage
	Custom json.RawMessage `json:"@metadata,omitempty"`
}

// exchange stores a compare-exchange value. The documents before it are stored first,
// as a guard implies that its document exists.
func (d *dumpLoader) exchange(ctx context.Context, text []byte) error {
	var item dumpExchange
	var v exchangeValue
	if err := json.Unmarshal(text, &item); err != nil || item.Key == "" {
		return fmt.Errorf("%w: a compare-exchange value has a Key and a Value: %.100q", jay.ErrInvalidDocument, text)
	}
	if err := json.Unmarshal([]byte(item.Value), &v); err != nil || v.Object == nil {
		return fmt.Errorf("%w: the Value of a compare-exchange value is a text with an Object: %.100q", jay.ErrInvalidDocument, text)
	}
	if err := d.flush(ctx); err != nil {
		return err
	}
	return putExchange(ctx, d.db, item.Key, v.Object, v.Custom)
}

// revision adds a revision to the next batch.
func (d *dumpLoader) revision(ctx context.Context, v value, again bool) error {
	if again {
		return nil
	}
	v.text = bytes.Clone(v.text)
	d.past = append(d.past, pastLine{v, v.text})
	if d.pastBytes += len(v.text); len(d.past) == maxRevisionLines || d.pastBytes >= batchBytes {
		return d.flushRevisions(ctx)
	}
	return nil
}

// identity raises an identity to the value that the dump has.
func (d *dumpLoader) identity(ctx context.Context, text []byte) error {
	var item struct {
		Key   string
		Value json.RawMessage
	}
	if err := json.Unmarshal(text, &item); err != nil || item.Key == "" {
		return fmt.Errorf("%w: an identity has a Key and a Value: %.100q", jay.ErrInvalidDocument, text)
	}
	n, err := strconv.ParseInt(strings.Trim(string(item.Value), `"`), 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("%w: the Value of an identity is a number: %.100q", jay.ErrInvalidDocument, text)
	}
	return d.db.RaiseCounters(ctx, jay.Counters{Identities: map[string]int64{item.Key: n}})
}

// document stores a document with its attachments.
func (d *dumpLoader) document(ctx context.Context, v value, again bool) error {
	m := metadataOf(v.text)
	id, attachments, err := attachmentsOf(m)
	if err != nil {
		return d.refuse(ctx, v, err)
	}
	if again {
		for _, at := range attachments {
			d.remember(at.Hash, place{id, at.Name})
		}
		return nil
	}
	if err := d.flushRevisions(ctx); err != nil {
		return err
	}
	if len(attachments) == 0 {
		if err := d.makeRoom(ctx, v); err != nil {
			return err
		}
		return d.addDocument(ctx, v, m)
	}

	// The attachments follow the document, and the checkpoint comes with the next batch:
	// an import that is stopped here stores both once more.
	if err := d.flush(ctx); err != nil {
		return err
	}
	if err := d.addDocument(ctx, v, m); err != nil || len(d.filling.items) == 0 {
		return err
	}
	d.filling.items[0].unmarked = true
	before := d.documents
	if err := d.flush(ctx); err != nil || d.documents == before {
		return err // or it was rejected
	}
	for _, at := range attachments {
		if err := d.attach(ctx, id, at); err != nil {
			if err := d.reject(v, err); err != nil {
				return err
			}
			break
		}
	}
	return d.clearSpool()
}

// attachmentsOf returns the ID and the attachments of a document of a dump, whose @metadata
// is m.
func attachmentsOf(m gjson.Result) (id string, list []jay.Attachment, err error) {
	if !strings.Contains(m.Raw, `"@attachments"`) {
		return "", nil, nil
	}
	given := m.Get(`\@attachments`)
	if !given.Exists() {
		return "", nil, nil
	}
	if err := json.Unmarshal([]byte(given.Raw), &list); err != nil {
		return "", nil, errAttachment("@attachments: %v", err)
	}
	return m.Get(`\@id`).Str, list, nil
}

// hold copies a content to the spool.
func (d *dumpLoader) hold(ctx context.Context, a *transfer.DumpAttachment, text []byte) error {
	if _, found := d.pending[a.Hash]; found {
		return nil // the next read skips the content
	}
	if len(d.pending) == maxDumpPending || a.Size > maxDumpContent {
		return errAttachment("a dump has at most %d contents in front of a document, of at most %d bytes", maxDumpPending, int64(maxDumpContent))
	}
	var tag struct{ Tag string }
	_ = json.Unmarshal(text, &tag) // the tag may have any form
	if d.spool == nil {
		f, err := os.CreateTemp("", "jay-import-*")
		if err != nil {
			return err
		}
		d.spool = f
		_ = os.Remove(f.Name()) // where the system allows that, so that no file is left even after a kill
	}
	if _, err := d.spool.Seek(d.size, io.SeekStart); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(d.spool, sum), contextReader{ctx, a})
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errAttachment("the dump ends where %d bytes of a content of %d are missing", a.Size-n, a.Size)
	}
	if err != nil {
		return err
	}
	if got := base64.StdEncoding.EncodeToString(sum.Sum(nil)); strings.HasPrefix(tag.Tag, dumpTag) && got != a.Hash {
		return errAttachment("a content has the hash %s, not %s", got, a.Hash)
	}
	d.pending[a.Hash] = content{d.size, n}
	d.size += n
	return nil
}

// contextReader is a reader that fails when its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// attach stores an attachment of a stored document.
func (d *dumpLoader) attach(ctx context.Context, id string, at jay.Attachment) error {
	to := d.db.Attachments(id)
	if c, found := d.pending[at.Hash]; found {
		if _, err := to.Put(ctx, at.Name, io.NewSectionReader(d.spool, c.offset, c.size), jay.ContentType(at.ContentType)); err != nil {
			return err
		}
		d.remember(at.Hash, place{id, at.Name})
		return nil
	}
	from, found := d.known[at.Hash]
	if !found {
		return errAttachment("%q of %q has a content that does not come before it, with the hash %q", at.Name, id, at.Hash)
	}
	r, err := d.db.Attachments(from.id).Get(ctx, from.name)
	if err != nil {
		return err
	}
	_, err = to.Put(ctx, at.Name, r, jay.ContentType(at.ContentType))
	return andThen(err, r.Close())
}

// remember records where a content is stored.
func (d *dumpLoader) remember(hash string, at place) {
	if _, found := d.known[hash]; !found && len(d.known) < maxDumpContents {
		d.known[hash] = at
	}
}

// clearSpool drops the contents in the spool.
func (d *dumpLoader) clearSpool() error {
	clear(d.pending)
	if d.size == 0 {
		return nil
	}
	d.size = 0
	return d.spool.Truncate(0)
}

func (d *dumpLoader) closeSpool() error {
	if d.spool == nil {
		return nil
	}
	err := os.Remove(d.spool.Name())
	if closed := d.spool.Close(); errors.Is(err, os.ErrNotExist) || closed != nil {
		return closed
	}
	if err != nil {
		err = os.Remove(d.spool.Name()) // a file that is open cannot be removed on Windows
	}
	return err
}
