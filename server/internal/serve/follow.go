package serve

import (
	"context"
	"sync"
)

// follow makes end be called when the sender of a stream loses the right to it. The caller
// must call stop.
func (a *Authentication) follow(c *Call, end func()) (stop func()) {
	return a.watch(c.Who, c.Route.Method, c.Request.URL.Path, end, func() error {
		_, err := c.admit()
		return err
	})
}

// followOperation makes end be called when the sender of the call loses the right to it,
// which the end of a browser's session is not. The caller must call stop.
func (a *Authentication) followOperation(c *Call, end func()) (stop func()) {
	who, name, right := c.Who, c.Name, c.Route.right()
	return a.watch(who, c.Route.Method, c.Request.URL.Path, end, func() error {
		present, err := a.present(who)
		if err != nil {
			return err
		}
		return present.Need(name, right)
	})
}

// EnterStreams takes a place among the streams as well, for the part of a socket that reads
// much. leave gives it back, once, however often it is called.
func (c *Call) EnterStreams() (leave func(), err error) {
	sender := c.counted()
	if err := c.Server.Streams.Enter(c.Ctx, sender); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { c.Server.Streams.Leave(sender) }), nil
}

// StreamContext returns a context that also ends with the server, with the database
// of the call, and when its sender loses the right to it.
func (c *Call) StreamContext() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(c.Ctx)
	ofServer := context.AfterFunc(c.Server.Ctx, cancel)
	ofDatabase := context.AfterFunc(c.ofDatabase, cancel)
	unfollow := c.Server.Auth.follow(c, cancel)
	return ctx, func() {
		unfollow()
		ofServer()
		ofDatabase()
		cancel()
	}
}
