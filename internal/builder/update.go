package builder

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/patch"
	"github.com/jaydb/jay/query"
)

// EditOf returns the edit that a statement is.
func EditOf(a *query.Assignment) patch.Edit {
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
