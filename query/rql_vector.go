package query

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/internal/vector"
)

// vectors parses what queries have for vectors.
type vectors struct{ *parser }

// unknown is the error for another function at tok.
func (p vectors) unknown(expected string) error {
	return p.fail(p.tok.offset, "there is no vector.%s() here", spaces(p).at("vector")).expecting(expected).
		hinting("vector.search(Embedding, $v, 0.8) is a condition; vector.distance(Embedding, $v) is a number")
}

// condition = "vector" "." "search" "(" source "," vector [ "," ( number | "null" ) [ "," ( number | "null" ) ] ] ")" .
func (p vectors) condition() (Expr, error) {
	if spaces(p).at("vector") != "search" {
		return nil, p.unknown("a condition")
	}
	spaces(p).begin()
	e := Similar{Minimum: UsualSimilarity}
	field, form, err := p.source()
	if err != nil {
		return nil, err
	}
	e.Field = field
	if err := p.expectSymbol(",", "and a vector after the field"); err != nil {
		return nil, err
	}
	at := p.tok
	raw, err := p.raw(form)
	if err != nil {
		return nil, err
	}
	all, err := p.several(at, form, raw)
	if err != nil {
		return nil, err
	}
	if p.acceptSymbol(",") { // a client writes null for what it does not say
		at := p.tok
		if !p.accept("null") {
			if e.Minimum, err = spaces(p).number("the least similarity"); err != nil {
				return nil, err
			}
		}
		if !(e.Minimum >= -1 && e.Minimum <= 1) {
			return nil, p.fail(at.offset, "a similarity is between -1 and 1, and not %v", e.Minimum)
		}
		if p.acceptSymbol(",") && !p.accept("null") { // how many vectors of a graph are looked at
			if _, err := p.candidates(); err != nil {
				return nil, err
			}
		}
	}
	if err := p.expectSymbol(")", "behind the vector"); err != nil {
		return nil, err
	}
	var any Or
	for _, e.Vector = range all {
		any = append(any, e)
	}
	if len(any) == 1 {
		return any[0], nil
	}
	return any, nil
}

// several returns the vector of a value, or those of an array of vectors, of which one is enough.
func (p vectors) several(at token, form vector.Form, raw []byte) (all []Vector, err error) {
	vector.Each(raw, func(raw []byte) bool {
		var v Vector
		if v, err = p.vector(at, form, raw, ""); err == nil && len(all) == MaxSimilars {
			err = p.fail(at.offset, "%s has more than %d vectors", at, MaxSimilars)
		}
		all = append(all, v)
		return err == nil
	})
	if err == nil && len(all) == 0 {
		_, err = p.vector(at, form, []byte("[]"), "")
	}
	return all, err
}

// candidates parses how many vectors are looked at.
func (p vectors) candidates() (int, error) {
	at := p.tok
	n, err := spaces(p).number("how many candidates are looked at")
	if err != nil {
		return 0, err
	}
	if n != math.Trunc(n) || n < 1 || n > math.MaxInt32 {
		return 0, p.fail(at.offset, "candidates are a whole number from 1 on, and not %v", n)
	}
	return int(n), nil
}

// isModelled reports whether a function makes a vector of a text.
func isModelled(name string) bool { return name == "text" || strings.HasPrefix(name, "text_") }

// source = path | "embedding" "." ( "f32" | "f32_i8" | "f32_i1" | "i8" | "i1" ) "(" path ")" .
func (p vectors) source() (Field, vector.Form, error) {
	name := spaces(p).at("embedding")
	if name == "" {
		f, err := p.path()
		return f, vector.Singles, err
	}
	form, known := sources[name]
	switch {
	case isModelled(name):
		return Field{}, form, p.fail(p.tok.offset, "embedding.%s(): a text has no vector without a model, which Jay does not run", name).hinting("store the vector that your model makes of it")
	case !known:
		return Field{}, form, p.fail(p.tok.offset, "there is no embedding.%s()", name).expecting("a field, embedding.f32_i8(Field), embedding.f32_i1(Field), embedding.i8(Field) or embedding.i1(Field)")
	}
	spaces(p).begin()
	f, err := p.path()
	if err != nil {
		return f, form, err
	}
	return f, form, p.expectSymbol(")", "behind the field")
}

// path parses the field of a vector.
func (p vectors) path() (Field, error) { return spaces(p).path("vector", "the field of a vector") }

// vector returns the vector of a value at a token.
func (p vectors) vector(at token, form vector.Form, raw []byte, metric string) (Vector, error) {
	v, err := newVectorOf(form, raw, metric)
	switch {
	case err == nil:
		return v, nil
	case at.isSymbol("["):
		return v, p.fail(at.offset, "%v", err).because(err)
	case form == vector.Singles:
		return v, p.fail(at.offset, "%s is no vector: %v", at, err).because(err)
	}
	return v, p.fail(at.offset, "%s is no vector of %s: %v", at, form, err).because(err)
}

// raw = "[" number { "," number } "]" | text | parameter . It returns JSON.
func (p vectors) raw(form vector.Form) ([]byte, error) {
	const expected = "a vector: numbers in brackets, its base64 in quotes, or a parameter"
	at := p.tok
	switch {
	case at.isSymbol("["):
		return p.brackets()
	case spaces(p).at("embedding") != "":
		return nil, p.fail(at.offset, "embedding.%s(): the vector of a query is a value", spaces(p).at("embedding")).hinting("read the document, and pass its vector as a parameter")
	case at.kind == tokenText:
		p.advance()
		return jsonpath.AppendQuoted(nil, at.text), nil
	case at.kind == tokenParameter:
		given, err := p.parameter()
		if err != nil {
			return nil, err
		}
		switch given := given.(type) {
		case Value:
			return given.AppendJSON(nil), nil
		case []float32:
			return rawOf(form, given), nil
		case Numbers:
			return rawOf(form, given), nil
		}
		raw, err := json.Marshal(given) // bytes are base64
		if err != nil {
			bad := &VectorError{Rule: "a vector is of numbers that float32 can hold", Value: err.Error()}
			return nil, p.fail(at.offset, "%s is no vector: %v", at, bad).because(bad)
		}
		return raw, nil
	}
	return nil, p.unexpected(expected)
}

// rawOf returns numbers as JSON that has them in a form. Those that are no vector are refused where it is read.
func rawOf(form vector.Form, numbers []float32) []byte {
	switch {
	case !form.IsPacked():
		return append(vector.AppendBase64([]byte{'"'}, numbers), '"')
	case vector.Check(numbers) != nil:
		return []byte("null")
	}
	return append(base64.StdEncoding.AppendEncode([]byte{'"'}, form.Pack(numbers)), '"')
}

// brackets parses numbers in brackets.
func (p vectors) brackets() ([]byte, error) {
	p.advance()
	raw := []byte{'['}
	for n := 1; ; n++ {
		at := p.tok
		if at.kind != tokenNumber {
			return nil, p.unexpected("a number")
		}
		if n > vector.MaxDimensions+4 { // four bytes may be behind the numbers
			return nil, p.fail(at.offset, "a vector has at most %d numbers", vector.MaxDimensions)
		}
		if _, err := strconv.ParseFloat(at.text, 32); err != nil {
			bad := &VectorError{Rule: "a vector is of numbers that float32 can hold", Value: at.text}
			return nil, p.fail(at.offset, "%v", bad).because(bad)
		}
		raw = append(raw, at.text...)
		p.advance()
		if p.acceptSymbol("]") {
			return append(raw, ']'), nil
		}
		if err := p.expectSymbol(",", "or ] after a number"); err != nil {
			return nil, err
		}
		raw = append(raw, ',')
	}
}

// isOperand reports whether tok begins a function of vectors that is an operand.
func (p vectors) isOperand() bool { return spaces(p).at("vector") == "distance" || p.isExact() }

// isExact reports whether tok begins exact(vector.distance(.
func (p vectors) isExact() bool {
	if p.tok.kind != tokenWord || !p.tok.is("exact") {
		return false
	}
	ahead := *p.parser
	ahead.tok = ahead.lex.next()
	if !ahead.tok.isSymbol("(") {
		return false
	}
	ahead.tok = ahead.lex.next()
	return spaces{&ahead}.at("vector") == "distance"
}

// operand = distance | "exact" "(" distance ")" .
func (p vectors) operand() (*operation, error) {
	if !p.isExact() {
		return p.distance(vectorFunction)
	}
	p.advance()
	p.advance()
	o, err := p.distance(exactVectorFunction)
	if err != nil {
		return nil, err
	}
	return o, p.expectSymbol(")", "behind what is exact")
}

// distance = "vector" "." "distance" "(" source "," vector [ "," text [ "," number ] ] ")" .
func (p vectors) distance(f *function) (*operation, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	spaces(p).begin()
	path, form, err := p.source()
	if err != nil {
		return nil, err
	}
	field, err := p.expr.fieldOperand(path.Whole())
	if err != nil {
		return nil, err
	}
	if err := p.expectSymbol(",", "and a vector after the field"); err != nil {
		return nil, err
	}
	at := p.tok
	raw, err := p.raw(form)
	if err != nil {
		return nil, err
	}
	metric, candidates := "", 0
	if p.acceptSymbol(",") {
		named := p.tok
		if metric, err = p.textValue("a metric: " + strings.Join(vector.Metrics(), ", ")); err != nil {
			return nil, err
		}
		if _, err := metricOf(form, metric); err != nil {
			return nil, p.fail(named.offset, "%v", err).because(err)
		}
		if behind := p.tok; p.acceptSymbol(",") {
			if f.exact {
				return nil, p.fail(behind.offset, "what is exact looks at all vectors").expecting(")")
			}
			if candidates, err = p.candidates(); err != nil {
				return nil, err
			}
		}
	}
	v, err := p.vector(at, form, raw, metric)
	if err != nil {
		return nil, err
	}
	v.candidates = candidates
	if err := p.expectSymbol(")", "behind the vector"); err != nil {
		return nil, err
	}
	return p.expr.newOperation(&operation{function: f, operands: []*operation{field}, rest: v})
}

var errNoVector = fmt.Errorf("%w: a condition on vectors has a vector and a least similarity", ErrCondition)
