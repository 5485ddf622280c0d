package backup

// What a backup carries in which way is not exported.

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
)

// Ensure that an incremental backup has a part for each key space of which it carries what has
// changed, and that its reader derives each one that follows from documents.
func TestSpaces(t *testing.T) {
	h := metadata.Header{Collection: []byte("Users"), Etag: 7, Timed: true, Custom: []byte(`{"@expires":"2027-01-01T00:00:00Z"}`)}
	var made []byte
	if _, ok := derived(append(h.AppendTail(h.AppendHead(nil)), `{}`...), "ann", "/", func(key, _ []byte) { made = append(made, key[0]) }); !ok {
		t.Fatal("the record cannot be decoded")
	}
	parts := make(map[byte]bool)
	for _, c := range changes {
		parts[c.space] = true
	}
	for _, s := range format.Spaces {
		if since := s.Backup == format.CarriedSinceBase; since && !parts[s.First] {
			t.Errorf("%v: changes has no part for it, which an incremental backup needs", s)
		} else if !since && parts[s.First] {
			t.Errorf("%v: changes has a part for it, and it is not CarriedSinceBase", s)
		}
		if follows := s.Backup == format.FollowsDocuments; follows != slices.Contains(made, s.First) {
			t.Errorf("%v follows from documents: %v; derived makes %q", s, follows, made)
		}
	}
}

// Ensure that backups carry the keys that they always did: a reader of any version restores
// those of another, and what is left out has to be what it makes anew.
func TestSpaces_Ranges(t *testing.T) {
	text := func(ranges [][2][]byte) (text string) {
		for _, r := range ranges {
			text += fmt.Sprintf("%s-%s ", r[0], r[1])
		}
		return text
	}
	if got, want := text(carried), "-x {- "; got != want {
		t.Errorf("a full backup carries %q, want %q", got, want)
	}
	if got, want := text(wholes), "-b f-r s-t u-x {- "; got != want {
		t.Errorf("an incremental backup carries %q whole, want %q", got, want)
	}
}
