package write

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"sync"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/parallel"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// CheckTag checks that a tag makes valid IDs, up to the largest number, and a valid
// HiLo document.
func (w *Writer) CheckTag(tag string) error {
	if tag == "" {
		return fmt.Errorf("%w: a HiLo tag must not be empty", ids.ErrUsage)
	}
	if err := w.Env.Rules.Check(tag); err != nil {
		return err
	}
	if s := ids.Classify(format.HiLoPrefix+tag, w.Env.Rules.Separator); s.Made() {
		return fmt.Errorf("%w: a HiLo tag must not end like a request for a new %s id: its document could not be written, got %.100q", ids.ErrUsage, s, tag)
	}
	longest := tag + w.Env.Rules.Separator + strconv.FormatInt(math.MaxInt64, 10) + "-" + w.Env.Rules.NodeTag
	if err := w.Env.Rules.Check(longest); err != nil {
		return err
	}
	return w.Env.Rules.Check(format.HiLoPrefix + tag)
}

// Preparation is the scratch memory for preparing a document.
type Preparation struct {
	Op     Op
	db     *Writer // whose conventions made the cached naming
	Naming CollectionNaming
}

// Preparations are kept for their scratch memory. Release gives one back.
var Preparations = sync.Pool{New: func() any { return new(Preparation) }}

// Release gives the scratch memory back. What was prepared must not be used any more.
func (p *Preparation) Release() {
	p.Op = Op{Prepared: Prepared{Tail: p.Op.Tail[:0]}}
	Preparations.Put(p)
}

// Use drops the cached naming if it follows the conventions of another database.
func (p *Preparation) Use(db *Writer) {
	if p.db != db {
		p.db, p.Naming = db, CollectionNaming{}
	}
}

// SetBody makes the JSON of a value the body of its write.
func (o *Op) SetBody(m *codec.Mapping, e codec.Encoded) {
	if o.Body, o.Validated = e.Body, e.Stored; !o.Validated {
		o.LeaveOut = m.Drop
	}
}

// extract extracts the entries of o for indexes, which may be nil.
func (o *Op) extract(ci *catalog.Collection) { o.extractTo(ci, nil) }

// extractTo is extract with memory of slab, which may be nil.
func (o *Op) extractTo(ci *catalog.Collection, slab *catalog.Slab) {
	o.indexed, o.entries, o.refused = ci, nil, nil
	if ci != nil {
		o.entries, o.refused = ci.Extract(o.JSON, slab)
	}
}

// refusal returns why the indexes refuse the document, with its ID if it has one by now.
func (o *Op) refusal() error { return catalog.WithID(o.refused, o.ID) }

// whyRefused returns why the indexes and the rule that o was prepared for refuse it, or nil.
func (o *Op) whyRefused() error {
	if o.refused != nil {
		return o.refusal()
	}
	return o.misfit()
}

// RefusalNow returns why the indexes or the rule of its collection refuse o, or nil. It extracts entries, and checks o, for those that are
// known now. What is remembered of a shared store may be older than the call: before it refuses, RefusalNow looks at the newest.
func (w *Writer) RefusalNow(o *Op) error {
	for again := false; ; again = true {
		if ci := w.Indexes.Load().Of(o.FoldedCollection); ci != o.indexed {
			o.extract(ci)
		}
		if w.Schemas.Load().Of(o.FoldedCollection) != o.rule {
			o.fit(w)
		}
		refusal := o.whyRefused()
		if refusal == nil || again {
			return refusal
		}
		if err := w.Env.Refresh(); err != nil {
			return err
		}
	}
}

// PrepareAll checks every op before the first number is drawn.
func (w *Writer) PrepareAll(ops []*Op) error {
	modified := metadata.Ticks(w.Env.Now())
	if err := w.prepareOps(ops, modified); err != nil {
		return err
	}
	size := 0
	for _, o := range ops {
		size += len(o.JSON) + len(o.Tail) + 2*len(o.ID)
	}
	if size > storage.MaxTxBytes {
		return fmt.Errorf("%w: %d bytes, at most %d; use several batches", storage.ErrTooLarge, size, storage.MaxTxBytes)
	}
	return nil
}

func (w *Writer) prepareOps(ops []*Op, modified uint64) error {
	if len(ops) >= ManyOps {
		return parallel.DoChunks(len(ops), opsPerPart, func() func(lo, hi int) error {
			last := &CollectionNaming{slab: new(catalog.Slab)}
			return func(lo, hi int) error { return w.prepareSome(ops, ops[lo:hi], modified, last) }
		})
	}
	p := Preparations.Get().(*Preparation) // it may have the naming of the collection
	defer Preparations.Put(p)
	p.Use(w)
	return w.prepareSome(ops, ops, modified, &p.Naming)
}

func (w *Writer) prepareSome(all, some []*Op, modified uint64, last *CollectionNaming) error {
	for _, o := range some {
		if err := w.Prepare(o, modified, last); err != nil {
			return OpError(all, o, err)
		}
	}
	return nil
}

// Prepare checks and encodes everything that does not need the transaction.
func (w *Writer) Prepare(o *Op, modified uint64, last *CollectionNaming) error {
	o.ID, o.FoldedID = "", "" // as an earlier use of the batch may have left them
	if err := env.CheckTicks(modified); err != nil {
		return err
	}
	if o.UsageError != nil {
		return o.UsageError
	}
	if o.Once != nil && o.Once.Keeps == Unsaid {
		return ErrPartOfCall
	}
	if o.Attaching != nil {
		if err := o.checkAttaching(); err != nil {
			return err
		}
	}
	if o.Exchanging != nil {
		return w.prepareExchange(o)
	}
	if err := w.prepareID(o); err != nil {
		return err
	}
	if o.Guard != nil {
		if w.NoCluster != nil {
			return w.NoCluster
		}
		if err := o.checkGuard(); err != nil {
			return err
		}
	}
	switch o.Verb {
	case Put, Insert, Replace:
		return w.preparePut(o, modified, last)
	case Delete, Keep:
		if o.Timing != nil {
			return fmt.Errorf("%w: a deletion has no expiry and no refresh", ids.ErrUsage)
		}
		o.FoldedID = w.Env.Rules.Fold(o.ID)
		o.Header.Modified = modified // of the revision that a deletion leaves
		return nil
	case Patch:
		return w.preparePatch(o, modified, last)
	case Attach:
		o.FoldedID, o.Attaching.modified = w.Env.Rules.Fold(o.ID), modified
		return nil
	}
	panic(fmt.Sprintf("verb %d is not prepared", o.Verb))
}

// preparePut prepares the document of a put, and its index entries.
func (w *Writer) preparePut(o *Op, modified uint64, last *CollectionNaming) error {
	if err := w.prepareBody(o); err != nil {
		return err
	}
	if err := o.applyTiming(modified); err != nil {
		return err
	}
	if o.HiLo {
		if err := w.prepareHiLo(o, last); err != nil {
			return err
		}
	}
	collection, err := w.intendedCollection(o, last)
	if err != nil {
		return err
	}
	if last.folded == "" || last.collection != collection {
		last.name(collection)
	}
	o.FoldedCollection = last.folded
	// Without a name the document may turn out to be in another collection, whose
	// indexes do not refuse it.
	o.extractTo(w.Indexes.Load().Of(o.FoldedCollection), last.slab)
	o.fit(w)
	if o.Named && o.whyRefused() != nil {
		if err := w.RefusalNow(o); err != nil {
			return err
		}
	}
	o.Header.Modified = modified
	o.Header.Node = w.Env.Node
	o.Header.Collection = last.bytes
	if !o.Strategy.Made() {
		w.EncodeTail(o)
	}
	return nil
}

// prepareID decides the strategy, and refuses what can never be an ID.
func (w *Writer) prepareID(o *Op) error {
	if o.HiLo {
		o.Strategy = ids.HiLo
		return nil
	}
	if o.Verb.IsLiteral() {
		o.Strategy, o.ID = ids.Semantic, o.RequestID
		return nil
	}
	o.Resolved, o.Strategy = w.Resolver.Request(o.RequestID)
	if o.Strategy.Made() && o.Verb.NeedsID() && !o.Verb.GivesBody() {
		return &ids.Error{ID: o.RequestID, Rule: "must be the id of a document, not a request for one"}
	}
	if err := w.Resolver.Check(o.Resolved, o.Strategy); err != nil {
		return err
	}
	if !o.Strategy.Made() {
		o.ID = o.Resolved
		return nil
	}
	if o.Strategy.FromCounter() && w.NoCluster != nil {
		return w.NoCluster
	}
	if o.Verb.NeedsID() {
		return fmt.Errorf("%w: Replace needs the id of a document; %.100q asks for a new %s id", ids.ErrUsage, o.RequestID, o.Strategy)
	}
	if o.Expected != nil && *o.Expected != "" {
		if o.Strategy.FromCounter() { // RavenDB: InvalidOperationException, and not ConcurrencyException
			return fmt.Errorf("%w: %.100q asks for a new %s, which has no version to expect; it expects %.100q", ids.ErrUsage, o.RequestID, o.Strategy, *o.Expected)
		}
		return &metadata.ConflictError{ID: o.RequestID, Expected: *o.Expected}
	}
	return nil
}

// prepareHiLo checks that the tag can make IDs within the rules, before a
// number is drawn.
func (w *Writer) prepareHiLo(o *Op, last *CollectionNaming) error {
	if o.Collection == "" || o.Collection == metadata.Empty {
		return fmt.Errorf("%w: a HiLo id needs a collection", ids.ErrUsage)
	}
	if o.Expected != nil && *o.Expected != "" {
		return &metadata.ConflictError{Expected: *o.Expected} // there is no ID to name: none was drawn
	}
	if o.Prefix != "" {
		o.Tag = o.Prefix // mappingOf has checked it
		return nil
	}
	if last.prefix != "" && last.collection == o.Collection {
		o.Tag = last.prefix
		return nil
	}
	o.Tag = w.PrefixOf(o.Collection)
	if err := w.CheckTag(o.Tag); err != nil {
		return err
	}
	last.name(o.Collection)
	last.prefix = o.Tag
	return nil
}

// CollectionNaming caches what follows from the name of a collection. Most batches
// have one collection only.
type CollectionNaming struct {
	collection string
	folded     string
	bytes      []byte
	prefix     string // checked; "" if not made yet

	suggestion, spelled string // see storedName

	slab *catalog.Slab // for the entries of a large batch; nil for none
}

// name makes c the naming of another collection.
func (c *CollectionNaming) name(collection string) {
	c.collection, c.folded, c.bytes, c.prefix = collection, format.CollectionKey(collection), []byte(collection), ""
}

// prepareBody validates the JSON, extracts its @metadata and decides the
// collection.
func (w *Writer) prepareBody(o *Op) error {
	scanned := metadata.Scanned{Body: o.Body}
	if !o.Validated {
		var err error
		if scanned, err = metadata.Scan(o.Body, w.Env.Limits, o.LeaveOut...); err != nil {
			return err
		}
	}
	o.JSON = scanned.Body
	o.Header, o.given, o.DueShown = metadata.Header{}, nil, false

	given, err := w.parseMetadata(scanned.Metadata)
	if err != nil {
		return err
	}
	if o.Custom != nil {
		added, err := w.ParseCustom(o.Custom)
		if err != nil {
			return err
		}
		if given, err = joinMetadata(given, added); err != nil {
			return err
		}
	}
	if o.Kept != nil {
		if given, err = joinMetadata(given, metadata.Given{Custom: o.Kept, Timed: o.KeptTimed}); err != nil {
			return err
		}
	}
	o.Header.Custom, o.Header.Timed = given.Custom, given.Timed

	asked := o.Collection
	o.Named = o.Named || asked != "" || given.Collection != "" || given.Empty
	if asked == metadata.Empty {
		asked = ""
	}
	if err := metadata.CheckCollection(asked); err != nil {
		return err
	}
	if given.Collection != "" && asked != "" && format.FoldName(given.Collection) != format.FoldName(asked) {
		return fmt.Errorf("%w: the document's @metadata names collection %.100q, the call %.100q", ids.ErrUsage, given.Collection, asked)
	}
	o.Collection = asked
	if given.Collection != "" {
		o.Collection = given.Collection
	}
	return nil
}

func (w *Writer) parseMetadata(raw []byte) (metadata.Given, error) {
	if raw == nil {
		return metadata.Given{}, nil
	}
	return metadata.Parse(raw)
}

// ParseCustom reads the object that WithMetadata gave.
func (w *Writer) ParseCustom(raw []byte) (metadata.Given, error) {
	limits := w.Env.Limits
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
		return a, fmt.Errorf("%w: @collection is %.100q in the document and %.100q in WithMetadata", ids.ErrUsage, a.Collection, b.Collection)
	}
	if a.Collection == "" {
		a.Collection = b.Collection
	}
	a.Empty, a.Timed = a.Empty || b.Empty, a.Timed || b.Timed
	if a.Custom == nil {
		a.Custom = b.Custom
		return a, nil
	}
	if b.Custom == nil {
		return a, nil
	}
	joined := bytes.Join([][]byte{a.Custom[:len(a.Custom)-1], b.Custom[1:]}, []byte{','})
	if _, err := metadata.Scan(joined, metadata.Limits{MaxBytes: len(joined), MaxDepth: math.MaxInt}); err != nil {
		return a, fmt.Errorf("@metadata and WithMetadata together: %w", err)
	}
	a.Custom = joined
	return a, nil
}

// EncodeTail encodes what depends on the final ID.
func (w *Writer) EncodeTail(o *Op) {
	o.Header.ID = nil
	o.FoldedID = w.Env.Rules.Fold(o.ID)
	if o.FoldedID != o.ID {
		o.Written = append(o.Written[:0], o.ID...)
		o.Header.ID = o.Written
	}
	if o.Tail == nil {
		const numbers = 3 * binary.MaxVarintLen16 // lengths; Modified has its own
		o.Tail = make([]byte, 0, binary.MaxVarintLen64+numbers+len(o.Header.Collection)+len(o.Header.ID)+len(o.Header.Custom))
	}
	o.Tail = o.Header.AppendTail(o.Tail[:0])
}
