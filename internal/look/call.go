package look

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jaydb/jay/storage"
)

// This file has the calls, on both sides: what the owner does to its database for a client, if its Source has a Call. A call is a name and
// arguments, of which this package knows nothing. The client sends arguments that are too large for one frame in front, piece by piece, and
// then asks again and again for the result, so that other requests of the connection go on meanwhile.

// Bounds of calls: docs/limits.md.
const (
	maxCall       = 64 << 20              // bytes of a name and its arguments
	maxArguments  = 256 << 20             // bytes of the arguments of all clients together
	maxCalls      = 8                     // of a client at a time
	callPiece     = maxRequest - 16       // bytes of arguments in a frame
	callTurn      = 20 * time.Millisecond // for which the first request of a call waits for the result
	callPause     = 50 * time.Millisecond // between later requests, at most
	cancelTime    = 10 * time.Second      // for which the client waits for a call that it has canceled
	maxCallReason = 4096                  // bytes of Source.NoCall that are sent
)

// Call carries out a call of another program and returns its result. The context ends when the client cancels the call, leaves, or does not
// ask for the result any more, and when the Answerer is closed. progress may be called at any time, with what the client gets
// when it asks for the result before it is there.
type Call func(ctx context.Context, name string, arguments []byte, progress func([]byte)) ([]byte, error)

// calls are the calls of a client.
type calls struct {
	arguments []byte // sent in front of the next call
	running   map[uint64]*running
	last      uint64         // number of the last call
	done      sync.WaitGroup // the goroutines that carry them out
}

// running is a call that is carried out, or whose result was not asked for yet.
type running struct {
	cancel context.CancelFunc
	asked  *time.Timer // cancels the call when the client does not ask for its result
	done   chan struct{}

	mu       sync.Mutex
	progress []byte // Guarded by mu.
	result   []byte // Valid once done is closed.
	err      error  // Valid once done is closed.
}

// reserve takes room for the arguments of calls, or returns an error. A negative number gives room back.
func (a *Answerer) reserve(bytes int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if bytes > 0 && a.arguments+bytes > maxArguments {
		return fmt.Errorf("%w: arguments of %d bytes are held for calls of all programs, which is the most: try again", storage.ErrUnavailable, maxArguments)
	}
	a.arguments += bytes
	return nil
}

// addArguments keeps arguments for the next call.
func (c *client) addArguments(piece []byte) error {
	err := c.checkCalls("") // those of Only fit a frame
	if err == nil && len(c.calls.arguments)+len(piece) > maxCall {
		err = errCallTooLarge(len(c.calls.arguments) + len(piece))
	}
	if err == nil {
		err = c.of.reserve(len(piece))
	}
	if err != nil {
		c.dropArguments()
		return c.fail(err)
	}
	c.calls.arguments = append(c.calls.arguments, piece...)
	return c.wire.write(0)
}

func errCallTooLarge(bytes int) error {
	return fmt.Errorf("%w: a call of %d bytes, and %d are the most: write less at a time", storage.ErrTooLarge, bytes, maxCall)
}

// dropArguments forgets arguments that no call has taken.
func (c *client) dropArguments() {
	_ = c.of.reserve(-len(c.calls.arguments)) // giving back never fails
	c.calls.arguments = nil
}

// checkCalls returns why a call is not carried out for the client, or nil. "" is any of them.
func (c *client) checkCalls(name string) error {
	if s := &c.of.source; s.Call == nil || s.Only != nil && !slices.Contains(s.Only, name) {
		return fmt.Errorf("%w: %s", storage.ErrReadOnly, c.of.source.noCall())
	}
	return nil
}

// noCall returns why no call is carried out.
func (s *Source) noCall() string {
	if s.NoCall == "" {
		return "calls are not carried out here"
	}
	return s.NoCall[:min(len(s.NoCall), maxCallReason)]
}

// beginCall begins a call, and answers as awaitCall does.
func (c *client) beginCall(request content) error {
	name := string(request.text())
	err := c.checkCalls(name)
	switch {
	case err != nil:
	case request.bad:
		err = errFrame
	case len(c.calls.running) >= maxCalls:
		err = fmt.Errorf("%w: %d calls of this program are carried out, which is the most: wait for one of them", storage.ErrUnavailable, maxCalls)
	default:
		err = c.of.reserve(len(request.rest))
	}
	if err != nil {
		c.dropArguments()
		return c.fail(err)
	}
	arguments := append(c.calls.arguments, request.rest...)
	c.calls.arguments = nil

	ctx, cancel := context.WithCancel(c.of.ctx)
	r := &running{cancel: cancel, asked: time.AfterFunc(stall, cancel), done: make(chan struct{})}
	if c.calls.running == nil {
		c.calls.running = make(map[uint64]*running)
	}
	c.calls.last++
	c.calls.running[c.calls.last] = r
	c.calls.done.Go(func() {
		defer func() { _ = c.of.reserve(-len(arguments)) }() // giving back never fails
		r.run(ctx, c.of.source.Call, name, arguments)
	})
	return c.awaitCall(c.calls.last, callTurn)
}

// errCallEnded is the error of a call that has panicked, or ended its goroutine.
var errCallEnded = errors.New("the call has ended without a result, in code of the program that has the database open; whether it has changed anything is not known")

// run carries out the call. A panic, such as one of an observer of the database, ends the call and not the program.
func (r *running) run(ctx context.Context, call Call, name string, arguments []byte) {
	defer close(r.done)
	defer r.cancel()
	r.err = fmt.Errorf("%w: %w", storage.ErrUnknownOutcome, errCallEnded)
	defer func() {
		if panicked := recover(); panicked != nil {
			r.err = fmt.Errorf("%w: %w: %.200v", storage.ErrUnknownOutcome, errCallEnded, panicked)
		}
	}()
	r.result, r.err = call(ctx, name, arguments, func(progress []byte) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.progress = progress
	})
}

// awaitCall answers with the result of a call, if it is there within a time, and else with its progress. The content of
// the reply is a byte, 1 with the result and else 0, the number of the call, its last progress as a text, and the result. When the Answerer is closed, there is no
// answer: the call was canceled, but not by the client.
func (c *client) awaitCall(number uint64, within time.Duration) error {
	r := c.calls.running[number]
	if r == nil {
		return c.fail(fmt.Errorf("%w: there is no call %d", errFrame, number))
	}
	r.asked.Stop()
	turn := time.NewTimer(within)
	defer turn.Stop()
	select {
	case <-r.done:
		if err := c.of.ctx.Err(); err != nil {
			return err
		}
		delete(c.calls.running, number)
		if r.err != nil {
			return c.fail(r.err)
		}
		return c.wire.write(0, r.heading(1, number), r.result)
	case <-turn.C:
	}
	r.asked.Reset(stall)
	return c.wire.write(0, r.heading(0, number))
}

// heading returns the beginning of a reply about a call.
func (r *running) heading(done byte, number uint64) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return appendText(binary.AppendUvarint([]byte{done}, number), r.progress)
}

// cancelCall ends the context of a call, and answers as awaitCall does.
func (c *client) cancelCall(number uint64) error {
	if r := c.calls.running[number]; r != nil {
		r.cancel()
	}
	return c.awaitCall(number, callTurn)
}

// endCalls cancels the calls of a client that has left, and waits until their goroutines have ended.
func (c *client) endCalls() {
	for _, r := range c.calls.running {
		r.asked.Stop()
		r.cancel()
	}
	c.calls.done.Wait()
	c.dropArguments()
}

// MayCall returns why the owner does not carry out a call of this process, or nil. "" is any call. The error is an ErrLooking.
func (e *engine) MayCall(name string) error {
	switch writes := e.hello.Writes; {
	case e.onlyReads:
		return fmt.Errorf("%w: this program has opened it with Options.ReadOnly: leave that out", ErrLooking)
	case slices.Contains(e.hello.Calls, name):
		return nil
	case writes == nil:
		return fmt.Errorf("%w: that program is older than this one, and carries out no writes for others: let that program write, or end it", ErrLooking)
	case *writes != "":
		return fmt.Errorf("%w: %.4096s: let that program write, or end it", ErrLooking, *writes)
	}
	return nil
}

// refuse returns the error of what is not carried out by a call.
func (e *engine) refuse() error {
	if err := e.MayCall(""); err != nil {
		return err
	}
	return ErrNotCarried
}

// Call has the owner carry out a call. arguments are not kept, and the result is the caller's. progress gets what the owner says of a call that
// takes long; it may use the engine, and may be nil. When ctx ends, the call is canceled, and its error returned.
//
// The error is that of MayCall, an ErrTooLarge or an ErrUnavailable if nothing was carried out, and an ErrUnknownOutcome if the
// connection has ended before the result came.
func (e *engine) Call(ctx context.Context, name string, arguments []byte, progress func([]byte)) ([]byte, error) {
	if err := e.MayCall(name); err != nil {
		return nil, err
	}
	if n := len(name) + len(arguments); n > maxCall {
		return nil, errCallTooLarge(n)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	reply, err := e.sendCall(name, arguments)
	pause := time.Millisecond
	ended, tooLate := ctx.Done(), time.Time{}
	for err == nil {
		c := content{rest: reply}
		done, number, last := c.flag() != 0, c.number(), c.text()
		if c.bad {
			return nil, e.abandon(errFrame)
		}
		if progress != nil && len(last) > 0 {
			progress(last)
		}
		switch {
		case done:
			return c.rest, nil
		case !tooLate.IsZero() && time.Now().After(tooLate):
			return nil, e.abandon(ctx.Err())
		}
		pause = min(2*pause, callPause)
		kind := byte(askAwait)
		select {
		case <-ended:
			kind, ended, tooLate = askCancel, nil, time.Now().Add(cancelTime)
		case <-time.After(pause):
		}
		reply, err = e.askForResult(kind, number)
	}
	return nil, err
}

// sendCall sends a call, and returns the first reply.
func (e *engine) sendCall(name string, arguments []byte) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(name)+len(arguments) > callPiece {
		n := min(len(arguments), callPiece)
		if _, err := e.exchange(askArguments, arguments[:n]); err != nil {
			return nil, err
		}
		arguments = arguments[n:]
	}
	if e.broken != nil {
		return nil, e.broken
	}
	reply, err := e.exchange(askCall, append(appendText(nil, []byte(name)), arguments...))
	if e.unsent { // the owner has not got the whole of it
		return nil, err
	}
	return e.decided(reply, err)
}

// askForResult asks for the result of a call.
func (e *engine) askForResult(kind byte, number uint64) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.decided(e.exchange(kind, binary.AppendUvarint(nil, number)))
}

// decided returns a reply to a request about a call that the owner may have begun. Its caller holds e.mu.
func (e *engine) decided(reply []byte, err error) ([]byte, error) {
	if err != nil && e.broken != nil {
		err = fmt.Errorf("%w: whether it was carried out shows when the database is read again: %w", storage.ErrUnknownOutcome, err)
	}
	return reply, err
}

// abandon ends the connection, and returns the error of a call whose result is not known.
func (e *engine) abandon(cause error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.broken == nil {
		e.broken = unanswered(cause)
		cause = errors.Join(cause, e.wire.conn.Close())
	}
	_, err := e.decided(nil, cause)
	return err
}
