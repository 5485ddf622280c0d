package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Bounds of the operations of one server.
const (
	maxRunningOperations = 64
	maxKeptOperations    = 1024 // ended operations; the oldest are dropped
)

// The states of an operation, in RavenDB's spelling.
const (
	operationInProgress = "InProgress"
	operationCompleted  = "Completed"
	operationFaulted    = "Faulted"
	operationCanceled   = "Canceled"
)

// operations has the long-running commands of the server: those that run, and the outcome
// of the last ones that have ended. They do not outlive the process.
type operations struct {
	changed func(database string, id int64, state operationState)
	now     func() time.Time

	mu      sync.Mutex
	first   int64                      // all numbers are greater than this
	last    int64                      // the last number. Guarded by mu.
	byID    map[operationID]*operation // Guarded by mu.
	ended   []operationID              // oldest first. Guarded by mu.
	running int                        // Guarded by mu.
}

// operationID is the number of an operation, and the key of its database: "" for an
// operation of the server.
type operationID struct {
	database string
	id       int64
}

// operation is one long-running command.
type operation struct {
	of     operationID
	about  about
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	state operationState // Guarded by mu.
	ended time.Time      // Guarded by mu.
}

// about describes an operation in the list of all.
type about struct {
	kind    string // such as "patch by query"
	subject string // such as the text of the query
	by      string // the name of the sender, or ""
	began   time.Time
}

// operationState is the state of an operation as clients see it.
type operationState struct {
	Status   string
	Progress any
	Result   any
}

// errKilled is the cause with which the context of an operation ends that a client has
// killed.
var errKilled = errors.New("the operation was killed")

// errBulkKilled is the outcome of a bulk insert that a client has killed.
var errBulkKilled = &problem{status: http.StatusBadRequest, kind: typeBulkAborted, message: "the bulk insert was killed by a request"}

// newOperations returns an empty list. Numbers start from the time, so that a number from
// an earlier run of the server does not refer to another operation.
func newOperations(now func() time.Time) *operations {
	first := now().UnixMilli()
	return &operations{now: now, first: first, last: first, byID: make(map[operationID]*operation)}
}

// next returns a new number.
func (os *operations) next() int64 {
	os.mu.Lock()
	defer os.mu.Unlock()
	os.last++
	return os.last
}

// start registers an operation with the number id, which next has returned. The caller
// must call end.
func (os *operations) start(ctx context.Context, database string, id int64, what about) (context.Context, *operation, error) {
	os.mu.Lock()
	defer os.mu.Unlock()
	of := operationID{database, id}
	switch {
	case id <= os.first || id > os.last:
		return nil, nil, badRequest("there is no operation %d: ask for a number first", id)
	case os.byID[of] != nil:
		return nil, nil, badRequest("the operation %d has begun already", id)
	case os.running >= maxRunningOperations:
		return nil, nil, overload("%d operations run at a time, which is the most", os.running)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	o := &operation{of: of, about: what, cancel: cancel, state: operationState{Status: operationInProgress}}
	os.byID[of] = o
	os.running++
	return ctx, o, nil
}

// find returns an operation, or nil.
func (os *operations) find(database string, id int64) *operation {
	os.mu.Lock()
	defer os.mu.Unlock()
	return os.byID[operationID{database, id}]
}

// progress sets the progress of an operation and publishes it.
func (os *operations) progress(o *operation, progress any) {
	o.mu.Lock()
	o.state.Progress = progress
	state := o.state
	o.mu.Unlock()
	os.changed(o.of.database, o.of.id, state)
}

// end sets the outcome of an operation.
func (os *operations) end(ctx context.Context, o *operation, result any, err error) {
	state := operationState{Status: operationCompleted, Result: result}
	switch {
	case err == nil:
	case context.Cause(ctx) != nil: // killed, or the server is closing
		state.Status = operationCanceled
		if result == nil {
			state.Result = failure(&problem{status: http.StatusInternalServerError, kind: typeRequestCancelled, message: context.Cause(ctx).Error()})
		}
	default:
		state.Status, state.Result = operationFaulted, failure(problemOf(err))
	}
	os.finish(o, state)
}

// finish sets the last state of an operation.
func (os *operations) finish(o *operation, state operationState) {
	o.mu.Lock()
	state.Progress = o.state.Progress
	o.state, o.ended = state, os.now()
	o.mu.Unlock()
	o.cancel(nil)

	os.mu.Lock()
	os.running--
	os.ended = append(os.ended, o.of)
	if len(os.ended) > maxKeptOperations {
		delete(os.byID, os.ended[0])
		os.ended = os.ended[1:]
	}
	os.mu.Unlock()
	os.changed(o.of.database, o.of.id, state)
}

// snapshot returns a copy of the present state.
func (o *operation) snapshot() operationState {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.state
}

// forget drops the ended operations of a deleted database.
func (os *operations) forget(database string) {
	os.mu.Lock()
	defer os.mu.Unlock()
	kept := os.ended[:0]
	for _, of := range os.ended {
		if of.database == database {
			delete(os.byID, of)
			continue
		}
		kept = append(kept, of)
	}
	os.ended = kept
}

// failure returns the result of a failed operation. The Go client needs its $type.
func failure(p *problem) any {
	return map[string]any{"$type": "Raven.Client.Documents.Operations.OperationExceptionResult, Raven.Client", "Type": p.kind, "Message": p.message,
		"Error": p.kind + ": " + p.message, "StatusCode": p.status, "ShouldPersist": false}
}

// background runs fn as an operation of the call's database, or of the server if it has
// none, and replies with its number. The operation continues when the client has gone; it
// ends with the server and with its database.
func (c *call) background(fn func(ctx context.Context, o *operation) (result any, err error)) error {
	s, key := c.s, ""
	var d *database
	if c.database != nil {
		var err error
		if d, err = s.databases.acquire(c.ctx, c.name); err != nil {
			return err
		}
		key = d.key
	}
	release := func() {
		if d != nil {
			s.databases.release(d)
		}
	}
	id := s.operations.next()
	ctx, o, err := s.operations.start(s.ctx, key, id, c.about())
	if err != nil {
		release()
		return err
	}
	if d != nil {
		stop := context.AfterFunc(s.databases.contextOf(d), func() { o.cancel(errors.New("the database is being deleted")) })
		inner := release
		release = func() {
			stop()
			inner()
		}
	}
	// Close waits for the WaitGroup. It counts this request, so adding here is allowed.
	s.running.Go(func() {
		defer release()
		result, err := runOperation(ctx, o, fn)
		if err != nil && context.Cause(ctx) == nil {
			s.opts.Logger.Warn("server: an operation has failed", "operation", id, "database", key, "err", err)
		}
		s.operations.end(ctx, o, result, err)
	})
	return c.json(http.StatusOK, map[string]any{"OperationId": id, "OperationNodeTag": c.s.opts.tag()})
}

// runOperation runs fn, and turns a panic into an error.
func runOperation(ctx context.Context, o *operation, fn func(context.Context, *operation) (any, error)) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	return fn(ctx, o)
}

// nextOperationID replies with the number for a future operation.
func (c *call) nextOperationID() error {
	return c.json(http.StatusOK, map[string]any{"Id": c.s.operations.next(), "NodeTag": c.s.opts.tag()})
}

// operationOf returns the operation that the URL names, or nil.
func (c *call) operationOf() (*operation, error) {
	id, err := c.params.number("id", 0)
	if err != nil {
		return nil, err
	}
	if id <= 0 {
		return nil, badRequest("the URL names no operation: id is missing")
	}
	key := ""
	if c.database != nil {
		key = c.database.key
	}
	return c.s.operations.find(key, id), nil
}

// operationState replies with the state of an operation.
func (c *call) operationState() error {
	o, err := c.operationOf()
	if err != nil {
		return err
	}
	if o == nil {
		return c.empty(http.StatusNotFound)
	}
	return c.json(http.StatusOK, o.snapshot())
}

// killOperation ends an operation. One that has ended stays as it is. A number that next
// has returned but that has not started yet will not start: a bulk insert may arrive after
// the request that kills it.
func (c *call) killOperation() error {
	o, err := c.operationOf()
	if err != nil {
		return err
	}
	if o == nil && c.database != nil {
		id, err := c.params.number("id", 0)
		if err != nil {
			return err
		}
		_, o, err = c.s.operations.start(c.ctx, c.database.key, id, c.about())
		if err == nil {
			c.s.operations.finish(o, operationState{Status: operationFaulted, Result: failure(errBulkKilled)})
		} else if problemOf(err).status == http.StatusTooManyRequests {
			return err
		}
	}
	if o == nil {
		return &problem{status: http.StatusNotFound, kind: typeBadRequest, message: "there is no such operation"}
	}
	o.cancel(errKilled)
	return c.empty(http.StatusNoContent)
}

// listOperations replies with the operations of the database: those that run, and the
// outcomes of the last ones.
func (c *call) listOperations() error {
	os := c.s.operations
	os.mu.Lock()
	var found []*operation
	for of, o := range os.byID {
		if of.database == c.database.key {
			found = append(found, o)
		}
	}
	os.mu.Unlock()
	slices.SortFunc(found, func(a, b *operation) int { return cmp.Compare(a.of.id, b.of.id) })
	list := make([]json.RawMessage, 0, len(found))
	for _, o := range found {
		list = append(list, mustJSON(map[string]any{"Id": o.of.id, "State": o.snapshot()}))
	}
	return c.json(http.StatusOK, map[string]any{"Results": list})
}
