package standby

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/internal/follow"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/look"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// Standby is a copy of a database that follows it. All methods are safe for concurrent use.
type Standby struct {
	dir     string
	source  Source
	options Options
	driver  lsm.Driver
	cancel  context.CancelFunc
	memory  *budget.Claim // until Close
	ended   chan struct{} // closed when following has ended

	engine storage.Engine // nil while it could not be opened again. Used by the goroutine that follows, and after ended.
	full   error          // why the engine takes no commits: its disk is full; or nil. Used by the goroutine that follows.

	closing sync.Mutex     // held by Close when following has ended
	listens bool           // other processes look into it
	looked  *look.Listener // nil if none can. Used by one goroutine at a time.

	mu        sync.Mutex
	target    *follow.Target // of the engine. Changed by the goroutine that follows, under mu.
	copies    int64          // of the targets before. Guarded by mu.
	db        *jay.DB        // for readers; nil while there is none. Guarded by mu.
	changed   chan struct{}  // closed when db changes or following ends. Guarded by mu.
	connected bool           // Guarded by mu.
	err       error          // of the last attempt; nil while connected. Guarded by mu.
	over      error          // why following has ended; nil before. Guarded by mu.
}

// Status is the state of a standby.
type Status struct {
	// Readable is true when there is a first copy. Then DB does not wait.
	Readable bool `json:"readable"`

	// Moment is the instant, by the source's clock, of the state that the standby has. It advances
	// while the source is idle, too. The zero value means that there is no copy yet.
	Moment time.Time `json:"moment,omitzero"`

	// Lag is the time since Moment, by the clock of this machine, and so includes the difference of
	// the two clocks. A promotion loses at most what the source has committed in this time. Lag is 0
	// without a copy.
	Lag time.Duration `json:"lagNs"`

	// Connected is true while the source answers. Otherwise Err says why not, and the standby tries
	// again.
	Connected bool   `json:"connected"`
	Err       error  `json:"-"`
	Error     string `json:"error,omitempty"` // the text of Err

	// Copies is how often the standby has compared keys since Open: once after each start of the
	// source, and after each long interruption.
	Copies int64 `json:"copies"`
}

// Open opens the standby in directory dir, or makes one if there is nothing, and follows the source
// until Close. The directory belongs to this process, as the directory of a database does. Open
// returns ErrStandby if dir has a database that is not a standby, ErrOption for invalid options,
// and the errors of jay.Open.
//
// Errors of the source do not end the standby: it tries again, as Options.Retry says. Following
// ends, and Wait returns why, when the standby cannot follow this source, when it needs a newer
// version of Jay, or when its own disk fails. While its disk is full, the standby can be read. It
// continues when there is room again: then DB returns another database.
func Open(dir string, source Source, opts Options) (*Standby, error) {
	s, err := open(dir, source, opts)
	if err != nil {
		return nil, fmt.Errorf("open standby %q: %w", dir, err)
	}
	return s, nil
}

func open(dir string, source Source, opts Options) (*Standby, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if dir == "" || source == nil {
		return nil, fmt.Errorf("%w: a standby needs a directory and a source", jay.ErrOption)
	}
	engine, claim, err := o.engine()
	if err != nil {
		return nil, err
	}
	listens := o.Database.FS == nil && !o.Database.NoLook
	ctx, cancel := context.WithCancel(context.Background())
	s := &Standby{listens: listens, dir: dir, source: source, driver: lsm.Driver{Options: engine}, options: o, cancel: cancel, memory: claim, ended: make(chan struct{}), changed: make(chan struct{})}
	if err := s.openStore(ctx); err != nil {
		cancel()
		claim.End()
		return nil, err
	}
	go s.run(ctx)
	return s, nil
}

// openStore opens the engine, and the database for readers if there is a copy.
func (s *Standby) openStore(ctx context.Context) error {
	engine, err := s.driver.Open(s.dir, storage.OpenOptions{DurableReads: true, Bounds: format.TableBounds, Logger: s.options.Database.Logger})
	if err != nil {
		return err
	}
	target, err := follow.NewTarget(ctx, engine)
	if err != nil {
		return errors.Join(err, engine.Close())
	}
	target.Changing, target.Changed = s.closeDB, s.openDB
	s.engine = engine
	s.mu.Lock()
	if s.target != nil {
		s.copies += s.target.Copies()
	}
	s.target = target
	s.mu.Unlock()
	if !target.State().Whole() {
		return nil
	}
	if err := s.openDB(); err != nil {
		return errors.Join(err, s.closeStore())
	}
	return nil
}

// closeStore closes the database for readers and the engine.
func (s *Standby) closeStore() error {
	engine := s.engine
	s.engine = nil
	return errors.Join(s.closeDB(), engine.Close())
}

// roomBytes is what must be free before a store whose disk was full is opened again: room for its
// log, and for what that holds.
const roomBytes = 64 << 20

// ready makes the store take commits again: it is opened anew when its disk was full and has room.
// Until then it can be read.
func (s *Standby) ready(ctx context.Context) error {
	if s.full == nil && s.engine != nil {
		return s.reopenDB()
	}
	if s.engine != nil {
		if spacer, is := s.engine.(storage.FreeSpacer); is {
			if free, err := spacer.FreeBytes(); err == nil && free < roomBytes {
				return errors.Join(s.full, s.reopenDB())
			}
		}
		if err := s.closeStore(); err != nil { // what it could not write
			s.options.Database.Logger.Warn("jay: closing a standby whose disk was full", "dir", s.dir, "err", err)
		}
	}
	if err := s.openStore(ctx); err != nil {
		return err
	}
	s.full = nil
	s.options.Database.Logger.Info("jay: a standby whose disk was full is open again", "dir", s.dir)
	return nil
}

// reopenDB opens the database for readers if an error has left a copy without one.
func (s *Standby) reopenDB() error {
	s.mu.Lock()
	missing := s.db == nil && s.target.State().Whole()
	s.mu.Unlock()
	if missing {
		return s.openDB()
	}
	return nil
}

// openDB opens the database for readers.
func (s *Standby) openDB() error {
	o := *s.options.Database
	o.ReadOnly, o.Engine = true, driver{s.engine}
	db, err := jay.Open(s.dir, &o)
	if err != nil {
		return err
	}
	parts.Of(db).Standbys.SetMoment(s.target.Moment)
	s.listen(db)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.db = db
	s.wakeLocked()
	return nil
}

// closeDB closes it: what it remembers is about to change.
func (s *Standby) closeDB() error {
	s.mu.Lock()
	db := s.db
	s.db = nil
	s.wakeLocked()
	s.mu.Unlock()
	if db == nil {
		return nil
	}
	var err error
	if s.looked != nil {
		err = s.looked.Close()
		s.looked = nil
	}
	return errors.Join(err, db.Close())
}

// listen lets other processes look into the standby, and follow it. If it cannot, the standby does without.
func (s *Standby) listen(db *jay.DB) {
	if !s.listens {
		return
	}
	var err error
	engine := s.engine
	s.looked, err = look.Listen(s.dir, look.Source{
		Engine:   engine,
		Snapshot: func() (storage.Snapshot, error) { return engine.Snapshot(), nil },
		Follow:   func(ctx context.Context, w io.Writer, request io.Reader) error { return Serve(ctx, db, w, request) },
	})
	if err != nil {
		s.options.Database.Logger.Warn("jay: no other process can look into the standby", "dir", s.dir, "err", err)
	}
}

// wakeLocked wakes those that wait for a change. s.mu is held.
func (s *Standby) wakeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// DB waits until there is a first copy, and returns the database to read from. The database shows
// new commits as they come. Results of earlier calls do not change. Its writes return an error that
// is both ErrStandby and ErrReadOnly.
//
// The database belongs to the Standby. The Standby closes it, and DB returns another one from then
// on, when the node tag or other fixed settings of the source change, and after the disk was full.
// Then calls of the old database return ErrClosed: call DB again.
//
// The database works like one on a shared store: it does not cache documents, and its subscriptions
// have no workers. DB returns the error of Wait when following has ended without a copy, and
// ErrClosed after Close.
func (s *Standby) DB(ctx context.Context) (*jay.DB, error) {
	for {
		s.mu.Lock()
		db, changed, over := s.db, s.changed, s.over
		s.mu.Unlock()
		switch {
		case db != nil:
			return db, nil
		case over != nil:
			return nil, over
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Status returns the state of the standby.
func (s *Standby) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := Status{Readable: s.db != nil, Moment: s.target.Moment(), Connected: s.connected, Err: s.err, Copies: s.copies + s.target.Copies()}
	if !status.Moment.IsZero() {
		status.Lag = max(0, time.Since(status.Moment))
	}
	if s.err != nil {
		status.Error = s.err.Error()
	}
	return status
}

// Wait waits until following has ended, and returns the reason: ErrClosed after Close. The standby
// can still be read until Close. Wait returns the error of ctx if ctx ends first.
func (s *Standby) Wait(ctx context.Context) error {
	select {
	case <-s.ended:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.over
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends following, closes the database that DB has returned, and releases the directory. It is
// idempotent.
func (s *Standby) Close() error {
	s.cancel()
	<-s.ended
	s.closing.Lock()
	defer s.closing.Unlock()
	s.mu.Lock()
	s.over = jay.ErrClosed
	s.mu.Unlock()
	defer s.memory.End()
	if s.engine == nil {
		return nil
	}
	return s.closeStore()
}

// run follows the source until ctx ends, or there is no use in going on.
func (s *Standby) run(ctx context.Context) {
	defer close(s.ended)
	compares := !s.target.State().Whole()
	first := s.options.Retry / 100
	for pause := first; ; {
		before := s.target.State()
		err := s.ready(ctx)
		if err == nil {
			err = s.follow(ctx, compares)
		}
		if errors.Is(err, follow.ErrCompare) && !compares {
			compares = true
			continue
		}
		err = s.cause(ctx, err)
		compares = errors.Is(err, follow.ErrCompare) || !s.target.State().Whole()
		if s.note(ctx, err) {
			return
		}
		if s.target.State() != before {
			pause = first
		}
		s.options.Database.Logger.Warn("jay: a standby does not follow, which is tried again", "dir", s.dir, "err", err, "pause", pause)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		pause = min(2*pause, s.options.Retry)
	}
}

// cause returns the error of an engine that takes no commits since its disk was full in place of
// that of the commit which found out.
func (s *Standby) cause(ctx context.Context, err error) error {
	if s.engine == nil || errors.As(err, new(sourceError)) || !errors.Is(err, jay.ErrFailed) && !errors.Is(err, jay.ErrUnknownOutcome) {
		return err
	}
	refused := s.engine.Update(ctx, true, func(storage.Tx) error { return nil })
	if errors.Is(refused, jay.ErrFailed) && errors.Is(refused, jay.ErrDiskFull) {
		s.full = refused
		return refused
	}
	return err
}

// sourceError is an error of the source, or on the way from it.
type sourceError struct{ error }

func (e sourceError) Unwrap() error { return e.error }

// incoming makes errors of reading those of the source.
type incoming struct{ io.ReadCloser }

func (r incoming) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = sourceError{err}
	}
	return n, err
}

// follow asks the source once, and applies what it sends.
func (s *Standby) follow(ctx context.Context, compares bool) (err error) {
	request, err := s.target.Request(ctx, compares)
	if err != nil {
		return err
	}
	in, err := s.source.Stream(ctx, request)
	if err != nil {
		return sourceError{err}
	}
	defer in.Close() // what was read was applied
	defer context.AfterFunc(ctx, func() { _ = in.Close() })()
	s.mu.Lock()
	s.connected, s.err = true, nil
	s.mu.Unlock()
	return s.target.Apply(ctx, incoming{in})
}

// note notes the error of an attempt, and reports whether it is the last.
func (s *Standby) note(ctx context.Context, err error) (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connected, s.err = false, err
	own := !errors.As(err, new(sourceError))
	switch {
	case ctx.Err() != nil:
		s.over = jay.ErrClosed
	case errors.Is(err, jay.ErrStandby), errors.Is(err, jay.ErrNewerFormat):
		s.over = err
	case own && errors.Is(err, jay.ErrDiskFull):
		return false
	case own && (errors.Is(err, jay.ErrFailed) || errors.Is(err, jay.ErrUnknownOutcome) || errors.Is(err, jay.ErrCorrupt)):
		s.over = err
	default:
		return false
	}
	if ctx.Err() == nil {
		s.options.Database.Logger.Error("jay: a standby follows no more", "dir", s.dir, "err", err)
	}
	s.wakeLocked()
	return true
}
