package plan

import (
	"bytes"
	"testing"
)

// Ensure that ranges with other bounds are known by other keys, though the bounds in a row are the same bytes.
func TestAppendKeys(t *testing.T) {
	lists := [][]KeyRange{
		{{Lo: []byte("a\x00b"), Hi: []byte("c")}},
		{{Lo: []byte("a"), Hi: []byte("b\x00c")}},
		{{Lo: []byte("a")}, {Lo: []byte("\x00b"), Hi: []byte("c")}},
		{{Lo: []byte("a"), Hi: []byte("\x00b")}, {Hi: []byte("c")}},
	}
	for i, a := range lists {
		for j, b := range lists {
			if same := bytes.Equal(appendKeys(nil, a), appendKeys(nil, b)); same != (i == j) {
				t.Errorf("%q and %q: the same is %v", a, b, same)
			}
		}
	}
}
