package verbs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
)

// Definition is an index as a client has defined it: the JSON that it sent, and its
// fields. Each field is an index of package jay, named "NAME:FIELD".
type Definition struct {
	Name       string
	Collection string
	Fields     []string
	LockMode   string
	Priority   string
	Given      json.RawMessage
}

// IndexName returns the name of the index of a field.
func (d *Definition) IndexName(field string) string { return d.Name + ":" + field }

// DefinitionID returns the ID of the record of a definition in the server's own database.
func DefinitionID(c *serve.Call, name string) string {
	return serve.DefinitionPrefix + c.Database.Key + "/" + strings.ToLower(name)
}

// FindDefinition returns a definition, or nil.
func FindDefinition(c *serve.Call, name string) (*Definition, error) {
	doc, err := c.Server.Databases.System.Get(c.Ctx, DefinitionID(c, name))
	if serve.IsMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d := new(Definition)
	return d, doc.Decode(d)
}

// Definitions returns the definitions of the database, in the order of their names.
func Definitions(c *serve.Call) (all []*Definition, err error) {
	for doc, err := range c.Server.Databases.System.Documents(c.Ctx, jay.Scan{Prefix: serve.DefinitionPrefix + c.Database.Key + "/"}) {
		if err != nil {
			return nil, err
		}
		d := new(Definition)
		if err := doc.Decode(d); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// FromIndex rewrites a query of an index as one of its collection, with the same results.
func FromIndex(c *serve.Call, text string) (string, error) {
	m := indexInQuery.FindStringSubmatchIndex(text)
	if m == nil {
		return text, nil
	}
	name := ""
	for i := 4; i < 10; i += 2 {
		if m[i] >= 0 {
			name = text[m[i]:m[i+1]]
		}
	}
	name = strings.NewReplacer(`\'`, `'`, `\"`, `"`, `\\`, `\`).Replace(name)
	d, err := FindDefinition(c, name)
	if err != nil {
		return "", err
	}
	if d == nil {
		return "", MissingIndex(name)
	}
	c.Index = d.Name
	return text[m[2]:m[3]] + "'" + strings.ReplaceAll(d.Collection, "'", `\'`) + "'" + text[m[1]:], nil
}

// indexInQuery finds the index that a query names.
var indexInQuery = regexp.MustCompile(`(?is)^(\s*from\s+)index\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\s'"]+))`)

// MissingIndex is the error for a request that names an index which is not defined.
func MissingIndex(name string) *serve.Problem {
	return &serve.Problem{Status: http.StatusBadRequest, Kind: TypeIndexMissing, Message: fmt.Sprintf("there is no index %.150q", name)}
}

// TypeIndexMissing is the exception for an index that is not defined.
const TypeIndexMissing = serve.ExceptionPrefix + "Documents.Indexes.IndexDoesNotExistException"
