package raven

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
)

// patchRoutes are the endpoints of patches, and of changes by query.
var patchRoutes = []*serve.Route{
	{Method: "PATCH", Path: "{D}/docs", Run: patchDocument, Body: true, Stores: true, Heeds: serve.Match, Takes: "debug id skipPatchIfChangeVectorMismatch test"},
	{Method: "PATCH", Path: "{D}/queries", Run: patchByQuery, Timed: true, Begins: "patch by query", Body: true, Stores: true, Takes: "details maxOpsPerSec"},
	{Method: "DELETE", Path: "{D}/queries", Run: deleteByQuery, Timed: true, Begins: "delete by query", Body: true, Takes: "details maxOpsPerSec"},
}

// version returns the change vector and the time of the document's present version.
func version(o *verbs.Patched) (changeVector string, modified time.Time) {
	if o.Meta.ChangeVector != "" {
		return o.Meta.ChangeVector, o.Meta.LastModified
	}
	return o.ChangeVector, o.Modified
}

// replyBytes returns the bytes that the reply to a patch takes at most, and what it is made
// from.
func replyBytes(o *verbs.Patched) int64 {
	n := len(o.Before) + len(o.After)
	for _, line := range o.Output {
		n += len(line) + 16
	}
	return 4 * int64(n)
}

// result is the reply to a patch.
func result(o *verbs.Patched, debug bool) map[string]any {
	changeVector, modified := version(o)
	collection := o.Collection
	if o.Meta.Collection != "" {
		collection = o.Meta.Collection
	}
	reply := map[string]any{"Status": o.Status, "ModifiedDocument": nil, "OriginalDocument": nil, "ChangeVector": changeVector, "Collection": collection, "LastModified": nil, "Debug": nil}
	if !modified.IsZero() {
		reply["LastModified"] = modified.UTC().Format(serve.RavenTime)
	}
	if o.After != nil {
		reply["ModifiedDocument"] = json.RawMessage(o.After)
	}
	if debug {
		if o.Before != nil {
			reply["OriginalDocument"] = json.RawMessage(o.Before)
		}
		reply["Debug"] = map[string]any{"Info": slices.Concat([]string{}, o.Output)}
	}
	return reply
}

// patchDocument runs a script on a document.
func patchDocument(c *serve.Call) error {
	id, err := verbs.DocumentID(c)
	if err != nil {
		return err
	}
	var request struct{ Patch, PatchIfMissing *verbs.PatchRequest }
	if err := c.Decode(&request); err != nil {
		return err
	}
	if request.Patch == nil {
		return serve.BadRequest("the request has no Patch")
	}
	p := &verbs.Patching{Call: c, Patch: request.Patch, Missing: request.PatchIfMissing}
	if p.Skip, err = c.Params.Flag("skipPatchIfChangeVectorMismatch"); err != nil {
		return err
	}
	if p.Test, err = c.Params.Flag("test"); err != nil {
		return err
	}
	debug, err := c.Params.Flag("debug")
	if err != nil {
		return err
	}
	expected, conditional, err := ifMatch(c)
	if err != nil {
		return err
	}
	if conditional && expected == nil {
		return serve.BadRequest("If-Match of a patch must name a version")
	}
	p.Expected = expected
	if err := p.Patch.Parse(); err != nil {
		return err
	}
	if p.Missing != nil {
		if err := p.Missing.Parse(); err != nil {
			return err
		}
	}
	p.Memory = c.Server.Memory.Holding(c.Sender())
	defer p.Memory.End()
	var done *verbs.Patched
	if err := c.DB.Update(c.Ctx, func(tx *jay.Tx) (err error) {
		p.Memory.End() // of a run before
		if done, err = p.Run(c.Ctx, tx, id); err == nil {
			err = c.Take(replyBytes(done)) // before the commit, so that a refusal is true
		}
		return err
	}, jay.Retry()); err != nil { // a condition is checked again by each run
		return err
	}
	switch done.Status {
	case verbs.PatchMissing:
		return c.Empty(http.StatusNotFound)
	case verbs.PatchSkipped:
		return c.Empty(http.StatusNotModified)
	}
	status := http.StatusOK
	if done.Status == verbs.PatchCreated {
		status = http.StatusCreated
	}
	return c.JSON(status, result(done, debug || p.Test))
}

// queryOptions reads the options of a change by query. Queries are never stale.
func queryOptions(c *serve.Call, b *verbs.ByQuery) (err error) {
	if c.Params.Get("details") != "" {
		if b.Details, err = c.Params.Flag("details"); err != nil {
			return err
		}
	}
	b.PerSec, err = c.Params.Count("maxOpsPerSec", 0)
	return err
}

// deleteByQuery deletes the results of a query, as an operation.
func deleteByQuery(c *serve.Call) error {
	request, err := readQuery(c)
	if err != nil {
		return err
	}
	given, err := verbs.Parameters(c, request.Query, request.QueryParameters)
	if err != nil {
		return err
	}
	b := &verbs.ByQuery{Text: request.Query, Given: given, Page: request.QueryPage, Missing: "NotFound", Detail: "DeleteDetails", Each: func(ctx context.Context, tx *jay.Tx, id string) (string, error) {
		return "Deleted", tx.Delete(ctx, id)
	}}
	if err := queryOptions(c, b); err != nil {
		return err
	}
	return verbs.ChangeByQuery(c, b)
}

// patchByQuery runs the script of update { } on the results of a query, as an operation.
func patchByQuery(c *serve.Call) error {
	var body struct{ Query json.RawMessage }
	if err := c.Decode(&body); err != nil {
		return err
	}
	if len(body.Query) == 0 || string(body.Query) == "null" {
		return serve.BadRequest("the request has no Query")
	}
	var request queryRequest
	if body.Query[0] == '"' {
		if err := json.Unmarshal(body.Query, &request.Query); err != nil {
			return serve.BadRequest("the query is no text: %v", err)
		}
	} else if err := c.PayFor(body.Query, &request); err != nil {
		return err
	} else if err := json.Unmarshal(body.Query, &request); err != nil {
		return serve.BadRequest("the query is not the JSON of one: %v", err)
	}
	if err := request.check(); err != nil {
		return err
	}
	b, p, err := verbs.NewUpdate(c, quoteHyphens(request.Query), request.QueryParameters)
	if err != nil {
		return err
	}
	b.Missing, b.Page, b.Detail = verbs.PatchMissing, request.QueryPage, "PatchDetails"
	b.Each = func(ctx context.Context, tx *jay.Tx, id string) (string, error) {
		done, err := p.Run(ctx, tx, id)
		if err != nil {
			return "", err
		}
		return done.Status, nil
	}
	if err := queryOptions(c, b); err != nil {
		return err
	}
	return verbs.ChangeByQuery(c, b)
}
