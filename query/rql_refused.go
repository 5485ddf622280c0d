package query

import (
	"strings"

	"github.com/jaydb/jay/internal/spelling"
)

// keywords cannot be names, unless they are in quotes or follow a point.
var keywords = []string{"from", "group", "where", "order", "load", "update", "filter", "select", "include", "limit", "offset",
	"declare", "and", "or", "not", "in", "between", "all", "as", "distinct", "true", "false", "null"}

// reserved reports whether a word is a keyword, in any case.
func reserved(word string) bool {
	for _, keyword := range keywords {
		if strings.EqualFold(word, keyword) {
			return true
		}
	}
	return false
}

// Features of RavenDB's query language that Jay lacks, by the place where they
// occur and their name in lower case. The message says what to do instead.
var (
	refusedStarts = map[string]string{
		"declare": "functions are declared in front of a query, and not of an update: write what it does in update { }",
		"with":    "graph queries are not there; ask for one collection, and include what its documents refer to",
		"match":   "graph queries are not there; ask for one collection, and include what its documents refer to",
		"select":  "a query begins with from: from Orders select Company",
		"update":  "a query begins with from: from Orders where Total < 5 update { this.Small = true }",
		"delete":  "a query changes nothing: delete the documents in Go, or with jay delete",
		"insert":  "a query changes nothing: insert documents in Go, or with jay put",
	}
	refusedClauses = map[string]string{
		"load":         "load stands before select; include brings the documents along that a path refers to",
		"update":       "update { } changes documents, and a query only reads: it is a text for DB.UpdateRQL",
		"filter":       "filter is not there: where can do all of it, as it also scans where there is no index",
		"filter_limit": "filter_limit is not there: limit bounds the answers",
		"having":       "having is not there: a condition on groups stands in where, before order by: where count() > 5",
		"join":         "joins are not there; include brings the documents along that a path refers to",
		"union":        "a query asks once; say or in where, or ask twice",
		"between":      "time series are not there: keep documents with a date, and write where At as date between ... and ...",
	}
	refusedConditions = map[string]string{
		"score":     "score() is known when all answers are: it stands in order by and in select",
		"intersect": "intersect() is not there: and means the same, as every condition looks at the whole document",
		"cmpxchg":   "cmpxchg() is not there: queries read no compare-exchange values; read the value first, and give it as a parameter",
	}
	refusedOrders = map[string]string{
		"random": "random() is not there; take the answers in any order and shuffle them",
		"custom": "custom() is not there: Jay has no sorters; sort the answers in Go",
	}
	refusedSelects = map[string]string{
		"facet":        "facets stand alone in select, and a query with them has no group by",
		"suggest":      "suggestions stand alone in select",
		"complete":     "suggestions stand alone in select",
		"timeseries":   "timeseries() is not there: Jay keeps no time series; keep documents with a date",
		"counter":      "counter() is not there: Jay keeps no counters beside documents; keep a number in the document",
		"cmpxchg":      "cmpxchg() is not there: queries read no compare-exchange values; read the value first, and give it as a parameter",
		"morelikethis": "moreLikeThis() is a condition: where moreLikeThis(id() = 'articles/1')",
	}
	refusedIncludes = map[string]string{
		"counters":        "include counters() is not there: Jay keeps no counters beside documents",
		"timeseries":      "include timeseries() is not there: Jay keeps no time series",
		"revisions":       "include revisions() is not there yet",
		"cmpxchg":         "include cmpxchg() is not there: queries read no compare-exchange values; read them by their keys",
		"suggestions":     "suggestions stand in select: select suggest(Text, 'acron')",
		"id":              "include id() is not there: the document itself is the answer",
		"morelikethis":    "moreLikeThis() is a condition: where moreLikeThis(id() = 'articles/1')",
		"facets":          "include facets() is not there yet",
		"compareexchange": "include compareexchange() is not there: queries read no compare-exchange values; read them by their keys",
	}
	refusedAnywhere = map[string]string{
		"array": "array() is not there: a path through an array already groups and looks by each element",
	}
	refusedNamespaces = map[string]string{
		"spatial": "there is no spatial function of this name here: conditions are spatial.within, intersects, contains and disjoint, shapes circle, box, point and wkt, and spatial.distance is a number",
		"ai":      "ai functions are not there",
	}
)

// hints say what to write instead of words and symbols of other query languages.
var hints = map[string]string{
	"is":    "write = null or != null",
	"like":  "write startsWith(), endsWith(), contains() or regex()",
	"ilike": "write startsWith(), endsWith(), contains() or regex()",
	"not":   "not stands before a condition: where not Name in ('a', 'b')",
	"{":     "JavaScript stands behind select: select { Name: this.Name }",
	"&&":    "write and",
	"||":    "write or",
	"&":     "write and",
	"|":     "write or",
	"!":     "write !=, or not before a condition",
	";":     "a query is one, and ends without a sign",
	"--":    "a comment begins with //",
	"#":     "a comment begins with //",
	"?":     "a parameter is $name",
	":":     "a parameter is $name",
	"-":     "a name with a hyphen stands in quotes",
	"/":     "a name with a slash stands in quotes",
}

// hintFor returns a hint what to write instead of t: that of the table of hints, or
// one of words that is spelled nearly like t.
func hintFor(t token, words []string) string {
	switch t.kind {
	case tokenWord, tokenSymbol:
		if hint := hints[strings.ToLower(t.text)]; hint != "" {
			return hint
		}
	}
	if t.kind != tokenWord {
		return ""
	}
	return nearestWord(t.text, words)
}

// refuseCall returns the error for a function that Jay lacks, or that is not valid
// here. tok is its name.
func (p *parser) refuseCall(refused map[string]string, expected string) error {
	name := strings.ToLower(p.tok.text)
	for _, table := range []map[string]string{refused, refusedAnywhere, refusedConditions, refusedOrders, refusedSelects} {
		if message := table[name]; message != "" {
			return p.fail(p.tok.offset, "%s", message)
		}
	}

	err := p.fail(p.tok.offset, "there is no function %s() here", p.tok.text).expecting(expected)
	if reserved(name) {
		err = p.fail(p.tok.offset, "unexpected %s", p.tok).expecting(expected)
	}
	words := append([]string{"exact", "boost", "fuzzy", "proximity", "id", "count", "sum", "avg", "min", "max"}, conditionCalls...)
	for _, f := range functions {
		words = append(words, f.name)
	}
	return err.hinting(nearestWord(p.tok.text, words))
}

// nearestWord returns a hint that one of words was perhaps meant, or "".
func nearestWord(word string, words []string) string {
	near := spelling.Nearest(word, words)
	if near == "" {
		return ""
	}
	return "did you mean " + near + "?"
}
