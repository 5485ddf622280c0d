package server_test

import "testing"

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
