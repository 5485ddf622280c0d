package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/server"
)

// shop stores documents of a shop.
func (h *host) shop() {
	h.t.Helper()
	for id, doc := range map[string]string{
		"users/1": `{"First":"Ann","Last":"Lee","Age":30,"Town":"towns/1"}`, "users/2": `{"First":"Bob","Last":"Lee","Age":20,"Town":"towns/1"}`, "users/3": `{"First":"Cyd","Last":"Orr","Age":40,"Town":"towns/2"}`,
		"towns/1": `{"Name":"Bern"}`, "towns/2": `{"Name":"Ulm"}`,
		"orders/1":    `{"Company":"companies/1","At":"2026-01-02T10:00:00Z","Lines":[{"Product":"Nut","Q":2,"P":1.5},{"Product":"Oak","Q":1,"P":10}]}`,
		"orders/2":    `{"Company":"companies/1","At":"2026-01-03T10:00:00Z","Lines":[{"Product":"Nut","Q":4,"P":1.25}]}`,
		"orders/3":    `{"Company":"companies/2","At":"2025-05-05T10:00:00Z","Lines":[{"Product":"Nut","Q":1,"P":1},{"Product":"Nut","Q":3,"P":1}]}`,
		"companies/1": `{"Name":"Oak & Co","Phone":"1"}`, "companies/2": `{"Name":"Nuts","Phone":"2"}`,
	} {
		collection, _, _ := strings.Cut(id, "/")
		collection = strings.ToUpper(collection[:1]) + collection[1:]
		h.want(201, "PUT", "/databases/a/docs?id="+id, doc[:len(doc)-1]+`,"@metadata":{"@collection":"`+collection+`"}}`)
	}
}

// defines sends a definition that must be accepted. Options are further members of it.
func (h *host) defines(name, maps, reduce string, options ...string) {
	h.t.Helper()
	list, err := json.Marshal(strings.Split(maps, "\n---\n"))
	if err != nil {
		h.t.Fatal(err)
	}
	text := fmt.Sprintf(`{"Indexes":[{"Name":%q,"Maps":%s`, name, list)
	if reduce != "" {
		text += fmt.Sprintf(`,"Reduce":%q`, reduce)
	}
	for _, one := range options {
		text += "," + one
	}
	h.want(201, "PUT", "/databases/a/admin/indexes", text+"}]}")
}

// asked returns the reply to a query.
func (h *host) asked(query string, members ...string) answer {
	h.t.Helper()
	text, err := json.Marshal(query)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.want(200, "POST", "/databases/a/queries", `{"Query":`+string(text)+strings.Join(append([]string{""}, members...), ",")+`}`)
}

// answers returns the results of a query, one after the other: of documents their IDs, and of others their JSON.
func (h *host) answers(query string, members ...string) string {
	h.t.Helper()
	a := h.asked(query, members...)
	var reply struct{ Results []json.RawMessage }
	if err := json.Unmarshal([]byte(a.body), &reply); err != nil {
		h.t.Fatal(err)
	}
	var all []string
	for _, text := range reply.Results {
		var one struct {
			Metadata map[string]any `json:"@metadata"`
		}
		if err := json.Unmarshal(text, &one); err != nil {
			h.t.Fatal(err)
		}
		if id, is := one.Metadata["@id"].(string); is && one.Metadata["@projection"] == nil {
			if one.Metadata["@change-vector"] == nil || one.Metadata["@collection"] == nil {
				h.t.Errorf("%s: %s is not whole", query, text)
			}
			all = append(all, id)
			continue
		}
		all = append(all, string(text))
	}
	return strings.Join(all, " ")
}

const fullNames = `from u in docs.Users select new { Full = u.First + " " + u.Last, u.Age, Town = u.Town }`

// Ensure that an index which computes members of documents answers with documents, and with rows made of them and of what it stores.
func TestComputed_Map(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.shop()
	h.defines("Users/Full", fullNames, "", `"Fields":{"Full":{"Storage":"Yes"}}`)
	for query, want := range map[string]string{
		`from index 'Users/Full' where Full = 'ann lee'`:                           "users/1",
		`from index "users/full" where Full = 'Ann Lee' or Age > 35 order by Full`: "users/1 users/3",
		`from index 'Users/Full' as u where startsWith(u.Full, 'b')`:               "users/2",
		`from index 'Users/Full' order by Age as long desc limit 1, 1`:             "users/1",
		`from index 'Users/Full' where Full = 'x'`:                                 "",
		`from index 'Users/Full' where id() = 'users/2'`:                           "users/2",
		// What is stored is of the index, and the rest of the document.
		`from index 'Users/Full' where Age = 20 select Full, Age, Last`:             `{"Full":"Bob Lee","Age":20,"Last":"Lee","@metadata":{"@projection":true,"@id":"users/2"}}`,
		`from index 'Users/Full' order by Full select distinct Last`:                `{"Last":"Lee","@metadata":{"@projection":true}} {"Last":"Orr","@metadata":{"@projection":true}}`,
		`from index 'Users/Full' as u where u.Age = 40 select { N: u.First + '!' }`: `{"N":"Cyd!","@metadata":{"@projection":true,"@id":"users/3"}}`,
	} {
		equal(t, query, h.answers(query), want)
	}
	facets := h.asked(`from index 'Users/Full' where Full > 'b' select facet(Full, sum(Age)), facet(Age < 30, Age >= 30)`)
	equal(t, "facets", facets.text(t, "Results", 0, "Name")+facets.text(t, "Results", 0, "Values", 1, "Range")+facets.text(t, "Results", 0, "Values", 1, "Sum")+facets.text(t, "Results", 1, "Values", 0, "Range"), "FullCyd Orr40Age < 30")
	for behavior, want := range map[string]string{
		"Default": `{"Full":"Bob Lee","Age":20,"@metadata":{"@projection":true,"@id":"users/2"}}`, "FromDocument": `{"Full":null,"Age":20,"@metadata":{"@projection":true,"@id":"users/2"}}`,
		"FromIndex": `{"Full":"Bob Lee","@metadata":{"@projection":true,"@id":"users/2"}}`,
	} {
		equal(t, behavior, h.answers(`from index 'Users/Full' where Age = 20 select Full, Age`, `"ProjectionBehavior":"`+behavior+`"`), want)
	}
	h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"from index 'Users/Full' select Age","ProjectionBehavior":"FromIndexOrThrow"}`), 400, "BadRequestException")
	h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"from index 'Users/Full' select Full","ProjectionBehavior":"FromDocumentOrThrow"}`), 501, "NotSupportedException")

	a := h.asked(`from index 'Users/Full' where Age > $p0 order by Full include Town`, `"QueryParameters":{"p0":25},"PageSize":1,"WaitForNonStaleResults":true`)
	equal(t, "page", a.text(t, "TotalResults")+a.text(t, "IndexName")+a.text(t, "IsStale")+a.text(t, "Results", 0, "@metadata", "@id"), "2Users/Fullfalseusers/1")
	equal(t, "included", a.text(t, "Includes", "towns/1", "Name"), "Bern")
	equal(t, "of GET", h.want(200, "GET", "/databases/a/queries?query=from+index+'Users/Full'+where+Full='Ann+Lee'", "").text(t, "TotalResults"), 1)
	stream := h.want(200, "GET", "/databases/a/streams/queries?format=jsonl&query=from+index+'Users/Full'+where+Full='Ann+Lee'", "").body
	if !strings.Contains(stream, `"IndexName":"Users/Full","TotalResults":1`) || !strings.Contains(stream, `"@id":"users/1"`) {
		t.Error(stream)
	}
	explained := h.want(200, "POST", "/databases/a/queries?debug=explain", `{"Query":"from index 'Users/Full' where Full = 'Ann Lee'"}`)
	if !strings.Contains(explained.body, "computed:Users/Full:") { // the part of the index, and no scan
		t.Error(explained.body)
	}
	for query, kind := range map[string]string{`from index 'Users/Full' where Ful = 1`: "InvalidQueryException", `from index 'Users/Full' group by Age select count()`: "InvalidQueryException", `from index 'Users/Full' where`: "InvalidQueryException"} {
		h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"`+query+`"}`), 400, kind)
	}
	h.want(404, "POST", "/databases/a/queries", `{"Query":"from index 'Users/None'"}`)
}

// Ensure that groups of several maps are results without IDs, with the sums of the last commit.
func TestComputed_Reduce(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.shop()
	h.defines("Orders/ByCompany", `from o in docs.Orders select new { o.Company, Orders = 1, Lines = 0 }
---
from o in docs.Orders from l in o.Lines select new { o.Company, Orders = 0, Lines = l.Q * l.P }`, `from r in results group r by r.Company into g select new { Company = g.Key, Orders = g.Sum(x => x.Orders), Lines = g.Sum(x => x.Lines) }`)
	h.defines("Orders/ByYear", `map('Orders', o => ({ year: new Date(o.At).getUTCFullYear(), n: 1 }))`, `groupBy(x => x.year).aggregate(g => ({ year: g.key, n: g.values.reduce((t, v) => t + v.n, 0) }))`)
	for query, want := range map[string]string{
		`from index 'Orders/ByCompany' order by Lines as double desc`:                                `{"Company":"companies/1","Orders":2,"Lines":18,"@metadata":{}} {"Company":"companies/2","Orders":1,"Lines":4,"@metadata":{}}`,
		`from index 'Orders/ByCompany' where Lines < 10 select Company as C, Lines`:                  `{"C":"companies/2","Lines":4,"@metadata":{"@projection":true}}`,
		`from index 'Orders/ByYear' where year = 2026`:                                               `{"year":2026,"n":2,"@metadata":{}}`,
		`from index 'Orders/ByYear' order by n desc limit 1 offset 1`:                                `{"year":2025,"n":1,"@metadata":{}}`,
		`from index 'Orders/ByCompany' where Company = 'COMPANIES/2' order by Company select Orders`: `{"Orders":1,"@metadata":{"@projection":true}}`,
	} {
		equal(t, query, h.answers(query), want)
	}
	a := h.asked(`from index 'Orders/ByCompany' order by Company include Company`, `"Start":1,"PageSize":1`)
	equal(t, "page", a.text(t, "TotalResults")+a.text(t, "IndexName")+a.text(t, "Results", 0, "Company"), "2Orders/ByCompanycompanies/2")
	equal(t, "included", a.text(t, "Includes"), "map[companies/2:map[@metadata:"+a.text(t, "Includes", "companies/2", "@metadata")+" Name:Nuts Phone:2]]")
	h.want(204, "DELETE", "/databases/a/docs?id=orders/3", "")
	equal(t, "after a deletion", h.answers(`from index 'Orders/ByYear'`), `{"year":2026,"n":2,"@metadata":{}}`)
	stream := h.want(200, "GET", "/databases/a/streams/queries?query=from+index+'Orders/ByYear'", "").body
	if !strings.Contains(stream, `"Results":[{"year":2026,"n":2,"@metadata":{}}]`) {
		t.Error(stream)
	}
	for _, query := range []string{`from index 'Orders/ByYear' where id() = 'x'`, `from index 'Orders/ByYear' as y select { N: y.n }`, `from index 'Orders/ByYear' select sum(n)`} {
		h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"`+query+`"}`), 400, "InvalidQueryException")
	}
	h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"from index 'Orders/ByYear' select n","ProjectionBehavior":"FromDocument"}`), 400, "BadRequestException")
	h.checkProblem(h.do("DELETE", "/databases/a/queries", `{"Query":"from index 'Orders/ByYear'"}`), 400, "BadRequestException")
	h.checkProblem(h.do("PATCH", "/databases/a/queries", `{"Query":{"Query":"from index 'Orders/ByYear' update { this.x = 1 }"}}`), 400, "BadRequestException")
}

// Ensure that a document of several entries is one result, unless the query asks for rows or for each entry, and that pages and totals count so.
func TestComputed_SeveralEntries(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.shop()
	h.defines("Orders/Lines", `docs.Orders.SelectMany(o => o.Lines, (o, l) => new { l.Product, Total = l.Q * l.P, o.Company })`, "", `"Fields":{"Total":{"Storage":"Yes"}}`)
	h.defines("All/ByName", "from u in docs.Users select new { Name = u.First }\n---\nfrom c in docs.Companies select new { c.Name }\n---\nfrom t in docs.Towns select new { t.Name }", "")
	for query, want := range map[string]string{
		`from index 'Orders/Lines' where Product = 'Nut' order by Total desc`:                     "orders/2 orders/3 orders/1",
		`from index 'Orders/Lines' where Product = 'Nut' and Total = 10`:                          "", // both are of one line
		`from index 'Orders/Lines' where Total >= 3 order by Total limit 2`:                       "orders/1 orders/3",
		`from index 'Orders/Lines' where Total >= 3 order by Total limit 2 offset 2`:              "orders/2",
		`from index 'Orders/Lines' where Company = 'companies/2' order by Total select Total, At`: `{"Total":1,"At":"2025-05-05T10:00:00Z","@metadata":{"@projection":true,"@id":"orders/3"}} {"Total":3,"At":"2025-05-05T10:00:00Z","@metadata":{"@projection":true,"@id":"orders/3"}}`,
		`from index 'Orders/Lines' order by Company select distinct Company`:                      `{"Company":"companies/1","@metadata":{"@projection":true}} {"Company":"companies/2","@metadata":{"@projection":true}}`,
		`from index 'All/ByName' where Name < 'n' order by Name desc`:                             "users/3 users/2 towns/1 users/1",
		`from index 'All/ByName' order by Name limit 2 offset 5`:                                  "companies/1 towns/2",
		`from index 'All/ByName' where Phone = 1`:                                                 "refused",
		`from index 'All/ByName' where Name = 'Nuts' select Name, Phone`:                          `{"Name":"Nuts","Phone":"2","@metadata":{"@projection":true,"@id":"companies/2"}}`,
	} {
		if want == "refused" {
			h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"`+query+`"}`), 400, "InvalidQueryException")
			continue
		}
		equal(t, query, h.answers(query), want)
	}
	for _, query := range []string{`from index 'Orders/Lines' select count()`, `from index 'Orders/Lines' group by Product select Product, sum(Total)`} {
		a := h.do("POST", "/databases/a/queries", `{"Query":"`+query+`"}`)
		h.checkProblem(a, 400, "BadRequestException")
		if !strings.Contains(a.body, "by a reduce") {
			t.Error(a.body)
		}
	}
	for _, query := range []string{`from index 'Orders/Lines' as l select { P: l.Company }`, `from index 'Orders/Lines' select facet(Product)`, `from index 'Orders/Lines' select concat(Total, At) as X`} {
		h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"`+query+`"}`), 501, "NotSupportedException")
	}
	equal(t, "each entry", h.answers(`from index 'Orders/Lines' order by Total`, `"SkipDuplicateChecking":true`), "orders/3 orders/1 orders/3 orders/2 orders/1")
	for size := 1; size < 5; size++ {
		var pages []string
		for from := 0; from < 3; from += size {
			page := fmt.Sprintf(`"Start":%d,"PageSize":%d`, from, size)
			equal(t, "total", h.asked(`from index 'Orders/Lines' order by Total`, page).text(t, "TotalResults"), 3)
			pages = append(pages, h.answers(`from index 'Orders/Lines' order by Total`, page))
		}
		equal(t, fmt.Sprint("pages of ", size), strings.Join(pages, " "), "orders/3 orders/1 orders/2")
	}
	entries := h.want(200, "POST", "/databases/a/queries?debug=entries", `{"Query":"from index 'Orders/Lines' where Product = 'Nut' order by Total desc","PageSize":2}`)
	equal(t, "entries", entries.compact(t, "Results")+entries.text(t, "TotalResults"), `[{"Company":"companies/1","Product":"Nut","Total":5,"id()":"orders/2"},{"Company":"companies/2","Product":"Nut","Total":3,"id()":"orders/3"}]4`)
	h.checkProblem(h.do("POST", "/databases/a/queries?debug=entries", `{"Query":"from index 'Orders/Lines' select Total"}`), 400, "BadRequestException")
	h.checkProblem(h.do("POST", "/databases/a/queries?debug=entries", `{"Query":"from Orders"}`), 501, "NotSupportedException")
	a := h.asked(`from index 'Orders/Lines' where Total = 10 include Company`)
	equal(t, "included", a.text(t, "Includes", "companies/1", "Name"), "Oak & Co")
	stream := h.want(200, "GET", "/databases/a/streams/queries?query=from+index+'Orders/Lines'+order+by+Total", "")
	equal(t, "streamed", stream.text(t, "TotalResults")+fmt.Sprint(len(stream.json(t, "Results").([]any))), "33")
}

// Ensure that documents are changed and deleted by a query of an index that computes, with the number of those that it finds.
func TestComputed_ChangeByQuery(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.shop()
	h.defines("Users/Full", fullNames, "")
	h.defines("Orders/Lines", `docs.Orders.SelectMany(o => o.Lines, (o, l) => new { l.Product, Total = l.Q * l.P })`, "")
	h.operationEnds(h.want(200, "PATCH", "/databases/a/queries", `{"Query":{"Query":"from index 'Users/Full' as u where u.Full = $n update { u.Seen = u.First }","QueryParameters":{"n":"bob lee"}}}`))
	equal(t, "patched", h.answers(`from Users where Seen = 'Bob'`), "users/2")
	previewed := h.want(200, "POST", "/jay/v1/databases/a/preview", `{"query":"from index 'Orders/Lines' where Product = 'Nut'","delete":true}`)
	equal(t, "preview", previewed.text(t, "total")+fmt.Sprint(len(previewed.json(t, "documents").([]any))), "33")
	a := h.want(200, "PATCH", "/databases/a/queries", `{"Query":{"Query":"from index 'Orders/Lines' where Total < 5 order by Total update { this.Seen = (this.Seen || 0) + 1 }"}}`)
	h.operationEnds(a)
	equal(t, "each once", h.answers(`from Orders where Seen = 1 order by id()`), "orders/1 orders/3")
	h.operationEnds(h.want(200, "DELETE", "/databases/a/queries", `{"Query":"from index 'Orders/Lines' where Product = 'Oak' or Total = 5","PageSize":1}`))
	equal(t, "one is left", len(strings.Fields(h.answers(`from Orders`))), 2)
	h.operationEnds(h.want(200, "DELETE", "/databases/a/queries", `{"Query":"from index 'Users/Full' where Age < 35"}`))
	equal(t, "left", h.answers(`from Users`), "users/3")
	for _, query := range []string{`from index 'Orders/Lines' select Total`, `from index 'Users/Full' select Full`} {
		h.checkProblem(h.do("POST", "/jay/v1/databases/a/preview", `{"query":"`+query+`","delete":true}`), 400, "BadRequestException")
	}
}

// Ensure that lists, statistics, errors and terms have the indexes that compute, and that another definition takes the place of one.
func TestComputed_Administration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startIn(t, dir)
	h.create("a")
	h.shop()
	h.want(201, "PUT", "/databases/a/docs?id=users/4", `{"First":"Dan","Last":"Ash","Age":0,"@metadata":{"@collection":"Users"}}`)
	const share = `from u in docs.Users select new { Share = 120 / u.Age, u.Last }`
	h.defines("Users/Share", share, "")
	h.defines("Users/ByLast", `map('Users', u => ({ last: u.Last, n: 1 }))`, `groupBy(x => x.last).aggregate(g => ({ last: g.key, n: g.values.reduce((t, v) => t + v.n, 0) }))`)
	check := func(h *host) {
		t.Helper()
		equal(t, "names", h.want(200, "GET", "/databases/a/indexes?namesOnly=true", "").text(t, "Results"), "[Users/ByLast Users/Share]")
		one := h.want(200, "GET", "/databases/a/indexes?name=users/share", "")
		equal(t, "definition", one.text(t, "Results", 0, "Maps", 0)+one.text(t, "Results", 0, "Type")+one.text(t, "Results", 0, "State"), share+"MapNormal")
		two := h.want(200, "GET", "/databases/a/indexes?name=Users/ByLast", "")
		equal(t, "reduce", two.text(t, "Results", 0, "Type"), "JavaScriptMapReduce")
		stats := h.want(200, "GET", "/databases/a/indexes/stats?name=Users/Share", "")
		equal(t, "stats", fmt.Sprint(stats.text(t, "Results", 0, "EntriesCount"), stats.text(t, "Results", 0, "ErrorsCount"), stats.text(t, "Results", 0, "IsStale"), stats.text(t, "Results", 0, "Status")), "41falseRunning")
		stats = h.want(200, "GET", "/databases/a/indexes/stats?name=Users/ByLast", "")
		equal(t, "groups", stats.text(t, "Results", 0, "EntriesCount")+stats.text(t, "Results", 0, "MapAttempts"), "34")
		errors := h.want(200, "GET", "/databases/a/indexes/errors?name=Users/Share", "")
		equal(t, "errors", errors.text(t, "Results", 0, "Errors", 0, "Document")+errors.text(t, "Results", 0, "Errors", 0, "Action"), "users/4Map")
		if text := errors.text(t, "Results", 0, "Errors", 0, "Error"); !strings.Contains(text, "division by zero") {
			t.Error(text)
		}
		equal(t, "all errors", h.want(200, "GET", "/databases/a/indexes/errors", "").text(t, "Results", 0, "Errors"), "[]")
		equal(t, "of the database", h.want(200, "GET", "/databases/a/stats", "").text(t, "CountOfIndexes"), 2)
		equal(t, "status", len(h.want(200, "GET", "/databases/a/indexes/status", "").json(t, "Indexes").([]any)), 2)
		equal(t, "staleness", h.want(200, "GET", "/databases/a/indexes/staleness?name=Users/Share", "").text(t, "IsStale"), false)
		equal(t, "terms", h.want(200, "GET", "/databases/a/indexes/terms?name=Users/Share&field=Share", "").text(t, "Terms"), "[3 4 6]")
		equal(t, "terms of groups", h.want(200, "GET", "/databases/a/indexes/terms?name=Users/ByLast&field=last", "").text(t, "Terms"), "[ash lee orr]")
		h.checkProblem(h.do("GET", "/databases/a/indexes/terms?name=Users/Share&field=Age", ""), 400, "BadRequestException")
		equal(t, "merges", h.want(200, "GET", "/databases/a/indexes/suggest-index-merge", "").text(t, "Suggestions"), "[]")
		body := fmt.Sprintf(`{"Name":"Users/Share","Maps":[%q]}`, share)
		equal(t, "unchanged", h.want(200, "POST", "/databases/a/indexes/has-changed", body).text(t, "Changed"), false)
		for _, other := range []string{strings.Replace(body, "120", "121", 1), strings.Replace(body, `"]`, `"],"Fields":{"Share":{"Storage":"Yes"}}`, 1), strings.Replace(body, "120 / u.Age", "u.Age", 1)} {
			equal(t, other, h.want(200, "POST", "/databases/a/indexes/has-changed", other).text(t, "Changed"), true)
		}
	}
	check(h)
	h.defines("users/share", share, "") // the same
	h.want(201, "RESET", "/databases/a/indexes?name=Users/Share", "")
	h.want(204, "POST", "/databases/a/indexes/set-lock", `{"IndexNames":["Users/Share"],"Mode":"Unlock"}`)
	h.want(204, "POST", "/databases/a/admin/indexes/start?name=Users/Share", "")
	own := func() (n int) {
		for _, one := range h.want(200, "GET", "/jay/v1/databases/a/indexes", "").json(t, "indexes").([]any) {
			if strings.HasPrefix(one.(map[string]any)["name"].(string), "computed:") {
				n++
			}
		}
		return n
	}
	equal(t, "parts", own(), 3)
	h.stop()
	h = startIn(t, dir)
	h.defines("Users/Share", share, "")
	check(h)

	h.want(204, "POST", "/databases/a/admin/indexes/disable?name=Users/Share", "")
	equal(t, "parts of the other one", own(), 1)
	h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"from index 'Users/Share'"}`), 400, "BadRequestException")
	equal(t, "disabled", h.want(200, "GET", "/databases/a/indexes/stats?name=Users/Share", "").text(t, "Results", 0, "State"), "Disabled")
	h.want(201, "RESET", "/databases/a/indexes?name=Users/Share", "")
	equal(t, "parts of the other one", own(), 1)
	h.want(204, "POST", "/databases/a/admin/indexes/enable?name=Users/Share", "")
	check(h)

	// A definition of other members, one that lists fields, and one that computes again.
	h.defines("Users/Share", strings.Replace(share, "120", "240", 1), "")
	equal(t, "replaced", h.answers(`from index 'Users/Share' where Share = 12`), "users/2")
	h.defines("Users/Share", `from u in docs.Users select new { u.Age }`, "")
	equal(t, "of fields", h.answers(`from index 'Users/Share' where Age = 20`), "users/2")
	equal(t, "parts of the other one", own(), 1)
	h.defines("Users/Share", share, "")
	check(h)
	h.want(204, "POST", "/databases/a/indexes/set-lock", `{"IndexNames":["Users/Share"],"Mode":"LockedIgnore"}`)
	h.defines("Users/Share", `from u in docs.Users select new { A = u.Age + 1 }`, "")
	equal(t, "locked", h.answers(`from index 'Users/Share' where Share = 6`), "users/2")

	h.want(204, "DELETE", "/databases/a/indexes?name=users/share", "")
	h.want(204, "DELETE", "/databases/a/indexes?name=Users/ByLast", "")
	equal(t, "none", own(), 0)
	equal(t, "none", h.want(200, "GET", "/databases/a/indexes", "").text(t, "Results"), "[]")
	h.want(404, "POST", "/databases/a/queries", `{"Query":"from index 'Users/Share'"}`)
}

// Ensure that an index which has gone with its collection is there again when it is asked, that one which documents have refused behind the
// request's back is faulty until it is reset.
func TestComputed_Gone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startIn(t, dir)
	h.create("a")
	h.shop()
	h.defines("Users/Full", fullNames, "")
	h.defines("Users/ByTown", `from u in docs.Users select new { u.Town, n = 1 }`, `from r in results group r by r.Town into g select new { Town = g.Key, n = g.Sum(x => x.n) }`)
	h.operationEnds(h.want(200, "DELETE", "/jay/v1/databases/a/collections?name=Users", ""))
	h.want(201, "PUT", "/databases/a/docs?id=users/9", `{"First":"Eve","Last":"Fox","Town":"towns/1","@metadata":{"@collection":"Users"}}`)
	equal(t, "stale", h.want(200, "GET", "/databases/a/indexes/staleness?name=Users/Full", "").text(t, "IsStale"), true)
	equal(t, "again", h.answers(`from index 'Users/Full' where Full = 'Eve Fox'`), "users/9")
	equal(t, "groups", h.answers(`from index 'Users/ByTown'`), `{"Town":"towns/1","n":1,"@metadata":{}}`)
	equal(t, "ready", h.want(200, "GET", "/databases/a/indexes/stats?name=Users/Full", "").text(t, "Results", 0, "IsStale"), false)

	// A document with more values than an index takes.
	h.operationEnds(h.want(200, "DELETE", "/jay/v1/databases/a/collections?name=Users", ""))
	many := make([]string, 20_000)
	for i := range many {
		many[i] = fmt.Sprintf("%d", i)
	}
	h.want(201, "PUT", "/databases/a/docs?id=users/many", `{"Town":[`+strings.Join(many, ",")+`],"@metadata":{"@collection":"Users"}}`)
	for range 2 {
		a := h.do("POST", "/databases/a/queries", `{"Query":"from index 'Users/ByTown'"}`)
		h.checkProblem(a, 400, "BadRequestException")
		if !strings.Contains(a.body, "faulty") || !strings.Contains(a.body, "users/many") {
			t.Error(a.body)
		}
	}
	stats := h.want(200, "GET", "/databases/a/indexes/stats?name=Users/ByTown", "")
	equal(t, "faulty", stats.text(t, "Results", 0, "State")+stats.text(t, "Results", 0, "Status")+stats.text(t, "Results", 0, "IsInvalidIndex"), "ErrorFaultytrue")
	h.checkProblem(h.do("RESET", "/databases/a/indexes?name=Users/ByTown", ""), 400, "BadRequestException")
	h.want(204, "DELETE", "/databases/a/docs?id=users/many", "")
	h.stop()
	h = startIn(t, dir)
	h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"from index 'Users/ByTown'"}`), 400, "BadRequestException")
	h.want(201, "RESET", "/databases/a/indexes?name=Users/ByTown", "")
	equal(t, "reset", h.answers(`from index 'Users/ByTown'`), "")
	equal(t, "normal", h.want(200, "GET", "/databases/a/indexes/stats?name=Users/ByTown", "").text(t, "Results", 0, "State"), "Normal")

	// A definition that documents refuse leaves that which was there.
	h.want(201, "PUT", "/databases/a/docs?id=users/many", `{"Town":"x","Tags":[`+strings.Join(many, ",")+`],"@metadata":{"@collection":"Users"}}`)
	h.checkProblem(h.put("Users/ByTown", `from u in docs.Users select new { u.Tags, n = 1 }`, `from r in results group r by r.Tags into g select new { Tags = g.Key, n = g.Sum(x => x.n) }`), 400, "BadRequestException")
	equal(t, "the old one", h.answers(`from index 'Users/ByTown'`), `{"Town":"x","n":1,"@metadata":{}}`)
	h.checkProblem(h.put("Users/Other", `from u in docs.Users select new { u.Tags, n = 1 }`, `from r in results group r by r.Tags into g select new { Tags = g.Key, n = g.Sum(x => x.n) }`), 400, "BadRequestException")
	equal(t, "names", h.want(200, "GET", "/databases/a/indexes?namesOnly=true", "").text(t, "Results"), "[Users/ByTown Users/Full]")
}

// Ensure that indexes of definitions are in a backup and its copy, follow a collection that is renamed, and are not written to where a database
// is only read.
func TestComputed_BackupRenameReadOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startIn(t, dir)
	h.create("a")
	h.shop()
	h.defines("Users/Full", fullNames, "", `"Fields":{"Full":{"Storage":"Yes"}}`)
	h.defines("Users/ByTown", `from u in docs.Users select new { u.Town, n = 1 }`, `from r in results group r by r.Town into g select new { Town = g.Key, n = g.Sum(x => x.n) }`)
	h.operationEnds(h.want(200, "POST", "/jay/v1/databases/a/collections/rename", `{"from":"Users","to":"People"}`))
	check := func(h *host, full string) {
		t.Helper()
		equal(t, "rows", h.answers(`from index 'Users/Full' where Full = 'Ann Lee' select Full`), full)
		equal(t, "groups", h.answers(`from index 'Users/ByTown' order by n desc limit 1`), `{"Town":"towns/1","n":2,"@metadata":{}}`)
		equal(t, "sources", h.want(200, "GET", "/databases/a/indexes/stats?name=Users/Full", "").text(t, "Results", 0, "Collections", "People", "DocumentLag"), 0)
	}
	const full = `{"Full":"Ann Lee","@metadata":{"@projection":true,"@id":"users/1"}}`
	check(h, full)
	h.want(201, "RESET", "/databases/a/indexes?name=Users/ByTown", "")
	h.want(204, "POST", "/databases/a/admin/indexes/disable?name=Users/Full", "")
	h.want(204, "POST", "/databases/a/admin/indexes/enable?name=Users/Full", "")
	check(h, full)
	h.stop()

	restored := restoredCopy(t, filepath.Join(dir, "databases", "a"))
	h = start(t, func(o *server.Options) { o.Directories = map[string]string{"a": restored} })
	check(h, full)
	h.want(201, "PUT", "/databases/a/docs?id=users/9", `{"First":"Ann","Last":"Lee","Town":"towns/3","@metadata":{"@collection":"People"}}`)
	check(h, full+" "+strings.Replace(full, "users/1", "users/9", 1))
	h.stop()

	edit(t, restored, func(ctx context.Context, db *jay.DB) error { return jay.ComputedOf(db).Drop(ctx, "Users/ByTown") })
	h = start(t, func(o *server.Options) {
		o.Directories, o.Database.ReadOnly = map[string]string{"a": restored}, true
	})
	equal(t, "read", h.answers(`from index 'Users/Full' where Full = 'Cyd Orr'`), "users/3")
	a := h.do("POST", "/databases/a/queries", `{"Query":"from index 'Users/ByTown'"}`)
	h.checkProblem(a, 400, "BadRequestException")
	if !strings.Contains(a.body, "not written to here") {
		t.Error(a.body)
	}
	h.checkProblem(h.do("PUT", "/databases/a/indexes", `{"Indexes":[{"Name":"New","Maps":["map('People', u => ({ n: u.n + 1 }))"]}]}`), 403, "AuthorizationException")
}

// mountedShop returns a server that has a database of this program, with the documents of a shop.
func mountedShop(t *testing.T) (*host, *jay.DB) {
	t.Helper()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	h := mountAt(t, "", anAdmin, func(o *server.Options) { o.Mounted["a"] = db })
	h.shop()
	return h, db
}

// Ensure that clients see the computed indexes that a program has declared, with all of their members, and that a definition which computes takes
// the place of one.
func TestComputed_OfPrograms(t *testing.T) {
	t.Parallel()
	h, db := mountedShop(t)
	if err := jay.ComputedOf(db).Ensure(t.Context(), jay.Computed{Name: "Shop's", Maps: []index.Map{{Collection: "Orders", Each: "Lines", As: "l", Where: "l.Q > 1", Select: []index.Member{{Name: "Product", Expression: "l.Product"}, {Name: "Total", Expression: "l.Q * l.P"}}}}}); err != nil {
		t.Fatal(err)
	}
	equal(t, "names", h.want(200, "GET", "/databases/a/indexes?namesOnly=true", "").text(t, "Results"), "[Shop's]")
	one := h.want(200, "GET", "/databases/a/indexes?name=SHOP'S", "")
	equal(t, "definition", one.text(t, "Results", 0, "Maps", 0)+one.text(t, "Results", 0, "Type"), "from Orders each Lines as l where l.Q > 1 select l.Product as Product, l.Q * l.P as TotalMap")
	equal(t, "stats", h.want(200, "GET", "/databases/a/indexes/stats?name=Shop's", "").text(t, "Results", 0, "EntriesCount"), 3)
	equal(t, "terms", h.want(200, "GET", "/databases/a/indexes/terms?name=Shop's&field=Total", "").text(t, "Terms"), "[3 5]")
	for _, quoted := range []string{`"Shop's"`, `'Shop\'s'`} {
		equal(t, quoted, h.answers(`from index `+quoted+` where Total = 5 select Total`), `{"Total":5,"@metadata":{"@projection":true,"@id":"orders/2"}}`)
	}
	h.want(201, "RESET", "/databases/a/indexes?name=Shop's", "")
	for _, path := range []string{"admin/indexes/disable?name=Shop's", "admin/indexes/enable?name=Shop's"} {
		h.checkProblem(h.do("POST", "/databases/a/"+path, ""), 501, "NotSupportedException")
	}
	h.checkProblem(h.do("POST", "/databases/a/indexes/set-lock", `{"IndexNames":["Shop's"],"Mode":"LockedIgnore"}`), 501, "NotSupportedException")
	h.checkProblem(h.put("Shop's", `from o in docs.Orders select new { o.Company }`, ""), 400, "BadRequestException")
	h.checkProblem(h.put("Shop's", `from o in docs.Orders from l in o.Lines select new { l.Product, Total = first(l.Q) }`, ""), 501, "NotSupportedException")
	h.defines("Shop's", `from o in docs.Orders select new { Firm = o.Company }`, "")
	equal(t, "of the definition", h.answers(`from index "Shop's" where Firm = 'companies/2'`), "orders/3")
	h.want(204, "DELETE", "/databases/a/indexes?name=Shop's", "")
	if err := jay.ComputedOf(db).Ensure(t.Context(), jay.Computed{Name: "X", Maps: []index.Map{{Collection: "Orders", Select: []index.Member{{Name: "Company"}}}}}); err != nil {
		t.Fatal(err)
	}
	h.want(204, "DELETE", "/databases/a/indexes?name=x", "")
	equal(t, "none", h.want(200, "GET", "/databases/a/indexes", "").text(t, "Results"), "[]")
}

// Ensure that queries and writes go on while a definition is replaced again and again, each with the answers of one of its declarations, and while another one
// is reset.
func TestComputed_ReplacedMeanwhile(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.shop()
	define := func(n int) string {
		return fmt.Sprintf(`{"Indexes":[{"Name":"Users/Plus","Maps":["from u in docs.Users select new { Sum = u.Age + %d }"],"Fields":{"Sum":{"Storage":"Yes"}}}]}`, n)
	}
	h.want(201, "PUT", "/databases/a/admin/indexes", define(0))
	h.defines("Users/ByTown", `from u in docs.Users select new { u.Town, n = 1 }`, `from r in results group r by r.Town into g select new { Town = g.Key, n = g.Sum(x => x.n) }`)
	var group sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		group.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if a := h.do("POST", "/databases/a/queries", `{"Query":"from index 'Users/ByTown' where Town = 'towns/1'"}`); a.status != 200 || a.text(t, "Results", 0, "n") != "2" {
					t.Errorf("%d: %s", a.status, a.body)
					return
				}
				a := h.do("POST", "/databases/a/queries", `{"Query":"from index 'Users/Plus' where id() = 'users/2' select Sum"}`)
				if n := a.text(t, "Results", 0, "Sum"); a.status != 200 || n != "20" && n != "21" {
					t.Errorf("%d: %s", a.status, a.body)
					return
				}
			}
		})
	}
	for i := range 20 {
		h.want(201, "PUT", "/databases/a/admin/indexes", define((i+1)%2))
		h.want(201, "RESET", "/databases/a/indexes?name=Users/ByTown", "")
		h.want(201, "PUT", fmt.Sprintf("/databases/a/docs?id=users/n%d", i), `{"Age":7,"@metadata":{"@collection":"Users"}}`)
	}
	close(done)
	group.Wait()
	equal(t, "all", h.asked(`from index 'Users/Plus' where Sum = 7`).text(t, "TotalResults"), 20)
}

// Ensure that Jay's own interface declares, lists and drops computed indexes, and leaves those of definitions alone.
func TestComputed_Own(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.shop()
	const path = "/jay/v1/databases/a/indexes"
	declared := func(expression, more string) string {
		return `{"index":{"name":"Users/Next","maps":[{"collection":"Users","select":[{"name":"Next","expression":"` + expression + `"}]}]}` + more + `}`
	}
	equal(t, "ready", h.want(201, "PUT", path+"/computed", declared("Age + 1", "")).text(t, "ready"), true)
	h.want(201, "PUT", path+"/computed", declared("Age + 1", ""))
	h.checkProblem(h.do("PUT", path+"/computed", declared("Age + 2", "")), 400, "BadRequestException")
	h.checkProblem(h.do("PUT", path+"/computed", declared("Age +", "")), 400, "InvalidQueryException")
	h.checkProblem(h.do("PUT", path+"/computed", declared("Age", `,"more":1`)), 400, "BadRequestException")
	h.want(201, "PUT", path+"/computed", declared("Age + 2", `,"replace":true`))
	list := h.want(200, "GET", path+"?collection=users", "")
	equal(t, "listed", list.text(t, "computed", 0, "algebra")+list.text(t, "computed", 0, "state"), "map Users select Age + 2 as Nextready")
	equal(t, "of another collection", h.want(200, "GET", path+"?collection=Towns", "").text(t, "computed"), "[]")
	equal(t, "rows", h.want(200, "POST", "/jay/v1/databases/a/query", `{"query":"from index 'Users/Next' where Next = 22"}`).text(t, "rows", 0, "row", "Next"), 22)
	h.defines("Users/Full", fullNames, "")
	h.checkProblem(h.do("DELETE", path+"/computed?name=users/full", ""), 400, "BadRequestException")
	h.want(204, "DELETE", path+"/computed?name=users/next", "")
	h.checkProblem(h.do("DELETE", path+"/computed?name=Users/Next", ""), 400, "BadRequestException")
	equal(t, "one is left", h.want(200, "GET", path, "").text(t, "computed", 0, "name"), "Users/Full")
}

// Ensure that the errors of an index are listed up to a bound, and counted beyond it.
func TestComputed_ManyErrors(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.defines("Zs/Share", `from z in docs.Zs select new { Share = 1 / z.N, Twice = 2 / z.N }`, "")
	var commands []string
	for i := range 520 {
		commands = append(commands, fmt.Sprintf(`{"Type":"PUT","Id":"z/%03d","Document":{"N":0,"@metadata":{"@collection":"Zs"}}}`, i))
	}
	h.want(201, "POST", "/databases/a/bulk_docs", `{"Commands":[`+strings.Join(commands, ",")+`]}`)
	errors := h.want(200, "GET", "/databases/a/indexes/errors?name=zs/share", "")
	equal(t, "listed", len(errors.json(t, "Results", 0, "Errors").([]any)), 500)
	equal(t, "the first", errors.text(t, "Results", 0, "Errors", 0, "Document"), "z/000")
	equal(t, "counted", h.want(200, "GET", "/databases/a/indexes/stats?name=Zs/Share", "").text(t, "Results", 0, "ErrorsCount"), 1040)
}

// Ensure that a definition which documents refuse leaves the computed index of a program that has its name.
func TestComputed_RefusedOverPrograms(t *testing.T) {
	t.Parallel()
	h, db := mountedShop(t)
	if err := jay.ComputedOf(db).Ensure(t.Context(), jay.Computed{Name: "X", Maps: []index.Map{{Collection: "Users", Select: []index.Member{{Name: "Next", Expression: "Age + 1"}}}}}); err != nil {
		t.Fatal(err)
	}
	values := strings.TrimSuffix(strings.Repeat("1,", 3), ",")
	for i := range 11_000 {
		values += fmt.Sprintf(",%d", i)
	}
	h.want(201, "PUT", "/databases/a/docs?id=users/many", `{"Age":1,"Tags":[`+values+`],"@metadata":{"@collection":"Users"}}`)
	h.checkProblem(h.put("X", `from u in docs.Users select new { u.Tags, n = 1 }`, `from r in results group r by r.Tags into g select new { Tags = g.Key, n = g.Sum(x => x.n) }`), 400, "BadRequestException")
	equal(t, "it stays", h.answers(`from index 'X' where Next = 21 select Next`), `{"Next":21,"@metadata":{"@projection":true,"@id":"users/2"}}`)
	equal(t, "as one of a program", h.want(200, "GET", "/databases/a/indexes?name=X", "").text(t, "Results", 0, "Maps", 0), "from Users select Age + 1 as Next")
}

// Ensure that pages of documents with several entries, in an order and in any, are together what is found without pages, whatever the
// number of entries of a document is, and that the total of each page is their number.
func TestComputed_RandomPages(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	h := start(t)
	h.create("a")
	random := rand.New(rand.NewPCG(sample.Of(t, 1).Seed(), 1))
	with := 0
	var commands []string
	for i := range 250 {
		var lines []string
		for range random.IntN(4) * random.IntN(12) {
			lines = append(lines, fmt.Sprintf(`{"Q":%d}`, random.IntN(40)))
		}
		if len(lines) > 0 {
			with++
		}
		commands = append(commands, fmt.Sprintf(`{"Type":"PUT","Id":"o/%03d","Document":{"Lines":[%s],"@metadata":{"@collection":"Orders"}}}`, i, strings.Join(lines, ",")))
	}
	h.want(201, "POST", "/databases/a/bulk_docs", `{"Commands":[`+strings.Join(commands, ",")+`]}`)
	h.defines("Orders/Q", `from o in docs.Orders from l in o.Lines select new { l.Q }`, "")
	for _, order := range []string{"", " order by Q", " order by Q desc", " order by Q, id() desc"} {
		query := "from index 'Orders/Q'" + order
		all := h.answers(query)
		if n := len(strings.Fields(all)); n != with {
			t.Fatalf("%s finds %d documents, and %d have entries", query, n, with)
		}
		for _, size := range []int{1 + random.IntN(5), 20 + random.IntN(60), 300} {
			if order == "" && size < 20 {
				continue
			}
			var pages []string
			for from := 0; from < with; from += size {
				page := fmt.Sprintf(`"Start":%d,"PageSize":%d`, from, size)
				a := h.answers(query, page)
				pages = append(pages, a)
				if from == 0 || from+size >= with {
					equal(t, "total", h.asked(query, page).text(t, "TotalResults"), with)
				}
			}
			if got := strings.Join(pages, " "); got != all {
				t.Errorf("%s, pages of %d:\n%s, want\n%s", query, size, got, all)
			}
		}
	}
}
