package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// shops has documents with places.
func shops(t *testing.T) *host {
	h := start(t)
	h.create("a")
	for id, body := range map[string]string{
		"notes/1": `"lat":52.52,"lng":13.40,"area":"POLYGON((13 52, 14 52, 14 53, 13 53, 13 52))"`, "notes/2": `"lat":52.45,"lng":13.30,"area":"POINT(2 48)"`,
		"notes/3": `"lat":48.10,"lng":11.60,"open":true`, "notes/4": `"area":"here","stops":[{"lat":52.5,"lng":13.4},{"lat":-10,"lng":179.9}]`, "notes/5": `"lat":null,"lng":3`,
	} {
		h.want(201, "PUT", "/databases/a/docs?id="+id, `{`+body+`,"@metadata":{"@collection":"Shops"}}`)
	}
	return h
}

// Ensure that definitions with places of RavenDB's clients answer queries on them by indexes of places, and that nothing is left of them.
func TestDefinitions_Places(t *testing.T) {
	t.Parallel()
	const options = `{"spot":{"Spatial":{"Type":"Geography","Strategy":"QuadPrefixTree","MaxTreeLevel":23,"MinX":-180.0,"MaxX":180.0,"MinY":-90.0,"MaxY":90.0,"Units":"Kilometers"}}}`
	for kind, maps := range map[string]string{
		"C#":         `from s in docs.Shops select new { spot = CreateSpatialField((double)s.lat, (double)s.lng), area = CreateSpatialField(s.area), s.open }`,
		"JavaScript": `map('Shops', s => ({ spot: s.lat === null ? null : createSpatialField(s.lat, s.lng), area: createSpatialField(s.area), open: s.open }))`,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			h := shops(t)
			if a := h.worded("Shops/ByPlace", maps, options); a.status != 201 {
				t.Fatal(a.body)
			}
			if body := h.want(200, "GET", "/databases/a/indexes?name=Shops/ByPlace", "").body; !strings.Contains(body, options) {
				t.Errorf("echoed as %s", body)
			}
			equal(t, "ready", h.want(200, "GET", "/databases/a/indexes/staleness?name=Shops/ByPlace", "").text(t, "IsStale"), "false")
			for rest, want := range map[string]string{
				`where spatial.within(spot, spatial.circle(20, 52.5, 13.4)) order by spatial.distance(spot, spatial.point(52.4, 13.3))`:                "2 1",
				`where spatial.within(spot, spatial.wkt('POLYGON((11 48, 12 48, 12 49, 11 49, 11 48))'))`:                                              "3",
				`where spatial.intersects(area, spatial.circle(1, 52.5, 13.5))`:                                                                        "1",
				`where spatial.contains(area, spatial.wkt('POINT(13.2 52.2)'))`:                                                                        "1",
				`where spatial.disjoint(area, spatial.wkt('POINT(13.2 52.2)'))`:                                                                        "2",
				`where spatial.disjoint(spot, spatial.circle(100, 52.5, 13.4), 0.025)`:                                                                 "3",
				`where open = true and spatial.within(spot, spatial.circle(2000, 52.5, 13.4))`:                                                         "3",
				`order by spatial.distance(spot, spatial.wkt('POINT(11 48)')) limit 1`:                                                                 "3",
				`where exists(lat) and lat != null order by spatial.distance(spot, spatial.point(48, 11)) desc`:                                        "",
				`where spatial.within(spot, spatial.circle(2000, 52.5, 13.4)) order by spatial.distance(spot, spatial.point(48, 11), 'miles', 1) desc`: "1 2 3",
			} {
				if want == "" { // no member of the index
					h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"from index 'Shops/ByPlace' `+rest+`"}`), 400, "InvalidQueryException")
					continue
				}
				ids, a := h.asks(fmt.Sprintf(`{"Query":"from index 'Shops/ByPlace' %s"}`, rest))
				if ids != want {
					t.Errorf("%s: got %s, want %s", rest, ids, want)
				}
				equal(t, rest, a.text(t, "IndexName"), "Shops/ByPlace")
				plan := h.want(200, "POST", "/databases/a/queries?debug=explain", fmt.Sprintf(`{"Query":"from index 'Shops/ByPlace' %s"}`, rest)).body
				if by := strings.Contains(plan, "::places"); by == (strings.Contains(rest, "disjoint") || strings.Contains(rest, "open")) && !strings.Contains(rest, "open") {
					t.Errorf("%s: the plan is %s", rest, plan)
				}
			}
			h.want(201, "PUT", "/databases/a/docs?id=notes/6", `{"lat":52.53,"lng":13.4,"@metadata":{"@collection":"Shops"}}`)
			ids, _ := h.asks(`{"Query":"from index 'Shops/ByPlace' where spatial.within(spot, spatial.circle($p0, $p1, $p2, 'Miles')) order by spatial.distance(spot, spatial.point($p1, $p2))","QueryParameters":{"p0":12,"p1":52.6,"p2":13.4}}`)
			equal(t, "with another document, and in miles", ids, "6 1 2")

			// Another definition of the name drops what it does not have, and none is left when it is deleted.
			places := func() (n int) {
				return strings.Count(h.want(200, "GET", "/jay/v1/databases/a/indexes", "").body, `"Shops/ByPlace::places`)
			}
			equal(t, "indexes of places", places(), 2)
			if a := h.worded("Shops/ByPlace", `from s in docs.Shops select new { area = CreateSpatialField(s.area) }`, `{}`); a.status != 201 {
				t.Fatal(a.body)
			}
			equal(t, "indexes of places of another definition", places(), 1)
			ids, _ = h.asks(`{"Query":"from index 'Shops/ByPlace' where spatial.intersects(area, spatial.circle(1, 52.5, 13.5))"}`)
			equal(t, "by another definition", ids, "1")
			h.want(204, "DELETE", "/databases/a/indexes?name=Shops/ByPlace", "")
			equal(t, "indexes of places when there is none", places(), 0)
		})
	}
}

// Ensure that fields of a definition that computes nothing are places by their options, and that several maps and elements have places.
func TestDefinitions_PlacesOfFields(t *testing.T) {
	t.Parallel()
	h := shops(t)
	if a := h.worded("Fields", `from s in docs.Shops select new { s.area, s.open }`, `{"area":{"Spatial":{}}}`); a.status != 201 {
		t.Fatal(a.body)
	}
	ids, a := h.asks(`{"Query":"from index 'Fields' where spatial.intersects(area, spatial.circle(1, 52.5, 13.5))"}`)
	equal(t, "a field", ids, "1")
	equal(t, "its index", a.text(t, "IndexName"), "Fields")
	list := h.want(200, "GET", "/jay/v1/databases/a/indexes", "").body
	if !strings.Contains(list, `"Fields::places"`) || strings.Contains(list, `"Fields:area"`) {
		t.Errorf("the indexes are %s", list)
	}

	if a := h.do("PUT", "/databases/a/admin/indexes", `{"Indexes":[{"Name":"Several","Maps":["map('Shops', s => ({ at: createSpatialField(s.lat, s.lng) }))","map('Shops', s => ({ at: createSpatialField(s.area) }))"]}]}`); a.status != 201 {
		t.Fatal(a.body)
	}
	ids, _ = h.asks(`{"Query":"from index 'Several' where spatial.within(at, spatial.circle(5, 52.52, 13.40))"}`)
	equal(t, "a map of several", ids, "1")
	ids, _ = h.asks(`{"Query":"from index 'Several' where spatial.within(at, spatial.circle(5, 48, 2))"}`)
	equal(t, "another map", ids, "2")

	if a := h.worded("Stops", `from s in docs.Shops from p in s.stops select new { at = CreateSpatialField(p.lat, p.lng) }`, `{}`); a.status != 201 {
		t.Fatal(a.body)
	}
	ids, _ = h.asks(`{"Query":"from index 'Stops' where spatial.within(at, spatial.circle(50, -10, -179.9))"}`)
	equal(t, "an element, over the antimeridian", ids, "4")
	ids, _ = h.asks(`{"Query":"from index 'Stops' order by spatial.distance(at, spatial.point(52, 13))"}`)
	equal(t, "elements by distance", ids, "4")
}

// Ensure that options of places that would change answers are refused by their names.
func TestDefinitions_PlacesRefused(t *testing.T) {
	t.Parallel()
	h := shops(t)
	for spatial, want := range map[string]string{
		`{"Type":"Cartesian"}`: "the type Cartesian", `{"Strategy":"BoundingBox"}`: "the strategy BoundingBox", `{"Units":"Miles"}`: "the units Miles", `{"MaxTreeLevel":51}`: "the level 51",
		`{"MinX":-10}`: "the bound MinX = -10", `{"MaxY":1e300}`: "the bound MaxY", `[]`: "options of places that are none",
	} {
		a := h.worded("X", `from s in docs.Shops select new { at = CreateSpatialField(s.lat, s.lng) }`, `{"at":{"Spatial":`+spatial+`}}`)
		h.checkProblem(a, 501, "NotSupportedException")
		var problem struct{ Message string }
		if err := json.Unmarshal([]byte(a.body), &problem); err != nil || !strings.Contains(problem.Message, want) {
			t.Errorf("%s: %s", spatial, problem.Message)
		}
	}
	h.checkProblem(h.worded("X", `from s in docs.Shops select new { s.area }`, `{"__all_fields":{"Spatial":{}}}`), 501, "NotSupportedException")
	h.checkProblem(h.worded("X", `from s in docs.Shops select new { at = CreateSpatialField(s.lat, "x") }`, `{}`), 501, "NotSupportedException")
}
