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

// Query is a query over one collection, or over all documents. Its answers are values of T: Document for
// DB.Query, the struct type for Collection.Query, the type argument of Select, or Row for the text of DB.RQL.
//
// A Query that a function returned together with an error returns that error whenever it is run. The zero value
// returns ErrUsage.
//
// A Query is immutable: each method returns a new Query, so a program can keep a Query and refine it. A Query
// does nothing until a method such as Iter, All, First, Count, Exists, Page or Explain runs it. Each run reads
// a new snapshot of the database. A Query is safe for concurrent use.
//
// Without an order the answers come in the order of the plan. Answers that are equal in all fields of an order
// come in the order of their IDs, in the direction of the last field.
type Query[T any] struct {
	def    builder.Definition
	decode func(r *exec.Row) (*T, error) // nil and nil for a row to be left out
}

// Row is one answer of a query.
type Row struct {
	// Document is the whole document, for queries without a Select.
	Document *Document
	// JSON is an object with the selected columns; nil for whole documents.
	JSON json.RawMessage
	// Included are the included documents that no earlier answer contained.
	Included []*Document
	// Highlights are the fragments for Query.Highlight, by field. The fragments of a field without a match are
	// empty, not nil.
	Highlights map[string][]string
	// Explanation shows the parts of the answer's score, for Query.ExplainScores; otherwise it is nil.
	Explanation *ScoreExplanation
	// ID is the ID of the document, for an answer with Highlights or an Explanation, and for one that JavaScript
	// makes without distinct; otherwise it is "".
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

// MarshalJSON returns the selected columns, or the whole document with its @metadata. Highlights and
// Explanation, if the query requested them, come last, as the members @highlights and @explanation.
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

// Query returns a query over the documents of a collection; "" means all documents.
func (db *DB) Query(collection string) Query[Document] { return documentQuery(&db.core, collection) }

// Query returns a query in the transaction, as DB.Query does. It sees the writes of the transaction. The whole
// collection joins the read set.
func (t *Tx) Query(collection string) Query[Document] { return documentQuery(t.inner(), collection) }

func documentQuery(via builder.Source, collection string) Query[Document] {
	return Query[Document]{
		def:    builder.Definition{Via: via, Query: query.Query{From: collection}, Answers: reflect.TypeFor[Document]()},
		decode: func(r *exec.Row) (*Document, error) { return (*Document)(r.Document), nil },
	}
}

// Query returns a query over the values of the collection. It compares, orders and groups fields of type
// time.Time, of pointers to it and of slices of it by time, whatever the zone and the digits of their text in a
// document, as "At as date" does for documents. Text in such a comparison must be a time in RFC 3339; other
// text is ErrQuery. StartsWith and similar conditions compare the text.
func (c *Collection[T]) Query() Query[T] {
	return Query[T]{
		def:    builder.Definition{Via: c.via.source(), Mapping: c.m, Query: query.Query{From: c.m.Collection}, Answers: reflect.TypeFor[T]()},
		decode: func(r *exec.Row) (*T, error) { return c.decode((*Document)(r.Document)) },
	}
}

// RQL parses a text in RavenDB's query language, and returns its query:
//
//	from Orders as o where o.Total > $least order by o.Total desc limit 10
//
// docs/queries/rql.md has the grammar. params are the values of the parameters; their names are without the
// dollar sign. Comparisons of text ignore case, unless exact() encloses the comparison. RQL returns a
// *SyntaxError for an invalid text, and ErrQuery for more conditions or values than docs/limits.md allows. For
// a text with update { }, which UpdateRQL reads, it returns a *SyntaxError that is ErrUpdateRQL.
func (db *DB) RQL(text string, params map[string]any) (Query[Row], error) {
	return parseRQL(&db.core, text, params)
}

// RQL returns a query in the transaction, as DB.RQL does.
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
//	Column       int     of that character, in characters, from 1
//	Offset       int     of that character, in bytes, from 0
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

// Where adds conditions to those of the query: a document must satisfy all of them.
func (q Query[T]) Where(conditions ...Condition) Query[T] {
	builder.Where(&q.def, conditions, Condition.inner)
	return q
}

// Having adds conditions on groups to those of the query: a group must satisfy all of them. Their fields are
// functions such as "count()" and "sum(Total)", or names of columns of functions. Where filters documents
// before they are grouped.
func (q Query[T]) Having(conditions ...Condition) Query[T] {
	builder.Having(&q.def, conditions, Condition.inner)
	return q
}

// OrderBy orders the answers by fields; the first field has the highest priority. "-Total" orders descending,
// and "At as date" orders text by the time that it represents. Score puts the best answers first, and
// "-score()" the worst. OrderBy replaces an earlier order.
func (q Query[T]) OrderBy(fields ...string) Query[T] {
	q.def.OrderBy(fields)
	return q
}

// Skip leaves out the first n answers. For paging, After is faster: Skip reads the answers that it leaves out.
func (q Query[T]) Skip(n int) Query[T] {
	q.def.Skip(n)
	return q
}

// Limit ends the answers after n.
func (q Query[T]) Limit(n int) Query[T] {
	q.def.Limit(n)
	return q
}

// After continues the query after the answer to which a cursor from Page points. The cursor must come from the
// same query, on this database or on a later handle of it. Documents that were written since then appear in
// their place.
//
// Skip counts from the beginning, not from the cursor.
func (q Query[T]) After(cursor string) Query[T] {
	q.def.After(cursor)
	return q
}

// PageBytes ends a page of Page early, when the JSON of its answers has n bytes or more. A page has at least
// one answer, so its size is at most n bytes and one document. The default is 0: no bound. Other methods ignore
// PageBytes.
func (q Query[T]) PageBytes(n int) Query[T] {
	q.def.BoundPages(n)
	return q
}

// UseIndex makes the index of this name answer the query, whatever the planner would choose; "" returns the
// choice to the planner. Explain shows the index. In RQL this is from Orders use index 'Company'. A run returns
// an ErrNoIndex, which names the reason, if the collection has no such index, if the index is still being built
// or is being dropped, or if it cannot answer the query. An index can answer a query if a condition or the
// order uses its first field, or if it covers all fields that the query needs. A partial index can answer only
// a query that has its condition.
//
// The planner usually chooses well: UseIndex is meant for the few cases in which its estimate is wrong, and for
// tests.
func (q Query[T]) UseIndex(name string) Query[T] {
	q.def.UseIndex(name)
	return q
}

// NoIndex makes the query run without an index, whatever the planner would choose: the query scans the
// collection or a range of its IDs, looks up the IDs in the condition, or, for a condition on etags, reads the
// changes. Explain then shows the scan with "as the query asks", and suggests no index. In RQL this is from
// Orders use no index. In combination with UseIndex or NoScan the query returns ErrQuery.
//
// NoIndex is meant for cases in which the program knows its documents better than the planner's estimate, and
// for tests.
func (q Query[T]) NoIndex() Query[T] {
	q.def.NoIndex()
	return q
}

// NoScan makes a run of the query return ErrNoIndex if it would examine every document of the collection for a
// condition, an order or a group that an index could serve. With NoScan an index answers the query even where a
// scan would be cheaper. A query for all documents without an order is allowed. NoScan is meant for tests.
func (q Query[T]) NoScan() Query[T] {
	q.def.NoScan()
	return q
}

// Distinct leaves out answers that have the same values as an earlier answer. It compares columns. Without a
// Select it changes nothing, because no two documents are the same.
func (q Query[T]) Distinct() Query[T] {
	q.def.Query.Distinct = true
	return q
}

// GroupBy makes one answer of all documents that have the same values at fields. A Select must follow with the
// columns of a group. A field is a path; or "At as date", the time that a text represents; or year(At),
// month(At), day(At) or hour(At) of that time, in UTC: text such as 2026, 2026-01, 2026-01-31 and
// 2026-01-31T23. Select these fields unchanged, or with a name: "month(At) as Month".
func (q Query[T]) GroupBy(fields ...string) Query[T] {
	q.def.GroupBy(fields)
	return q
}

// Include also reads the documents whose IDs are at these paths in the answers. A query for rows, from Rows or
// DB.RQL, returns these documents in Row.Included. A query from QueryOf puts them into the session, whose Load
// then returns them without reading the database. Any other query returns ErrQuery when it runs, because its
// answers have no place for them.
func (q Query[T]) Include(paths ...string) Query[T] {
	q.def.Include(paths)
	return q
}

// Highlight adds to each answer fragments of its texts, around the words and phrases that the searches of the
// query find. A query for rows, from Rows or DB.RQL, returns the fragments in Row.Highlights. Any other query
// returns ErrQuery when it runs, because its answers have no place for them.
//
// The query must search the fields. Matches of searches below Not and on elements of arrays are not
// highlighted. Highlight examines the first MiB of the texts of a field in one document. In RQL this is include
// highlight(Text, 128, 1).
func (q Query[T]) Highlight(highlights ...Highlight) Query[T] {
	for _, h := range highlights {
		q.def.Highlight(h.Field, query.Highlight{Length: h.Length, Count: h.Fragments, Options: query.HighlightOptions{PreTags: h.PreTags, PostTags: h.PostTags, Plain: h.Plain}})
	}
	return q
}

// Highlight selects the fragments of one field for Query.Highlight.
type Highlight struct {
	// Field is the field with the texts.
	Field string

	// Length is the greatest number of characters of a fragment, without tags, from 18 to 10,000. 0 means 128.
	Length int

	// Fragments is the greatest number of fragments per document, up to 100. 0 means 1. The fragments with the
	// most different words of the searches are chosen, and returned in the order of the text.
	Fragments int

	// PreTags are inserted before a match, and PostTags after it. Both have the same number of tags, up to 16,
	// and the words of the searches use them in turn. The default is <b> and </b>. Tags are not escaped.
	PreTags, PostTags []string

	// Plain returns the text unescaped. By default the text is escaped for HTML, so that a document cannot put
	// tags into the page that shows it.
	Plain bool
}

// ExplainScores adds to each answer an explanation of its score: see Score. A query for rows, from Rows or
// DB.RQL, returns it in Row.Explanation; any other query returns ErrQuery when it runs. The query must have a
// search or a boost. In RQL this is include explanations().
func (q Query[T]) ExplainScores() Query[T] {
	q.def.Query.Explanations = true
	return q
}

// ScoreExplanation shows the parts of the score of an answer: see Explanation in package query. Its fields and
// methods:
//
//	Score     float64                the sum of the scores of its parts
//	Parts     []query.ExplainedPart  what each search, and each other condition with a boost, adds, and why
//	String()  string                 the explanation as lines of text
type ScoreExplanation = query.Explanation

// Rows returns the same query with rows as answers, which contain the documents of Include.
func (q Query[T]) Rows() Query[Row] { return rowQuery(q.def) }

// String returns the query as RQL, which DB.RQL parses as the same query. After, NoScan and the type of the
// answers are not part of the text. For an invalid query, String returns "invalid query: " and the error.
func (q Query[T]) String() string { return q.def.RQL() }

// Changed counts the documents of a Query.Patch or Query.Delete.
type Changed struct {
	// Documents is the number of documents that were changed or deleted.
	Documents int64 `json:"documents"`
	// Unchanged is the number of documents that the edits would not change.
	Unchanged int64 `json:"unchanged"`
	// Overtaken is the number of answers of the query that other writes deleted or changed before their batch,
	// and that no longer satisfy the condition.
	Overtaken int64 `json:"overtaken"`
}

// Select returns a query for columns instead of whole documents. Its answers are values of R: a struct, a map
// or json.RawMessage; or, for a single column, its value: a string, a number, a time, a slice. A column is a
// path, "id()" or one of count(), sum(path), avg(path), min(path) and max(path); "Total as Sum" gives a column
// another name. Put a name that is a keyword of RQL in quotes: "month('from')". A struct must have a field for
// each column. Unless it is renamed, id() goes into the ID field of the struct. Functions make one answer of
// all documents, or one answer per group of GroupBy.
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

// Iter runs the query. The loop reads a snapshot that is taken when it begins, and may be left at any time. If
// a document does not decode, its pair is a nil value and a *DecodeError, and the iteration continues; any
// other error comes as the last pair. Each value belongs to the caller.
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

// All returns all answers. The answers must fit into memory: use Limit or Iter where there may be many. If some
// answers do not decode, All returns the others, and an error that joins the *DecodeErrors.
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

// Exists reports whether the query has an answer.
func (q Query[T]) Exists(ctx context.Context) (bool, error) { return q.def.Exists(ctx) }

// Count returns the number of answers, after Skip and Limit. It reads no documents where it can count entries
// of an index instead.
func (q Query[T]) Count(ctx context.Context) (int64, error) { return q.def.Count(ctx) }

// Facet counts the answers of a query by the values of a field, by ranges, or all together: the counts that a
// shop shows next to its search results.
type Facet struct {
	// Name is the name of the result. The default is the name of the field, or the name of the first range.
	Name string

	// Field is the field by whose values the answers are counted. Values differ as in GroupBy: case counts. An
	// answer without a value counts for none, and an answer with several values counts for each.
	Field string

	// Ranges are conditions in RQL, such as "Price >= 100 and Price < 500", instead of Field. An answer counts
	// in every range whose condition is true.
	Ranges []string

	// Functions are computed in addition to the count: "sum(Price)", "avg(Price)", "min(Price)" and "max(Price)
	// as Dearest".
	Functions []string

	// Options select and order the values of Field. The zero value selects all values, in ascending order.
	Options FacetOptions
}

// FacetOptions select and order the values of a [Facet]. The zero value selects all values, in ascending order.
// Its fields (see FacetOptions in package query):
//
//	Order     FacetOrder  the order of the values
//	Start     int         the number of values to skip
//	Size      int         the greatest number of values, if HasSize
//	HasSize   bool        false means no limit
//	Remaining bool        lists the values that follow in FacetResult.RemainingTerms
type FacetOptions = query.FacetOptions

// FacetOrder is the order of the values of a [Facet]: see FacetOrder in package query.
type FacetOrder = query.FacetOrder

// The orders of a facet.
const (
	FacetValueAsc  = query.FacetValueAsc  // by value, which is the default
	FacetValueDesc = query.FacetValueDesc // by value, descending
	FacetCountAsc  = query.FacetCountAsc  // by the number of answers
	FacetCountDesc = query.FacetCountDesc // by the number of answers, greatest first
)

// FacetResult is the result of a [Facet].
type FacetResult struct {
	Name                string
	Values              []FacetValue
	RemainingTerms      []string // the values that follow, if FacetOptions.Remaining is set
	RemainingTermsCount int64    // the number of these values
	RemainingHits       int64    // the number of their answers, counted once per value
}

// FacetValue is one value of a field, or one range. With functions, each name of a function has its own
// FacetValue.
type FacetValue struct {
	Range   string // the value, or the condition; NULL_VALUE for null, and EMPTY_STRING for a text without characters
	Count   int64
	Name    string          // of the functions: their field, or the name after "as"
	Sum     json.Number     // "" if it was not requested
	Average json.RawMessage // null if there are no numbers
	Min     json.RawMessage // as JSON
	Max     json.RawMessage
	First   json.RawMessage
	Last    json.RawMessage
}

// Facets counts the answers of the query for all facets in one pass, and returns one result per facet. The
// query must have no columns, groups, order, page or includes. At most 64 facets are allowed, and the counts
// must fit into Options.MaxQueryBytes.
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
//	Word       string  the term that the analyzer of the field makes: for a language, the stem
//	Documents  int64   the number of documents that contain it
//	Distance   int     the number of edits from the given word to this word; 0 for Complete
type Suggestion = query.Suggestion

// SuggestOptions select suggestions: see SuggestOptions in package query. Its fields:
//
//	Size        int      the greatest number of suggestions; 0 means 15
//	Accuracy    float64  the least share of a word that remains, from 0 to 1; 0 means 0.5
//	Alphabetic  bool     orders suggestions of the same distance by word, instead of the most frequent first
type SuggestOptions = query.SuggestOptions

// Suggest returns words from the texts of a field that are spelled similarly to word: the words with the fewest
// edits first, and among these the most frequent first. An edit inserts, deletes or replaces a character, or
// swaps two adjacent ones. Suggest allows at most two edits. It does not return the word itself.
//
// Suggest needs an index of kind text on the field that contains all documents; otherwise it returns
// ErrNoIndex. The words are the terms of the index, as its analyzer makes them, so an index without a language
// suggests whole words. The query must have no condition, order, columns or page. Suggest examines up to
// 100,000 words of the index, and returns ErrQuery if there are more. In RQL this is select suggest(Text,
// 'acron').
func (q Query[T]) Suggest(ctx context.Context, field, word string, o SuggestOptions) ([]Suggestion, error) {
	return q.def.Suggest(ctx, field, word, false, o)
}

// Complete returns words from the texts of a field that begin with a prefix, the most frequent first. The other
// rules are those of Suggest. In RQL this is select complete(Text, 'acr').
func (q Query[T]) Complete(ctx context.Context, field, prefix string, o SuggestOptions) ([]Suggestion, error) {
	return q.def.Suggest(ctx, field, prefix, true, o)
}

// Page is one page of the answers.
type Page[T any] struct {
	Items []*T   `json:"items"`          // never nil from Query.Page
	Next  string `json:"next,omitempty"` // for After; "" at the end
}

// MarshalJSON returns the page with "items" as an array, even if there are no items.
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

// Page returns up to Limit answers (100 without a Limit; Limit(0) is ErrQuery), and the cursor of the next
// page. Page orders a query without an order by ID. If some answers do not decode, Page returns the page
// without them, and an error that joins the *DecodeErrors.
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

// WithMemory returns a context that makes queries call take, with a number of bytes, before they hold that
// memory: for documents to sort, groups, distinct rows, IDs already seen, and the rows of a Page, which count
// by the size of their JSON. Collections, Counters, Identities, Stats, DiskUsage and Revisions.Counts also call
// take, for their lists of collections, identities and tags. If take returns an error, the call ends and
// returns the error. A query does not report when it releases the memory: it holds the memory until its end, or
// until the end of the page.
//
// One goroutine of each query calls take, possibly while other goroutines wait for it. take must return at
// once, and must not call the database.
func WithMemory(ctx context.Context, take func(bytes int64) error) context.Context {
	return budget.With(ctx, take)
}

// WithReading returns a context that makes reads call need before they copy a document or a revision of 64 KiB
// or more from the store, with its size in bytes. If need returns an error, the read ends and returns the
// error. A read does not report when it releases the memory. Documents that come one after the other, as in a
// scan, need room for the largest of them. The caller must count the documents that it keeps. Reads of
// documents from the cache (Options.DocumentCacheBytes) do not call need. Writes do not call need either,
// except RenameCollection, which reads before it writes.
//
// Several goroutines may call need at the same time. It must return at once, and must not call the database.
func WithReading(ctx context.Context, need func(bytes int64) error) context.Context {
	return budget.WithReading(ctx, need)
}

// UpdateRQL returns the query and the edits of a text that ends with update { }, for
// Query.Patch:
//
//	q, edits, err := db.UpdateRQL(
//		`from Orders where Total < $least update { this.Small = true; this.Checks += 1 }`, params)
//	if err == nil {
//		done, err = q.Patch(ctx, edits...)
//	}
//
// q.Count returns the number of documents that q.Patch would change, and q.Progress reports progress.
//
// The statements are a subset of JavaScript, on members of this or of the alias: assignments of values, of
// parameters and of other members, +=, -=, ++, --, push(), pop(), shift() and delete. An object or an array
// that a statement needs must exist, and so must the number that += changes; otherwise the edit returns a
// *PatchError that names the document, and earlier batches stay written. Numbers are exact, as in Increment.
// docs/queries/updates.md describes the statements. UpdateRQL returns a *SyntaxError for an invalid text.
func (db *DB) UpdateRQL(text string, params map[string]any) (Query[Row], []PatchOption, error) {
	return parseUpdate(&db.core, text, params)
}

// UpdateRQL returns a query in the transaction and its edits, as DB.UpdateRQL does.
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

// QueryIndex returns a query over the results of a computed index of a database or of a transaction, as values
// of R: a struct, a map or json.RawMessage. The query is the same as "from index 'NAME'" in RQL. Its fields are
// the members of the results.
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
