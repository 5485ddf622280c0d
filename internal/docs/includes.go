package docs

import "github.com/jaydb/jay/internal/jsonpath"

// MaxIncludes bounds the documents that one Load or one query includes.
const MaxIncludes = 10_000

// EachID calls fn with the values at paths in a body, raw, until it returns false.
// An array at the end of a path stands for its elements. IsID says which of them may
// be IDs.
func EachID(body []byte, paths []jsonpath.Path, fn func(raw []byte) bool) {
	for _, p := range paths {
		more := true
		jsonpath.EachLoose(body, p, func(raw []byte) bool {
			if raw[0] != '[' {
				more = fn(raw)
				return more
			}
			for _, element := range jsonpath.Elements(raw) {
				if more = fn(element); !more {
					break
				}
			}
			return more
		})
		if !more {
			return
		}
	}
}

// IsID reports whether a raw value may be an ID: a text that is not empty.
func IsID(raw []byte) bool { return len(raw) > 2 && raw[0] == '"' }
