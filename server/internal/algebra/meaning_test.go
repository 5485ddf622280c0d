package algebra

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/computed"
	"github.com/jaydb/jay/internal/loads"
	"github.com/jaydb/jay/internal/script"
	"github.com/jaydb/jay/query"
)

// entries returns the entries that a map declares of a document, as members in JSON. What is missing is null.
func entries(t *testing.T, m index.Map, body string) (out []map[string]string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	each, where := query.Each{}, query.Expr(nil)
	var err error
	if m.Each != "" {
		each, err = query.ParseEach(m.Each + " as " + quote(m.As))
		must(err)
	}
	if m.Where != "" {
		where, err = query.ParseCondition(m.Where, nil)
		must(err)
		where, err = each.Condition(where)
		must(err)
	}
	matcher, err := query.Compile(where)
	must(err)
	var fields []query.Field
	for _, one := range m.Select {
		text := one.Expression
		if text == "" {
			text = "field(" + quote(one.Name) + ")"
		}
		f, err := query.ParseExpression(text)
		if err == nil {
			f, err = each.Field(f)
		}
		must(err)
		fields = append(fields, f)
	}
	entryOf := func(doc query.Doc) error {
		if !matcher.Match(doc) {
			return nil
		}
		r := query.NewReader(fields)
		r.Reset(doc)
		entry := make(map[string]string)
		for i, one := range m.Select {
			entry[one.Name] = "null"
			for _, v := range r.Values(i) {
				entry[one.Name] = v.String()
			}
		}
		out = append(out, entry)
		return nil
	}
	doc := query.Doc{Meta: named("u/1"), Body: []byte(body)}
	if m.Each == "" {
		must(entryOf(doc))
	} else {
		must(query.NewElements(each).Each(doc, entryOf))
	}
	return out
}

// same reports whether two scalars in JSON are equal.
func same(a, b string) bool {
	x, isNumber := new(big.Rat).SetString(a)
	y, both := new(big.Rat).SetString(b)
	if isNumber && both {
		return x.Cmp(y) == 0
	}
	var v, w any
	return json.Unmarshal([]byte(a), &v) == nil && json.Unmarshal([]byte(b), &w) == nil && v == w
}

// functions are maps of JavaScript, of the members of randomDocument.
var functions = []string{
	`u => ({ a: u.n + u.m, b: u.n - u.m * 2, c: (u.n + 1) * (u.m - 1), d: -u.n, e: u.n / 4, f: u.n % 3, g: u.n % -2, h: +u.n })`,
	`u => ({ a: u.t + ' ' + u.s, b: 'x' + u.n, c: u.n + 'x', d: 1 + u.n + 'x', e: 'x' + 1 + u.n })`,
	"u => ({ a: `${u.t}-${u.n}`, b: `x`, c: `${u.s}`, d: 'a'.concat(u.t, u.n) })",
	`u => ({ a: u.any || 'none', b: u.any ?? 'none', c: u.any && 5, d: u.any ? 1 : 2, e: !u.any, f: !!u.any, g: u.any || u.n || 0 })`,
	`u => ({ a: u.n > 0, b: u.n >= 0, c: u.n < 2, d: u.n <= 2, e: u.n > u.m, f: u.n <= u.m, g: 1 < u.n, h: 0 >= u.n })`,
	`u => ({ a: u.t === 'a', b: u.t !== 'a', c: u.n === 1, d: u.n !== 1, e: u.b === true, f: u.b !== false, g: u.t === u.s, h: u.n !== u.m, i: u.t == 'a', j: u.t != 'b' })`,
	`u => ({ a: u.any == null, b: u.any != null, c: u.n == undefined, d: u.t != null ? u.t : 'x' })`,
	`u => ({ a: u.n > 0 && u.m > 0, b: u.n > 0 || u.t === 'a', c: !(u.n > 0 && u.b), d: (u.n > 1 || u.b) && u.t !== 'b' })`,
	`u => ({ a: u.full.toLowerCase(), b: u.full.toUpperCase(), c: u.full.substring(1, 3), d: u.full.substring(3, 1), e: u.full.slice(1), f: u.full.charAt(0), g: u.full.trim(), h: u.full.length, i: u.full.replaceAll('a', 'bb') })`,
	`u => ({ a: u.full.startsWith('A'), b: u.full.endsWith('a'), c: u.full.includes('d'), d: u.tags.includes('a'), e: u.full.length > 3, f: u.tags.length > 1, g: u.tags.length === 2, h: u.tags.length !== 0, i: u.full === 'ada' })`,
	`u => ({ a: Math.abs(u.n), b: Math.floor(u.n / 4), c: Math.ceil(u.n / 4), d: Math.round(u.n / 4), e: Math.abs(u.n - u.m) })`,
	`u => { const a = u.n * 2; let b = a + 1, c = u.t + '!'; if (a > 2) return { a, b, c }; return { a: b, b: a, c } }`,
	`u => { if (!u.any) return null; if (u.n > 1) { return { a: 1 } } else if (u.m > 1) { return { a: 2 } } return { a: u.n } }`,
	`u => u.b ? { a: u.n } : null`,
	`u => u.b && { a: u.n, b: u.address.town }`,
	`function (u) { return { a: u.address.town, b: u.address.n * 2, c: u.address.town === 'Bern' } }`,
	`u => ({ a: u.lines.some(l => l.q > 1), b: u.lines.every(l => l.q > 1), c: u.lines.some(l => l.q > 1 && l.p === 'a') })`,
	`u => u.lines.map(l => ({ p: l.p, t: l.q * 2, n: u.n }))`,
	`u => u.lines.filter(l => l.q > 1).map(l => ({ p: l.p + '!', big: l.q > 2 && u.b }))`,
	`u => { const out = []; u.lines.forEach(l => { const q = l.q * 2; if (q > 2) { out.push({ q, p: l.p }); } }); return out; }`,
	`u => { if (!u.b) return []; var out = []; for (const l of u.lines) { if (l.p === 'a') continue; out.push({ p: l.p, n: u.n }); } return out; }`,
}

// randomDocument returns a document whose members are of the kinds that the functions compute with: JavaScript converts others, which the
// rules in docs/server/definitions.md leave out.
func randomDocument(r *rand.Rand) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	number := func() string { return pick("null", "0", "1", "2", "3", "-1", "-7", "2.5", "0.25", "1000") }
	text := func() string { return pick("null", `""`, `"a"`, `"b"`, `"A"`, `"Ada"`, `"0"`) }
	var lines []string
	for range r.IntN(4) {
		lines = append(lines, fmt.Sprintf(`{"p":%s,"q":%s}`, text(), number()))
	}
	return fmt.Sprintf(`{"n":%s,"m":%s,"t":%s,"s":%s,"b":%s,"full":%s,"any":%s,"tags":[%s],"address":{"town":%s,"n":%s},"lines":[%s]}`, number(), number(), text(), text(), pick("true", "false", "null"),
		pick(`""`, `"Ada"`, `" ada "`, `"Größe"`, `"aaaa"`), pick("null", "0", `""`, `"x"`, "false", "true", "5", "-0.5", `"0"`, "[]", "[0]", "[1,2]", "{}"), pick("", `"a"`, `"a","b"`, `"b"`), pick(`"Bern"`, `"bern"`, "null"), number(), strings.Join(lines, ","))
}

// Ensure that a function of JavaScript and the RQL that it becomes give the same for random documents.
func TestTranslate_Meaning(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for _, f := range functions {
		d, err := Translate("X", []string{"map('Us', " + f + ")"}, "")
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		program, err := script.Parse("const f = " + f + "; const got = f(this.doc); this.out = !got ? [] : Array.isArray(got) ? got : [got];")
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		compared := 0
		for range 80 {
			body := randomDocument(r)
			result, err := program.Run(context.Background(), script.Input{ID: "u/1", Document: []byte(`{"doc":` + body + `}`)}, nil)
			if err != nil {
				t.Fatalf("%s of %s: %v", f, body, err)
			}
			var left struct{ Out []map[string]json.RawMessage }
			if err := json.Unmarshal(result.Document, &left); err != nil {
				t.Fatal(err)
			}
			got := entries(t, d.Maps[0], body)
			if len(got) != len(left.Out) {
				t.Fatalf("seed %d: %s\nof %s gives %s\nand %s: %v", seed, f, body, result.Document, shown(d.Computed), got)
			}
			for i, want := range left.Out {
				for name, value := range got[i] {
					if strings.ContainsAny(value[:1], "[{") { // of arrays, RQL has one element or all
						continue
					}
					if raw, found := want[name]; found && strings.ContainsAny(string(raw[:1]), "[{") {
						continue
					}
					if !same(value, string(want[name])) {
						t.Fatalf("seed %d: %s\nof %s gives %s for %s,\nand RQL %s: %s", seed, f, body, want[name], name, value, shown(d.Computed))
					}
					compared++
				}
			}
		}
		if compared < 15 {
			t.Errorf("%s: only %d values were compared", f, compared)
		}
	}
}

// loading are maps of JavaScript that load the documents of library by the members of randomReader. In a patch what is missing is undefined, and not null as in an
// index: nothing computes with it.
var loading = []string{
	`u => { const t = load(u.town, 'Towns'); return { a: t?.name, b: (t?.name ?? 'no') + '!', c: (t?.size ?? 0) * 2, d: t?.name === 'Bern', e: t?.name || 'none', f: t?.land?.name, g: t?.size ?? u.n } }`,
	`u => ({ a: load(load(u.town, 'Towns')?.mayor, 'People')?.name, b: load(u.books[1], 'Books')?.name })`,
	`u => { const t = load(u.town, 'Towns'); if (!(t?.size > 1)) return null; return { n: u.n, t: t.size } }`,
	`u => u.lines.map(l => ({ n: l.n, p: load(l.of, 'Books')?.name, t: l.n * (load(l.of, 'Books')?.price ?? 1), city: load(u.town, 'Towns')?.name }))`,
	`u => u.lines.filter(l => load(l.of, 'Books')?.price > 1).map(l => ({ n: l.n }))`,
	`u => { const t = load(u.town, 'Towns'); return { a: t ? t.name : 'none', b: t == null, c: t && t.size, d: !t, e: t !== null && u.n > 3, f: load(t?.mayor, 'People') ? 1 : 2 } }`,
	`u => { const t = load(u.town, 'Towns'); if (!t) return null; return { n: u.n } }`,
	`u => u.books.filter(b => load(b, 'Books')).map(b => ({ b }))`,
	`u => u.books.map(b => ({ id: b, n: load(b, 'Books')?.name, p: load(b, 'Books')?.price, t: load(u.town, 'Towns')?.name }))`,
	`u => { const all = []; for (const l of u.lines) { const b = load(l.of, 'Books'); if ((b?.price ?? 0) < 2) continue; all.push({ p: b?.name }); } return all; }`,
}

// library has the documents that are loaded.
var library = map[string]string{
	"towns/1": `{"name":"Bern","size":3,"mayor":"people/1","land":{"name":"CH"}}`, "towns/2": `{"name":"","size":0,"mayor":"people/9"}`, "towns/3": `{"name":null,"size":1.5,"land":null}`,
	"people/1": `{"name":"Ann"}`, "books/1": `{"name":"Go","price":2.5}`, "books/2": `{"name":"C","price":0}`, "books/3": `{"name":"Ada","price":10}`,
}

// Load implements script.Host.
func (libraryHost) Load(id string) ([]byte, error) {
	body, found := library[strings.ToLower(id)]
	if !found {
		return nil, nil
	}
	return []byte(body), nil
}

type libraryHost struct{ script.Host }

func randomReader(r *rand.Rand) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	book := func() string { return pick("null", `"books/1"`, `"BOOKS/2"`, `"books/3"`, `"books/9"`) }
	var lines []string
	for range r.IntN(4) {
		lines = append(lines, fmt.Sprintf(`{"n":%d,"of":%s}`, r.IntN(4), book()))
	}
	return fmt.Sprintf(`{"n":%d,"town":%s,"books":[%s,%s],"lines":[%s]}`, r.IntN(9), pick("null", `"towns/1"`, `"towns/2"`, `"Towns/3"`, `"towns/9"`), book(), book(), strings.Join(lines, ","))
}

// Ensure that a function of JavaScript that loads documents and the RQL that it becomes give the same.
func TestTranslate_MeaningOfLoads(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for _, f := range loading {
		d, err := Translate("X", []string{"map('Us', " + f + ")"}, "")
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		definition, err := computed.Parse(d.Computed)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		paths, err := definition.LoadedPaths()
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		spec := loads.NewSpec(paths)
		program, err := script.Parse("const f = " + f + "; const got = f(this.doc); this.out = !got ? [] : Array.isArray(got) ? got : [got];")
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		compared := 0
		for range 200 {
			body := randomReader(r)
			result, err := program.Run(context.Background(), script.Input{ID: "u/1", Document: []byte(`{"doc":` + body + `}`)}, libraryHost{})
			if err != nil {
				t.Fatalf("%s of %s: %v", f, body, err)
			}
			var left struct{ Out []map[string]json.RawMessage }
			if err := json.Unmarshal(result.Document, &left); err != nil {
				t.Fatal(err)
			}
			expanded, err := spec.Expand([]byte(body), strings.ToLower, libraryHost{}.Load)
			if err != nil {
				t.Fatal(err)
			}
			got := entries(t, d.Maps[0], string(expanded.Body))
			if len(got) != len(left.Out) {
				t.Fatalf("seed %d: %s\nof %s gives %s\nand %s: %v", seed, f, body, result.Document, shown(d.Computed), got)
			}
			for i, want := range left.Out {
				for name, value := range got[i] {
					raw := "null" // what JavaScript leaves out is undefined
					if want[name] != nil {
						raw = string(want[name])
					}
					if !same(value, raw) {
						t.Fatalf("seed %d: %s\nof %s gives %s for %s,\nand RQL %s: %s", seed, f, body, raw, name, value, shown(d.Computed))
					}
					compared++
				}
			}
		}
		if compared < 50 {
			t.Errorf("%s: only %d values were compared", f, compared)
		}
	}
}

// Ensure that expressions of C# give what RavenDB's compiled code gives, by the results that its language says.
func TestTranslate_MeaningOfSharp(t *testing.T) {
	t.Parallel()
	const body = `{"i":7,"j":-2,"z":0,"d":2.5,"e":-2.5,"f":3.5,"c":0.125,"t":"Ada","n":null,"on":true,"off":false,"at":"2026-03-01T23:30:00.0000000Z","bare":"2026-03-03T00:15:00",` +
		`"made":{"Year":1},"list":["a","b"],"lines":[{"Q":1,"P":"a"},{"Q":3,"P":"b"}],"big":9007199254740993}`
	for _, test := range []struct{ expression, want string }{
		{"x.i / x.j", "-3"}, {"x.i / 2", "3"}, {"5 / x.i", "0"}, {"x.d / 2", "1.25"}, {"x.i / 2.0", "3.5"}, {"x.i / 2m", "3.5"}, {"(decimal)x.i / 2", "3.5"}, {"(int)x.d / 2", "1"}, {"(double)x.i / x.j", "-3.5"},
		{"x.i / x.z", "null"}, {"x.i % x.j", "1"}, {"x.j % x.i", "-2"}, {"7 / 2", "3"}, {"-7 / 2", "-3"}, {"x.big + 1", "9007199254740994"}, {"x.i - 1 - 1", "5"}, {"x.i - (1 - 1)", "7"}, {"-x.i", "-7"},
		{"(int)x.e", "-2"}, {"(int)x.n", "0"}, {"(int)x.missing", "0"}, {"(int?)x.missing", "null"}, {"(decimal)x.missing + 1", "1"}, {"(bool)x.missing", "false"}, {"x.missing + 1", "null"}, {"x.n * 2", "null"},
		{`x.t + " " + x.n + x.i`, `"Ada 7"`}, {`x.missing + "x"`, `"x"`}, {`$"{x.t}-{x.missing}"`, `"Ada-"`}, {`x.t + "" + true`, `"AdaTrue"`}, {`"" + (x.i > 5)`, `"True"`},
		{"Math.Round(x.d)", "2"}, {"Math.Round(x.e)", "-2"}, {"Math.Round(x.f)", "4"}, {"Math.Round(x.c, 2)", "0.12"}, {"Math.Round(x.d, MidpointRounding.AwayFromZero)", "3"}, {"Math.Floor(x.e)", "-3"}, {"Math.Truncate(x.e)", "-2"}, {"Math.Abs(x.j)", "2"},
		{"x.at.Year", "2026"}, {"x.at.Month", "3"}, {"x.at.Date", `"2026-03-01T00:00:00.0000000Z"`}, {"x.bare.Hour", "0"}, {"x.made.Year", "1"}, {"(x.bare - x.at).Days", "1"}, {"(x.at - x.bare).Days", "-1"}, {"x.missing.Year", "null"},
		{"x.missing == null", "true"}, {"x.n == null", "true"}, {"x.n == x.missing", "true"}, {"x.n != null", "false"}, {"x.i != null", "true"}, {"x.n != 5", "true"}, {"x.n > 5", "false"}, {"x.n < 5", "false"}, {"x.i == 7", "true"}, {"7 > x.i", "false"}, {"7 >= x.i", "true"},
		{"x.on && !x.off", "true"}, {"!x.missing", "false"}, {"x.missing == false", "false"}, {"!(x.i > 5)", "false"}, {"x.off || x.on", "true"}, {"x.on == true", "true"}, {"(x.i > 5) == false", "false"},
		{`x.t == "ada"`, "false"}, {`x.t == "Ada"`, "true"}, {`x.t.ToLower() == "ada"`, "true"}, {`x.t.Contains("d")`, "true"}, {`x.t.Contains("D")`, "false"}, {`x.list.Contains("b")`, "true"}, {`x.list.Contains("B")`, "false"}, {`x.t.StartsWith("a")`, "false"},
		{"x.t.Length", "3"}, {"x.list.Length > 1", "true"}, {"x.list.Count() == 2", "true"}, {"x.missing.Count() == 0", "true"}, {"x.list.Length", "null"}, {"x.list[1]", `"b"`}, {"x.lines[1].P", `"b"`}, {"x.lines.FirstOrDefault().Q", "1"},
		{"x.lines.Any(l => l.Q > 2)", "true"}, {"x.lines.All(l => l.Q > 0)", "true"}, {"x.lines.All(l => l.Q > 1)", "false"}, {"x.missing.Any()", "false"}, {`x.lines.Any(l => l.Q > 2 && l.P == "a")`, "false"},
		{"x.on.ToString()", `"True"`}, {"x.i.ToString()", `"7"`}, {"x.t.Substring(1)", `"da"`}, {"x.t.Substring(0, 2)", `"Ad"`}, {"string.IsNullOrEmpty(x.missing)", "true"}, {"string.IsNullOrEmpty(x.t)", "false"}, {"x.missing ?? x.n ?? 5", "5"}, {"x.i > 5 ? x.t : null", `"Ada"`},
		{"x.at >= new DateTime(2026, 3, 1)", "true"}, {"x.bare < new DateTime(2026, 3, 3)", "false"}, {"x.Id", `"u/1"`}, {"x.n?.X?.Y", "null"}, {"x.missing.HasValue", "false"}, {"x.i.HasValue", "true"},
	} {
		d, err := Translate("X", []string{"from x in docs.Xs select new { V = " + test.expression + " }"}, "")
		if err != nil {
			t.Errorf("%s: %v", test.expression, err)
			continue
		}
		if got := entries(t, d.Maps[0], body)[0]["V"]; !same(got, test.want) {
			t.Errorf("%s is %s, want %s: %s", test.expression, got, test.want, shown(d.Computed))
		}
	}
}

// named is the metadata of a document that has an ID, and nothing else.
type named string

func (id named) AppendMeta(dst []byte, part query.Meta) []byte {
	if part == query.MetaID {
		dst = append(dst, id...)
	}
	return dst
}
