package jayprometheus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/jayprometheus"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Ensure that a scrape has the figures of the database, and that they are what Prometheus
// accepts: names, help, units.
func TestCollector(t *testing.T) {
	ctx := context.Background()
	db, err := jay.OpenMemory(&jay.Options{MaxMemory: 64 << 20, CacheBytes: 5 << 20})
	must(t, err)
	for i := range 3 {
		_, err := db.Put(ctx, fmt.Sprint("users/", i), json.RawMessage(`{"n":1}`), jay.InCollection("Users"))
		must(t, err)
	}
	_, err = db.Put(ctx, "things/1", json.RawMessage(`{"n":1}`), jay.InCollection("Things"))
	must(t, err)
	_, err = db.Attachments("users/1").Put(ctx, "a", strings.NewReader("hello"))
	must(t, err)

	c := jayprometheus.NewCollector(db, &jayprometheus.CollectorOptions{Labels: prometheus.Labels{"database": "shop"}})
	const want = `
# HELP jay_attachment_bytes Bytes of all attachments.
# TYPE jay_attachment_bytes gauge
jay_attachment_bytes{database="shop"} 5
# HELP jay_commits_total Commits.
# TYPE jay_commits_total counter
jay_commits_total{database="shop"} %d
# HELP jay_documents Documents.
# TYPE jay_documents gauge
jay_documents{collection="Things",database="shop"} 1
jay_documents{collection="Users",database="shop"} 3
# HELP jay_last_etag Number of the newest write.
# TYPE jay_last_etag gauge
jay_last_etag{database="shop"} 5
# HELP jay_memory_share_bytes What each share of the memory may have. Together they are the bound, Options.MaxMemory or that of Options.Memory.
# TYPE jay_memory_share_bytes gauge
%s# HELP jay_up 1 if the figures of the database could be read, else 0.
# TYPE jay_up gauge
jay_up{database="shop"} 1
`
	s, err := db.Stats(ctx)
	must(t, err)
	memory := ""
	for _, share := range s.Memory.Shares {
		memory += fmt.Sprintf("jay_memory_share_bytes{database=\"shop\",share=%q} %d\n", share.Name, share.Bytes)
	}
	if !strings.Contains(memory, `share="blocks"} 5242880`) {
		t.Errorf("the shares are %s", memory)
	}
	must(t, testutil.CollectAndCompare(c, strings.NewReader(fmt.Sprintf(want, s.Engine.Commits, memory)), "jay_attachment_bytes", "jay_commits_total", "jay_documents", "jay_last_etag", "jay_memory_share_bytes", "jay_up"))
	problems, err := testutil.CollectAndLint(c)
	must(t, err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if _, err := testutil.GatherAndCount(registryOf(t, c)); err != nil { // described and collected alike
		t.Error(err)
	}

	must(t, db.Close())
	must(t, testutil.CollectAndCompare(c, strings.NewReader(`
# HELP jay_up 1 if the figures of the database could be read, else 0.
# TYPE jay_up gauge
jay_up{database="shop"} 0
`)))
}

func registryOf(t *testing.T, all ...prometheus.Collector) *prometheus.Registry {
	r := prometheus.NewPedanticRegistry()
	for _, c := range all {
		must(t, r.Register(c))
	}
	return r
}

// Ensure that two databases can be in one registry, and that collections beyond the bound
// are added up.
func TestCollector_Bounds(t *testing.T) {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	must(t, err)
	defer db.Close()
	other, err := jay.OpenMemory(nil)
	must(t, err)
	defer other.Close()
	for i := range 5 {
		for n := range i + 1 {
			_, err := db.Put(ctx, fmt.Sprintf("c%d/%d", i, n), json.RawMessage(`{}`), jay.InCollection(fmt.Sprint("C", i)))
			must(t, err)
		}
	}
	c := jayprometheus.NewCollector(db, &jayprometheus.CollectorOptions{Labels: prometheus.Labels{"database": "a"}, MaxCollections: 2})
	r := registryOf(t, c, jayprometheus.NewCollector(other, &jayprometheus.CollectorOptions{Labels: prometheus.Labels{"database": "b"}}))
	must(t, testutil.GatherAndCompare(r, strings.NewReader(`
# HELP jay_documents Documents.
# TYPE jay_documents gauge
jay_documents{collection="@others",database="a"} 6
jay_documents{collection="C3",database="a"} 4
jay_documents{collection="C4",database="a"} 5
`), "jay_documents"))
}

// Ensure that operations are counted by verb and outcome.
func TestObserver(t *testing.T) {
	ctx := context.Background()
	o := jayprometheus.NewObserver(&jayprometheus.ObserverOptions{Buckets: []float64{1000}})
	db, err := jay.OpenMemory(&jay.Options{Observer: o})
	must(t, err)
	defer db.Close()
	_, err = db.Put(ctx, "a", json.RawMessage(`{}`))
	must(t, err)
	_, err = db.Get(ctx, "a")
	must(t, err)
	_, _ = db.Get(ctx, "b")
	_, _ = db.Insert(ctx, "a", json.RawMessage(`{}`))
	_, _ = db.Put(ctx, "a", json.RawMessage(`{}`), jay.IfMatch("x"))
	_, _ = db.Put(ctx, "", json.RawMessage(`[`))
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, _ = db.Get(canceled, "a")

	r := registryOf(t, o)
	families, err := r.Gather()
	must(t, err)
	got := make(map[string]uint64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := ""
			for _, l := range m.GetLabel() {
				labels = l.GetValue() + " " + labels
			}
			if h := m.GetHistogram(); h != nil {
				got[labels] = h.GetSampleCount()
			}
		}
	}
	want := map[string]uint64{"put ok ": 1, "get ok ": 1, "get not_found ": 1, "insert exists ": 1, "put conflict ": 1, "put error ": 1, "get canceled ": 1}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	must(t, testutil.GatherAndCompare(r, strings.NewReader(`
# HELP jay_operation_documents_total Documents that operations have returned, counted or written.
# TYPE jay_operation_documents_total counter
jay_operation_documents_total{verb="get"} 1
jay_operation_documents_total{verb="put"} 1
`), "jay_operation_documents_total"))
}
