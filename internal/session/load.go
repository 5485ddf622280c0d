package session

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/internal/txn"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Load makes the session hold the entities with these IDs, as far as there
// are documents, and those whose IDs they hold at the paths that includes names.
func (s *Session) Load(ctx context.Context, m *codec.Mapping, ids, includes []string) error {
	paths := make([]jsonpath.Path, len(includes))
	for i, text := range includes {
		var err error
		if paths[i], err = jsonpath.Parse(text); err != nil {
			return fmt.Errorf("%w: include: %w", errUsage, err)
		}
	}
	if err := s.resolveElsewhere(ctx); err != nil {
		return err
	}
	missing := s.notHeld(ids)
	adopted, err := s.decodeAll(m, s.cameAlong(ids))
	if err != nil {
		return err
	}
	if len(missing) == 0 && len(paths) == 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.keepAll(adopted)
		return nil
	}
	return txn.Observed(ctx, s.db, func(tx *txn.Tx) error {
		found, err := getMany(ctx, tx, missing)
		if err != nil {
			return err
		}
		entities, err := s.decodeAll(m, found)
		if err != nil {
			return err
		}
		included, err := s.readIncludes(ctx, tx, s.includeIDs(ids, entities, paths))
		if err != nil {
			return err
		}
		if err := s.readGuards(ctx, tx, missing, included); err != nil {
			return err
		}
		s.keepAll(entities)
		s.keepAll(adopted)
		for _, doc := range included {
			if s.byID[doc.FoldedID()] == nil {
				s.included[doc.FoldedID()] = doc
			}
		}
		return nil
	})
}

func (s *Session) keepAll(entities []*entity) {
	for _, e := range entities {
		s.keep(e)
	}
}

// notHeld returns the ids that must be read from the database.
func (s *Session) notHeld(ids []string) []string {
	var out []string
	seen := make(map[string]bool)
	for _, id := range ids {
		folded := s.db.Env.Rules.Fold(id)
		if s.byID[folded] != nil || s.included[folded] != nil || s.deleted(folded) || seen[folded] {
			continue
		}
		seen[folded] = true
		out = append(out, id)
	}
	return out
}

// decodeAll makes entities of documents. It does not change the session.
func (s *Session) decodeAll(m *codec.Mapping, found []*docs.Document) ([]*entity, error) {
	var out []*entity
	for _, doc := range found {
		if doc == nil {
			continue
		}
		value := reflect.New(m.Type).Interface()
		if err := core.DecodeMember(m, doc, value); err != nil {
			return nil, err
		}
		out = append(out, &entity{m: m, value: value, id: doc.ID(), foldedID: strings.Clone(doc.FoldedID()), doc: doc})
	}
	return out, nil
}

// cameAlong returns the included documents that are requested now.
func (s *Session) cameAlong(ids []string) []*docs.Document {
	var came []*docs.Document
	for _, id := range ids {
		if doc := s.included[s.db.Env.Rules.Fold(id)]; doc != nil && !slices.Contains(came, doc) {
			came = append(came, doc)
		}
	}
	return came
}

// includeIDs returns the IDs at paths in the documents of ids.
func (s *Session) includeIDs(ids []string, loaded []*entity, paths []jsonpath.Path) []string {
	if len(paths) == 0 {
		return nil
	}
	bodies := make(map[string][]byte, len(ids))
	for _, e := range loaded {
		bodies[e.foldedID] = e.doc.JSON()
	}
	var out []string
	for _, id := range ids {
		folded := s.db.Env.Rules.Fold(id)
		body := bodies[folded]
		if e := s.byID[folded]; e != nil && e.doc != nil {
			body = e.doc.JSON()
		}
		if doc := s.included[folded]; doc != nil {
			body = doc.JSON()
		}
		if body != nil {
			out = appendIDs(out, body, paths)
		}
	}
	return out
}

// appendIDs appends the texts that paths reach in a body, those in arrays at
// their ends included.
func appendIDs(out []string, body []byte, paths []jsonpath.Path) []string {
	docs.EachID(body, paths, func(raw []byte) bool {
		if docs.IsID(raw) {
			out = append(out, string(jsonpath.AppendUnquoted(nil, raw)))
		}
		return true
	})
	return out
}

// readIncludes reads the documents that the session does not hold.
func (s *Session) readIncludes(ctx context.Context, tx *txn.Tx, ids []string) ([]*docs.Document, error) {
	ids = s.notHeld(ids)
	if len(ids) > docs.MaxIncludes {
		return nil, fmt.Errorf("%w: the includes name %d documents, at most %d", storage.ErrTooLarge, len(ids), docs.MaxIncludes)
	}
	found, err := getMany(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	var out []*docs.Document
	for _, doc := range found {
		if doc != nil {
			out = append(out, doc)
		}
	}
	return out, nil
}

// Include keeps documents that came along with others.
func (s *Session) Include(found []*docs.Document) {
	for _, doc := range found {
		if s.byID[doc.FoldedID()] == nil && !s.deleted(doc.FoldedID()) {
			s.included[doc.FoldedID()] = doc
		}
	}
}

// getMany returns documents as a transaction sees them; nil for a missing one.
func getMany(ctx context.Context, tx *txn.Tx, ids []string) ([]*docs.Document, error) {
	found := make([]*docs.Document, len(ids))
	err := tx.LookupMany(ctx, ids, func(i int, doc *docs.Document) { found[i] = doc })
	return found, err
}

// ValueOf returns the entity with this ID, or nil.
func (s *Session) ValueOf(id string) any {
	if e := s.byID[s.db.Env.Rules.Fold(id)]; e != nil {
		return e.value
	}
	return nil
}

// EntityOf returns the entity of a document that a query has found: the one that the session
// holds, or a new one, which it holds from then on. It returns nil if the session will delete
// the document.
func (s *Session) EntityOf(m *codec.Mapping, doc *docs.Document) (any, error) {
	if s.deleted(doc.FoldedID()) {
		return nil, nil
	}
	if e := s.byID[doc.FoldedID()]; e != nil {
		return e.value, nil
	}
	found, err := s.decodeAll(m, []*docs.Document{doc})
	if err != nil {
		return nil, err
	}
	s.keep(found[0])
	s.cluster.forget(doc.FoldedID()) // it was read with an earlier version
	return found[0].value, nil
}

// StartRun starts a query. A save whose outcome is in doubt is resolved first.
func (s *Session) StartRun(ctx context.Context, q *query.Query, o exec.Options) (*exec.Run, error) {
	if err := s.resolveElsewhere(ctx); err != nil {
		return nil, err
	}
	return s.db.StartRun(ctx, q, o)
}
