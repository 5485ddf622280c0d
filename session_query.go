package jay

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/query"
)

// sessionAccess is how a session runs queries.
type sessionAccess struct {
	access
	s *Session
}

// startRun implements access. A save whose outcome is in doubt is resolved first.
func (a sessionAccess) startRun(ctx context.Context, q *query.Query, o exec.Options) (*exec.Run, error) {
	if err := a.s.resolveElsewhere(ctx); err != nil {
		return nil, err
	}
	return a.s.db.startRun(ctx, q, o)
}

// QueryOf asks for entities of the session. The query reads the database, and not what
// the session has changed and not saved; but each answer that the session holds already
// is the same pointer, as it is there, and every other is an entity of the session from
// then on, which SaveChanges writes if it has changed. What Include brings is in
// the session, for Load. Documents that the session will delete are left out of the
// answers, so that there may be fewer than Limit; Count counts them.
//
// Values of Select are no entities. Like the session, the query is for one goroutine.
func QueryOf[T any](s *Session) Query[T] {
	m, err := s.mappingOf(reflect.TypeFor[T]())
	if err != nil {
		return Query[T]{def: definition{err: err}}
	}
	return Query[T]{
		def: definition{via: sessionAccess{s.db, s}, q: query.Query{From: m.Collection}, m: m, answers: reflect.TypeFor[T](), arrive: s.include, tracked: true},
		decode: func(r *exec.Row) (*T, error) {
			doc := r.Document
			if s.deleted(doc.FoldedID()) {
				return nil, nil
			}
			e := s.byID[doc.FoldedID()]
			if e == nil {
				value := new(T)
				if err := decodeMember(m, doc, value); err != nil {
					return nil, err
				}
				e = &entity{m: m, value: value, id: doc.ID(), foldedID: strings.Clone(doc.FoldedID()), doc: doc}
				s.keep(e)
			}
			v, ok := e.value.(*T)
			if !ok {
				return nil, fmt.Errorf("%w: the session holds %q as a %T", ErrType, e.id, e.value)
			}
			return v, nil
		},
	}
}

// include keeps documents that came along with others.
func (s *Session) include(found []*docs.Document) {
	for _, doc := range found {
		if s.byID[doc.FoldedID()] == nil {
			s.included[doc.FoldedID()] = doc
		}
	}
}
