package serve

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/jaydb/jay"
)

// Background runs fn as an operation of the call's database, or of the server if it has
// none, and replies with its number. The operation continues when the client has gone; it
// ends with the server and with its database.
//
// The memory that the call holds becomes the operation's, which may use what the call has decoded. Reads
// and queries with ctx pay for what they hold until the operation ends.
func (c *Call) Background(fn func(ctx context.Context, o *Operation) (result any, err error)) error {
	s, key := c.Server, ""
	var d *Database
	if c.Database != nil {
		var err error
		if d, err = s.Databases.Acquire(c.Ctx, c.Name); err != nil {
			return err
		}
		key = d.Key
	}
	release := func() {
		if d != nil {
			s.Databases.Release(d)
		}
	}
	id := s.Operations.Next()
	ctx, o, err := s.Operations.Start(s.Ctx, key, id, c.About())
	if err != nil {
		release()
		return err
	}
	stop := s.Auth.followOperation(c, func() { o.Cancel(errors.New("the right to the operation has ended")) })
	if d != nil {
		deleted := context.AfterFunc(s.Databases.ContextOf(d), func() { o.Cancel(errors.New("the database is being deleted")) })
		inner := release
		release = func() {
			stop()
			deleted()
			inner()
		}
	} else {
		release = stop
	}
	memory := c.Held()
	c.memory = nil // the reply of the call is little, and has a holding of its own
	o.memory, ctx = memory, paidBy(ctx, memory)
	// Close waits for the WaitGroup. It counts this request, so adding here is allowed.
	s.running.Go(func() {
		defer release()
		defer memory.End()
		result, err := RunOperation(ctx, o, fn)
		if err != nil && context.Cause(ctx) == nil {
			s.Options.Logger.Warn("server: an operation has failed", "operation", id, "database", key, "err", err)
		}
		s.Operations.End(ctx, o, result, err)
	})
	return c.JSON(http.StatusOK, map[string]any{"OperationId": id, "OperationNodeTag": c.Server.Tag(c.Name)})
}

// Storing returns a context of reads of documents that an operation of Background stores again
// by itself: they pay for the two copies on the way to the disk as well.
func (o *Operation) Storing(ctx context.Context) context.Context {
	r := &room{Largest: Largest{Memory: o.memory}}
	return jay.WithReading(ctx, func(n int64) error { return r.need(3 * n) })
}

// RunOperation runs fn, and turns a panic into an error.
func RunOperation(ctx context.Context, o *Operation, fn func(context.Context, *Operation) (any, error)) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	return fn(ctx, o)
}

// About describes the operation that the call begins.
func (c *Call) About() About {
	a := About{Kind: cmp.Or(c.Route.Begins, c.Route.Method+" "+c.Route.Path), Subject: SubjectOf(c.Subject), Began: c.Server.Options.Now()}
	if c.Who != nil {
		a.By = c.Who.Name
	}
	return a
}
