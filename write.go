package jay

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/jaydb/jay/internal/builder"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/internal/requests"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/query"
)

// Batch is a list of writes that DB.Apply commits together: all of them or none. Collection.InBatch adds values
// to a Batch. The zero value is empty and ready to use. A Batch keeps references to the bodies until it is
// applied or Reset; do not change a body before that. A Batch is not safe for concurrent use.
type Batch struct {
	ops  []*op
	slab []op // memory for ops to come
}

// Tests of package write take the writes of a batch by this.
func init() { parts.Ops = func(batch any) []*op { return batch.(*Batch).ops } }

// add returns a new op at the end of the batch.
func (b *Batch) add() *op {
	if n := len(b.ops); n < cap(b.ops) && b.ops[:n+1][n] != nil {
		b.ops = b.ops[:n+1]
		return b.ops[n]
	}
	if len(b.slab) == 0 {
		b.slab = make([]op, min(max(1, len(b.ops)), 64))
	}
	o := &b.slab[0]
	b.slab = b.slab[1:]
	b.ops = append(b.ops, o)
	return o
}

// Put adds a write as by DB.Put.
func (b *Batch) Put(id string, body json.RawMessage, opts ...WriteOption) {
	initOp(b.add(), write.Put, id, body, opts)
}

// Insert adds a write as by DB.Insert.
func (b *Batch) Insert(id string, body json.RawMessage, opts ...WriteOption) {
	initOp(b.add(), write.Insert, id, body, opts)
}

// Store adds a write as by DB.Store.
func (b *Batch) Store(collection string, body json.RawMessage, opts ...WriteOption) {
	initStore(b.add(), collection, body, opts)
}

// Replace adds a write as by DB.Replace.
func (b *Batch) Replace(id string, body json.RawMessage, opts ...WriteOption) {
	initOp(b.add(), write.Replace, id, body, opts)
}

// Delete adds a write as by DB.Delete.
func (b *Batch) Delete(id string, opts ...WriteOption) {
	initOp(b.add(), write.Delete, id, nil, opts)
}

// Len returns the number of writes in the batch.
func (b *Batch) Len() int { return len(b.ops) }

// Reset empties the batch for the next use.
func (b *Batch) Reset() {
	for _, o := range b.ops {
		*o = op{Prepared: write.Prepared{Tail: o.Tail[:0], Written: o.Written[:0]}} // its memory is reused
	}
	b.ops = b.ops[:0]
}

// Apply commits the writes of b atomically, in their order: later writes see earlier ones. If a write fails,
// Apply changes nothing, and the error contains the position of the write. Apply returns the metadata of each
// write. The metadata of a delete has only an ID, and an Etag if the document existed. After an error the batch
// can be applied again: semantic IDs stay, and new IDs replace the others.
//
// With RequestID the batch is applied once. A repeated call returns metadata with ID, Collection, ChangeVector,
// Etag and LastModified, and does not set the variables of Returning. If the request ID belongs to a batch with
// other writes, Apply returns ErrRequestID.
func (db *DB) Apply(ctx context.Context, b *Batch, opts ...CallOption) ([]Metadata, error) {
	if b == nil {
		return nil, fmt.Errorf("%w: nil batch", ErrUsage)
	}
	if len(opts) > 0 {
		return db.applyOnce(ctx, b, opts)
	}
	if err := db.write(ctx, b.ops); err != nil {
		return nil, err
	}
	return results(db, b.ops), nil
}

// applyOnce is Apply with options.
func (db *DB) applyOnce(ctx context.Context, b *Batch, opts []CallOption) ([]Metadata, error) {
	r, err := requestOf(opts, fmt.Sprintf("apply of %d", len(b.ops)))
	if err != nil {
		return nil, err
	}
	if r != nil && len(b.ops) > 0 {
		for _, o := range b.ops {
			if o.Once != nil {
				return nil, write.OpError(b.ops, o, write.ErrPartOfCall)
			}
		}
		keepResults(b.ops, r)
		defer func() { b.ops[0].Once = nil }()
	}
	var kept []requests.Written
	if found, err := requests.Decode(db.write(ctx, b.ops), &kept); err != nil {
		return nil, err
	} else if found {
		all := keptResults(kept)
		for i, o := range b.ops[:min(len(b.ops), len(all))] {
			if o.Repeated != nil {
				o.Repeated(all[i])
			}
		}
		return all, nil
	}
	return results(db, b.ops), nil
}

// Put stores body as the document with this ID, replacing an existing document, and returns its metadata with
// the final ID. The package documentation lists the forms of id: "" makes a GUID, "users/" a server-side ID,
// "users|" an identity. An ID that Jay makes never overwrites a document.
//
// body must be a JSON object, within Options.MaxDocumentBytes and MaxDepth, in valid UTF-8, without repeated
// keys; otherwise Put returns a *DocumentError. Put takes @metadata, if any, out of body: @collection names the
// collection, unknown keys become custom metadata, and keys that Jay computes (@id, @change-vector,
// @last-modified, …) are dropped. Put does not keep body: the caller may reuse it.
//
// Without @collection and InCollection, an existing document stays in its collection, and
// Options.PrefixCollections decides the collection of a new one. A document never changes its collection: Put
// returns a *CollectionError for another one.
//
// The write is atomic, and on disk when Put returns (Options.Durability). A refused write changes nothing and
// uses no number. Put returns *IDError, *DocumentError, *ConflictError (IfMatch), *CollectionError, ErrUsage,
// and the errors of storage: ErrUnknownOutcome, ErrFailed, ErrClosed.
func (db *DB) Put(ctx context.Context, id string, body json.RawMessage, opts ...WriteOption) (Metadata, error) {
	return writeOne(ctx, db, newOp(write.Put, id, body, opts))
}

// Insert stores a new document, as Put does. If a document with the ID exists, Insert returns ErrExists and
// changes nothing.
func (db *DB) Insert(ctx context.Context, id string, body json.RawMessage, opts ...WriteOption) (Metadata, error) {
	return writeOne(ctx, db, newOp(write.Insert, id, body, opts))
}

// Store inserts body under a new HiLo ID of the collection, such as users/33-A for Users
// (Options.Conventions.Prefix). Numbers come from a range reserved in advance, so Store costs no more than Put.
// Store skips a number if a document with its ID exists already.
func (db *DB) Store(ctx context.Context, collection string, body json.RawMessage, opts ...WriteOption) (Metadata, error) {
	return writeOne(ctx, db, newStore(collection, body, opts))
}

// Replace stores body over an existing document, as Put does. If no document with the ID exists, Replace
// returns ErrNotFound and changes nothing. The ID must be a semantic ID.
func (db *DB) Replace(ctx context.Context, id string, body json.RawMessage, opts ...WriteOption) (Metadata, error) {
	return writeOne(ctx, db, newOp(write.Replace, id, body, opts))
}

// Delete removes the document with this ID. Deleting a missing document is not an error, unless IfMatch
// requires a version.
func (db *DB) Delete(ctx context.Context, id string, opts ...WriteOption) error {
	_, err := writeOne(ctx, db, newOp(write.Delete, id, nil, opts))
	return err
}

func newOp(v write.Verb, id string, body []byte, opts []WriteOption) *op {
	o := new(op)
	initOp(o, v, id, body, opts)
	return o
}

func initOp(o *op, v write.Verb, id string, body []byte, opts []WriteOption) {
	o.Verb, o.RequestID, o.Body = v, id, body
	for _, option := range opts {
		switch option := option.(type) { // without a dynamic call, which would move options to the heap
		case writeOption:
			option(o)
		case RequestOption:
			option.write(o)
		}
	}
}

func newStore(collection string, body []byte, opts []WriteOption) *op {
	o := new(op)
	initStore(o, collection, body, opts)
	return o
}

func initStore(o *op, collection string, body []byte, opts []WriteOption) {
	initOp(o, write.Insert, "", body, opts)
	o.HiLo = true
	if o.Collection != "" && format.FoldName(o.Collection) != format.FoldName(collection) {
		o.UsageError = fmt.Errorf("%w: Store into %.100q with InCollection(%.100q)", ErrUsage, collection, o.Collection)
	}
	o.Collection = collection
}

// WriteOption is an option of one write. Every WriteOption is also a PatchOption.
type WriteOption interface {
	patch(o *op)
	write(o *op)
}

// writeOption is a WriteOption that changes the op.
type writeOption func(*op)

func (w writeOption) write(o *op) { w(o) }
func (w writeOption) patch(o *op) { w(o) }

// InCollection names the collection of the document. If the @metadata of the body names another collection, the
// write returns ErrUsage. "@empty" puts the document into no collection.
//
// A write that names no collection keeps the collection of the document that it replaces. For a new document
// see Options.PrefixCollections.
func InCollection(name string) WriteOption {
	return writeOption(func(o *op) { o.Collection = name })
}

// IfMatch makes the write conditional: Metadata.ChangeVector of the stored document must equal changeVector.
// The empty string means that the document must not exist. Otherwise the write returns a *ConflictError.
func IfMatch(changeVector string) WriteOption {
	return writeOption(func(o *op) { o.Expected, o.AnyVersion = &changeVector, false })
}

// AnyVersion makes the write of a typed value ignore its version field: Put then inserts the document or
// overwrites any version of it.
func AnyVersion() WriteOption {
	return writeOption(func(o *op) { o.Expected, o.AnyVersion = nil, true })
}

// Returning stores the metadata of the write in *m when the write is committed. In a transaction, the commit is
// done when Update returns; *m then contains values that the commit assigns, such as the number of an identity.
func Returning(m *Metadata) WriteOption {
	return writeOption(func(o *op) { o.Returning = m })
}

// WithMetadata adds the members of custom, a JSON object, to the @metadata of the document. The @metadata of
// the body must not contain any of these members.
func WithMetadata(custom []byte) WriteOption {
	return writeOption(func(o *op) { o.Custom = custom })
}

// op is one write on its way through the write path.
type op = write.Op

// access is what documents are read, queried and written through: the database, or a
// transaction on it.
type access interface {
	source() builder.Source
	Get(ctx context.Context, id string) (*Document, error)
	GetMany(ctx context.Context, ids ...string) ([]*Document, error)
	Documents(ctx context.Context, s Scan) iter.Seq2[*Document, error]
	write(ctx context.Context, ops []*op) error
	result(o *op) Metadata
}

// source implements access.
func (db *DB) source() builder.Source { return &db.core }

// write implements access: all changes to documents go through the write path.
func (db *DB) write(ctx context.Context, ops []*op) error { return db.core.Write(ctx, ops) }

func (db *DB) result(o *op) Metadata { return db.core.Writer.ResultOf(o) }

var _ access = (*DB)(nil)

func writeOne(ctx context.Context, a access, o *op) (Metadata, error) {
	if o.Once != nil {
		all, _, err := writeOnce(ctx, a, []*op{o})
		if err != nil {
			return Metadata{}, err
		}
		return all[0], nil
	}
	if err := a.write(ctx, []*op{o}); err != nil {
		return Metadata{}, err
	}
	return a.result(o), nil
}

// results returns the metadata of the documents that ops wrote.
func results(a access, ops []*op) []Metadata {
	out := make([]Metadata, len(ops))
	for i, o := range ops {
		out[i] = a.result(o)
	}
	return out
}

// refusing is the access of a collection in a transaction of another database.
type refusing struct{ db *core.Database }

var _ access = refusing{}

var errOtherDatabase = fmt.Errorf("%w: the transaction is one of another database than the collection", ErrUsage)

// Get returns the refusal.
func (refusing) Get(context.Context, string) (*Document, error) { return nil, errOtherDatabase }

// GetMany returns the refusal.
func (refusing) GetMany(context.Context, ...string) ([]*Document, error) {
	return nil, errOtherDatabase
}

// Documents yields the refusal.
func (refusing) Documents(context.Context, Scan) iter.Seq2[*Document, error] {
	return func(yield func(*Document, error) bool) { yield(nil, errOtherDatabase) }
}

func (r refusing) source() builder.Source { return refusingSource(r) }

// refusingSource is what queries of such a collection are asked of.
type refusingSource struct{ db *core.Database }

// Database implements builder.Source.
func (r refusingSource) Database() *core.Database { return r.db }

// StartRun implements builder.Source.
func (refusingSource) StartRun(context.Context, *query.Query, exec.Options) (*exec.Run, error) {
	return nil, errOtherDatabase
}

func (refusing) write(context.Context, []*op) error { return errOtherDatabase }

func (r refusing) result(o *op) Metadata { return r.db.Writer.ResultOf(o) }

// writeTo commits one write.
func writeTo(ctx context.Context, db *core.Database, o *op) (Metadata, error) {
	if err := db.Write(ctx, []*op{o}); err != nil {
		return Metadata{}, err
	}
	return db.Writer.ResultOf(o), nil
}

// CallOption is an option of one call of DB.Apply, DB.NextIdentity, DB.SeedIdentity or Session.SaveChanges.
type CallOption interface{ call(o *callOptions) }

type callOptions struct {
	id    string
	given bool
}

// RequestOption is the option that RequestID returns. It is an option of writes, patches, transactions and
// other calls.
type RequestOption struct{ id string }

var (
	_ WriteOption = RequestOption{}
	_ CallOption  = RequestOption{}
)

// The ID is cloned, so that a call that takes several kinds of options does not move all of them to the heap.
func (r RequestOption) write(o *op) {
	o.Once = &write.Once{Request: &requests.Request{ID: strings.Clone(r.id)}}
}
func (r RequestOption) patch(o *op)         { r.write(o) }
func (r RequestOption) call(o *callOptions) { o.id, o.given = r.id, true }
func (r RequestOption) transacts()          {}

// RequestID makes a call idempotent: the database carries out a call with this ID once, however often it is
// repeated. A repeated call, such as after a lost response, returns the result of the first call and changes
// nothing. The commit of the call also stores its result, so a crash cannot separate them. A call that fails
// stores no result.
//
// These calls accept RequestID: Put, Insert, Store, Replace, Delete and Patch of DB; the same of Collection,
// InsertMany and PutMany; DB.Apply, DB.Update, Session.SaveChanges, DB.NextIdentity and DB.SeedIdentity. Any
// other call returns ErrUsage for it, and so does a write that is a part of a call, as in a batch or a
// transaction.
//
// The database keeps the results of the newest 10,000 such calls, up to 64 MiB. A request ID has 1 to 256
// bytes. If the ID belongs to a different call that was carried out, the call returns ErrRequestID and changes
// nothing. Calls differ by their method, by their ID, identity or value, and by their writes, including options
// and guards. Bodies are compared byte by byte, so a value that contains the time of the call differs.
// DB.Update compares nothing: see there. For a session see SaveChanges.
//
// The metadata of a repeated call has ID, Collection, ChangeVector, Etag and LastModified. A value gets its ID
// and version. A PatchResult has no Body. A repeated call does not set the variables of Returning and
// ReturningPatch.
func RequestID(id string) RequestOption { return RequestOption{id} }

// requestOf returns the request of a call, or nil if it has no ID.
func requestOf(opts []CallOption, call string) (*requests.Request, error) {
	var o callOptions
	for _, option := range opts {
		option.call(&o)
	}
	if !o.given {
		return nil, nil
	}
	return &requests.Request{ID: o.id, Call: call}, requests.CheckID(o.id)
}

// takeRequest makes the request of the first of ops, which one call has made with its options, one of
// the call.
func takeRequest(a access, ops []*op) (*requests.Request, error) {
	if _, ok := a.(*DB); !ok {
		return nil, write.ErrPartOfCall
	}
	r := ops[0].Once.Request
	if r.Call = ops[0].Verb.Operation(); len(ops) > 1 {
		r.Call = fmt.Sprintf("%s of %d", r.Call, len(ops))
	}
	for _, o := range ops {
		o.Once = nil
	}
	return r, requests.CheckID(r.ID)
}

// writeOnce commits the writes of one call with a request ID, and returns their metadata. If the call was
// carried out before, that is what it returned then.
func writeOnce(ctx context.Context, a access, ops []*op) (all []Metadata, again bool, err error) {
	r, err := takeRequest(a, ops)
	if err != nil {
		return nil, false, err
	}
	keepResults(ops, r)
	var kept []requests.Written
	if again, err = requests.Decode(a.write(ctx, ops), &kept); err != nil {
		return nil, again, err
	}
	if !again {
		return results(a, ops), false, nil
	}
	if len(kept) != len(ops) {
		return nil, true, fmt.Errorf("result of a request: %w: it has %d writes of %d", errs.ErrCorrupt, len(kept), len(ops))
	}
	return keptResults(kept), true, nil
}

// keepResults makes the first of ops keep the results of all in its transaction.
func keepResults(ops []*op, r *requests.Request) {
	ops[0].Once = &write.Once{Request: r, Keeps: write.KeepsResults, Of: ops}
}

// keptResults returns results as Apply does.
func keptResults(kept []requests.Written) []Metadata {
	out := make([]Metadata, len(kept))
	for i := range kept {
		out[i] = kept[i].Metadata()
	}
	return out
}
