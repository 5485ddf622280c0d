package jay

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
)

// errOvertaken means that another client changed the document between reading and
// writing it.
var errOvertaken = errors.New("another client was quicker")

// hilo2Source is a client of RavenDB 2.x and 3.x: it reads the document, decides,
// and writes it back if it is unchanged; otherwise it starts over. The private mark
// is checked and raised in the same write.
type hilo2Source struct {
	gate
	db *DB

	mu    sync.Mutex
	paces map[string]*ids.Pace // by tag. Guarded by mu.
}

func (s *hilo2Source) NextRange(ctx context.Context, req RangeRequest) (Range, error) {
	if err := s.Enter(); err != nil {
		return Range{}, err
	}
	defer s.Exit()
	base := s.db.opts.HiLoCapacity
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
	r, err := s.db.takeBlock(ctx, req, func() blockRequest {
		// The size is computed again on every attempt, as 3.x did.
		return blockRequest{size: s.pace(req, base), lastMax: req.LastMax, serverPrefix: true}
	})
	granted = err == nil
	return r, err
}

// remembered returns the pace of a tag. One fetch of a tag is in flight.
func (s *hilo2Source) remembered(tag string) ids.Pace {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paces[tag] == nil {
		s.paces[tag] = &ids.Pace{}
	}
	return *s.paces[tag]
}

func (s *hilo2Source) pace(req RangeRequest, base int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paces[req.Tag].Next(s.db.opts.HiLo2Growth, base, s.db.env.Now(), req.Waiting)
}

// ReturnRange implements ids.Source: this generation gives nothing back.
func (*hilo2Source) ReturnRange(context.Context, string, int64, int64) (bool, error) {
	return false, nil
}

// hilo2010Source is a client of the first HiLo: it takes the next Hi, and
// with it the block of numbers (hi-1)*capacity+1 to hi*capacity.
type hilo2010Source struct {
	gate
	db *DB
}

func (s hilo2010Source) NextRange(ctx context.Context, req RangeRequest) (Range, error) {
	if err := s.Enter(); err != nil {
		return Range{}, err
	}
	defer s.Exit()
	return s.db.takeBlock(ctx, req, func() blockRequest {
		return blockRequest{size: s.db.opts.HiLoCapacity, aligned: true}
	})
}

// ReturnRange implements ids.Source: this generation gives nothing back.
func (hilo2010Source) ReturnRange(context.Context, string, int64, int64) (bool, error) {
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
func (db *DB) takeBlock(ctx context.Context, req RangeRequest, decide func() blockRequest) (Range, error) {
	for {
		r, err := db.nextBlock(ctx, req, decide())
		if !errors.Is(err, errOvertaken) {
			return r, err
		}
		if err := ctx.Err(); err != nil {
			return Range{}, err
		}
	}
}

// nextBlock makes one attempt at a range, as the client of an older
// generation: read, then write on the condition that the document is still
// the one that was read (errOvertaken).
func (db *DB) nextBlock(ctx context.Context, req RangeRequest, b blockRequest) (Range, error) {
	if err := db.checkTag(req.Tag); err != nil {
		return Range{}, err
	}
	read, prefix, err := db.readBlock(req.Tag, b)
	if err != nil {
		return Range{}, fmt.Errorf("next hilo range of %.100q: %w", req.Tag, err)
	}
	r := Range{Prefix: req.Tag + db.env.Rules.Separator + prefix, Size: b.size, GrantedAt: db.env.Now().UTC()}
	if err := db.env.Rules.Check(r.Prefix + strconv.FormatInt(math.MaxInt64, 10)); err != nil {
		return Range{}, err
	}

	err = db.transact(ctx, true, func(t *transaction) error {
		doc, err := t.hiloDocument(req.Tag)
		if err != nil {
			return err
		}
		if doc.etag != read {
			return errOvertaken
		}
		marks, err := t.marks(req.Tag)
		if err != nil {
			return err
		}
		if marks.Node != db.env.Node {
			return ErrNeedsFloor
		}
		if r.Low, r.High, err = marks.GrantBlock(max(doc.max, b.lastMax), b.size, b.aligned); err != nil {
			return err
		}
		t.setMarks(req.Tag, marks)
		if b.aligned {
			return t.stageField(doc, serverHiField, r.High/b.size+1, r.GrantedAt)
		}
		return t.stageHiLo(doc, r.High, r.GrantedAt)
	})
	if err != nil {
		return Range{}, fmt.Errorf("next hilo range of %.100q: %w", req.Tag, err)
	}
	return r, nil
}

// readBlock reads what the client decides by: the version of the document and
// the server prefix.
func (db *DB) readBlock(tag string, b blockRequest) (etag uint64, prefix string, err error) {
	snapshot := db.env.Engine.Latest() // the block's commit compares with the newest version
	defer func() { err = errs.First(err, snapshot.Close()) }()
	doc, err := db.docs.Read(snapshot, format.HiLoPrefix+tag)
	if err != nil && err != ErrNotFound {
		return 0, "", err
	}
	if doc != nil {
		etag = doc.Header().Etag
	}
	if !b.serverPrefix {
		return etag, "", nil
	}
	doc, err = db.docs.Read(snapshot, serverPrefixID)
	if err == ErrNotFound {
		return etag, "", nil
	}
	if err != nil {
		return 0, "", err
	}
	return etag, strings.Clone(gjson.GetBytes(doc.JSON(), serverPrefixField).String()), nil
}
