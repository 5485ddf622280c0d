package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"unicode/utf8"

	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/instant"
	"github.com/jaydb/jay/metadata"
)

// Encoded is the JSON of a value.
type Encoded struct {
	Body   []byte
	Stored bool // Body is what is stored; otherwise it has the ID and the version, and was not checked
}

// ManyValues is the number from which values are encoded by several goroutines,
// each of which takes valueParts at a time. It is far below manyOps of the root, as
// encoding a value costs several times what preparing its write costs.
const (
	ManyValues = 16
	valueParts = 8
)

// ChunkSize returns how many of n values of the mapping's type a goroutine encodes
// at a time: all of them if the type has user code. A user's MarshalJSON is always
// called on the caller's goroutine.
func (m *Mapping) ChunkSize(n int) int {
	if !m.Info.Quiet || n < ManyValues {
		return max(1, n)
	}
	return (n + valueParts - 1) / valueParts
}

// Encoder encodes the values of one write. Their JSON shares the encoder's memory.
type Encoder struct {
	json *json.Encoder // writes to the encoder itself
	left int           // values still to come, about
	room []byte        // free memory for them
	last []byte        // the value written last
}

// encoderRoom bounds the memory that an encoder allocates at once: the memory lives
// as long as any document in it.
const encoderRoom = 64 << 10

var encoders = sync.Pool{New: func() any {
	e := new(Encoder)
	e.json = json.NewEncoder(e)
	e.json.SetEscapeHTML(false)
	return e
}}

// NewEncoder returns an encoder for n values. Release must follow.
func NewEncoder(n int) *Encoder {
	e := encoders.Get().(*Encoder)
	e.left = n
	return e
}

// Release returns the encoder to its pool. The JSON that it made stays valid.
func (e *Encoder) Release() {
	e.room, e.last = nil, nil
	encoders.Put(e)
}

// Write implements io.Writer. encoding/json calls it once for each value.
func (e *Encoder) Write(p []byte) (int, error) {
	if len(p) > cap(e.room)-len(e.room) {
		e.room = make([]byte, 0, max(len(p), min(len(p)*e.left, encoderRoom)))
	}
	start := len(e.room)
	e.room = append(e.room, p...)
	e.last = e.room[start:len(e.room):len(e.room)]
	e.left--
	return len(p), nil
}

// Encode returns the JSON of the struct that v points to.
func (e *Encoder) Encode(m *Mapping, v any, limits metadata.Limits) (Encoded, error) {
	if body, ok := e.encodeStored(m, v, limits); ok {
		return Encoded{body, true}, nil
	}
	if err := e.encode(m, v); err != nil {
		return Encoded{}, fmt.Errorf("%w: %w", errs.ErrType, err)
	}
	return Encoded{e.last, false}, nil
}

// encode leaves the JSON of v in e.last. Types that may hold a time.Time take another
// way, as encoding/json keeps its zone and the number of its digits.
func (e *Encoder) encode(m *Mapping, v any) error {
	if !m.Info.Times {
		return e.json.Encode(v)
	}
	raw, err := instant.Marshal(v)
	if err == nil {
		_, err = e.Write(append(raw, '\n')) // as encoding/json ends a value
	}
	return err
}

// encodeStored returns the stored JSON of v if the type guarantees all that
// metadata.Scan would check. Otherwise it returns false, and Scan decides, so that
// the errors are its own.
func (e *Encoder) encodeStored(m *Mapping, v any, limits metadata.Limits) ([]byte, bool) {
	if m.Info.View == nil || m.Info.Depth > limits.MaxDepth {
		return nil, false
	}
	// The view differs in tags only, so a pointer to one is a pointer to the other:
	// Inspect has checked that with reflect.
	view := reflect.NewAt(m.Info.View, reflect.ValueOf(v).UnsafePointer()).Interface()
	if err := e.encode(m, view); err != nil {
		return nil, false
	}
	body := bytes.TrimSuffix(e.last, []byte{'\n'})
	if len(body)+m.leftOutBytes(v) > limits.MaxBytes || m.Info.textKeys && repeatsKeys(body) {
		return nil, false
	}
	return body, true
}

// leftOutBytes returns how much longer the JSON would be with the members that are
// not stored.
func (m *Mapping) leftOutBytes(v any) int {
	const escaped, around = 12, 16 // bytes for one, with the option "string" too; quotes, colon, comma, new line
	n := around + escaped*(len(m.GetID(v))+len(m.GetVersion(v)))
	for _, name := range m.Drop {
		n += around + len(name)
	}
	return n
}

// repeatsKeys reports whether two keys of a map may have become one: encoding/json
// replaces invalid UTF-8 by U+FFFD, as an escape.
func repeatsKeys(body []byte) bool {
	return bytes.Contains(body, []byte(`\ufffd`)) || bytes.ContainsRune(body, utf8.RuneError)
}

// DecodeJSON stores a body in the struct that v points to, as json.Unmarshal does.
// Types that run no user code (TypeInfo.View) are decoded by the package that
// becomes encoding/json in Go 1.27, in little more than half the time. What that
// package refuses is decoded again by encoding/json, so that the errors are those
// that programs know. See docs/decisions/0014-decoding.md.
func (m *Mapping) DecodeJSON(body []byte, v any) error {
	if m.Info.View != nil && !m.Info.Quoted && jsonv1.Unmarshal(body, v) == nil {
		return nil
	}
	return json.Unmarshal(body, v)
}
