package jay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/jaydb/jay/internal/catalog"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"

	"github.com/jaydb/jay/internal/parallel"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

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
	// What the caller asked for.
	verb       verb
	request    string
	hilo       bool // no ID was given: draw one
	prefix     string
	collection string
	expected   *string
	custom     []byte
	body       []byte
	only       string   // folded collection that a delete is limited to
	drop       []string // top-level members that hold the ID and the version of a typed document
	sound      bool     // body is what will be stored, and needs no check: encoded.stored
	misuse     error
	patching   *patching             // of a patch
	returning  *Metadata             // gets the result
	committed  func(result Metadata) // is told of the commit

	// What prepare made of it, outside the transaction.
	strategy         ids.Strategy
	resolved         string // the request, as the strategy wants it
	id               string // final, unless the transaction makes it
	foldedID         string // id, folded
	json             []byte // the body as it is stored
	header           metadata.Header
	tail             []byte // header.AppendTail
	written          []byte // id, if header has it
	shown            bool   // the made ID is known outside and cannot be changed
	foldedCollection string // collection, folded
	indexed          *catalog.Collection
	entries          *catalog.Entries // in those indexes
	refused          error            // why those indexes refuse the document
	late             bool             // the body was made in the transaction
	ahead            bool             // before was read before the transaction
	before           *oldDocument     // nil if there was none

	// What the transaction decided. Each run writes it anew.
	outcome settled
	taken   bool // a made ID turned out to be in use
	redraws int  // how often
}

// settled is what has become of an op.
type settled uint8

const (
	unsettled   settled = iota
	provisional         // staged in a Tx, whose commit will tell more
	absent              // there is no document
	present             // the document is as the header says
)

// result returns the metadata of the document that o wrote, and only its ID if
// there is none now. It is the caller's, and made when somebody asks: bulk loads
// never do.
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

// collectionOf returns the collection of the document that o writes, as written.
// A patch leaves its document where it is; what the op names is for the one that
// it inserts.
func (o *op) collectionOf() string {
	if o.verb == verbPatch {
		return string(o.header.Collection)
	}
	return o.collection
}

// opPool keeps ops for sessions, each with the memory of its tail.
var opPool = sync.Pool{New: func() any { return new(op) }}

func takeOp() *op { return opPool.Get().(*op) }

// release gives the op back. Nobody may hold it or its tail any more.
func (o *op) release() {
	*o = op{tail: o.tail[:0]}
	opPool.Put(o)
}

// errTaken says that some op's made ID is in use: draw another, run again.
var errTaken = errors.New("a made id is in use")

// access is what documents are read and written through: the database, or a
// transaction on it.
type access interface {
	Get(ctx context.Context, id string) (*Document, error)
	GetMany(ctx context.Context, ids ...string) ([]*Document, error)
	Documents(ctx context.Context, s Scan) iter.Seq2[*Document, error]
	limits() metadata.Limits
	write(ctx context.Context, ops []*op) error
	result(o *op) Metadata
}

var (
	_ access = (*DB)(nil)
	_ access = (*Tx)(nil)
)

func writeOne(ctx context.Context, a access, o *op) (Metadata, error) {
	if err := a.write(ctx, []*op{o}); err != nil {
		return Metadata{}, err
	}
	return a.result(o), nil
}

// results returns what became of ops.
func results(a access, ops []*op) []Metadata {
	out := make([]Metadata, len(ops))
	for i, o := range ops {
		out[i] = a.result(o)
	}
	return out
}

// write is the write path: all changes to documents go through it. The steps
// are those of the package documentation.
func (db *DB) write(ctx context.Context, ops []*op) error {
	if len(ops) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := db.env.Enter(); err != nil {
		return err
	}
	defer db.env.Exit()

	if err := db.prepareAll(ops); err != nil {
		return err
	}
	written := false
	defer func() {
		if !written { // an error, or the user's code panics
			db.gaps.count(ops)
		}
	}()
	if err := db.drawAndCommit(ctx, ops); err != nil {
		return err
	}
	written = true
	db.publish(ops)
	return nil
}

// drawAndCommit makes the IDs of prepared ops and runs their transaction.
func (db *DB) drawAndCommit(ctx context.Context, ops []*op) error {
	for _, o := range ops {
		if err := db.drawID(ctx, o); err != nil {
			return opError(ops, o, err)
		}
	}
	g, err := db.guessPatches(ctx, ops)
	if err != nil {
		return err
	}
	defer g.close()
	a, err := db.readAhead(ctx, ops)
	if err != nil {
		return err
	}
	defer a.close(ops)
	return db.commitFree(ctx, ops, a, g)
}

// commitFree runs the transaction of ops, with other numbers as long as an ID
// that was made turns out to be taken, and with other guesses as long as a
// document that was patched turns out to have changed.
func (db *DB) commitFree(ctx context.Context, ops []*op, a *ahead, g *guesses) error {
	for {
		err := db.commit(ctx, ops, a)
		if errors.Is(err, errStale) {
			if err := g.again(ctx); err != nil {
				return err
			}
			continue
		}
		if !errors.Is(err, errTaken) {
			return err
		}
		for _, o := range ops {
			if !o.taken {
				continue
			}
			o.ahead = false
			if err := db.redrawID(ctx, o); err != nil {
				return opError(ops, o, err)
			}
		}
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
			last := new(naming)
			return func(lo, hi int) error { return db.prepareSome(ops, ops[lo:hi], modified, last) }
		})
	}
	p := preparations.Get().(*preparation) // it may know the collection
	defer preparations.Put(p)
	p.use(db)
	return db.prepareSome(ops, ops, modified, &p.naming)
}

func (db *DB) prepareSome(all, some []*op, modified uint64, last *naming) error {
	for _, o := range some {
		if err := db.prepare(o, modified, last); err != nil {
			return opError(all, o, err)
		}
	}
	return nil
}

// opError says which write failed.
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

// prepare checks and encodes all that does not need the transaction.
func (db *DB) prepare(o *op, modified uint64, last *naming) error {
	o.id, o.foldedID = "", "" // as an earlier use of the batch may have left them
	if o.misuse != nil {
		return o.misuse
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
	if last.folded == "" || last.collection != o.collection {
		*last = naming{collection: o.collection, folded: format.CollectionKey(o.collection), bytes: []byte(o.collection)}
	}
	o.foldedCollection = last.folded
	if o.extract(db.indexes().Of(o.foldedCollection)); o.refused != nil {
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

// prepareID decides the strategy and refuses what can never be an ID.
func (db *DB) prepareID(o *op) error {
	if o.hilo {
		o.strategy = ids.HiLo
		return nil
	}
	if o.verb == verbDelete {
		// A delete looks an ID up, it makes none.
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
		return fmt.Errorf("%w: Replace needs the id of a document; %q asks for a new %s id", ErrUsage, o.request, o.strategy)
	}
	if o.expected != nil && *o.expected != "" {
		return &ConflictError{ID: o.request, Expected: *o.expected}
	}
	return nil
}

// prepareHiLo checks that the tag can make IDs within the rules, before a
// number is drawn.
func (db *DB) prepareHiLo(o *op, last *naming) error {
	if o.collection == "" || o.collection == metadata.Empty {
		return fmt.Errorf("%w: a HiLo id needs a collection", ErrUsage)
	}
	if o.expected != nil && *o.expected != "" {
		return &ConflictError{Expected: *o.expected} // there is no id to name: none is drawn
	}
	if o.prefix == "" && last.prefix != "" && last.collection == o.collection {
		o.prefix = last.prefix
		return nil
	}
	if o.prefix != "" {
		return nil // mappingOf has checked it
	}
	o.prefix = db.opts.Conventions.Prefix(o.collection)
	err := db.checkTag(o.prefix)
	if err == nil {
		*last = naming{collection: o.collection, folded: format.CollectionKey(o.collection), bytes: []byte(o.collection), prefix: o.prefix}
	}
	return err
}

// naming is what follows from the name of a collection. The ops of a batch
// mostly share one.
type naming struct {
	collection string
	folded     string
	bytes      []byte
	prefix     string // checked; "" if not made yet
}

// prepareBody validates the JSON, takes its @metadata out and decides the
// collection.
func (db *DB) prepareBody(o *op) error {
	scanned := metadata.Scanned{Body: o.body}
	if !o.sound {
		var err error
		if scanned, err = metadata.Scan(o.body, db.limits(), o.drop...); err != nil {
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
	if asked == metadata.Empty {
		asked = ""
	}
	if err := metadata.CheckCollection(asked); err != nil {
		return err
	}
	if given.Collection != "" && asked != "" && format.FoldName(given.Collection) != format.FoldName(asked) {
		return fmt.Errorf("%w: the document's @metadata names collection %q, the call %q", ErrUsage, given.Collection, asked)
	}
	o.collection = asked
	if given.Collection != "" {
		o.collection = given.Collection
	}
	return nil
}

// limits returns what bounds a document.
func (db *DB) limits() metadata.Limits { return db.env.Limits }

func (db *DB) parseMetadata(raw []byte) (metadata.Given, error) {
	if raw == nil {
		return metadata.Given{}, nil
	}
	return metadata.Parse(raw)
}

// parseCustom reads the object that WithMetadata gave.
func (db *DB) parseCustom(raw []byte) (metadata.Given, error) {
	scanned, err := metadata.Scan(raw, metadata.Limits{MaxBytes: db.opts.MaxDocumentBytes, MaxDepth: db.opts.MaxDepth - 1})
	if err != nil {
		return metadata.Given{}, fmt.Errorf("custom metadata: %w", err)
	}
	return metadata.Parse(scanned.Body)
}

// joinMetadata adds the members of b to a. They must not repeat.
func joinMetadata(a, b metadata.Given) (metadata.Given, error) {
	if a.Collection != "" && b.Collection != "" && format.FoldName(a.Collection) != format.FoldName(b.Collection) {
		return a, fmt.Errorf("%w: @collection is %q in the document and %q in WithMetadata", ErrUsage, a.Collection, b.Collection)
	}
	if a.Collection == "" {
		a.Collection = b.Collection
	}
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

// drawID makes the IDs that are not made in the transaction: HiLo and GUID.
func (db *DB) drawID(ctx context.Context, o *op) (err error) {
	switch {
	case o.verb == verbDelete, o.verb == verbPatch:
		return nil
	case o.strategy == ids.HiLo:
		o.id, err = db.client.Next(ctx, o.prefix)
	case o.strategy == ids.GUID:
		o.id, err = db.resolver.NewGUID()
	default:
		return nil
	}
	if err != nil {
		return err
	}
	if err := db.env.Rules.Check(o.id); err != nil {
		return err
	}
	db.encodeTail(o)
	return nil
}

// maxGUIDs is how many GUIDs are made for one document before their source is
// found to be broken.
const maxGUIDs = 10

// redrawID draws until the ID is free, as far as the committed state tells:
// the transaction will look again.
func (db *DB) redrawID(ctx context.Context, o *op) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if o.redraws++; o.strategy == ids.GUID && o.redraws > maxGUIDs {
			return fmt.Errorf("%w: %d new GUIDs were taken already: Options.Rand repeats itself", ErrUsage, maxGUIDs)
		}
		db.gaps.countTaken(o)
		o.id = "" // it is counted: if the draw panics, it must not be counted again
		if err := db.drawID(ctx, o); err != nil {
			return err
		}
		var scratch [128]byte
		found, err := exists(db.env.Engine, format.DocumentKey(scratch[:0], db.env.Rules.Fold(o.id)))
		if err != nil || !found {
			return err
		}
	}
}

// commit runs the transaction of ops.
func (db *DB) commit(ctx context.Context, ops []*op, a *ahead) error {
	return db.transact(ctx, db.env.Synced, func(t *transaction) error {
		t.ahead = a
		return t.run(ops)
	})
}

// transact runs fn in a transaction, which may run it more than once, reserves
// the etags that it needs, and notes the ceilings that the commit made durable.
//
// A refusal, an error of fn, is returned when what it may rest on is on disk. Of
// those errors after which the caller runs the transaction again, that is the
// caller's business.
func (db *DB) transact(ctx context.Context, sync bool, fn func(*transaction) error) error {
	t := transactions.Get().(*transaction)
	defer transactions.Put(t)
	defer func() { *t = transaction{key: t.key, value: t.value} }()
	for {
		t.changing = nil
		err := db.env.Engine.Update(ctx, sync, func(tx storage.Tx) error {
			*t = transaction{db: db, tx: tx, changing: t.changing, key: t.key, value: t.value}
			err := fn(t)
			if t.changing != nil {
				tx.OnDecided(t.changing)
			}
			return err
		})
		if err == nil {
			db.ceilings.durable(t.raised)
			return nil
		}
		if errors.Is(err, ErrUnknownOutcome) {
			return err // the engine may still be at it
		}
		t.changing.Decided()
		if errors.Is(err, errIndexesChanged) {
			db.extractAgain(t.ops)
			continue
		}
		if errors.Is(err, errReserve) {
			if err := db.reserveEtags(ctx, t.needed+t.hint); err != nil {
				return fmt.Errorf("reserve etags: %w", err)
			}
			continue
		}
		if isRetried(err) {
			return err
		}
		return db.settleRefusal(ctx, err)
	}
}

// isRetried reports whether the transaction that ended with err runs again, in
// another way.
func isRetried(err error) bool {
	_, lost := err.(lostError)
	return lost || errors.Is(err, errTaken) || errors.Is(err, errOvertaken) || errors.Is(err, errStale)
}

// settleRefusal returns err, a refusal, when all that it may rest on is on disk.
// If that does not come to pass, the error is also an ErrUnknownOutcome.
func (db *DB) settleRefusal(ctx context.Context, err error) error {
	if !db.env.Synced || errors.Is(err, ErrFailed) || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	if unsure := db.env.Engine.Sync(ctx); unsure != nil {
		return fmt.Errorf("%w: %w", unsure, err)
	}
	return err
}

// changes are documents that a transaction keeps out of the cache, until no
// reader can read an older version any more.
type changes struct {
	cache  *documentCache
	hashes []uint64
	first  [4]uint64 // room for hashes
	ended  atomic.Bool
}

// Decided implements storage.Decider. Only the first call has an effect.
func (c *changes) Decided() {
	if c != nil && c.ended.CompareAndSwap(false, true) {
		c.cache.end(c.hashes)
	}
}

// transactions are kept for their scratch memory.
var transactions = sync.Pool{New: func() any { return new(transaction) }}

// transaction stages ops. It lives for one run of one transaction.
type transaction struct {
	db       *DB
	tx       storage.Tx
	raised   map[string]uint64 // ceilings of identities staged, by name
	catalog  *catalog.Catalog  // see indexes
	ops      []*op             // that run was given
	entered  int               // bytes of bodies whose entries were extracted in the transaction
	ahead    *ahead            // what was read before
	etags    uint64            // reserved on disk up to here; 0 until it is looked up
	needed   uint64            // the etag that could not be drawn, with errReserve
	hint     uint64            // etags that will be needed beside it
	patched  int               // bytes of bodies that patches have made
	here     int               // patches that were made in this run
	changing *changes          // of this run, and of those before it in one Update; nil for none
	flags    map[uint32]byte   // of indexes, as they are known
	key      []byte            // scratch
	value    []byte            // scratch
}

func (t *transaction) run(ops []*op) error {
	taken := false
	t.hint, t.ops = uint64(len(ops)), ops
	for _, o := range ops {
		err := t.stage(o)
		if errors.Is(err, errTaken) {
			taken = true
			continue
		}
		if err != nil {
			return opError(ops, o, err)
		}
	}
	if taken {
		return errTaken
	}
	return nil
}

// stage resolves and stages one op.
func (t *transaction) stage(o *op) error {
	o.outcome, o.taken, o.header.Etag = unsettled, false, 0 // as an earlier run may have left them
	switch o.verb {
	case verbDelete:
		return t.stageDelete(o)
	case verbPatch:
		return t.stagePatch(o)
	}
	etag := uint64(0)
	var err error
	switch o.strategy {
	case ids.ServerSide:
		o.id, etag, err = t.db.resolver.ServerSide(t, o.resolved)
	case ids.Identity:
		o.id, err = t.db.resolver.Identity(t, o.resolved)
	}
	if err != nil {
		return err
	}
	if o.strategy == ids.ServerSide || o.strategy == ids.Identity {
		t.db.encodeTail(o)
	}
	if etag == 0 {
		if etag, err = t.Sequence(); err != nil {
			return err
		}
	}
	return t.stagePut(o, etag)
}

// stagePut checks the document that is there and stages the new one.
func (t *transaction) stagePut(o *op, etag uint64) error {
	old, found, err := t.old(o)
	if err != nil {
		return err
	}
	if found && !o.shown && (o.strategy == ids.HiLo || o.strategy == ids.GUID) {
		o.taken = true
		return errTaken
	}
	if found && o.strategy != ids.Semantic {
		// Server-side IDs and identities were made to be free in this same
		// transaction.
		return fmt.Errorf("made id %q: %w", o.id, ErrExists)
	}
	if err := t.check(o, old, found); err != nil {
		return err
	}
	return t.stageDocument(o, etag, old, found)
}

// stageDocument stages the document of o with all that goes with it.
func (t *transaction) stageDocument(o *op, etag uint64, old oldDocument, found bool) error {
	folded := o.foldedID
	if found { // what is not there is not in the cache, nor on its way there
		t.change(folded)
	}
	o.header.Etag = etag
	t.key = format.DocumentKey(t.key[:0], folded)
	t.value = append(o.header.AppendHead(t.value[:0]), o.tail...)
	t.tx.Set(t.key, t.value, o.json)
	t.stageChange(format.ChangePut, etag, o.collectionOf(), folded)
	switch {
	case found:
		t.tx.Delete(format.ChangeKey(t.key[:0], old.Node, old.Etag))
	case !format.IsClustered(folded, o.foldedCollection, t.db.env.FoldedSeparator): // a document stays in its collection
		t.key = format.MemberKey(t.key[:0], o.foldedCollection, folded)
		t.tx.Set(t.key, nil, nil)
	}
	if err := t.stageEntries(o, old); err != nil {
		return err
	}
	o.outcome = present
	return nil
}

// stageEntries stages the index entries of o. Those that were extracted before
// the transaction count only if the indexes are still the same: see
// extractAgain.
func (t *transaction) stageEntries(o *op, old oldDocument) error {
	ci := t.indexes().Of(o.foldedCollection)
	if ci == nil {
		return nil
	}
	if ci != o.indexed {
		if t.entered += len(o.json); t.entered > maxEnteredBytes && !o.late {
			return errIndexesChanged
		}
		o.extract(ci)
	}
	if o.refused != nil {
		return o.refused
	}
	return t.stageIndexes(ci, o.id, o.foldedID, old, o.entries)
}

// indexes returns the indexes that this run of the transaction maintains. An
// engine that several processes share must read them from the store here.
func (t *transaction) indexes() *catalog.Catalog {
	if t.catalog == nil {
		t.catalog = t.db.indexes()
	}
	return t.catalog
}

// change keeps a document out of the cache until the transaction has ended.
func (t *transaction) change(folded string) {
	if t.db.cache == nil {
		return
	}
	if t.changing == nil {
		t.changing = &changes{cache: t.db.cache}
		t.changing.hashes = t.changing.first[:0]
	}
	t.changing.hashes = append(t.changing.hashes, t.db.cache.begin(folded))
}

func (t *transaction) stageChange(kind byte, etag uint64, collection, folded string) {
	t.key = format.ChangeKey(t.key[:0], t.db.env.Node, etag)
	t.value = format.AppendChange(t.value[:0], kind, collection, folded)
	t.tx.Set(t.key, t.value, nil)
}

func (t *transaction) stageDelete(o *op) error {
	folded := o.foldedID
	old, found, err := t.old(o)
	if err != nil {
		return err
	}
	if err := t.checkVersion(o, old, found); err != nil {
		return err
	}
	if !found {
		o.outcome = absent
		return nil
	}
	if o.only != "" && format.CollectionKey(old.Collection) != o.only {
		return &CollectionError{ID: o.id, Current: orEmpty(old.Collection), Given: o.collection}
	}

	etag, err := t.Sequence()
	if err != nil {
		return err
	}
	collection := old.Collection
	key := format.CollectionKey(collection)
	t.change(folded)
	t.tx.Delete(format.DocumentKey(t.key[:0], folded))
	if !format.IsClustered(folded, key, t.db.env.FoldedSeparator) {
		t.tx.Delete(format.MemberKey(t.key[:0], key, folded))
	}
	t.tx.Delete(format.ChangeKey(t.key[:0], old.Node, old.Etag))
	t.stageChange(format.ChangeDelete, etag, collection, folded)
	if ci := t.indexes().Of(key); ci != nil {
		if err := t.stageIndexes(ci, o.id, folded, old, nil); err != nil {
			return err
		}
	}
	o.outcome, o.header.Etag = absent, etag // no result tells of it: sessions do
	return nil
}

// oldDocument is what a write needs to know of the document it meets.
type oldDocument struct {
	Node, Etag uint64
	Collection string
	Body       []byte // only if its collection has indexes
	ID         string // as it was written, if there is a body
}

// old finds the document that o meets, unless it was read before and is still
// the same.
func (t *transaction) old(o *op) (oldDocument, bool, error) {
	t.key = format.DocumentKey(t.key[:0], o.foldedID)
	if o.ahead && t.ahead != nil && t.ahead.catalog == t.indexes() && t.tx.Unchanged(t.ahead.watch, t.key) {
		if o.before == nil {
			return oldDocument{}, false, nil
		}
		return *o.before, true, nil
	}
	if o.strategy == ids.Semantic {
		if doc := t.db.cache.current(format.DocumentID(t.key)); doc != nil {
			// Not the body: readers have it, and what one of them wrote into it
			// would leave the entries of the stored one behind.
			if old := oldOf(t.db, t.indexes(), o, &doc.header, doc.body); old.Body == nil {
				return old, true, nil
			}
		}
	}
	value, closer, err := t.tx.Get(t.key)
	if err == storage.ErrNotFound {
		return oldDocument{}, false, nil
	}
	if err != nil {
		return oldDocument{}, false, err
	}
	old, err := decodeOld(t.db, t.indexes(), o, value)
	return old, true, errs.First(err, closer.Close())
}

// check compares what is there with what the op expects.
func (t *transaction) check(o *op, old oldDocument, found bool) error {
	if err := t.checkVersion(o, old, found); err != nil {
		return err
	}
	switch {
	case o.verb == verbInsert && found:
		return ErrExists
	case o.verb == verbReplace && !found:
		return ErrNotFound
	}
	if found && format.CollectionKey(old.Collection) != o.foldedCollection {
		return &CollectionError{ID: o.id, Current: orEmpty(old.Collection), Given: orEmpty(o.collection)}
	}
	return nil
}

func (t *transaction) checkVersion(o *op, old oldDocument, found bool) error {
	if o.expected == nil {
		return nil
	}
	actual := ""
	if found {
		actual = t.db.env.ChangeVector(old.Node, old.Etag)
	}
	// A delete that expects nothing to be there contradicts itself: RavenDB
	// refuses it, found or not.
	if actual == *o.expected && (o.verb != verbDelete || found) {
		return nil
	}
	return &ConflictError{ID: o.id, Expected: *o.expected, Actual: actual}
}

func orEmpty(collection string) string {
	if collection == "" {
		return metadata.Empty
	}
	return collection
}

// getter is the part of a storage.Reader or Tx that reads one key.
type getter interface {
	Get(key []byte) ([]byte, io.Closer, error)
}

func exists(r getter, key []byte) (bool, error) {
	_, closer, err := r.Get(key)
	if err == storage.ErrNotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, closer.Close()
}
