package jay

import (
	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/patch"
)

// FieldChange is one difference between two bodies. Its fields (see package patch):
//
//	Path      string           of the member or element, as in a patch
//	Kind      patch.ChangeKind added, removed or changed
//	Old, New  json.RawMessage  the values; nil if it was added or removed
type FieldChange = patch.Change

// EntityState is what SaveChanges will do with an entity.
type EntityState string

const (
	EntityAdded   EntityState = "added"   // it is new
	EntityChanged EntityState = "changed" // it differs from its document
	EntityDeleted EntityState = "deleted" // its document will go
)

// EntityChanges are the changes of one entity that SaveChanges would write.
type EntityChanges struct {
	ID     string        `json:"id"` // final, or the request for one
	State  EntityState   `json:"state"`
	Entity any           `json:"-"`                // nil for a deletion by ID
	Fields []FieldChange `json:"fields,omitempty"` // if State is EntityChanged; empty if only metadata was
}

// WhatChanged returns what SaveChanges would write, in its order.
func (s *Session) WhatChanged() ([]EntityChanges, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	writes, err := s.collect()
	if err != nil {
		return nil, err
	}
	out := make([]EntityChanges, 0, len(writes))
	for _, w := range writes {
		if w.deletion != nil {
			c := EntityChanges{ID: w.deletion.id, State: EntityDeleted}
			if w.deletion.entity != nil {
				c.Entity = w.deletion.entity.value
			}
			out = append(out, c)
			continue
		}
		if w.op.Verb == write.Keep {
			continue // the document stays as it is
		}
		c := EntityChanges{ID: w.entity.id, State: EntityAdded, Entity: w.entity.value}
		if w.entity.doc != nil {
			c.State = EntityChanged
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
func (s *Session) fieldsChanged(w *saving) ([]FieldChange, error) {
	if w.kept {
		return nil, nil
	}
	now, err := s.strip(w.entity.m, codec.Encoded{Body: w.op.Body, Stored: w.op.Validated})
	if err != nil {
		return nil, err
	}
	return patch.Diff(w.entity.loaded, now), nil
}

// HasChanges reports whether SaveChanges has something to write.
func (s *Session) HasChanges() (bool, error) {
	if err := s.check(); err != nil {
		return false, err
	}
	writes, err := s.collect()
	return len(writes) > 0, err
}
