package jay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"strings"

	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/internal/builder"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/query"
)

// Query is a question to one collection, or to all documents, whose answers
// are values of T: *Document for DB.Query, the struct type for
// Collection.Query, what Select says, or Row for the text of DB.RQL.
//
// The zero value, and a Query returned beside an error, return that error or ErrUsage
// whenever they are run.
//
// A Query is immutable: each method returns a new one, so that one can be kept
// and refined. It does nothing until Iter, All, First, Count, Exists, Page or
// Explain runs it, each time on the database as it is at that moment. It is
// safe for concurrent use.
//
// Without an order the answers come in the order of the plan. Ties in the last
// field of an order come in the order of IDs, in the direction of that field.
type Query[T any] struct {
	def    builder.Definition
	decode func(r *exec.Row) (*T, error) // nil and nil for a row to be left out
}

// Row is one answer of a query.
type Row struct {
	// Document is the whole document, for queries that select nothing else.
	Document *Document
	// JSON is what was selected, as an object; nil for whole documents.
	JSON json.RawMessage
	// Included are the included documents that no earlier answer brought.
	Included []*Document
	// Highlights are the fragments that Query.Highlight has asked for, by the fields: empty, and not nil, where nothing was found in one.
	Highlights map[string][]string
	// Explanation says what the score of the answer is made of, if Query.ExplainScores has asked for it; else nil.
	Explanation *ScoreExplanation
	// ID is that of the document, of an answer with Highlights or an Explanation; else "".
	ID string
}

// newRow makes the public form of a row.
func newRow(r *exec.Row) (*Row, error) {
	row := &Row{Document: (*Document)(r.Document), JSON: r.JSON, Explanation: r.Explanation, ID: r.ID}
	for _, h := range r.Highlights {
		if row.Highlights == nil {
			row.Highlights = make(map[string][]string)
		}
		row.Highlights[h.Field] = h.Texts
	}
	for _, doc := range r.Included {
		row.Included = append(row.Included, (*Document)(doc))
	}
	return row, nil
}

// MarshalJSON returns what was selected, or the whole document with its
// @metadata. What was found in its texts and its score come last, as the members @highlights
// and @explanation, if they were asked for.
func (r *Row) MarshalJSON() ([]byte, error) {
	out := []byte(r.JSON)
	if r.Document != nil {
		var err error
		if out, err = r.Document.MarshalJSON(); err != nil {
			return nil, err
		}
	}
	if r.Highlights == nil && r.Explanation == nil {
		return out, nil
	}
	return builder.AppendMembers(out, r.Highlights, r.Explanation)
}

// Query asks for documents of a collection; "" asks for all documents.
func (db *DB) Query(collection string) Query[Document] { return documentQuery(&db.core, collection) }

// Query is DB.Query in a transaction. It sees what the transaction has written; the
// whole collection joins the read set.
func (t *Tx) Query(collection string) Query[Document] { return documentQuery(t.inner(), collection) }

func documentQuery(via builder.Source, collection string) Query[Document] {
	return Query[Document]{
		def:    builder.Definition{Via: via, Query: query.Query{From: collection}, Answers: reflect.TypeFor[Document]()},
		decode: func(r *exec.Row) (*Document, error) { return (*Document)(r.Document), nil },
	}
}

// Query asks for values of the collection. Fields of type time.Time, of pointers to it
// and of slices of it are compared, ordered and grouped by time, whatever the zone and
// the digits of their text in a document, as "At as date" does for documents. Text of
// RFC 3339 counts as a time there, and other text is ErrQuery; StartsWith and its like
// look at the text.
func (c *Collection[T]) Query() Query[T] {
	return Query[T]{
		def:    builder.Definition{Via: c.via.source(), Mapping: c.m, Query: query.Query{From: c.m.Collection}, Answers: reflect.TypeFor[T]()},
		decode: func(r *exec.Row) (*T, error) { return c.decode((*Document)(r.Document)) },
	}
}

// RQL returns the query of a text in RavenDB's query language, such as
//
//	from Orders as o where o.Total > $least order by o.Total desc limit 10
//
// docs/queries/rql.md has the grammar. params are the values of its parameters,
// without the dollar. Text compares without regard to case, unless exact() is
// around the comparison. A text that is no query is a *SyntaxError, and one with
// more conditions or values than docs/limits.md allows ErrQuery. A text with update { },
// which UpdateRQL reads, is a *SyntaxError that is ErrUpdateRQL.
func (db *DB) RQL(text string, params map[string]any) (Query[Row], error) {
	return parseRQL(&db.core, text, params)
}

// RQL is DB.RQL in a transaction.
func (t *Tx) RQL(text string, params map[string]any) (Query[Row], error) {
	return parseRQL(t.inner(), text, params)
}

func parseRQL(via builder.Source, text string, params map[string]any) (Query[Row], error) {
	q, err := query.Parse(text, params)
	if err != nil {
		return Query[Row]{def: builder.Definition{Err: err}}, err
	}
	return queryOf(via, q)
}

// queryOf returns a query that was parsed.
func queryOf(via builder.Source, q *query.Query) (Query[Row], error) {
	def, err := builder.Text(via, q)
	if err != nil {
		return Query[Row]{def: def}, err
	}
	return rowQuery(def), nil
}

// SyntaxError is returned for a query text that is not valid. errors.Is(err,
// ErrSyntax) is true. Its fields and methods (see package query):
//
//	Line         int     of the first wrong character, from 1
//	Column       int     of it, in characters, from 1
//	Offset       int     of it, in bytes, from 0
//	Message      string  what is wrong
//	Expected     string  what would be valid there; may be empty
//	Hint         string  what to write instead; may be empty
//	Text         string  the whole line
//	Caret()      string  the line, and below it a caret at the wrong character
//	Explanation() string the message with what was expected and the hint, without the position
type SyntaxError = query.SyntaxError

// rowQuery returns the query with rows for its answers.
func rowQuery(q builder.Definition) Query[Row] {
	return Query[Row]{def: q.Rows(reflect.TypeFor[Row]()), decode: newRow}
}

// Where adds conditions: a document must satisfy all of them, and those that the
// query has.
func (q Query[T]) Where(conditions ...Condition) Query[T] {
	builder.Where(&q.def, conditions, Condition.inner)
	return q
}

// Having adds conditions on groups: a group must satisfy all of them, and those that the
// query has. Their fields are functions such as "count()" and "sum(Total)", or names
// of columns of functions. Where chooses documents before they are grouped.
func (q Query[T]) Having(conditions ...Condition) Query[T] {
	builder.Having(&q.def, conditions, Condition.inner)
	return q
}

// OrderBy orders the answers by fields, the first one first; "-Total" is
// descending, and "At as date" orders text by the time that it spells. Score has the best
// answers first, and "-score()" the worst. It replaces an order given before.
func (q Query[T]) OrderBy(fields ...string) Query[T] {
	q.def.OrderBy(fields)
	return q
}

// Skip leaves out the first n answers. After is the better way to page: Skip
// reads what it leaves out.
func (q Query[T]) Skip(n int) Query[T] {
	q.def.Skip(n)
	return q
}

// Limit ends the answers after n.
func (q Query[T]) Limit(n int) Query[T] {
	q.def.Limit(n)
	return q
}

// After begins after the answer of a cursor from Page. The cursor must come from
// the same query, on this database or on a later handle of it; documents written
// meanwhile appear in their place.
//
// Skip counts from the beginning, and not from a cursor.
func (q Query[T]) After(cursor string) Query[T] {
	q.def.After(cursor)
	return q
}

// PageBytes ends a page of Page early, when the JSON of its answers has n bytes or more:
// a page has at least one answer, and so at most n bytes and one document. 0, the default,
// is no such bound. Other methods do not look at it.
func (q Query[T]) PageBytes(n int) Query[T] {
	q.def.BoundPages(n)
	return q
}

// UseIndex makes the index of this name answer the query, whatever the planner would
// choose; "" leaves the choice to the planner again. Explain shows the index, and RQL
// writes it as from Orders use index 'Company'. If the query is run and the collection
// has no such index, or it is still being built, or is being dropped, or the index cannot
// answer the query, the error is ErrNoIndex and says which. An index can answer a query
// if a condition or the order uses its first field, or if it has all fields that the
// query needs; a partial one only if the query has its condition.
//
// Queries choose well without it: it is meant for the few cases in which the planner's
// estimate misleads, and for tests.
func (q Query[T]) UseIndex(name string) Query[T] {
	q.def.UseIndex(name)
	return q
}

// NoIndex makes the query be answered without an index, whatever the planner would choose:
// by a scan of the collection, or of a range of its IDs, by a look-up of the IDs that the condition
// names, or by the changes if it asks for etags. Explain then shows the scan with "as the query asks",
// suggests no index, and RQL writes it as from Orders use no index. With UseIndex or NoScan
// the query is ErrQuery.
//
// It is meant for those who know their documents better than the planner's estimate, and for
// tests.
func (q Query[T]) NoIndex() Query[T] {
	q.def.NoIndex()
	return q
}

// NoScan makes the query fail with ErrNoIndex, when it runs, if it would look
// at every document of the collection for a condition, an order or a group
// that an index could have served. An index then answers also where a scan would be
// cheaper. It is meant for tests. A query that asks for all documents as they come is not
// refused.
func (q Query[T]) NoScan() Query[T] {
	q.def.NoScan()
	return q
}

// Distinct leaves out answers that have the same values as an earlier one. It is of
// columns, and changes nothing without a Select: no two documents are the same.
func (q Query[T]) Distinct() Query[T] {
	q.def.Query.Distinct = true
	return q
}

// GroupBy makes one answer of all documents that have the same values at fields. A
// Select must follow with the columns of a group. Besides paths there are "At as date",
// the time that a text spells, and of it year(At), month(At), day(At) and hour(At) in
// UTC: text such as 2026, 2026-01, 2026-01-31 and 2026-01-31T23. Select them as they
// are, or with a name: "month(At) as Month".
func (q Query[T]) GroupBy(fields ...string) Query[T] {
	q.def.GroupBy(fields)
	return q
}

// Include also reads the documents whose IDs are at these paths in the answers. They
// arrive in Row.Included: make it a query for rows, with Rows, if it is not one of
// DB.RQL; or in the session of QueryOf, whose Load then answers without reading. The
// answers of any other query have no place for them, and it fails with ErrQuery when it
// runs.
func (q Query[T]) Include(paths ...string) Query[T] {
	q.def.Include(paths)
	return q
}

// Highlight asks of each answer for fragments of texts, around the words and phrases that the searches of the query find there. They
// arrive in Row.Highlights: make it a query for rows, with Rows, if it is not one of DB.RQL; the answers of any other query have no place for
// them, and it fails with ErrQuery when it runs.
//
// The query must search the fields. What searches below Not and on elements of arrays find is not shown. Of the texts of a field in
// one document the first MiB is looked at. RQL writes it as include highlight(Text, 128, 1).
func (q Query[T]) Highlight(highlights ...Highlight) Query[T] {
	for _, h := range highlights {
		q.def.Highlight(h.Field, query.Highlight{Length: h.Length, Count: h.Fragments, Options: query.HighlightOptions{PreTags: h.PreTags, PostTags: h.PostTags, Plain: h.Plain}})
	}
	return q
}

// Highlight says which fragments Query.Highlight asks for.
type Highlight struct {
	// Field is the field with the texts.
	Field string

	// Length is the greatest number of characters of a fragment, without tags, from 18 to 10,000. 0 is 128.
	Length int

	// Fragments is the greatest number of fragments of a document, up to 100. 0 is 1. Those with the most different words of the searches
	// are taken, and come in the order of the text.
	Fragments int

	// PreTags are written in front of what is found, and PostTags behind it: as many of one as of the other, up to 16, which the words of the
	// searches have in turn. None is <b> and </b>. They are written as they are.
	PreTags, PostTags []string

	// Plain leaves the text as it is. By default it is escaped for HTML, so that a document cannot put tags into the page that shows it.
	Plain bool
}

// ExplainScores asks of each answer what its score is made of: see Score. It arrives in Row.Explanation, as what Highlight asks for. The
// query must have a search, or a boost. RQL writes it as include explanations().
func (q Query[T]) ExplainScores() Query[T] {
	q.def.Query.Explanations = true
	return q
}

// ScoreExplanation says what the score of an answer is made of: see Explanation in package query. Its fields and methods:
//
//	Score     float64                the sum of those of its parts
//	Parts     []query.ExplainedPart  of each search, and each other condition with a boost, what it adds, and why
//	String()  string                 the explanation as lines of text
type ScoreExplanation = query.Explanation

// Rows returns the query with rows for its answers, which bring what Include has
// asked for.
func (q Query[T]) Rows() Query[Row] { return rowQuery(q.def) }

// String returns the query as RQL, which DB.RQL reads as the same query. After,
// NoScan and the type of the answers are no part of it. Of a query that cannot run
// because of what it is made of, String returns "invalid query: " and the error.
func (q Query[T]) String() string { return q.def.RQL() }

// Changed says what Query.Patch or Query.Delete has done.
type Changed struct {
	// Documents were changed or deleted.
	Documents int64 `json:"documents"`
	// Unchanged documents are already as the edits would leave them.
	Unchanged int64 `json:"unchanged"`
	// Overtaken documents were answers of the query, but were deleted or changed by
	// other writes before their turn came, and satisfy the condition no more.
	Overtaken int64 `json:"overtaken"`
}

// Select asks for columns instead of whole documents, as values of R: a struct, a map or
// json.RawMessage, or for one column its value: a string, a number, a time, a slice.
// Without another name, id() goes into the field of a struct that takes an ID. A column is a path, "id()" or one of
// count(), sum(path), avg(path), min(path) and max(path); "Total as Sum" gives
// it another name. A name that is a keyword of RQL stands in quotes: "month('from')". A
// struct must have a field for each column. Functions make one answer of all documents, or one of each
// group of GroupBy.
func Select[R, T any](q Query[T], columns ...string) Query[R] {
	out := Query[R]{def: q.def}
	raw, single := out.def.Select(columns, reflect.TypeFor[R]())
	out.decode = rowDecoder[R](raw, single)
	return out
}

// rowDecoder returns what decodes rows as values of R: as they are if raw is set, and the value of the only column if single is.
func rowDecoder[R any](raw, single bool) func(*exec.Row) (*R, error) {
	return func(r *exec.Row) (*R, error) {
		v := new(R)
		if raw {
			*any(v).(*json.RawMessage) = r.JSON
			return v, nil
		}
		if err := builder.DecodeColumns(r, single, v); err != nil {
			return nil, err
		}
		return v, nil
	}
}

// Iter runs the query. The loop sees the database as it was when it began, and
// may be left at any time. A document that does not decode comes as a nil value and a
// *DecodeError, and the loop goes on; any other error comes as the last pair. Each
// value belongs to the caller.
func (q Query[T]) Iter(ctx context.Context) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for row, err := range q.def.Iter(ctx) {
			if err != nil {
				yield(nil, fmt.Errorf("query: %w", err))
				return
			}
			q.def.Receive(row)
			v, err := q.decode(row)
			if (v != nil || err != nil) && !yield(v, err) {
				return
			}
		}
	}
}

// All returns all answers. They must fit into memory: Limit or Iter is safer
// where there may be many. If some do not decode, it returns the others, and an error
// that joins their *DecodeErrors.
func (q Query[T]) All(ctx context.Context) ([]*T, error) {
	out := []*T{}
	var broken builder.Broken
	for v, err := range q.Iter(ctx) {
		switch {
		case err == nil:
			out = append(out, v)
		case !broken.Add(err):
			return nil, err
		}
	}
	return out, broken.Err()
}

// First returns the first answer, or ErrNotFound.
func (q Query[T]) First(ctx context.Context) (*T, error) {
	if !q.def.Query.HasLimit {
		q = q.Limit(1)
	}
	for v, err := range q.Iter(ctx) {
		return v, err
	}
	return nil, fmt.Errorf("query: %w", ErrNotFound)
}

// Exists reports whether there is an answer.
func (q Query[T]) Exists(ctx context.Context) (bool, error) { return q.def.Exists(ctx) }

// Count returns how many answers there are, Skip and Limit included. It reads
// no documents where entries of an index can be counted instead.
func (q Query[T]) Count(ctx context.Context) (int64, error) { return q.def.Count(ctx) }

// Facet counts the answers of a query by the values of a field, by ranges, or all together: what a shop shows beside its search.
type Facet struct {
	// Name is that of the result; by default the field, or that of the first range.
	Name string

	// Field is the field by whose values the answers are counted. Values differ as groups do: by case, too. An answer without a value
	// is in none of them, one with several in each.
	Field string

	// Ranges are conditions in RQL, such as "Price >= 100 and Price < 500", in place of Field. An answer counts in each of which the
	// condition is true.
	Ranges []string

	// Functions are computed beside the count: "sum(Price)", "avg(Price)", "min(Price)" and "max(Price) as Dearest".
	Functions []string

	// Options choose and order the values of Field. The zero value takes all of them, in the order of values.
	Options FacetOptions
}

// FacetOptions choose the values of a [Facet]. The zero value takes all of them, in the order of values. Its fields (see
// FacetOptions in package query):
//
//	Order     FacetOrder  the order of the values
//	Start     int         how many values are left out
//	Size      int         the greatest number of values, if HasSize
//	HasSize   bool        false means no limit
//	Remaining bool        the values that follow are listed, as FacetResult.RemainingTerms
type FacetOptions = query.FacetOptions

// FacetOrder is the order of the values of a [Facet]: see FacetOrder in package query.
type FacetOrder = query.FacetOrder

// The orders of a facet.
const (
	FacetValueAsc  = query.FacetValueAsc  // by value, which is the default
	FacetValueDesc = query.FacetValueDesc // the other way round
	FacetCountAsc  = query.FacetCountAsc  // by the number of answers
	FacetCountDesc = query.FacetCountDesc // by the number of answers, greatest first
)

// FacetResult is what a [Facet] has counted.
type FacetResult struct {
	Name                string
	Values              []FacetValue
	RemainingTerms      []string // if FacetOptions.Remaining asks for them: the values that follow
	RemainingTermsCount int64    // how many these are,
	RemainingHits       int64    // and how many answers they have, counted once for each
}

// FacetValue is one value of a field, or one range. With functions there is one for each name of theirs.
type FacetValue struct {
	Range   string // the value, or the condition; NULL_VALUE for null, and EMPTY_STRING for a text without characters
	Count   int64
	Name    string          // of the functions: their field, or the name behind as
	Sum     json.Number     // "" if it was not asked for
	Average json.RawMessage // null if there are no numbers
	Min     json.RawMessage // as JSON
	Max     json.RawMessage
	First   json.RawMessage
	Last    json.RawMessage
}

// Facets counts the answers of the query for all facets in one pass, and returns a result for each. The query must have no
// columns, groups, order, page or includes. At most 64 facets are counted, within Options.MaxQueryBytes.
func (q Query[T]) Facets(ctx context.Context, facets ...Facet) ([]FacetResult, error) {
	parts, names, options := make([][]string, len(facets)), make([]string, len(facets)), make([]FacetOptions, len(facets))
	for i, f := range facets {
		if f.Field != "" {
			parts[i] = append(parts[i], f.Field)
		}
		parts[i] = append(append(parts[i], f.Ranges...), f.Functions...)
		names[i], options[i] = f.Name, f.Options
	}
	def, err := q.def.WithFacets(parts, names, options)
	if err != nil || len(facets) == 0 {
		return nil, err
	}
	var out []FacetResult
	for row, err := range def.Iter(ctx) {
		if err != nil {
			return nil, err
		}
		var result FacetResult
		if err := json.Unmarshal(row.JSON, &result); err != nil {
			return nil, err
		}
		out = append(out, result)
	}
	return out, nil
}

// Suggestion is a word of an index: see Suggestion in package query. Its fields:
//
//	Word       string  as the analyzer of the field makes it: of a language the stem
//	Documents  int64   how many documents have it
//	Distance   int     how many changes make it of the word that was given; 0 of a word to complete
type Suggestion = query.Suggestion

// SuggestOptions choose suggestions: see SuggestOptions in package query. Its fields:
//
//	Size        int      the greatest number of suggestions; 0 is 15
//	Accuracy    float64  what share of a word remains at least, from 0 to 1; 0 is 0.5
//	Alphabetic  bool     those with as many changes come in the order of the words, and not the most frequent ones first
type SuggestOptions = query.SuggestOptions

// Suggest returns words that the texts of a field have, and that are spelled nearly as word: those with the fewest changes first, and of these the
// most frequent ones. A change puts in, leaves out or replaces a character, or makes two neighbours change places; two are the most. The word
// itself is not among them.
//
// The words are those of an index of kind text, which must be there and have all documents: ErrNoIndex. They are as its analyzer makes them, so
// an index without a language suggests whole words. The query must have neither a condition, an order, columns nor a page. Of the index 100,000 words
// are looked at, more are ErrQuery. RQL writes it as select suggest(Text, 'acron').
func (q Query[T]) Suggest(ctx context.Context, field, word string, o SuggestOptions) ([]Suggestion, error) {
	return q.def.Suggest(ctx, field, word, false, o)
}

// Complete returns words that the texts of a field have, and that begin with a prefix, the most frequent ones first. The rest is as for Suggest. RQL
// writes it as select complete(Text, 'acr').
func (q Query[T]) Complete(ctx context.Context, field, prefix string, o SuggestOptions) ([]Suggestion, error) {
	return q.def.Suggest(ctx, field, prefix, true, o)
}

// Page is a part of the answers.
type Page[T any] struct {
	Items []*T   `json:"items"`          // never nil from Query.Page
	Next  string `json:"next,omitempty"` // for After; "" at the end
}

// MarshalJSON returns the page with "items" as an array, also if there are none.
func (p Page[T]) MarshalJSON() ([]byte, error) {
	type plain struct {
		Items []*T   `json:"items"`
		Next  string `json:"next,omitempty"`
	}
	if p.Items == nil {
		p.Items = []*T{}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // the encoder that calls decides
	err := e.Encode(plain(p))
	return b.Bytes(), err
}

// Page returns up to Limit answers (100 without one; Limit(0) is ErrQuery), and the cursor with
// which the next page begins. A query without an order is ordered by ID. If some answers
// do not decode, it returns the page without them, and the error of All.
func (q Query[T]) Page(ctx context.Context) (Page[T], error) {
	p := Page[T]{Items: []*T{}}
	var broken builder.Broken
	next, err := q.def.Page(ctx, func(row *exec.Row) error {
		if err := builder.Pay(ctx, row); err != nil {
			return err
		}
		q.def.Receive(row)
		v, err := q.decode(row)
		switch {
		case v != nil:
			p.Items = append(p.Items, v)
		case err != nil && !broken.Add(err):
			return err
		}
		return nil
	})
	if err != nil {
		return Page[T]{Items: []*T{}}, err
	}
	p.Next = next
	return p, broken.Err()
}

// WithMemory returns a context with which queries call take before they hold memory, with a
// number of bytes: for what they sort, groups, distinct rows, IDs that they have seen, and
// the rows of a Page, which are counted by their JSON. Collections, Counters, Identities,
// Stats, DiskUsage and Revisions.Counts call it as well, for their lists of collections,
// identities and tags. An error of take ends the call, which returns it. A query does not say when it needs the memory no longer: that is at
// its end, and at the end of the page.
//
// take is called by one goroutine of each query, possibly while others wait for it: it must
// return at once, and must not call the database.
func WithMemory(ctx context.Context, take func(bytes int64) error) context.Context {
	return budget.With(ctx, take)
}

// WithReading returns a context with which reads call need before they copy a document or a
// revision of 64 KiB and more from the store, with the number of its bytes. An error of need
// ends the read, which returns it. A read does not say when it needs the memory no longer:
// documents that come one after the other, as in a scan, need room for the largest of them,
// and those that the caller keeps are his to count. Writes, but for RenameCollection, which reads
// before it writes, and documents from the cache (Options.DocumentCacheBytes), are not counted.
//
// need may be called by several goroutines at a time. It must return at once, and must not
// call the database.
func WithReading(ctx context.Context, need func(bytes int64) error) context.Context {
	return budget.WithReading(ctx, need)
}

// UpdateRQL returns the query and the edits of a text that ends with update { }, for
// Query.Patch:
//
//	q, edits, err := db.UpdateRQL(`from Orders where Total < $least update { this.Small = true; this.Checks += 1 }`, params)
//	if err == nil {
//		done, err = q.Patch(ctx, edits...)
//	}
//
// q.Count says beforehand how many documents would be changed, and q.Progress reports.
//
// The statements are a part of JavaScript: assignments of values, of parameters and of
// other members, +=, -=, ++, --, push(), pop(), shift() and delete, of this or of the
// alias. An object or an array that a statement needs must be there, and so must the
// number of +=; otherwise the edit is a *PatchError that names the document, and the
// batches before it are written. Numbers are exact, as in Increment. docs/queries/updates.md has
// the rest. A text that is none is a *SyntaxError.
func (db *DB) UpdateRQL(text string, params map[string]any) (Query[Row], []PatchOption, error) {
	return parseUpdate(&db.core, text, params)
}

// UpdateRQL is DB.UpdateRQL in a transaction.
func (t *Tx) UpdateRQL(text string, params map[string]any) (Query[Row], []PatchOption, error) {
	return parseUpdate(t.inner(), text, params)
}

func parseUpdate(via builder.Source, text string, params map[string]any) (Query[Row], []PatchOption, error) {
	u, err := query.ParseUpdate(text, params)
	if err != nil {
		return Query[Row]{def: builder.Definition{Err: err}}, nil, err
	}
	q, err := queryOf(via, u.Query)
	if err != nil {
		return q, nil, err
	}
	edits := make([]PatchOption, len(u.Assignments))
	for i := range u.Assignments {
		e := builder.EditOf(&u.Assignments[i])
		if err := e.Err(); err != nil {
			err = fmt.Errorf("statement %d of update: %w", i+1, err)
			return Query[Row]{def: builder.Definition{Err: err}}, nil, err
		}
		edits[i] = edit(e)
	}
	return q, edits, nil
}

// QueryIndex asks a computed index of a database or of a transaction for its results, as values of R: a struct, a map or
// json.RawMessage. It is the query of the text "from index 'NAME'", and its fields are the members of the results.
func QueryIndex[R any](from interface {
	RQL(text string, params map[string]any) (Query[Row], error)
}, name string) Query[R] {
	q, err := from.RQL("from index '"+strings.ReplaceAll(name, "'", "''")+"'", nil)
	if err != nil {
		return Query[R]{def: builder.Definition{Err: err}}
	}
	out := Query[R]{def: q.def}
	out.def.Answers, out.def.Arrive = reflect.TypeFor[R](), nil
	out.decode = rowDecoder[R](reflect.TypeFor[R]() == reflect.TypeFor[json.RawMessage](), false)
	return out
}
