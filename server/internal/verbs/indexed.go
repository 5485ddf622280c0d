package verbs

import (
	"errors"
	"regexp"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
)

// FromIndex rewrites a query of an index as one of its collection, with the same results. Of a computed index, which it returns, the text stays
// a query of the index.
func FromIndex(c *serve.Call, text string) (string, *Computed, error) {
	m := indexInQuery.FindStringSubmatchIndex(text)
	if m == nil {
		return text, nil, nil
	}
	name := ""
	for i := 4; i < 10; i += 2 {
		if m[i] >= 0 {
			name = text[m[i]:m[i+1]]
		}
	}
	name = strings.NewReplacer(`\'`, `'`, `\"`, `"`, `\\`, `\`).Replace(name)
	found, err := FindIndex(c, name)
	if err != nil {
		return "", nil, err
	}
	c.Index = found.Name
	source := ""
	if found.Computed != nil {
		source = "index "
		name = found.Computed.Name
	} else {
		name = found.Collection
	}
	quoted := "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(name) + "'"
	return text[m[2]:m[3]] + source + quoted + text[m[1]:], found.Computed, nil
}

// Index is an index that a request names: of a definition of fields, of queries, or a computed one.
type Index struct {
	Name       string // as clients know it
	Collection string // "" if it is computed
	Fields     []string
	Computed   *Computed // nil if it is not computed
}

// FindIndex returns the index of a name. It refuses one that is disabled, and one that is not there.
func FindIndex(c *serve.Call, name string) (Index, error) {
	d, err := FindDefinition(c, name)
	if err != nil {
		return Index{}, err
	}
	if d != nil {
		if err := d.CheckEnabled(); err != nil {
			return Index{}, err
		}
		if d.Computed == nil {
			return Index{Name: d.Name, Collection: d.Collection, Fields: d.Fields}, nil
		}
	} else {
		ix, err := FindAutomatic(c, name)
		if err != nil {
			return Index{}, err
		}
		if ix != nil {
			return Index{Name: AutomaticName(*ix), Collection: ix.Collection, Fields: AutomaticFields(*ix)}, nil
		}
	}
	declared, err := jay.ComputedOf(c.DB).Declared(c.Ctx, name)
	switch {
	case errors.Is(err, jay.ErrNoIndex) && d != nil:
		return Index{}, serve.BadRequest("index %.150q is not there any more: its collection was dropped, or documents have refused it; RESET builds it anew", d.Name)
	case errors.Is(err, jay.ErrNoIndex):
		return Index{}, MissingIndex(name)
	case err != nil:
		return Index{}, err
	}
	ix := Index{Name: declared.Name, Computed: &Computed{Computed: declared, Defined: d}}
	if d != nil {
		ix.Name = d.Name
	}
	return ix, nil
}

// indexInQuery finds the index that a query names.
var indexInQuery = regexp.MustCompile(`(?is)^(\s*from\s+)index\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\s'"]+))`)
