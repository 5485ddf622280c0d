package server_test

import "testing"

// Ensure that RavenDB's clients get facets as they ask for them: a result for each, in the order of the query, of which
// TotalResults is the number.
func TestQueries_Facets(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for id, body := range map[string]string{"cameras/1": `"Brand":"Canon","Price":90`, "cameras/2": `"Brand":"Canon","Price":250`, "cameras/3": `"Brand":"Nikon","Price":700`, "cameras/4": `"Price":5`} {
		h.want(201, "PUT", "/databases/a/docs?id="+id, `{`+body+`,"@metadata":{"@collection":"Cameras"}}`)
	}
	h.want(201, "PUT", "/databases/a/docs?id=facets/Cameras", `{"Facets":[{"FieldName":"Brand","Options":{"TermSortMode":"CountDesc","PageSize":1,"IncludeRemainingTerms":true}}],"@metadata":{"@collection":"FacetSetups"}}`)

	rest := `"RemainingHits":0,"RemainingTerms":[],"RemainingTermsCount":0,`
	brands := `{"Name":"Brand",` + rest + `"Values":[{"Count":2,"Name":"Price","Range":"Canon","Sum":340},{"Count":1,"Name":"Price","Range":"Nikon","Sum":700}]}`
	prices := `{"Name":"Price",` + rest + `"Values":[{"Count":2,"Range":"Price < 100"},{"Count":2,"Range":"Price >= 100"}]}`
	a := h.want(200, "POST", "/databases/a/queries", `{"Query":"from 'Cameras' select facet(Brand, sum(Price)), facet(Price < $p0, Price >= $p0)","QueryParameters":{"p0":100}}`)
	equal(t, "facets", a.compact(t, "Results"), "["+brands+","+prices+"]")
	equal(t, "total", a.text(t, "TotalResults"), 2)

	one := `[{"Name":"Brand","RemainingHits":1,"RemainingTerms":["Nikon"],"RemainingTermsCount":1,"Values":[{"Count":2,"Range":"Canon"}]}]`
	if a := h.put("Cameras/ByBrand", "from c in docs.Cameras select new { c.Brand, c.Price }", ""); a.status != 201 {
		t.Fatal(a.status, a.body)
	}
	for _, query := range []string{
		`{"Query":"from index 'Cameras/ByBrand' select facet(Brand, $p0)","QueryParameters":{"p0":{"TermSortMode":"CountDesc","PageSize":1,"IncludeRemainingTerms":true}}}`,
		`{"Query":"from 'Cameras' select facet(Brand, $p0)","QueryParameters":{"p0":{"TermSortMode":"CountDesc","PageSize":1,"IncludeRemainingTerms":true}}}`,
		`{"Query":"from 'Cameras' select facet(id('facets/Cameras'))"}`,
	} {
		equal(t, query, h.want(200, "POST", "/databases/a/queries", query).compact(t, "Results"), one)
	}
	h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"from Cameras select facet(Brand), Price"}`), 400, "InvalidQueryException")
	h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"from Cameras select facet(id('facets/none'))"}`), 400, "InvalidQueryException")
}
