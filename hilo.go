package jay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// RangeRequest asks for the next range of a HiLo tag.
type RangeRequest = ids.RangeRequest

// Range is a grant of HiLo numbers to one client.
type Range = ids.Range

// Names of the older generations: the prefix under which some systems keep HiLo
// documents, the field of HiLo2010, and the document and the field of HiLo2.
const (
	replicationPrefix   = "Replication/HiLo/"
	serverHiField       = "ServerHi"
	serverPrefixID      = "Raven/ServerPrefixForHilo"
	serverPrefixField   = "ServerPrefix"
	defaultHiLoCapacity = 32
)

// NextRange reserves the next range of numbers of a HiLo tag, for a client that
// makes its own IDs: Prefix + number + "-" + NodeTag. The range is on disk before
// NextRange returns, under any durability, and no other call ever gets one of its
// numbers, whatever happens to the document Raven/HiLo/<tag>.
//
// The client passes the values of its last range (Size, GrantedAt, High), which
// determine the next size: twice the last within 30 seconds, half after 60, never
// less than 32 or more than 1,048,576. A new client passes zero values.
//
// NextRange raises the document's Max, or creates the document, and keeps its
// other fields. It returns an *IDError for a tag that makes no ID, ErrExhausted
// near 1<<63, ErrLeadTooLarge for a LastMax far above any number granted.
func (db *DB) NextRange(ctx context.Context, req RangeRequest) (Range, error) {
	if err := db.env.Enter(); err != nil {
		return Range{}, err
	}
	defer db.env.Exit()
	return db.nextRange(ctx, req)
}

// ReturnRange returns the numbers after last of the range that ended at end, and
// reports whether it was accepted: only once, only while that range is the newest
// of its tag and the document is unchanged, and only for low-1 <= last <= end.
// Otherwise nothing changes and the numbers stay unused.
func (db *DB) ReturnRange(ctx context.Context, tag string, last, end int64) (bool, error) {
	if err := db.env.Enter(); err != nil {
		return false, err
	}
	defer db.env.Exit()
	return db.returnRange(ctx, tag, last, end)
}

// checkTag checks that a tag makes valid IDs, up to the largest number, and a valid
// HiLo document.
func (db *DB) checkTag(tag string) error {
	if tag == "" {
		return fmt.Errorf("%w: a HiLo tag must not be empty", ErrUsage)
	}
	if err := db.env.Rules.Check(tag); err != nil {
		return err
	}
	if strings.HasSuffix(tag, ids.IdentityMark) || strings.HasSuffix(tag, db.env.Rules.Separator) {
		return fmt.Errorf("%w: a HiLo tag must not end with %.100q or %.100q: its document could not be written, got %.100q", ErrUsage, ids.IdentityMark, db.env.Rules.Separator, tag)
	}
	longest := tag + db.env.Rules.Separator + strconv.FormatInt(math.MaxInt64, 10) + "-" + db.env.Rules.NodeTag
	if err := db.env.Rules.Check(longest); err != nil {
		return err
	}
	return db.env.Rules.Check(format.HiLoPrefix + tag)
}

func (db *DB) nextRange(ctx context.Context, req RangeRequest) (Range, error) {
	r := Range{NodeTag: db.env.Rules.NodeTag, GrantedAt: db.env.Now().UTC()}
	if req.Separator == "" {
		req.Separator = db.env.Rules.Separator
	}
	if err := ids.CheckSeparator(req.Separator); err != nil {
		return Range{}, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	if err := db.checkTag(req.Tag); err != nil {
		return Range{}, err
	}
	r.Prefix = req.Tag + req.Separator

	// Synced under any durability: no number may be used before its range is on
	// disk.
	err := db.transact(ctx, true, func(t *transaction) error {
		doc, err := t.hiloDocument(req.Tag)
		if err != nil {
			return err
		}
		marks, err := t.marks(req.Tag)
		if err != nil {
			return err
		}
		if r.Low, r.High, r.Size, err = marks.Grant(doc.max, req, r.GrantedAt); err != nil {
			return err
		}
		t.setMarks(req.Tag, marks)
		return t.stageHiLo(doc, r.High, r.GrantedAt)
	})
	if err != nil {
		return Range{}, fmt.Errorf("next hilo range of %.100q: %w", req.Tag, err)
	}
	return r, nil
}

func (db *DB) returnRange(ctx context.Context, tag string, last, end int64) (accepted bool, err error) {
	now := db.env.Now()
	var late []ids.Lease // open leases, if a return of one of them was too late
	err = db.transact(ctx, true, func(t *transaction) error {
		accepted, late = false, nil
		doc, err := t.hiloDocument(tag)
		if errors.Is(err, ErrExhausted) || errors.Is(err, ErrNeedsCapacity) {
			return nil // a document that holds no count any more takes nothing back
		}
		if err != nil {
			return err
		}
		marks, err := t.marks(tag)
		if err != nil {
			return err
		}
		if !marks.Return(doc.max, last, end) {
			late = marks.Leases
			return nil
		}
		accepted = true
		t.setMarks(tag, marks)
		return t.stageHiLo(doc, last, now)
	})
	if err != nil {
		return false, fmt.Errorf("return hilo range of %.100q: %w", tag, err)
	}
	db.unused.countLate(db.env.Rules.Fold(tag), last, end, late)
	return accepted, nil
}

// hiloDocument is the document of a tag as the transaction sees it.
type hiloDocument struct {
	op   op
	max  int64  // the numbers up to it are used
	etag uint64 // 0 if there is none
	body []byte // nil if there is none
}

// hiloDocument reads the document Raven/HiLo/<tag>. Any document there will
// do: its other fields, its metadata and its collection are kept. A document
// of HiLo2010 counts by its ServerHi; where there is none at all, one under
// Replication/HiLo/ does, as some systems have it.
func (t *transaction) hiloDocument(tag string) (hiloDocument, error) {
	d := hiloDocument{op: op{
		opRequest:  opRequest{verb: verbPut, collection: format.HiLoCollection, named: true},
		opPrepared: opPrepared{strategy: ids.Semantic, id: format.HiLoPrefix + tag},
	}}
	doc, err := t.db.docs.ReadFolded(t.tx, t.db.env.Rules.Fold(d.op.id))
	if err == ErrNotFound {
		doc, err = t.db.docs.ReadFolded(t.tx, t.db.env.Rules.Fold(replicationPrefix+tag))
		if err == ErrNotFound {
			return d, nil
		}
		if err == nil {
			d.max, err = t.db.maxOf(doc.JSON())
		}
		return d, err
	}
	if err != nil {
		return d, err
	}
	d.body, d.etag = doc.JSON(), doc.Header().Etag
	d.op.id, d.op.collection = doc.ID(), string(doc.Header().Collection)
	d.op.header.Custom = doc.Header().Custom
	if d.max, err = t.db.maxOf(doc.JSON()); err != nil {
		return d, fmt.Errorf("document %q: %w", d.op.id, err)
	}
	return d, nil
}

// maxOf returns the highest number that a HiLo document marks as used: its Max, or,
// if it has a ServerHi, the end of that block with the capacity of Options.
func (db *DB) maxOf(body []byte) (int64, error) {
	used, err := numberOf(body, format.HiLoMax)
	if err != nil {
		return 0, err
	}
	hi, err := numberOf(body, serverHiField)
	if err != nil || hi == 0 {
		return used, err
	}
	capacity := db.opts.HiLoCapacity
	if capacity == 0 {
		return 0, fmt.Errorf("%w: it has a ServerHi, of HiLo2010; set Options.HiLoCapacity to the capacity its clients used", ErrNeedsCapacity)
	}
	if hi-1 > math.MaxInt64/capacity {
		return 0, fmt.Errorf("%w: its ServerHi is %d", ErrExhausted, hi)
	}
	return max(used, (hi-1)*capacity), nil
}

// numberOf reads a field of a HiLo document. A missing or non-numeric one, and
// a negative one, counts as 0; a fraction counts as the next whole number.
func numberOf(body []byte, name string) (int64, error) {
	field := gjson.GetBytes(body, name)
	if field.Type != gjson.Number {
		return 0, nil
	}
	if n, err := strconv.ParseInt(field.Raw, 10, 64); err == nil {
		return max(n, 0), nil
	}
	switch f := math.Ceil(field.Num); {
	case f >= math.MaxInt64:
		return 0, fmt.Errorf("%w: its %s is %s", ErrExhausted, name, field.Raw)
	case f <= 0:
		return 0, nil
	default:
		return int64(f), nil
	}
}

// stageHiLo stages the document with a new Max, modified now. The Max includes a
// ServerHi, which is removed.
func (t *transaction) stageHiLo(d hiloDocument, max int64, now time.Time) (err error) {
	if d.body, err = sjson.DeleteBytes(d.body, serverHiField); err != nil {
		return err
	}
	return t.stageField(d, format.HiLoMax, max, now)
}

// stageField stages the document with a new value of a field, modified now. The
// time is an argument because the clock is the user's, and no user code runs in a
// transaction of the engine.
func (t *transaction) stageField(d hiloDocument, name string, n int64, now time.Time) (err error) {
	o := &d.op
	if len(d.body) == 0 {
		d.body = []byte("{}")
	}
	if o.json, err = sjson.SetRawBytes(d.body, name, strconv.AppendInt(nil, n, 10)); err != nil {
		return err
	}
	o.foldedCollection, o.late = format.CollectionKey(o.collection), true
	o.header.Node = t.db.env.Node
	o.header.Modified = metadata.Ticks(now)
	o.header.Collection = []byte(o.collection)
	t.db.encodeTail(o)
	etag, err := t.Sequence()
	if err != nil {
		return err
	}
	return t.stagePut(o, etag)
}

// marks reads the record of a tag.
func (t *transaction) marks(tag string) (*format.Marks, error) {
	value, closer, err := t.tx.Get(format.AppendKey(nil, format.SpaceHiLo, t.db.env.Rules.Fold(tag)))
	if err == storage.ErrNotFound {
		return &format.Marks{}, nil
	}
	if err != nil {
		return nil, err
	}
	marks, err := format.DecodeMarks(value)
	if err := errs.First(err, closer.Close()); err != nil {
		return nil, fmt.Errorf("marks of %q: %w", tag, err)
	}
	return marks, nil
}

func (t *transaction) setMarks(tag string, m *format.Marks) {
	t.tx.Set(format.AppendKey(nil, format.SpaceHiLo, t.db.env.Rules.Fold(tag)), format.AppendMarks(nil, m), nil)
}
