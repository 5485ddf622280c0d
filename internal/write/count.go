package write

import "github.com/jaydb/jay/internal/format"

// counted is how many documents or revisions of a collection a run of a transaction
// makes, less those that it deletes.
type counted struct {
	collection string // folded
	revisions  bool
	delta      int64
}

// maxCounted is the number of collections up to which a list is searched.
const maxCounted = 16

// count notes that the run makes documents of a collection, or deletes them.
func (t *Txn) count(foldedCollection, foldedID string, delta int64) error {
	if !t.Writer.Counts.IsReady() {
		if t.counting == nil {
			state, err := t.Writer.Counts.State(t.Tx)
			if err != nil {
				return err
			}
			t.counting = &state
		}
		if !t.counting.Covers(foldedID) {
			return nil // the count will come to it
		}
	}
	t.addCount(foldedCollection, false, delta)
	return nil
}

// countRevisions notes that the run makes revisions of a collection, or removes them.
func (t *Txn) countRevisions(foldedCollection string, delta int64) {
	t.addCount(foldedCollection, true, delta)
}

func (t *Txn) addCount(foldedCollection string, revisions bool, delta int64) {
	for i := range t.counts {
		if c := &t.counts[i]; c.collection == foldedCollection && c.revisions == revisions {
			c.delta += delta
			return
		}
	}
	if len(t.counts) == maxCounted {
		t.stageCounts()
	}
	t.counts = append(t.counts, counted{foldedCollection, revisions, delta})
}

// stageCounts stages what was counted.
func (t *Txn) stageCounts() {
	for _, c := range t.counts {
		if c.delta != 0 {
			if t.key = format.CountKey(t.key[:0], c.collection); c.revisions {
				t.key = format.RevisionCountKey(t.key[:0], c.collection)
			}
			t.Tx.Add(t.key, c.delta)
		}
	}
	clear(t.counts) // it outlives the transaction
	t.counts = t.counts[:0]
}
