package horizon

import (
	"sync/atomic"

	"github.com/jaydb/jay/internal/knobs"
)

// Follower keeps, for a reader of changes that is open, the records of the deletions
// after its position, as long as that is not further back than the knob HeldEtags.
// Who falls further behind sees from the mark that records may be gone.
type Follower struct {
	h        *Horizon
	position atomic.Uint64
}

// Follow begins to keep the records of deletions after an etag. It returns ErrPassed,
// and the least etag that it would accept, if they may be gone, or are about to be.
func (h *Horizon) Follow(after uint64) (_ *Follower, least uint64, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if after < h.gone {
		return nil, h.gone, ErrPassed
	}
	return h.followLocked(after), h.gone, nil
}

// FollowNow is Follow for who has seen nothing before the next snapshot: it keeps all
// records that there are.
func (h *Horizon) FollowNow() *Follower {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.followLocked(h.gone)
}

func (h *Horizon) followLocked(after uint64) *Follower {
	f := &Follower{h: h}
	f.position.Store(after)
	if h.followers == nil {
		h.followers = make(map[*Follower]struct{})
	}
	h.followers[f] = struct{}{}
	return f
}

// Advance notes that records up to an etag are no longer needed.
func (f *Follower) Advance(etag uint64) { f.position.Store(etag) }

// Close ends f. It may be called more than once. After Stop it has no effect: who
// followed when the database was closed can go on from there in the next process.
func (f *Follower) Close() {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	if !f.h.stopped {
		delete(f.h.followers, f)
	}
}

// followedLocked returns the etag up to which no follower needs records. h.mu is
// held.
func (h *Horizon) followedLocked(newest uint64) uint64 {
	least := newest
	for f := range h.followers {
		least = min(least, f.position.Load())
	}
	return max(least, newest-min(newest, knobs.HeldEtags))
}

// claim announces that the records up to an etag are about to be removed: no follower
// begins below it from now on. It reports false if one has begun there since the
// records were looked for.
func (h *Horizon) claim(end uint64) (before uint64, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.followedLocked(h.newest) < end {
		return h.gone, false
	}
	before, h.gone = h.gone, max(h.gone, end)
	return before, true
}

// unclaim withdraws a claim: nothing was removed.
func (h *Horizon) unclaim(before uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone = before
}

// Followers returns how many followers are open.
func (h *Horizon) Followers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.followers)
}
