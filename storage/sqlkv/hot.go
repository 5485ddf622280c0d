package sqlkv

// hot knows which keys every group reads, such as those of counters and definitions: the next group gets their values together with its
// first one.
type hot struct {
	last map[string]struct{} // keys that the group before has read; nil if they were too many
	both [][]byte            // and the one before that, too
}

const (
	maxHot   = 64   // keys
	maxNoted = 4096 // keys that one group has read, of which some may be hot
)

// keys returns them. The caller may append to the slice.
func (h *hot) keys() [][]byte { return h.both[:len(h.both):len(h.both)] }

// note notes what a group has read.
func (h *hot) note(reads map[string]struct{}) {
	if len(reads) == 0 || len(reads) > maxNoted {
		return
	}
	h.both = nil
	for key := range reads {
		if _, again := h.last[key]; again && len(h.both) < maxHot {
			h.both = append(h.both, []byte(key))
		}
	}
	h.last = reads
}
