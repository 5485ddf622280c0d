package turns

import "strings"

// Key is an object of contention: a document, or a range of documents.
type Key struct {
	isRange    bool
	collection string // of a range: folded, "" for all
	text       string // the folded ID of the document, or the prefix of the range
}

// Document is the key of a document.
func Document(foldedID string) Key { return Key{text: foldedID} }

// Range is the key of the documents of a collection ("" for all) whose IDs have a
// prefix. Both are folded.
func Range(collection, prefix string) Key {
	return Key{isRange: true, collection: collection, text: prefix}
}

// Doc is a document that is about to be written.
type Doc struct {
	ID         string // folded
	Collection string // folded; "" if unknown
}

// covers reports whether a range has a document. mayBe is the answer for a range of a
// collection and a document whose collection is unknown.
func (k Key) covers(d Doc, mayBe bool) bool {
	if !k.isRange || !strings.HasPrefix(d.ID, k.text) {
		return false
	}
	if k.collection != "" && d.Collection == "" {
		return mayBe
	}
	return k.collection == "" || k.collection == d.Collection
}

// appliesTo reports whether the write of d would disturb the holder of a turn for k.
func (k Key) appliesTo(d Doc) bool { return k == Document(d.ID) || k.covers(d, true) }
