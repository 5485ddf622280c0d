package jsonschema

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// Bounds of an Inference. docs/limits.md has them.
const (
	maxProperties = 200 // of an object: one with more is a map, and its members are not described
	maxInferDepth = 16  // of objects and arrays in each other: deeper ones are not described
	maxEnum       = 8   // texts that are proposed as an enum
	maxEnumBytes  = 64  // of each of them
	leastEnum     = 20  // texts that must have been seen for an enum, and each of its texts twice
)

// Inference proposes a schema that a set of documents fits. The schema has the types of members,
// the members that all documents have, enums of strings with few different values, and formats of
// dates. Read the schema before you make it a rule: the next document may rightly have what these
// documents lack. The zero value is ready to use. An Inference is for one goroutine. Its memory
// depends on the shape of the documents, not on their number.
type Inference struct {
	documents int64
	root      shape
}

// shape is what the values at one place are like.
type shape struct {
	count   int64
	types   map[string]int64
	members map[string]*shape // of objects
	isMap   bool              // there are too many of them
	items   *shape            // of arrays

	texts    map[string]int64 // nil if there are too many
	manyText bool
	notDate  bool
	notTime  bool
}

// Add reads the body of a document. It does not keep body.
func (in *Inference) Add(body []byte) error {
	doc, err := decode(body)
	if err != nil {
		return err
	}
	in.documents++
	in.root.add(doc, 1)
	return nil
}

// Documents returns how many documents were added.
func (in *Inference) Documents() int64 { return in.documents }

func (s *shape) add(v any, depth int) {
	s.count++
	if s.types == nil {
		s.types = make(map[string]int64)
	}
	switch v := v.(type) {
	case nil:
		s.types["null"]++
	case bool:
		s.types["boolean"]++
	case string:
		s.types["string"]++
		s.addText(v)
	case json.Number:
		if strings.ContainsAny(string(v), ".eE") {
			s.types["number"]++
		} else {
			s.types["integer"]++
		}
	case []any:
		s.types["array"]++
		if s.items == nil {
			s.items = new(shape)
		}
		for _, element := range v {
			if depth < maxInferDepth {
				s.items.add(element, depth+1)
			}
		}
	case map[string]any:
		s.types["object"]++
		s.addMembers(v, depth)
	}
}

func (s *shape) addMembers(members map[string]any, depth int) {
	if depth >= maxInferDepth {
		s.isMap = true
	}
	for name, member := range members {
		if s.isMap {
			return
		}
		if s.members == nil {
			s.members = make(map[string]*shape)
		}
		of := s.members[name]
		if of == nil {
			if len(s.members) == maxProperties {
				s.members, s.isMap = nil, true
				return
			}
			of = new(shape)
			s.members[name] = of
		}
		of.add(member, depth+1)
	}
}

func (s *shape) addText(text string) {
	if !s.notTime {
		_, err := time.Parse(time.RFC3339Nano, text)
		s.notTime = err != nil
	}
	if !s.notDate {
		_, err := time.Parse(time.DateOnly, text)
		s.notDate = err != nil
	}
	if s.manyText {
		return
	}
	if s.texts == nil {
		s.texts = make(map[string]int64)
	}
	if _, known := s.texts[text]; !known && (len(s.texts) == maxEnum || len(text) > maxEnumBytes) {
		s.texts, s.manyText = nil, true
		return
	}
	s.texts[text]++
}

// Schema returns the schema, indented, with a line break at its end. If no document was added, the
// schema accepts every document.
func (in *Inference) Schema() []byte {
	described := map[string]any{"type": "object"}
	if in.documents > 0 {
		described = in.root.describe()
	}
	described["$schema"] = Dialect
	return indented(described)
}

func (s *shape) describe() map[string]any {
	out := make(map[string]any)
	types := slices.Sorted(maps.Keys(s.types))
	if s.types["number"] > 0 { // an integer is one
		types = slices.DeleteFunc(types, func(name string) bool { return name == "integer" })
	}
	switch len(types) {
	case 0:
	case 1:
		out["type"] = types[0]
	default:
		out["type"] = types
	}
	if texts := s.types["string"]; texts > 0 && texts == s.count {
		s.describeTexts(out, texts)
	}
	if s.items != nil && s.items.count > 0 {
		out["items"] = s.items.describe()
	}
	if s.isMap || len(s.members) == 0 {
		return out
	}
	properties := make(map[string]any, len(s.members))
	var required []string
	for name, of := range s.members {
		properties[name] = of.describe()
		if of.count == s.types["object"] {
			required = append(required, name)
		}
	}
	out["properties"] = properties
	if len(required) > 0 {
		slices.Sort(required)
		out["required"] = required
	}
	return out
}

func (s *shape) describeTexts(out map[string]any, texts int64) {
	switch {
	case !s.notTime:
		out["format"] = "date-time"
	case !s.notDate:
		out["format"] = "date"
	case !s.manyText && texts >= leastEnum:
		for _, n := range s.texts {
			if n < 2 {
				return
			}
		}
		out["enum"] = slices.Sorted(maps.Keys(s.texts))
	}
}
