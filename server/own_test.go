package server_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const own = "/jay/v1/databases/db"

// Ensure that pages follow one another without gaps or repetitions, in both directions,
// and that no digit changes.
func TestOwn_Pages(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("db")
	var want []string
	for i := range 25 {
		id := fmt.Sprintf("logs/%02d", i)
		h.want(201, "PUT", "/databases/db/docs?id="+id, `{"N":9007199254740993,"P":1.10,"@metadata":{"@collection":"Logs"}}`)
		want = append(want, id)
	}
	for _, order := range []string{"", " desc"} {
		var got []string
		after := ""
		for page := 0; ; page++ {
			a := h.want(200, "POST", own+"/query", fmt.Sprintf(`{"query":"from Logs order by id()%s","pageSize":10,"after":%q}`, order, after))
			rows := a.json(t, "rows").([]any)
			for i := range rows {
				got = append(got, a.json(t, "rows", i, "id").(string))
			}
			if !strings.Contains(a.body, `"N":9007199254740993,"P":1.10`) {
				t.Fatalf("digits have changed: %s", a.body)
			}
			next, more := a.json(t, "next").(string)
			if !more {
				break
			}
			if after = next; page > 3 {
				t.Fatal("the pages do not end")
			}
		}
		if order != "" {
			for i, j := 0, len(got)-1; i < j; i, j = i+1, j-1 {
				got[i], got[j] = got[j], got[i]
			}
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("order by id()%s: got %v", order, got)
		}
	}
}

// Ensure that a page of large documents ends early, and that the next one goes on.
func TestOwn_Pages_OfLargeDocuments(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("db")
	body := `{"T":"` + strings.Repeat("x", 1<<20) + `","@metadata":{"@collection":"Files"}}`
	for i := range 7 {
		h.want(201, "PUT", fmt.Sprintf("/databases/db/docs?id=files/%d", i), body)
	}
	a := h.want(200, "POST", own+"/query", `{"query":"from Files"}`)
	if n := len(a.json(t, "rows").([]any)); n != 4 {
		t.Errorf("got %d documents of 1 MiB, want the 4 that fill a page", n)
	}
	a = h.want(200, "POST", own+"/query", fmt.Sprintf(`{"query":"from Files","after":%q}`, a.json(t, "next")))
	if n := len(a.json(t, "rows").([]any)); n != 3 || a.json(t, "next") != nil {
		t.Errorf("got %d further documents, and then %v", n, a.json(t, "next"))
	}
}

// Ensure that requests that mean nothing are refused.
func TestOwn_Bad(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("db")
	for _, bad := range []struct{ method, path, body string }{
		{"POST", "/query", `{"query":"from Logs","pageSize":0}`},
		{"POST", "/query", `{"query":"from Logs","pageSize":1001}`},
		{"POST", "/query", `{"query":"from"}`},
		{"POST", "/query", `{"query":"from Logs","after":"nonsense"}`},
		{"POST", "/query", ``},
		{"POST", "/explain", `{"query":"fro"}`},
		{"PUT", "/indexes", `{"collection":"Logs","index":{"fields":[]}}`},
		{"PUT", "/indexes", `[]`},
		{"DELETE", "/indexes?collection=Logs&name=none", ""},
		{"GET", "/changes?since=nonsense", ""},
		{"GET", "/changes?untilCaughtUp=perhaps", ""},
	} {
		if a := h.do(bad.method, own+bad.path, bad.body); a.status < 400 || a.status >= 500 || a.json(t, "Type") == "" {
			t.Errorf("%s %s %s: got %d %s", bad.method, bad.path, bad.body, a.status, a.body)
		}
	}
	if a := h.do("GET", "/jay/v1/databases/none/collections", ""); a.status != 503 && a.status != 404 {
		t.Errorf("a database that is not there: got %d %s", a.status, a.body)
	}
}

// Ensure that changes come as they happen, and go on behind the last one that was seen.
func TestOwn_Changes(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("db")
	h.want(201, "PUT", "/databases/db/docs?id=users/0", `{}`)
	follow := func(query string, last string) (next func() (id, data string), end func()) {
		r, err := http.NewRequest("GET", h.http.URL+own+"/changes"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		reply, err := h.http.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if reply.StatusCode != 200 || reply.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("got %v", reply)
		}
		lines := bufio.NewScanner(reply.Body)
		return func() (id, data string) {
			for lines.Scan() {
				if text, found := strings.CutPrefix(lines.Text(), "id: "); found {
					id = text
				} else if text, found := strings.CutPrefix(lines.Text(), "data: "); found {
					return id, text
				}
			}
			return "", "ended"
		}, func() { reply.Body.Close() }
	}
	next, end := follow("?since=now&prefix=users/", "")
	h.want(201, "PUT", "/databases/db/docs?id=others/1", `{}`)
	h.want(201, "PUT", "/databases/db/docs?id=users/1", `{}`)
	token, data := next()
	if !strings.Contains(data, `"id":"users/1"`) || !strings.Contains(data, `"type":"put"`) {
		t.Errorf("got %s", data)
	}
	end()
	h.want(204, "DELETE", "/databases/db/docs?id=users/1", "")
	next, end = follow("?since=now&prefix=users/", token)
	defer end()
	if _, data := next(); !strings.Contains(data, `"id":"users/1"`) || !strings.Contains(data, `"type":"delete"`) {
		t.Errorf("behind the token: got %s", data)
	}
}
