package jay

import (
	"bytes"
	"context"
	"fmt"
	"reflect"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/format"
)

// Session is a unit of work, as in RavenDB: it keeps the entities that were loaded
// through it or stored in it, detects which of them have changed, and writes those,
// and nothing else, in one atomic SaveChanges. An entity is a pointer to a struct
// of a type that CollectionOf accepts.
//
// Within a session one document is one entity: loading an ID again returns the same
// pointer, without reading the database. So the contents of a session become stale:
// open one for a piece of work, such as a request, and drop it afterwards. It holds
// no resources and needs no closing.
//
// A Session is not safe for concurrent use. Any number of them may work on one
// database; the last to save wins, unless OptimisticConcurrency is set.
type Session struct {
	db         *DB
	optimistic bool
	mappings   map[reflect.Type]*codec.Mapping

	byID     map[string]*entity        // by folded ID
	byValue  map[any]*entity           // by pointer
	order    []*entity                 // as they came; those that were evicted stay, marked
	room     []entity                  // for entities to come
	deletes  []*deletion               // in the order in which they were requested
	included map[string]*docs.Document // by folded ID: included by a Load, not requested yet
	inDoubt  *inDoubtSave              // a save whose outcome is not known
	cluster  *clusterSession           // of a session with ClusterWide; else nil
}

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
	force    bool // the next save keeps a revision
}

// deletion is a document that a session will delete.
type deletion struct {
	id       string
	foldedID string
	entity   *entity // or nil
	version  string  // what the version field held when the deletion was requested
}

// SessionOption changes a session.
type SessionOption func(*Session)

// OptimisticConcurrency makes SaveChanges conditional: every document that it
// writes or deletes must still be in the version in which the session loaded it,
// and new ones must not exist. Otherwise SaveChanges returns a *ConflictError and
// writes nothing.
func OptimisticConcurrency() SessionOption { return func(s *Session) { s.optimistic = true } }

// mapped is a Collection of any type.
type mapped interface{ mapping() *codec.Mapping }

func (c *Collection[T]) mapping() *codec.Mapping { return c.m }

// WithCollections makes the session map these types as the collections do,
// with the options that they were made with, instead of by the conventions of
// the database. Each of collections is a *Collection.
func WithCollections(collections ...mapped) SessionOption {
	return func(s *Session) {
		for _, c := range collections {
			m := c.mapping()
			s.mappings[m.Type] = m
		}
	}
}

// OpenSession returns a new session.
func (db *DB) OpenSession(opts ...SessionOption) *Session {
	s := &Session{db: db, mappings: make(map[reflect.Type]*codec.Mapping)}
	s.Clear()
	for _, option := range opts {
		option(s)
	}
	return s
}

// check returns ErrUsage for a Session that OpenSession has not made.
func (s *Session) check() error {
	if s == nil || s.db == nil {
		return fmt.Errorf("%w: a session is made by OpenSession", ErrUsage)
	}
	return nil
}

// Clear forgets everything: entities, what was to be deleted, and changes that
// were not saved.
func (s *Session) Clear() {
	s.byID = make(map[string]*entity)
	s.byValue = make(map[any]*entity)
	s.included = make(map[string]*docs.Document)
	s.order, s.deletes, s.inDoubt = nil, nil, nil
	if s.cluster != nil {
		s.cluster.clear()
	}
}

// mappingOf returns the mapping of a struct type.
func (s *Session) mappingOf(t reflect.Type) (*codec.Mapping, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if m := s.mappings[t]; m != nil {
		return m, nil
	}
	m, err := s.db.mappingOf(t, nil)
	if err != nil {
		return nil, err
	}
	s.mappings[t] = m
	return m, nil
}

// Store adds v to the session, to be written by SaveChanges. v points to a struct.
//
// Store fills an empty ID field at once, with a HiLo ID or what the conventions
// make; that ID never changes, and never overwrites a document. The request for an
// identity or a server-side ID ("invoices|", "logs/") stays in the field until
// SaveChanges has made the ID. Any other ID is used as it is, and the document
// replaces an existing one, except under OptimisticConcurrency.
//
// A version field gives the version in which the value was read, as for
// Collection.Put, unless the session deletes the document with the ID first.
//
// Storing an entity that the session already has changes nothing. Another value
// under an ID that the session holds is ErrUsage. If another writer has deleted an
// entity's document and SaveChanges makes its ID anew, for an identity, the session
// forgets the entity that had it.
func (s *Session) Store(ctx context.Context, v any) error {
	m, err := s.checkEntity(v)
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
			return fmt.Errorf("%w: store %T: the session holds another entity with the id %.100q", ErrUsage, v, e.id)
		}
		if s.deleted(e.foldedID) {
			e.version = ""
		}
	}
	m.SetIdentity(v, e.id, m.GetVersion(v))
	s.keep(e)
	return nil
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

// checkEntity returns the mapping of v, or ErrType.
func (s *Session) checkEntity(v any) (*codec.Mapping, error) {
	value := reflect.ValueOf(v)
	if value.Kind() != reflect.Pointer || value.IsNil() || value.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("%w: an entity is a pointer to a struct, not %T", ErrType, v)
	}
	return s.mappingOf(value.Type().Elem())
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
		e.foldedID = s.db.env.Rules.Fold(e.id)
		return nil
	}

	resolved, strategy := s.db.resolver.Request(request)
	if err := s.db.resolver.Check(resolved, strategy); err != nil {
		return err
	}
	switch strategy {
	case ids.GUID:
		e.made = true
		if e.id, err = s.db.resolver.NewGUID(); err != nil {
			return err
		}
	case ids.Semantic:
		e.id = resolved
	default:
		e.id = request
		return nil // the commit makes the ID
	}
	e.foldedID = s.db.env.Rules.Fold(e.id)
	return nil
}

func (s *Session) nextHiLo(ctx context.Context, prefix string) (string, error) {
	if err := s.db.env.Enter(); err != nil {
		return "", err
	}
	defer s.db.env.Exit()
	id, err := s.db.client.Next(ctx, prefix)
	if err != nil {
		return "", err
	}
	return id, s.db.env.Rules.Check(id)
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
	if v != nil && reflect.TypeOf(v).Comparable() {
		if e := s.byValue[v]; e != nil {
			return e, nil
		}
	}
	return nil, fmt.Errorf("%w: the session does not hold this %T: Store or Load it first", ErrUsage, v)
}

// Delete makes SaveChanges delete the entity's document, and forgets the entity.
// One that was never saved is only forgotten. Evict cancels a Delete.
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

// DeleteID makes SaveChanges delete the document with this ID, whether or not
// the session holds it. A missing one is no error.
func (s *Session) DeleteID(id string) error {
	if err := s.check(); err != nil {
		return err
	}
	folded := s.db.env.Rules.Fold(id)
	if e := s.byID[folded]; e != nil {
		return s.Delete(e.value)
	}
	if id == "" {
		return fmt.Errorf("%w: DeleteID without an id", ErrUsage)
	}
	delete(s.included, folded)
	s.deletes = append(s.deletes, &deletion{id: id, foldedID: folded})
	return nil
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

// Evict forgets an entity: its changes will not be saved, or its deletion is
// cancelled, and the next Load reads its document anew.
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

func (s *Session) forget(e *entity) {
	e.evicted = true
	delete(s.byValue, e.value)
	if e.foldedID != "" {
		delete(s.byID, e.foldedID)
	}
}

// Refresh reads the entity's document anew and stores it in the struct, over
// changes that were not saved. It returns ErrNotFound, and changes nothing, if
// the document is not there any more.
func (s *Session) Refresh(ctx context.Context, v any) error {
	e, err := s.find(v)
	if err != nil {
		return err
	}
	if err := s.resolveElsewhere(ctx); err != nil {
		return fmt.Errorf("refresh: %w", err)
	}
	if s.isInDoubt(e) {
		return fmt.Errorf("refresh: %w", errInDoubt) // the document found may be gone after the reopen
	}
	if e.foldedID == "" {
		return fmt.Errorf("%w: refresh %T: it has no id before SaveChanges", ErrUsage, v)
	}
	doc, err := s.reload(ctx, e)
	if err != nil {
		return fmt.Errorf("refresh: %w", err)
	}
	fresh := reflect.New(e.m.Type)
	if err := decodeMember(e.m, doc, fresh.Interface()); err != nil {
		return fmt.Errorf("refresh: %w", err)
	}
	reflect.ValueOf(v).Elem().Set(fresh.Elem())
	e.id = doc.ID() // in the case of the newest write
	e.doc, e.custom, e.loaded, e.made = doc, nil, nil, false
	return nil
}

// reload reads the document of an entity, which SaveChanges may write again.
func (s *Session) reload(ctx context.Context, e *entity) (*docs.Document, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.db.env.Enter(); err != nil {
		return nil, err
	}
	defer s.db.env.Exit()
	doc, err := s.db.docs.Alive(s.db.docs.Own(s.db.env.Rules.Fold(e.id)))
	if err != nil {
		return nil, getError(e.id, err)
	}
	return doc, nil
}

// Reattach moves the session to another handle of the same database, opened after
// ErrUnknownOutcome or ErrFailed. The session keeps everything that it holds.
// Reattach returns ErrUsage for another database.
func (s *Session) Reattach(db *DB) error {
	if err := s.check(); err != nil {
		return err
	}
	if s.db.env.Origins[s.db.env.Node].ID != db.env.Origins[db.env.Node].ID {
		return fmt.Errorf("%w: %q is another database than %q", ErrUsage, db.env.Dir, s.db.env.Dir)
	}
	s.db = db
	for _, e := range s.order {
		if e.doc != nil {
			doc := *e.doc // others may share it
			doc.Reattach(db.env.Origins)
			e.doc = &doc
		}
	}
	s.included = make(map[string]*docs.Document)
	return nil
}

// IDOf returns the ID of an entity that the session holds: the final one, or
// the request for what SaveChanges will make.
func (s *Session) IDOf(v any) (string, error) {
	e, err := s.find(v)
	if err != nil {
		return "", err
	}
	return e.id, nil
}

// Holds reports whether the session would answer a Load of this ID: with an entity
// or with an included document.
func (s *Session) Holds(id string) bool {
	if s.check() != nil {
		return false
	}
	folded := s.db.env.Rules.Fold(id)
	return s.byID[folded] != nil || s.included[folded] != nil
}

// Metadata returns the metadata of an entity's document as it was loaded or
// saved last, with the custom keys that SetMetadata or a field has set. That of a new
// entity has an ID and a collection.
func (s *Session) Metadata(v any) (Metadata, error) {
	e, err := s.find(v)
	if err != nil {
		return Metadata{}, err
	}
	m := Metadata{ID: e.id, Collection: e.m.Collection}
	if e.doc != nil {
		m = e.doc.Metadata()
	}
	custom, err := e.customNow()
	if err != nil {
		return Metadata{}, err
	}
	if custom != nil {
		m.Custom = bytes.Clone(custom)
	}
	return m, nil
}

// SetMetadata replaces the custom metadata of an entity's document by the JSON
// object custom, at the next SaveChanges; "{}" removes all of it. Fields of v that are
// tagged as metadata are set to it at once.
func (s *Session) SetMetadata(v any, custom []byte) error {
	e, err := s.find(v)
	if err != nil {
		return err
	}
	given, err := s.db.writer.ParseCustom(custom)
	if err != nil {
		return err
	}
	if given.Collection != "" && format.FoldName(given.Collection) != format.FoldName(e.m.Collection) {
		return &CollectionError{ID: e.id, Current: e.m.Collection, Given: given.Collection}
	}
	before := e.custom
	e.custom = bytes.Clone(given.Custom)
	if e.custom == nil {
		e.custom = []byte("{}")
	}
	if err := e.m.SetCustom(v, e.custom); err != nil {
		e.custom = before
		return &DecodeError{ID: e.id, Err: err}
	}
	return nil
}
