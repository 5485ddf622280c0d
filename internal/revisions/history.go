package revisions

import (
	"fmt"
	"math"
	"time"

	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// MaxTrimmed is how many revisions a write removes at most. As it adds one or two, a
// history that is too long gets shorter with each write.
const MaxTrimmed = 8

// trimBytes is about how many bytes of revisions one Trim removes: it reads them while
// other writes wait.
const trimBytes = 4 << 20

// HistoryOf returns the history of a document, format.NoHistory if there is no record.
func HistoryOf(r env.Getter, foldedID string) (h format.History, found bool, err error) {
	value, closer, err := r.Get(format.HistoryKey(nil, foldedID))
	if err == storage.ErrNotFound {
		return format.NoHistory, false, nil
	}
	if err != nil {
		return h, false, err
	}
	h, err = format.DecodeHistory(value)
	return h, true, errs.First(err, closer.Close())
}

// Stored is what lies under the key of a revision, in the memory of the reader.
type Stored struct {
	format.RevisionHead
	Header metadata.Header
	Body   []byte
}

// isUndated reports whether the revision is the deletion of a rename of its collection,
// as versions of Jay have written them that did not store when they were made.
func (s *Stored) isUndated() bool { return s.Deletion && s.Header.Modified == 0 && s.Foreign == nil }

// dateOf returns when an undated deletion was made, in ticks: the rename wrote the next
// revision in the same commit. If that has no number, as it follows no rule, the present
// version of the document stands for it, and if there is none the version before.
func dateOf(r env.Getter, foldedID string, number uint64) (uint64, error) {
	next, err := readFact(r, foldedID, number+1)
	if err != nil || next.found {
		return next.modified, err
	}
	value, closer, err := r.Get(format.DocumentKey(nil, foldedID))
	if err == nil {
		var h metadata.Header
		_, err = h.Decode(value)
		return h.Modified, errs.First(err, closer.Close())
	}
	if err != storage.ErrNotFound {
		return 0, err
	}
	before, err := readFact(r, foldedID, number-1)
	return before.modified, err
}

// decode decodes the record of revision number of a document.
func decode(value []byte, number uint64) (s Stored, err error) {
	var record []byte
	if s.RevisionHead, record, err = format.SplitRevision(value); err != nil {
		return s, err
	}
	if s.Body, err = s.Header.Decode(record); err != nil {
		return s, fmt.Errorf("revision %d: %w", number, err)
	}
	s.Header.Revision = number // a version from before the first rule has none in its record
	return s, nil
}

// fact is what the retention needs to know of a revision.
type fact struct {
	found      bool
	deletion   bool
	undated    bool
	imported   bool
	modified   uint64 // ticks
	etag       uint64
	collection string // folded
	bytes      int64  // of its record
}

// factOf reads a revision, and finds the time of one that is undated.
func factOf(r env.Getter, foldedID string, number uint64) (f fact, err error) {
	if f, err = readFact(r, foldedID, number); err == nil && f.undated {
		f.modified, err = dateOf(r, foldedID, number)
	}
	return f, err
}

// readFact reads a revision as it is stored.
func readFact(r env.Getter, foldedID string, number uint64) (f fact, err error) {
	value, closer, err := r.Get(format.RevisionKey(nil, foldedID, number))
	if err == storage.ErrNotFound {
		return fact{}, nil
	}
	if err != nil {
		return fact{}, err
	}
	s, err := decode(value, number)
	if err == nil {
		f = fact{true, s.Deletion, s.isUndated(), s.Foreign != nil, s.Header.Modified, s.Header.Etag, format.CollectionKey(string(s.Header.Collection)), int64(len(value))}
	}
	return f, errs.First(err, closer.Close())
}

// Span is a history at a moment: the revisions that lie under 'r', and the version that
// replaced the newest of them.
type Span struct {
	First, Last uint64 // none if Last is below First

	// Replaced is when the newest of them was replaced or, if it is a deletion, made: in
	// ticks.
	Replaced uint64

	// Newest is the number of the newest version: that of the document, or else that of
	// the last version before its deletion.
	Newest uint64
}

// Criterion says which revisions are to be removed: those that satisfy both parts.
type Criterion struct {
	keep   uint64 // so many of the newest versions stay; 0 for none
	before uint64 // those stay that were replaced since, in ticks; ever for none
}

const ever = math.MaxUint64

// Expired returns what the rule keeps no longer, at a time in ticks. found is false if
// it keeps everything.
func (r *Rule) Expired(now uint64) (c Criterion, found bool) {
	if r.keepsAll() {
		return c, false
	}
	c = Criterion{keep: r.Keep, before: ever}
	if r.KeepFor > 0 {
		c.before = metadata.Ticks(metadata.Time(now).Add(-r.KeepFor))
	}
	return c, true
}

// Everything is the criterion of all revisions.
var Everything = Criterion{before: ever}

// ReplacedBefore is the criterion of all revisions that were replaced before a time.
func ReplacedBefore(t time.Time) Criterion { return Criterion{before: metadata.Ticks(t)} }

// numbers reports whether the criterion may be satisfied by a revision with this number.
func (c Criterion) numbers(number uint64, s Span) bool {
	return c.keep == 0 || number <= s.Newest && s.Newest-number >= c.keep
}

// Drops reports whether a revision is to be removed, which was replaced then.
func (c Criterion) Drops(number uint64, s Span, replaced uint64) bool {
	return c.numbers(number, s) && (c.before == ever || replaced < c.before)
}

// Removed is what Trim has staged the removal of.
type Removed struct {
	First     uint64           // the oldest that is left
	Revisions int64            // how many are gone
	Bytes     int64            // of their records
	ByFolded  map[string]int64 // by folded collection
	More      bool             // the limits have ended it
}

// state is what is known of a document and its history.
type state struct {
	Span
	history    format.History
	recorded   bool             // the history has a record
	there      bool             // the document is there
	awaited    bool             // the document is not there, and an import may still bring it
	header     *metadata.Header // of the document, if it is there
	collection string           // folded; of the document, or else of its newest revision
}

// stateOf reads the state of a document. It looks up three keys.
func stateOf(r env.Getter, foldedID string) (s state, err error) {
	if s.history, s.recorded, err = HistoryOf(r, foldedID); err != nil {
		return s, err
	}
	s.First, s.Last = s.history.First, s.history.Last
	value, closer, err := r.Get(format.DocumentKey(nil, foldedID))
	if err == nil {
		var h metadata.Header
		_, err = h.Decode(value)
		s.there, s.header = true, &metadata.Header{Node: h.Node, Etag: h.Etag, Modified: h.Modified, Revision: h.Revision}
		s.collection = format.CollectionKey(string(h.Collection))
		if h.Revision > 0 {
			s.Last = h.Revision - 1
		}
		s.Replaced, s.Newest = h.Modified, s.Last+1
		return s, errs.First(err, closer.Close())
	}
	if err != storage.ErrNotFound {
		return s, err
	}
	newest, err := factOf(r, foldedID, s.Last)
	s.collection, s.Replaced, s.Newest = newest.collection, newest.modified, s.Last
	if newest.deletion {
		s.Newest--
	}
	s.awaited = newest.imported && !newest.deletion
	return s, err
}

// drops reports whether the oldest revision satisfies the criterion.
func (s *state) drops(r env.Getter, foldedID string, c Criterion) (bool, error) {
	if s.First > s.Last || !c.numbers(s.First, s.Span) {
		return false, nil
	}
	if c.before == ever {
		return true, nil
	}
	replaced := s.Replaced
	if s.First < s.Last {
		next, err := factOf(r, foldedID, s.First+1)
		if err != nil {
			return false, err
		}
		replaced = next.modified
	}
	return replaced < c.before, nil
}

// Trim stages the removal of the oldest revisions, as long as they satisfy the
// criterion, at most limit of them. It stages neither the history nor the counts.
func Trim(tx storage.Tx, foldedID string, s Span, limit int, c Criterion) (out Removed, err error) {
	out.First = s.First
	var next fact // revision out.First, if it was read
	for ; out.First <= s.Last && limit > 0 && out.Bytes < trimBytes && c.numbers(out.First, s); out.First++ {
		limit--
		this := next
		if next = (fact{}); !this.found {
			if this, err = factOf(tx, foldedID, out.First); err != nil {
				return out, err
			}
		}
		if !this.found {
			continue // it was lost, and the loss was accepted: see Recover
		}
		if c.before != ever {
			replaced := s.Replaced
			if out.First < s.Last {
				if next, err = factOf(tx, foldedID, out.First+1); err != nil {
					return out, err
				}
				replaced = next.modified
			}
			if replaced >= c.before {
				break
			}
		}
		tx.Delete(format.RevisionKey(nil, foldedID, out.First))
		if out.ByFolded == nil {
			out.ByFolded = make(map[string]int64, 1)
		}
		out.ByFolded[this.collection]++
		out.Revisions++
		out.Bytes += this.bytes
	}
	out.More = out.First <= s.Last && (limit == 0 || out.Bytes >= trimBytes)
	return out, nil
}
