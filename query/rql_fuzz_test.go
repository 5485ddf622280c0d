package query_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/jaydb/jay/query"
)

// FuzzParse gives any text to Parse. It must not panic, its errors must have
// their place in the text, and what a query prints must mean the query.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/rql/*.txt")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, d := range dialogues(string(text)) {
			f.Add(d.query)
		}
	}

	f.Fuzz(func(t *testing.T, text string) {
		params := map[string]any{"p": []any{"x", 1}, "name": "it's", "n": 5}
		for range 4 { // parameters that are not met are refused
			q, err := query.Parse(text, params)
			if err != nil {
				e := checkError(t, text, err)
				if name, found := strings.CutPrefix(e.Message, "the query has no parameter $"); found {
					name, _, _ = strings.Cut(name, ",")
					delete(params, name)
					continue
				}
				return
			}
			printed := q.String()
			if len(printed) > query.MaxText {
				return
			}
			again, err := query.Parse(printed, nil)
			if err != nil {
				t.Fatalf("%q prints %q, which is refused: %v", text, printed, err)
			}
			if !reflect.DeepEqual(q, again) || again.String() != printed {
				t.Fatalf("%q prints %q, which means %q", text, printed, again)
			}
			return
		}
	})
}
