package calls_test

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster/clustertest"
	"github.com/jaydb/jay/internal/jaytest"
)

// Ensure that what is written through members of a cluster is agreed on as what they write themselves: no number comes twice, and of two values of a compare-exchange key
// one is stored.
func TestCalls_Cluster(t *testing.T) {
	m := clustertest.NewMemory()
	var nodes, through []*jay.DB
	for _, tag := range []string{"A", "B"} {
		dir := t.TempDir()
		nodes = append(nodes, owned(t, dir, jay.Options{Cluster: m.Connect(), NodeTag: tag, ClusterPeriod: 100 * time.Millisecond}))
		through = append(through, lookInto(t, dir))
	}
	var mu sync.Mutex
	seen := make(map[int64]int)
	var group sync.WaitGroup
	for _, db := range append(nodes, through...) {
		group.Go(func() {
			for range 10 {
				n, err := db.NextIdentity(ctx, "bills")
				jaytest.Must(t, err)
				put, err := db.Put(ctx, "bills|", json.RawMessage(`{}`))
				jaytest.Must(t, err)
				mu.Lock()
				seen[n]++
				seen[jaytest.NumberAfter(put.ID, "bills/")]++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	for n, times := range seen {
		if times > 1 || n < 1 {
			t.Errorf("number %d came %d times", n, times)
		}
	}
	if len(seen) != 80 {
		t.Errorf("%d numbers, want 80", len(seen))
	}
	if _, err := through[0].CompareExchange().Put(ctx, "lock", 1, 0); err != nil {
		t.Error(err)
	}
	if _, err := through[1].CompareExchange().Put(ctx, "lock", 2, 0); !errors.Is(err, jay.ErrConflict) {
		t.Errorf("the second value: %v", err)
	}
	if v, err := nodes[1].CompareExchange().Get(ctx, "lock"); err != nil || string(v.Value) != "1" {
		t.Errorf("the value: %v, %v", v, err)
	}
}
