package jay

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/patch"
	"github.com/jaydb/jay/query"
)

// UpdateRQL returns the query and the edits of a text that ends with update { }, for
// Query.Patch:
//
//	q, edits, err := db.UpdateRQL(`from Orders where Total < $least update { this.Small = true; this.Checks += 1 }`, params)
//	if err == nil {
//		done, err = q.Patch(ctx, edits...)
//	}
//
// q.Count says beforehand how many documents would be changed, and q.Progress reports.
//
// The statements are a part of JavaScript: assignments of values, of parameters and of
// other members, +=, -=, ++, --, push(), pop(), shift() and delete, of this or of the
// alias. An object or an array that a statement needs must be there, and so must the
// number of +=; otherwise the edit is a *PatchError that names the document, and the
// batches before it are written. Numbers are exact, as in Increment. docs/queries.md has
// the rest. A text that is none is a *SyntaxError.
func (db *DB) UpdateRQL(text string, params map[string]any) (Query[Row], []PatchOption, error) {
	return parseUpdate(db, text, params)
}

// UpdateRQL is DB.UpdateRQL in a transaction.
func (t *Tx) UpdateRQL(text string, params map[string]any) (Query[Row], []PatchOption, error) {
	return parseUpdate(t, text, params)
}

func parseUpdate(via access, text string, params map[string]any) (Query[Row], []PatchOption, error) {
	u, err := query.ParseUpdate(text, params)
	if err != nil {
		return Query[Row]{def: definition{err: err}}, nil, err
	}
	q, err := queryOf(via, u.Query)
	if err != nil {
		return q, nil, err
	}
	edits := make([]PatchOption, len(u.Assignments))
	for i := range u.Assignments {
		e := editOf(&u.Assignments[i])
		if err := e.Err(); err != nil {
			err = fmt.Errorf("statement %d of update: %w", i+1, err)
			return Query[Row]{def: definition{err: err}}, nil, err
		}
		edits[i] = edit(e)
	}
	return q, edits, nil
}

// editOf returns the edit that a statement is.
func editOf(a *query.Assignment) patch.Edit {
	path := a.Path.String()
	switch a.Op {
	case query.AssignPath:
		return patch.JSONPatch(fmt.Appendf(nil, `[{"op":"copy","from":%s,"path":%s}]`, pointer(a.From), pointer(a.Path)))
	case query.AssignAdd:
		return patch.Strict(patch.Increment(path, json.Number(a.Value)))
	case query.AssignPush:
		var values []any
		for _, raw := range jsonpath.Elements(a.Value) {
			values = append(values, json.RawMessage(raw))
		}
		return patch.Strict(patch.Append(path, values...))
	case query.AssignPop:
		return patch.Strict(patch.PopLast(path))
	case query.AssignShift:
		return patch.Strict(patch.PopFirst(path))
	case query.AssignDelete:
		return patch.Strict(patch.Unset(path))
	}
	return patch.Strict(patch.Set(path, json.RawMessage(a.Value)))
}

// pointerEscapes are those of JSON Pointers.
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// pointer returns a path as a JSON Pointer, in JSON.
func pointer(p jsonpath.Path) []byte {
	var text strings.Builder
	for i := range p.Len() {
		name := p.At(i).Name
		if p.At(i).Kind == jsonpath.Index {
			name = strconv.Itoa(p.At(i).Index)
		}
		text.WriteByte('/')
		text.WriteString(pointerEscapes.Replace(name))
	}
	return jsonpath.AppendQuoted(nil, text.String())
}
