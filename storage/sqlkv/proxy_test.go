package sqlkv_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

// proxy stands between an engine and the server, and cuts the connection at a commit. It knows which messages belong to one, as it
// reads the protocol.
type proxy struct {
	listener net.Listener
	target   *pgx.ConnConfig

	trips   atomic.Int64 // round trips that were begun
	cut     atomic.Int32 // how the next commit is cut
	refuses atomic.Bool  // connections are closed at once
	panics  atomic.Bool  // the server says that it panics in place of the answer that is cut
	startup string       // parameters that it adds to those of a connection: names and values, each with a zero byte

	mu    sync.Mutex
	conns map[net.Conn]struct{} // Guarded by mu.
}

const (
	cutNothing int32 = iota
	cutBefore        // the server does not get the commit
	cutAfter         // the server gets it, and its answer is lost
)

func newProxy(t *testing.T) *proxy {
	t.Helper()
	target, err := pgx.ParseConfig(server.URL())
	must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &proxy{listener: listener, target: target, conns: make(map[net.Conn]struct{})}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		p.closeAll()
		all.Wait()
	})
	return p
}

// closeAll closes all connections.
func (p *proxy) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

// name returns the name of a store as it is reached through the proxy.
func (p *proxy) name(store string) string {
	return "postgres://" + p.target.User + "@" + p.listener.Addr().String() + "/" + p.target.Database + "?sslmode=disable&jay_schema=" + schemaOf(store)
}

func (p *proxy) own(conns ...net.Conn) (forget func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = struct{}{}
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, c := range conns {
			c.Close()
			delete(p.conns, c)
		}
	}
}

func (p *proxy) serve(client net.Conn) {
	if p.refuses.Load() {
		client.Close()
		return
	}
	network, address := pgxNetwork(p.target)
	database, err := net.Dial(network, address)
	if err != nil {
		client.Close()
		return
	}
	defer p.own(client, database)()
	var cut atomic.Bool // answers are lost
	var back sync.WaitGroup
	back.Go(func() {
		defer client.Close()
		p.answers(database, client, &cut)
	})
	p.requests(client, database, &cut)
	database.Close()
	back.Wait()
}

func pgxNetwork(c *pgx.ConnConfig) (network, address string) {
	if c.Host[0] == '/' {
		return "unix", c.Host + "/.s.PGSQL.5432"
	}
	return "tcp", net.JoinHostPort(c.Host, "5432")
}

// requests passes on what the client sends, until a commit is cut.
func (p *proxy) requests(client io.Reader, database io.Writer, cut *atomic.Bool) {
	statements := make(map[string]string) // prepared ones, by their names
	var pending bytes.Buffer              // up to the next Sync
	commits := false
	for first := true; ; first = false {
		kind, body, err := readMessage(client, first)
		if err != nil {
			return
		}
		if first && p.startup != "" {
			body = append(append(body[:len(body)-1:len(body)-1], p.startup...), 0)
		}
		writeMessage(&pending, kind, body, first)
		switch kind {
		case 'P':
			name, rest, _ := bytes.Cut(body, []byte{0})
			sql, _, _ := bytes.Cut(rest, []byte{0})
			statements[string(name)] = string(sql)
			continue
		case 'B':
			_, rest, _ := bytes.Cut(body, []byte{0})
			name, _, _ := bytes.Cut(rest, []byte{0})
			commits = commits || statements[string(name)] == "commit"
			continue
		case 'E', 'D', 'C':
			continue
		case 'S', 'Q':
			p.trips.Add(1)
		}
		if commits {
			switch how := p.cut.Swap(cutNothing); how {
			case cutBefore:
				return
			case cutAfter:
				cut.Store(true)
			}
		}
		commits = false
		if _, err := pending.WriteTo(database); err != nil {
			return
		}
	}
}

// answers passes on what the server sends. If the answer is to be lost, it reads until the server is ready again, and ends.
func (p *proxy) answers(database io.Reader, client io.Writer, cut *atomic.Bool) {
	for {
		kind, body, err := readMessage(database, false)
		if err != nil {
			return
		}
		if cut.Load() {
			if kind == 'Z' {
				if p.panics.Load() {
					var b bytes.Buffer
					writeMessage(&b, 'E', []byte("SPANIC\x00VPANIC\x00C58030\x00Mcould not fsync file: Input/output error\x00\x00"), false)
					b.WriteTo(client)
				}
				return
			}
			continue
		}
		var b bytes.Buffer
		writeMessage(&b, kind, body, false)
		if _, err := b.WriteTo(client); err != nil {
			return
		}
	}
}

// readMessage reads a message; the first one of a client has no kind.
func readMessage(r io.Reader, first bool) (kind byte, body []byte, err error) {
	head := make([]byte, 5)
	if first {
		head = head[1:]
	}
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, nil, err
	}
	if !first {
		kind = head[0]
	}
	size := binary.BigEndian.Uint32(head[len(head)-4:])
	if size < 4 {
		return 0, nil, errors.New("a message is too short")
	}
	body = make([]byte, size-4)
	_, err = io.ReadFull(r, body)
	return kind, body, err
}

func writeMessage(b *bytes.Buffer, kind byte, body []byte, first bool) {
	if !first {
		b.WriteByte(kind)
	}
	b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4)))
	b.Write(body)
}
