package write

import (
	"fmt"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// StageIndexes replaces the index entries of a document. before is the old
// document, without a body if it did not exist; after is nil if the document is
// deleted.
func (t *Txn) StageIndexes(ci *catalog.Collection, id, folded string, before *OldDocument, after *catalog.Entries) error {
	var kept []bool // by position in after: the entry is there already
	if before.Body != nil {
		if after != nil {
			kept = make([]bool, len(after.List))
		}
		err := ci.EachStored(before.Body, func(old *catalog.Entries) error {
			for i := range old.List {
				e := &old.List[i]
				if same := after.Like(e); same >= 0 {
					kept[same] = after.List[same].Covering == e.Covering
				} else if err := t.stageRemoval(e, folded); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("old entries of %q: %w", folded, err)
		}
	}
	if after == nil {
		return nil
	}
	for i := range after.List {
		e := &after.List[i]
		if kept != nil && kept[i] && before.ID == id && e.Index.Info.State == index.Ready {
			continue // a build may not have added the document yet, and will not: the document changes
		}
		if err := t.stageEntry(e, id, folded); err != nil {
			return err
		}
	}
	for _, f := range after.Flags {
		if err := t.stageFlags(f); err != nil {
			return err
		}
	}
	return nil
}

// stageRemoval stages the removal of an index entry of a document. In a unique
// index under construction the document may not have the entry yet, and another
// document may have it: of two with the same values, one may be removed before the
// build reaches it.
func (t *Txn) stageRemoval(e *catalog.Entry, folded string) error {
	t.key = e.AppendKey(t.key[:0], folded)
	if e.Unique && e.Index.Info.State == index.Building {
		value, closer, err := t.Tx.Get(t.key)
		if err == storage.ErrNotFound {
			return nil
		}
		if err != nil {
			return err
		}
		owner, _ := catalog.SplitValue(value, true)
		mine := string(owner) == folded
		if err := closer.Close(); err != nil || !mine {
			return err
		}
	}
	t.Tx.Delete(t.key)
	return nil
}

func (t *Txn) stageEntry(e *catalog.Entry, id, folded string) error {
	t.key = e.AppendKey(t.key[:0], folded)
	t.value = e.AppendValue(t.value[:0], id, folded)
	if !e.Unique {
		t.Tx.Set(t.key, t.value, nil)
		return nil
	}
	if err := t.checkUnique(t.key); err != nil {
		return err
	}
	value, closer, err := t.Tx.Get(t.key)
	if err == nil {
		taken, _ := catalog.SplitValue(value, true)
		other := string(taken)
		if err := closer.Close(); err != nil {
			return err
		}
		if other != folded {
			if err := t.refuseTaken(e, id, other); err != nil {
				return err
			}
		}
	} else if err != storage.ErrNotFound {
		return err
	}
	if e.Index.Info.State == index.Building {
		if err := t.checkHidden(e, id, folded); err != nil {
			return err
		}
	}
	t.Tx.Set(t.key, t.value, nil)
	return nil
}

// refuseTaken returns the error of a value of a unique index that another document has.
func (t *Txn) refuseTaken(e *catalog.Entry, id, other string) error {
	if e.Index.Info.State == index.Building {
		if has, err := t.gives(other, e); err != nil || !has {
			return err // the entry is out of date: see hidden.go
		}
	}
	if err := t.MeetExpired(other); err != nil {
		return err
	}
	return &index.UniqueError{Index: e.Index.Info.Name, Collection: e.Index.Info.Collection, Value: e.Text(), ID: id, Other: t.Written(other)}
}

// Written returns the ID of a document as it was written.
func (t *Txn) Written(folded string) string { return WrittenIn(t.Tx, folded) }

// WrittenIn is Txn.Written for any reader.
func WrittenIn(r docs.Getter, folded string) string {
	record, closer, err := r.Get(format.DocumentKey(nil, folded))
	if err != nil {
		return folded
	}
	defer closer.Close() // only the text of an error depends on it
	if h, _, err := metadata.Decode(record); err == nil && h.ID != nil {
		return string(h.ID)
	}
	return folded
}

// stageFlags adds to the flags of an index.
func (t *Txn) stageFlags(f catalog.Flag) error {
	if t.flags[f.Number]&f.Flags == f.Flags {
		return nil
	}
	known, err := catalog.ReadFlags(t.Tx, f.Number)
	if err != nil {
		return err
	}
	if known&f.Flags != f.Flags {
		t.Tx.Set(format.IndexFlagsKey(f.Number), []byte{known | f.Flags}, nil)
	}
	if t.flags == nil {
		t.flags = make(map[uint32]byte)
	}
	t.flags[f.Number] = known | f.Flags
	return nil
}
