package own

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
)

// queryRoutes are the endpoints of queries and their plans.
var queryRoutes = []*serve.Route{
	{Method: "POST", Path: "{J}/query", Run: queryPage, Timed: true, Body: true, Needs: serve.ReadRight},
	{Method: "POST", Path: "{J}/explain", Run: explain, Timed: true, Body: true, Needs: serve.ReadRight},
}

// queryBody is the body of a query.
type queryBody struct {
	Query      string                     `json:"query"`
	Parameters map[string]json.RawMessage `json:"parameters"`
	After      string                     `json:"after"`    // cursor from the previous page
	PageSize   *int                       `json:"pageSize"` // 1 to 1,000; default 100
}

// queryPage replies with a page of a query's results and the cursor of the next page. The
// cost of a page does not depend on the number of pages before it. A page that is not the
// last may have fewer rows than requested: see pageBytes. Groups and distinct rows have no
// cursor: see queryGroups.
func queryPage(c *serve.Call) error {
	q, body, err := readQuery(c)
	if err != nil {
		return err
	}
	start := time.Now()
	page, err := q.PageBytes(pageBytes).Page(c.Reading(c.Ctx, 3)) // as read, as JSON, and in the reply
	if errors.Is(err, jay.ErrQuery) && body.After == "" {
		return queryGroups(c, q, *body.PageSize, verbs.PageWords.MatchString(body.Query))
	}
	if err != nil {
		return err
	}
	took := time.Since(start)
	dst := []byte(`{"rows":[`)
	for i, row := range page.Items {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendRow(dst, row); err != nil {
			return err
		}
	}
	dst = append(dst, ']')
	if page.Next != "" {
		dst = append(append(dst, `,"next":`...), serve.MustJSON(page.Next)...)
	}
	return c.Text(http.StatusOK, fmt.Appendf(dst, `,"elapsedNs":%d}`, took.Nanoseconds()))
}

// appendRow appends a result: a document with its metadata, or the selected fields, and what the query includes of its highlights and its score.
func appendRow(dst []byte, row *jay.Row) ([]byte, error) {
	doc := row.Document
	if doc == nil {
		return append(appendShown(append(append(dst, `{"row":`...), row.JSON...), row), '}'), nil
	}
	head := serve.MustJSON(map[string]any{
		"id": doc.ID(), "collection": doc.Collection(), "changeVector": doc.ChangeVector(), "lastModified": doc.Metadata().LastModified.UTC().Format(serve.RavenTime), "bytes": len(doc.Body()),
	})
	dst = append(append(dst, head[:len(head)-1]...), `,"document":`...)
	dst, err := verbs.AppendDocument(dst, doc, false)
	return append(appendShown(dst, row), '}'), err
}

// appendShown appends the highlights and the explanation of a result, as members.
func appendShown(dst []byte, row *jay.Row) []byte {
	if row.Highlights != nil {
		dst = append(append(dst, `,"highlights":`...), serve.MustJSON(row.Highlights)...)
	}
	if row.Explanation != nil {
		dst = append(append(dst, `,"explanation":`...), serve.MustJSON(row.Explanation)...)
	}
	return dst
}

// shownBytes is about how many bytes the highlights and the explanation of a result have.
func shownBytes(row *jay.Row) (n int) {
	for _, all := range row.Highlights {
		for _, fragment := range all {
			n += len(fragment)
		}
	}
	if row.Explanation != nil {
		for _, p := range row.Explanation.Parts {
			n += 256 + len(p.Condition) + 256*len(p.Words)
		}
	}
	return n
}

// readQuery parses the query of the body, and fills in its page size.
func readQuery(c *serve.Call) (q jay.Query[jay.Row], body queryBody, err error) {
	if err := c.Decode(&body); err != nil {
		return q, body, err
	}
	if body.PageSize == nil {
		size := defaultPageSize
		body.PageSize = &size
	}
	if err := checkPageSize(*body.PageSize); err != nil {
		return q, body, err
	}
	given, err := verbs.Parameters(c, body.Query, body.Parameters)
	if err != nil {
		return q, body, err
	}
	if q, err = verbs.Query(c, body.Query, given); err != nil {
		return q, body, err
	}
	if !verbs.PageWords.MatchString(body.Query) { // a limit in the text would be a page
		q = q.Limit(*body.PageSize)
	}
	if body.After != "" {
		q = q.After(body.After)
	}
	return q, body, nil
}

// explain runs a query and replies with its plan.
func explain(c *serve.Call) error {
	q, _, err := readQuery(c)
	if err != nil {
		return err
	}
	e, err := q.Explain(c.Reading(c.Ctx, 1))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, e)
}

// queryGroups replies to a query without pages, for groups and distinct rows: with the first
// results, and whether there are more.
func queryGroups(c *serve.Call, q jay.Query[jay.Row], size int, ownLimit bool) error {
	if !ownLimit {
		q = q.Limit(size + 1)
	}
	start := time.Now()
	dst, n, more := []byte(`{"rows":[`), 0, false
	for row, err := range q.Iter(c.Reading(c.Ctx, 1)) {
		if err != nil {
			return err
		}
		if n == size || len(dst) > pageBytes {
			more = true
			break
		}
		size := len(row.JSON) + 1024 + shownBytes(row)
		if row.Document != nil {
			size += len(row.Document.Body())
		}
		if err := c.Take(3 * int64(size)); err != nil { // as read, as JSON, and in the reply
			return err
		}
		if n > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendRow(dst, row); err != nil {
			return err
		}
		n++
	}
	dst = append(dst, ']')
	if more {
		dst = append(dst, `,"more":true`...)
	}
	return c.Text(http.StatusOK, fmt.Appendf(dst, `,"elapsedNs":%d}`, time.Since(start).Nanoseconds()))
}
