package jay

import (
	"context"
	"fmt"
	"io"
	"reflect"

	"github.com/jaydb/jay/internal/builder"
	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/internal/session"
	"github.com/jaydb/jay/query"
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
type Session session.Session

func (s *Session) inner() *session.Session { return (*session.Session)(s) }

// SessionOption changes a session.
type SessionOption func(*Session)

// OptimisticConcurrency makes SaveChanges conditional: every document that it
// writes or deletes must still be in the version in which the session loaded it,
// and new ones must not exist. Otherwise SaveChanges returns a *ConflictError and
// writes nothing.
func OptimisticConcurrency() SessionOption { return func(s *Session) { s.inner().SetOptimistic() } }

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
			s.inner().SetMapping(m)
		}
	}
}

// OpenSession returns a new session.
func (db *DB) OpenSession(opts ...SessionOption) *Session {
	s := (*Session)(session.Open(&db.core, db.entityMapping))
	for _, option := range opts {
		option(s)
	}
	return s
}

// Clear forgets everything: entities, what was to be deleted, and changes that
// were not saved.
func (s *Session) Clear() { s.inner().Clear() }

// entityMapping returns the mapping of the type of an entity.
func (db *DB) entityMapping(t reflect.Type) (*codec.Mapping, error) { return db.mappingOf(t, nil) }

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
func (s *Session) Store(ctx context.Context, v any) error { return s.inner().Store(ctx, v) }

// Delete makes SaveChanges delete the entity's document, and forgets the entity.
// One that was never saved is only forgotten. Evict cancels a Delete.
func (s *Session) Delete(v any) error { return s.inner().Delete(v) }

// DeleteID makes SaveChanges delete the document with this ID, whether or not
// the session holds it. A missing one is no error.
func (s *Session) DeleteID(id string) error { return s.inner().DeleteID(id) }

// Evict forgets an entity: its changes will not be saved, or its deletion is
// cancelled, and the next Load reads its document anew.
func (s *Session) Evict(v any) error { return s.inner().Evict(v) }

// Refresh reads the entity's document anew and stores it in the struct, over
// changes that were not saved. It returns ErrNotFound, and changes nothing, if
// the document is not there any more.
func (s *Session) Refresh(ctx context.Context, v any) error { return s.inner().Refresh(ctx, v) }

// Reattach moves the session to another handle of the same database, opened after
// ErrUnknownOutcome or ErrFailed. The session keeps everything that it holds.
// Reattach returns ErrUsage for another database.
func (s *Session) Reattach(db *DB) error {
	if db == nil {
		return fmt.Errorf("%w: Reattach without a database", ErrUsage)
	}
	return s.inner().Reattach(&db.core, db.entityMapping)
}

// IDOf returns the ID of an entity that the session holds: the final one, or
// the request for what SaveChanges will make.
func (s *Session) IDOf(v any) (string, error) { return s.inner().IDOf(v) }

// Holds reports whether the session would answer a Load of this ID: with an entity
// or with an included document.
func (s *Session) Holds(id string) bool { return s.inner().Holds(id) }

// Metadata returns the metadata of an entity's document as it was loaded or
// saved last, with the custom keys that SetMetadata or a field has set. That of a new
// entity has an ID and a collection.
func (s *Session) Metadata(v any) (Metadata, error) { return s.inner().Metadata(v) }

// SetMetadata replaces the custom metadata of an entity's document by the JSON
// object custom, at the next SaveChanges; "{}" removes all of it. Fields of v that are
// tagged as metadata are set to it at once.
func (s *Session) SetMetadata(v any, custom []byte) error { return s.inner().SetMetadata(v, custom) }

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
	m, err := s.inner().MappingOf(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	var l loading
	for _, option := range opts {
		option(&l)
	}
	if err := s.inner().Load(ctx, m, ids, l.includes); err != nil {
		return nil, err
	}
	vs := make([]*T, len(ids))
	for i, id := range ids {
		value := s.inner().ValueOf(id)
		if value == nil {
			continue
		}
		v, ok := value.(*T)
		if !ok {
			return nil, fmt.Errorf("%w: load %.100q: the session holds it as a %T", ErrType, id, value)
		}
		vs[i] = v
	}
	return vs, nil
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
	m, err := s.inner().MappingOf(reflect.TypeFor[T]())
	if err != nil {
		return Query[T]{def: builder.Definition{Err: err}}
	}
	return Query[T]{
		def: builder.Definition{Via: s.inner(), Query: query.Query{From: m.Collection}, Mapping: m, Answers: reflect.TypeFor[T](), Arrive: s.inner().Include, Tracked: true},
		decode: func(r *exec.Row) (*T, error) {
			value, err := s.inner().EntityOf(m, r.Document)
			if value == nil || err != nil {
				return nil, err
			}
			v, ok := value.(*T)
			if !ok {
				return nil, fmt.Errorf("%w: the session holds %q as a %T", ErrType, r.Document.ID(), value)
			}
			return v, nil
		},
	}
}

// SaveChanges writes, in one atomic write, first the deletions in the order
// in which they were asked for, then the entities that are new or were changed
// in the order in which the session got them, but those whose ID the database
// is to make after all others, so that none gets an ID that another entity of
// the session has. Custom metadata stays as it was
// loaded, unless SetMetadata or a field that is tagged as metadata changed it; members of the stored JSON that the
// struct has no field for are lost once the entity is changed. Without
// changes SaveChanges does nothing.
//
// The version field of a loaded entity holds the version that was loaded. If it was
// changed to another one, as by a form that was filled in earlier, SaveChanges returns a
// *ConflictError, even if no other field was changed; an empty one counts as the loaded one.
//
// When it returns nil, the IDs that the database made, and version fields,
// are in the structs, and the session goes on from what was saved.
//
// After an error nothing was written, the session holds what it held, and
// SaveChanges can be called again; IDs that Store has given stay. After
// ErrUnknownOutcome the database must be opened again first: see Reattach.
// Until then SaveChanges returns ErrFailed. Afterwards it finds out whether
// the write survived, by the versions that it would have given the documents,
// and does not repeat it.
//
// With RequestID the writes are made once. A repeated call, as of another session that has done the same
// again, writes nothing: the new entities get the IDs and versions that the first call gave them, in the order in which they were stored, and the session forgets
// everything, as Clear does. Other values that refer to an entity's ID still hold the one that Store has drawn. The ID of a save with other new entities or
// deletions is ErrRequestID; entities that the session has loaded are not compared, as a repeated call finds them changed, and neither are
// compare-exchange values that were given with the index of one that is there.
func (s *Session) SaveChanges(ctx context.Context, opts ...CallOption) error {
	r, err := requestOf(opts, "save")
	if err != nil {
		return fmt.Errorf("save changes: %w", err)
	}
	return s.inner().SaveChanges(ctx, r)
}

// EntityState is what SaveChanges will do with an entity.
type EntityState string

const (
	EntityAdded   EntityState = session.Added   // it is new
	EntityChanged EntityState = session.Changed // it differs from its document
	EntityDeleted EntityState = session.Deleted // its document will go
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
	found, err := s.inner().WhatChanged()
	if err != nil {
		return nil, err
	}
	out := make([]EntityChanges, len(found))
	for i, c := range found {
		out[i] = EntityChanges{ID: c.ID, State: EntityState(c.State), Entity: c.Entity, Fields: c.Fields}
	}
	return out, nil
}

// HasChanges reports whether SaveChanges has something to write.
func (s *Session) HasChanges() (bool, error) { return s.inner().HasChanges() }

// ForceRevision makes the next SaveChanges keep a revision of the entity's document as
// it is in the database, and of what is saved, whatever the configuration of the
// revisions says (Advanced.Revisions.ForceRevisionCreationFor of RavenDB). An entity
// without changes is not written, and WhatChanged does not list it: its document becomes
// a revision, and SaveChanges returns ErrNotFound if it is not there any more.
func (s *Session) ForceRevision(v any) error { return s.inner().ForceRevision(v) }

// LoadRevision returns a revision as a value of T, or ErrNotFound. The session does not
// hold the value: it is a document of the past, and SaveChanges does not look at it.
// A deletion is ErrNotFound, too. If the document was in another collection than T's, the
// error is a *CollectionError as well.
func LoadRevision[T any](ctx context.Context, s *Session, id, changeVector string) (*T, error) {
	if err := s.inner().Check(); err != nil {
		return nil, err
	}
	rev, err := Revisions{s.inner().Database()}.Get(ctx, id, changeVector)
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
	if err := s.inner().Check(); err != nil {
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
	for rev, err := range (Revisions{s.inner().Database()}).List(ctx, id, page) {
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
	m, err := s.inner().CheckEntity(v)
	if err != nil {
		return nil, err
	}
	if err := core.DecodeMember(m, &rev.inner.Document, v); err != nil {
		return nil, err
	}
	if m.Version != nil {
		m.SetIdentity(v, rev.ID(), rev.ChangeVector())
	}
	return v, nil
}

// SessionAttachments are the attachments of an entity's document: what Store and Delete ask for
// is done by SaveChanges, in one write with the changes of all entities. It is what
// RavenDB has under session.Advanced.Attachments. Session.Attachments returns it.
type SessionAttachments struct {
	s *Session
	v any
}

// Attachments returns the attachments of an entity that the session holds.
func (s *Session) Attachments(v any) SessionAttachments { return SessionAttachments{s, v} }

// Store makes SaveChanges put an attachment, as Attachments.Put does: it reads r then.
// If SaveChanges fails, it can be called again if r is an io.Seeker; otherwise it
// returns ErrUsage until the attachment is stored again, with another r.
func (a SessionAttachments) Store(name string, r io.Reader, contentType string) error {
	return a.s.inner().StoreAttachment(a.v, name, r, contentType)
}

// Delete makes SaveChanges remove an attachment. One that is not there is no error.
func (a SessionAttachments) Delete(name string) error {
	return a.s.inner().DeleteAttachment(a.v, name)
}

// List describes the attachments that the entity's document had when it was loaded or
// saved last.
func (a SessionAttachments) List() ([]Attachment, error) {
	return a.s.inner().Attachments(a.v)
}

// Get is Attachments.Get of the entity's document as it is stored.
func (a SessionAttachments) Get(ctx context.Context, name string) (*AttachmentReader, error) {
	id, err := a.s.inner().IDOf(a.v)
	if err != nil {
		return nil, err
	}
	return Attachments{db: a.s.inner().Database(), id: id}.Get(ctx, name)
}

// ClusterWide makes SaveChanges a cluster-wide transaction, as RavenDB calls it: beside
// the documents it writes compare-exchange values (Session.PutCompareExchange), and it
// compares and replaces the AtomicGuard of each document that it writes. Of two sessions
// that have loaded the same document only one can save, whichever node or program it is
// in. A document that the session has not loaded must be new, and have no guard.
//
// It implies OptimisticConcurrency, so that a write without a guard in between is a
// conflict, too. Such a session stores and deletes documents whose IDs the commit does not
// make; attachments and revisions are refused with ErrUsage.
func ClusterWide() SessionOption {
	return func(s *Session) {
		s.inner().SetClusterWide()
	}
}

// PutCompareExchange makes SaveChanges put a compare-exchange value, in one commit with
// the documents: see CompareExchange.Put. A later call for the same key takes its place.
// The session must be one with ClusterWide. If the value does not have the index,
// SaveChanges returns a *CompareExchangeError and writes nothing.
func (s *Session) PutCompareExchange(key string, value any, index uint64, opts ...CompareExchangeOption) error {
	o := new(op)
	initExchange(o, key, index)
	setExchange(o, value, opts)
	return s.inner().ChangeExchange(o)
}

// DeleteCompareExchange makes SaveChanges delete a compare-exchange value: see
// PutCompareExchange and CompareExchange.Delete.
func (s *Session) DeleteCompareExchange(key string, index uint64) error {
	o := new(op)
	initExchange(o, key, index)
	removeExchange(o)
	return s.inner().ChangeExchange(o)
}
