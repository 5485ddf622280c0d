package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jaydb/jay/bench/engine"
	"github.com/jaydb/jay/bench/fixture"
)

func key(n int) engine.Key {
	text := fmt.Sprintf("orders/%d-A", n)
	return engine.Key{Text: text, Bytes: []byte(text)}
}

// Ensure that every engine does what the interface says, and has it all after
// it was closed and opened again.
func TestMakers(t *testing.T) {
	for _, maker := range engine.Makers() {
		for _, synced := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/synced=%t", maker.Name, synced), func(t *testing.T) {
				if maker.Missing != "" || maker.VariantOf != "" {
					t.Skip(maker.Missing)
				}
				testMaker(t, maker, engine.Settings{Dir: t.TempDir(), Synced: synced, CacheBytes: 8 << 20, Writers: 2})
			})
		}
	}
}

func testMaker(t *testing.T, maker engine.Maker, s engine.Settings) {
	source, err := fixture.NewSource(550, 1000)
	if err != nil {
		t.Fatal(err)
	}
	doc := func(n, revision int) engine.Doc {
		return engine.Doc{Key: key(n), Body: source.Append(nil, n, revision)}
	}
	e, err := maker.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	must("Insert", e.Insert([]engine.Doc{doc(1, 10), doc(2, 10), doc(3, 10)}))
	must("InsertOne", e.InsertOne(doc(4, 10)))
	must("Update", e.Update([]engine.Doc{doc(1, 11), doc(2, 11)}))
	must("UpdateOne", e.UpdateOne(doc(4, 12)))
	must("Delete", e.Delete([]engine.Key{key(1)}))
	must("DeleteOne", e.DeleteOne(key(3)))
	must("Rest", e.Rest())
	must("InsertOne", e.InsertOne(doc(5, 10)))
	must("Close", e.Close())
	e, err = maker.Open(s)
	must("Open", err)
	defer func() { must("Close", e.Close()) }()

	for n, revision := range map[int]int{2: 11, 4: 12, 5: 10} {
		body, err := e.Get(key(n))
		if err != nil || string(body) != string(doc(n, revision).Body) {
			t.Errorf("Get %d: %.60s, %v", n, body, err)
		}
		var order fixture.Order
		if err := e.GetTyped(key(n), &order); err != nil || order.Revision != revision {
			t.Errorf("GetTyped %d: revision %d, %v, want %d", n, order.Revision, err, revision)
		}
	}
	for _, n := range []int{1, 3, 6} {
		if body, err := e.Get(key(n)); !errors.Is(err, engine.ErrNotFound) {
			t.Errorf("Get of the missing %d: %.60s, %v", n, body, err)
		}
	}
	testScan(t, e, "", []string{"orders/2-A", "orders/4-A", "orders/5-A"})
	testScan(t, e, "orders/4", []string{"orders/4-A"})
}

func testScan(t *testing.T, e engine.Engine, prefix string, want []string) {
	t.Helper()
	var got []string
	err := e.Scan(prefix, func(id func() string, body []byte) error {
		number, _, ok := fixture.Parse(body)
		if !ok || key(number).Text != id() {
			t.Errorf("scan %q: %s holds number %d", prefix, id(), number)
		}
		got = append(got, id())
		return nil
	})
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("scan %q: %v, %v, want %v", prefix, got, err, want)
	}
	stop := errors.New("stop")
	if err := e.Scan(prefix, func(func() string, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("scan %q: got %v, want the error of the visit", prefix, err)
	}
}

// Ensure that every querier gives the same answers, those that the documents'
// numbers say, with indexes made before and after the load, with and without
// one, and after it was opened again.
func TestMakers_Queries(t *testing.T) {
	for _, maker := range engine.Makers() {
		for _, when := range []string{"before", "after", "never"} {
			if maker.Queries && maker.Missing == "" && !(maker.Name == engine.Raw && when == "never") {
				t.Run(maker.Name+"/"+when, func(t *testing.T) { testQueries(t, maker, when) })
			}
		}
	}
}

func testQueries(t *testing.T, maker engine.Maker, when string) {
	const n = 500
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	source, err := fixture.NewSource(550, n)
	must(err)
	s := engine.Settings{Dir: t.TempDir(), CacheBytes: 8 << 20, Writers: 1}
	e, err := maker.Open(s)
	must(err)
	index := func(now string) {
		t.Helper()
		if now == when || now == "again" && when != "never" {
			must(e.(engine.Querier).CreateIndexes())
		}
	}
	index("before")
	var docs []engine.Doc
	for number := range n {
		docs = append(docs, engine.Doc{Key: key(number + 1), Body: source.Append(nil, number, 10)})
	}
	must(e.Insert(docs))
	index("after")
	must(e.Rest())
	check := func() {
		t.Helper()
		byTotal := fixture.Numbers(n)
		lo, hi := fixture.Total(byTotal[100]), fixture.Total(byTotal[199])
		for _, test := range []struct {
			q     engine.Query
			wants func(number int) bool
		}{
			{engine.Query{Field: "Bucket", Equal: source.Bucket(7)}, func(number int) bool { return source.Bucket(number) == source.Bucket(7) }},
			{engine.Query{Field: "State", Equal: "shipped"}, func(number int) bool { return fixture.State(number) == "shipped" }},
			{engine.Query{Field: "Total", From: lo, To: hi}, func(number int) bool { return lo <= fixture.Total(number) && fixture.Total(number) <= hi }},
			{engine.Query{Field: "Bucket", Equal: int64(1)}, func(number int) bool { return false }},
		} {
			if maker.Name == "badgerhold" && when == "never" && test.q.Field != "Total" {
				continue // the one that a row asks for without an index
			}
			want := make(map[int]bool)
			for number := range n {
				if test.wants(number) {
					want[number] = true
				}
			}
			got := make(map[int]bool)
			must(e.(engine.Querier).Query(test.q, func(id func() string, body []byte) error {
				number, _, ok := fixture.Parse(body)
				if !ok || id() != "" && id() != key(number+1).Text || got[number] {
					t.Errorf("%+v: %q: %s", test.q, id(), body)
				}
				got[number] = true
				return nil
			}))
			if !maps.Equal(got, want) {
				t.Errorf("%+v: got %v, want %v", test.q, got, want)
			}
			if maker.Name == engine.Raw && test.q.Equal == nil {
				continue
			}
			if count, err := e.(engine.Querier).Count(test.q); err != nil || count != len(want) {
				t.Errorf("%+v: counted %d, %v, want %d", test.q, count, err, len(want))
			}
		}
		var got []int
		must(e.(engine.Querier).Query(engine.Query{Field: "Total", From: lo, To: hi, Descending: true, Limit: 10}, func(_ func() string, body []byte) error {
			number, _, _ := fixture.Parse(body)
			got = append(got, number)
			return nil
		}))
		want := slices.Clone(byTotal[190:200])
		slices.Reverse(want)
		if !slices.Equal(got, want) {
			t.Errorf("top: got %v, want %v", got, want)
		}
	}
	check()
	if grouper, is := e.(engine.Grouper); is && when != "before" {
		got, err := grouper.Groups("State", "Total")
		must(err)
		want := make(map[string]engine.Group)
		for number := range n {
			g := want[fixture.State(number)]
			want[fixture.State(number)] = engine.Group{Documents: g.Documents + 1, Sum: g.Sum + fixture.Total(number)}
		}
		if !maps.EqualFunc(got, want, func(a, b engine.Group) bool { return a.Documents == b.Documents && math.Abs(a.Sum-b.Sum) < 1e-6*b.Sum }) {
			t.Errorf("groups: got %v, want %v", got, want)
		}
	}
	must(e.Close())
	e, err = maker.Open(s)
	must(err)
	index("again")
	check()
	must(e.Close())
}

// Ensure that the file has what was inserted, also when it is opened again.
func TestMakers_File(t *testing.T) {
	maker, _ := engine.ByName(engine.FileLog)
	s := engine.Settings{Dir: t.TempDir(), Synced: true}
	for opened := range 2 {
		e, err := maker.Open(s)
		if err != nil {
			t.Fatal(err)
		}
		first := 3 * opened
		for n := first; n < first+3; n++ {
			if err := e.InsertOne(engine.Doc{Key: key(n), Body: fmt.Appendf(nil, "body %d", n)}); err != nil {
				t.Fatal(err)
			}
		}
		for n := range first + 3 {
			if body, err := e.Get(key(n)); err != nil || string(body) != fmt.Sprint("body ", n) {
				t.Errorf("%d: %q, %v", n, body, err)
			}
		}
		if _, err := e.Get(key(first + 3)); !errors.Is(err, engine.ErrNotFound) {
			t.Errorf("what was not inserted: %v", err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Ensure that Jay's other ways in do what its own engine does.
func TestMakers_Variants(t *testing.T) {
	for _, maker := range engine.Makers() {
		if maker.VariantOf == "" || maker.Name == engine.FileLog {
			continue
		}
		t.Run(maker.Name, func(t *testing.T) { testVariant(t, maker) })
	}
}

func testVariant(t *testing.T, maker engine.Maker) {
	source, err := fixture.NewSource(550, 1000)
	if err != nil {
		t.Fatal(err)
	}
	source = source.InPlace()
	s := engine.Settings{Dir: t.TempDir(), CacheBytes: 8 << 20, Writers: 1}
	e, err := maker.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	body := source.Append(nil, 1, 10)
	if saver, ok := e.(engine.Saver); ok {
		order := &fixture.Order{}
		if err := json.Unmarshal(body, order); err != nil {
			t.Fatal(err)
		}
		save, err := saver.Begin([]*fixture.Order{order})
		if err == nil {
			err = save()
		}
		if err != nil {
			t.Fatal(err)
		}
	} else if err := e.Insert([]engine.Doc{{Key: key(1), Body: body}}); err != nil {
		t.Fatal(err)
	}
	revision := 10
	if maker.Name != engine.JayBulk { // there the document isn't there yet
		revision = 11
		if err := e.UpdateOne(engine.Doc{Key: key(1), Body: source.Append(nil, 1, revision)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if e, err = maker.Open(s); err != nil {
		t.Fatal(err)
	}
	got, err := e.Get(key(1))
	if want := source.Append(nil, 1, revision); err != nil || string(got) != string(want) {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// Ensure that raw Pebble has the very options that Jay ships, as Pebble itself
// writes them down beside the data.
func TestMakers_SamePebbleOptions(t *testing.T) {
	options := make(map[string]string)
	for _, name := range []string{engine.Raw, engine.Jay} {
		maker, _ := engine.ByName(name)
		dir := t.TempDir()
		e, err := maker.Open(engine.Settings{Dir: dir, CacheBytes: 8 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "OPTIONS-*"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no options: %v", name, err)
		}
		text, err := os.ReadFile(files[len(files)-1])
		if err != nil {
			t.Fatal(err)
		}
		options[name] = string(text)
	}
	if options[engine.Raw] != options[engine.Jay] {
		t.Errorf("raw Pebble:\n%s\nJay:\n%s", options[engine.Raw], options[engine.Jay])
	}
}
