package odd_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// declared are the indexes of the collection Odd in the database with indexes, as the server's own interface takes
// them. Some refuse documents: the campaign then leaves the document out of both databases.
var declared = []string{
	`{"name":"A","fields":["A"]}`,
	`{"name":"B-N","fields":["B","-N"]}`,
	`{"name":"-N","fields":["-N"]}`,
	`{"name":"N,M,B","fields":["N","M","B"]}`,
	`{"name":"M","fields":["M"]}`,
	`{"name":"Tags","fields":["Tags"]}`,
	`{"name":"Tags,-At","fields":["Tags","-At"]}`,
	`{"name":"Lines.P,Lines.Q","fields":["Lines.P","Lines.Q"]}`,
	`{"name":"Lines[0].P","fields":["Lines[0].P"]}`,
	`{"name":"O","fields":["O"]}`,
	`{"name":"O.N","fields":["-O.N","B"]}`,
	`{"name":"U","fields":["U"],"unique":true}`,
	`{"name":"At","fields":["At"]}`,
	`{"name":"date","fields":["At as date","B"]}`,
	`{"name":"utc","fields":["-At as utc"]}`,
	`{"name":"year","fields":["year(At)","N"]}`,
	`{"name":"part","fields":["M"],"where":"B = 'b'"}`,
	`{"name":"part2","fields":["N"],"where":"M > 1 and exists(A)"}`,
	`{"name":"sum","fields":["N * M","B"]}`,
	`{"name":"ratio","fields":["N / M"]}`,
	`{"name":"coalesce","fields":["-coalesce(N, M, 0)"]}`,
	`{"name":"length","fields":["length(T)"]}`,
	`{"name":"if","fields":["if(M > 2, 'big', B)"]}`,
	`{"name":"concat","fields":["concat(B, '-', M)"]}`,
	`{"name":"loaded","fields":["load(Ref).B"]}`,
	`{"name":"quoted","fields":["'x.y'"]}`,
	`{"name":"name","fields":["'First Name'","A"]}`,
	`{"name":"words","kind":"text","fields":["T","B"]}`,
	`{"name":"english","kind":"text","fields":["T"],"options":{"analyzer":"english"}}`,
	`{"name":"parts","kind":"text","fields":["T"],"options":{"analyzer":"ngram(3)"}}`,
	`{"name":"spots","kind":"places","fields":["spatial.point(Lat, Lng)"]}`,
	`{"name":"areas","kind":"places","fields":["Place"]}`,
	`{"name":"alike","kind":"vectors","fields":["V"],"options":{"dimensions":"3","strict":"no"}}`,
	`{"name":"far","kind":"vectors","fields":["V"],"options":{"dimensions":"3","strict":"no","metric":"euclidean"}}`,
	`{"name":"byB","kind":"groups","fields":["B"],"options":{"sums":"N, M"}}`,
	`{"name":"byBM","kind":"groups","fields":["B","M"],"options":{"sums":"N * M"}}`,
	`{"name":"byTags","kind":"groups","fields":["Tags"],"options":{"sums":"M"}}`,
	`{"name":"byYear","kind":"groups","fields":["year(At)"],"options":{"sums":"N"},"where":"M > 1"}`,
	`{"name":"byA","kind":"groups","fields":["A"]}`,
	`{"name":"byP","kind":"groups","fields":["line.P"],"options":{"each":"Lines as line","sums":"line.Q, line.Q * M"}}`,
	`{"name":"byPQ","kind":"groups","fields":["line.P"],"options":{"each":"Lines as line","only":"line.Q > 1","sums":"line.Q"}}`,
	`{"name":"endsP","kind":"ends","fields":["line.P"],"options":{"each":"Lines as line","values":"line.Q"}}`,
	`{"name":"B,M,A","fields":["B","M","A"]}`,
}

// definition is an index in the form of RavenDB's clients.
type definition struct {
	name, maps, rest string
	fields           []string
	reduced          bool
}

// definitions are indexes in the form of RavenDB's clients, and what queries of them may name.
var definitions = []definition{
	{"Odd/Fields", `"from d in docs.Odd select new { d.B, d.N }"`, ``, []string{"B", "N"}, false},
	{"Odd/Computed", `"from d in docs.Odd select new { X = d.M * 2, Y = d.B ?? \"none\", d.N }"`, `,"Fields":{"X":{"Storage":"Yes"}}`, []string{"X", "Y", "N"}, false},
	{"Odd/Script", `"map('Odd', d => ({ X: d.M > 2 ? 'big' : 'small', Y: (d.N || 0) + 1, Z: d.B }))"`, ``, []string{"X", "Y", "Z"}, false},
	{"Odd/Fan", `"from d in docs.Odd from l in d.Lines select new { l.P, Q = l.Q, d.B }"`, ``, []string{"P", "Q", "B"}, false},
	{"Odd/Two", `"from d in docs.Odd select new { Name = d.B }","from d in docs.Even select new { Name = d.A }"`, ``, []string{"Name"}, false},
	{"Odd/Loaded", `"from d in docs.Odd select new { Of = LoadDocument(d.Ref, \"Odd\").B, d.M }"`, ``, []string{"Of", "M"}, false},
	{"Odd/ByB", `"from d in docs.Odd select new { d.B, Count = 1, Sum = d.M }"`, `,"Reduce":"from r in results group r by r.B into g select new { B = g.Key, Count = g.Sum(x => x.Count), Sum = g.Sum(x => x.Sum) }"`, []string{"B", "Count", "Sum"}, true},
	{"Odd/Ends", `"from d in docs.Odd select new { d.B, d.N, d.M }","from d in docs.Even select new { d.B, d.N, d.M }"`, `,"Reduce":"from r in results group r by r.B into g select new { B = g.Key, N = g.Min(x => x.N), M = g.Max(x => x.M) }"`, []string{"B", "N", "M"}, true},
	{"Odd/ByLine", `"map('Odd', d => d.Lines.map(l => ({ P: l.P, Q: l.Q, Count: 1 })))"`, `,"Reduce":"groupBy(x => ({ P: x.P })).aggregate(g => ({ P: g.key.P, Q: g.values.reduce((s, x) => s + x.Q, 0), Count: g.values.reduce((s, x) => s + x.Count, 0) }))"`, []string{"P", "Q", "Count"}, true},
	{"Odd/Mean", `"from d in docs.Odd where d.M > 0 select new { d.B, d.M, d.At }"`, `,"Reduce":"from r in results group r by r.B into g select new { B = g.Key, M = g.Average(x => x.M), At = g.OrderByDescending(x => x.At).First().At }"`, []string{"B", "M", "At"}, true},
}

// randomIndexes are indexes that only one round has.
func (o *odds) randomIndexes() []string {
	list := make([]string, 6)
	for i := range list {
		fields := make([]string, 1+o.IntN(3))
		for j := range fields {
			fields[j] = fmt.Sprintf("%q", o.pick("", "", "-")+strings.ReplaceAll(o.field(), `\"`, `"`))
		}
		where := ""
		if o.chance(30) {
			q := &rql{values: make(map[string]string)}
			if text := o.condition(q, 1); len(q.values) == 0 {
				where = fmt.Sprintf(`,"where":%q`, text)
			}
		}
		list[i] = fmt.Sprintf(`{"name":"random%d","fields":[%s]%s}`, i, strings.Join(fields, ","), where)
		if o.chance(25) {
			list[i] = fmt.Sprintf(`{"name":"random%d","kind":"groups","fields":[%s]%s,"options":{"sums":%q}}`, i, strings.Join(fields, ","), where, o.pick("N", "M, N", "N * M", "A", "Lines.Q"))
		}
	}
	return list
}

// declaration is what queries need to know of an index.
type declaration struct {
	Name, Kind, Where string
	Fields            []string
	Options           map[string]string
}

// declarationOf reads an index.
func declarationOf(t *testing.T, index string) (d declaration) {
	t.Helper()
	if err := json.Unmarshal([]byte(index), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// declare makes the indexes of a part of the lists. A definition or an index that the documents prevent is left out.
func (h *host) declare(t *testing.T, o *odds, database string, part, parts int) (named []declaration, made []definition) {
	t.Helper()
	for i, index := range append(o.randomIndexes(), declared...) {
		if i%parts != part || o.chance(35) {
			continue
		}
		if h.index(t, request{method: http.MethodPut, path: "/jay/v1/databases/" + database + "/indexes", body: fmt.Sprintf(`{"collection":"Odd","index":%s}`, index)}) {
			named = append(named, declarationOf(t, index))
		}
	}
	for i, d := range append(o.randomDefinitions(), definitions...) {
		if i%parts != part {
			continue
		}
		if h.index(t, request{method: http.MethodPut, path: "/databases/" + database + "/admin/indexes", body: fmt.Sprintf(`{"Indexes":[{"Name":%q,"Maps":[%s]%s}]}`, d.name, d.maps, d.rest)}) {
			made = append(made, d)
		}
	}
	return named, made
}

var (
	csharp = []string{"d.A", "d.B", "d.N", "d.M", "d.A / d.N", "d.N * d.M", "d.N + d.M", "d.N > 1 && d.M < 2", "d[\"x.y\"]", "LoadDocument(d.Ref, \"Odd\").A", "LoadDocument(d.Ref, \"Odd\").N", "d.T.Substring(1, 2)", "d.T.Length", "d.At.Year", "(int) d.N", "d.A ?? d.B", "d.N ?? 0", "d.Lines.Any(l => l.P == 1)", "-d.N", "d.T.ToLower()", "d.B + d.M", "d.O.N", "d.Tags", "d.M > 2 ? d.B : null", "d.Lines.Select(l => l.P)", "Math.Round(d.N)", "d.B == \"b\"", "d.Tags.Contains(\"a\")", "d.B.StartsWith(\"a\")", "string.IsNullOrEmpty(d.B)", "d.N % d.M", "d.O.T", "d.At", "$\"{d.B}-{d.M}\"", "(decimal) d.N / 3", "d.M == null", "d.Lines[0].P", "MetadataFor(d)[\"@collection\"]", "d.Id"}
	script = []string{"d.A", "d.B", "d.N || 0", "d.M * 2", "d.N / d.M", "d.B + '-' + d.M", "d.M > 2 ? d.B : null", "d.T.length", "d.T.toUpperCase()", "d['x.y']", "d.O?.N", "d.N === 1", "d.N > d.M", "load(d.Ref, 'Odd').B", "d.Tags.includes('a')", "d.Lines.map(l => l.P)", "d.Lines.some(l => l.P === 1)", "-d.N", "`${d.B}${d.M}`", "new Date(d.At).getUTCFullYear()", "Math.floor(d.N)", "d.A ?? d.B", "d.B && d.M", "d.N - d.M", "id(d)", "d.B == null", "d.Tags", "d.T.substring(1, 3)", "String(d.M)", "d.M % 2", "d.N || d.M", "!d.B"}
)

// randomDefinitions are definitions that only one round has, under the names of those that there were before.
func (o *odds) randomDefinitions() []definition {
	list := make([]definition, 4)
	for i := range list {
		d := definition{name: fmt.Sprintf("Odd/R%d", i), fields: []string{"X", "Y"}}
		from := o.pick("Odd", "Odd", "Odd", "Even")
		if o.chance(50) {
			d.maps = fmt.Sprintf("%q", fmt.Sprintf("from d in docs.%s select new { X = %s, Y = %s }", from, o.pick(csharp...), o.pick(csharp...)))
		} else {
			d.maps = fmt.Sprintf("%q", fmt.Sprintf("map('%s', d => ({ X: %s, Y: %s }))", from, o.pick(script...), o.pick(script...)))
		}
		switch {
		case o.chance(30):
			d.rest = fmt.Sprintf(`,"Fields":{"X":{"Indexing":%q,"Storage":"Yes"}}`, o.pick("Exact", "Default", "Search"))
		case o.chance(30) && strings.Contains(d.maps, "docs."):
			d.reduced = true
			d.rest = fmt.Sprintf(`,"Reduce":%q`, "from r in results group r by r.X into g select new { X = g.Key, Y = g."+o.pick("Sum", "Min", "Max", "Average")+"(x => x.Y) }")
		case o.chance(30) && !strings.Contains(d.maps, "docs."):
			d.reduced = true
			d.rest = fmt.Sprintf(`,"Reduce":%q`, "groupBy(x => ({ X: x.X })).aggregate(g => ({ X: g.key.X, Y: "+o.pick("g.values.reduce((s, x) => s + x.Y, 0)", "g.values.length", "Math.max(...g.values.map(x => x.Y))", "g.values.map(x => x.Y)", "[...new Set(g.values.map(x => x.Y))].length")+" }))")
		}
		list[i] = d
	}
	return list
}

// index makes an index, and reports whether it is made.
func (h *host) index(t *testing.T, r request) bool {
	t.Helper()
	a, fault := h.send(r, 0)
	if fault != "" {
		t.Fatalf("%s: %s: %d %s", r, fault, a.status, a.body)
	}
	if a.status >= http.StatusMultipleChoices && a.status != http.StatusConflict && a.status != http.StatusBadRequest && a.status != http.StatusNotImplemented {
		t.Errorf("%s: %d %s", r, a.status, a.body)
	}
	if a.status >= http.StatusBadRequest {
		var problem struct{ Message string }
		_ = json.Unmarshal([]byte(a.body), &problem) // it was looked at
		t.Logf("an index is not made: %s: %s", r.body, problem.Message)
	}
	return a.status < http.StatusBadRequest
}
