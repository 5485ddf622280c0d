package serve

import (
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that a feed which has failed is not that of the next socket.
func TestHub_FeedFails(t *testing.T) {
	t.Parallel()
	s, err := Open(Options{Data: t.TempDir()}, NewTable(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	db, err := jay.Open(t.TempDir(), nil)
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	k := &socket{opts: &s.Options, ended: true} // nothing is sent to it
	h := s.Hubs.join(newDatabase("a"), db, k)
	defer s.Hubs.leave(h, k)
	if err := h.watch(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.opened != nil || len(h.watching) > 0 {
		t.Error("the hub has a feed, which has ended")
	}
}
