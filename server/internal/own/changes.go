package own

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
)

// changeRoutes has the endpoint of changes.
var changeRoutes = []*serve.Route{
	{Method: "GET", Path: "{J}/changes", Run: getChanges, Stream: true, Socket: true, Takes: "collection id* positions prefix since untilCaughtUp"},
}

// getChanges sends the changes as server-sent events, first past and then live ones.
// since=now, the default, begins after the newest change; an empty since begins with the
// first one; and a token, which is the id of an event, continues after that event, as the
// header Last-Event-ID does. With untilCaughtUp=true the reply ends at the newest change.
// With positions=true the feed also sends ids without an event: its first position, and
// its progress past changes that it leaves out.
func getChanges(c *serve.Call) error {
	since := jay.SinceNow
	if token, found := c.Params.Find("since"); found && token != "now" {
		since = token
	}
	if token := c.Header.Get("Last-Event-ID"); token != "" {
		since = token
	}
	var opts []jay.ChangesOption
	if name := c.Params.Get("collection"); name != "" {
		opts = append(opts, jay.OfCollections(name))
	}
	if prefix := c.Params.Get("prefix"); prefix != "" {
		opts = append(opts, jay.OfPrefixes(prefix))
	}
	if ids := c.Params.All("id"); len(ids) > 0 {
		opts = append(opts, jay.OfIDs(ids...))
	}
	positions, err := c.Params.Flag("positions")
	if err != nil {
		return err
	}
	if positions {
		opts = append(opts, jay.WithCheckpoints())
	}
	ends, err := c.Params.Flag("untilCaughtUp")
	if err != nil {
		return err
	}
	if ends {
		opts = append(opts, jay.UntilCaughtUp())
	}
	opened := make(chan struct{})
	opts = append(opts, jay.Opened(func() { close(opened) }))
	ctx, cancel := c.StreamContext()
	defer cancel()
	events, ended := sent(ctx, c.DB.Changes(ctx, since, opts...))
	defer func() { cancel(); <-ended }()

	out := newEventWriter(c)
	// Once the head of the reply is sent, no change may be missed and an error can have no
	// status. So it is sent with the first change, or a moment after the feed has its
	// position; a reply that ends at the newest change has no moment without either.
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
			text = appendEvent(nil, e.value)
		case <-opened:
			if opened = nil; !ends {
				live = time.After(50 * time.Millisecond)
			}
			continue
		case <-live:
			text = []byte(": live\n\n")
			if positions && since == jay.SinceNow && !c.Started { // nothing was ever written: start with all changes
				text = []byte("id: \n\n: live\n\n")
			}
		case <-heartbeat.C:
			text = []byte(": nothing new\n\n")
		case <-c.Ctx.Done():
			return c.Ctx.Err()
		case <-c.Server.Ctx.Done():
			return serve.ErrShutdown
		case <-ended:
			if err := ctx.Err(); err != nil { // interrupted, which is not the end of the changes
				return err
			}
			out.begin() // in case there was no change
			return nil
		}
		if err := out.write(text); err != nil {
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
	p := &serve.Problem{Status: http.StatusGone, Kind: typeChangesGone, Message: serve.OneLine(strings.TrimPrefix(err.Error(), "jay: "))}
	p.Fields = map[string]any{"reason": gone.Reason, "oldest": strconv.FormatUint(gone.Oldest, 10)}
	return p
}

// typeChangesGone is an exception that RavenDB does not have.
const typeChangesGone = serve.ExceptionPrefix + "ChangesGoneException"

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
		body["lastModified"] = change.LastModified.UTC().Format(serve.RavenTime)
	}
	data := bytes.ReplaceAll(serve.MustJSON(body), []byte("\n"), nil)
	dst = append(append(append(dst, "id: "...), change.Token()...), "\ndata: "...)
	return append(append(dst, data...), "\n\n"...)
}
