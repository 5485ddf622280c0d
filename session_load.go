package jay

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/jsonpath"
)

// LoadOption changes one Load.
type LoadOption func(*loading)

type loading struct{ includes []string }

// Include also reads, at the same moment, the documents whose IDs the loaded ones
// hold at these paths, such as "customer", "lines[].product" or "billing.address".
// The session then answers a later Load of such an ID. A value that is no text, or
// no ID of a document, is skipped.
func Include(paths ...string) LoadOption {
	return func(l *loading) { l.includes = append(l.includes, paths...) }
}

// Load returns the entity with this ID: the one that the session holds, or
// else the document, decoded, which the session then holds. It returns
// ErrNotFound if there is none or if the session will delete it; if the document
// is in another collection than T's, the error is a *CollectionError as well. It
// returns ErrType if the session holds it as another type.
func Load[T any](ctx context.Context, s *Session, id string, opts ...LoadOption) (*T, error) {
	vs, err := LoadMany[T](ctx, s, []string{id}, opts...)
	if err != nil {
		return nil, err
	}
	if vs[0] == nil {
		return nil, fmt.Errorf("load %q: %w", errs.Shorten(id), ErrNotFound)
	}
	return vs[0], nil
}

// LoadMany returns the entities with these IDs, in their order, as Load does.
// Those that must be read are read at one moment. A missing one is nil.
func LoadMany[T any](ctx context.Context, s *Session, ids []string, opts ...LoadOption) ([]*T, error) {
	m, err := s.mappingOf(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	if err := s.load(ctx, m, ids, opts); err != nil {
		return nil, err
	}
	vs := make([]*T, len(ids))
	for i, id := range ids {
		e := s.byID[s.db.env.Rules.Fold(id)]
		if e == nil {
			continue
		}
		v, ok := e.value.(*T)
		if !ok {
			return nil, fmt.Errorf("%w: load %.100q: the session holds it as a %T", ErrType, id, e.value)
		}
		vs[i] = v
	}
	return vs, nil
}

// load makes the session hold the entities with these IDs, as far as there
// are documents, and their includes.
func (s *Session) load(ctx context.Context, m *codec.Mapping, ids []string, opts []LoadOption) error {
	var l loading
	for _, option := range opts {
		option(&l)
	}
	paths := make([]jsonpath.Path, len(l.includes))
	for i, text := range l.includes {
		var err error
		if paths[i], err = jsonpath.Parse(text); err != nil {
			return fmt.Errorf("%w: include: %w", ErrUsage, err)
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
	return s.db.View(ctx, func(tx *Tx) error {
		found, err := tx.GetMany(ctx, missing...)
		if err != nil {
			return err
		}
		entities, err := s.decodeAll(m, inner(found))
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
		folded := s.db.env.Rules.Fold(id)
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
		if err := decodeMember(m, doc, value); err != nil {
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
		if doc := s.included[s.db.env.Rules.Fold(id)]; doc != nil && !slices.Contains(came, doc) {
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
		folded := s.db.env.Rules.Fold(id)
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
func (s *Session) readIncludes(ctx context.Context, tx *Tx, ids []string) ([]*docs.Document, error) {
	ids = s.notHeld(ids)
	if len(ids) > docs.MaxIncludes {
		return nil, fmt.Errorf("%w: the includes name %d documents, at most %d", ErrTooLarge, len(ids), docs.MaxIncludes)
	}
	found, err := tx.GetMany(ctx, ids...)
	if err != nil {
		return nil, err
	}
	var out []*docs.Document
	for _, doc := range found {
		if doc != nil {
			out = append(out, doc.inner())
		}
	}
	return out, nil
}
