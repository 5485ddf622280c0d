package query

import (
	"encoding"
	"encoding/json"
	"github.com/jaydb/jay/internal/spelling"
	"reflect"
	"slices"
	"strings"
)

// value = text | number | "true" | "false" | "null" | parameter .
func (p *parser) value(expected string) (Value, error) {
	at := p.tok
	value, err := p.scalar(expected)
	if err != nil {
		return Value{}, err
	}
	if isList(value) {
		return Value{}, p.fail(at.offset, "%s is a list", at).expecting(expected).hinting("lists stand in the parentheses of in")
	}
	return p.newValue(at, value)
}

// values parses a value, or a parameter that is a list of values.
func (p *parser) values(expected string) ([]Value, error) {
	at := p.tok
	value, err := p.scalar(expected)
	if err != nil {
		return nil, err
	}
	if !isList(value) {
		v, err := p.newValue(at, value)
		return []Value{v}, err
	}

	list := reflect.ValueOf(value)
	if list.Len() > MaxInValues {
		return nil, p.fail(at.offset, "%s has %d values: %d are the most", at, list.Len(), MaxInValues)
	}
	values := make([]Value, 0, list.Len())
	for i := range list.Len() {
		v, err := p.newValue(at, list.Index(i).Interface())
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

// scalar parses a value. It returns a literal as a Go value, and a parameter as
// the caller of Parse passed it.
func (p *parser) scalar(expected string) (any, error) {
	at := p.tok
	var value any
	switch {
	case at.kind == tokenParameter:
		return p.parameter()
	case at.kind == tokenText:
		value = at.text
	case at.kind == tokenNumber:
		value = json.Number(at.text) // all its digits count
	case at.is("true"), at.is("false"):
		value = at.is("true")
	case at.is("null"):
	default:
		return nil, p.notValue(expected)
	}
	p.advance()
	return value, nil
}

// notValue returns the error for a token in place of a value.
func (p *parser) notValue(expected string) error {
	err := p.unexpected(expected)
	syntax, ok := err.(*SyntaxError)
	switch {
	case !ok || p.tok.kind == tokenBad:
	case p.atCall() && refusedConditions[strings.ToLower(p.tok.text)] != "":
		return p.refuseCall(refusedConditions, expected)
	case p.atCall():
		syntax.Hint = "no function gives a value"
	case p.tok.kind == tokenWord && !reserved(p.tok.text):
		syntax.Hint = "text stands in quotes; two fields are compared by =, !=, <, <=, > or >="
	case p.tok.isSymbol("."):
		syntax.Hint = "a number begins with a digit, such as 0.5"
	}
	return err
}

// newValue converts the Go value of the token at.
func (p *parser) newValue(at token, value any) (Value, error) {
	v, err := NewValue(value)
	if err != nil {
		return Value{}, p.fail(at.offset, "%s is not a value to compare with: %v", at, err).because(err)
	}
	if !v.IsScalar() {
		return Value{}, p.fail(at.offset, "%s is not a value to compare with", at).expecting("text, a number, true, false or null")
	}
	if _, shares := value.(Value); shares { // the caller may reuse its memory
		v = v.Clone()
	}
	return v, nil
}

// textValue parses a value that must be text.
func (p *parser) textValue(expected string) (string, error) {
	at := p.tok
	v, err := p.value(expected)
	if err != nil {
		return "", err
	}
	if !isText(v) {
		return "", p.fail(at.offset, "unexpected %s, which is not text", at).expecting(expected)
	}
	return v.Text(), nil
}

// parameter parses $name and returns its value in params.
func (p *parser) parameter() (any, error) {
	at := p.tok
	value, ok := p.params[at.text]
	if !ok {
		names := make([]string, 0, len(p.params))
		for name := range p.params {
			names = append(names, name)
		}
		slices.Sort(names)
		err := p.fail(at.offset, "parameter $%s has no value", at.text)
		if near := spelling.Nearest(at.text, names); near != "" {
			err.Hint = "did you mean $" + near + "?"
		}
		return nil, err
	}
	p.used[at.text] = true
	p.advance()
	return value, nil
}

// isList reports whether a parameter is a list of values. A type that marshals
// itself is one value, and a slice of bytes is not a list.
func isList(value any) bool {
	switch value.(type) {
	case nil, json.Marshaler, encoding.TextMarshaler:
		return false
	}
	t := reflect.TypeOf(value)
	return (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && t.Elem().Kind() != reflect.Uint8
}

// isText reports whether v is text, the only kind that has case.
func isText(v Value) bool { return v.Kind() == KindText }

// literal returns v as a query writes it.
func literal(v Value) string {
	switch v.kind {
	case KindText:
		return quote(v.Text())
	case KindInstant:
		return quote(string(v.raw[1 : len(v.raw)-1]))
	}
	return v.String()
}
