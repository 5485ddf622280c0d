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

// Session is a unit of work, as in RavenDB: it keeps the entities that were loaded through it or stored in it,
// and detects which of them have changed. SaveChanges writes the changed entities, and only those, in one
// atomic write. An entity is a pointer to a struct of a type that CollectionOf accepts.
//
// Within a session one document is one entity: loading an ID again returns the same pointer, without reading
// the database. So the contents of a session become stale: open a session for one piece of work, such as a
// request, and drop it afterwards. A session holds no resources and needs no Close.
//
// A Session is not safe for concurrent use. Any number of sessions may work on one database; the last one to
// save wins, unless OptimisticConcurrency is set.
type Session session.Session

func (s *Session) inner() *session.Session { return (*session.Session)(s) }

// SessionOption is an option of DB.OpenSession.
type SessionOption func(*Session)

// OptimisticConcurrency makes SaveChanges conditional: every document that it writes or deletes must still be
// in the version that the session loaded, and new documents must not exist. Otherwise SaveChanges returns a
// *ConflictError and writes nothing.
func OptimisticConcurrency() SessionOption { return func(s *Session) { s.inner().SetOptimistic() } }

// mapped is a Collection of any type.
type mapped interface{ mapping() *codec.Mapping }

func (c *Collection[T]) mapping() *codec.Mapping { return c.m }

// WithCollections makes the session map the types of these collections with the options of the collections,
// instead of the conventions of the database. Each of collections is a *Collection.
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

// Clear forgets all entities, pending deletions and unsaved changes of the session.
func (s *Session) Clear() { s.inner().Clear() }

// entityMapping returns the mapping of the type of an entity.
func (db *DB) entityMapping(t reflect.Type) (*codec.Mapping, error) { return db.mappingOf(t, nil) }

// Store adds v to the session, for SaveChanges to write. v points to a struct.
//
// Store fills an empty ID field at once, with a HiLo ID or the ID that the conventions make; that ID never
// changes, and never overwrites a document. The request for an identity or a server-side ID ("invoices|",
// "logs/") stays in the field until SaveChanges has made the ID. Any other ID is used unchanged, and the
// document replaces an existing one, except under OptimisticConcurrency.
//
// A version field holds the version in which the value was read, as for Collection.Put, unless the session
// deletes the document with the ID first.
//
// Storing an entity that the session already holds changes nothing. Store returns ErrUsage for another value
// under an ID that the session holds. If another writer has deleted an entity's document, and SaveChanges makes
// the same ID again for an identity, the session forgets the entity that had the ID.
func (s *Session) Store(ctx context.Context, v any) error { return s.inner().Store(ctx, v) }

// Delete makes SaveChanges delete the entity's document, and forgets the entity. If the entity was never saved,
// Delete only forgets it. Evict cancels a Delete.
func (s *Session) Delete(v any) error { return s.inner().Delete(v) }

// DeleteID makes SaveChanges delete the document with this ID, whether or not the session holds it. A missing
// document is not an error.
func (s *Session) DeleteID(id string) error { return s.inner().DeleteID(id) }

// Evict forgets an entity: SaveChanges does not write its changes and does not delete its document, and the
// next Load reads the document again.
func (s *Session) Evict(v any) error { return s.inner().Evict(v) }

// Refresh reads the entity's document again and stores it in the struct, over unsaved changes. It returns
// ErrNotFound, and changes nothing, if the document no longer exists. If a save of the entity is in doubt, Refresh
// first finds out what became of it, as SaveChanges does.
func (s *Session) Refresh(ctx context.Context, v any) error { return s.inner().Refresh(ctx, v) }

// Reattach moves the session to another handle of the same database, which the program opened after
// ErrUnknownOutcome or ErrFailed. The session keeps its entities and changes. Reattach returns ErrUsage for
// another database.
func (s *Session) Reattach(db *DB) error {
	if db == nil {
		return fmt.Errorf("%w: Reattach without a database", ErrUsage)
	}
	return s.inner().Reattach(&db.core, db.entityMapping)
}

// IDOf returns the ID of an entity that the session holds: the final ID, or the request for the ID that
// SaveChanges will make.
func (s *Session) IDOf(v any) (string, error) { return s.inner().IDOf(v) }

// Holds reports whether the session can answer a Load of this ID without reading the database, with an entity
// or with an included document.
func (s *Session) Holds(id string) bool { return s.inner().Holds(id) }

// Metadata returns the metadata of an entity's document as it was last loaded or saved, with the custom keys
// that SetMetadata or a field has set. The metadata of a new entity has only an ID, a collection and these
// custom keys.
func (s *Session) Metadata(v any) (Metadata, error) { return s.inner().Metadata(v) }

// SetMetadata makes the next SaveChanges replace the custom metadata of an entity's document by the JSON object
// custom; "{}" removes all custom metadata. SetMetadata sets fields of v that are tagged as metadata at once.
func (s *Session) SetMetadata(v any, custom []byte) error { return s.inner().SetMetadata(v, custom) }

// LoadOption is an option of Load and LoadMany.
type LoadOption func(*loading)

type loading struct{ includes []string }

// Include also reads, from the same snapshot, the documents whose IDs the loaded documents hold at these paths,
// such as "customer", "lines[].product" or "billing.address". The session then answers a later Load of such an
// ID. A value that is not a string, or not the ID of a document, is skipped.
func Include(paths ...string) LoadOption {
	return func(l *loading) { l.includes = append(l.includes, paths...) }
}

// Load returns the entity with this ID. If the session does not hold the entity, Load reads and decodes the
// document, and adds the entity to the session. It returns ErrNotFound if the document does not exist, or if
// the session will delete it. If the document is in another collection than T's, the error is both ErrNotFound
// and a *CollectionError. Load returns ErrType if the session holds the entity as another type.
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

// LoadMany returns the entities with these IDs, in the order of ids, as Load does. It reads all documents that
// the session does not hold from one snapshot. A missing entity is nil.
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

// QueryOf returns a query whose answers are entities of the session. The query reads the database, and does not
// see unsaved changes of the session. If the session already holds an answer, the query returns the same
// pointer, with its unsaved changes. Every other answer becomes an entity of the session, which SaveChanges
// writes if it has changed. The session keeps documents of Include for Load. Answers do not contain documents
// that the session will delete, so there may be fewer than Limit; Count counts these documents.
//
// Values of Select are not entities. Like the session, the query is not safe for concurrent use.
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

// SaveChanges writes all changes in one atomic write. First come the deletions, in the order of their calls.
// Then come the new and changed entities, in the order in which the session got them. Entities whose ID the
// database makes come last, so that none gets an ID that another entity of the session has. Without changes
// SaveChanges does nothing.
//
// Custom metadata stays as it was loaded, unless SetMetadata or a field that is tagged as metadata changed it.
// When SaveChanges writes a changed entity, members of the stored JSON for which the struct has no field are
// lost.
//
// The version field of a loaded entity holds the loaded version. If the program has set the field to another
// version, such as the version of a form that was filled in earlier, SaveChanges returns a *ConflictError, even
// if no other field was changed. An empty field means the loaded version.
//
// When SaveChanges returns nil, it has set the IDs that the database made and the version fields in the
// structs, and the session tracks further changes from the saved state.
//
// After an error nothing was written, the session is unchanged, and SaveChanges can be called again; IDs that
// Store has assigned stay.
//
// ErrUnknownOutcome is the exception: the save is in doubt. Call SaveChanges again. It finds out what became of
// the save, does not repeat one that was written, and saves what has changed since. If the context had ended, or
// the coordinator of a cluster had not answered, it waits for the outcome. If the log could not be written, it
// returns ErrFailed until the session is on a database that was opened again: see Reattach. A save is recognised
// by the versions that it would have given the documents. If others have overwritten or deleted all of them, if a
// document that was not there before is not there, or if the coordinator's decision was carried out by an earlier
// opening of the database, SaveChanges may not be able to tell. Then it returns ErrUnknownOutcome again and writes
// nothing: Clear the session, and load the documents again.
//
// SaveChanges returns ErrReadOnly for changes of a database that was opened with Look.
//
// With RequestID the writes are made once. A repeated call, such as from another session that has done the same
// work again, writes nothing: the new entities get the IDs and versions of the first call, in the order in
// which they were stored, and the session forgets everything, as Clear does. Other values that refer to an
// entity's ID still hold the ID that Store has drawn. If the request ID belongs to a save with other new
// entities or deletions, SaveChanges returns ErrRequestID. Loaded entities are not compared, because a repeated
// call finds them changed. Nor are compare-exchange values that were put with the index of an existing value.
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
	EntityAdded   EntityState = session.Added   // the entity is new
	EntityChanged EntityState = session.Changed // the entity differs from its document
	EntityDeleted EntityState = session.Deleted // the entity's document will be deleted
)

// EntityChanges are the changes of one entity that SaveChanges would write.
type EntityChanges struct {
	ID     string        `json:"id"` // the final ID, or the request for one
	State  EntityState   `json:"state"`
	Entity any           `json:"-"`                // nil for a deletion by ID
	Fields []FieldChange `json:"fields,omitempty"` // if State is EntityChanged; empty if only metadata changed
}

// WhatChanged returns the changes that SaveChanges would write, in the order of its writes.
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

// HasChanges reports whether SaveChanges would write anything, compare-exchange values included. While a save is in
// doubt, its changes count as not written.
func (s *Session) HasChanges() (bool, error) { return s.inner().HasChanges() }

// ForceRevision makes the next SaveChanges keep a revision of the stored document of the entity, and a revision
// of the saved state, whatever the configuration of revisions says (Advanced.Revisions.ForceRevisionCreationFor
// of RavenDB). An entity without changes is not written, and WhatChanged does not list it: its stored document
// becomes a revision, and SaveChanges returns ErrNotFound if the document no longer exists.
func (s *Session) ForceRevision(v any) error { return s.inner().ForceRevision(v) }

// LoadRevision returns a revision as a value of T, or ErrNotFound. The value is not an entity of the session,
// and SaveChanges ignores it. LoadRevision returns ErrNotFound for the revision of a deletion, too. If the
// document was in another collection than T's, the error is also a *CollectionError.
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

// LoadRevisions returns the revisions of a document as values of T, newest first, without deletions. It returns
// up to page.Limit values, or up to 25 if page.Limit is 0. The values are not entities of the session. See
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

// SessionAttachments are the attachments of an entity's document. SaveChanges carries out Store and Delete, in
// one write with the changes of all entities. RavenDB offers this as session.Advanced.Attachments.
// Session.Attachments returns SessionAttachments.
type SessionAttachments struct {
	s *Session
	v any
}

// Attachments returns the attachments of an entity that the session holds.
func (s *Session) Attachments(v any) SessionAttachments { return SessionAttachments{s, v} }

// Store makes SaveChanges put an attachment, as Attachments.Put does. SaveChanges reads r. If SaveChanges
// fails, it can be called again if r is an io.Seeker; otherwise it returns ErrUsage until the attachment is
// stored again with another r.
func (a SessionAttachments) Store(name string, r io.Reader, contentType string) error {
	return a.s.inner().StoreAttachment(a.v, name, r, contentType)
}

// Delete makes SaveChanges remove an attachment. A missing attachment is not an error.
func (a SessionAttachments) Delete(name string) error {
	return a.s.inner().DeleteAttachment(a.v, name)
}

// List describes the attachments that the entity's document had when it was last loaded or saved.
func (a SessionAttachments) List() ([]Attachment, error) {
	return a.s.inner().Attachments(a.v)
}

// Get returns an attachment of the stored document of the entity, as Attachments.Get does.
func (a SessionAttachments) Get(ctx context.Context, name string) (*AttachmentReader, error) {
	id, err := a.s.inner().IDOf(a.v)
	if err != nil {
		return nil, err
	}
	return Attachments{db: a.s.inner().Database(), id: id}.Get(ctx, name)
}

// ClusterWide makes SaveChanges a cluster-wide transaction, as in RavenDB: in addition to the documents it
// writes compare-exchange values (Session.PutCompareExchange), and it compares and replaces the AtomicGuard of
// each document that it writes. Of two sessions that have loaded the same document, on any node or in any
// program, only one can save. A document that the session has not loaded must be new and have no guard.
//
// ClusterWide implies OptimisticConcurrency, so an intervening write without a guard is a conflict, too. Such a
// session cannot store documents whose IDs the commit makes. It returns ErrUsage for attachments and revisions.
func ClusterWide() SessionOption {
	return func(s *Session) {
		s.inner().SetClusterWide()
	}
}

// PutCompareExchange makes SaveChanges put a compare-exchange value, in one commit with the documents: see
// CompareExchange.Put. A later call for the same key replaces an earlier one. The session must have ClusterWide
// set. If the stored value does not have this index, SaveChanges returns a *CompareExchangeError and writes
// nothing.
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
