package catalog

// Slab is memory for the entries of the documents of a batch, which is allocated for many
// of them at once. Each document's entries keep their part of it. The zero Slab is ready
// for use, and a nil one allocates for each document. It is not safe for concurrent use.
type Slab struct {
	documents []Entries // free
	list      []Entry   // empty; its capacity is free
	arena     []byte    // too
}

// What a piece of a slab has room for. slabArena is in bytes an index; a document begins
// in what is left only if that is at least leastArena, as most then fit.
const (
	slabDocuments = 32
	slabArena     = 24 * slabDocuments
	leastArena    = 48
)

// begin returns empty Entries, to be filled and passed to end.
func (s *Slab) begin(indexes int) *Entries {
	if s == nil {
		return newEntries(indexes)
	}
	if len(s.documents) == 0 {
		s.documents = make([]Entries, slabDocuments)
	}
	if cap(s.list) < indexes {
		s.list = make([]Entry, 0, slabDocuments*indexes)
	}
	if cap(s.arena) < leastArena*indexes {
		s.arena = make([]byte, 0, max(slabArena, leastArena)*indexes)
	}
	e := &s.documents[0]
	s.documents = s.documents[1:]
	e.List, e.Arena = s.list, s.arena
	return e
}

// end frees what e has not used. If e has outgrown the slab, its first entries may still
// have their values there.
func (s *Slab) end(e *Entries) {
	if s == nil {
		return
	}
	s.list, e.List = rest(s.list, e.List)
	s.arena, e.Arena = rest(s.arena, e.Arena)
}

// rest returns what is free behind used, which was appended to free, and used without it.
func rest[T any](free, used []T) (left, own []T) {
	if len(used) > cap(free) {
		return nil, used
	}
	return free[len(used):len(used):cap(free)], used[:len(used):len(used)]
}
