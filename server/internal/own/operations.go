package own

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/jaydb/jay/server/internal/serve"
)

// operationRoutes has the endpoint of operations.
var operationRoutes = []*serve.Route{
	{Method: "GET", Path: "/jay/v1/operations", Run: getOperations, Open: true, Takes: "database id pageSize"},
}

// watched runs a stream as the operation that operation= names, whose number the client
// has got before. The operation shows the progress of the stream and can be killed.
// Without the parameter o is nil.
func watched(c *serve.Call, ctx context.Context, fn func(ctx context.Context, o *serve.Operation) (result any, err error)) error {
	id, err := c.Params.Number("operation", 0)
	if err != nil {
		return err
	}
	if id == 0 {
		_, err := fn(ctx, nil)
		return err
	}
	ctx, o, err := c.Server.Operations.Start(ctx, c.Database.Key, id, c.About())
	if err != nil {
		return err
	}
	result, err := serve.RunOperation(ctx, o, fn)
	c.Server.Operations.End(ctx, o, result, err)
	return err
}

// report sets the progress of a stream, if it is an operation.
func report(c *serve.Call, o *serve.Operation, progress any) {
	if o != nil {
		c.Server.Operations.Progress(o, progress)
	}
}

// operationReply is an operation in the list.
type operationReply struct {
	ID       int64      `json:"id"`
	Database string     `json:"database"` // "" for one of the server
	Kind     string     `json:"kind"`
	Subject  string     `json:"subject,omitempty"`
	By       string     `json:"by,omitempty"`
	Began    time.Time  `json:"began"`
	Ended    *time.Time `json:"ended,omitempty"`
	Status   string     `json:"status"`
	Progress any        `json:"progress"`
	Result   any        `json:"result"`
}

// getOperations replies with the operations of a database, or of all databases that the
// sender may read, newest first: those that run, and the outcomes of the last ones.
func getOperations(c *serve.Call) error {
	size, err := c.Params.Count("pageSize", defaultPageSize)
	if err != nil {
		return err
	}
	if err := checkPageSize(size); err != nil {
		return err
	}
	id, err := c.Params.Number("id", 0)
	if err != nil {
		return err
	}
	wanted, only := c.Params.Find("database")
	key := ""
	if only {
		if key, err = serve.CheckName(wanted); err != nil {
			return err
		}
	}
	found := c.Server.Operations.List(func(o *serve.Operation) bool {
		of := o.Of
		ofIt := !only || of.Database == key
		if of.Database == "" { // such as the compaction of a database
			subject, err := serve.CheckName(o.About.Subject)
			ofIt = !only || err == nil && subject == key
		}
		return ofIt && (id == 0 || of.ID == id) && c.Who.May(of.Database, serve.ReadRight)
	})
	slices.Reverse(found)
	list := make([]operationReply, 0, min(len(found), size))
	for _, o := range found[:min(len(found), size)] {
		state, ended := o.Outcome()
		one := operationReply{ID: o.Of.ID, Database: o.Of.Database, Kind: o.About.Kind, Subject: o.About.Subject, By: o.About.By, Began: o.About.Began.UTC(), Status: state.Status, Progress: state.Progress, Result: state.Result}
		if !ended.IsZero() {
			ended = ended.UTC()
			one.Ended = &ended
		}
		list = append(list, one)
	}
	return c.JSON(http.StatusOK, map[string]any{"operations": list})
}
