package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/script"
)

// The states of a patch, in RavenDB's spelling.
const (
	patchPatched     = "Patched"
	patchCreated     = "Created"
	patchNotModified = "NotModified"
	patchSkipped     = "Skipped"
	patchMissing     = "DocumentDoesNotExist"
)

const typeScript = raven + "Documents.Patching.JavaScriptException"

// patchRequest is a script and its arguments.
type patchRequest struct {
	Script string
	Values json.RawMessage

	program *script.Program
}

// parse parses the script.
func (p *patchRequest) parse() (err error) {
	if strings.TrimSpace(p.Script) == "" {
		return badRequest("a patch needs a Script")
	}
	p.program, err = script.Parse(p.Script)
	return err
}

// scriptProblem converts the error of a script to what a client gets; nil if err is no
// script error.
func scriptProblem(err error) *problem {
	var e *script.Error
	if !errors.As(err, &e) {
		return nil
	}
	if e.Cause != nil {
		if p := problemOf(e.Cause); p.status >= http.StatusInternalServerError || p.status == http.StatusConflict {
			return p
		}
	}
	if e.Missing {
		return notSupported("%s", oneLine(e.Error()))
	}
	return &problem{status: http.StatusBadRequest, kind: typeScript, message: oneLine(e.Error())}
}

// patching is a patch of one document in a transaction.
type patching struct {
	c        *call
	patch    *patchRequest
	missing  *patchRequest   // script to run on an empty document if there is none, or nil
	create   json.RawMessage // document to store if there is none, or nil
	expected *string         // expected version, or nil for any
	skip     bool            // leave a document of another version alone
	test     bool            // store nothing
	others   []string        // with test, other documents that the script would put or delete
	names    []string        // names of the document in the script
	given    map[string]json.RawMessage
}

// patched is the result of a patch.
type patched struct {
	id, status   string
	collection   string
	before       []byte // JSON with its @metadata, or nil
	after        []byte // as the script leaves it
	output       []string
	meta         jay.Metadata // of the new version, once it is committed
	changeVector string       // of the old version
	modified     time.Time
}

// run patches the document in tx. It may run several times.
func (p *patching) run(ctx context.Context, tx *jay.Tx, id string) (*patched, error) {
	out := &patched{id: id, status: patchPatched}
	doc, err := tx.Get(ctx, id)
	if err != nil && !isMissing(err) {
		return nil, err
	}
	if doc == nil && p.expected != nil && *p.expected != "" || doc != nil && p.expected != nil && *p.expected != doc.ChangeVector() {
		actual := ""
		if doc != nil {
			actual = doc.ChangeVector()
		}
		if p.skip {
			out.status, out.changeVector = patchSkipped, actual
			return out, nil
		}
		return nil, &jay.ConflictError{ID: id, Expected: *p.expected, Actual: actual}
	}
	request, given := p.patch, []byte(nil)
	switch {
	case doc != nil:
		if given, err = doc.MarshalJSON(); err != nil {
			return nil, err
		}
		out.before, out.id, out.collection, out.changeVector, out.modified = given, doc.ID(), doc.Collection(), doc.ChangeVector(), doc.Metadata().LastModified
	case len(p.create) > 0 && string(p.create) != "null":
		out.status, out.after = patchCreated, p.create
		return out, p.store(ctx, tx, out)
	case p.missing != nil:
		out.status, request, given = patchCreated, p.missing, []byte(`{}`)
	default:
		out.status = patchMissing
		return out, nil
	}
	result, err := request.program.Run(ctx, script.Input{ID: id, Document: given, Args: request.Values, Parameters: p.given, Names: p.names}, &scriptHost{ctx, p, tx})
	if err != nil {
		return nil, err
	}
	out.after, out.output = result.Document, result.Output
	if doc != nil && !result.Changed {
		out.status = patchNotModified
		return out, nil
	}
	return out, p.store(ctx, tx, out)
}

// store stores the new version.
func (p *patching) store(ctx context.Context, tx *jay.Tx, out *patched) error {
	if p.test {
		return nil
	}
	_, err := tx.Put(ctx, out.id, out.after, jay.Returning(&out.meta))
	return err
}

// scriptHost gives a script access to documents.
type scriptHost struct {
	ctx context.Context
	p   *patching
	tx  *jay.Tx
}

func (h *scriptHost) Load(id string) ([]byte, error) {
	doc, err := h.tx.Get(h.ctx, id)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return doc.MarshalJSON()
}

func (h *scriptHost) Put(id string, document []byte, changeVector string) (string, error) {
	if h.p.test {
		h.p.note("put", id)
		return id, nil
	}
	var opts []jay.WriteOption
	if changeVector != "" {
		opts = append(opts, jay.IfMatch(changeVector))
	}
	meta, err := h.tx.Put(h.ctx, id, document, opts...)
	return meta.ID, err
}

func (h *scriptHost) Delete(id string) (bool, error) {
	found, err := h.tx.Exists(h.ctx, id)
	if found && h.p.test {
		h.p.note("delete", id)
	}
	if err != nil || !found || h.p.test {
		return found, err
	}
	return true, h.tx.Delete(h.ctx, id)
}

// note records a change that a test does not make.
func (p *patching) note(verb, id string) {
	if len(p.others) < maxPreviewOthers {
		p.others = append(p.others, verb+" "+id)
	}
}

// version returns the change vector and the time of the document's present version.
func (o *patched) version() (changeVector string, modified time.Time) {
	if o.meta.ChangeVector != "" {
		return o.meta.ChangeVector, o.meta.LastModified
	}
	return o.changeVector, o.modified
}

// result is the reply to a patch.
func (o *patched) result(debug bool) map[string]any {
	changeVector, modified := o.version()
	collection := o.collection
	if o.meta.Collection != "" {
		collection = o.meta.Collection
	}
	reply := map[string]any{"Status": o.status, "ModifiedDocument": nil, "OriginalDocument": nil, "ChangeVector": changeVector, "Collection": collection, "LastModified": nil, "Debug": nil}
	if !modified.IsZero() {
		reply["LastModified"] = modified.UTC().Format(ravenTime)
	}
	if o.after != nil {
		reply["ModifiedDocument"] = json.RawMessage(o.after)
	}
	if debug {
		if o.before != nil {
			reply["OriginalDocument"] = json.RawMessage(o.before)
		}
		reply["Debug"] = map[string]any{"Info": slices.Concat([]string{}, o.output)}
	}
	return reply
}

// patchDocument runs a script on a document.
func (c *call) patchDocument() error {
	id, err := c.documentID()
	if err != nil {
		return err
	}
	var request struct{ Patch, PatchIfMissing *patchRequest }
	if err := c.decode(&request); err != nil {
		return err
	}
	if request.Patch == nil {
		return badRequest("the request has no Patch")
	}
	p := &patching{c: c, patch: request.Patch, missing: request.PatchIfMissing}
	if p.skip, err = c.params.flag("skipPatchIfChangeVectorMismatch"); err != nil {
		return err
	}
	if p.test, err = c.params.flag("test"); err != nil {
		return err
	}
	debug, err := c.params.flag("debug")
	if err != nil {
		return err
	}
	expected, conditional, err := c.ifMatch()
	if err != nil {
		return err
	}
	if conditional && expected == nil {
		return badRequest("If-Match of a patch must name a version")
	}
	p.expected = expected
	if err := p.patch.parse(); err != nil {
		return err
	}
	if p.missing != nil {
		if err := p.missing.parse(); err != nil {
			return err
		}
	}
	var done *patched
	if err := c.db.Update(c.ctx, func(tx *jay.Tx) (err error) {
		done, err = p.run(c.ctx, tx, id)
		return err
	}); err != nil {
		return err
	}
	switch done.status {
	case patchMissing:
		return c.empty(http.StatusNotFound)
	case patchSkipped:
		return c.empty(http.StatusNotModified)
	}
	status := http.StatusOK
	if done.status == patchCreated {
		status = http.StatusCreated
	}
	return c.json(status, done.result(debug || p.test))
}

// byQuery is a change by query.
type byQuery struct {
	text    string       // RQL without update { }
	matcher *jay.Matcher // of the query
	given   map[string]any
	missing string // the status for a document that is gone
	each    func(ctx context.Context, tx *jay.Tx, id string) (status string, err error)
	details bool
	perSec  int
}

// queryOptions reads the options of a change by query. Queries are never stale.
func (c *call) queryOptions(b *byQuery) (err error) {
	if c.params.get("details") != "" {
		if b.details, err = c.params.flag("details"); err != nil {
			return err
		}
	}
	b.perSec, err = c.params.count("maxOpsPerSec", 0)
	return err
}

// deleteByQuery deletes the results of a query, as an operation.
func (c *call) deleteByQuery() error {
	request, err := c.queryRequest()
	if err != nil {
		return err
	}
	given, err := request.parameters()
	if err != nil {
		return err
	}
	b := &byQuery{text: request.Query, given: given, missing: "NotFound", each: func(ctx context.Context, tx *jay.Tx, id string) (string, error) {
		return "Deleted", tx.Delete(ctx, id)
	}}
	if err := c.queryOptions(b); err != nil {
		return err
	}
	return c.changeByQuery(b)
}

// patchByQuery runs the script of update { } on the results of a query, as an operation.
func (c *call) patchByQuery() error {
	var body struct{ Query json.RawMessage }
	if err := c.decode(&body); err != nil {
		return err
	}
	if len(body.Query) == 0 || string(body.Query) == "null" {
		return badRequest("the request has no Query")
	}
	var request queryRequest
	if body.Query[0] == '"' {
		if err := json.Unmarshal(body.Query, &request.Query); err != nil {
			return badRequest("the query is no text: %v", err)
		}
	} else if err := json.Unmarshal(body.Query, &request); err != nil {
		return badRequest("the query is not the JSON of one: %v", err)
	}
	b, p, err := c.newUpdate(request.Query, request.QueryParameters)
	if err != nil {
		return err
	}
	b.missing = patchMissing
	b.each = func(ctx context.Context, tx *jay.Tx, id string) (string, error) {
		done, err := p.run(ctx, tx, id)
		if err != nil {
			return "", err
		}
		return done.status, nil
	}
	if err := c.queryOptions(b); err != nil {
		return err
	}
	return c.changeByQuery(b)
}

// newUpdate parses a query with update { } at its end, and the script in it.
func (c *call) newUpdate(text string, parameters map[string]json.RawMessage) (*byQuery, *patching, error) {
	front, source, err := splitUpdate(text)
	if err != nil {
		return nil, nil, err
	}
	program, err := script.Parse(source)
	if err != nil {
		return nil, nil, err
	}
	given, err := (&queryRequest{Query: front, QueryParameters: parameters}).parameters()
	if err != nil {
		return nil, nil, err
	}
	p := &patching{c: c, patch: &patchRequest{program: program}, given: parameters}
	if m := aliasOf.FindStringSubmatch(front); m != nil && !slices.Contains(clauseWords, strings.ToLower(m[1])) {
		p.names = []string{m[1]}
	}
	return &byQuery{text: front, given: given}, p, nil
}

// aliasOf matches the alias in a query.
var aliasOf = regexp.MustCompile(`(?i)^\s*from\s+(?:index\s+)?(?:'[^']*'|"[^"]*"|[^\s'"]+)\s+(?:as\s+)?([\pL_][\pL\pN_]*)`)

// clauseWords are the keywords that can stand where an alias could.
var clauseWords = []string{"where", "order", "load", "include", "group", "select", "update", "limit", "offset", "filter", "use"}

// splitUpdate splits a query before update { }, and returns the script in the braces.
func splitUpdate(text string) (query, source string, err error) {
	missing := badRequest("the query changes nothing: it needs update { } at its end")
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '\'' || b == '"':
			for i++; i < len(text) && text[i] != b; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case strings.HasPrefix(text[i:], "//"):
			for i < len(text) && text[i] != '\n' {
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
				return "", "", badRequest("update { has no end, or something stands behind it")
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

// Bounds of a change by query.
const (
	byQueryBatch = 128  // documents per transaction
	maxDetails   = 1024 // documents whose results are kept
)

// change changes a document, if the query still finds it.
func (b *byQuery) change(ctx context.Context, tx *jay.Tx, id string) (status string, err error) {
	doc, err := tx.Get(ctx, id)
	if errors.Is(err, jay.ErrNotFound) {
		return b.missing, nil
	}
	if err != nil {
		return "", err
	}
	matches, err := b.matcher.Match(ctx, doc)
	if err != nil || !matches {
		return patchSkipped, err
	}
	return b.each(ctx, tx, id)
}

// changeByQuery changes the results of a query, as an operation. The query runs on one
// snapshot. Each batch of documents is a transaction that changes their present versions,
// and leaves out documents that were deleted meanwhile or no longer match the query.
func (c *call) changeByQuery(b *byQuery) error {
	text, err := c.fromIndex(b.text)
	if err != nil {
		return err
	}
	c.subject = text
	b.text = text
	q, err := c.db.RQL(b.text, b.given) // so that errors of the query are in the reply
	if err != nil {
		return err
	}
	total, err := q.Count(c.ctx)
	if err != nil {
		return err
	}
	if b.matcher, err = q.Matcher(); err != nil {
		return err
	}
	db := c.db
	return c.background(func(ctx context.Context, o *operation) (any, error) {
		return c.s.changeAll(ctx, db, o, b, total)
	})
}

// changeAll changes the results of the query, batch by batch.
func (s *Server) changeAll(ctx context.Context, db *jay.DB, o *operation, b *byQuery, total int64) (result any, err error) {
	processed := int64(0)
	details := []any{}
	start := s.opts.Now()
	report := func() {
		s.operations.progress(o, map[string]any{"$type": "Raven.Client.Documents.Operations.DeterminateProgress, Raven.Client", "Processed": processed, "Total": max(total, processed)})
	}
	report()
	change := func(ids []string) error {
		var statuses []string
		if err := db.Update(ctx, func(tx *jay.Tx) error {
			statuses = statuses[:0]
			for _, id := range ids {
				status, err := b.change(ctx, tx, id)
				if err != nil {
					return err
				}
				statuses = append(statuses, status)
			}
			return nil
		}); err != nil {
			return err
		}
		for i := range ids {
			if b.details && len(details) < maxDetails {
				details = append(details, map[string]any{"Id": ids[i], "Status": statuses[i]})
			}
		}
		processed += int64(len(ids))
		report()
		return s.throttle(ctx, b.perSec, processed, start)
	}
	size := byQueryBatch
	if b.perSec > 0 {
		size = min(size, b.perSec)
	}
	err = db.View(ctx, func(tx *jay.Tx) error {
		q, err := tx.RQL(b.text, b.given)
		if err != nil {
			return err
		}
		var ids []string
		for row, err := range q.Iter(ctx) {
			if err != nil {
				return err
			}
			if row.Document == nil {
				return badRequest("the query selects: a change needs whole documents")
			}
			if ids = append(ids, row.Document.ID()); len(ids) == size {
				if err := change(ids); err != nil {
					return err
				}
				ids = ids[:0]
			}
		}
		if len(ids) > 0 {
			return change(ids)
		}
		return nil
	})
	return map[string]any{"$type": "Raven.Client.Documents.Operations.BulkOperationResult, Raven.Client", "Total": processed, "DocumentsProcessed": processed,
		"Query": b.text, "Details": details, "Message": "Processed " + string(mustJSON(processed)) + " items.", "ShouldPersist": false}, err
}

// throttle waits so that no more than perSec documents a second are changed.
func (s *Server) throttle(ctx context.Context, perSec int, processed int64, start time.Time) error {
	if perSec == 0 {
		return nil
	}
	ahead := time.Duration(float64(processed)/float64(perSec)*float64(time.Second)) - s.opts.Now().Sub(start)
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
