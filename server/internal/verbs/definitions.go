package verbs

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
)

// Definition is an index as a client has defined it: the JSON that it sent, and its
// fields. Each field is an index of package jay, named "NAME:FIELD". A definition that computes is a computed index of
// the same name, and has no fields.
type Definition struct {
	Name       string
	Collection string
	Fields     []string
	Computed   *jay.Computed           `json:",omitempty"`
	Places     []string                `json:",omitempty"` // the fields that are places
	Created    map[string]CreatedField `json:",omitempty"` // the fields that a map creates, with options of their own
	LockMode   string
	Priority   string
	State      string // Disabled, Faulty, or "" for one that is maintained
	Fault      string `json:",omitempty"` // why it is faulty
	Given      json.RawMessage

	record map[string]json.RawMessage // as it is stored, with members that only another version knows; nil for a new one
}

// States of definitions that are not maintained.
const (
	Disabled = "Disabled"
	Faulty   = "Error" // documents have refused it
)

// recorded has the members of the record of a Definition.
type recorded Definition

// UnmarshalJSON implements json.Unmarshaler.
func (d *Definition) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, (*recorded)(d)); err != nil {
		return err
	}
	return json.Unmarshal(text, &d.record)
}

// Change returns the change that stores the definition. Members of its record that this version does not know stay.
func (d *Definition) Change() jay.DefinitionChange {
	value := serve.MustJSON((*recorded)(d))
	if d.record != nil {
		members := maps.Clone(d.record)
		delete(members, "Fault")
		if err := json.Unmarshal(value, &members); err != nil {
			panic(err) // it was made here
		}
		value = serve.MustJSON(members)
	}
	return jay.DefinitionChange{Kind: serve.IndexKind, Name: d.Name, Value: value}
}

// Removal returns the change that removes the definition.
func (d *Definition) Removal() jay.DefinitionChange {
	return jay.DefinitionChange{Kind: serve.IndexKind, Name: d.Name}
}

// IndexName returns the name of the index of a field.
func (d *Definition) IndexName(field string) string { return d.Name + ":" + field }

// FindDefinition returns a definition, or nil.
func FindDefinition(c *serve.Call, name string) (*Definition, error) {
	stored, err := c.DB.Definitions().Get(c.Ctx, serve.IndexKind, name)
	if serve.IsMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d := new(Definition)
	return d, stored.Decode(d)
}

// Definitions returns the definitions of the database, in the order of their names.
func Definitions(c *serve.Call) (all []*Definition, err error) {
	list, err := c.DB.Definitions().List(c.Ctx, serve.IndexKind)
	if err != nil {
		return nil, err
	}
	for _, stored := range list {
		d := new(Definition)
		if err := stored.Decode(d); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// CheckEnabled refuses to read an index that is disabled, or faulty.
func (d *Definition) CheckEnabled() error {
	switch d.State {
	case Disabled:
		return serve.BadRequest("index %.150q is disabled: POST admin/indexes/enable builds it anew", d.Name)
	case Faulty:
		return serve.BadRequest("index %.150q is faulty: %s; RESET builds it anew", d.Name, d.Fault)
	}
	return nil
}

// MissingIndex is the error for a request that names an index which is not defined.
func MissingIndex(name string) *serve.Problem {
	return &serve.Problem{Status: http.StatusBadRequest, Kind: TypeIndexMissing, Message: fmt.Sprintf("there is no index %.150q", name)}
}

// TypeIndexMissing is the exception for an index that is not defined.
const TypeIndexMissing = serve.ExceptionPrefix + "Documents.Indexes.IndexDoesNotExistException"
