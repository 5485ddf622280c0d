package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/dgraph-io/badger/v4"
	"github.com/tidwall/gjson"
	"github.com/timshannon/badgerhold/v4"
)

// indexedHoldDoc is a holdDoc whose fields are indexed.
type indexedHoldDoc struct{ Body []byte }

// Type implements badgerhold.Storer.
func (*indexedHoldDoc) Type() string { return holdType }

// Indexes implements badgerhold.Storer.
func (*indexedHoldDoc) Indexes() map[string]badgerhold.Index { return holdIndexes }

// holdRow is a document with the field that badgerhold has to compare by
// itself, in the rows that make it do so. It is read with gjson: decoding all
// of the JSON would take longer.
type holdRow struct {
	Body  []byte
	Total float64
}

// Type implements badgerhold.Storer.
func (*holdRow) Type() string { return holdType }

// Indexes implements badgerhold.Storer.
func (*holdRow) Indexes() map[string]badgerhold.Index { return holdIndexes }

func (r *holdRow) decode(data []byte) {
	r.Body = bytes.Clone(data)
	r.Total = gjson.GetBytes(data, "Total").Num
}

// holdIndexes are Indexes. badgerhold calls an index by its field.
var holdIndexes = func() map[string]badgerhold.Index {
	all := make(map[string]badgerhold.Index)
	for _, ix := range Indexes {
		all[ix.Field] = badgerhold.Index{IndexFunc: func(field string, value any) ([]byte, error) {
			return holdValue(value.(*indexedHoldDoc).Body, field), nil
		}}
	}
	return all
}()

// holdValue is the key of a document in an index.
func holdValue(body []byte, field string) []byte {
	value := gjson.GetBytes(body, field)
	switch {
	case value.Type == gjson.String:
		return encodeHoldIndex(value.Str)
	case field == "Bucket":
		return encodeHoldIndex(value.Int())
	}
	return encodeHoldIndex(value.Num)
}

// encodeHoldIndex encodes the values and the lists of keys of an index, which
// badgerhold would do with gob: a few bytes for each, without its overhead.
func encodeHoldIndex(value any) []byte {
	switch v := value.(type) {
	case string:
		return []byte(v)
	case int64:
		return binary.BigEndian.AppendUint64(nil, uint64(v)^1<<63)
	case float64:
		return binary.BigEndian.AppendUint64(nil, math.Float64bits(v)^1<<63)
	case badgerhold.KeyList:
		size := 0
		for _, key := range v {
			size += 1 + len(key)
		}
		dst := make([]byte, 0, size)
		for _, key := range v {
			dst = append(append(dst, byte(len(key))), key...) // none is longer than 255
		}
		return dst
	}
	panic(fmt.Sprintf("an index of %T", value))
}

func decodeHoldIndex(data []byte, value any) error {
	switch v := value.(type) {
	case *string:
		*v = string(data)
	case *int64:
		*v = int64(binary.BigEndian.Uint64(data) ^ 1<<63)
	case *float64:
		*v = math.Float64frombits(binary.BigEndian.Uint64(data) ^ 1<<63)
	case *badgerhold.KeyList:
		data = bytes.Clone(data)
		for len(data) > 0 {
			n := 1 + int(data[0])
			*v = append(*v, data[1:n:n])
			data = data[n:]
		}
	}
	return nil
}

// CreateIndexes implements Querier. It writes what TxInsert would have left.
func (e *badgerholdEngine) CreateIndexes() error {
	e.indexed = true
	for _, ix := range Indexes {
		space := "_bhIndex:" + holdType + ":" + ix.Field + ":"
		there, err := e.hasPrefix(space)
		if err != nil || there {
			return err
		}
		lists := make(map[string]badgerhold.KeyList)
		err = e.Scan("", func(id func() string, body []byte) error {
			value := string(holdValue(body, ix.Field))
			lists[value] = append(lists[value], []byte("bh_"+holdType+":"+id()))
			return nil
		})
		if err != nil {
			return err
		}
		batch := e.store.Badger().NewWriteBatch()
		defer batch.Cancel()
		for value, list := range lists {
			slices.SortFunc(list, bytes.Compare)
			if err := batch.Set([]byte(space+value), encodeHoldIndex(list)); err != nil {
				return err
			}
		}
		if err := batch.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// hasPrefix reports whether a key begins with prefix.
func (e *badgerholdEngine) hasPrefix(prefix string) (found bool, err error) {
	err = e.store.Badger().View(func(tx *badger.Txn) error {
		it := tx.NewIterator(badger.DefaultIteratorOptions)
		defer it.Close()
		it.Seek([]byte(prefix))
		found = it.ValidForPrefix([]byte(prefix))
		return nil
	})
	return found, err
}

// query translates q to badgerhold's query.
func (e *badgerholdEngine) query(q *Query) *badgerhold.Query {
	var query *badgerhold.Query
	if q.Equal != nil {
		query = badgerhold.Where(q.Field).Eq(q.Equal)
	} else {
		query = badgerhold.Where(q.Field).Ge(q.From).And(q.Field).Le(q.To)
	}
	if e.indexed {
		query = query.Index(q.Field)
	}
	if q.Descending {
		query = query.SortBy(q.Field).Reverse()
	}
	if q.Limit > 0 {
		query = query.Limit(q.Limit)
	}
	return query
}

// Query implements Querier. Documents come without their IDs, which the IDs'
// numbers stand for.
func (e *badgerholdEngine) Query(q Query, fn Visit) error {
	if e.indexed && !q.Descending {
		var docs []indexedHoldDoc // needs no field
		if err := e.store.Find(&docs, e.query(&q)); err != nil {
			return err
		}
		for i := range docs {
			if err := fn(noID, docs[i].Body); err != nil {
				return err
			}
		}
		return nil
	}
	var rows []holdRow
	if err := e.store.Find(&rows, e.query(&q)); err != nil {
		return err
	}
	for i := range rows {
		if err := fn(noID, rows[i].Body); err != nil {
			return err
		}
	}
	return nil
}

// noID is the ID of a document that was found without it.
func noID() string { return "" }

// Count implements Querier.
func (e *badgerholdEngine) Count(q Query) (int, error) {
	var like any = &holdRow{}
	if e.indexed {
		like = &indexedHoldDoc{} // needs no field
	}
	n, err := e.store.Count(like, e.query(&q))
	return int(n), err
}
