// Package jsonschema is the schema.Compiler of JSON Schema, draft 2020-12, for jay.Options.Schemas.
// It also makes schemas from existing documents ([Inference]) and from Go types ([For]).
//
//	db, err := jay.Open("shop.jay", &jay.Options{Schemas: jsonschema.New()})
//
// Module github.com/santhosh-tekuri/jsonschema validates documents. This package restricts the
// schemas that the module gets:
//
//   - A schema is self-contained. Compile refuses a reference to another document. The metaschemas of
//     JSON Schema are known.
//   - Patterns are Go's regular expressions (RE2), of bounded length and size. Compile refuses syntax
//     that RE2 does not support, such as lookahead, and names it.
//   - format is asserted: date-time, date, time, duration, email, hostname, ipv4, ipv6, uri,
//     uri-reference, uri-template, uuid, json-pointer, relative-json-pointer, regex and the like. An
//     unknown format is an annotation, as JSON Schema defines.
//   - contentEncoding, contentMediaType and contentSchema are annotations.
//   - The work of one validation is bounded, however a schema refers to itself.
//
// A Compiler, its Validators and For are safe for concurrent use. An Inference is for one
// goroutine.
package jsonschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/jaydb/jay/schema"
	lib "github.com/santhosh-tekuri/jsonschema/v6"
)

// Compiler compiles JSON Schemas. Make one with New.
type Compiler struct{}

// New returns a Compiler.
func New() Compiler { return Compiler{} }

// Dialect is the value of $schema. A schema may leave $schema out.
const Dialect = "https://json-schema.org/draft/2020-12/schema"

// The addresses under which a schema, and its negation, are compiled. Nothing is loaded from them.
const (
	address   = "jay://schema/rule"
	opposite  = "jay://schema/opposite"
	countName = "jay://schema/vocabulary"
)

// Compile implements schema.Compiler. Its errors are *schema.RuleError.
func (Compiler) Compile(text []byte) (schema.Validator, error) {
	text = bytes.Clone(text)
	first, err := compile(text)
	if err != nil {
		return nil, err
	}
	v := &validator{text: text, idle: make(chan *compiled, 2*runtime.GOMAXPROCS(0))}
	v.idle <- first
	return v, nil
}

// compiled is a schema that one goroutine at a time validates with, as it counts its steps.
type compiled struct {
	rule     *lib.Schema // says where a value violates it
	opposite *lib.Schema // is valid for a value that violates it, and finds that out without noting where
	steps    *steps
}

// compile compiles a schema once.
func compile(text []byte) (*compiled, error) {
	doc, err := decode(text)
	if err != nil {
		return nil, &schema.RuleError{Rule: "it is JSON: " + err.Error()}
	}
	top, is := doc.(map[string]any)
	if !is {
		return nil, &schema.RuleError{Rule: "it is a JSON object"}
	}
	if dialect, given := top["$schema"]; given && (dialect != Dialect && dialect != Dialect+"#") {
		return nil, &schema.RuleError{Path: "/$schema", Rule: fmt.Sprintf("the dialect is %q, or is left out", Dialect), Value: fmt.Sprint(dialect)}
	}
	if _, number := survey(doc); number != "" {
		return nil, &schema.RuleError{Rule: numberRule, Value: number}
	}

	c := &compiled{steps: new(steps)}
	loader := new(noLoader)
	patterns := new(patterns)
	l := lib.NewCompiler()
	l.DefaultDraft(lib.Draft2020)
	l.AssertFormat()
	l.UseLoader(loader)
	l.UseRegexpEngine(patterns.compile)
	// The vocabulary has no keyword: it is a way to see each schema that is compiled.
	var all []*lib.Schema
	l.RegisterVocabulary(&lib.Vocabulary{URL: countName, Compile: func(ctx *lib.CompilerContext, _ map[string]any) (lib.SchemaExt, error) {
		all = append(all, ctx.Enqueue(nil))
		return nil, nil
	}})
	l.AssertVocabs()
	for url, resource := range map[string]any{address: doc, opposite: map[string]any{"$schema": Dialect, "not": map[string]any{"$ref": address}}} {
		if err := l.AddResource(url, resource); err != nil {
			return nil, refusal(err, loader, patterns)
		}
	}
	if c.rule, err = l.Compile(address); err != nil {
		return nil, refusal(err, loader, patterns)
	}
	if c.opposite, err = l.Compile(opposite); err != nil {
		return nil, refusal(err, loader, patterns)
	}
	for _, one := range all {
		c.steps.countIn(one)
	}
	if err := c.checkCycles(); err != nil {
		return nil, err
	}
	return c, nil
}

// noLoader refuses all other documents, and notes the first.
type noLoader struct{ refused string }

var errRemote = errors.New("another document")

// Load implements lib.URLLoader.
func (l *noLoader) Load(url string) (any, error) {
	if l.refused == "" {
		l.refused = url
	}
	return nil, errRemote
}

// refusal returns what is wrong with a schema that the library refuses.
func refusal(err error, l *noLoader, p *patterns) error {
	if l.refused != "" {
		return &schema.RuleError{Rule: "a schema refers to no other document: copy what it refers to into its $defs", Value: l.refused}
	}
	if p.refused != nil {
		return p.refused
	}
	var invalid *lib.SchemaValidationError
	var violated *lib.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &violated) {
		if all := flatten(violated); len(all) > 0 {
			return &schema.RuleError{Path: all[0].Path, Rule: "it is a JSON Schema: " + all[0].Message}
		}
	}
	return &schema.RuleError{Rule: "it is a JSON Schema: " + strings.ReplaceAll(strings.ReplaceAll(err.Error(), address+"#", ""), address, "the schema")}
}

// decode decodes JSON without a loss.
func decode(text []byte) (any, error) {
	return lib.UnmarshalJSON(bytes.NewReader(text))
}

// checkCycles refuses a schema that refers to itself without going into the value: it would accept
// nothing, and not say why.
func (c *compiled) checkCycles() error {
	for _, sample := range []any{map[string]any{}, []any{}, "", json.Number("0"), true, nil} {
		err, _ := c.steps.run(maxSampleSteps, func() error { return c.rule.Validate(sample) })
		if loop := cycleOf(err); loop != "" {
			return &schema.RuleError{Rule: "a schema does not refer to itself for the same value", Value: loop}
		}
	}
	return nil
}
