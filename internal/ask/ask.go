// Package ask has a database that another program has open changed by that program: the names of the calls, their arguments and
// results as JSON, and the side that asks (Owner). Package calls is the side that carries them out; package look brings one to the other.
//
// A call is carried out as if the program that has the database open had made it: with its IDs, options and observers. Errors keep their text, and are the
// errors of package jay that they were there, as far as the table in errors.go has them.
//
// All of the package is safe for concurrent use.
package ask

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/errs"
)

// Names of the calls. They are part of the protocol: a program that does not know one refuses it.
const (
	Write            = "write"
	Identity         = "identity"
	RaiseCounters    = "raise-counters"
	EnsureIndexes    = "ensure-indexes"
	DropIndex        = "drop-index"
	EnsureComputed   = "ensure-computed"
	DropComputed     = "drop-computed"
	DropCollection   = "drop-collection"
	RenameCollection = "rename-collection"
	Change           = "change"
	Compact          = "compact"
	ConfigureDue     = "configure-due"
	RenewKey         = "renew-key"
	RotateKeys       = "rotate-keys"
)

// Caller brings a call to the program that has the database open: see look.Driver.
type Caller interface {
	MayCall(name string) error
	Call(ctx context.Context, name string, arguments []byte, progress func([]byte)) ([]byte, error)
}

// Owner is the program that has the database open.
type Owner struct{ Caller Caller }

// IdentityArguments are those of Identity. The result is a number.
type IdentityArguments struct {
	Name  string `json:"name"`
	Seed  bool   `json:"seed,omitempty"`
	Value int64  `json:"value,omitempty"`
	Force bool   `json:"force,omitempty"`

	RequestID *string `json:"requestID,omitempty"`
}

// CountersArguments are those of RaiseCounters. There is no result.
type CountersArguments struct {
	Etag       uint64           `json:"etag,omitempty"`
	Identities map[string]int64 `json:"identities,omitempty"`
	HiLo       map[string]int64 `json:"hilo,omitempty"`
}

// IndexesArguments are those of EnsureIndexes, which has documents for progress, and no result.
type IndexesArguments struct {
	Collection string        `json:"collection"`
	Indexes    []index.Index `json:"indexes"`
	Replace    bool          `json:"replace,omitempty"`
}

// DropIndexArguments are those of DropIndex. There is no result.
type DropIndexArguments struct {
	Collection string `json:"collection"`
	Name       string `json:"name"`
}

// ComputedArguments are those of EnsureComputed. Progress is a number of documents; there is no result.
type ComputedArguments struct {
	Computed index.Computed `json:"computed"`
	Replace  bool           `json:"replace,omitempty"`
}

// DropComputedArguments are those of DropComputed. There is no result.
type DropComputedArguments struct {
	Name string `json:"name"`
}

// DropCollectionArguments are those of DropCollection. Progress and result are a number of documents.
type DropCollectionArguments struct {
	Name string `json:"name"`
}

// RenameCollectionArguments are those of RenameCollection. Progress and result are a number of documents.
type RenameCollectionArguments struct {
	Name string `json:"name"`
	To   string `json:"to"`
}

// DueArguments are those of ConfigureDue. There is no result.
type DueArguments struct {
	What     string `json:"what"`
	Kind     byte   `json:"kind"`
	Disabled bool   `json:"disabled"`
}

// None are the arguments of a call without any.
type None struct{}

// Answer is what is sent back: both a result and an error for a call that ended in the middle.
type Answer struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  *Failure        `json:"error,omitempty"`
}

// Do has the owner carry out a call, and decodes its result. progress gets what the owner says while the call takes long, decoded; it may be nil.
//
// The error is that of the call, with result as far as it had come, or one of the way there: an ErrReadOnly that says why nothing is carried out,
// an ErrUnavailable if nothing was, or an ErrUnknownOutcome.
func Do[R, P any](ctx context.Context, o *Owner, name string, arguments any, result *R, progress func(P)) error {
	if err := o.Caller.MayCall(name); err != nil { // before the arguments are encoded: they may be large
		return err
	}
	text, err := encode(arguments)
	if err != nil {
		return err
	}
	var report func([]byte)
	if progress != nil {
		report = func(text []byte) {
			var p P
			if json.Unmarshal(text, &p) == nil { // what a later version says of it is left out
				progress(p)
			}
		}
	}
	reply, err := o.Caller.Call(ctx, name, text, report)
	if err != nil {
		return err
	}
	var a Answer
	if err := json.Unmarshal(reply, &a); err != nil {
		return fmt.Errorf("%w: the answer to a call %q: %w", errs.ErrCorrupt, name, err)
	}
	if len(a.Result) > 0 {
		if err := json.Unmarshal(a.Result, result); err != nil {
			return fmt.Errorf("%w: the result of a call %q: %w", errs.ErrCorrupt, name, err)
		}
	}
	return a.Error.decode()
}

// encode returns v as JSON, in which <, > and & are as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// Encode returns the answer of a call. A result that cannot be encoded is the error then.
func Encode(result any, failed error) []byte {
	text, err := encode(result)
	if err == nil {
		text, err = encode(Answer{Result: text, Error: failureOf(failed)})
	}
	if err != nil {
		text, _ = encode(Answer{Error: failureOf(err)}) // a text always has JSON
	}
	return text
}

// Decode decodes the arguments of a call. Members that this version does not know are refused: what a later one asks for with them, such as a condition, must not be
// left out.
func Decode(text []byte, arguments any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(arguments); err != nil {
		return fmt.Errorf("%w: arguments that this version does not know: %w", errCall, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("%w: more than its arguments", errCall)
	}
	return nil
}
