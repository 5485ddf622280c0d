package look

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/jaydb/jay/storage"
)

// Driver opens the databases of directories that other programs have open, to be read only. The zero value is ready for use.
type Driver struct {
	// Dial replaces the connection to the socket of the directory, unless it is nil: then what is named is for messages alone. The engine closes the
	// connection.
	Dial func() net.Conn

	// OnlyReads has no call carried out, whatever the owner allows.
	OnlyReads bool
}

// ErrLooking is returned for what would change a database whose owner carries out no calls. It is a storage.ErrReadOnly.
var ErrLooking = fmt.Errorf("%w: another program has it open, and this one only looks into it", storage.ErrReadOnly)

// ErrNotCarried is returned for a change that the owner carries out for no other program. It is a storage.ErrReadOnly.
var ErrNotCarried = fmt.Errorf("%w: another program has it open, and makes no such change for this one: let that program make it, or end it", storage.ErrReadOnly)

// Open implements storage.Driver. It connects to the program that has the directory open. The error is a storage.ErrUnavailable
// if there is none, or it does not answer.
func (d Driver) Open(dir string, o storage.OpenOptions) (storage.Engine, error) {
	if !o.ReadOnly {
		return nil, fmt.Errorf("open %q: %w", dir, ErrLooking)
	}
	e, err := d.connect(dir)
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", dir, err)
	}
	if err := e.checkFormat(); err != nil {
		return nil, errors.Join(fmt.Errorf("open %q: %w", dir, err), e.Close())
	}
	return e, nil
}

// Prepare implements storage.Driver: it refuses to.
func (Driver) Prepare(string) (storage.NewStore, error) { return nil, ErrLooking }

// holderPatience is how long Explain waits for the holder of a directory.
const holderPatience = 250 * time.Millisecond

// Explain adds to a storage.ErrLocked of a directory who has it open, and how to look into it, if the holder answers.
func Explain(dir string, locked error) error {
	e, err := connect(dir, holderPatience)
	if err != nil {
		return locked
	}
	_ = e.Close() // nothing was asked
	return fmt.Errorf("%w: it is process %d, into which jay.Look looks, and the command jay --db %q", locked, e.hello.PID, dir)
}

// engine reads what another program has open. All of its methods are safe for concurrent use.
//
// When the connection has ended, its reads return an ErrUnavailable: the database of a program that has been started
// again is opened anew.
type engine struct {
	hello     hello
	onlyReads bool // see Driver

	mu     sync.Mutex // held from a request to its reply
	wire   *wire      // Guarded by mu.
	broken error      // why there are no more replies; or nil. Guarded by mu.
	unsent bool       // it is broken, and the last request was not sent whole. Guarded by mu.
	stats  statsReply // as last seen. Guarded by mu.

	news *news
}

func (d Driver) connect(dir string) (*engine, error) {
	var e *engine
	var err error
	if d.Dial != nil {
		e, err = begin(d.Dial(), greeting)
	} else {
		e, err = connect(dir, greeting)
	}
	if err != nil {
		return nil, err
	}
	e.onlyReads = d.OnlyReads
	return e, nil
}

// connect connects to the owner of a directory.
func connect(dir string, patience time.Duration) (*engine, error) {
	conn, err := dial(dir, patience)
	if err != nil {
		return nil, err
	}
	return begin(conn, patience)
}

// begin returns the engine of a new connection, which it closes if there is an error.
func begin(conn net.Conn, patience time.Duration) (*engine, error) {
	e := &engine{wire: newWire(conn), news: new(news)}
	if err := e.greet(patience); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return e, nil
}

// greet exchanges versions with the owner.
func (e *engine) greet(patience time.Duration) error {
	_, err := e.wire.out.WriteString(magic + string(rune(version)))
	if err == nil {
		err = e.wire.out.Flush()
	}
	if err == nil {
		err = e.wire.wait(patience)
	}
	var theirs [len(magic) + 1]byte
	if err == nil {
		_, err = io.ReadFull(e.wire.in, theirs[:])
	}
	if err == nil && string(theirs[:len(magic)]) != magic {
		err = errFrame
	}
	if err != nil {
		return unanswered(err)
	}
	kind, reply, err := e.wire.read(nil, maxRequest, patience)
	switch {
	case err != nil:
		return unanswered(err)
	case kind != 0:
		return fmt.Errorf("%w: the program that has the database open refuses: %w", storage.ErrUnavailable, errorOf(kind, reply))
	case theirs[len(magic)] != version:
		return fmt.Errorf("%w: the program that has the database open speaks version %d of the protocol, and this one %d", storage.ErrUnavailable, theirs[len(magic)], version)
	}
	if err := json.Unmarshal(reply, &e.hello); err != nil {
		return unanswered(err)
	}
	return nil
}

// unanswered is the error of a connection that has failed.
func unanswered(err error) error {
	return fmt.Errorf("%w: the program that has the database open has ended, or does not answer: %w", storage.ErrUnavailable, err)
}

// checkFormat refuses a store of a newer version.
func (e *engine) checkFormat() error {
	if err := e.look(); err != nil {
		return err
	}
	if f := e.stats.Format; f.Number > storage.Format {
		newer := &storage.FormatError{Found: f.Number, Newest: storage.Format}
		for _, feature := range f.Features {
			if feature.Format > storage.Format {
				newer.Features = append(newer.Features, feature.Name)
			}
		}
		return newer
	}
	return nil
}

// ask sends a request and returns the content of its reply, which is the caller's.
func (e *engine) ask(kind byte, request []byte) ([]byte, error) {
	if len(request) >= maxRequest {
		return nil, fmt.Errorf("%w: a request of %d bytes, and %d are the most", storage.ErrTooLarge, len(request), maxRequest)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.exchange(kind, request)
}

// exchange is ask while e.mu is held.
func (e *engine) exchange(kind byte, request []byte) ([]byte, error) {
	if e.broken != nil {
		return nil, e.broken
	}
	err := e.wire.write(kind, request)
	e.unsent = err != nil
	var code byte
	var reply []byte
	if err == nil {
		code, reply, err = e.wire.read(nil, maxReply, stall)
	}
	if err != nil {
		e.broken = unanswered(err)
		return nil, errors.Join(e.broken, e.wire.conn.Close())
	}
	if code != 0 {
		return nil, errorOf(code, reply)
	}
	return reply, nil
}

// Get implements storage.Reader.
func (e *engine) Get(key []byte) ([]byte, io.Closer, error) { return e.get(0, key) }

// get gets a value from a snapshot, or from one of now for 0.
func (e *engine) get(snapshot uint64, key []byte) ([]byte, io.Closer, error) {
	value, err := e.ask(askGet, appendText(binary.AppendUvarint(nil, snapshot), key))
	if err != nil {
		return nil, nil, err
	}
	return value, nothing{}, nil
}

// nothing is the closer of a value that is its caller's.
type nothing struct{}

func (nothing) Close() error { return nil }

// Iterate implements storage.Reader.
func (e *engine) Iterate(lo, hi []byte) (storage.Iterator, error) {
	s := e.open()
	it, err := s.Iterate(lo, hi)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	it.(*iterator).closed = s.Close
	return it, nil
}

// Snapshot implements storage.Engine.
func (e *engine) Snapshot() storage.Snapshot { return e.open() }

// Latest implements storage.Engine: what others see is what a Snapshot shows.
func (e *engine) Latest() storage.Snapshot { return e.open() }

// Update implements storage.Engine: it refuses to. What the owner carries out goes by Call.
func (e *engine) Update(ctx context.Context, _ bool, _ func(storage.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return e.refuse()
}

// Sync implements storage.Engine: the owner syncs.
func (e *engine) Sync(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := e.ask(askSync, nil)
	return err
}

// TrackWrites implements storage.Engine.
func (e *engine) TrackWrites() storage.WriteTracker { return tracker{e} }

// StartSequence implements storage.Engine: no number is drawn.
func (e *engine) StartSequence(uint64) {}

// Creating implements storage.Engine: a database that is looked into was opened.
func (e *engine) Creating() bool { return false }

// FinishCreation implements storage.Engine.
func (e *engine) FinishCreation() error { return e.refuse() }

// Shared implements storage.Engine: the owner writes.
func (e *engine) Shared() bool { return true }

// Compact implements storage.Engine: it refuses to.
func (e *engine) Compact(_ context.Context, _, _ []byte) error { return e.refuse() }

// Await implements storage.Engine: no call takes longer than stall.
func (e *engine) Await(done <-chan struct{}) error {
	<-done
	return nil
}

// Close implements storage.Engine.
func (e *engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.broken != nil {
		return nil
	}
	e.broken = fmt.Errorf("%w: it is closed", storage.ErrUnavailable)
	return e.wire.conn.Close()
}

// newsPeriod is how often those who wait for commits look again.
const newsPeriod = 500 * time.Millisecond

// news is a channel that is closed after newsPeriod, with or without news.
type news struct {
	mu   sync.Mutex
	next chan struct{} // nil if none waits. Guarded by mu.
}

func (n *news) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next == nil {
		n.next = make(chan struct{})
		time.AfterFunc(newsPeriod, func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			close(n.next)
			n.next = nil
		})
	}
	return n.next
}

// NextCommit implements storage.Engine.
func (e *engine) NextCommit() (<-chan struct{}, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.broken != nil {
		return nil, e.broken
	}
	return e.news.wait(), nil
}

// look asks for the figures.
func (e *engine) look() error {
	reply, err := e.ask(askStats, nil)
	if err != nil {
		return err
	}
	var s statsReply
	if err := json.Unmarshal(reply, &s); err != nil {
		return unanswered(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats = s
	return nil
}

// seen returns the figures, as they were last seen if the owner does not answer.
func (e *engine) seen() statsReply {
	_ = e.look() // the next read says what is wrong
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stats
}

// Stats implements storage.Engine.
func (e *engine) Stats() storage.Stats { return e.seen().Stats }

// Format implements storage.Engine.
func (e *engine) Format() storage.StoreFormat { return e.seen().Format }

// Limits implements storage.Engine: those of the owner, and the age of a snapshot.
func (e *engine) Limits() storage.Limits {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.stats.Limits
	l.SnapshotAge = e.hello.SnapshotAge
	return l
}

// FreeBytes implements storage.FreeSpacer.
func (e *engine) FreeBytes() (uint64, error) {
	if err := e.look(); err != nil {
		return 0, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stats.Free == nil {
		return 0, errors.ErrUnsupported
	}
	return *e.stats.Free, nil
}

// DiskBytes implements storage.SpaceMeasurer.
func (e *engine) DiskBytes(lo, hi []byte) (uint64, error) {
	flags := byte(0)
	if hi == nil {
		flags = unbounded
	}
	reply, err := e.ask(askSpace, appendText(appendText([]byte{flags}, lo), hi))
	if err != nil {
		return 0, err
	}
	c := content{rest: reply}
	n := c.number()
	if c.bad {
		return 0, unanswered(errFrame)
	}
	return n, nil
}
