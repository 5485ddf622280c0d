package live

import (
	"sync"

	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/storage"
)

// defaultMemory bounds the memory of live queries where nothing else does.
const defaultMemory = 64 << 20

// what names the memory in errors.
const what = "set of live queries"

// leastTaken is the least that is drawn on the pool at a time.
const leastTaken = 64 << 10

// memory is what the live queries of a database hold: the IDs of answers, and the events
// that wait. It is drawn on the pool of the database's work, of which it takes a quarter at
// most. It never waits for memory. It is safe for concurrent use.
type memory struct {
	mu   sync.Mutex
	pool *budget.Pool
	draw budget.Draw
	most int64
	used int64 // Guarded by mu.
	held int64 // of it, drawn on the pool. Guarded by mu.
}

func (m *memory) open(pool *budget.Pool) {
	m.pool, m.draw, m.most = pool, pool.NewDraw(what), defaultMemory
	if _, _, most := pool.Load(); most > 0 {
		m.most = most / 4
	}
}

// claim takes n bytes, or returns a *storage.MemoryError and takes none.
func (m *memory) claim(n int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	used := m.used + int64(n)
	if used > m.most {
		return &storage.MemoryError{What: what, Wanted: int64(n), Held: m.used, Used: m.used, Most: m.most}
	}
	if used > m.held {
		more := max(used-m.held, leastTaken)
		if !m.draw.Try(more) {
			return m.draw.Refused(int64(n))
		}
		m.held += more
	}
	m.used = used
	return nil
}

// release gives n bytes back.
func (m *memory) release(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= int64(n)
	if m.held < leastTaken || m.used > m.held/2 {
		return
	}
	m.draw.End() // a draw gives all of it back
	m.held = 0
	if m.used > 0 && m.draw.Try(m.used) { // else the next claim takes it
		m.held = m.used
	}
}

func (m *memory) load() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}
