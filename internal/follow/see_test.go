package follow

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/storage"
)

// Measures what the leader of a group of commits pays for a standby: 64 inserts of 300 bytes, with three keys each.
func BenchmarkMemory_See(b *testing.B) {
	var writes []storage.Write
	for n := range 64 {
		for _, space := range []string{"d", "e", "i"} {
			writes = append(writes, storage.Write{Key: fmt.Appendf(nil, "%sorders/%d-A", space, n), Value: []byte(strings.Repeat("x", 130))})
		}
	}
	m := &memory{bound: MemoryBytes, clock: time.Now, on: true, readers: 1}
	c := storage.Commit{Writes: func(yield func(storage.Write) bool) {
		for _, w := range writes {
			if !yield(w) {
				return
			}
		}
	}}
	b.ReportAllocs()
	for b.Loop() {
		c.Number++
		m.see(c)
	}
}
