package ids

import (
	"reflect"
	"strings"
	"unicode"

	"github.com/go-openapi/inflect"
)

// plurals are RavenDB's rules for the names of collections (those of its .NET
// client), in a go-openapi/inflect rule set of their own: the library's rules
// may change with a version, and a changed plural renames a collection. The
// golden test in naming_test.go pins them.
var plurals = newPlurals()

// newPlurals adds the rules in reverse order of precedence, since the library
// tries the newest rule first.
func newPlurals() *inflect.Ruleset {
	rs := inflect.NewRuleset()
	rs.AddPlural("s", "s")
	for _, r := range [][2]string{{"axis", "axes"}, {"testis", "testes"}, {"octopus", "octopi"}, {"virus", "viri"},
		{"alias", "aliases"}, {"status", "statuses"}, {"bus", "buses"}, {"buffalo", "buffaloes"}, {"tomato", "tomatoes"},
		{"tum", "ta"}, {"ium", "ia"}, {"sis", "ses"}, {"lf", "lves"}, {"rf", "rves"}, {"fe", "ves"}, {"ffe", "ffes"}, {"hive", "hives"},
		{"quy", "quies"}} {
		rs.AddPlural(r[0], r[1])
	}
	for _, consonant := range "bcdfghjklmnpqrstvwxz" {
		rs.AddPlural(string(consonant)+"y", string(consonant)+"ies")
	}
	for _, r := range [][2]string{{"x", "xes"}, {"ch", "ches"}, {"ss", "sses"}, {"sh", "shes"},
		{"matrix", "matrices"}, {"vertix", "vertices"}, {"indix", "indices"}, {"ex", "ices"},
		{"mouse", "mice"}, {"louse", "lice"}} {
		rs.AddPlural(r[0], r[1])
	}
	rs.AddPluralExact("ox", "oxen", true)
	rs.AddPlural("quiz", "quizzes")
	for _, r := range [][2]string{{"move", "moves"}, {"sex", "sexes"}, {"child", "children"}, {"man", "men"}, {"person", "people"}} {
		rs.AddPlural(r[0], r[1])
	}
	for _, word := range []string{"equipment", "information", "rice", "money", "species", "series", "fish", "sheep"} {
		rs.AddUncountable(word)
	}
	return rs
}

// Plural returns the plural of a name by RavenDB's rules: Order → Orders,
// Company → Companies, Person → People, Human → Humen. The rules ignore case;
// letters that the plural shares with name keep theirs.
func Plural(name string) string {
	lower := strings.ToLower(name)
	plural := plurals.Pluralize(lower)
	if len(lower) != len(name) {
		return name + "s" // lower-casing changed the length: offsets would not match
	}
	// Only the ending changes: keep the common beginning as the caller wrote it.
	same := 0
	for same < len(lower) && same < len(plural) && lower[same] == plural[same] {
		same++
	}
	return name[:same] + plural[same:]
}

// CollectionName returns the name of the collection for a type: the plural of
// the type's name, followed for a generic type by "Of" and the collection names
// of its arguments. It returns "" for a type without a name.
func CollectionName(t reflect.Type) string {
	return collectionName(t.Name())
}

// collectionName is CollectionName for a name as package reflect writes it, such
// as "Page[example.com/shop.Order]", which gives PagesOfOrders.
func collectionName(name string) string {
	base, arguments, generic := strings.Cut(name, "[")
	if base == "" {
		return ""
	}
	if dot := strings.LastIndexByte(base, '.'); dot >= 0 { // the package path of an argument
		base = base[dot+1:]
	}
	if !generic {
		return Plural(base)
	}

	var b strings.Builder
	b.WriteString(Plural(base))
	b.WriteString("Of")
	for _, argument := range splitArguments(strings.TrimSuffix(arguments, "]")) {
		b.WriteString(collectionName(strings.TrimLeft(argument, "*[]")))
	}
	return b.String()
}

// splitArguments splits at the commas that are not inside brackets.
func splitArguments(s string) []string {
	var parts []string
	depth, start := 0, 0
	for i, c := range s {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == ',' && depth == 0:
			parts = append(parts, s[start:i])
			start = i + 1
		}
	}
	return append(parts, s[start:])
}

// Prefix returns the ID prefix of a collection, without the separator: the
// name in lower case if it has at most one upper-case letter, else unchanged
// (Users → users, BlogPosts → BlogPosts).
func Prefix(collection string) string {
	upper := 0
	for _, c := range collection {
		if unicode.IsUpper(c) {
			upper++
		}
	}
	if upper > 1 {
		return collection
	}
	return strings.ToLower(collection)
}
