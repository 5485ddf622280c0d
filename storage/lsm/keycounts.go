package lsm

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/jaydb/jay/storage"
)

// keyCounts remembers how many keys there are in parts of ranges: storage.CountMemory.
//
// A part was counted in the state after some commit, and is forgotten when a commit writes a
// key in it. So what is remembered is right for that state and for all that came and come
// after it, until the part is gone. A reader takes it only if its own state is known
// exactly, and is not older.
//
// A count takes time, and commits that come meanwhile are not in it. Therefore the keys
// that they write are kept, and a part in which one of them lies is not taken. They are kept
// from the first long count on, until many were written without another count. A commit
// of many keys ends it, so that a bulk load does not pay for counts before it.
type keyCounts struct {
	applying *atomic.Uint64 // durability.applying

	on atomic.Bool // commits note their keys. Set with mu held.

	mu      sync.Mutex
	spaces  [256]bool         // first bytes of the keys that are noted. Guarded by mu.
	since   uint64            // written has the keys of this commit and all later ones. Guarded by mu.
	written []writtenKey      // by commit, oldest first. Guarded by mu.
	parts   []rememberedCount // ascending and apart. Guarded by mu.
	spare   []rememberedCount // memory for the next parts. Guarded by mu.
	unused  int               // keys noted since a count last asked. Guarded by mu.
}

// writtenKey is a key that a commit wrote.
type writtenKey struct {
	key    []byte
	commit uint64
}

// rememberedCount is a part of a range.
type rememberedCount struct {
	storage.RangeCount
	commit uint64 // it was counted in the state after this one
	stale  bool   // a later commit wrote a key in it
}

// Bounds of what is remembered. Variables for tests.
var (
	maxRemembered      = 8192    // parts
	maxRememberedBytes = 2 << 20 // of their keys
	maxWrittenKeys     = 1024    // keys of commits that are kept, and of one commit
	maxUnusedKeys      = 16384   // keys noted without a count
)

// record notes the keys of a commit: the entries [lo, hi) of s. The leader calls it when
// durability.applying shows the commit, and before Pebble has it: no reader sees the commit yet.
func (k *keyCounts) record(s *staging, lo, hi int, commit uint64) {
	if !k.on.Load() {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	n := 0
	for i := lo; i < hi; i++ {
		if k.spaces[s.arena[s.entries[i].key]] {
			n++
		}
	}
	if k.unused += n; n > maxWrittenKeys || k.unused > maxUnusedKeys {
		k.forget()
		return
	}
	if n == 0 {
		return
	}
	if len(k.written)+n > maxWrittenKeys {
		k.dropWritten(max(n, maxWrittenKeys/2))
	}
	for i := lo; i < hi; i++ {
		key := s.key(i)
		if !k.spaces[key[0]] {
			continue
		}
		k.written = append(k.written, writtenKey{bytes.Clone(key), commit})
		spoil(k.parts, key)
	}
}

// dropWritten forgets the oldest n written keys, and those of the same commit. k.mu is held.
func (k *keyCounts) dropWritten(n int) {
	n = min(n, len(k.written))
	k.since = k.written[n-1].commit + 1
	for n < len(k.written) && k.written[n].commit < k.since {
		n++
	}
	k.written = slices.Delete(k.written, 0, n)
}

// search returns the first of parts, which ascend, that does not begin below key, and whether it
// begins with key.
func search(parts []rememberedCount, key []byte) (at int, found bool) {
	return slices.BinarySearchFunc(parts, key, func(p rememberedCount, key []byte) int { return bytes.Compare(p.Lo, key) })
}

// spoil marks the part that key lies in, if there is one: a commit has written it.
func spoil(parts []rememberedCount, key []byte) {
	at, found := search(parts, key)
	if !found {
		at--
	}
	if at >= 0 && bytes.Compare(key, parts[at].Hi) < 0 {
		parts[at].stale = true
	}
}

// forget makes all of it unknown, and commits note no more keys until a count is kept again.
// k.mu is held.
func (k *keyCounts) forget() {
	k.on.Store(false)
	k.spaces = [256]bool{}
	k.parts, k.spare, k.written, k.unused = nil, nil, nil, 0
}

// forgetAll is forget for a change of any keys, before a reader sees it.
func (k *keyCounts) forgetAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forget()
}

// begin has commits note the keys with this first byte, those after the newest one. k.mu is held.
func (k *keyCounts) begin(space byte) {
	// In this order: a commit that did not see on is one that applying shows.
	if k.on.Store(true); k.spaces[space] {
		return
	}
	k.spaces[space] = true
	k.since = k.applying.Load() + 1
}

// known is storage.CountMemory.KnownCounts for the state after a commit.
func (k *keyCounts) known(commit uint64, lo, hi []byte) (known []storage.RangeCount) {
	if !k.on.Load() {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	from, _ := search(k.parts, lo)
	for _, p := range k.parts[from:] {
		if bytes.Compare(p.Hi, hi) > 0 {
			break
		}
		if p.stale || p.commit > commit {
			continue
		}
		k.unused = 0
		if last := len(known) - 1; last >= 0 && bytes.Equal(known[last].Hi, p.Lo) {
			known[last].Hi = p.Hi
			known[last].Keys += p.Keys
		} else {
			known = append(known, p.RangeCount)
		}
	}
	return known
}

// keep is storage.CountMemory.KeepCounts for the state after a commit.
func (k *keyCounts) keep(commit uint64, parts []storage.RangeCount) {
	if len(parts) == 0 {
		return
	}
	first, last := parts[0].Lo, parts[len(parts)-1].Hi
	if len(first) == 0 || first[0] == 0xff || bytes.Compare(last, []byte{first[0] + 1}) > 0 {
		return // not the keys of one space
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.begin(first[0])
	k.unused = 0
	if commit+1 < k.since {
		return // what was written since is not known
	}
	offered := make([]rememberedCount, len(parts))
	for i, p := range parts {
		offered[i] = rememberedCount{RangeCount: p, commit: commit}
	}
	for _, w := range slices.Backward(k.written) {
		if w.commit <= commit {
			break
		}
		spoil(offered, w.key)
	}
	k.merge(offered)
}

// merge adds parts, but those that are stale or overlap one that is remembered. k.mu is held.
func (k *keyCounts) merge(parts []rememberedCount) {
	merged, size := k.spare[:0], 0
	add := func(p rememberedCount) {
		if !p.stale {
			merged, size = append(merged, p), size+len(p.Lo)+len(p.Hi)
		}
	}
	old := k.parts
	for _, p := range parts {
		for len(old) > 0 && (old[0].stale || bytes.Compare(old[0].Hi, p.Lo) <= 0) {
			add(old[0])
			old = old[1:]
		}
		if len(old) == 0 || bytes.Compare(p.Hi, old[0].Lo) <= 0 {
			add(p)
		}
	}
	for _, p := range old {
		add(p)
	}
	if len(merged) > maxRemembered || size > maxRememberedBytes {
		clear(merged) // the keys are not kept
		merged = merged[:0]
	}
	clear(k.parts)
	k.parts, k.spare = merged, k.parts
}

// KnownCounts implements storage.CountMemory.
func (s *latest) KnownCounts(lo, hi []byte) []storage.RangeCount {
	if !s.state.exact {
		return nil
	}
	return s.engine.keyCounts.known(s.state.commit, lo, hi)
}

// KeepCounts implements storage.CountMemory.
func (s *latest) KeepCounts(parts []storage.RangeCount) {
	if s.state.exact {
		s.engine.keyCounts.keep(s.state.commit, parts)
	}
}

// KnownCounts implements storage.CountMemory.
func (s *durableSnapshot) KnownCounts(lo, hi []byte) []storage.RangeCount {
	return s.engine.keyCounts.known(s.view.commit, lo, hi)
}

// KeepCounts implements storage.CountMemory.
func (s *durableSnapshot) KeepCounts(parts []storage.RangeCount) {
	s.engine.keyCounts.keep(s.view.commit, parts)
}
