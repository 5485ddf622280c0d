package sqlkv

import (
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// news tells those who wait for the next commit.
type news struct {
	mu      sync.Mutex
	next    chan struct{} // nil if no caller has asked since the last commit. Guarded by mu.
	polling bool          // there is a goroutine that asks the server. Guarded by mu.
}

// tell closes the channel.
func (n *news) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next != nil {
		close(n.next)
		n.next = nil
	}
}

// NextCommit implements storage.Engine. It reports the commits of this process at once. While a
// caller waits, it asks the server for the commits of other processes every Driver.PollInterval.
func (e *Engine) NextCommit() (<-chan struct{}, error) {
	n := &e.news
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next == nil {
		n.next = make(chan struct{})
	}
	if !n.polling {
		n.polling = true
		e.workers.Go(e.poll)
	}
	return n.next, nil
}

// poll asks for commits of others as long as a caller waits for the next one.
func (e *Engine) poll() {
	tick := time.NewTicker(e.pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-e.ctx.Done():
			return
		}
		e.news.mu.Lock()
		if e.news.next == nil {
			e.news.polling = false
			e.news.mu.Unlock()
			return
		}
		e.news.mu.Unlock()
		if number, err := e.latest(); err == nil {
			e.saw(number)
		}
	}
}

// latest returns the number of the newest commit.
func (e *Engine) latest() (number uint64, err error) {
	ctx, cancel := e.bounded()
	defer cancel()
	err = e.retried(ctx, func(c *pgxpool.Conn) error {
		return c.QueryRow(ctx, e.sql.newest).Scan(&number)
	})
	return number, e.address.explain(err)
}
