package raven

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"time"

	"github.com/jaydb/jay"
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
	QueryParameters map[string]json.RawMessage
	verbs.QueryPage

	ProjectionBehavior            *string
	WaitForNonStaleResults        json.RawMessage `ignored:"queries are never stale"`
	WaitForNonStaleResultsTimeout json.RawMessage `ignored:"queries are never stale"`
	DisableCaching                json.RawMessage `ignored:"the server keeps no results"`
	SkipDuplicateChecking         json.RawMessage `ignored:"no query finds a document twice"`
	SkipStatistics                json.RawMessage `ignored:"statistics are always there"`

	columns      *clientColumns // set by query
	metadataOnly bool           // rows have their metadata only
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
	if c.Params.Get("debug") == "explain" {
		return explainQuery(c, request)
	}
	for _, name := range []string{"debug", "diagnostics"} {
		if value := c.Params.Get(name); value != "" {
			return serve.NotSupported("%s=%.100s of a query is not there yet", name, value)
		}
	}
	given, err := verbs.Parameters(c, request.Query, request.QueryParameters)
	if err != nil {
		return err
	}
	var found queryResult
	if err := c.DB.View(c.Ctx, func(tx *jay.Tx) error { return runQuery(c, tx, &request, given, &found) }); err != nil {
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

// explainQuery replies with the plan of a query: one line per step.
func explainQuery(c *serve.Call, request queryRequest) error {
	given, err := verbs.Parameters(c, request.Query, request.QueryParameters)
	if err != nil {
		return err
	}
	return c.DB.View(c.Ctx, func(tx *jay.Tx) error {
		q, err := request.query(tx, given)
		if err != nil {
			return err
		}
		e, err := q.Explain(c.Reading(c.Ctx, 1))
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
	r.Query, err = verbs.FromIndex(c, r.Query)
	return r, err
}

// check refuses rows made of what an index stores, as they are made of documents, and
// negative pages.
func (r *queryRequest) check() error {
	if b := r.ProjectionBehavior; b != nil && *b != "" && *b != "Default" && *b != "FromDocument" {
		return serve.NotSupported("ProjectionBehavior %.50q is not there: rows are made of documents", *b)
	}
	return r.QueryPage.Check()
}

// queryResult is the result of a query.
type queryResult struct {
	reading
	rows  []json.RawMessage // rows of a query that selects; the results of others are in docs
	total int64
}

// query returns the query in a transaction, limited to its page.
func (r *queryRequest) query(tx *jay.Tx, given map[string]any) (jay.Query[jay.Row], error) {
	q, err := tx.RQL(r.Query, given)
	if err != nil {
		return q, err
	}
	if q, r.columns, err = columnsForClients(q, r.Query, given); err != nil {
		return q, err
	}
	if r.columns != nil {
		r.columns.metadataOnly = r.metadataOnly
	}
	return r.QueryPage.Of(q), nil
}

// runQuery runs the query, and counts all of its results.
func runQuery(c *serve.Call, tx *jay.Tx, r *queryRequest, given map[string]any, found *queryResult) error {
	q, err := r.query(tx, given)
	if err != nil {
		return err
	}
	for row, err := range q.Iter(c.Reading(c.Ctx, 1)) {
		if err != nil {
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
		if row.JSON, err = r.columns.project(row.JSON); err != nil {
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
	found.total = int64(len(found.docs) + len(found.rows))
	if r.Start != nil || r.PageSize != nil || verbs.PageWords.MatchString(r.Query) {
		found.total, err = q.Skip(0).Limit(math.MaxInt).Count(c.Reading(c.Ctx, 1))
	}
	return err
}

// etag returns a hash of the result.
func (f *queryResult) etag() []byte {
	h := fnv.New128a()
	fmt.Fprintf(h, "%d %s\n", f.total, f.reading.etag())
	for _, row := range f.rows {
		h.Write(row)
	}
	return h.Sum(nil)
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
	tail := serve.MustJSON(map[string]any{
		"IncludedPaths": nil, "IndexName": cmp.Or(c.Index, "collection"), "IndexTimestamp": now, "LastQueryTime": now, "IsStale": false, "ResultEtag": etag,
		"TotalResults": f.total, "LongTotalResults": f.total, "SkippedResults": 0, "DurationInMs": took.Milliseconds(), "NodeTag": c.Server.Options.Tag(),
	})
	tail[0] = ','
	return c.Text(http.StatusOK, append(dst, tail...))
}
