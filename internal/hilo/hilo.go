// Package hilo grants ranges of HiLo numbers, in the ways of three generations of
// RavenDB, and keeps them in documents Raven/HiLo/<tag>. A private mark of each tag
// makes sure that no number is granted twice, whatever happens to its document.
package hilo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
)

// Granter grants the ranges of an open database. It is safe for concurrent use.
type Granter struct {
	env     *env.Env
	docs    *docs.Reader
	writer  *write.Writer
	options Options
}

// New returns the Granter of a database.
func New(e *env.Env, d *docs.Reader, w *write.Writer, o Options) *Granter {
	return &Granter{e, d, w, o}
}

// Names of the older generations: the prefix under which some systems keep HiLo
// documents, the field of HiLo2010, and the document and the field of HiLo2.
const (
	replicationPrefix   = "Replication/HiLo/"
	ServerHiField       = "ServerHi"
	serverPrefixID      = "Raven/ServerPrefixForHilo"
	serverPrefixField   = "ServerPrefix"
	defaultHiLoCapacity = 32
)

// Next reserves the next range of a tag: see DB.NextRange in package jay.
func (g *Granter) Next(ctx context.Context, req ids.RangeRequest) (ids.Range, error) {
	r := ids.Range{NodeTag: g.env.Rules.NodeTag, GrantedAt: g.env.Now().UTC()}
	if req.Separator == "" {
		req.Separator = g.env.Rules.Separator
	}
	if err := ids.CheckSeparator(req.Separator); err != nil {
		return ids.Range{}, fmt.Errorf("%w: %w", ids.ErrUsage, err)
	}
	if err := g.writer.CheckTag(req.Tag); err != nil {
		return ids.Range{}, err
	}
	if err := g.writer.Cluster.CheckTag(); err != nil {
		return ids.Range{}, err
	}
	r.Prefix = req.Tag + req.Separator

	// Synced under any durability: no number may be used before its range is on
	// disk.
	g.env.OwnSyncs.Add(1)
	defer g.env.OwnSyncs.Add(-1)
	err := g.writer.Transact(ctx, true, func(t *write.Txn) error {
		doc, err := g.readHiLo(t, req.Tag)
		if err != nil {
			return err
		}
		marks, err := t.Marks(req.Tag)
		if err != nil {
			return err
		}
		if r.Low, r.High, r.Size, err = marks.Grant(doc.max, req, r.GrantedAt); err != nil {
			return err
		}
		t.SetMarks(req.Tag, marks)
		return g.stageHiLo(t, doc, r.High, r.GrantedAt)
	})
	if err != nil {
		return ids.Range{}, fmt.Errorf("next hilo range of %.100q: %w", req.Tag, err)
	}
	return r, nil
}

// Return takes the rest of a range back: see DB.ReturnRange in package jay.
func (g *Granter) Return(ctx context.Context, tag string, last, end int64) (accepted bool, err error) {
	now := g.env.Now()
	var late []ids.Lease // open leases, if a return of one of them was too late
	err = g.writer.Transact(ctx, true, func(t *write.Txn) error {
		accepted, late = false, nil
		doc, err := g.readHiLo(t, tag)
		if errors.Is(err, ids.ErrExhausted) || errors.Is(err, errs.ErrNeedsCapacity) {
			return nil // a document that holds no count any more takes nothing back
		}
		if err != nil {
			return err
		}
		marks, err := t.Marks(tag)
		if err != nil {
			return err
		}
		if !marks.Return(doc.max, last, end) {
			late = marks.Leases
			return nil
		}
		accepted = true
		t.SetMarks(tag, marks)
		return g.stageHiLo(t, doc, last, now)
	})
	if err != nil {
		return false, fmt.Errorf("return hilo range of %.100q: %w", tag, err)
	}
	g.writer.Unused.CountLate(g.env.Rules.Fold(tag), last, end, late)
	return accepted, nil
}

// document is the document of a tag as the transaction sees it.
type document struct {
	op   write.Op
	max  int64  // the numbers up to it are used
	etag uint64 // 0 if there is none
	body []byte // nil if there is none
}

// readHiLo reads the document Raven/HiLo/<tag>. Any document there will
// do: its other fields, its metadata and its collection are kept. A document
// of HiLo2010 counts by its ServerHi; where there is none at all, one under
// Replication/HiLo/ does, as some systems have it.
func (g *Granter) readHiLo(t *write.Txn, tag string) (document, error) {
	d := document{op: write.Op{
		Request:  write.Request{Verb: write.Put, Collection: format.HiLoCollection, Named: true},
		Prepared: write.Prepared{Strategy: ids.Semantic, ID: format.HiLoPrefix + tag},
	}}
	doc, err := g.docs.ReadFolded(t.Tx, g.env.Rules.Fold(d.op.ID))
	if err == errs.ErrNotFound {
		doc, err = g.docs.ReadFolded(t.Tx, g.env.Rules.Fold(replicationPrefix+tag))
		if err == errs.ErrNotFound {
			return d, nil
		}
		if err == nil {
			d.max, err = g.MaxOf(doc.JSON())
		}
		return d, err
	}
	if err != nil {
		return d, err
	}
	h := doc.Header()
	d.body, d.etag = doc.JSON(), h.Etag
	d.op.ID, d.op.Collection = doc.ID(), string(h.Collection)
	d.op.Header.Custom, d.op.Header.Timed = h.Custom, h.Timed
	if d.max, err = g.MaxOf(doc.JSON()); err != nil {
		return d, fmt.Errorf("document %q: %w", d.op.ID, err)
	}
	return d, nil
}

// Raise makes sure that no number up to n is granted any more. In a copy of a
// database, n is the floor of the tag.
func (g *Granter) Raise(t *write.Txn, tag string, n int64, now time.Time) error {
	marks, err := t.Marks(tag)
	if err != nil {
		return err
	}
	marks.Raise(n)
	marks.Node = g.env.Node
	t.SetMarks(tag, marks)
	return g.raiseMax(t, tag, n, now)
}

// raiseMax raises the Max of the document of a tag to n, so that it does not look as
// if the document had been edited. A document that has no Max, or counts by a
// ServerHi, is left to the next range.
func (g *Granter) raiseMax(t *write.Txn, tag string, n int64, now time.Time) error {
	d, err := g.readHiLo(t, tag)
	if errors.Is(err, errs.ErrNeedsCapacity) || errors.Is(err, ids.ErrExhausted) {
		return nil
	}
	if err != nil || d.body == nil || d.max >= n {
		return err
	}
	if hi, err := NumberOf(d.body, ServerHiField); hi > 0 || err != nil || gjson.GetBytes(d.body, format.HiLoMax).Type != gjson.Number {
		return nil
	}
	return g.stageHiLo(t, d, n, now)
}

// MaxOf returns the highest number that a HiLo document marks as used: its Max, or,
// if it has a ServerHi, the end of that block with the capacity of Options.
func (g *Granter) MaxOf(body []byte) (int64, error) {
	used, err := NumberOf(body, format.HiLoMax)
	if err != nil {
		return 0, err
	}
	hi, err := NumberOf(body, ServerHiField)
	if err != nil || hi == 0 {
		return used, err
	}
	capacity := g.options.Capacity
	if capacity == 0 {
		return 0, fmt.Errorf("%w: it has a ServerHi, of HiLo2010; set Options.HiLoCapacity to the capacity its clients used", errs.ErrNeedsCapacity)
	}
	if hi-1 > math.MaxInt64/capacity {
		return 0, fmt.Errorf("%w: its ServerHi is %d", ids.ErrExhausted, hi)
	}
	return max(used, (hi-1)*capacity), nil
}

// NumberOf reads a field of a HiLo document. A missing or non-numeric one, and
// a negative one, counts as 0; a fraction counts as the next whole number.
func NumberOf(body []byte, name string) (int64, error) {
	field := gjson.GetBytes(body, name)
	if field.Type != gjson.Number {
		return 0, nil
	}
	if n, err := strconv.ParseInt(field.Raw, 10, 64); err == nil {
		return max(n, 0), nil
	}
	switch f := math.Ceil(field.Num); {
	case f >= math.MaxInt64:
		return 0, fmt.Errorf("%w: its %s is %s", ids.ErrExhausted, name, field.Raw)
	case f <= 0:
		return 0, nil
	default:
		return int64(f), nil
	}
}

// stageHiLo stages the document with a new Max, modified now. The Max includes a
// ServerHi, which is removed.
func (g *Granter) stageHiLo(t *write.Txn, d document, max int64, now time.Time) (err error) {
	if d.body, err = sjson.DeleteBytes(d.body, ServerHiField); err != nil {
		return err
	}
	return g.stageField(t, d, format.HiLoMax, max, now)
}

// stageField stages the document with a new value of a field, modified now. The
// time is an argument because the clock is the user's, and no user code runs in a
// transaction of the engine.
func (g *Granter) stageField(t *write.Txn, d document, name string, n int64, now time.Time) (err error) {
	o := &d.op
	if len(d.body) == 0 {
		d.body = []byte("{}")
	}
	if o.JSON, err = sjson.SetRawBytes(d.body, name, strconv.AppendInt(nil, n, 10)); err != nil {
		return err
	}
	o.FoldedCollection, o.Late = format.CollectionKey(o.Collection), true
	o.Header.Node = g.env.Node
	o.Header.Modified = metadata.Ticks(now)
	if err := env.CheckTicks(o.Header.Modified); err != nil {
		return err
	}
	o.Header.Collection = []byte(o.Collection)
	g.writer.EncodeTail(o)
	etag, err := t.Sequence()
	if err != nil {
		return err
	}
	return t.StagePut(o, etag)
}
