package server_test

import (
	"fmt"
	"strings"
	"testing"
)

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
