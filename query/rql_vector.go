package query

import (
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

// condition = "vector" "." "search" "(" source "," vector [ "," number [ "," number ] ] ")" .
func (p vectors) condition() (Expr, error) {
	if spaces(p).at("vector") != "search" {
		return nil, p.unknown("a condition")
	}
	spaces(p).begin()
	e := Similar{Minimum: UsualSimilarity}
	var err error
	if e.Field, err = p.source(); err != nil {
		return nil, err
	}
	if err := p.expectSymbol(",", "and a vector after the field"); err != nil {
		return nil, err
	}
	if e.Vector, err = p.vector(vector.Cosine); err != nil {
		return nil, err
	}
	if p.acceptSymbol(",") {
		at := p.tok
		if e.Minimum, err = spaces(p).number("the least similarity"); err != nil {
			return nil, err
		}
		if !(e.Minimum >= -1 && e.Minimum <= 1) {
			return nil, p.fail(at.offset, "a similarity is between -1 and 1, and not %v", e.Minimum)
		}
		if p.acceptSymbol(",") { // how many vectors of a graph are looked at
			if _, err := p.candidates(); err != nil {
				return nil, err
			}
		}
	}
	return e, p.expectSymbol(")", "behind the vector")
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

// sources are functions that say what the numbers of a vector are, with what is refused of them.
var sources = map[string]string{
	"f32": "", "f32_i8": "",
	"f32_i1":  "a vector of bits is not there yet",
	"i8":      "a vector of int8 is not there yet",
	"i1":      "a vector of bits is not there yet",
	"text":    "a text has no vector without a model, which Jay does not run: store the vector that yours makes of it",
	"text_i8": "a text has no vector without a model, which Jay does not run: store the vector that yours makes of it",
	"text_i1": "a text has no vector without a model, which Jay does not run: store the vector that yours makes of it",
}

// source = path | "embedding" "." ( "f32" | "f32_i8" ) "(" path ")" .
func (p vectors) source() (Field, error) {
	name := spaces(p).at("embedding")
	if name == "" {
		return p.path()
	}
	refused, known := sources[name]
	switch {
	case !known:
		return Field{}, p.fail(p.tok.offset, "there is no embedding.%s()", name).expecting("embedding.f32_i8(Field), or a field")
	case refused != "":
		return Field{}, p.fail(p.tok.offset, "embedding.%s(): %s", name, refused)
	}
	spaces(p).begin()
	f, err := p.path()
	if err != nil {
		return f, err
	}
	return f, p.expectSymbol(")", "behind the field")
}

// path parses the field of a vector.
func (p vectors) path() (Field, error) { return spaces(p).path("vector", "the field of a vector") }

// vector = "[" number { "," number } "]" | text | parameter .
func (p vectors) vector(m vector.Metric) (Vector, error) {
	at := p.tok
	numbers, err := p.numbers()
	if err != nil {
		return Vector{}, err
	}
	v, bad := NewVector(numbers, m.String())
	if bad != nil {
		return Vector{}, p.fail(at.offset, "%v", bad).because(bad)
	}
	return v, nil
}

func (p vectors) numbers() ([]float32, error) {
	const expected = "a vector: numbers in brackets, the base64 of float32 in quotes, or a parameter"
	at := p.tok
	var raw []byte
	switch {
	case p.acceptSymbol("["):
		return p.brackets()
	case at.kind == tokenText:
		p.advance()
		raw = jsonpath.AppendQuoted(nil, at.text)
	case at.kind == tokenParameter:
		given, err := p.parameter()
		if err != nil {
			return nil, err
		}
		switch given := given.(type) {
		case []float32:
			return given, nil
		case Value:
			raw = given.AppendJSON(nil)
		default:
			if raw, err = json.Marshal(given); err != nil {
				return nil, p.fail(at.offset, "%s is no vector: %v", at, err)
			}
		}
	default:
		return nil, p.unexpected(expected)
	}
	numbers, err := vector.Read(nil, raw)
	if err != nil {
		bad := vectorError(err)
		return nil, p.fail(at.offset, "%s is no vector: %v", at, bad).because(bad)
	}
	return numbers, nil
}

// brackets parses the numbers after [.
func (p vectors) brackets() (numbers []float32, err error) {
	for {
		at := p.tok
		if at.kind != tokenNumber {
			return nil, p.unexpected("a number")
		}
		if len(numbers) == vector.MaxDimensions {
			return nil, p.fail(at.offset, "a vector has at most %d numbers", vector.MaxDimensions)
		}
		n, err := strconv.ParseFloat(at.text, 32)
		if err != nil {
			bad := &VectorError{Rule: "a vector is of numbers that float32 can hold", Value: at.text}
			return nil, p.fail(at.offset, "%v", bad).because(bad)
		}
		numbers = append(numbers, float32(n))
		p.advance()
		if p.acceptSymbol("]") {
			return numbers, nil
		}
		if err := p.expectSymbol(",", "or ] after a number"); err != nil {
			return nil, err
		}
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
	path, err := p.source()
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
	numbers, err := p.numbers()
	if err != nil {
		return nil, err
	}
	metric, candidates := "", 0
	if p.acceptSymbol(",") {
		at = p.tok
		if metric, err = p.textValue("a metric: " + strings.Join(vector.Metrics(), ", ")); err != nil {
			return nil, err
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
	v, bad := NewVector(numbers, metric)
	if bad != nil {
		return nil, p.fail(at.offset, "%v", bad).because(bad)
	}
	v.candidates = candidates
	if err := p.expectSymbol(")", "behind the vector"); err != nil {
		return nil, err
	}
	return p.expr.newOperation(&operation{function: f, operands: []*operation{field}, rest: v})
}

var errNoVector = fmt.Errorf("%w: a condition on vectors has a vector and a least similarity", ErrCondition)
