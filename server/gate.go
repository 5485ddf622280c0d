package server

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// gate bounds the number of requests, or of streams, that run at a time, and of those that
// wait.
type gate struct {
	places  chan struct{}
	waiting atomic.Int64
	most    int64 // number that may wait
	timeout time.Duration
}

func newGate(places int, timeout time.Duration) *gate {
	return &gate{places: make(chan struct{}, places), most: 4 * int64(places), timeout: timeout}
}

// enter takes a place, or refuses the request. After success the caller must call leave.
func (g *gate) enter(ctx context.Context) error {
	select {
	case g.places <- struct{}{}:
		return nil
	default:
	}
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) > g.most {
		return overload("%d requests of this kind run and %d wait, which is the most", cap(g.places), g.most)
	}
	timer := time.NewTimer(g.timeout)
	defer timer.Stop()
	select {
	case g.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return overload("the request has waited %s for one of the %d that may run at a time", g.timeout, cap(g.places))
	}
}

func (g *gate) leave() { <-g.places }

// budget bounds the bytes of bodies in memory, for all requests together.
type budget struct {
	most int64
	used atomic.Int64
}

// take takes n bytes, or refuses. After success the caller must call give.
func (b *budget) take(n int64) error {
	if b.used.Add(n) > b.most {
		b.used.Add(-n)
		return overload("the bodies of requests and replies take %d bytes of memory, which is the most", b.most)
	}
	return nil
}

func (b *budget) give(n int64) { b.used.Add(-n) }

// limitListener bounds the number of open connections: Accept waits while there are too
// many.
type limitListener struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	once   sync.Once
}

func newLimitListener(l net.Listener, most int) *limitListener {
	return &limitListener{Listener: l, places: make(chan struct{}, most), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *limitListener) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &limitedConn{Conn: conn, leave: func() { <-l.places }}, nil
}

// Close implements net.Listener.
func (l *limitListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// limitedConn is a connection that frees its place when it is closed.
type limitedConn struct {
	net.Conn
	once  sync.Once
	leave func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.leave)
	return err
}
