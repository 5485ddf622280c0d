package server_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// put sends a definition.
func (h *host) put(name, maps, reduce string) answer {
	body := map[string]any{"Name": name, "Maps": strings.Split(maps, "\n---\n")}
	if reduce != "" {
		body["Reduce"] = reduce
	}
	text, err := json.Marshal(map[string]any{"Indexes": []any{body}})
	if err != nil {
		h.t.Fatal(err)
	}
	return h.do("PUT", "/databases/a/admin/indexes", string(text))
}

// Ensure that what RQL cannot say is refused at its place, that a text which is not C# is RavenDB's compilation error, and that neither
// leaves a definition.
func TestDefinitions_Untranslated(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for _, test := range []struct{ maps, reduce, says string }{
		{"from u in docs.Users\nselect new {\n  City = LoadDocument<Town>(\"towns/1\").Name }", "", "map 1, line 3, column 29: LoadDocument: an ID is what a member has, and no constant"},
		{"from u in docs.Users select new { u.A }\n---\nmap('Users', u => ({ a: createSpatialField(u.lat, u.lng) }))", "", "map 2, line 1, column 1: the maps of a definition are of one language"},
		{"from u in docs.Users select new { A = u.Name.Boost(10) }", "", "map 1, line 1, column 46: boosts are for full text"},
		{"map('Users', u => ({ a: u.a, n: 1 }))", "groupBy(x => x.a).aggregate(g => ({ a: g.key, n: g.values.slice(1) }))", "slice of a group is not there"},
	} {
		a := h.put("X", test.maps, test.reduce)
		if !strings.Contains(a.text(t, "Message"), test.says) || a.status != 501 && a.status != 400 {
			t.Errorf("%s is %d: %s", test.maps, a.status, a.body)
		}
	}
	a := h.put("X", "from u in docs.Users select { u.Name }", "")
	h.checkProblem(a, 400, "IndexCompilationException")
	equal(t, "property", a.text(t, "IndexDefinitionProperty"), "Maps")
	equal(t, "text", a.text(t, "ProblematicText"), "from u in docs.Users select { u.Name }")
	a = h.put("X", "from u in docs.Users select new { u.A, n = 1 }", "from r in results group r by r.A into g select new { g.Key. }")
	h.checkProblem(a, 400, "IndexCompilationException")
	equal(t, "property", a.text(t, "IndexDefinitionProperty"), "Reduce")
	h.checkProblem(h.put("X", strings.Repeat("from u in docs.A select new { u.N }\n---\n", 16)+"from u in docs.A select new { u.N }", ""), 413, "RequestTooLargeException")
	h.checkProblem(h.put("X", "from u in docs.A select new { u.N, n = 1 }", strings.Repeat("x", 17_000)), 413, "RequestTooLargeException")
	equal(t, "none", h.want(200, "GET", "/databases/a/indexes", "").text(t, "Results"), "[]")
}
