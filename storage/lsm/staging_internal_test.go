package lsm

// These tests need staging, which no exported name reaches.

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jaydb/jay/internal/sample"
)

// Ensure that rollback leaves what was staged before, whatever was staged, asked
// for and rolled back in between.
func TestStaging_Rollback(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for range 2000 {
		s := newStaging()
		model := make(map[string]string)
		key := func() []byte { return []byte{"ab"[random.IntN(2)], byte('0' + random.IntN(6))} }
		for range random.IntN(12) {
			m, before, wrote := s.mark(), maps.Clone(model), 0
			for range random.IntN(7) {
				k := key()
				switch random.IntN(4) {
				case 0:
					s.add(k, nil, nil, true)
					model[string(k)] = "-"
					wrote++
				case 1, 2:
					v := []byte{byte('A' + random.IntN(26))}
					s.add(k, v[:random.IntN(2)], v, false)
					model[string(k)] = string(s.value(len(s.entries) - 1))
					wrote++
				default:
					s.find(k)
				}
			}
			if random.IntN(2) == 0 {
				s.rollback(m)
				model = before
			}
			for _, space := range "ab" {
				for digit := range byte(6) {
					k := []byte{byte(space), '0' + digit}
					got := ""
					if i := s.find(k); i >= 0 {
						if got = string(s.value(i)); s.entries[i].deleted {
							got = "-"
						}
					}
					if want := model[string(k)]; got != want {
						t.Fatalf("%s holds %q, want %q", k, got, want)
					}
				}
				if random.IntN(3) > 0 {
					break // do not ask for all keys each time
				}
			}
		}
		size := 0
		for i := range s.entries {
			size += s.entries[i].size()
		}
		if size != s.size {
			t.Fatalf("size %d, want %d", s.size, size)
		}
		lo := random.IntN(len(s.entries) + 1)
		hi := lo + random.IntN(len(s.entries)-lo+1)
		want := make([]int32, 0)
		for i := lo; i < hi; i++ {
			want = append(want, int32(i))
		}
		slices.SortStableFunc(want, func(a, b int32) int { return slices.Compare(s.key(int(a)), s.key(int(b))) })
		if got := s.sorted(lo, hi); !slices.Equal(got, want) {
			t.Fatalf("sorted(%d, %d) is %v, want %v", lo, hi, got, want)
		}
	}
}

// Ensure that keys are sorted that differ in their first bytes, in later ones, only in
// length, or not at all, and that writes of one key keep their order.
func TestStaging_Sorted(t *testing.T) {
	sample.OneGoroutine(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for range 2000 {
		s := newStaging()
		longest := 1 + random.IntN(24)
		letters := 1 + random.IntN(3)
		for range random.IntN(200) {
			key := []byte{'k'}
			for range random.IntN(longest) {
				key = append(key, byte(random.IntN(letters)))
			}
			s.add(key, nil, nil, false)
		}
		want := make([]int32, len(s.entries))
		for i := range want {
			want[i] = int32(i)
		}
		slices.SortStableFunc(want, func(a, b int32) int { return slices.Compare(s.key(int(a)), s.key(int(b))) })
		if got := s.sorted(0, len(s.entries)); !slices.Equal(got, want) {
			t.Fatalf("keys of up to %d bytes of %d letters: sorted is %v, want %v", longest, letters, got, want)
		}
	}
}
