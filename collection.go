package jay

import (
	"context"
	"fmt"
	"iter"
	"reflect"

	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/observe"
	"github.com/jaydb/jay/internal/parallel"
	"github.com/jaydb/jay/internal/write"
)

// Collection holds the documents of one collection as values of the struct type T.
// CollectionOf makes it. It stores nothing itself, and is safe for concurrent use.
//
// T needs a string field for the ID: tagged `jay:"id"`, or otherwise named ID or
// Id. The ID is not part of the stored JSON; everything else is stored as
// encoding/json encodes it.
//
// A string field tagged `jay:"version"` holds the document's change vector, and
// makes every Put and Replace conditional: the document must still be in the
// version that the value was read in. If the field is empty, Put needs a document
// that does not exist, and Replace one that does, in whatever version. Otherwise the
// write fails with a *ConflictError. IfMatch and AnyVersion override the field. It
// is not part of the stored JSON either.
//
// Other fields may hold metadata, which is not part of the stored JSON:
//
//	Changed time.Time         `jay:"lastModified"`     // when the document was written
//	Where   string            `jay:"collection"`       // its collection, as it is spelt there
//	Meta    map[string]any    `jay:"metadata"`         // its custom metadata: a map, a struct or json.RawMessage
//	Source  string            `jay:"metadata=Source"`  // one key of it, instead of Meta
//
// All of them are filled by reads, queries and sessions, the first two also by writes,
// which ignore what they hold. Custom metadata is written as it stands in the value: a
// key that is not there, or whose field is zero, is removed. A session keeps the keys
// that the type has no field for; WithMetadata overrides the fields.
type Collection[T any] struct {
	via access // the database, or a transaction
	m   *codec.Mapping
}

// Named gives the collection this name instead of the type's plural.
func Named(collection string) CollectionOption {
	return func(m *codec.Mapping) { m.Collection = collection }
}

// WithPrefix begins HiLo IDs with this prefix, given without the separator,
// instead of the one that follows from the collection's name.
func WithPrefix(prefix string) CollectionOption {
	return func(m *codec.Mapping) { m.Prefix = prefix }
}

// AnyField lets queries of the collection name members that T lacks, for documents that
// have more than T shows. Otherwise such a name is ErrQuery, since it is usually a
// misspelling, or the name of a struct field in place of its JSON name.
func AnyField() CollectionOption {
	return func(m *codec.Mapping) { m.AnyField = true }
}

// WithIDField names the struct field that holds the ID.
func WithIDField(name string) CollectionOption {
	return func(m *codec.Mapping) { m.IDField = name }
}

// WithIDs replaces HiLo: fn returns the ID of a value whose ID field is empty. It is
// called before the write begins, and must be safe for concurrent use.
//
// The result is the ID itself, such as "users/ann". One that would be a request for
// another strategy, since it is empty or ends with a pipe or the separator, is an
// *IDError: what a value holds never decides how its ID is made. Use WithIDRequest
// for identities, server-side IDs and GUIDs.
//
// CollectionOf returns ErrUsage if T is not the type of the collection.
func WithIDs[T any](fn func(ctx context.Context, v *T) (string, error)) CollectionOption {
	return func(m *codec.Mapping) {
		if held := reflect.TypeFor[T](); held != m.Type {
			m.Err = fmt.Errorf("%w: WithIDs is for %s, the collection holds %s", ErrUsage, held, m.Type)
			return
		}
		m.Requests = false
		m.MakeID = func(ctx context.Context, v any) (string, error) { return fn(ctx, v.(*T)) }
	}
}

// CollectionOf returns the collection for the struct type T. Its name is the plural
// of the type's (Order → Orders, Person → People). Its IDs begin with that name, in
// lower case (orders/1-A) unless it has more than one upper-case letter
// (OrderLines/1-A). Options.Conventions and the options given here change that.
//
// CollectionOf returns ErrType if T is no struct, has no name and no Named option,
// or has no usable ID field. Nothing is written: a collection exists when it has a
// document.
func CollectionOf[T any](db *DB, opts ...CollectionOption) (*Collection[T], error) {
	m, err := db.mappingOf(reflect.TypeFor[T](), opts)
	if err != nil {
		return nil, err
	}
	return &Collection[T]{via: db, m: m}, nil
}

// In returns the collection as the transaction sees it: reads and writes through it
// are part of t, and it is usable as long as t. IDs that t knows at once are
// written into the values at once; the other IDs, and versions, are written when
// the commit is done. IDs stay in the values even if the commit fails.
//
// If t is a transaction of another database, everything that is asked of the result
// returns ErrUsage.
func (c *Collection[T]) In(t *Tx) *Collection[T] {
	if t == nil || t.db != c.via.database() {
		return &Collection[T]{via: refusing{c.via.database()}, m: c.m}
	}
	return &Collection[T]{via: t, m: c.m}
}

// Name returns the collection's name.
func (c *Collection[T]) Name() string { return c.m.Collection }

// Insert stores v as a new document and writes its final ID into v's ID field. An
// empty field asks for a HiLo ID; otherwise the field is the requested ID, as in
// DB.Put, and an existing document with it is ErrExists. On an error v is
// unchanged.
func (c *Collection[T]) Insert(ctx context.Context, v *T, opts ...WriteOption) (Metadata, error) {
	return c.writeOne(ctx, write.Insert, v, opts)
}

// InsertMany inserts all of vs in one write, or none of them.
func (c *Collection[T]) InsertMany(ctx context.Context, vs []*T, opts ...WriteOption) ([]Metadata, error) {
	return c.write(ctx, write.Insert, vs, opts)
}

// Put stores v, replacing an existing document with its ID, and writes the final ID
// into v's ID field. An empty field asks for a HiLo ID.
func (c *Collection[T]) Put(ctx context.Context, v *T, opts ...WriteOption) (Metadata, error) {
	return c.writeOne(ctx, write.Put, v, opts)
}

// PutMany puts all of vs in one write, or none of them.
func (c *Collection[T]) PutMany(ctx context.Context, vs []*T, opts ...WriteOption) ([]Metadata, error) {
	return c.write(ctx, write.Put, vs, opts)
}

// Replace stores v over the existing document with its ID. It returns ErrNotFound
// if there is none. An empty version field means any version.
func (c *Collection[T]) Replace(ctx context.Context, v *T, opts ...WriteOption) (Metadata, error) {
	return c.writeOne(ctx, write.Replace, v, opts)
}

// Get returns the value with this ID. It returns ErrNotFound if there is none; if the
// document belongs to another collection, the error is a *CollectionError as well.
func (c *Collection[T]) Get(ctx context.Context, id string) (*T, error) {
	if db, ok := c.via.(*DB); ok && c.m.Info.Quiet {
		v := new(T)
		if err := db.getInto(ctx, c.m, id, v); err != nil {
			return nil, err
		}
		return v, nil
	}
	doc, err := c.via.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return c.decode(doc)
}

// GetMany returns the values with these IDs, in their order, read at one moment.
// The value of a missing document is nil.
func (c *Collection[T]) GetMany(ctx context.Context, ids ...string) ([]*T, error) {
	docs, err := c.via.GetMany(ctx, ids...)
	if err != nil {
		return nil, err
	}
	vs := make([]*T, len(docs))
	for i, doc := range docs {
		if doc == nil {
			continue
		}
		if vs[i], err = c.decode(doc); err != nil {
			return nil, err
		}
	}
	return vs, nil
}

// Exists reports whether the collection has a document with this ID.
func (c *Collection[T]) Exists(ctx context.Context, id string) (bool, error) {
	docs, err := c.via.GetMany(ctx, id)
	if err != nil || docs[0] == nil {
		return false, err
	}
	return owns(c.m, docs[0].inner()), nil
}

// Delete removes the document with this ID. Deleting a missing document is no
// error, unless IfMatch asks for a version; one of another collection is a
// *CollectionError.
func (c *Collection[T]) Delete(ctx context.Context, id string, opts ...WriteOption) error {
	o := newOp(write.Delete, id, nil, opts)
	o.Collection, o.InCollection = c.m.Collection, format.FoldName(c.m.Collection)
	_, err := writeOne(ctx, c.via, o)
	return err
}

// All iterates over the collection in the byte order of folded IDs (users/10-A
// before users/2-A), as it is when the iteration begins. Each value belongs to the
// caller. A document that does not decode into T comes as a nil value and a *DecodeError,
// and the iteration goes on; any other error is its last pair.
func (c *Collection[T]) All(ctx context.Context) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for doc, err := range c.via.Documents(ctx, Scan{Collection: c.m.Collection}) {
			if err != nil {
				yield(nil, err)
				return
			}
			if v, err := c.decode(doc); !yield(v, err) {
				return
			}
		}
	}
}

// decode returns a document as a value.
func (c *Collection[T]) decode(doc *Document) (*T, error) {
	v := new(T)
	if err := decodeMember(c.m, doc.inner(), v); err != nil {
		return nil, err
	}
	return v, nil
}

func (c *Collection[T]) writeOne(ctx context.Context, verb write.Verb, v *T, opts []WriteOption) (Metadata, error) {
	out, err := c.write(ctx, verb, []*T{v}, opts)
	if err != nil {
		return Metadata{}, err
	}
	return out[0], nil
}

func (c *Collection[T]) write(ctx context.Context, verb write.Verb, vs []*T, opts []WriteOption) ([]Metadata, error) {
	_, later := c.via.(*Tx) // the commit makes versions, and some IDs
	ops := make([]*op, len(vs))
	for i, v := range vs {
		if v == nil {
			return nil, fmt.Errorf("%w: nil %T", ErrUsage, v)
		}
		o, err := newValueOp(ctx, c.m, verb, v, opts)
		if err != nil {
			return nil, err
		}
		if later {
			o.Committed = func(result Metadata) { setResult(c.m, v, result) }
		}
		ops[i] = o
	}
	if err := c.encode(ops, vs); err != nil {
		return nil, err
	}
	if err := c.via.write(ctx, ops); err != nil {
		return nil, err
	}
	metas := results(c.via, ops)
	for i, v := range vs {
		setResult(c.m, v, metas[i])
	}
	return metas, nil
}

// encode sets the bodies of ops to the JSON of vs.
func (c *Collection[T]) encode(ops []*op, vs []*T) error {
	limits := c.via.database().env.Limits
	return parallel.Do(len(vs), c.m.ChunkSize(len(vs)), func(lo, hi int) error {
		e := codec.NewEncoder(hi - lo)
		defer e.Release()
		for i := lo; i < hi; i++ {
			body, err := e.Encode(c.m, vs[i], limits)
			if err != nil {
				return err
			}
			ops[i].SetBody(c.m, body)
			if err := setCustom(c.m, ops[i], vs[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// getInto decodes the document with this ID into v. A document that is neither
// cached nor about to be is decoded in the memory of the storage engine. No user
// code must run meanwhile: Close waits for the call.
func (db *DB) getInto(ctx context.Context, m *codec.Mapping, id string, v any) error {
	if db.watch == nil {
		return readInto(ctx, db, m, id, v)
	}
	return db.watch.Do(ctx, observe.Operation{Verb: "get", Collection: m.Collection, ID: id}, func(ctx context.Context, o *observe.Operation) error {
		err := readInto(ctx, db, m, id, v)
		if err == nil {
			o.Documents = 1
		}
		return err
	})
}

func readInto(ctx context.Context, db *DB, m *codec.Mapping, id string, v any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := db.env.Enter(); err != nil {
		return err
	}
	defer db.env.Exit()
	var scratch [128]byte
	folded := db.env.Rules.AppendFold(scratch[:0], id)
	doc, ticket := db.docs.Cache.Get(folded)
	if doc != nil {
		if _, err := db.docs.Alive(doc, nil); err != nil {
			return getError(id, err)
		}
		return decodeMember(m, doc, v)
	}
	key := format.NewDocumentKey(folded)
	if ticket.Valid {
		doc, err := db.docs.ReadKey(db.env.Engine, key)
		if err == nil {
			db.docs.Cache.Enter(ticket, doc)
		}
		if doc, err = db.docs.Alive(doc, err); err != nil {
			return getError(id, err)
		}
		return decodeMember(m, doc, v)
	}
	if db.env.ExactExpiry {
		doc, err := db.docs.Alive(db.docs.ReadKey(db.env.Engine, key)) // not lent: the clock is the user's
		if err != nil {
			return getError(id, err)
		}
		return decodeMember(m, doc, v)
	}

	record, closer, err := docs.ReadRecord(db.env.Engine, key)
	if err != nil {
		return getError(id, err)
	}
	pinned, err := db.docs.Pinned(key, record)
	if err != nil {
		err = fmt.Errorf("get %.100q: %w", id, err)
	} else {
		err = decodeMember(m, &pinned, v)
	}
	return errs.First(err, closer.Close())
}
