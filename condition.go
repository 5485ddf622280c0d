package jay

import (
	"fmt"

	"github.com/jaydb/jay/internal/builder"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/query"
)

// Condition is a predicate on documents. The zero value matches every document.
//
// A field is a path such as "Address.City" or "Lines.Product", which reaches the products of all lines; "id()"
// is the document's ID. A comparison is true if any value that the field reaches satisfies it. Comparisons are
// exact, and case-sensitive for text unless IgnoreCase is used. docs/queries/conditions.md has the order of all
// values.
//
// A comparison with a time.Time compares instants: it reads the field as a date, so the zone and the digits of
// the stored text do not matter. A value that is not a date-time of RFC 3339 equals no instant. "At as date"
// makes a comparison with text compare instants, too: Ge("At as date", "2026-01-31T00:00:00Z"). Without "as
// date", text is compared as text. "At as utc" also reads text without an offset, such as
// "2026-01-31T00:00:00", as an instant in UTC.
//
// A Condition keeps an error, such as a path that does not parse, a value that JSON cannot represent, or an
// exceeded bound of docs/limits.md. The query then returns this error as ErrQuery.
type Condition builder.Condition

func (c Condition) inner() builder.Condition { return builder.Condition(c) }

// compare compares what a field reaches with a value, or with another field.
func compare(field string, value any, op query.Op) Condition {
	if other, ok := value.(FieldRef); ok {
		return Condition(builder.CompareFields(field, other.path, op))
	}
	return Condition(builder.Compare(field, value, op))
}

// FieldRef is a reference to a field of the same document, for a comparison. Field returns it.
type FieldRef struct{ path string }

// Field returns a reference to a field of the same document, for use in place of a value: Gt("Paid",
// Field("Total")). Eq, Ne, Lt, Le, Gt and Ge accept it.
//
// The comparison is true if a value that one field reaches has the relation to a value that the other field
// reaches, and both are scalars of one kind. If either field is missing, Ne is true, and the other comparisons
// are false. null equals null. If one of the two fields is read as a date, so is the other. In ElemMatch both
// are fields of the element. No index can serve the comparison: the query tests it on every candidate.
func Field(path string) FieldRef { return FieldRef{path} }

// MarshalJSON returns an error: a FieldRef is not a value, and cannot be stored or be a member of a list.
func (f FieldRef) MarshalJSON() ([]byte, error) {
	return nil, fmt.Errorf("%w: Field(%q) is no value: it stands in Eq, Ne, Lt, Le, Gt and Ge", ErrUsage, errs.Shorten(f.path))
}

// Eq is true if the field reaches a value equal to value. In Eq, Ne, Lt, Le, Gt and Ge, the value may be a
// Field, which is another field of the same document.
func Eq(field string, value any) Condition { return compare(field, value, query.Equal) }

// Ne is the negation of Eq. It is true for a field that reaches nothing.
func Ne(field string, value any) Condition { return Not(Eq(field, value)) }

// Lt is true if the field reaches a value of the same kind that is less than value.
func Lt(field string, value any) Condition { return compare(field, value, query.Less) }

// Le is true if the field reaches a value of the same kind that is less than or equal to value.
func Le(field string, value any) Condition { return compare(field, value, query.LessOrEqual) }

// Gt is true if the field reaches a value of the same kind that is greater than value.
func Gt(field string, value any) Condition { return compare(field, value, query.Greater) }

// Ge is true if the field reaches a value of the same kind that is greater than or equal to value.
func Ge(field string, value any) Condition { return compare(field, value, query.GreaterOrEqual) }

// Between is true if the field reaches one value from lo to hi, both included.
func Between(field string, lo, hi any) Condition {
	return Condition(builder.Between(field, lo, hi))
}

// In is true if the field reaches at least one of values.
func In[V any](field string, values ...V) Condition {
	return Condition(builder.In(field, values, false))
}

// AllIn is true if the field reaches each of values.
func AllIn[V any](field string, values ...V) Condition {
	return Condition(builder.In(field, values, true))
}

// StartsWith is true if the field reaches text that begins with prefix.
func StartsWith(field, prefix string) Condition {
	return Condition(builder.OnText(field, prefix, func(f query.Field) query.Expr { return query.StartsWith{Field: f, Text: prefix} }))
}

// EndsWith is true if the field reaches text that ends with suffix.
func EndsWith(field, suffix string) Condition {
	return Condition(builder.OnText(field, suffix, func(f query.Field) query.Expr { return query.EndsWith{Field: f, Text: suffix} }))
}

// Contains is true if the field reaches text that contains part.
func Contains(field, part string) Condition {
	return Condition(builder.OnText(field, part, func(f query.Field) query.Expr { return query.Contains{Field: f, Text: part} }))
}

// Matches is true if the field reaches text that contains a match of the regular expression pattern. The syntax
// is the syntax of package regexp; matching takes time linear in the length of the text.
func Matches(field, pattern string) Condition {
	return Condition(builder.OnText(field, pattern, func(f query.Field) query.Expr { return query.Regexp{Field: f, Pattern: pattern} }))
}

// Search is true if the texts that the field reaches contain one of the words of search, or all of them with
// AllWords. The search is text that a user types, such as
//
//	oak tre* "fallen leaves" -rotten
//
// In a search, "oak leaves"~5 matches words near each other, w?nd* matches words by wildcards, maple~ matches
// words that differ by up to two characters, +ripe is a required word, and -rotten is an excluded word. Search
// ignores the case and the width of characters, and punctuation between words. All texts of an array count as
// one text, but a phrase does not extend from one element into the next.
//
// An index of the kind "text" with the same analyzer serves a Search. Without such an index the query examines
// all documents that satisfy the other conditions.
func Search(field, search string, opts ...SearchOption) Condition {
	return Condition(builder.OnText(field, search, func(f query.Field) query.Expr {
		e := query.Search{Field: f, Text: search}
		for _, opt := range opts {
			opt(&e)
		}
		return e
	}))
}

// SearchOption is an option of Search and Lucene.
type SearchOption func(*query.Search)

// AllWords makes Search require all words. By default one of the words is enough.
func AllWords() SearchOption { return func(e *query.Search) { e.All = true } }

// WithAnalyzer sets the analyzer that makes words of the texts and of the search. The default is "standard". A
// language such as "english" also finds other forms of a word, and ignores the most frequent words. "simple"
// uses letters only, "whitespace" and "keyword" are case-sensitive, and "ngram" finds parts of words.
// query.Analyzers lists all names. The query returns ErrQuery for another name.
func WithAnalyzer(name string) SearchOption { return func(e *query.Search) { e.Analyzer = name } }

// Lucene is true for documents that match a query in the syntax of Lucene's classic query parser, such as
//
//	(oak OR ash) AND "fallen leaves"~5 -rotten Title:maple~0.7
//
// Words without a field name are searched in field. Lucene translates the query into Search, And, Or and Not,
// so an index of the kind "text" serves it in the same way, and the searches count for scores. WithAnalyzer
// sets the analyzer of the texts. docs/search.md has the syntax. Ranges such as [a TO b] are ErrQuery.
func Lucene(field, search string, opts ...SearchOption) Condition {
	return Condition(builder.Lucene(field, search, func(e *query.Search) {
		for _, opt := range opts {
			opt(e)
		}
	}))
}

// Fuzzy is true for texts that are similar to the text of c, which must be Eq with a text, or Search. The
// similarity is at least 0 and less than 1. Fuzzy(Eq("Name", "Ernst"), 0.7) is true for a text if the number of
// characters to insert, delete or replace, to make one text of the other, is less than 30 percent of the length
// of the shorter text. In a Search each word may differ in this way, by at most two characters. No index serves
// Fuzzy of Eq. The measure is Lucene's.
func Fuzzy(c Condition, similarity float64) Condition {
	return Condition(builder.Fuzzy(c.inner(), similarity))
}

// Proximity is true for texts that contain all words of c, which must be a Search, near each other: in any
// order, with up to the given number of other words between them. That number is at most 50.
// Proximity(Search("Text", "oak leaves"), 5) is the same as Search("Text", `"oak leaves"~5`).
func Proximity(c Condition, words int) Condition {
	return Condition(builder.Proximity(c.inner(), words))
}

// MoreLikeThis is true for documents that contain characteristic words of the document id: words that are
// frequent in this document, and rare in other documents. With OrderBy(Score) the most similar documents come
// first. The document itself is left out. The query chooses the words when it begins; pages after the first use
// the same words. If the document does not exist, a run of the query returns an error that is both ErrQuery and
// ErrNotFound.
//
// The words come from the fields of an index of kind text, or from the fields in the options. Without such an
// index the query reads all documents once more, to count the frequencies of words.
func MoreLikeThis(id string, o MoreLikeThisOptions) Condition {
	return Condition(builder.MoreLike(query.MoreLike{ID: id, Options: o}))
}

// MoreLikeThisOptions select the words of MoreLikeThis: see MoreLikeOptions in package query. The zero value
// selects the 25 most characteristic words, among the words that occur at least twice in the document and in at
// least five documents. Its fields:
//
//	Fields                           []string  the fields; none means the fields of an index of kind text
//	MinimumTermFrequency             int       least occurrences of a word in the document; 0 means 2
//	MinimumDocumentFrequency         int       least number of documents with the word; 0 means 5
//	MaximumDocumentFrequency         int       greatest number of documents with the word; 0 means no bound
//	MaximumDocumentFrequencyPercent  int       the same in percent of all documents; 0 means no bound
//	MinimumWordLength                int       in characters
//	MaximumWordLength                int       in characters; 0 means 64 bytes
//	MaximumQueryTerms                int       greatest number of words to search; 0 means 25
//	MaximumNumberOfTokensParsed      int       number of words of each field to examine; 0 means 5,000
//	Boost                            bool      characteristic words count more for scores
//	BoostFactor                      float64   weight of the most characteristic word, with Boost; 0 means 1
//	StopWordsDocumentID              string    ID of a document with words to ignore, in the array StopWords
type MoreLikeThisOptions = query.MoreLikeOptions

// Score is the name of a field for orders and columns: how well a document matches the searches of the query.
// OrderBy(Score) puts the best documents first, OrderBy("-score()") the worst. See Boost and docs/search.md.
const Score = "score()"

// Boost is true if c is true, and multiplies the contribution of the searches in c to Score by a number above 0
// and up to 1,000. A condition without a search contributes this number to Score if it is true:
// Or(Search("Text", "oak"), Boost(Eq("Featured", true), 3)).
func Boost(c Condition, by float64) Condition { return Condition(builder.Boost(c.inner(), by)) }

// Shape is a geometric shape for Within, Intersects, Covers and Disjoint. Circle, Box, Point and WKT return
// one. A Shape keeps an error, such as a latitude of 91: the query returns it as ErrQuery and a *PlaceError.
type Shape struct {
	shape query.Shape
	err   error
}

// PlaceError is the error for numbers or a text that are not a valid place: see package query. Its fields:
//
//	Rule   string  such as "a latitude is between -90 and 90"
//	Value  string  the value that breaks the rule
type PlaceError = query.PlaceError

// Units of distance, for Circle: 5*Mile.
const (
	Kilometer = 1.0
	Mile      = 1.609344
	Meter     = 0.001
)

// Circle returns the shape of all points at a distance of up to radius, in kilometers, from a point:
// Circle(52.52, 13.4, 5*Mile).
func Circle(latitude, longitude, radius float64) Shape {
	s, err := query.CircleShape(latitude, longitude, radius, "")
	return Shape{s, err}
}

// Box returns the shape of all points between two parallels and two meridians. The box extends from west
// eastward to east, across the antimeridian if necessary.
func Box(south, west, north, east float64) Shape {
	s, err := query.BoxShape(south, west, north, east)
	return Shape{s, err}
}

// Point returns the shape of one point.
func Point(latitude, longitude float64) Shape {
	s, err := query.PointShape(latitude, longitude)
	return Shape{s, err}
}

// WKT returns the shape that a text in WKT describes, longitude first, such as "POLYGON((13 52, 14 52, 14 53,
// 13 52))". The radius of a CIRCLE is in kilometers.
func WKT(text string) Shape {
	s, err := query.WKTShape(text, "")
	return Shape{s, err}
}

// Within is true if a place that the field reaches lies in a shape. The field reaches a text in WKT or an
// object in GeoJSON, or is "spatial.point(Lat, Lng)" for two fields with numbers. Values that are not places
// are ignored. An index of kind "places" on the field serves the condition. docs/places.md has the rules.
func Within(field string, s Shape) Condition {
	return Condition(builder.Place(field, query.PlaceWithin, s.shape, s.err))
}

// Intersects is true if a place that the field reaches has a point of a shape.
func Intersects(field string, s Shape) Condition {
	return Condition(builder.Place(field, query.PlaceIntersects, s.shape, s.err))
}

// Covers is true if a place that the field reaches has all points of a shape.
func Covers(field string, s Shape) Condition {
	return Condition(builder.Place(field, query.PlaceContains, s.shape, s.err))
}

// Disjoint is true if a place that the field reaches has no point of a shape.
func Disjoint(field string, s Shape) Condition {
	return Condition(builder.Place(field, query.PlaceDisjoint, s.shape, s.err))
}

// Near returns a field for orders and columns: the distance, in kilometers, from a point to the nearest place
// that the given field reaches. OrderBy(Near("Location", 52.52, 13.4)) puts the nearest documents first, and
// documents without a place last. With a limit and an index of kind "places" the query reads little more than
// the answers.
func Near(field string, latitude, longitude float64) string {
	return query.DistanceText(field, latitude, longitude)
}

// Vector is the type of a struct field that holds a vector, such as an embedding of a text. Its JSON is the
// base64 of its numbers, little-endian, which takes half the space of an array and a fraction of the time to
// read. A Vector decodes arrays, base64, and the objects of RavenDB's clients. Queries also accept a field of
// type []float32, an array in JSON, as a vector: see package query.
type Vector = query.Numbers

// VectorError is the error for numbers or a value that are not a valid vector: see package query. Its fields:
//
//	Rule   string  such as "a vector has at most 8192 numbers"
//	Value  string  the value that breaks the rule
type VectorError = query.VectorError

// Int8 returns a vector packed into a quarter of the space, in the format of RavenDB's clients: a signed byte
// for each number, and the greatest number. Store it in a member of type []byte, which is encoded as base64. In
// Similar, Nearest and Distance use the field "embedding.i8(Embedding)"; they pack their vector in the same
// way. Int8 returns nil for numbers that are not a valid vector.
func Int8(v []float32) []byte { return query.PackVector("i8", v) }

// Bits returns the signs of a vector, in the format of RavenDB's clients: a bit for each number, 1 for a number
// that is not negative. The field in conditions and orders is "embedding.i1(Embedding)". The similarity of two
// vectors of bits is the share of their bits that are equal. Bits returns nil for numbers that are not a valid
// vector.
func Bits(v []float32) []byte { return query.PackVector("i1", v) }

// Similar is true if the similarity of a vector that the field reaches to the vector to is at least minimum.
// The similarity is the cosine of the angle between the vectors, from -1 to 1. Values that are not vectors, and
// vectors with another number of dimensions or only zeros, are ignored. If to is invalid, the query returns
// ErrQuery and a *VectorError.
func Similar(field string, to []float32, minimum float64) Condition {
	return Condition(builder.Similar(field, to, minimum))
}

// Nearest returns a field for orders and columns: the distance from a vector to the nearest vector that the
// given field reaches. The distance is 1 minus the cosine of the angle between the vectors.
// OrderBy(Nearest("Embedding", v)).Limit(10) returns the ten most similar documents; documents without a vector
// come last.
func Nearest(field string, to []float32) string { return query.VectorDistanceText(field, to, "") }

// Distance is Nearest with another metric: "cosine", "dot", which is the negative dot product, or "euclidean".
func Distance(field string, to []float32, metric string) string {
	return query.VectorDistanceText(field, to, metric)
}

// Fuse returns a field for an order by reciprocal rank fusion. It combines orders whose numbers are not
// comparable, such as the scores of a text search and the distances of vectors:
//
//	db.Query("Notes").
//		Where(jay.Or(jay.Search("Text", "oak"), jay.Similar("Embedding", v, 0.6))).
//		OrderBy(jay.Fuse(jay.Score, jay.Nearest("Embedding", v))).
//		Limit(10)
//
// The rank of an answer in an order is its position, 1 for the best; equal answers share a rank. Answers are
// ordered by the sum of 1 / (60 + rank) over the orders, the greatest sum first. An answer without a number in
// an order, or without a score, has no rank in that order. The query ranks all its answers, so the condition
// determines the time that it takes. Fuse takes 2 to 8 orders, and must be the only order of the query. Such a
// query has no cursor: use Skip.
func Fuse(orders ...string) string { return query.FusedText(orders) }

// Exists is true if the field exists, even if it is null or an empty array.
func Exists(field string) Condition {
	return Condition(builder.OnText(field, "", func(f query.Field) query.Expr { return query.Exists{Field: f} }))
}

// ElemMatch is true if one element of an array satisfies all conditions: the field must reach one object for
// which all of them are true. The fields of the conditions are fields of the element: ElemMatch("Lines",
// Eq("Product", "products/1-A"), Gt("Quantity", 5)) requires one line with this product and this quantity,
// while two different lines can satisfy an And of conditions on "Lines.Product" and "Lines.Quantity". Between
// does the same for elements that are numbers, texts or dates.
func ElemMatch(field string, conditions ...Condition) Condition {
	c := And(conditions...)
	if len(conditions) == 1 {
		c = conditions[0]
	}
	return Condition(builder.ElemMatch(field, c.inner()))
}

// Size is true if the field is an array whose number of elements has the relation op to n: Size("Lines", ">=",
// 3). The relations are "=", "!=", "<", "<=", ">" and ">=". A value that is not an array has no size, and only
// "!=" is true for it.
func Size(field, op string, n int) Condition {
	return Condition(builder.Size(field, op, n))
}

// Type is true if the field has a value of this JSON type: "null", "boolean", "number", "string", "array" or
// "object". An array has the type "array" whatever its elements are; Type("Tags[]", "string") is true if one
// element is a string.
func Type(field, jsonType string) Condition {
	return Condition(builder.Type(field, jsonType))
}

// And is true if all conditions are true.
func And(conditions ...Condition) Condition {
	return Condition(builder.And(conditions, Condition.inner))
}

// Or is true if at least one of the conditions is true.
func Or(conditions ...Condition) Condition {
	return Condition(builder.Or(conditions, Condition.inner))
}

// Not is true if the condition is false.
func Not(c Condition) Condition {
	return Condition(builder.Not(c.inner()))
}

// IgnoreCase makes every comparison of text in c ignore case.
func IgnoreCase(c Condition) Condition {
	return Condition(builder.IgnoreCase(c.inner()))
}
