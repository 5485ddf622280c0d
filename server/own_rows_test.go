package server_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/sample"
)

// rowsPage is a reply of rows.
type rowsPage struct {
	Fields, Columns []string
	Rows            []struct {
		ID, Cursor, Collection, ChangeVector, LastModified string
		Bytes                                              int
		Values                                             []*string
	}
	Next  string
	About *float64
}

func (h *host) rows(query string) (page rowsPage) {
	h.t.Helper()
	a := h.want(200, "GET", own+"/rows?"+query, "")
	if err := json.Unmarshal([]byte(a.body), &page); err != nil {
		h.t.Fatal(err)
	}
	return page
}

func (p rowsPage) ids() (all []string) {
	for _, r := range p.Rows {
		all = append(all, r.ID)
	}
	return all
}

func (p rowsPage) values(i int) (all []string) {
	for _, v := range p.Rows[i].Values {
		if v == nil {
			all = append(all, "-")
		} else {
			all = append(all, *v)
		}
	}
	return all
}

// Ensure that rows have the texts of fields as they are stored, that a long one is cut
// with a mark, and that fields which are not there are told from null.
func TestOwn_Rows(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("db")
	long := strings.Repeat("é", 300)
	h.want(201, "PUT", "/databases/db/docs?id=a/1", `{"N":9007199254740993,"P":1.10,"S":"<b>\"x\"","A":[1.0,2],"O":{"City":"Ulm"},"Z":null,"@metadata":{"@collection":"As"}}`)
	h.want(201, "PUT", "/databases/db/docs?id=a/2", `{"N":1e400,"L":"`+long+`","Caf\u00e9":"\u00e9","@metadata":{"@collection":"As"}}`)

	page := h.rows("collection=As")
	equal(t, "fields", page.Fields, "[N P S A O Z L Café]")
	equal(t, "columns", page.Columns, "[N P S Z L Café]")
	equal(t, "first", page.values(0), `[9007199254740993 1.10 "<b>\"x\"" null - -]`)
	equal(t, "second", page.values(1), `[1e400 - - - "`+strings.Repeat("é", 127)+`… "\u00e9"]`)
	equal(t, "about the first", fmt.Sprint(page.Rows[0].Collection, page.Rows[0].Bytes > 70, strings.HasPrefix(page.Rows[0].ChangeVector, "A:")), "Astrue true")

	page = h.rows("column=O.City&column=A&column=A[]&column=O&column=none&column=" + url.QueryEscape("Café"))
	equal(t, "chosen", page.values(0), `["Ulm" [1.0,2] [1.0,2] {"City":"Ulm"} - -]`)
	equal(t, "preview", h.rows("column=@preview").values(0), `[{"N":9007199254740993,"P":1.10,"S":"<b>\"x\"","A":[1.0,2],"O":{"City":"Ulm"},"Z":null}]`)
	if text := h.rows("column=@preview").values(1)[0]; len(text) > 512+3 || !strings.HasSuffix(text, "…") {
		t.Errorf("a long document: got %d bytes: %s", len(text), text)
	}
	equal(t, "none", h.rows("startsWith=x").ids(), "[]")
}

// Ensure that pages meet in both directions, from any ID, whether or not it is there.
func TestOwn_Rows_Places(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("db")
	for _, id := range []string{"a/1", "a/2", "a/3", "b/1"} {
		h.want(201, "PUT", "/databases/db/docs?id="+id, `{"@metadata":{"@collection":"`+strings.ToUpper(id[:1])+`s"}}`)
	}
	for query, want := range map[string]string{
		"from=a/2":                             "[a/2 a/3 b/1]",
		"from=A/2":                             "[a/2 a/3 b/1]",
		"from=a/20":                            "[a/3 b/1]",
		"from=a/2&reverse=true":                "[a/2 a/1]",
		"from=a/2&collection=As":               "[a/2 a/3]",
		"from=a/2&collection=Bs":               "[b/1]",
		"from=a/2&startsWith=b":                "[b/1]",
		"from=b/1&startsWith=a":                "[]",
		"from=b/1&startsWith=a&reverse=true":   "[a/3 a/2 a/1]",
		"after=a/2":                            "[a/3 b/1]",
		"after=a/2&reverse=true":               "[a/1]",
		"at=0":                                 "[a/1 a/2 a/3 b/1]",
		"at=0.999":                             "[b/1]",
		"at=1":                                 "[b/1]",
		"at=1&reverse=true&collection=As":      "[a/3 a/2 a/1]",
		"at=0.5&collection=As":                 "[a/2 a/3]",
		"at=0.5&startsWith=none":               "[]",
		"reverse=true&pageSize=2":              "[b/1 a/3]",
		"reverse=true&pageSize=2&after=a/3":    "[a/2 a/1]",
		"from=" + strings.Repeat("a", 3000):    "[b/1]",
		"from=" + url.QueryEscape("\x00\x00é"): "[a/1 a/2 a/3 b/1]",
	} {
		equal(t, query, h.rows(query).ids(), want)
	}
	if page := h.rows("reverse=true&pageSize=2"); page.Next != "a/3" {
		t.Errorf("got the cursor %q", page.Next)
	}
	for _, query := range []string{"pageSize=0", "pageSize=1001", "reverse=maybe", "at=2", "at=-0.1", "at=NaN", "at=x", "at=0.5&from=a", "at=0.5&after=a", "after=a&from=a", "column=a[", strings.Repeat("column=a&", 33)} {
		h.checkProblem(h.do("GET", own+"/rows?"+query, ""), 400, "BadRequestException")
	}
}

// Ensure that a page of large documents ends early, and that the next one goes on.
func TestOwn_Rows_OfLargeDocuments(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	h := start(t)
	h.create("db")
	body := `{"T":"` + strings.Repeat("x", 1<<20) + `"}`
	for i := range 7 {
		h.want(201, "PUT", fmt.Sprintf("/databases/db/docs?id=files/%d", i), body)
	}
	page := h.rows("startsWith=files/")
	equal(t, "first page", fmt.Sprint(len(page.Rows), page.Next), "4files/3")
	page = h.rows("startsWith=files/&after=files/3")
	equal(t, "second page", fmt.Sprint(len(page.Rows), page.Next), "3")
}

// Ensure that a guess of a place is not far from the place, for numbers as clients and as
// the server make them, and goes both ways.
func TestOwn_Rows_Guess(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	h := start(t)
	h.create("db")
	const n = 2000
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, `{"@metadata":{"@id":"orders/%d-A","@collection":"Orders"}}`+"\n", i+1)
		fmt.Fprintf(&lines, `{"@metadata":{"@id":"logs/%019d-A","@collection":"Others"}}`+"\n", i+1)
	}
	h.want(200, "POST", own+"/import", lines.String())
	for _, which := range []string{"collection=Orders", "collection=Others", "startsWith=logs/"} {
		var all []string
		for after := ""; ; {
			page := h.rows(which + "&pageSize=1000&after=" + after)
			all = append(all, page.ids()...)
			if after = page.Next; after == "" {
				break
			}
		}
		equal(t, which, len(all), n)
		for _, part := range []float64{0, .1, .25, .5, .75, .9, 1} {
			page := h.rows(which + fmt.Sprintf("&pageSize=1&at=%g", part))
			at := -1
			for i, id := range all {
				if id == page.Rows[0].ID {
					at = i
				}
			}
			if got := float64(at) / n; math.Abs(got-part) > .2 {
				t.Errorf("%s: %.2f: got %s at %.3f", which, part, page.Rows[0].ID, got)
			}
			if page.About == nil || math.Abs(*page.About-part) > .02 {
				t.Errorf("%s: %.2f: the way back is %v", which, part, page.About)
			}
		}
		last := -1.0
		for i := 0; i < n; i += 97 { // the guesses rise as the IDs do
			page := h.rows(which + "&pageSize=1&from=" + all[i])
			if page.Rows[0].ID != all[i] || *page.About < last || math.Abs(*page.About-float64(i)/n) > .2 {
				t.Errorf("%s: %d: got %s, about %.3f after %.3f", which, i, page.Rows[0].ID, *page.About, last)
			}
			last = *page.About
		}
	}
}

// Ensure that the newest come first, that pages meet in both directions, from any cursor
// on, and that a place goes both ways.
func TestOwn_Rows_Newest(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("db")
	for _, id := range []string{"a/3", "b/1", "a/1", "a/2", "a/4"} {
		h.want(201, "PUT", "/databases/db/docs?id="+id, `{"n":1.10,"@metadata":{"@collection":"`+strings.ToUpper(id[:1])+`s"}}`)
	}
	h.want(201, "PUT", "/databases/db/docs?id=a/3", `{"n":2}`) // it is the newest now
	all := h.rows("order=newest")
	equal(t, "all", all.ids(), "[a/3 a/4 a/2 a/1 b/1]")
	equal(t, "reverse", h.rows("order=newest&reverse=true").ids(), "[b/1 a/1 a/2 a/4 a/3]")
	equal(t, "collection", h.rows("order=newest&collection=As").ids(), "[a/3 a/4 a/2 a/1]")
	equal(t, "none", h.rows("order=newest&collection=None&at=0.5").ids(), "[]")
	cursor := func(i int) string { return all.Rows[i].Cursor }
	for query, want := range map[string]string{
		"after=" + cursor(1):                         "[a/2 a/1 b/1]",
		"after=" + cursor(1) + "&reverse=true":       "[a/3]",
		"from=" + cursor(1):                          "[a/4 a/2 a/1 b/1]",
		"from=" + cursor(1) + "&reverse=true":        "[a/4 a/3]",
		"from=" + cursor(4) + "&collection=As":       "[]",
		"at=0&collection=As":                         "[a/3 a/4 a/2 a/1]",
		"at=1":                                       "[b/1]",
		"pageSize=2":                                 "[a/3 a/4]",
		"pageSize=2&reverse=true&after=" + cursor(2): "[a/4 a/3]",
		"after=99999999999&collection=As&pageSize=1": "[a/3]",
	} {
		equal(t, query, h.rows("order=newest&"+query).ids(), want)
	}
	if page := h.rows("order=newest&pageSize=2"); page.Next != cursor(1) {
		t.Errorf("got the cursor %q, want %q", page.Next, cursor(1))
	}
	if page := h.rows("order=newest&from=" + cursor(4)); page.About == nil || *page.About != 1 {
		t.Errorf("about the oldest: got %v", page.About)
	}
	for _, query := range []string{"startsWith=a", "after=a/1", "from=-1", "from=x"} {
		h.checkProblem(h.do("GET", own+"/rows?order=newest&"+query, ""), 400, "BadRequestException")
	}
	h.checkProblem(h.do("GET", own+"/rows?order=oldest", ""), 400, "BadRequestException")
}

// Ensure that the newest of a collection that is not small come page by page, without gaps.
func TestOwn_Rows_NewestOfMany(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	h := start(t)
	h.create("db")
	var lines strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&lines, `{"@metadata":{"@id":"logs/%d","@collection":"%s"}}`+"\n", i, []string{"Odd", "Even"}[i%2])
	}
	h.want(200, "POST", own+"/import", lines.String())
	n, after := 5000, ""
	for {
		page := h.rows("order=newest&collection=Odd&pageSize=700&after=" + after)
		for _, id := range page.ids() {
			if n -= 2; id != fmt.Sprintf("logs/%d", n) {
				t.Fatalf("got %s, want logs/%d", id, n)
			}
		}
		if after = page.Next; after == "" {
			break
		}
	}
	equal(t, "the rest", n, 0)
}
