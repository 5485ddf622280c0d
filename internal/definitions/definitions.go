// Package definitions keeps what programs declare for a database in the database: JSON objects by kind and name,
// beside the documents. A server keeps the indexes and the configurations in it that its clients have
// given. What they mean is for those to say who store them.
package definitions

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Bounds of a definition.
const (
	MaxKindBytes  = 64
	MaxNameBytes  = 512
	MaxValueBytes = 256 << 10
	MaxChanges    = 1024 // in a commit
)

// Definition is a definition, in memory of its own.
type Definition struct {
	Name   string          // folded
	Number uint64          // of the change that has written it
	Value  json.RawMessage // as it was given
}

// Change stores a definition, or removes it.
type Change struct {
	Kind, Name string
	Value      json.RawMessage // nil removes the definition
	IfMissing  bool            // one that is there stays as it is
}

// check returns an error for a change that can never be made.
func (c *Change) check() error {
	if err := CheckKey(c.Kind, c.Name); err != nil {
		return err
	}
	if c.Value == nil {
		return nil
	}
	if len(c.Value) > MaxValueBytes {
		return fmt.Errorf("%w: it has %d bytes, and %d are the most", ids.ErrUsage, len(c.Value), MaxValueBytes)
	}
	return CheckValue(c.Value)
}

// CheckKey returns an error for a kind or a name that no definition has.
func CheckKey(kind, name string) error {
	if kind == "" || len(kind) > MaxKindBytes {
		return fmt.Errorf("%w: a kind of definitions has 1 to %d bytes", ids.ErrUsage, MaxKindBytes)
	}
	for i := range len(kind) {
		if b := kind[i]; (b < 'a' || b > 'z') && (b < '0' || b > '9') && b != '-' {
			return fmt.Errorf("%w: a kind of definitions has lower-case letters, digits and hyphens, and not %q", ids.ErrUsage, kind)
		}
	}
	return ids.Rules{Separator: ids.DefaultSeparator, MaxBytes: MaxNameBytes}.Check(name)
}

// CheckValue returns an error unless value is a JSON object. Its members are not looked at.
func CheckValue(value []byte) error {
	if !json.Valid(value) || bytes.TrimLeft(value, " \t\r\n")[0] != '{' {
		return fmt.Errorf("%w: a definition is a JSON object", ids.ErrUsage)
	}
	return nil
}

// Own is a kind of definitions that belongs to package jay itself. Programs cannot name it, as CheckKey refuses it. The names are those of
// collections.
type Own string

// Schemas are the rules of package schemas. Part of the on-disk format. Must not change.
const Schemas Own = "@schemas"

// SchemaReports say what package schemas has found in the documents that were there when a rule was set. Part of the on-disk format. Must
// not change.
const SchemaReports Own = "@schema-reports"

// IsKey reports whether there can be a definition of a kind and a folded name: of a program, or of package jay itself.
func IsKey(kind, name string) bool {
	switch Own(kind) {
	case Schemas, SchemaReports:
		return name != "" && metadata.CheckCollection(name) == nil
	}
	return CheckKey(kind, name) == nil
}

// Get returns the definition of a collection, or nil if there is none.
func (o Own) Get(r docs.Getter, collection string) (*Definition, error) {
	return get(r, string(o), collection)
}

// List returns all definitions of the kind, in the order of their folded names.
func (o Own) List(r env.Walker) ([]*Definition, error) { return list(r, string(o)) }

// Prefix returns the prefix of the keys of the kind.
func (o Own) Prefix() []byte { return format.DefinitionPrefix(string(o)) }

// Change returns the change that stores a value, or removes it if it is nil, for Stage. Check does not accept it: the owner bounds its values.
func (o Own) Change(collection string, value json.RawMessage) Change {
	return Change{Kind: string(o), Name: collection, Value: value}
}

// Get returns a definition, or nil if there is none.
func Get(r docs.Getter, kind, name string) (*Definition, error) {
	if err := CheckKey(kind, name); err != nil {
		return nil, err
	}
	return get(r, kind, name)
}

func get(r docs.Getter, kind, name string) (*Definition, error) {
	folded := format.FoldName(name)
	record, closer, err := r.Get(format.DefinitionKey(kind, folded))
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d, err := decode(folded, record)
	return d, errs.First(err, closer.Close())
}

func decode(folded string, record []byte) (*Definition, error) {
	number, value, err := format.DecodeDefinition(record)
	if err != nil {
		return nil, fmt.Errorf("definition %q: %w: %w", folded, errs.ErrCorrupt, err)
	}
	return &Definition{folded, number, bytes.Clone(value)}, nil
}

// List returns the definitions of a kind, in the order of their folded names.
func List(r env.Walker, kind string) ([]*Definition, error) {
	if err := CheckKey(kind, "a"); err != nil {
		return nil, err
	}
	return list(r, kind)
}

func list(r env.Walker, kind string) (all []*Definition, err error) {
	prefix := format.DefinitionPrefix(kind)
	err = env.Each(r, prefix, format.PrefixEnd(prefix), func(key, value []byte) error {
		d, err := decode(string(bytes.TrimSuffix(key[len(prefix):], []byte{0})), value)
		all = append(all, d)
		return err
	})
	return all, err
}

// Last returns the number of the last change; 0 if there was none.
func Last(r docs.Getter) (uint64, error) {
	n, _, err := env.NumberAt(r, format.LastDefinitionKey())
	if err != nil {
		return 0, fmt.Errorf("number of the last definition: %w", err)
	}
	return n, nil
}

// Check returns an error for changes of which one can never be made.
func Check(changes []Change) error {
	if len(changes) > MaxChanges {
		return fmt.Errorf("%w: %d changes of definitions, and %d are the most", ids.ErrUsage, len(changes), MaxChanges)
	}
	for i := range changes {
		if err := changes[i].check(); err != nil {
			return fmt.Errorf("definition %q of the kind %q: %w", errs.Shorten(changes[i].Name), errs.Shorten(changes[i].Kind), err)
		}
	}
	return nil
}

// Stage stages changes that Check accepts, or those of an Own. They have one number, above those of all changes before; without a
// change of anything there is none.
func Stage(tx storage.Tx, changes []Change) error {
	last, err := Last(tx)
	if err != nil {
		return err
	}
	changed := false
	for _, c := range changes {
		key := format.DefinitionKey(c.Kind, format.FoldName(c.Name))
		there, err := docs.Exists(tx, key)
		if err != nil {
			return err
		}
		switch {
		case c.Value == nil && there:
			tx.Delete(key)
		case c.Value == nil, there && c.IfMissing:
			continue
		default:
			tx.Set(key, format.AppendDefinition(nil, last+1, c.Value), nil)
		}
		changed = true
	}
	if !changed {
		return nil
	}
	tx.RequireFeature(storage.FeatureDefinitions)
	tx.Set(format.LastDefinitionKey(), binary.BigEndian.AppendUint64(nil, last+1), nil)
	return nil
}
