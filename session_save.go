package jay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/jaydb/jay/metadata"
)

// attempt is a save whose outcome is not known.
type attempt struct{ writes []*saving }

// saving is one write of a SaveChanges: of an entity or a deletion.
type saving struct {
	op       *op
	entity   *entity
	deletion *deletion
}

// SaveChanges writes, in one atomic write, first the deletions in the order
// in which they were asked for, then the entities that are new or were changed
// in the order in which the session got them. Custom metadata stays as it was
// loaded, unless SetMetadata changed it; members of the stored JSON that the
// struct has no field for are lost once the entity is changed. Without
// changes SaveChanges does nothing.
//
// When it returns nil, the IDs that the database made, and version fields,
// are in the structs, and the session goes on from what was saved.
//
// After an error nothing was written, the session holds what it held, and
// SaveChanges can be called again; IDs that Store has given stay. After
// ErrUnknownOutcome the database must be opened again first: see Reattach.
// The next SaveChanges then finds out whether the write survived, by the
// versions that it would have given the documents, and does not repeat it.
func (s *Session) SaveChanges(ctx context.Context) error {
	if err := s.recognise(ctx); err != nil {
		return fmt.Errorf("save changes: %w", err)
	}
	writes, err := s.collect()
	if err != nil {
		return fmt.Errorf("save changes: %w", err)
	}
	ops := make([]*op, len(writes))
	for i, w := range writes {
		ops[i] = w.op
	}
	if err := s.db.write(ctx, ops); err != nil {
		if errors.Is(err, ErrUnknownOutcome) {
			s.attempt = &attempt{writes}
		}
		return fmt.Errorf("save changes: %w", err)
	}
	for _, w := range writes {
		s.saved(w)
	}
	s.deletes = nil
	return nil
}

// collect returns what is to be written.
func (s *Session) collect() ([]*saving, error) {
	var writes []*saving
	for _, d := range s.deletes {
		o := newOp(verbDelete, d.id, nil, nil)
		o.expected = d.version
		if d.m != nil {
			o.collection, o.only = d.m.name, foldName(d.m.name)
		}
		writes = append(writes, &saving{op: o, deletion: d})
	}
	live := s.order[:0]
	for _, e := range s.order {
		if e.evicted {
			continue
		}
		live = append(live, e)
		w, err := s.savingOf(e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e, err)
		}
		if w != nil {
			writes = append(writes, w)
		}
	}
	clear(s.order[len(live):])
	s.order = live
	return writes, nil
}

// String names an entity, for errors.
func (e *entity) String() string { return fmt.Sprintf("%s %q", e.m.typ, shorten(e.id)) }

// savingOf returns the write of an entity, or nil if it needs none.
func (s *Session) savingOf(e *entity) (*saving, error) {
	if id := e.m.getID(e.value); id != e.id {
		return nil, fmt.Errorf("%w: its id field was changed to %q; an id that a session has given or loaded stays", ErrUsage, shorten(id))
	}
	body, changed, err := s.changed(e)
	if err != nil || !changed {
		return nil, err
	}
	o := newOp(verbPut, e.id, body, nil)
	o.collection, o.prefix, o.drop = e.m.name, e.m.prefix, e.m.drop
	o.custom = e.custom
	if o.custom == nil && e.doc != nil {
		o.custom = e.doc.header.Custom
	}
	switch {
	case e.doc == nil && (e.made || e.folded == ""):
		o.verb = verbInsert
	case s.optimistic || e.m.version != nil:
		version := ""
		if e.doc != nil {
			version = e.doc.ChangeVector()
		}
		o.expected = &version
	}
	return &saving{op: o, entity: e}, nil
}

// changed returns the JSON of an entity and tells whether it must be written.
func (s *Session) changed(e *entity) (body []byte, changed bool, err error) {
	if body, err = e.m.encode(e.value); err != nil {
		return nil, false, err
	}
	if e.doc == nil || (e.custom != nil && !bytes.Equal(orObject(e.doc.header.Custom), e.custom)) {
		return body, true, nil
	}
	now, err := s.strip(e.m, body)
	if err != nil || bytes.Equal(now, e.doc.body) {
		return body, false, err
	}
	// Another program may have written the document, with other members or in
	// another order: what counts is what the struct makes of it.
	if e.loaded == nil {
		if e.loaded, err = s.reencode(e); err != nil {
			return nil, false, err
		}
	}
	return body, !bytes.Equal(now, e.loaded), nil
}

// orObject returns custom metadata as the object that it is when empty.
func orObject(custom []byte) []byte {
	if custom == nil {
		return []byte("{}")
	}
	return custom
}

// strip returns what of a struct's JSON is stored.
func (s *Session) strip(m *mapping, body []byte) ([]byte, error) {
	scanned, err := metadata.Scan(body, metadata.Limits{MaxBytes: s.db.opts.MaxDocumentBytes, MaxDepth: s.db.opts.MaxDepth}, m.drop...)
	return scanned.Body, err
}

// reencode returns what would be stored of an entity as it was loaded.
func (s *Session) reencode(e *entity) ([]byte, error) {
	fresh := reflect.New(e.m.typ).Interface()
	if err := e.m.decode(e.doc, fresh); err != nil {
		return nil, err
	}
	body, err := e.m.encode(fresh)
	if err != nil {
		return nil, err
	}
	return s.strip(e.m, body)
}

// saved notes that a write is done.
func (s *Session) saved(w *saving) {
	if w.entity == nil {
		return
	}
	e, o := w.entity, w.op
	e.id, e.folded = o.result.ID, o.foldedID
	e.doc = &Document{db: s.db, folded: o.foldedID, header: o.header, body: o.json}
	e.made, e.custom, e.loaded = false, nil, nil
	if e.evicted {
		return
	}
	s.byID[e.folded] = e
	e.m.setIdentity(e.value, e.id, o.result.ChangeVector)
}

// inAttempt tells whether an entity may have been written by a save whose
// outcome is not known.
func (s *Session) inAttempt(e *entity) bool {
	if s.attempt == nil {
		return false
	}
	for _, w := range s.attempt.writes {
		if w.entity == e {
			return true
		}
	}
	return false
}

// recognise finds out what became of the last attempt. Its documents would
// have change vectors that no other write can have, and one of them speaks
// for all, as the write was atomic.
func (s *Session) recognise(ctx context.Context) error {
	if s.attempt == nil {
		return nil
	}
	survived, puts := false, 0
	gone := make(map[*deletion]bool)
	for _, w := range s.attempt.writes {
		doc, err := s.db.Get(ctx, w.op.result.ID)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("find out whether the last save survived: %w", err)
		}
		if w.deletion != nil {
			gone[w.deletion] = doc == nil
			continue
		}
		puts++
		survived = survived || (doc != nil && doc.ChangeVector() == w.op.result.ChangeVector)
	}

	for _, w := range s.attempt.writes {
		switch {
		case w.deletion != nil && (survived || (puts == 0 && gone[w.deletion])):
			s.dropDeletion(w.deletion)
		case w.entity != nil && survived:
			s.saved(w)
		}
	}
	s.settleDeletions()
	s.attempt = nil
	return nil
}

func (s *Session) dropDeletion(done *deletion) {
	left := s.deletes[:0]
	for _, d := range s.deletes {
		if d != done {
			left = append(left, d)
		}
	}
	s.deletes = left
}

// settleDeletions gives deletions of entities that had no ID yet the one that
// was made for them, or drops them if there is none.
func (s *Session) settleDeletions() {
	left := s.deletes[:0]
	for _, d := range s.deletes {
		if d.folded == "" {
			if d.entity.doc == nil {
				continue
			}
			d.id, d.folded = d.entity.id, d.entity.folded
		}
		left = append(left, d)
	}
	s.deletes = left
}
