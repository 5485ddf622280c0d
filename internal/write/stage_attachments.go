package write

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/attachments"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Attaching is what an op does to the attachments of its document. A Put keeps those
// that it finds, as do all other writes of a document without one; Attach writes nothing else.
type Attaching struct {
	Changes     []AttachmentChange
	ContentType *string // of the attachment that the call puts; nil for none

	modified uint64 // in ticks
}

// AttachmentChange puts or removes an attachment.
type AttachmentChange struct {
	Remove string              // the name of the attachment to be removed; "" to put Entry
	Entry  format.Attachment   // replaces the attachment of its name
	Upload *attachments.Upload // its content; nil if documents have it already
}

// Attached returns the attaching of o.
func (o *Op) Attached() *Attaching {
	if o.Attaching == nil {
		o.Attaching = new(Attaching)
	}
	return o.Attaching
}

// checkAttaching checks what does not need the document.
func (o *Op) checkAttaching() error {
	switch a := o.Attaching; {
	case !o.Verb.KeepsBody() && a.ContentType != nil:
		return fmt.Errorf("%w: ContentType is an option of attachments, not of a %s", ids.ErrUsage, o.Verb)
	case !o.Verb.KeepsBody() && !o.Verb.GivesBody():
		return fmt.Errorf("%w: a %s with attachments", ids.ErrUsage, o.Verb)
	case o.Verb.KeepsBody() && (o.Collection != "" && o.InCollection == "" || len(o.Custom) > 0 || o.AnyVersion):
		return fmt.Errorf("%w: an attachment changes neither the collection nor the metadata of its document", ids.ErrUsage)
	}
	for i := range o.Attaching.Changes {
		c := &o.Attaching.Changes[i]
		name := c.Remove
		if name == "" {
			name = c.Entry.Name
		}
		if err := metadata.CheckAttachment(o.RequestID, name, c.Entry.ContentType); err != nil {
			return err
		}
	}
	return nil
}

// stageAttach stages an op that writes its document for nothing but its attachments.
func (t *Txn) stageAttach(o *Op) error {
	t.key = format.DocumentKey(t.key[:0], o.FoldedID)
	value, closer, err := t.Tx.Get(t.key)
	if err == storage.ErrNotFound {
		return t.attachMissing(o)
	}
	if err != nil {
		return err
	}
	size := len(value)
	h, body, err := metadata.Decode(value)
	if err == nil {
		h, body = cloneHeader(&h), bytes.Clone(body)
	}
	if err := errs.First(err, closer.Close()); err != nil {
		return err
	}
	old := oldFrom(&h, o.Collection)
	old.Size = size
	if t.hasExpired(&old) {
		return t.attachMissing(o)
	}
	if err := t.checkPatched(o, &h); err != nil {
		return err
	}
	a := o.Attaching
	o.Header, o.JSON, o.FoldedCollection = h, body, format.CollectionKey(string(h.Collection))
	o.indexed, o.entries, o.refused = nil, nil, nil // those of an earlier run may be of another body
	if h.ID != nil {
		o.ID = string(h.ID)
	} else {
		o.ID = o.FoldedID
	}
	list, err := a.apply(t.Writer, o.ID, h.Attachments)
	if err != nil {
		return err
	}
	if list == nil {
		o.Outcome = Present
		return nil
	}
	if o.Header.Custom, err = withoutAttachments(h.Custom); err != nil {
		return err
	}
	o.Header.Modified, o.Header.Node = a.modified, t.Writer.Env.Node
	o.Tail = o.Header.AppendTail(o.Tail[:0])
	etag, err := t.Sequence()
	if err != nil {
		return err
	}
	old.ID = o.ID
	if o.keeps(t.rules(), &h) {
		old.keepVersion(&h, body)
	}
	return t.stageDocument(o, etag, &old, true)
}

// attachMissing is stageAttach of a document that is not there.
func (t *Txn) attachMissing(o *Op) error {
	if err := t.checkVersion(o, &OldDocument{}, false); err != nil {
		return err
	}
	return errs.ErrNotFound
}

// withoutAttachments returns custom metadata without the member @attachments, which it
// could have before Jay gave it a meaning.
func withoutAttachments(custom []byte) ([]byte, error) {
	if !bytes.Contains(custom, []byte("attachments")) {
		return custom, nil
	}
	given, err := metadata.Parse(custom)
	return given.Custom, err
}

// stageAttachments stages the references that o changes, and gives its header the
// document's list.
func (t *Txn) stageAttachments(o *Op) error {
	old := o.Header.Attachments
	after, err := o.Attaching.apply(t.Writer, o.ID, old)
	if err != nil || after == nil {
		return err
	}
	before, err := format.DecodeAttachments(old)
	if err != nil {
		return err
	}
	uploads := make(map[format.Hash]*attachments.Upload)
	refs := attachments.References{Tx: t.Tx}
	for i := range o.Attaching.Changes {
		c := &o.Attaching.Changes[i]
		switch {
		case c.Upload == nil:
		case uploads[c.Entry.Hash] == nil:
			uploads[c.Entry.Hash] = c.Upload
		case uploads[c.Entry.Hash] != c.Upload: // the content twice
			if err := refs.Discard(c.Upload); err != nil {
				return err
			}
		}
	}

	// First what is referred to, so that no content goes that stays.
	change := make(map[format.Hash]int)
	for i := range after {
		change[after[i].Hash]++
	}
	for i := range before {
		change[before[i].Hash]--
	}
	for i := range after {
		for hash := &after[i].Hash; change[*hash] > 0; change[*hash]-- {
			if err := refs.Retain(hash, uploads[*hash]); err != nil {
				return err
			}
			delete(uploads, *hash)
		}
	}
	for _, c := range o.Attaching.Changes { // in an order that does not depend on chance
		if u := uploads[c.Entry.Hash]; u != nil && u == c.Upload { // the document had the content already, or has it no more
			if err := refs.Discard(u); err != nil {
				return err
			}
			delete(uploads, c.Entry.Hash)
		}
	}
	for i := range before {
		for hash := &before[i].Hash; change[*hash] < 0; change[*hash]++ {
			if err := refs.Release(hash); err != nil {
				return err
			}
		}
	}
	t.left = t.left || refs.Left
	o.Header.Attachments = nil
	if len(after) > 0 {
		o.Header.Attachments = format.AppendAttachments(nil, after)
	}
	return nil
}

// releaseAttachments stages that a document with this list of attachments is deleted.
func (t *Txn) releaseAttachments(list []byte) error {
	all, err := format.DecodeAttachments(list)
	if err != nil {
		return err
	}
	refs := attachments.References{Tx: t.Tx}
	for i := range all {
		if err := refs.Release(&all[i].Hash); err != nil {
			return err
		}
	}
	t.left = t.left || refs.Left
	return nil
}

// apply returns the list of a document's attachments after the changes, not nil, or
// nil if they change nothing.
func (a *Attaching) apply(w *Writer, id string, list []byte) ([]format.Attachment, error) {
	all, err := format.DecodeAttachments(list)
	if err != nil {
		return nil, err
	}
	changed := false
	for i := range a.Changes {
		c := &a.Changes[i]
		if c.Remove == "" {
			all, changed = putAttachment(w, all, c.Entry), true
			continue
		}
		if at, found := FindAttachment(w, all, c.Remove); found {
			all, changed = slices.Delete(all, at, at+1), true
		}
	}
	if most := w.Attachments.MaxPerDocument; len(all) > most {
		return nil, &metadata.AttachmentError{ID: id, Name: a.Changes[len(a.Changes)-1].Entry.Name, Rule: "attachments of a document", Limit: int64(most), Actual: int64(len(all))}
	}
	if !changed {
		return nil, nil
	}
	if all == nil {
		all = []format.Attachment{}
	}
	return all, nil
}

// List returns the stored list that changes leave of another one, for the reads of a
// transaction.
func (a *Attaching) List(w *Writer, id string, list []byte) ([]byte, error) {
	all, err := a.apply(w, id, list)
	switch {
	case err != nil:
		return nil, err
	case all == nil:
		return list, nil
	case len(all) == 0:
		return nil, nil
	}
	return format.AppendAttachments(nil, all), nil
}

// putAttachment puts an entry into a list, or in the place of the one of its name.
func putAttachment(w *Writer, all []format.Attachment, entry format.Attachment) []format.Attachment {
	at, found := FindAttachment(w, all, entry.Name)
	if found {
		all[at] = entry
		return all
	}
	return slices.Insert(all, at, entry)
}

// FindAttachment returns the position of the attachment with a name, which is compared
// as IDs are, or where it belongs.
func FindAttachment(w *Writer, all []format.Attachment, name string) (at int, found bool) {
	return slices.BinarySearchFunc(all, w.Env.Rules.Fold(name), func(a format.Attachment, folded string) int {
		return strings.Compare(w.Env.Rules.Fold(a.Name), folded)
	})
}
