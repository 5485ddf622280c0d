package serve

import "sync"

// Vectors remembers the documents of the change vectors of revisions that were last sent
// to clients.
type Vectors struct {
	mu    sync.Mutex
	ids   map[vectorKey]string // Guarded by mu.
	order []vectorKey          // a ring of the keys of ids. Guarded by mu.
	next  int                  // position in order. Guarded by mu.
}

type vectorKey struct{ database, vector string }

// maxVectors and maxVectorBytes bound vectors, to some megabytes: no request pays for them.
const (
	maxVectors     = 10_000
	maxVectorBytes = 512 // of a change vector and its ID; longer ones are not remembered
)

func newVectors() *Vectors { return &Vectors{ids: make(map[vectorKey]string)} }

// Add remembers the document of a change vector, in place of the oldest if there are too many,
// unless they are too long.
func (v *Vectors) Add(database, vector, id string) {
	if len(vector)+len(id) > maxVectorBytes {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	key := vectorKey{database, vector}
	if _, found := v.ids[key]; found {
		return
	}
	if len(v.order) < maxVectors {
		v.order = append(v.order, key)
	} else {
		delete(v.ids, v.order[v.next])
		v.order[v.next] = key
		v.next = (v.next + 1) % maxVectors
	}
	v.ids[key] = id
}

// Find returns the document of a change vector, if it is remembered.
func (v *Vectors) Find(database, vector string) (id string, found bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	id, found = v.ids[vectorKey{database, vector}]
	return id, found
}
