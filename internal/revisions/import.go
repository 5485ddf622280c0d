package revisions

import (
	"bytes"
	"context"
	"fmt"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Imported is a revision of another database.
type Imported struct {
	ID           string
	FoldedID     string
	Collection   string // "" for documents without one
	ChangeVector string
	Etag         uint64 // of the change vector
	Modified     uint64 // ticks
	Deletion     bool
	Custom       []byte // or nil
	Body         []byte
}

// maxVectorBytes bounds the length of a change vector.
const maxVectorBytes = 256

// Check returns an error for an invalid change vector.
func (m *Imported) Check() (err error) {
	if len(m.ChangeVector) <= maxVectorBytes {
		for i := 0; i < len(m.ChangeVector); i++ {
			if c := m.ChangeVector[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
				return fmt.Errorf("%w: change vector %.100q", ids.ErrUsage, m.ChangeVector)
			}
		}
		if m.Etag, err = EtagOf(m.ChangeVector); err == nil && m.Etag <= 1<<62 {
			return nil
		}
	}
	return fmt.Errorf("%w: change vector %.100q", ids.ErrUsage, m.ChangeVector)
}

// Import stores revisions, all or none, and returns how many of them are new. Those of one
// document must be in the order of their etags and above those that it has, and the
// document must not exist yet; otherwise the error is an errs.ErrExists. All etags must be
// reserved.
func (r *Reader) Import(ctx context.Context, all []Imported) (stored int, err error) {
	r.Env.Room.Look()
	err = r.Env.Engine.Update(ctx, r.Env.Synced, func(tx storage.Tx) error {
		stored = 0
		for i := range all {
			isNew, err := r.stageImport(tx, &all[i])
			if err != nil {
				return fmt.Errorf("revision %s of %q: %w", all[i].ChangeVector, errs.Shorten(all[i].ID), err)
			}
			if isNew {
				stored++
			}
		}
		return nil
	})
	return stored, err
}

func (r *Reader) stageImport(tx storage.Tx, m *Imported) (isNew bool, err error) {
	s, err := stateOf(tx, m.FoldedID)
	if err != nil {
		return false, err
	}
	if s.First <= s.Last {
		last, err := factOf(tx, m.FoldedID, s.Last)
		if err != nil {
			return false, err
		}
		if m.Etag <= last.etag {
			return false, r.isThere(tx, m)
		}
	}
	if s.there {
		return false, fmt.Errorf("%w: its past cannot be added to it", errs.ErrExists)
	}

	h := metadata.Header{Node: r.Env.Node, Etag: m.Etag, Modified: m.Modified, Collection: []byte(m.Collection), Custom: m.Custom, Revision: s.Last + 1}
	if m.ID != m.FoldedID {
		h.ID = []byte(m.ID)
	}
	head := h.AppendTail(h.AppendHead(format.RevisionHead{Deletion: m.Deletion, Foreign: []byte(m.ChangeVector)}.Append(nil)))
	if err := r.Env.Room.Spend(len(head) + len(m.Body)); err != nil {
		return false, err
	}
	tx.Set(format.RevisionKey(nil, m.FoldedID, s.Last+1), head, m.Body)
	tx.Set(format.HistoryKey(nil, m.FoldedID), format.History{First: s.First, Last: s.Last + 1}.Append(nil), nil)
	tx.Set(format.DeletedKey(nil, m.FoldedID), nil, nil) // until the document itself is imported
	tx.Add(format.RevisionCountKey(nil, format.CollectionKey(m.Collection)), 1)
	return true, env.Revised(tx)
}

// isThere returns nil if the revision is stored already, and otherwise an error.
func (r *Reader) isThere(tx storage.Tx, m *Imported) error {
	there, err := r.Get(tx, m.FoldedID, m.ChangeVector)
	if err == errs.ErrNotFound {
		return fmt.Errorf("%w: it has newer revisions, and this one cannot be added to them", errs.ErrExists)
	}
	if err != nil {
		return err
	}
	if there.Deletion != m.Deletion || there.Header().Modified != m.Modified || !bytes.Equal(there.JSON(), m.Body) {
		return fmt.Errorf("%w: it has another revision with this change vector", errs.ErrExists)
	}
	return nil
}
