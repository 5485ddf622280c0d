package jay

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"reflect"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/builder"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/observe"
	"github.com/jaydb/jay/internal/parallel"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
)

// Collection gives access to the documents of one collection as values of the struct type T. CollectionOf
// returns it. A Collection holds no data, and is safe for concurrent use.
//
// T needs a string field for the ID: tagged `jay:"id"`, or otherwise named ID or Id. The ID is not part of the
// stored JSON; all other fields are stored as encoding/json encodes them.
//
// A string field tagged `jay:"version"` holds the document's change vector, and makes every Put and Replace
// conditional: the document must still be in the version in which the value was read. If the field is empty,
// Put requires that the document does not exist, and Replace requires that it exists, in any version. Otherwise
// the write fails with a *ConflictError. IfMatch and AnyVersion override the field. The field is not part of
// the stored JSON either.
//
// Other fields may hold metadata, which is not part of the stored JSON:
//
//	Changed time.Time         `jay:"lastModified"`     // when the document was written
//	Where   string            `jay:"collection"`       // its collection, in the stored spelling
//	Until   time.Time         `jay:"expires"`          // when it expires: see WithTTL; zero for never
//	Meta    map[string]any    `jay:"metadata"`         // its custom metadata: a map, a struct or json.RawMessage
//	Source  string            `jay:"metadata=Source"`  // one key of the custom metadata, instead of Meta
//
// Reads, queries and sessions fill all of these fields. Writes fill the first two, and ignore their previous
// values. A write stores the custom metadata of the value: it removes a key that is missing in the value, or
// whose field is zero. A session keeps the keys for which the type has no field. WithMetadata overrides the
// fields.
//
// A write also stores the expiry of the value, a time.Time or a *time.Time: a document with a zero field does
// not expire. WithTTL and ExpiresAt override the field, and the write sets the field to the stored expiry. If a
// type has neither this field nor a field for all custom metadata, Put and Replace do not change the expiry of
// the document, unless an option sets one. The same holds for the refresh of the document, see RefreshAt.
type Collection[T any] struct {
	via access // the database, or a transaction
	m   *codec.Mapping
}

// Named gives the collection this name instead of the type's plural.
func Named(collection string) CollectionOption {
	return func(m *codec.Mapping) { m.Collection = collection }
}

// WithPrefix makes HiLo IDs begin with this prefix, without the separator, instead of the prefix that follows
// from the collection's name.
func WithPrefix(prefix string) CollectionOption {
	return func(m *codec.Mapping) { m.Prefix = prefix }
}

// AnyField lets queries of the collection use members for which T has no field. Without AnyField such a name is
// ErrQuery, because it is usually a misspelling, or the name of a struct field instead of its JSON name.
func AnyField() CollectionOption {
	return func(m *codec.Mapping) { m.AnyField = true }
}

// WithIDField names the struct field that holds the ID.
func WithIDField(name string) CollectionOption {
	return func(m *codec.Mapping) { m.IDField = name }
}

// WithIDs replaces HiLo: fn returns the ID of a value whose ID field is empty. fn is called before the write
// begins, and must be safe for concurrent use.
//
// The result is the final ID, such as "users/ann". A result that requests another strategy, because it is empty
// or ends with a pipe or the separator, is an *IDError: the data of a value never selects the ID strategy. Use
// WithIDRequest for identities, server-side IDs and GUIDs.
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

// CollectionOf returns the collection for the struct type T. The name of the collection is the plural of the
// type's name (Order → Orders, Person → People). Its HiLo IDs begin with the name of the collection, in lower
// case (orders/1-A) unless the name has more than one upper-case letter (OrderLines/1-A). Options.Conventions
// and opts change these defaults.
//
// CollectionOf returns ErrType if T is not a struct, has no name and no Named option, or has no usable ID
// field. It returns ErrIndex for a tag with an unknown word or with an invalid index: see
// Collection.EnsureIndexes. CollectionOf writes nothing: a collection exists when it has a document.
func CollectionOf[T any](db *DB, opts ...CollectionOption) (*Collection[T], error) {
	m, err := db.mappingOf(reflect.TypeFor[T](), opts)
	if err != nil {
		return nil, err
	}
	return &Collection[T]{via: db, m: m}, nil
}

// In returns the collection in the transaction t: reads and writes through it are part of t, and it is usable
// as long as t. A write sets an ID that t knows at once in the value at once; the commit sets the other IDs,
// and the versions. IDs stay in the values even if the commit fails.
//
// If t is a transaction of another database, every method of the result returns ErrUsage.
func (c *Collection[T]) In(t *Tx) *Collection[T] {
	if t == nil || t.inner().Database() != c.via.source().Database() {
		return &Collection[T]{via: refusing{c.via.source().Database()}, m: c.m}
	}
	return &Collection[T]{via: t, m: c.m}
}

// Name returns the collection's name.
func (c *Collection[T]) Name() string { return c.m.Collection }

// Insert stores v as a new document and writes its final ID into v's ID field. An empty field requests a HiLo
// ID. Otherwise the field is the requested ID, as in DB.Put, and Insert returns ErrExists if a document has
// this ID. On an error v is unchanged.
func (c *Collection[T]) Insert(ctx context.Context, v *T, opts ...WriteOption) (Metadata, error) {
	return c.writeOne(ctx, write.Insert, v, opts)
}

// InsertMany inserts all of vs in one atomic write, as Insert does.
func (c *Collection[T]) InsertMany(ctx context.Context, vs []*T, opts ...WriteOption) ([]Metadata, error) {
	return c.write(ctx, write.Insert, vs, opts)
}

// Put stores v, replacing an existing document with its ID, and writes the final ID into v's ID field. An empty
// field requests a HiLo ID.
func (c *Collection[T]) Put(ctx context.Context, v *T, opts ...WriteOption) (Metadata, error) {
	return c.writeOne(ctx, write.Put, v, opts)
}

// PutMany puts all of vs in one atomic write, as Put does.
func (c *Collection[T]) PutMany(ctx context.Context, vs []*T, opts ...WriteOption) ([]Metadata, error) {
	return c.write(ctx, write.Put, vs, opts)
}

// Replace stores v over the existing document with its ID. It returns ErrNotFound if no such document exists.
// An empty version field means any version.
func (c *Collection[T]) Replace(ctx context.Context, v *T, opts ...WriteOption) (Metadata, error) {
	return c.writeOne(ctx, write.Replace, v, opts)
}

// Get returns the value with this ID. It returns ErrNotFound if the collection has no such document. If the
// document belongs to another collection, the error is both ErrNotFound and a *CollectionError.
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

// Load is Get for a typed ID.
func (c *Collection[T]) Load(ctx context.Context, id ID[T]) (*T, error) {
	return c.Get(ctx, string(id))
}

// GetMany returns the values with these IDs, in the order of ids, from one snapshot. The value of a missing
// document is nil.
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
	return core.Owns(c.m, docs[0].inner()), nil
}

// Delete removes the document with this ID. Deleting a missing document is not an error, unless IfMatch
// requires a version. Delete returns a *CollectionError for a document of another collection.
func (c *Collection[T]) Delete(ctx context.Context, id string, opts ...WriteOption) error {
	_, err := writeOne(ctx, c.via, c.newDelete(id, opts))
	return err
}

// newDelete returns the deletion of a document of the collection.
func (c *Collection[T]) newDelete(id string, opts []WriteOption) *op {
	o := newOp(write.Delete, id, nil, opts)
	o.Collection, o.InCollection = c.m.Collection, format.FoldName(c.m.Collection)
	return o
}

// BatchOf adds writes of values of the collection to a Batch, which may also have writes of other collections
// and of JSON. Collection.InBatch returns it. Like a Batch, a BatchOf is not safe for concurrent use.
//
// Each method encodes its value at once. If that fails, the method returns the error, such as ErrType, and adds
// nothing. Later changes of the value are not written. When DB.Apply or Tx.Apply has committed the batch, it
// sets the fields for the ID, the version and other metadata of each value, as Collection.Put does. After an
// error the fields are unchanged. A repeated call with RequestID sets the ID and version that the first call
// made. The batch keeps the pointers until Reset.
type BatchOf[T any] struct {
	c *Collection[T]
	b *Batch
}

// InBatch returns the collection as a part of a batch.
//
//	var b jay.Batch
//	err := orders.InBatch(&b).Insert(ctx, order)
//	…
//	results, err := db.Apply(ctx, &b)
func (c *Collection[T]) InBatch(b *Batch) BatchOf[T] { return BatchOf[T]{c, b} }

// Insert adds a write as by Collection.Insert.
func (b BatchOf[T]) Insert(ctx context.Context, v *T, opts ...WriteOption) error {
	return b.add(ctx, write.Insert, v, opts)
}

// Put adds a write as by Collection.Put.
func (b BatchOf[T]) Put(ctx context.Context, v *T, opts ...WriteOption) error {
	return b.add(ctx, write.Put, v, opts)
}

// Replace adds a write as by Collection.Replace.
func (b BatchOf[T]) Replace(ctx context.Context, v *T, opts ...WriteOption) error {
	return b.add(ctx, write.Replace, v, opts)
}

// Delete adds a write as by Collection.Delete.
func (b BatchOf[T]) Delete(id string, opts ...WriteOption) error {
	return b.take(b.c.newDelete(id, opts))
}

// Patch adds a patch as by Collection.Patch. ReturningPatch stores its result.
func (b BatchOf[T]) Patch(id string, opts ...PatchOption) error {
	return b.take(b.c.newPatch(id, opts))
}

// add adds the write of a value.
func (b BatchOf[T]) add(ctx context.Context, verb write.Verb, v *T, opts []WriteOption) error {
	ops, err := b.c.newOps(ctx, verb, []*T{v}, opts)
	if err != nil {
		return err
	}
	ops[0].Committed = func(result Metadata) { setResult(b.c.m, v, result) }
	ops[0].Repeated = func(result Metadata) { b.c.m.SetRepeated(v, result) }
	return b.take(ops[0])
}

// take adds a write to the batch.
func (b BatchOf[T]) take(o *op) error {
	if b.b == nil {
		return fmt.Errorf("%w: nil batch", ErrUsage)
	}
	to := b.b.add()
	tail, written := to.Tail, to.Written
	*to = *o
	to.Tail, to.Written = tail, written
	return nil
}

// All iterates over the collection in the byte order of folded IDs (users/10-A before users/2-A), in a snapshot
// that is taken when the iteration begins. Each value belongs to the caller. If a document does not decode into
// T, its pair is a nil value and a *DecodeError, and the iteration continues. Any other error is the last pair.
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
	if err := core.DecodeMember(c.m, doc.inner(), v); err != nil {
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

// newOps returns the writes of values, encoded.
func (c *Collection[T]) newOps(ctx context.Context, verb write.Verb, vs []*T, opts []WriteOption) ([]*op, error) {
	ops := make([]*op, len(vs))
	for i, v := range vs {
		if v == nil {
			return nil, fmt.Errorf("%w: nil %T", ErrUsage, v)
		}
		o, err := newValueOp(ctx, c.m, verb, v, opts)
		if err != nil {
			return nil, err
		}
		ops[i] = o
	}
	return ops, c.encode(ops, vs)
}

func (c *Collection[T]) write(ctx context.Context, verb write.Verb, vs []*T, opts []WriteOption) ([]Metadata, error) {
	ops, err := c.newOps(ctx, verb, vs, opts)
	if err != nil {
		return nil, err
	}
	if _, later := c.via.(*Tx); later { // the commit makes versions, and some IDs
		for i, v := range vs {
			ops[i].Committed = func(result Metadata) { setResult(c.m, v, result) }
		}
	}
	var metas []Metadata
	again := false
	if len(ops) > 0 && ops[0].Once != nil {
		metas, again, err = writeOnce(ctx, c.via, ops)
	} else if err = c.via.write(ctx, ops); err == nil {
		metas = results(c.via, ops)
	}
	if err != nil {
		return nil, err
	}
	for i, v := range vs {
		if again {
			c.m.SetRepeated(v, metas[i])
		} else {
			setResult(c.m, v, metas[i])
		}
	}
	return metas, nil
}

// encode sets the bodies of ops to the JSON of vs.
func (c *Collection[T]) encode(ops []*op, vs []*T) error {
	limits := c.via.source().Database().Env.Limits
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
	if db.core.Watch == nil {
		return db.core.ReadInto(ctx, m, id, v)
	}
	return db.core.Watch.Do(ctx, observe.Operation{Verb: "get", Collection: m.Collection, ID: id}, func(ctx context.Context, o *observe.Operation) error {
		err := db.core.ReadInto(ctx, m, id, v)
		if err == nil {
			o.Documents = 1
		}
		return err
	})
}

// mappingOf returns the mapping of t. It returns ErrType if t cannot be
// stored, and ErrIndex if a tag is invalid.
func (db *DB) mappingOf(t reflect.Type, opts []CollectionOption) (*codec.Mapping, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%w: %s is not a struct", ErrType, t)
	}
	m := &codec.Mapping{Type: t, Members: new(codec.KnownPaths)}
	for _, option := range opts {
		option(m)
	}
	if m.Err != nil {
		return nil, m.Err
	}
	conventions := db.opts.Conventions
	if m.Collection == "" && conventions.CollectionName != nil {
		m.Collection = conventions.CollectionName(t)
	}
	if m.Collection == "" {
		m.Collection = ids.CollectionName(t)
	}
	if m.Collection == "" {
		return nil, fmt.Errorf("%w: %s has no name: use jay.Named", ErrType, t)
	}
	if m.Prefix == "" {
		m.Prefix = conventions.Prefix(m.Collection)
	}
	if err := cmp.Or(metadata.CheckCollection(m.Collection), db.core.Writer.CheckTag(m.Prefix)); err != nil {
		return nil, fmt.Errorf("collection %.100q: %w", m.Collection, err)
	}
	switch {
	case m.MakeID != nil:
	case conventions.ID != nil:
		m.MakeID = func(ctx context.Context, v any) (string, error) { return conventions.ID(ctx, m.Collection, v) }
	case conventions.IDRequest != nil:
		WithIDRequest(conventions.IDRequest(m.Collection))(m)
	}
	if m.MakeID != nil && !m.Requests {
		m.MakeID = semanticOnly(db.core.Resolver, m.MakeID)
	}
	if m.IDField == "" && conventions.IDField != nil {
		m.IDField = conventions.IDField(t)
	}
	if err := m.FindID(); err != nil {
		return nil, err
	}
	if err := m.FindVersion(); err != nil {
		return nil, err
	}
	if err := m.FindMeta(); err != nil {
		return nil, err
	}
	if err := m.CheckTags(); err != nil {
		return nil, err
	}
	m.Exact = codec.HoldsInterface(t, nil)
	m.Inspect()
	declared, err := catalog.Tagged(t, m.Collection, m.Drop)
	if err != nil {
		return nil, err
	}
	for _, ix := range declared {
		ix.Fields = nil // they are those of t
		if err := builder.CheckIndex(m, ix); err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
	}
	return m, nil
}

// Tests of package codec take a mapping by this.
func init() {
	parts.Mapping = func(db any, t reflect.Type, name string) (*codec.Mapping, error) {
		return db.(*DB).mappingOf(t, []CollectionOption{Named(name)})
	}
}

// semanticOnly returns a generator that refuses what makeID returns if it is a
// request for another strategy.
func semanticOnly(resolver *ids.Resolver, makeID func(context.Context, any) (string, error)) func(context.Context, any) (string, error) {
	return func(ctx context.Context, v any) (string, error) {
		id, err := makeID(ctx, v)
		if err != nil {
			return "", err
		}
		if _, strategy := resolver.Request(id); strategy.Made() {
			return "", &IDError{ID: id, Actual: max(0, len(id)-1), Rule: fmt.Sprintf("a generator returns the id itself, and this is a request for a %s id", strategy)}
		}
		return id, nil
	}
}

// Patch edits a document of the collection, as DB.Patch does. It returns a *CollectionError for a document of
// another collection.
func (c *Collection[T]) Patch(ctx context.Context, id string, opts ...PatchOption) (PatchResult, error) {
	o := c.newPatch(id, opts)
	if t, ok := c.via.(*Tx); ok {
		return t.patch(ctx, o)
	}
	return patchThrough(ctx, c.via, o)
}

// newPatch returns the patch of a document of the collection.
func (c *Collection[T]) newPatch(id string, opts []PatchOption) *op {
	o := newPatch(id, opts)
	if o.Collection != "" && format.FoldName(o.Collection) != format.FoldName(c.m.Collection) {
		o.UsageError = fmt.Errorf("%w: InCollection(%.100q) on the collection %.100q", ErrUsage, o.Collection, c.m.Collection)
	}
	o.Collection, o.InCollection, o.LeaveOut = c.m.Collection, format.FoldName(c.m.Collection), c.m.Drop
	return o
}

// setResult writes what a write has made into its value: the ID, the version, and what a
// field shows of the metadata. What the result lacks, as it is not committed, stays.
func setResult(m *codec.Mapping, v any, result Metadata) {
	m.SetIdentity(v, result.ID, cmp.Or(result.ChangeVector, m.GetVersion(v)))
	if m.Meta != nil && !result.LastModified.IsZero() {
		_ = m.SetMeta(v, result.LastModified, result.Collection, nil, false) // only decoding can fail
		m.SetExpiry(v, result.Custom)
	}
}

// setCustom makes the custom metadata that the fields of a value hold that of its write,
// unless an option gives it.
func setCustom(m *codec.Mapping, o *op, v any) (err error) {
	if m.Meta.WritesCustom() && o.Custom == nil {
		o.Custom, err = m.Custom(v, nil)
	}
	return err
}

// newValueOp returns the write of a value, which is still to be encoded.
func newValueOp(ctx context.Context, m *codec.Mapping, verb write.Verb, v any, opts []WriteOption) (*op, error) {
	id := m.GetID(v)
	made := id == "" && m.MakeID != nil
	if made {
		var err error
		if id, err = m.MakeID(ctx, v); err != nil {
			return nil, fmt.Errorf("make an id for %s: %w", m.Collection, err)
		}
	}
	if id == "" && verb.MustExist() {
		return nil, fmt.Errorf("%w: Replace of a %s without an id", ErrUsage, m.Type)
	}
	o := newOp(verb, id, nil, opts)
	o.HiLo = id == "" && !made
	o.Prefix = m.Prefix
	if o.Expected == nil && !o.AnyVersion && m.Version != nil && !verb.MustBeNew() && id != "" && !made {
		if version := m.GetVersion(v); version != "" || !verb.MustExist() {
			o.Expected = &version
		}
	}
	if o.Collection != "" && format.FoldName(o.Collection) != format.FoldName(m.Collection) {
		o.UsageError = fmt.Errorf("%w: InCollection(%.100q) on the collection %.100q", ErrUsage, o.Collection, m.Collection)
	}
	o.Collection = m.Collection
	if !verb.MustBeNew() {
		o.KeepExpires, o.KeepRefresh = m.KeepsDue()
	}
	return o, nil
}

// CollectionOption is an option of CollectionOf.
type CollectionOption func(*codec.Mapping)

// WithIDRequest replaces HiLo: a value whose ID field is empty is stored under this
// request, as in DB.Put: "invoices|" makes an identity, "logs/" a server-side ID and
// "" a GUID.
func WithIDRequest(request string) CollectionOption {
	return func(m *codec.Mapping) {
		m.Requests = true
		m.MakeID = func(context.Context, any) (string, error) { return request, nil }
	}
}
