package verify

import (
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
)

// history is what was read of the revisions of one document.
type history struct {
	id  string
	doc *document // nil if there is none; without an etag if it cannot be decoded

	record   format.History
	recorded bool
	broken   bool // something of it could not be decoded
	listed   bool // as deleted

	keys        int
	first, last uint64 // numbers that were found; 0 for none
	etag        uint64 // of the last
	deletion    bool   // the last is one
}

// revision reads one key of the revisions of a document.
func (v *verifier) revision(h *history, key, value []byte) error {
	h.keys++
	id, number, err := format.SplitRevisionKey(key)
	if err != nil || string(id) != h.id {
		h.broken = true
		v.damage(KeyMalformed, key, "the key of a revision is an ID, 00 and a number")
		return nil
	}
	if number == 0 {
		h.recorded = true
		if h.record, err = format.DecodeHistory(value); err != nil {
			h.broken = true
			v.damage(HistoryRecord, key, "%v", err)
		}
		return nil
	}
	v.report.Revisions++
	head, record, err := format.SplitRevision(value)
	var header metadata.Header
	var body []byte
	if err == nil {
		body, err = header.Decode(record)
	}
	if err != nil {
		h.broken = true
		v.unknownRevisions = true
		v.damage(RevisionRecord, key, "its record of %d bytes cannot be decoded", len(value))
		v.note(h, number, 0, false)
		return nil
	}
	if refused, err := CheckJSON(body); err != nil {
		v.damage(RevisionRecord, key, "its body is not the JSON that was stored: %v", err)
	} else if refused != nil {
		v.damage(DocumentNumber, key, "its body: %v", refused)
	}
	if head.Foreign == nil {
		v.checkEtag(key, header.Node, header.Etag)
	}
	if h.last > 0 && header.Etag <= h.etag {
		v.damage(RevisionOrder, key, "its etag is %d, and that of the revision before is %d", header.Etag, h.etag)
	}
	if h.last > 0 && number != h.last+1 {
		v.damage(RevisionGap, key, "revision %d comes after revision %d", number, h.last)
	}
	v.note(h, number, header.Etag, head.Deletion)
	v.ledger.add(countedRevisions(format.CollectionKey(string(header.Collection))), nil, 1)
	return nil
}

// note notes a revision as the last one.
func (v *verifier) note(h *history, number, etag uint64, deletion bool) {
	if h.first == 0 {
		h.first = number
	}
	h.last, h.etag, h.deletion = number, max(etag, h.etag), deletion
}

// endHistory checks the records of a document against its revisions.
func (v *verifier) endHistory(h *history) {
	undecoded := h.doc != nil && h.doc.header.Etag == 0
	if h.broken || undecoded || v.report.Unread > 0 {
		return
	}
	want := format.NoHistory
	if h.recorded {
		want = h.record
	}
	if h.doc != nil && h.doc.header.Revision > 0 {
		want.Last = h.doc.header.Revision - 1
	}
	key := format.HistoryKey(nil, h.id)
	switch {
	case h.first == 0 && want.First <= want.Last:
		v.damage(HistoryWrong, key, "revisions %d to %d are expected, and there are none", want.First, want.Last)
	case h.first > 0 && (want.First != h.first || want.Last != h.last):
		v.damage(HistoryWrong, key, "revisions %d to %d are expected, and %d to %d are there", want.First, want.Last, h.first, h.last)
	}
	if h.doc != nil && h.doc.header.Etag <= h.etag {
		v.damage(RevisionOrder, format.RevisionKey(nil, h.id, h.last), "its etag is %d, and that of the document %d", h.etag, h.doc.header.Etag)
	}
	if h.doc == nil && h.deletion && !h.listed {
		v.damage(DeletedMissing, format.DeletedKey(nil, h.id), "the newest revision is a deletion, and the document is not listed as deleted")
	}
	if h.listed && h.keys == 0 {
		v.damage(DeletedExtra, format.DeletedKey(nil, h.id), "it is listed as deleted, and has no revisions")
	}
}
