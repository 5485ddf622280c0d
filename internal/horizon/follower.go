package horizon

import (
	"sync/atomic"

	"github.com/jaydb/jay/internal/knobs"
)

// Follower keeps the records of deletions after the position of an open reader of
// changes, up to the knob HeldEtags back from the newest change. A reader that falls
// further behind sees from the mark that records may be gone.
type Follower struct {
	h        *Horizon
	position atomic.Uint64
}

// Follow returns a Follower at the etag after. It returns ErrPassed, and the least etag
// that it would accept, if records after that etag may be gone or are about to be
// removed.
func (h *Horizon) Follow(after uint64) (_ *Follower, least uint64, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if after < h.gone {
		return nil, h.gone, ErrPassed
	}
	return h.followLocked(after), h.gone, nil
}

// FollowNow returns a Follower that keeps all records that there are. It is for a reader
// that begins with a snapshot taken after the call.
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

// Advance reports that the reader no longer needs the records up to an etag.
func (f *Follower) Advance(etag uint64) { f.position.Store(etag) }

// Close ends f. It may be called more than once. After Horizon.Stop it has no effect, so
// the records of a reader that is open when the database is closed are still there for
// it in the next process.
func (f *Follower) Close() {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	if !f.h.stopped {
		delete(f.h.followers, f)
	}
}

// followedLocked returns the highest etag up to which no follower needs records. h.mu is
// held.
func (h *Horizon) followedLocked(newest uint64) uint64 {
	least := newest
	for f := range h.followers {
		least = min(least, f.position.Load())
	}
	return max(least, newest-min(newest, knobs.HeldEtags))
}

// claim announces that the records up to an etag are about to be removed, so that no
// follower can begin below it. ok is false if a follower has begun there since the
// records were found. before is what to pass to unclaim.
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

// Followers returns the number of open followers.
func (h *Horizon) Followers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.followers)
}
