package jay

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/requests"
	"github.com/jaydb/jay/internal/write"
)

// CallOption changes one call of DB.Apply, DB.NextIdentity or DB.SeedIdentity.
type CallOption func(*callOptions)

type callOptions struct {
	id    string
	given bool
}

// RequestID gives the call an ID, so that it is carried out once however often it is made:
// made again with the same ID, as when a caller did not get the answer, it returns what it
// returned at first, and changes nothing. The result is stored by the commit of the call,
// so that no crash can come between them. A call that fails leaves no result.
//
// The database keeps the results of the newest 10,000 such calls, up to 64 MiB. An ID has 1
// to 256 bytes. Another call with the ID is ErrUsage: another number of writes, another
// identity.
func RequestID(id string) CallOption {
	return func(o *callOptions) { o.id, o.given = id, true }
}

// requestOf returns the request of a call, or nil if it has no ID.
func requestOf(opts []CallOption, call string) (*requests.Request, error) {
	var o callOptions
	for _, option := range opts {
		option(&o)
	}
	if !o.given {
		return nil, nil
	}
	return &requests.Request{ID: o.id, Call: call}, requests.CheckID(o.id)
}

// repetition returns the result of a call that was carried out before, if err says that it
// was; else nil.
func repetition(err error) *requests.Repeated {
	var again *requests.Repeated
	if errors.Is(err, ErrUnknownOutcome) || !errors.As(err, &again) {
		return nil
	}
	return again
}

// repeated decodes the result of a call that was carried out before, if err says that it
// was.
func repeated(err error, result any) (found bool, _ error) {
	again := repetition(err)
	if again == nil {
		return false, err
	}
	if err := json.Unmarshal(again.Result, result); err != nil {
		return true, fmt.Errorf("result of a request: %w: %w", errs.ErrCorrupt, err)
	}
	return true, nil
}

// keptMetadata is the metadata of a write in the result of a request.
type keptMetadata struct {
	ID           string    `json:"id"`
	Collection   string    `json:"collection,omitempty"`
	ChangeVector string    `json:"changeVector,omitempty"`
	Etag         uint64    `json:"etag,omitempty"`
	LastModified time.Time `json:"lastModified,omitzero"`
}

// keepResults makes the first of ops keep the results of all in its transaction.
func keepResults(db *DB, ops []*op, r *requests.Request) {
	ops[0].Once = &write.Once{Request: r, Result: func() any {
		kept := make([]keptMetadata, len(ops))
		for i, o := range ops {
			m := db.result(o)
			kept[i] = keptMetadata{m.ID, m.Collection, m.ChangeVector, m.Etag, m.LastModified}
		}
		return kept
	}}
}

// keptResults returns results as Apply does.
func keptResults(kept []keptMetadata) []Metadata {
	out := make([]Metadata, len(kept))
	for i, m := range kept {
		out[i] = Metadata{ID: m.ID, Collection: m.Collection, ChangeVector: m.ChangeVector, Etag: m.Etag, LastModified: m.LastModified}
	}
	return out
}
