package verbs

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/server/internal/serve"
)

// Computed is a computed index that a request names.
type Computed struct {
	jay.Computed
	Defined *Definition // what a client has defined; nil for an index that a program has declared
}

// FindComputed returns the computed index of a name, or nil.
func FindComputed(c *serve.Call, name string) (*jay.ComputedInfo, error) {
	list, err := jay.ComputedOf(c.DB).List(c.Ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(one jay.ComputedInfo) bool { return strings.EqualFold(one.Name, name) })
	if i < 0 {
		return nil, nil
	}
	return &list[i], nil
}

// Programs returns the computed indexes that programs have declared: those of no definition.
func Programs(all []jay.ComputedInfo, defined []*Definition) (list []jay.ComputedInfo) {
	for _, one := range all {
		if !slices.ContainsFunc(defined, func(d *Definition) bool { return strings.EqualFold(d.Name, one.Name) }) {
			list = append(list, one)
		}
	}
	return list
}

// storing has the fields of a definition whose values the index stores.
type storing struct {
	Fields map[string]*struct{ Storage *string }
}

// Stores returns which members rows take from the index: those whose field has Storage "Yes", in the definition or where a map creates it. RavenDB takes
// the others from the document.
func (d *Definition) Stores() func(member string) bool {
	var given storing
	_ = json.Unmarshal(d.Given, &given) // it was parsed when it was given
	stored := func(name string) bool {
		if f, is := d.Created[name]; is {
			return f.Stored
		}
		f := given.Fields[name]
		return f != nil && f.Storage != nil && strings.EqualFold(*f.Storage, "Yes")
	}
	if stored(allFields) {
		return func(string) bool { return true }
	}
	return stored
}

// Behaviors of projections, which say where rows come from.
const (
	fromDefault      = "Default"
	fromIndex        = "FromIndex"
	fromIndexOrThrow = "FromIndexOrThrow"
	fromDocument     = "FromDocument"
)

// CheckBehavior refuses the behavior of a projection that a query has no use for. ix is nil for a query of documents.
func CheckBehavior(behavior string, ix *Computed) error {
	switch behavior {
	case "", fromDefault:
		return nil
	case fromDocument:
		if ix != nil && ix.Reduce != nil {
			return serve.BadRequest("ProjectionBehavior %s: the results of index %.150q are of no document", behavior, ix.Name)
		}
		return nil
	case fromIndex, fromIndexOrThrow:
		if ix != nil {
			return nil
		}
	}
	return serve.NotSupported("ProjectionBehavior %.50q is not there: rows are made of documents", behavior)
}

// Results returns the names of the members of the results of a declaration.
func Results(declared jay.Computed) (names []string) {
	members := declared.Maps[0].Select
	if declared.Reduce != nil {
		members = declared.Reduce.Select
	}
	for _, m := range members {
		if _, created, _ := query.ParseCreated(m.Expression); !created {
			names = append(names, m.Name)
		}
	}
	return names
}

// Creates reports whether a map creates fields whose names are in documents.
func (ix *Computed) Creates() bool {
	return slices.ContainsFunc(ix.Maps, func(m index.Map) bool {
		return slices.ContainsFunc(m.Select, func(one index.Member) bool {
			_, created, _ := query.ParseCreated(one.Expression)
			return created
		})
	})
}

// isPlain reports whether each document has one entry at most, and all are of one collection.
func (ix *Computed) isPlain() bool {
	return ix.Reduce == nil && len(ix.Maps) == 1 && ix.Maps[0].Each == ""
}

// repeats reports whether a document may have several entries: it has elements, or several maps are of its collection.
func (ix *Computed) repeats() bool {
	for i, m := range ix.Maps {
		if m.Each != "" || slices.ContainsFunc(ix.Maps[:i], func(other index.Map) bool {
			return m.Collection == "" || other.Collection == "" || strings.EqualFold(m.Collection, other.Collection)
		}) {
			return true
		}
	}
	return false
}

// Asked is a query of a computed index in the form in which package jay answers it.
type Asked struct {
	Text     string        // RQL, without parameters
	Results  bool          // it answers with results of a reduce
	Includes []query.Field // which have IDs of documents in the answers, and which package jay does not bring along
	Entries  *Entries      // answers in place of Text; nil for none
}

// Ask returns what a query of the index is for package jay. RavenDB answers a query of an index without a reduce with documents, or with
// rows that are made of documents and of what the index stores.
func (ix *Computed) Ask(c *serve.Call, text string, given map[string]any, behavior string) (*Asked, error) {
	q, err := query.Parse(text, given)
	if err != nil {
		return nil, err
	}
	if err := ix.Defined.Adapt(q); err != nil {
		return nil, err
	}
	asked := &Asked{Results: ix.Reduce != nil}
	if !ix.isPlain() {
		for _, path := range q.Include {
			asked.Includes = append(asked.Includes, query.Field{Path: path})
		}
		q.Include = nil
	}
	if asked.Results {
		asked.Text = q.String()
		return asked, nil
	}
	isMember, err := ix.rowsOf(q, behavior)
	if err != nil {
		return nil, err
	}
	if ix.isPlain() {
		if q, err = jay.ComputedOf(c.DB).Documents(c.Ctx, q, isMember); err == nil {
			asked.Text = q.String()
		}
		return asked, err
	}
	asked.Entries, err = newEntries(c, ix.Name, ix.repeats(), q, isMember)
	return asked, err
}

// Entries returns the query of the entries that a query finds in the index: of its members, with the ID of the document, or of the results
// of its reduce.
func (ix *Computed) Entries(text string, given map[string]any) (string, error) {
	q, err := query.Parse(text, given)
	if err != nil {
		return "", err
	}
	if err := ix.Defined.Adapt(q); err != nil {
		return "", err
	}
	if len(q.Select) > 0 || q.Script != nil || len(q.Facets) > 0 || len(q.Include) > 0 {
		return "", serve.BadRequest("the query selects or includes: entries of an index are shown as they are")
	}
	if ix.Reduce != nil {
		return q.String(), nil
	}
	for _, name := range Results(ix.Computed) {
		f, err := query.ParseExpression("field(" + serve.Quote(name) + ")")
		if err != nil {
			return "", err
		}
		q.Select = append(q.Select, query.Column{Name: name, Field: f})
	}
	q.Select = append(q.Select, query.Column{Name: "id()", Field: query.Field{Meta: query.MetaID}})
	return q.String(), nil
}

// rowsOf returns which roots of columns are members of the index, and leaves out the columns that a behavior does not want.
func (ix *Computed) rowsOf(q *query.Query, behavior string) (isMember func(name string) bool, err error) {
	names := Results(ix.Computed)
	stored := func(string) bool { return true }
	if ix.Defined != nil {
		stored = ix.Defined.Stores()
	}
	isMember = func(name string) bool { return slices.Contains(names, name) && stored(name) }
	switch behavior {
	case fromDocument:
		return func(string) bool { return false }, nil
	case fromIndex, fromIndexOrThrow:
	default:
		return isMember, nil
	}
	var columns []query.Column
	for _, column := range q.Select {
		if of, _ := sourcesOf(column.Field, isMember); of == "" {
			columns = append(columns, column)
			continue
		}
		if behavior == fromIndexOrThrow {
			return nil, serve.BadRequest("index %.150q does not store the field %.100q, and ProjectionBehavior is %s", ix.Name, column.Name, behavior)
		}
	}
	if len(columns) == 0 && len(q.Select) > 0 {
		return nil, serve.BadRequest("index %.150q stores no field that the query selects, and ProjectionBehavior is %s", ix.Name, behavior)
	}
	q.Select = columns
	return isMember, nil
}
