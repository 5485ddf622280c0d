package own

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
)

// liveRoutes has the endpoint of live queries.
var liveRoutes = []*serve.Route{
	{Method: "GET", Path: "{J}/live", Run: getLive, Stream: true, Socket: true, Needs: serve.ReadRight, Takes: "parameters query since untilCaughtUp"},
}

// getLive sends the events of a live query as server-sent events. Only the event current has
// an id, its token: so a client that reconnects goes on after its last whole group. since is
// a token as well, and the header Last-Event-ID has precedence. With untilCaughtUp=true the
// reply ends with the first event current.
func getLive(c *serve.Call) error {
	q, err := liveQuery(c)
	if err != nil {
		return err
	}
	token := c.Params.Get("since")
	if last := c.Header.Get("Last-Event-ID"); last != "" {
		token = last
	}
	ends, err := c.Params.Flag("untilCaughtUp")
	if err != nil {
		return err
	}
	leave, err := c.EnterStreams() // until it has caught up: the query runs, which may read a whole collection
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := c.StreamContext()
	defer cancel()
	events, ended := sent(ctx, q.Live(ctx, token))
	defer func() { cancel(); <-ended }()

	out := newEventWriter(c)
	heartbeat := time.NewTicker(feedHeartbeat)
	defer heartbeat.Stop()
	var text []byte
	for {
		done := false
		select {
		case e := <-events:
			if e.err != nil {
				return goneProblem(e.err)
			}
			if text, err = appendLive(text[:0], &e.value); err != nil {
				return err
			}
			if e.value.Kind == jay.LiveCurrent {
				leave()
				done = ends
			}
		case <-heartbeat.C:
			text = append(text[:0], ": nothing new\n\n"...)
		case <-c.Ctx.Done():
			return c.Ctx.Err()
		case <-c.Server.Ctx.Done():
			return serve.ErrShutdown
		case <-ended: // by ctx: the sender has lost the right, or the database ends
			return ctx.Err()
		}
		if err := out.write(text); err != nil || done {
			return err
		}
		if cap(text) > keptEventBytes {
			text = nil
		}
	}
}

// keptEventBytes bounds the buffer that a stream keeps between two events.
const keptEventBytes = 64 << 10

// liveQuery returns the query of the parameters.
func liveQuery(c *serve.Call) (q jay.Query[jay.Row], err error) {
	text := c.Params.Get("query")
	if text == "" {
		return q, serve.BadRequest("GET {J}/live needs the parameter query")
	}
	var given map[string]json.RawMessage
	if parameters := c.Params.Get("parameters"); parameters != "" {
		if err := json.Unmarshal([]byte(parameters), &given); err != nil {
			return q, serve.BadRequest("parameters is no JSON object: %v", err)
		}
		if err := c.PayFor([]byte(parameters), &given); err != nil { // it also refuses a name that is there twice
			return q, err
		}
	}
	values, err := verbs.Parameters(c, text, given)
	if err != nil {
		return q, err
	}
	return verbs.Query(c, text, values)
}

// appendLive appends an event of a live query as a server-sent event.
func appendLive(dst []byte, e *jay.LiveEvent[jay.Row]) (_ []byte, err error) {
	head := map[string]any{"type": e.Kind.String(), "etag": strconv.FormatUint(e.Etag, 10)}
	if e.Kind == jay.LiveCurrent {
		dst = append(append(append(dst, "id: "...), e.Token...), '\n')
	} else {
		head["id"], head["changeVector"] = e.ID, e.ChangeVector
	}
	if e.CatchingUp {
		head["catchingUp"] = true
	}
	dst = append(dst, "data: "...)
	begun := len(dst)
	dst = append(dst, serve.MustJSON(head)...)
	if e.Value != nil {
		dst = bytes.TrimSuffix(dst, []byte("}"))
		if d := e.Value.Document; d != nil {
			if dst, err = verbs.AppendDocument(append(dst, `,"document":`...), d, false); err != nil {
				return nil, err
			}
		} else {
			dst = append(append(dst, `,"row":`...), e.Value.JSON...)
		}
		dst = append(dst, '}')
	}
	for i, b := range dst[begun:] { // white space of the document, as texts have escapes
		if b == '\n' || b == '\r' {
			dst[begun+i] = ' '
		}
	}
	return append(dst, "\n\n"...), nil
}
