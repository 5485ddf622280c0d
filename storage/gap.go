package storage

import (
	"bytes"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// gap remembers, for one transaction, a stretch of the committed keys that is
// empty. A transaction that asks in rising order for keys that are not there,
// as an insert of HiLo documents does, is then spared most of its look-ups:
// nine of ten numbers lie in the gap that the first of them found. It is sound
// because nothing commits while a transaction runs.
type gap struct {
	it    *pebble.Iterator // nil until a second rising key is missing
	lo    []byte           // no committed key is in [lo, hi)
	hi    []byte           // meaningful if known; nil for no end
	known bool
	// misses counts the seeks since a gap was last of use. A transaction of
	// random keys gives up after maxMisses, as a seek costs more than a Get.
	misses int
	gets   int
}

const maxMisses = 3

// get returns the committed value at key, as Reader.Get does.
func (g *gap) get(db *pebble.DB, key []byte) ([]byte, io.Closer, error) {
	rising := g.lo != nil && bytes.Compare(key, g.lo) > 0
	if rising && g.known && (g.hi == nil || bytes.Compare(key, g.hi) < 0) {
		g.misses = 0
		return nil, nil, ErrNotFound
	}
	if rising && g.misses < maxMisses {
		return g.seek(db, key)
	}
	if g.it != nil {
		return g.point(key)
	}
	g.gets++
	if g.gets > 4 {
		var err error
		if g.it, err = db.NewIter(&pebble.IterOptions{UseL6Filters: true}); err != nil {
			return nil, nil, err
		}
	}
	value, closer, err := get(db, key)
	if err == ErrNotFound {
		g.lo, g.known = append(g.lo[:0], key...), false
	}
	return value, closer, err
}

// point looks key up by way of the iterator, whose tables stay open from one
// look-up to the next, and their bloom filters.
func (g *gap) point(key []byte) ([]byte, io.Closer, error) {
	if g.it.SeekPrefixGE(key) {
		return bytes.Clone(g.it.Value()), noCloser, nil
	}
	if err := g.it.Error(); err != nil {
		return nil, nil, err
	}
	g.lo, g.known = append(g.lo[:0], key...), false
	return nil, nil, ErrNotFound
}

// seek looks key up by way of an iterator, which tells where the next key is.
func (g *gap) seek(db *pebble.DB, key []byte) ([]byte, io.Closer, error) {
	if g.it == nil {
		var err error
		if g.it, err = db.NewIter(&pebble.IterOptions{UseL6Filters: true}); err != nil {
			return nil, nil, err
		}
	}
	g.misses++
	found := g.it.SeekGE(key)
	if err := g.it.Error(); err != nil {
		return nil, nil, err
	}
	if found && bytes.Equal(g.it.Key(), key) {
		return bytes.Clone(g.it.Value()), noCloser, nil
	}
	g.lo, g.known = append(g.lo[:0], key...), true
	g.hi = g.hi[:0]
	if found {
		g.hi = append(g.hi, g.it.Key()...)
	} else {
		g.hi = nil
	}
	return nil, nil, ErrNotFound
}

func (g *gap) close() error {
	if g.it == nil {
		return nil
	}
	return g.it.Close()
}
