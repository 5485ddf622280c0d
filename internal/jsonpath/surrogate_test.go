package jsonpath_test

import (
	"testing"

	"github.com/jaydb/jay/internal/jsonpath"
)

// Ensure that halves of characters are found, and nothing else.
func TestLoneSurrogate(t *testing.T) {
	for _, test := range []struct {
		raw  string
		want int
	}{
		{`{}`, -1},
		{`{"a":"\"\\\n\u0041\ud7ff\ue000"}`, -1},
		{`"\ud83d\udc3f"`, -1},
		{`"\uD83D\uDC3F\ud83d\udc3f"`, -1},
		{`"\\ud800"`, -1},
		{`"\ud800"`, 1},
		{`{"\uDFFF":1}`, 2},
		{`["\ud83d\udc3f","\udc3f"]`, 17},
		{`"\ud83d\ud83d\udc3f"`, 1},
		{`"\ud83d\u0041"`, 1},
		{`"\ud83d\\udc3f"`, 1},
	} {
		if got := jsonpath.LoneSurrogate([]byte(test.raw)); got != test.want {
			t.Errorf("%s: got %d, want %d", test.raw, got, test.want)
		}
	}
}
