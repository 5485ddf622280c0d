package jsonschema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jaydb/jay/schema"
	lib "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// validator implements schema.Validator. It compiles the schema again for each goroutine that
// validates at the same time, and keeps some of the results.
type validator struct {
	text []byte
	idle chan *compiled
}

// Validate implements schema.Validator.
func (v *validator) Validate(body []byte, most int) ([]schema.Violation, int) {
	doc, err := decode(body)
	if err != nil {
		return one("", "", "it is not JSON: "+err.Error())
	}
	values, number := survey(doc)
	if number != "" {
		return one("", "number", numberRule)
	}
	c, err := v.take()
	if err != nil {
		return one("", "", err.Error())
	}
	defer v.giveBack(c)

	budget := baseSteps + stepsValue*values
	fits, enough := c.steps.run(budget, func() error { return c.opposite.Validate(doc) })
	if enough && fits != nil {
		return nil, 0
	}
	if enough && values > maxListed {
		return one("", "", fmt.Sprintf("it violates the schema; it has %d values, and with more than %d the violations are not listed", values, maxListed))
	}
	var found error
	if enough {
		found, enough = c.steps.run(2*budget, func() error { return c.rule.Validate(doc) })
	}
	if !enough {
		return one("", "", fmt.Sprintf("it takes more than %d steps to validate: the schema refers to itself too often", budget))
	}
	violated, is := found.(*lib.ValidationError)
	if !is {
		return one("", "", "it violates the schema")
	}
	all := flatten(violated)
	if len(all) == 0 {
		return one("", "", "it violates the schema")
	}
	return all[:min(len(all), most)], len(all)
}

func one(path, keyword, message string) ([]schema.Violation, int) {
	return []schema.Violation{{Path: path, Keyword: keyword, Message: message}}, 1
}

// take returns a compiled schema that no other goroutine uses.
func (v *validator) take() (*compiled, error) {
	select {
	case c := <-v.idle:
		return c, nil
	default:
		return compile(v.text)
	}
}

func (v *validator) giveBack(c *compiled) {
	select {
	case v.idle <- c:
	default:
	}
}

// Bounds of numbers, in schemas and documents: the library computes with whole fractions. docs/limits.md has them.
const (
	maxNumberBytes = 400
	maxExponent    = 400
)

var numberRule = fmt.Sprintf("a number has at most %d characters, and an exponent of at most %d", maxNumberBytes, maxExponent)

// survey counts the values in a value, with itself, and returns the first number that cannot be
// computed with, shortened, or "".
func survey(v any) (values int, number string) {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			n, wrong := survey(member)
			if values += n; wrong != "" {
				return values, wrong
			}
		}
	case []any:
		for _, element := range v {
			n, wrong := survey(element)
			if values += n; wrong != "" {
				return values, wrong
			}
		}
	case json.Number:
		text := string(v)
		if len(text) > maxNumberBytes {
			return 1, text[:20] + "…"
		}
		if i := strings.IndexAny(text, "eE"); i >= 0 {
			if n, err := strconv.Atoi(text[i+1:]); err != nil || n > maxExponent || n < -maxExponent {
				return 1, text
			}
		}
	}
	return values + 1, ""
}

// printer writes the library's messages.
var printer = message.NewPrinter(language.English)

// maxMessageBytes bounds a message, which may quote the value.
const maxMessageBytes = 300

// flatten returns the violations in an error, in the order of their paths, each once.
func flatten(err *lib.ValidationError) []schema.Violation {
	var all []schema.Violation
	collect(err, &all)
	slices.SortFunc(all, func(a, b schema.Violation) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Keyword, b.Keyword), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(all)
}

func collect(err *lib.ValidationError, all *[]schema.Violation) {
	path := pointer(err.InstanceLocation)
	add := func(path, keyword, message string) {
		*all = append(*all, schema.Violation{Path: path, Keyword: keyword, Message: cut(message)})
	}
	switch k := err.ErrorKind.(type) {
	case nil, *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		for _, cause := range err.Causes {
			collect(cause, all)
		}
	case *kind.Required:
		for _, name := range k.Missing {
			add(path, "required", fmt.Sprintf("missing property %q", name))
		}
	case *kind.DependentRequired:
		for _, name := range k.Missing {
			add(path, "dependentRequired", fmt.Sprintf("missing property %q, which %q requires", name, k.Prop))
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			add(path+pointer([]string{name}), "additionalProperties", "the property is not allowed")
		}
	case *kind.FalseSchema:
		add(path, "false", "no value is allowed here")
	case *kind.Not:
		add(path, "not", "it matches what it must not match")
	case *kind.PropertyNames:
		add(path+pointer([]string{k.Property}), "propertyNames", "the name of the property is not allowed")
	case *kind.AnyOf:
		add(path, "anyOf", "matches none of the alternatives"+alternatives(err.Causes))
	case *kind.OneOf:
		if len(k.Subschemas) == 0 {
			add(path, "oneOf", "matches none of the alternatives"+alternatives(err.Causes))
		} else {
			add(path, "oneOf", fmt.Sprintf("matches several alternatives, %d and %d, and not one", k.Subschemas[0], k.Subschemas[1]))
		}
	default:
		add(path, keywordOf(k), k.LocalizedString(printer))
	}
}

// keywordOf returns the keyword of a kind of errors.
func keywordOf(k lib.ErrorKind) string {
	if path := k.KeywordPath(); len(path) > 0 {
		return path[0]
	}
	return ""
}

// maxAlternatives is how many alternatives are explained.
const maxAlternatives = 2

// alternatives says why the first alternatives do not match.
func alternatives(causes []*lib.ValidationError) string {
	var why []string
	for _, cause := range causes[:min(len(causes), maxAlternatives)] {
		if found := flatten(cause); len(found) > 0 {
			why = append(why, found[0].String())
		}
	}
	if len(why) == 0 {
		return ""
	}
	return " (" + strings.Join(why, "; ") + ")"
}

// escaper escapes a token of a JSON pointer.
var escaper = strings.NewReplacer("~", "~0", "/", "~1")

func pointer(tokens []string) string {
	var out strings.Builder
	for _, token := range tokens {
		out.WriteString("/" + escaper.Replace(token))
	}
	return out.String()
}

// cut shortens a message, at the end of a character.
func cut(text string) string {
	if len(text) <= maxMessageBytes {
		return text
	}
	end := maxMessageBytes
	for end > 0 && text[end]&0xc0 == 0x80 {
		end--
	}
	return text[:end] + "…"
}

// cycleOf returns where a schema refers to itself for the same value, or "".
func cycleOf(err error) string {
	violated, is := err.(*lib.ValidationError)
	if !is {
		return ""
	}
	if loop, is := violated.ErrorKind.(*kind.RefCycle); is {
		return strings.TrimPrefix(loop.URL, address)
	}
	for _, cause := range violated.Causes {
		if loop := cycleOf(cause); loop != "" {
			return loop
		}
	}
	return ""
}
