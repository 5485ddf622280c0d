package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jaydb/jay"
)

// This file has the endpoints of Jay's own API, beyond RavenDB's protocol, under
// /jay/v1/databases/{db}: queries with cursors, indexes, the report on IDs, figures, and
// changes as events. The studio is built on it.

// Bounds of a page.
const (
	defaultPageSize = 100
	maxPageSize     = 1000
	pageBytes       = 4 << 20 // after so many bytes a page ends early
)

// checkPageSize returns an error for a page size out of bounds.
func checkPageSize(n int) error {
	if n < 1 || n > maxPageSize {
		return badRequest("pageSize must be between 1 and %d, not %d", maxPageSize, n)
	}
	return nil
}

// ownQuery is the body of a query.
type ownQuery struct {
	Query      string                     `json:"query"`
	Parameters map[string]json.RawMessage `json:"parameters"`
	After      string                     `json:"after"`    // cursor from the previous page
	PageSize   *int                       `json:"pageSize"` // 1 to 1,000; default 100
}

// ownPage replies with a page of a query's results and the cursor of the next page. The
// cost of a page does not depend on the number of pages before it. A page that is not the
// last may have fewer rows than requested: see pageBytes. Groups and distinct rows have no
// cursor: see ownGroups.
func (c *call) ownPage() error {
	q, body, err := c.ownQuery()
	if err != nil {
		return err
	}
	if err := c.take(2 * pageBytes); err != nil { // the most that a page holds, and one document beyond
		return err
	}
	start := time.Now()
	page, err := q.PageBytes(pageBytes).Page(c.ctx)
	if errors.Is(err, jay.ErrQuery) && body.After == "" {
		return c.ownGroups(q, *body.PageSize, pageWords.MatchString(body.Query))
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
		dst = append(append(dst, `,"next":`...), mustJSON(page.Next)...)
	}
	return c.text(http.StatusOK, fmt.Appendf(dst, `,"elapsedNs":%d}`, took.Nanoseconds()))
}

// appendRow appends a result: a document with its metadata, or the selected fields.
func appendRow(dst []byte, row *jay.Row) ([]byte, error) {
	doc := row.Document
	if doc == nil {
		return append(append(append(dst, `{"row":`...), row.JSON...), '}'), nil
	}
	head := mustJSON(map[string]any{
		"id": doc.ID(), "collection": doc.Collection(), "changeVector": doc.ChangeVector(), "lastModified": doc.Metadata().LastModified.UTC().Format(ravenTime), "bytes": len(doc.Body()),
	})
	dst = append(append(dst, head[:len(head)-1]...), `,"document":`...)
	dst, err := appendDocument(dst, doc, false)
	return append(dst, '}'), err
}

// ownQuery parses the query of the body, and fills in its page size.
func (c *call) ownQuery() (q jay.Query[jay.Row], body ownQuery, err error) {
	if err := c.decode(&body); err != nil {
		return q, body, err
	}
	if body.PageSize == nil {
		size := defaultPageSize
		body.PageSize = &size
	}
	if err := checkPageSize(*body.PageSize); err != nil {
		return q, body, err
	}
	request := queryRequest{Query: body.Query, QueryParameters: body.Parameters}
	given, err := request.parameters()
	if err != nil {
		return q, body, err
	}
	if q, err = c.db.RQL(body.Query, given); err != nil {
		return q, body, err
	}
	if !pageWords.MatchString(body.Query) { // a limit in the text would be a page
		q = q.Limit(*body.PageSize)
	}
	if body.After != "" {
		q = q.After(body.After)
	}
	return q, body, nil
}

// ownExplain runs a query and replies with its plan.
func (c *call) ownExplain() error {
	q, _, err := c.ownQuery()
	if err != nil {
		return err
	}
	e, err := q.Explain(c.ctx)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, e)
}

// ownCollections replies with the collections and their numbers of documents.
func (c *call) ownCollections() error {
	all, err := c.db.Collections(c.ctx)
	if err != nil {
		return err
	}
	if all == nil {
		all = []jay.CollectionCount{}
	}
	return c.json(http.StatusOK, map[string]any{"collections": all})
}

// ownIndexes replies with the indexes of a collection, or with all.
func (c *call) ownIndexes() error {
	all, err := c.db.Indexes(c.ctx, c.params.get("collection"))
	if err != nil {
		return err
	}
	if all == nil {
		all = []jay.IndexInfo{}
	}
	return c.json(http.StatusOK, map[string]any{"indexes": all})
}

// ownPutIndex creates an index. It replies when the index is ready or, with 202, when that
// takes longer than indexPatience: the build then continues, and the list of indexes shows
// its state. With background=true the build is an operation.
func (c *call) ownPutIndex() error {
	var body indexBody
	if err := c.decode(&body); err != nil {
		return err
	}
	background, err := c.params.flag("background")
	if err != nil {
		return err
	}
	if background {
		return c.buildIndex(&body)
	}
	ctx, cancel := context.WithTimeout(c.ctx, indexPatience)
	defer cancel()
	err = c.db.EnsureIndex(ctx, body.Collection, body.Index, body.options(nil)...)
	if err != nil && ctx.Err() != nil && c.ctx.Err() == nil {
		return c.json(http.StatusAccepted, map[string]any{"ready": false})
	}
	if err != nil {
		return err
	}
	return c.json(http.StatusCreated, map[string]any{"ready": true})
}

// indexPatience is how long a request waits for an index.
const indexPatience = 2 * time.Second

// ownDropIndex drops an index.
func (c *call) ownDropIndex() error {
	ctx, cancel := context.WithTimeout(c.ctx, indexPatience)
	defer cancel()
	err := c.db.DropIndex(ctx, c.params.get("collection"), c.params.get("name"))
	if err != nil && ctx.Err() != nil && c.ctx.Err() == nil {
		return c.json(http.StatusAccepted, map[string]any{"dropped": false})
	}
	if err != nil {
		return err
	}
	return c.empty(http.StatusNoContent)
}

// ownIDs replies with the ID report. It reads the metadata of all documents.
func (c *call) ownIDs() error {
	report, err := c.db.InspectIDs(c.ctx, nil)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, report)
}

// ownCounters replies with the counters.
func (c *call) ownCounters() error {
	counters, err := c.db.Counters(c.ctx)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, counters)
}

// A feed without changes sends a comment at this interval, which shows whether the client
// is gone. A client that receives nothing for feedPatience is disconnected.
const (
	feedHeartbeat = 15 * time.Second
	feedPatience  = 30 * time.Second
)

// ownChanges sends the changes as server-sent events, first past and then live ones.
// since=now, the default, begins after the newest change; an empty since begins with the
// first one; and a token, which is the id of an event, continues after that event, as the
// header Last-Event-ID does. With untilCaughtUp=true the reply ends at the newest change.
// With positions=true the feed also sends ids without an event: its first position, and
// its progress past changes that it leaves out.
func (c *call) ownChanges() error {
	since := jay.SinceNow
	if token, found := c.params.find("since"); found && token != "now" {
		since = token
	}
	if token := c.header.Get("Last-Event-ID"); token != "" {
		since = token
	}
	var opts []jay.ChangesOption
	if name := c.params.get("collection"); name != "" {
		opts = append(opts, jay.OfCollections(name))
	}
	if prefix := c.params.get("prefix"); prefix != "" {
		opts = append(opts, jay.OfPrefixes(prefix))
	}
	if ids := c.params.all("id"); len(ids) > 0 {
		opts = append(opts, jay.OfIDs(ids...))
	}
	positions, err := c.params.flag("positions")
	if err != nil {
		return err
	}
	if positions {
		opts = append(opts, jay.WithCheckpoints())
	}
	ends, err := c.params.flag("untilCaughtUp")
	if err != nil {
		return err
	}
	if ends {
		opts = append(opts, jay.UntilCaughtUp())
	}
	opened := make(chan struct{})
	opts = append(opts, jay.Opened(func() { close(opened) }))
	ctx, cancel := c.streamContext()
	defer cancel()
	type event struct {
		change jay.Change
		err    error
	}
	events := make(chan event)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for change, err := range c.db.Changes(ctx, since, opts...) {
			select {
			case events <- event{change, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() { cancel(); <-ended }()

	control := http.NewResponseController(c.w)
	begin := func() {
		if !c.started {
			c.started, c.status = true, http.StatusOK
			c.reply.Set("Content-Type", "text/event-stream")
			c.reply.Set("Cache-Control", "no-store")
			c.w.WriteHeader(http.StatusOK)
		}
	}
	write := func(text []byte) error {
		begin()
		_ = control.SetWriteDeadline(time.Now().Add(feedPatience)) // a test's writer has no deadlines
		if _, err := c.w.Write(text); err != nil {
			return err
		}
		return control.Flush()
	}
	// Once the head of the reply is sent, no change may be missed and an error can have no
	// status. So it is sent with the first change, or a moment after the feed has its
	// position.
	var live <-chan time.Time
	heartbeat := time.NewTicker(feedHeartbeat)
	defer heartbeat.Stop()
	for {
		var text []byte
		select {
		case e := <-events:
			if e.err != nil {
				return goneProblem(e.err)
			}
			text = appendEvent(nil, e.change)
		case <-opened:
			opened, live = nil, time.After(50*time.Millisecond)
			continue
		case <-live:
			text = []byte(": live\n\n")
			if positions && since == jay.SinceNow && !c.started { // nothing was ever written: start with all changes
				text = []byte("id: \n\n: live\n\n")
			}
		case <-heartbeat.C:
			text = []byte(": nothing new\n\n")
		case <-c.ctx.Done():
			return c.ctx.Err()
		case <-c.s.ctx.Done():
			return errShutdown
		case <-ended:
			if err := ctx.Err(); err != nil { // interrupted, which is not the end of the changes
				return err
			}
			begin() // in case there was no change
			return nil
		}
		if err := write(text); err != nil {
			return err
		}
	}
}

// goneProblem converts the error for a token after which changes are missing; the client
// must start over.
func goneProblem(err error) error {
	var gone *jay.ChangesGoneError
	if !errors.As(err, &gone) {
		return err
	}
	p := &problem{status: http.StatusGone, kind: typeChangesGone, message: oneLine(strings.TrimPrefix(err.Error(), "jay: "))}
	p.fields = map[string]any{"reason": gone.Reason, "oldest": strconv.FormatUint(gone.Oldest, 10)}
	return p
}

// typeChangesGone is an exception that RavenDB does not have.
const typeChangesGone = raven + "ChangesGoneException"

// appendEvent appends a change as a server-sent event.
func appendEvent(dst []byte, change jay.Change) []byte {
	if change.Checkpoint { // only an id, from which a client can resume
		return append(append(append(dst, "id: "...), change.Token()...), "\n\n"...)
	}
	kind := "put"
	if change.Deleted {
		kind = "delete"
	}
	body := map[string]any{
		"type": kind, "id": change.ID, "collection": change.Collection, "changeVector": change.ChangeVector(), "etag": strconv.FormatUint(change.Etag, 10),
	}
	if !change.LastModified.IsZero() {
		body["lastModified"] = change.LastModified.UTC().Format(ravenTime)
	}
	data := bytes.ReplaceAll(mustJSON(body), []byte("\n"), nil)
	dst = append(append(append(dst, "id: "...), change.Token()...), "\ndata: "...)
	return append(append(dst, data...), "\n\n"...)
}
