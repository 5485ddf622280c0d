package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/storage/storagetest"
)

// liveQueries are the queries that are followed, and what they mean to the model.
var liveQueries = []struct {
	text  string
	holds func(d *doc) bool
}{
	{"from Users where a >= 3", func(d *doc) bool { return d.collection == "Users" && d.a >= 3 }},
	{"from Orders where a in (1, 2) or u < 9", func(d *doc) bool { return d.collection == "Orders" && (d.a == 1 || d.a == 2 || d.u >= 0 && d.u < 9) }},
	{"from Forms where a < 4", func(d *doc) bool { return d.collection == forms && d.a >= 0 && d.a < 4 }},
	{"from @all_docs where t = 'green' select n", func(d *doc) bool { return d.text == "green" }},
}

// liveReader has a live query open over many steps, and goes on at its token after each Open.
type liveReader struct {
	query   int
	leave   context.CancelFunc
	done    chan struct{}
	relaxed bool // a loss of power may take what it has

	mu      sync.Mutex
	token   string
	has     map[string]string     // change vectors by folded ID, by all events
	answers map[string]string     // those at the end of the last group
	power   *storagetest.PowerCut // of the machine, or nil
	err     error                 // why it has ended
	wrong   string                // what an event said that cannot be
}

// liveQuery begins to follow a query, or compares what is known of its answers with the model's, and perhaps ends.
func liveQuery(w *world) {
	switch {
	case w.failed || w.cut != nil:
	case w.live == nil:
		w.live = &liveReader{query: w.intn(len(liveQueries)), has: make(map[string]string)}
		fmt.Fprintf(w.log, "%s. ", liveQueries[w.live.query].text)
		w.openLive()
	default:
		w.checkLive()
		if w.intn(4) == 0 {
			w.leaveLive()
			w.live = nil
		}
	}
}

// openLive begins, or goes on.
func (w *world) openLive() {
	r := w.live
	if r == nil {
		return
	}
	if r.relaxed {
		r.forget()
	}
	q, err := w.db.RQL(liveQueries[r.query].text, nil)
	w.must(err)
	ctx, leave := context.WithCancel(ctx)
	r.leave, r.done, r.relaxed, r.power, r.err = leave, make(chan struct{}), w.settings.relaxed, nil, nil
	r.has = maps.Clone(r.answers) // what came of a group that was cut off comes again
	if r.has == nil {
		r.has = make(map[string]string)
	}
	go r.run(ctx, q)
}

// forget begins anew.
func (r *liveReader) forget() { r.token, r.has, r.answers = "", make(map[string]string), nil }

// run notes the events, until they end or the power goes.
func (r *liveReader) run(ctx context.Context, q jay.Query[jay.Row]) {
	defer close(r.done)
	for e, err := range q.Live(ctx, r.token) {
		if !r.note(e, err) {
			return
		}
	}
}

func (r *liveReader) note(e jay.LiveEvent[jay.Row], err error) (more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.err = err
		return false
	}
	if r.power != nil && r.power.Happened() {
		return false // it comes in a world that is gone
	}
	key := ids.Fold(e.ID)
	_, has := r.has[key]
	if want := e.Kind == jay.LiveChange || e.Kind == jay.LiveLeave; !e.CatchingUp && e.Kind != jay.LiveCurrent && has != want {
		r.wrong = fmt.Sprintf("%v of %s at %d, which it has: %t", e.Kind, e.ID, e.Etag, has)
	}
	switch e.Kind {
	case jay.LiveEnter, jay.LiveChange:
		r.has[key] = e.ChangeVector
	case jay.LiveLeave:
		delete(r.has, key)
	case jay.LiveCurrent:
		r.token, r.answers = e.Token, maps.Clone(r.has)
	}
	return true
}

// leaveLive ends the live query, but not what its reader knows.
func (w *world) leaveLive() {
	if r := w.live; r != nil && r.leave != nil {
		r.leave()
		<-r.done
		r.leave = nil
	}
}

// checkLive compares the answers that a live query has brought with the model's.
func (w *world) checkLive() {
	r := w.live
	if w.settings.relaxed {
		w.must(w.db.Flush(ctx))
		w.model.sync()
	}
	time.Sleep(time.Second) // it may wait a little for more
	w.rest()
	r.mu.Lock()
	err, wrong, got := r.err, r.wrong, maps.Clone(r.answers)
	r.mu.Unlock()
	switch {
	case wrong != "":
		w.fail("the live query %q: %s", liveQueries[r.query].text, wrong)
	case errors.Is(err, jay.ErrChangesGone):
		fmt.Fprint(w.log, "it begins anew. ")
		w.leaveLive()
		r.forget()
		w.openLive()
		return
	case err != nil:
		w.fail("the live query %q has ended: %v", liveQueries[r.query].text, err)
	}
	want := make(map[string]string)
	for _, key := range append(w.model.documents(""), w.model.documents(forms)...) {
		d := w.model.state[key]
		if !d.expires.IsZero() && !d.expires.After(w.now()) { // it goes with the next sweep
			delete(got, key)
		} else if liveQueries[r.query].holds(d) {
			want[key] = d.version
		}
	}
	for key, version := range want {
		if got[key] != "" && version == "" {
			want[key] = got[key] // it is not known
		}
	}
	fmt.Fprintf(w.log, "%d answers. ", len(want))
	if !maps.Equal(want, got) {
		w.fail("the live query %q has %v, want %v", liveQueries[r.query].text, got, want)
	}
}
