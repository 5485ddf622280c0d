package live

import "slices"

// Sizes that are reckoned for members: about what a map takes.
const (
	documentBytes = 96 // of a document that is a member of a watch, beside its ID
	memberBytes   = 16 // of each further watch
)

// members has the members of all watches, by the folded IDs of documents. The members of
// a watch that was forgotten are removed later, many at a time.
type members struct {
	memory *memory
	of     map[string][]*watch
	live   int // members of ready watches
	dead   int // of the others
}

// bytesOf returns what a document takes that is a member of n watches.
func bytesOf(folded string, n int) int {
	if n == 0 {
		return 0
	}
	return documentBytes + len(folded) + (n-1)*memberBytes
}

// set makes the document a member of these ready watches, and of no other. If there is no
// memory for them, it returns the error and changes nothing.
func (m *members) set(folded string, now []*watch) error {
	if err := m.claim(folded, len(now)); err != nil {
		return err
	}
	for _, w := range m.of[folded] {
		if w.ready {
			w.size--
			m.live--
		} else {
			m.dead--
		}
	}
	for _, w := range now {
		w.size++
		m.live++
	}
	if len(now) == 0 {
		delete(m.of, folded)
		return nil
	}
	if m.of == nil {
		m.of = make(map[string][]*watch)
	}
	m.of[folded] = slices.Clone(now)
	return nil
}

// add makes the document a member of one more ready watch.
func (m *members) add(folded string, w *watch) error {
	if err := m.claim(folded, len(m.of[folded])+1); err != nil {
		return err
	}
	if m.of == nil {
		m.of = make(map[string][]*watch)
	}
	m.of[folded] = append(slices.Clip(m.of[folded]), w)
	w.size++
	m.live++
	return nil
}

// claim takes the memory for a document that becomes a member of n watches, or gives back
// what it takes no longer. Before it fails, it removes what is forgotten.
func (m *members) claim(folded string, n int) error {
	for {
		more := bytesOf(folded, n) - bytesOf(folded, len(m.of[folded]))
		if more <= 0 {
			m.memory.release(-more)
			return nil
		}
		err := m.memory.claim(more)
		if err == nil || m.dead == 0 {
			return err
		}
		m.sweep()
	}
}

// forget is called with a watch that is ready no longer.
func (m *members) forget(w *watch) {
	m.live -= w.size
	m.dead += w.size
	w.size = 0
	if m.dead > m.live {
		m.sweep()
	}
}

// sweep removes the members of watches that are not ready.
func (m *members) sweep() {
	for folded, all := range m.of {
		n := len(all)
		all = slices.DeleteFunc(all, func(w *watch) bool { return !w.ready })
		m.memory.release(bytesOf(folded, n) - bytesOf(folded, len(all)))
		if len(all) == 0 {
			delete(m.of, folded)
		} else {
			m.of[folded] = all
		}
	}
	m.dead = 0
}
