package script

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A value is undefined, nil for null, bool, string, json.Number, int64, float64, *object,
// *array, *date or *function.
type value any

type undefinedType struct{}

var undefined value = undefinedType{}

// object keeps its members in their order.
type object struct {
	names   []string
	members map[string]value
	id      string // ID of a document that load has returned
}

type array struct{ elements []value }

// function is a function of the script, or a native.
type function struct {
	parameters []string
	defaults   map[string]node
	body       node // a block or an expression
	arrow      bool
	vars       []string
	scope      *scope
	native     func(r *run, place int, args []value) (value, error)
}

func newObject() *object { return &object{members: make(map[string]value)} }

func (o *object) get(name string) value {
	if v, found := o.members[name]; found {
		return v
	}
	return undefined
}

func (o *object) set(name string, v value) {
	if _, found := o.members[name]; !found {
		o.names = append(o.names, name)
	}
	o.members[name] = v
}

func (o *object) remove(name string) {
	if _, found := o.members[name]; !found {
		return
	}
	delete(o.members, name)
	for i, one := range o.names {
		if one == name {
			o.names = append(o.names[:i], o.names[i+1:]...)
			return
		}
	}
}

// decode reads JSON.
func (r *run) decode(text []byte) (value, error) {
	if err := r.allocate(0, 4*int64(len(text))); err != nil {
		return nil, err
	}
	values, size := decodedSize(text)
	if values > r.limits.Steps { // it could not be stored, as that takes a step for each
		return nil, &Error{Message: "the JSON of a document or parameter has more values than the script may take steps"}
	}
	if err := r.pay(size); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := decodeValue(d, 0)
	if err == errDeep { // the text of JSON.parse, and a parameter, may have more levels than a document
		return nil, &Error{Message: "the JSON of a document or parameter: " + err.Error()}
	}
	if err != nil {
		return nil, &Error{Message: "the JSON of a document or parameter: " + err.Error(), Cause: err}
	}
	return v, nil
}

// decodedSize returns the number of values in JSON, about, and the bytes that they take
// once they are decoded, at most.
func decodedSize(text []byte) (values, size int64) {
	size = 4 * int64(len(text)) // the decoder's copies, texts and digits
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case ',':
			values, size = values+1, size+160 // a member of a map, and its name in a slice
		case '[':
			values, size = values+1, size+80
		case '{':
			values, size = values+1, size+512 // a map with room for eight
		}
	}
	return values, size
}

// maxDecoded is the greatest number of levels of arrays and objects in JSON that a script reads.
const maxDecoded = 2000

var errDeep = fmt.Errorf("arrays and objects are nested too deep: %d levels are the most", maxDecoded)

func decodeValue(d *json.Decoder, depth int) (value, error) {
	if depth > maxDecoded {
		return nil, errDeep
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '[' {
			a := &array{}
			for d.More() {
				v, err := decodeValue(d, depth+1)
				if err != nil {
					return nil, err
				}
				a.elements = append(a.elements, v)
			}
			_, err = d.Token()
			return a, err
		}
		o := newObject()
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decodeValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			o.set(name.(string), v)
		}
		_, err = d.Token()
		return o, err
	case nil:
		return nil, nil
	default:
		return t, nil
	}
}

// encode appends a value as JSON. Members that are undefined or functions are left out, as
// in JavaScript.
func (r *run) encode(dst []byte, v value, depth int) ([]byte, error) {
	if err := r.step(0); err != nil {
		return nil, err
	}
	if depth > 1000 {
		return nil, &Error{Message: "the document is nested too deep, or in itself"}
	}
	switch v := v.(type) {
	case nil, undefinedType, *function:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case string:
		if err := r.allocate(0, int64(len(v))); err != nil {
			return nil, err
		}
		return appendText(dst, v)
	case json.Number:
		if err := r.allocate(0, int64(len(v))); err != nil {
			return nil, err
		}
		return append(dst, v...), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case float64:
		if (math.IsNaN(v) || math.IsInf(v, 0)) && (r.lenient || r.stringify) {
			return append(dst, "null"...), nil
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, &Error{Message: fmt.Sprintf("JSON has no %s: the script has calculated with what is no number", numberText(v))}
		}
		return append(dst, numberText(v)...), nil
	case *date:
		return v.append(dst), nil
	case *array:
		dst = append(dst, '[')
		var err error
		for i, one := range v.elements {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = r.encode(dst, one, depth+1); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	case *object:
		dst = append(dst, '{')
		first := true
		for _, name := range v.names {
			one := v.members[name]
			if one == undefined && !r.lenient {
				continue
			}
			if _, is := one.(*function); is {
				continue
			}
			if !first {
				dst = append(dst, ',')
			}
			first = false
			if err := r.allocate(0, int64(len(name))); err != nil {
				return nil, err
			}
			var err error
			if dst, err = appendText(dst, name); err != nil {
				return nil, err
			}
			if dst, err = r.encode(append(dst, ':'), one, depth+1); err != nil {
				return nil, err
			}
		}
		return append(dst, '}'), nil
	}
	return nil, &Error{Message: fmt.Sprintf("a %T cannot be stored", v)}
}

// appendText appends text as JSON, without the escapes for HTML.
func appendText(dst []byte, text string) ([]byte, error) {
	if !utf8.ValidString(text) {
		return nil, &Error{Message: "a text is not valid Unicode: a script has cut it inside a character"}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		return nil, err
	}
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...), nil
}

// truth reports whether a value is truthy.
func truth(v value) bool {
	switch v := v.(type) {
	case nil, undefinedType:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case json.Number, int64, float64:
		f := number(v)
		return f != 0 && !math.IsNaN(f)
	}
	return true
}

func isNumber(v value) bool {
	switch v.(type) {
	case json.Number, int64, float64:
		return true
	}
	return false
}

// text converts a value to text.
func (r *run) text(v value) (string, error) {
	switch v := v.(type) {
	case nil:
		return "null", nil
	case undefinedType:
		return "undefined", nil
	case bool:
		return strconv.FormatBool(v), nil
	case string:
		return v, nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return numberText(v), nil
	case json.Number:
		if n, is := integer(v); is {
			return strconv.FormatInt(n, 10), nil
		}
		return numberText(number(v)), nil
	case *array:
		return r.join(v, ",", 0)
	case *object:
		return "[object Object]", nil
	case *date:
		return v.text(), nil
	}
	return "function", nil
}

// join joins the elements of an array.
func (r *run) join(a *array, separator string, depth int) (string, error) {
	if depth > maxNesting {
		return "", &Error{Message: "an array is nested too deep, or in itself"}
	}
	var out strings.Builder
	for i, one := range a.elements {
		if i > 0 {
			out.WriteString(separator)
		}
		part := ""
		var err error
		switch one := one.(type) {
		case nil, undefinedType:
		case *array:
			part, err = r.join(one, ",", depth+1)
		default:
			part, err = r.text(one)
		}
		if err == nil {
			err = r.allocate(0, int64(len(part)+len(separator)))
		}
		if err != nil {
			return "", err
		}
		out.WriteString(part)
	}
	return mend(out.String()), nil
}

// identical implements ===.
func identical(a, b value) bool {
	if isNumber(a) && isNumber(b) {
		if x, is := integer(a); is {
			if y, is := integer(b); is {
				return x == y
			}
		}
		return number(a) == number(b)
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case bool, string, undefinedType, *object, *array, *function, *date:
		return a == b
	}
	return false
}

// equal implements ==.
func equal(a, b value) bool {
	none := func(v value) bool { return v == nil || v == undefined }
	switch {
	case none(a) || none(b):
		return none(a) && none(b)
	case identical(a, b):
		return true
	}
	scalar := func(v value) bool {
		switch v.(type) {
		case bool, string:
			return true
		}
		return isNumber(v)
	}
	_, at := a.(string)
	_, bt := b.(string)
	if scalar(a) && scalar(b) && !(at && bt) {
		return number(a) == number(b)
	}
	return false
}

func typeOf(v value) string {
	switch v.(type) {
	case undefinedType:
		return "undefined"
	case bool:
		return "boolean"
	case string:
		return "string"
	case *function:
		return "function"
	case json.Number, int64, float64:
		return "number"
	}
	return "object"
}
