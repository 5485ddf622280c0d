// Package live_test compares live queries with the same queries, run again after each commit.
package live_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	internal "github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/jaytest"
)

// questions are the queries of the model: bounded by an equality, a range, a list, several
// fields, an ID, or by nothing, of one collection and of all documents.
var questions = []string{
	"from Ants where N = 3",
	"from Ants where N >= 2 and N < 6",
	"from Bees where Tag = 'x' or Tag = 'Z'",
	"from Bees where Tag in ('y', 'z') select N, Tag",
	"from Ants where startsWith(Tag, 'x') and not (N = 1)",
	"from Ants where Lines.P = 4",
	"from @all_docs where N > 4",
	"from @all_docs where id() = 'd/3'",
	"from Ants where N between 1 and 2 or Lines.P > 7",
	"from Ants where exact(Tag < 'x')",
	"from Bees where exact(Tag > 'X') and N > 2",
	"from Bees where exists(Lines)",
	"from Bees",
	"from Cats where N < 4",
	"from Cows",
	"from @all_docs where @metadata.@collection = 'Ants' and Tag = 'y'",
}

// answer is what a query has of one document.
type answer struct {
	etag uint64
	body string
}

// moment are the answers after a commit.
type moment struct {
	from, etag uint64 // it has come of the commits with etags above from, up to etag
	single     bool   // of one commit
	answers    []map[string]answer
}

// history are the commits of one database, which one goroutine makes.
type history struct {
	t       *testing.T
	db      *jaytest.DB
	random  *rand.Rand
	moments []moment
	token   string // of the last change
	readers []*reader
}

// reader keeps the answers of one question by its events.
type reader struct {
	question int
	cancel   context.CancelFunc
	done     chan struct{}

	mu    sync.Mutex
	moved *sync.Cond
	state map[string]answer
	token string
	seen  []current // not compared yet
	last  uint64    // etag of the last Current
	err   error
	wrong string
	slow  time.Duration
	catch int // events that came again
}

// current are the answers that a reader has at an etag.
type current struct {
	etag  uint64
	state map[string]answer
}

// ask begins to read, or goes on.
func (h *history) ask(r *reader) {
	ctx, cancel := context.WithCancel(context.Background())
	q, err := h.db.RQL(questions[r.question], nil)
	internal.Must(h.t, err)
	r.cancel, r.done, r.err = cancel, make(chan struct{}), nil
	if r.token == "" {
		r.state = make(map[string]answer)
	}
	token, done := r.token, r.done
	go func() {
		defer close(done)
		for e, err := range q.Live(ctx, token) {
			time.Sleep(r.slow)
			r.mu.Lock()
			r.take(e, err)
			r.moved.Broadcast()
			r.mu.Unlock()
		}
	}()
}

// take applies an event. r.mu is held.
func (r *reader) take(e jay.LiveEvent[jay.Row], err error) {
	if err != nil {
		r.err = err
		return
	}
	_, has := r.state[e.ID]
	if e.CatchingUp {
		r.catch++
	} else if want := e.Kind == jay.LiveChange || e.Kind == jay.LiveLeave; e.Kind != jay.LiveCurrent && has != want {
		r.wrong = fmt.Sprintf("%v of %q at %d, which is there: %t", e.Kind, e.ID, e.Etag, has)
	}
	switch e.Kind {
	case jay.LiveEnter, jay.LiveChange:
		r.state[e.ID] = answer{e.Etag, bodyOf(e.Value)}
	case jay.LiveLeave:
		delete(r.state, e.ID)
	case jay.LiveCurrent:
		r.token, r.last = e.Token, e.Etag
		r.seen = append(r.seen, current{e.Etag, maps.Clone(r.state)})
	}
}

func bodyOf(row *jay.Row) string {
	if row.Document != nil {
		return string(row.Document.Body())
	}
	return "" // the etag says which version it is of
}

// stop ends a reader.
func (r *reader) stop() {
	r.cancel()
	<-r.done
}

// note runs all queries again, after a call that has committed.
func (h *history) note(single bool) {
	ctx := context.Background()
	internal.Must(h.t, h.db.Flush(ctx))
	m := moment{single: single}
	if n := len(h.moments); n > 0 {
		m.from = h.moments[n-1].etag
	}
	m.etag = m.from
	for c, err := range h.db.Changes(ctx, h.token, jay.UntilCaughtUp()) {
		internal.Must(h.t, err)
		m.etag, h.token = c.Etag, c.Token()
	}
	for _, text := range questions {
		whole, _, selects := strings.Cut(text, " select ") // rows have no ID
		q, err := h.db.RQL(whole, nil)
		internal.Must(h.t, err)
		found := make(map[string]answer)
		for row, err := range q.Iter(ctx) {
			internal.Must(h.t, err)
			a := answer{etagOf(row.Document), bodyOf(row)}
			if selects {
				a.body = ""
			}
			found[row.Document.ID()] = a
		}
		m.answers = append(m.answers, found)
	}
	h.moments = append(h.moments, m)
}

// compare waits until all readers have the answers of now, and compares all that they had
// before with the answers of then.
func (h *history) compare() {
	h.t.Helper()
	now := &h.moments[len(h.moments)-1]
	for _, r := range h.readers {
		h.renew(r)
		patience := time.AfterFunc(time.Minute, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.err == nil {
				r.err = errors.New("it does not come to the answers of now")
			}
			r.moved.Broadcast()
		})
		r.mu.Lock()
		want := now.answers[r.question]
		for r.err == nil && r.wrong == "" && !(len(r.seen) > 0 && same(r.seen[len(r.seen)-1].state, want) && same(r.state, want)) {
			if len(r.seen) == 0 && r.last > 0 && same(r.state, want) {
				break // nothing has changed for it
			}
			r.moved.Wait()
		}
		patience.Stop()
		if errors.Is(r.err, jay.ErrChangesGone) {
			r.mu.Unlock()
			<-r.done
			h.compare() // it begins anew
			return
		}
		if r.err != nil || r.wrong != "" {
			h.t.Fatalf("%s: %v %s; has %v, want %v", questions[r.question], r.err, r.wrong, r.state, want)
		}
		for _, c := range r.seen {
			h.check(r, c)
		}
		r.seen = nil
		r.mu.Unlock()
	}
	h.moments = h.moments[len(h.moments)-1:]
}

// renew has a reader begin anew whose token has become too old.
func (h *history) renew(r *reader) {
	select {
	case <-r.done:
	default:
		return
	}
	if errors.Is(r.err, jay.ErrChangesGone) {
		r.token, r.last, r.seen = "", 0, nil
		h.ask(r)
	}
}

// check compares what a reader had with the answers of that moment.
func (h *history) check(r *reader, c current) {
	for i := range h.moments {
		m := &h.moments[i]
		switch {
		case c.etag == m.etag && !same(c.state, m.answers[r.question]):
			h.t.Fatalf("%s: at %d it has %v, and the query %v", questions[r.question], c.etag, c.state, m.answers[r.question])
		case m.single && c.etag > m.from && c.etag < m.etag:
			h.t.Fatalf("%s: a group ends at %d, in the middle of the commit of %d to %d", questions[r.question], c.etag, m.from+1, m.etag)
		}
	}
}

// etagOf returns the etag in the change vector of a document.
func etagOf(d *jay.Document) (etag uint64) {
	_, vector, _ := strings.Cut(d.ChangeVector(), ":")
	number, _, _ := strings.Cut(vector, "-")
	etag, _ = strconv.ParseUint(number, 10, 64)
	return etag
}

// same reports whether the answers are the same.
func same(a, b map[string]answer) bool { return maps.Equal(a, b) }

func (h *history) body() json.RawMessage {
	r := h.random
	body := map[string]any{"N": r.IntN(8), "Tag": []string{"x", "X", "X1", "y", "z"}[r.IntN(5)]}
	if r.IntN(3) == 0 {
		body["Lines"] = []any{map[string]any{"P": r.IntN(10)}, map[string]any{"P": r.IntN(10)}}
	}
	b, err := json.Marshal(body)
	internal.Must(h.t, err)
	return b
}

func (h *history) id() string { return "d/" + strconv.Itoa(h.random.IntN(30)) }

// in returns the collection to write a document to: that which it is in, as documents do
// not move, and any other for one that is not there. get reads it; placed are those that
// the same call has written.
func (h *history) in(id string, placed map[string]string, get func(context.Context, string) (*jay.Document, error)) jay.WriteOption {
	name := placed[id]
	if name == "" {
		name = []string{"Ants", "Ants", "Bees", "Cows"}[h.random.IntN(4)]
		switch d, err := get(context.Background(), id); {
		case err == nil:
			name = d.Collection()
		case !errors.Is(err, jay.ErrNotFound):
			h.t.Fatal(err)
		}
		if placed != nil {
			placed[id] = name
		}
	}
	return jay.InCollection(name)
}

// write makes a commit, or several. It reports whether it was one.
func (h *history) write() (single bool) {
	ctx := context.Background()
	switch n := h.random.IntN(100); {
	case n < 45:
		id := h.id()
		_, err := h.db.Put(ctx, id, h.body(), h.in(id, nil, h.db.Get))
		internal.Must(h.t, err)
	case n < 60:
		if err := h.db.Delete(ctx, h.id()); err != nil && !errors.Is(err, jay.ErrNotFound) {
			h.t.Fatal(err)
		}
	case n < 75:
		internal.Must(h.t, h.db.Update(ctx, func(tx *jay.Tx) error {
			for range 1 + h.random.IntN(20) {
				if h.random.IntN(4) == 0 {
					if err := tx.Delete(ctx, h.id()); err != nil && !errors.Is(err, jay.ErrNotFound) {
						return err
					}
					continue
				}
				id := h.id()
				if _, err := tx.Put(ctx, id, h.body(), h.in(id, nil, tx.Get)); err != nil {
					return err
				}
			}
			return nil
		}))
	case n < 82:
		var b jay.Batch
		placed := make(map[string]string)
		for range 1 + h.random.IntN(10) {
			id := h.id()
			b.Put(id, h.body(), h.in(id, placed, h.db.Get))
		}
		_, err := h.db.Apply(ctx, &b)
		internal.Must(h.t, err)
	case n < 87:
		w, err := h.db.BulkInsert(nil)
		internal.Must(h.t, err)
		placed := make(map[string]string)
		for range h.random.IntN(40) {
			id := h.id()
			_, err := w.Put(ctx, id, h.body(), h.in(id, placed, h.db.Get))
			internal.Must(h.t, err)
		}
		internal.Must(h.t, w.Close())
		return false
	case n < 92:
		id := h.id()
		_, err := h.db.Put(ctx, id, h.body(), h.in(id, nil, h.db.Get), jay.WithTTL(time.Hour))
		internal.Must(h.t, err)
	case n < 95:
		h.db.Advance(2 * time.Hour)
		return false
	case n < 98:
		from, to := "Cows", "Cats"
		if h.random.IntN(2) == 0 {
			from, to = to, from
		}
		_, err := h.db.RenameCollection(ctx, from, to)
		if err != nil && !errors.Is(err, jay.ErrNotFound) && !errors.Is(err, jay.ErrUsage) { // both have documents
			h.t.Fatal(err)
		}
		return false
	default:
		if _, err := h.db.Patch(ctx, h.id(), jay.Set("N", h.random.IntN(8))); err != nil && !errors.Is(err, jay.ErrNotFound) {
			h.t.Fatal(err)
		}
	}
	return true
}

// meddle stops readers and goes on, or the database.
func (h *history) meddle() {
	switch n := h.random.IntN(100); {
	case n < 4:
		h.compare()
		for _, r := range h.readers {
			r.mu.Lock()
			r.seen = nil
			r.mu.Unlock()
		}
		if n < 2 {
			h.db.Restart()
		} else {
			h.db.CutPower(50)
		}
		for _, r := range h.readers {
			internal.Await(h.t, "a reader whose database was closed", r.done)
			r.cancel()
			if !errors.Is(r.err, jay.ErrClosed) && !errors.Is(r.err, jay.ErrChangesGone) {
				h.t.Fatalf("after the database was closed: %v", r.err)
			}
			h.ask(r)
		}
	case n < 25:
		r := h.readers[h.random.IntN(len(h.readers))]
		r.stop()
		if r.mu.Lock(); h.random.IntN(4) == 0 {
			r.token, r.last = "", 0
		}
		r.mu.Unlock()
		if h.random.IntN(2) == 0 { // it has something to catch up with
			h.note(h.write())
		}
		h.ask(r)
	}
}

// TestModel: random commits, with several readers of each query. Each time that a reader
// has the answers of a moment, they must be those of the query that was run then; a group
// never ends in the middle of a commit; and each event fits what the reader has.
// JAY_LIVE_COMMITS is how many commits there are, JAY_LIVE_SEED the seed.
func TestModel(t *testing.T) {
	commits, seed := 300, rand.Uint64()
	if testing.Short() {
		commits = 150
	}
	if s := os.Getenv("JAY_LIVE_COMMITS"); s != "" {
		n, err := strconv.Atoi(s)
		internal.Must(t, err)
		commits = n
	}
	if s := os.Getenv("JAY_LIVE_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		internal.Must(t, err)
		seed = n
	}
	t.Logf("JAY_LIVE_SEED=%d", seed)
	defer func(queued int) { knobs.LiveQueued = queued }(knobs.LiveQueued)
	knobs.LiveQueued = 12 // transactions do not fit, and bulk writers
	h := &history{t: t, db: jaytest.Open(t, nil), random: rand.New(rand.NewPCG(seed, 1))}
	for range 20 {
		h.write()
	}
	h.note(false)
	for i := range questions {
		for n := range 2 {
			r := &reader{question: i}
			if r.moved = sync.NewCond(&r.mu); n == 1 && i%3 == 0 {
				r.slow = 200 * time.Microsecond
			}
			h.readers = append(h.readers, r)
			h.ask(r)
		}
	}
	defer func() {
		for _, r := range h.readers {
			r.stop()
		}
	}()
	for i := range commits {
		h.note(h.write())
		if i%8 > 3 || h.random.IntN(3) == 0 {
			h.compare()
		}
		h.meddle()
	}
	h.compare()
	again := 0
	for _, r := range h.readers {
		r.mu.Lock() // it still reads: a slow one may have the same answers before and after
		again += r.catch
		r.mu.Unlock()
	}
	t.Logf("%d events came again, of %d readers", again, len(h.readers))
	if again == 0 {
		t.Error("no reader had to catch up")
	}
}
