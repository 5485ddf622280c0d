package own

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
)

// fieldRoutes has the endpoint of the fields of a collection.
var fieldRoutes = []*serve.Route{
	{Method: "GET", Path: "{J}/fields", Run: getFields, Timed: true, Takes: "collection"},
}

// Bounds of the search for fields.
const (
	sampledDocuments = 100     // number read at each end of a collection
	sampledBytes     = 2 << 20 // at each end
	maxFieldPaths    = 500
	maxFieldDepth    = 8
)

// seenField is a field of the sampled documents.
type seenField struct {
	Path      string   `json:"path"`      // in RQL's notation; [] follows an array
	Types     []string `json:"types"`     // types of its values, sorted by name
	Documents int      `json:"documents"` // number of documents that have it

	types map[string]bool
	last  int // the last document in which it was seen
}

// getFields replies with the fields of a collection's documents. As a collection has no
// schema, it samples up to sampledDocuments at each end of the order of IDs.
func getFields(c *serve.Call) error {
	collection := c.Params.Get("collection")
	s := &sample{byPath: make(map[string]*seenField)}
	seen := make(map[string]bool)
	for _, reverse := range []bool{false, true} {
		sum, n := 0, 0
		for doc, err := range c.DB.Documents(c.Ctx, jay.Scan{Collection: collection, Limit: sampledDocuments, Reverse: reverse}) {
			if err != nil {
				return err
			}
			if seen[doc.ID()] || sum > sampledBytes {
				break // the documents of the other end follow
			}
			seen[doc.ID()] = true
			if err := c.Take(int64(len(doc.Body()))); err != nil {
				return err
			}
			sum, n = sum+len(doc.Body()), n+1
			s.documents++
			s.walk("", gjson.ParseBytes(doc.Body()), 0)
		}
		if !reverse && n < sampledDocuments && sum <= sampledBytes {
			break // that was the whole collection
		}
	}
	fields := s.fields
	if fields == nil {
		fields = []*seenField{}
	}
	for _, f := range fields {
		f.Types = slices.Sorted(maps.Keys(f.types))
	}
	return c.JSON(http.StatusOK, map[string]any{"fields": fields, "documents": s.documents, "more": s.more})
}

// sample gathers the fields of documents, in the order in which they are first seen.
type sample struct {
	fields    []*seenField
	byPath    map[string]*seenField
	documents int
	more      bool // there are fields beyond the bounds
}

// walk adds a value at a path, and the values in it.
func (s *sample) walk(path string, v gjson.Result, depth int) {
	if path != "" && !s.add(path, v) {
		return
	}
	if depth == maxFieldDepth {
		s.more = s.more || v.IsObject() || v.IsArray()
		return
	}
	switch {
	case v.IsObject():
		v.ForEach(func(key, value gjson.Result) bool {
			name := rqlName(key.String())
			if path != "" {
				name = path + "." + name
			}
			s.walk(name, value, depth+1)
			return true
		})
	case v.IsArray():
		v.ForEach(func(_, item gjson.Result) bool {
			s.walk(path+"[]", item, depth+1)
			return true
		})
	}
}

// add adds a field, and reports whether it is within the bounds.
func (s *sample) add(path string, v gjson.Result) bool {
	f := s.byPath[path]
	if f == nil {
		if len(s.fields) == maxFieldPaths {
			s.more = true
			return false
		}
		f = &seenField{Path: path, types: make(map[string]bool)}
		s.fields, s.byPath[path] = append(s.fields, f), f
	}
	f.types[typeOf(v)] = true
	if f.last != s.documents {
		f.last, f.Documents = s.documents, f.Documents+1
	}
	return true
}

// typeOf names the type of a value as RQL does.
func typeOf(v gjson.Result) string {
	switch {
	case v.IsObject():
		return "object"
	case v.IsArray():
		return "array"
	case v.Type == gjson.String:
		return "string"
	case v.Type == gjson.Number:
		return "number"
	case v.Type == gjson.Null:
		return "null"
	}
	return "boolean"
}

// rqlWord matches names that need no quotes in RQL, except for rqlKeywords.
var rqlWord = regexp.MustCompile(`^[\pL_][\pL_\p{Nd}]*$`)

var rqlKeywords = strings.Fields("from group where order load update filter select include limit offset declare and or not in between all as distinct true false null")

// rqlName returns a name in RQL's notation, quoted if necessary.
func rqlName(name string) string {
	if rqlWord.MatchString(name) && !slices.Contains(rqlKeywords, strings.ToLower(name)) {
		return name
	}
	return serve.Quote(name)
}
