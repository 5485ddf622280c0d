package ask

import (
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/requests"
	"github.com/jaydb/jay/internal/shared"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/patch"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/schema"
	"github.com/jaydb/jay/storage"
)

// errCall is the error of a call that is none. It is an ids.ErrUsage.
var errCall = fmt.Errorf("%w: a call of another program", ids.ErrUsage)

// ErrUnknownCall is the error of a call that this version does not know.
var ErrUnknownCall = fmt.Errorf("%w: the program that has the database open does not know it: it is of another version", errCall)

// sentinels are the errors that a Failure names.
//
// Part of the protocol: a name must not change its meaning.
var sentinels = map[string]error{
	"canceled":        context.Canceled,
	"deadline":        context.DeadlineExceeded,
	"usage":           ids.ErrUsage,
	"invalid-id":      ids.ErrInvalid,
	"exhausted":       ids.ErrExhausted,
	"lead":            ids.ErrLeadTooLarge,
	"invalid":         metadata.ErrInvalid,
	"attachment":      metadata.ErrInvalidAttachment,
	"key":             errs.ErrKey,
	"closed":          errs.ErrClosed,
	"not-found":       errs.ErrNotFound,
	"exists":          errs.ErrExists,
	"collection":      errs.ErrCollection,
	"unique":          errs.ErrUnique,
	"schema":          errs.ErrSchema,
	"schema-rule":     errs.ErrSchemaRule,
	"index":           errs.ErrIndex,
	"index-exists":    errs.ErrIndexExists,
	"query":           errs.ErrQuery,
	"no-index":        errs.ErrNoIndex,
	"type":            errs.ErrType,
	"option":          errs.ErrOption,
	"needs-floor":     errs.ErrNeedsFloor,
	"needs-cluster":   errs.ErrNeedsCluster,
	"needs-capacity":  errs.ErrNeedsCapacity,
	"conflict":        storage.ErrConflict,
	"corrupt":         storage.ErrCorrupt,
	"unreadable":      storage.ErrUnreadable,
	"too-large":       storage.ErrTooLarge,
	"memory":          storage.ErrMemory,
	"unavailable":     storage.ErrUnavailable,
	"lease-lost":      errs.ErrLeaseLost,
	"unknown-outcome": storage.ErrUnknownOutcome,
	"read-only":       storage.ErrReadOnly,
	"failed":          storage.ErrFailed,
	"disk-full":       storage.ErrDiskFull,
	"not-writable":    storage.ErrNotWritable,
	"expired":         storage.ErrSnapshotExpired,
	"syntax":          query.ErrSyntax,
	"update":          query.ErrUpdate,
	"patch":           patch.ErrInvalid,
	"patch-test":      patch.ErrTestFailed,
	"patch-work":      patch.ErrTooMuchWork,
	"request":         requests.ErrOther,
	"shared":          shared.ErrRefused,
	"no-majority":     cluster.ErrNoMajority,
	"tag":             cluster.ErrTag,
	"other-cluster":   cluster.ErrOtherCluster,
	"restored":        cluster.ErrRestored,
}

// Failure is an error on its way to another program.
type Failure struct {
	Text string   `json:"text"`
	Is   []string `json:"is,omitempty"` // names of sentinels

	// At most one of these, with what it says.
	Conflict   *metadata.ConflictError        `json:"conflict,omitempty"`
	Exchange   *metadata.CompareExchangeError `json:"exchange,omitempty"`
	Document   *metadata.Error                `json:"document,omitempty"`
	Collection *metadata.CollectionError      `json:"collection,omitempty"`
	ID         *ids.Error                     `json:"id,omitempty"`
	Unique     *index.UniqueError             `json:"unique,omitempty"`
	Kind       *index.KindError               `json:"kind,omitempty"`
	Option     *index.OptionError             `json:"option,omitempty"`
	Function   *index.FunctionError           `json:"function,omitempty"`
	Compute    *index.ComputeError            `json:"compute,omitempty"`
	Value      *index.ValueError              `json:"value,omitempty"`
	Referrers  *index.ReferrersError          `json:"referrers,omitempty"`
	List       *query.ListError               `json:"list,omitempty"`
	Schema     *schema.Error                  `json:"schema,omitempty"`
	Rule       *schema.RuleError              `json:"rule,omitempty"`
	Compiler   *schema.CompilerError          `json:"compiler,omitempty"`
}

// failureOf returns err for the way, or nil for none.
func failureOf(err error) *Failure {
	if err == nil {
		return nil
	}
	f := &Failure{Text: err.Error()}
	for name, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			f.Is = append(f.Is, name)
		}
	}
	for _, target := range f.details() {
		if errors.As(err, target) {
			break
		}
	}
	return f
}

// details returns the places of errors that have a type, as errors.As takes them.
func (f *Failure) details() []any {
	return []any{&f.Conflict, &f.Exchange, &f.Document, &f.Collection, &f.ID, &f.Unique, &f.Kind, &f.Option, &f.Function, &f.Compute, &f.Value, &f.Referrers, &f.List, &f.Schema, &f.Rule, &f.Compiler}
}

// decode returns the error that f is of, or nil for none.
func (f *Failure) decode() error {
	if f == nil {
		return nil
	}
	e := &Error{text: f.Text}
	for _, detail := range []struct {
		there bool
		err   error
	}{
		{f.Conflict != nil, f.Conflict}, {f.Exchange != nil, f.Exchange}, {f.Document != nil, f.Document}, {f.Collection != nil, f.Collection},
		{f.ID != nil, f.ID}, {f.Unique != nil, f.Unique}, {f.Kind != nil, f.Kind}, {f.Option != nil, f.Option}, {f.Function != nil, f.Function}, {f.Compute != nil, f.Compute}, {f.Value != nil, f.Value}, {f.Referrers != nil, f.Referrers},
		{f.List != nil, f.List}, {f.Schema != nil, f.Schema}, {f.Rule != nil, f.Rule}, {f.Compiler != nil, f.Compiler},
	} {
		if detail.there {
			e.is = append(e.is, detail.err)
		}
	}
	for _, name := range f.Is {
		if sentinel := sentinels[name]; sentinel != nil {
			e.is = append(e.is, sentinel)
		}
	}
	return e
}

// Error is an error of a call, as the program that has carried it out has seen it.
type Error struct {
	text string
	is   []error
}

// Error returns the text of the error there.
func (e *Error) Error() string { return e.text }

// Unwrap returns the errors that it is.
func (e *Error) Unwrap() []error { return e.is }
