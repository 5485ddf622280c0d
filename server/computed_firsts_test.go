package server_test

import (
	"strings"
	"testing"
)

// Ensure that the first and the last entry of a group, in an order and without one, are found at the ends of groups, also when documents change.
func TestComputed_Firsts(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.shop()
	h.defines("Orders/Last", `from o in docs.Orders select new { o.Company, o.At, Lines = o.Lines[0].Q, Phone = LoadDocument<Company>(o.Company).Phone }`,
		`from r in results group r by r.Company into g let last = g.OrderBy(x => x.At).Last() select new { last.Company, last.At, last.Lines, Phone = g.First().Phone }`)
	h.defines("Lines/First", `map('Orders', o => o.Lines.map(l => ({ product: l.Product, price: l.P, q: l.Q })))`,
		`groupBy(x => x.product).aggregate(g => { const dear = g.values.sort((a, b) => b.price - a.price); return { product: g.key, price: dear[0].price, q: dear[0].q } })`)
	for query, want := range map[string]string{
		`from index 'Orders/Last' order by Company`: `{"Company":"companies/1","At":"2026-01-03T10:00:00Z","Lines":4,"Phone":"1","@metadata":{}} {"Company":"companies/2","At":"2025-05-05T10:00:00Z","Lines":1,"Phone":"2","@metadata":{}}`,
		`from index 'Lines/First' order by product`: `{"product":"Nut","price":1.5,"q":2,"@metadata":{}} {"product":"Oak","price":10,"q":1,"@metadata":{}}`,
	} {
		equal(t, query, h.answers(query), want)
	}
	for _, name := range []string{"Orders/Last", "Lines/First"} {
		explained := h.want(200, "POST", "/databases/a/queries?debug=explain", `{"Query":"from index '`+name+`'"}`)
		if !strings.Contains(explained.body, "computed:"+name+":") || !strings.Contains(explained.body, "read no documents") {
			t.Errorf("%s: %s", name, explained.body)
		}
	}
	h.want(204, "DELETE", "/databases/a/docs?id=orders/2", "")
	h.want(201, "PUT", "/databases/a/docs?id=orders/4", `{"Company":"companies/2","At":"2026-06-01T00:00:00Z","Lines":[{"Product":"Oak","Q":7,"P":11}],"@metadata":{"@collection":"Orders"}}`)
	h.want(201, "PUT", "/databases/a/docs?id=companies/1", `{"Name":"Oak & Co","Phone":"3","@metadata":{"@collection":"Companies"}}`)
	equal(t, "other orders", h.answers(`from index 'Orders/Last' order by Company select Lines, Phone`), `{"Lines":2,"Phone":"3","@metadata":{"@projection":true}} {"Lines":7,"Phone":"2","@metadata":{"@projection":true}}`)
	equal(t, "other lines", h.answers(`from index 'Lines/First' where product = 'oak' select q`), `{"q":7,"@metadata":{"@projection":true}}`)
}
