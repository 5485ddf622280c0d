package metadata_test

import (
	"testing"
	"time"

	"github.com/jaydb/jay/metadata"
)

// Ensure that the instants in metadata are found, and that what is none counts as none.
func TestReadTimes(t *testing.T) {
	at := time.Date(2027, 1, 1, 0, 0, 0, 500, time.UTC)
	for _, test := range []struct {
		custom string
		want   metadata.Times
	}{
		{``, metadata.Times{}},
		{`{}`, metadata.Times{}},
		{`{"a":{"@expires":"2027-01-01T00:00:00Z"}}`, metadata.Times{}},
		{`{"@expires":"soon","@refresh":7}`, metadata.Times{}},
		{`{"@expires":"2027-01-01T00:00:00.0000005Z"}`, metadata.Times{Expires: at}},
		{`{"@expires":"2027-01-01T02:00:00.0000005+02:00"}`, metadata.Times{Expires: at}},
		{`{"k":1,"\u0040refresh":"2027-01-01T00:00:00.0000005Z"}`, metadata.Times{Refresh: at}},
		{`{"@refresh":"2027-01-01T00:00:00.0000005Z","@expires":"2027-01-01T00:00:00.0000005Z"}`, metadata.Times{Expires: at, Refresh: at}},
	} {
		if got := metadata.ReadTimes([]byte(test.custom)); got != test.want {
			t.Errorf("%s: got %v, want %v", test.custom, got, test.want)
		}
	}
}

// Ensure that an instant is set in the place of another one, and removed.
func TestSetTime(t *testing.T) {
	at := time.Date(2027, 1, 1, 2, 0, 0, 0, time.FixedZone("east", 7200))
	for _, test := range []struct {
		custom, name string
		at           time.Time
		want         string
	}{
		{``, metadata.Expires, at, `{"@expires":"2027-01-01T00:00:00.0000000Z"}`},
		{``, metadata.Expires, time.Time{}, ``},
		{`{"@expires":"x"}`, metadata.Expires, time.Time{}, ``},
		{`{"@expires":"x","k":[1]}`, metadata.Expires, time.Time{}, `{"k":[1]}`},
		{`{"@expires":"x","k":[1]}`, metadata.Expires, at, `{"k":[1],"@expires":"2027-01-01T00:00:00.0000000Z"}`},
		{`{"@expires":"x","k":[1]}`, metadata.Refresh, at, `{"@expires":"x","k":[1],"@refresh":"2027-01-01T00:00:00.0000000Z"}`},
	} {
		got, err := metadata.SetTime([]byte(test.custom), test.name, test.at)
		if err != nil || string(got) != test.want || (got == nil) != (test.want == "") {
			t.Errorf("%s, %s: got %s, %v; want %s", test.custom, test.name, got, err, test.want)
		}
	}
	if _, err := metadata.SetTime(nil, metadata.Expires, time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)); err == nil {
		t.Error("the year 10000 was taken")
	}
}

// Ensure that a document expires at its instant, not before and not after it.
func TestHeader_IsExpired(t *testing.T) {
	at := time.Date(2027, 1, 1, 0, 0, 0, 1, time.UTC)
	h := metadata.Header{Custom: []byte(`{"@expires":"2027-01-01T00:00:00.000000001Z"}`), Timed: true}
	if h.IsExpired(at.Add(-1)) || !h.IsExpired(at) || !h.IsExpired(at.Add(1)) {
		t.Error("it expires at another instant")
	}
	if h.Timed = false; h.IsExpired(at) || h.Times() != (metadata.Times{}) {
		t.Error("a document that an older version has written expires")
	}
}
