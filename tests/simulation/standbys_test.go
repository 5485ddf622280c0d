package simulation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/standby"
	"github.com/jaydb/jay/storage/storagetest"
)

// follower is a standby of the database, on a machine of its own.
type follower struct {
	disk    *storagetest.Disk
	cut     *storagetest.PowerCut // of its machine, or nil
	standby *standby.Standby
	link    *link
	known   []known // states of the source since the standby had one of them on its disk, oldest first
}

// known is a state that the source had.
type known struct {
	state state
	at    time.Time // at which it was on the disk of the source, or zero
}

// errLink is why a connection of a standby breaks.
var errLink = errors.New("the connection breaks")

// link is the way from a standby to its source. Its methods are safe for concurrent use.
type link struct {
	mu      sync.Mutex
	db      *jay.DB               // nil while there is no way
	handler http.Handler          // of the source's server, or nil
	power   *storagetest.PowerCut // of the source's machine, or nil
	left    int                   // bytes until the connection breaks; -1 for all
	cancel  context.CancelFunc    // ends the stream under way
}

// connect leads to a source that was opened.
func (l *link) connect(db *jay.DB, handler http.Handler) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.db, l.handler, l.power, l.left = db, handler, nil, -1
}

// hangUp ends the way to the source at once: nothing that it sends arrives.
func (l *link) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.db = nil
	if l.cancel != nil {
		l.cancel()
	}
}

// Stream implements standby.Source.
func (l *link) Stream(ctx context.Context, request []byte) (io.ReadCloser, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.db == nil {
		return nil, errLink
	}
	ctx, l.cancel = context.WithCancel(ctx)
	if l.handler == nil {
		in, err := standby.From(l.db).Stream(ctx, request)
		return &linked{in, l, l.db}, err
	}
	out, in := io.Pipe()
	handler := l.handler
	go func() {
		r := httptest.NewRequestWithContext(ctx, "POST", "http://localhost/jay/v1/databases/db/follow", bytes.NewReader(request))
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler { // which a server of net/http catches, too
				panic(p)
			}
			_ = in.CloseWithError(errLink) // it never fails
		}()
		handler.ServeHTTP(&reply{header: make(http.Header), PipeWriter: in}, r)
	}()
	go func() {
		<-ctx.Done()
		_ = out.Close()
	}()
	return &linked{out, l, l.db}, nil
}

// reply is a http.ResponseWriter whose body is a pipe.
type reply struct {
	header http.Header
	*io.PipeWriter
}

func (r *reply) Header() http.Header { return r.header }
func (r *reply) Flush()              {}
func (r *reply) WriteHeader(status int) {
	if status != http.StatusOK {
		_ = r.CloseWithError(fmt.Errorf("status %d", status))
	}
}

// linked is a stream that breaks with its link.
type linked struct {
	io.ReadCloser
	link *link
	db   *jay.DB
}

// Read implements io.Reader. What was read is lost if the power of the source has gone by then: it was sent in a world that is no more.
func (s *linked) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	switch l := s.link; {
	case l.db != s.db || l.power != nil && l.power.Happened():
		return 0, errLink
	case l.left >= 0 && n >= l.left:
		n = l.left
		l.db = nil
		return n, errLink
	case l.left >= 0:
		l.left -= n
	}
	return n, err
}

// openStandby opens the standby on its disk.
func (w *world) openStandby() {
	f := w.follower
	var err error
	options := &jay.Options{FS: f.disk, Now: w.now, MemTableBytes: w.settings.memory, CacheBytes: 1 << 20, HiLoMode: w.settings.mode}
	f.standby, err = standby.Open(dir, f.link, standby.Options{Database: options, Retry: 50 * time.Millisecond})
	if err != nil {
		f.standby = nil
		w.fail("open the standby: %v", err)
	}
}

// connectStandby gives the standby its source, if there is a standby.
func (w *world) connectStandby() {
	if w.follower == nil {
		return
	}
	var handler http.Handler
	if w.front != nil {
		handler = w.front.handler
	}
	w.follower.link.connect(w.db, handler)
}

// disconnectStandby takes it away.
func (w *world) disconnectStandby() {
	if w.follower != nil {
		w.follower.link.hangUp()
		w.rest()
	}
}

// dropStandby ends the standby.
func (w *world) dropStandby() {
	if w.follower == nil {
		return
	}
	w.follower.link.hangUp()
	if w.follower.standby != nil {
		w.must(w.follower.standby.Close())
	}
	w.follower = nil
}

// noteKnown notes what the source has after a step.
func (w *world) noteKnown() {
	if w.follower == nil {
		return
	}
	k := known{state: maps.Clone(w.model.state)}
	if len(w.model.journal) == 0 {
		k.at = time.Now()
	}
	w.follower.known = append(w.follower.known, k)
}

// checkStandby compares what the standby shows, if it shows anything, with what its source has had. It returns the place of that state.
func (w *world) checkStandby() (at int, read state) {
	f := w.follower
	if !f.standby.Status().Readable {
		return -1, nil
	}
	moment := f.standby.Status().Moment
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	db, err := f.standby.DB(ctx)
	w.must(err)
	read = w.read(db)
	at = f.find(read)
	if at < 0 {
		w.fail("the standby has what its source never had: it is not the newest state, as %s", differ(f.known[len(f.known)-1].state, read, nil))
	}
	for i := len(f.known) - 1; i > at; i-- {
		if k := f.known[i]; !k.at.IsZero() && k.at.Before(moment) {
			w.fail("the standby claims the moment %v, and what the source had on its disk at %v is missing: %s", moment, k.at, differ(k.state, read, nil))
		}
	}
	w.verify(db)
	return at, read
}

// find returns the place of the newest known state from which the source came to what was read, before it came to the next one; or -1.
func (f *follower) find(read state) int {
	for i := len(f.known) - 1; i >= 0; i-- {
		may := make(map[string][]*doc)
		if i+1 < len(f.known) {
			next := f.known[i+1].state
			for key, d := range next {
				may[key] = append(may[key], d)
			}
			for key := range f.known[i].state {
				if next[key] == nil {
					may[key] = append(may[key], nil)
				}
			}
		}
		if differ(f.known[i].state, read, may) == "" {
			return i
		}
	}
	return -1
}

// stand begins a standby of the database, or looks whether it has caught up.
func stand(w *world) {
	if w.failed || w.cut != nil {
		return
	}
	if w.follower == nil {
		w.follower = &follower{disk: storagetest.NewDisk().Repeatable(), link: new(link)}
		w.noteKnown()
		w.connectStandby()
		w.openStandby()
		fmt.Fprint(w.log, "it begins. ")
		return
	}
	w.catchUp()
}

// catchUp has the standby reach its source, and compares them.
func (w *world) catchUp() {
	f := w.follower
	w.must(w.db.Flush(ctx))
	w.model.sync()
	w.noteKnown()
	w.connectStandby()
	time.Sleep(3 * time.Second) // in which it asks again, and hears of moments
	at, read := w.checkStandby()
	if status := f.standby.Status(); !status.Connected || at < 0 {
		w.fail("the standby does not follow: %+v", status)
	}
	if difference := differ(w.model.state, read, nil); difference != "" {
		w.fail("the standby has not caught up: %s", difference)
	}
	if f.cut == nil { // else it may go back to where the power has gone or will go
		f.known = f.known[len(f.known)-1:]
	}
	db, err := f.standby.DB(ctx)
	w.must(err)
	w.checkQueries(db)
	fmt.Fprintf(w.log, "it has %d documents. ", len(w.model.documents("")))
}

// cutOffStandby breaks the connection of the standby, at once or after some bytes, and sees what it has.
func cutOffStandby(w *world) {
	f := w.follower
	if f == nil {
		return
	}
	if n := w.intn(4000); w.intn(2) == 0 {
		f.link.mu.Lock()
		f.link.left = n
		f.link.mu.Unlock()
		fmt.Fprintf(w.log, "after %d bytes. ", n)
		return
	}
	w.disconnectStandby()
	w.checkStandby()
}

// killStandby takes the power from the machine of the standby. It comes back, with or without a way to its source.
func killStandby(w *world) {
	f := w.follower
	if f == nil {
		return
	}
	var found *storagetest.Disk
	if f.cut != nil {
		found = f.cut.Disk()
	}
	if found == nil {
		found = f.disk.Crash(w.intn(101), w.pieces())
	}
	w.disconnectStandby()
	_ = f.standby.Close() // on a disk that is no more
	f.disk, f.cut = found, nil
	w.figures.crashes++
	w.openStandby()
	w.checkStandby()
	if w.intn(2) == 0 {
		f.cut = f.disk.CutPower(w.intn(40), w.intn(101), w.pieces())
	}
	if w.intn(3) > 0 {
		w.connectStandby()
		fmt.Fprint(w.log, "it follows again. ")
	}
}

// promote makes a database of the standby: a copy that is compared, or one that takes the place of its source.
func promote(w *world) {
	f := w.follower
	if f == nil || w.failed || w.cut != nil || !f.standby.Status().Readable {
		return
	}
	w.disconnectStandby()
	_, read := w.checkStandby()
	floors, err := w.db.Counters(ctx)
	w.must(err)
	w.must(f.standby.Close())
	o := jay.PromoteOptions{CopyTag: "B", Options: w.copyOptions()}
	over := w.intn(3) == 0 && w.renaming == nil
	if over {
		o.CopyTag, o.SameTag, o.Floors = "", true, floors
		o.Floors.Etag += 1 << 20 // the standby knows of numbers that its source has reserved, too
		for _, numbers := range []map[string]int64{o.Floors.Identities, o.Floors.HiLo} {
			for name := range numbers {
				numbers[name] += 10_000
			}
		}
	} else {
		o.Options.HiLoMode = jay.HiLo4
	}
	o.Options.FS = f.disk
	if w.intn(3) == 0 {
		power := f.disk.CutPower(w.intn(8), w.intn(101), w.pieces())
		_, err := jay.Promote(ctx, dir, o)
		if err != nil && !power.Happened() {
			w.fail("promote: %v", err)
		}
		w.rest()
		if found := power.Disk(); found != nil {
			w.figures.crashes++
			f.disk = found
			o.Options.FS = found
			fmt.Fprint(w.log, "the power goes. ")
		}
		again := second(jay.Promote(ctx, dir, o))
		if again != nil && !errors.Is(again, jay.ErrStandby) { // the first one may have come to its end
			w.fail("promote, again: %v", again)
		}
	} else if _, err := jay.Promote(ctx, dir, o); err != nil {
		w.fail("promote: %v", err)
	}
	w.follower = nil
	if over {
		w.failOver(f, read)
		return
	}
	fmt.Fprint(w.log, "a copy. ")
	disk := w.disk
	w.disk = f.disk
	w.must(w.compare(dir, o.Options, read))
	w.disk = disk
}

// failOver goes on with the database of the standby, while the machine of the source is lost.
func (w *world) failOver(f *follower, read state) {
	fmt.Fprint(w.log, "it takes the place of its source. ")
	lost := differ(w.model.state, read, nil) != ""
	w.leave()
	w.reader, w.live = nil, nil
	w.model.anyRule = true // the standby may have an older one
	_ = w.db.Close()       // on a machine that is gone
	w.model.goOn(read)
	w.backup, w.passed, w.unready = nil, false, true
	if lost { // neither the reader of the feed nor the worker has seen what is there now
		w.feed, w.model.seen = "", make(state)
		w.model.worked = newWorked()
	} else {
		w.model.worked.forget() // the standby may have been behind by what was acknowledged
	}
	w.disk = f.disk
	var err error
	if w.db, err = jay.Open(dir, w.options()); err != nil {
		w.db = nil
		w.fail("open what was promoted: %v", err)
	}
	if w.front != nil {
		w.serve()
	}
	for d, err := range w.db.Documents(ctx, jay.Scan{}) { // the standby may not have seen that a subscription was dropped, which has sent them
		w.must(err)
		w.model.worked.suspect(ids.Fold(d.ID()), d.ChangeVector())
	}
	w.findRename()
	w.rest()
	w.examine()
}

// findRename finds a rename that its source has finished and the standby, which was behind, has not.
func (w *world) findRename() {
	for _, to := range collections {
		_, err := w.db.RenameCollection(ctx, "Nowhere", to)
		for _, a := range collections {
			for _, b := range collections {
				if err != nil && strings.Contains(err.Error(), fmt.Sprintf("the rename of %q to %q is not finished", a, b)) {
					w.renaming = &[2]string{a, b}
				}
			}
		}
	}
}

// standbyRefused tries to follow a database that cannot be followed.
func standbyRefused(w *world) {
	s, err := standby.Open(dir, standby.From(w.db), standby.Options{Database: &jay.Options{FS: storagetest.NewDisk()}})
	w.must(err)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := s.Wait(ctx); !errors.Is(err, jay.ErrStandby) {
		w.fail("to follow it ends with %v, want %v", err, jay.ErrStandby)
	}
	w.must(s.Close())
}
