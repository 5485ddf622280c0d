package settings

// What a new tag changes is not exported.

import (
	"testing"

	"github.com/jaydb/jay/internal/format"
)

// Ensure that a new tag has a change for each key space that it is said to change, and for no other.
func TestSpaces(t *testing.T) {
	for _, s := range format.Spaces {
		if changed := s.Retag == format.ChangedByRetag; changed && retags[s.First] == nil {
			t.Errorf("%v: retags has no change for it", s)
		} else if !changed && retags[s.First] != nil {
			t.Errorf("%v: retags has a change for it, and it is not ChangedByRetag", s)
		}
	}
}
