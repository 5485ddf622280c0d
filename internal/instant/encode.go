package instant

import (
	"encoding/json"
	"errors"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// options are those of an encoding/json.Encoder without EscapeHTML, but for values of
// time.Time.
var options = jsonv2.JoinOptions(
	jsonv1.DefaultOptionsV1(),
	jsontext.EscapeForHTML(false),
	jsonv2.WithMarshalers(jsonv2.JoinMarshalers(jsonv2.MarshalToFunc(encodeTime), jsonv2.MarshalToFunc(encodeNumber))),
)

// Marshal returns the JSON of a Go value as encoding/json encodes it, without escapes
// for HTML, and with every time.Time in its canonical spelling. Types that marshal
// themselves, and keys of maps, stay as they are. A time outside of the years 0 to
// 9999 is a *YearError.
//
// encoding/json has no way to encode a type of another package differently. The package
// that becomes encoding/json in Go 1.27 has one, and does the rest as encoding/json
// does it.
func Marshal(v any) ([]byte, error) {
	raw, err := jsonv2.Marshal(v, options)
	if err == nil {
		return raw, nil
	}
	var year *YearError
	if errors.As(err, &year) {
		return nil, year
	}
	if _, standard := json.Marshal(v); standard != nil {
		err = standard // the error that programs know
	}
	return nil, err
}

// encodeTime writes one time.Time.
func encodeTime(e *jsontext.Encoder, t time.Time) error {
	if kind, n := e.StackIndex(e.StackDepth()); kind == '{' && n%2 == 0 {
		text, err := t.MarshalText() // a key of a map: it names something
		if err != nil {
			return err
		}
		return e.WriteToken(jsontext.String(string(text)))
	}
	var buf [MaxLen + 2]byte
	text, err := Append(append(buf[:0], '"'), t)
	if err != nil {
		return err
	}
	return e.WriteValue(append(text, '"'))
}

// encodeNumber writes one json.Number as encoding/json does. To package v1 it is a
// string like any other: that knows a Number of its own.
func encodeNumber(e *jsontext.Encoder, n json.Number) error {
	if kind, members := e.StackIndex(e.StackDepth()); kind == '{' && members%2 == 0 {
		return e.WriteToken(jsontext.String(string(n)))
	}
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if quoted, _ := jsonv2.GetOption(e.Options(), jsonv2.StringifyNumbers); quoted {
		return e.WriteToken(jsontext.String(string(text)))
	}
	return e.WriteValue(text)
}
