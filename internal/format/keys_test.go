package format

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// Ensure that IsPrefixEnd agrees with PrefixEnd, for prefixes that end in ff as well.
func TestIsPrefixEnd(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	bytesOf := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = [...]byte{0, 1, 0xfe, 0xff}[random.IntN(4)]
		}
		return b
	}
	ends := 0
	for range 100_000 {
		prefix := bytesOf(random.IntN(4))
		for _, end := range [][]byte{PrefixEnd(prefix), bytesOf(random.IntN(4))} {
			want := bytes.Equal(end, PrefixEnd(prefix))
			if want {
				ends++
			}
			if got := IsPrefixEnd(end, prefix); got != want {
				t.Fatalf("%x, %x: got %v, want %v", end, prefix, got, want)
			}
		}
	}
	if ends <= 100_000 {
		t.Error("no other pair was one of a prefix and its end")
	}
}
