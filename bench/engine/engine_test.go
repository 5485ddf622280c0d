package engine_test

import (
	"errors"
	"fmt"
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
				if maker.Missing != "" {
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
