package smuggler

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
	"os"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/transfer"
)

// maxDumpContents is the number of contents that an import of a dump remembers, for
// later documents with the same content. maxDumpPending is the number of contents that
// may wait for one document, in a temporary file, maxDumpContent the size of one, and
// maxDumpHash that of its hash.
const (
	maxDumpContents = 1 << 20
	maxDumpPending  = 10_000
	maxDumpContent  = 16 << 30
	maxDumpHash     = 256

	maxDumpAttachments = 10_000 // of a document, as jay.Options.MaxAttachments allows
)

// dumpLoader stores the items of a dump.
type dumpLoader struct {
	*Importer
	spool   *os.File // temporary file with contents that wait for their document
	size    int64    // of spool
	pending map[string]content
	known   map[string]place // where each content is stored

	hasPast bool // the revisions are stored already
	begun   bool // a document was read
}

// content is the position of a content in the spool.
type content struct {
	offset, size int64
}

// place identifies a stored attachment.
type place struct{ id, name string }

// loadDumps stores the contents of a dump: the revisions first, if they are asked for.
func (im *Importer) loadDumps(ctx context.Context, in Input) error {
	if im.o.Revisions && !im.Behind() {
		if in.Again == nil {
			return im.fail(Record{}, ErrReadOnce)
		}
		first, err := in.Again()
		if err != nil {
			return im.fail(Record{}, err)
		}
		if err := joined(im.loadDumpPast(ctx, first), first.Close()); err != nil {
			return err
		}
	}
	return im.loadDump(ctx, in.Reader, im.o.Revisions)
}

// loadDumpPast stores the revisions of a dump, and nothing else.
func (im *Importer) loadDumpPast(ctx context.Context, r io.Reader) error {
	d := &dumpLoader{Importer: im}
	items := transfer.NewDumpReader(r, transfer.DumpOptions{MaxBytes: im.o.MaxBytes, MaxDepth: im.o.MaxDepth})
	for {
		item, err := items.Next()
		v := Record{Number: item.Number, Offset: item.Offset, Text: item.Text}
		if err == io.EOF {
			return im.flushRevisions(ctx)
		}
		if err != nil {
			return im.fail(v, refused(err))
		}
		if item.Section == transfer.DumpRevisions && item.Attachment == nil {
			if err := d.room(v, memberOfDocument); err != nil {
				return err
			}
			if err := d.revision(ctx, v, false); err != nil {
				return err
			}
		}
	}
}

// loadDump stores the contents of a dump. If hasPast is true, it leaves the revisions
// out, as loadDumpPast has stored them.
func (im *Importer) loadDump(ctx context.Context, r io.Reader, hasPast bool) (err error) {
	d := &dumpLoader{Importer: im, hasPast: hasPast, pending: make(map[string]content), known: make(map[string]place)}
	defer func() { err = joined(d.end(ctx, err), d.closeSpool()) }()
	items := transfer.NewDumpReader(r, transfer.DumpOptions{MaxBytes: im.o.MaxBytes, MaxDepth: im.o.MaxDepth})
	for {
		item, err := items.Next()
		v := Record{Number: item.Number, Offset: item.Offset, Text: item.Text}
		if err == io.EOF {
			break
		}
		if err != nil {
			if stop := im.flush(ctx); stop != nil {
				return stop // an error of the items before this one comes first
			}
			return im.fail(v, refused(err))
		}
		if err := d.add(ctx, item, v); err != nil {
			return err
		}
	}
	return im.flush(ctx)
}

// add stores an item, or remembers it for later.
func (d *dumpLoader) add(ctx context.Context, item transfer.DumpItem, v Record) error {
	again, err := d.resume.take(v.Text)
	if err != nil {
		return d.fail(v, err)
	}
	if err := d.room(v, memberOfDocument); err != nil {
		return err
	}
	if item.Attachment != nil || item.Section != transfer.DumpDocuments {
		if err := d.settle(ctx); err != nil {
			return err
		}
	}
	switch {
	case item.Attachment != nil && item.Section != transfer.DumpDocuments:
		if item.Section != transfer.DumpRevisions { // a time series
			d.leaveOut(item.Section)
		}
		return nil
	case item.Attachment != nil:
		if again {
			return nil
		}
		v.Text = bytes.Clone(v.Text) // the content overwrites its memory
		return d.refuse(ctx, v, d.hold(ctx, item.Attachment, v.Text))
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
			d.leaveOut(item.Section)
			return nil
		}
		return d.revision(ctx, v, again)
	case transfer.DumpIdentities:
		return d.refuse(ctx, v, d.identity(ctx, v.Text))
	case transfer.DumpCompareExchange:
		return d.refuse(ctx, v, d.exchange(ctx, v.Text))
	}
	d.leaveOut(item.Section)
	return nil
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
func (d *dumpLoader) revision(ctx context.Context, v Record, again bool) error {
	if again {
		return nil
	}
	return d.holdRevision(ctx, v, bytes.Clone(v.Text))
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
func (d *dumpLoader) document(ctx context.Context, v Record, again bool) error {
	m := metadataOf(v.Text)
	id, attachments, err := attachmentsOf(m)
	if err != nil {
		return d.refuse(ctx, v, err)
	}
	if again {
		for _, at := range attachments {
			if err := d.remember(at.Hash, place{id, at.Name}); err != nil {
				return d.fail(v, err)
			}
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
	before := d.done.Documents
	if err := d.flush(ctx); err != nil || d.done.Documents == before {
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
	n := 0
	given.ForEach(func(_, _ gjson.Result) bool {
		n++
		return n <= maxDumpAttachments
	})
	if n > maxDumpAttachments {
		return "", nil, errAttachment("a document has at most %d", maxDumpAttachments)
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
	if len(a.Hash) > maxDumpHash {
		return errAttachment("the hash of a content has at most %d bytes, this one has %d", maxDumpHash, len(a.Hash))
	}
	if most := d.o.MaxSpoolBytes; most > 0 && a.Size > most-d.size {
		return errAttachment("the contents in front of a document have at most %d bytes together", most)
	}
	if len(d.pending) == maxDumpPending || a.Size > maxDumpContent {
		return errAttachment("a dump has at most %d contents in front of a document, of at most %d bytes", maxDumpPending, int64(maxDumpContent))
	}
	var tag struct{ Tag string }
	_ = json.Unmarshal(text, &tag) // the tag may have any form
	if d.spool == nil {
		f, err := os.CreateTemp(d.o.SpoolDir, "jay-import-*")
		if err != nil {
			return d.errSpool(err)
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
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) && failed.Path == d.spool.Name() {
		return d.errSpool(err)
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

// errSpool says which directory had no room for a content, and how another one is chosen.
func (d *dumpLoader) errSpool(err error) error {
	if dir := d.o.SpoolDir; dir != "" {
		return fmt.Errorf("a content of the dump waits for its document in %s: %w", dir, err)
	}
	return fmt.Errorf("a content of the dump waits for its document in %s, as $TMPDIR has it: %w; set TMPDIR to a directory with room for all contents", os.TempDir(), err)
}

// attach stores an attachment of a stored document.
func (d *dumpLoader) attach(ctx context.Context, id string, at jay.Attachment) error {
	to := d.db.Attachments(id)
	if c, found := d.pending[at.Hash]; found {
		if _, err := to.Put(ctx, at.Name, io.NewSectionReader(d.spool, c.offset, c.size), jay.ContentType(at.ContentType)); err != nil {
			return err
		}
		d.attached()
		return d.remember(at.Hash, place{id, at.Name})
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
	if err := joined(err, r.Close()); err != nil {
		return err
	}
	d.attached()
	return nil
}

// remember records where a content is stored.
func (d *dumpLoader) remember(hash string, at place) error {
	if _, found := d.known[hash]; found || len(d.known) == maxDumpContents || len(hash) > maxDumpHash {
		return nil
	}
	if d.o.Keep != nil {
		if err := d.o.Keep(int64(len(hash)+len(at.id)+len(at.name)) + 128); err != nil {
			return err
		}
	}
	d.known[hash] = at
	return nil
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
