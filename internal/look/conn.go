package look

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// AsConn returns a connection as a net.Conn: itself if it is one, or else one that is closed when a deadline passes during a Read
// or a Write.
func AsConn(conn io.ReadWriteCloser) net.Conn {
	if c, is := conn.(net.Conn); is {
		return c
	}
	return &bare{ReadWriteCloser: conn}
}

// bare is a connection that has no deadlines itself.
type bare struct {
	io.ReadWriteCloser

	mu          sync.Mutex
	read, write direction // Guarded by mu.
}

// direction is the state of one direction of a connection.
type direction struct {
	deadline time.Time // zero for none
	timer    *time.Timer
}

// LocalAddr implements net.Conn.
func (*bare) LocalAddr() net.Addr { return &net.UnixAddr{Net: "unix"} }

// RemoteAddr implements net.Conn.
func (*bare) RemoteAddr() net.Addr { return &net.UnixAddr{Net: "unix"} }

// SetDeadline implements net.Conn.
func (b *bare) SetDeadline(t time.Time) error {
	_ = b.SetReadDeadline(t) // neither ever fails
	return b.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn, for the Read that begins next.
func (b *bare) SetReadDeadline(t time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.read.deadline = t
	return nil
}

// SetWriteDeadline implements net.Conn, for the Write that begins next.
func (b *bare) SetWriteDeadline(t time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.write.deadline = t
	return nil
}

// Read implements net.Conn.
func (b *bare) Read(p []byte) (int, error) { return b.timed(&b.read, b.ReadWriteCloser.Read, p) }

// Write implements net.Conn.
func (b *bare) Write(p []byte) (int, error) { return b.timed(&b.write, b.ReadWriteCloser.Write, p) }

// timed calls fn, and closes the connection if that takes longer than the deadline.
func (b *bare) timed(d *direction, fn func([]byte) (int, error), p []byte) (int, error) {
	b.mu.Lock()
	if !d.deadline.IsZero() {
		left := time.Until(d.deadline)
		if left <= 0 {
			b.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		}
		if d.timer == nil {
			d.timer = time.AfterFunc(left, func() { _ = b.Close() })
		} else {
			d.timer.Reset(left)
		}
	}
	b.mu.Unlock()
	n, err := fn(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() && !d.deadline.IsZero() && err != nil {
		err = os.ErrDeadlineExceeded
	}
	return n, err
}

var _ net.Conn = (*bare)(nil)
