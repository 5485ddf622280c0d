package exec

import (
	"encoding/hex"

	"github.com/jaydb/jay/query"
)

// groupID is a text by which groups are in the order of their members.
func groupID(members []query.Value) string {
	var key []byte
	long := false
	for _, v := range members {
		var truncated bool
		key, truncated = query.AppendKey(key, v, false)
		long = long || truncated
	}
	id := hex.EncodeToString(key)
	if long {
		for _, v := range members {
			id += " " + v.String()
		}
	}
	return id
}

func hasArray(values []query.Value) bool {
	for _, v := range values {
		if v.Kind() == query.KindArray {
			return true
		}
	}
	return false
}

// wrapArrays returns values in which each array is the only element of another one.
func wrapArrays(values []query.Value) []query.Value {
	out := make([]query.Value, len(values))
	for i, v := range values {
		if out[i] = v; v.Kind() == query.KindArray {
			out[i] = query.ValueOf(append(v.AppendJSON([]byte{'['}), ']'))
		}
	}
	return out
}
