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

// This file has what Jay answers beyond RavenDB's protocol, under
// /jay/v1/databases/{db}: queries with cursors, indexes, the report on IDs, figures, and
// changes as events. The studio is built on it.

// Bounds of a page.
const (
	defaultPageSize = 100
	maxPageSize     = 1000
	pageBytes       = 4 << 20 // a page ends early with them
)

// checkPageSize refuses a page of no rows, and one of too many.
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
	After      string                     `json:"after"`    // the cursor of the page before
	PageSize   *int                       `json:"pageSize"` // 1 to 1,000; 100 without
}

// ownPage answers a page of a query, and the cursor with which the next one begins. The
// cost of a page does not depend on how many came before it. A page with a next one may
// have fewer rows than were asked for: see pageBytes. Groups and distinct rows have no
// cursor: see ownGroups.
func (c *call) ownPage() error {
	q, body, err := c.ownQuery()
	if err != nil {
		return err
	}
	if err := c.take(2 * pageBytes); err != nil { // what a page may hold, before one document
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

// appendRow appends an answer: a document with what is known of it, or what was selected.
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

// ownQuery reads the query of the body, whose page size is then set.
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
	if !pageWords.MatchString(body.Query) { // a limit in the text is the page
		q = q.Limit(*body.PageSize)
	}
	if body.After != "" {
		q = q.After(body.After)
	}
	return q, body, nil
}

// ownExplain runs a query, and answers how it was answered.
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

// ownCollections answers the collections, and how many documents each has.
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

// ownIndexes answers the indexes of a collection, or all of them.
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

// ownPutIndex creates an index. The reply comes when it is ready, and 202 if that takes
// longer than a moment: the build goes on, and the list shows its state. With
// background=true it is an operation.
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

// ownIDs answers the report on the IDs. It reads the metadata of all documents.
func (c *call) ownIDs() error {
	report, err := c.db.InspectIDs(c.ctx, nil)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, report)
}

// ownCounters answers the counters.
func (c *call) ownCounters() error {
	counters, err := c.db.Counters(c.ctx)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, counters)
}

// Feeds send a comment when nothing has changed for so long: so a client that is gone is
// noticed. One that takes nothing for feedPatience is disconnected.
const (
	feedHeartbeat = 15 * time.Second
	feedPatience  = 30 * time.Second
)

// ownChanges sends the changes as server-sent events, past and live: since=now, the
// default, begins behind the newest; since= begins with the first, and a token, which is
// the id of an event, goes on behind that, as does the header Last-Event-ID. With
// untilCaughtUp=true it ends at the newest change. With positions=true there are ids without
// an event, too: where the feed begins, and how far it has come past changes that it leaves
// out.
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
		_ = control.SetWriteDeadline(time.Now().Add(feedPatience)) // no deadlines in a test's writer
		if _, err := c.w.Write(text); err != nil {
			return err
		}
		return control.Flush()
	}
	// A reply that has begun promises every change from then on, and an error has no status
	// any more: it begins with the first change, or a moment after the feed has its position.
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
			if positions && since == jay.SinceNow && !c.started { // nothing was ever written: it begins with all
				text = []byte("id: \n\n: live\n\n")
			}
		case <-heartbeat.C:
			text = []byte(": nothing new\n\n")
		case <-c.ctx.Done():
			return c.ctx.Err()
		case <-c.s.ctx.Done():
			return errShutdown
		case <-ended:
			if err := ctx.Err(); err != nil { // cut short, which is not the end of the changes
				return err
			}
			begin() // there may have been none
			return nil
		}
		if err := write(text); err != nil {
			return err
		}
	}
}

// goneProblem says that the changes behind a token are not there any more, where that is
// so: the client has missed some, and must not go on as if it had not.
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
	if change.Checkpoint { // a client that remembers the id goes on there
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
