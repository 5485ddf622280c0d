package raven

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
)

// queryRoutes are the endpoints of queries.
var queryRoutes = []*serve.Route{
	{Method: "POST", Path: "{D}/queries", Run: answerQuery, Timed: true, Body: true, Lazy: true, Needs: serve.ReadRight, Heeds: serve.NoneMatch, Takes: "debug diagnostics metadataOnly"},
	{Method: "GET", Path: "{D}/queries", Run: answerQuery, Timed: true, Lazy: true, Heeds: serve.NoneMatch, Takes: "debug diagnostics metadataOnly pageSize query start"},
}

// queryRequest is the body of a query. Options to wait for indexes are ignored, as they
// are always up to date.
type queryRequest struct {
	Query           string
	QueryParameters serve.Object[json.RawMessage]
	verbs.QueryPage

	ProjectionBehavior            *string
	WaitForNonStaleResults        json.RawMessage `ignored:"queries are never stale"`
	WaitForNonStaleResultsTimeout json.RawMessage `ignored:"queries are never stale"`
	DisableCaching                json.RawMessage `ignored:"the server keeps no results"`
	SkipDuplicateChecking         *bool           // each entry of an index is an answer, also of the same document
	SkipStatistics                json.RawMessage `ignored:"statistics are always there"`
	PageSizeSet                   json.RawMessage `ignored:"PageSize says it"`

	index        *verbs.Computed // that the query names; nil for none
	fields       verbs.Index     // the same, also if it is one of fields
	columns      *clientColumns  // set by answers
	metadataOnly bool            // rows have their metadata only
	entries      bool            // the answers are entries of the index
	timed        bool            // the reply says how long its parts took
}

// answerQuery replies to a query in RQL.
func answerQuery(c *serve.Call) error {
	start := time.Now()
	request, err := readQuery(c)
	if p, is := err.(*serve.Problem); is && p.Kind == verbs.TypeIndexMissing {
		return c.Empty(http.StatusNotFound) // from which clients make their exception
	}
	if err != nil {
		return err
	}
	if request.metadataOnly, err = c.Params.Flag("metadataOnly"); err != nil {
		return err
	}
	switch c.Params.Get("debug") {
	case "explain":
		return explainQuery(c, request)
	case "entries":
		request.entries = request.index != nil // an index of fields has no entries to be shown
	}
	for _, name := range []string{"debug", "diagnostics"} {
		if value := c.Params.Get(name); value != "" && (name != "debug" || !request.entries) {
			return serve.NotSupported("%s=%.100s of a query is not there yet", name, value)
		}
	}
	given, err := verbs.Parameters(c, request.Query, request.QueryParameters)
	if err != nil {
		return err
	}
	if given, err = request.takeTimings(given); err != nil {
		return err
	}
	var found queryResult
	run := func(tx *jay.Tx) error { return runQuery(c, tx, &request, given, &found) }
	err = c.DB.View(c.Ctx, run)
	if errors.Is(err, jay.ErrNoIndex) && request.index != nil { // it was reset since it was found: this waits until it is there
		if _, err := verbs.FindIndex(c, request.index.Name); err != nil {
			return err
		}
		found = queryResult{}
		err = c.DB.View(c.Ctx, run)
	}
	if err != nil {
		return err
	}
	etag := found.etag()
	c.Reply.Set("ETag", `"`+hex.EncodeToString(etag)+`"`)
	if matches(c, hex.EncodeToString(etag)) {
		return c.Empty(http.StatusNotModified)
	}
	number := int64(0)
	for _, b := range etag[:8] {
		number = number<<8 | int64(b)
	}
	return queryReply(c, &found, number, request.metadataOnly, time.Since(start))
}

// takeTimings takes include timings() off the query, which has no parameters then: that is answered here, and not by the database.
func (r *queryRequest) takeTimings(given map[string]any) (map[string]any, error) {
	if !strings.Contains(strings.ToLower(r.Query), "timings") {
		return given, nil
	}
	q, err := query.Parse(r.Query, given)
	if err != nil || !q.Timings {
		return given, err
	}
	q.Timings, r.timed = false, true
	r.Query = q.String()
	return nil, nil
}

// timing is how long a part of an answer took, as clients read it.
type timing struct {
	DurationInMs int64
	Timings      map[string]timing
}

// part adds what has passed since a moment to the timings of a result, and returns the present moment.
func (f *queryResult) part(name string, since time.Time) time.Time {
	now := time.Now()
	if f.timings == nil {
		f.timings = make(map[string]timing)
	}
	f.timings[name] = timing{DurationInMs: now.Sub(since).Milliseconds()}
	return now
}

// explainQuery replies with the plan of a query: one line per step.
func explainQuery(c *serve.Call, request queryRequest) error {
	given, err := verbs.Parameters(c, request.Query, request.QueryParameters)
	if err != nil {
		return err
	}
	return c.DB.View(c.Ctx, func(tx *jay.Tx) error {
		a, err := request.answers(c, tx, given)
		if err != nil {
			return err
		}
		e, err := a.explain(c.Reading(c.Ctx, 1))
		if err != nil {
			return err
		}
		name := cmp.Or(c.Index, "collection")
		steps := []any{}
		for _, step := range e.Plan {
			steps = append(steps, map[string]any{"Index": name, "Reason": step})
		}
		return c.JSON(http.StatusOK, map[string]any{"IndexName": name, "Results": steps, "Keys": e.Keys, "Documents": e.Documents, "DurationInMs": e.Elapsed.Milliseconds()})
	})
}

// readQuery reads the query of the body, or of the URL.
func readQuery(c *serve.Call) (r queryRequest, err error) {
	if c.Route.Method == http.MethodGet && len(c.Body) == 0 {
		r.Query = c.Params.Get("query")
		start, size, err := c.Params.Page()
		if err != nil {
			return r, err
		}
		r.Start, r.PageSize = &start, &size
	} else if err := c.Decode(&r); err != nil {
		return r, err
	} else if c.Route.Method == http.MethodGet { // of a multi_get
		for _, name := range []string{"query", "start", "pageSize"} {
			if c.Params.Get(name) != "" {
				return r, serve.BadRequest("the parameter %s has no effect with Content", name)
			}
		}
	}
	if r.Query == "" {
		return r, serve.BadRequest("the request has no Query")
	}
	if err := r.check(); err != nil {
		return r, err
	}
	if r.Query, r.fields, err = verbs.FromIndex(c, quoteHyphens(r.Query)); err != nil {
		return r, err
	}
	r.index = r.fields.Computed
	return r, verbs.CheckBehavior(r.behavior(), r.index)
}

// behavior returns where rows come from, as the request says it.
func (r *queryRequest) behavior() string {
	if r.ProjectionBehavior == nil {
		return ""
	}
	return *r.ProjectionBehavior
}

// check refuses negative pages.
func (r *queryRequest) check() error {
	return r.QueryPage.Check()
}

// queryResult is the result of a query.
type queryResult struct {
	reading
	rows  []json.RawMessage // rows of a query that selects; the results of others are in docs
	total int64

	highlights   map[string]map[string][]string // fragments by field and document; nil for a query without
	explanations map[string][]string            // by document; nil for a query without

	timings map[string]timing // of the parts of the query; nil if they are not asked for
}

// show adds what a row has of highlights and its score.
func (f *queryResult) show(c *serve.Call, row *jay.Row) error {
	size := int64(0)
	for field, fragments := range row.Highlights {
		if f.highlights == nil {
			f.highlights = make(map[string]map[string][]string)
		}
		if f.highlights[field] == nil {
			f.highlights[field] = make(map[string][]string)
		}
		f.highlights[field][row.ID] = fragments
		for _, one := range fragments {
			size += int64(len(one))
		}
	}
	if row.Explanation != nil {
		if f.explanations == nil {
			f.explanations = make(map[string][]string)
		}
		text := row.Explanation.String()
		f.explanations[row.ID] = []string{text}
		size += int64(len(text))
	}
	if size == 0 {
		return nil
	}
	if f.bytes += size; f.bytes > c.Server.Options.MaxReplyBytes {
		return serve.TooLarge("the reply has more than %d bytes, which is the most: ask for a page", c.Server.Options.MaxReplyBytes)
	}
	return c.Take(2 * size)
}

// answers are those of a query in a transaction.
type answers struct {
	iterate func(ctx context.Context, page verbs.QueryPage) iter.Seq2[*jay.Row, error]
	count   func(ctx context.Context) (int64, error) // on all pages
	explain func(ctx context.Context) (jay.Explanation, error)

	includes []query.Field // which have IDs of documents in the answers, and which these do not bring along
}

// answers returns the answers of the query in a transaction.
func (r *queryRequest) answers(c *serve.Call, tx *jay.Tx, given map[string]any) (*answers, error) {
	if r.index == nil {
		text, given, err := r.fields.AdaptText(r.Query, given)
		if err != nil {
			return nil, err
		}
		return r.answersOf(tx, text, given)
	}
	if r.entries {
		text, err := r.index.Entries(r.Query, given)
		if err != nil {
			return nil, err
		}
		q, err := tx.RQL(text, nil)
		if err != nil {
			return nil, err
		}
		return r.paged(q), nil
	}
	asked, err := r.index.Ask(c, r.Query, given, r.behavior())
	if err != nil {
		return nil, err
	}
	var a *answers
	if e := asked.Entries; e != nil {
		if r.SkipDuplicateChecking != nil && *r.SkipDuplicateChecking {
			e.Repeat()
		}
		if rows, ids := e.Rows(); rows {
			r.columns = &clientColumns{id: ids, metadataOnly: r.metadataOnly}
		}
		a = &answers{
			iterate: func(ctx context.Context, page verbs.QueryPage) iter.Seq2[*jay.Row, error] {
				return e.Iter(ctx, tx, page)
			},
			count:   func(ctx context.Context) (int64, error) { return e.Count(ctx, tx) },
			explain: func(ctx context.Context) (jay.Explanation, error) { return e.Explain(ctx, tx) },
		}
	} else if a, err = r.answersOf(tx, asked.Text, nil); err != nil {
		return nil, err
	}
	if asked.Results && r.columns == nil {
		r.columns = &clientColumns{result: true, metadataOnly: r.metadataOnly}
	}
	a.includes = asked.Includes
	return a, nil
}

// answersOf returns the answers of a text of package jay.
func (r *queryRequest) answersOf(tx *jay.Tx, text string, given map[string]any) (*answers, error) {
	q, err := tx.RQL(text, given)
	if err != nil {
		return nil, err
	}
	if q, r.columns, err = columnsForClients(q, text, given); err != nil {
		return nil, err
	}
	if r.columns != nil {
		r.columns.metadataOnly = r.metadataOnly
	}
	return r.paged(q), nil
}

// paged returns the answers of a query, explained on the page of the request.
func (r *queryRequest) paged(q jay.Query[jay.Row]) *answers {
	all := q.Skip(0).Limit(math.MaxInt)
	iterate := func(ctx context.Context, page verbs.QueryPage) iter.Seq2[*jay.Row, error] {
		return page.Of(q).Iter(ctx)
	}
	return &answers{iterate: iterate, count: all.Count, explain: r.QueryPage.Of(q).Explain}
}

// runQuery runs the query, and counts all of its results.
func runQuery(c *serve.Call, tx *jay.Tx, r *queryRequest, given map[string]any, found *queryResult) error {
	since := time.Now()
	pass := func(name string) {
		if r.timed {
			since = found.part(name, since)
		}
	}
	a, err := r.answers(c, tx, given)
	if err != nil {
		return err
	}
	pass("Optimizer")
	more := false
	for row, err := range a.iterate(c.Reading(c.Ctx, 1), r.QueryPage.More()) {
		if err != nil {
			return err
		}
		if more = r.QueryPage.Full(found.results()); more {
			break
		}
		if err := found.show(c, row); err != nil {
			return err
		}
		for _, doc := range row.Included {
			if err := found.add(c, &found.included, doc); err != nil {
				return err
			}
		}
		if row.Document != nil {
			if err := found.add(c, &found.docs, row.Document); err != nil {
				return err
			}
			continue
		}
		if row.JSON, err = r.columns.project(row); err != nil {
			return err
		}
		found.rows = append(found.rows, row.JSON)
		if found.bytes += int64(len(row.JSON)) + 64; found.bytes > c.Server.Options.MaxReplyBytes {
			return serve.TooLarge("the reply has more than %d bytes, which is the most: ask for a page", c.Server.Options.MaxReplyBytes)
		}
		if err := c.Take(2 * (int64(len(row.JSON)) + 64)); err != nil {
			return err
		}
	}
	pass("Query")
	if err := found.include(c, tx, a.includes); err != nil {
		return err
	}
	pass("Includes")
	var known bool
	if found.total, known = r.QueryPage.Total(found.results()); !known || more || verbs.PageWords.MatchString(r.Query) {
		found.total, err = a.count(c.Reading(c.Ctx, 1))
	}
	pass("Count")
	return err
}

// include reads the documents whose IDs fields have in the results.
func (f *queryResult) include(c *serve.Call, tx *jay.Tx, fields []query.Field) error {
	if len(fields) == 0 {
		return nil
	}
	var columns []query.Column
	for i, field := range fields {
		columns = append(columns, query.Column{Name: strconv.Itoa(i), Field: field})
	}
	projector, err := query.NewProjector(columns)
	if err != nil {
		return err
	}
	seen := make(map[string]bool)
	bodies := f.rows[:len(f.rows):len(f.rows)]
	for _, doc := range f.docs {
		seen[doc.ID()], bodies = true, append(bodies, doc.Body())
	}
	var row []byte
	for _, body := range bodies {
		if row, err = projector.AppendWithin(row[:0], query.Doc{Body: body}, len(fields)*(len(body)+64)); err != nil {
			return err
		}
		if err := eachText(gjson.ParseBytes(row), func(id string) error {
			if seen[id] || id == "" {
				return nil
			}
			if seen[id] = true; len(seen) > maxIncluded {
				return serve.TooLarge("the request includes more than %d documents", maxIncluded)
			}
			return readInclude(c, &f.reading, tx, id)
		}); err != nil {
			return err
		}
	}
	return c.Ctx.Err()
}

// eachText calls fn with the texts in the members of an object, and in their elements.
func eachText(value gjson.Result, fn func(text string) error) (err error) {
	if value.Type == gjson.String {
		return fn(value.String())
	}
	if value.Type != gjson.JSON { // its only element would be itself
		return nil
	}
	value.ForEach(func(_, one gjson.Result) bool {
		if one.IsObject() { // it names no document
			return true
		}
		err = eachText(one, fn)
		return err == nil
	})
	return err
}

// results returns how many results there are on the page.
func (f *queryResult) results() int { return len(f.docs) + len(f.rows) }

// etag returns a hash of the result.
func (f *queryResult) etag() []byte {
	h := sha256.New()
	fmt.Fprintf(h, "%d %s\n", f.total, f.reading.etag())
	for _, row := range f.rows {
		h.Write(row)
	}
	// These depend on the query and, of explanations, on other documents.
	if f.highlights != nil {
		h.Write(serve.MustJSON(f.highlights))
	}
	if f.explanations != nil {
		h.Write(serve.MustJSON(f.explanations))
	}
	return h.Sum(nil)[:16]
}

// queryReply replies in RavenDB's shape.
func queryReply(c *serve.Call, f *queryResult, etag int64, metadataOnly bool, took time.Duration) (err error) {
	now := c.Server.Options.Now().UTC().Format(serve.RavenTime)
	dst := append(make([]byte, 0, f.bytes+1024), `{"Results":[`...) // f.bytes was paid for
	for i, row := range f.rows {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, row...)
	}
	for i, doc := range f.docs {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = verbs.AppendDocument(dst, doc, metadataOnly); err != nil {
			return err
		}
	}
	dst = append(dst, `],"Includes":{`...)
	for i, doc := range f.included {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, serve.MustJSON(doc.ID())...), ':')
		if dst, err = verbs.AppendDocument(dst, doc, false); err != nil {
			return err
		}
	}
	dst = append(dst, '}')
	if f.highlights != nil {
		dst = append(append(dst, `,"Highlightings":`...), serve.MustJSON(f.highlights)...)
	}
	if f.explanations != nil {
		dst = append(append(dst, `,"Explanations":`...), serve.MustJSON(f.explanations)...)
	}
	if f.timings != nil {
		dst = append(append(dst, `,"Timings":`...), serve.MustJSON(timing{took.Milliseconds(), f.timings})...)
	}
	return c.Text(http.StatusOK, fmt.Appendf(dst, `,"DurationInMs":%d,"IncludedPaths":null,"IndexName":%s,"IndexTimestamp":"%s","IsStale":false,"LastQueryTime":"%[3]s",`+
		`"LongTotalResults":%d,"NodeTag":%s,"ResultEtag":%d,"SkippedResults":0,"TotalResults":%[4]d}`,
		took.Milliseconds(), serve.MustJSON(cmp.Or(c.Index, "collection")), now, f.total, serve.MustJSON(c.Server.Tag(c.Name)), etag))
}
