package sqlkv_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay/internal/pgtest"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/sqlkv"
)

// rounds is how often the server is killed: JAY_SQL_KILLS, or a few.
func rounds(t *testing.T) int {
	if text := os.Getenv("JAY_SQL_KILLS"); text != "" {
		n, err := strconv.Atoi(text)
		must(t, err)
		return n
	}
	if testing.Short() {
		return 2
	}
	return 6
}

// Ensure that nothing that was acknowledged is lost, and nothing is done twice, when the server is killed again and again while two engines write: that
// engines go on by themselves when it is back, and that each number of a register is drawn once, in the order of the commits.
func TestKill(t *testing.T) {
	own, err := pgtest.Start()
	must(t, err)
	defer own.Stop()
	if !own.Own() {
		t.Skip("the server is not the tests' own")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	name := own.URL("jay_schema=killed")
	d := &sqlkv.Driver{Timeout: 10 * time.Second}
	engines := []storage.Engine{open(t, d, name), open(t, d, name)}

	type outcome struct {
		n     uint64 // the number that the transaction drew from the register
		known bool
	}
	var stop atomic.Bool
	var acknowledged atomic.Int64
	var writers sync.WaitGroup
	outcomes := make([][]outcome, 8)
	for w := range outcomes {
		e := engines[w%len(engines)]
		writers.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(w)))
			for i := 0; !stop.Load(); i++ {
				var n uint64
				err := e.Update(ctx, true, func(tx storage.Tx) error {
					n = 1
					value, closer, err := tx.Get([]byte("register"))
					switch {
					case err == nil:
						n = binary.BigEndian.Uint64(value) + 1
						closer.Close()
					case !errors.Is(err, storage.ErrNotFound):
						return err
					}
					tx.Set([]byte("register"), binary.BigEndian.AppendUint64(nil, n), nil)
					tx.Set(fmt.Appendf(nil, "log/%08d", n), fmt.Append(nil, w, " ", i), nil)
					tx.Add(fmt.Append(nil, "sum", random.IntN(3)), 1)
					return nil
				})
				switch {
				case err == nil:
					outcomes[w] = append(outcomes[w], outcome{n, true})
					acknowledged.Add(1)
				case errors.Is(err, storage.ErrUnknownOutcome):
					outcomes[w] = append(outcomes[w], outcome{n, false})
				case errors.Is(err, storage.ErrUnavailable):
					time.Sleep(time.Millisecond)
				default:
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	for range rounds(t) {
		before := acknowledged.Load()
		for until := time.Now().Add(time.Minute); acknowledged.Load() < before+50; time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				t.Fatal("the engines do not go on")
			}
		}
		time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
		must(t, own.Kill())
		must(t, own.Restart())
	}
	stop.Store(true)
	writers.Wait()

	e := open(t, d, name)
	there := make(map[uint64]string)
	it, err := e.Iterate([]byte("log/"), []byte("log0"))
	must(t, err)
	for ok := it.First(); ok; ok = it.Next() {
		n, err := strconv.ParseUint(string(it.Key()[4:]), 10, 64)
		must(t, err)
		there[n] = string(it.Value())
	}
	must(t, errors.Join(it.Error(), it.Close()))
	register := binary.BigEndian.Uint64([]byte(get(t, e, "register")))
	equal(t, uint64(len(there)), register)
	equal(t, number(t, e, "sum0")+number(t, e, "sum1")+number(t, e, "sum2"), int64(register))
	unknown := 0
	for w, all := range outcomes {
		last := uint64(0)
		for _, o := range all {
			if !o.known {
				unknown++
				continue
			}
			if by := there[o.n]; o.n <= last || by == "" || by[0] != byte('0'+w) {
				t.Errorf("writer %d was told that it has drawn %d, after %d, and that is of %q", w, o.n, last, by)
			}
			last = o.n
		}
	}
	t.Logf("%d commits, %d acknowledged, %d of unknown outcome", register, acknowledged.Load(), unknown)
	for _, e := range append(engines, e) {
		must(t, e.Close())
	}
}
