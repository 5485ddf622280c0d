package raven

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
)

// clientColumns turns the rows of a query that selects into projections as RavenDB's
// clients expect them: with the ID of their document in the metadata, from which clients
// fill an entity's ID, and with the names that RavenDB gives to columns without one.
type clientColumns struct {
	id           bool              // the last column is the ID
	names        map[string]string // other names of columns, by the names in JSON that they have in rows
	metadataOnly bool              // the columns are left out
	script       bool              // rows are made by JavaScript, and may have a member @metadata
	scriptID     bool              // those rows have the ID of their document
	result       bool              // rows are whole results of an index, and no projections
}

// idColumn is the name of the column that the server adds. A text in a row cannot have it
// with its quotes.
const idColumn = verbs.IDColumn

// columnsForClients adds the ID to the columns of a query, unless its rows are of several
// documents. The query is text; given has its parameters. It returns nil columns for
// queries that select nothing.
func columnsForClients(q jay.Query[jay.Row], text string, given map[string]any) (jay.Query[jay.Row], *clientColumns, error) {
	if !strings.Contains(strings.ToLower(text), "select") {
		return q, nil, nil
	}
	parsed, err := query.Parse(text, given)
	if err == nil && parsed.Script != nil {
		return q, &clientColumns{script: true, scriptID: parsed.Index == ""}, nil
	}
	if err != nil || len(parsed.Select) == 0 {
		return q, nil, err
	}
	named := func(name string) bool {
		return slices.ContainsFunc(parsed.Select, func(c query.Column) bool { return c.Name == name })
	}
	out := &clientColumns{names: make(map[string]string)}
	groups := len(parsed.GroupBy) > 0
	var columns []string
	for _, c := range parsed.Select {
		groups = groups || c.Func != query.FuncNone
		field := c.Field.String()
		if groups && (c.Func == query.FuncSum && c.Name == "sum("+field+")" || c.Func == query.FuncNone && c.Name == "key()") && !named(field) {
			out.names[string(serve.MustJSON(c.Name))] = field
		}
		columns = append(columns, field+" as "+serve.Quote(c.Name))
	}
	if groups || parsed.Index != "" || parsed.Distinct || named(idColumn) || len(columns) == query.MaxColumns {
		return q, out, nil
	}
	out.id = true
	return jay.Select[json.RawMessage](q, append(columns, "id() as '"+idColumn+"'")...).Rows(), out, nil
}

// project returns a row as clients expect it.
func (cs *clientColumns) project(made *jay.Row) (json.RawMessage, error) {
	row := made.JSON
	if cs == nil || row == nil {
		return row, nil
	}
	metadata := []byte(`"@metadata":{"@projection":true`)
	if cs.result {
		metadata = []byte(`"@metadata":{`)
	}
	if cs.scriptID && made.ID != "" {
		metadata = append(append(metadata, `,"@id":`...), serve.MustJSON(made.ID)...)
	}
	if cs.id {
		at := bytes.LastIndex(row, []byte(`"`+idColumn+`":`))
		metadata = append(append(metadata, ','), row[at:len(row)-1]...)
		row = append(bytes.TrimSuffix(row[:at:at], []byte(",")), '}')
	}
	metadata = append(metadata, "}}"...)
	if cs.metadataOnly {
		return append([]byte{'{'}, metadata...), nil
	}
	if len(cs.names) > 0 || cs.script && bytes.Contains(row, []byte(`"@metadata"`)) {
		out := []byte("{")
		if err := serve.EachMember(row, func(name, value []byte) error {
			if cs.script && string(name) == "@metadata" { // it is that of a document, and a row has its own
				return nil
			}
			quoted := append(append([]byte{'"'}, name...), '"')
			if other, found := cs.names[string(quoted)]; found {
				quoted = serve.MustJSON(other)
			}
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(append(append(out, quoted...), ':'), value...)
			return nil
		}); err != nil {
			return nil, err
		}
		row = append(out, '}')
	}
	row = row[: len(row)-1 : len(row)-1]
	if len(row) > 1 {
		row = append(row, ',')
	}
	return append(row, metadata...), nil
}
