package cluster_test

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// proxy forwards TCP connections to a target, until it is said to do otherwise. Between a
// node and the coordinator it stands for the network.
type proxy struct {
	listener net.Listener
	target   string

	mu      sync.Mutex
	state   proxyState
	cutting *rand.Rand            // not nil while connections are cut in the middle. Guarded by mu.
	conns   map[net.Conn]struct{} // both ends of each connection. Guarded by mu.
	cuts    int                   // connections that were cut in the middle. Guarded by mu.
	changed chan struct{}         // closed when state changes. Guarded by mu.
	closed  bool
}

// proxyState is what a proxy does with bytes.
type proxyState int

const (
	proxyForwards proxyState = iota
	proxyRefuses             // closes every connection, as a machine that is down
	proxySwallows            // accepts, and holds all bytes back, as a cut line
)

// startProxy returns a proxy before an address. It ends with the test.
func startProxy(t testing.TB, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: target, conns: make(map[net.Conn]struct{}), changed: make(chan struct{})}
	go p.accept()
	t.Cleanup(p.close)
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// set changes what the proxy does, with the connections that are open, too.
func (p *proxy) set(state proxyState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state = state; state == proxyRefuses {
		p.endAll()
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// cutInTheMiddle makes the proxy end connections after a random number of bytes, in either
// direction: requests are then carried out whose reply is lost, and others arrive by half.
// A nil source of randomness ends that.
func (p *proxy) cutInTheMiddle(random *rand.Rand) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutting = random
}

// cutConnections returns how many connections were cut in the middle.
func (p *proxy) cutConnections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

func (p *proxy) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	_ = p.listener.Close()
	p.endAll()
	close(p.changed)
	p.changed = make(chan struct{})
}

// endAll ends all connections. p.mu is held.
func (p *proxy) endAll() {
	for c := range p.conns {
		_ = c.Close()
	}
	clear(p.conns)
}

func (p *proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return // the proxy is closed
		}
		p.mu.Lock()
		refused := p.closed || p.state == proxyRefuses
		if !refused {
			p.conns[c] = struct{}{}
		}
		p.mu.Unlock()
		if refused {
			_ = c.Close()
			continue
		}
		go p.connect(c)
	}
}

// connect forwards a connection, once the proxy forwards.
func (p *proxy) connect(c net.Conn) {
	if !p.mayPass(c) {
		p.end(c)
		return
	}
	target, err := net.DialTimeout("tcp", p.target, 5*time.Second)
	if err != nil {
		p.end(c)
		return
	}
	p.mu.Lock()
	_, there := p.conns[c]
	if there {
		p.conns[target] = struct{}{}
	}
	p.mu.Unlock()
	if !there {
		_ = target.Close()
		return
	}
	go p.copy(target, c)
	p.copy(c, target)
}

// copy forwards what src sends, and ends both when one has ended.
func (p *proxy) copy(dst, src net.Conn) {
	defer p.end(dst)
	defer p.end(src)
	buffer := make([]byte, 16<<10)
	for {
		n, err := src.Read(buffer)
		if !p.mayPass(src) {
			return
		}
		n, cut := p.cutAt(n)
		if n > 0 {
			if _, err := dst.Write(buffer[:n]); err != nil {
				return
			}
		}
		if cut || err != nil {
			return
		}
	}
}

// cutAt decides whether the connection ends now, and after how many of n bytes.
func (p *proxy) cutAt(n int) (int, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cutting == nil || n == 0 || p.cutting.IntN(40) > 0 {
		return n, false
	}
	p.cuts++
	return p.cutting.IntN(n + 1), true
}

// mayPass waits while bytes are held back, and reports whether the connection is still
// there.
func (p *proxy) mayPass(c net.Conn) bool {
	for {
		p.mu.Lock()
		_, there := p.conns[c]
		state, changed := p.state, p.changed
		p.mu.Unlock()
		if !there || state == proxyForwards {
			return there
		}
		<-changed
	}
}

func (p *proxy) end(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// Ensure that the proxy forwards, refuses, swallows and cuts: a proxy that does nothing
// would let every test of a bad network pass.
func TestProxy(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c) }()
		}
	}()
	p := startProxy(t, echo.Addr().String())
	dial := func() net.Conn {
		c, err := net.Dial("tcp", p.address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	reply := make([]byte, 4)

	c := dial()
	if _, err := c.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, reply); err != nil || string(reply) != "ping" {
		t.Fatalf("a proxy that forwards: got %q, %v", reply, err)
	}

	p.set(proxySwallows)
	if _, err := c.Write([]byte("held")); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if n, err := c.Read(reply); n > 0 || err == nil {
		t.Fatalf("a proxy that swallows: got %q", reply[:n])
	}
	_ = c.SetReadDeadline(time.Time{})
	p.set(proxyForwards)
	if _, err := io.ReadFull(c, reply); err != nil || string(reply) != "held" {
		t.Fatalf("what was held back: got %q, %v", reply, err)
	}

	p.set(proxyRefuses)
	if _, err := io.ReadFull(c, reply); err == nil {
		t.Fatal("a proxy that refuses keeps a connection")
	}
	p.set(proxyForwards)

	p.cutInTheMiddle(rand.New(rand.NewPCG(1, 2)))
	for p.cutConnections() == 0 {
		c := dial()
		for range 100 {
			if _, err := c.Write([]byte("ping")); err != nil {
				break
			}
			if _, err := io.ReadFull(c, reply); err != nil {
				break
			}
		}
	}
}
