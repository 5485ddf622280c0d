package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// Ensure that a query by an index includes the documents that a member names, and that numbers, null and objects name none. A number, null or a
// truth value once ended the server.
func TestQueries_IncludesOther(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for i := range 3 {
		h.want(201, "PUT", fmt.Sprintf("/databases/a/docs?id=companies/%d", i), `{"@metadata":{"@collection":"Companies"}}`)
	}
	for i, company := range []string{`null`, `7`, `true`, `""`, `{"Id":"companies/0"}`, `[]`, `["companies/1",null,3,{"Id":"companies/0"},"companies/2"]`} {
		h.want(201, "PUT", fmt.Sprintf("/databases/a/docs?id=orders/%d", i), `{"Company":`+company+`,"Lines":[{"Q":1},{"Q":2}],"@metadata":{"@collection":"Orders"}}`)
	}
	h.want(201, "PUT", "/databases/a/docs?id=orders/without", `{"Lines":[{"Q":1}],"@metadata":{"@collection":"Orders"}}`)
	h.defines("Orders/Double", `from o in docs.Orders select new { Double = o.Company + "" }`, "")
	h.defines("Orders/Lines", `from o in docs.Orders from l in o.Lines select new { l.Q }`, "")
	h.defines("Orders/ByCompany", `from o in docs.Orders select new { o.Company, N = 1 }`, `from r in results group r by r.Company into g select new { Company = g.Key, N = g.Sum(x => x.N) }`)
	for _, query := range []string{`from Orders include Company`, `from index 'Orders/Double' include Company`, `from index 'Orders/Lines' include Company`, `from index 'Orders/ByCompany' include Company`} {
		a := h.asked(query)
		equal(t, query, a.text(t, "TotalResults"), 8)
		equal(t, query, len(a.json(t, "Includes").(map[string]any)), 2)
		for _, id := range []string{"companies/1", "companies/2"} {
			equal(t, query+": "+id, a.text(t, "Includes", id, "@metadata", "@collection"), "Companies")
		}
	}
}

// Ensure that a page has its results and what they include, and nothing of the result that follows it, and that the total is that of all pages.
func TestQueries_Pages(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	const all = 5
	for i := range all {
		h.want(201, "PUT", fmt.Sprintf("/databases/a/docs?id=companies/%d", i), `{"@metadata":{"@collection":"Companies"}}`)
		h.want(201, "PUT", fmt.Sprintf("/databases/a/docs?id=orders/%d", i), fmt.Sprintf(`{"Total":%d,"Company":"companies/%[1]d","@metadata":{"@collection":"Orders"}}`, i))
	}
	h.defines("Orders/Total", `from o in docs.Orders select new { o.Total }`, "")
	h.defines("Orders/Double", `from o in docs.Orders select new { Double = o.Total * 2 }`, "")
	for _, query := range []string{
		`from Orders include Company`,
		`from Orders where Total >= 0 order by Total include Company`,
		`from index 'Orders/Total' order by Total include Company`,
		`from index 'Orders/Double' order by Double include Company`,
		`from Orders order by Total select id() as Id`,
	} {
		for start := range all + 2 {
			for size := range all + 2 {
				a := h.asked(query, fmt.Sprintf(`"Start":%d,"PageSize":%d`, start, size))
				name := fmt.Sprintf("%s from %d, %d at most", query, start, size)
				equal(t, name+": total", a.text(t, "TotalResults")+" "+a.text(t, "LongTotalResults"), fmt.Sprintf("%d %[1]d", all))
				var want, included []string
				for i := start; i < min(all, start+size); i++ {
					want, included = append(want, fmt.Sprintf("orders/%d", i)), append(included, fmt.Sprintf("companies/%d", i))
				}
				results := a.json(t, "Results").([]any)
				equal(t, name+": results", len(results), len(want))
				for i, id := range want {
					equal(t, name, a.text(t, "Results", i, "@metadata", "@id"), id)
				}
				if strings.Contains(query, "include") {
					equal(t, name+": included", len(a.json(t, "Includes").(map[string]any)), len(included))
				}
			}
		}
		equal(t, query+": without an end", h.asked(query, `"Start":3`).text(t, "TotalResults"), all)
	}
}
