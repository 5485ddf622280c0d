package server_test

import (
	"fmt"
	"testing"
)

// operationEnds waits until the operation that a reply names has ended.
func (h *host) operationEnds(a answer) {
	h.t.Helper()
	h.await("a", a.text(h.t, "OperationId"))
}

// Ensure that a change by query changes only the page that the request asks for: it changed
// and deleted all that the query finds.
func TestByQuery_Page(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for i := range 5 {
		h.want(201, "PUT", fmt.Sprintf("/databases/a/docs?id=z/%d", i), `{"n":1,"@metadata":{"@collection":"Z"}}`)
	}
	ids := func(query string) (found string) {
		for _, one := range h.want(200, "GET", "/databases/a/queries?query="+query, "").json(t, "Results").([]any) {
			found += one.(map[string]any)["@metadata"].(map[string]any)["@id"].(string) + " "
		}
		return found
	}
	h.operationEnds(h.want(200, "PATCH", "/databases/a/queries", `{"Query":{"Query":"from Z order by id() update { this.n = 2 }","Start":1,"PageSize":2}}`))
	equal(t, "patched", ids("from+Z+where+n=2"), "z/1 z/2 ")
	h.operationEnds(h.want(200, "DELETE", "/databases/a/queries", `{"Query":"from Z order by id()","Start":3,"PageSize":1}`))
	equal(t, "left", ids("from+Z"), "z/0 z/1 z/2 z/4 ")
	for _, page := range []string{`"Start":-1`, `"PageSize":-1`} {
		h.checkProblem(h.do("DELETE", "/databases/a/queries", `{"Query":"from Z",`+page+`}`), 400, "BadRequestException")
		h.checkProblem(h.do("PATCH", "/databases/a/queries", `{"Query":{"Query":"from Z update { this.n = 3 }",`+page+`}}`), 400, "BadRequestException")
		h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"from Z",`+page+`}`), 400, "BadRequestException")
		h.checkProblem(h.do("POST", "/databases/a/streams/queries", `{"Query":"from Z",`+page+`}`), 400, "BadRequestException")
	}
	equal(t, "left", ids("from+Z"), "z/0 z/1 z/2 z/4 ")
}

// Ensure that a comment of a query ends at each line break: after CR the rest of the text,
// and its where, was taken for the comment.
func TestQueries_CommentEndsAtCR(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for i := range 3 {
		h.want(201, "PUT", fmt.Sprintf("/databases/a/docs?id=z/%d", i), fmt.Sprintf(`{"n":%d,"@metadata":{"@collection":"Z"}}`, i))
	}
	for _, end := range []string{`\r`, `\n`, `\r\n`} {
		equal(t, end, h.want(200, "POST", "/databases/a/queries", `{"Query":"from Z // all`+end+`where n = 1"}`).text(t, "TotalResults"), 1)
		h.operationEnds(h.want(200, "PATCH", "/databases/a/queries", `{"Query":{"Query":"from Z // all`+end+`where n = 2 update { this.end = 1 }"}}`))
	}
	equal(t, "patched", h.want(200, "GET", "/databases/a/queries?query=from+Z+where+end=1", "").text(t, "TotalResults"), 1)
}
