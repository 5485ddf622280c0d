package fulltext

import (
	"bytes"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/jaydb/jay/internal/text"
)

// analyzed are the words of the texts of a document, by field. It is not changed.
type analyzed struct {
	texts  []byte // as Extract has made them
	fields []fieldWords
}

// fieldWords are the words of the texts of a field.
type fieldWords struct {
	length    int    // how many terms the texts have
	names     []byte // of the terms, ascending, each once, one behind the other
	cuts      []int  // by term: where its name ends
	positions []int  // of one term after the other, ascending
	ends      []int  // by term: where its positions end
}

// term returns the name of a term, and where it is.
func (w *fieldWords) term(i int) (name []byte, positions []int) {
	if i == 0 {
		return w.names[:w.cuts[0]], w.positions[:w.ends[0]]
	}
	return w.names[w.cuts[i-1]:w.cuts[i]], w.positions[w.ends[i-1]:w.ends[i]]
}

// each calls fn with all postings of a document.
func (a *analyzed) each(ordinal uint64, fn func(field int, term []byte, p posting)) {
	for field := range a.fields {
		w := &a.fields[field]
		length := text.ClassOf(w.length)
		for i := range w.ends {
			term, positions := w.term(i)
			fn(field, term, posting{ordinal, length, positions})
		}
	}
}

// sum returns the sum of the postings.
func (a *analyzed) sum() (sum int64) {
	a.each(0, func(field int, term []byte, p posting) { sum += weigh(&p, field, term) })
	return sum
}

// bytes is about how much memory it takes.
func (a *analyzed) bytes() int {
	n := 128 + len(a.texts)
	for i := range a.fields {
		w := &a.fields[i]
		n += 128 + len(w.names) + 8*(len(w.cuts)+len(w.ends)+len(w.positions))
	}
	return n
}

// analyze finds the words of texts, whose memory is kept.
func (k *keeper) analyze(texts []byte) (*analyzed, error) {
	scans, _ := k.scans.Get().(*[]scan)
	if scans == nil {
		all := make([]scan, len(k.ix.Fields))
		scans = &all
	}
	err := k.eachText(texts, func(field int, s string) { (*scans)[field].add(k.analyzers[field], s) })
	a := &analyzed{texts: texts, fields: make([]fieldWords, len(*scans))}
	small := true
	for i := range *scans {
		s := &(*scans)[i]
		a.fields[i] = s.words()
		s.reset()
		small = small && len(s.slots) <= maxSlots
	}
	if small {
		k.scans.Put(scans)
	}
	return a, err
}

// scan is where the words of the texts of a field are found. Its memory is used again.
type scan struct {
	names []byte  // of terms, in the order in which they were met
	cuts  []int32 // by number: where the name ends
	slots []int32 // of a hash table, a power of two: 1 + the number of a term, 0 for none
	found []found // in the order of positions
	base  int     // of the positions of the next text

	sorted, places []int32 // scratch
}

// maxSlots is how large the table of a scan is at most whose memory is kept.
const maxSlots = 8 << 10

// seed is that of the tables of scans.
var seed = maphash.MakeSeed()

// found is where a term is.
type found struct{ number, position int }

// reset empties the scan.
func (s *scan) reset() {
	s.names, s.cuts, s.found, s.base = s.names[:0], s.cuts[:0], s.found[:0], 0
	clear(s.slots)
}

// name returns the name of a term.
func (s *scan) name(number int32) []byte {
	if number == 0 {
		return s.names[:s.cuts[0]]
	}
	return s.names[s.cuts[number-1]:s.cuts[number]]
}

// slot returns the slot of a term, or the free one for it.
func (s *scan) slot(name []byte) *int32 {
	mask := uint64(len(s.slots) - 1)
	for i := maphash.Bytes(seed, name); ; i++ {
		slot := &s.slots[i&mask]
		if *slot == 0 || bytes.Equal(s.name(*slot-1), name) {
			return slot
		}
	}
}

// number returns the number of a term.
func (s *scan) number(name []byte) int {
	if 2*len(s.cuts) >= len(s.slots) {
		s.slots = make([]int32, max(256, 2*len(s.slots)))
		for n := range s.cuts {
			*s.slot(s.name(int32(n))) = int32(n) + 1
		}
	}
	slot := s.slot(name)
	if *slot == 0 {
		s.names = append(s.names, name...)
		s.cuts = append(s.cuts, int32(len(s.names)))
		*slot = int32(len(s.cuts))
	}
	return int(*slot) - 1
}

// add adds a text.
func (s *scan) add(a *text.Analyzer, of string) {
	n := a.Each(of, func(t text.Token) bool {
		s.found = append(s.found, found{s.number(t.Term), s.base + t.Position})
		return true
	})
	s.base += n + text.ValueGap
}

// words returns all words.
func (s *scan) words() fieldWords {
	numbers := make([]int, 2*len(s.cuts)+len(s.found))
	cuts, numbers := numbers[:0:len(s.cuts)], numbers[len(s.cuts):]
	w := fieldWords{length: len(s.found), names: make([]byte, 0, len(s.names)), ends: numbers[:len(s.cuts):len(s.cuts)], positions: numbers[len(s.cuts):]}
	s.sorted, s.places = s.sorted[:0], slices.Grow(s.places[:0], len(s.cuts))[:len(s.cuts)] // the latter by number
	for n := range s.cuts {
		s.sorted = append(s.sorted, int32(n))
	}
	slices.SortFunc(s.sorted, func(a, b int32) int { return bytes.Compare(s.name(a), s.name(b)) })
	for i, n := range s.sorted {
		w.names = append(w.names, s.name(n)...)
		cuts = append(cuts, len(w.names))
		s.places[n] = int32(i)
	}
	w.cuts = cuts
	for _, f := range s.found {
		w.ends[s.places[f.number]]++
	}
	next := 0
	for i, n := range w.ends {
		w.ends[i] = next // where those of the term begin, and after the next loop where they end
		next += n
	}
	for _, f := range s.found {
		i := s.places[f.number]
		w.positions[w.ends[i]] = f.position
		w.ends[i]++
	}
	return w
}

// Bounds of kept. Texts that are longer than KeptTexts are not kept, but read anew by each query, word by word. Variables for tests.
var (
	KeptBytes = 16 << 20
	KeptTexts = 32 << 10
)

// kept are words of documents in the tail, so that each document is analyzed once and not by every query. A document has what its texts
// give, so nothing has to be taken back when it changes. If there is no room one is left out, any of them: all are equally wanted.
type kept struct {
	mu      sync.Mutex
	byID    map[string]*analyzed // folded
	bytes   int
	leaving []string // folded IDs that the last part moved: queries may read what is on disk, where they are in the tail until that is synced
}

// get returns the words of a document with these texts, or nil.
func (m *kept) get(folded, texts []byte) *analyzed {
	m.mu.Lock()
	a := m.byID[string(folded)]
	m.mu.Unlock()
	if a == nil || !bytes.Equal(a.texts, texts) {
		return nil
	}
	return a
}

// put keeps the words of a document.
func (m *kept) put(folded []byte, a *analyzed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byID == nil {
		m.byID = make(map[string]*analyzed)
	}
	m.drop(string(folded))
	m.byID[string(folded)] = a
	m.bytes += a.bytes()
	for id := range m.byID {
		if m.bytes <= KeptBytes {
			break
		}
		m.drop(id)
	}
}

// drop forgets a document.
func (m *kept) drop(folded string) {
	if a := m.byID[folded]; a != nil {
		delete(m.byID, folded)
		m.bytes -= a.bytes()
	}
}

// settled says that a part has moved documents out of the tail. They are forgotten when the next one does.
func (m *kept) settled(all []moved) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, folded := range m.leaving {
		m.drop(folded)
	}
	m.leaving = make([]string, len(all))
	for i := range all {
		m.leaving[i] = all[i].folded
	}
}

// retain forgets all documents but these, which are the tail. Those of the last part are forgotten by the second call after it.
func (m *kept) retain(tail []moved) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leaving != nil {
		m.leaving = nil
		return
	}
	if len(m.byID) <= len(tail) {
		return
	}
	before := m.byID
	m.byID, m.bytes = make(map[string]*analyzed, len(tail)), 0
	for i := range tail {
		if a := before[tail[i].folded]; a != nil {
			m.byID[tail[i].folded] = a
			m.bytes += a.bytes()
		}
	}
}

// wordsIn returns the words of a document in the tail, or nil if its texts are too long to be kept.
func (k *keeper) wordsIn(folded, texts []byte) (*analyzed, error) {
	if len(texts) > KeptTexts {
		return nil, nil
	}
	if a := k.kept.get(folded, texts); a != nil {
		return a, nil
	}
	a, err := k.analyze(bytes.Clone(texts))
	if err == nil {
		k.kept.put(folded, a)
	}
	return a, err
}
