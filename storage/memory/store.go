package memory

import (
	"slices"
	"sort"
	"sync"

	"github.com/jaydb/jay/storage"
)

// store has the keys of one store, each with its versions. Commits have numbers, from 1 on.
type store struct {
	mu       sync.RWMutex
	keys     []string             // ascending: those of versions. Guarded by mu.
	versions map[string][]version // ascending by commit. Guarded by mu.
	last     uint64               // the newest commit. Guarded by mu.
	shown    map[uint64]int       // commits that readers stand at, and how many do. Guarded by mu.
	news     chan struct{}        // closed by the next commit. Guarded by mu.
	created  bool                 // FinishCreation was called. Guarded by mu.
	features []storage.Feature    // in use, ascending. Guarded by mu.

	engines int // that have it open. Guarded by the mutex of the driver.
}

// version is a value of a key from a commit on. It does not change.
type version struct {
	commit uint64
	value  []byte
	gone   bool // the key was deleted
}

func newStore() *store {
	return &store{versions: make(map[string][]version), shown: make(map[uint64]int), news: make(chan struct{})}
}

// format returns the format of the store. Its caller holds mu.
func (s *store) format() storage.StoreFormat {
	f := storage.StoreFormat{Number: storage.BaseFormat, Features: slices.Clone(s.features)}
	if n := len(s.features); n > 0 {
		f.Number = s.features[n-1].Format
	}
	return f
}

// checkFormat returns a *FormatError if the store uses what is not known.
func (s *store) checkFormat(known storage.Features) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.checkFeatures(known)
}

// checkFeatures is checkFormat for a caller who holds mu.
func (s *store) checkFeatures(known storage.Features) error {
	var needs storage.Needs
	for _, f := range s.features {
		needs.Add(known, f)
	}
	return needs.Err()
}

// raise notes that features are used. Its caller holds mu.
func (s *store) raise(features []storage.Feature) {
	for _, f := range features {
		if !slices.Contains(s.features, f) {
			s.features = append(s.features, f)
		}
	}
	slices.SortFunc(s.features, func(a, b storage.Feature) int { return a.Format - b.Format })
}

// enter returns the newest commit, which stays readable until leave.
func (s *store) enter() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown[s.last]++
	return s.last
}

// leave ends an enter.
func (s *store) leave(at uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown[at]--; s.shown[at] == 0 {
		delete(s.shown, at)
	}
}

// get returns the value of key at a commit, and whether there is one. Its caller holds mu.
func (s *store) get(key string, at uint64) ([]byte, bool) {
	all := s.versions[key]
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].commit <= at {
			return all[i].value, !all[i].gone
		}
	}
	return nil, false
}

// writtenSince says whether key was written after a commit. Its caller holds mu.
func (s *store) writtenSince(key string, at uint64) bool {
	all := s.versions[key]
	return len(all) > 0 && all[len(all)-1].commit > at
}

// rangeWrittenSince says whether any key in r was written after a commit. Its caller holds mu.
func (s *store) rangeWrittenSince(r bounds, at uint64) bool {
	for i := s.find(r.lo); i < len(s.keys) && r.below(s.keys[i]); i++ {
		if s.writtenSince(s.keys[i], at) {
			return true
		}
	}
	return false
}

// find returns the index of the first key that is not below key. Its caller holds mu.
func (s *store) find(key string) int { return sort.SearchStrings(s.keys, key) }

// put adds a version of the commit under way, whose number is last. Its caller holds mu.
func (s *store) put(key string, v version) {
	all := s.versions[key]
	if all == nil {
		if v.gone {
			return // nobody has read that it is there
		}
		s.keys = slices.Insert(s.keys, s.find(key), key)
	}
	s.versions[key] = s.needed(append(all, v))
}

// needed returns the versions that somebody can still read, or must know of: the newest, and for
// each reader the one that it sees. Its caller holds mu.
func (s *store) needed(all []version) []version {
	oldest := s.last
	for at := range s.shown {
		oldest = min(oldest, at)
	}
	for len(all) > 1 && all[1].commit <= oldest {
		all = slices.Clone(all[1:]) // so that the first is freed
	}
	return all
}

// sweep forgets keys that are deleted for everybody. Its caller holds mu.
func (s *store) sweep() {
	s.keys = slices.DeleteFunc(s.keys, func(key string) bool {
		all := s.needed(s.versions[key])
		s.versions[key] = all
		if len(all) > 1 || !all[0].gone || len(s.shown) > 0 {
			return false
		}
		delete(s.versions, key)
		return true
	})
}

// bounds are those of a range. A range without an end has no hi.
type bounds struct {
	lo, hi string
	ends   bool
}

func newBounds(lo, hi []byte) bounds { return bounds{lo: string(lo), hi: string(hi), ends: hi != nil} }

// below says whether key is below the end.
func (b bounds) below(key string) bool { return !b.ends || key < b.hi }
