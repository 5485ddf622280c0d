package server_test

import (
	"strings"
	"testing"
)

// Ensure that an index which loads other documents finds by what they are now: after they were changed, deleted and stored again.
func TestComputed_Loads(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.shop()
	h.want(201, "PUT", "/databases/a/docs?id=clubs/1", `{"Name":"Chess","Members":["users/1","users/3","users/9"],"Seats":[{"Of":"users/2"},{"Of":"users/3"}],"@metadata":{"@collection":"Clubs"}}`)
	h.defines("Users/ByTown", `from u in docs.Users let t = LoadDocument<Town>(u.Town) select new { Town = t.Name, u.Age, Both = u.First + "@" + t.Name }`, "", `"Fields":{"Town":{"Storage":"Yes"},"Both":{"Storage":"Yes"}}`)
	h.defines("Users/OfTowns", `map('Users', u => { const t = load(u.Town, 'Towns'); if (!t.Name) return null; return { town: t.Name, n: 1, age: u.Age } })`,
		`groupBy(x => x.town).aggregate(g => ({ town: g.key, n: g.values.length, age: g.values.reduce((s, v) => s + v.age, 0) }))`)
	h.defines("Clubs/Names", `docs.Clubs.Select(c => new { Who = c.Members.Select(m => LoadDocument<User>(m).First), Sits = LoadDocument<User>(c.Seats.Select(s => s.Of)).Select(u => u.First), Towns = c.Members.Select(m => LoadDocument<Town>(LoadDocument<User>(m).Town).Name) })`, "", `"Fields":{"Who":{"Storage":"Yes"}}`)
	h.defines("Clubs/Seats", `map('Clubs', c => c.Seats.map(s => ({ who: load(s.Of, 'Users').First, n: 1 })))`, `groupBy(x => x.who).aggregate(g => ({ who: g.key, n: g.values.length }))`)
	h.defines("Clubs/Members", `from c in docs.Clubs from u in LoadDocument<User>(c.Members) where u.Age > 1 select new { c.Name, who = u.First, town = LoadDocument<Town>(u.Town).Name, n = 1 }`,
		`from r in results group r by new { r.Name, r.town } into g select new { g.Key.Name, g.Key.town, who = g.Max(x => x.who), n = g.Sum(x => x.n) }`)
	for query, want := range map[string]string{
		`from index 'Clubs/Members' order by town`:                     `{"Name":"Chess","town":"Bern","who":"Ann","n":1,"@metadata":{}} {"Name":"Chess","town":"Ulm","who":"Cyd","n":1,"@metadata":{}}`,
		`from index 'Users/ByTown' where Town = 'bern' order by Age`:   "users/2 users/1",
		`from index 'Users/ByTown' where Both = 'Cyd@Ulm' select Both`: `{"Both":"Cyd@Ulm","@metadata":{"@projection":true,"@id":"users/3"}}`,
		`from index 'Users/OfTowns' order by town`:                     `{"town":"Bern","n":2,"age":50,"@metadata":{}} {"town":"Ulm","n":1,"age":40,"@metadata":{}}`,
		`from index 'Clubs/Names' where Who = 'Cyd' and Sits = 'bob'`:  "clubs/1",
		`from index 'Clubs/Names' where Who = 'Bob'`:                   "",
		`from index 'Clubs/Names' where Towns = 'Ulm' select Who`:      `{"Who":["Ann","Cyd"],"@metadata":{"@projection":true,"@id":"clubs/1"}}`,
		`from index 'Clubs/Seats' order by who`:                        `{"who":"Bob","n":1,"@metadata":{}} {"who":"Cyd","n":1,"@metadata":{}}`,
	} {
		equal(t, query, h.answers(query), want)
	}
	explained := h.want(200, "POST", "/databases/a/queries?debug=explain", `{"Query":"from index 'Users/ByTown' where Town = 'Bern'"}`)
	if !strings.Contains(explained.body, "computed:Users/ByTown:") {
		t.Error(explained.body)
	}
	h.want(201, "PUT", "/databases/a/docs?id=towns/1", `{"Name":"Basel","@metadata":{"@collection":"Towns"}}`)
	equal(t, "a town is renamed", h.answers(`from index 'Users/ByTown' where Town = 'Basel' order by Age`), "users/2 users/1")
	equal(t, "its group", h.answers(`from index 'Users/OfTowns' where town = 'Basel'`), `{"town":"Basel","n":2,"age":50,"@metadata":{}}`)
	equal(t, "of elements", h.answers(`from index 'Clubs/Members' order by town select town, n`), `{"town":"Basel","n":1,"@metadata":{"@projection":true}} {"town":"Ulm","n":1,"@metadata":{"@projection":true}}`)
	equal(t, "of those it was named before", h.answers(`from index 'Users/ByTown' where Town = 'Bern'`), "")
	h.want(204, "DELETE", "/databases/a/docs?id=towns/1", "")
	equal(t, "without the town", h.answers(`from index 'Users/ByTown' where Town = 'Basel'`)+h.answers(`from index 'Users/OfTowns' select town`), `{"town":"Ulm","@metadata":{"@projection":true}}`)
	equal(t, "its text", h.answers(`from index 'Users/ByTown' where Age = 20 select Both`), `{"Both":"Bob@","@metadata":{"@projection":true,"@id":"users/2"}}`)
	h.want(201, "PUT", "/databases/a/docs?id=users/9", `{"First":"Dot","Age":50,"Town":"towns/1","@metadata":{"@collection":"Users"}}`)
	h.want(201, "PUT", "/databases/a/docs?id=towns/1", `{"Name":"Bern","@metadata":{"@collection":"Towns"}}`)
	equal(t, "stored again", h.answers(`from index 'Users/ByTown' where Town = 'Bern' order by Age`)+h.answers(`from index 'Clubs/Names' where Who = 'Dot'`), "users/2 users/1 users/9clubs/1")
	equal(t, "of elements again", h.answers(`from index 'Clubs/Members' where town = 'bern' select who, n`), `{"who":"Dot","n":2,"@metadata":{"@projection":true}}`)
	equal(t, "terms", h.want(200, "GET", "/databases/a/indexes/terms?name=Users/ByTown&field=Town", "").text(t, "Terms"), "[bern ulm]")
}

// Ensure that words and places of loaded documents are found, also by projections of JavaScript and by changes.
func TestComputed_LoadsOptions(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.shop()
	town := func(name string, latitude string) {
		h.want(201, "PUT", "/databases/a/docs?id=towns/1", `{"Name":"`+name+`","Lat":`+latitude+`,"Lng":2,"@metadata":{"@collection":"Towns"}}`)
	}
	town("Bern am See", "1.5")
	h.defines("Users/ByTown", `from u in docs.Users let t = LoadDocument<Town>(u.Town) select new { Town = t.Name, u.Age, At = CreateSpatialField(t.Lat, t.Lng), Where = CreateSpatialField(t.Where) }`, "", `"Fields":{"Town":{"Indexing":"Search"}}`)
	words, near := `from index 'Users/ByTown' where search(Town, 'see') order by Age`, `from index 'Users/ByTown' where spatial.within(At, spatial.circle(10, 1.5, 2)) order by Age`
	equal(t, "words and places", h.answers(words)+" "+h.answers(near), "users/2 users/1 users/2 users/1")
	town("Bern", "3")
	equal(t, "others", h.answers(words)+h.answers(near), "")
	equal(t, "facets", h.asked(`from index 'Users/ByTown' select facet(Town)`).text(t, "Results", 0, "Values", 0, "Range"), "Bern")
	equal(t, "entries", h.want(200, "POST", "/databases/a/queries?debug=entries", `{"Query":"from index 'Users/ByTown' where Age = 40"}`).text(t, "Results", 0, "Town"), "Ulm")
	equal(t, "JavaScript", h.answers(`from index 'Users/ByTown' as u where Town = 'Bern' order by Age select { N: u.First }`), `{"N":"Bob","@metadata":{"@projection":true,"@id":"users/2"}} {"N":"Ann","@metadata":{"@projection":true,"@id":"users/1"}}`)
	h.operationEnds(h.want(200, "PATCH", "/databases/a/queries", `{"Query":{"Query":"from index 'Users/ByTown' where Town = 'bern' update { this.x = 1 }"}}`))
	h.operationEnds(h.want(200, "DELETE", "/databases/a/queries", `{"Query":"from index 'Users/ByTown' where Town = 'ulm'"}`))
	equal(t, "changed", h.answers(`from Users order by Age`)+h.answers(`from Users where x = 1 order by Age`), "users/2 users/1users/2 users/1")
}
