package odd_test

import (
	"fmt"
	"strings"
)

var (
	paths       = []string{"A", "A", "B", "B", "N", "N", "M", "M", "T", "Tags", "Tags", "Tags[]", "Tags[0]", "Lines.P", "Lines[].Q", "Lines[0].P", "Lines", "O", "O.N", "O.T", "O.O.N", "At", "Lat", "V", "Ref", "U", "a", "'x.y'", "'it''s'", "'First Name'", "'from'", "Nil", "nowhere", "A.A", "A.N", "@metadata.Tag", "@metadata.@collection", "'q\\\"q'", "'@at'", "''"}
	expressions = []string{"N * M", "N / M", "N + M", "coalesce(N, M, 0)", "length(T)", "lower(B)", "concat(B, '-', M)", "if(M > 2, 'big', B)", "year(At)", "day(At as utc)", "load(Ref).B", "load(Ref).N", "abs(N)", "round(N, 1)", "N % M", "-M", "join(Tags, ',')", "dateTrunc('month', At)", "datePart('year', At)", "substring(T, 1, 3)", "text(N)", "number(A)", "M * M - M", "B + B", "replace(T, 'a', 'b')", "dateDiff('days', At, '2026-01-31T00:00:00Z')", "upper(T)", "trim(B)", "floor(N / M)", "size", "id()"}
	operators   = []string{"=", "=", "=", "!=", "<", "<=", ">", ">=", "<>", "=="}
	searches    = []string{"oak", "oak acorn", "acorn*", "\"oak leaf\"", "the", "-oak", "o?k", "oak~", "oak~1", "+oak leaf", "é", "straße", "日本語", "", "*", "😀", "wind-fallen", "\"oak tree\"~3", "-", "leaf -oak", "\\\"", "oak^2"}
	areas       = []string{"spatial.circle(5, 52.52, 13.4)", "spatial.circle(1000, 0, 0, 'miles')", "spatial.circle(500, 52.52, 13.4, 'meters')", "spatial.box(52, 13, 53, 14)", "spatial.box(-90, -180, 90, 180)", "spatial.wkt('POLYGON((13 52, 14 52, 14 53, 13 52))')", "spatial.point(52.52, 13.4)", "spatial.wkt('POINT(13.4 52.52)')", "spatial.circle(0, 52.52, 13.4)", "spatial.wkt('POLYGON EMPTY')", "spatial.circle(-1, 0, 0)", "spatial.circle(30000, 0, 0)"}
	places      = []string{"spatial.point(Lat, Lng)", "Place", "spatial.wkt(Place)", "A"}
)

// field makes a field, and sometimes an expression.
func (o *odds) field() string {
	switch n := o.IntN(100); {
	case n < 78:
		return o.pick(paths...)
	case n < 82:
		return o.pick("At as date", "At as utc", "A as date")
	default:
		return o.pick(expressions...)
	}
}

// operand makes a value of a query, or a parameter.
func (o *odds) operand(q *rql) string {
	value := o.scalar()
	if o.chance(6) {
		value = o.value(1)
	}
	return o.literal(q, value)
}

// literal writes a value of JSON as one of a query, or as a parameter.
func (o *odds) literal(q *rql, value string) string {
	if o.chance(50) || strings.ContainsAny(value, "[{\\") || len(value) > 100 {
		return q.bind(value)
	}
	return value
}

// bind makes a parameter.
func (q *rql) bind(value string) string {
	name := fmt.Sprintf("p%d", len(q.values)+1)
	q.values[name] = value
	return "$" + name
}

// near makes a value that documents often have at a field.
func (o *odds) near(q *rql, field string) string {
	switch {
	case o.chance(15):
		return o.operand(q)
	case strings.HasPrefix(field, "At") || strings.HasPrefix(field, "A as"):
		return o.literal(q, o.pick(dates...))
	case strings.HasPrefix(field, "M"), strings.Contains(field, "Q"), strings.Contains(field, " * "), strings.Contains(field, "length"):
		return o.literal(q, o.pick("1", "2", "3", "0", "2.5", "4"))
	case strings.HasPrefix(field, "N"), strings.HasSuffix(field, "N"):
		return o.literal(q, o.pick(oddNumber...))
	case strings.HasPrefix(field, "B"), strings.HasPrefix(field, "load"), strings.HasPrefix(field, "if"), strings.HasPrefix(field, "Tags"):
		return o.literal(q, o.pick(`"a"`, `"b"`, `"B"`, `"c"`, `"big"`, "null", "1"))
	case strings.HasPrefix(field, "year"):
		return o.literal(q, o.pick(`"2026"`, `"2025"`))
	case field == "id()" || field == "Ref":
		return o.literal(q, `"`+o.id()+`"`)
	}
	return o.operand(q)
}

// between makes a condition with two bounds, which mostly are of one kind.
func (o *odds) between(q *rql, f string) string {
	kind := func(operand string) byte {
		value := operand
		if strings.HasPrefix(operand, "$") {
			value = q.values[operand[1:]]
		}
		if value[0] == '-' || value[0] >= '0' && value[0] <= '9' {
			return '0'
		}
		return value[0]
	}
	lo, hi := o.near(q, f), o.near(q, f)
	for range 8 {
		if kind(lo) == kind(hi) {
			break
		}
		hi = o.near(q, f)
	}
	return f + " between " + lo + " and " + hi
}

// condition makes a condition.
func (o *odds) condition(q *rql, depth int) string {
	if depth > 0 && o.chance(30) {
		switch o.IntN(5) {
		case 0:
			return "not (" + o.condition(q, depth-1) + ")"
		case 1:
			return "(" + o.condition(q, depth-1) + " or " + o.condition(q, depth-1) + ")"
		case 2:
			return "(" + o.condition(q, depth-1) + " and " + o.condition(q, depth-1) + ")"
		case 3:
			return "exact(" + o.condition(q, depth-1) + ")"
		default:
			return "(" + o.condition(q, depth-1) + " or not " + o.condition(q, depth-1) + ")"
		}
	}
	f := o.field()
	switch n := o.IntN(100); {
	case n < 34:
		return f + " " + o.pick(operators...) + " " + o.near(q, f)
	case n < 41:
		return o.between(q, f)
	case n < 48:
		all := o.pick("", "", "all ")
		if o.chance(25) {
			return f + " " + all + "in (" + q.bind(o.array(func() string { return o.scalar() })) + ")"
		}
		list := make([]string, o.IntN(4))
		for i := range list {
			list[i] = o.near(q, f)
		}
		return f + " " + all + "in (" + strings.Join(list, ", ") + ")"
	case n < 54:
		return o.pick("startsWith", "endsWith", "contains", "startsWith") + "(" + o.pick("A", "B", "T", "Tags", "At", "id()", "O.T") + ", " + o.literal(q, o.pick(`""`, `"a"`, `"A"`, `"2026"`, `"oak"`, `"odd/1"`, `"ä"`, `"\u0000"`, `"k"`)) + ")"
	case n < 56:
		return "regex(" + o.pick("A", "B", "T") + ", " + o.pick("'^a'", "'.*'", "'(?i)OAK'", "'['", "''", "'a|b'") + ")"
	case n < 66:
		return o.search(q)
	case n < 71:
		return "exists(" + f + ")"
	case n < 75:
		return "size(" + o.pick("Tags", "Lines", "A", "O", "nowhere", "V") + ") " + o.pick(operators...) + " " + o.pick("0", "1", "2", "2.5", "-1", "'a'")
	case n < 79:
		return "type(" + o.pick("A", "Tags", "Tags[]", "N", "O", "Nil", "nowhere", "load(Ref)", "Lines[0]") + ") " + o.pick("=", "!=") + " " + o.pick("'null'", "'boolean'", "'number'", "'string'", "'array'", "'object'", "'x'")
	case n < 84:
		return "elemMatch(" + o.pick("Lines", "Lines", "Tags", "A", "O") + ", " + o.pick("P = 1", "P = 1 and Q > 1", "Q between 1 and 2", "P = 'a' or Q = 2", "P < Q", "exists(R)", "not P = 1", "P * Q > 2", "P in (1, 'a')") + ")"
	case n < 89:
		return f + " " + o.pick(operators...) + " " + o.pick("N", "M", "B", "A", "At", "O.N", "Lines.Q", "field('x.y')")
	case n < 94:
		return "spatial." + o.pick("within", "intersects", "contains", "disjoint") + "(" + o.pick(places...) + ", " + o.pick(areas...) + ")"
	case n < 97:
		return "vector.search(V, " + q.bind(o.pick(vectors...)) + o.pick("", ", 0.5", ", 0.99", ", -1", ", 2") + ")"
	case n < 98:
		if o.chance(40) {
			return "moreLikeThis(" + o.pick("id() = 'odd/1'", "id() = 'odd/2'", "id() = 'none'", "'{\"T\":\"oak oak acorn leaf\"}'", "'[]'") + ", " + q.bind(o.pick(`{"MinimumTermFrequency":1,"MinimumDocumentFrequency":1,"Fields":["T"]}`, `{"MinimumDocumentFrequency":1,"Fields":["T","B"]}`, `{"MinimumTermFrequency":1,"Fields":["T"],"StopWordsDocumentId":"odd/3"}`, `{}`, `null`, `{"Fields":[]}`)) + ")"
		}
		return "fuzzy(" + o.pick("B", "T", "A") + " = " + o.pick("'oak'", "'a'", "''") + ", " + o.pick("0.5", "0.9", "0", "1") + ")"
	default:
		return o.pick("true", "false", "true and true")
	}
}

// search makes a condition on words.
func (o *odds) search(q *rql) string {
	words := o.literal(q, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(o.pick(searches...))+`"`)
	field := o.pick("T", "T", "B", "A", "Tags", "O.T")
	switch o.IntN(8) {
	case 0:
		return "search(" + field + ", " + words + ", and)"
	case 1:
		return "search(" + field + ", " + words + ", or, " + o.pick("'english'", "'ngram(3)'", "'keyword'", "'whitespace'", "'none'") + ")"
	case 2:
		return "lucene(" + field + ", " + o.pick("'oak AND acorn'", "'(oak OR leaf) AND NOT tree'", "'oa*'", "'\"oak leaf\"'", "''", "'a:b'", "'('", "'oak~ leaf^2'") + ")"
	case 3:
		return "boost(search(" + field + ", " + words + "), 2)"
	case 4:
		return "proximity(search(" + field + ", '\"oak leaf\"'), " + o.pick("0", "2", "100") + ")"
	case 5:
		return "fuzzy(search(" + field + ", " + words + "), 0.6)"
	}
	return "search(" + field + ", " + words + ")"
}
