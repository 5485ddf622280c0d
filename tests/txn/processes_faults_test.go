//go:build unix

package txn_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/pgtest"
	"github.com/jaydb/jay/storage/sqlkv"
)

// processesFor is the environment variable with the time for which TestProcesses makes faults.
const processesFor = "JAY_SQL_PROCESSES"

// How long each wait of TestProcesses, and of TestFailover, takes at most. After a failover, the server waits for a new standby to be made: seconds, or
// minutes on a machine that is busy.
const (
	processesPatience = 90 * time.Second
	failoverPatience  = 8 * time.Minute
)

// link is between the processes and the server, and cuts connections.
type link struct {
	listener net.Listener
	socket   string // of the server

	cutNext    atomic.Bool // the next message of a client is not passed on, and ends its connection
	loseCommit atomic.Bool // the answer to the next commit is not passed on, and ends its connection

	mu    sync.Mutex
	conns map[net.Conn]struct{} // Guarded by mu.
}

func newLink(t *testing.T, socket string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l := &link{listener: listener, socket: socket, conns: make(map[net.Conn]struct{})}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go l.serve(c)
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		l.cutAll()
	})
	return l
}

func (l *link) cutAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		c.Close()
	}
}

func (l *link) serve(client net.Conn) {
	defer client.Close()
	server, err := net.DialTimeout("unix", l.socket, time.Second)
	if err != nil {
		return
	}
	defer server.Close()
	l.mu.Lock()
	l.conns[client], l.conns[server] = struct{}{}, struct{}{}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.conns, client)
		delete(l.conns, server)
	}()
	go func() {
		defer client.Close()
		l.answers(client, server)
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil || l.cutNext.CompareAndSwap(true, false) {
			return
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

// answers passes on the messages of the server.
func (l *link) answers(client io.Writer, server io.Reader) {
	for {
		head := make([]byte, 5)
		if _, err := io.ReadFull(server, head); err != nil {
			return
		}
		n := binary.BigEndian.Uint32(head[1:])
		if n < 4 {
			return
		}
		message := append(head, make([]byte, n-4)...)
		if _, err := io.ReadFull(server, message[5:]); err != nil {
			return
		}
		if head[0] == 'C' && strings.HasPrefix(string(message[5:]), "COMMIT") && l.loseCommit.CompareAndSwap(true, false) {
			return
		}
		if _, err := client.Write(message); err != nil {
			return
		}
	}
}

// several makes one fault after another, each when the one before has happened.
func several(fault *atomic.Bool) {
	until := time.Now().Add(10 * time.Second)
	for range 8 {
		fault.Store(true)
		for fault.Load() && time.Now().Before(until) {
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// worker is a process, as the test sees it.
type worker struct {
	name  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	ended chan struct{} // closed when all of its lines were read

	stopped, caught chan struct{}
}

// trial is what all processes have done.
type trial struct {
	t        *testing.T
	address  string // that the processes open
	url      string // the same store, when no fault is made
	started  int
	patience time.Duration

	mu       sync.Mutex
	runs     map[string]line // the last run of each transaction, by name. Guarded by mu, and so is what follows.
	ends     map[string]line // of transactions
	views    []line
	made     []line
	numbers  map[uint64]string
	tries    map[string]int // by what is counted
	done     map[string]int
	sureNot  map[string]int             // of those tried, which have changed nothing
	feeds    map[string]map[string]bool // IDs by process
	progress int
	writes   []line // the last ones that were acknowledged
	failed   line   // the last call that failed
}

// newTrial returns a trial of a store with two indexes at an address; url is the same one without what is between.
func newTrial(t *testing.T, address, url string, patience time.Duration) *trial {
	t.Helper()
	db, err := jay.Open(url, &jay.Options{Engine: new(sqlkv.Driver)})
	must(t, err)
	must(t, db.EnsureIndex(ctx, "Users", jay.Index{Name: "by", Fields: []string{"By"}}))
	must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Name: "by", Fields: []string{"By"}, Unique: true}))
	must(t, db.Close())
	return &trial{
		t: t, address: address, url: url, patience: patience,
		runs: make(map[string]line), ends: make(map[string]line), numbers: make(map[uint64]string), tries: make(map[string]int), done: make(map[string]int),
		sureNot: make(map[string]int), feeds: make(map[string]map[string]bool),
	}
}

func (tr *trial) start() *worker {
	t := tr.t
	t.Helper()
	tr.started++
	w := &worker{name: fmt.Sprintf("p%d", tr.started), ended: make(chan struct{}), stopped: make(chan struct{}), caught: make(chan struct{})}
	w.cmd = exec.Command(os.Args[0], "-test.run=^TestProcesses_Worker$", "-test.count=1")
	w.cmd.Env = append(os.Environ(), processStore+"="+tr.address, processName+"="+w.name)
	w.cmd.Stderr = os.Stderr
	var err error
	w.in, err = w.cmd.StdinPipe()
	must(t, err)
	out, err := w.cmd.StdoutPipe()
	must(t, err)
	must(t, w.cmd.Start())
	go func() {
		defer close(w.ended)
		readLines(out, func(l line) { tr.note(w, l) })
	}()
	t.Cleanup(func() { _ = w.cmd.Process.Kill() })
	return w
}

// note notes a line of a process.
func (tr *trial) note(w *worker, l line) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if l.Error != "" {
		tr.failed = l
	}
	if l.Error == "" && l.End > 0 {
		tr.progress++
		if l.Kind == madeLine {
			tr.writes = append(tr.writes[max(0, len(tr.writes)-1000):], l)
		}
	}
	switch l.Kind {
	case runLine:
		tr.runs[l.Name] = l
	case txnLine:
		tr.ends[l.Name] = l
	case viewLine:
		if l.Error == "" {
			tr.views = append(tr.views, l)
		}
	case madeLine:
		if l.Error == "" {
			tr.made = append(tr.made, l)
		}
	case numberLine:
		if other := tr.numbers[l.Etag]; l.Error == "" && other != "" {
			tr.t.Errorf("%s and %s were given the number %d", other, l.Name, l.Etag)
		} else if l.Error == "" {
			tr.numbers[l.Etag] = l.Name
		}
	case tryLine:
		tr.tries[l.ID]++
	case tallyLine, counterLine:
		if l.Error == "" {
			tr.done[string(l.Kind)]++
		} else if l.Sure {
			tr.sureNot[string(l.Kind)]++
		}
	case feedLine:
		if tr.feeds[w.name] == nil {
			tr.feeds[w.name] = make(map[string]bool)
		}
		tr.feeds[w.name][l.ID] = true
	case wrongLine:
		tr.t.Errorf("%s %s: %s", w.name, l.Name, l.Error)
	case stoppedLine:
		close(w.stopped)
	case caughtLine:
		close(w.caught)
	}
}

// await waits for a channel.
func (tr *trial) await(what string, done <-chan struct{}) bool {
	tr.t.Helper()
	select {
	case <-done:
		return true
	case <-time.After(tr.patience):
		tr.t.Errorf("after %s still no end: %s", tr.patience, what)
		return false
	}
}

// kill ends a process as a failure of its machine would.
func (tr *trial) kill(w *worker) {
	tr.t.Helper()
	must(tr.t, w.cmd.Process.Kill())
	if tr.await("of "+w.name+", which was killed", w.ended) {
		_ = w.cmd.Wait() // its error is the kill
	}
}

// goesOn waits until calls succeed again.
func (tr *trial) goesOn(after string) {
	tr.t.Helper()
	tr.mu.Lock()
	before := tr.progress
	tr.mu.Unlock()
	for until := time.Now().Add(tr.patience); ; time.Sleep(10 * time.Millisecond) {
		tr.mu.Lock()
		now, failed := tr.progress, tr.failed
		tr.mu.Unlock()
		if now >= before+40 {
			return
		}
		if time.Now().After(until) {
			tr.t.Fatalf("after %s, %d calls succeed in %s; the last error: %+v", after, now-before, tr.patience, failed)
		}
	}
}

// Ensure that four processes with eight goroutines each, on one store in PostgreSQL, stay serializable while processes and the server are killed,
// processes stand still for longer than their leases, and connections are cut, also between a commit and its answer: that nothing
// acknowledged is lost, no ID and no number comes twice, identities that documents use up have no holes, what says that nothing was changed has changed
// nothing, indexes and counts are right, every feed shows all in its order, no call outlasts its context, and all goes on by itself.
func TestProcesses(t *testing.T) {
	if os.Getenv(processesFor) == "" {
		t.Skip("run by make postgres, with " + processesFor)
	}
	lasts, err := time.ParseDuration(os.Getenv(processesFor))
	must(t, err)
	server, err := pgtest.Start()
	must(t, err)
	defer server.Stop()
	if !server.Own() {
		t.Skip("the server is not the tests' own")
	}
	_, dir, _ := strings.Cut(server.URL(), "host=")
	between := newLink(t, filepath.Join(dir, ".s.PGSQL.5432"))
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const schema = "jay_schema=processes"
	tr := newTrial(t, "postgres://jay@"+between.listener.Addr().String()+"/postgres?sslmode=disable&"+schema, server.URL(schema), processesPatience)
	workers := make([]*worker, 4)
	for i := range workers {
		workers[i] = tr.start()
	}
	tr.goesOn("the start")
	faults := []struct {
		name string
		make func()
	}{
		{"the kill of a process", func() {
			i := random.IntN(len(workers))
			tr.kill(workers[i])
			workers[i] = tr.start()
		}},
		{"the standstill of a process", func() {
			p := workers[random.IntN(len(workers))].cmd.Process
			must(t, p.Signal(syscall.SIGSTOP))
			time.Sleep(processPeriod * 2)
			tr.goesOn("the standstill of a process, which lasts")
			must(t, p.Signal(syscall.SIGCONT))
		}},
		{"the kill of the server", func() {
			must(t, server.Kill())
			time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
			must(t, server.Restart())
		}},
		{"the cut of all connections", between.cutAll},
		{"the cut of requests", func() { several(&between.cutNext) }},
		{"the loss of answers to commits", func() { several(&between.loseCommit) }},
	}
	made := make(map[string]int)
	for until := time.Now().Add(lasts); len(made) == 0 || time.Now().Before(until); {
		for _, i := range random.Perm(len(faults)) {
			time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
			faults[i].make()
			made[faults[i].name]++
			tr.goesOn(faults[i].name)
		}
	}
	between.cutNext.Store(false)
	between.loseCommit.Store(false)
	t.Logf("faults: %v", made)

	tr.finish(workers)
}

// finish lets the processes end, and checks what they have done.
func (tr *trial) finish(workers []*worker) {
	t := tr.t
	t.Helper()
	for _, step := range []struct {
		name string
		of   func(w *worker) chan struct{}
	}{{"the calls", func(w *worker) chan struct{} { return w.stopped }}, {"the feeds", func(w *worker) chan struct{} { return w.caught }}} {
		for _, w := range workers {
			_, err := io.WriteString(w.in, "go on\n")
			must(t, err)
		}
		for _, w := range workers {
			if !tr.await(step.name+" of "+w.name, step.of(w)) {
				return
			}
		}
	}
	for _, w := range workers {
		if !tr.await(w.name, w.ended) {
			return
		}
		if err := w.cmd.Wait(); err != nil {
			t.Errorf("%s: %v", w.name, err)
		}
	}
	db, err := jay.Open(tr.url, &jay.Options{Engine: new(sqlkv.Driver)})
	must(t, err)
	defer db.Close()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.check(db, workers)
}

// check compares what the processes were told with what there is.
func (tr *trial) check(db *jay.DB, workers []*worker) {
	t := tr.t
	marks := make(map[string]uint64)
	invoices := 0
	by := make(map[string]string)
	for doc, err := range db.Documents(ctx, jay.Scan{}) {
		must(t, err)
		if name, is := strings.CutPrefix(doc.ID(), "marks/"); is {
			marks[name] = doc.Metadata().Etag
		}
		if strings.HasPrefix(doc.ID(), "invoices/") {
			invoices++
		}
		by[doc.ID()], err = token(doc)
		must(t, err)
	}

	var history []*txn
	committed, unknown := 0, 0
	latest := time.Now().UnixNano()
	for name, run := range tr.runs {
		etag, there := marks[name]
		end, ended := tr.ends[name]
		switch {
		case ended && end.Error == "" && (!there || etag != end.Etag):
			t.Errorf("%s was acknowledged with etag %d, and has %d", name, end.Etag, etag)
		case ended && end.Sure && there:
			t.Errorf("%s has happened, though its error says that it has not: %s", name, end.Error)
		}
		if !ended || end.Error != "" && !end.Sure {
			unknown++
			end.End = latest
		}
		if there {
			committed++
			history = append(history, &txn{name: name, begin: run.Begin, end: end.End, committed: true, order: etag, acts: run.acts()})
		}
	}
	for name := range marks {
		if _, ran := tr.runs[name]; !ran {
			t.Errorf("%s is there, and no process has run it", name)
		}
	}
	for _, v := range tr.views {
		history = append(history, &txn{name: v.Name, begin: v.Begin, end: v.End, committed: true, acts: v.acts()})
	}
	for _, found := range anomalies(history) {
		t.Error(found)
	}

	seen := make(map[string]string)
	for _, m := range tr.made {
		if other := seen[m.ID]; other != "" {
			t.Errorf("%s and %s were given the ID %s", other, m.Name, m.ID)
		}
		seen[m.ID] = m.Name
		if by[m.ID] != m.Name {
			t.Errorf("%s was acknowledged for %s, and has %q", m.ID, m.Name, by[m.ID])
		}
	}
	for n := 1; n <= invoices; n++ {
		if _, there := by[fmt.Sprint("invoices/", n)]; !there {
			t.Errorf("invoices/%d is missing, of %d", n, invoices)
		}
	}
	for id := range by {
		for _, w := range workers {
			if !tr.feeds[w.name][id] {
				t.Errorf("the feed of %s has not shown %s", w.name, id)
			}
		}
	}
	var tally struct{ N int }
	doc, err := db.Get(ctx, "tallies/1")
	must(t, err)
	must(t, doc.Decode(&tally))
	counter := 0
	v, err := db.CompareExchange().Get(ctx, "count")
	must(t, err)
	must(t, v.Decode(&counter))
	for what, got := range map[string]int{"tally": tally.N, "counter": counter} {
		if least, most := tr.done[what], tr.tries[what]-tr.sureNot[what]; got < least || got > most {
			t.Errorf("the %s is %d, and was raised at least %d and at most %d times", what, got, least, most)
		}
	}
	checks.WaitIndexTasks(db)
	jaytest.Verify(t, db)
	must(t, errors.Join(checks.Counts(db), checks.Indexes(db), checks.Times(db)))
	t.Logf("%d transactions committed, %d of which the outcome was not known, %d views, %d IDs made, %d numbers, %d documents, processes %v", committed, unknown, len(tr.views), len(tr.made), len(tr.numbers), len(by), slices.Collect(func(yield func(string) bool) {
		for _, w := range workers {
			if !yield(w.name) {
				return
			}
		}
	}))
}
