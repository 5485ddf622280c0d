//go:build unix

package cluster_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// clients is how many callers a workload has, spread over the nodes.
const clients = 16

// kindsOfCalls is how many kinds of calls a client makes: see workload.client.
const kindsOfCalls = 8

// The names that all clients of all nodes share.
var (
	identityNames = []string{"invoices|", "orders|"}
	exchangeKeys  = []string{"leader", "locks/1", "locks/2"}
)

// workload is clients that make documents under every kind of ID, draw numbers and exchange
// values, while the test does what it does to nodes and coordinators.
type workload struct {
	t       *testing.T
	nodes   []*node
	history history
	within  time.Duration // the deadline of each call that needs a majority
	ending  atomic.Bool
	running sync.WaitGroup

	mu     sync.Mutex
	ids    map[string]string // made by Jay, with the node that has the document. Guarded by mu.
	drawn  map[string]bool   // "invoices/7" of numbers that were drawn without a document. Guarded by mu.
	claims map[string]string // the documents that were claimed with a key, with their node. Guarded by mu.
	counts map[string]int    // of calls by verb and kind of error. Guarded by mu.
	agreed map[string]int    // draws and exchanges that have succeeded, by node. Guarded by mu.
	failed map[string]int    // draws that have failed, by identity. Guarded by mu.
	alone  map[string]int    // documents that needed no majority, by node. Guarded by mu.
}

// startWorkload starts the clients, whose calls that need a majority have a deadline. finish
// ends them.
func startWorkload(t *testing.T, nodes []*node, within time.Duration) *workload {
	w := &workload{t: t, nodes: nodes, within: within, ids: make(map[string]string), drawn: make(map[string]bool), claims: make(map[string]string), counts: make(map[string]int), agreed: make(map[string]int), alone: make(map[string]int), failed: make(map[string]int)}
	for i := range clients {
		w.running.Go(func() { w.client(i, rand.New(rand.NewPCG(uint64(i), 21))) })
	}
	return w
}

// client makes calls of one node until the workload ends.
func (w *workload) client(i int, random *rand.Rand) {
	n := w.nodes[i%len(w.nodes)]
	known := make(map[string]uint64) // indexes of keys, as this client has seen them last
	for k := 0; !w.ending.Load(); k++ {
		value := fmt.Sprintf("%d-%d", i, k)
		var err error
		switch random.IntN(kindsOfCalls) {
		case 0:
			err = w.document(n, request{Verb: "put", ID: fmt.Sprintf("things/%d-%d", i, k)})
		case 1:
			err = w.document(n, request{Verb: "put"}) // a GUID
		case 2:
			err = w.document(n, request{Verb: "put", ID: "logs/"})
		case 3:
			err = w.document(n, request{Verb: "store"})
		case 4, 5, 6:
			err = w.draw(i, n, request{Verb: "put", ID: identityNames[random.IntN(2)]})
		case 7:
			err = w.draw(i, n, request{Verb: "next", ID: identityNames[random.IntN(2)]})
		case 8:
			key := exchangeKeys[random.IntN(len(exchangeKeys))]
			err = w.exchange(i, n, request{Verb: "read", ID: key}, known)
		case 9:
			key := exchangeKeys[random.IntN(len(exchangeKeys))]
			err = w.exchange(i, n, request{Verb: "remove", ID: key, Index: max(1, known[key])}, known)
		case 10:
			err = w.claim(i, n, value, random)
		default:
			key := exchangeKeys[random.IntN(len(exchangeKeys))]
			err = w.exchange(i, n, request{Verb: "exchange", ID: key, Index: known[key], Value: value}, known)
		}
		if errors.Is(err, errGone) { // the test has killed the node, and starts it again
			time.Sleep(20 * time.Millisecond)
		} else if err != nil {
			w.t.Error(err)
			return
		}
	}
}

// call makes a call, and counts what came of it.
func (w *workload) call(n *node, r request) (reply, error) {
	out, err := n.call(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	kind := out.Kind
	if errors.Is(err, errGone) {
		kind = "gone"
	}
	w.counts[strings.TrimSpace(r.Verb+" "+kind)]++
	if err == nil && kind == "" && r.Within > 0 {
		w.agreed[n.name]++
	} else if err == nil && kind == "" {
		w.alone[n.name]++
	}
	return out, err
}

// agree waits until each of the nodes has made some calls more that need a majority.
func (w *workload) agree(nodes ...*node) { w.more("that need a majority", w.agreed, 20, nodes) }

// goOn waits until each of the nodes has made some documents more that need none.
func (w *workload) goOn(nodes ...*node) { w.more("that need no majority", w.alone, 8, nodes) }

func (w *workload) more(what string, counts map[string]int, calls int, nodes []*node) {
	w.t.Helper()
	w.mu.Lock()
	before := maps.Clone(counts)
	w.mu.Unlock()
	for _, n := range nodes {
		eventually(w.t, "calls of node "+n.name+" "+what, func() error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.t.Failed() {
				return nil // finish ends the test
			}
			if made := counts[n.name] - before[n.name]; made < calls {
				return fmt.Errorf("%d of %d", made, calls)
			}
			return nil
		})
	}
}

// document stores a document whose ID needs no majority: that must not fail but for a node
// that has gone, whatever the network does.
func (w *workload) document(n *node, r request) error {
	r.Value = `{}`
	out, err := w.call(n, r)
	if err != nil {
		return err
	}
	if err := out.err(); err != nil {
		return fmt.Errorf("node %s: %s %q needs no majority: %w", n.name, r.Verb, r.ID, err)
	}
	return w.made(n, out.ID)
}

// made notes an ID that Jay has made, and says so if it was made before.
func (w *workload) made(n *node, id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if other, twice := w.ids[id]; twice {
		return fmt.Errorf("the ID %s was made twice, on the nodes %s and %s", id, other, n.name)
	}
	w.ids[id] = n.name
	return nil
}

// draw stores a document under an identity, or draws a number without one.
func (w *workload) draw(client int, n *node, r request) error {
	r.Value, r.Within = `{}`, w.within
	call := w.history.begin()
	out, err := w.call(n, r)
	if err != nil || out.Kind != "" {
		w.mu.Lock()
		w.failed[r.ID]++
		w.mu.Unlock()
	}
	if err != nil {
		return err
	}
	switch out.Kind {
	case "":
	case kindNoMajority, kindUnknown, kindDeadline:
		return nil
	default:
		return fmt.Errorf("node %s: %s %s: %w", n.name, r.Verb, r.ID, out.err())
	}
	prefix := strings.TrimSuffix(r.ID, "|") + "/"
	number := out.Number
	if r.Verb == "put" {
		if number, err = strconv.ParseInt(strings.TrimPrefix(out.ID, prefix), 10, 64); err != nil {
			return fmt.Errorf("node %s: put %s has made %q: %w", n.name, r.ID, out.ID, err)
		}
	}
	w.history.drew(client, call, drawInput{r.ID, -1}, number)
	if r.Verb == "put" {
		return w.made(n, out.ID)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drawn[prefix+strconv.FormatInt(number, 10)] = true
	return nil
}

// exchange makes a call of compare exchange.
func (w *workload) exchange(client int, n *node, r request, known map[string]uint64) error {
	r.Within = w.within
	call := w.history.begin()
	in := valueInput{key: r.ID, read: r.Verb == "read", remove: r.Verb == "remove", expected: r.Index, value: r.Value}
	out, err := w.call(n, r)
	result := valueOutput{index: out.Index, value: out.Value}
	switch {
	case errors.Is(err, errGone):
		result = valueOutput{outcome: unknown}
	case err != nil:
		return err
	case out.Kind == "":
	case out.Kind == kindConflict:
		result.outcome = refused
	case out.Kind == kindNoMajority: // it has not happened
		return nil
	case out.Kind == kindUnknown, out.Kind == kindDeadline:
		result = valueOutput{outcome: unknown}
	default:
		return fmt.Errorf("node %s: %s %s: %w", n.name, r.Verb, r.ID, out.err())
	}
	if result.outcome != unknown {
		known[r.ID] = result.index
	} else if in.read {
		return err
	}
	w.history.exchanged(client, call, in, result)
	return err
}

// claim makes a value and a document together, as a program does that makes a name unique.
func (w *workload) claim(client int, n *node, value string, random *rand.Rand) error {
	key := fmt.Sprintf("names/%d", random.IntN(200))
	id := "claims/" + value
	call := w.history.begin()
	in := valueInput{key: key, value: `{"by":"` + value + `"}`}
	out, err := w.call(n, request{Verb: "claim", ID: key, Other: id, Value: in.value, Within: w.within})
	result := valueOutput{index: out.Index, value: in.value}
	switch {
	case errors.Is(err, errGone):
		result = valueOutput{outcome: unknown}
	case err != nil:
		return err
	case out.Kind == "":
		w.mu.Lock()
		w.claims[id] = n.name
		w.mu.Unlock()
	case out.Kind == kindConflict, out.Kind == kindNoMajority:
		return nil // that it was refused is in the history of those who read
	case out.Kind == kindUnknown, out.Kind == kindDeadline:
		result = valueOutput{outcome: unknown}
	default:
		return fmt.Errorf("node %s: claim %s: %w", n.name, key, out.err())
	}
	w.history.exchanged(client, call, in, result)
	return err
}

// finish ends the clients and checks what they got: no violation in the history, and every
// document that was acknowledged on its node.
func (w *workload) finish() {
	w.t.Helper()
	w.ending.Store(true)
	w.running.Wait()
	for _, name := range slices.Sorted(maps.Keys(w.counts)) {
		w.t.Logf("%6d %s", w.counts[name], name)
	}
	if w.t.Failed() {
		w.t.FailNow()
	}
	w.history.check(w.t)
	w.t.Logf("%d draws and %d exchanges are linearizable", len(w.history.draws), len(w.history.values))

	there := make(map[string]string) // IDs of documents, with their node
	for _, n := range w.nodes {
		for _, id := range n.must(request{Verb: "documents"}).IDs {
			if other, twice := there[id]; twice && !strings.HasPrefix(id, "Raven/") {
				w.t.Errorf("the nodes %s and %s both have a document %s", other, n.name, id)
			}
			there[id] = n.name
		}
	}
	for _, acknowledged := range []map[string]string{w.ids, w.claims} {
		for id, name := range acknowledged {
			if there[id] != name {
				w.t.Errorf("node %s has acknowledged %s; the document is on %q", name, id, there[id])
			}
		}
	}
	w.explained(there)
}

// explained checks that each number of an identity is in a document or was drawn without
// one, but for those that a call which failed may have used.
func (w *workload) explained(there map[string]string) {
	w.t.Helper()
	last := make(map[string]int64)
	for _, n := range w.nodes {
		for _, r := range n.must(request{Verb: "report"}).Report.Identities {
			last[r.Name] = max(last[r.Name], r.Last)
		}
	}
	for _, name := range identityNames {
		missing := 0
		for number := range last[name] {
			id := strings.TrimSuffix(name, "|") + "/" + strconv.FormatInt(number+1, 10)
			if there[id] == "" && !w.drawn[id] {
				missing++
			}
		}
		w.t.Logf("%s: %d numbers, %d without a document, %d calls that failed", name, last[name], missing, w.failed[name])
		if missing > w.failed[name] {
			w.t.Errorf("%s: %d of %d numbers are missing, and only %d calls have failed", name, missing, last[name], w.failed[name])
		}
		if last[name] == 0 {
			w.t.Errorf("%s: no number was drawn", name)
		}
	}
}
