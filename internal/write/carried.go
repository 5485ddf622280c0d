package write

import (
	"errors"
	"fmt"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/patch"
)

// Carried is what an Op asks for, as JSON that another process makes the Op of again: that which has the database open. Bodies are
// bytes, so that nothing on the way rewrites them, and are checked there as those of any other caller.
type Carried struct {
	Verb         string     `json:"verb"`
	ID           string     `json:"id,omitempty"`
	HiLo         bool       `json:"hilo,omitempty"`
	Prefix       string     `json:"prefix,omitempty"`
	Collection   string     `json:"collection,omitempty"`
	InCollection string     `json:"inCollection,omitempty"`
	Expected     *string    `json:"expected,omitempty"`
	Body         []byte     `json:"body,omitempty"`
	Custom       []byte     `json:"custom,omitempty"`
	LeaveOut     []string   `json:"leaveOut,omitempty"`
	Drawn        bool       `json:"drawn,omitempty"`
	Loaded       bool       `json:"loaded,omitempty"`
	KeepRevision bool       `json:"keepRevision,omitempty"`
	KeepReplaced bool       `json:"keepReplaced,omitempty"`
	KeepExpires  bool       `json:"keepExpires,omitempty"`
	KeepRefresh  bool       `json:"keepRefresh,omitempty"`
	TTL          int64      `json:"ttlNs,omitempty"`
	Expires      *time.Time `json:"expires,omitempty"`
	Refresh      *time.Time `json:"refresh,omitempty"`

	Patch    *CarriedPatch    `json:"patch,omitempty"`
	Exchange *CarriedExchange `json:"exchange,omitempty"`
}

// CarriedPatch is the part of a Carried that only patches have.
type CarriedPatch struct {
	Edits       []patch.Edit `json:"edits"`
	OrInsert    bool         `json:"orInsert,omitempty"`
	PatchInsert bool         `json:"patchInsert,omitempty"`
}

// CarriedExchange is the part of a Carried that only changes of compare-exchange values have.
type CarriedExchange struct {
	Index  uint64 `json:"index,omitempty"`
	Delete bool   `json:"delete,omitempty"`
}

// carriedVerbs are the verbs that are carried, by the name that observers see.
var carriedVerbs = map[string]Verb{
	Put.Operation(): Put, Insert.Operation(): Insert, Replace.Operation(): Replace, Delete.Operation(): Delete,
	Patch.Operation(): Patch, Keep.Operation(): Keep, Exchange.Operation(): Exchange,
}

// Carry returns what ops ask for. They were not prepared. notCarried is what the error of an op is that cannot be carried: one with a
// condition of Go in a patch, with attachments, or of a cluster-wide transaction.
func Carry(ops []*Op, notCarried error) ([]Carried, error) {
	all := make([]Carried, len(ops))
	for i, o := range ops {
		var err error
		if all[i], err = o.carried(notCarried); err != nil {
			return nil, OpError(ops, o, err)
		}
	}
	return all, nil
}

func (o *Op) carried(notCarried error) (c Carried, err error) {
	switch _, is := carriedVerbs[o.Verb.Operation()]; {
	case o.UsageError != nil:
		return c, o.UsageError
	case o.Once != nil && o.Once.Keeps == Unsaid:
		return c, ErrPartOfCall
	case !is || o.Attaching != nil || o.Kept != nil:
		return c, fmt.Errorf("%w: attachments", notCarried)
	case o.Guard != nil:
		return c, fmt.Errorf("%w: a cluster-wide transaction", notCarried)
	}
	c = Carried{
		Verb: o.Verb.Operation(), ID: o.RequestID, HiLo: o.HiLo, Prefix: o.Prefix, Collection: o.Collection, InCollection: o.InCollection,
		Expected: o.Expected, Body: o.Body, Custom: o.Custom, LeaveOut: o.LeaveOut, Drawn: o.Drawn, Loaded: o.Loaded,
		KeepRevision: o.KeepRevision, KeepReplaced: o.KeepReplaced, KeepExpires: o.KeepExpires, KeepRefresh: o.KeepRefresh,
	}
	if t := o.Timing; t != nil {
		c.TTL, c.Expires, c.Refresh = int64(t.TTL), t.Expires, t.Refresh
	}
	if x := o.Exchanging; x != nil {
		c.Exchange = &CarriedExchange{x.Index, x.Delete}
	}
	if p := o.Patching; p != nil {
		if err := o.CheckPatch(); err != nil {
			return c, err
		}
		for _, e := range p.Edits {
			if _, err := e.MarshalJSON(); err != nil {
				return c, fmt.Errorf("%w: %w", notCarried, err)
			}
		}
		c.Patch = &CarriedPatch{p.Edits, p.OrInsert, p.PatchInsert}
	}
	return c, nil
}

// errCarried refuses what no Carry has returned.
var errCarried = fmt.Errorf("%w: a write of another program", ids.ErrUsage)

// Op returns the op that c asks for.
func (c *Carried) Op() (*Op, error) {
	verb, is := carriedVerbs[c.Verb]
	if !is {
		return nil, fmt.Errorf("%w has an unknown verb: %q", errCarried, errs.Shorten(c.Verb))
	}
	if (c.Patch != nil) != verb.Edits() || (c.Exchange != nil) != (verb == Exchange) || c.HiLo && verb != Insert && verb != Put {
		return nil, fmt.Errorf("%w: a %s with the members of another verb", errCarried, verb)
	}
	o := &Op{Request: Request{
		Verb: verb, RequestID: c.ID, HiLo: c.HiLo, Prefix: c.Prefix, Collection: c.Collection, InCollection: c.InCollection,
		Expected: c.Expected, Body: c.Body, Custom: c.Custom, LeaveOut: c.LeaveOut, Drawn: c.Drawn, Loaded: c.Loaded,
		KeepRevision: c.KeepRevision, KeepReplaced: c.KeepReplaced, KeepExpires: c.KeepExpires, KeepRefresh: c.KeepRefresh,
	}}
	if c.TTL != 0 || c.Expires != nil || c.Refresh != nil {
		o.Timing = &Timing{TTL: time.Duration(c.TTL), Expires: c.Expires, Refresh: c.Refresh}
	}
	if x := c.Exchange; x != nil {
		o.Exchanging = &Exchanging{Index: x.Index, Delete: x.Delete}
		if x.Delete && x.Index == 0 {
			return nil, fmt.Errorf("%w: a deletion of a compare-exchange value without its index", errCarried)
		}
	}
	if p := c.Patch; p != nil {
		o.Patching = &Patching{Edits: p.Edits, OrInsert: p.OrInsert, PatchInsert: p.PatchInsert}
	}
	return o, nil
}

// Answered is what became of an op in the process that has carried it out.
type Answered struct {
	Metadata metadata.Metadata `json:"metadata"`
	Custom   []byte            `json:"custom,omitempty"` // of the metadata, whose own JSON would rewrite it
	Status   string            `json:"status,omitempty"` // of a patch
	Body     []byte            `json:"body,omitempty"`   // of the document after a patch
}

// Answer returns what became of ops that were committed.
func (w *Writer) Answer(ops []*Op) []Answered {
	all := make([]Answered, len(ops))
	for i, o := range ops {
		a := Answered{Metadata: w.ResultOf(o)}
		a.Custom, a.Metadata.Custom = a.Metadata.Custom, nil
		if p := o.Patching; p != nil {
			a.Status, a.Body = string(p.Status), o.PatchedBody()
		}
		all[i] = a
	}
	return all
}

// errAnswers is the error of an answer that is none to what was asked.
var errAnswers = errors.New("the answer is one to other writes")

// PublishAnswers passes the results of another process to the callers of ops, as Publish does.
func (w *Writer) PublishAnswers(ops []*Op, all []Answered) error {
	if len(all) != len(ops) {
		return fmt.Errorf("%w: %w: %d results of %d", errs.ErrCorrupt, errAnswers, len(all), len(ops))
	}
	for i, o := range ops {
		a := &all[i]
		a.Metadata.Custom = a.Custom
		o.ID, o.answered = a.Metadata.ID, &a.Metadata
		if o.Patching != nil {
			o.Patching.Status, o.JSON = patchStatus(a.Status), a.Body
		}
	}
	w.Publish(ops)
	return nil
}
