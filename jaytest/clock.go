package jaytest

import (
	"sync"
	"time"
)

// Start is the time at which a clock begins.
var Start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// Clock is a clock that stands still until it is moved. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time // Guarded by mu.
}

// NewClock returns a clock that stands at Start.
func NewClock() *Clock { return &Clock{now: Start} }

// Now returns the clock's time. It goes where a program takes its time from: Options.Now
// of the database has it already.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set sets the clock, also back.
func (c *Clock) Set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// Advance moves the clock. A database does in the background what is due then, some time
// later; DB.Advance does it at once.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Advance moves the clock, and does what is due then: it deletes the documents that have
// expired, and gives those to be refreshed a new version. When it returns, that is done,
// in every run.
func (db *DB) Advance(d time.Duration) {
	db.t.Helper()
	db.Clock.Advance(d)
	if _, err := db.Sweep(background); err != nil {
		db.t.Fatalf("jaytest: advance: %v", err)
	}
}
