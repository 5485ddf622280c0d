package standby_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/standby"
)

// Reports the lag of standbys in this process, and the rate of their source beside that without any. JAY_STANDBY_LAG is for how many seconds
// each is measured, JAY_STANDBY_COUNT how many standbys there are.
func TestLag(t *testing.T) {
	seconds, err := strconv.Atoi(os.Getenv("JAY_STANDBY_LAG"))
	if err != nil {
		t.Skip("JAY_STANDBY_LAG is not set")
	}
	standbys := 1
	if text := os.Getenv("JAY_STANDBY_COUNT"); text != "" {
		standbys, err = strconv.Atoi(text)
		must(t, err)
	}
	dir := t.TempDir()
	db := jaytest.Open(t, filepath.Join(dir, "source"), nil)
	var rates [2][]float64
	var lags []time.Duration
	for round := range 6 {
		var all []*standby.Standby
		if round%2 == 1 {
			for i := range standbys {
				s, err := standby.Open(filepath.Join(dir, fmt.Sprint("copy", i)), standby.From(db), standby.Options{})
				must(t, err)
				all = append(all, s)
			}
			for _, s := range all {
				for s.Status().Lag > 2*time.Second || !s.Status().Readable {
					time.Sleep(time.Millisecond)
				}
			}
		}
		end := time.Now().Add(time.Duration(seconds) * time.Second)
		rates[round%2] = append(rates[round%2], insert(t, db, end, func() {
			for _, s := range all {
				lags = append(lags, s.Status().Lag)
			}
		}))
		for _, s := range all {
			must(t, s.Close())
		}
	}
	slices.Sort(lags)
	t.Logf("inserts a second without standbys %.0f, with %d %.0f; %d looks at the lag: p50 %v, p99 %v, max %v", rates[0], standbys, rates[1], len(lags), lags[len(lags)/2], lags[len(lags)*99/100], lags[len(lags)-1])
	jaytest.Close(t, db)
}

// insert inserts documents of 300 bytes with 64 goroutines until an instant, and returns how many a second.
func insert(t *testing.T, db *jay.DB, end time.Time, look func()) float64 {
	t.Helper()
	begun := time.Now()
	var mu sync.Mutex
	total := 0
	var writers sync.WaitGroup
	body := json.RawMessage(fmt.Sprintf(`{"name":"Ann","text":%q}`, strings.Repeat("x", 270)))
	for range 64 {
		writers.Go(func() {
			n := 0
			for ; time.Now().Before(end); n++ {
				if _, err := db.Store(ctx, "Orders", body); err != nil {
					t.Error(err)
					return
				}
			}
			mu.Lock()
			defer mu.Unlock()
			total += n
		})
	}
	for time.Now().Before(end) {
		time.Sleep(20 * time.Millisecond)
		look()
	}
	writers.Wait()
	return float64(total) / time.Since(begun).Seconds()
}
