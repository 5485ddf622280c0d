package language_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jaydb/jay/query"
)

// validPair returns two values if both texts are compact JSON in UTF-8.
func validPair(a, b []byte) (v, w query.Value, ok bool) {
	for _, raw := range [][]byte{a, b} {
		if !json.Valid(raw) || !utf8.Valid(raw) || raw[0] <= ' ' || raw[len(raw)-1] <= ' ' {
			return v, w, false
		}
	}
	return query.ValueOf(a), query.ValueOf(b), true
}

// Ensure that numbers compare by what they are, not by how they are written.
func TestValue_Equal_Numbers(t *testing.T) {
	equal := [][]string{
		{"0", "-0", "0.0", "0e9", "-0.0e-9", "0e99999999999999999999"},
		{"1", "1.0", "1e0", "10e-1", "0.1E+1", "0.0001e4"},
		{"9007199254740993", "9007199254740993.0", "9007199254.740993e6"},
		{"9007199254740992"},
		{"1000000", "1e6", "100e4", "1000000.000"},
		{"0.0001", "1e-4", "0.01e-2"},
		{"1e400", "10e399", "1E400"},
		{"1e401"},
		{"-1.5", "-15e-1"},
		{"1e1000000000000000", "1e1000000000000001", "1e999999999999999999999"},
	}
	for i, group := range equal {
		for j, other := range equal {
			for _, a := range group {
				for _, b := range other {
					checkPair(t, query.ValueOf([]byte(a)), query.ValueOf([]byte(b)), 0)
					if got := query.ValueOf([]byte(a)).Equal(query.ValueOf([]byte(b))); got != (i == j) {
						t.Errorf("%s equals %s: got %v, want %v", a, b, got, i == j)
					}
				}
			}
		}
	}
}

// Ensure that case is disregarded only when asked for, and as IDs do it.
func TestValue_EqualFold(t *testing.T) {
	tests := []struct {
		a, b        string
		exact, fold bool
	}{
		{`"Ada"`, `"ada"`, false, true},
		{`"Ada"`, `"Ada"`, true, true},
		{`"\u0041da"`, `"Ada"`, true, true},
		{`"Ä"`, `"ä"`, false, true},
		{`"ß"`, `"SS"`, false, false},
		{`"ß"`, `"ẞ"`, false, true},
		{"\"\u212a\"", `"k"`, false, true},
		{"\"\u0130\"", `"i"`, false, true},
		{`"ı"`, `"i"`, false, false},
		{`"1"`, `1`, false, false},
		{`true`, `true`, true, true},
	}
	for _, test := range tests {
		a, b := query.ValueOf([]byte(test.a)), query.ValueOf([]byte(test.b))
		if got := a.Equal(b); got != test.exact {
			t.Errorf("%s equals %s: got %v, want %v", test.a, test.b, got, test.exact)
		}
		if got := a.EqualFold(b); got != test.fold {
			t.Errorf("%s equals %s without case: got %v, want %v", test.a, test.b, got, test.fold)
		}
	}
}

type (
	status string
	level  uint8
)

// Ensure that Go values mean what encoding/json writes for them, and that
// nothing else comes in.
func TestNewValue(t *testing.T) {
	text, when := "x", time.Date(2026, 1, 31, 10, 0, 0, 500, time.UTC)
	tests := []struct {
		give any
		want string
		err  error
	}{
		{nil, `null`, nil},
		{(*string)(nil), `null`, nil},
		{(*time.Time)(nil), `null`, nil},
		{&text, `"x"`, nil},
		{true, `true`, nil},
		{-5, `-5`, nil},
		{int64(math.MinInt64), `-9223372036854775808`, nil},
		{uint64(math.MaxUint64), `18446744073709551615`, nil},
		{level(7), `7`, nil},
		{1.0, `1`, nil},
		{0.1, `0.1`, nil},
		{float32(0.1), `0.1`, nil},
		{1e21, `1e+21`, nil},
		{1e-7, `1e-7`, nil},
		{math.Copysign(0, -1), `0`, nil},
		{json.Number("1.50"), `1.50`, nil},
		{status("Open"), `"Open"`, nil},
		{"a\"<\n\x01é", `"a\"<\n\u0001é"`, nil},
		{when, `"2026-01-31T10:00:00.0000005Z"`, nil},
		{&when, `"2026-01-31T10:00:00.0000005Z"`, nil},
		{query.TextValue("x"), `"x"`, nil},
		{json.RawMessage(` 1.0`), `1.0`, nil},
		{math.NaN(), "", query.ErrNumber},
		{math.Inf(-1), "", query.ErrNumber},
		{json.Number("01"), "", query.ErrNumber},
		{json.Number(""), "", query.ErrNumber},
		{json.Number("NaN"), "", query.ErrNumber},
		{"a\xff", "", query.ErrText},
		{json.RawMessage(`"\ud83d\udc3f"`), `"🐿"`, nil},
		{json.RawMessage(`"a\ud800"`), "", query.ErrText},
		{[]byte("x"), "", query.ErrValue},
		{struct{}{}, "", query.ErrValue},
		{func() {}, "", query.ErrValue},
		{json.RawMessage(`[1]`), "", query.ErrValue},
		{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), "", query.ErrValue},
	}
	for _, test := range tests {
		v, err := query.NewValue(test.give)
		if string(v.Raw()) != test.want || !errors.Is(err, test.err) {
			t.Errorf("NewValue(%#v): got %s, %v, want %s, %v", test.give, v.Raw(), err, test.want, test.err)
		}
	}
}
