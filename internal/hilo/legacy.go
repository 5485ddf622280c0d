package hilo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/write"
)

// source2 is a client of RavenDB 2.x and 3.x: it reads the document, decides,
// and writes it back if it is unchanged; otherwise it starts over. The private mark
// is checked and raised in the same write.
type source2 struct {
	Gate
	granter *Granter

	mu    sync.Mutex
	paces map[string]*ids.Pace // by tag. Guarded by mu.
}

func (s *source2) NextRange(ctx context.Context, req ids.RangeRequest) (ids.Range, error) {
	if err := s.Enter(); err != nil {
		return ids.Range{}, err
	}
	defer s.Exit()
	base := s.granter.options.Capacity
	if base == 0 {
		base = defaultHiLoCapacity
	}
	before, granted := s.remembered(req.Tag), false
	defer func() {
		if !granted { // a refusal, or a clock that panics, is no sign that more numbers are needed
			s.mu.Lock()
			defer s.mu.Unlock()
			*s.paces[req.Tag] = before
		}
	}()
	r, err := s.granter.takeBlock(ctx, req, func() blockRequest {
		// The size is computed again on every attempt, as 3.x did.
		return blockRequest{size: s.pace(req, base), lastMax: req.LastMax, serverPrefix: true}
	})
	granted = err == nil
	return r, err
}

// remembered returns the pace of a tag. One fetch of a tag is in flight.
func (s *source2) remembered(tag string) ids.Pace {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paces[tag] == nil {
		s.paces[tag] = &ids.Pace{}
	}
	return *s.paces[tag]
}

func (s *source2) pace(req ids.RangeRequest, base int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paces[req.Tag].Next(s.granter.options.Growth, base, s.granter.env.Now(), req.Waiting)
}

// ReturnRange implements ids.Source: this generation gives nothing back.
func (*source2) ReturnRange(context.Context, string, int64, int64) (bool, error) {
	return false, nil
}

// source2010 is a client of the first HiLo: it takes the next Hi, and
// with it the block of numbers (hi-1)*capacity+1 to hi*capacity.
type source2010 struct {
	Gate
	granter *Granter
}

func (s source2010) NextRange(ctx context.Context, req ids.RangeRequest) (ids.Range, error) {
	if err := s.Enter(); err != nil {
		return ids.Range{}, err
	}
	defer s.Exit()
	return s.granter.takeBlock(ctx, req, func() blockRequest {
		return blockRequest{size: s.granter.options.Capacity, aligned: true}
	})
}

// ReturnRange implements ids.Source: this generation gives nothing back.
func (source2010) ReturnRange(context.Context, string, int64, int64) (bool, error) {
	return false, nil
}

// blockRequest is what a client of an older generation requests.
type blockRequest struct {
	size         int64
	lastMax      int64
	aligned      bool // HiLo2010: whole blocks, counted by ServerHi
	serverPrefix bool // HiLo2: use Raven/ServerPrefixForHilo
}

// takeBlock asks for what decide says until no other client is quicker, or ctx
// is done.
func (g *Granter) takeBlock(ctx context.Context, req ids.RangeRequest, decide func() blockRequest) (ids.Range, error) {
	for {
		r, err := g.nextBlock(ctx, req, decide())
		if !errors.Is(err, write.ErrOvertaken) {
			return r, err
		}
		if err := ctx.Err(); err != nil {
			return ids.Range{}, err
		}
	}
}

// nextBlock makes one attempt at a range, as the client of an older
// generation: read, then write on the condition that the document is still
// the one that was read (errOvertaken).
func (g *Granter) nextBlock(ctx context.Context, req ids.RangeRequest, b blockRequest) (ids.Range, error) {
	if err := g.writer.CheckTag(req.Tag); err != nil {
		return ids.Range{}, err
	}
	read, prefix, err := g.readBlock(req.Tag, b)
	if err != nil {
		return ids.Range{}, fmt.Errorf("next hilo range of %.100q: %w", req.Tag, err)
	}
	r := ids.Range{Prefix: req.Tag + g.env.Rules.Separator + prefix, Size: b.size, GrantedAt: g.env.Now().UTC()}
	if err := g.env.Rules.Check(r.Prefix + strconv.FormatInt(math.MaxInt64, 10)); err != nil {
		return ids.Range{}, err
	}

	g.env.OwnSyncs.Add(1)
	defer g.env.OwnSyncs.Add(-1)
	err = g.writer.Transact(ctx, true, func(t *write.Txn) error {
		doc, err := g.readHiLo(t, req.Tag)
		if err != nil {
			return err
		}
		if doc.etag != read {
			return write.ErrOvertaken
		}
		marks, err := t.Marks(req.Tag)
		if err != nil {
			return err
		}
		if marks.Node != g.env.Node {
			return errs.ErrNeedsFloor
		}
		if r.Low, r.High, err = marks.GrantBlock(max(doc.max, b.lastMax), b.size, b.aligned); err != nil {
			return err
		}
		t.SetMarks(req.Tag, marks)
		if b.aligned {
			return g.stageField(t, doc, ServerHiField, r.High/b.size+1, r.GrantedAt)
		}
		return g.stageHiLo(t, doc, r.High, r.GrantedAt)
	})
	if err != nil {
		return ids.Range{}, fmt.Errorf("next hilo range of %.100q: %w", req.Tag, err)
	}
	return r, nil
}

// readBlock reads what the client decides by: the version of the document and
// the server prefix.
func (g *Granter) readBlock(tag string, b blockRequest) (etag uint64, prefix string, err error) {
	newest, done := g.env.Newest() // the block's commit compares with the newest version
	defer func() { err = errs.First(err, done()) }()
	doc, err := g.docs.Read(newest, format.HiLoPrefix+tag)
	if err != nil && err != errs.ErrNotFound {
		return 0, "", err
	}
	if doc != nil {
		etag = doc.Header().Etag
	}
	if !b.serverPrefix {
		return etag, "", nil
	}
	doc, err = g.docs.Read(newest, serverPrefixID)
	if err == errs.ErrNotFound {
		return etag, "", nil
	}
	if err != nil {
		return 0, "", err
	}
	return etag, strings.Clone(gjson.GetBytes(doc.JSON(), serverPrefixField).String()), nil
}
