// Package session is the unit of work: it keeps the entities that were loaded or stored, detects
// which of them have changed (save.go), and writes those in one atomic write. What became of a
// save whose outcome is not known is found out on a handle that was opened again.
//
// An entity is a pointer to a struct, with its mapping. A Session is not safe for concurrent use.
package session

import (
	"bytes"
	"context"
	"fmt"
	"reflect"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
)

// Session is a unit of work. Open makes it.
type Session struct {
	db         *core.Database
	optimistic bool
	mappings   map[reflect.Type]*codec.Mapping
	makes      func(reflect.Type) (*codec.Mapping, error) // a mapping that is not in mappings

	byID     map[string]*entity        // by folded ID
	byValue  map[any]*entity           // by pointer
	order    []*entity                 // as they came; those that were evicted stay, marked
	room     []entity                  // for entities to come
	deletes  []*deletion               // in the order in which they were requested
	included map[string]*docs.Document // by folded ID: included by a Load, not requested yet
	inDoubt  *inDoubtSave              // a save whose outcome is not known
	cluster  *clusterSession           // of a session with ClusterWide; else nil
}

// Open returns a new session. makes returns the mappings of types.
func Open(db *core.Database, makes func(reflect.Type) (*codec.Mapping, error)) *Session {
	s := &Session{db: db, mappings: make(map[reflect.Type]*codec.Mapping), makes: makes}
	s.Clear()
	return s
}

// SetOptimistic makes each save compare versions.
func (s *Session) SetOptimistic() { s.optimistic = true }

// SetClusterWide makes each save a cluster-wide transaction.
func (s *Session) SetClusterWide() {
	s.cluster = new(clusterSession)
	s.cluster.clear()
	s.optimistic = true
}

// SetMapping has the session map the type of m so.
func (s *Session) SetMapping(m *codec.Mapping) { s.mappings[m.Type] = m }

// Database returns the database of the session.
func (s *Session) Database() *core.Database { return s.db }

// entity is a struct that a session keeps.
type entity struct {
	m        *codec.Mapping
	value    any
	id       string         // final, or the request if the database will make it
	foldedID string         // "" until the ID is final
	made     bool           // the ID was made by the session and must be new
	version  string         // of a new entity: what its version field held when it was stored
	doc      *docs.Document // as it was loaded or saved; nil if it is new
	custom   []byte         // metadata to be written; nil for no change
	loaded   []byte         // doc as the struct would store it, once it was needed
	attached *entityAttachments
	evicted  bool
	forced   int // calls of ForceRevision that no save has carried out
}

// deletion is a document that a session will delete.
type deletion struct {
	id       string
	foldedID string
	entity   *entity // or nil
	version  string  // what the version field held when the deletion was requested
}

// Check returns ErrUsage for a Session that OpenSession has not made.
func (s *Session) Check() error {
	if s == nil || s.db == nil {
		return fmt.Errorf("%w: a session is made by OpenSession", ids.ErrUsage)
	}
	return nil
}

// MappingOf returns the mapping of a struct type.
func (s *Session) MappingOf(t reflect.Type) (*codec.Mapping, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if m := s.mappings[t]; m != nil {
		return m, nil
	}
	if m, made := s.db.Entities.Load(t); made { // many sessions are open for one request only
		s.mappings[t] = m.(*codec.Mapping)
		return s.mappings[t], nil
	}
	m, err := s.makes(t)
	if err != nil {
		return nil, err
	}
	s.db.Entities.Store(t, m)
	s.mappings[t] = m
	return m, nil
}

// newEntity returns room for an entity.
func (s *Session) newEntity() *entity {
	if len(s.room) == 0 {
		s.room = make([]entity, min(max(1, len(s.order)), 32))
	}
	e := &s.room[0]
	s.room = s.room[1:]
	return e
}

// CheckEntity returns the mapping of v, or ErrType.
func (s *Session) CheckEntity(v any) (*codec.Mapping, error) {
	value := reflect.ValueOf(v)
	if value.Kind() != reflect.Pointer || value.IsNil() || value.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("%w: an entity is a pointer to a struct, not %T", errs.ErrType, v)
	}
	return s.MappingOf(value.Type().Elem())
}

// nameEntity decides the ID of a new entity, as far as it can be known now.
func (s *Session) nameEntity(ctx context.Context, e *entity) (err error) {
	request := e.id
	switch {
	case request == "" && e.m.MakeID != nil:
		if request, err = e.m.MakeID(ctx, e.value); err != nil {
			return fmt.Errorf("make an id for %s: %w", e.m.Collection, err)
		}
	case request == "":
		e.made = true
		if e.id, err = s.nextHiLo(ctx, e.m.Prefix); err != nil {
			return err
		}
		e.foldedID = s.db.Env.Rules.Fold(e.id)
		return nil
	}

	resolved, strategy := s.db.Resolver.Request(request)
	if err := s.db.Resolver.Check(resolved, strategy); err != nil {
		return err
	}
	if strategy.MadeByCommit() {
		e.id = request
		return nil
	}
	e.made = strategy.Made()
	if e.id, _, err = s.db.Resolver.Make(strategy, nil, resolved); err != nil {
		return err
	}
	e.foldedID = s.db.Env.Rules.Fold(e.id)
	return nil
}

func (s *Session) nextHiLo(ctx context.Context, prefix string) (string, error) {
	if err := s.db.Env.EnterWrite(); err != nil {
		return "", err
	}
	defer s.db.Env.Exit()
	id, err := s.db.Client.Next(ctx, prefix)
	if err != nil {
		return "", err
	}
	return id, s.db.Env.Rules.Check(id)
}

// keep enters e.
func (s *Session) keep(e *entity) {
	s.byValue[e.value] = e
	if e.foldedID != "" {
		s.byID[e.foldedID] = e
		delete(s.included, e.foldedID)
	}
	s.order = append(s.order, e)
}

// find returns the entity of v, or ErrUsage.
func (s *Session) find(v any) (*entity, error) {
	if reflect.ValueOf(v).Kind() == reflect.Pointer { // others may not be comparable
		if e := s.byValue[v]; e != nil {
			return e, nil
		}
	}
	return nil, fmt.Errorf("%w: the session does not hold this %T: Store or Load it first", ids.ErrUsage, v)
}

// deleted reports whether SaveChanges will delete an ID.
func (s *Session) deleted(folded string) bool {
	for _, d := range s.deletes {
		if d.foldedID == folded {
			return true
		}
	}
	return false
}

func (s *Session) forget(e *entity) {
	e.evicted = true
	delete(s.byValue, e.value)
	if e.foldedID != "" {
		delete(s.byID, e.foldedID)
	}
}

// reload reads the document of an entity, which SaveChanges may write again.
func (s *Session) reload(ctx context.Context, e *entity) (*docs.Document, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.db.Env.EnterRead(); err != nil {
		return nil, err
	}
	defer s.db.Env.Exit()
	doc, err := s.db.Docs.Alive(s.db.Docs.Own(s.db.Env.Rules.Fold(e.id)))
	if err != nil {
		return nil, core.GetError(e.id, err)
	}
	return doc, nil
}

// Clear is the method of a session of package jay.
func (s *Session) Clear() {
	s.byID = make(map[string]*entity)
	s.byValue = make(map[any]*entity)
	s.included = make(map[string]*docs.Document)
	s.order, s.deletes, s.inDoubt = nil, nil, nil
	if s.cluster != nil {
		s.cluster.clear()
	}
}

// Store is the method of a session of package jay.
func (s *Session) Store(ctx context.Context, v any) error {
	m, err := s.CheckEntity(v)
	if err != nil {
		return err
	}
	if s.byValue[v] != nil {
		return nil
	}
	e := s.newEntity()
	*e = entity{m: m, value: v, id: m.GetID(v), version: m.GetVersion(v)}
	if err := s.nameEntity(ctx, e); err != nil {
		return fmt.Errorf("store %T: %w", v, err)
	}
	if e.foldedID != "" {
		if other := s.byID[e.foldedID]; other != nil {
			return fmt.Errorf("%w: store %T: the session holds another entity with the id %.100q", ids.ErrUsage, v, e.id)
		}
		if s.deleted(e.foldedID) {
			e.version = ""
		}
	}
	m.SetIdentity(v, e.id, m.GetVersion(v))
	s.keep(e)
	return nil
}

// Delete is the method of a session of package jay.
func (s *Session) Delete(v any) error {
	e, err := s.find(v)
	if err != nil {
		return err
	}
	s.forget(e)
	if e.doc == nil && !s.isInDoubt(e) {
		return nil
	}
	s.deletes = append(s.deletes, &deletion{id: e.id, foldedID: e.foldedID, entity: e, version: e.m.GetVersion(e.value)})
	return nil
}

// DeleteID is the method of a session of package jay.
func (s *Session) DeleteID(id string) error {
	if err := s.Check(); err != nil {
		return err
	}
	folded := s.db.Env.Rules.Fold(id)
	if e := s.byID[folded]; e != nil {
		if e.doc != nil || e.made || s.isInDoubt(e) {
			return s.Delete(e.value)
		}
		s.forget(e) // the document that it would have replaced goes
	}
	if id == "" {
		return fmt.Errorf("%w: DeleteID without an id", ids.ErrUsage)
	}
	delete(s.included, folded)
	s.deletes = append(s.deletes, &deletion{id: id, foldedID: folded})
	return nil
}

// Evict is the method of a session of package jay.
func (s *Session) Evict(v any) error {
	e, err := s.find(v)
	if err != nil {
		for _, d := range s.deletes {
			if d.entity != nil && d.entity.value == v {
				s.dropDeletion(d)
				return nil
			}
		}
		return err
	}
	s.forget(e)
	return nil
}

// Refresh is the method of a session of package jay.
func (s *Session) Refresh(ctx context.Context, v any) error {
	e, err := s.find(v)
	if err != nil {
		return err
	}
	if s.isInDoubt(e) { // the document found may be gone after a reopen
		err = s.resolveInDoubt(ctx)
	} else {
		err = s.resolveElsewhere(ctx)
	}
	if err != nil {
		return fmt.Errorf("refresh: %w", err)
	}
	if e.foldedID == "" {
		return fmt.Errorf("%w: refresh %T: it has no id before SaveChanges", ids.ErrUsage, v)
	}
	doc, err := s.reload(ctx, e)
	if err != nil {
		return fmt.Errorf("refresh: %w", err)
	}
	fresh := reflect.New(e.m.Type)
	if err := core.DecodeMember(e.m, doc, fresh.Interface()); err != nil {
		return fmt.Errorf("refresh: %w", err)
	}
	reflect.ValueOf(v).Elem().Set(fresh.Elem())
	e.id = doc.ID() // in the case of the newest write
	e.doc, e.custom, e.loaded, e.made = doc, nil, nil, false
	s.cluster.forget(e.foldedID)
	return nil
}

// Reattach is the method of a session of package jay.
func (s *Session) Reattach(db *core.Database, makes func(reflect.Type) (*codec.Mapping, error)) error {
	if err := s.Check(); err != nil {
		return err
	}
	if s.db.Env.Origins[s.db.Env.Node].ID != db.Env.Origins[db.Env.Node].ID {
		return fmt.Errorf("%w: %q is another database than %q", ids.ErrUsage, db.Env.Dir, s.db.Env.Dir)
	}
	s.db, s.makes = db, makes
	for _, e := range s.order {
		if e.doc != nil {
			doc := *e.doc // others may share it
			doc.Reattach(db.Env.Origins)
			e.doc = &doc
		}
	}
	s.included = make(map[string]*docs.Document)
	return nil
}

// IDOf is the method of a session of package jay.
func (s *Session) IDOf(v any) (string, error) {
	e, err := s.find(v)
	if err != nil {
		return "", err
	}
	return e.id, nil
}

// Holds is the method of a session of package jay.
func (s *Session) Holds(id string) bool {
	if s.Check() != nil {
		return false
	}
	folded := s.db.Env.Rules.Fold(id)
	return s.byID[folded] != nil || s.included[folded] != nil
}

// Metadata is the method of a session of package jay.
func (s *Session) Metadata(v any) (metadata.Metadata, error) {
	e, err := s.find(v)
	if err != nil {
		return metadata.Metadata{}, err
	}
	m := metadata.Metadata{ID: e.id, Collection: e.m.Collection}
	if e.doc != nil {
		m = e.doc.Metadata()
	}
	custom, err := e.customNow()
	if err != nil {
		return metadata.Metadata{}, err
	}
	if custom != nil {
		m.Custom = bytes.Clone(custom)
	}
	return m, nil
}

// SetMetadata is the method of a session of package jay.
func (s *Session) SetMetadata(v any, custom []byte) error {
	e, err := s.find(v)
	if err != nil {
		return err
	}
	given, err := s.db.Writer.ParseCustom(custom)
	if err != nil {
		return err
	}
	if given.Collection != "" && format.FoldName(given.Collection) != format.FoldName(e.m.Collection) {
		return &metadata.CollectionError{ID: e.id, Current: e.m.Collection, Given: given.Collection}
	}
	before := e.custom
	e.custom = bytes.Clone(given.Custom)
	if len(e.custom) == 0 {
		e.custom = []byte("{}")
	}
	if err := e.m.SetCustom(v, e.custom); err != nil {
		e.custom = before
		return &metadata.DecodeError{ID: e.id, Err: err}
	}
	return nil
}

// errUsage is ids.ErrUsage, where a parameter has the name of the package.
var errUsage = ids.ErrUsage
