package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/script"
	"github.com/jaydb/jay/server/internal/serve"
)

// Bounds of a change by query.
const (
	byQueryBatch   = 128      // documents per transaction
	byQueryBytes   = 4 << 20  // of their bodies, as the query finds them
	maxDetails     = 1024     // documents whose results are kept
	maxDetailBytes = 64 << 10 // of these results
)

// ByQuery is a change by query.
type ByQuery struct {
	Text    string       // RQL without update { }
	matcher *jay.Matcher // of the query
	Given   map[string]any
	Missing string // the status for a document that is gone
	Each    func(ctx context.Context, tx *jay.Tx, id string) (status string, err error)
	Details bool
	PerSec  int
	Page    QueryPage // only these of the results are changed

	patching *Patching // of update { }, or nil
}

// NewUpdate parses a query with update { } at its end, and the script in it.
func NewUpdate(c *serve.Call, text string, parameters map[string]json.RawMessage) (*ByQuery, *Patching, error) {
	front, source, err := SplitUpdate(text)
	if err != nil {
		return nil, nil, err
	}
	program, err := script.Parse(source)
	if err != nil {
		return nil, nil, err
	}
	given, err := Parameters(c, front, parameters)
	if err != nil {
		return nil, nil, err
	}
	p := &Patching{Call: c, Patch: &PatchRequest{program: program}, given: parameters}
	if m := aliasOf.FindStringSubmatch(front); m != nil && !slices.Contains(clauseWords, strings.ToLower(m[1])) {
		p.names = []string{m[1]}
	}
	return &ByQuery{Text: front, Given: given, patching: p}, p, nil
}

// aliasOf matches the alias in a query.
var aliasOf = regexp.MustCompile(`(?i)^\s*from\s+(?:index\s+)?(?:'[^']*'|"[^"]*"|[^\s'"]+)\s+(?:as\s+)?([\pL_][\pL\pN_]*)`)

// clauseWords are the keywords that can stand where an alias could.
var clauseWords = []string{"where", "order", "load", "include", "group", "select", "update", "limit", "offset", "filter", "use"}

// SplitUpdate splits a query before update { }, and returns the script in the braces.
func SplitUpdate(text string) (query, source string, err error) {
	missing := serve.BadRequest("the query changes nothing: it needs update { } at its end")
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '\'' || b == '"':
			for i++; i < len(text) && text[i] != b; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case strings.HasPrefix(text[i:], "//"):
			for i < len(text) && text[i] != '\n' && text[i] != '\r' {
				i++
			}
		case strings.HasPrefix(text[i:], "/*"):
			n := strings.Index(text[i+2:], "*/")
			if n < 0 {
				return "", "", missing
			}
			i += n + 3
		case (b == 'u' || b == 'U') && len(text) >= i+6 && strings.EqualFold(text[i:i+6], "update") && (i == 0 || !wordByte(text[i-1])):
			rest := strings.TrimLeft(text[i+6:], " \t\r\n")
			if !strings.HasPrefix(rest, "{") {
				continue
			}
			rest = strings.TrimRight(rest, " \t\r\n;")
			if !strings.HasSuffix(rest, "}") || len(rest) < 2 {
				return "", "", serve.BadRequest("update { has no end, or something stands behind it")
			}
			// Errors of the script shall name lines of the query.
			lines := strings.Count(text[:len(text)-len(strings.TrimLeft(text[i+6:], " \t\r\n"))+1], "\n")
			return text[:i], strings.Repeat("\n", lines) + rest[1:len(rest)-1], nil
		}
	}
	return "", "", missing
}

// wordByte reports whether a byte can be a part of a word.
func wordByte(b byte) bool {
	return b == '_' || b == '$' || b == '.' || b == '@' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}

// change changes a document, if the query still finds it.
func (b *ByQuery) change(ctx context.Context, tx *jay.Tx, id string) (status string, err error) {
	doc, err := tx.Get(ctx, id)
	if errors.Is(err, jay.ErrNotFound) {
		return b.Missing, nil
	}
	if err != nil {
		return "", err
	}
	matches, err := b.matcher.Match(ctx, doc)
	if err != nil || !matches {
		return PatchSkipped, err
	}
	return b.Each(ctx, tx, id)
}

// ChangeByQuery changes the results of a query, as an operation. The query runs on one
// snapshot. Each batch of documents is a transaction that changes their present versions,
// and leaves out documents that were deleted meanwhile or no longer match the query.
func ChangeByQuery(c *serve.Call, b *ByQuery) error {
	text, err := FromIndex(c, b.Text)
	if err != nil {
		return err
	}
	c.Subject = text
	b.Text = text
	q, err := c.DB.RQL(b.Text, b.Given) // so that errors of the query are in the reply
	if err != nil {
		return err
	}
	total, err := b.Page.Of(q).Count(c.Reading(c.Ctx, 1))
	if err != nil {
		return err
	}
	if b.matcher, err = q.Matcher(); err != nil {
		return err
	}
	db, staged := c.DB, c.Server.Memory.Holding(c.Sender())
	return c.Background(func(ctx context.Context, o *serve.Operation) (any, error) {
		return changeAll(c.Server, ctx, db, o, b, staged, total)
	})
}

// changeAll changes the results of the query, batch by batch. staged pays for what a batch
// stores. A batch that finds too little memory waits for it.
func changeAll(s *serve.Server, ctx context.Context, db *jay.DB, o *serve.Operation, b *ByQuery, staged *serve.Holding, total int64) (result any, err error) {
	if b.patching != nil {
		b.patching.Memory = staged
	}
	processed := int64(0)
	details, kept := []byte("["), 0
	start := s.Options.Now()
	report := func() {
		s.Operations.Progress(o, map[string]any{"$type": "Raven.Client.Documents.Operations.DeterminateProgress, Raven.Client", "Processed": processed, "Total": max(total, processed)})
	}
	report()
	change := func(ids []string) error {
		var statuses []string
		if err := serve.Patiently(ctx, s.Options.QueueTimeout, func() error {
			defer staged.End()
			return db.Update(ctx, func(tx *jay.Tx) error {
				staged.End() // of a run before
				statuses = statuses[:0]
				for _, id := range ids {
					status, err := b.change(ctx, tx, id)
					if err != nil {
						return err
					}
					statuses = append(statuses, status)
				}
				return nil
			}, jay.Retry()) // the change has no condition that another's could break
		}); err != nil {
			return err
		}
		for i := range ids {
			if !b.Details || kept == maxDetails || len(details) > maxDetailBytes {
				break
			}
			if kept++; kept > 1 {
				details = append(details, ',')
			}
			details = append(details, serve.MustJSON(map[string]string{"Id": ids[i], "Status": statuses[i]})...)
		}
		processed += int64(len(ids))
		report()
		return throttle(s, ctx, b.PerSec, processed, start)
	}
	size := byQueryBatch
	if b.PerSec > 0 {
		size = min(size, b.PerSec)
	}
	err = db.View(ctx, func(tx *jay.Tx) error {
		q, err := tx.RQL(b.Text, b.Given)
		if err != nil {
			return err
		}
		var ids []string
		found := 0 // bytes of their bodies
		for row, err := range b.Page.Of(q).Iter(ctx) {
			if err != nil {
				return err
			}
			if row.Document == nil {
				return serve.BadRequest("the query selects: a change needs whole documents")
			}
			ids, found = append(ids, row.Document.ID()), found+len(row.Document.Body())
			if len(ids) < size && found < byQueryBytes {
				continue
			}
			if err := change(ids); err != nil {
				return err
			}
			ids, found = ids[:0], 0
		}
		if len(ids) > 0 {
			return change(ids)
		}
		return nil
	})
	return changed(processed, b.Text, append(details, ']')), err
}

// changed returns the result of a change by query.
func changed(n int64, query string, details []byte) serve.Detailed {
	return serve.Detailed{Type: "Raven.Client.Documents.Operations.BulkOperationResult, Raven.Client", Total: n, DocumentsProcessed: n, Query: serve.SubjectOf(query),
		Details: slices.Clip(bytes.Clone(details)), Message: fmt.Sprintf("Processed %d items.", n)}
}

// throttle waits so that no more than PerSec documents a second are changed.
func throttle(s *serve.Server, ctx context.Context, perSec int, processed int64, start time.Time) error {
	if perSec == 0 {
		return nil
	}
	ahead := time.Duration(float64(processed)/float64(perSec)*float64(time.Second)) - s.Options.Now().Sub(start)
	if ahead <= 0 {
		return nil
	}
	timer := time.NewTimer(ahead)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
