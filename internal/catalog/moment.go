package catalog

import (
	"sync"
	"sync/atomic"

	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// Moment is what plans have read of an index and its collection at one commit. The index keeps the last one, as most plans read what
// the plan before has read. It is safe for concurrent use.
type Moment struct {
	Flags byte // of the index

	// Tally is that of the collection, nil before it was read.
	Tally atomic.Pointer[format.Tally]

	commit   uint64
	mu       sync.Mutex
	variants map[string][][]byte // what ranges hold, by their keys. Guarded by mu.
}

// maxVariants is how many ranges a Moment remembers.
const maxVariants = 256

// At returns what is known of the index at the commit that r shows. Of a reader that is not storage.Numbered nothing is kept.
func (ix *Index) At(r storage.Reader) (*Moment, error) {
	numbered, ok := r.(storage.Numbered)
	var commit uint64
	if ok {
		commit, ok = numbered.CommitNumber()
	}
	if m := ix.moment.Load(); ok && m != nil && m.commit == commit {
		return m, nil
	}
	flags, err := ReadFlags(r, ix.Number)
	if err != nil {
		return nil, err
	}
	m := &Moment{Flags: flags, commit: commit}
	if ok {
		ix.moment.Store(m)
	}
	return m, nil
}

// Variants returns what SetVariants has set for the same keys.
func (m *Moment) Variants(keys []byte) (prefixes [][]byte, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	prefixes, known = m.variants[string(keys)]
	return prefixes, known
}

// SetVariants keeps the prefixes of the keys that ranges have, nil for many of them. They must not be changed.
func (m *Moment) SetVariants(keys []byte, prefixes [][]byte) {
	if len(keys) > maxRangeKey {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.variants == nil || len(m.variants) >= maxVariants {
		m.variants = make(map[string][][]byte)
	}
	m.variants[string(keys)] = prefixes
}
