package raven

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay/server/internal/serve"
)

// Bounds of includes.
const (
	maxIncludes     = 256    // of one request
	maxIncludeBytes = 1024   // of a path
	maxIncludeSteps = 64     // of a path
	maxIncluded     = 10_000 // documents that one request includes, found or not
)

// include is a path to the IDs of documents to include in a reply, in RavenDB's notation:
// a.b, items[].productId, names.$Keys, names.$Values.id. The value at its end is the ID,
// or is completed to one by a prefix (customerId(customers/)) or a pattern
// (customerId[{0}-x]). An array there has an ID in each element.
type include struct {
	steps          []string // names of members, and the special steps below
	prefix, suffix string
}

// Special steps, which are no names: a name is never empty.
const (
	stepElements = "[]"
	stepKeys     = "$Keys"
	stepValues   = "$Values"
)

// parseInclude reads a path.
func parseInclude(text string) (include, error) {
	var in include
	refuse := func(rule string) (include, error) {
		return include{}, serve.BadRequest("invalid include %.100q: %s", text, rule)
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

// each calls fn with the IDs at the end of the path in a document, until fn returns false.
func (in include) each(body []byte, fn func(id string) bool) bool {
	return in.walk(gjson.ParseBytes(body), in.steps, fn)
}

// walk follows the steps. An array on the way is entered, as if the path had a step for
// it.
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

// leaf calls fn with the ID that a value stands for. Only text and, with a prefix, a
// number stand for one.
func (in include) leaf(value gjson.Result, fn func(id string) bool) bool {
	switch {
	case value.Type == gjson.String && value.String() != "":
		return fn(in.prefix + value.String() + in.suffix)
	case value.Type == gjson.Number && in.prefix+in.suffix != "":
		return fn(in.prefix + value.Raw + in.suffix)
	}
	return true
}
