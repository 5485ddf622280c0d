package query_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that a range of an index that holds more than the condition is not the answer: keys
// begin with folded text, and have only the beginning of a long value.
func TestQuery_RangeHoldsTooMuch(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 600)
	tests := []struct {
		where string
		want  []string // in the order of values
	}{
		{"exact(startsWith(v, 'ab'))", []string{"abc"}},
		{"exact(startsWith(v, 'AB'))", []string{"ABD"}},
		{"startsWith(v, 'ab')", []string{"Abc", "abc", "ABD"}},
		{"startsWith(v, '" + long + "b')", []string{long + "b"}},
		{"v > '" + long + "a'", []string{long + "b", long + "c"}},
		{"v >= '" + long + "b'", []string{long + "b", long + "c"}},
		{"v < '" + long + "b' and v > 'w'", []string{long + "a"}},
		{"v between '" + long + "b' and '" + long + "bb'", []string{long + "b"}},
		{"v = '" + long + "c'", []string{long + "c"}},
		{"exact(v = '" + long + "C')", nil},
	}
	for _, field := range []string{"v", "-v"} {
		db := memory(t, nil)
		must(t, db.EnsureIndex(ctx, "Things", jay.Index{Fields: []string{field}}))
		for i := range 40 { // so that the index is worth a walk
			put(t, db, fmt.Sprint("filler/", i), fmt.Sprintf(`{"v":"filler %d"}`, i), jay.InCollection("Things"))
		}
		for i, v := range []string{"Abc", "abc", "ABD", long + "a", long + "b", long + "c"} {
			put(t, db, fmt.Sprint("things/", i), fmt.Sprintf(`{"v":%q}`, v), jay.InCollection("Things"))
		}
		for _, test := range tests {
			q, err := db.RQL("from Things where "+test.where+" select v", nil)
			must(t, err)
			if _, err := q.NoScan().Explain(ctx); err != nil {
				t.Errorf("%s, %.40s: no index is used: %v", field, test.where, err)
			}
			var want []string
			for _, v := range test.want {
				want = append(want, fmt.Sprintf(`{"v":%q}`, v))
			}
			got := rows(t, db, q.String())
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s, %.40s: got %d rows %.100q, want %.100q", field, test.where, len(got), got, want)
			}
		}
	}
}

// Ensure that the order of an index in which a document has several entries is not the order
// of the answers: it is the one that there is without the index.
func TestQuery_OrderOfSeveralEntries(t *testing.T) {
	t.Parallel()
	var answers []string
	for _, index := range [][]string{nil, {"v"}, {"-v"}} {
		db := memory(t, nil)
		if index != nil {
			must(t, db.EnsureIndex(ctx, "Things", jay.Index{Fields: index}))
		}
		for i := range 40 {
			put(t, db, fmt.Sprint("filler/", i), fmt.Sprintf(`{"v":%d}`, 100+i), jay.InCollection("Things"))
		}
		for i, v := range []string{"[7,1]", "3", "[2,9,4]", "[5]", "[]", "8"} {
			put(t, db, fmt.Sprint("things/", i), fmt.Sprintf(`{"v":%s}`, v), jay.InCollection("Things"))
		}
		answer := ""
		for _, text := range []string{"order by v", "order by v desc", "where v > 2 order by v limit 5", "where v < 10 order by v desc limit 5"} {
			answer += fmt.Sprintln(text, rows(t, db, "from Things "+text))
		}
		answers = append(answers, answer)
	}
	for _, answer := range answers[1:] {
		if answer != answers[0] {
			t.Errorf("got %s\nwant %s", answer, answers[0])
		}
	}
}
