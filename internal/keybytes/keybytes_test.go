package keybytes_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/jaydb/jay/internal/keybytes"
)

// Ensure that the middle of two keys lies between them.
func TestMiddle(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 7))
	key := func() []byte {
		b := make([]byte, random.IntN(12))
		for i := range b {
			b[i] = []byte{0, 1, 0x7f, 0xfe, 0xff}[random.IntN(5)]
		}
		return b
	}
	for range 10_000 {
		lo, hi := key(), key()
		if bytes.Compare(lo, hi) > 0 {
			lo, hi = hi, lo
		}
		if m := keybytes.Middle(lo, hi); m != nil && (bytes.Compare(m, lo) <= 0 || bytes.Compare(m, hi) >= 0) {
			t.Fatalf("the middle of %x and %x: %x", lo, hi, m)
		}
	}
}
