package instant_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/internal/instant"
)

// Ensure that every spelling of RFC 3339 has the canonical spelling of the same
// instant, and that what is none is refused.
func TestAppendText(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"no fraction", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.0000000Z"},
		{"one digit", "2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00.5000000Z"},
		{"seven digits", "2026-01-01T00:00:00.1234567Z", "2026-01-01T00:00:00.1234567Z"},
		{"eight digits", "2026-01-01T00:00:00.12345678Z", "2026-01-01T00:00:00.123456780Z"},
		{"nine digits", "2026-01-01T00:00:00.123456789Z", "2026-01-01T00:00:00.123456789Z"},
		{"nine digits, two zeros", "2026-01-01T00:00:00.123456700Z", "2026-01-01T00:00:00.1234567Z"},
		{"more digits are cut off", "2026-01-01T00:00:00.12345678999999Z", "2026-01-01T00:00:00.123456789Z"},
		{"east", "2026-01-01T12:00:00+02:00", "2026-01-01T10:00:00.0000000Z"},
		{"west, into the next day", "2026-12-31T23:00:00-01:30", "2027-01-01T00:30:00.0000000Z"},
		{"unknown offset", "2026-01-01T00:00:00-00:00", "2026-01-01T00:00:00.0000000Z"},
		{"lower case", "2026-01-01t00:00:00z", "2026-01-01T00:00:00.0000000Z"},
		{"leap day", "2024-02-29T00:00:00Z", "2024-02-29T00:00:00.0000000Z"},
		{"leap day of a century", "2000-02-29T00:00:00Z", "2000-02-29T00:00:00.0000000Z"},
		{"leap second", "2016-12-31T23:59:60Z", "2017-01-01T00:00:00.0000000Z"},
		{"leap second elsewhere", "2017-01-01T08:59:60.5+09:00", "2017-01-01T00:00:00.5000000Z"},
		{"first", "0000-01-01T00:00:00Z", "0000-01-01T00:00:00.0000000Z"},
		{"zero value of time.Time", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.0000000Z"},
		{"last", "9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999999Z"},

		{"before the year 0 in UTC", "0000-01-01T00:00:00+00:01", ""},
		{"behind the year 9999 in UTC", "9999-12-31T23:59:59-00:01", ""},
		{"leap second in the middle of a day", "2016-12-31T12:00:60Z", ""},
		{"leap second of another zone's midnight", "2016-12-31T23:59:60+09:00", ""},
		{"no offset", "2026-01-01T00:00:00", ""},
		{"no offset, RavenDB's", "2026-01-01T00:00:00.0000000", ""},
		{"date", "2026-01-01", ""},
		{"space", "2026-01-01 00:00:00Z", ""},
		{"comma", "2026-01-01T00:00:00,5Z", ""},
		{"point without digits", "2026-01-01T00:00:00.Z", ""},
		{"short hour", "2026-01-01T0:00:00Z", ""},
		{"hour 24", "2026-01-01T24:00:00Z", ""},
		{"minute 60", "2026-01-01T00:60:00Z", ""},
		{"second 61", "2026-01-01T00:00:61Z", ""},
		{"month 0", "2026-00-01T00:00:00Z", ""},
		{"month 13", "2026-13-01T00:00:00Z", ""},
		{"day 0", "2026-01-00T00:00:00Z", ""},
		{"30 February", "2026-02-30T00:00:00Z", ""},
		{"29 February", "1900-02-29T00:00:00Z", ""},
		{"31 April", "2026-04-31T00:00:00Z", ""},
		{"offset of a day", "2026-01-01T00:00:00+24:00", ""},
		{"offset without a colon", "2026-01-01T00:00:00+0200", ""},
		{"offset with seconds", "2026-01-01T00:00:00+02:00:00", ""},
		{"white space", "2026-01-01T00:00:00Z ", ""},
		{"letters", "2026-01-01Taa:00:00Z", ""},
		{"year of five digits", "12026-01-01T00:00:00Z", ""},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := instant.AppendText([]byte("x"), []byte(tt.text))
			if string(got) != "x"+tt.want || ok != (tt.want != "") {
				t.Errorf("got %s, %v", got, ok)
			}
			if ok && !instant.IsCanonical(got[1:]) {
				t.Errorf("%s is not canonical", got[1:])
			}
			if instant.IsCanonical([]byte(tt.text)) != (ok && tt.text == tt.want) {
				t.Errorf("IsCanonical(%s)", tt.text)
			}
		})
	}
}

// Ensure that without an offset a text is an instant in UTC for AppendUTC, also as SQL writes it, and that
// what has one keeps it.
func TestAppendUTC(t *testing.T) {
	for text, want := range map[string]string{
		"2026-01-01T00:00:00":                            "2026-01-01T00:00:00.0000000Z",
		"2026-01-01T00:00:00.5":                          "2026-01-01T00:00:00.5000000Z",
		"2026-01-01T00:00:00.7570000":                    "2026-01-01T00:00:00.7570000Z",
		"2026-01-01 00:00:00.123456789":                  "2026-01-01T00:00:00.123456789Z",
		"2026-01-01t00:00:00":                            "2026-01-01T00:00:00.0000000Z",
		"2016-12-31T23:59:60":                            "2017-01-01T00:00:00.0000000Z",
		"2026-01-01T12:00:00+02:00":                      "2026-01-01T10:00:00.0000000Z",
		"2026-01-01 12:00:00.5-02:00":                    "2026-01-01T14:00:00.5000000Z",
		"2026-01-01T00:00:00Z":                           "2026-01-01T00:00:00.0000000Z",
		"2026-01-01T00:00:00." + strings.Repeat("5", 80): "2026-01-01T00:00:00.555555555Z",

		"2026-01-01":                "",
		"2026-01-01T00:00":          "",
		"2026-01-01T00:00:00.":      "",
		"2026-01-01T00:00:00 ":      "",
		"2026-01-01  00:00:00":      "",
		"2026-02-30T00:00:00":       "",
		"2026-01-01T00:00:00+02":    "",
		"2026-01-01_00:00:00":       "",
		"9999-12-31T23:59:60":       "",
		"2026-01-01T00:00:00+24:00": "",
		"":                          "",
	} {
		got, ok := instant.AppendUTC([]byte("x"), []byte(text))
		if string(got) != "x"+want || ok != (want != "") {
			t.Errorf("%q: got %s, %v, want %s", text, got, ok, want)
		}
	}
}

// Ensure that texts, times and keys agree with package time on random instants, and
// that keys sort as they do.
func TestInstant_Random(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	from := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	to := time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	random := func() time.Time {
		nano := r.Int64N(1e9)
		switch r.IntN(3) {
		case 0:
			nano = 0
		case 1:
			nano -= nano % 100
		}
		return time.Unix(from+r.Int64N(to-from), nano).In(time.FixedZone("", 60*(r.IntN(2*1439)-1439)))
	}
	var lastKey []byte
	var last time.Time
	for range 20_000 {
		want := random()
		text, err := instant.Append(nil, want)
		if err != nil {
			t.Fatalf("%v: %v", want, err)
		}
		layout := "2006-01-02T15:04:05.0000000Z"
		if want.Nanosecond()%100 != 0 {
			layout = "2006-01-02T15:04:05.000000000Z"
		}
		if string(text) != want.UTC().Format(layout) || !instant.IsCanonical(text) {
			t.Fatalf("%v: got %s", want, text)
		}
		if spelt := want.Format(time.RFC3339Nano); want.Year() >= 0 && want.Year() <= 9999 {
			if got, _ := instant.AppendText(nil, []byte(spelt)); !bytes.Equal(got, text) {
				t.Fatalf("%s: got %s, want %s", spelt, got, text)
			}
		}
		key := instant.AppendKey(nil, text)
		if back, ok := instant.AppendDecoded(nil, key); !ok || !bytes.Equal(back, text) || len(key) != instant.KeySize {
			t.Fatalf("%s: key %x, back %s", text, key, back)
		}
		if lastKey != nil && bytes.Compare(key, lastKey) != want.Compare(last) {
			t.Fatalf("%v and %v: keys %x and %x", want, last, key, lastKey)
		}
		lastKey, last = key, want
	}
	for _, key := range []string{"\xff\xff\xff\xff\xff\x00\x00\x00\x00", "\x00\x00\x00\x00\x00\xff\xff\xff\xff"} {
		if got, ok := instant.AppendDecoded(nil, []byte(key)); ok {
			t.Errorf("%x: got %s", key, got)
		}
	}
}

// Ensure that each day of 10,000 years has its date.
func TestAppend_EveryDay(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 13
	}
	for day := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 10_000; day = day.AddDate(0, 0, step) {
		text, err := instant.Append(nil, day)
		if err != nil || string(text[:10]) != day.Format(time.DateOnly) {
			t.Fatalf("%v: got %s, %v", day, text, err)
		}
		if again, ok := instant.AppendText(nil, text); !ok || !bytes.Equal(again, text) {
			t.Fatalf("%s: again %s", text, again)
		}
	}
}

func TestAppend_Year(t *testing.T) {
	for _, year := range []int{-1, 10_000, 1_000_000} {
		var wrong *instant.YearError
		if _, err := instant.Append(nil, time.Date(year, 5, 1, 0, 0, 0, 0, time.UTC)); !errors.As(err, &wrong) || wrong.Year != year {
			t.Errorf("year %d: %v", year, err)
		}
	}
	if text, err := instant.Append(nil, time.Time{}); err != nil || string(text) != "0001-01-01T00:00:00.0000000Z" {
		t.Errorf("zero: %s, %v", text, err)
	}
}

type own time.Time

func (o own) MarshalJSON() ([]byte, error) { return json.Marshal(time.Time(o).Year()) }

type promoted struct{ time.Time }

type holder struct {
	At      time.Time
	Done    *time.Time
	Never   *time.Time `json:",omitempty"`
	Zero    time.Time  `json:",omitzero"`
	Own     own
	Embeds  promoted
	Any     any
	All     []time.Time
	ByName  map[string]time.Time
	ByTime  map[time.Time]int
	Numbers []float64
	HTML    string
	Raw     json.RawMessage
}

// Ensure that Marshal spells times canonically wherever they stand, and leaves types
// that marshal themselves and keys of maps as they are.
func TestMarshal_Times(t *testing.T) {
	at := time.Date(2026, 1, 1, 2, 0, 0, 5e8, time.FixedZone("", 7200))
	v := holder{At: at, Done: &at, Own: own(at), Embeds: promoted{at}, Any: map[string]any{"t": at}, All: []time.Time{at}, ByName: map[string]time.Time{"x": at}, ByTime: map[time.Time]int{at: 1}}
	got, err := instant.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	const c, r = `"2026-01-01T00:00:00.5000000Z"`, `"2026-01-01T02:00:00.5+02:00"`
	want := `{"At":` + c + `,"Done":` + c + `,"Own":2026,"Embeds":` + r + `,"Any":{"t":` + c + `},"All":[` + c + `],"ByName":{"x":` + c + `},"ByTime":{` + r + `:1},"Numbers":null,"HTML":"","Raw":null}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	_, err = instant.Marshal(map[string]any{"x": time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)})
	if _, ok := err.(*instant.YearError); !ok {
		t.Errorf("year 10000: %v", err)
	}
}

// Ensure that Marshal writes what encoding/json writes where there is no time.
func TestMarshal_LikeStandard(t *testing.T) {
	type inner struct {
		A int     `json:"a,string"`
		B float64 `json:",omitempty"`
		c int
	}
	type embedded struct{ E, F string }
	values := []any{
		nil, 1, -1.5, 1e21, 1e-7, float32(0.1), "a<b>&\u2028\u2029\x00\x7f\"\\", json.Number(""), map[json.Number]json.Number{"1": "2"}, struct {
			N json.Number `json:",string"`
			M json.Number `json:",omitempty"`
		}{N: "1.50"}, []byte("abc"), []byte(nil), [3]int{1, 2, 3}, []any(nil), map[string]int(nil),
		map[string]any{"b": 1, "a": []any{nil, true, "x", 1.0}}, map[int]string{10: "a", 9: "b"}, inner{A: 5, c: 2}, &inner{}, struct {
			embedded
			*inner
			G json.Number
		}{G: "1.0"}, json.RawMessage(`{"a" : [1, 2 ]}`), json.Number("12e3"), struct {
			X any `json:"x,omitempty"`
			Y map[string]int
			Z []string `json:",omitempty"`
		}{}, time.Second,
	}
	for _, v := range values {
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
		got, err := instant.Marshal(v)
		if err != nil || string(got) != strings.TrimSuffix(want.String(), "\n") {
			t.Errorf("%v: got %s, %v, want %s", reflect.TypeOf(v), got, err, want.String())
		}
	}
	for _, bad := range []any{make(chan int), func() {}, map[string]any{"x": make(chan int)}, json.RawMessage("{"), json.Number("x")} {
		_, want := json.Marshal(bad)
		if got, err := instant.Marshal(bad); err == nil || reflect.TypeOf(err) != reflect.TypeOf(want) || err.Error() != want.Error() {
			t.Errorf("%T: got %s, %v, want %v", bad, got, err, want)
		}
	}
}
