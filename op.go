package jay

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
)

func newOp(v verb, id string, body []byte, opts []WriteOption) *op {
	o := new(op)
	o.init(v, id, body, opts)
	return o
}

func (o *op) init(v verb, id string, body []byte, opts []WriteOption) {
	o.verb, o.request, o.body = v, id, body
	for _, option := range opts {
		option(o)
	}
}

func newStore(collection string, body []byte, opts []WriteOption) *op {
	o := new(op)
	o.initStore(collection, body, opts)
	return o
}

func (o *op) initStore(collection string, body []byte, opts []WriteOption) {
	o.init(verbInsert, "", body, opts)
	o.hilo = true
	if o.collection != "" && format.FoldName(o.collection) != format.FoldName(collection) {
		o.usageError = fmt.Errorf("%w: Store into %.100q with InCollection(%.100q)", ErrUsage, collection, o.collection)
	}
	o.collection = collection
}

// own copies what an op shares with its caller.
func (o *op) own() {
	o.json = bytes.Clone(o.json)
	o.header.Custom = bytes.Clone(o.header.Custom)
	o.body, o.custom = nil, nil
}

// verb is what a write does with the document that is there already.
type verb uint8

const (
	verbPut verb = iota
	verbInsert
	verbReplace
	verbDelete
	verbPatch
)

// String returns the method's name, for errors.
func (v verb) String() string {
	return [...]string{"put", "insert", "replace", "delete", "patch"}[v]
}

// op is one write on its way through the write path.
type op struct {
	opRequest
	opPrepared
	opResult
}

// opRequest is what the caller asked for. Preparing it replaces the collection by that
// which the document's own @metadata names, and nothing else.
type opRequest struct {
	verb         verb
	request      string // the ID as the caller wrote it
	hilo         bool   // no ID was given: draw one
	prefix       string // of HiLo IDs, checked; "" for that of the conventions
	collection   string
	named        bool    // the call or the document names a collection, if only @empty; set by preparing
	expected     *string // change vector, see IfMatch
	anyVersion   bool    // see AnyVersion
	custom       []byte
	body         []byte
	inCollection string   // folded collection that a delete is limited to
	leaveOut     []string // top-level members that hold the ID and the version of a typed document
	validated    bool     // body is what will be stored, and needs no check: codec.Encoded.Stored
	usageError   error
	patching     *patching             // of a patch
	returning    *Metadata             // gets the result
	committed    func(result Metadata) // called after the commit
}

// opPrepared is the result of preparing the request, outside the transaction.
type opPrepared struct {
	strategy         ids.Strategy
	resolved         string // the request, as the strategy wants it
	id               string // final, unless the transaction makes it
	foldedID         string
	tag              string // HiLo: the prefix of the ID
	json             []byte // the body as it is stored
	header           metadata.Header
	tail             []byte // header.AppendTail
	written          []byte // id, if header has it
	exposed          bool   // the made ID is known outside and cannot be changed
	foldedCollection string
	suggested        string   // the collection of a new document, if none is named
	seen             *version // in a Tx, the document whose collection this op has taken; the commit checks it
	indexed          *catalog.Collection
	entries          *catalog.Entries // in those indexes
	refused          error            // why those indexes refuse the document
	late             bool             // the body was made in the transaction
	prefetched       bool             // before was read before the transaction
	before           *oldDocument     // the document found by prefetching; nil if there was none
}

// opResult is what the transaction decided. Each run overwrites it.
type opResult struct {
	outcome settled
	idInUse bool // a made ID turned out to be in use
	redraws int  // how often
}

// settled is the outcome of an op.
type settled uint8

const (
	unsettled   settled = iota
	provisional         // staged in a Tx, whose commit decides the rest
	absent              // there is no document
	present             // the document is as the header says
)

// result returns the metadata of the document that o wrote, or only its ID if there
// is none now. The caller owns it. It is made on request: bulk loads never ask for
// it.
func (db *DB) result(o *op) Metadata {
	switch o.outcome {
	case unsettled:
		return Metadata{}
	case absent:
		return Metadata{ID: o.id}
	}
	m := Metadata{ID: cmp.Or(o.id, o.resolved), Collection: orEmpty(o.collectionOf()), Custom: bytes.Clone(o.header.Custom)}
	if o.outcome == present {
		m.ChangeVector = db.env.ChangeVector(o.header.Node, o.header.Etag)
		m.Etag, m.LastModified = o.header.Etag, metadata.Time(o.header.Modified)
	}
	return m
}

// collectionOf returns the collection of the document that o writes, as written. A
// patch leaves its document in its collection; the collection of the op is that of
// a document which it inserts. A write that names no collection keeps the one that
// it finds.
func (o *op) collectionOf() string {
	if o.verb == verbPatch || !o.named {
		return string(o.header.Collection)
	}
	return o.collection
}

// opPool keeps ops for sessions, each with the memory of its tail.
var opPool = sync.Pool{New: func() any { return new(op) }}

func takeOp() *op { return opPool.Get().(*op) }

// release returns the op to the pool. Neither it nor its tail may be used any more.
func (o *op) release() {
	*o = op{opPrepared: opPrepared{tail: o.tail[:0]}}
	opPool.Put(o)
}

// access is what documents are read, queried and written through: the database, or a
// transaction on it.
type access interface {
	Get(ctx context.Context, id string) (*Document, error)
	GetMany(ctx context.Context, ids ...string) ([]*Document, error)
	Documents(ctx context.Context, s Scan) iter.Seq2[*Document, error]
	database() *DB
	startRun(ctx context.Context, q *query.Query, o runOptions) (*run, error)
	write(ctx context.Context, ops []*op) error
	result(o *op) Metadata
}

var (
	_ access = (*DB)(nil)
	_ access = (*Tx)(nil)
	_ access = refusing{}
)

// refusing is the access of a collection in a transaction of another database.
type refusing struct{ db *DB }

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

func (r refusing) database() *DB { return r.db }

func (refusing) startRun(context.Context, *query.Query, runOptions) (*run, error) {
	return nil, errOtherDatabase
}

func (refusing) write(context.Context, []*op) error { return errOtherDatabase }

func (r refusing) result(o *op) Metadata { return r.db.result(o) }

func writeOne(ctx context.Context, a access, o *op) (Metadata, error) {
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

// opError adds to err which write failed.
func opError(ops []*op, o *op, err error) error {
	name := o.request
	if o.hilo {
		name = "new document of " + o.collection
	}
	err = fmt.Errorf("%s %q: %w", o.verb, errs.Shorten(name), err)
	if len(ops) == 1 {
		return err
	}
	for i := range ops {
		if ops[i] == o {
			return fmt.Errorf("write %d of %d: %w", i+1, len(ops), err)
		}
	}
	return err
}
