package jay

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/parallel"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// preparation is the scratch memory for preparing a document.
type preparation struct {
	op     op
	db     *DB // whose conventions made the cached naming
	naming collectionNaming
}

var preparations = sync.Pool{New: func() any { return new(preparation) }}

func (p *preparation) release() {
	p.op = op{opPrepared: opPrepared{tail: p.op.tail[:0]}}
	preparations.Put(p)
}

// use drops the cached naming if it follows the conventions of another database.
func (p *preparation) use(db *DB) {
	if p.db != db {
		p.db, p.naming = db, collectionNaming{}
	}
}

// setBody makes the JSON of a value the body of its write.
func (o *op) setBody(m *codec.Mapping, e codec.Encoded) {
	if o.body, o.validated = e.Body, e.Stored; !o.validated {
		o.leaveOut = m.Drop
	}
}

// extract extracts the entries of o for indexes, which may be nil.
func (o *op) extract(ci *catalog.Collection) {
	o.indexed, o.entries, o.refused = ci, nil, nil
	if ci != nil {
		o.entries, o.refused = ci.Extract(o.json)
	}
}

// prepareAll checks every op before the first number is drawn.
func (db *DB) prepareAll(ops []*op) error {
	modified := metadata.Ticks(db.env.Now())
	if err := db.prepareOps(ops, modified); err != nil {
		return err
	}
	size := 0
	for _, o := range ops {
		size += len(o.json) + len(o.tail) + 2*len(o.id)
	}
	if size > storage.MaxTxBytes {
		return fmt.Errorf("%w: %d bytes, at most %d; use several batches", ErrTooLarge, size, storage.MaxTxBytes)
	}
	return nil
}

func (db *DB) prepareOps(ops []*op, modified uint64) error {
	if len(ops) >= manyOps {
		return parallel.DoChunks(len(ops), opsPerPart, func() func(lo, hi int) error {
			last := new(collectionNaming)
			return func(lo, hi int) error { return db.prepareSome(ops, ops[lo:hi], modified, last) }
		})
	}
	p := preparations.Get().(*preparation) // it may have the naming of the collection
	defer preparations.Put(p)
	p.use(db)
	return db.prepareSome(ops, ops, modified, &p.naming)
}

func (db *DB) prepareSome(all, some []*op, modified uint64, last *collectionNaming) error {
	for _, o := range some {
		if err := db.prepare(o, modified, last); err != nil {
			return opError(all, o, err)
		}
	}
	return nil
}

// prepare checks and encodes everything that does not need the transaction.
func (db *DB) prepare(o *op, modified uint64, last *collectionNaming) error {
	o.id, o.foldedID = "", "" // as an earlier use of the batch may have left them
	if o.usageError != nil {
		return o.usageError
	}
	if err := db.prepareID(o); err != nil {
		return err
	}
	if o.verb == verbDelete {
		o.foldedID = db.env.Rules.Fold(o.id)
		return nil
	}
	if o.verb == verbPatch {
		return db.preparePatch(o, modified, last)
	}
	if err := db.prepareBody(o); err != nil {
		return err
	}
	if o.hilo {
		if err := db.prepareHiLo(o, last); err != nil {
			return err
		}
	}
	collection, err := db.intendedCollection(o, last)
	if err != nil {
		return err
	}
	if last.folded == "" || last.collection != collection {
		last.name(collection)
	}
	o.foldedCollection = last.folded
	// Without a name the document may turn out to be in another collection, whose
	// indexes do not refuse it.
	if o.extract(db.indexes().Of(o.foldedCollection)); o.refused != nil && o.named {
		return o.refused
	}
	o.header.Modified = modified
	o.header.Node = db.env.Node
	o.header.Collection = last.bytes
	if o.strategy == ids.Semantic {
		db.encodeTail(o)
	}
	return nil
}

// prepareID decides the strategy, and refuses what can never be an ID.
func (db *DB) prepareID(o *op) error {
	if o.hilo {
		o.strategy = ids.HiLo
		return nil
	}
	if o.verb == verbDelete {
		// A delete looks an ID up, and makes none.
		o.strategy, o.id = ids.Semantic, o.request
		return nil
	}
	o.resolved, o.strategy = db.resolver.Request(o.request)
	if o.verb == verbPatch && o.strategy != ids.Semantic {
		return &IDError{ID: o.request, Rule: "a patch needs the id of a document, not a request for one"}
	}
	if err := db.resolver.Check(o.resolved, o.strategy); err != nil {
		return err
	}
	if o.strategy == ids.Semantic {
		o.id = o.resolved
		return nil
	}
	if o.verb == verbReplace {
		return fmt.Errorf("%w: Replace needs the id of a document; %.100q asks for a new %s id", ErrUsage, o.request, o.strategy)
	}
	if o.expected != nil && *o.expected != "" {
		if o.strategy == ids.Identity { // RavenDB: InvalidOperationException, and not ConcurrencyException
			return fmt.Errorf("%w: %q asks for a new identity, which has no version to expect; it expects %q", ErrUsage, errs.Shorten(o.request), errs.Shorten(*o.expected))
		}
		return &ConflictError{ID: o.request, Expected: *o.expected}
	}
	return nil
}

// prepareHiLo checks that the tag can make IDs within the rules, before a
// number is drawn.
func (db *DB) prepareHiLo(o *op, last *collectionNaming) error {
	if o.collection == "" || o.collection == metadata.Empty {
		return fmt.Errorf("%w: a HiLo id needs a collection", ErrUsage)
	}
	if o.expected != nil && *o.expected != "" {
		return &ConflictError{Expected: *o.expected} // there is no ID to name: none was drawn
	}
	if o.prefix != "" {
		o.tag = o.prefix // mappingOf has checked it
		return nil
	}
	if last.prefix != "" && last.collection == o.collection {
		o.tag = last.prefix
		return nil
	}
	o.tag = db.opts.Conventions.Prefix(o.collection)
	if err := db.checkTag(o.tag); err != nil {
		return err
	}
	last.name(o.collection)
	last.prefix = o.tag
	return nil
}

// collectionNaming caches what follows from the name of a collection. Most batches
// have one collection only.
type collectionNaming struct {
	collection string
	folded     string
	bytes      []byte
	prefix     string // checked; "" if not made yet

	suggestion, spelled string // see spelling
}

// name makes c the naming of another collection.
func (c *collectionNaming) name(collection string) {
	c.collection, c.folded, c.bytes, c.prefix = collection, format.CollectionKey(collection), []byte(collection), ""
}

// prepareBody validates the JSON, extracts its @metadata and decides the
// collection.
func (db *DB) prepareBody(o *op) error {
	scanned := metadata.Scanned{Body: o.body}
	if !o.validated {
		var err error
		if scanned, err = metadata.Scan(o.body, db.env.Limits, o.leaveOut...); err != nil {
			return err
		}
	}
	o.json = scanned.Body
	o.header = metadata.Header{}

	given, err := db.parseMetadata(scanned.Metadata)
	if err != nil {
		return err
	}
	if o.custom != nil {
		added, err := db.parseCustom(o.custom)
		if err != nil {
			return err
		}
		if given, err = joinMetadata(given, added); err != nil {
			return err
		}
	}
	o.header.Custom = given.Custom

	asked := o.collection
	o.named = o.named || asked != "" || given.Collection != "" || given.Empty
	if asked == metadata.Empty {
		asked = ""
	}
	if err := metadata.CheckCollection(asked); err != nil {
		return err
	}
	if given.Collection != "" && asked != "" && format.FoldName(given.Collection) != format.FoldName(asked) {
		return fmt.Errorf("%w: the document's @metadata names collection %.100q, the call %.100q", ErrUsage, given.Collection, asked)
	}
	o.collection = asked
	if given.Collection != "" {
		o.collection = given.Collection
	}
	return nil
}

func (db *DB) parseMetadata(raw []byte) (metadata.Given, error) {
	if raw == nil {
		return metadata.Given{}, nil
	}
	return metadata.Parse(raw)
}

// parseCustom reads the object that WithMetadata gave.
func (db *DB) parseCustom(raw []byte) (metadata.Given, error) {
	limits := db.env.Limits
	limits.MaxDepth-- // it will lie in the document
	scanned, err := metadata.Scan(raw, limits)
	if err != nil {
		return metadata.Given{}, fmt.Errorf("custom metadata: %w", err)
	}
	return metadata.Parse(scanned.Body)
}

// joinMetadata adds the members of b to a. They must not repeat.
func joinMetadata(a, b metadata.Given) (metadata.Given, error) {
	if a.Collection != "" && b.Collection != "" && format.FoldName(a.Collection) != format.FoldName(b.Collection) {
		return a, fmt.Errorf("%w: @collection is %.100q in the document and %.100q in WithMetadata", ErrUsage, a.Collection, b.Collection)
	}
	if a.Collection == "" {
		a.Collection = b.Collection
	}
	a.Empty = a.Empty || b.Empty
	if a.Custom == nil {
		a.Custom = b.Custom
		return a, nil
	}
	if b.Custom == nil {
		return a, nil
	}
	joined := bytes.Join([][]byte{a.Custom[:len(a.Custom)-1], b.Custom[1:]}, []byte{','})
	if _, err := metadata.Scan(joined, metadata.Limits{MaxBytes: len(joined), MaxDepth: limitMaxDepth}); err != nil {
		return a, fmt.Errorf("@metadata and WithMetadata together: %w", err)
	}
	a.Custom = joined
	return a, nil
}

// encodeTail encodes what depends on the final ID.
func (db *DB) encodeTail(o *op) {
	o.header.ID = nil
	o.foldedID = db.env.Rules.Fold(o.id)
	if o.foldedID != o.id {
		o.written = append(o.written[:0], o.id...)
		o.header.ID = o.written
	}
	if o.tail == nil {
		const numbers = 3 * binary.MaxVarintLen16 // lengths; Modified has its own
		o.tail = make([]byte, 0, binary.MaxVarintLen64+numbers+len(o.header.Collection)+len(o.header.ID)+len(o.header.Custom))
	}
	o.tail = o.header.AppendTail(o.tail[:0])
}
