package write

import "github.com/jaydb/jay/internal/format"

// counted is by how much a run of a transaction changes the numbers at a key: those of
// documents, revisions or times. Only the first two are used.
type counted struct {
	what       countedThing
	collection string // folded; "" for times
	deltas     [2]int64
}

// countedThing is what numbers count.
type countedThing uint8

const (
	countedDocuments countedThing = iota // documents and bytes of a collection: format.Tally
	countedRevisions                     // of a collection
	countedTimes                         // of all documents: format.TimesTally
)

// maxCounted is the number of keys up to which a list is searched.
const maxCounted = 16

// count notes that the run makes documents of a collection, or deletes them, and how many
// bytes more the collection has then.
func (t *Txn) count(foldedCollection, foldedID string, documents, bytes int64) error {
	if !t.Writer.Counts.IsReady() {
		if t.counting == nil {
			state, err := t.Writer.Counts.State(t.Tx)
			if err != nil {
				return err
			}
			t.counting = &state
		}
		coversDocument, coversBytes := t.counting.Of(foldedID)
		if !coversDocument { // the count will come to it
			documents = 0
		}
		if !coversBytes {
			bytes = 0
		}
	}
	t.addCount(countedDocuments, foldedCollection, [2]int64{documents, bytes})
	return nil
}

// countRevisions notes that the run makes revisions of a collection, or removes them.
func (t *Txn) countRevisions(foldedCollection string, delta int64) {
	t.addCount(countedRevisions, foldedCollection, [2]int64{delta})
}

// countTime notes that the run makes entries of what is due, or removes them.
func (t *Txn) countTime(kind byte, delta int64) {
	deltas := [2]int64{delta, 0}
	if kind == format.DueRefresh {
		deltas = [2]int64{0, delta}
	}
	t.addCount(countedTimes, "", deltas)
}

func (t *Txn) addCount(what countedThing, foldedCollection string, deltas [2]int64) {
	if deltas == [2]int64{} {
		return
	}
	for i := range t.counts {
		if c := &t.counts[i]; c.what == what && c.collection == foldedCollection {
			c.deltas[0] += deltas[0]
			c.deltas[1] += deltas[1]
			return
		}
	}
	if len(t.counts) == maxCounted {
		t.stageCounts()
	}
	t.counts = append(t.counts, counted{what, foldedCollection, deltas})
}

// stageCounts stages what was counted.
func (t *Txn) stageCounts() {
	for i := range t.counts {
		c := &t.counts[i]
		if c.deltas == [2]int64{} {
			continue
		}
		deltas := c.deltas[:]
		switch c.what {
		case countedDocuments:
			t.key = format.CountKey(t.key[:0], c.collection)
		case countedRevisions:
			t.key, deltas = format.RevisionCountKey(t.key[:0], c.collection), deltas[:1]
		case countedTimes:
			t.key = format.AppendTimesTallyKey(t.key[:0])
		}
		t.Tx.Add(t.key, deltas...)
	}
	clear(t.counts) // it outlives the transaction
	t.counts = t.counts[:0]
}
