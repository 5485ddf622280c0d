package server

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"regexp"
	"time"

	"github.com/jaydb/jay"
)

// queryRequest is the body of a query. Options to wait for indexes are ignored, as they
// are always up to date.
type queryRequest struct {
	Query           string
	QueryParameters map[string]json.RawMessage
	Start           *int
	PageSize        *int
}

// parameterName matches the parameters in a query.
var parameterName = regexp.MustCompile(`\$[\pL_][\pL\pN_]*`)

// pageWords matches every query with a page in its text. A false match costs only a count.
var pageWords = regexp.MustCompile(`(?i)limit|offset`)

// query replies to a query in RQL.
func (c *call) query() error {
	start := time.Now()
	request, err := c.queryRequest()
	if err != nil {
		return err
	}
	metadataOnly, err := c.params.flag("metadataOnly")
	if err != nil {
		return err
	}
	if c.params.get("debug") == "explain" {
		return c.explainQuery(request)
	}
	for _, name := range []string{"debug", "diagnostics"} {
		if value := c.params.get(name); value != "" {
			return notSupported("%s=%.100s of a query is not there yet", name, value)
		}
	}
	given, err := request.parameters()
	if err != nil {
		return err
	}
	var found queryResult
	if err := c.db.View(c.ctx, func(tx *jay.Tx) error { return c.runQuery(tx, request, given, &found) }); err != nil {
		return err
	}
	etag := found.etag()
	c.reply.Set("ETag", `"`+hex.EncodeToString(etag)+`"`)
	if c.matches(hex.EncodeToString(etag)) {
		return c.empty(http.StatusNotModified)
	}
	number := int64(0)
	for _, b := range etag[:8] {
		number = number<<8 | int64(b)
	}
	return c.queryReply(&found, number, metadataOnly, time.Since(start))
}

// explainQuery replies with the plan of a query: one line per step.
func (c *call) explainQuery(request queryRequest) error {
	given, err := request.parameters()
	if err != nil {
		return err
	}
	return c.db.View(c.ctx, func(tx *jay.Tx) error {
		q, err := request.query(tx, given)
		if err != nil {
			return err
		}
		e, err := q.Explain(c.ctx)
		if err != nil {
			return err
		}
		name := cmp.Or(c.index, "collection")
		steps := []any{}
		for _, step := range e.Plan {
			steps = append(steps, map[string]any{"Index": name, "Reason": step})
		}
		return c.json(http.StatusOK, map[string]any{"IndexName": name, "Results": steps, "Keys": e.Keys, "Documents": e.Documents, "DurationInMs": e.Elapsed.Milliseconds()})
	})
}

// queryRequest reads the query of the body, or of the URL.
func (c *call) queryRequest() (r queryRequest, err error) {
	if c.route.method == http.MethodGet && len(c.body) == 0 {
		r.Query = c.params.get("query")
		start, size, err := c.params.page()
		if err != nil {
			return r, err
		}
		r.Start, r.PageSize = &start, &size
	} else if err := c.decode(&r); err != nil {
		return r, err
	}
	if r.Query == "" {
		return r, badRequest("the request has no Query")
	}
	r.Query, err = c.fromIndex(r.Query)
	return r, err
}

// parameters returns the values of the parameters that the query uses: clients may send
// others. Numbers keep all their digits.
func (r *queryRequest) parameters() (map[string]any, error) {
	used := make(map[string]bool)
	for _, name := range parameterName.FindAllString(r.Query, -1) {
		used[name[1:]] = true
	}
	out := make(map[string]any)
	for name, text := range r.QueryParameters {
		if !used[name] {
			continue
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		var value any
		if err := decoder.Decode(&value); err != nil {
			return nil, badRequest("the parameter %.100q is not JSON: %v", name, err)
		}
		out[name] = value
	}
	return out, nil
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
	if r.Start != nil && *r.Start > 0 {
		q = q.Skip(*r.Start)
	}
	if r.PageSize != nil && *r.PageSize < math.MaxInt32 && *r.PageSize >= 0 {
		q = q.Limit(*r.PageSize)
	}
	return q, nil
}

// runQuery runs the query, and counts all of its results.
func (c *call) runQuery(tx *jay.Tx, r queryRequest, given map[string]any, found *queryResult) error {
	q, err := r.query(tx, given)
	if err != nil {
		return err
	}
	for row, err := range q.Iter(c.ctx) {
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
		found.rows = append(found.rows, row.JSON)
		if found.bytes += int64(len(row.JSON)) + 64; found.bytes > c.s.opts.MaxReplyBytes {
			return tooLarge("the reply has more than %d bytes, which is the most: ask for a page", c.s.opts.MaxReplyBytes)
		}
		if err := c.take(2 * (int64(len(row.JSON)) + 64)); err != nil {
			return err
		}
	}
	found.total = int64(len(found.docs) + len(found.rows))
	if r.Start != nil || r.PageSize != nil || pageWords.MatchString(r.Query) {
		found.total, err = q.Skip(0).Limit(math.MaxInt).Count(c.ctx)
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
func (c *call) queryReply(f *queryResult, etag int64, metadataOnly bool, took time.Duration) (err error) {
	now := c.s.opts.Now().UTC().Format(ravenTime)
	dst := append([]byte(nil), `{"Results":[`...)
	for i, row := range f.rows {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendProjection(dst, row)
	}
	for i, doc := range f.docs {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendDocument(dst, doc, metadataOnly); err != nil {
			return err
		}
	}
	dst = append(dst, `],"Includes":{`...)
	for i, doc := range f.included {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, mustJSON(doc.ID())...), ':')
		if dst, err = appendDocument(dst, doc, false); err != nil {
			return err
		}
	}
	dst = append(dst, '}')
	tail := mustJSON(map[string]any{
		"IncludedPaths": nil, "IndexName": cmp.Or(c.index, "collection"), "IndexTimestamp": now, "LastQueryTime": now, "IsStale": false, "ResultEtag": etag,
		"TotalResults": f.total, "LongTotalResults": f.total, "SkippedResults": 0, "DurationInMs": took.Milliseconds(), "NodeTag": c.s.opts.tag(),
	})
	tail[0] = ','
	return c.text(http.StatusOK, append(dst, tail...))
}

// appendProjection appends selected fields, marked as a projection.
func appendProjection(dst []byte, row json.RawMessage) []byte {
	dst = append(dst, row[:len(row)-1]...)
	if len(row) > 2 {
		dst = append(dst, ',')
	}
	return append(dst, `"@metadata":{"@projection":true}}`...)
}
