package write

import (
	"bytes"
	"cmp"
	"fmt"
	"sync"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/schemas"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/schema"
)

// StrategyUnknown reports whether the commit will make the op's ID.
func (o *Op) StrategyUnknown(db *Writer) bool {
	if o.HiLo {
		return false
	}
	_, strategy := db.Resolver.Request(o.RequestID)
	return strategy.MadeByCommit()
}

// Own copies what an op shares with its caller.
func (o *Op) Own() {
	o.JSON = bytes.Clone(o.JSON)
	o.Header.Custom = bytes.Clone(o.Header.Custom)
	o.Body, o.Custom = nil, nil
}

// Op is one write on its way through the write path.
type Op struct {
	Request
	Prepared
	Result
}

// Request is what the caller asked for. Preparing it replaces the collection by that
// which the document's own @metadata names, and nothing else.
type Request struct {
	Verb         Verb
	HiLo         bool   // no ID was given: draw one
	Named        bool   // the call or the document names a collection, if only @empty; set by preparing
	AnyVersion   bool   // the version field of a value does not matter
	KeepRevision bool   // what is found and what is written are revisions, whatever the rules
	KeepReplaced bool   // what is found is a revision, whatever the rules
	Validated    bool   // body is what will be stored, and needs no check: codec.Encoded.Stored
	RequestID    string // the ID as the caller wrote it
	Prefix       string // of HiLo IDs, checked; "" for that of the conventions
	Collection   string
	Expected     *string // change vector, see IfMatch
	Custom       []byte
	Kept         []byte  // custom metadata that is added to Custom as it is, without a check; nil for none
	KeptTimed    bool    // metadata.Header.Timed of Kept
	Timing       *Timing // what the caller asks for; nil for nothing
	KeepExpires  bool    // a put that names no expiry leaves the document the one that it has
	KeepRefresh  bool    // the same for the refresh
	Drawn        bool    // RequestID was drawn for this call: a repeated one has another
	Loaded       bool    // the body follows from one that was read: a repeated call has another
	Body         []byte
	InCollection string   // folded collection that a delete is limited to
	LeaveOut     []string // top-level members that hold the ID and the version of a typed document
	UsageError   error
	Once         *Once                          // of the first op of a call with a request ID
	Patching     *Patching                      // of a patch
	Attaching    *Attaching                     // of a change of attachments
	Exchanging   *Exchanging                    // of a change of a compare-exchange value
	Guard        *Guard                         // of a document that a cluster-wide transaction writes
	Returning    *metadata.Metadata             // gets the result
	Committed    func(result metadata.Metadata) // called after the commit
	Repeated     func(result metadata.Metadata) // called with what an earlier call with the request has written
}

// ErrPartOfCall refuses a request ID that was given to a part of a call.
var ErrPartOfCall = fmt.Errorf("%w: RequestID is an option of a call that commits: of a write, DB.Apply, DB.Update or SaveChanges, and not of what is a part of one", ids.ErrUsage)

// Prepared is the result of preparing the request, outside the transaction.
type Prepared struct {
	Strategy         ids.Strategy
	Exposed          bool   // the made ID is known outside and cannot be changed
	Listed           bool   // in a Tx: the header has the attachments that the document has there
	Late             bool   // the body was made in the transaction
	Compared         bool   // in a Tx: the index of the value or the guard was compared, and is in the read set
	moves            bool   // half of a Move: the attachments go along
	prefetched       bool   // before was read before the transaction
	guardIndex       uint64 // of the guard, as the cluster's coordinator has made it; 0 without one
	number           int64  // of an identity, reserved from the cluster; 0 for none
	Resolved         string // the request, as the strategy wants it
	ID               string // final, unless the transaction makes it
	FoldedID         string
	Tag              string // HiLo: the prefix of the ID
	JSON             []byte // the body as it is stored
	Header           metadata.Header
	given            *metadata.Given // custom metadata of the header before instants were kept; nil if none were
	DueShown         bool            // in a Tx: the header has the instants that the document has there
	Tail             []byte          // header.AppendTail
	Written          []byte          // id, if header has it
	FoldedCollection string
	Suggested        string   // the collection of a new document, if none is named
	Seen             *Version // in a Tx, the document whose collection this op has taken; the commit checks it
	indexed          *catalog.Collection
	entries          *catalog.Entries // in those indexes
	refused          error            // why those indexes refuse the document
	rule             *schemas.Rule    // of the collection, that the body was checked against; nil for none
	unfit            *schema.Error    // what the body violates in it; nil for nothing
	sameBody         bool             // the body is the one that is there
	due              *dueOp           // of the sweeper; nil for all other writes
	Before           *OldDocument     // the document found by prefetching; nil if there was none
}

// Result is what the transaction decided. Each run overwrites it.
type Result struct {
	Outcome  Outcome
	answered *metadata.Metadata // what another process has decided; nil for none
	idInUse  bool               // a made ID turned out to be in use
	redraws  int                // how often
}

// Outcome is the outcome of an op.
type Outcome uint8

const (
	Unstaged    Outcome = iota
	Provisional         // staged in a Tx, whose commit decides the rest
	Absent              // there is no document
	Present             // the document is as the header says
)

// ResultOf returns the metadata of the document that o wrote, or only its ID if there
// is none now; that of a delete that found a document has its etag, too. The caller owns it. It is made on request: bulk loads never ask for
// it.
func (w *Writer) ResultOf(o *Op) metadata.Metadata { return o.result(w.Env) }

func (o *Op) result(e *env.Env) metadata.Metadata {
	if o.answered != nil {
		return *o.answered
	}
	if o.Exchanging != nil {
		return o.exchangeResult()
	}
	switch o.Outcome {
	case Unstaged:
		return metadata.Metadata{}
	case Absent:
		m := metadata.Metadata{ID: o.ID}
		if o.Verb.Deletes() {
			m.Etag = o.Header.Etag // 0 if there was no document
		}
		return m
	}
	m := metadata.Metadata{ID: cmp.Or(o.ID, o.Resolved), Collection: OrEmpty(o.collectionOf()), Custom: bytes.Clone(o.Header.Custom)}
	if o.Header.Attachments != nil {
		m.Attachments = format.DescribeAttachments(o.Header.Attachments)
	}
	if o.Outcome == Present {
		m.ChangeVector = e.ChangeVector(o.Header.Node, o.Header.Etag)
		m.Etag, m.LastModified, m.Flags = o.Header.Etag, metadata.Time(o.Header.Modified), o.Header.Flags()
	}
	return m
}

// collectionOf returns the collection of the document that o writes, as written. A
// patch leaves its document in its collection; the collection of the op is that of
// a document which it inserts. A write that names no collection keeps the one that
// it finds.
func (o *Op) collectionOf() string {
	if o.Verb.Edits() || !o.Named {
		return string(o.Header.Collection)
	}
	return o.Collection
}

// opPool keeps ops for sessions, each with the memory of its tail.
var opPool = sync.Pool{New: func() any { return new(Op) }}

// TakeOp returns an empty op of the pool. Release gives it back.
func TakeOp() *Op { return opPool.Get().(*Op) }

// Release returns the op to the pool. Neither it nor its tail may be used any more.
func (o *Op) Release() {
	*o = Op{Prepared: Prepared{Tail: o.Tail[:0]}}
	opPool.Put(o)
}

// OpError adds to err which write failed.
func OpError(ops []*Op, o *Op, err error) error {
	if o.HiLo { // it has no ID to quote
		err = fmt.Errorf("%s a new document of %s: %w", o.Verb, errs.Shorten(o.Collection), err)
	} else {
		err = fmt.Errorf("%s %q: %w", o.Verb, errs.Shorten(o.RequestID), err)
	}
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

// Timing says when something is due for a document, as the options of a write ask for it.
// It goes before what the document's own @metadata says.
type Timing struct {
	TTL     time.Duration // above 0: the document expires that long after the write
	Expires *time.Time    // if TTL is 0; the zero time removes the expiry
	Refresh *time.Time    // the zero time removes the refresh
}

// Timed returns the timing of o, for an option to change.
func (o *Op) Timed() *Timing {
	if o.Timing == nil {
		o.Timing = new(Timing)
	}
	return o.Timing
}

// apply returns custom metadata with the instants that t names, and whether it has any.
func (t *Timing) apply(custom []byte, modified uint64) (_ []byte, timed bool, err error) {
	expires := t.Expires
	if t.TTL > 0 {
		at := metadata.Time(modified).Add(t.TTL)
		expires = &at
	}
	if expires != nil {
		if custom, err = metadata.SetTime(custom, metadata.Expires, *expires); err != nil {
			return nil, false, fmt.Errorf("%w: the expiry: %w", ids.ErrUsage, err)
		}
	}
	if t.Refresh != nil {
		if custom, err = metadata.SetTime(custom, metadata.Refresh, *t.Refresh); err != nil {
			return nil, false, fmt.Errorf("%w: the refresh: %w", ids.ErrUsage, err)
		}
	}
	return custom, metadata.ReadTimes(custom) != (metadata.Times{}), nil
}

// setsExpires and setsRefresh report whether the options of a write decide the instant, if only that
// there is none.
func (t *Timing) setsExpires() bool { return t != nil && (t.TTL > 0 || t.Expires != nil) }
func (t *Timing) setsRefresh() bool { return t != nil && t.Refresh != nil }

// KeepsAfter makes o, the result of a patch, keep what the put that was patched in the same
// transaction keeps, as far as the patch does not decide it.
func (o *Op) KeepsAfter(put, patch *Op) {
	o.KeepExpires = put.KeepExpires && !patch.Timing.setsExpires()
	o.KeepRefresh = put.KeepRefresh && !patch.Timing.setsRefresh()
}

// KeepsDue reports whether o may leave instants of the document that it replaces as they are.
func (o *Op) KeepsDue() bool { return o.KeepExpires || o.KeepRefresh }

// KeepDue gives the document of a put the instants of the one that it replaces, as far as the put
// keeps them and names none of its own. before is nil for none. An earlier call with
// those of another version does not count.
func (w *Writer) KeepDue(o *Op, before *metadata.Times) error {
	if before == nil && o.given == nil {
		return nil
	}
	if o.given == nil {
		o.given = &metadata.Given{Custom: o.Header.Custom, Timed: o.Header.Timed}
	}
	custom, timed := o.given.Custom, o.given.Timed
	if before != nil {
		var own metadata.Times
		if timed {
			own = metadata.ReadTimes(custom)
		}
		for _, one := range []struct {
			keep    bool
			name    string
			own, at time.Time
		}{
			{o.KeepExpires && !o.Timing.setsExpires(), metadata.Expires, own.Expires, before.Expires},
			{o.KeepRefresh && !o.Timing.setsRefresh(), metadata.Refresh, own.Refresh, before.Refresh},
		} {
			if !one.keep || !one.own.IsZero() || one.at.IsZero() {
				continue
			}
			var err error
			if custom, err = metadata.SetTime(custom, one.name, one.at); err != nil {
				return err
			}
			timed = true
		}
	}
	o.Header.Custom, o.Header.Timed = custom, timed
	w.EncodeTail(o)
	return nil
}

// applyTiming gives the header of o the instants that its options ask for.
func (o *Op) applyTiming(modified uint64) (err error) {
	if o.Timing == nil {
		return nil
	}
	o.Header.Custom, o.Header.Timed, err = o.Timing.apply(o.Header.Custom, modified)
	return err
}

// Retime gives a header, which a patch has found, the instants that the options of the
// patch ask for, and reports whether it had others.
func (o *Op) Retime(h *metadata.Header) (changed bool, err error) {
	if o.Timing == nil {
		return false, nil
	}
	custom, timed, err := o.Timing.apply(h.Custom, o.Patching.modified)
	if err != nil || timed == h.Timed && metadata.ReadTimes(custom) == metadata.ReadTimes(h.Custom) {
		return false, err
	}
	h.Custom, h.Timed = custom, timed
	return true, nil
}
