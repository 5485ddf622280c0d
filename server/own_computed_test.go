package server_test

import (
	"strings"
	"testing"
)

// Ensure that computed indexes are previewed, declared, replaced, listed and dropped through Jay's own interface, with their errors, and who may do
// what.
func TestOwn_Computed(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("db")
	for id, body := range map[string]string{"As/1": `{"K":1,"Sum":1.10,"N":0`, "As/2": `{"K":1,"Sum":6,"N":2`} {
		h.want(201, "PUT", "/databases/db/docs?id="+id, body+`,"@metadata":{"@collection":"As"}}`)
	}
	const declared = `{"name":"Means","maps":[{"collection":"As","select":[{"name":"K"},{"name":"V","expression":"Sum / N"}]}],"reduce":{"groupBy":["K"],"select":[{"name":"K"},{"name":"Mean","expression":"avg(V)"}]}}`
	p := h.want(200, "POST", own+"/indexes/computed/preview", `{"index":`+declared+`,"ids":["As/2"]}`)
	equal(t, "documents", p.compact(t, "documents"), `[{"collection":"As","id":"As/2","maps":[{"entries":[{"K":1,"V":3}],"map":1}]}]`)
	equal(t, "results", p.compact(t, "results"), `[{"K":1,"Mean":3}]`)
	p = h.want(200, "POST", own+"/indexes/computed/preview", `{"index":`+declared+`}`)
	equal(t, "results of all", p.compact(t, "results"), `[{"K":1,"Mean":3}]`)
	equal(t, "none is made", h.want(200, "GET", own+"/indexes/computed", "").compact(t, "computed"), "[]")

	h.want(201, "PUT", own+"/indexes/computed", `{"index":`+declared+`}`)
	if list := h.want(200, "GET", own+"/indexes/computed", "").compact(t, "computed"); !strings.Contains(list, `"state":"ready"`) || !strings.Contains(list, `"errors":1`) {
		t.Errorf("listed: %s", list)
	}
	equal(t, "errors", h.want(200, "GET", own+"/indexes/computed/errors?name=means", "").compact(t, "errors"), `[{"collection":"As","field":"Sum / N","id":"As/1","reason":"/: a division by zero"}]`)

	const other = `{"name":"Means","maps":[{"collection":"As","select":[{"name":"K"}]}]}`
	h.checkProblem(h.do("PUT", own+"/indexes/computed", `{"index":`+other+`}`), 400, "BadRequestException")
	h.want(201, "PUT", own+"/indexes/computed", `{"index":`+other+`,"replace":true}`)
	for _, bad := range []struct{ method, path, body, name string }{
		{"POST", "/indexes/computed/preview", `{"index":{"name":"x","maps":[]}}`, "BadRequestException"},
		{"POST", "/indexes/computed/preview", `{"index":` + other + `,"ids":["As/2","none"]}`, "BadRequestException"},
		{"PUT", "/indexes/computed", `{"index":{"name":"x","maps":[{"collection":"As","select":[{"name":"K","expression":"a +"}]}]}}`, "InvalidQueryException"},
		{"GET", "/indexes/computed/errors?name=none", "", "BadRequestException"},
		{"GET", "/indexes/computed/errors?name=Means&limit=-1", "", "BadRequestException"},
		{"DELETE", "/indexes/computed?name=none", "", "BadRequestException"},
	} {
		h.checkProblem(h.do(bad.method, own+bad.path, bad.body), 400, bad.name)
	}
	h.want(204, "DELETE", own+"/indexes/computed?name=means", "")
	equal(t, "dropped", h.want(200, "GET", own+"/indexes", "").compact(t, "indexes"), "[]")
}
