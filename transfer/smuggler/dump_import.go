package smuggler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/transfer"
)

// dumpLoader stores the items of a dump.
type dumpLoader struct {
	*Importer
	contents dumpContents

	hasPast bool // the revisions are stored already
	begun   bool // a document was read
}

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
	d := &dumpLoader{Importer: im, contents: newDumpContents(&im.o), hasPast: hasPast}
	defer func() { err = joined(d.end(ctx, err), d.contents.close()) }()
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
		v.Text = bytes.Clone(v.Text) // the content overwrites its memory
		err := d.contents.hold(ctx, item.Attachment, v.Text)
		if again && isRefusal(err) {
			return nil // the earlier run has refused it
		}
		return d.refuse(ctx, v, err)
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
	case transfer.DumpIdentities, transfer.DumpCompareExchange:
		if again {
			return nil
		}
		if item.Section == transfer.DumpCompareExchange {
			return d.refuse(ctx, v, d.exchange(ctx, v.Text))
		}
		return d.refuse(ctx, v, d.identity(ctx, v.Text))
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
	return d.putExchange(ctx, item.Key, v.Object, v.Custom)
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
		if err := d.refuse(ctx, v, err); err != nil {
			return err
		}
		return d.contents.clear()
	}
	if again {
		if err := d.recall(ctx, id, attachments); err != nil {
			return d.fail(v, err)
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
	if err := d.addDocument(ctx, v, m); err != nil {
		return err
	}
	if len(d.filling.items) == 0 { // it was rejected
		return d.contents.clear()
	}
	d.filling.items[0].unmarked = true
	before := d.done.Documents
	if err := d.flush(ctx); err != nil {
		return err
	}
	if d.done.Documents == before { // it was rejected
		return d.contents.clear()
	}
	id = d.done.Last // also where the document has asked for an ID
	var refused error
	for _, at := range attachments {
		err := d.attach(ctx, id, at)
		if gone, failed := d.isGone(ctx, id, err); failed != nil {
			return d.fail(v, failed)
		} else if gone {
			d.leaveOut(LeftAttachments)
			continue
		}
		switch {
		case err == nil:
		case !isRefusal(err):
			return d.fail(v, err)
		case refused == nil:
			refused = err
		default:
			refused = fmt.Errorf("%w; %w", refused, err)
		}
	}
	if refused != nil {
		if err := d.reject(v, refused); err != nil {
			return err
		}
	}
	return d.contents.clear()
}

// isGone reports whether an attachment could not be stored, by err, because the document that
// was just stored is gone: it has expired, or another write has deleted it.
func (d *dumpLoader) isGone(ctx context.Context, id string, err error) (bool, error) {
	switch {
	case errors.Is(err, jay.ErrNotFound):
		return true, nil
	case err == nil || !isRefusal(err):
		return false, nil
	}
	found, err := d.db.Exists(ctx, id)
	return !found && err == nil, err
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

// recall remembers the attachments that a document has from an earlier run.
func (d *dumpLoader) recall(ctx context.Context, id string, attachments []jay.Attachment) error {
	for _, at := range attachments {
		sum := d.contents.known[at.Hash].sum
		if c, found := d.contents.pending[at.Hash]; found {
			sum = c.sum
		}
		info, err := d.db.Attachments(id).Stat(ctx, at.Name)
		switch {
		case err == nil && info.Hash == sum:
			err = d.contents.remember(at.Hash, sum, place{id, at.Name})
		case errors.Is(err, jay.ErrNotFound) || isRefusal(err):
			err = nil // it was refused, or is gone
		}
		if err != nil {
			return err
		}
	}
	if len(attachments) == 0 {
		return nil
	}
	return d.contents.clear()
}

// attach stores an attachment of a stored document. A dump has a content once, in front of
// the first document with it: for later documents, attach reads it from an attachment that
// has had it. Another write may have changed that attachment since, so its hash decides.
func (d *dumpLoader) attach(ctx context.Context, id string, at jay.Attachment) error {
	if c, found := d.contents.pending[at.Hash]; found {
		return d.put(ctx, id, at, c.sum, io.NewSectionReader(d.contents.spool, c.offset, c.size))
	}
	known, found := d.contents.known[at.Hash]
	if !found {
		return errAttachment("%q of %q has a content that does not come before it, or came with documents that are not stored, with the hash %q", at.Name, id, at.Hash)
	}
	for len(known.places) > 0 {
		from := known.places[0]
		r, err := d.db.Attachments(from.id).Get(ctx, from.name)
		if err == nil && r.Info().Hash == known.sum {
			return joined(d.put(ctx, id, at, known.sum, r), r.Close())
		}
		if err == nil {
			err = r.Close()
		}
		if err != nil && !errors.Is(err, jay.ErrNotFound) { // an ErrNoAttachment is one, too
			return err
		}
		known.places = known.places[1:]
		d.contents.known[at.Hash] = known
	}
	return errAttachment("%q of %q has a content that came with an earlier document, with the hash %q, and all attachments with it were changed or deleted since", at.Name, id, at.Hash)
}

// put stores a content, which has the SHA-256 sum, as an attachment of a stored document.
func (d *dumpLoader) put(ctx context.Context, id string, at jay.Attachment, sum string, r io.Reader) error {
	if _, err := d.db.Attachments(id).Put(ctx, at.Name, r, jay.ContentType(at.ContentType)); err != nil {
		return err
	}
	d.attached()
	return d.contents.remember(at.Hash, sum, place{id, at.Name})
}
