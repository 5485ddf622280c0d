// Command cluster measures identities of a cluster, and what a cluster costs other writes.
//
//	go run ./cluster [-for D] [-rounds R] [-pairs P] [-smoke]
//
// Three members of etcd run in this process, with syncs, on the disk of the temporary directory.
//
// The first table has numbers of one identity per second, by callers and nodes: of DB.NextIdentity,
// where one commit reserves numbers for all who wait, and of callers who each make a commit of their own
// under the condition that the counter is as they know it. The figures are medians of rounds, which
// take turns. Latencies are those of NextIdentity.
//
// The second table has inserts that need no agreement, into a database that is a member of the cluster and into two
// that are not, all three new. The samples of a pair follow each other, in an order drawn anew; the ratio is the
// median of the pairs with an interval that holds the true one with 95 % probability, beside that of the two databases
// without a cluster.
//
// It exits with status 1 if a number comes twice.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/embedded"
	"github.com/jaydb/jay/cluster/etcd"
)

func main() {
	during := flag.Duration("for", time.Second, "how long a sample of identities takes")
	rounds := flag.Int("rounds", 3, "samples of identities")
	pairs := flag.Int("pairs", 20, "pairs of samples of inserts")
	smoke := flag.Bool("smoke", false, "short samples, to see that it works")
	flag.Parse()
	if *smoke {
		*during, *rounds, *pairs = 100*time.Millisecond, 1, 6
	}
	if err := run(*during, *rounds, *pairs); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(during time.Duration, rounds, pairs int) (err error) {
	dir, err := os.MkdirTemp("", "jay-cluster-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	endpoints, stop, err := startMembers(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	var nodes []*node
	defer func() {
		for _, n := range nodes {
			err = errors.Join(err, n.db.Close(), n.coordinator.Close())
		}
	}()
	for i := range 3 {
		n, err := openNode(filepath.Join(dir, "node"+strconv.Itoa(i)), endpoints, string(rune('A'+i)))
		if err != nil {
			return err
		}
		nodes = append(nodes, n)
	}
	if err := identities(nodes, during, rounds); err != nil {
		return err
	}
	// A new node: those that have drawn numbers have records of them.
	member, err := openNode(filepath.Join(dir, "node3"), endpoints, "D")
	if err != nil {
		return err
	}
	nodes = append(nodes, member)
	return inserts(member.db, dir, pairs)
}

// startMembers starts three members of etcd, and returns their client URLs.
func startMembers(dir string) (endpoints []string, stop func() error, err error) {
	peers := make(map[string]string)
	names := []string{"a", "b", "c"}
	for _, name := range names {
		// The port is free now, and nothing else takes it here.
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, err
		}
		peers[name] = "http://" + l.Addr().String()
		if err := l.Close(); err != nil {
			return nil, nil, err
		}
	}
	var members []*embedded.Member
	stop = func() (err error) {
		for _, m := range members {
			err = errors.Join(err, m.Close())
		}
		return err
	}
	for _, name := range names {
		m, err := embedded.Start(embedded.Config{Name: name, Dir: filepath.Join(dir, name), Peers: peers, PeerURL: peers[name], ClientURL: "http://127.0.0.1:0"})
		if err != nil {
			return nil, nil, errors.Join(err, stop())
		}
		members = append(members, m)
		endpoints = append(endpoints, m.ClientURL())
	}
	for _, m := range members {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		err := m.Ready(ctx)
		cancel()
		if err != nil {
			return nil, nil, errors.Join(err, stop())
		}
	}
	return endpoints, stop, nil
}

// node is a database in the cluster.
type node struct {
	db          *jay.DB
	coordinator *etcd.Coordinator
}

func openNode(dir string, endpoints []string, tag string) (*node, error) {
	c, err := etcd.Open(etcd.Config{Endpoints: endpoints})
	if err != nil {
		return nil, err
	}
	db, err := jay.Open(dir, &jay.Options{Cluster: c, NodeTag: tag, Durability: jay.Relaxed})
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &node{db, c}, nil
}

// sample is what callers got in a time.
type sample struct {
	perSecond float64
	took      []time.Duration // of each call
}

// identities prints the table of identities.
func identities(nodes []*node, during time.Duration, rounds int) error {
	fmt.Printf("identities of one name, %d samples of %v\n\n| nodes | callers | combined, /s | uncombined, /s | combined ÷ uncombined | p50, ms | p90, ms | p99, ms |\n|---|---|---|---|---|---|---|---|\n", rounds, during)
	for _, n := range []int{1, 3} {
		for _, callers := range []int{1, 16, 64} {
			var combined, alone []float64
			var took []time.Duration
			for round := range rounds {
				name := fmt.Sprintf("bench-%d-%d-%d", n, callers, round)
				for _, combine := range [][]bool{{true, false}, {false, true}}[round%2] {
					next := func(ctx context.Context, caller int) (int64, error) {
						return nodes[caller%n].db.NextIdentity(ctx, name)
					}
					if !combine {
						next = uncombined(nodes[:n], "uncombined/"+name, callers)
					}
					s, err := draw(next, callers, during)
					if err != nil {
						return err
					}
					if combine {
						combined, took = append(combined, s.perSecond), append(took, s.took...)
					} else {
						alone = append(alone, s.perSecond)
					}
				}
			}
			slices.Sort(took)
			fmt.Printf("| %d | %d | %.0f | %.0f | %.1f | %s | %s | %s |\n", n, callers, median(combined), median(alone), median(combined)/median(alone), at(took, .5), at(took, .9), at(took, .99))
		}
	}
	fmt.Println()
	return nil
}

// draw has callers take numbers for a while. A number that comes twice is an error.
func draw(next func(ctx context.Context, caller int) (int64, error), callers int, during time.Duration) (sample, error) {
	numbers, took, failures := make([][]int64, callers), make([][]time.Duration, callers), make([]error, callers)
	var group sync.WaitGroup
	ctx, cancel := context.WithTimeout(context.Background(), during+time.Minute)
	defer cancel()
	if _, err := next(ctx, 0); err != nil { // the first one makes records
		return sample{}, err
	}
	begin := time.Now()
	for caller := range callers {
		group.Go(func() {
			for time.Since(begin) < during && failures[caller] == nil {
				began := time.Now()
				n, err := next(ctx, caller)
				numbers[caller], took[caller], failures[caller] = append(numbers[caller], n), append(took[caller], time.Since(began)), err
			}
		})
	}
	group.Wait()
	elapsed := time.Since(begin)
	if err := errors.Join(failures...); err != nil {
		return sample{}, err
	}
	all := slices.Concat(numbers...)
	count := len(all)
	slices.Sort(all)
	if len(slices.Compact(all)) != count {
		return sample{}, errors.New("a number came twice")
	}
	return sample{float64(count) / elapsed.Seconds(), slices.Concat(took...)}, nil
}

// uncombined returns a function with which each caller raises the counter itself: a commit of the
// counter and of a record of its own, as the database makes it, on the condition that the counter is
// as the last answer had it.
func uncombined(nodes []*node, name string, callers int) func(context.Context, int) (int64, error) {
	known := make([]cluster.Record, callers)
	return func(ctx context.Context, caller int) (int64, error) {
		c := nodes[caller%len(nodes)].coordinator
		for {
			last, _ := strconv.ParseInt(string(known[caller].Value), 10, 64)
			text := []byte(strconv.FormatInt(last+1, 10))
			result, err := c.Commit(ctx, []cluster.Condition{{Key: name, Index: known[caller].Index}},
				[]cluster.Change{{Key: name, Value: text}, {Key: fmt.Sprint(name, "/", caller), Value: text}})
			if err != nil {
				return 0, err
			}
			if result.Committed() {
				known[caller] = cluster.Record{Index: result.Index, Value: text}
				return last + 1, nil
			}
			known[caller] = result.Actual[0]
		}
	}
}

// inserts prints the table of inserts that need no agreement.
func inserts(member *jay.DB, dir string, pairs int) (err error) {
	dbs := []*jay.DB{nil, member, nil} // alone, member, and another one alone
	for _, i := range []int{0, 2} {
		db, openErr := jay.Open(filepath.Join(dir, "single"+strconv.Itoa(i)), &jay.Options{NodeTag: "D", Durability: jay.Relaxed})
		if openErr != nil {
			return openErr
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		dbs[i] = db
	}
	const documents = 3000
	fmt.Printf("%d inserts one by one, %d pairs\n\n| ID | alone, µs | member, µs | member ÷ alone | alone ÷ alone | allocations alone | member |\n|---|---|---|---|---|---|---|\n", documents, pairs)
	body := []byte(`{"Name":"Ann","Lines":[{"Product":"pencil","Quantity":12}]}`)
	ctx := context.Background()
	serial := 0
	for _, kind := range []struct {
		name   string
		insert func(db *jay.DB) error
	}{
		{"HiLo", func(db *jay.DB) error { _, err := db.Store(ctx, "Orders", body); return err }},
		{"server-side", func(db *jay.DB) error { _, err := db.Put(ctx, "orders/", body); return err }},
		{"GUID", func(db *jay.DB) error { _, err := db.Put(ctx, "", body); return err }},
		{"semantic", func(db *jay.DB) error {
			serial++
			_, err := db.Put(ctx, "orders/s"+strconv.Itoa(serial), body)
			return err
		}},
	} {
		var alone, ratios, same, allocs, memberAllocs []float64
		for pair := range pairs + 1 { // the first fills caches
			// Each of the three gets one sample of a pair, so that they have as many documents.
			var took, made [3]float64
			for _, i := range rand.Perm(3) {
				db := dbs[i]
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				begin := time.Now()
				for range documents {
					if err := kind.insert(db); err != nil {
						return err
					}
				}
				took[i] = time.Since(begin).Seconds() * 1e6 / documents
				runtime.ReadMemStats(&after)
				made[i] = float64(after.Mallocs-before.Mallocs) / documents
			}
			if pair == 0 {
				continue
			}
			alone = append(alone, took[0])
			ratios, same = append(ratios, took[1]/took[0]), append(same, took[2]/took[0])
			allocs, memberAllocs = append(allocs, made[0]), append(memberAllocs, made[1])
		}
		fmt.Printf("| %s | %.1f | %.1f | %s | %s | %.1f | %.1f |\n", kind.name, median(alone), median(alone)*median(ratios), interval(ratios), interval(same), median(allocs), median(memberAllocs))
	}
	return nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// interval returns the median, and order statistics around it that hold the true one
// with 95 % probability, by the normal approximation of the binomial distribution.
func interval(values []float64) string {
	sorted := slices.Sorted(slices.Values(values))
	half := 1.96 * math.Sqrt(float64(len(sorted))) / 2
	lo := max(int(float64(len(sorted))/2-half), 0)
	hi := min(int(math.Ceil(float64(len(sorted))/2+half)), len(sorted)-1)
	return fmt.Sprintf("%.3f (%.3f–%.3f)", median(values), sorted[lo], sorted[hi])
}

// at returns a quantile of sorted times, in milliseconds.
func at(sorted []time.Duration, q float64) string {
	return fmt.Sprintf("%.2f", sorted[int(q*float64(len(sorted)-1))].Seconds()*1e3)
}
