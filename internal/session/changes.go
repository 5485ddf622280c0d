package session

import (
	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/patch"
)

// What SaveChanges will do with an entity.
const (
	Added   = "added"
	Changed = "changed"
	Deleted = "deleted"
)

// Change is what SaveChanges would write of one entity.
type Change struct {
	ID     string // final, or the request for one
	State  string // Added, Changed or Deleted
	Entity any    // nil for a deletion by ID
	Fields []patch.Change
}

// WhatChanged returns what SaveChanges would write, in its order.
func (s *Session) WhatChanged() ([]Change, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	writes, err := s.collect()
	if err != nil {
		return nil, err
	}
	out := make([]Change, 0, len(writes))
	for _, w := range writes {
		if w.deletion != nil {
			c := Change{ID: w.deletion.id, State: Deleted}
			if w.deletion.entity != nil {
				c.Entity = w.deletion.entity.value
			}
			out = append(out, c)
			continue
		}
		if w.op.Verb.KeepsVersion() {
			continue // the document stays as it is
		}
		c := Change{ID: w.entity.id, State: Added, Entity: w.entity.value}
		if w.entity.doc != nil {
			c.State = Changed
			if c.Fields, err = s.fieldsChanged(w); err != nil {
				return nil, err
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// fieldsChanged returns how a changed entity differs from its document, as the
// struct had it.
func (s *Session) fieldsChanged(w *saving) ([]patch.Change, error) {
	if w.kept {
		return nil, nil
	}
	now, err := s.strip(w.entity.m, codec.Encoded{Body: w.op.Body, Stored: w.op.Validated})
	if err != nil {
		return nil, err
	}
	return patch.Diff(w.entity.loaded, now), nil
}

// HasChanges is the method of a session of package jay.
func (s *Session) HasChanges() (bool, error) {
	if err := s.Check(); err != nil {
		return false, err
	}
	writes, err := s.collect()
	return len(writes) > 0 || s.cluster.changesValues(), err
}
