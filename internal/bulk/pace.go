package bulk

import (
	"sync/atomic"
	"time"

	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/storage"
)

// pace decides when a Writer makes room for others. A durable write of another
// caller waits for the batch that is being committed, and its sync for all that was written
// to the log before. At full speed that is several batches: one write in a hundred waited for
// fifty times the median. While others wait for the disk, batches are so small that they share
// the commit and the sync with them, and the writer waits for that sync, so that it is at most
// one batch ahead.
type pace struct {
	engine storage.Paced // nil if the engine does not know who waits
	now    func() int64  // ns since the writer began, above 0; not the time of Options, which tests stop
	until  atomic.Int64  // go slowly until then; 0 for never

	// When others were first and last seen to wait, in a row without a gap of paceMemory.
	// Guarded by Writer.mu.
	first, last int64
}

// begin prepares p, which must not be copied, for a writer that began at this time.
func (p *pace) begin(db *core.Database, began time.Time) {
	p.now = func() int64 { return 1 + int64(time.Since(began)) }
	p.engine, _ = db.Env.Engine.(storage.Paced)
}

const (
	// paceMemory is how long a writer goes slowly after it has met others: their next
	// write comes soon.
	paceMemory = int64(10 * time.Millisecond)

	// leastWait is how long others must be seen to wait: one write now and then is
	// not worth smaller batches.
	leastWait = int64(500 * time.Microsecond)

	// While others wait, a batch is sent when it has pieceBytes: the bodies, and for each
	// document pieceOverhead for its header, keys and change record. The engine still puts
	// a little more than that into one commit with other calls: smallBytes of package lsm.
	pieceBytes    = 60 << 10
	pieceOverhead = 96
)

// look notes whether other callers wait for the disk. Commits of bulk writers, and those that
// reserve IDs and etags, do not count: a bulk writer causes them itself. Writer.mu is held.
func (p *pace) look(e *env.Env) {
	if p.engine == nil {
		return
	}
	own := e.OwnSyncs.Load() // one may begin or end meanwhile
	if p.engine.SyncsAwaited() <= max(own, e.OwnSyncs.Load()) {
		return
	}
	now := p.now()
	if p.last == 0 || now-p.last > paceMemory {
		p.first = now
	}
	if p.last = now; now-p.first >= leastWait {
		p.until.Store(now + paceMemory)
	}
}

// slow reports whether others have waited for the disk a short time ago.
func (p *pace) slow() bool {
	until := p.until.Load()
	return until > 0 && p.now() < until
}

// isPiece reports whether the batch is large enough to be committed beside the writes of
// others.
func (b *batch) isPiece() bool { return b.bytes+pieceOverhead*len(b.ops) >= pieceBytes }
