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

	// Call carries out the calls of clients, those of Only if that is not nil. Nil carries out none. NoCall says to clients why others are not carried out, such as
	// which option is missing.
	Call   Call
	Only   []string
	NoCall string
}

// Answerer answers those who look into a database, on connections that its caller has accepted. Its methods are safe for
// concurrent use.
type Answerer struct {
	source Source
	age    time.Duration   // of snapshots
	ctx    context.Context // of streams
	cancel context.CancelFunc

	mu        sync.Mutex
	clients   map[net.Conn]struct{} // Guarded by mu.
	arguments int                   // bytes that are held for calls. Guarded by mu.
	closed    bool                  // Guarded by mu.
	done      sync.WaitGroup        // the goroutines that answer
}

// NewAnswerer returns an Answerer, which its caller closes.
func NewAnswerer(source Source) *Answerer { return newAnswerer(source, snapshotAge) }

func newAnswerer(source Source, age time.Duration) *Answerer {
	a := &Answerer{source: source, age: age, clients: make(map[net.Conn]struct{})}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a
}

// Answer answers on a connection, whose other side its caller has let in, until that side or ctx ends, or Close is called. It closes
// the connection. need is called before a value of leastNeeded bytes and more is sent, with its size; its error is the answer then. It may be nil.
//
// The error is nil if the other side has ended, and says that it was refused, or why it was left. After Close it is an ErrClosed.
func (a *Answerer) Answer(ctx context.Context, conn net.Conn, need func(bytes int64) error) error {
	c, err := a.admit(conn)
	if c == nil {
		return errors.Join(err, conn.Close())
	}
	defer a.leave(conn)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // its goroutine ends
	defer stop()
	c.need = need
	c.run(err)
	return errors.Join(err, ctx.Err())
}

// Close ends all connections. When it returns, none is answered any more, and the engine is not used. Later calls do nothing.
func (a *Answerer) Close() {
	a.mu.Lock()
	a.closed = true
	a.cancel()
	for conn := range a.clients {
		_ = conn.Close() // its goroutine ends
	}
	a.mu.Unlock()
	a.done.Wait()
}

// ErrClosed is returned for a connection that comes after Close.
var ErrClosed = errors.New("the database is closed")

// admit returns the client of a connection, and why it is to be refused, or nil. Without a client there is nothing to be said, either.
func (a *Answerer) admit(conn net.Conn) (*client, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, ErrClosed
	}
	var refused error
	if len(a.clients) >= maxClients {
		refused = fmt.Errorf("%w: %d programs look into the database, which is the most", storage.ErrUnavailable, maxClients)
	}
	if len(a.clients) >= 2*maxClients { // half of them are about to hear that there are too many
		return nil, refused
	}
	a.clients[conn] = struct{}{}
	a.done.Add(1)
	return &client{of: a, wire: newWire(conn), snapshots: make(map[uint64]*held)}, refused
}

// leave forgets a connection that admit has returned a client of.
func (a *Answerer) leave(conn net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.clients, conn)
	a.done.Done()
}

// Listener answers those who come through the socket of a directory. Its methods are safe for concurrent use.
type Listener struct {
	*Answerer
	place *place         // nil without a socket
	done  sync.WaitGroup // the goroutine that accepts
	end   sync.Once
}

// Listen makes the socket of a directory, whose lock the caller holds until Close has returned.
func Listen(dir string, source Source) (*Listener, error) { return listen(dir, source, snapshotAge) }

func listen(dir string, source Source, age time.Duration) (*Listener, error) {
	p, err := newPlace(dir)
	if err != nil {
		return nil, fmt.Errorf("listen for those who look into the database: %w", err)
	}
	l := &Listener{Answerer: newAnswerer(source, age), place: p}
	l.done.Go(l.accept)
	return l, nil
}

// Pipes returns a Listener without a socket, for tests in one process: a Driver whose Dial is the Listener's reaches it.
func Pipes(source Source) *Listener { return &Listener{Answerer: NewAnswerer(source)} }

// Dial returns the other side of a new connection in memory. After Close it is closed at once.
func (l *Listener) Dial() net.Conn {
	theirs, ours := net.Pipe()
	l.begin(ours)
	return theirs
}

// Close ends all connections, and removes the socket. When it returns, no goroutine of the Listener is left, and
// the engine is not used any more. Later calls return nil.
func (l *Listener) Close() (err error) {
	l.end.Do(func() {
		if l.place != nil {
			err = l.place.close()
		}
		l.done.Wait()
	})
	l.Answerer.Close()
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
	c, refused := l.admit(conn)
	if c == nil {
		_ = conn.Close()
		return
	}
	if refused == nil {
		refused = checkPeer(conn)
	}
	go func() {
		defer l.leave(conn)
		c.run(refused)
	}()
}

// client is a connection that is answered.
type client struct {
	of   *Answerer
	wire *wire
	page []byte // memory of the last page
	need func(bytes int64) error

	calls calls // used by the goroutine that answers alone

	mu        sync.Mutex       // held while a request is carried out
	snapshots map[uint64]*held // by number. Guarded by mu.
	last      uint64           // number of the last snapshot. Guarded by mu.
}

// leastNeeded is the size of a value from which on its memory counts.
const leastNeeded = 64 << 10

// take returns why a value may not be sent, or nil.
func (c *client) take(value []byte) error {
	if c.need == nil || len(value) < leastNeeded {
		return nil
	}
	return c.need(int64(len(value)))
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
		if kind == askCheckFile {
			if err := c.checkFile(content{rest: request}); err != nil {
				return
			}
			continue
		}
		if err := c.reply(kind, content{rest: request}); err != nil {
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
	if refused == nil && theirs[len(magic)] != version {
		refused = fmt.Errorf("it speaks version %d of the protocol, and this program %d: use the jay of its release", theirs[len(magic)], version)
	}
	if refused != nil {
		return errors.Join(c.fail(refused), refused)
	}
	writes := ""
	if c.of.source.Call == nil || c.of.source.Only != nil {
		writes = c.of.source.noCall()
	}
	return c.replyJSON(hello{PID: os.Getpid(), SnapshotAge: c.of.age, Writes: &writes, Calls: c.of.source.Only})
}

// end closes the connection and what it has open.
func (c *client) end() {
	_ = c.wire.conn.Close()
	c.endCalls()
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

// reply carries out a request. The error is one of the connection.
func (c *client) reply(kind byte, request content) error {
	switch kind {
	case askArguments:
		return c.addArguments(request.rest)
	case askCall:
		return c.beginCall(request)
	case askAwait:
		return c.awaitCall(request.number(), 0)
	case askCancel:
		return c.cancelCall(request.number())
	}
	return c.answer(kind, request)
}

// answer carries out a request to read. The error is one of the connection.
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
	case askMany:
		return c.getMany(request.number(), &request)
	case askPage:
		return c.sendPage(readPageRequest(&request), &request)
	case askStats:
		return c.replyJSON(statsOf(c.of.source.Engine))
	case askSpace:
		return c.space(&request)
	case askFiles:
		return c.sendFiles()
	case askSync:
		ctx, cancel := context.WithTimeout(context.Background(), stall/2)
		defer cancel()
		if err := c.of.source.Engine.Sync(ctx); err != nil {
			return c.fail(err)
		}
		return c.wire.write(0)
	}
	return c.fail(fmt.Errorf("%w: the program does not know requests of kind %d: it may be older than this one", errFrame, kind))
}
