package sqlkv

import "sync"

// hot knows which keys every group reads, or every snapshot, such as those of counters and definitions:
// the next one gets their values together with its first ones. It is safe for concurrent use.
type hot struct {
	mu   sync.Mutex
	last map[string]struct{} // keys that the one before has read. Guarded by mu.
	both [][]byte            // and the one before that, too. Guarded by mu; what it holds does not change.
}

const (
	maxHot   = 64   // keys
	maxNoted = 4096 // keys that one group has read, of which some may be hot
)

// keys returns them. The caller may append to the slice.
func (h *hot) keys() [][]byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.both[:len(h.both):len(h.both)]
}

// note notes what a group or a snapshot has read. The map belongs to h.
func (h *hot) note(reads map[string]struct{}) {
	if len(reads) == 0 || len(reads) > maxNoted {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.both = nil
	for key := range reads {
		if _, again := h.last[key]; again && len(h.both) < maxHot {
			h.both = append(h.both, []byte(key))
		}
	}
	h.last = reads
}
