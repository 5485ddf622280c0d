package serve

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay"
)

// Budget bounds the memory of requests, for all senders together and for each of them. A
// request pays before it takes memory: for the body as it is read, for what the body is
// decoded into, for what a query sorts, for documents and for the reply.
type Budget struct {
	used atomic.Int64 // sum of bySender

	mu       sync.Mutex
	most     int64            // for all. Guarded by mu.
	share    int64            // for one sender. Guarded by mu.
	peak     int64            // the most that was used, for tests. Guarded by mu.
	bySender map[string]int64 // without zeros. Guarded by mu.
}

// Load returns the bytes that are taken, and the most that may be.
func (b *Budget) Load() (used, most int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used.Load(), b.most
}

// PeakSince returns the most bytes that were taken at a time since its last call, for tests.
func (b *Budget) PeakSince() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	peak := b.peak
	b.peak = b.used.Load()
	return peak
}

// Bound changes the most for all and for one sender, for tests.
func (b *Budget) Bound(most, share int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.most, b.share = most, share
}

func newBudget(most, share int64) *Budget {
	return &Budget{most: most, share: share, bySender: make(map[string]int64)}
}

// Holding is the memory that one request holds, or another thing that ends as a whole. The
// caller must call end. It is safe for concurrent use.
type Holding struct {
	b      *Budget
	sender string
	taken  int64 // Guarded by b.mu.
}

// Holding returns a holding of a sender, which has taken nothing yet. The caller must call End.
func (b *Budget) Holding(sender string) *Holding { return &Holding{b: b, sender: sender} }

// Take takes n bytes, or refuses and takes nothing. What does not fit even if the sender
// holds nothing else is too large; anything else may be tried again later.
func (h *Holding) Take(n int64) error {
	if n <= 0 {
		return nil
	}
	b := h.b
	b.mu.Lock()
	defer b.mu.Unlock()
	held := b.bySender[h.sender]
	switch {
	case h.taken+n > b.share:
		return TooLarge("the request takes more than %d bytes of memory, which is the most for one sender: send and ask for less at a time", b.share)
	case held+n > b.share:
		return overload("the requests of this sender take %d bytes of memory, which is the most for one sender", b.share)
	case b.used.Load()+n > b.most:
		return overload("the bodies of requests and replies take %d bytes of memory, which is the most", b.most)
	}
	h.taken += n
	b.bySender[h.sender] = held + n
	b.peak = max(b.peak, b.used.Add(n))
	return nil
}

// Give gives n of the bytes back.
func (h *Holding) Give(n int64) {
	if n <= 0 {
		return
	}
	b := h.b
	b.mu.Lock()
	defer b.mu.Unlock()
	h.taken -= n
	b.used.Add(-n)
	if b.bySender[h.sender] -= n; b.bySender[h.sender] == 0 {
		delete(b.bySender, h.sender)
	}
}

// The pauses between the attempts of Patiently.
const (
	leastPause = 20 * time.Millisecond
	mostPause  = 500 * time.Millisecond
)

// Patiently calls try again, with longer and longer pauses, as long as it returns that there is too
// little memory now, which is 429, but no longer than patience and ctx. It is for work that no client
// waits for. try must give back what it has taken.
func Patiently(ctx context.Context, patience time.Duration, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		err := try()
		if err == nil || ProblemOf(err).Status != http.StatusTooManyRequests {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// Held returns the bytes that are held.
func (h *Holding) Held() int64 {
	h.b.mu.Lock()
	defer h.b.mu.Unlock()
	return h.taken
}

// End gives all bytes back.
func (h *Holding) End() { h.Give(h.Held()) }

// StoreBytes returns what it takes to store documents, beside their text: two copies on the
// way to the disk, and the names of each object, which are compared with one another.
func StoreBytes(text []byte) int64 {
	return 2*int64(len(text)) + 48*int64(bytes.Count(text, []byte{':'}))
}

// Largest is the memory of a stream of which one part is held at a time: that of its
// largest part.
type Largest struct {
	Memory *Holding
	taken  int64
}

// Need takes memory for the next part, unless an earlier one has taken as much.
func (l *Largest) Need(n int64) error {
	if n <= l.taken {
		return nil
	}
	if err := l.Memory.Take(n - l.taken); err != nil {
		return err
	}
	l.taken = n
	return nil
}

// paidBy returns a context whose reads, and queries, are paid for by a holding: see room.
func paidBy(ctx context.Context, memory *Holding) context.Context {
	return jay.WithMemory(jay.WithReading(ctx, (&room{Largest: Largest{Memory: memory}}).need), memory.Take)
}

// room is the memory of the largest document or revision that an operation has read, as
// Call.need is that of a call. It is safe for concurrent use.
type room struct {
	mu sync.Mutex
	Largest
}

// need takes memory for a document, unless an earlier one has taken as much.
func (r *room) need(n int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Largest.Need(n)
}
