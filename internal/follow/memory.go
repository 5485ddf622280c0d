package follow

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/jaydb/jay/storage"
)

// MemoryBytes bounds the commits that a source remembers. A standby that was away for longer than they last compares
// its keys.
const MemoryBytes = 64 << 20

// maxScratch is how much memory a source keeps to put commits together in.
const maxScratch = 1 << 20

// memory is the newest commits of an engine. It remembers them while streams read them, and when none does until they are more than its bound:
// a standby that comes back soon goes on where it was.
type memory struct {
	engine storage.CommitWatcher
	bound  int
	clock  func() time.Time

	mu      sync.Mutex
	on      bool // commits are remembered. Guarded by mu.
	placed  bool // before is known. Guarded by mu.
	readers int  // streams. Guarded by mu.
	bytes   int  // of all payloads. Guarded by mu.

	// before is the number of the commit before the first of payloads. Guarded by mu, valid if placed.
	before   uint64
	payloads [][]byte // of frames of commits. Guarded by mu.
	scratch  []byte   // in which a payload is put together, so that it is allocated once. Guarded by mu.
}

// join is called by a stream that begins; leave must follow.
func (m *memory) join() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.readers++
}

func (m *memory) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.readers--
}

// has reports whether the commits after number are remembered.
func (m *memory) has(number uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.on && m.placed && m.before <= number && number <= m.lastLocked()
}

// lastLocked is the number of the newest commit. m.mu is held.
func (m *memory) lastLocked() uint64 { return m.before + uint64(len(m.payloads)) }

// last returns the number of the newest commit that is remembered.
func (m *memory) last() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lastLocked()
}

// begin returns a snapshot and its number. Later commits are remembered.
func (m *memory) begin(ctx context.Context) (storage.Snapshot, uint64, error) {
	m.mu.Lock()
	if !m.on {
		m.on, m.placed, m.payloads, m.bytes = true, false, nil, 0
	}
	m.mu.Unlock()
	before, number, err := m.engine.WatchCommits(ctx, m.see)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil && !m.placed {
		m.placed, m.before = true, number
	}
	return before, number, err
}

// see is called with each commit, while no other can begin.
func (m *memory) see(c storage.Commit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case !m.on:
		return
	case c.Ingested: // its keys are not known: all standbys compare theirs
		m.placed, m.before, m.payloads, m.bytes = true, c.Number, nil, 0
		return
	case !m.placed:
		m.placed, m.before = true, c.Number-1
	}
	m.scratch = appendMoment(m.scratch[:0], c.Number, m.clock())
	for w := range c.Writes {
		if !isLocal(w.Key) {
			m.scratch = appendWrite(m.scratch, w)
		}
	}
	payload := bytes.Clone(m.scratch)
	if cap(m.scratch) > maxScratch {
		m.scratch = nil
	}
	m.payloads, m.bytes = append(m.payloads, payload), m.bytes+len(payload)
	for m.bytes > m.bound {
		m.bytes -= len(m.payloads[0])
		m.payloads[0] = nil
		m.payloads, m.before = m.payloads[1:], m.before+1
		if m.readers == 0 {
			m.on, m.payloads, m.bytes = false, nil, 0
			return
		}
	}
}

// appendCommits appends frames of the commits after number, up to last, about as many as make up a block of blockBytes, at least one. It returns the
// number of the last of them. If they are not remembered any more, known is false.
func (m *memory) appendCommits(dst []byte, number, last uint64) (out []byte, upTo uint64, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.on || number < m.before || number > m.lastLocked() {
		return dst, number, false
	}
	size := len(dst)
	for number < min(last, m.lastLocked()) && len(dst)-size < blockBytes {
		dst = appendFrame(dst, kindCommit, m.payloads[number-m.before])
		number++
	}
	return dst, number, true
}
