package own

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
)

// previewRoutes has the endpoint of previews.
var previewRoutes = []*serve.Route{
	{Method: "POST", Path: "{J}/preview", Run: preview, Timed: true, Body: true, Needs: serve.ReadRight},
}

// Bounds of a preview.
const maxPreview = 100 // documents

// previewRow is what a change would do to a document.
type previewRow struct {
	ID     string          `json:"id"`
	Status string          `json:"status"` // Patched, NotModified, Deleted or Failed
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	Others []string        `json:"others,omitempty"` // such as "put users/1", beside the document
	Error  string          `json:"error,omitempty"`
}

// preview replies with what a change by query would do to the first documents that the
// query finds, and with their number. It stores nothing.
func preview(c *serve.Call) error {
	var body struct {
		Query      string                     `json:"query"`
		Parameters map[string]json.RawMessage `json:"parameters"`
		Delete     bool                       `json:"delete"` // delete the results of the query; there is no update { }
		First      *int                       `json:"first"`  // 1 to 100; default 10
	}
	if err := c.Decode(&body); err != nil {
		return err
	}
	first := 10
	if body.First != nil {
		first = *body.First
	}
	if first < 1 || first > maxPreview {
		return serve.BadRequest("first must be between 1 and %d, not %d", maxPreview, first)
	}
	b, p, err := changeOf(c, body.Query, body.Parameters, body.Delete)
	if err != nil {
		return err
	}
	if err := b.Find(c); err != nil {
		return err
	}
	rows, total, more := []previewRow{}, int64(0), false
	start := time.Now()
	if err := c.DB.View(c.Ctx, func(tx *jay.Tx) error {
		var err error
		if total, err = b.Count(c.Reading(c.Ctx, 1), tx); err != nil {
			return err
		}
		size := 0
		for doc, err := range b.Documents(c.Reading(c.Ctx, 1), tx) {
			if err != nil {
				return err
			}
			if more = len(rows) == first || size > pageBytes; more {
				return nil
			}
			one, err := previewOf(c, c.Ctx, tx, doc, p)
			if err != nil {
				return err
			}
			grown := 512 + len(one.ID) + len(one.Before) + len(one.After)
			for _, other := range one.Others {
				grown += 16 + len(other)
			}
			size += grown
			if err := c.Take(4 * int64(grown)); err != nil { // and the reply, whose buffer grows by copying
				return err
			}
			rows = append(rows, one)
		}
		return nil
	}); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"total": total, "documents": rows, "more": more, "elapsedNs": time.Since(start)})
}

// previewOf returns what would happen to a document. p is nil for a deletion.
func previewOf(c *serve.Call, ctx context.Context, tx *jay.Tx, doc *jay.Document, p *verbs.Patching) (previewRow, error) {
	one := previewRow{ID: doc.ID(), Status: "Deleted"}
	if err := c.Take(int64(len(doc.Body()))); err != nil {
		return one, err
	}
	before, err := doc.MarshalJSON()
	if err != nil {
		return one, err
	}
	one.Before = before
	if p == nil {
		return one, nil
	}
	p.Others = nil
	done, err := p.Run(ctx, tx, doc.ID())
	if err != nil {
		if ctx.Err() != nil || serve.ProblemOf(err).Status == http.StatusTooManyRequests {
			return one, err
		}
		one.Status, one.Error = "Failed", serve.ProblemOf(err).Message
		return one, nil
	}
	one.Status, one.After, one.Others = done.Status, done.After, p.Others
	return one, nil
}

// changeOf parses a change by query. p is the script of update { }, to be run as a test,
// or nil for a deletion.
func changeOf(c *serve.Call, text string, parameters map[string]json.RawMessage, deletes bool) (b *verbs.ByQuery, p *verbs.Patching, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil, serve.BadRequest("the request has no query")
	}
	if deletes {
		if _, _, err := verbs.SplitUpdate(text); err == nil {
			return nil, nil, serve.BadRequest("the query has update { }: it would delete what it finds")
		}
		b = &verbs.ByQuery{Text: text}
		b.Given, err = verbs.Parameters(c, text, parameters)
		return b, nil, err
	}
	if b, p, err = verbs.NewUpdate(c, text, parameters); err == nil {
		p.Test = true
	}
	return b, p, err
}
