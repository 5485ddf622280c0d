// Package env is what every part of an open database shares: the storage engine,
// the ID rules, the clock, the limits, and the lifecycle of the handle, from the
// lifecycle lock that calls enter to the handles that Close releases.
//
// Only what carries out a whole call or a background task calls Enter: package jay and the
// packages that TestGate_EnteredByCallsOnly lists. No package below them does.
package env

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/invariants"
	"github.com/jaydb/jay/internal/room"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Env is an open database, as its parts see it. The exported fields are set before
// the first call enters and do not change afterwards.
type Env struct {
	Dir             string
	Engine          storage.Engine
	Rules           ids.Rules
	FoldedSeparator string
	Node            uint64 // the node number under which this database writes
	Origins         Origins

	Synced        bool // writes are acknowledged when they are on disk
	ExactExpiry   bool // see HidesExpired
	Limits        metadata.Limits
	MaxQueryBytes int
	SortBytes     int              // memory of one sort of a build
	Work          *budget.Pool     // the memory that work draws on; nil for no bound
	Now           func() time.Time // the user's clock: never called under a lock
	Rand          io.Reader        // the user's source, or nil
	Logger        *slog.Logger     // or nil
	Room          *room.Room       // on the disk; nil if it does not matter

	// ExpirationDisabled and RefreshDisabled are settings of the database, which change
	// while it is open: @expires, or @refresh, in the metadata of documents has no effect.
	ExpirationDisabled atomic.Bool
	RefreshDisabled    atomic.Bool

	// OwnSyncs counts the commits under way that wait for the disk for the sake of bulk
	// work: batches of bulk writers, of drops and of changes by query, the removal of records of
	// deletions, and reservations of numbers for writers.
	OwnSyncs atomic.Int64

	// Fresh is Refresh, on a shared store; nil on a store of one's own.
	Fresh func() error

	// Works are shared out among the processes that have a store open; nil if this is the only one.
	Works Works

	Pins    Pins
	gate    callGate
	handles handles
}

// New returns an Env that calls can enter.
func New() *Env {
	e := new(Env)
	e.gate.init()
	return e
}

// Works are kinds of work that one of several processes does at a time: see package leases.
type Works interface {
	// Do reports whether this process does a work, which it takes if no live process has it.
	Do(ctx context.Context, work string) (bool, error)

	// Seize is Do, and takes the work from a process that has it.
	Seize(ctx context.Context, work string) error

	// Does reports whether this process has a work, without taking it.
	Does(work string) (bool, error)

	// DoesIn is Does for a transaction, which commits only if that stays so.
	DoesIn(tx storage.Tx, work string) (bool, error)

	// Leave gives back a work, if this process has it.
	Leave(ctx context.Context, work string) error

	// Period is how long a process keeps its works without being heard of, at least.
	Period() time.Duration
}

// Does reports whether this process is to do a work now: see Works.Do.
func (e *Env) Does(ctx context.Context, work string) (bool, error) {
	if e.Works == nil {
		return true, nil
	}
	return e.Works.Do(ctx, work)
}

// HidesExpired reports whether a document that has expired is as if it were deleted.
func (e *Env) HidesExpired() bool { return e.ExactExpiry && !e.ExpirationDisabled.Load() }

// Newest returns a reader of the newest committed state, for single keys, durable or not. The caller must
// call done. A shared engine reads the key itself: it has few snapshots, and callers may hold all of
// them and wait for this write.
func (e *Env) Newest() (from Getter, done func() error) {
	if e.Engine.Shared() {
		return e.Engine, func() error { return nil }
	}
	latest := e.Engine.Latest()
	return latest, latest.Close
}

// Random returns the source of random bytes.
func (e *Env) Random() io.Reader {
	if e.Rand != nil {
		return e.Rand
	}
	return rand.Reader
}

// Enter begins a call, or returns ErrClosed. Exit ends it. User code must not run
// in between: Close waits for the calls inside. On a shared store, the call finds what
// others have changed before it; an error of that store is returned.
func (e *Env) Enter() error {
	if err := e.EnterWrite(); err != nil {
		return err
	}
	err := e.Refresh()
	if err != nil {
		e.gate.exit()
	}
	return err
}

// EnterRead is Enter for a call that reads documents by their IDs, or takes the catalog of its snapshot.
// Of what is remembered of a shared store it relies on nothing but whether expired documents are hidden.
func (e *Env) EnterRead() error {
	if e.ExactExpiry {
		return e.Enter()
	}
	return e.EnterWrite()
}

// EnterWrite is Enter for a call that relies on what is remembered of a shared store only in a
// transaction, which looks whether it is still so. A call that would fail by what is remembered calls
// Refresh first, and looks again.
func (e *Env) EnterWrite() error {
	if !e.gate.enter() {
		return errs.ErrClosed
	}
	return nil
}

// Refresh makes sure that what is remembered of a shared store is not older than the call.
func (e *Env) Refresh() error {
	if e.Fresh == nil {
		return nil
	}
	return e.Fresh()
}

// Renew is Refresh for who has not entered. On a store of one's own it does nothing, also after Close.
func (e *Env) Renew() error {
	if e.Fresh == nil {
		return nil
	}
	if err := e.Enter(); err != nil { // it refreshes
		return err
	}
	e.Exit()
	return nil
}

// Exit ends a call that Enter began.
func (e *Env) Exit() { e.gate.exit() }

// callGate is the lifecycle lock: it counts the calls inside a database, so that
// Close can refuse new ones and wait for those. Its zero value is open.
type callGate struct {
	state atomic.Int64 // calls inside, and gateClosed
	once  sync.Once
	empty chan struct{} // closed when the gate is closed and no call is inside. Made by init.
}

// gateClosed is far above any number of calls.
const gateClosed = 1 << 62

func (g *callGate) init() { g.empty = make(chan struct{}) }

// enter begins a call, or reports false if the gate is closed. exit must follow if
// it reports true.
func (g *callGate) enter() bool {
	if g.state.Add(1) < gateClosed {
		return true
	}
	g.exit()
	return false
}

// emptied is called when the gate is closed and the last call has ended.
func (g *callGate) emptied() { g.once.Do(func() { close(g.empty) }) }

// exit ends a call.
func (g *callGate) exit() {
	state := g.state.Add(-1)
	if state == gateClosed {
		g.emptied()
	}
	if invariants.Enabled && (state < 0 || state >= gateClosed/2 && state < gateClosed) {
		invariants.Broken("a call has ended that was not inside: the gate is at %d", state)
	}
}

// CloseGate refuses new calls, and returns when those inside have ended.
func (e *Env) CloseGate() {
	e.gate.close()
	<-e.gate.empty
}

// close refuses new calls. The channel empty is closed when those inside have
// ended. It may be called once.
func (g *callGate) close() {
	if g.state.Add(gateClosed) == gateClosed {
		g.emptied()
	}
}

// Handle is an open resource of the engine that must not outlive the database, such
// as a cursor or a transaction. Release closes it and makes its later calls return
// cause; it is idempotent.
type Handle interface{ Release(cause error) error }

// handles are the open handles of a database.
type handles struct {
	mu  sync.Mutex
	set map[Handle]struct{} // Guarded by mu.
}

// Register adds an open handle, which ReleaseAll will release.
func (e *Env) Register(h Handle) {
	e.handles.mu.Lock()
	defer e.handles.mu.Unlock()
	if e.handles.set == nil {
		e.handles.set = make(map[Handle]struct{})
	}
	e.handles.set[h] = struct{}{}
}

// Unregister removes a handle that has been released.
func (e *Env) Unregister(h Handle) {
	e.handles.mu.Lock()
	defer e.handles.mu.Unlock()
	delete(e.handles.set, h)
}

// release releases all of them. No handle is registered meanwhile: the gate is
// closed.
func (h *handles) release(cause error) error {
	h.mu.Lock()
	open := slices.Collect(maps.Keys(h.set)) // Release may call Unregister
	h.mu.Unlock()
	var err error
	for _, handle := range open {
		err = errors.Join(err, handle.Release(cause))
	}
	return err
}

// ReleaseAll releases every open handle, with cause as the error of its later calls.
func (e *Env) ReleaseAll(cause error) error { return e.handles.release(cause) }

// Pins counts the pinned reads in progress: calls of Read, whose functions look at the
// memory of the engine. Close waits for them before it closes the gate, so that the
// functions can go on using the database.
type Pins struct {
	mu     sync.Mutex
	n      int           // Guarded by mu.
	closed bool          // no more reads are pinned. Guarded by mu.
	back   chan struct{} // closed when closed and n is 0. Guarded by mu, made by stop.
}

// Begin begins a pinned read. It reports false if no more are allowed.
func (p *Pins) Begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.n++
	return true
}

// End ends a pinned read.
func (p *Pins) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n--; p.n == 0 && p.closed {
		close(p.back)
	}
}

// Stop allows no more pinned reads, and returns when all have ended.
func (p *Pins) Stop() {
	p.mu.Lock()
	if !p.closed {
		p.closed, p.back = true, make(chan struct{})
		if p.n == 0 {
			close(p.back)
		}
	}
	back := p.back
	p.mu.Unlock()
	<-back
}

// ChangeVector returns the change vector of the version that node wrote with this
// etag.
func (e *Env) ChangeVector(node, etag uint64) string { return e.Origins.ChangeVector(node, etag) }

// Origins are the databases behind node numbers. They do not change while the
// database is open.
type Origins map[uint64]format.Origin

// ChangeVector returns the change vector of the version that node wrote with this
// etag.
func (all Origins) ChangeVector(node, etag uint64) string {
	o := all[node]
	var scratch [64]byte
	b := append(scratch[:0], o.Tag...)
	b = append(b, ':')
	b = strconv.AppendUint(b, etag, 10)
	b = append(b, '-')
	return string(append(b, o.ID...))
}

// Date returns the time by the user's clock, for a record that spells it as RFC 3339
// does: the year must have four digits.
func (e *Env) Date() (time.Time, error) {
	now := e.Now().UTC()
	if y := now.Year(); y < 0 || y > 9999 {
		return now, fmt.Errorf("%w: the clock (Options.Now) is in the year %d, and must be in 0 to 9999", errs.ErrOption, y)
	}
	return now, nil
}

// afterLastDate is the first tick that no date of RFC 3339 has: the year 10000. It is what
// metadata.Ticks returns for all later times as well.
const afterLastDate = 253_402_300_800 * 10_000_000

// CheckTicks refuses ticks of the user's clock that no date of RFC 3339 has: a document
// with them would have a @last-modified that nothing can read.
func CheckTicks(ticks uint64) error {
	if ticks >= afterLastDate {
		return errClockAfterLastDate
	}
	return nil
}

var errClockAfterLastDate = fmt.Errorf("%w: the clock (Options.Now) is after the year 9999, which is the last one that a date has", errs.ErrOption)

// Clock returns the time by the user's clock, for background work: a panic of the clock,
// which has no caller to reach, is an error.
func (e *Env) Clock() (now time.Time, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("Options.Now panicked: %v", value)
		}
	}()
	return e.Now(), nil
}

// Warn logs an error that no call can return, if the user has given a logger.
func (e *Env) Warn(message string, err error) {
	if e.Logger != nil {
		e.Logger.Warn(message, "err", err)
	}
}

// ofEngine are the errors that concern the engine, its store or the end of the database.
var ofEngine = []error{errs.ErrClosed, storage.ErrFailed, storage.ErrUnknownOutcome, storage.ErrUnavailable, storage.ErrSnapshotExpired, storage.ErrConflict, errs.ErrLeaseLost}

// IsOfEngine reports whether an error concerns the engine, its store or the end of the database, and so says nothing about
// the document or the index that was worked on. A disk that is almost full is not among them: deletions go on there.
func IsOfEngine(err error) bool {
	return slices.ContainsFunc(ofEngine, func(known error) bool { return errors.Is(err, known) })
}
