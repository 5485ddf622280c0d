package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Ensure that a stream that fails before much of it is sent is replied to as an error with its reason, like
// any other request, and that a longer one is cut.
func TestStreams_Fail(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for _, size := range []int{10, 100 << 10} {
		var elements []string
		for i := range 4 {
			text := fmt.Sprintf("%q", strings.Repeat("x", size))
			if i == 3 {
				text = "null"
			}
			elements = append(elements, fmt.Sprintf(`{"Id":"s/%d","Type":"PUT","Document":{"text":%s,"@metadata":{"@collection":"S"}}}`, i, text))
		}
		h.want(200, "POST", "/databases/a/bulk_insert?id="+h.operationID(), "["+strings.Join(elements, ",")+"]")
		const rql = `declare function f(s) { if (s.text == null) throw 'no text'; return { t: s.text } } from S as s select f(s)`
		for _, r := range [][2]string{
			{"/databases/a/streams/queries?format=json", `{"Query":%q}`},
			{"/databases/a/streams/queries?format=jsonl", `{"Query":%q}`},
			{"/jay/v1/databases/a/export", `{"query":%q,"format":"ndjson"}`},
		} {
			a, err := h.try("POST", r[0], fmt.Sprintf(r[1], rql), "Accept-Encoding", "identity") // of gzip, the reader sees itself that it is cut
			switch {
			case size > 10:
				if err == nil {
					t.Errorf("%s: %d with %d bytes, where the connection should be cut", r[0], a.status, len(a.body))
				}
			case err != nil:
				t.Errorf("%s: %v", r[0], err)
			default:
				if h.checkProblem(a, http.StatusBadRequest, "InvalidQueryException"); !strings.Contains(a.body, "no text") {
					t.Errorf("%s: no reason in %s", r[0], a.body)
				}
			}
		}
	}
}
