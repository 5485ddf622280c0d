package server_test

import "testing"

// Ensure that RavenDB's clients get projections by JavaScript as they ask for them: objects with the metadata of projections, and errors by
// the kinds that they know.
func TestQueries_JavaScript(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for id, body := range map[string]string{
		"companies/1": `"Name":"Oak","@metadata":{"@collection":"Companies"}`,
		"orders/1":    `"Company":"companies/1","Lines":[{"Price":2,"Count":3},{"Price":1,"Count":4}],"@metadata":{"@collection":"Orders"}`,
		"orders/2":    `"Company":"companies/2","@metadata":{"@collection":"Orders"}`,
	} {
		h.want(201, "PUT", "/databases/a/docs?id="+id, "{"+body+"}")
	}
	query := func(text string) string {
		t.Helper()
		return h.want(200, "POST", "/databases/a/queries", `{"Query":`+text+`,"QueryParameters":{"p0":10}}`).compact(t, "Results")
	}
	meta := func(id string) string { return `"@metadata":{"@id":"` + id + `","@projection":true}` }
	equal(t, "a function", query(`"declare function output(o, c) {\n\tvar sum = o.Lines.reduce((t, l) => t + l.Price * l.Count, 0);\n\treturn { Name: c.Name, Big: sum >= $p0 };\n}\nfrom 'Orders' as o load o.Company as c select output(o, c)"`),
		`[{`+meta("orders/1")+`,"Big":true,"Name":"Oak"},{`+meta("orders/2")+`,"Big":false,"Name":null}]`)
	equal(t, "an object", query(`"from 'Orders' as o where id() = 'orders/2' select { Id: id(o), Ten: $p0, ...o }"`), `[{`+meta("orders/2")+`,"Company":"companies/2","Id":"orders/2","Ten":10}]`)

	h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"from Orders as o select { a: o. }"}`), 400, "InvalidQueryException")
	h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"from Orders as o select { a: o.Company.shout() }"}`), 400, "InvalidQueryException")
	h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"from Orders as o select { a: /x/ }"}`), 400, "InvalidQueryException")
}
