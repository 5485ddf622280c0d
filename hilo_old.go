package jay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"weak"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay/ids"
)

// HiLoClient draws IDs of the generation that Options.HiLoMode names. The
// database has one of its own; others are independent of it, each the equal
// of a client on another machine. See DB.NewHiLoClient.
//
// Its methods return ErrClientClosed after its Close, ErrClosed after that of
// the database.
type HiLoClient = ids.Client

// NewHiLoClient returns a client of its own, which never holds a number that
// another client holds. Its Next and NextN take a tag, such as "users". Close
// it before the database, or what is left of its ranges is a gap.
//
// RaiseCounters raises the client, too, and InspectIDs tells what it holds.
func (db *DB) NewHiLoClient() *HiLoClient {
	c := db.clientOf(db.env)
	db.clients.add(c)
	return c
}

// clients are the clients of this process, but the database's own, as long as
// somebody uses them.
type clients struct {
	mu   sync.Mutex
	list []weak.Pointer[ids.Client] // Guarded by mu.
}

func (c *clients) add(client *ids.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.list) == cap(c.list) {
		c.list = slices.DeleteFunc(c.list, func(p weak.Pointer[ids.Client]) bool { return p.Value() == nil })
	}
	c.list = append(c.list, weak.Make(client))
}

// eachClient calls fn with the HiLo clients of this process.
func (db *DB) eachClient(fn func(*ids.Client)) {
	fn(db.client)
	db.clients.mu.Lock()
	list := slices.Clone(db.clients.list)
	db.clients.mu.Unlock()
	for _, p := range list {
		if c := p.Value(); c != nil {
			fn(c)
		}
	}
}

// newClient returns the client that the database's own writes use.
func (db *DB) newClient() *ids.Client { return db.clientOf(ungated{}) }

func (db *DB) clientOf(g gate) *ids.Client {
	switch db.opts.HiLoMode {
	case HiLo2:
		return ids.NewClient(&hilo2Source{gate: g, db: db, paces: make(map[string]*ids.Pace)}, false)
	case HiLo2010:
		return ids.NewClient(hilo2010Source{gate: g, db: db}, false)
	}
	return ids.NewClient(hiloSource{gate: g, db: db}, true)
}

// gate is how a source's calls enter the database.
type gate interface {
	Enter() error
	Exit()
}

// ungated does not enter: the database's own client is called by writes that
// are inside already, and by Close.
type ungated struct{}

func (ungated) Enter() error { return nil }
func (ungated) Exit()        {}

// hiloSource grants the ranges of HiLo4.
type hiloSource struct {
	gate
	db *DB
}

func (s hiloSource) NextRange(ctx context.Context, req RangeRequest) (Range, error) {
	if err := s.Enter(); err != nil {
		return Range{}, err
	}
	defer s.Exit()
	return s.db.nextRange(ctx, req)
}

func (s hiloSource) ReturnRange(ctx context.Context, tag string, last, end int64) (bool, error) {
	if err := s.Enter(); err != nil {
		return false, err
	}
	defer s.Exit()
	return s.db.returnRange(ctx, tag, last, end)
}

// errOvertaken says that another client changed the document between reading
// and writing it.
var errOvertaken = errors.New("another client was quicker")

// hilo2Source is a client of RavenDB 2.x and 3.x: it reads the document,
// decides, and writes it back if nobody else has written it meanwhile; else it
// starts over. The private mark is checked and raised in the same write.
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
		// The size is decided again on every attempt, as 3.x did.
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

// blockRequest is what a client of an older generation has decided.
type blockRequest struct {
	size         int64
	lastMax      int64
	aligned      bool // HiLo2010: whole blocks, counted by ServerHi
	serverPrefix bool // HiLo2: honour Raven/ServerPrefixForHilo
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
		return Range{}, fmt.Errorf("next hilo range of %q: %w", req.Tag, err)
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
		return Range{}, fmt.Errorf("next hilo range of %q: %w", req.Tag, err)
	}
	return r, nil
}

// readBlock reads what the client decides by: the version of the document and
// the server prefix.
func (db *DB) readBlock(tag string, b blockRequest) (etag uint64, prefix string, err error) {
	snapshot := db.env.Engine.Latest() // the block's commit compares with the newest version
	defer func() { err = errs.First(err, snapshot.Close()) }()
	doc, err := db.read(snapshot, format.HiLoPrefix+tag)
	if err != nil && err != ErrNotFound {
		return 0, "", err
	}
	if doc != nil {
		etag = doc.header.Etag
	}
	if !b.serverPrefix {
		return etag, "", nil
	}
	doc, err = db.read(snapshot, serverPrefixID)
	if err == ErrNotFound {
		return etag, "", nil
	}
	if err != nil {
		return 0, "", err
	}
	return etag, strings.Clone(gjson.GetBytes(doc.body, serverPrefixField).String()), nil
}
