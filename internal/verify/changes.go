package verify

import (
	"strconv"

	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

func itoa(n int64) string   { return strconv.FormatInt(n, 10) }
func quote(s string) string { return strconv.Quote(s) }

// readChanges reads the records of changes.
func (v *verifier) readChanges() error { return v.readAll(format.SpaceChanges, v.change) }

func (v *verifier) change(r storage.Reader, key, value []byte) error {
	etag, err := format.EtagOf(key)
	if err != nil {
		if !v.again {
			v.damage(KeyMalformed, key, "the key of a change has 13 bytes, this one has %d", len(key))
		}
		return nil
	}
	node, _ := format.NodeOf(key)
	c, err := format.DecodeChange(value)
	if err != nil || c.FoldedID == "" || c.Kind != format.ChangePut && c.Kind != format.ChangeDelete {
		if !v.again {
			v.damage(ChangeRecord, key, "its record cannot be decoded: %x", shorten(value))
		}
		return nil
	}
	record := format.AppendChange(nil, c.Kind, format.CollectionKey(c.Collection), c.FoldedID)
	if v.again {
		if c.Kind == format.ChangePut && v.ledger.differs(key, record) {
			return v.changeAgain(r, key, node, etag, &c)
		}
		return nil
	}
	v.report.Changes++
	v.checkEtag(key, node, etag)
	if c.Kind == format.ChangePut {
		v.ledger.add(key, record, -1)
		return nil
	}
	v.report.Deletions++
	if c.ID != "" && (c.ID == c.FoldedID || v.rules.Fold(c.ID) != c.FoldedID) {
		v.damage(ChangeRecord, key, "document %q was deleted, and its ID is said to have been written %q", c.FoldedID, c.ID)
	}
	doc, known, err := v.documentAt(r, c.FoldedID)
	if err != nil || !known || doc == nil {
		return err
	}
	if doc.header.Etag < etag {
		v.damage(TombstoneLive, key, "document %q was deleted with etag %d, and is there with etag %d", c.FoldedID, etag, doc.header.Etag)
	}
	return nil
}

// changeAgain looks whether a record of a put is that of its document.
func (v *verifier) changeAgain(r storage.Reader, key []byte, node, etag uint64, c *format.Change) error {
	doc, known, err := v.documentAt(r, c.FoldedID)
	if err != nil || !known {
		return err
	}
	switch {
	case doc == nil:
		v.about(DocumentLost, format.NewDocumentKey(c.FoldedID), "document "+quote(c.FoldedID),
			"it was written with etag %d into %q, and neither it nor a deletion is there", etag, c.Collection)
	case doc.header.Node != node || doc.header.Etag != etag:
		v.damage(ChangeStale, key, "it is of document %q, which has etag %d", c.FoldedID, doc.header.Etag)
	}
	return nil // a wrong collection is noted at the document
}

// readCollections reads the entries of collections and the numbers of documents.
func (v *verifier) readCollections() error {
	if err := v.readAll(format.SpaceMembers, v.member); err != nil {
		return err
	}
	return v.readAll(format.SpaceCounts, v.count)
}

func (v *verifier) member(r storage.Reader, key, value []byte) error {
	collection, rest := cutName(key)
	id, tail := cutName(append([]byte{0}, rest...))
	if collection == "" || id == "" || len(tail) > 0 || key[len(key)-1] != 0 || len(key) != len(collection)+len(id)+3 {
		if !v.again {
			v.damage(KeyMalformed, key, "the key is not a collection, 00, an ID, and 00")
		}
		return nil
	}
	if !v.again {
		if len(value) > 0 {
			v.damage(MemberValue, key, "it has a value of %d bytes", len(value))
		}
		v.ledger.add(key, nil, -1)
		return nil
	}
	if !v.ledger.differs(key, nil) {
		return nil
	}
	doc, known, err := v.documentAt(r, id)
	if err != nil || !known {
		return err
	}
	switch {
	case doc == nil:
		v.damage(MemberExtra, key, "the document is not there")
	case doc.collection != collection:
		v.damage(MemberExtra, key, "the document is in collection %q", doc.collection)
	case format.IsClustered(id, collection, v.separator):
		v.damage(MemberExtra, key, "the document is found by its prefix, and needs no entry")
	}
	return nil
}

func (v *verifier) count(_ storage.Reader, key, value []byte) error {
	if len(key) > 1 && key[1] == 1 {
		collection, n, err := format.DecodeRevisionCount(key, value)
		if err != nil {
			if !v.again {
				v.damage(RevisionCounter, key, "its record cannot be decoded: %x", shorten(value))
			}
			return nil
		}
		v.counting(countedRevisions(collection), key, n)
		return nil
	}
	if len(key) > 1 && key[1] < 0x20 {
		return v.tally(key, value)
	}
	collection, t, err := format.DecodeTally(key, value)
	if err != nil || key[len(key)-1] != 0 {
		if !v.again {
			v.damage(CountRecord, key, "its record cannot be decoded: %x", shorten(value))
		}
		return nil
	}
	if v.counted {
		v.counting(countedDocuments(collection), key, t.Documents)
	}
	if v.sized {
		v.counting(countedBytes(collection), key, t.Bytes)
	}
	return nil
}

// tallies are the numbers of attachments and of what is due, as they are kept and as they
// were found.
type tallies struct {
	kept, found           format.ContentTally
	keptTimes, foundTimes format.TimesTally
	unknown               bool // something cannot be decoded
}

// tally takes numbers that are not those of a collection.
func (v *verifier) tally(key, value []byte) error {
	if v.again {
		return nil
	}
	var err error
	switch string(key) {
	case string(format.ContentTallyKey()):
		v.tallies.kept, err = format.DecodeContentTally(value)
	case string(format.AppendTimesTallyKey(nil)):
		v.tallies.keptTimes, err = format.DecodeTimesTally(value)
	default:
		v.damage(KeyUnknown, key, "no key of this kind is known")
	}
	if err != nil {
		v.damage(CountRecord, key, "its record cannot be decoded: %x", shorten(value))
		v.tallies.unknown = true
	}
	return nil
}

// compareTallies compares them.
func (v *verifier) compareTallies() {
	t := &v.tallies
	if !v.sized {
		return
	}
	if t.unknown || v.report.Unread > 0 {
		v.lacks("numbers of attachments and of what is due, as some of these cannot be read")
		return
	}
	if t.kept != t.found {
		v.damage(CountWrong, format.ContentTallyKey(), "attachments are %+v, and the numbers are %+v", t.found, t.kept)
	}
	if t.keptTimes != t.foundTimes {
		v.damage(CountWrong, format.AppendTimesTallyKey(nil), "what is due is %+v, and the numbers are %+v", t.foundTimes, t.keptTimes)
	}
}

// counting takes a number that is kept.
func (v *verifier) counting(name, key []byte, n int64) {
	if !v.again {
		v.ledger.add(name, nil, -n)
		return
	}
	if v.ledger.differs(name, nil) {
		v.groups.kept(name, key, n)
	}
}

// readTimes reads the entries of what is due.
func (v *verifier) readTimes() error { return v.readAll(format.SpaceTimes, v.due) }

func (v *verifier) due(r storage.Reader, key, value []byte) error {
	due, err := format.DecodeDue(key, value)
	if err != nil {
		if !v.again {
			v.damage(TimeRecord, key, "the key is not a kind, an instant, an ID and 00")
			v.tallies.unknown = true
		}
		return nil
	}
	if !v.again {
		v.ledger.add(key, value, -1)
		if due.Kind == format.DueExpiry {
			v.tallies.foundTimes.Expiring++
		} else {
			v.tallies.foundTimes.Refreshing++
		}
		return nil
	}
	if !v.ledger.differs(key, value) {
		return nil
	}
	doc, known, err := v.documentAt(r, due.FoldedID)
	if err != nil || !known {
		return err
	}
	if doc == nil {
		v.damage(TimeExtra, key, "the document is not there")
		return nil
	}
	at := doc.header.Times().Expires
	if due.Kind == format.DueRefresh {
		at = doc.header.Times().Refresh
	}
	if !at.Equal(due.At) {
		v.damage(TimeExtra, key, "the document has no such instant")
	}
	return nil
}
