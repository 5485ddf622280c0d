package look

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/jaydb/jay/storage"
)

// Source is what others look into.
type Source struct {
	Engine storage.Engine

	// Snapshot returns a snapshot to read from. It shows the engine as a shared one: see
	// storage.Engine.Shared.
	Snapshot func() (storage.Snapshot, error)

	// Follow answers the request of a standby until ctx ends, w fails or the stream is at its end. Nil answers none.
	Follow func(ctx context.Context, w io.Writer, request io.Reader) error
}

// Listener answers those who look into a database. Its methods are safe for concurrent use.
type Listener struct {
	source Source
	place  *place          // nil without a socket
	age    time.Duration   // of snapshots
	ctx    context.Context // of streams
	cancel context.CancelFunc

	mu      sync.Mutex
	clients map[net.Conn]struct{} // Guarded by mu.
	closed  bool                  // Guarded by mu.
	done    sync.WaitGroup        // the goroutines
}

// Listen makes the socket of a directory, whose lock the caller holds until Close has returned.
func Listen(dir string, source Source) (*Listener, error) { return listen(dir, source, snapshotAge) }

func listen(dir string, source Source, age time.Duration) (*Listener, error) {
	p, err := newPlace(dir)
	if err != nil {
		return nil, fmt.Errorf("listen for those who look into the database: %w", err)
	}
	l := newListener(source, age)
	l.place = p
	l.done.Go(l.accept)
	return l, nil
}

// Pipes returns a Listener without a socket, for tests in one process: a Driver whose Dial is the Listener's reaches it.
func Pipes(source Source) *Listener { return newListener(source, snapshotAge) }

func newListener(source Source, age time.Duration) *Listener {
	l := &Listener{source: source, age: age, clients: make(map[net.Conn]struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Dial returns the other side of a new connection in memory. After Close it is closed at once.
func (l *Listener) Dial() net.Conn {
	theirs, ours := net.Pipe()
	l.begin(ours)
	return theirs
}

// Close ends all connections, and removes the socket. When it returns, no goroutine of the Listener is left, and
// the engine is not used any more. Later calls return nil.
func (l *Listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.cancel()
	var err error
	if l.place != nil {
		err = l.place.close()
	}
	for conn := range l.clients {
		_ = conn.Close() // its goroutine ends
	}
	l.mu.Unlock()
	l.done.Wait()
	return err
}

// acceptPause is how long accept waits after an error, such as one of too many open files.
const acceptPause = 100 * time.Millisecond

func (l *Listener) accept() {
	for {
		conn, err := l.place.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(acceptPause)
			continue
		}
		l.begin(conn)
	}
}

// begin has a goroutine answer on a connection, if there is a place for it.
func (l *Listener) begin(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = conn.Close()
		return
	}
	if len(l.clients) >= 2*maxClients { // half of them are about to hear that there are too many
		_ = conn.Close()
		return
	}
	var refused error
	if len(l.clients) >= maxClients {
		refused = fmt.Errorf("%w: %d programs look into the database, which is the most", storage.ErrUnavailable, maxClients)
	}
	l.clients[conn] = struct{}{}
	l.done.Go(func() {
		c := &client{listener: l, wire: newWire(conn), snapshots: make(map[uint64]*held)}
		c.run(refused)
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.clients, conn)
	})
}

// client is a connection that is answered.
type client struct {
	listener *Listener
	wire     *wire
	page     []byte // memory of the last page

	mu        sync.Mutex       // held while a request is carried out
	snapshots map[uint64]*held // by number. Guarded by mu.
	last      uint64           // number of the last snapshot. Guarded by mu.
}

// held is a snapshot that a client has opened.
type held struct {
	storage.Snapshot // nil when it has expired
	expiry           *time.Timer
}

// run answers until the connection ends. With refused, it says no more than that.
func (c *client) run(refused error) {
	defer c.end()
	if err := c.greet(refused); err != nil || refused != nil {
		return
	}
	var buffer []byte
	for {
		kind, request, err := c.wire.read(buffer[:0], maxRequest, 0)
		if err != nil {
			if errors.Is(err, errFrame) {
				_ = c.fail(err) // and close: where the next frame begins is not known
			}
			return
		}
		if kind == askFollow {
			_ = c.follow() // the connection ends, whatever it says
			return
		}
		if err := c.answer(kind, content{rest: request}); err != nil {
			return
		}
		buffer = request
	}
}

// greet exchanges versions with the client.
func (c *client) greet(refused error) error {
	if err := c.wire.wait(greeting); err != nil {
		return err
	}
	var theirs [len(magic) + 1]byte
	if _, err := io.ReadFull(c.wire.in, theirs[:]); err != nil {
		return err
	}
	if string(theirs[:len(magic)]) != magic {
		return errFrame
	}
	if _, err := c.wire.out.WriteString(magic + string(rune(version))); err != nil {
		return err
	}
	if refused == nil {
		refused = checkPeer(c.wire.conn)
	}
	if refused == nil && theirs[len(magic)] != version {
		refused = fmt.Errorf("it speaks version %d of the protocol, and this program %d: use the jay of its release", theirs[len(magic)], version)
	}
	if refused != nil {
		return errors.Join(c.fail(refused), refused)
	}
	return c.replyJSON(hello{PID: os.Getpid(), SnapshotAge: c.listener.age})
}

// end closes the connection and what it has open.
func (c *client) end() {
	_ = c.wire.conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for number := range c.snapshots {
		_ = c.closeSnapshot(number) // nobody is left to hear of it
	}
}

func (c *client) fail(err error) error { return c.wire.write(codeOf(err), []byte(err.Error())) }

func (c *client) replyJSON(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return c.fail(err)
	}
	return c.wire.write(0, text)
}

// answer carries out a request. The error is one of the connection.
func (c *client) answer(kind byte, request content) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch kind {
	case askSnapshot:
		return c.openSnapshot()
	case askClose:
		if err := c.closeSnapshot(request.number()); err != nil {
			return c.fail(err)
		}
		return c.wire.write(0)
	case askGet:
		return c.get(request.number(), request.text(), &request)
	case askPage:
		return c.sendPage(readPageRequest(&request), &request)
	case askStats:
		return c.replyJSON(statsOf(c.listener.source.Engine))
	case askSpace:
		return c.space(&request)
	case askSync:
		ctx, cancel := context.WithTimeout(context.Background(), stall/2)
		defer cancel()
		if err := c.listener.source.Engine.Sync(ctx); err != nil {
			return c.fail(err)
		}
		return c.wire.write(0)
	}
	return c.fail(fmt.Errorf("%w: the program does not know requests of kind %d: it may be older than this one", errFrame, kind))
}
