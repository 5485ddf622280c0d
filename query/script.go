package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/internal/script"
)

// Script is a projection by JavaScript: it makes an object from each document that a query finds.
// [Parse] makes it from
//
//	declare function out(o, c) { return { Customer: o.Customer, Company: c.Name } }
//	from Orders as o where o.Total > 5 load o.Company as c select out(o, c)
//
// or from select { ... }. It is immutable, and safe for concurrent use.
type Script struct {
	functions []string // as they are declared: "function out(o, c) { ... }"
	result    string   // behind select
	alias     string   // of the document; "" for none
	loads     []Load
	program   *script.Projection
	values    map[string]json.RawMessage // of parameters
}

// Load names further documents that a projection by JavaScript reads: load Company as c.
type Load struct {
	Path jsonpath.Path // of the IDs
	Name string
	From string // the name of an earlier load, with which Path begins: the IDs are in those documents; "" for the document itself
	List bool   // "as c[]": the name is an array of documents, null for each that is not there; otherwise it is the first one
}

// Bounds of a projection by JavaScript. A script may be as long as the text of a query.
const (
	MaxDeclared        = 64            // functions that a query declares
	MaxLoads           = 16            // names that load gives
	MaxScriptLoads     = 1000          // documents that are read for one document
	MaxScriptSteps     = 100_000       // steps for one document
	MaxScriptBytes     = 16 << 20      // bytes that are allocated for one document
	MaxProjectionSteps = 2_000_000_000 // steps of one query
)

// ScriptError says why the JavaScript of a query fails for a document, and where in the text of the
// query.
type ScriptError struct {
	Line, Column int // from 1; 0 if unknown
	Message      string
	cause        error
}

func (e *ScriptError) Error() string {
	if e.Line == 0 {
		return "JavaScript: " + e.Message
	}
	return fmt.Sprintf("JavaScript, line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// Unwrap returns the error of a function that the script has called.
func (e *ScriptError) Unwrap() error { return e.cause }

// Loads returns the Loads of the query, which it runs for each document. The result must not be
// changed.
func (s *Script) Loads() []Load { return s.loads }

// Scripted is a document for [Script.Run].
type Scripted struct {
	ID       string
	Document []byte              // JSON, with @metadata
	IDs      [][]string          // parallel to Loads: the IDs at their paths, "" for a value that is not an ID
	Steps    int64               // that are left to the query; those of the document are bounded as well
	Take     func(n int64) error // called before memory is taken; its error is returned as it is. May be nil
}

// Run returns the object that the script makes from a document, and the number of steps that the
// script has run. load returns the JSON of a document with its @metadata, or nil if there is none.
// The error is a *ScriptError, the error of ctx, or an error of Take.
func (s *Script) Run(ctx context.Context, in Scripted, load func(id string) ([]byte, error)) (row []byte, steps int64, err error) {
	limits := script.Limits{Steps: min(MaxScriptSteps, in.Steps), Bytes: MaxScriptBytes, Calls: MaxScriptLoads}
	if limits.Steps <= 0 {
		return nil, 0, &ScriptError{Message: fmt.Sprintf("the query takes more than %d steps", MaxProjectionSteps)}
	}
	given := script.Projected{ID: in.ID, Document: in.Document, Alias: s.alias, Parameters: s.values, Limits: limits, Take: in.Take}
	for i, l := range s.loads {
		given.Loaded = append(given.Loaded, script.Loaded{Name: l.Name, List: l.List, IDs: in.IDs[i]})
	}
	row, left, err := s.program.Run(ctx, given, loader(load))
	var e *script.Error
	if errors.As(err, &e) {
		err = &ScriptError{e.Line, e.Column, e.Message, e.Cause}
	}
	return row, limits.Steps - max(left.Steps, 0), err
}

// loader is the script.Host of a projection, which writes nothing.
type loader func(id string) ([]byte, error)

func (l loader) Load(id string) ([]byte, error) { return l(id) }

func (loader) Put(string, []byte, string) (string, error) { return "", errWrites }

func (loader) Delete(string) (bool, error) { return false, errWrites }

var errWrites = errors.New("a query writes nothing")

// literal returns a part of the script with the values of parameters in it.
func (s *Script) literal(text string) string {
	if len(s.values) == 0 {
		return text
	}
	return script.WithParameters(text, func(name string) []byte { return s.values[name] })
}

// declared returns the functions as a query declares them, each behind the other.
func (s *Script) declared() string {
	var b strings.Builder
	for _, f := range s.functions {
		b.WriteString("declare " + s.literal(f) + " ")
	}
	return b.String()
}

// loading returns the clause that loads documents, or "".
func (s *Script) loading() string {
	var parts []string
	for i, l := range s.loads {
		part := pathString(l.Path) + " as " + printName(l.Name)
		if l.From == "" && slices.ContainsFunc(s.loads[:i], func(other Load) bool { return other.Name == l.Path.Root() }) {
			part = printName(s.alias) + "." + part // a member that is named like an earlier load
		}
		if l.List {
			part += "[]"
		}
		parts = append(parts, part)
	}
	if parts == nil {
		return ""
	}
	return " load " + strings.Join(parts, ", ")
}
