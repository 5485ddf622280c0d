// Package invariants says whether this build checks what the comments of the code
// promise: go test -tags invariants. The checks cost time and memory, and panic
// where a promise is broken.
//
//	if invariants.Enabled && n < 0 {
//		invariants.Broken("%d calls are inside", n)
//	}
package invariants

import "fmt"

// Broken panics with what was found in place of what the code promises.
func Broken(format string, args ...any) {
	panic("invariant broken: " + fmt.Sprintf(format, args...))
}
