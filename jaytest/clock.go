package jaytest

import (
	"sync"
	"time"
)

// Start is the time that a new Clock shows.
var Start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// Clock is a clock that stands still until Advance or Set moves it. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time // Guarded by mu.
}

// NewClock returns a clock that shows Start.
func NewClock() *Clock { return &Clock{now: Start} }

// Now returns the clock's time. Pass it to the parts of the program that need the time. Options.Now
// of the database has it already.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set sets the clock, forward or back.
func (c *Clock) Set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// Advance moves the clock forward. The database runs work that has become due in the background,
// some time later. DB.Advance runs it at once.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Advance moves the clock forward, and runs the work that has become due: it deletes documents that
// have expired, and gives documents that are due for a refresh a new version. The work is complete
// when Advance returns, in every run.
func (db *DB) Advance(d time.Duration) {
	db.t.Helper()
	db.Clock.Advance(d)
	if _, err := db.Sweep(background); err != nil {
		db.t.Fatalf("jaytest: advance: %v", err)
	}
}
