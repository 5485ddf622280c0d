package verify

// The descriptions of keys, and what documents need, are not exported.

import (
	"bytes"
	"context"
	"io"
	"slices"
	"testing"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// noKeys is a reader without keys, which notes the ranges that are read.
type noKeys struct {
	storage.Reader
	ranges [][2][]byte
}

func (r *noKeys) Get([]byte) ([]byte, io.Closer, error) {
	return nil, nil, storage.ErrNotFound
}

func (r *noKeys) Iterate(lo, hi []byte) (storage.Iterator, error) {
	r.ranges = append(r.ranges, [2][]byte{bytes.Clone(lo), bytes.Clone(hi)})
	return noKey{}, nil
}

type noKey struct{ storage.Iterator }

func (noKey) First() bool  { return false }
func (noKey) Error() error { return nil }
func (noKey) Close() error { return nil }

// Ensure that each key space has a description of its keys, and is read.
func TestSpaces(t *testing.T) {
	r := new(noKeys)
	if _, err := Run(context.Background(), Config{Use: func(fn func(storage.Reader) error) error { return fn(r) }}); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(r.ranges, func(a, b [2][]byte) int { return bytes.Compare(a[0], b[0]) })
	for _, s := range format.Spaces {
		at := []byte{s.First} // all keys of the space before it are read
		for _, read := range r.ranges {
			if bytes.Compare(read[0], at) <= 0 && (read[1] == nil || bytes.Compare(read[1], at) > 0) {
				at = read[1]
			}
		}
		if at != nil && at[0] == s.First {
			t.Errorf("%v: no step of Run reads its keys from %q on: see verifier.readAll", s, at)
		}
		if spaces[s.First].describe == nil {
			t.Errorf("%v: internal/verify/spaces.go has no description of its keys", s)
		}
	}
	if len(spaces) > len(format.Spaces) {
		t.Errorf("spaces has %d key spaces, and format.Spaces %d", len(spaces), len(format.Spaces))
	}
}

// Ensure that what a document needs lies in derived key spaces, or in that of changes, and that each has kinds of
// damage for what is missing and what is wrong.
func TestSpaces_Needed(t *testing.T) {
	ix, err := catalog.Open(catalog.RecordEntry{Number: 1, Info: index.Info{Index: index.Index{Name: "n", Fields: []string{"n"}}, Collection: "Users"}})
	if err != nil {
		t.Fatal(err)
	}
	ci := &catalog.Collection{Indexes: []*catalog.Index{ix}}
	ci.Prepare()
	v := &verifier{rules: ids.Rules{Separator: "/"}, separator: "/", byCollection: map[string]*catalog.Collection{"users": ci}, byNumber: map[uint32]*openIndex{1: {Index: ix, ready: true}}}
	d := &document{folded: "ann", collection: "users", body: []byte(`{"n":1}`), whole: true}
	d.header = metadata.Header{Collection: []byte("Users"), Etag: 7, Timed: true, Custom: []byte(`{"@expires":"2027-01-01T00:00:00Z"}`)}
	var needed []byte
	if err := v.derive(nil, d, func(key, _ []byte) error {
		needed = append(needed, key[0])
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, s := range format.Spaces {
		space := spaces[s.First]
		if (space.missing == "") != (space.wrong == "") || (space.missing != "") != slices.Contains(needed, s.First) {
			t.Errorf("%v: documents need %q, and its kinds of damage are %q and %q", s, needed, space.missing, space.wrong)
		}
		if space.missing != "" && s.Origin != format.Derived && s.First != format.SpaceChanges {
			t.Errorf("%v follows from documents, and is not Derived", s)
		}
	}
}
