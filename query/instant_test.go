package query_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/query"
)

func instantOf(t testing.TB, text string) query.Value {
	t.Helper()
	v, err := query.InstantOf(query.TextValue(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Ensure that no release writes other bytes for instants: these are in users'
// databases. The rows stand in the order of time, and behind all other values.
func TestAppendKey_GoldenInstants(t *testing.T) {
	tests := []struct{ text, key string }{
		{"0000-01-01T00:00:00Z", "58000000000000000000"},
		{"0001-01-01T00:00:00Z", "580001e2850000000000"},
		{"1969-12-31T23:59:59.999999999Z", "580e79747bff3b9ac9ff"},
		{"1970-01-01T00:00:00Z", "580e79747c0000000000"},
		{"2026-01-01T00:00:00Z", "580ee2ca350000000000"},
		{"2026-01-01T00:00:00.000000001Z", "580ee2ca350000000001"},
		{"2026-01-01T02:00:00.5+02:00", "580ee2ca35001dcd6500"},
		{"2026-01-01T00:00:00.5000001Z", "580ee2ca35001dcd6564"},
		{"9999-12-31T23:59:59.999999999Z", "58497968bd7f3b9ac9ff"},
	}
	previous := query.ValueOf([]byte(`{"a":1}`))
	previousKey, _ := query.AppendKey(nil, previous, false)
	for _, test := range tests {
		v := instantOf(t, test.text)
		key, truncated := query.AppendKey(nil, v, false)
		if got := hex.EncodeToString(key); got != test.key || truncated {
			t.Errorf("%s: got %s, want %s", test.text, got, test.key)
		}
		if previous.Compare(v) != -1 || v.Compare(previous) != 1 || bytes.Compare(previousKey, key) != -1 {
			t.Errorf("%v is not less than %v", previous, v)
		}
		for _, descending := range []bool{false, true} {
			key, _ := query.AppendKey(nil, v, descending)
			key = append(key, "rest"...)
			back, exact := query.DecodeKey(key)
			rest, ok := query.SkipKey(key)
			text, rest2, ok2 := query.AppendDecoded(nil, key)
			if !back.Equal(v) || !exact || !ok || !ok2 || string(rest) != "rest" || string(rest2) != "rest" || string(text) != v.String() {
				t.Errorf("%s, descending %v: decoded %v, %s", test.text, descending, back, text)
			}
		}
		previous, previousKey = v, key
	}
	for _, broken := range []string{"58", "580ee2ca350000", "58ffffffffff00000000", "580ee2ca35003b9aca00"} {
		key, err := hex.DecodeString(broken)
		if err != nil {
			t.Fatal(err)
		}
		if v, exact := query.DecodeKey(key); exact || !v.IsMissing() {
			t.Errorf("%s: decoded %v", broken, v)
		}
		if text, _, ok := query.AppendDecoded(nil, key); ok {
			t.Errorf("%s: decoded %s", broken, text)
		}
	}
}

// Ensure that a value made of a time is the instant that its text is, and gives the time
// back.
func TestInstantValue(t *testing.T) {
	at := time.Date(2026, 1, 1, 2, 0, 0, 500, time.FixedZone("", 7200))
	for _, value := range []any{at, &at, at.UTC()} {
		v, err := query.NewValue(value)
		if err != nil || v.Kind() != query.KindInstant || v.String() != `"2026-01-01T00:00:00.0000005Z"` || !v.Time().Equal(at) || !v.IsScalar() {
			t.Errorf("%T: got %v, %v", value, v, err)
		}
		if !v.Equal(instantOf(t, "2026-01-01T01:00:00.0000005+01:00")) {
			t.Errorf("%v is not itself", v)
		}
	}
	if v, err := query.NewValue((*time.Time)(nil)); err != nil || v.Kind() != query.KindNull {
		t.Errorf("nil: %v, %v", v, err)
	}
	for _, bad := range []query.Value{query.TextValue("2026-01-01"), query.ValueOf([]byte("5")), query.ValueOf([]byte("true")), {}} {
		if v, err := query.InstantOf(bad); !errors.Is(err, query.ErrValue) {
			t.Errorf("%v: got %v, %v", bad, v, err)
		}
	}
	if _, err := query.NewValue(time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)); !errors.Is(err, query.ErrValue) {
		t.Errorf("year 10000: %v", err)
	}
}

// Ensure that a field that is read as a date reaches instants and null, be there few
// values or too many to be held, and says when their text is another one.
func TestReader_Date(t *testing.T) {
	at := query.Field{Path: jsonpath.MustParse("At"), Date: query.DateInstant}
	month := query.Field{Path: jsonpath.MustParse("At"), Date: query.DateMonth}
	r := query.NewReader([]query.Field{at, {Path: jsonpath.MustParse("At")}, month})
	for _, test := range []struct {
		body, want, month    string
		found, single, plain bool
	}{
		{`{}`, "", "", false, true, true},
		{`{"At":null}`, "null ", "null ", true, true, true},
		{`{"At":"2026-01-31T00:00:00.0000000Z"}`, `"2026-01-31T00:00:00.0000000Z" `, `"2026-01" `, true, true, true},
		{`{"At":"2026-02-01T01:00:00+02:00"}`, `"2026-01-31T23:00:00.0000000Z" `, `"2026-01" `, true, false, true},
		{`{"At":"2026-01-31T00:00:00\u005a"}`, `"2026-01-31T00:00:00.0000000Z" `, `"2026-01" `, true, false, true},
		{`{"At":"no"}`, "", "", false, false, true},
		{`{"At":5}`, "", "", false, false, true},
		{`{"At":{"At":"2026-01-31T00:00:00Z"}}`, "", "", false, false, true},
		{`{"At":[]}`, "", "", false, false, false},
		{`{"At":["no",null,"2026-01-31T00:00:00Z","2025-01-31T00:00:00Z"]}`, `null "2026-01-31T00:00:00.0000000Z" "2025-01-31T00:00:00.0000000Z" `, `null "2026-01" "2025-01" `, true, false, false},
	} {
		r.Reset(query.Doc{Body: []byte(test.body)})
		text := func(field int) (all string) {
			for _, v := range r.Values(field) {
				all += v.String() + " "
			}
			return all
		}
		if text(0) != test.want || text(2) != test.month || r.Found(0) != test.found || r.Single(0) != test.single || r.Single(1) != test.plain {
			t.Errorf("%s: got %s, %s, found %v, single %v and %v", test.body, text(0), text(2), r.Found(0), r.Single(0), r.Single(1))
		}
	}

	body := []byte(`{"At":[`)
	const many = 600_000
	for i := range many {
		if i > 0 {
			body = append(body, ',')
		}
		if i%2 == 0 {
			body = append(body, `"x"`...)
		} else {
			body = append(body, `"2026-01-31T00:00:00Z"`...)
		}
	}
	more := append(append(body[:len(body):len(body)], ','), body[len(`{"At":[`):]...)
	r = query.NewReader([]query.Field{at})
	for _, test := range []struct {
		body []byte
		want int
		many bool
	}{{append(body, "]}"...), many / 2, false}, {append(more, "]}"...), many, true}} {
		r.Reset(query.Doc{Body: test.body})
		n := 0
		r.Each(0, func(v query.Value) bool {
			if v.Kind() != query.KindInstant {
				t.Fatalf("got %v", v)
			}
			n++
			return true
		})
		if n != test.want || r.Many(0) != test.many {
			t.Errorf("got %d, many %v, want %d", n, r.Many(0), test.want)
		}
	}
}
