package workload

// In the package, to give the check engines that lose things, which no test
// can ask of a real one.

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay/bench/engine"
	"github.com/jaydb/jay/bench/fixture"
)

// memory is an engine that keeps everything in a map, and can corrupt documents on
// purpose.
type memory struct {
	mu   sync.Mutex
	docs map[string][]byte
	// spoil is called with what is about to be kept, and returns what is kept
	// instead; nil drops it. inserts counts the calls, from 0.
	spoil   func(n int, body []byte) []byte
	inserts int
}

func (m *memory) Insert(docs []engine.Doc) error {
	for _, doc := range docs {
		if err := m.InsertOne(doc); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) InsertOne(doc engine.Doc) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	body := bytes.Clone(doc.Body)
	if m.spoil != nil {
		body = m.spoil(m.inserts, body)
	}
	m.inserts++
	if body != nil {
		m.docs[doc.Text] = body
	}
	return nil
}

func (m *memory) Update(docs []engine.Doc) error { return m.Insert(docs) }
func (m *memory) UpdateOne(doc engine.Doc) error { return m.InsertOne(doc) }
func (m *memory) DeleteOne(key engine.Key) error { return m.Delete([]engine.Key{key}) }
func (m *memory) Rest() error                    { return nil }
func (m *memory) Close() error                   { return nil }
func (m *memory) Delete(keys []engine.Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		delete(m.docs, key.Text)
	}
	return nil
}

func (m *memory) Get(key engine.Key) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	body, ok := m.docs[key.Text]
	if !ok {
		return nil, engine.ErrNotFound
	}
	return bytes.Clone(body), nil
}

func (m *memory) GetTyped(key engine.Key, into *fixture.Order) error {
	body, err := m.Get(key)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

func (m *memory) Scan(prefix string, fn engine.Visit) error {
	for _, id := range slices.Sorted(maps.Keys(m.docs)) {
		if !strings.HasPrefix(id, prefix) {
			continue
		}
		if err := fn(func() string { return id }, bytes.Clone(m.docs[id])); err != nil {
			return err
		}
	}
	return nil
}

// Edge implements engine.Pager.
func (m *memory) Edge(newest bool, limit int, fn engine.Visit) error {
	ids := slices.Sorted(maps.Keys(m.docs))
	if newest {
		slices.Reverse(ids)
	}
	for _, id := range ids[:min(limit, len(ids))] {
		if err := fn(func() string { return id }, bytes.Clone(m.docs[id])); err != nil {
			return err
		}
	}
	return nil
}

// CreateIndexes implements engine.Querier. Its answers come without indexes.
func (m *memory) CreateIndexes() error { return nil }

func (m *memory) Query(q engine.Query, fn engine.Visit) error {
	var found []fixture.Order
	for id, body := range m.docs {
		order := fixture.Order{ID: id}
		if err := json.Unmarshal(body, &order); err != nil {
			return err
		}
		if q.Equal == order.Bucket || q.Equal == order.State || q.Equal == nil && q.From <= order.Total && order.Total <= q.To {
			found = append(found, order)
		}
	}
	slices.SortFunc(found, func(a, b fixture.Order) int { return cmp.Compare(b.Total, a.Total) })
	if q.Limit > 0 {
		found = found[:min(len(found), q.Limit)]
	}
	for _, order := range found {
		if err := fn(func() string { return order.ID }, m.docs[order.ID]); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) Count(q engine.Query) (n int, err error) {
	err = m.Query(q, func(func() string, []byte) error { n++; return nil })
	return n, err
}

// Groups implements engine.Grouper.
func (m *memory) Groups(by, sum string) (map[string]engine.Group, error) {
	groups := make(map[string]engine.Group)
	err := m.Scan("", func(_ func() string, body []byte) error {
		name := gjson.GetBytes(body, by).Str
		g := groups[name]
		groups[name] = engine.Group{Documents: g.Documents + 1, Sum: g.Sum + gjson.GetBytes(body, sum).Num}
		return nil
	})
	return groups, err
}

// makerOf returns a maker whose stores all are m, but begin empty in a new
// directory.
func makerOf(m *memory) engine.Maker {
	last := ""
	return engine.Maker{Name: "memory", Open: func(s engine.Settings) (engine.Engine, error) {
		if s.Dir != last {
			last, m.docs = s.Dir, make(map[string][]byte)
		}
		return m, nil
	}}
}

// runOn runs a workload of a small list on m.
func runOn(t *testing.T, name string, m *memory) Summary {
	t.Helper()
	p := Params{Docs: 4000, Size: 550, Rounds: 2, Limit: time.Second}
	w, err := ByName(p, name)
	if err != nil {
		t.Fatal(err)
	}
	run, err := NewRun(w, p, makerOf(m), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(false); err != nil {
		t.Fatal(err)
	}
	for range w.Rounds {
		if w.fresh {
			m.docs = make(map[string][]byte)
		}
		if _, err := run.Round(); err != nil {
			t.Fatal(err)
		}
	}
	summary, err := run.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return summary
}

// Ensure that the check passes an engine that keeps everything, in every
// workload.
func TestRun_Sound(t *testing.T) {
	for _, w := range All(Params{Docs: 4000, Size: 550, Rounds: 2, Limit: time.Second}) {
		if w.Killed {
			continue // needs two processes: see package worker
		}
		t.Run(w.Name, func(t *testing.T) {
			s := runOn(t, w.Name, &memory{})
			if len(s.Failures) > 0 || s.Checked == 0 {
				t.Errorf("checked %d, failures %v", s.Checked, s.Failures)
			}
		})
	}
}

// Ensure that the check fails when an engine loses a document, keeps a spoiled
// one, or an old one.
func TestRun_Lossy(t *testing.T) {
	at := func(n int, change func(body []byte) []byte) func(int, []byte) []byte {
		return func(i int, body []byte) []byte {
			if i == n {
				return change(body)
			}
			return body
		}
	}
	drop := func([]byte) []byte { return nil }
	flip := func(body []byte) []byte { body[len(body)-3] ^= 1; return body }
	other := func(body []byte) []byte { copy(body[10:20], "1000000007"); return body }
	for _, test := range []struct {
		name, workload string
		spoil          func(int, []byte) []byte
		want           string
	}{
		{"loses one", "bulk load, unsynced", at(1234, drop), "got 3999 documents"},
		{"loses the last one", "bulk load, unsynced", at(3999, drop), "got 3999 documents"},
		{"loses a single insert", "durable insert, 32 goroutines", at(17, drop), "documents"},
		{"flips a bit", "bulk load, unsynced", at(1234, flip), "document 1234: got"},
		{"keeps another document", "bulk load, unsynced", at(1234, other), "document 7"},
		{"loses an update", "update, batches, unsynced", at(2*4000+7, drop), "has revision 11, want 12"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := &memory{spoil: test.spoil}
			s := runOn(t, test.workload, m)
			if len(s.Failures) == 0 || !strings.Contains(s.Failures[0], test.want) {
				t.Errorf("failures %v, want one with %q", s.Failures, test.want)
			}
		})
	}
}

// Ensure that a deleted document that comes back is found.
func TestRun_Undead(t *testing.T) {
	m := &memory{docs: make(map[string][]byte)}
	source, err := fixture.NewSource(550, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var x expected
	x.set(0, 10, fixture.FirstRevision)
	for i := range 10 {
		if err := m.InsertOne(engine.Doc{Key: newKey(i), Body: source.Append(nil, i, fixture.FirstRevision)}); err != nil {
			t.Fatal(err)
		}
	}
	if checked, err := x.check(m, source, true); err != nil || checked != 10 {
		t.Fatalf("sound: checked %d, %v", checked, err)
	}
	x.revisions[4] = 0
	if _, err := x.check(m, source, true); err == nil || !strings.Contains(err.Error(), "document 4") {
		t.Errorf("got %v, want an error about document 4", err)
	}
}

// Ensure that the zipfian numbers are in range, and the first as frequent as
// the distribution says.
func TestZipf(t *testing.T) {
	const n, draws = 1000, 200_000
	z := newZipf(n, zipfTheta)
	random := rand.New(rand.NewPCG(1, 1))
	counts := make([]int, n)
	scrambled := make(map[int]bool)
	for range draws {
		counts[z.next(random)]++
		scrambled[z.scrambled(random)] = true
	}
	if got, want := float64(counts[0])/draws, 1/z.zeta; got < 0.95*want || got > 1.05*want {
		t.Errorf("share of the first: got %.4f, want about %.4f", got, want)
	}
	if counts[0] < counts[1] || counts[1] < counts[10] || counts[10] < counts[500] {
		t.Error("later numbers are more frequent:", fmt.Sprint(counts[:11], counts[500]))
	}
	if len(scrambled) < n*8/10 {
		t.Errorf("only %d of %d numbers were drawn", len(scrambled), n)
	}
}
