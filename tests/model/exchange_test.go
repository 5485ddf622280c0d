package model_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
)

// Ensure that compare-exchange values are what a map of values and indexes says, alone, in
// batches, in transactions and under guards, over reopening and losses of power; and
// that no index is ever given twice.
//
//	go test -run TestCompareExchange_Model -count=1 -rapid.checks=20000 ./tests/model
func TestCompareExchange_Model(t *testing.T) {
	sample.OneGoroutine(t)
	test := t
	rapid.Check(t, func(t *rapid.T) {
		m := &exchangeModel{t: t, place: jaytest.NewPlace(test), values: make(map[string]exchangeEntry), docs: make(map[string]string), used: make(map[uint64]bool)}
		m.open()
		t.Repeat(map[string]func(*rapid.T){
			"put":         m.put,
			"delete":      m.delete,
			"batch":       m.batch,
			"transaction": m.transaction,
			"guarded":     m.guarded,
			"list":        m.list,
			"reopen":      m.reopen,
			"crash":       m.crash,
			"":            m.check,
		})
		noError(t, m.db.Close())
	})
}

// exchangeModel is what should be there.
type exchangeModel struct {
	t      *rapid.T
	place  *jaytest.Place
	db     *jay.DB
	values map[string]exchangeEntry // by folded key
	docs   map[string]string        // bodies
	used   map[uint64]bool          // all indexes that were seen
	n      int                      // values made
}

type exchangeEntry struct {
	value string
	index uint64
}

func (m *exchangeModel) open() {
	db, err := m.place.Open(jay.Options{})
	noError(m.t, err)
	m.db = db
}

func (m *exchangeModel) key(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "A", "b", "c/1", "C/1", "c/2", "ä", "Ä"}).Draw(t, "key")
}

// expected draws an index for a key, most often the right one.
func (m *exchangeModel) expected(t *rapid.T, key string) uint64 {
	switch now := m.values[strings.ToLower(key)].index; rapid.IntRange(0, 4).Draw(t, "index") {
	case 0:
		return 0
	case 1:
		return now + 1
	default:
		return now
	}
}

func (m *exchangeModel) next() string {
	m.n++
	return fmt.Sprint(m.n)
}

// set notes a new value, whose index must be new.
func (m *exchangeModel) set(key, value string, index uint64) {
	m.t.Helper()
	if index == 0 || m.used[index] {
		m.t.Fatalf("%s: index %d was given before", key, index)
	}
	m.used[index] = true
	m.values[strings.ToLower(key)] = exchangeEntry{value, index}
}

// refused checks an error for a key that has not the index.
func (m *exchangeModel) refused(key string, expected uint64, err error) {
	m.t.Helper()
	now := m.values[strings.ToLower(key)]
	var conflict *jay.CompareExchangeError
	if !errors.As(err, &conflict) || conflict.Expected != expected || conflict.Actual != now.index {
		m.t.Fatalf("%s with index %d, which is %+v: got %v", key, expected, now, err)
	}
}

func (m *exchangeModel) put(t *rapid.T) {
	key := m.key(t)
	expected, value := m.expected(t, key), m.next()
	index, err := m.db.CompareExchange().Put(ctx, key, json.RawMessage(value), expected)
	if expected != m.values[strings.ToLower(key)].index {
		m.refused(key, expected, err)
		return
	}
	noError(t, err)
	m.set(key, value, index)
}

func (m *exchangeModel) delete(t *rapid.T) {
	key := m.key(t)
	expected := max(1, m.expected(t, key))
	err := m.db.CompareExchange().Delete(ctx, key, expected)
	if expected != m.values[strings.ToLower(key)].index {
		m.refused(key, expected, err)
		return
	}
	noError(t, err)
	delete(m.values, strings.ToLower(key))
}

// batch changes two keys and a document together.
func (m *exchangeModel) batch(t *rapid.T) {
	one, other := m.key(t), m.key(t)
	if strings.EqualFold(one, other) {
		return
	}
	first, second, value, id := m.expected(t, one), m.expected(t, other), m.next(), fmt.Sprint("docs/", rapid.IntRange(1, 3).Draw(t, "doc"))
	var b jay.Batch
	b.PutCompareExchange(one, json.RawMessage(value), first)
	b.Put(id, json.RawMessage(`{"n":`+value+`}`))
	b.PutCompareExchange(other, json.RawMessage(value), second)
	results, err := m.db.Apply(ctx, &b)
	switch {
	case first != m.values[strings.ToLower(one)].index:
		m.refused(one, first, err)
	case second != m.values[strings.ToLower(other)].index:
		m.refused(other, second, err)
	default:
		noError(t, err)
		m.set(one, value, results[0].Etag)
		m.set(other, value, results[2].Etag)
		m.docs[id] = value
	}
}

// transaction reads a key, changes it and a document, and may be overtaken.
func (m *exchangeModel) transaction(t *rapid.T) {
	key, value, id := m.key(t), m.next(), "docs/1"
	overtaken, listed := rapid.Bool().Draw(t, "overtaken"), rapid.Bool().Draw(t, "listed")
	folded := strings.ToLower(key)
	before := m.values[folded]
	err := m.db.Update(ctx, func(tx *jay.Tx) error {
		in := tx.CompareExchange()
		if listed {
			if _, err := in.List(ctx, "", "", 100); err != nil {
				return err
			}
		} else if _, err := in.Get(ctx, key); err != nil && !errors.Is(err, jay.ErrNotFound) {
			return err
		}
		if overtaken {
			index, err := m.db.CompareExchange().Put(ctx, key, json.RawMessage("0"), before.index)
			noError(t, err)
			m.set(key, "0", index)
		}
		if _, err := in.Put(ctx, key, json.RawMessage(value), before.index); err != nil {
			return err
		}
		_, err := tx.Put(ctx, id, json.RawMessage(`{"n":`+value+`}`))
		return err
	})
	if overtaken {
		if !errors.Is(err, jay.ErrConflict) {
			t.Fatalf("an overtaken transaction: got %v", err)
		}
		return
	}
	noError(t, err)
	v, err := m.db.CompareExchange().Get(ctx, key)
	noError(t, err)
	m.set(key, value, v.Index)
	m.docs[id] = value
}

// guarded puts or deletes a document under its guard.
func (m *exchangeModel) guarded(t *rapid.T) {
	id := fmt.Sprint("docs/", rapid.IntRange(1, 3).Draw(t, "doc"))
	key := jay.GuardKey(id)
	expected, value := m.expected(t, key), m.next()
	g := jay.AtomicGuard{Index: expected, Any: rapid.Bool().Draw(t, "any")}
	remove, taken := rapid.Bool().Draw(t, "remove"), g.Any || expected == m.values[key].index
	var err error
	if remove {
		err = m.db.Delete(ctx, id, jay.Guarded(&g))
	} else {
		_, err = m.db.Put(ctx, id, json.RawMessage(`{"n":`+value+`}`), jay.Guarded(&g))
	}
	switch {
	case !taken:
		m.refused(key, expected, err)
	case remove:
		noError(t, err)
		delete(m.values, key)
		delete(m.docs, id)
	default:
		noError(t, err)
		m.set(key, `{"Id":"`+id+`"}`, g.Index)
		m.docs[id] = value
	}
}

// list compares pages, of the database or a transaction with changes of its own.
func (m *exchangeModel) list(t *rapid.T) {
	prefix := rapid.SampledFrom([]string{"", "a", "c/", "C/", "rvn-", "z"}).Draw(t, "prefix")
	size, after := rapid.IntRange(1, 3).Draw(t, "size"), ""
	noError(t, m.db.View(ctx, func(tx *jay.Tx) error {
		x := m.db.CompareExchange()
		if rapid.Bool().Draw(t, "in a transaction") {
			x = tx.CompareExchange()
		}
		var got []string
		for {
			page, err := x.List(ctx, prefix, after, size)
			noError(t, err)
			for _, v := range page {
				got = append(got, strings.ToLower(v.Key))
			}
			if len(page) < size {
				break
			}
			after = page[len(page)-1].Key
		}
		var want []string
		for key := range m.values {
			if strings.HasPrefix(key, strings.ToLower(prefix)) {
				want = append(want, key)
			}
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("prefix %q: got %q, want %q", prefix, got, want)
		}
		return nil
	}))
}

func (m *exchangeModel) reopen(t *rapid.T) {
	noError(t, m.db.Close())
	m.open()
}

// crash loses the power. All that was written is on disk.
func (m *exchangeModel) crash(t *rapid.T) {
	crashed := m.place.Crash(rapid.SampledFrom([]int{0, 50, 100}).Draw(t, "kept"), rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed"))))
	noError(t, m.db.Close())
	m.place = crashed
	m.open()
}

// check compares all values and documents.
func (m *exchangeModel) check(t *rapid.T) {
	all, err := m.db.CompareExchange().List(ctx, "", "", 0)
	noError(t, err)
	if len(all) != len(m.values) {
		t.Fatalf("there are %d values, not %d", len(all), len(m.values))
	}
	for _, v := range all {
		if want := m.values[strings.ToLower(v.Key)]; want.index != v.Index || want.value != string(v.Value) {
			t.Fatalf("%s is %s with index %d, not %+v", v.Key, v.Value, v.Index, want)
		}
	}
	for id, n := range m.docs {
		doc, err := m.db.Get(ctx, id)
		noError(t, err)
		if string(doc.Body()) != `{"n":`+n+`}` {
			t.Fatalf("%s is %s, not %s", id, doc.Body(), n)
		}
	}
}
