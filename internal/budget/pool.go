package budget

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jaydb/jay/storage"
)

// Patience is how long work waits for memory that other work has. A variable for tests.
var Patience = 5 * time.Second

// Pool is the memory that work draws on: queries, builds, bulk writers. Work holds its memory in a Draw.
//
// A draw that finds too little waits in line, for Patience at most. It is refused at once if waiting is of no use: if it could never fit,
// or if it holds memory and every other holder waits, too. So holders never wait for one another in a circle. A goroutine whose one draw
// waits for what its other draw has, as a query does that is run for each row of another, is refused after Patience: no wait is for ever.
//
// A nil Pool has no bound. All methods are safe for concurrent use.
type Pool struct {
	mu      sync.Mutex
	most    int64     // Guarded by mu.
	used    int64     // Guarded by mu.
	peak    int64     // the most that was used. Guarded by mu.
	holders int       // draws that hold memory. Guarded by mu.
	stuck   int       // holders that wait. Guarded by mu.
	line    []*waiter // Guarded by mu.
}

// waiter is a draw in line.
type waiter struct {
	d     *Draw
	n     int64
	ready chan struct{} // closed when it has got n
}

// NewPool returns a pool of so many bytes.
func NewPool(most int64) *Pool { return &Pool{most: most} }

// Load returns the bytes that work has, the most that it had at a time, and the most that it may have.
func (p *Pool) Load() (used, peak, most int64) {
	if p == nil {
		return 0, 0, 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used, p.peak, p.most
}

// raise makes the pool one of at least n bytes.
func (p *Pool) raise(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most = max(p.most, n)
}

// Draw is the memory of one piece of work. End gives it back. The zero value has no bound. Its methods are not safe for concurrent use; different draws are.
type Draw struct {
	pool *Pool
	what string
	held int64 // Guarded by pool.mu.
}

// NewDraw returns a draw that holds nothing yet. what names the work in errors. It must not be copied once it is used.
func (p *Pool) NewDraw(what string) Draw { return Draw{pool: p, what: what} }

// Take takes n bytes more. If others have them, it waits: see Pool. Its error is a *storage.MemoryError, or that of ctx, and nothing is taken then.
func (d *Draw) Take(ctx context.Context, n int64) error {
	if d.pool == nil || n <= 0 {
		return nil
	}
	p := d.pool
	p.mu.Lock()
	if len(p.line) == 0 && p.fits(n) {
		p.give(d, n)
		p.mu.Unlock()
		return nil
	}
	if d.held+n > p.most || d.held > 0 && p.stuck+1 >= p.holders {
		err := p.refusal(d, n)
		p.mu.Unlock()
		return err
	}
	w := &waiter{d: d, n: n, ready: make(chan struct{})}
	if d.held > 0 { // it is nearer to giving back than who has nothing
		p.stuck++
		p.line = slices.Insert(p.line, 0, w)
		p.serve()
	} else {
		p.line = append(p.line, w)
	}
	p.mu.Unlock()

	timer := time.NewTimer(Patience)
	defer timer.Stop()
	var err error
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.Index(p.line, w)
	if at < 0 { // it was served meanwhile
		return nil
	}
	p.line = slices.Delete(p.line, at, at+1)
	if d.held > 0 {
		p.stuck--
	}
	if err == nil {
		err = p.refusal(d, n)
	}
	p.serve() // those behind it may fit
	return err
}

// Try takes n bytes more, or reports that they are not free and takes nothing. It never waits.
func (d *Draw) Try(n int64) bool {
	if d.pool == nil || n <= 0 {
		return true
	}
	p := d.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.line) > 0 || !p.fits(n) {
		return false
	}
	p.give(d, n)
	return true
}

// Refused is the error of work that does not wait.
func (d *Draw) Refused(n int64) error {
	d.pool.mu.Lock()
	defer d.pool.mu.Unlock()
	return d.pool.refusal(d, n)
}

// End gives all back. It is idempotent.
func (d *Draw) End() {
	if d.pool == nil {
		return
	}
	p := d.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.held == 0 {
		return
	}
	p.used -= d.held
	p.holders--
	d.held = 0
	p.serve()
}

// fits reports whether n bytes are free. p.mu is held.
func (p *Pool) fits(n int64) bool { return p.used+n <= p.most }

// give adds n bytes to a draw. p.mu is held.
func (p *Pool) give(d *Draw, n int64) {
	if d.held == 0 {
		p.holders++
	}
	d.held += n
	p.used += n
	p.peak = max(p.peak, p.used)
}

// serve gives to those in line what has become free, in their order. p.mu is held.
func (p *Pool) serve() {
	for len(p.line) > 0 && p.fits(p.line[0].n) {
		w := p.line[0]
		p.line = p.line[1:]
		if w.d.held > 0 {
			p.stuck--
		}
		p.give(w.d, w.n)
		close(w.ready)
	}
}

// refusal is the error of a draw that is refused. p.mu is held.
func (p *Pool) refusal(d *Draw, n int64) error {
	return &storage.MemoryError{What: d.what, Wanted: n, Held: d.held, Used: p.used, Most: p.most}
}
