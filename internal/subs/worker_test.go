package subs

import (
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/feed"
)

// Ensure that a document that is written while a batch is filled is in it once, in its
// newest version: the failure of one version would count as that of the other.
func TestBatch_Add(t *testing.T) {
	b := &Batch{}
	for i, id := range []string{"a", "b", "c", "a", "d", "c", "a"} {
		b.add(Item{Folded: id, Change: feed.Change{Etag: uint64(i)}})
	}
	var got strings.Builder
	for i, item := range b.Items {
		got.WriteString(item.Folded + string('0'+rune(item.Etag)))
		if b.at[item.Folded] != i {
			t.Errorf("%s is said to be at %d, and is at %d", item.Folded, b.at[item.Folded], i)
		}
	}
	if got.String() != "b1d4c5a6" {
		t.Errorf("got %s", got.String())
	}
}
