package salvage

import (
	"bytes"
	"context"
	"io"
	"slices"
	"testing"

	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// noKeys is a reader without keys, which notes where it is read.
type noKeys struct {
	storage.Reader
	spaces []byte
}

func (r *noKeys) Get(key []byte) ([]byte, io.Closer, error) {
	r.spaces = append(r.spaces, key[0])
	return nil, nil, storage.ErrNotFound
}

func (r *noKeys) Iterate(lo, hi []byte) (storage.Iterator, error) {
	for _, s := range format.Spaces {
		if bytes.Compare(lo, []byte{s.First + 1}) < 0 && bytes.Compare(hi, []byte{s.First}) > 0 {
			r.spaces = append(r.spaces, s.First)
		}
	}
	return noKey{}, nil
}

type noKey struct{ storage.Iterator }

func (noKey) First() bool  { return false }
func (noKey) Error() error { return nil }
func (noKey) Close() error { return nil }

// Ensure that a repair reads each key space with something that is stored nowhere else, and no other:
// what follows from others is made anew.
func TestSpaces(t *testing.T) {
	to, err := lsm.Open("db", lsm.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	from := new(noKeys)
	config := Config{Default: func() (format.Settings, format.Origin, error) {
		return format.Settings{Separator: "/"}, format.Origin{Tag: "A", ID: "id"}, nil
	}}
	if _, err := Copy(context.Background(), Source{Main: from}, to, config); err != nil {
		t.Fatal(err)
	}
	for _, s := range format.Spaces {
		read := slices.Contains(from.spaces, s.First)
		if s.Origin == format.Original && !read {
			t.Errorf("%v: no step of Copy reads it, and it is Original", s)
		} else if s.Origin != format.Original && read {
			t.Errorf("%v: Copy reads it, and it is not Original", s)
		}
	}
}
