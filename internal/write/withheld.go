package write

import (
	"maps"
	"sync"
	"sync/atomic"
)

// Withheld holds the numbers of indexes into which writers stage nothing for now, though they are being built: those of a Stager whose
// tables are made (package indexer, tables.go). Tables hide what writers have added to a sum, and which part of a sum that is cannot be
// seen afterwards. Whoever withholds an index enters the documents that were changed meanwhile. It is safe for concurrent use.
//
// Writers look at it in their transaction. So what was withheld before a transaction began is withheld in it, and an empty transaction after
// Begin or End waits for those that may have seen the other state.
type Withheld struct {
	mu      sync.Mutex // of changes
	numbers atomic.Pointer[map[uint32]bool]
}

// Begin withholds an index.
func (w *Withheld) Begin(number uint32) {
	w.change(func(numbers map[uint32]bool) { numbers[number] = true })
}

// End does so no longer; it may be called for any index.
func (w *Withheld) End(number uint32) {
	w.change(func(numbers map[uint32]bool) { delete(numbers, number) })
}

// Has reports whether an index is withheld.
func (w *Withheld) Has(number uint32) bool {
	numbers := w.numbers.Load()
	return numbers != nil && (*numbers)[number]
}

func (w *Withheld) change(edit func(map[uint32]bool)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := make(map[uint32]bool)
	if numbers := w.numbers.Load(); numbers != nil {
		maps.Copy(next, *numbers)
	}
	if edit(next); len(next) == 0 {
		w.numbers.Store(nil)
		return
	}
	w.numbers.Store(&next)
}
