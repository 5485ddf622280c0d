package jay

import (
	"fmt"

	"github.com/jaydb/jay/internal/builder"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/query"
)

// Condition is what a query asks of a document. The zero value matches every
// document.
//
// A field is a path such as "Address.City" or "Lines.Product", which reaches the
// products of all lines; "id()" is the document's ID. A comparison is true if any
// value that the field reaches satisfies it. Values are compared exactly, and text
// case-sensitively unless IgnoreCase says otherwise; docs/queries/conditions.md has the order
// of all values.
//
// A time.Time makes the comparison one of instants: the field is read as a date, so that
// the zone and the digits of the stored text do not matter, and what is no date-time of
// RFC 3339 is equal to no instant. "At as date" does the same for text: Ge("At as date",
// "2026-01-31T00:00:00Z"). Text without it is compared as text. "At as utc" takes text without an offset,
// such as "2026-01-31T00:00:00", too, as an instant in UTC.
//
// A mistake, such as a path that does not parse, a value that JSON cannot
// represent, or more than the bounds of docs/limits.md, is kept in the Condition:
// the query returns it as ErrQuery.
type Condition builder.Condition

func (c Condition) inner() builder.Condition { return builder.Condition(c) }

// compare compares what a field reaches with a value, or with another field.
func compare(field string, value any, op query.Op) Condition {
	if other, ok := value.(FieldRef); ok {
		return Condition(builder.CompareFields(field, other.path, op))
	}
	return Condition(builder.Compare(field, value, op))
}

// FieldRef is a field of the same document, to compare another one with. Field makes it.
type FieldRef struct{ path string }

// Field is a field to compare another field of the same document with, in place of a
// value: Gt("Paid", Field("Total")). It stands in Eq, Ne, Lt, Le, Gt and Ge.
//
// The comparison is true if a value that the one field reaches stands in the relation
// to a value that the other reaches, both scalars of one kind. It is false where one of
// them is missing, Ne is true there, and null equals null. If one of the two is read as
// a date, so is the other. In ElemMatch both are fields of the element. No index finds
// the documents: the comparison is tested on every candidate.
func Field(path string) FieldRef { return FieldRef{path} }

// MarshalJSON returns an error: a field is no value, to be stored or to be a member of
// a list.
func (f FieldRef) MarshalJSON() ([]byte, error) {
	return nil, fmt.Errorf("%w: Field(%q) is no value: it stands in Eq, Ne, Lt, Le, Gt and Ge", ErrUsage, errs.Shorten(f.path))
}

// Eq is true if the field reaches a value equal to this one. Here and in Ne, Lt, Le, Gt
// and Ge, a Field in place of the value is another field of the same document.
func Eq(field string, value any) Condition { return compare(field, value, query.Equal) }

// Ne is the negation of Eq. It is true for a field that reaches nothing.
func Ne(field string, value any) Condition { return Not(Eq(field, value)) }

// Lt is true if the field reaches a value of the same kind below this one.
func Lt(field string, value any) Condition { return compare(field, value, query.Less) }

// Le is true if the field reaches a value of the same kind at or below this one.
func Le(field string, value any) Condition { return compare(field, value, query.LessOrEqual) }

// Gt is true if the field reaches a value of the same kind above this one.
func Gt(field string, value any) Condition { return compare(field, value, query.Greater) }

// Ge is true if the field reaches a value of the same kind at or above this one.
func Ge(field string, value any) Condition { return compare(field, value, query.GreaterOrEqual) }

// Between is true if the field reaches one value from lo to hi, both included.
func Between(field string, lo, hi any) Condition {
	return Condition(builder.Between(field, lo, hi))
}

// In is true if the field reaches one of values.
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

// Matches is true if the field reaches text in which the regular expression
// matches. Its syntax is that of package regexp, whose time is linear in the
// text.
func Matches(field, pattern string) Condition {
	return Condition(builder.OnText(field, pattern, func(f query.Field) query.Expr { return query.Regexp{Field: f, Pattern: pattern} }))
}

// Search is true if the texts that the field reaches have the words of search: one of them, or all with AllWords. It is what people
// type, such as
//
//	oak tre* "fallen leaves" -rotten
//
// where "oak leaves"~5 asks for words near each other, w?nd* for words with other characters, maple~ for words that differ by up to two
// characters, and +ripe and -rotten for words that must, and must not, be there. Case and width of characters do not matter, nor do signs between
// words. All texts of an array are one, but no phrase reaches from one element into the next.
//
// An index of the kind "text" with the same analyzer answers it. Without one the query looks at all documents that other conditions leave.
func Search(field, search string, opts ...SearchOption) Condition {
	return Condition(builder.OnText(field, search, func(f query.Field) query.Expr {
		e := query.Search{Field: f, Text: search}
		for _, opt := range opts {
			opt(&e)
		}
		return e
	}))
}

// SearchOption changes what a Search finds.
type SearchOption func(*query.Search)

// AllWords makes Search ask for all words. The default is one of them.
func AllWords() SearchOption { return func(e *query.Search) { e.All = true } }

// WithAnalyzer makes Search take those words that an analyzer makes of texts and of the search. The default is "standard"; a language such as "english"
// finds other forms of a word, too, and leaves out the most frequent words; "simple" has letters only, "whitespace" and "keyword" know
// case, and "ngram" finds parts of words. query.Analyzers has all names. Another name is ErrQuery.
func WithAnalyzer(name string) SearchOption { return func(e *query.Search) { e.Analyzer = name } }

// Lucene is true of what a query in the syntax of Lucene's classic query parser finds, such as
//
//	(oak OR ash) AND "fallen leaves"~5 -rotten Title:maple~0.7
//
// in which words that name no field are those of the texts of the given one. It is made of Search, And, Or and Not, so an index of the kind "text" answers it as it
// answers those, and scores have them; WithAnalyzer says which words texts have. docs/search.md has the syntax; ranges such as [a TO b] are ErrQuery.
func Lucene(field, search string, opts ...SearchOption) Condition {
	return Condition(builder.Lucene(field, search, func(e *query.Search) {
		for _, opt := range opts {
			opt(e)
		}
	}))
}

// Fuzzy is true of what differs a little from what c asks for, which is Eq with a text, or Search. The similarity is a number from 0 up to but without 1: Fuzzy(Eq("Name",
// "Ernst"), 0.7) is true of a text if less than 30 percent of the shorter of the two, in characters, must be put in, left out or replaced to make one of the other. Of
// Search each word may differ so, by two characters at most. No index answers Fuzzy of Eq. The measure is that of Lucene.
func Fuzzy(c Condition, similarity float64) Condition {
	return Condition(builder.Fuzzy(c.inner(), similarity))
}

// Proximity is true of texts that have all words of c, which is Search, near each other: in any order, with up to so many other words between them, 50 at
// most. Proximity(Search("Text", "oak leaves"), 5) is Search("Text", `"oak leaves"~5`).
func Proximity(c Condition, words int) Condition {
	return Condition(builder.Proximity(c.inner(), words))
}

// MoreLikeThis is true of documents that have words which tell much of another one: those that it has often, and few others have. With
// OrderBy(Score) the most similar come first; the document itself is left out. The words are chosen when the query begins; pages after the first have
// the same ones. If the document is not there, the query is ErrQuery and ErrNotFound when it runs.
//
// The words are of the fields of an index of kind text, or of those of the options. Without such an index all documents are read once more, to know
// how frequent words are.
func MoreLikeThis(id string, o MoreLikeThisOptions) Condition {
	return Condition(builder.MoreLike(query.MoreLike{ID: id, Options: o}))
}

// MoreLikeThisOptions choose the words of MoreLikeThis: see MoreLikeOptions in package query. The zero value takes the 25 words that tell most, of those
// that the document has twice and five documents have. Its fields:
//
//	Fields                           []string  none is those of an index of words
//	MinimumTermFrequency             int       how often the document has a word at least; 0 is 2
//	MinimumDocumentFrequency         int       how many documents have it at least; 0 is 5
//	MaximumDocumentFrequency         int       and at most; 0 is no bound
//	MaximumDocumentFrequencyPercent  int       and at most, of all documents; 0 is no bound
//	MinimumWordLength                int       in characters
//	MaximumWordLength                int       in characters; 0 is 64 bytes
//	MaximumQueryTerms                int       how many words are searched for at most; 0 is 25
//	MaximumNumberOfTokensParsed      int       how many words of each field are looked at; 0 is 5,000
//	Boost                            bool      words count for scores by how much they tell
//	BoostFactor                      float64   what the word counts that tells most, with Boost; 0 is 1
//	StopWordsDocumentID              string    of a document with words to leave out, in the array StopWords
type MoreLikeThisOptions = query.MoreLikeOptions

// Score is the field of an order and of a column that says how well a document matches the searches of the query: OrderBy(Score) has the
// best first, OrderBy("-score()") the worst. See Boost and docs/search.md.
const Score = "score()"

// Boost is true if c is, and multiplies what the searches in c count for Score by a number above 0 and up to 1,000. A condition
// without a search counts so much where it is true: Or(Search("Text", "oak"), Boost(Eq("Featured", true), 3)).
func Boost(c Condition, by float64) Condition { return Condition(builder.Boost(c.inner(), by)) }

// Shape is what the places of documents lie to, in Within, Intersects, Covers and Disjoint. Circle, Box, Point and WKT make it. A mistake in it, such
// as a latitude of 91, is kept: the query returns it as ErrQuery and a *PlaceError.
type Shape struct {
	shape query.Shape
	err   error
}

// PlaceError says why numbers or a text are no place: see package query. Its fields:
//
//	Rule   string  such as "a latitude is between -90 and 90"
//	Value  string  what breaks it
type PlaceError = query.PlaceError

// Units of distance, for Circle: 5*Mile.
const (
	Kilometer = 1.0
	Mile      = 1.609344
	Meter     = 0.001
)

// Circle is all points up to radius, in kilometers, from a point: Circle(52.52, 13.4, 5*Mile).
func Circle(latitude, longitude, radius float64) Shape {
	s, err := query.CircleShape(latitude, longitude, radius, "")
	return Shape{s, err}
}

// Box is all points between two parallels and two meridians. It goes east from west, over the antimeridian if that is where east is.
func Box(south, west, north, east float64) Shape {
	s, err := query.BoxShape(south, west, north, east)
	return Shape{s, err}
}

// Point is one point.
func Point(latitude, longitude float64) Shape {
	s, err := query.PointShape(latitude, longitude)
	return Shape{s, err}
}

// WKT is the shape of a text of WKT, longitude first, such as "POLYGON((13 52, 14 52, 14 53, 13 52))". The radius of a CIRCLE is in kilometers.
func WKT(text string) Shape {
	s, err := query.WKTShape(text, "")
	return Shape{s, err}
}

// Within is true if a place that the field reaches lies in a shape. The field is that of a text of WKT or an object of GeoJSON, or
// "spatial.point(Lat, Lng)" of two numbers. What is no place is passed over. An index of kind "places" on the field finds the documents; docs/places.md
// has the rules.
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

// Near is the field of an order and of a column that says how far the nearest place that a field reaches is from a point, in kilometers: OrderBy(Near("Location",
// 52.52, 13.4)) has the nearest first, and documents without a place last. With a limit and an index of kind "places" it reads little more than the answers.
func Near(field string, latitude, longitude float64) string {
	return query.DistanceText(field, latitude, longitude)
}

// Vector is a field of a document that is a vector, such as an embedding of a text. Its JSON is the base64 of its numbers, little-endian, which takes half the
// space of an array and a fraction of the time to read. It reads arrays, base64, and the objects of RavenDB's clients. A field of []float32, an
// array in JSON, is a vector for queries, too: see package query.
type Vector = query.Numbers

// VectorError says why numbers or a value are no vector: see package query. Its fields:
//
//	Rule   string  such as "a vector has at most 8192 numbers"
//	Value  string  what breaks it
type VectorError = query.VectorError

// Int8 returns a vector in a quarter of the space, as RavenDB's clients write it: a signed byte for each number, and the greatest number. A member of the type
// []byte is written as base64, and "embedding.i8(Embedding)" is the field of Similar, Nearest and Distance, whose vector is packed in the same way.
// It returns nil for numbers that are no vector.
func Int8(v []float32) []byte { return query.PackVector("i8", v) }

// Bits returns the signs of a vector, as RavenDB's clients write them: a bit for each number, 1 for one that is not negative. The field is "embedding.i1(Embedding)"; vectors
// of bits are as similar as the share of their bits that are equal. It returns nil for numbers that are no vector.
func Bits(v []float32) []byte { return query.PackVector("i1", v) }

// Similar is true if a vector that the field reaches is at least so similar to a vector: by the cosine of the angle between them, from -1 to 1. What is no
// vector, and a vector with another number of dimensions or only zeros, is passed over. A mistake in the vector is returned by the
// query, as ErrQuery and a *VectorError.
func Similar(field string, to []float32, minimum float64) Condition {
	return Condition(builder.Similar(field, to, minimum))
}

// Nearest is the field of an order and of a column that says how far the nearest vector that a field reaches is from a vector: 1 less the cosine of the angle
// between them. OrderBy(Nearest("Embedding", v)).Limit(10) has the ten most similar documents, and those without a vector last.
func Nearest(field string, to []float32) string { return query.VectorDistanceText(field, to, "") }

// Distance is Nearest by a metric: "cosine", "dot", which is the product with its sign changed, or "euclidean".
func Distance(field string, to []float32, metric string) string {
	return query.VectorDistanceText(field, to, metric)
}

// Fuse is the field of an order by reciprocal ranks, which joins orders whose numbers cannot be compared, such as those of a search for words and of vectors:
//
//	db.Query("Notes").
//		Where(jay.Or(jay.Search("Text", "oak"), jay.Similar("Embedding", v, 0.6))).
//		OrderBy(jay.Fuse(jay.Score, jay.Nearest("Embedding", v))).
//		Limit(10)
//
// The rank of an answer in an order is its place there, 1 for the best; equal answers share a rank. The answers come by the sum of 1 / (60 + rank)
// over the orders, the greatest first. An answer without a number in an order, or without a score, has no rank there. All answers of the query are ranked, so the
// condition decides how long it takes. A query has no other order beside it, from 2 to 8 orders in it, and no cursor: use Skip.
func Fuse(orders ...string) string { return query.FusedText(orders) }

// Exists is true if the field is there, be it null or an empty array.
func Exists(field string) Condition {
	return Condition(builder.OnText(field, "", func(f query.Field) query.Expr { return query.Exists{Field: f} }))
}

// ElemMatch is true if one element of an array satisfies all conditions: that the field
// reaches an object of which they are true. Their fields are those of the element, so
// that ElemMatch("Lines", Eq("Product", "products/1-A"), Gt("Quantity", 5)) asks for one
// line with this product and this quantity; And of conditions on "Lines.Product" and
// "Lines.Quantity" is satisfied by two lines. Between does the same for elements that are
// numbers, texts or dates.
func ElemMatch(field string, conditions ...Condition) Condition {
	c := And(conditions...)
	if len(conditions) == 1 {
		c = conditions[0]
	}
	return Condition(builder.ElemMatch(field, c.inner()))
}

// Size is true if the field is an array whose number of elements stands in relation op
// to n: Size("Lines", ">=", 3). The relations are "=", "!=", "<", "<=", ">" and ">=". What
// is no array has no size, and only "!=" is true of it.
func Size(field, op string, n int) Condition {
	return Condition(builder.Size(field, op, n))
}

// Type is true if the field has a value of this type of JSON: "null", "boolean",
// "number", "string", "array" or "object". An array is of type "array" whatever its
// elements are; Type("Tags[]", "string") asks for one that is text.
func Type(field, jsonType string) Condition {
	return Condition(builder.Type(field, jsonType))
}

// And is true if all conditions are.
func And(conditions ...Condition) Condition {
	return Condition(builder.And(conditions, Condition.inner))
}

// Or is true if one of the conditions is.
func Or(conditions ...Condition) Condition {
	return Condition(builder.Or(conditions, Condition.inner))
}

// Not is true if the condition is not.
func Not(c Condition) Condition {
	return Condition(builder.Not(c.inner()))
}

// IgnoreCase makes every comparison of text in c disregard case.
func IgnoreCase(c Condition) Condition {
	return Condition(builder.IgnoreCase(c.inner()))
}
