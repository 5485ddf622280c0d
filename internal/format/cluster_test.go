package format

import (
	"encoding/json"
	"reflect"
	"testing"
)

// Ensure that lost numbers are joined where they meet, in whatever order they come, and
// that the oldest spans are only counted when there are too many.
func TestLost(t *testing.T) {
	var l Lost
	for _, s := range [][2]int64{{5, 6}, {1, 1}, {9, 12}, {3, 4}, {2, 2}, {11, 15}, {30, 30}} {
		l.Add(s[0], s[1])
	}
	if want := [][2]int64{{1, 6}, {9, 15}, {30, 30}}; !reflect.DeepEqual(l.Spans, want) || l.Count() != 14 {
		t.Errorf("got %v, %d numbers; want %v", l.Spans, l.Count(), want)
	}
	for n := range int64(MostLostSpans + 5) {
		l.Add(100+2*n, 100+2*n)
	}
	if len(l.Spans) != MostLostSpans || l.Count() != 14+MostLostSpans+5 {
		t.Errorf("%d spans of %d numbers", len(l.Spans), l.Count())
	}
	text, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := DecodeLost(text); err != nil || !reflect.DeepEqual(again, l) {
		t.Errorf("decoded: %v", err)
	}
	for _, bad := range []string{``, `{"spans":[[0,1]]}`, `{"spans":[[2,1]]}`, `{"spans":[[1,2],[2,3]]}`, `{"more":-1}`} {
		if _, err := DecodeLost([]byte(bad)); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

// Ensure that the records of an intent are what they were, and that broken ones are
// refused.
func TestIntent(t *testing.T) {
	key := IntentWriteKey(7, 3)
	if number, at, ok := SplitIntentWriteKey(key); number != 7 || at != 3 || !ok {
		t.Errorf("got %d, %d, %t", number, at, ok)
	}
	if number, err := IntentNumber(IntentKey(7)); number != 7 || err != nil {
		t.Errorf("got %d, %v", number, err)
	}
	value := append(AppendIntentWrite(nil, IntentPut, "users/1"), "record"...)
	if want := "\x01\x07users/1record"; string(value) != want {
		t.Errorf("got %q, want %q", value, want)
	}
	kind, id, record, err := DecodeIntentWrite(value)
	if kind != IntentPut || id != "users/1" || string(record) != "record" || err != nil {
		t.Errorf("got %d, %q, %q, %v", kind, id, record, err)
	}
	for _, bad := range []string{"", "\x01", "\x03\x01ax", "\x01\x01a", "\x02\x01ax", "\x01\x09a", "\x01\x00a"} {
		if _, _, _, err := DecodeIntentWrite([]byte(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
	for _, bad := range []string{"", "{}", `{"slot":"a","call":"b"}`, `{"slot":"a","call":"b","before":1,"writes":-1}`} {
		if _, err := DecodeIntent([]byte(bad)); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}
