package txn_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jaydb/jay/internal/pgtest"
)

// failovers is the environment variable with the number of failovers that TestFailover makes.
const failovers = "JAY_SQL_FAILOVERS"

// writesGoOn returns how long after a moment a write was acknowledged that began after it, in any process.
func (tr *trial) writesGoOn(after string, since time.Time) time.Duration {
	tr.t.Helper()
	for until := time.Now().Add(tr.patience); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		first := int64(0)
		tr.mu.Lock()
		for _, l := range tr.writes {
			if l.Begin > since.UnixNano() && (first == 0 || l.End < first) {
				first = l.End
			}
		}
		tr.mu.Unlock()
		if first > 0 {
			return time.Duration(first - since.UnixNano())
		}
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.t.Fatalf("after %s, no write succeeds in %s; the last error: %+v", after, tr.patience, tr.failed)
	return 0
}

// Ensure that three processes with eight goroutines each go on when PostgreSQL fails over to a synchronous standby, as the machine of the primary server is
// killed, cut off from everything, cut off from the other machines only, or stands still and comes back, and that all that TestProcesses checks holds.
func TestFailover(t *testing.T) {
	if os.Getenv(failovers) == "" {
		t.Skip("run by make postgres, with " + failovers)
	}
	rounds, err := strconv.Atoi(os.Getenv(failovers))
	must(t, err)
	cluster, err := pgtest.StartCluster()
	must(t, err)
	defer func() {
		if t.Failed() {
			t.Log(cluster.Logs())
		}
		must(t, cluster.Stop())
	}()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	url := cluster.URL("jay_schema=processes")
	tr := newTrial(t, url, url, failoverPatience)
	workers := make([]*worker, 3)
	for i := range workers {
		workers[i] = tr.start()
	}
	tr.goesOn("the start")

	faults := []struct {
		name       string
		make, mend func(n *pgtest.Node) error
	}{
		{"the kill of the primary server's machine", func(n *pgtest.Node) error { return n.Signal(syscall.SIGKILL) }, (*pgtest.Node).Start},
		{"the cut of its line", (*pgtest.Node).Pull, (*pgtest.Node).Plug},
		{"its standstill", func(n *pgtest.Node) error { return n.Signal(syscall.SIGSTOP) }, func(n *pgtest.Node) error { return n.Signal(syscall.SIGCONT) }},
		{"the cut between it and the other machines", (*pgtest.Node).Part, (*pgtest.Node).Join},
	}
	took := make(map[string][]time.Duration)
	for round := range rounds {
		i := round % len(faults)
		if i == 0 && rounds >= len(faults) {
			random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		}
		fault := faults[i]
		primary, err := cluster.Whole(tr.patience)
		must(t, err)
		time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
		begun := time.Now()
		must(t, fault.make(primary))
		took[fault.name] = append(took[fault.name], tr.writesGoOn(fault.name, time.Now()))
		tr.goesOn(fault.name)
		must(t, fault.mend(primary))
		next, err := cluster.Whole(tr.patience)
		must(t, err)
		if next == primary {
			t.Errorf("after %s, %s is the primary server again: that was no failover", fault.name, next.Name())
		}
		tr.goesOn("the return of the machine")
		t.Logf("%s, %s: writes went on after %s, and all machines after %s", primary.Name(), fault.name, took[fault.name][len(took[fault.name])-1].Round(100*time.Millisecond), time.Since(begun).Round(100*time.Millisecond))
	}
	for name, all := range took {
		slices.Sort(all)
		t.Logf("%s: writes went on after %s to %s, of %d", name, all[0], all[len(all)-1], len(all))
	}
	tr.finish(workers)
	if len(took) == 0 {
		t.Error(errors.New("no failover was made"))
	}
}
