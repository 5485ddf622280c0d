package server_test

import (
	"testing"
)

// Ensure that queries on places are answered as RavenDB's clients write them, with parameters, and that a place that is none is refused by its rule.
func TestQueries_Places(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for id, doc := range map[string]string{
		"shops/1": `{"lat":52.52,"lng":13.40,"area":"POLYGON((13 52, 14 52, 14 53, 13 53, 13 52))"`,
		"shops/2": `{"lat":52.45,"lng":13.30,"area":"POINT(2 48)"`,
		"shops/3": `{"lat":48.10,"lng":11.60`,
	} {
		h.want(201, "PUT", "/databases/a/docs?id="+id, doc+`,"@metadata":{"@collection":"Shops"}}`)
	}
	circle := `"QueryParameters":{"p0":20,"p1":52.5,"p2":13.4,"p3":52.4,"p4":13.3}`
	const point = "spatial.point(lat, lng)"
	for query, want := range map[string]string{
		"from 'Shops' where spatial.within(" + point + ", spatial.circle($p0, $p1, $p2)) order by spatial.distance(" + point + ", spatial.point($p3, $p4))":                                                    "shops/2 shops/1",
		"from 'Shops' where spatial.within(" + point + ", spatial.circle($p0, $p1, $p2, 'Miles'), 0.01) order by spatial.distance(" + point + ", spatial.point($p1, $p2)) desc":                                "shops/2 shops/1",
		"from 'Shops' where (spatial.disjoint(" + point + ", spatial.circle($p0, $p1, $p2))) and lat > $p4":                                                                                                    "shops/3",
		"from 'Shops' where spatial.intersects(spatial.wkt(area), spatial.circle($p0, $p1, $p2))":                                                                                                              "shops/1",
		"from 'Shops' order by spatial.distance(" + point + ", spatial.wkt('POINT (11 48)')) limit 1":                                                                                                          "shops/3",
		"from 'Shops' as s where spatial.within(spatial.point(s.lat, s.lng), spatial.wkt('POLYGON ((13 52, 14 52, 14 53, 13 53, 13 52))')) order by spatial.distance(" + point + ", spatial.point(1, 2), $p0)": "shops/1 shops/2",
	} {
		parameters := circle
		if want == "shops/3" && query[len(query)-1] == '1' {
			parameters = `"PageSize":1`
		}
		if want == "shops/1 shops/2" {
			parameters = `"QueryParameters":{"p0":100}`
		}
		equal(t, query, h.answers(query, parameters), want)
	}
	h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"from 'Shops' where spatial.within(spatial.point(lat, lng), spatial.circle(5, 152, 3))"}`), 400, "InvalidQueryException")
}
