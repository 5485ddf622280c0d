package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	mathrand "math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Bounds of the operations of one server.
const (
	MaxRunningOperations = 64
	maxKeptOperations    = 1024     // ended operations: see shares
	maxKeptDetails       = 16 << 20 // bytes of the details of ended operations: see shares
)

// The states of an operation, in RavenDB's spelling.
const (
	operationInProgress = "InProgress"
	OperationCompleted  = "Completed"
	OperationFaulted    = "Faulted"
	operationCanceled   = "Canceled"
)

// Operations has the long-running commands of the server: those that run, and the outcome
// of the last ones that have ended. They do not outlive the process.
type Operations struct {
	Changed func(database string, id int64, state OperationState)
	now     func() time.Time

	mu       sync.Mutex
	first    int64                      // all numbers are greater than this
	last     int64                      // the last number. Guarded by mu.
	byID     map[OperationID]*Operation // Guarded by mu.
	ended    shares[OperationID]        // by owner. Guarded by mu.
	running  int                        // Guarded by mu.
	bySender map[string]int             // those of one sender, without zeros. Guarded by mu.
	detailed shares[OperationID]        // of ended, those that have details, by owner. Guarded by mu.
	details  int                        // bytes of these details. Guarded by mu.
}

// OperationID is the number of an operation, and the key of its database: "" for an
// operation of the server.
type OperationID struct {
	Database string
	ID       int64
}

// Operation is one long-running command.
type Operation struct {
	Of     OperationID
	About  About
	Cancel context.CancelCauseFunc

	memory *Holding // that the operation holds until its end, if it is one of Background

	mu    sync.Mutex
	state OperationState // Guarded by mu.
	ended time.Time      // Guarded by mu.
}

// Detailed is the result of a change by query.
type Detailed struct {
	Type               string          `json:"$type"`
	Details            json.RawMessage // an array
	DocumentsProcessed int64
	Message            string
	Query              string // the beginning of a long one
	ShouldPersist      bool
	Total              int64
}

// dropDetails drops the details of the operation, and returns their bytes.
func (o *Operation) dropDetails() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	d, is := o.state.Result.(Detailed)
	n := len(d.Details)
	if !is || n <= len(noDetails) {
		return 0
	}
	d.Details = noDetails
	o.state.Result = d
	return n
}

var noDetails = json.RawMessage("[]")

// About describes an operation in the list of all.
type About struct {
	Kind    string // such as "patch by query"
	Subject string // such as the text of the query
	By      string // the name of the sender, or ""
	Began   time.Time
}

// Owner returns whose share an operation of a database is: that of its sender, or of the
// database if senders have no names.
func (a About) Owner(database string) string {
	if a.By != "" {
		return a.By
	}
	return "database " + database // no name has a blank
}

// OperationState is the state of an operation as clients see it.
type OperationState struct {
	Status   string
	Progress any
	Result   any
}

// ErrKilled is the cause with which the context of an operation ends that a client has
// killed.
var ErrKilled = errors.New("the operation was killed")

// ErrBulkKilled is the outcome of a bulk insert that a client has killed.
var ErrBulkKilled = &Problem{Status: http.StatusBadRequest, Kind: TypeBulkAborted, Message: "the bulk insert was killed by a request"}

// NewOperations returns an empty list. Numbers start from the time, so that a number from
// an earlier run of the server does not refer to another operation.
func NewOperations(now func() time.Time) *Operations {
	first := now().UnixMilli()
	return &Operations{now: now, first: first, last: first, byID: make(map[OperationID]*Operation), ended: shares[OperationID]{most: maxKeptOperations}, detailed: shares[OperationID]{most: maxKeptOperations}, bySender: make(map[string]int)}
}

// startApart has the numbers start somewhere else than those of other servers of the same databases, so that none of them takes the number of an
// operation that another one runs for one of its own.
func (os *Operations) startApart() {
	os.first += mathrand.Int64N(1 << 51)
	os.last = os.first
}

// Next returns a new number.
func (os *Operations) Next() int64 {
	os.mu.Lock()
	defer os.mu.Unlock()
	os.last++
	return os.last
}

// Start registers an operation with the number id, which next has returned. The caller
// must call end.
func (os *Operations) Start(ctx context.Context, database string, id int64, what About) (context.Context, *Operation, error) {
	os.mu.Lock()
	defer os.mu.Unlock()
	of := OperationID{database, id}
	switch {
	case id <= os.first || id > os.last:
		return nil, nil, BadRequest("there is no operation %d: ask for a number first", id)
	case os.byID[of] != nil:
		return nil, nil, BadRequest("the operation %d has begun already", id)
	case os.running >= MaxRunningOperations:
		return nil, nil, overload("%d operations run at a time, which is the most", os.running)
	case what.By != "" && os.bySender[what.By] >= half(MaxRunningOperations):
		return nil, nil, overload("%d operations of %s run, which is the most of one sender", os.bySender[what.By], what.By)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	o := &Operation{Of: of, About: what, Cancel: cancel, state: OperationState{Status: operationInProgress}}
	os.byID[of] = o
	os.running++
	os.bySender[what.By]++
	return ctx, o, nil
}

// Find returns an operation, or nil.
func (os *Operations) Find(database string, id int64) *Operation {
	os.mu.Lock()
	defer os.mu.Unlock()
	return os.byID[OperationID{database, id}]
}

// Progress sets the progress of an operation and publishes it.
func (os *Operations) Progress(o *Operation, progress any) {
	o.mu.Lock()
	o.state.Progress = progress
	state := o.state
	o.mu.Unlock()
	os.Changed(o.Of.Database, o.Of.ID, state)
}

// End sets the outcome of an operation.
func (os *Operations) End(ctx context.Context, o *Operation, result any, err error) {
	state := OperationState{Status: OperationCompleted, Result: result}
	switch {
	case err == nil:
	case context.Cause(ctx) != nil: // killed, or the server is closing
		state.Status = operationCanceled
		if result == nil {
			state.Result = Failure(&Problem{Status: http.StatusInternalServerError, Kind: TypeRequestCancelled, Message: context.Cause(ctx).Error()})
		}
	default:
		state.Status, state.Result = OperationFaulted, Failure(ProblemOf(err))
	}
	os.Finish(o, state)
}

// Finish sets the last state of an operation.
func (os *Operations) Finish(o *Operation, state OperationState) {
	o.mu.Lock()
	state.Progress = o.state.Progress
	o.state, o.ended = state, os.now()
	o.mu.Unlock()
	o.Cancel(nil)

	os.mu.Lock()
	os.running--
	if os.bySender[o.About.By]--; os.bySender[o.About.By] == 0 {
		delete(os.bySender, o.About.By)
	}
	owner := o.About.Owner(o.Of.Database)
	if dropped, full := os.ended.add(owner, o.Of); full {
		os.drop(dropped)
	}
	if d, is := state.Result.(Detailed); is && len(d.Details) > len(noDetails) {
		os.details += len(d.Details)
		os.detailed.add(owner, o.Of)
		for os.details > maxKeptDetails && os.detailed.n > 0 {
			os.details -= os.byID[os.detailed.drop(owner)].dropDetails()
		}
	}
	os.mu.Unlock()
	os.Changed(o.Of.Database, o.Of.ID, state)
}

// drop forgets an ended operation. os.mu is held.
func (os *Operations) drop(of OperationID) {
	o := os.byID[of]
	delete(os.byID, of)
	if n := o.dropDetails(); n > 0 {
		os.details -= n
		os.detailed.remove(o.About.Owner(of.Database), of)
	}
}

// Snapshot returns a copy of the present state.
func (o *Operation) Snapshot() OperationState {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.state
}

// Outcome returns a copy of the present state, and when it became the last one: zero for an
// operation that runs.
func (o *Operation) Outcome() (state OperationState, ended time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.state, o.ended
}

// List returns the operations for which wanted returns true, in the order of their numbers.
func (os *Operations) List(wanted func(o *Operation) bool) (found []*Operation) {
	os.mu.Lock()
	for _, o := range os.byID {
		if wanted(o) {
			found = append(found, o)
		}
	}
	os.mu.Unlock()
	slices.SortFunc(found, func(a, b *Operation) int { return cmp.Compare(a.Of.ID, b.Of.ID) })
	return found
}

// Forget drops the ended operations of a deleted database.
func (os *Operations) Forget(database string) {
	os.mu.Lock()
	defer os.mu.Unlock()
	os.ended.removeIf(func(of OperationID) bool {
		if of.Database == database {
			os.drop(of)
		}
		return of.Database == database
	})
}

// Failure returns the result of a failed operation. The Go client needs its $type.
func Failure(p *Problem) any {
	return map[string]any{"$type": "Raven.Client.Documents.Operations.OperationExceptionResult, Raven.Client", "Type": p.Kind, "Message": p.Message,
		"Error": p.Kind + ": " + p.Message, "StatusCode": p.Status, "ShouldPersist": false}
}

// SubjectOf returns a description, or the beginning of a long one, in memory of its own.
func SubjectOf(text string) string {
	if len(text) <= maxSubject {
		return strings.Clone(text)
	}
	cut := maxSubject
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// maxSubject bounds the description of an operation, in bytes.
const maxSubject = 1024

// UnderWay returns the number of operations that run.
func (os *Operations) UnderWay() int {
	os.mu.Lock()
	defer os.mu.Unlock()
	return os.running
}

// TypeBulkAborted is the exception of a bulk insert that was killed.
const TypeBulkAborted = ExceptionPrefix + "Documents.BulkInsert.BulkInsertAbortedException"
