package odd_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// ways are the endpoints that answer a query.
var ways = []struct {
	name string
	ask  func(h *host, q *rql, database string) (answers, string)
}{
	{"POST queries", posted},
	{"POST queries", posted},
	{"POST queries", posted},
	{"GET queries", gotten},
	{"POST streams/queries", streamed},
	{"POST query, page by page", paged},
	{"POST export", exported},
	{"POST multi_get", several},
	{"POST explain", explained},
	{"GET live", lived},
	{"POST queries, a part", parted},
}

// body is the body of a request for a query.
func (q *rql) body() string {
	return fmt.Sprintf(`{"Query":%s,"QueryParameters":%s}`, quoted(q.text()), q.parameters())
}

// ownBody is the same for the server's own interface.
func (q *rql) ownBody(more string) string {
	return strings.NewReplacer(`{"Query":`, `{"query":`, `,"QueryParameters":`, `,"parameters":`).Replace(strings.TrimSuffix(q.body(), "}")) + more + "}"
}

// refusal is the answer of a status that is an error.
func refusal(a reply) answers {
	var problem struct{ Type, Message string }
	_ = json.Unmarshal([]byte(a.body), &problem) // it was looked at
	return answers{status: a.status, kind: problem.Type, note: problem.Message}
}

// resultOf reads the reply to a query.
func resultOf(status int, body []byte) (answers, string) {
	var r struct {
		Results        []json.RawMessage
		Includes       map[string]json.RawMessage
		TotalResults   int64
		SkippedResults int64
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return answers{}, "a reply that is no JSON: " + err.Error()
	}
	a := answers{status: status, rest: []string{fmt.Sprint("total ", r.TotalResults)}}
	for _, row := range r.Results {
		a.rows = append(a.rows, stable(string(row)))
	}
	for id, doc := range r.Includes {
		a.beside = append(a.beside, id+" "+stable(string(doc)))
	}
	a.beside = sorted(a.beside)
	return a, ""
}

func posted(h *host, q *rql, database string) (answers, string) {
	a, fault := h.send(request{method: http.MethodPost, path: "/databases/" + database + "/queries", body: q.body()}, 0)
	if fault != "" || a.status >= http.StatusBadRequest {
		return refusal(a), fault
	}
	return resultOf(a.status, []byte(a.body))
}

func gotten(h *host, q *rql, database string) (answers, string) {
	if q.parameters() != "{}" {
		return posted(h, q, database)
	}
	a, fault := h.send(request{method: http.MethodGet, path: "/databases/" + database + "/queries?query=" + url.QueryEscape(q.text())}, 0)
	if fault != "" || a.status >= http.StatusBadRequest {
		return refusal(a), fault
	}
	return resultOf(a.status, []byte(a.body))
}

func several(h *host, q *rql, database string) (answers, string) {
	body := fmt.Sprintf(`{"Requests":[{"Url":"/databases/%s/queries","Query":"","Method":"POST","Headers":{},"Content":%s}]}`, database, q.body())
	a, fault := h.send(request{method: http.MethodPost, path: "/databases/" + database + "/multi_get", body: body}, 0)
	if fault != "" || a.status >= http.StatusBadRequest {
		return refusal(a), fault
	}
	var r struct {
		Results []struct {
			StatusCode int
			Result     json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(a.body), &r); err != nil || len(r.Results) != 1 {
		return answers{}, fmt.Sprintf("a reply to one request that is none: %v %s", err, a.body)
	}
	one := reply{status: r.Results[0].StatusCode, body: string(r.Results[0].Result)}
	if one.status >= http.StatusBadRequest {
		return refusal(one), one.fault(request{method: http.MethodPost})
	}
	return resultOf(one.status, []byte(one.body))
}

// parted asks for a part of the answers.
func parted(h *host, q *rql, database string) (answers, string) {
	body := strings.TrimSuffix(q.body(), "}") + `,"Start":2,"PageSize":5}`
	a, fault := h.send(request{method: http.MethodPost, path: "/databases/" + database + "/queries", body: body}, 0)
	if fault != "" || a.status >= http.StatusBadRequest {
		return refusal(a), fault
	}
	found, fault := resultOf(a.status, []byte(a.body))
	if !q.ordered() { // which part it is, is not decided
		return answers{status: found.status, kind: fmt.Sprint(len(found.rows), " answers")}, fault
	}
	return found, fault
}

// lived asks for the answers of a live query, as they are at the moment.
func lived(h *host, q *rql, database string) (answers, string) {
	c := *q
	c.use = "" // a live query keeps its answers itself
	path := "/jay/v1/databases/" + database + "/live?untilCaughtUp=true&query=" + url.QueryEscape(c.text()) + "&parameters=" + url.QueryEscape(c.parameters())
	a, fault := h.send(request{method: http.MethodGet, path: path}, 0)
	if fault != "" || a.status >= http.StatusBadRequest {
		return refusal(a), fault
	}
	found := answers{status: a.status}
	for line := range strings.Lines(a.body) {
		data, is := strings.CutPrefix(line, "data: ")
		var event struct {
			Type     string
			Document json.RawMessage
		}
		if !is {
			continue
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return found, fmt.Sprintf("an event that is no JSON: %v: %.200q", err, data)
		}
		if event.Type != "current" {
			found.rows = append(found.rows, event.Type+" "+stable(string(event.Document)))
		}
	}
	found.rows = sorted(found.rows)
	return found, ""
}

// lines reads a reply of lines of JSON.
func lines(a reply, row func(line string) (string, bool)) (answers, string) {
	found := answers{status: a.status}
	for line := range strings.Lines(a.body) {
		if !json.Valid([]byte(line)) {
			if a.cut != nil {
				break
			}
			return found, fmt.Sprintf("a line that is no JSON: %.200q", line)
		}
		if text, is := row(strings.TrimSpace(line)); is {
			found.rows = append(found.rows, stable(text))
		} else {
			found.rest = append(found.rest, text)
		}
	}
	if a.cut != nil { // how far it came depends on the plan
		return answers{status: 599, kind: "cut"}, ""
	}
	return found, ""
}

func streamed(h *host, q *rql, database string) (answers, string) {
	a, fault := h.send(request{method: http.MethodPost, path: "/databases/" + database + "/streams/queries?format=jsonl", body: q.body()}, 0)
	if fault != "" || a.status >= http.StatusBadRequest {
		return refusal(a), fault
	}
	return lines(a, func(line string) (string, bool) {
		if row, is := strings.CutPrefix(line, `{"Item":`); is {
			return strings.TrimSuffix(row, "}"), true
		}
		var stats struct{ Stats struct{ TotalResults int64 } }
		err := json.Unmarshal([]byte(line), &stats)
		return fmt.Sprint("total ", stats.Stats.TotalResults, err), false
	})
}

func exported(h *host, q *rql, database string) (answers, string) {
	a, fault := h.send(request{method: http.MethodPost, path: "/jay/v1/databases/" + database + "/export", body: q.ownBody(`,"format":"ndjson"`)}, 0)
	if fault != "" || a.status >= http.StatusBadRequest {
		return refusal(a), fault
	}
	return lines(a, func(line string) (string, bool) { return line, true })
}

// paged reads pages of two rows, by their cursors.
func paged(h *host, q *rql, database string) (answers, string) {
	found := answers{status: http.StatusOK}
	after := ""
	for page := 0; ; page++ {
		more := `,"pageSize":7`
		if after != "" {
			more += fmt.Sprintf(`,"after":%q`, after)
		}
		a, fault := h.send(request{method: http.MethodPost, path: "/jay/v1/databases/" + database + "/query", body: q.ownBody(more)}, 0)
		if fault != "" || a.status >= http.StatusBadRequest {
			return refusal(a), fault
		}
		var r struct {
			Rows []json.RawMessage
			Next string
			More bool
		}
		if err := json.Unmarshal([]byte(a.body), &r); err != nil {
			return found, "a page that is no JSON: " + err.Error()
		}
		for _, row := range r.Rows {
			found.rows = append(found.rows, stable(string(row)))
		}
		if r.More { // the first groups, whichever these are
			return answers{status: a.status}, ""
		}
		if after = r.Next; after == "" {
			return found, ""
		}
		if page > 500 {
			return found, "pages without an end"
		}
	}
}

// explained only compares whether there is a plan.
func explained(h *host, q *rql, database string) (answers, string) {
	a, fault := h.send(request{method: http.MethodPost, path: "/jay/v1/databases/" + database + "/explain", body: q.ownBody("")}, 0)
	if fault != "" || a.status >= http.StatusBadRequest {
		return refusal(a), fault
	}
	var r struct {
		Plan     []string
		Returned int64
	}
	if err := json.Unmarshal([]byte(a.body), &r); err != nil || len(r.Plan) == 0 {
		return answers{}, fmt.Sprintf("a plan that is none: %v %s", err, a.body)
	}
	return answers{status: a.status, rest: []string{fmt.Sprint("returned ", r.Returned)}}, ""
}
