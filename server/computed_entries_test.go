package server_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Ensure that a reduce computes what it says of the entries of a group, in C# and in JavaScript, after each write, and that the reply to explain says what is
// computed when it is asked for.
func TestComputed_Entries(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.shop()
	h.defines("Orders/Entries", `from o in docs.Orders from l in o.Lines select new { l.Product, Worth = l.Q * l.P, Q = l.Q, Mean = 0, Many = 0, Names = o.Company, Text = o.Company, Cheap = 0 }`,
		`from r in results group r by r.Product into g select new { Product = g.Key, Worth = g.Sum(x => x.Worth), Q = g.Sum(x => x.Q), Mean = g.Sum(x => x.Q) == 0 ? 0 : g.Sum(x => x.Worth) / g.Sum(x => x.Q), Many = g.Count(x => x.Q > 2), Names = g.Select(x => x.Names).Distinct().ToArray(), Text = string.Join(" & ", g.Select(x => x.Text).Distinct()), Cheap = g.All(x => x.Worth < 10) }`)
	h.defines("Orders/Script", `map('Orders', o => ({ c: o.Company, n: o.Lines[0].Q, last: o.At, first: 0, different: o.Lines[0].Product, all: '' }))`,
		`groupBy(x => x.c).aggregate(g => ({ c: g.key, n: g.values.reduce((t, v) => v.n > 1 ? t + v.n : t, 0), last: g.values.find(v => v.n > 3).last, first: g.values.some(v => v.n === 4), different: new Set(g.values.map(v => v.different)).size, all: g.values.map(v => v.last).join(' ') }))`)
	for query, want := range map[string]string{
		`from index 'Orders/Entries' where Product = 'Nut'`:                       `{"Product":"Nut","Worth":12,"Q":10,"Mean":1.2,"Many":2,"Names":["companies/1","companies/2"],"Text":"companies/1 & companies/2","Cheap":true,"@metadata":{}}`,
		`from index 'Orders/Entries' where Names = 'companies/2' select Product`:  `{"Product":"Nut","@metadata":{"@projection":true}}`,
		`from index 'Orders/Entries' where Cheap = false select Product, Text`:    `{"Product":"Oak","Text":"companies/1","@metadata":{"@projection":true}}`,
		`from index 'Orders/Script' where c = 'companies/1'`:                      `{"c":"companies/1","n":6,"last":"2026-01-03T10:00:00Z","first":true,"different":1,"all":"2026-01-02T10:00:00Z 2026-01-03T10:00:00Z","@metadata":{}}`,
		`from index 'Orders/Script' where first = false and last = null select c`: `{"c":"companies/2","@metadata":{"@projection":true}}`,
		`from index 'Orders/Script' order by different desc, c desc select c, n`:  `{"c":"companies/2","n":0,"@metadata":{"@projection":true}} {"c":"companies/1","n":6,"@metadata":{"@projection":true}}`,
	} {
		equal(t, query, h.answers(query), want)
	}
	h.want(201, "PUT", "/databases/a/docs?id=orders/4", `{"Company":"companies/3","Lines":[{"Product":"Nut","Q":1,"P":100}],"@metadata":{"@collection":"Orders"}}`)
	h.want(204, "DELETE", "/databases/a/docs?id=orders/2", "")
	equal(t, "after writes", h.answers(`from index 'Orders/Entries' where Product = 'Nut' select Worth, Many, Text, Cheap`), `{"Worth":107,"Many":1,"Text":"companies/1 & companies/2 & companies/3","Cheap":false,"@metadata":{"@projection":true}}`)
	if text := h.want(200, "POST", "/databases/a/queries?debug=explain", `{"Query":"from index 'Orders/Entries'"}`).body; !strings.Contains(text, "computed when asked, from the entries of each group: Names, Text") {
		t.Errorf("explain: %s", text)
	}
}

// Ensure that fields whose names are in documents are found by all conditions, by an index on their values, with the regard to case that their options say, and
// that what else names one is refused with what to do.
func TestComputed_CreatedOfElements(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for id, attributes := range map[string]string{
		"1": `{"Name":"Color","Value":"Red"},{"Name":"Size","Value":5}`,
		"2": `{"Name":"Color","Value":"blue"},{"Name":"Color","Value":"red"}`,
		"3": `{"Name":"Shade","Value":"Red"},{"Name":"Size","Value":null}`,
		"4": ``,
	} {
		h.want(201, "PUT", "/databases/a/docs?id=products/"+id, `{"N":`+id+`,"Attributes":[`+attributes+`],"@metadata":{"@collection":"Products"}}`)
	}
	h.defines("Products/Fields", `from p in docs.Products select new { p.N, _ = p.Attributes.Select(a => CreateField(a.Name, a.Value)) }`, "")
	h.defines("Products/Exact", `map('Products', p => ({ _: p.Attributes.map(a => createField('a_' + a.Name, a.Value, { indexing: 'Exact', storage: false })) }))`, "")
	for query, want := range map[string]string{
		`from index 'Products/Fields' where Color = 'red' order by N`:                 "products/1 products/2",
		`from index 'Products/Fields' where exact(Color = 'red')`:                     "products/2",
		`from index 'Products/Fields' where Color != 'red' order by N`:                "products/3 products/4",
		`from index 'Products/Fields' where color = 'red'`:                            "",
		`from index 'Products/Fields' where Color in ('blue', 'green')`:               "products/2",
		`from index 'Products/Fields' where Color all in ('blue', 'red')`:             "products/2",
		`from index 'Products/Fields' where Size between 4 and 6`:                     "products/1",
		`from index 'Products/Fields' where Size > 4 and N < 3 or Shade = 'red'`:      "products/1 products/3",
		`from index 'Products/Fields' where startsWith(Shade, 're')`:                  "products/3",
		`from index 'Products/Fields' where exists(Size) order by N desc`:             "products/3 products/1",
		`from index 'Products/Fields' where Size = null`:                              "products/3",
		`from index 'Products/Fields' where Color = 'red' order by N select N, Color`: `{"N":1,"Color":null,"@metadata":{"@projection":true,"@id":"products/1"}} {"N":2,"Color":null,"@metadata":{"@projection":true,"@id":"products/2"}}`,
		`from index 'Products/Exact' where a_Color = 'red'`:                           "products/2",
		`from index 'Products/Exact' where a_Shade = 'Red'`:                           "products/3",
		`from index 'Products/Exact' where Color = 'Red'`:                             "",
	} {
		equal(t, query, h.answers(query), want)
	}
	h.want(201, "PUT", "/databases/a/docs?id=products/4", `{"Attributes":[{"Name":"Color","Value":"RED"}],"@metadata":{"@collection":"Products"}}`)
	equal(t, "after a write", h.answers(`from index 'Products/Fields' where Color = 'red' and not N in (1, 2)`), "products/4")
	if text := h.want(200, "POST", "/databases/a/queries?debug=explain", `{"Query":"from index 'Products/Fields' where Color = 'red'"}`).body; !strings.Contains(text, "one range") || strings.Contains(text, "scan") {
		t.Errorf("explain: %s", text)
	}
	for _, query := range []string{`from index 'Products/Fields' order by Color`, `from index 'Products/Fields' select facet(Color)`, `from index 'Products/Fields' where Color = Size`, `from index 'Products/Fields' where Color = N`} {
		refused := h.do("POST", "/databases/a/queries", `{"Query":"`+query+`"}`)
		h.checkProblem(refused, 400, "InvalidQueryException")
		if !strings.Contains(refused.body, "the map creates") {
			t.Errorf("%s: %s", query, refused.body)
		}
	}
	refused := h.do("GET", "/databases/a/indexes/terms?name=Products/Fields&field=Color", "")
	h.checkProblem(refused, 400, "BadRequestException")
	if !strings.Contains(refused.body, "lists no terms of fields whose names are in documents") {
		t.Errorf("terms: %s", refused.body)
	}
}

// Ensure that conditions on documents that are loaded choose the documents of a projection by JavaScript and of changes by query, which read them again.
func TestComputed_LoadedConditions(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.shop()
	for query, want := range map[string]string{
		`from Users as u where load(Town).Name = 'ulm' load u.Town as t select { First: u.First, Town: t.Name }`:                                            `{"First":"Cyd","Town":"Ulm","@metadata":{"@projection":true,"@id":"users/3"}}`,
		`from Users as u load u.Town as t where t.Name = 'Bern' order by t.Name, Age select { First: u.First, Town: t.Name }`:                               `{"First":"Bob","Town":"Bern","@metadata":{"@projection":true,"@id":"users/2"}} {"First":"Ann","Town":"Bern","@metadata":{"@projection":true,"@id":"users/1"}}`,
		`declare function f(u, t) { return { N: u.First + t.Name } } from Users as u load u.Town as t where u.Age > 25 and t.Name != 'Bern' select f(u, t)`: `{"N":"CydUlm","@metadata":{"@projection":true,"@id":"users/3"}}`,
	} {
		equal(t, query, h.answers(query), want)
	}
	refused := h.do("POST", "/databases/a/queries", `{"Query":"from Users as u load u.Town as t where t = 'x' select { A: u.First }"}`)
	h.checkProblem(refused, 400, "InvalidQueryException")
	h.operationEnds(h.want(200, "PATCH", "/databases/a/queries", `{"Query":{"Query":"from Users where load(Town).Name = 'Bern' update { this.Near = load(this.Town).Name }"}}`))
	equal(t, "changed", h.answers(`from Users where Near = 'Bern' order by Age`), "users/2 users/1")
	h.operationEnds(h.want(200, "DELETE", "/databases/a/queries", `{"Query":"from Users where load(Town).Name = 'Ulm'"}`))
	equal(t, "deleted", h.answers(`from Users order by Age`), "users/2 users/1")
}

// Ensure that after random writes and deletions the definitions of both languages answer with what is computed of all documents.
func TestComputed_RandomEntries(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.defines("Sharp", `from s in docs.Sales select new { s.P, s.N, Many = 0, Who = s.Who, All = s.Who, Any = 0, Mean = 0 }`,
		`from r in results group r by r.P into g select new { P = g.Key, N = g.Where(x => x.N > 0).Sum(x => x.N * 2), Many = g.Count(x => x.N > 2), Who = g.Select(x => x.Who).Distinct().Count(), All = string.Join(",", g.Select(x => x.All)), Any = g.Any(x => x.N == 4), Mean = g.Count() > 2 ? g.Max(x => x.N) : g.Min(x => x.N) }`)
	h.defines("Script", `map('Sales', s => ({ P: s.P, N: s.N, Many: 0, Who: s.Who, All: s.Who, Any: 0, Mean: s.N }))`,
		`groupBy(x => x.P).aggregate(g => ({ P: g.key, N: g.values.reduce((t, v) => v.N > 0 ? t + v.N * 2 : t, 0), Many: g.values.filter(x => x.N > 2).length, Who: new Set(g.values.map(x => x.Who)).size, All: g.values.map(x => x.All).join(','), Any: g.values.some(x => x.N === 4), Mean: g.values.length > 2 ? Math.max(...g.values.map(x => x.N)) : Math.min(...g.values.map(x => x.N)) }))`)
	type sale struct {
		P, Who string
		N      int
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 35))
	all := make(map[string]sale)
	for step := range 40 {
		id := fmt.Sprint("sales/", r.IntN(10))
		if _, found := all[id]; found && r.IntN(4) == 0 {
			delete(all, id)
			h.want(204, "DELETE", "/databases/a/docs?id="+id, "")
		} else {
			s := sale{fmt.Sprint("p", r.IntN(3)), []string{"", "ann", "bob"}[r.IntN(3)], r.IntN(6)}
			who := ""
			if s.Who != "" {
				who = `"Who":"` + s.Who + `",`
			}
			all[id] = s
			h.want(201, "PUT", "/databases/a/docs?id="+id, fmt.Sprintf(`{"P":%q,%s"N":%d,"@metadata":{"@collection":"Sales"}}`, s.P, who, s.N))
		}
		groups := make(map[string][]sale)
		for _, s := range all {
			groups[s.P] = append(groups[s.P], s)
		}
		var want []string
		for p, sales := range groups {
			n, many, least, most := 0, 0, 9, 0
			var who []string
			any := false
			for _, s := range sales {
				n, least, most, any = n+2*s.N, min(least, s.N), max(most, s.N), any || s.N == 4
				if s.N > 2 {
					many++
				}
				who = append(who, s.Who)
			}
			slices.Sort(who)
			mean := least
			if len(sales) > 2 {
				mean = most
			}
			joined, err := json.Marshal(strings.Join(who, ","))
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, fmt.Sprintf(`{"P":%q,"N":%d,"Many":%d,"Who":%d,"All":%s,"Any":%v,"Mean":%d,"@metadata":{}}`, p, n, many, len(slices.Compact(who)), joined, any, mean))
		}
		slices.Sort(want)
		for _, name := range []string{"Sharp", "Script"} {
			equal(t, fmt.Sprint(name, " after step ", step), h.answers(`from index '`+name+`' order by P`), strings.Join(want, " "))
		}
		if t.Failed() {
			return
		}
	}
}
