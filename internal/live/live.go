// Package live keeps the answers of queries true: a reader first gets the answers of a
// query, and then what enters, changes and leaves them, without a gap, until it ends.
//
// [Queries] has the live queries of an open database. A [Reader] begins alone. It runs the
// query, remembers the IDs of the answers, and reads the changes after its snapshot with a
// feed of its own, in the goroutine of its caller. Once it has caught up it joins the
// dispatcher, one goroutine of the database that reads each change once for all readers.
// Equal queries are one [watch] there, which evaluates its condition once for each change.
//
// Whether a document was an answer before a change is known exactly: the dispatcher has
// the members of all watches in one map, by document. Which watches a document may satisfy
// it finds by their collections, and by conditions on one field: see finder.
//
// The dispatcher reads the feed from one snapshot after the other, and each to its newest
// change. A reader joins at the end of a snapshot, which its feed reads, too: so the
// members that the reader knows are those of that moment. The end of a snapshot is also
// the end of a group of events, after which the answers are those of that moment.
//
// The dispatcher waits for no reader. A reader whose queue is full leaves it, reads the
// changes after its last complete group by itself, and joins again. What it was told of
// that group is not known then, so it may be told twice: see [Event.CatchingUp].
package live

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/internal/feed"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Bounds. docs/limits.md has them.
const (
	maxQueuedBytes = 1 << 20 // of the documents that wait for one reader
	maxTokenBytes  = 1024
	passedEtags    = 256                   // etags without an event after which a reader is told the token,
	passedTime     = time.Second           // and the time between two such tokens at least
	joinBatches    = 16                    // of changes that a reader may lack when it joins
	restRounds     = 9                     // rounds that the dispatcher rests after one,
	longestRest    = 10 * time.Millisecond // and how long at most
	fruitless      = 100                   // snapshots that expire, one after the other, before a change is read
)

// Kind says what an event is.
type Kind uint8

const (
	Enter   Kind = iota + 1 // the document has become an answer
	Change                  // it was one, was written, and still is one
	Leave                   // it is one no longer
	Current                 // all events up to the token have come
)

// Event is one event of a live query. Its parts must not be changed: readers share them.
type Event struct {
	Kind       Kind
	ID         string         // as written
	Node, Etag uint64         // of the version, or of the deletion
	Document   *docs.Document // of Enter and Change
	Row        []byte         // of them, what the query selects; nil for whole documents
	CatchingUp bool           // whether the reader has the document is not known: it may have it at Enter, and lack it at Leave
	Token      string         // of Current

	bytes int
}

// Queries has the live queries of an open database. It is safe for concurrent use.
type Queries struct {
	env    *env.Env
	feeds  *feed.Source
	memory memory

	ctx   context.Context // ends with Stop
	stop  context.CancelFunc
	wake  chan struct{} // of the dispatcher; holds one
	group sync.WaitGroup

	mu      sync.Mutex
	closed  bool              // Guarded by mu, as all below.
	running bool              // there is a dispatcher
	readers int               // open readers
	watches map[string]*watch // by query
	joins   []*join           // readers that wait for the dispatcher
	ready   int               // watches that the dispatcher serves
	members members
	finder  finder
	number  uint64    // of the change that is looked at
	told    uint64    // etag of the last Current that went to all readers,
	toldAt  time.Time // and its time
	touched []*watch
	broken  []broken
	matched []*watch // scratch
}

// broken is a watch that cannot go on.
type broken struct {
	w   *watch
	err error
}

// New returns the live queries of a database.
func New(e *env.Env, feeds *feed.Source) *Queries {
	h := &Queries{env: e, feeds: feeds, wake: make(chan struct{}, 1), watches: make(map[string]*watch)}
	h.memory.open(e.Work)
	h.members.memory = &h.memory
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

// Stop ends all readers with ErrClosed, and waits for the dispatcher.
func (h *Queries) Stop() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.stop()
	h.group.Wait()
}

// Load returns how many readers are open, how many different queries they have, and the
// bytes that these hold.
func (h *Queries) Load() (readers, queries int, bytes int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.readers, len(h.watches), h.memory.load()
}

// watch is a query that readers share.
type watch struct {
	key        string
	number     string // of the key
	query      *query.Query
	collection string       // folded; "" for all documents
	filter     *exec.Filter // of the dispatcher
	bounds     []bound      // see finder
	bounded    bool
	decided    bool // by the bounds: what the finder finds needs no filter

	pins    int                  // open readers of the query. Guarded by Queries.mu, as all below.
	readers map[*Reader]struct{} // those that the dispatcher serves
	ready   bool                 // the dispatcher keeps its members
	ended   error                // why it cannot go on
	size    int                  // members
	tried   uint64               // number of the last change that was matched
	is, was uint64               // number of the last change whose document is, or was, a member
	touched bool                 // it had an event since the last Current
}

// pin returns the watch of a query for one more reader.
func (h *Queries) pin(q *query.Query) (*watch, error) {
	key := q.String()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errs.ErrClosed
	}
	if h.readers >= knobs.LiveReaders {
		return nil, fmt.Errorf("%w: %w", errs.ErrQuery, &query.LimitError{What: "live queries of one database", Limit: knobs.LiveReaders, Actual: h.readers + 1})
	}
	w := h.watches[key]
	if w == nil {
		filter, err := exec.NewFilter(h.env, q)
		if err != nil {
			return nil, err
		}
		w = &watch{key: key, number: numberOf(key), query: q, filter: filter, readers: make(map[*Reader]struct{})}
		if q.From != "" {
			w.collection = format.CollectionKey(q.From)
		}
		w.bounds, w.bounded = boundsOf(q.Where)
		w.decided = w.bounded && decidedByBounds(q.Where)
		h.watches[key] = w
	}
	w.pins++
	h.readers++
	return w, nil
}

// unpin undoes pin. The last reader of a query takes its watch along.
func (h *Queries) unpin(w *watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readers--
	if w.pins--; w.pins == 0 {
		h.retire(w)
		h.nudge() // the dispatcher may have nothing left to do
	}
}

// retire ends the service of a watch. h.mu is held.
func (h *Queries) retire(w *watch) {
	if h.watches[w.key] == w {
		delete(h.watches, w.key)
	}
	if w.ready {
		w.ready = false
		h.ready--
		h.finder.remove(w)
		h.members.forget(w)
	}
}

// fail ends a watch and its readers. h.mu is held.
func (h *Queries) fail(w *watch, err error) {
	w.ended = err
	for r := range w.readers {
		r.fail(err)
	}
	clear(w.readers)
	h.retire(w)
}

// nudge wakes the dispatcher.
func (h *Queries) nudge() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// tokenOf returns the token of a query at an etag: a number of the query, so that another
// query cannot go on by it, and the token of a feed.
func (h *Queries) tokenOf(w *watch, etag uint64) string {
	return w.number + "." + feed.Token(h.env.Origins, h.env.Node, etag, 0)
}

func numberOf(key string) string {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(key)) // never fails
	return fmt.Sprintf("%016x", hash.Sum64())
}

// errToken is what is wrong with a token. It is ids.ErrUsage.
func errToken(token, format string, args ...any) error {
	return fmt.Errorf("%w: %q %s", ids.ErrUsage, errs.Shorten(token), fmt.Sprintf(format, args...))
}

// parseToken returns the token of the feed in a token of w.
func parseToken(w *watch, token string) (string, error) {
	if len(token) > maxTokenBytes {
		return "", errToken(token, "is not a token of a live query: it has %d bytes, of %d at most", len(token), maxTokenBytes)
	}
	number, since, cut := strings.Cut(token, ".")
	if _, err := strconv.ParseUint(number, 16, 64); err != nil || !cut || len(number) != 16 || since == "" || since == feed.Now || strings.Contains(since, "~") {
		return "", errToken(token, "is not a token of a live query")
	}
	if number != w.number {
		return "", errToken(token, "is a token of another live query than %.300s", w.key)
	}
	return since, nil
}

// isExpired reports whether a snapshot has ended before it was read.
func isExpired(err error) bool { return errors.Is(err, storage.ErrSnapshotExpired) }
