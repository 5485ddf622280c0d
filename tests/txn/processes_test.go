//go:build unix

package txn_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/storage/sqlkv"
)

// The environment of a process of TestProcesses.
const (
	processStore = "JAY_TXN_STORE"   // the address of the store
	processName  = "JAY_TXN_PROCESS" // what the names of its calls begin with
)

// Bounds of a process of TestProcesses.
const (
	processGoroutines = 8
	processPeriod     = 2 * time.Second  // of leases
	processTimeout    = 4 * time.Second  // of the driver
	callTimeout       = 30 * time.Second // of a call
)

// line is what a process prints, as JSON.
type line struct {
	Kind  lineKind
	Name  string // of the call
	Begin int64  `json:",omitempty"` // when the call began, and ended; nanoseconds of the machine's clock
	End   int64  `json:",omitempty"`
	Acts  []deed `json:",omitempty"` // of a run of a transaction
	ID    string `json:",omitempty"`
	Etag  uint64 `json:",omitempty"`
	Error string `json:",omitempty"`
	Sure  bool   `json:",omitempty"` // the error says that nothing was changed
}

type lineKind string

const (
	runLine     lineKind = "run"     // the function of a transaction has run, and may now be committed
	txnLine     lineKind = "txn"     // a transaction has ended
	viewLine    lineKind = "view"    // a View has ended
	madeLine    lineKind = "made"    // a document was stored under an ID that was made for it
	numberLine  lineKind = "number"  // a number of an identity was drawn
	tallyLine   lineKind = "tally"   // one was added to a document, by a call with a request ID
	counterLine lineKind = "counter" // one was added to a compare-exchange value
	tryLine     lineKind = "try"     // a tally or counter begins
	feedLine    lineKind = "feed"    // the feed has shown a change
	wrongLine   lineKind = "wrong"   // what must not be
	stoppedLine lineKind = "stopped" // all calls have ended
	caughtLine  lineKind = "caught"  // the feed has caught up after that
)

// deed is an act, as it is printed.
type deed struct {
	Kind       actKind
	Key, Token string            `json:",omitempty"`
	Collection string            `json:",omitempty"` // of a walk
	Prefix     string            `json:",omitempty"`
	Found      map[string]string `json:",omitempty"`
}

// process is one of the processes that share a store, as it sees itself.
type process struct {
	name    string
	address string
	out     sync.Mutex
	stop    chan struct{} // closed when no call is to begin any more

	mu   sync.RWMutex // held while db is replaced
	db   *jay.DB
	lost atomic.Int64 // since when the lease is gone, by the machine's clock; or 0
}

// TestProcesses_Worker works on the store until it is killed, or its input ends.
func TestProcesses_Worker(t *testing.T) {
	address := os.Getenv(processStore)
	if address == "" {
		t.Skip("only in a process of TestProcesses")
	}
	p := &process{name: os.Getenv(processName), address: address, stop: make(chan struct{})}
	finish := make(chan struct{})
	go func() {
		in := bufio.NewScanner(os.Stdin)
		if in.Scan() {
			close(p.stop)
		}
		if in.Scan() {
			close(finish)
			return
		}
		os.Exit(1) // the test has ended
	}()
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	feed, stopFeed := context.WithCancel(ctx)
	var follower, workers sync.WaitGroup
	token := ""
	follower.Go(func() { token = p.follow(feed, token) })
	for g := range processGoroutines {
		workers.Go(func() { p.work(g) })
	}
	workers.Wait()
	p.print(line{Kind: stoppedLine})
	<-finish
	stopFeed()
	follower.Wait()
	p.follow(feed, token, jay.UntilCaughtUp())
	p.print(line{Kind: caughtLine})
	if err := p.db.Close(); err != nil {
		t.Error(err)
	}
}

// print prints a line at once.
func (p *process) print(l line) {
	text, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	p.out.Lock()
	defer p.out.Unlock()
	fmt.Printf("%s\n", text)
}

func (p *process) wrong(name, format string, args ...any) {
	p.print(line{Kind: wrongLine, Name: name, Error: fmt.Sprintf(format, args...)})
}

// timeoutOf returns the time-out of the driver: more if there are several servers, which share it.
func timeoutOf(address string) time.Duration {
	if strings.Contains(address, ",") {
		return 6 * time.Second
	}
	return processTimeout
}

// open opens the database, for as long as the server may be away.
func (p *process) open() (err error) {
	for until := time.Now().Add(2 * time.Minute); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		p.db, err = jay.Open(p.address, &jay.Options{Engine: &sqlkv.Driver{Timeout: timeoutOf(p.address)}, ClusterPeriod: processPeriod})
		if err == nil || !errors.Is(err, jay.ErrUnavailable) && !errors.Is(err, jay.ErrUnknownOutcome) {
			return err
		}
	}
	return err
}

// follow prints what the feed shows, in its order, and returns the token where it ended: with UntilCaughtUp it goes on until that is reached.
func (p *process) follow(until context.Context, token string, opts ...jay.ChangesOption) string {
	last := uint64(0)
	patience := time.Now().Add(time.Minute)
	for {
		p.mu.RLock()
		db := p.db
		p.mu.RUnlock()
		within, cancel := until, context.CancelFunc(func() {})
		if len(opts) > 0 {
			within, cancel = context.WithTimeout(ctx, callTimeout)
		}
		var failed error
		for c, err := range db.Changes(within, token, opts...) {
			if failed = err; err != nil {
				break
			}
			if c.Etag <= last {
				p.wrong("feed", "etag %d comes after %d", c.Etag, last)
			}
			last, token = c.Etag, c.Token()
			p.print(line{Kind: feedLine, ID: c.ID, Etag: c.Etag})
		}
		cancel()
		switch {
		case len(opts) > 0 && failed == nil, len(opts) == 0 && until.Err() != nil:
			return token
		case len(opts) > 0 && time.Now().After(patience):
			p.wrong("feed", "it does not catch up: %v", failed)
			return token
		}
		time.Sleep(20 * time.Millisecond) // the server is away
	}
}

// work makes one call after another.
func (p *process) work(g int) {
	random := rand.New(rand.NewPCG(rand.Uint64(), uint64(g)))
	for i := 0; ; i++ {
		select {
		case <-p.stop:
			return
		default:
		}
		name := fmt.Sprintf("%s.%d.%d", p.name, g, i)
		p.mu.RLock()
		err := p.call(p.db, name, random)
		p.mu.RUnlock()
		p.noteLoss(err)
		switch {
		case errors.Is(err, jay.ErrUnavailable): // a server that comes back has other things to do than to refuse connections
			time.Sleep(100 * time.Millisecond)
		case err != nil:
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// noteLoss opens the database again if another process has the tag of this one, as the error says.
func (p *process) noteLoss(err error) {
	if !errors.Is(err, jay.ErrLeaseLost) {
		if err == nil {
			p.lost.Store(0)
		}
		return
	}
	now := time.Now().UnixNano()
	if p.lost.CompareAndSwap(0, now) || now-p.lost.Load() < int64(2*processPeriod) {
		return // it leases its tag again, if nobody has it
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now().UnixNano(); p.lost.Load() == 0 || now-p.lost.Load() < int64(2*processPeriod) {
		return // another goroutine was first
	}
	if err := p.db.Close(); err != nil && !errors.Is(err, jay.ErrUnavailable) {
		p.wrong("close", "%v", err)
	}
	if err := p.open(); err != nil {
		p.wrong("open", "%v", err)
		os.Exit(1)
	}
	p.lost.Store(0)
}

// isSure reports whether an error says that nothing was changed.
func isSure(err error) bool {
	return !errors.Is(err, jay.ErrUnknownOutcome) && (errors.Is(err, jay.ErrUnavailable) || errors.Is(err, jay.ErrLeaseLost) || errors.Is(err, jay.ErrConflict) || errors.Is(err, jay.ErrSnapshotExpired))
}

// call makes one call, and prints what came of it.
func (p *process) call(db *jay.DB, name string, random *rand.Rand) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	begin := time.Now().UnixNano()
	end := func(l line, err error) error {
		l.Name, l.Begin, l.End = name, begin, time.Now().UnixNano()
		if err != nil {
			l.Error, l.Sure = err.Error(), isSure(err)
			if !l.Sure && !errors.Is(err, jay.ErrUnknownOutcome) && !errors.Is(err, jay.ErrClosed) {
				p.wrong(name, "%s: %v", l.Kind, err) // among them the end of the context
			}
		}
		p.print(l)
		return err
	}
	switch random.IntN(12) {
	case 0: // an identity, which its document uses up
		m, err := db.Insert(ctx, "invoices|", bodyOf(name), jay.InCollection("Invoices"))
		return end(line{Kind: madeLine, ID: m.ID, Etag: m.Etag}, err)
	case 1:
		m, err := db.Store(ctx, "Ranges", bodyOf(name))
		return end(line{Kind: madeLine, ID: m.ID, Etag: m.Etag}, err)
	case 2:
		m, err := db.Insert(ctx, "made/", bodyOf(name), jay.InCollection("Made"))
		return end(line{Kind: madeLine, ID: m.ID, Etag: m.Etag}, err)
	case 3:
		n, err := db.NextIdentity(ctx, "numbers|")
		return end(line{Kind: numberLine, Etag: uint64(n)}, err)
	case 4:
		p.print(line{Kind: tryLine, Name: name, ID: "tally"})
		var err, unsure error
		for range 3 { // what is repeated with a request ID is done once
			if errors.Is(err, jay.ErrUnknownOutcome) {
				unsure = err
			}
			within, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout) // each try is a call
			_, err = db.Patch(within, "tallies/1", jay.Increment("N", 1), jay.OrInsert(json.RawMessage(`{"N":1}`)), jay.RequestID(name))
			cancel()
			if err == nil {
				return end(line{Kind: tallyLine}, nil)
			}
		}
		return end(line{Kind: tallyLine}, errors.Join(err, unsure))
	case 5:
		return p.count(ctx, db, name, end)
	case 6, 7:
		var acts []deed
		err := db.View(ctx, func(tx *jay.Tx) (err error) {
			acts, err = look(ctx, tx, random, 1+random.IntN(3))
			return err
		})
		return end(line{Kind: viewLine, Acts: acts}, err)
	}
	var mark jay.Metadata
	runs := 0
	err := db.Update(ctx, func(tx *jay.Tx) error {
		runs++
		// A run that follows one which was committed finds its mark, and fails.
		if _, err := tx.Insert(ctx, "marks/"+name, bodyOf(name), jay.InCollection("Marks"), jay.Returning(&mark)); err != nil {
			return err
		}
		acts, err := look(ctx, tx, random, random.IntN(3))
		if err != nil {
			return err
		}
		for i := range 1 + random.IntN(2) {
			key, token := randomKey(random), fmt.Sprintf("%s:%d.%d", name, runs, i)
			if random.IntN(4) == 0 {
				token = ""
				err = tx.Delete(ctx, key)
				if errors.Is(err, jay.ErrNotFound) {
					acts, err = append(acts, deed{Kind: actRead, Key: key}), nil
					continue
				}
			} else {
				_, err = tx.Put(ctx, key, bodyOf(token), jay.InCollection(collectionOfKey(key)))
			}
			if err != nil {
				return err
			}
			acts = append(acts, deed{Kind: actWrite, Key: key, Token: token})
		}
		p.print(line{Kind: runLine, Name: name, Begin: begin, Acts: acts})
		return nil
	}, jay.Retry())
	return end(line{Kind: txnLine, Etag: mark.Etag}, err)
}

// count adds one to a compare-exchange value, unless another goroutine does so meanwhile.
func (p *process) count(ctx context.Context, db *jay.DB, name string, end func(line, error) error) error {
	c := db.CompareExchange()
	n, index := 0, uint64(0)
	v, err := c.Get(ctx, "count")
	if err == nil {
		index, err = v.Index, v.Decode(&n)
	} else if errors.Is(err, jay.ErrNotFound) {
		err = nil
	}
	if err != nil {
		return err
	}
	p.print(line{Kind: tryLine, Name: name, ID: "counter"})
	_, err = c.Put(ctx, "count", n+1, index)
	return end(line{Kind: counterLine}, err)
}

// look reads documents and walks, and returns what it was shown.
func look(ctx context.Context, tx *jay.Tx, random *rand.Rand, n int) (acts []deed, err error) {
	for range n {
		if random.IntN(3) > 0 {
			key := randomKey(random)
			doc, err := tx.Get(ctx, key)
			if err != nil && !errors.Is(err, jay.ErrNotFound) {
				return nil, err
			}
			a := deed{Kind: actRead, Key: key}
			if err == nil {
				if a.Token, err = token(doc); err != nil {
					return nil, err
				}
			}
			acts = append(acts, a)
			continue
		}
		scope := []jay.Scan{{Collection: "Users"}, {Prefix: "orders/"}, {Prefix: "users/"}}[random.IntN(3)]
		a := deed{Kind: actWalk, Collection: scope.Collection, Prefix: scope.Prefix, Found: make(map[string]string)}
		for doc, err := range tx.Documents(ctx, scope) {
			if err != nil {
				return nil, err
			}
			if a.Found[ids.Fold(doc.ID())], err = token(doc); err != nil {
				return nil, err
			}
		}
		acts = append(acts, a)
	}
	return acts, nil
}

func token(doc *jay.Document) (string, error) {
	var tagged Tagged
	err := doc.Decode(&tagged)
	return tagged.By, err
}

// acts returns what a line has, as the graph takes it.
func (l *line) acts() (all []act) {
	for _, d := range l.Acts {
		all = append(all, act{kind: d.Kind, key: d.Key, token: d.Token, scope: jay.Scan{Collection: d.Collection, Prefix: d.Prefix}, found: d.Found})
	}
	return all
}

// readLines passes on the lines of a process, until it ends. A line that a kill has cut is left out, and so is what the testing package prints.
func readLines(r io.Reader, each func(line)) {
	in := bufio.NewReader(r)
	for {
		text, err := in.ReadString('\n')
		if err != nil {
			return
		}
		var l line
		if strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &l) == nil {
			each(l)
		}
	}
}
