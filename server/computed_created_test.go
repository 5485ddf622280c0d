package server_test

import "testing"

// Ensure that fields which a map creates are members of its entries, found and projected as their options say, also after the server has read the definition again.
func TestComputed_Created(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.shop()
	const sharp = `from u in docs.Users select new { u.Age, _ = new[] { CreateField("Full", u.First + " " + u.Last, new CreateFieldOptions { Storage = FieldStorage.Yes, Indexing = FieldIndexing.Search }), CreateField("Key", u.First, false, false) }, any = CreateField("Town", LoadDocument<Town>(u.Town).Name) }`
	h.defines("Users/Fields", sharp, "")
	h.defines("Users/Script", `map('Users', u => ({ _: createField('full', u.First + '!', { storage: true, indexing: 'Exact', termVector: null }), all: [createField('old', u.Age > 25)] }))`, "")
	for query, want := range map[string]string{
		`from index 'Users/Fields' where search(Full, 'LEE') order by Age`: "users/2 users/1",
		`from index 'Users/Fields' where Key = 'Ann'`:                      "users/1",
		`from index 'Users/Fields' where Key = 'ann'`:                      "",
		`from index 'Users/Fields' where Town = 'ulm' select Full, Key`:    `{"Full":"Cyd Orr","Key":null,"@metadata":{"@projection":true,"@id":"users/3"}}`,
		`from index 'Users/Script' where full = 'Bob!' select full`:        `{"full":"Bob!","@metadata":{"@projection":true,"@id":"users/2"}}`,
		`from index 'Users/Script' where full = 'bob!'`:                    "",
		`from index 'Users/Script' where old = false`:                      "users/2",
	} {
		equal(t, query, h.answers(query), want)
	}
	same := `{"Name":"Users/Script","Maps":["map('Users', u => ({ _: createField('full', u.First + '!', { storage: true, indexing: 'Exact', termVector: null }), all: [createField('old', u.Age > 25)] }))"]}`
	equal(t, "the same", h.want(200, "POST", "/databases/a/indexes/has-changed", same).text(t, "Changed"), false)
	refused := h.do("PUT", "/databases/a/admin/indexes", `{"Indexes":[{"Name":"X","Maps":["map('Users', u => ({ _: createField('full', u.First, { indexing: 'Exact' }) }))"],"Fields":{"full":{"Indexing":"Search"}}}]}`)
	h.checkProblem(refused, 501, "NotSupportedException")
	h.defines("Users/Given", `map('Users', u => ({ _: createField('full', u.First) }))`, "", `"Fields":{"full":{"Indexing":"Exact"}}`)
	equal(t, "options of the definition", h.answers(`from index 'Users/Given' where full = 'ann'`)+h.answers(`from index 'Users/Given' where full = 'Ann'`), "users/1")
	h.defines("Users/Script", `map('Users', u => ({ _: createField('full', u.First + '!') }))`, "")
	equal(t, "other options", h.answers(`from index 'Users/Script' where full = 'bob!'`), "users/2")
}
