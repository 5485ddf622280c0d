package server_test

import (
	"strings"
	"testing"
)

// Ensure that search() of RavenDB's clients finds words, with their operators and as parameters.
func TestQueries_Search(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for id, text := range map[string]string{"notes/1": "The oak has fallen leaves", "notes/2": "Acorns of an OAK", "notes/3": "a beech"} {
		h.want(201, "PUT", "/databases/a/docs?id="+id, `{"Text":"`+text+`","@metadata":{"@collection":"Notes"}}`)
	}
	for query, want := range map[string]int{
		`{"Query":"from 'Notes' where search(Text, $p0)","QueryParameters":{"p0":"oak beech"}}`:       3,
		`{"Query":"from 'Notes' where search(Text, $p0, and)","QueryParameters":{"p0":"oak acorn*"}}`: 1,
		`{"Query":"from Notes where search(Text, 'oak') and not search(Text, 'leaves')"}`:             1,
		`{"Query":"from Notes where search(id(), 'notes 3', and)"}`:                                   1,
	} {
		equal(t, query, h.want(200, "POST", "/databases/a/queries", query).text(t, "TotalResults"), want)
	}
	h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"from Notes where search(Text, '\"oak')"}`), 400, "InvalidQueryException")
}

// Ensure that include timings() is answered as clients read it, also of an index and with parameters, and that nothing else is.
func TestQueries_Timings(t *testing.T) {
	t.Parallel()
	h := notes(t)
	if a := h.worded("Notes/ByText", `from n in docs.Notes select new { n.Text }`, `{"Text":{"Indexing":"Search"}}`); a.status != 201 {
		t.Fatal(a.body)
	}
	for _, from := range []string{"from Notes", "from index 'Notes/ByText'"} {
		a := h.want(200, "POST", "/databases/a/queries", `{"Query":"`+from+` where search(Text, $p0) include timings()","QueryParameters":{"p0":"oak"},"PageSize":1,"Start":0}`)
		equal(t, "total", a.text(t, "TotalResults"), 2)
		for _, part := range []string{"Optimizer", "Query", "Includes", "Count"} {
			if got := a.text(t, "Timings", "Timings", part, "DurationInMs"); got == "" || got == "<nil>" {
				t.Errorf("%s took %q", part, got)
			}
		}
	}
	if a := h.want(200, "POST", "/databases/a/queries", `{"Query":"from Notes where Text != 'timings()'"}`); strings.Contains(a.body, "Timings") {
		t.Errorf("not asked for: %s", a.body)
	}
	h.checkProblem(h.do("POST", "/databases/a/streams/queries", `{"Query":"from Notes include timings()"}`), 400, "InvalidQueryException")
	h.checkProblem(h.do("POST", "/jay/v1/databases/a/query", `{"query":"from Notes include timings()"}`), 400, "InvalidQueryException")
}
