package algebra

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/query"
)

// shown returns a declaration as a line for each map: COLLECTION [each PATH as NAME] [where CONDITION]: NAME = EXPRESSION, ... A reduce is "by NAMES: ...".
func shown(d index.Computed) string {
	members := func(list []index.Member) string {
		var out []string
		for _, m := range list {
			if m.Expression == "" {
				out = append(out, m.Name)
			} else {
				out = append(out, m.Name+" = "+m.Expression)
			}
		}
		return strings.Join(out, "; ")
	}
	var lines []string
	for _, m := range d.Maps {
		line := m.Collection
		if m.Each != "" {
			line += " each " + m.Each + " as " + m.As
		}
		if m.Where != "" {
			line += " where " + m.Where
		}
		lines = append(lines, line+": "+members(m.Select))
	}
	if d.Reduce != nil {
		lines = append(lines, "by "+strings.Join(d.Reduce.GroupBy, ", ")+": "+members(d.Reduce.Select))
	}
	return strings.Join(lines, "\n")
}

// readable fails the test if RQL does not read what was declared.
func readable(t *testing.T, d index.Computed) {
	t.Helper()
	for _, m := range d.Maps {
		if m.Where != "" {
			if _, err := query.ParseCondition(m.Where, nil); err != nil {
				t.Errorf("where %s: %v", m.Where, err)
			}
		}
		for _, one := range m.Select {
			if _, is, err := query.ParseCreated(one.Expression); is {
				if err != nil {
					t.Errorf("%s: %v", one.Expression, err)
				}
				continue
			}
			if one.Expression != "" {
				if _, err := query.ParseExpression(one.Expression); err != nil {
					t.Errorf("%s: %v", one.Expression, err)
				}
			}
		}
	}
}

var accepted = []struct {
	name, maps, reduce string // several maps are separated by a line of ---
	want               string
}{
	// C#, the query form.
	{"members", `from u in docs.Users select new { u.Name, Years = u.Age, Town = u.Address.Town }`, ``, `Users: Name; Years = Age; Town = Address.Town`},
	{"collection in brackets", `from u in docs["big users"] select new { u.Name }`, ``, `big users: Name`},
	{"all documents", `from u in docs select new { u.Name }`, ``, `: Name`},
	{"constants", `from u in docs.Users select new { N = 1, D = 1.5m, S = "it's", B = true, Z = (string)null, M = -3 }`, ``,
		`Users: N = (1); D = (1.5); S = ('it\'s'); B = (true); Z = (null); M = (-3)`},
	{"arithmetic", `from u in docs.Users select new { A = u.A + u.B * 2, B = (u.A + 1) * -u.B, C = u.A - (u.B - u.C), D = u.A % 2 }`, ``,
		`Users: A = A + B * 2; B = (A + 1) * (0 - B); C = A - (B - C); D = A % 2`},
	{"division of numbers that may be integers", `from p in docs.P select new { X = 5 / p.A }`, ``, `P: X = if(A % 1 = 0, (5 - 5 % A) / A, 5 / A)`},
	{"division of integers", `from p in docs.P select new { X = (int)p.A / 2 }`, ``, `P: X = (coalesce(A, 0) - coalesce(A, 0) % 1 - (coalesce(A, 0) - coalesce(A, 0) % 1) % 2) / 2`},
	{"division of decimals", `from p in docs.P select new { X = p.A / 2m, Y = 1.0 / p.A, Z = (decimal)p.A / p.B }`, ``, `P: X = A / 2; Y = 1.0 / A; Z = coalesce(A, 0) / B`},
	{"text", `from u in docs.Users select new { F = u.A + " " + u.B, G = $"{u.A}-{u.B}", H = string.Concat(u.A, 1), I = @"a""b" }`, ``,
		`Users: F = concat(A, ' ', B); G = concat(A, '-', B); H = concat(A, 1); I = ('a"b')`},
	{"null", `from u in docs.Users select new { A = u.A ?? u.B ?? "x", B = u.X?.Y, C = u.A == null ? 1 : 2 }`, ``, `Users: A = coalesce(coalesce(A, B), 'x'); B = X.Y; C = if(not exists(A) or A = null, 1, 2)`},
	{"casts", `from u in docs.Users select new { A = (double)u.A, B = (int?)u.B, C = (string)u.C, D = (bool)u.D, E = (long)5, F = ((IEnumerable<dynamic>)u.F), G = (decimal?)null }`, ``,
		`Users: A; B = B - B % 1; C; D = coalesce(D, false); E = (5); F; G = (null)`},
	{"where", `from u in docs.Users where u.Age >= 18 && (u.Name == "a" || !u.Gone) && u.X != u.Y select new { u.Name }`, ``,
		`Users where Age >= 18 and (exact(Name = 'a') or Gone = false) and not (exact(X = Y) or (not exists(X) or X = null) and (not exists(Y) or Y = null)): Name`},
	{"let", `from u in docs.Users let full = u.A + " " let n = u.N ?? 0 where n > 0 select new { full, Twice = n * 2 }`, ``, `Users where coalesce(N, 0) > 0: full = concat(A, ' '); Twice = coalesce(N, 0) * 2`},
	{"fan-out", `from o in docs.Orders from l in o.Lines where l.Q > 0 && o.Paid select new { o.Company, l.Product, T = l.Q * l.P }`, ``,
		`Orders each Lines as l where l.Q > 0 and Paid = true: Company; Product = l.Product; T = l.Q * l.P`},
	{"fan-out of texts", `from p in docs.Posts from tag in p.Tags select new { Tag = tag.ToLower() }`, ``, `Posts each Tags as tag: Tag = lower(tag)`},
	{"an element named like a member", `from o in docs.Orders from l in o.Lines select new { A = l.A, B = o.l }`, ``, `Orders each Lines as l_: A = l_.A; B = l`},
	{"an element named like a keyword", `from o in docs.Orders from order in o.Lines select new { A = order.A, B = o.order }`, ``, `Orders each Lines as element: A = element.A; B = field('order')`},
	{"keywords and names", `from o in docs.Orders select new { A = o.order.where, B = o["first name"], C = o.Lines[0].P }`, ``, `Orders: A = field('order'.where); B = field('first name'); C = Lines[0].P`},
	{"dates", `from o in docs.Orders where o.At >= new DateTime(2020, 2, 1) select new { Y = o.At.Year, D = o.At.Date, M = ((DateTime)o.At).Month, N = (o.End - o.Start).Days }`, ``,
		`Orders where At as utc >= '2020-02-01T00:00:00.0000000Z': Y = coalesce(At.Year, datePart('year', At as utc)); D = coalesce(At.Date, dateTrunc('day', At as utc)); M = datePart('month', At as utc); N = dateDiff('day', Start as utc, End as utc)`},
	{"lengths", `from o in docs.Orders where o.Lines.Count > 2 && o.Tags.Any() && o.Tags.Count() == 0 select new { L = o.Name.Length }`, ``,
		`Orders where (size(Lines) > 2 or type(Lines) = 'object' and Lines.Count > 2) and size(Tags) > 0 and (size(Tags) = 0 or not exists(Tags) or Tags = null): L = if(type(Name) = 'array', 1 / 0, coalesce(Name.Length, length(Name)))`},
	{"elements", `from o in docs.Orders where o.Lines.Any(l => l.Q > 1 && l.P == "x") && o.Lines.All(l => l.Q > 0) && o.Tags.Contains("a") select new { F = o.Lines.FirstOrDefault().P }`, ``,
		`Orders where elemMatch(Lines, Q > 1 and exact(P = 'x')) and not elemMatch(Lines, not Q > 0) and (type(Tags) = 'array' and exact(Tags = 'a') or type(Tags) = 'string' and exact(contains(Tags, 'a'))): F = Lines[0].P`},
	{"texts", `from u in docs.Users where u.Name.StartsWith("A") && !string.IsNullOrEmpty(u.X) select new { A = u.Name.ToUpper().Substring(0, 1), B = u.Name.Trim().Replace("a", "b"), C = u.N.ToString(), D = u.Name.Equals("x") }`, ``,
		`Users where exact(startsWith(Name, 'A')) and not (not exists(X) or X = null or exact(X = '')): A = substring(upper(Name), 0, 1); B = replace(trim(Name), 'a', 'b'); C = if(type(N) = 'boolean', if(N = true, 'True', 'False'), text(N)); D = if(exact(Name = 'x'), true, false)`},
	{"mathematics", `from u in docs.U select new { A = Math.Abs(u.A), B = Math.Round(u.B), C = Math.Round(u.C, 2, MidpointRounding.AwayFromZero), D = Math.Floor(u.D), E = Math.Truncate(u.E) }`, ``,
		`U: A = abs(A); B = if(abs(B % 1) = 0.5, round(B * 0.5) * 2 * 1, round(B, 0)); C = round(C, 2); D = floor(D); E = E - E % 1`},
	{"comparisons as values", `from u in docs.U select new { A = u.A > 5, B = u.A == true, C = !(u.A > 5) }`, ``, `U: A = if(A > 5, true, false); B = if(A = true, true, false); C = if(not A > 5, true, false)`},
	{"the id and metadata", `from u in docs.U select new { Key = u.Id, C = MetadataFor(u)["@collection"], L = MetadataFor(u).Value<DateTime>("@last-modified"), X = u["@metadata"]["mine"] }`, ``,
		`U: Key = coalesce(Id, id()); C = @metadata.@collection; L = @metadata.@last-modified; X = @metadata.mine`},
	{"comments and lines", "// all\nfrom u in docs.U /* users */\nselect new\n{\n\tu.A, // the first\n}", ``, `U: A`},
	// C#, the method form.
	{"Select", `docs.Users.Where(u => u.Age > 5).Select(u => new { u.Name })`, ``, `Users where Age > 5: Name`},
	{"chained Select", `docs.Users.Select(u => new { u = u, n = u.A * 2 }).Where(x => x.n > 5).Select(x => new { x.u.Name, Twice = x.n * 2 })`, ``, `Users where A * 2 > 5: Name; Twice = A * 2 * 2`},
	{"SelectMany", `docs.Orders.SelectMany(o => o.Lines, (o, l) => new { o.Company, l.Product })`, ``, `Orders each Lines as l: Company; Product = l.Product`},
	{"SelectMany of a Select", `docs.Orders.SelectMany(o => o.Lines.Where(l => l.Q > 1).Select(l => new { o.Company, l.Product }))`, ``, `Orders each Lines as l where l.Q > 1: Company; Product = l.Product`},
	{"casts of a client", `docs.Orders.SelectMany(order => ((IEnumerable<dynamic>) order.Lines), (order, l) => new { T = ((decimal) l.P) * ((int) l.Q) })`, ``,
		`Orders each Lines as l: T = coalesce(l.P, 0) * (coalesce(l.Q, 0) - coalesce(l.Q, 0) % 1)`},
	{"WhereEntityIs", `from x in docs.WhereEntityIs("Users") select new { x.A }`, ``, `Users: A`},
	// Several maps, and reduces in C#.
	{"several maps", "from u in docs.Users select new { u.Name }\n---\nfrom c in docs.Companies select new { Name = c.Title }", ``, "Users: Name\nCompanies: Name = Title"},
	{"group by a member", `from o in docs.Orders select new { o.Company, N = 1, Total = o.Price }`, `from r in results group r by r.Company into g select new { Company = g.Key, N = g.Sum(x => x.N), Total = g.Sum(x => x.Total) }`,
		"Orders: Company; N = (1); Total = Price\nby Company: Company; N = sum(N); Total = sum(Total)"},
	{"group by several", `from o in docs.O select new { o.A, o.B, C = 1 }`, `from r in results group r by new { r.A, Two = r.B } into g select new { g.Key.A, B = g.Key.Two, C = g.Count() }`, "O: A; B; C = (1)\nby A, B: A; B; C = count()"},
	{"quotient of sums", `from o in docs.O select new { o.A, N = 1, T = o.T, Avg = 0 }`,
		`from r in results group r by r.A into g let t = g.Sum(x => x.T) select new { A = g.Key, N = g.Sum(x => x.N), T = t, Avg = t / g.Sum(x => x.N) }`, "O: A; N = (1); T; Avg = (0)\nby A: A; N = sum(N); T = sum(T); Avg = sum(T) / sum(N)"},
	{"quotient of integers", `from o in docs.O select new { o.A, N = 1, Avg = 0 }`,
		`results.GroupBy(r => r.A).Select(g => new { A = g.Key, N = Enumerable.Sum(g, x => ((int) x.N)), Avg = Enumerable.Sum(g, x => ((int) x.N)) / g.Count() })`, "O: A; N = (1); Avg = (0)\nby A: A; N = sum(N); Avg = (sum(N) - sum(N) % count()) / count()"},
	{"other aggregates", `from o in docs.O select new { o.A, Lo = o.T, Hi = o.T, Av = o.T, Fi = o.T, La = o.T }`,
		`from r in results group r by r.A into g select new { A = g.Key, Lo = g.Min(x => x.Lo), Hi = g.Select(x => x.Hi).Max(), Av = g.Average(x => x.Av), Fi = g.First().Fi, La = g.Select(x => x.La).LastOrDefault() }`,
		"O: A; Lo = T; Hi = T; Av = T; Fi = T; La = T\nby A: A; Lo = min(Lo); Hi = max(Hi); Av = avg(Av); Fi = min(Fi); La = max(La)"},
	// Functions of the entries of groups.
	{"what is counted of some entries", `from o in docs.O select new { o.A, o.T, N = 0, Y = 0, Z = 0 }`,
		`from r in results group r by r.A into g select new { A = g.Key, T = g.Sum(x => x.T * x.N), N = g.Count(x => x.T > 5 && x.N != null), Y = g.Any(x => x.T == 1), Z = g.All(x => x.T > 0) }`,
		"O: A; T; N = (0); Y = (0); Z = (0)\nby A: A; T = sum(T * N); N = sum(if(T > 5 and not (not exists(N) or N = null), 1, 0)); Y = if(sum(if(T = 1, 1, 0)) > 0, true, false); Z = if(sum(if(not T > 0, 1, 0)) = 0, true, false)"},
	{"different values", `from o in docs.O select new { o.A, o.B, N = 0, L = 0, J = 0 }`,
		`from r in results group r by r.A into g select new { A = g.Key, B = g.Select(x => x.B).Distinct().Count(), N = g.Where(x => x.N > 1).Select(x => x.N).Average(), L = g.Select(x => x.L).Distinct().ToList(), J = string.Join(", ", g.Select(x => x.J)) }`,
		"O: A; B; N = (0); L = (0); J = (0)\nby A: A; B = count(distinct B) + if(sum(if(not exists(B) or B = null, 1, 0)) > 0, 1, 0); N = avg(if(N > 1, N)); L = list(distinct coalesce(L, null)); J = join(list(coalesce(J, null)), ', ')"},
	{"a choice of sums", `from o in docs.O select new { o.A, N = 1, T = o.T, M = 0 }`,
		`from r in results group r by r.A into g select new { A = g.Key, N = g.Sum(x => x.N), T = g.Sum(x => x.T), M = g.Sum(x => x.N) == 0 ? 0 : Math.Round(g.Sum(x => x.T) / g.Sum(x => x.N), 2, MidpointRounding.AwayFromZero) }`,
		"O: A; N = (1); T; M = (0)\nby A: A; N = sum(N); T = sum(T); M = if(sum(N) = 0, 0, round(sum(T) / sum(N), 2))"},
	{"the first of some entries", `from o in docs.O select new { o.A, o.B, o.C, D = 0 }`,
		`from r in results group r by r.A into g select new { A = g.Key, B = g.First(x => x.C > 1).B, C = g.OrderBy(x => x.C).Last(x => x.B == "b").C, D = g.OrderBy(x => x.C).First(x => x.B == "b").D }`,
		"O: A; B; C; D = (0)\nby A: A; B = min(if(C > 1, B)); C = max(if(exact(B = 'b'), C)); D = first(D order by if(exact(B = 'b'), C))"},
	{"a key in a text", `from o in docs.O select new { o.A, B = "" }`, `from r in results group r by r.A into g select new { A = g.Key, B = g.Key + ": " + g.Count() }`, "O: A; B = ('')\nby A: A; B = concat(A, ': ', count())"},
	{"functions of values of JavaScript", `map('O', o => ({ a: o.a, b: o.b, n: o.n, s: o.s, e: 0, j: 0, z: 0 }))`,
		`groupBy(x => x.a).aggregate(g => ({ a: g.key, b: new Set(g.values.map(x => x.b)).size, n: g.values.filter(x => x.n > 1).length, s: [...new Set(g.values.map(x => x.s))], e: g.values.every(x => x.n >= 0), j: g.values.map(x => x.s).join('; '), z: g.values.find(x => x.n === 1).s }))`,
		"O: a; b; n; s; e = (0); j = (0); z = (0)\nby a: a; b = count(distinct b) + if(sum(if(not exists(b) or b = null, 1, 0)) > 0, 1, 0); n = sum(if(n > 1, 1, 0)); s = list(distinct coalesce(s, null)); e = if(sum(if(not coalesce(n, 0) >= 0, 1, 0)) = 0, true, false); j = join(list(coalesce(s, null)), '; '); z = min(if(n = 1, s))"},
	{"reduces of JavaScript", `map('O', o => ({ a: o.a, b: o.b, n: o.n, s: o.s, m: 0, t: '' }))`,
		`groupBy(x => x.a).aggregate(g => ({ a: g.key, b: g.values.reduce((t, v) => t + v.b * v.n, 0), n: g.values.reduce((t, v) => v.n > 1 ? t + v.n : t, 0), s: g.values.reduce((t, v) => t - v.s, 5), m: g.values.reduce((t, v) => Math.max(t, v.m), 0), t: g.values.reduce((t, v) => t + v.t + ';', '') }))`,
		"O: a; b; n; s; m = (0); t = ('')\nby a: a; b = sum(coalesce(b, 0) * coalesce(n, 0)); n = sum(if(n > 1, n)); s = 5 - sum(s); m = if(max(m) > 0, max(m), 0); t = join(list(concat(coalesce(t, 'null'), ';')), '')"},
	// Fields whose names are in the document.
	{"fields that elements name", `from p in docs.P select new { p.A, _ = p.Attributes.Select(a => CreateField(a.Name, a.Value)) }`, ``, `P: A; _ = fields(Attributes, Name, Value)`},
	{"fields that elements of JavaScript name", `map('P', p => ({ _: p.attributes.map(a => createField('x' + a.name, a.value, { indexing: 'Exact', storage: false })), b: p.b }))`, ``, `P: _ = fields(attributes, concat('x', coalesce(name, 'null')), value); b`},
	{"fields of two arrays", `from p in docs.P select new { _ = p.A.Select(a => CreateField(a.N, a.V)), More = p.B.Select(b => CreateField(b.N.ToLower(), b.V.X)) }`, ``, `P: _ = fields(A, N, V); _2 = fields(B, lower(N), V.X)`},
	// JavaScript.
	{"an arrow", `map('Users', u => ({ name: u.name, town: u.address.town, n: 1, 'a b': u['a b'] }))`, ``, `Users: name; town = address.town; n = (1); a b = field('a b')`},
	{"a function", `map('Users', function (u) { return { name: u.name }; })`, ``, `Users: name`},
	{"text of JavaScript", "map('Users', u => ({ a: u.a + ' ' + u.b, b: `${u.a}:${u.n * 2}`, c: 'x'.concat(u.a), d: String(u.a) }))", ``,
		`Users: a = concat(coalesce(a, 'null'), ' ', coalesce(b, 'null')); b = concat(coalesce(a, 'null'), ':', coalesce(n, 0) * 2); c = concat('x', coalesce(a, 'null')); d = concat(coalesce(a, 'null'), '')`},
	{"arithmetic of JavaScript", `map('P', p => ({ a: p.a * p.b, b: p.a / 2, c: -p.a, d: p.a + 1 }))`, ``, `P: a = coalesce(a, 0) * coalesce(b, 0); b = coalesce(a, 0) / 2; c = 0 - coalesce(a, 0); d = coalesce(a, 0) + 1`},
	{"or and ??", `map('P', p => ({ a: p.a || 'x', b: p.a ?? 'x', c: p.a && p.b }))`, ``,
		`P: a = if(type(a) = 'array' or exists(a) and not exact(a in (null, false, 0, '')), a, 'x'); b = coalesce(a, 'x'); c = if(type(a) = 'array' or exists(a) and not exact(a in (null, false, 0, '')), b, a)`},
	{"return null", `map('U', u => { if (u.age < 18) return null; return { name: u.name } })`, ``, `U where not coalesce(age, 0) < 18: name`},
	{"if of an entry", `map('U', u => { if (u.age >= 18) { return { name: u.name } } })`, ``, `U where age >= 18: name`},
	{"two entries", `map('U', u => { const n = u.name; if (u.kind === 'a') { return { n, k: 1 } } return { n, k: u.k } })`, ``, `U: n = if(exact(kind = 'a'), name, name); k = if(exact(kind = 'a'), 1, k)`},
	{"a choice of an entry", `map('U', u => u.a !== null ? { a: u.a } : null)`, ``, `U where not (not exists(a) or a = null): a`},
	{"and of an entry", `map('U', u => u.n > 1 && { n: u.n })`, ``, `U where n > 1: n`},
	{"map and filter", `map('O', o => o.lines.filter(l => l.q > 0).map(l => ({ p: l.p, c: o.c })))`, ``, `O each lines as l where l.q > 0: p = l.p; c`},
	{"forEach and push", `map('O', o => { var res = []; o.lines.forEach(l => { if (l.q > 1) { res.push({ p: l.p }) } }); return res; })`, ``, `O each lines as l where l.q > 1: p = l.p`},
	{"for of", `map('O', o => { const all = []; for (const l of o.lines) { const q = l.q * 2; if (q < 1) continue; all.push({ q }); } return all; })`, ``, `O each lines as l where not coalesce(l.q, 0) * 2 < 1: q = coalesce(l.q, 0) * 2`},
	{"loose equality", `map('O', o => ({ a: o.a == null, b: o.b != 'x', c: o.c == undefined }))`, ``, `O: a = if(not exists(a) or a = null, true, false); b = if(exact(b != 'x'), true, false); c = if(not exists(c) or c = null, true, false)`},
	{"texts of JavaScript", `map('O', o => ({ a: o.a.toLowerCase().substring(3, 1), b: o.b.includes('x'), c: o.c.slice(1), d: o.d.charAt(2), e: o.e.replaceAll('a', 'b'), f: o.f.length, g: o.tags.length > 1 }))`, ``,
		`O: a = substring(lower(a), 1, 2); b = if(type(b) = 'array' and exact(b = 'x') or type(b) = 'string' and exact(contains(b, 'x')), true, false); c = substring(c, 1); d = substring(d, 2, 1); e = replace(e, 'a', 'b'); f = if(type(f) = 'array', 1 / 0, coalesce(f.length, length(f))); g = if(size(tags) > 1 or type(tags) = 'string' and length(tags) > 1 or type(tags) = 'object' and tags.length > 1, true, false)`},
	{"dates of JavaScript", `map('O', o => ({ y: new Date(o.at).getUTCFullYear(), m: new Date(o.at).getUTCMonth() + 1, d: new Date(o.at).getUTCDay() }))`, ``, `O: y = datePart('year', at); m = datePart('month', at) - 1 + 1; d = datePart('weekday', at) % 7`},
	{"mathematics of JavaScript", `map('O', o => ({ a: Math.round(o.a), b: Math.floor(o.b), c: Math.ceil(o.c), d: Math.trunc(o.d), e: Math.abs(o.e) }))`, ``,
		`O: a = floor(coalesce(a, 0) + 0.5); b = floor(coalesce(b, 0)); c = ceiling(coalesce(c, 0)); d = coalesce(d, 0) - coalesce(d, 0) % 1; e = abs(coalesce(e, 0))`},
	{"metadata of JavaScript", `map('O', o => ({ key: id(o), c: getMetadata(o)['@collection'] }))`, ``, `O: key = id(); c = @metadata.@collection`},
	{"groupBy and aggregate", `map('O', o => ({ a: o.a, n: 1, t: o.t }))`, `groupBy(x => x.a).aggregate(g => ({ a: g.key, n: g.values.reduce((t, v) => v.n + t, 0), t: g.values.map(v => v.t).reduce((a, b) => a + b, 0) }))`, "O: a; n = (1); t\nby a: a; n = sum(n); t = sum(t)"},
	{"an aggregate of statements", `map('O', o => ({ a: o.a, b: o.b, n: 0, q: 0, hi: o.t }))`,
		`groupBy(x => ({ a: x.a, two: x.b })).aggregate(g => { const n = g.values.reduce((t, v) => { return t + (v.n || 0) }, 0); return { a: g.key.a, b: g.key.two, n, q: n / g.values.length, hi: Math.max(...g.values.map(v => v.hi)) } })`,
		"O: a; b; n = (0); q = (0); hi = t\nby a, b: a; b; n = sum(n); q = sum(n) / count(); hi = max(hi)"},
	// Places.
	{"places", `from u in docs.Users select new { At = CreateSpatialField((double)u.Lat, (double)u.Lng), Where = CreateSpatialField(u.Town.Where), u.Name }`, ``,
		`Users: At = spatial.point(Lat, Lng); Where = Town.Where; Name`},
	{"places of JavaScript", `map('Users', u => { const p = createSpatialField(u.lat, u.town.lng); return { p, q: createSpatialField(u.q) } })`, ``, `Users: p = spatial.point(lat, town.lng); q`},
	{"a place or null", `docs.Users.Select(u => new { A = u.Lat > 0 ? CreateSpatialField(u.Lat, u.Lng) : null, B = u.Lat > 0 ? null : CreateSpatialField(u.Lat, u.Lng) })`, ``,
		`Users: A = spatial.point(if(Lat > 0, Lat, null), Lng); B = spatial.point(if(not Lat > 0, Lat, null), Lng)`},
	{"places of elements", `from u in docs.Users from s in u.Stops select new { At = CreateSpatialField(s.Lat, s.Lng) }`, ``, `Users each Stops as s: At = spatial.point(s.Lat, s.Lng)`},
	// Fields that are created.
	{"CreateField", `from p in docs.Ps select new { p.Name, _ = CreateField("Color", p.Color), any = this.CreateField("a b", p.Size * 2), Where = CreateField("At", CreateSpatialField(p.Lat, p.Lng)) }`, ``, `Ps: Name; Color; a b = Size * 2; At = spatial.point(Lat, Lng)`},
	{"fields of an array", `docs.Ps.Select(p => new { _ = new[] { CreateField("Color", p.Color, true, false), CreateField("Tags", p.Tags.Select(t => t.Name), new CreateFieldOptions { Storage = FieldStorage.Yes, Indexing = FieldIndexing.Search, TermVector = FieldTermVector.No }) }, P = new object[] { CreateField("P", LoadDocument<Q>(p.Q).R, new CreateFieldOptions { }) } })`, ``,
		`Ps: Color; Tags = Tags[].Name; P = load(Q).R`},
	{"createField", `map('Ps', p => { const f = createField('color', p.color, { indexing: 'Exact', storage: true, termVector: null }); return { _: f, n: p.n, all: [createField('a', 1), createField('b', p.b || 'none', {})] } })`, ``,
		`Ps: color; n; a = (1); b = if(type(b) = 'array' or exists(b) and not exact(b in (null, false, 0, '')), b, 'none')`},
	{"createField of elements", `map('Ps', p => p.lines.map(l => ({ _: createField('product', l.product) })))`, ``, `Ps each lines as l: product = l.product`},
	// The first and the last entry.
	{"the last in an order", `from o in docs.O select new { o.A, o.At, S = o.Status, T = o.Total }`,
		`from r in results group r by r.A into g let last = g.OrderBy(x => x.At).Last() select new { A = last.A, At = last.At, S = last.S, T = g.OrderByDescending(x => x.At).FirstOrDefault().T }`,
		"O: A; At; S = Status; T = Total\nby A: A; At = max(At); S = last(S order by At); T = last(T order by At)"},
	{"the first in an order", `docs.O.Select(o => new { A = o.A, At = o.At, S = o.Status, T = o.Total })`,
		`results.GroupBy(r => new { r.A }).Select(g => new { A = g.Key.A, At = g.OrderByDescending(x => x.At).Select(x => x.At).Last(), S = g.Select(x => new { x.At, Status = x.S }).OrderBy(x => x.At).First().Status, T = Enumerable.OrderByDescending(g, x => x.At).Last().T })`,
		"O: A; At; S = Status; T = Total\nby A: A; At = min(At); S = first(S order by At); T = first(T order by At)"},
	{"any entry", `from o in docs.O select new { o.A, o.B, C = o.C, D = o.D }`, `from r in results group r by new { r.A, r.B } into g select new { g.Key.A, B = g.First().B, C = g.OrderBy(x => x.A).First().C, D = g.LastOrDefault().D }`,
		"O: A; B; C; D\nby A, B: A; B; C = min(C); D = max(D)"},
	{"sort", `map('O', o => ({ a: o.a, at: o.at, s: o.s, t: o.t, u: o.u }))`,
		`groupBy(x => x.a).aggregate(g => { const s = g.values.sort((x, y) => y.at - x.at); return { a: g.key, at: s[0].at, s: s[0].s, t: s.map(v => v.t)[0], u: g.values[0].u } })`,
		"O: a; at; s; t; u\nby a: a; at = max(at); s = last(s order by at); t = last(t order by at); u = last(u order by at)"},
	{"sort upwards", `map('O', o => ({ a: o.a, at: o.at, s: o.s }))`, `groupBy(x => x.a).aggregate(g => ({ a: g.key, at: g.values[0].at, s: g.values.sort((x, y) => x.at - y.at)[0].s }))`, "O: a; at; s\nby a: a; at = min(at); s = first(s order by at)"},
	// Documents that are loaded.
	{"LoadDocument", `from o in docs.Orders let c = LoadDocument(o.Customer, "Customers") where c.Vip select new { c.Name, c.Address.City, Boss = LoadDocument<Person>(c.Boss).Name, Id = (string)LoadDocument<Customer>((string)o.Customer)["Id"] }`, ``,
		`Orders where load(Customer).Vip = true: Name = load(Customer).Name; City = load(Customer).Address.City; Boss = load(load(Customer).Boss).Name; Id = load(Customer).Id`},
	{"LoadDocument of a client", `docs.Orders.Select(o => new { o = o, c = this.LoadDocument(o.Customer, "Customers") }).Select(x => new { x.c.Name, Year = x.c.Since.Year, Day = ((DateTime)x.c.Since).Day })`, ``,
		`Orders: Name = load(Customer).Name; Year = coalesce(load(Customer).Since.Year, datePart('year', load(Customer).Since as utc)); Day = datePart('day', load(Customer).Since as utc)`},
	{"LoadDocument in a fan-out", `from o in docs.Orders from l in o.Lines let p = LoadDocument<Product>(l.Product) where p.Price > 1 && LoadDocument<C>(o.C).A == 1 select new { p.Name, T = p.Price * l.Q }`, ``,
		`Orders each Lines as l where load(l.Product).Price > 1 and load(C).A = 1: Name = load(l.Product).Name; T = load(l.Product).Price * l.Q`},
	{"lists of what is loaded", `docs.Authors.Select(a => new { A = a.BookIds.Select(x => LoadDocument<Book>(x).Name), B = LoadDocument<Book>(a.BookIds).Select(b => b.X.Y), C = LoadDocument<Book>(a.Lines.Select(l => l.Book)).Select(b => b.Name), D = a.Lines.Select(l => LoadDocument<Book>(l.Book).Name) })`, ``,
		`Authors: A = load(BookIds[]).Name; B = load(BookIds[]).X.Y; C = load(Lines[].Book).Name; D = load(Lines[].Book).Name`},
	{"one of several that are loaded", `from a in docs.Authors select new { A = LoadDocument<Book>(a.BookIds)[1].Name, B = LoadDocument<Book>(a.BookIds).FirstOrDefault().Name, C = LoadDocument<Book>(a.Lines[2].Book).Name }`, ``,
		`Authors: A = load(BookIds[1]).Name; B = load(BookIds[0]).Name; C = load(Lines[2].Book).Name`},
	{"names that RQL has", `from o in docs.Orders from element in o.Lines select new { A = LoadDocument(o["a b"]["from"], "X")["where"], B = LoadDocument(o.order, "X").order.by, C = LoadDocument(element.order, "X").X }`, ``,
		`Orders each Lines as element: A = load('a b'.from).where; B = load('order').order.by; C = load(element.order).X`},
	{"conditions on what is loaded", `from o in docs.Orders let c = LoadDocument(o.C, "Cs") where c.Tags.Contains("x") && c.Lines.Any(l => l.A > 1) && c.Tags.Length == 2 && c.Name == null select new { o.A }`, ``,
		`Orders where (type(load(C).Tags) = 'array' and exact(load(C).Tags = 'x') or type(load(C).Tags) = 'string' and exact(contains(load(C).Tags, 'x'))) and elemMatch(load(C).Lines, A > 1) and (size(load(C).Tags) = 2 or type(load(C).Tags) = 'string' and length(load(C).Tags) = 2 or type(load(C).Tags) = 'object' and load(C).Tags.Length = 2) and (not exists(load(C).Name) or load(C).Name = null): A`},
	{"load", `map('Orders', o => { const c = load(o.customer, 'Customers'); if (!c.vip) return null; return { name: c?.name, city: c.address.city, books: load(o.books, 'B').map(b => b.name), again: o.books.map(b => load(b, 'B').name) } })`, ``,
		`Orders where type(load(customer).vip) = 'array' or exists(load(customer).vip) and not exact(load(customer).vip in (null, false, 0, '')): name = load(customer).name; city = load(customer).address.city; books = load(books[]).name; again = load(books[]).name`},
	{"elements that are IDs", `from o in docs.Orders from id in o.Products let p = LoadDocument<Product>(id) where p.Price > 1 select new { id, p.Name, Maker = LoadDocument<Maker>(p.Maker).Name }`, ``,
		`Orders each Products as element where load(element).Price > 1: id = element; Name = load(element).Name; Maker = load(load(element).Maker).Name`},
	{"a fan-out over loaded documents", `from o in docs.Orders from p in LoadDocument<Product>(o.Products) where p.Price > 1 select new { p.Name, o.Customer }`, ``, `Orders each Products as p where load(p).Price > 1: Name = load(p).Name; Customer`},
	{"a fan-out over loaded documents by SelectMany", `docs.Orders.SelectMany(o => LoadDocument<Product>(o.Lines.Select(l => l.Product)), (o, p) => new { p.Name, o.Customer })`, ``, `Orders each Lines as l: Name = load(l.Product).Name; Customer`},
	{"a fan-out over loaded documents of JavaScript", `map('Orders', o => load(o.products, 'Products').filter(p => p.price > 1).map(p => ({ name: p.name })))`, ``, `Orders each products as p where load(p).price > 1: name = load(p).name`},
	{"elements of JavaScript that are IDs", `map('Orders', o => { const all = []; for (const id of o.products) { all.push({ name: load(id, 'Products').name }) } return all })`, ``, `Orders each products as element: name = load(element).name`},
	{"whether there is a document", `from o in docs.Orders let c = LoadDocument<C>(o.C) where c != null || o.X == 1 select new { N = c == null ? "none" : c.Name, B = c != null }`, ``,
		`Orders where type(load(C)) = 'object' or type(load(C)) = 'array' or X = 1: N = if(not (type(load(C)) = 'object' or type(load(C)) = 'array'), 'none', load(C).Name); B = if(type(load(C)) = 'object' or type(load(C)) = 'array', true, false)`},
	{"whether there is a document, of JavaScript", `map('Orders', o => { const c = load(o.c, 'Cs'); if (!c) return null; return { a: c ? c.a : 'none', b: c && c.b, c: c == null, d: c !== null && c.n > 1 } })`, ``,
		`Orders where type(load(c)) = 'object' or type(load(c)) = 'array': a = if(type(load(c)) = 'object' or type(load(c)) = 'array', load(c).a, 'none'); b = if(type(load(c)) = 'object' or type(load(c)) = 'array', load(c).b, null); c = if(not (type(load(c)) = 'object' or type(load(c)) = 'array'), true, false); d = if((type(load(c)) = 'object' or type(load(c)) = 'array') and load(c).n > 1, true, false)`},
	{"load in a fan-out", `map('Orders', o => o.lines.map(l => ({ p: load(l.product, 'Products').name })))`, ``, `Orders each lines as l: p = load(l.product).name`},
	{"what is loaded, reduced", "from o in docs.Orders select new { City = LoadDocument(o.C, \"Cs\").City, N = 1 }\n---\nfrom r in docs.Returns select new { City = LoadDocument(r.Origin, \"Cs\").City, N = 0 }",
		`from r in results group r by r.City into g select new { City = g.Key, N = g.Sum(x => x.N) }`, "Orders: City = load(C).City; N = (1)\nReturns: City = load(Origin).City; N = (0)\nby City: City; N = sum(N)"},
	{"lists", `from o in docs.Orders select new { P = o.Lines.Select(l => l.Product), T = o.Tags.Select(t => t).ToList(), N = LoadDocument(o.C, "Cs").Phones.Select(p => p.Number) }`, ``,
		`Orders: P = Lines[].Product; T = Tags[]; N = load(C).Phones[].Number`},
	{"results of JavaScript", `map('O', o => ({ a: o.a, n: 1, f: o.f }))`, `results => results.groupBy(x => x.a).aggregate(g => ({ a: g.key, n: g.values.length, f: g.values[0].f }))`, "O: a; n = (1); f\nby a: a; n = count(); f = min(f)"},
}

// Ensure that each shape of a definition becomes the declaration that means the same.
func TestTranslate(t *testing.T) {
	t.Parallel()
	for _, test := range accepted {
		d, err := Translate("X", strings.Split(test.maps, "\n---\n"), test.reduce)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		readable(t, d.Computed)
		if got := shown(d.Computed); got != test.want {
			t.Errorf("%s:\n%s\ngot:  %s\nwant: %s", test.name, test.maps, got, test.want)
		}
	}
	d, err := Translate("X", []string{`from u in docs.Users select new { Town = CreateSpatialField(u.Where), At = CreateSpatialField(u.Lat, u.Lng), u.Name }`, `from s in docs.Shops select new { At = CreateSpatialField(s.At), Town = s.Town, s.Name }`}, "")
	if err != nil || strings.Join(d.Places, " ") != "At Town" {
		t.Errorf("the places are %v, %v", d.Places, err)
	}
}

// Ensure that what has no exact meaning in RQL is refused, at its place and by its reason, and never half translated.
func TestTranslate_Refused(t *testing.T) {
	t.Parallel()
	object := func(member string) string { return `from u in docs.Users select new { A = ` + member + ` }` }
	script := func(member string) string { return `map('Users', u => ({ a: ` + member + ` }))` }
	deep := strings.Repeat("(", 100) + "u.A" + strings.Repeat(")", 100)
	many := `from u in docs.Users select new { A0 = 1`
	for i := range MaxMembers {
		many += ", B" + strings.Repeat("x", i) + " = u.A"
	}
	doubling := `from u in docs.Users let a = u.A + u.A`
	for range 20 {
		doubling += ` let a = a * a`
	}
	for _, test := range []struct {
		name, maps, reduce string
		column             int // of line 1
		reason             string
		syntax             bool
	}{
		{"select without new", `from u in docs.Users select { u.Name }`, ``, 29, `begins with new`, true},
		{"an open brace", `from u in docs.Users select new { u.Name`, ``, 41, `the end`, true},
		{"an open text", `from u in docs.Users select new { A = "x }`, ``, 39, `no end`, true},
		{"a member without a name", `from u in docs.Users select new { u.A + 1 }`, ``, 35, `needs a name`, true},
		{"a member twice", `from u in docs.Users select new { u.A, A = u.B }`, ``, 46, `twice`, true},
		{"no variable", object(`x.A`), ``, 39, `no variable x`, true},
		{"no documents", `from u in users select new { u.A }`, ``, 11, `no variable users`, true},
		{"no object", `from u in docs.Users select u.Name`, ``, 1, `an object`, true},
		{"the whole document", object(`u`), ``, 39, `as a whole`, false},
		{"an object in an entry", object(`new { B = u.B }`), ``, 39, `is an object`, false},
		{"an array in an entry", object(`new [] { u.A }`), ``, 39, `array`, false},
		{"a list that is computed", object(`u.Tags.Select(t => t.Name + "x")`), ``, 46, `a member of each element`, false},
		{"a list of some elements", object(`u.Tags.Where(t => t.A > 1).Select(t => t.Name)`), ``, 66, `a list of some elements`, false},
		{"a list in an expression", object(`u.Tags.Select(t => t.Name) + "x"`), ``, 46, `in no expression`, false},
		{"a list of a reduce", `from u in docs.U select new { A = u.Tags.Select(t => t.N), B = 1 }`, `from r in results group r by r.A into g select new { A = g.Key, B = g.Sum(x => x.B) }`, 42, `and no list`, false},
		{"a list of documents", object(`u.Tags.Select(t => LoadDocument<T>(t))`), ``, 46, `as a whole`, false},
		{"a sum of an array", object(`u.Lines.Sum(l => l.A)`), ``, 47, `fan out`, false},
		{"a number of elements", object(`u.Lines.Count()`), ``, 47, `no value`, false},
		{"a loaded document as a whole", object(`LoadDocument<Company>(u.C)`), ``, 39, `as a whole`, false},
		{"a loaded document in a text", object(`"x" + LoadDocument<Company>(u.C)`), ``, 45, `as a whole`, false},
		{"the ID of a loaded document", object(`LoadDocument<Company>(u.C).Id`), ``, 66, `is what refers to it`, false},
		{"metadata of a loaded document", object(`MetadataFor(LoadDocument<Company>(u.C))["@etag"]`), ``, 39, `is of the document`, false},
		{"metadata of a loaded document by its name", object(`LoadDocument<Company>(u.C)["@metadata"]["@etag"]`), ``, 66, `metadata of a loaded document`, false},
		{"the ID of a loaded document of JavaScript", script(`id(load(u.c, 'Cs'))`), ``, 25, `is of the document`, false},
		{"a loaded document or another value", script(`load(u.c, 'Cs') || 5`), ``, 25, `as a whole`, false},
		{"a loaded document compared", object(`LoadDocument<Company>(u.C) == "x"`), ``, 39, `as a whole`, false},
		{"a loaded document as a condition of C#", `from o in docs.O where LoadDocument<C>(o.C) select new { o.A }`, ``, 24, `as a whole`, false},
		{"a number of loaded documents", object(`LoadDocument<Company>(u.Cs).Length`), ``, 67, `number of loaded documents`, false},
		{"a constant ID", object(`LoadDocument<Config>("config/1").Rate`), ``, 60, `no constant`, false},
		{"a computed ID", script(`load('cs/' + u.n, 'Cs').name`), ``, 36, `not computed`, false},
		{"the document as an ID", object(`LoadDocument<Company>(u).Name`), ``, 61, `the document is no ID`, false},
		{"a document as an ID", object(`LoadDocument<Company>(LoadDocument<Company>(u.A)).Name`), ``, 61, `a document is no ID`, false},
		{"metadata as an ID", object(`LoadDocument<C>(MetadataFor(u)["owner"]).Name`), ``, 69, `not of its metadata`, false},
		{"a date as an ID", object(`LoadDocument<C>((DateTime)u.At).Name`), ``, 55, `not computed`, false},
		{"no collection", script(`load(u.c).name`), ``, 25, `name of a collection`, false},
		{"a collection that is a number", script(`load(u.c, 5).name`), ``, 35, `constant text`, false},
		{"a collection that the document names", object(`LoadDocument(u.C, u.Of).Name`), ``, 59, `constant text`, false},
		{"load of C#", object(`load(u.C, "Cs").Name`), ``, 39, `load is not there`, false},
		{"load in a condition on elements", `from o in docs.O where o.Lines.Any(l => LoadDocument<P>(l.P).A == 1) select new { o.A }`, ``, 41, `fan out`, false},
		{"a fan-out over an array of a loaded document", `from o in docs.O from l in LoadDocument<P>(o.P).Lines select new { l.Name }`, ``, 18, `not of one that is loaded`, false},
		{"an array around a reference", `from o in docs.O select new { o.Lines, P = o.Lines.Select(l => LoadDocument<P>(l.P).Name) }`, ``, 52, `Lines is around the reference`, false},
		{"load in a reduce", object(`u.A`), `from r in results group r by r.A into g select new { A = LoadDocument<C>(g.Key).Name }`, 58, `in a map`, false},
		{"noTracking", script(`noTracking.load(u.c, 'Cs').name`), ``, 36, `is followed: write load`, false},
		{"NoTracking of C#", object(`NoTracking.LoadDocument<C>(u.C).Name`), ``, 50, `write LoadDocument`, false},
		{"cmpxchg", script(`cmpxchg('a')`), ``, 25, `compare-exchange`, false},
		{"compare-exchange of C#", object(`LoadCompareExchangeValue("a")`), ``, 39, `compare-exchange`, false},
		{"attachmentsFor", script(`attachmentsFor(u)`), ``, 25, `attachments`, false},
		{"AttachmentsFor", object(`AttachmentsFor(u)`), ``, 39, `attachments`, false},
		{"a place of three numbers", object(`CreateSpatialField(u.Lat, u.Lng, 1)`), ``, 39, `takes a latitude and a longitude, or a member`, false},
		{"a place of texts", script(`createSpatialField(u.lat + "", u.lng)`), ``, 50, `is a number, and this is a text`, false},
		{"a place of a text that is computed", object(`CreateSpatialField(u.Where.Trim())`), ``, 39, `is a member of the document`, false},
		{"a place in an expression", object(`CreateSpatialField(u.Lat, u.Lng) + 1`), ``, 39, `as it is`, false},
		{"one place or another", object(`u.A == 1 ? CreateSpatialField(u.Lat, u.Lng) : CreateSpatialField(u.Where)`), ``, 48, `or null`, false},
		{"a place of the other language", script(`CreateSpatialField(u.lat, u.lng)`), ``, 25, `is not there`, false},
		{"places that are gathered", object(`SpatialClustering(u.Lat, u.Lng)`), ``, 39, `CreateSpatialField makes`, false},
		{"a place of a reduce", script(`u.a`), `groupBy(x => x.a).aggregate(g => ({ a: createSpatialField(g.key, g.key) }))`, 40, `in a map`, false},
		{"a boost", object(`u.Name.Boost(10)`), ``, 46, `boosts`, false},
		{"a field that the document names", `from u in docs.Users select new { _ = CreateField(u.Name, u.A) }`, ``, 53, `the name of a created field is a constant text`, false},
		{"a field that a text names", `map('Users', u => ({ _: createField('a' + u.a, 1) }))`, ``, 41, `the name of a created field is a constant text`, false},
		{"a field without a value", object(`CreateField("a")`), ``, 39, `takes a name, a value and options`, false},
		{"a field without a name", object(`CreateField("", 1)`), ``, 51, `1 to 256 bytes`, false},
		{"a field twice", `from u in docs.Users select new { u.A, _ = CreateField("A", u.B) }`, ``, 44, `twice`, false},
		{"a field with other options", `from u in docs.Users select new { _ = CreateField("A", u.B) }` + "\n---\n" + `from u in docs.Others select new { _ = CreateField("A", u.B, true) }`, ``, 40, `other options before`, false},
		{"a field in an expression", object(`"x" + CreateField("a", u.A)`), ``, 45, `in no expression`, false},
		{"a field in a field", object(`CreateField("a", CreateField("b", u.A))`), ``, 56, `as it is`, false},
		{"a field of the other language", script(`CreateField('a', u.a)`), ``, 25, `is not there`, false},
		{"a field with an option of its own", script(`createField('a', u.a, { boost: 5 })`), ``, 56, `the option boost`, false},
		{"a field that is not indexed", object(`CreateField("a", u.A, new CreateFieldOptions { Indexing = FieldIndexing.No })`), ``, 111, `Indexing No of a field`, false},
		{"a field with options that are computed", object(`CreateField("a", u.A, u.B)`), ``, 63, `options of a field are an object`, false},
		{"a field of a reduce", `from u in docs.U select new { u.A, _ = CreateField("B", 1) }`, `from r in results group r by r.A into g select new { A = g.Key, B = g.Sum(x => x.B) }`, 40, `with a reduce`, false},
		{"a field in a reduce", object(`u.A`), `from r in results group r by r.A into g select new { _ = CreateField("A", g.Key) }`, 58, `with a reduce`, false},
		{"the member _", `from u in docs.Users select new { _ = u.A }`, ``, 41, `stands for fields that are created`, false},
		{"this", object(`this.X`), ``, 39, `no value`, false},
		{"Recurse", object(`Recurse(u, x => x.Children)`), ``, 39, `tree`, false},
		{"all metadata", object(`MetadataFor(u)`), ``, 39, `RQL does not have this`, false},
		{"metadata Jay does not have", object(`MetadataFor(u)["@collections"]`), ``, 53, `RQL does not have this`, false},
		{"counters", `from c in counters.Users select new { c.A }`, ``, 11, `counters`, false},
		{"time series of JavaScript", `timeSeries.map('Users', 'x', s => ({ a: s.a }))`, ``, 12, `timeSeries`, false},
		{"now", object(`DateTime.Now`), ``, 39, `DateTime is not there`, false},
		{"a format", object(`u.At.ToString("yyyy")`), ``, 44, `format`, false},
		{"a day of the week", object(`u.At.DayOfWeek`), ``, 44, `day of the week`, false},
		{"fractions of days", object(`(u.A - u.B).TotalDays`), ``, 51, `no member TotalDays`, false},
		{"bits", object(`u.A & 1`), ``, 43, `operator &`, false},
		{"is", object(`u.A is string`), ``, 43, `operator is`, false},
		{"an assignment", script(`u.a = 1`), ``, 29, `assigned`, false},
		{"a function of statements", `docs.Users.Select(u => { return new { u.A }; })`, ``, 24, `statements`, false},
		{"a join", `from u in docs.Users join x in docs.X on u.A equals x.A select new { u.A }`, ``, 22, `join`, false},
		{"an order", `from u in docs.Users orderby u.A select new { u.A }`, ``, 22, `orderby`, false},
		{"two arrays", `from o in docs.O from l in o.Lines from p in l.Parts select new { p.A }`, ``, 36, `one array`, false},
		{"two arrays of the document", `from o in docs.O from l in o.Lines from p in o.Parts select new { p.A }`, ``, 36, `one array`, false},
		{"any of a text", `from o in docs.O where o.Tags.Any(t => t == "a") select new { o.A }`, ``, 40, `.Contains`, false},
		{"any beside the document", `from o in docs.O where o.Lines.Any(l => l.A == o.A) select new { o.A }`, ``, 50, `document around it`, false},
		{"a number as a condition", `from o in docs.O where o.A + 1 select new { o.A }`, ``, 28, `true or false`, false},
		{"a text in arithmetic", object(`"a" * u.B`), ``, 39, `takes numbers`, false},
		{"true in arithmetic", object(`u.A + true`), ``, 45, `takes numbers`, false},
		{"two constants", object(`1 == 1`), ``, 41, `two constants`, false},
		{"=== of C#", object(`u.A === 1`), ``, 43, `no operator ===`, true},
		{"== of JavaScript", script(`u.a == 1`), ``, 29, `converts`, false},
		{"=== undefined", script(`u.a === undefined`), ``, 29, `what is missing is null`, false},
		{"typeof", script(`typeof u.a`), ``, 25, `typeof`, false},
		{"a regular expression", script(`/x/.test(u.a)`), ``, 25, `regular expression`, false},
		{"a Date alone", script(`new Date(u.a)`), ``, 25, `value`, false},
		{"a Date in a zone", script(`new Date(u.a).getMonth()`), ``, 39, `zone of the server`, false},
		{"now of JavaScript", script(`new Date()`), ``, 25, `not of the time`, false},
		{"replace once", script(`u.a.replace('a', 'b')`), ``, 29, `replaceAll`, false},
		{"spread", `map('Users', u => ({ ...u }))`, ``, 22, `name the members`, false},
		{"a loop", `map('Users', u => { for (var i = 0; i < 3; i++) {} return { a: u.a } })`, ``, 21, `loop`, false},
		{"a switch", `map('Users', u => { switch (u.a) { case 1: return { a: 1 } } })`, ``, 21, `switch`, false},
		{"no entry", `map('Users', u => { const a = u.a })`, ``, 14, `returns no entry`, false},
		{"different members", `map('Users', u => { if (u.a) return { a: u.a }; return { b: u.b } })`, ``, 21, `same names`, false},
		{"an effect", `map('Users', u => { u.a.sort(); return { a: u.a } })`, ``, 21, `no effect`, false},
		{"two entries of an element", `map('O', o => { const r = []; o.l.forEach(x => { r.push({ a: x.a }); r.push({ a: x.b }); }); return r; })`, ``, 70, `nothing follows`, false},
		{"a collection that is computed", `map(['A', 'B'], u => ({ a: u.a }))`, ``, 1, `name of a collection`, false},
		{"other members", "from u in docs.Users select new { u.A }\n---\nfrom u in docs.Users select new { u.B }", ``, 1, `same names`, true},
		{"two languages", "from u in docs.Users select new { u.A }\n---\nmap('Users', u => ({ A: u.A }))", ``, 1, `one language`, true},
		{"a map that groups", `from u in docs.Users group u by u.A into g select new { A = g.Key }`, ``, 22, `a reduce groups`, false},
		{"no group", object(`u.A`), `from r in results select new { r.A }`, 1, `a reduce groups`, false},
		{"a filter in a reduce", object(`u.A`), `from r in results where r.A > 1 group r by r.A into g select new { A = g.Key }`, 19, `does not filter`, false},
		{"a computed key", object(`u.A`), `from r in results group r by r.A + 1 into g select new { A = g.Key }`, 32, `stands in a function of the entries`, false},
		{"no member of the maps", object(`u.A`), `from r in results group r by r.B into g select new { A = g.Key }`, 32, `give no member`, true},
		{"a member that the reduce lacks", `from u in docs.U select new { u.A, u.B }`, `from r in results group r by r.A into g select new { A = g.Key }`, 48, `does not give the member "B"`, true},
		{"a member that the maps lack", object(`u.A`), `from r in results group r by r.A into g select new { A = g.Key, B = g.Count() }`, 71, `maps do not give`, true},
		{"a constant of groups", `from u in docs.U select new { u.A, u.B }`, `from r in results group r by r.A into g select new { A = g.Key, B = 5 }`, 69, `same for all`, false},
		{"a sum of a constant", `from u in docs.U select new { u.A, u.B }`, `from r in results group r by r.A into g select new { A = g.Key, B = g.Sum(x => 2) }`, 71, `a constant is the same`, false},
		{"a sum of texts", `from u in docs.U select new { u.A, u.B }`, `from r in results group r by r.A into g select new { A = g.Key, B = g.Sum(x => x.B + "a") }`, 71, `Sum takes numbers`, false},
		{"a sum of distinct values", `from u in docs.U select new { u.A, u.B }`, `from r in results group r by r.A into g select new { A = g.Key, B = g.Select(x => x.B).Distinct().Sum() }`, 99, `distinct values`, false},
		{"a list of entries", `from u in docs.U select new { u.A, u.B }`, `from r in results group r by r.A into g select new { A = g.Key, B = g.ToList() }`, 71, `one value of each`, false},
		{"a list in another order", `from u in docs.U select new { u.A, u.B }`, `from r in results group r by r.A into g select new { A = g.Key, B = g.OrderByDescending(x => x.B).Select(x => x.B) }`, 99, `order of its values`, false},
		{"texts joined by a member", `from u in docs.U select new { u.A, u.B }`, `from r in results group r by r.A into g select new { A = g.Key, B = string.Join(g.Key, g.Select(x => x.B)) }`, 83, `a constant text`, false},
		{"a member of an entry alone", `from u in docs.U select new { u.A, u.B }`, `from r in results group r by r.A into g select new { A = g.Key, B = g.Count(x => x.C > 1) }`, 0, `give no member "C"`, true},
		{"a list of some lists", `from u in docs.U select new { u.A, u.B }`, `from r in results group r by r.A into g select new { A = g.Key, B = g.Take(5) }`, 71, `Take of a group`, false},
		{"a reduce that multiplies", script(`u.a`), `groupBy(x => x.a).aggregate(g => ({ a: g.values.reduce((t, v) => t * v.a, 1) }))`, 0, `a reduce adds`, false},
		{"a reduce without a start", script(`u.a`), `groupBy(x => x.a).aggregate(g => ({ a: g.values.map(x => x.a).reduce((t, v) => t + v) }))`, 0, `a reduce adds`, false},
		{"a Set of a map", script(`new Set(u.tags).size`), ``, 0, `a Set is made of values of the entries`, false},
		{"the first entries in two orders", `from u in docs.U select new { u.A, u.B }`, `from r in results group r by r.A into g select new { A = g.Key, B = g.First(x => x.B > 1) }`, 0, `made of functions`, false},
		{"fields that elements name in two ways", `from u in docs.Users select new { _ = u.Tags.Select(t => CreateField(t.Name, t.Value, false, true)) }`, ``, 0, `words of a field whose name is in the document`, false},
		{"fields that elements name and that are stored", `map('Users', u => ({ _: u.tags.map(t => createField(t.name, t.value, { storage: true })) }))`, ``, 0, `is not stored`, false},
		{"fields that elements name beside the document", `from u in docs.Users select new { _ = u.Tags.Select(t => CreateField(u.Prefix + t.Name, t.Value)) }`, ``, 0, `document around it`, false},
		{"fields that elements name before a reduce", `from u in docs.U select new { u.A, _ = u.Tags.Select(t => CreateField(t.Name, t.Value)) }`, `from r in results group r by r.A into g select new { A = g.Key }`, 0, `with a reduce`, false},
		{"fields of elements of elements", `from u in docs.Users from l in u.Lines select new { l.A, _ = l.Tags.Select(t => CreateField(t.Name, t.Value)) }`, ``, 0, `one of its arrays`, false},
		{"two orders", `from u in docs.U select new { u.A, u.B, u.C }`, `from r in results group r by r.A into g select new { A = g.Key, B = g.OrderBy(x => x.B).ThenBy(x => x.C).First().B, C = 1 }`, 89, `one order`, false},
		{"an order that is computed", `from u in docs.U select new { u.A, u.B }`, `from r in results group r by r.A into g select new { A = g.Key, B = g.OrderBy(x => x.B * 2).First().B }`, 86, `stands in a function of the entries`, false},
		{"a whole entry", `from u in docs.U select new { u.A, u.B }`, `from r in results group r by r.A into g select new { A = g.Key, B = g.First() }`, 71, `one of its members`, false},
		{"arithmetic of a first entry", `from u in docs.U select new { u.A, u.B }`, `from r in results group r by r.A into g select new { A = g.Key, B = g.First().B * 2 }`, 79, `is not known`, false},
		{"a sort by two members", `map('U', u => ({ a: u.a, b: u.b }))`, `groupBy(x => x.a).aggregate(g => ({ a: g.key, b: g.values.sort((x, y) => x.a - y.b)[0].b }))`, 64, `difference of a member`, false},
		{"a sort of one entry", `map('U', u => ({ a: u.a, b: u.b }))`, `groupBy(x => x.a).aggregate(g => ({ a: g.key, b: g.values.sort((x, y) => x.b - x.b)[0].b }))`, 64, `difference of a member`, false},
		{"a sort that compares", `map('U', u => ({ a: u.a, b: u.b }))`, `groupBy(x => x.a).aggregate(g => ({ a: g.key, b: g.values.sort((x, y) => x.b < y.b ? 1 : 0)[0].b }))`, 64, `difference of a member`, false},
		{"two sorts", `map('U', u => ({ a: u.a, b: u.b }))`, `groupBy(x => x.a).aggregate(g => ({ a: g.values.sort((x, y) => x.b - y.b)[0].a, b: g.values.sort((x, y) => y.b - x.b)[0].b }))`, 93, `one order`, false},
		{"the second entry", `map('U', u => ({ a: u.a, b: u.b }))`, `groupBy(x => x.a).aggregate(g => ({ a: g.key, b: g.values[1].b }))`, 58, `no elements`, false},
		{"too deep", object(deep), ``, 0, `nested too deep`, false},
		{"too many members", many + ` }`, ``, 0, `at most 32 members`, false},
		{"a text that doubles", doubling + ` select new { a }`, ``, 0, `too long in RQL`, false},
		{"too long a text", object(`"` + strings.Repeat("x", MaxTextBytes) + `"`), ``, 1, `too long`, false},
	} {
		_, err := Translate("X", strings.Split(test.maps, "\n---\n"), test.reduce)
		var at *Error
		if !errors.As(err, &at) {
			t.Errorf("%s: %.200s is %v", test.name, test.maps, err)
			continue
		}
		if at.Line != 1 || test.column > 0 && at.Column != test.column || !strings.Contains(at.Reason, test.reason) || at.Syntax != test.syntax {
			t.Errorf("%s: line %d, column %d, syntax %v: %s", test.name, at.Line, at.Column, at.Syntax, at.Reason)
		}
	}
	_, err := Translate("X", []string{"from ü in docs.Users\r\nselect new {\n\tÄ = ü.Größe, B = LoadDocument(ü.X) }"}, "")
	if err == nil || err.Error() != `map 1, line 3, column 19: a loaded document as a whole is no value: name its members` {
		t.Errorf("of the third line: %v", err)
	}
	if _, err := Translate("X", nil, ""); err == nil {
		t.Error("a definition without maps")
	}
	if _, err := Translate("X", make([]string, MaxMaps+1), ""); err == nil {
		t.Error("a definition of too many maps")
	}
}

// Ensure that the options of created fields are those that their calls give.
func TestTranslate_Created(t *testing.T) {
	for text, want := range map[string]map[string]CreatedField{
		`from p in docs.Ps select new { _ = CreateField("A", p.A, true, false), b = CreateField("B", p.B, false, null), C = CreateField("C", p.C, true, true) }`:                                       {"A": {Stored: true, Indexing: "Exact"}, "B": {}, "C": {Stored: true, Indexing: "Search"}},
		`from p in docs.Ps select new { _ = CreateField("A", p.A, new CreateFieldOptions { Storage = FieldStorage.No, Indexing = FieldIndexing.Default, TermVector = FieldTermVector.WithOffsets }) }`: {"A": {TermVector: "WithOffsets"}},
		`map('Ps', p => ({ _: createField('a', p.a, { storage: true, indexing: 'Search', termVector: 'Yes' }), b: createField('b', 1, { storage: 'No', indexing: null }) }))`:                          {"a": {Stored: true, Indexing: "Search", TermVector: "Yes"}, "b": {}},
		`map('Ps', p => ({ a: p.a }))`: nil,
	} {
		d, err := Translate("X", []string{text}, "")
		if err != nil || !maps.Equal(d.Created, want) {
			t.Errorf("%s: %v, %v", text, d.Created, err)
		}
	}
}

// FuzzTranslate ensures that no text stops the program or takes long, and that what is accepted is read by RQL.
func FuzzTranslate(f *testing.F) {
	for _, test := range accepted {
		f.Add(test.maps, test.reduce)
	}
	f.Fuzz(func(t *testing.T, maps, reduce string) {
		d, err := Translate("X", strings.Split(maps, "\n---\n"), reduce)
		var at *Error
		switch {
		case err == nil:
			readable(t, d.Computed)
			if _, err := json.Marshal(d); err != nil {
				t.Error(err)
			}
		case !errors.As(err, &at):
			t.Errorf("%v is no *Error", err)
		case at.Line < 1 || at.Column < 1 || at.Reason == "":
			t.Errorf("the error is of no place: %v", err)
		}
	})
}
