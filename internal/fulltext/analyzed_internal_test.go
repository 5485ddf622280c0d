package fulltext

import "testing"

// Ensure that the words of a document are kept after it was settled, as queries may read what is on disk, where it is still in the tail, and that
// they are forgotten with the next part, or when the tail has been short twice. The worker of a database calls kept at moments that no test chooses.
func TestKept_Settled(t *testing.T) {
	var m kept
	texts := []byte("texts")
	one, two := []moved{{folded: "1"}}, []moved{{folded: "2"}}
	put := func() {
		m.put([]byte("1"), &analyzed{texts: texts})
		m.put([]byte("2"), &analyzed{texts: texts})
	}
	has := func(folded string, want bool) {
		t.Helper()
		if got := m.get([]byte(folded), texts) != nil; got != want {
			t.Errorf("%s is kept: got %v", folded, got)
		}
	}
	put()
	m.settled(one)
	has("1", true)
	m.settled(two)
	has("1", false)
	has("2", true)
	put()
	m.retain(one)
	has("2", true)
	m.retain(one)
	has("1", true)
	has("2", false)
	if m.bytes != (&analyzed{texts: texts}).bytes() {
		t.Errorf("%d bytes", m.bytes)
	}
}
