package simulation_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/storage/storagetest"
)

// reader has a change feed open over many steps, and goes on at its token after each Open.
type reader struct {
	leave   context.CancelFunc
	done    chan struct{}
	relaxed bool // a loss of power may take what it shows

	mu    sync.Mutex
	token string
	shown map[string]jay.Change // the newest change of each document
	power *storagetest.PowerCut // of the machine, or nil
	err   error                 // why the feed has ended
}

// readOn opens a feed that stays open, or ends the one that is open.
func readOn(w *world) {
	switch {
	case w.failed || w.cut != nil:
	case w.reader == nil:
		w.reader = &reader{shown: make(map[string]jay.Change)}
		w.openReader()
	default:
		time.Sleep(time.Second) // a feed waits a little for more
		w.checkReader()
		if w.intn(4) == 0 {
			w.leaveReader()
			w.reader = nil
		}
	}
}

// openReader begins, or goes on.
func (w *world) openReader() {
	r := w.reader
	if r == nil {
		return
	}
	ctx, leave := context.WithCancel(ctx)
	r.leave, r.done, r.relaxed, r.power, r.err = leave, make(chan struct{}), w.settings.relaxed, nil, nil
	go r.run(ctx, w.db)
}

// run notes what the feed shows, until it ends or the power goes.
func (r *reader) run(ctx context.Context, db *jay.DB) {
	defer close(r.done)
	for c, err := range db.Changes(ctx, r.token, jay.WithDocuments()) {
		if !r.note(c, err) {
			return
		}
	}
}

func (r *reader) note(c jay.Change, err error) (more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.err = err
		return false
	}
	if r.power != nil && r.power.Happened() {
		return false // it is shown in a world that is gone
	}
	if c.Collection != "@hilo" && c.ID != "" {
		r.shown[ids.Fold(c.ID)] = c
	}
	r.token = c.Token()
	return true
}

// leaveReader ends the feed, but not what its reader knows.
func (w *world) leaveReader() {
	if r := w.reader; r != nil && r.leave != nil {
		r.leave()
		<-r.done
		r.leave = nil
	}
}

// checkReader compares what an open feed has shown with what is there. Under Relaxed it may show less.
func (w *world) checkReader() {
	r := w.reader
	if r.leave == nil {
		w.openReader()
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(r.err, jay.ErrChangesGone) { // it begins again
		r.token, r.shown = "", make(map[string]jay.Change)
		w.openReader()
		return
	}
	if r.err != nil {
		w.fail("an open feed has ended: %v", r.err)
	}
	if w.settings.relaxed {
		return
	}
	for _, key := range append(w.model.documents(""), w.model.documents(forms)...) {
		d := w.model.state[key]
		if c := r.shown[key]; c.Deleted || c.ChangeVector() != d.version && d.version != "" {
			w.fail("an open feed shows %s at %d, and not %v", key, c.Etag, d)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.shown)) {
		if c := r.shown[key]; !c.Deleted && w.there(key) == nil {
			w.fail("an open feed shows %s, which is not there", c.ID)
		}
	}
}

// resumeReader checks, after an Open, that all that the feed has shown is there, and goes on.
func (w *world) resumeReader() {
	r := w.reader
	if r == nil {
		return
	}
	if r.relaxed {
		r.token, r.shown = "", make(map[string]jay.Change)
		w.openReader()
		return
	}
	newest, kept := make(map[string]uint64), true // by document; whether no record of a deletion is gone
	for c, err := range w.db.Changes(ctx, r.token, jay.UntilCaughtUp()) {
		if errors.Is(err, jay.ErrChangesGone) {
			kept = false
			break
		}
		w.must(err)
		newest[ids.Fold(c.ID)] = c.Etag
	}
	for _, key := range slices.Sorted(maps.Keys(r.shown)) {
		c, d := r.shown[key], w.there(key)
		switch {
		case d != nil && (etagOf(d.version) < c.Etag || etagOf(d.version) == c.Etag && c.Deleted):
			w.fail("a feed has shown %s at %d, deleted: %v, and after the loss of power there is %v at %s", c.ID, c.Etag, c.Deleted, d, d.version)
		case d == nil && newest[key] != 0 && newest[key] < c.Etag:
			w.fail("a feed has shown %s at %d, and after the loss of power its deletion is at %d", c.ID, c.Etag, newest[key])
		case d == nil && newest[key] == 0 && !c.Deleted && kept:
			w.fail("a feed has shown %s at %d, and after the loss of power neither it nor its deletion is there", c.ID, c.Etag)
		}
	}
	w.openReader()
}

// etagOf returns the etag of a change vector of one node.
func etagOf(version string) uint64 {
	_, number, _ := strings.Cut(version, ":")
	number, _, _ = strings.Cut(number, "-")
	n, _ := strconv.ParseUint(number, 10, 64) // 0 for none
	return n
}
