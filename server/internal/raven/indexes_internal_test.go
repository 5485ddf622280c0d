package raven

import (
	"strings"
	"testing"

	"github.com/jaydb/jay/server/internal/serve"
)

// FuzzDefinition ensures that what is taken for an index names fields of one collection.
func FuzzDefinition(f *testing.F) {
	for _, seed := range []string{`from doc in docs.Users select new { doc.Name, Age = doc.Age }`, `docs["A B"].Select(x => new { x.a })`, `map('Users', u => ({ a: u.a, "b": u.b }))`, `map('A', function (u) { return { a: u.a }; })`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		collection, fields, err := parseMap("X", text)
		if err != nil {
			if p := serve.ProblemOf(err); p.Status >= 500 && p.Status != 501 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if collection == "" || len(fields) == 0 || len(fields) > maxIndexFields {
			t.Fatalf("%q: collection %q, fields %q", text, collection, fields)
		}
		for _, field := range fields {
			if field == "" || !strings.Contains(text, field) {
				t.Fatalf("%q: field %q", text, field)
			}
		}
	})
}
