// Package requests keeps the results of calls that have a request ID. A result is stored
// in the commit of its call. If the caller did not get the answer and repeats the call,
// it gets the stored result and nothing is carried out again. Only the newest results are
// kept.
package requests

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Bounds of the stored results. Beyond them the oldest are removed.
const (
	Most         = 10_000
	MostBytes    = 64 << 20
	MaxBytes     = 16 << 20 // of one result
	MaxIDBytes   = 256
	mostRemovals = 64 // removals in one call, so that each call stays short
)

// Request identifies one call. It is nil for a call without a request ID.
type Request struct {
	ID   string
	Call string // the operation, so that the ID of another operation's call is detected

	// Given is a hash of the arguments that Call does not name, so that the ID of a call with
	// other arguments is detected; or "".
	Given string
}

// ErrOther is returned for the ID of another call than the one that was carried out.
var ErrOther = fmt.Errorf("%w: a request id belongs to one call", ids.ErrUsage)

// Repeated is the error that ends the transaction of a call whose result is stored.
type Repeated struct{ Result json.RawMessage }

// Error implements error.
func (*Repeated) Error() string { return "the call was carried out before" }

// Repetition returns the result of a call that was carried out before, if err says that it
// was; else nil.
func Repetition(err error) *Repeated {
	var again *Repeated
	if errors.Is(err, storage.ErrUnknownOutcome) || !errors.As(err, &again) {
		return nil
	}
	return again
}

// Decode decodes the result of a call that was carried out before, if err says that it
// was.
func Decode(err error, result any) (found bool, _ error) {
	again := Repetition(err)
	if again == nil {
		return false, err
	}
	if err := json.Unmarshal(again.Result, result); err != nil {
		return true, fmt.Errorf("result of a request: %w: %w", errs.ErrCorrupt, err)
	}
	return true, nil
}

// Written is the metadata of a write in the result of a call.
//
// Part of the on-disk format.
type Written struct {
	ID           string    `json:"id"`
	Collection   string    `json:"collection,omitempty"`
	ChangeVector string    `json:"changeVector,omitempty"`
	Etag         uint64    `json:"etag,omitempty"`
	LastModified time.Time `json:"lastModified,omitzero"`
	Patch        string    `json:"patch,omitempty"` // what became of a patch
}

// WrittenOf returns what is kept of the metadata of a write.
func WrittenOf(m metadata.Metadata) Written {
	return Written{ID: m.ID, Collection: m.Collection, ChangeVector: m.ChangeVector, Etag: m.Etag, LastModified: m.LastModified}
}

// Metadata returns the metadata that was kept.
func (w *Written) Metadata() metadata.Metadata {
	return metadata.Metadata{ID: w.ID, Collection: w.Collection, ChangeVector: w.ChangeVector, Etag: w.Etag, LastModified: w.LastModified}
}

// record is the stored form of a result, as JSON.
type record struct {
	Call   string          `json:"call"`
	Given  string          `json:"given,omitempty"` // results that older versions have stored have none
	Result json.RawMessage `json:"result"`
}

// CheckID returns an error for an invalid request ID.
func CheckID(id string) error {
	if id == "" || len(id) > MaxIDBytes {
		return fmt.Errorf("%w: a request id has 1 to %d bytes, not %d", ids.ErrUsage, MaxIDBytes, len(id))
	}
	for i := range len(id) {
		if id[i] < 0x20 || id[i] == 0x7f {
			return fmt.Errorf("%w: a request id has no control characters", ids.ErrUsage)
		}
	}
	return nil
}

// Find returns a *Repeated if the result of the call is stored, and an ErrOther if that of
// another call with the ID is. A result that an older version has stored names no arguments:
// it is taken for that of the call.
func (r *Request) Find(from docs.Getter) error {
	value, closer, err := from.Get(format.RequestKey(r.ID))
	if err == storage.ErrNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	_, text, err := format.DecodeRequest(value)
	var found record
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	if err := errs.First(err, closer.Close()); err != nil {
		return fmt.Errorf("result of request %q: %w: %w", errs.Shorten(r.ID), errs.ErrCorrupt, err)
	}
	if found.Call != r.Call {
		return fmt.Errorf("%w: %q is that of another call: %s, not %s", ErrOther, errs.Shorten(r.ID), found.Call, r.Call)
	}
	if found.Given != "" && found.Given != r.Given {
		return fmt.Errorf("%w: %q is that of an %s with other arguments", ErrOther, errs.Shorten(r.ID), found.Call)
	}
	return &Repeated{bytes.Clone(found.Result)}
}

// Keep stages the result of the call, and the removal of the oldest results beyond the
// bounds.
func (r *Request) Keep(tx storage.Tx, result any) error {
	text, err := json.Marshal(result)
	if err == nil {
		text, err = json.Marshal(record{r.Call, r.Given, text})
	}
	if err != nil {
		return err
	}
	if err := CheckSize(len(text)); err != nil {
		return err
	}
	state, err := readState(tx)
	if err != nil {
		return err
	}
	tx.Set(format.RequestKey(r.ID), binary.BigEndian.AppendUint64(nil, state.Next), text)
	tx.Set(format.RequestNumberKey(state.Next), []byte(r.ID), nil)
	state.Next++
	state.Bytes += uint64(len(text))
	most := uint64(Most)
	if knobs.KeptRequests > 0 {
		most = knobs.KeptRequests
	}
	for n := 0; n < mostRemovals && state.First+1 < state.Next && (state.Next-state.First > most || state.Bytes > MostBytes); n++ {
		if err := remove(tx, &state); err != nil {
			return err
		}
	}
	tx.Set(format.RequestStateKey, state.Append(nil), nil)
	return nil
}

// remove stages the removal of the oldest result.
func remove(tx storage.Tx, state *format.RequestState) error {
	key := format.RequestNumberKey(state.First)
	value, closer, err := tx.Get(key)
	if err != nil {
		return fmt.Errorf("request number %d: %w: %w", state.First, errs.ErrCorrupt, err)
	}
	result := format.RequestKey(string(value))
	if err := closer.Close(); err != nil {
		return err
	}
	value, closer, err = tx.Get(result)
	if err != nil {
		return fmt.Errorf("request number %d: %w: %w", state.First, errs.ErrCorrupt, err)
	}
	state.Bytes -= min(state.Bytes, uint64(len(value)-8))
	if err := closer.Close(); err != nil {
		return err
	}
	tx.Delete(key)
	tx.Delete(result)
	state.First++
	return nil
}

// CheckSize refuses a result of more than MaxBytes.
func CheckSize(bytes int) error {
	if bytes > MaxBytes {
		return fmt.Errorf("%w: the result of a call with a request id has %d bytes, at most %d", storage.ErrTooLarge, bytes, MaxBytes)
	}
	return nil
}

func readState(from docs.Getter) (format.RequestState, error) {
	value, closer, err := from.Get(format.RequestStateKey)
	if err == storage.ErrNotFound {
		return format.RequestState{}, nil
	}
	if err != nil {
		return format.RequestState{}, err
	}
	state, err := format.DecodeRequestState(value)
	return state, errs.First(err, closer.Close())
}
