package raven

import (
	"net/http"

	"github.com/jaydb/jay/server/internal/serve"
)

// operationRoutes are the endpoints of operations.
var operationRoutes = []*serve.Route{
	{Method: "GET", Path: "{D}/operations/next-operation-id", Run: nextOperationID},
	{Method: "GET", Path: "{D}/operations/state", Run: operationState, Takes: "id"},
	{Method: "POST", Path: "{D}/operations/kill", Run: killOperation, Begins: "killed before it began", Takes: "id"},
	{Method: "GET", Path: "{D}/operations", Run: listOperations},
	{Method: "GET", Path: "/operations/state", Run: operationState, Reads: true, Takes: "id"},
	{Method: "POST", Path: "/operations/kill", Run: killOperation, Takes: "id"},
}

// nextOperationID replies with the number for a future operation.
func nextOperationID(c *serve.Call) error {
	return c.JSON(http.StatusOK, map[string]any{"Id": c.Server.Operations.Next(), "NodeTag": c.Server.Tag(c.Name)})
}

// operationOf returns the operation that the URL names, or nil.
func operationOf(c *serve.Call) (*serve.Operation, error) {
	id, err := c.Params.Number("id", 0)
	if err != nil {
		return nil, err
	}
	if id <= 0 {
		return nil, serve.BadRequest("the URL names no operation: id is missing")
	}
	key := ""
	if c.Database != nil {
		key = c.Database.Key
	}
	return c.Server.Operations.Find(key, id), nil
}

// operationState replies with the state of an operation.
func operationState(c *serve.Call) error {
	o, err := operationOf(c)
	if err != nil {
		return err
	}
	if o == nil {
		return c.Empty(http.StatusNotFound)
	}
	return c.JSON(http.StatusOK, o.Snapshot())
}

// killOperation ends an operation. One that has ended stays as it is. A number that next
// has returned but that has not started yet will not start: a bulk insert may arrive after
// the request that kills it.
func killOperation(c *serve.Call) error {
	o, err := operationOf(c)
	if err != nil {
		return err
	}
	if o == nil && c.Database != nil {
		id, err := c.Params.Number("id", 0)
		if err != nil {
			return err
		}
		_, o, err = c.Server.Operations.Start(c.Ctx, c.Database.Key, id, c.About())
		if err == nil {
			c.Server.Operations.Finish(o, serve.OperationState{Status: serve.OperationFaulted, Result: serve.Failure(serve.ErrBulkKilled)})
		} else if serve.ProblemOf(err).Status == http.StatusTooManyRequests {
			return err
		}
	}
	if o == nil {
		return &serve.Problem{Status: http.StatusNotFound, Kind: serve.TypeBadRequest, Message: "there is no such operation"}
	}
	o.Cancel(serve.ErrKilled)
	return c.Empty(http.StatusNoContent)
}

// listOperations replies with the operations of the database: those that run, and the
// outcomes of the last ones.
func listOperations(c *serve.Call) error {
	found := c.Server.Operations.List(func(o *serve.Operation) bool { return o.Of.Database == c.Database.Key })
	reply := []byte(`{"Results":[`)
	for i, o := range found {
		text := serve.MustJSON(map[string]any{"Id": o.Of.ID, "State": o.Snapshot()})
		if int64(len(reply)+len(text)) > c.Server.Options.MaxReplyBytes {
			return serve.TooLarge("the reply has more than %d bytes, which is the most: ask for the state of one operation", c.Server.Options.MaxReplyBytes)
		}
		if err := c.Take(2 * int64(len(text))); err != nil { // twice, as the buffer grows by copying
			return err
		}
		if i > 0 {
			reply = append(reply, ',')
		}
		reply = append(reply, text...)
	}
	return c.Text(http.StatusOK, append(reply, "]}"...))
}
