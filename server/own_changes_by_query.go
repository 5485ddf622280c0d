package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/jaydb/jay"
)

// Bounds of a preview.
const (
	maxPreview       = 100 // documents
	maxPreviewOthers = 20  // other documents that a script would put or delete
)

// previewRow is what a change would do to a document.
type previewRow struct {
	ID     string          `json:"id"`
	Status string          `json:"status"` // Patched, NotModified, Deleted or Failed
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	Others []string        `json:"others,omitempty"` // such as "put users/1", beside the document
	Error  string          `json:"error,omitempty"`
}

// ownPreview replies with what a change by query would do to the first documents that the
// query finds, and with their number. It stores nothing.
func (c *call) ownPreview() error {
	var body struct {
		Query      string                     `json:"query"`
		Parameters map[string]json.RawMessage `json:"parameters"`
		Delete     bool                       `json:"delete"` // delete the results of the query; there is no update { }
		First      *int                       `json:"first"`  // 1 to 100; default 10
	}
	if err := c.decode(&body); err != nil {
		return err
	}
	first := 10
	if body.First != nil {
		first = *body.First
	}
	if first < 1 || first > maxPreview {
		return badRequest("first must be between 1 and %d, not %d", maxPreview, first)
	}
	b, p, err := c.changeOf(body.Query, body.Parameters, body.Delete)
	if err != nil {
		return err
	}
	if b.text, err = c.fromIndex(b.text); err != nil {
		return err
	}
	if err := c.take(4 * pageBytes); err != nil {
		return err
	}
	rows, total, more := []previewRow{}, int64(0), false
	start := time.Now()
	if err := c.db.View(c.ctx, func(tx *jay.Tx) error {
		q, err := tx.RQL(b.text, b.given)
		if err != nil {
			return err
		}
		if total, err = q.Count(c.ctx); err != nil {
			return err
		}
		size := 0
		for row, err := range q.Iter(c.ctx) {
			if err != nil {
				return err
			}
			if row.Document == nil {
				return badRequest("the query selects: a change needs whole documents")
			}
			if more = len(rows) == first || size > pageBytes; more {
				return nil
			}
			one, err := c.previewOf(c.ctx, tx, row.Document, p)
			if err != nil {
				return err
			}
			size += len(one.Before) + len(one.After)
			rows = append(rows, one)
		}
		return nil
	}); err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{"total": total, "documents": rows, "more": more, "elapsedNs": time.Since(start)})
}

// previewOf returns what would happen to a document. p is nil for a deletion.
func (c *call) previewOf(ctx context.Context, tx *jay.Tx, doc *jay.Document, p *patching) (previewRow, error) {
	one := previewRow{ID: doc.ID(), Status: "Deleted"}
	before, err := doc.MarshalJSON()
	if err != nil {
		return one, err
	}
	one.Before = before
	if p == nil {
		return one, nil
	}
	p.others = nil
	done, err := p.run(ctx, tx, doc.ID())
	if err != nil {
		if ctx.Err() != nil {
			return one, err
		}
		one.Status, one.Error = "Failed", problemOf(err).message
		return one, nil
	}
	one.Status, one.After, one.Others = done.status, done.after, p.others
	return one, nil
}

// changeOf parses a change by query. p is the script of update { }, to be run as a test,
// or nil for a deletion.
func (c *call) changeOf(text string, parameters map[string]json.RawMessage, deletes bool) (b *byQuery, p *patching, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil, badRequest("the request has no query")
	}
	if deletes {
		if _, _, err := splitUpdate(text); err == nil {
			return nil, nil, badRequest("the query has update { }: it would delete what it finds")
		}
		b = &byQuery{text: text}
		b.given, err = (&queryRequest{Query: text, QueryParameters: parameters}).parameters()
		return b, nil, err
	}
	if b, p, err = c.newUpdate(text, parameters); err == nil {
		p.test = true
	}
	return b, p, err
}
