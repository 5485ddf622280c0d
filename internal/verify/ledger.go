package verify

import (
	"encoding/binary"
	"hash/maphash"
	"sync"

	"github.com/jaydb/jay/internal/knobs"
)

// ledger compares two multisets of records without keeping them. Each record has a hash of 128
// bits under random seeds, and falls into one of many sums. A record is
// added when it is met on one side, and subtracted when it is met on the other. The sums
// of equal multisets are 0. If they differ, a sum of 0 is as probable as a collision of
// a random hash of 128 bits.
type ledger struct {
	seeds [3]maphash.Seed
	sums  *[buckets]sum
	key   []byte // scratch
}

type sum struct{ a, b uint64 }

// buckets is the number of sums: 1 MiB of memory.
const buckets = 1 << 16

// ledgerSums keeps the memory of ledgers that are done: programs, and tests above all, check
// small databases again and again.
var ledgerSums = sync.Pool{New: func() any { return new([buckets]sum) }}

// newLedger returns an empty ledger. release must follow.
func newLedger() *ledger {
	sums := ledgerSums.Get().(*[buckets]sum)
	clear(sums[:])
	return &ledger{seeds: [3]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed(), maphash.MakeSeed()}, sums: sums}
}

// release gives the memory of l back. l must not be used any more.
func (l *ledger) release() {
	ledgerSums.Put(l.sums)
	l.sums = nil
}

// record makes the text that is hashed of a key and a value.
func (l *ledger) record(key, value []byte) []byte {
	l.key = binary.AppendUvarint(l.key[:0], uint64(len(key)))
	l.key = append(l.key, key...)
	l.key = append(l.key, value...)
	return l.key
}

// add adds a record so many times; weight may be negative.
func (l *ledger) add(key, value []byte, weight int64) {
	text := l.record(key, value)
	s := &l.sums[maphash.Bytes(l.seeds[2], text)%knobs.VerifySums]
	s.a += maphash.Bytes(l.seeds[0], text) * uint64(weight)
	s.b += maphash.Bytes(l.seeds[1], text) * uint64(weight)
}

// differs reports whether a record is one of those that have to be looked at.
func (l *ledger) differs(key, value []byte) bool {
	return l.sums[maphash.Bytes(l.seeds[2], l.record(key, value))%knobs.VerifySums] != sum{}
}

// isEven reports whether all sums are 0.
func (l *ledger) isEven() bool {
	for _, s := range l.sums {
		if s != (sum{}) {
			return false
		}
	}
	return true
}
