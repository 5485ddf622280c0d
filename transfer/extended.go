package transfer

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxExtendedDepth bounds the levels of a document of Extended JSON.
const maxExtendedDepth = 10_000

// FromExtended returns a document of MongoDB's Extended JSON v2, canonical or relaxed, as
// plain JSON, appended to dst:
//
//	{"$oid":"507f…"}                        "507f…"
//	{"$date":"2026-01-02T03:04:05Z"}         "2026-01-02T03:04:05Z"
//	{"$date":{"$numberLong":"1700000000000"}} "2023-11-14T22:13:20.000Z"
//	{"$numberInt":"1"}, $numberLong, $numberDouble, $numberDecimal    the number, with its digits
//	{"$uuid":"…"}, {"$symbol":"…"}           the text
//	{"$undefined":true}                      null
//
// Any other object whose first key begins with $, such as $binary, $timestamp and
// $regularExpression, stays as it is. Infinity and NaN are not JSON: FromExtended returns an *Error
// for them.
//
// _id becomes the ID of the document, after the IDPrefix of to: a string as it is, an ObjectId as
// its 24 digits, a UUID or a whole number as its text. Any other _id is an *Error. A member
// @metadata, as ToExtended writes it, stays.
func FromExtended(dst, src []byte, to Placing) ([]byte, error) {
	if !json.Valid(src) {
		return dst, invalid("a document must be well-formed JSON", "%q", cutText(src))
	}
	i := skipSpace(src, 0)
	if src[i] != '{' {
		return dst, errNoObject(src)
	}
	e := extended{src: src, dst: append(dst, '{')}
	if err := e.document(i, to); err != nil {
		return dst, err
	}
	return append(e.dst, '}'), nil
}

// extended converts one document, whose JSON is valid.
type extended struct {
	src, dst []byte
}

// document appends the members of the document.
func (e *extended) document(i int, to Placing) error {
	start := len(e.dst)
	var p place
	i = skipSpace(e.src, i+1)
	for more := e.src[i] != '}'; more; {
		key, value := skipKey(e.src, i)
		switch string(key) {
		case "_id":
			if p.id != nil {
				return invalid("a document has one _id", "it has two")
			}
			before := len(e.dst)
			end, err := e.value(value, 1)
			if err != nil {
				return err
			}
			if p.id, err = idOf(e.dst[before:], e.src[value:end]); err != nil {
				return err
			}
			e.dst, i = e.dst[:before], end
		case "@metadata":
			i = skipValue(e.src, value)
			raw := e.src[value:i]
			if p.custom != nil {
				return invalid("a document has one @metadata", "it has two")
			}
			if raw[0] != '{' || member(raw, "@id") != nil && member(e.src, "_id") != nil {
				return invalid("@metadata beside _id must be an object without @id", "it is %q", cutText(raw))
			}
			p.custom = raw
			if member(raw, "@collection") != nil {
				to.Collection = ""
			}
		default:
			e.dst = append(append(append(appendComma(e.dst, start), '"'), key...), '"', ':')
			var err error
			if i, err = e.value(value, 1); err != nil {
				return err
			}
		}
		i, more = afterValue(e.src, i, '}')
	}
	comma := len(e.dst)
	e.dst = appendComma(e.dst, start)
	before := len(e.dst)
	if e.dst = p.append(e.dst, to); len(e.dst) == before {
		e.dst = e.dst[:comma]
	}
	return nil
}

// idOf returns the text of an ID that was converted, from what was raw.
func idOf(converted, raw []byte) ([]byte, error) {
	switch {
	case converted[0] == '"':
		if text, exact := unquote(converted); exact && text != "" {
			return []byte(text), nil
		}
	case converted[0] == '-' || converted[0] >= '0' && converted[0] <= '9':
		if !bytes.ContainsAny(converted, ".eE") {
			return bytes.Clone(converted), nil
		}
	}
	return nil, invalid("an _id must be a text, an ObjectId, a UUID or a whole number", "%q", cutText(raw))
}

// value appends the value that begins at i, and returns its end.
func (e *extended) value(i, depth int) (end int, err error) {
	if depth > maxExtendedDepth {
		return 0, invalid("a document has at most 10,000 levels", "this one has more")
	}
	switch e.src[i] {
	case '{':
		return e.object(i, depth)
	case '[':
		e.dst = append(e.dst, '[')
		start := len(e.dst)
		next := skipSpace(e.src, i+1)
		if e.src[next] == ']' {
			e.dst = append(e.dst, ']')
			return next + 1, nil
		}
		for more := true; more; {
			e.dst = appendComma(e.dst, start)
			if next, err = e.value(next, depth+1); err != nil {
				return 0, err
			}
			next, more = afterValue(e.src, next, ']')
		}
		e.dst = append(e.dst, ']')
		return next, nil
	}
	end = skipValue(e.src, i)
	e.dst = append(e.dst, e.src[i:end]...)
	return end, nil
}

func (e *extended) object(i, depth int) (end int, err error) {
	next := skipSpace(e.src, i+1)
	if e.src[next] == '}' {
		e.dst = append(e.dst, '{', '}')
		return next + 1, nil
	}
	key, value := skipKey(e.src, next)
	if isDollar(key) {
		return e.typed(i, string(key), value)
	}
	e.dst = append(e.dst, '{')
	start := len(e.dst)
	for more := true; more; {
		key, value := skipKey(e.src, next)
		e.dst = append(append(append(appendComma(e.dst, start), '"'), key...), '"', ':')
		if next, err = e.value(value, depth+1); err != nil {
			return 0, err
		}
		next, more = afterValue(e.src, next, '}')
	}
	e.dst = append(e.dst, '}')
	return next, nil
}

// typed appends the value of an object that begins at i, whose first key begins with $.
func (e *extended) typed(i int, key string, value int) (end int, err error) {
	if !isTypeKey(key) {
		end = skipValue(e.src, i)
		e.dst = append(e.dst, e.src[i:end]...)
		return end, nil
	}
	valueEnd := skipValue(e.src, value)
	end, more := afterValue(e.src, valueEnd, '}')
	raw := e.src[value:valueEnd]
	text, isText := unquote(raw)
	refused := func() error { return invalid("a "+key+" must be one of Extended JSON v2", "%q", cutText(raw)) }
	if more {
		return 0, invalid("an object with the key "+key+" has no other", "%q", cutText(e.src[i:]))
	}
	switch key {
	case "$oid":
		if !isText || len(text) != 24 || strings.Trim(strings.ToLower(text), hexDigits) != "" {
			return 0, refused()
		}
	case "$numberInt", "$numberLong":
		if _, err := strconv.ParseInt(text, 10, 64); err != nil || !isText || !isNumber(text) {
			return 0, refused()
		}
	case "$numberDouble", "$numberDecimal":
		if !isText || !isNumber(text) {
			return 0, invalid("a number must be one that JSON has", "%s is %q", key, cutText(raw))
		}
	case "$date":
		if text, isText = dateOf(raw); !isText {
			return 0, refused()
		}
		e.dst = AppendString(e.dst, text)
		return end, nil
	case "$undefined":
		if string(raw) != "true" {
			return 0, refused()
		}
		e.dst = append(e.dst, "null"...)
		return end, nil
	default: // $uuid, $symbol
		if !isText {
			return 0, refused()
		}
	}
	if strings.HasPrefix(key, "$number") {
		e.dst = append(e.dst, text...)
	} else {
		e.dst = append(e.dst, raw...)
	}
	return end, nil
}

// isDollar reports whether a key, as it is in JSON, begins with $.
func isDollar(key []byte) bool {
	return len(key) > 0 && key[0] == '$' || bytes.HasPrefix(key, []byte(`\u0024`))
}

// isTypeKey reports whether an object with this key becomes a plain value.
func isTypeKey(key string) bool {
	switch key {
	case "$oid", "$date", "$numberInt", "$numberLong", "$numberDouble", "$numberDecimal", "$uuid", "$symbol", "$undefined":
		return true
	}
	return false
}

// dateOf returns the text of a $date: the one that it has, or that of milliseconds since
// 1970.
func dateOf(raw []byte) (text string, ok bool) {
	if raw[0] == '"' {
		text, ok = unquote(raw)
		if !ok {
			return "", false
		}
		_, err := time.Parse(time.RFC3339Nano, text)
		if err != nil { // as mongoexport wrote it: +0000
			_, err = time.Parse("2006-01-02T15:04:05.999999999Z0700", text)
		}
		return text, err == nil
	}
	digits := string(raw)
	if raw[0] == '{' {
		if digits, ok = unquote(member(raw, "$numberLong")); !ok {
			return "", false
		}
	}
	ms, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || ms < math.MinInt64/2 || ms > math.MaxInt64/2 {
		return "", false
	}
	at := time.UnixMilli(ms).UTC()
	if at.Year() < 0 || at.Year() > 9999 {
		return "", false
	}
	return at.Format("2006-01-02T15:04:05.000Z"), true
}

// LooksExtended reports whether a document has the members with which MongoDB's Extended JSON
// represents ObjectIds, dates and numbers.
func LooksExtended(text []byte) bool {
	for _, key := range []string{`"$oid"`, `"$date"`, `"$numberLong"`, `"$numberDecimal"`, `"$numberInt"`, `"$numberDouble"`} {
		if bytes.Contains(text, []byte(key)) {
			return true
		}
	}
	return false
}

// ToExtended appends a document as Extended JSON v2, in the relaxed form. The ID of the document is
// _id. Its collection and its custom metadata are in @metadata. A number that an int64 or a double
// cannot represent digit for digit is a $numberDecimal with the same digits, of which MongoDB takes
// up to 34.
//
// ToExtended returns an *Error for a document with a member _id, and for a document with an object
// that FromExtended would take for another value, such as {"$oid":"…"}.
func ToExtended(dst []byte, d *Document) ([]byte, error) {
	if len(d.Body) == 0 || d.Body[0] != '{' {
		return dst, errNoObject(d.Body)
	}
	dst = append(dst, `{"_id":`...)
	dst = AppendString(dst, d.ID)
	t := toExtended{src: d.Body, dst: dst}
	i, err := t.members(0, true)
	if err != nil {
		return t.dst, err
	}
	if i != len(d.Body) {
		return t.dst, errNoObject(d.Body)
	}
	t.dst = append(t.dst, ',')
	return append(place{collection: []byte(d.Collection), hasCollection: true, custom: d.Custom}.append(t.dst, Placing{}), '}'), nil
}

type toExtended struct {
	src, dst []byte
}

// members appends the members of the object that begins at i, each with a comma in front
// of it unless it is the first of an object, and returns the object's end.
func (t *toExtended) members(i int, top bool) (end int, err error) {
	begin := i
	if i = skipSpace(t.src, i+1); i < len(t.src) && t.src[i] == '}' {
		return i + 1, nil
	}
	for first, more := true, true; more; first = false {
		key, value := skipKey(t.src, i)
		if value < 0 || value >= len(t.src) {
			return 0, errNoObject(t.src[begin:])
		}
		name := key
		if bytes.IndexByte(key, '\\') >= 0 {
			text, _ := unquote(append(append([]byte{'"'}, key...), '"'))
			name = []byte(text)
		}
		switch {
		case top && string(name) == "_id":
			return 0, invalid("a document in Extended JSON has its ID in _id", "this one has a field _id of its own")
		case first && !top && isTypeKey(string(name)):
			return 0, invalid("an object must not look like a value of Extended JSON", "this one has the key %s", name)
		}
		if top || !first {
			t.dst = append(t.dst, ',')
		}
		t.dst = append(append(append(t.dst, '"'), key...), '"', ':')
		if i, err = t.value(value); err != nil {
			return 0, err
		}
		if i, more = afterValue(t.src, i, '}'); i < 0 {
			return 0, errNoObject(t.src[begin:])
		}
	}
	return i, nil
}

func (t *toExtended) value(i int) (end int, err error) {
	switch t.src[i] {
	case '{':
		if next := skipSpace(t.src, i+1); next < len(t.src) && t.src[next] == '"' {
			key, _ := skipKey(t.src, next)
			if isDollar(key) && !isTypeKey(string(key)) { // kept as it is on the way back
				if end = skipValue(t.src, i); end < 0 {
					return 0, errNoObject(t.src[i:])
				}
				t.dst = append(t.dst, t.src[i:end]...)
				return end, nil
			}
		}
		t.dst = append(t.dst, '{')
		if end, err = t.members(i, false); err == nil {
			t.dst = append(t.dst, '}')
		}
		return end, err
	case '[':
		t.dst = append(t.dst, '[')
		next := skipSpace(t.src, i+1)
		if next < len(t.src) && t.src[next] == ']' {
			t.dst = append(t.dst, ']')
			return next + 1, nil
		}
		for first, more := true, true; more; first = false {
			if !first {
				t.dst = append(t.dst, ',')
			}
			if next >= len(t.src) {
				return 0, errNoObject(t.src[i:])
			}
			if next, err = t.value(next); err != nil {
				return 0, err
			}
			if next, more = afterValue(t.src, next, ']'); next < 0 {
				return 0, errNoObject(t.src[i:])
			}
		}
		t.dst = append(t.dst, ']')
		return next, nil
	}
	if end = skipValue(t.src, i); end < 0 {
		return 0, errNoObject(t.src[i:])
	}
	raw := t.src[i:end]
	if c := raw[0]; (c == '-' || c >= '0' && c <= '9') && !isExact(raw) {
		t.dst = append(append(append(t.dst, `{"$numberDecimal":"`...), raw...), '"', '}')
		return end, nil
	}
	t.dst = append(t.dst, raw...)
	return end, nil
}

// isExact reports whether a number is written as an int64 or a double would be, so that
// a system that reads it as one gives its digits back.
func isExact(raw []byte) bool {
	if len(raw) < 10 && !bytes.ContainsAny(raw, ".eE") {
		return string(raw) != "-0"
	}
	text := string(raw)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return strconv.FormatInt(n, 10) == text
	}
	f, err := strconv.ParseFloat(text, 64)
	return err == nil && strings.Contains(text, ".") && strconv.FormatFloat(f, 'f', -1, 64) == text
}
