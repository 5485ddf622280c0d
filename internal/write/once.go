package write

import (
	"encoding/json"
	"errors"

	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/requests"
	"github.com/jaydb/jay/storage"
)

// Once makes the transaction of an op and those behind it happen once: its commit keeps what a
// repeated call returns.
type Once struct {
	Request *requests.Request
	Keeps   Keeps
	Of      []*Op // whose results are kept, in this order; of the transaction
}

// Keeps is what the commit of a call keeps for a repeated one.
type Keeps uint8

const (
	Unsaid       Keeps = iota // in an op whose call has not taken the request
	KeepsNothing              // that it has happened
	KeepsResults              // a list
	KeepsPatch                // the result of one op, and what became of its patch
)

// keep stages the result, when all ops are staged.
func (o *Once) keep(e *env.Env, tx storage.Tx) error { return o.Request.Keep(tx, o.result(e)) }

func (o *Once) result(e *env.Env) any {
	switch o.Keeps {
	case KeepsNothing:
		return nil
	case KeepsPatch:
		kept := requests.WrittenOf(o.Of[0].result(e))
		kept.Patch = string(o.Of[0].Patching.Status)
		return kept
	}
	kept := make([]requests.Written, len(o.Of))
	for i, of := range o.Of {
		kept[i] = requests.WrittenOf(of.result(e))
	}
	return kept
}

// maxResultGrowth is more than a result grows by when its op is staged: by its etag, its change
// vector and its time, in JSON.
const maxResultGrowth = 256

// checkSize refuses, before the coordinator commits, what could not be kept afterwards.
func (o *Once) checkSize(e *env.Env) error {
	text, err := json.Marshal(o.result(e))
	if err != nil {
		return err
	}
	return requests.CheckSize(len(text) + len(o.Of)*maxResultGrowth)
}

// intentRequest returns what the intent of a commit stores of its request ID: whoever ends the
// commit keeps the result. docs are the writes of the intent.
func (o *Once) intentRequest(docs []*Op) *format.IntentRequest {
	r := &format.IntentRequest{ID: o.Request.ID, Call: o.Request.Call, Given: o.Request.Given, Nothing: o.Keeps == KeepsNothing}
	number := make(map[*Op]int, len(docs))
	for i, d := range docs {
		number[d] = i
	}
	for _, of := range o.Of {
		if x := of.Exchanging; x != nil {
			r.Results = append(r.Results, format.IntentResult{Key: of.RequestID, Deleted: x.Delete})
		} else {
			r.Results = append(r.Results, format.IntentResult{Write: number[of]})
		}
	}
	return r
}

// keepIntended stages the result of a commit whose caller has left. ops are the writes of the
// intent, staged; index is that of the values.
func keepIntended(e *env.Env, tx storage.Tx, r *format.IntentRequest, ops []*Op, index uint64) error {
	request := requests.Request{ID: r.ID, Call: r.Call, Given: r.Given}
	switch err := request.Find(tx); {
	case requests.Repetition(err) != nil || errors.Is(err, requests.ErrOther):
		return nil // an earlier run could not decide this commit, and carried out a repeated call
	case err != nil:
		return err
	}
	if r.Nothing {
		return request.Keep(tx, nil)
	}
	kept := make([]requests.Written, len(r.Results))
	for i, result := range r.Results {
		switch {
		case result.Key == "":
			kept[i] = requests.WrittenOf(ops[result.Write].result(e))
		case result.Deleted:
			kept[i] = requests.Written{ID: result.Key}
		default:
			kept[i] = requests.Written{ID: result.Key, Etag: index}
		}
	}
	return request.Keep(tx, kept)
}
