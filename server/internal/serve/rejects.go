package serve

import (
	"bytes"
	"slices"
	"sync"
	"time"
)

// RejectStore holds the rejects of the last imports.
type RejectStore struct {
	mu  sync.Mutex
	all shares[*Rejects] // by sender. Guarded by mu.
}

// Forget drops the rejects of a deleted database.
func (k *RejectStore) Forget(database string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all.removeIf(func(r *Rejects) bool {
		if r.of.Database == database {
			r.drop()
		}
		return r.of.Database == database
	})
}

// Rejects holds the records that an import has rejected, one per line.
type Rejects struct {
	of     OperationID
	most   int
	n      int
	text   []byte
	whole  int       // bytes of text that are whole records
	memory *Holding  // Guarded by RejectStore.mu.
	gone   bool      // it is kept no longer. Guarded by RejectStore.mu.
	ended  time.Time // when its import ended; zero while that runs. Guarded by RejectStore.mu.
}

// drop gives the memory back. RejectStore.mu is held.
func (r *Rejects) drop() {
	r.memory.End()
	r.gone, r.text, r.whole = true, nil, 0
}

// Open adds an empty list of rejects for an import of an owner, in place of another if
// there are too many: see shares.
func (k *RejectStore) Open(owner string, of OperationID, most int, memory *Holding) *Rejects {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := &Rejects{of: of, most: most, memory: memory}
	k.all.most = maxRejectLists
	if dropped, full := k.all.add(owner, r); full {
		dropped.drop()
	}
	return r
}

// Write keeps a part of a record, which a line break ends. It fails if there are more records
// than the client allows, or too many bytes. A record that is not ended is not kept, and none is
// when the rejects of the import were dropped.
func (k *RejectStore) Write(r *Rejects, part []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case r.n >= r.most:
		return 0, TooLarge("%d records were rejected already, which is the most that was asked for", r.n)
	case len(r.text)+len(part) > maxRejectBytes:
		return 0, TooLarge("the rejected records have more than %d bytes, which is the most that is kept", maxRejectBytes)
	}
	if r.gone {
		if bytes.HasSuffix(part, []byte{'\n'}) {
			r.n++
		}
		return len(part), nil
	}
	if grown, taken := int64(len(r.text)+len(part)), r.memory.Held(); grown > taken {
		more := min(max(2*grown, 64<<10), maxRejectBytes) - taken
		if err := r.memory.Take(more); err != nil {
			return 0, err
		}
	}
	r.text = append(r.text, part...)
	if bytes.HasSuffix(part, []byte{'\n'}) {
		r.n++
		r.whole = len(r.text)
	}
	return len(part), nil
}

// Close notes that the import of the rejects has ended. They are kept for rejectsKept.
func (k *RejectStore) Close(r *Rejects, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r.ended = now
}

// Expire drops the rejects of imports that ended rejectsKept ago, whose memory their senders pay for.
func (k *RejectStore) Expire(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all.removeIf(func(r *Rejects) bool {
		expired := !r.ended.IsZero() && now.Sub(r.ended) >= rejectsKept
		if expired {
			r.drop()
		}
		return expired
	})
}

// find returns the rejects of an import, or nil. k.mu is held.
func (k *RejectStore) find(of OperationID) *Rejects {
	for _, list := range k.all.bySender {
		if i := slices.IndexFunc(list, func(r *Rejects) bool { return r.of == of }); i >= 0 {
			return list[i]
		}
	}
	return nil
}

// TextOf returns the records that an import has rejected, one per line, and whether they
// are kept.
func (k *RejectStore) TextOf(of OperationID) (text []byte, found bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.find(of)
	if r == nil {
		return nil, false
	}
	return r.text[:r.whole], true // bytes that are appended later are beyond its end
}

// Bounds of rejects.
const (
	maxRejectLists = 8       // imports whose rejects are kept
	maxRejectBytes = 8 << 20 // of one import
	rejectsKept    = 15 * time.Minute
)
