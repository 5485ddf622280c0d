package jay

import (
	"context"
	"fmt"
	"slices"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/write"
)

// ForceRevision makes the next SaveChanges keep a revision of the entity's document as
// it is in the database, and of what is saved, whatever the configuration of the
// revisions says (Advanced.Revisions.ForceRevisionCreationFor of RavenDB). An entity
// without changes is not written, and WhatChanged does not list it: its document becomes
// a revision, and SaveChanges returns ErrNotFound if it is not there any more.
func (s *Session) ForceRevision(v any) error {
	e, err := s.find(v)
	if err != nil {
		return err
	}
	e.force = true
	return nil
}

// savingOfRevision returns the write that keeps a revision of an entity without changes.
func (s *Session) savingOfRevision(e *entity) saving {
	o := write.TakeOp()
	initOp(o, write.Keep, e.id, nil, nil)
	o.Collection, o.InCollection = e.m.Collection, format.FoldName(e.m.Collection)
	if s.optimistic || e.m.Version != nil {
		version := e.doc.ChangeVector()
		o.Expected = &version
	}
	return saving{op: o, entity: e, kept: true}
}

// savedRevision records that the document of an entity is a revision. If it has another
// version than the one that was loaded, the session goes on from that.
func savedRevision(e *entity, o *op) {
	if h := e.doc.Header(); h.Etag == o.Header.Etag && h.Node == o.Header.Node {
		doc := *e.doc // others may share it
		doc.SetRevision(o.Header.Revision)
		e.doc = &doc
	}
}

// doubt notes a save whose outcome is not known. That of a write which only keeps a
// revision need not be known: the next save does it again.
func (s *Session) doubt(writes []*saving, exchanges []*op) {
	writes = slices.DeleteFunc(slices.Clone(writes), func(w *saving) bool { return w.op.Verb == write.Keep })
	if len(writes)+len(exchanges) > 0 {
		s.inDoubt = &inDoubtSave{writes, exchanges, s.db, s.db.reserved.Etags()}
	}
}

// LoadRevision returns a revision as a value of T, or ErrNotFound. The session does not
// hold the value: it is a document of the past, and SaveChanges does not look at it.
// A deletion is ErrNotFound, too. If the document was in another collection than T's, the
// error is a *CollectionError as well.
func LoadRevision[T any](ctx context.Context, s *Session, id, changeVector string) (*T, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	rev, err := s.db.Revisions().Get(ctx, id, changeVector)
	if err != nil {
		return nil, err
	}
	if rev.Deletion() {
		return nil, fmt.Errorf("revision %.100q of %q is a deletion: %w", changeVector, errs.Shorten(id), ErrNotFound)
	}
	return valueOf[T](s, rev)
}

// revisionsPage is how many values LoadRevisions returns unless it is asked for a number.
const revisionsPage = 25

// LoadRevisions returns the revisions of a document as values of T, newest first, without
// deletions: as many as page.Limit says, or 25. The session does not hold them. See
// Revisions.List for page.
func LoadRevisions[T any](ctx context.Context, s *Session, id string, page RevisionPage) ([]*T, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	limit := page.Limit
	if limit == 0 {
		limit = revisionsPage
	}
	if limit > 0 {
		page.Limit = 0 // deletions do not count
	}
	var out []*T
	for rev, err := range s.db.Revisions().List(ctx, id, page) {
		if err != nil {
			return nil, err
		}
		if rev.Deletion() {
			continue
		}
		v, err := valueOf[T](s, rev)
		if err != nil {
			return nil, err
		}
		if out = append(out, v); len(out) == limit {
			break
		}
	}
	return out, nil
}

// valueOf returns a revision as a value.
func valueOf[T any](s *Session, rev *Revision) (*T, error) {
	v := new(T)
	m, err := s.checkEntity(v)
	if err != nil {
		return nil, err
	}
	if err := decodeMember(m, &rev.inner.Document, v); err != nil {
		return nil, err
	}
	if m.Version != nil {
		m.SetIdentity(v, rev.ID(), rev.ChangeVector())
	}
	return v, nil
}
