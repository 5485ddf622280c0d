package verbs

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/server/internal/serve"
)

// FromIndex rewrites a query of an index as one of its collection, with the same results. Of a computed index, which it returns, the text stays
// a query of the index. The index is the zero one if the query names none; the text must go through its AdaptText.
func FromIndex(c *serve.Call, text string) (string, Index, error) {
	m := indexInQuery.FindStringSubmatchIndex(text)
	if m == nil {
		return text, Index{}, nil
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
		return "", found, err
	}
	c.Index = found.Name
	source := ""
	if found.Computed != nil {
		source = "index "
		name = found.Computed.Name
	} else {
		name = found.Collection
	}
	return text[m[2]:m[3]] + source + serve.Quote(name) + text[m[1]:], found, nil
}

// Index is an index that a request names: of a definition of fields, of queries, or a computed one.
type Index struct {
	Name       string // as clients know it
	Collection string // "" if it is computed
	Fields     []string
	Computed   *Computed // nil if it is not computed

	Defined *Definition // what a client has defined; nil for others
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
			return Index{Name: d.Name, Collection: d.Collection, Fields: d.Fields, Defined: d}, nil
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
		if declared, err = revive(c, d.Name); err != nil {
			return Index{}, err
		}
	case errors.Is(err, jay.ErrNoIndex):
		return Index{}, MissingIndex(name)
	case err != nil:
		return Index{}, err
	}
	ix := Index{Name: declared.Name, Computed: &Computed{Computed: declared, Defined: d}, Defined: d}
	if d != nil {
		ix.Name = d.Name
	}
	return ix, nil
}

// indexInQuery finds the index that a query names.
var indexInQuery = regexp.MustCompile(`(?is)^(\s*from\s+)index\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\s'"]+))`)

// revivePatience is how long a request waits for an index that it declares again. The build then goes on.
const revivePatience = 2 * time.Second

// revive declares the computed index of a definition again, which is gone: with its collection, which was dropped, after a crash between the record of the
// definition and its index, or as documents have refused it when its request had been answered. In the last case they do so again, and the
// definition is faulty from then on.
func revive(c *serve.Call, name string) (declared jay.Computed, err error) {
	c.Server.Defining.Lock()
	defer c.Server.Defining.Unlock()
	d, err := FindDefinition(c, name)
	if err != nil {
		return declared, err
	}
	if d == nil || d.Computed == nil {
		return declared, MissingIndex(name)
	}
	if err := d.CheckEnabled(); err != nil {
		return declared, err
	}
	indexes := jay.ComputedOf(c.DB)
	if declared, err = indexes.Declared(c.Ctx, name); !errors.Is(err, jay.ErrNoIndex) {
		return declared, err // another request was first
	}
	ctx, cancel := context.WithTimeout(c.Ctx, revivePatience)
	defer cancel()
	err = indexes.Ensure(ctx, *d.Computed)
	if err == nil {
		err = d.EnsureSides(ctx, c.DB)
	}
	switch {
	case errors.Is(err, jay.ErrReadOnly):
		return declared, serve.BadRequest("index %.150q is not there any more, and the database is not written to here", d.Name)
	case errors.Is(err, jay.ErrInvalidDocument) || errors.Is(err, jay.ErrIndex):
		d.State, d.Fault = Faulty, serve.OneLine(err.Error())
		if err := c.DB.Definitions().Change(c.Ctx, d.Change()); err != nil {
			return declared, err
		}
		return declared, d.CheckEnabled()
	case err != nil && ctx.Err() == nil:
		return declared, err
	}
	return indexes.Declared(c.Ctx, name)
}

// AdaptText returns the text of a query of the index as one for documents, and its parameters: of an index of fields that are searched, found exactly or suggest words, with
// what the definition says of them, and without parameters. A computed index adapts its queries itself.
func (ix *Index) AdaptText(text string, given map[string]any) (string, map[string]any, error) {
	if ix.Computed != nil {
		return text, given, nil
	}
	return ix.adaptText(text, given)
}

// adaptText is AdaptText for every index.
func (ix *Index) adaptText(text string, given map[string]any) (string, map[string]any, error) {
	if ix.Defined == nil {
		return text, given, nil
	}
	options := ix.Defined.Options()
	if len(options) == 0 {
		return text, given, nil
	}
	q, err := query.Parse(text, given)
	if err != nil {
		return "", nil, err
	}
	if err := options.adaptQuery(q); err != nil {
		return "", nil, err
	}
	return q.String(), nil, nil
}

// Query returns a query that may name an index by any name that clients know: of a definition, of queries, or computed. What a definition
// says of its fields holds. A computed index answers with its entries.
func Query(c *serve.Call, text string, given map[string]any) (q jay.Query[jay.Row], err error) {
	text, ix, err := FromIndex(c, text)
	if err != nil {
		return q, err
	}
	if text, given, err = ix.adaptText(text, given); err != nil {
		return q, err
	}
	return c.DB.RQL(text, given)
}
