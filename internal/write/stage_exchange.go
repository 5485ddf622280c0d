package write

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/exchange"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
)

// Exchanging is what an op with the verb Exchange does with a compare-exchange value. Its
// key is the op's RequestID, the new value its Body and the new metadata its Custom.
type Exchanging struct {
	Index  uint64 // that the value must have; 0 if there must be none
	Delete bool

	Folded string // the folded key; made by preparing
}

// Guard is the guard of the document that an op writes: a compare-exchange value that
// each write of a cluster-wide transaction replaces, and a deletion removes. When the
// op is committed, Index is the new one, 0 after a deletion.
type Guard struct {
	Index uint64 // that the guard must have; 0 if there must be none
	Any   bool   // it may have any, and may be missing
}

// GuardKey returns the folded key of the guard of a document.
func GuardKey(foldedID string) string { return format.GuardPrefix + foldedID }

// prepareExchange checks a key, a value and its metadata.
func (w *Writer) prepareExchange(o *Op) (err error) {
	x := o.Exchanging
	if w.NoCluster != nil {
		return w.NoCluster
	}
	if x.Folded, err = exchange.CheckKey(w.Env.Rules, o.RequestID); err != nil {
		return err
	}
	if x.Index > math.MaxInt64 {
		return fmt.Errorf("%w: an index is at most %d, not %d", ids.ErrUsage, int64(math.MaxInt64), x.Index)
	}
	o.ID, o.Strategy, o.Header = o.RequestID, ids.Semantic, metadata.Header{}
	if x.Delete {
		return nil
	}
	if o.JSON, err = exchange.CheckValue(o.Body, w.Env.Limits); err != nil {
		return err
	}
	if o.Header.Custom, err = exchange.CheckMetadata(o.Custom, w.Env.Limits); err != nil {
		return err
	}
	if size := len(o.JSON) + len(o.Header.Custom); size > exchange.MaxValueBytes {
		return &metadata.Error{Rule: fmt.Sprintf("a compare-exchange value and its metadata have at most %d bytes", exchange.MaxValueBytes), Limit: exchange.MaxValueBytes, Actual: size, Offset: exchange.MaxValueBytes}
	}
	return nil
}

// checkGuard refuses a guard where there cannot be one.
func (o *Op) checkGuard() error {
	switch {
	case !o.Verb.Overwrites():
		return fmt.Errorf("%w: a cluster-wide transaction puts and deletes documents; it cannot %s one", ids.ErrUsage, o.Verb)
	case o.Strategy.MadeByCommit():
		return fmt.Errorf("%w: a cluster-wide transaction needs the id of a document, not a request for one", ids.ErrUsage)
	case o.Guard.Index > math.MaxInt64:
		return fmt.Errorf("%w: an index is at most %d, not %d", ids.ErrUsage, int64(math.MaxInt64), o.Guard.Index)
	}
	return nil
}

// stageExchange compares and stages a compare-exchange value, or its deletion.
func (t *Txn) stageExchange(o *Op) error {
	x := o.Exchanging
	if !o.Compared {
		if err := t.compare(o.RequestID, x.Folded, x.Index, true); err != nil {
			return err
		}
	}
	t.key = format.ExchangeKey(t.key[:0], x.Folded)
	if x.Delete {
		t.Tx.Delete(t.key)
		o.Outcome = Absent
		return nil
	}
	etag, err := t.Sequence()
	if err != nil {
		return err
	}
	if err := t.setExchange(o.RequestID, x.Folded, etag, o.Header.Custom, o.JSON); err != nil {
		return err
	}
	t.exchanged = etag
	o.Outcome, o.Header.Etag = Present, etag
	return nil
}

// setExchange stages a value, if the disk has room for it.
func (t *Txn) setExchange(key, folded string, index uint64, custom, value []byte) error {
	record := format.Exchange{Index: index, Metadata: custom}
	if key != folded {
		record.Key = []byte(key)
	}
	t.key = format.ExchangeKey(t.key[:0], folded)
	t.value = record.AppendHead(t.value[:0])
	if err := t.Writer.Env.Room.Spend(len(t.key) + len(t.value) + len(value)); err != nil {
		return err
	}
	t.Tx.Set(t.key, t.value, value)
	return nil
}

// compare returns a *CompareExchangeError if a value does not have an index. The error
// has the value that is there if it is asked for.
func (t *Txn) compare(key, folded string, expected uint64, withValue bool) error {
	actual, err := t.IndexOf(folded)
	if err != nil || actual == expected {
		return err
	}
	conflict := &metadata.CompareExchangeError{Key: key, Expected: expected, Actual: actual}
	if withValue && actual != 0 {
		now, err := exchange.Get(t.Tx, folded)
		if err != nil {
			return err
		}
		conflict.Value, conflict.Metadata = now.Value, now.Metadata
	}
	return conflict
}

// stageGuard compares the guard of the document of o, and stages the new one: its index
// is the etag of the document, which no other value has.
func (t *Txn) stageGuard(o *Op, etag uint64) error {
	if t.Writer.Cluster != nil {
		return nil // the coordinator has it
	}
	folded := GuardKey(o.FoldedID)
	if !o.Guard.Any && !o.Compared {
		if err := t.compare(format.GuardPrefix+o.ID, folded, o.Guard.Index, false); err != nil {
			return err
		}
	}
	if o.Verb.Deletes() {
		t.key = format.ExchangeKey(t.key[:0], folded)
		t.Tx.Delete(t.key)
		return nil
	}
	value, err := json.Marshal(struct{ Id string }{o.ID})
	if err != nil {
		return err
	}
	return t.setExchange(format.GuardPrefix+o.ID, folded, etag, nil, value)
}

// publishGuard gives the caller of o the new index of the guard.
func (o *Op) publishGuard() {
	o.Guard.Index, o.Guard.Any = o.Header.Etag, false
	if o.guardIndex != 0 {
		o.Guard.Index, o.guardIndex = o.guardIndex, 0
	}
	if o.Verb.Deletes() {
		o.Guard.Index = 0
	}
}

// exchangeResult is ResultOf for an op with the verb Exchange: the key, and the new
// index.
func (o *Op) exchangeResult() metadata.Metadata {
	return metadata.Metadata{ID: o.RequestID, Etag: o.Header.Etag}
}

// IndexOf returns the index of the compare-exchange value that a transaction commits on,
// 0 if there is none.
func (t *Txn) IndexOf(folded string) (uint64, error) { return exchange.IndexAt(t.Tx, folded) }
