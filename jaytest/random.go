package jaytest

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
)

// random is a source of random bytes that are the same in every run. It is safe for
// concurrent use; goroutines that read from it get their bytes in the order in which they
// come.
type random struct {
	mu     sync.Mutex
	source *rand.ChaCha8 // Guarded by mu.
}

// newRandom returns the source of the nth database of a test.
func newRandom(n int) *random {
	var seed [32]byte
	copy(seed[:], "jaytest")
	binary.BigEndian.PutUint64(seed[24:], uint64(n))
	return &random{source: rand.NewChaCha8(seed)}
}

// Read implements io.Reader.
func (r *random) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source.Read(p)
}

// generator returns a generator of its own, seeded from r.
func (r *random) generator() *rand.Rand {
	r.mu.Lock()
	defer r.mu.Unlock()
	return rand.New(rand.NewPCG(r.source.Uint64(), r.source.Uint64()))
}

// opened counts the databases of the tests that run, by their names.
var opened struct {
	mu     sync.Mutex
	byTest map[string]int // Guarded by mu.
}

// ordinal returns which database of a test this is, from 1 on: databases of one test have
// different GUIDs, and different IDs of their own.
func ordinal(t T) int {
	opened.mu.Lock()
	defer opened.mu.Unlock()
	if opened.byTest == nil {
		opened.byTest = make(map[string]int)
	}
	name := t.Name()
	opened.byTest[name]++
	if opened.byTest[name] == 1 {
		t.Cleanup(func() {
			opened.mu.Lock()
			defer opened.mu.Unlock()
			delete(opened.byTest, name)
		})
	}
	return opened.byTest[name]
}
