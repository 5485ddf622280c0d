package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// collection is the one that all documents are in.
const collection = "orders"

// layout says where a document and its entries lie.
type layout struct {
	name   string
	insert func(s *store, batch *pebble.Batch, i int) error
	get    func(s *store, i int) ([]byte, error)
	scan   func(s *store, fn func(value []byte)) error
}

var layouts = []layout{
	{"raw: id → document", insertRaw, getRaw, scanRaw},
	{"A: id → document, (collection, etag) → id", insertA(true), getAtID(home), scanA},
	{"A without the check that the id is free", insertA(false), getAtID(home), scanA},
	{"B: (collection, etag) → document, id → (collection, etag)", insertB, getB, scanB},
	{"C: (collection, id) → document, id → collection, etag → id", insertC, getC, scanC},
	{"D: id → document, etag → id; all at home", insertD(home), getAtID(home), scanD},
	{"D, worst case: GUID ids, all away from home", insertD(away), getAtID(away), scanD},
}

// ids are those of the documents: in order when at home, as their numbers
// have the same length.
type ids struct{ home, away []string }

func newIDs(n int) *ids {
	out := &ids{home: make([]string, n), away: make([]string, n)}
	random := rand.New(rand.NewPCG(7, 8))
	for i := range n {
		out.home[i] = fmt.Sprintf("orders/%08d-A", i+1)
		a, b := random.Uint64(), random.Uint64()
		out.away[i] = fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff, 0x8000|b>>48&0x3fff, b&0xffffffffffff)
	}
	slices.Sort(out.away) // so that "in order" means the same for both
	return out
}

// pick chooses the ID of document i.
type pick func(s *store, i int) string

func home(s *store, i int) string { return s.ids.home[i] }
func away(s *store, i int) string { return s.ids.away[i] }

// Keys. Each layout has a database of its own, so that spaces do not collide.

func idKey(space byte, id string) []byte {
	return append(append([]byte{space}, id...), 0)
}

func collectionKey(space byte, rest []byte) []byte {
	return append(append(append([]byte{space}, collection...), 0), rest...)
}

func etagBytes(etag uint64) []byte { return binary.BigEndian.AppendUint64(nil, etag) }

// changeKey has the node before the etag, as Jay's has.
func changeKey(etag uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{'e', 0, 0, 0, 0}, etag)
}

// record is the document with a header: its etag and its collection.
func (s *store) record(i int) []byte {
	out := make([]byte, 0, 600)
	out = append(out, etagBytes(s.etag)...)
	out = append(out, byte(len(collection)))
	out = append(out, collection...)
	return append(out, s.docs.Body(i)...)
}

// inCollection looks into a record's header.
func inCollection(record []byte) bool {
	n := int(record[8])
	return string(record[9:9+n]) == collection
}

func (s *store) checkFree(key []byte) error {
	_, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(fmt.Errorf("%q is taken", key), closer.Close())
}

// read returns a copy of the value at key.
func (s *store) read(key []byte) ([]byte, error) {
	value, closer, err := s.db.Get(key)
	if err != nil {
		return nil, err
	}
	value = bytes.Clone(value)
	return value, closer.Close()
}

// each calls fn with every key and value between lo and hi.
func (s *store) each(lo, hi []byte, fn func(key, value []byte) error) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		if err := fn(it.Key(), it.Value()); err != nil {
			return errors.Join(err, it.Close())
		}
	}
	return errors.Join(it.Error(), it.Close())
}

func set(batch *pebble.Batch, key, value []byte) error { return batch.Set(key, value, nil) }

// Raw: nothing but the document.

func insertRaw(s *store, batch *pebble.Batch, i int) error {
	return set(batch, []byte(s.ids.home[i]), s.docs.Body(i))
}

func getRaw(s *store, i int) ([]byte, error) { return s.read([]byte(s.ids.home[i])) }

func scanRaw(s *store, fn func([]byte)) error {
	return s.each([]byte("orders/"), []byte("orders0"), func(_, value []byte) error {
		fn(bytes.Clone(value))
		return nil
	})
}

// A: an index in the order of changes serves the collection too.

func insertA(checked bool) func(*store, *pebble.Batch, int) error {
	return func(s *store, batch *pebble.Batch, i int) error {
		key := idKey('d', s.ids.home[i])
		if checked {
			if err := s.checkFree(key); err != nil {
				return err
			}
		}
		return errors.Join(
			set(batch, key, s.record(i)),
			set(batch, collectionKey('e', etagBytes(s.etag)), []byte(s.ids.home[i])),
		)
	}
}

func getAtID(id pick) func(*store, int) ([]byte, error) {
	return func(s *store, i int) ([]byte, error) { return s.read(idKey('d', id(s, i))) }
}

func scanA(s *store, fn func([]byte)) error {
	return s.each([]byte{'e'}, []byte{'f'}, func(_, id []byte) error {
		value, err := s.read(idKey('d', string(id)))
		fn(value)
		return err
	})
}

// B: documents lie in the order of changes; a pointer finds them by ID.

func insertB(s *store, batch *pebble.Batch, i int) error {
	pointer := idKey('p', s.ids.home[i])
	if err := s.checkFree(pointer); err != nil {
		return err
	}
	key := collectionKey('e', etagBytes(s.etag))
	return errors.Join(set(batch, key, s.record(i)), set(batch, pointer, key))
}

func getB(s *store, i int) ([]byte, error) {
	key, err := s.read(idKey('p', s.ids.home[i]))
	if err != nil {
		return nil, err
	}
	return s.read(key)
}

func scanB(s *store, fn func([]byte)) error {
	return s.each([]byte{'e'}, []byte{'f'}, func(_, value []byte) error {
		fn(bytes.Clone(value))
		return nil
	})
}

// C: documents lie under their collection; a pointer names the collection.

func insertC(s *store, batch *pebble.Batch, i int) error {
	id := s.ids.home[i]
	pointer := idKey('p', id)
	if err := s.checkFree(pointer); err != nil {
		return err
	}
	return errors.Join(
		set(batch, collectionKey('d', []byte(id)), s.record(i)),
		set(batch, pointer, []byte(collection)),
		set(batch, changeKey(s.etag), []byte(id)),
	)
}

func getC(s *store, i int) ([]byte, error) {
	if _, err := s.read(idKey('p', s.ids.home[i])); err != nil {
		return nil, err
	}
	return s.read(collectionKey('d', []byte(s.ids.home[i])))
}

func scanC(s *store, fn func([]byte)) error {
	return s.each([]byte{'d'}, []byte{'e'}, func(_, value []byte) error {
		fn(bytes.Clone(value))
		return nil
	})
}

// D: documents lie at their IDs. One whose ID begins with its collection is
// at home there; any other has a membership entry.

func insertD(id pick) func(*store, *pebble.Batch, int) error {
	return func(s *store, batch *pebble.Batch, i int) error {
		id := id(s, i)
		key := idKey('d', id)
		if err := s.checkFree(key); err != nil {
			return err
		}
		err := errors.Join(set(batch, key, s.record(i)), set(batch, changeKey(s.etag), []byte(id)))
		if err == nil && !atHome(id) {
			err = set(batch, collectionKey('c', append([]byte(id), 0)), nil)
		}
		return err
	}
}

func atHome(id string) bool {
	return len(id) > len(collection) && id[:len(collection)] == collection && id[len(collection)] == '/'
}

// scanD reads the home range, skipping strangers, then the members that are
// away. (Jay merges the two; one of them is empty here.)
func scanD(s *store, fn func([]byte)) error {
	err := s.each([]byte("d"+collection+"/"), []byte("d"+collection+"0"), func(_, value []byte) error {
		if inCollection(value) {
			fn(bytes.Clone(value))
		}
		return nil
	})
	if err != nil {
		return err
	}
	space := collectionKey('c', nil)
	return s.each(space, append(space[:len(space):len(space)], 0xff), func(key, _ []byte) error {
		value, err := s.read(idKey('d', string(key[len(space):len(key)-1])))
		fn(value)
		return err
	})
}
