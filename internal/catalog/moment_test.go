package catalog

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// numberedReader has flags of an index and shows a commit. It counts how often it is asked.
type numberedReader struct {
	storage.Reader
	commit uint64
	known  bool
	flags  byte
	gets   int
}

func (r *numberedReader) CommitNumber() (uint64, bool) { return r.commit, r.known }

func (r *numberedReader) Get(key []byte) ([]byte, io.Closer, error) {
	r.gets++
	if !bytes.Equal(key, format.IndexFlagsKey(7)) {
		return nil, nil, storage.ErrNotFound
	}
	return []byte{r.flags}, io.NopCloser(nil), nil
}

// Ensure that what an index is known to have at one commit is read once, that another commit has what it has, also one before,
// and that nothing is kept for a reader that does not know its commit.
func TestIndex_At(t *testing.T) {
	ix := &Index{Number: 7}
	at := func(r *numberedReader, gets int) *Moment {
		t.Helper()
		m, err := ix.At(r)
		if err != nil || m.Flags != r.flags || r.gets != gets {
			t.Fatalf("commit %d: got flags %b after %d reads, %v; want %b after %d", r.commit, m.Flags, r.gets, err, r.flags, gets)
		}
		return m
	}
	first := &numberedReader{commit: 1, known: true}
	m := at(first, 1)
	m.SetVariants([]byte("a"), [][]byte{{1}})
	if v, known := at(first, 1).Variants([]byte("a")); !known || len(v) != 1 {
		t.Errorf("what was set is not there: %v, %v", v, known)
	}
	at(&numberedReader{commit: 1}, 1) // may show another commit
	second := &numberedReader{commit: 2, known: true, flags: FlagMultiple}
	if _, known := at(second, 1).Variants([]byte("a")); known {
		t.Error("the variants of commit 1 are known at commit 2")
	}
	at(second, 1)
	at(&numberedReader{commit: 3, flags: FlagCut}, 1)
	at(second, 1)
	at(first, 2)
}

// Ensure that the variants of as many ranges are kept as documented, and none by long keys.
func TestMoment_Bounds(t *testing.T) {
	var m Moment
	for i := range 1000 {
		m.SetVariants(fmt.Append(nil, i), nil)
		if v, known := m.Variants(fmt.Append(nil, i)); v != nil || !known || len(m.variants) > 256 {
			t.Fatalf("range %d: got %v, %v of %d ranges", i, v, known, len(m.variants))
		}
	}
	long := bytes.Repeat([]byte("x"), 513)
	m.SetVariants(long, nil)
	if _, known := m.Variants(long); known {
		t.Error("keys of 513 bytes are kept")
	}
}
