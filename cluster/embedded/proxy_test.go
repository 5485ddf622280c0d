package embedded_test

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// proxy forwards TCP connections, and cuts them as a test wants. It stays at its address
// when what is behind it starts again at another one.
type proxy struct {
	t        *testing.T
	listener net.Listener
	group    sync.WaitGroup

	mu     sync.Mutex // guards the rest
	target string
	closed bool
	down   bool            // connections are refused
	silent bool            // connections are accepted, and nothing comes through
	refuse map[string]bool // members whose connections are refused, by their ID
	links  map[*link]bool
	cuts   int
}

// link is a connection through the proxy.
type link struct {
	from     string // the member that has connected; "" for others
	in, out  net.Conn
	released chan struct{} // closed when a silent link is cut
	once     sync.Once
}

func (l *link) cut() {
	l.once.Do(func() {
		close(l.released)
		l.in.Close()
		if l.out != nil {
			l.out.Close()
		}
	})
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, listener: listener, refuse: make(map[string]bool), links: make(map[*link]bool)}
	p.group.Go(p.accept)
	t.Cleanup(func() {
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		listener.Close()
		p.cut()
		p.group.Wait()
	})
	return p
}

func (p *proxy) url() string { return "http://" + p.listener.Addr().String() }

// set changes the proxy, and cuts what is not allowed any more.
func (p *proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	for l := range p.links {
		if p.down || p.silent || p.refuse[l.from] {
			l.cut()
		}
	}
}

// cut cuts all connections, and returns their number. New ones are forwarded.
func (p *proxy) cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
	p.cuts += len(p.links)
	return len(p.links)
}

func (p *proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.group.Go(func() { p.serve(in) })
	}
}

// serve forwards one connection. The first bytes of one of etcd's members name it.
func (p *proxy) serve(in net.Conn) {
	l := &link{in: in, released: make(chan struct{})}
	defer l.cut()
	p.mu.Lock()
	if p.closed || p.down || p.target == "" {
		p.mu.Unlock()
		return
	}
	target, silent := p.target, p.silent
	p.links[l] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.links, l)
		p.mu.Unlock()
	}()
	if silent {
		<-l.released
		return
	}

	first := make([]byte, 4096)
	n, err := in.Read(first)
	if err != nil {
		return
	}
	from := ""
	if _, rest, found := bytes.Cut(first[:n], []byte("X-Server-From: ")); found {
		id, _, _ := bytes.Cut(rest, []byte("\r\n"))
		from = string(id)
	}
	out, err := net.DialTimeout("tcp", target, 5*time.Second)
	if err != nil {
		return
	}
	p.mu.Lock()
	l.from, l.out = from, out
	refused := p.closed || p.down || p.silent || p.refuse[from]
	p.mu.Unlock()
	if refused {
		out.Close()
		return
	}
	if _, err := out.Write(first[:n]); err != nil {
		return
	}
	p.group.Go(func() {
		defer l.cut()
		io.Copy(in, out)
	})
	io.Copy(out, in)
}
