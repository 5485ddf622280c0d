// Package schemas has the rules about the shape of documents as an open database has them: where they are stored, which rule a collection has,
// what a document violates, and what was found in the documents that were there when a rule was set.
//
// A rule is a definition of the kind definitions.Schemas, under the folded name of its collection. Package write asks for it before a
// transaction, and compares it in the transaction. What JSON Schema means is decided by the schema.Compiler that the program has given.
package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jaydb/jay/internal/definitions"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/schema"
)

// Rule is the rule of a collection, compiled. It does not change.
type Rule struct {
	schema.Rule
	folded    string
	validator schema.Validator // nil if the rule is off, or the program cannot run it
	missing   error            // a *schema.CompilerError if the program cannot run it
}

// Check returns what body violates, with the ID left out, or nil. A nil Rule, and one that the program cannot run, finds nothing. It takes no
// lock, and must not be called in a transaction of the engine.
func (r *Rule) Check(body []byte) (found *schema.Error) {
	if r == nil || r.validator == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			found = r.violated([]schema.Violation{{Message: fmt.Sprintf("it cannot be checked: the validator panicked: %v", p)}}, 1)
		}
	}()
	if violations, count := r.validator.Validate(body, schema.MaxViolations); count > 0 {
		return r.violated(violations, count)
	}
	return nil
}

// violated returns an Error within its bounds, whatever a validator has returned.
func (r *Rule) violated(violations []schema.Violation, count int) *schema.Error {
	if len(violations) == 0 {
		violations = []schema.Violation{{Message: "it violates the schema"}}
	}
	violations = violations[:min(len(violations), schema.MaxViolations)]
	return &schema.Error{Collection: r.Collection, Count: max(count, len(violations)), Violations: violations}
}

// Refusal returns why a document is not written in which Check has found something, or nil. id is "" for one that is not made yet.
func (r *Rule) Refusal(found *schema.Error, id string) error {
	switch {
	case r == nil:
		return nil
	case r.missing != nil:
		return r.missing
	case found == nil || r.Mode != schema.Refuse:
		return nil
	}
	own := *found
	own.ID = id
	return &own
}

// stored is a rule as it is stored. Part of the on-disk format.
type stored struct {
	Collection string          `json:"collection"`
	Mode       schema.Mode     `json:"mode"`
	Schema     json.RawMessage `json:"schema"`
}

// decode returns the rule of a definition.
func decode(d *definitions.Definition) (rule schema.Rule, err error) {
	var s stored
	if err := json.Unmarshal(d.Value, &s); err != nil {
		return rule, fmt.Errorf("the schema of %q: %w: %w", d.Name, errs.ErrCorrupt, err)
	}
	rule = schema.Rule{Collection: s.Collection, Mode: s.Mode, Schema: s.Schema, Number: d.Number}
	if err := checkStored(&rule, d.Name); err != nil {
		return rule, fmt.Errorf("the schema of %q: %w: %w", d.Name, errs.ErrCorrupt, err)
	}
	return rule, nil
}

// checkStored returns what is wrong with a rule that lies under a folded name.
func checkStored(rule *schema.Rule, folded string) error {
	if format.CollectionKey(rule.Collection) != folded {
		return fmt.Errorf("it is of the collection %q", errs.Shorten(rule.Collection))
	}
	return checkRule(rule)
}

// CheckValue returns what is wrong with a stored rule. Verify and Repair need no compiler.
func CheckValue(folded string, value []byte) error {
	_, err := decode(&definitions.Definition{Name: folded, Value: value})
	return err
}

// checkRule checks what needs no compiler.
func checkRule(r *schema.Rule) error {
	refuse := func(rule, value string) error {
		return &schema.RuleError{Collection: r.Collection, Rule: rule, Value: value}
	}
	if err := metadata.CheckCollection(r.Collection); err != nil {
		return err
	}
	if r.Collection == "" || r.Collection[0] == '@' {
		return refuse("a rule is of a collection with a name that does not begin with @", r.Collection)
	}
	if err := r.Mode.Check(); err != nil {
		err.(*schema.RuleError).Collection = r.Collection
		return err
	}
	if len(r.Schema) > schema.MaxBytes {
		return refuse(fmt.Sprintf("a schema has at most %d bytes, not %d", schema.MaxBytes, len(r.Schema)), "")
	}
	if first := bytes.TrimLeft(r.Schema, " \t\r\n"); len(first) == 0 || first[0] != '{' {
		return refuse("a schema is a JSON object", string(r.Schema))
	}
	scanned, err := metadata.Scan(r.Schema, metadata.Limits{MaxBytes: schema.MaxBytes, MaxDepth: schema.MaxDepth})
	if err != nil {
		return refuse(err.Error(), "")
	}
	if scanned.Metadata != nil {
		return refuse("a schema has no member @metadata", "")
	}
	return nil
}

// Rules are the rules of a database, compiled. A nil *Rules has no rule.
type Rules struct {
	byFolded map[string]*Rule
}

// Of returns the rule of a collection that is to be run, or nil.
func (r *Rules) Of(foldedCollection string) *Rule {
	if r == nil {
		return nil
	}
	return r.byFolded[foldedCollection]
}

// All calls fn with each rule that is to be run, in no order.
func (r *Rules) All(fn func(*Rule)) {
	if r != nil {
		for _, one := range r.byFolded {
			fn(one)
		}
	}
}

// Current are the rules of an open database. Compiler is set before Open. It is safe for concurrent use.
type Current struct {
	Compiler schema.Compiler // nil for none

	rules  atomic.Pointer[Rules] // nil for none
	change chan struct{}         // holds a token while nobody changes the rules
	warned tallies
	pass   *Pass
}

// Load returns the rules, nil for none. A transaction that writes documents loads them once per run.
func (c *Current) Load() *Rules { return c.rules.Load() }

// Replace makes rules, which are stored, the current ones.
func (c *Current) Replace(rules *Rules) { c.rules.Store(rules) }

// Open reads the rules.
func (c *Current) Open(e *env.Env) error {
	c.change = make(chan struct{}, 1)
	rules, err := c.Read(e.Engine)
	if err == nil {
		c.Replace(rules)
	}
	return err
}

// Read returns the rules that r shows, nil for none. What the current ones have compiled is used again.
func (c *Current) Read(r env.Walker) (*Rules, error) {
	all, err := List(r)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	known := c.Load()
	rules := &Rules{byFolded: make(map[string]*Rule, len(all))}
	for _, one := range all {
		if one.Mode == schema.Off {
			continue
		}
		folded := format.CollectionKey(one.Collection)
		if old := known.Of(folded); old != nil && old.Number == one.Number && old.Mode == one.Mode && bytes.Equal(old.Schema, one.Schema) {
			rules.byFolded[folded] = old
			continue
		}
		rule := &Rule{Rule: one, folded: folded}
		rule.validator, rule.missing = c.compile(&one)
		rules.byFolded[folded] = rule
	}
	return rules, nil
}

// compile returns the validator of a rule, or a *schema.CompilerError.
func (c *Current) compile(rule *schema.Rule) (v schema.Validator, err error) {
	if c.Compiler == nil {
		return nil, &schema.CompilerError{Collection: rule.Collection}
	}
	if v, err = c.try(rule); err != nil {
		return nil, &schema.CompilerError{Collection: rule.Collection, Cause: err.Error()}
	}
	return v, nil
}

// try is compile with the error of the compiler. A panic is one.
func (c *Current) try(rule *schema.Rule) (v schema.Validator, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, fmt.Errorf("the compiler panicked: %v", p)
		}
	}()
	if v, err = c.Compiler.Compile(rule.Schema); err == nil && v == nil {
		err = errors.New("the compiler has returned no validator")
	}
	return v, err
}

// List returns all rules that r shows, also those that are off, in the order of their folded names.
func List(r env.Walker) ([]schema.Rule, error) {
	found, err := definitions.Schemas.List(r)
	if err != nil {
		return nil, err
	}
	all := make([]schema.Rule, len(found))
	for i, d := range found {
		if all[i], err = decode(d); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Get returns the rule of a collection, or nil.
func Get(r docs.Getter, collection string) (*schema.Rule, error) {
	d, err := definitions.Schemas.Get(r, collection)
	if err != nil || d == nil {
		return nil, err
	}
	rule, err := decode(d)
	return &rule, err
}
