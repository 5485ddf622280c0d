package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// Ensure that definitions with vectors of RavenDB's clients find them in the form that the options of a field say, by an index of vectors where they are numbers
// whose dimensions are said; and that nothing is left of them.
func TestDefinitions_Vectors(t *testing.T) {
	t.Parallel()
	const options = `{"numbers":{"Vector":{"SourceEmbeddingType":"Single","DestinationEmbeddingType":"Int8","Dimensions":3,"NumberOfEdges":20,"NumberOfCandidatesForIndexing":16}},` +
		`"signs":{"Vector":{"SourceEmbeddingType":"Single","DestinationEmbeddingType":"Binary"}},"small":{"Vector":{"SourceEmbeddingType":"Int8","DestinationEmbeddingType":"Int8"}},"bits":{"Vector":{"SourceEmbeddingType":"Binary"}}}`
	for kind, maps := range map[string]string{
		"C#":         `from n in docs.Notes select new { numbers = CreateVector(n.v), signs = CreateVector(n.v), small = CreateVector(n.small), bits = CreateVector(n.bits), n.topic }`,
		"JavaScript": `map('Notes', n => ({ numbers: createVector(n.v), signs: createVector(n.v), small: createVector(n.small), bits: createVector(n.bits), topic: n.topic }))`,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			h := start(t)
			h.create("a")
			for id, body := range map[string]string{
				"notes/1": `"v":[3,-1,2],"small":[127,-42,85,0,0,64,64],"bits":[160],"topic":"oak"`, "notes/2": `"v":[3,-1,-0.1],"small":"f9b8AABAQA==","bits":"oA==","topic":"elm"`,
				"notes/3": `"v":[-3,1,-2],"small":[-127,42,-85,0,0,64,64],"bits":[64],"topic":"oak"`, "notes/4": `"v":[1],"small":"no","topic":"oak"`,
			} {
				h.want(201, "PUT", "/databases/a/docs?id="+id, `{`+body+`,"@metadata":{"@collection":"Notes"}}`)
			}
			if a := h.worded("Notes/ByVector", maps, options); a.status != 201 {
				t.Fatal(a.body)
			}
			if body := h.want(200, "GET", "/databases/a/indexes?name=Notes/ByVector", "").body; !strings.Contains(body, options) {
				t.Errorf("echoed as %s", body)
			}
			equal(t, "ready", h.want(200, "GET", "/databases/a/indexes/staleness?name=Notes/ByVector", "").text(t, "IsStale"), "false")
			for _, row := range []struct{ rest, p, want string }{
				{`where vector.search(numbers, $p, 0.999)`, `[3,-1,2]`, "1"},
				{`where vector.search(numbers, $p, 0.7, null) order by id()`, `[3,-1,2]`, "1 2"},
				{`where vector.search(signs, $p, 0.9)`, `[3,-1,2]`, "1"},
				{`where vector.search(signs, $p, 0.875) order by id()`, `[9,-9,9]`, "1 2"},
				{`where vector.search(small, $p, 0.999)`, `[127,-42,85,0,0,64,64]`, "1"},
				{`where vector.search(bits, $p, 1) order by id()`, `[160]`, "1 2"},
				{`where vector.search(bits, $p, 1) and topic = 'oak'`, `[-96]`, "1"},
				{`where vector.search(numbers, $p, -1) order by vector.distance(numbers, $p) limit 2`, `[-3,1,-2]`, "3 2"},
				{`where vector.search(numbers, $p, -1) order by rank.fuse(vector.distance(numbers, $p), topic desc)`, `[-3,1,-2]`, "3 2 1"},
			} {
				ids, _ := h.asks(fmt.Sprintf(`{"Query":"from index 'Notes/ByVector' %s","QueryParameters":{"p":%s}}`, row.rest, row.p))
				if ids != row.want {
					t.Errorf("%s, %s: got %s, want %s", row.rest, row.p, ids, row.want)
				}
			}
			plan := h.want(200, "POST", "/databases/a/queries?debug=explain", `{"Query":"from index 'Notes/ByVector' where vector.search(numbers, $p, 0.9)","QueryParameters":{"p":[1,2,3]}}`).body
			if !strings.Contains(plan, "vectors") {
				t.Errorf("the plan is %s", plan)
			}
			for _, p := range []string{`[3,-1,0.5]`, `[300,0,0,0,0]`} {
				h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"from index 'Notes/ByVector' where vector.search(small, $p)","QueryParameters":{"p":`+p+`}}`), 400, "InvalidQueryException")
			}
			sides := func() string { return h.want(200, "GET", "/jay/v1/databases/a/indexes", "").body }
			if !strings.Contains(sides(), "Notes/ByVector::vectors") {
				t.Errorf("indexes: %s", sides())
			}
			h.want(204, "DELETE", "/databases/a/indexes?name=Notes/ByVector", "")
			if strings.Contains(sides(), "Notes/ByVector") {
				t.Errorf("left: %s", sides())
			}
		})
	}
}

// Ensure that vectors in definitions that need a model, or are computed, are refused by name.
func TestDefinitions_VectorsRefused(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for maps, want := range map[string]string{
		`from n in docs.Notes select new { v = CreateVector(n.a, n.b) }`:  "the member that is the vector",
		`from n in docs.Notes select new { v = CreateVector(n.a + n.b) }`: "is not computed",
		`map('Notes', n => ({ v: CreateVector(n.v) }))`:                   "is not there",
		`from n in docs.Notes select new { v = LoadVector("a", "b") }`:    "LoadVector",
	} {
		a := h.worded("Notes/Bad", maps, `{}`)
		if a.status < 400 || !strings.Contains(a.body, want) {
			t.Errorf("%s: got %d %s, want %q", maps, a.status, a.body, want)
		}
	}
	a := h.worded("Notes/Bad", `from n in docs.Notes select new { n.v, n.w }`, `{"v":{"Vector":{"SourceEmbeddingType":"Text"}}}`)
	if a.status < 400 || !strings.Contains(a.body, "without a model") {
		t.Errorf("got %d %s", a.status, a.body)
	}
}
