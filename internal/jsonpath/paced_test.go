package jsonpath_test

import (
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/jsonpath"
)

// Ensure that a walk says what it has done again and again, also where it finds
// nothing, and ends soon after spend returns false.
func TestExtractor_ExtractPaced(t *testing.T) {
	const n = 100_000
	elements := func(text string) string { return strings.Repeat(text+",", n-1) + text }
	states := make([]jsonpath.Path, 20)
	for i := range states { // more than are at one place mostly
		states[i] = jsonpath.MustParse("a" + strings.Repeat("[0]", i%2) + strings.Repeat("[]", 1+i/2) + ".x")
	}
	for _, test := range []struct {
		name, body string
		paths      []jsonpath.Path
	}{
		{"an array", `{"a":[` + elements("1") + `]}`, []jsonpath.Path{jsonpath.MustParse("a[]")}},
		{"an array without what is looked for", `{"a":[` + elements("1") + `]}`, []jsonpath.Path{jsonpath.MustParse("a.x")}},
		{"an object", `{"a":{` + elements(`"b":1`) + `}}`, []jsonpath.Path{jsonpath.MustParse("a.x")}},
		{"small arrays under many paths", `{"a":[` + elements("[[[1]]]") + `]}`, states},
	} {
		x := jsonpath.NewExtractor(test.paths)
		steps, calls := 0, 0
		x.ExtractPaced([]byte(test.body), func(int, []byte, bool) {}, func(n int) bool {
			steps += n
			calls++
			return true
		})
		if steps < n*9/10 || calls < 50 {
			t.Errorf("%s: %d calls with %d steps together", test.name, calls, steps)
		}
		calls, found := 0, 0
		x.ExtractPaced([]byte(test.body), func(int, []byte, bool) { found++ }, func(int) bool {
			calls++
			return false
		})
		if calls > 10 || found > 2000 {
			t.Errorf("%s: went on for %d calls and %d values", test.name, calls, found)
		}
	}
}
