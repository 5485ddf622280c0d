package standby_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/child"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/standby"
)

// The directory of what the processes that TestKill kills share: the databases, and the address of the source.
const (
	killSourceVariable  = "JAY_KILL_STANDBY_SOURCE"
	killStandbyVariable = "JAY_KILL_STANDBY"
)

const killWriters = 4

// TestKill_Source is the process of the source: each of its writers counts in two documents at once, and says so.
func TestKill_Source(t *testing.T) {
	dir := os.Getenv(killSourceVariable)
	if dir == "" {
		t.Skip("only in a process of TestKill")
	}
	db, err := jay.Open(filepath.Join(dir, "source"), &jay.Options{MemTableBytes: 1 << 20})
	must(t, err)
	must(t, db.EnsureIndex(ctx, "Twins", jay.Index{Name: "n", Fields: []string{"n"}}))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = standby.Serve(r.Context(), db, flushing{w}, r.Body) // the standby has left
	}))
	must(t, os.WriteFile(filepath.Join(dir, "address.tmp"), []byte(server.URL), 0o600))
	must(t, os.Rename(filepath.Join(dir, "address.tmp"), filepath.Join(dir, "address")))
	failed := make(chan error)
	for w := range killWriters {
		go func() {
			for {
				n := 0
				err := db.Update(ctx, func(tx *jay.Tx) error {
					doc, err := tx.Get(ctx, fmt.Sprintf("twins/%d/a", w))
					if err == nil {
						n, err = twin(doc)
					}
					if n++; err != nil && n > 1 {
						return err
					}
					for _, name := range []string{"a", "b"} {
						body := fmt.Appendf(nil, `{"n":%d,"pad":%q}`, n, strings.Repeat("x", n%2000))
						if _, err := tx.Put(ctx, fmt.Sprintf("twins/%d/%s", w, name), body, jay.InCollection("Twins")); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					failed <- err
					return
				}
				fmt.Printf("ack %d %d %d\n", w, n, time.Now().UnixNano())
			}
		}()
	}
	t.Fatal(<-failed)
}

func twin(doc *jay.Document) (int, error) {
	var body struct{ N int }
	err := json.Unmarshal(doc.Body(), &body)
	return body.N, err
}

// fromFile is a source whose address is in a file, as it changes with each process.
type fromFile string

func (f fromFile) Stream(ctx context.Context, request []byte) (io.ReadCloser, error) {
	address, err := os.ReadFile(string(f))
	if err != nil {
		return nil, err
	}
	return standby.URL(nil, string(address)).Stream(ctx, request)
}

// TestKill_Standby is the process of the standby: it says again and again which moment it has, and how far each writer has come in it.
func TestKill_Standby(t *testing.T) {
	dir := os.Getenv(killStandbyVariable)
	if dir == "" {
		t.Skip("only in a process of TestKill")
	}
	s, err := standby.Open(filepath.Join(dir, "copy"), fromFile(filepath.Join(dir, "address")), standby.Options{Retry: 200 * time.Millisecond})
	must(t, err)
	for {
		db, err := s.DB(ctx)
		must(t, err)
		moment := s.Status().Moment
		line := fmt.Sprint("saw ", moment.UnixNano())
		err = db.View(ctx, func(tx *jay.Tx) error {
			for w := range killWriters {
				var counts [2]int
				for i, name := range []string{"a", "b"} {
					doc, err := tx.Get(ctx, fmt.Sprintf("twins/%d/%s", w, name))
					if err == nil {
						counts[i], err = twin(doc)
					}
					if err != nil && counts[i] > 0 {
						return err
					}
				}
				if counts[0] != counts[1] {
					return fmt.Errorf("writer %d: half of a commit: %v", w, counts)
				}
				line += fmt.Sprint(" ", counts[0])
			}
			return nil
		})
		must(t, err)
		fmt.Println(line)
		time.Sleep(time.Millisecond)
	}
}

// Ensure that kill -9 of the source and of the standby, each at any time, never shows half of a commit in the standby, takes nothing back that
// it has shown, and never makes it claim a moment that it has not come to. JAY_KILL_STANDBY_KILLS is the number of kills.
func TestKill(t *testing.T) {
	kills := 6
	if text := os.Getenv("JAY_KILL_STANDBY_KILLS"); text != "" {
		var err error
		kills, err = strconv.Atoi(text)
		must(t, err)
	}
	dir := t.TempDir()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	type line struct {
		at     int64
		counts [killWriters]int
	}
	var acks, saws []line
	newest := line{}
	var sides sync.WaitGroup
	var copied atomic.Bool // the standby has been killed as often as it is to be
	side := func(test, variable string, seed uint64, last *atomic.Bool, take func(words []int64)) {
		sides.Go(func() {
			random := rand.New(rand.NewPCG(seed, 0))
			for n := range kills / 2 {
				p := child.Start(t, test, variable+"="+dir)
				left := 1 + random.IntN(300)
				p.KillAt(func(text string) bool {
					words := strings.Fields(text)
					var numbers []int64
					for _, word := range words[min(1, len(words)):] {
						n, err := strconv.ParseInt(word, 10, 64)
						if err != nil {
							return false // a line of the test binary
						}
						numbers = append(numbers, n)
					}
					if len(numbers) > 0 && (words[0] == "ack" || words[0] == "saw") {
						take(numbers)
						left--
					}
					// A standby without a source has nothing to see: the last process of the source outlives it.
					return left <= 0 && (last == nil || n < kills/2-1 || last.Load())
				})
			}
			if last == nil {
				copied.Store(true)
			}
		})
	}
	side("TestKill_Source", killSourceVariable, seed, &copied, func(n []int64) {
		newest.at = n[2]
		newest.counts[n[0]] = max(newest.counts[n[0]], int(n[1]))
		acks = append(acks, newest)
	})
	side("TestKill_Standby", killStandbyVariable, seed+1, nil, func(n []int64) {
		saw := line{at: n[0]}
		for w := range saw.counts {
			saw.counts[w] = int(n[1+w])
		}
		saws = append(saws, saw)
	})
	sides.Wait()

	// Lines of acknowledgements are in the order in which they were printed, and so nearly in that of their instants.
	var before line
	next := 0
	for i, saw := range saws {
		for w := range saw.counts {
			if i > 0 && saw.counts[w] < saws[i-1].counts[w] {
				t.Errorf("writer %d: the standby had %d, and then %d", w, saws[i-1].counts[w], saw.counts[w])
			}
		}
		for ; next < len(acks) && acks[next].at <= saw.at; next++ {
			before = acks[next]
		}
		for w := range saw.counts {
			if before.at > 0 && saw.counts[w] < before.counts[w] {
				t.Errorf("writer %d: the standby claims the moment %d with %d; %d was acknowledged at %d", w, saw.at, saw.counts[w], before.counts[w], before.at)
			}
		}
	}
	db := jaytest.Open(t, filepath.Join(dir, "source"), nil)
	s, err := standby.Open(filepath.Join(dir, "copy"), standby.From(db), standby.Options{})
	must(t, err)
	await(t, s, db)
	jaytest.Verify(t, read(t, s))
	must(t, s.Close())
	jaytest.Close(t, db)
	t.Logf("%d acknowledgements, %d looks, the last at %v", len(acks), len(saws), newest.counts)
	if len(acks) == 0 || len(saws) == 0 {
		t.Error("nothing was seen")
	}
}
