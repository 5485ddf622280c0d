package verify

import (
	"bytes"
	"encoding/binary"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// limits are those of all bodies that any option allows, and stored those of all that any
// version has stored: a patch could store an exponent that other writes refused.
var (
	limits = metadata.Limits{MaxBytes: 512 << 20, MaxDepth: 10_000}
	stored = metadata.Limits{MaxBytes: limits.MaxBytes, MaxDepth: limits.MaxDepth, AnyExponent: true}
)

// CheckJSON returns an error for JSON that no version has stored as a body or as custom
// metadata. refused is the reason why this version would not store it again, or nil.
func CheckJSON(text []byte) (refused, err error) {
	if _, refused = metadata.Scan(text, limits); refused == nil {
		return nil, nil
	}
	_, err = metadata.Scan(text, stored)
	return refused, err
}

// document is a stored document that was decoded. Its texts are in the reader's memory.
type document struct {
	folded     string
	header     metadata.Header
	body       []byte
	collection string // folded
	whole      bool   // the body can be read
	size       int    // of the folded ID and the record
}

// id returns the ID as it was written.
func (d *document) id() string {
	if d.header.ID != nil {
		return string(d.header.ID)
	}
	return d.folded
}

// readDocuments reads the documents, their revisions, and which were deleted, all in the
// order of IDs.
func (v *verifier) readDocuments() error {
	documents := v.newCursor([]byte{format.SpaceDocument}, []byte{format.SpaceDocument + 1})
	revisions := v.newCursor(format.HistoryBounds[0], format.HistoryBounds[1])
	deleted := v.newCursor(format.DeletedBounds[0], format.DeletedBounds[1])
	all := []*cursor{documents, revisions, deleted}
	// Keys before those bounds have no form that is known.
	if err := v.unknownIn([]byte{format.SpaceRevisions}, format.DeletedBounds[0]); err != nil {
		return err
	}
	if err := v.unknownIn(format.DeletedBounds[1], format.HistoryBounds[0]); err != nil {
		return err
	}
	for !documents.done || !revisions.done || !deleted.done {
		err := v.use(func(r storage.Reader) (err error) {
			for _, k := range all {
				if err := k.open(r); err != nil {
					return err
				}
			}
			before, keys := v.report.Bytes, v.report.Keys
			for v.report.Keys-keys < stepKeys && v.report.Bytes-before < stepBytes && (documents.ok || revisions.ok || deleted.ok) {
				if err := v.readID(r, documents, revisions, deleted); err != nil {
					return err
				}
			}
			return v.compareNumbers(r)
		})
		for _, k := range all {
			err = errs.First(err, k.close())
		}
		if err != nil {
			return err
		}
		if err := v.pause(); err != nil {
			return err
		}
	}
	return v.endNumbers()
}

// readID reads what there is of the least ID that a cursor stands on.
func (v *verifier) readID(r storage.Reader, documents, revisions, deleted *cursor) error {
	// The part of the keys from the ID on sorts alike in all three.
	var least []byte
	for _, k := range []*cursor{documents, revisions, deleted} {
		if !k.ok {
			continue
		}
		skip := 1
		if k == deleted {
			skip = 2
		}
		part := k.it.Key()[skip:]
		if bytes.IndexByte(part, 0) < 1 {
			v.damage(KeyMalformed, k.it.Key(), "the key has no ID that ends in 00")
			return k.next()
		}
		if least == nil || bytes.Compare(part, least) < 0 {
			least = part
		}
	}
	end := bytes.IndexByte(least, 0)
	least = bytes.Clone(least[:end+1]) // with its 00
	id := string(least[:end])

	h := history{id: id}
	for documents.ok && bytes.HasPrefix(documents.it.Key()[1:], least) {
		h.doc = &document{folded: id}
		v.numbers.see(v, id)
		if d := v.decodeDocument(documents.it.Key(), documents.it.Value(), true); d == nil {
			v.unknown = true
		} else {
			if err := v.document(r, d); err != nil {
				return err
			}
			h.doc.header.Node, h.doc.header.Etag, h.doc.header.Revision = d.header.Node, d.header.Etag, d.header.Revision
		}
		if err := documents.next(); err != nil {
			return err
		}
	}
	for revisions.ok && bytes.HasPrefix(revisions.it.Key()[1:], least) {
		if err := v.revision(&h, revisions.it.Key(), revisions.it.Value()); err != nil {
			return err
		}
		if err := revisions.next(); err != nil {
			return err
		}
	}
	for deleted.ok && bytes.HasPrefix(deleted.it.Key()[2:], least) {
		if key := deleted.it.Key(); len(key) != len(least)+2 {
			v.damage(KeyMalformed, key, "the key of a deleted document ends in 00 after its ID")
		} else {
			h.listed = true
		}
		if err := deleted.next(); err != nil {
			return err
		}
	}
	v.endHistory(&h)
	return nil
}

// decodeDocument decodes a document, or notes why that cannot be done and returns nil.
func (v *verifier) decodeDocument(key, value []byte, note bool) *document {
	d := &document{}
	end := bytes.IndexByte(key, 0)
	if end < 2 || end != len(key)-1 {
		if note {
			v.damage(KeyMalformed, key, "the key of a document ends in 00 after its ID")
		}
		return nil
	}
	d.folded = string(format.DocumentID(key))
	d.size = len(d.folded) + len(value)
	var err error
	if d.body, err = d.header.Decode(value); err != nil {
		if note {
			v.damage(DocumentRecord, key, "its record of %d bytes cannot be decoded: it begins with %x", len(value), shorten(value[:min(len(value), 24)]))
		}
		return nil
	}
	d.collection = format.CollectionKey(string(d.header.Collection))
	d.whole = true
	return d
}

// document checks a document by itself, and enters what must agree with it.
func (v *verifier) document(r storage.Reader, d *document) error {
	v.report.Documents++
	key := format.NewDocumentKey(d.folded)
	v.checkDocument(key, d)
	v.checkEtag(key, d.header.Node, d.header.Etag)
	return v.derive(r, d, func(key, value []byte) error {
		if isCounted(key) {
			v.ledger.add(key, nil, weight(value))
		} else {
			v.ledger.add(key, value, 1)
		}
		return nil
	})
}

// checkDocument checks a document by itself.
func (v *verifier) checkDocument(key []byte, d *document) {
	if refused, err := CheckJSON(d.body); err != nil {
		d.whole = false
		v.damage(DocumentBody, key, "its body of %d bytes is not the JSON that was stored: %v", len(d.body), err)
	} else if refused != nil {
		v.damage(DocumentNumber, key, "its body: %v", refused)
	}
	if err := v.rules.Check(d.folded); err != nil || v.rules.Fold(d.folded) != d.folded {
		v.damage(DocumentID, key, "its key is not a folded ID")
	} else if d.header.ID != nil && (v.rules.Check(d.id()) != nil || v.rules.Fold(d.id()) != d.folded) {
		v.damage(DocumentID, key, "the ID in its record is %q", shorten(d.header.ID))
	}
	if err := metadata.CheckCollection(string(d.header.Collection)); err != nil {
		v.damage(DocumentName, key, "%v", err)
	}
	if d.header.Custom != nil {
		if refused, err := CheckJSON(d.header.Custom); err != nil {
			v.damage(DocumentMetadata, key, "its metadata of %d bytes is no JSON object: %v", len(d.header.Custom), err)
		} else if refused != nil {
			v.damage(DocumentNumber, key, "its metadata: %v", refused)
		}
	}
	switch none := (metadata.Times{}); {
	case d.header.Timed && d.header.Times() == none:
		v.damage(DocumentTimes, key, "it is marked as one that expires or is refreshed, and its metadata has no instant")
	case !d.header.Timed && d.header.Custom != nil && v.timed && v.times.All && v.times.Overdue == 0 && metadata.ReadTimes(d.header.Custom) != none:
		v.damage(DocumentTimes, key, "its metadata has an instant, and it is not marked as one that expires or is refreshed")
	}
	v.checkList(key, d)
}

// checkList checks the list of a document's attachments.
func (v *verifier) checkList(key []byte, d *document) {
	list, err := format.DecodeAttachments(d.header.Attachments)
	if err != nil || d.header.Attachments != nil && len(list) == 0 {
		v.damage(DocumentList, key, "the list of its attachments cannot be decoded")
		v.unknownLists = true
		d.header.Attachments = nil
		return
	}
	for i := range list {
		if err := metadata.CheckAttachment(d.id(), list[i].Name, list[i].ContentType); err != nil {
			v.damage(DocumentList, key, "%v", err)
		}
		if i > 0 && v.rules.Fold(list[i-1].Name) >= v.rules.Fold(list[i].Name) {
			v.damage(AttachmentOrder, key, "attachment %q stands before %q", list[i-1].Name, list[i].Name)
		}
	}
}

// derive calls fn with all keys and values that must be there because of a document,
// and with those by which things are counted: see counted.
func (v *verifier) derive(r storage.Reader, d *document, fn func(key, value []byte) error) error {
	if err := fn(format.ChangeKey(nil, d.header.Node, d.header.Etag), format.AppendChange(nil, format.ChangePut, d.collection, d.folded)); err != nil {
		return err
	}
	if !format.IsClustered(d.folded, d.collection, v.separator) {
		if err := fn(format.MemberKey(nil, d.collection, d.folded), nil); err != nil {
			return err
		}
	}
	if d.header.Timed {
		times := d.header.Times()
		if !times.Expires.IsZero() {
			if err := fn(format.TimeKey(nil, times.Expires, format.DueExpiry, d.folded), []byte(d.collection)); err != nil {
				return err
			}
		}
		if !times.Refresh.IsZero() {
			if err := fn(format.TimeKey(nil, times.Refresh, format.DueRefresh, d.folded), []byte(d.collection)); err != nil {
				return err
			}
		}
	}
	if v.counted && v.counts.Covers(d.folded) {
		if err := fn(countedDocuments(d.collection), nil); err != nil {
			return err
		}
	}
	if v.sized && v.sizes.Covers(d.folded) {
		if err := fn(countedBytes(d.collection), binary.AppendUvarint(nil, uint64(d.size))); err != nil {
			return err
		}
	}
	list, _ := format.DecodeAttachments(d.header.Attachments)
	for i := range list {
		if err := fn(countedReference(&list[i].Hash, list[i].Size), nil); err != nil {
			return err
		}
	}
	return entryDerivation{v, r, d, fn}.all()
}

// Things that are counted have a key whose first byte is 0: no key of a database begins
// so. What is counted follows. The value is how often it counts, a uvarint; empty for once.
func countedDocuments(collection string) []byte { return append([]byte{0, 'k'}, collection...) }
func countedBytes(collection string) []byte     { return append([]byte{0, 'b'}, collection...) }
func countedRevisions(collection string) []byte { return append([]byte{0, 'r'}, collection...) }
func countedContent(hash *format.Hash) []byte   { return append([]byte{0, 's'}, hash[:]...) }

// countedFact is the name of a fact of an index: see catalog.Stager.
func countedFact(number uint32, fact []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0, 'x'}, number), fact...)
}

// countedReference is the name of the attachments with a content. It has their size, too.
func countedReference(hash *format.Hash, size int64) []byte {
	return binary.BigEndian.AppendUint64(append([]byte{0, 'a'}, hash[:]...), uint64(size))
}

func isCounted(key []byte) bool { return key[0] == 0 }

// weight returns how often something counts.
func weight(value []byte) int64 {
	if len(value) == 0 {
		return 1
	}
	n, _ := binary.Uvarint(value)
	return int64(n)
}

// documentAt reads the document of a folded ID. doc is nil if there is none; known is
// false if that cannot be said, or if what is there cannot be decoded.
func (v *verifier) documentAt(r storage.Reader, folded string) (doc *document, known bool, err error) {
	key := format.NewDocumentKey(folded)
	value, found, known, err := v.get(r, key)
	if err != nil || !known || !found {
		return nil, known, err
	}
	if doc = v.decodeDocument(key, value, false); doc == nil {
		return nil, false, nil
	}
	if _, err := CheckJSON(doc.body); err != nil {
		doc.whole = false
	}
	return doc, true, nil
}
