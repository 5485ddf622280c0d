package server_test

import "testing"

// Ensure that documents for which an expression of an index fails are listed, in pages, until they are mended.
func TestOwn_IndexErrors(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("db")
	for id, body := range map[string]string{"As/1": `{"Sum":1,"N":0}`, "As/2": `{"Sum":6,"N":2}`, "As/3": `{"Sum":3,"N":0}`} {
		h.want(201, "PUT", "/databases/db/docs?id="+id, body[:len(body)-1]+`,"@metadata":{"@collection":"As"}}`)
	}
	h.want(201, "PUT", own+"/indexes", `{"collection":"As","index":{"name":"each","fields":["Sum / N"]}}`)
	h.want(201, "PUT", own+"/indexes", `{"collection":"As","index":{"name":"plain","fields":["N"]}}`)

	errors := func(query string) answer { return h.want(200, "GET", own+"/indexes/errors?collection=As&"+query, "") }
	first := `{"field":"Sum / N","id":"As/1","reason":"/: a division by zero"}`
	third := `{"field":"Sum / N","id":"As/3","reason":"/: a division by zero"}`
	equal(t, "all", errors("name=each").compact(t, "errors"), "["+first+","+third+"]")
	equal(t, "a page", errors("name=each&limit=1").compact(t, "errors"), "["+first+"]")
	equal(t, "the next", errors("name=each&limit=1&after=As/1").compact(t, "errors"), "["+third+"]")
	equal(t, "behind the last", errors("name=each&after=As/3").compact(t, "errors"), "[]")
	equal(t, "no expression", errors("name=plain").compact(t, "errors"), "[]")

	h.want(201, "PUT", "/databases/db/docs?id=As/1", `{"Sum":1,"N":1,"@metadata":{"@collection":"As"}}`)
	equal(t, "mended", errors("name=each").compact(t, "errors"), "["+third+"]")

	for _, query := range []string{"collection=As&name=none", "collection=As", "collection=As&name=each&limit=-1", "collection=As&name=each&limit=10001", "collection=As&name=each&limit=x"} {
		h.checkProblem(h.do("GET", own+"/indexes/errors?"+query, ""), 400, "BadRequestException")
	}
}
