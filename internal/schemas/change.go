package schemas

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/definitions"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/schema"
	"github.com/jaydb/jay/storage"
)

// Set stores a rule in the place of the one that the collection has. When it returns, no write commits that was not checked against it, and
// the documents that are there are being validated in the background. A cluster-wide transaction that the coordinator is deciding is carried out
// as it was checked; its documents are validated.
func (c *Current) Set(ctx context.Context, e *env.Env, rule schema.Rule) error {
	rule.Schema = bytes.Clone(rule.Schema)
	if err := checkRule(&rule); err != nil {
		return err
	}
	if err := c.checkCompiles(e, &rule); err != nil {
		return err
	}
	value, err := encode(&rule)
	if err != nil {
		return err
	}
	return c.commit(ctx, e, func(tx storage.Tx) error {
		if err := checkBounds(tx, &rule); err != nil {
			return err
		}
		tx.RequireFeature(storage.FeatureSchemas)
		return definitions.Stage(tx, []definitions.Change{
			definitions.Schemas.Change(rule.Collection, value),
			definitions.SchemaReports.Change(rule.Collection, nil),
		})
	})
}

// encode returns a rule as it is stored, with the text of the schema as it was given.
func encode(rule *schema.Rule) (json.RawMessage, error) {
	head, err := json.Marshal(struct {
		Collection string      `json:"collection"`
		Mode       schema.Mode `json:"mode"`
	}{rule.Collection, rule.Mode})
	if err != nil {
		return nil, err
	}
	value := append(head[:len(head)-1], `,"schema":`...)
	return append(append(value, rule.Schema...), '}'), nil
}

// checkCompiles returns why a rule cannot be set. A program that cannot run a rule may switch it off, if it leaves the schema as it is.
func (c *Current) checkCompiles(e *env.Env, rule *schema.Rule) error {
	if rule.Mode == schema.Off {
		there, err := Get(e.Engine, rule.Collection)
		if err != nil {
			return err
		}
		if there != nil && bytes.Equal(there.Schema, rule.Schema) {
			return nil
		}
	}
	if c.Compiler == nil {
		return &schema.CompilerError{Collection: rule.Collection}
	}
	_, err := c.try(rule)
	if refused := (*schema.RuleError)(nil); errors.As(err, &refused) {
		own := *refused
		own.Collection = rule.Collection
		return &own
	}
	if err != nil {
		return &schema.RuleError{Collection: rule.Collection, Rule: err.Error()}
	}
	return nil
}

// checkBounds checks what all rules of the database may be together.
func checkBounds(tx storage.Tx, rule *schema.Rule) error {
	all, err := List(tx)
	if err != nil {
		return err
	}
	count, size := 1, len(rule.Schema)
	for _, one := range all {
		if format.CollectionKey(one.Collection) != format.CollectionKey(rule.Collection) {
			count, size = count+1, size+len(one.Schema)
		}
	}
	switch {
	case count > schema.MaxRules:
		return &schema.RuleError{Collection: rule.Collection, Rule: fmt.Sprintf("a database has at most %d schemas", schema.MaxRules)}
	case size > schema.MaxTotalBytes:
		return &schema.RuleError{Collection: rule.Collection, Rule: fmt.Sprintf("the schemas of a database have at most %d bytes together, not %d", schema.MaxTotalBytes, size)}
	}
	return nil
}

// Remove removes the rule of a collection, or returns ErrNotFound.
func (c *Current) Remove(ctx context.Context, e *env.Env, collection string) error {
	return c.commit(ctx, e, func(tx storage.Tx) error {
		there, err := definitions.Schemas.Get(tx, collection)
		if err == nil && there == nil {
			err = errNoRule
		}
		if err != nil {
			return err
		}
		return definitions.Stage(tx, []definitions.Change{
			definitions.Schemas.Change(collection, nil),
			definitions.SchemaReports.Change(collection, nil),
		})
	})
}

// Move gives a collection the rule of another one, which is renamed to it. With last, the other one has it no more, and
// the documents are validated again: those that have come since the rule did were not checked. It does nothing if the other
// one has none, and refuses a rule that the new collection has already, unless it is the same.
func (c *Current) Move(ctx context.Context, e *env.Env, from, to string, last bool) error {
	if rule, err := Get(e.Engine, from); err != nil || rule == nil {
		return err
	}
	return c.commit(ctx, e, func(tx storage.Tx) error {
		rule, there, err := moving(tx, from, to)
		if err != nil || rule == nil {
			return err
		}
		var changes []definitions.Change
		if there == nil || last {
			moved := *rule
			moved.Collection = to
			value, err := encode(&moved)
			if err != nil {
				return err
			}
			changes = append(changes, definitions.Schemas.Change(to, value), definitions.SchemaReports.Change(to, nil))
		}
		if last {
			changes = append(changes, definitions.Schemas.Change(from, nil), definitions.SchemaReports.Change(from, nil))
		}
		return definitions.Stage(tx, changes)
	})
}

// CheckMove returns why Move would refuse to give a collection the rule of another one.
func (c *Current) CheckMove(e *env.Env, from, to string) error {
	_, _, err := moving(e.Engine, from, to)
	return err
}

// moving returns the rule that moves, nil for none, and the one that the new collection has already. They are the same.
func moving(r docs.Getter, from, to string) (rule, there *schema.Rule, err error) {
	if rule, err = Get(r, from); err != nil || rule == nil {
		return nil, nil, err
	}
	if there, err = Get(r, to); err != nil {
		return nil, nil, err
	}
	if there != nil && (there.Mode != rule.Mode || !bytes.Equal(there.Schema, rule.Schema)) {
		return nil, nil, &schema.RuleError{Collection: to, Rule: fmt.Sprintf("it has a schema of its own, and %q, which would become it, has another one: remove one of them", errs.Shorten(from))}
	}
	return rule, there, nil
}

// commit changes the stored rules by fn, and then the current ones. Once the commit has begun, the end of ctx has no effect, so that memory
// and disk stay the same.
func (c *Current) commit(ctx context.Context, e *env.Env, fn func(storage.Tx) error) error {
	select {
	case c.change <- struct{}{}:
		defer func() { <-c.change }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	background := context.WithoutCancel(ctx)
	if err := e.Engine.Update(background, true, fn); err != nil {
		return err // after an unknown outcome the database refuses all writes
	}
	if !e.Engine.Shared() { // a shared engine follows them
		rules, err := c.Read(e.Engine)
		if err != nil {
			return err
		}
		c.Replace(rules)
		if err := passWrites(background, e); err != nil {
			return err
		}
	}
	c.pass.Wake()
	return nil
}
