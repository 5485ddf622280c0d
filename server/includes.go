package server

import (
	"strings"

	"github.com/tidwall/gjson"
)

// Bounds of includes.
const (
	maxIncludes     = 256    // of one request
	maxIncludeBytes = 1024   // of a path
	maxIncludeSteps = 64     // of a path
	maxIncluded     = 10_000 // documents that one request includes, found or not
)

// include is a path to the IDs of documents that a reply brings along, in RavenDB's
// notation: a.b, items[].productId, names.$Keys, names.$Values.id. What is at its end
// makes an ID: text as it is, or behind a prefix (customerId(customers/)), or within a
// pattern (customerId[{0}-x]); an array has one in each element.
type include struct {
	steps          []string // names of members, and elements, keys, values
	prefix, suffix string
}

// The steps that are no names. A name is never empty.
const (
	stepElements = "[]"
	stepKeys     = "$Keys"
	stepValues   = "$Values"
)

// parseInclude reads a path.
func parseInclude(text string) (include, error) {
	var in include
	refuse := func(rule string) (include, error) {
		return include{}, badRequest("invalid include %.100q: %s", text, rule)
	}
	if len(text) > maxIncludeBytes {
		return refuse("it is too long")
	}
	path := text
	if open := strings.IndexByte(path, '('); open >= 0 && strings.HasSuffix(path, ")") {
		path, in.prefix = path[:open], path[open+1:len(path)-1]
	} else if open := strings.LastIndexByte(path, '['); open >= 0 && strings.HasSuffix(path, "]") && path[open:] != stepElements {
		before, after, found := strings.Cut(path[open+1:len(path)-1], "{0}")
		if !found {
			return refuse("brackets hold nothing, or a pattern with {0}")
		}
		path, in.prefix, in.suffix = path[:open], before, after
	}
	for step := range strings.SplitSeq(path, ".") {
		elements := 0
		for strings.HasSuffix(step, stepElements) {
			step = strings.TrimSuffix(step, stepElements)
			elements++
		}
		step = strings.TrimPrefix(step, ",") // RavenDB's older notation: items.,productId
		if step == "" {
			return refuse("a name is empty")
		}
		in.steps = append(in.steps, step)
		for range elements {
			in.steps = append(in.steps, stepElements)
		}
	}
	if len(in.steps) > maxIncludeSteps {
		return refuse("it has too many steps")
	}
	return in, nil
}

// each calls fn with the IDs that the path reaches in a document, until fn returns false.
func (in include) each(body []byte, fn func(id string) bool) bool {
	return in.walk(gjson.ParseBytes(body), in.steps, fn)
}

// walk follows the steps. An array on the way is walked through, as if the path had said
// so.
func (in include) walk(at gjson.Result, steps []string, fn func(id string) bool) bool {
	if at.IsArray() {
		if len(steps) > 0 && steps[0] == stepElements {
			steps = steps[1:]
		}
		return in.over(at, func(_, value gjson.Result) bool { return in.walk(value, steps, fn) })
	}
	if len(steps) == 0 {
		return in.leaf(at, fn)
	}
	if !at.IsObject() {
		return true
	}
	switch step := steps[0]; step {
	case stepKeys:
		return in.over(at, func(key, _ gjson.Result) bool { return in.leaf(key, fn) })
	case stepValues:
		return in.over(at, func(_, value gjson.Result) bool { return in.walk(value, steps[1:], fn) })
	default:
		return in.over(at, func(key, value gjson.Result) bool {
			return key.String() != step || in.walk(value, steps[1:], fn)
		})
	}
}

// over calls fn with the members or elements, until it returns false.
func (in include) over(at gjson.Result, fn func(key, value gjson.Result) bool) bool {
	goOn := true
	at.ForEach(func(key, value gjson.Result) bool {
		goOn = fn(key, value)
		return goOn
	})
	return goOn
}

// leaf calls fn with the ID that a value makes. Only text and, behind a prefix, a number
// make one.
func (in include) leaf(value gjson.Result, fn func(id string) bool) bool {
	switch {
	case value.Type == gjson.String && value.String() != "":
		return fn(in.prefix + value.String() + in.suffix)
	case value.Type == gjson.Number && in.prefix+in.suffix != "":
		return fn(in.prefix + value.Raw + in.suffix)
	}
	return true
}
