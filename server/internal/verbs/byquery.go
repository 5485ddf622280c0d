package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
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
	maxDetailBytes = 64 << 10 // of these results, without their types
)

// ByQuery is a change by query.
type ByQuery struct {
	Text    string       // RQL without update { }
	matcher *jay.Matcher // of the query
	Given   map[string]any
	Missing string // the status for a document that is gone
	Each    func(ctx context.Context, tx *jay.Tx, id string) (status string, err error)
	Details bool
	Detail  string // the type of RavenDB that a detail has; "" for none
	PerSec  int
	Page    QueryPage // only these of the results are changed

	patching *Patching // of update { }, or nil
	entries  *Entries  // find the documents in place of Text; nil for none
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
	matches, err := b.matcher.MatchIn(ctx, tx, doc)
	if err != nil || !matches {
		return PatchSkipped, err
	}
	return b.Each(ctx, tx, id)
}

// Find finds the index that the query names, and makes the query one of its documents.
func (b *ByQuery) Find(c *serve.Call) error {
	text, found, err := FromIndex(c, b.Text)
	if err != nil {
		return err
	}
	ix := found.Computed
	if ix == nil {
		b.Text, b.Given, err = found.AdaptText(text, b.Given)
		return err
	}
	b.Text = text
	if ix.Reduce != nil {
		return serve.BadRequest("index %.150q has a reduce: its results are groups of documents, and none is changed", ix.Name)
	}
	asked, err := ix.Ask(c, text, b.Given, fromDefault)
	if err != nil {
		return err
	}
	if len(asked.Includes) > 0 {
		return serve.BadRequest("the query includes documents: a change needs those that it finds")
	}
	if b.entries = asked.Entries; b.entries == nil {
		b.Text, b.Given = asked.Text, nil
	} else if rows, _ := b.entries.Rows(); rows {
		return errSelects
	}
	return nil
}

// errSelects refuses a change of what is no document.
var errSelects = serve.BadRequest("the query selects: a change needs whole documents")

// Count returns how many documents are to be changed.
func (b *ByQuery) Count(ctx context.Context, tx *jay.Tx) (int64, error) {
	if b.entries == nil {
		q, err := tx.RQL(b.Text, b.Given)
		if err != nil {
			return 0, err
		}
		return b.Page.Of(q).Count(ctx)
	}
	n, err := b.entries.Count(ctx, tx)
	skip, most := b.entries.bounds(b.Page)
	return min(max(n-int64(skip), 0), int64(most)), err
}

// Documents returns the documents that are to be changed.
func (b *ByQuery) Documents(ctx context.Context, tx *jay.Tx) iter.Seq2[*jay.Document, error] {
	return func(yield func(*jay.Document, error) bool) {
		rows := func(yield func(*jay.Row, error) bool) {
			q, err := tx.RQL(b.Text, b.Given)
			if err != nil {
				yield(nil, err)
				return
			}
			b.Page.Of(q).Iter(ctx)(yield)
		}
		if b.entries != nil {
			rows = b.entries.Iter(ctx, tx, b.Page)
		}
		for row, err := range rows {
			if err == nil && row.Document == nil {
				err = errSelects
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(row.Document, nil) {
				return
			}
		}
	}
}

// ChangeByQuery changes the results of a query, as an operation. The query runs on one
// snapshot. Each batch of documents is a transaction that changes their present versions,
// and leaves out documents that were deleted meanwhile or no longer match the query.
func ChangeByQuery(c *serve.Call, b *ByQuery) error {
	if err := b.Find(c); err != nil {
		return err
	}
	c.Subject = b.Text
	q, err := c.DB.RQL(b.Text, b.Given) // so that errors of the query are in the reply
	if err != nil {
		return err
	}
	total := int64(0)
	if err := c.DB.View(c.Ctx, func(tx *jay.Tx) (err error) {
		total, err = b.Count(c.Reading(c.Ctx, 1), tx)
		return err
	}); err != nil {
		return err
	}
	if b.matcher, err = q.Matcher(); err != nil {
		return err
	}
	db, staged, seen := c.DB, c.Server.Memory.Holding(c.Sender()), c.Server.Memory.Holding(c.Sender())
	return c.Background(func(ctx context.Context, o *serve.Operation) (any, error) {
		if b.entries != nil { // the call has ended
			defer seen.End()
			b.entries.take = seen.Take
		}
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
	detailType := ""
	if b.Detail != "" { // the clients for .NET and PHP make objects of it
		detailType = `"$type":"Raven.Client.Documents.Operations.BulkOperationResult+` + b.Detail + `, Raven.Client",`
	}
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
			if !b.Details || kept == maxDetails || len(details)-kept*len(detailType) > maxDetailBytes {
				break
			}
			if kept++; kept > 1 {
				details = append(details, ',')
			}
			details = append(append(details, '{'), detailType...)
			details = append(details, serve.MustJSON(map[string]string{"Id": ids[i], "Status": statuses[i]})[1:]...)
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
		var ids []string
		found := 0 // bytes of their bodies
		for doc, err := range b.Documents(ctx, tx) {
			if err != nil {
				return err
			}
			ids, found = append(ids, doc.ID()), found+len(doc.Body())
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
