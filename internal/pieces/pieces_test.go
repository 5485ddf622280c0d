package pieces_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jaydb/jay/internal/pieces"
)

// Ensure that memory of every size, about those of pieces, is copied and compared as
// the standard library does.
func TestPieces(t *testing.T) {
	const piece = 256 << 10
	random := rand.NewChaCha8([32]byte{})
	for _, n := range []int{0, 1, 100, piece - 1, piece, piece + 1, 3*piece - 1, 3 * piece, 3*piece + 7} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			src := make([]byte, n)
			_, _ = random.Read(src) // never fails
			for _, room := range []int{n, n - 1, n + 5} {
				dst := make([]byte, max(0, room))
				want := bytes.Clone(dst)
				if got := pieces.Copy(dst, src); got != copy(want, src) || !bytes.Equal(dst, want) {
					t.Errorf("a copy into %d bytes is wrong after %d", len(dst), got)
				}
			}
			want := append([]byte("head"), src...)
			for _, room := range []int{0, n, n + 4, n + 100} {
				dst := append(make([]byte, 0, max(4, room)), "head"...)
				if got := pieces.Append(dst, src); !bytes.Equal(got, want) {
					t.Errorf("appended with room for %d: wrong", room)
				}
			}
			clone := pieces.Clone(src)
			if !bytes.Equal(clone, src) || cap(clone) != len(clone) || n > 0 && &clone[0] == &src[0] {
				t.Error("the clone is wrong, has room for more, or is no clone")
			}
			if !pieces.Equal(src, clone) || pieces.Equal(src, append(clone, 0)) {
				t.Error("equal memory is not, or memory of different lengths is")
			}
			for _, at := range []int{0, n / 2, n - 1} {
				if n == 0 {
					break
				}
				clone[at]++
				if pieces.Equal(src, clone) {
					t.Errorf("a difference at %d is not seen", at)
				}
				clone[at]--
			}
		})
	}
}
