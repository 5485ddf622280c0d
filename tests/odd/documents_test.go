package odd_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// odds makes random things, the same ones for the same seed.
type odds struct {
	*rand.Rand
	numbers int // of IDs
}

func newOdds(seed uint64) *odds { return &odds{rand.New(rand.NewPCG(seed, 11)), 60} }

// chance is true this often, in percent.
func (o *odds) chance(percent int) bool { return o.IntN(100) < percent }

// pick returns one of several.
func (o *odds) pick(of ...string) string { return of[o.IntN(len(of))] }

var (
	words     = []string{"oak", "Oak", "acorn", "acorns", "leaf", "leaves", "tree", "the", "windfall", "wind-fallen", "é", "É", "straße", "STRASSE", "日本語", "😀", "b"}
	oddTexts  = []string{`""`, `" "`, `"a"`, `"A"`, `"b"`, `"ab"`, `"Ab"`, `"ä"`, `"Ä"`, `"ß"`, `"ẞ"`, `"\u212a"`, `"k"`, `"K"`, `"a\u0000"`, `"\u0000"`, `"a\u0000b"`, `"\uffff"`, `"😀"`, `"\ud83d\ude00"`, `"it's"`, `"q\"q"`, `"back\\s"`, `"12"`, `"1e1"`, `"-7.5"`, `"+4"`, `" 3"`, `"0x10"`, `"NaN"`, `"null"`, `"true"`, `"NULL_VALUE"`, `"EMPTY_STRING"`, `"i"`, `"İ"`, `"ı"`, `"σ"`, `"ς"`, `"%"`, `"*"`, `"\n"`, `"\u2028"`, `"=1+1"`, `"@x"`}
	oddNumber = []string{"0", "-0", "0.0", "-0.0", "1", "1.0", "1e0", "10e-1", "2", "2.5", "25e-1", "3", "7", "-1", "-1.0", "-2.5", "10", "1e1", "100", "0.1", "0.10", "9007199254740993", "9007199254740992", "9007199254740993.0", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551616", "1e400", "-1e400", "1e-400", "1E+3", "123456789012345678901234567890.123456789", "0.30000000000000004", "1e999999999999999"}
	refused   = []string{"1e1000000000000000", "01", "+1", ".5", "1.", "NaN", "Infinity", "1e", "--1", "'a'", "{", "]", "\"\\ud800\"", "\"\\x\"", "nul", "\x00", "\"\x01\"", "\"\xff\""}
	dates     = []string{`"2026-01-01T00:00:00Z"`, `"2026-01-01T00:00:00.0000000Z"`, `"2026-01-01T02:00:00+02:00"`, `"2026-01-31T23:59:60Z"`, `"2026-01-01t00:00:00z"`, `"2026-01-01T00:00:00"`, `"2026-01-01 00:00:00"`, `"2026-01-01"`, `"2026-02-30T00:00:00Z"`, `"2025-12-31T23:59:59.123456789012Z"`, `"0000-01-01T00:00:00Z"`, `"9999-12-31T23:59:59Z"`, `"9999-12-31T23:59:59-01:00"`, `"2026-13-01T00:00:00Z"`, `"1969-12-31T23:59:59.999999999Z"`, `"2026-03-01T12:00:00Z"`, `"2026-03-15T12:30:45.5Z"`}
	shapes    = []string{`"POINT(13.4 52.52)"`, `"POINT(13.4 52.53)"`, `"POINT(0 0)"`, `"POINT(180 90)"`, `"POINT(200 0)"`, `"POINT EMPTY"`, `"POLYGON((13 52, 14 52, 14 53, 13 52))"`, `"POLYGON((0 0, 1 1, 1 0, 0 1, 0 0))"`, `"LINESTRING(0 0, 1 1)"`, `"CIRCLE(13.4 52.52 d=500)"`, `"ENVELOPE(13, 14, 53, 52)"`, `{"type":"Point","coordinates":[13.4,52.52]}`, `{"type":"Point","coordinates":[]}`, `{"type":"Polygon","coordinates":[[[13,52],[14,52],[14,53],[13,52]]]}`, `{"type":"Point"}`, `"nowhere"`}
	vectors   = []string{`[1,0,0]`, `[0,1,0]`, `[0.5,0.5,0]`, `[-1,0,0]`, `[0,0,0]`, `[1,2]`, `[1,2,3,4]`, `[]`, `[1e40,0,0]`, `["1",0,0]`, `[null,1,2]`, `"AACAPwAAAAAAAAAA"`, `"AACAPw=="`, `"!"`, `{"@vector":[0,0,1]}`, `{"@vector":[]}`, `[[1,0,0],[0,0,1]]`, `[1.0,-0,0]`}
)

// scalar makes null, booleans, numbers, texts and dates.
func (o *odds) scalar() string {
	switch n := o.IntN(100); {
	case n < 8:
		return "null"
	case n < 16:
		return o.pick("true", "false")
	case n < 30:
		return o.pick("1", "2", "3", "1.0", "7")
	case n < 52:
		return o.pick(oddNumber...)
	case n < 65:
		return o.pick(`"a"`, `"A"`, `"b"`, `"B"`)
	case n < 92:
		return o.pick(oddTexts...)
	case n < 93:
		return strings.Repeat("9", 1+o.IntN(400))
	case n < 94 && o.chance(30):
		depth := 1 + o.IntN(o.IntN(700)+1)
		return strings.Repeat("[", depth) + "1" + strings.Repeat("]", depth)
	case n < 94:
		return `"` + strings.Repeat(o.pick("x", "ä", "\\u0000"), 500+o.IntN(200)) + `"`
	default:
		return o.pick(dates...)
	}
}

// value makes a scalar, or something with values in it.
func (o *odds) value(depth int) string {
	switch n := o.IntN(100); {
	case n < 72 || depth == 0:
		return o.scalar()
	case n < 88:
		return o.array(func() string { return o.value(depth - 1) })
	default:
		return o.object(func() string { return o.value(depth - 1) }, "A", "N", "x", "", "x.y", "it's", "$type", "@metadata")
	}
}

func (o *odds) array(item func() string) string {
	parts := make([]string, o.IntN(4))
	for i := range parts {
		parts[i] = item()
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func (o *odds) object(item func() string, names ...string) string {
	var parts []string
	for _, name := range names {
		if o.chance(40) {
			parts = append(parts, member(name, item()))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// member is a member of an object.
func member(name, value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `":` + value
}

// usual makes a value of the kind that most documents have, and an odd one now and then.
func (o *odds) usual(odd int, most ...string) string {
	if o.chance(odd) {
		return o.value(2)
	}
	return o.pick(most...)
}

// text makes a few words.
func (o *odds) text() string {
	parts := make([]string, o.IntN(6))
	for i := range parts {
		parts[i] = o.pick(words...)
	}
	return strings.Join(parts, o.pick(" ", " ", ", ", "\\u0000", "-"))
}

// line makes an element of Lines.
func (o *odds) line() string {
	if o.chance(12) {
		return o.value(1)
	}
	return o.object(func() string { return o.usual(25, "1", "2", "3", `"a"`, `"b"`, "2.5") }, "P", "Q", "P2", "R")
}

// reference makes the ID of a document, or several.
func (o *odds) reference() string {
	switch n := o.IntN(100); {
	case n < 60:
		return `"` + o.id() + `"`
	case n < 80:
		return o.array(func() string { return `"` + o.id() + `"` })
	default:
		return o.value(1)
	}
}

// id makes the ID of a document. There are few of them, in several spellings.
func (o *odds) id() string {
	id := fmt.Sprintf("odd/%d", o.IntN(o.numbers))
	switch o.IntN(30) {
	case 0:
		return strings.ToUpper(id)
	case 1:
		return o.pick("odd/ä", "odd/Ä", "odd/x y", "odd/1-A", "odd/it's", "odd/a&b=c", "odd/%41", "odd/日本", "ODD/x", "odd/1/2", "facets/1", "facets/1")
	}
	return id
}

// members are what the documents are made of, and how often they have it, in percent.
var members = []struct {
	name  string
	often int
	make  func(o *odds) string
}{
	{"A", 80, func(o *odds) string { return o.value(2) }},
	{"a", 20, func(o *odds) string { return o.scalar() }},
	{"B", 70, func(o *odds) string { return o.usual(15, `"a"`, `"b"`, `"B"`, `"c"`, "1", "null") }},
	{"N", 80, func(o *odds) string { return o.usual(15, oddNumber...) }},
	{"M", 60, func(o *odds) string { return o.usual(8, "1", "2", "3", "4", "0", "2.50") }},
	{"T", 70, func(o *odds) string { return o.usual(10, `"`+o.text()+`"`) }},
	{"Tags", 60, func(o *odds) string {
		return o.usual(12, o.array(func() string { return o.pick(`"a"`, `"b"`, `"A"`, "1", "null", o.scalar()) }))
	}},
	{"Lines", 55, func(o *odds) string { return o.usual(8, o.array(o.line)) }},
	{"O", 50, func(o *odds) string {
		return o.usual(15, o.object(func() string { return o.value(1) }, "N", "T", "O", ""), `{"N":1}`, `{"N":1.0,"T":"a"}`)
	}},
	{"At", 60, func(o *odds) string { return o.usual(6, dates...) }},
	{"Lat", 45, func(o *odds) string { return o.usual(8, "52.52", "52.53", "0", "-90", "91", "52.5200001") }},
	{"Lng", 45, func(o *odds) string { return o.usual(8, "13.4", "13.5", "0", "180", "-180", "200") }},
	{"Place", 35, func(o *odds) string { return o.usual(6, shapes...) }},
	{"V", 40, func(o *odds) string { return o.usual(4, vectors...) }},
	{"Ref", 50, func(o *odds) string { return o.reference() }},
	{"U", 15, func(o *odds) string { return o.usual(20, fmt.Sprint(o.IntN(10_000))) }},
	{"x.y", 15, func(o *odds) string { return o.value(1) }},
	{"", 10, func(o *odds) string { return o.value(1) }},
	{"it's", 10, func(o *odds) string { return o.value(1) }},
	{`q"q`, 10, func(o *odds) string { return o.value(1) }},
	{"@at", 10, func(o *odds) string { return o.value(1) }},
	{"First Name", 10, func(o *odds) string { return o.value(1) }},
	{"from", 10, func(o *odds) string { return o.scalar() }},
	{"Nil", 30, func(o *odds) string { return "null" }},
}

// body makes the members of a document, without those that name its ID and its collection.
func (o *odds) body() string {
	var parts []string
	for _, m := range members {
		if o.chance(m.often) {
			parts = append(parts, member(m.name, m.make(o)))
		}
	}
	o.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	if o.chance(2) {
		parts = append(parts, member("A", o.scalar())) // perhaps for the second time
	}
	if o.chance(2) {
		parts = append(parts, member("Z", o.pick(refused...)))
	}
	return strings.Join(parts, ",")
}

// document makes a document with its collection.
func (o *odds) document() string {
	metadata := member("@collection", o.pick(`"Odd"`, `"Odd"`, `"Odd"`, `"Odd"`, `"Odd"`, `"Odd"`, `"Even"`, `"odd"`, `"Wei rd"`))
	if o.chance(15) {
		metadata += "," + member(o.pick("Tag", "tag", "x.y", ""), o.value(1))
	}
	if o.chance(3) {
		metadata += "," + member(o.pick("@id", "@etag", "@flags", "@last-modified", "@x", "Raven-Clr-Type", "@expires", "@refresh", "@expires", "@attachments", "@archive-at"), o.scalar())
	}
	parts := []string{o.body(), `"@metadata":{` + metadata + `}`}
	if o.chance(2) {
		parts[0] = o.facets()
	}
	if parts[0] == "" || o.chance(3) {
		parts = parts[1:]
	}
	if o.chance(20) {
		parts[0], parts[len(parts)-1] = parts[len(parts)-1], parts[0]
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// facets makes the members of a document that describes facets.
func (o *odds) facets() string {
	facet := func() string {
		return fmt.Sprintf(`{"FieldName":%s,"DisplayFieldName":%s,"Options":%s,"Aggregations":%s}`, o.usual(20, `"B"`, `"M"`), o.usual(20, "null", `"x"`), o.usual(20, "null", "{}"), o.usual(20, "null", "{}", `{"Sum":[{"Name":"M"}]}`))
	}
	ranges := func() string {
		return fmt.Sprintf(`{"Ranges":%s}`, o.usual(20, `["M < 2","M >= 2"]`, `["N > 1"]`))
	}
	return `"Facets":` + o.array(facet) + `,"RangeFacets":` + o.array(ranges)
}
