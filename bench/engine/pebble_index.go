package engine

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/tidwall/gjson"
)

// What a bare Pebble can do for queries: an entry for each document and index,
//
//	'~' | number of the index | value | ID
//
// with nothing as its value, in the commit of the document. The entries stand
// behind all IDs.
const entrySpace = '~'

// appendEntry begins an entry: with the value's bytes, in their order.
func appendEntry(dst []byte, index int, value any) []byte {
	dst = append(dst, entrySpace, byte(index))
	switch v := value.(type) {
	case int64:
		return binary.BigEndian.AppendUint64(dst, uint64(v)^1<<63)
	case float64:
		return binary.BigEndian.AppendUint64(dst, math.Float64bits(v)^1<<63) // none is negative here
	case string:
		return append(append(dst, v...), 0)
	}
	panic(fmt.Sprintf("an entry for a %T", value))
}

// indexOf returns the number of the index over the field.
func indexOf(field string) int {
	for i, ix := range Indexes {
		if ix.Field == field {
			return i
		}
	}
	panic("no index over " + field)
}

// stage adds the entries of a document to the batch. scratch is for its keys.
func stage(batch *pebble.Batch, key, body, scratch []byte) ([]byte, error) {
	for i, ix := range Indexes {
		found := gjson.GetBytes(body, ix.Field)
		var value any
		switch {
		case found.Type == gjson.String:
			value = found.Str
		case ix.Field == "Bucket":
			value = found.Int()
		default:
			value = found.Num
		}
		scratch = append(appendEntry(scratch[:0], i, value), key...)
		if err := batch.Set(scratch, nil, nil); err != nil {
			return scratch, err
		}
	}
	return scratch, nil
}

// CreateIndexes implements Querier.
func (e *pebbleEngine) CreateIndexes() (err error) {
	e.indexed = true
	entries, err := e.entries(Query{Field: Indexes[0].Field, To: math.MaxFloat64})
	if err != nil {
		return err
	}
	there := entries.First()
	if err := entries.Close(); err != nil || there {
		return err
	}
	batch := e.db.NewBatch()
	var scratch []byte
	err = e.Scan("", func(id func() string, body []byte) error {
		if scratch, err = stage(batch, []byte(id()), body, scratch); err != nil {
			return err
		}
		if batch.Len() < 1<<20 {
			return nil
		}
		err := batch.Commit(pebble.NoSync)
		batch.Reset()
		return err
	})
	return errors.Join(err, batch.Commit(e.options), batch.Close())
}

// entries returns an iterator over the entries that q asks for.
func (e *pebbleEngine) entries(q Query) (*pebble.Iterator, error) {
	index := indexOf(q.Field)
	var o pebble.IterOptions
	switch {
	case q.Equal != nil:
		o.LowerBound = appendEntry(nil, index, q.Equal)
		o.UpperBound = append(bytes.Clone(o.LowerBound), 0xff)
	case q.Field == "Bucket": // only to see whether there are any
		o.LowerBound, o.UpperBound = []byte{entrySpace, byte(index)}, []byte{entrySpace, byte(index) + 1}
	default:
		o.LowerBound = appendEntry(nil, index, q.From)
		o.UpperBound = append(appendEntry(nil, index, q.To), 0xff)
	}
	return e.db.NewIter(&o)
}

// entryBytes is the offset of the ID in an entry.
func entryBytes(q *Query) int {
	if text, ok := q.Equal.(string); ok {
		return 2 + len(text) + 1
	}
	return 2 + 8
}

// Query implements Querier.
func (e *pebbleEngine) Query(q Query, fn Visit) (err error) {
	if !e.indexed {
		return e.filter(&q, fn)
	}
	it, err := e.entries(q)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	start, next := it.First, it.Next
	if q.Descending {
		start, next = it.Last, it.Prev
	}
	skip, n := entryBytes(&q), 0
	id := func() string { return string(it.Key()[skip:]) }
	for ok := start(); ok; ok = next() {
		body, err := e.get(it.Key()[skip:])
		if err != nil {
			return err
		}
		if err := fn(id, body); err != nil {
			return err
		}
		if n++; n == q.Limit {
			break
		}
	}
	return it.Error()
}

// Groups implements Grouper.
func (e *pebbleEngine) Groups(by, sum string) (map[string]Group, error) {
	groups := make(map[string]Group)
	err := e.walk("", func(_ func() string, value []byte) error {
		fields := gjson.GetManyBytes(value, by, sum)
		g := groups[fields[0].Str]
		g.Documents++
		g.Sum += fields[1].Num
		groups[fields[0].Str] = g
		return nil
	})
	return groups, err
}

// sorted tests every document, and keeps those that come first.
func (e *pebbleEngine) sorted(q *Query, fn Visit) error {
	type found struct {
		id    string
		value float64
		body  []byte
	}
	var first []found
	err := e.walk("", func(id func() string, value []byte) error {
		if !satisfies(value, q) {
			return nil
		}
		n := gjson.GetBytes(value, q.Field).Num
		at, _ := slices.BinarySearchFunc(first, n, func(f found, n float64) int { return cmp.Compare(n, f.value) })
		if at == q.Limit {
			return nil
		}
		if len(first) == q.Limit {
			first = first[:q.Limit-1]
		}
		first = slices.Insert(first, at, found{id(), n, bytes.Clone(value)})
		return nil
	})
	for _, f := range first {
		if err == nil {
			err = fn(func() string { return f.id }, f.body)
		}
	}
	return err
}

// filter tests every document.
func (e *pebbleEngine) filter(q *Query, fn Visit) (err error) {
	if q.Descending {
		return e.sorted(q, fn)
	}
	return e.walk("", func(id func() string, value []byte) error {
		if !satisfies(value, q) {
			return nil
		}
		return fn(id, bytes.Clone(value))
	})
}

// Count implements Querier.
func (e *pebbleEngine) Count(q Query) (n int, err error) {
	it, err := e.entries(q)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	return n, it.Error()
}
