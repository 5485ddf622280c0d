package txn_test

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
)

// txn is a transaction as its caller saw it. Those that came to nothing are
// kept, too: what they were shown must have been of one moment, and no other may
// have seen what they wrote.
type txn struct {
	name       string
	begin, end int64 // by the clock of the history
	committed  bool
	order      uint64 // of its commit, by its etags; 0 if it wrote nothing
	acts       []act
}

// act is one thing that a transaction did. Every body ever written holds a
// token of its own; "" stands for a document that is not there.
type act struct {
	kind  actKind
	key   string            // folded ID
	token string            // read or written
	scope jay.Scan          // of a walk
	found map[string]string // by a walk: tokens by key
	last  string            // the key where a walk was broken off; "" if it came to the end
}

type actKind string

const (
	actRead  actKind = "r"
	actWrite actKind = "w" // a delete writes ""
	actWalk  actKind = "walk"
)

func (a act) String() string {
	if a.kind == actWalk {
		return fmt.Sprintf("walk(%s%s>%s..%s)%v", a.scope.Collection, a.scope.Prefix, a.scope.After, a.last, a.found)
	}
	return fmt.Sprintf("%s(%s)=%s", a.kind, a.key, a.token)
}

func (t *txn) String() string {
	outcome := "lost"
	if t.committed {
		outcome = fmt.Sprintf("committed as %d", t.order)
	}
	return fmt.Sprintf("%s [%d,%d] %s: %v", t.name, t.begin, t.end, outcome, t.acts)
}

// collectionOfKey is where the documents of a history lie: those under x/ are
// away from home.
func collectionOfKey(key string) string {
	kind, _, _ := strings.Cut(key, "/")
	return map[string]string{"users": "Users", "x": "Users", "orders": "Orders"}[kind]
}

func (a act) covers(key string) bool {
	return (a.scope.Collection == "" || a.scope.Collection == collectionOfKey(key)) &&
		strings.HasPrefix(key, ids.Fold(a.scope.Prefix)) && key > ids.Fold(a.scope.After) &&
		(a.last == "" || key <= a.last)
}

// revision is a state of a document between two commits.
type revision struct {
	order uint64
	token string
	by    *txn // nil for the start
}

// seen is what a transaction was shown of a document that it had not written.
type seen struct {
	key, token string
	walk       bool // and by nothing but a walk
}

// dependency is an edge: to comes after from in every serial order.
type dependency struct {
	to   int
	kind string // ww, wr, rw, or "time"
	key  string
	walk bool // an rw on what a walk was shown
}

// graph is the dependencies between transactions, in the way of Adya's thesis
// and of Elle (Kingsbury and Alvaro, VLDB 2020), but for the order of the
// revisions of a document, which the etags show. Nodes behind the transactions
// are moments: what ended before one comes before what began after it.
type graph struct {
	txns  []*txn
	keys  []string
	revs  map[string][]revision
	edges [][]dependency
	left  map[int]bool // nodes that can be on a cycle
	found []string     // anomalies
}

// anomalies returns what in a history cannot be of one transaction after the
// other, in an order that respects the clock: the name of the anomaly and the
// transactions that make it. Of those that are found as cycles, only the first
// is reported.
func anomalies(txns []*txn) []string {
	g := &graph{txns: txns, revs: make(map[string][]revision), edges: make([][]dependency, len(txns))}
	g.order()
	index := make(map[*txn]int)
	for i, t := range txns {
		index[t] = i
	}
	// Those that ended earlier come first: each takes the earliest moment that
	// fits, which leaves the most room for the others.
	byEnd := slices.SortedFunc(slices.Values(txns), func(a, b *txn) int { return int(a.end - b.end) })
	moments := []uint64{0} // the latest moment of those that ended, one after the other
	for _, t := range byEnd {
		ended := sort.Search(len(moments)-1, func(i int) bool { return byEnd[i].end >= t.begin })
		reads := g.external(t)
		chosen, moment := g.place(t, reads, moments[ended])
		moments = append(moments, max(moments[len(moments)-1], moment))
		i := index[t]
		for j, r := range reads {
			revs := g.revs[r.key]
			if chosen[j] < 0 {
				continue
			}
			if by := revs[chosen[j]].by; by != nil && by != t {
				g.edge(index[by], dependency{i, "wr", r.key, false})
			}
			if chosen[j]+1 < len(revs) && revs[chosen[j]+1].by != t {
				g.edge(i, dependency{index[revs[chosen[j]+1].by], "rw", r.key, r.walk})
			}
		}
	}
	for key, revs := range g.revs {
		for i := 2; i < len(revs); i++ {
			g.edge(index[revs[i-1].by], dependency{index[revs[i].by], "ww", key, false})
		}
	}
	g.clock()
	g.cycles()
	return g.found
}

func (g *graph) edge(from int, d dependency) { g.edges[from] = append(g.edges[from], d) }

func (g *graph) report(name string, txns ...*txn) {
	var b strings.Builder
	b.WriteString(name)
	for _, t := range txns {
		fmt.Fprintf(&b, "\n    %v", t)
	}
	g.found = append(g.found, b.String())
}

// order collects the revisions of every document.
func (g *graph) order() {
	committed := slices.Clone(g.txns)
	committed = slices.DeleteFunc(committed, func(t *txn) bool { return t.order == 0 })
	slices.SortStableFunc(committed, func(a, b *txn) int { return int(int64(a.order) - int64(b.order)) })
	for i, t := range committed {
		if i > 0 && committed[i-1].order == t.order {
			g.report("two commits with one etag", committed[i-1], t)
		}
		if !t.committed {
			g.report("a result without a commit", t)
			continue
		}
		for key, token := range t.finals() {
			if g.revs[key] == nil {
				g.revs[key] = []revision{{}}
			}
			g.revs[key] = append(g.revs[key], revision{t.order, token, t})
		}
	}
	g.keys = slices.Sorted(maps.Keys(g.revs))
}

// finals are the last writes of a transaction.
func (t *txn) finals() map[string]string {
	finals := make(map[string]string)
	for _, a := range t.acts {
		if a.kind == actWrite {
			finals[a.key] = a.token
		}
	}
	return finals
}

// external returns what t was shown of the writes of others, and reports what
// can be seen without a graph.
func (g *graph) external(t *txn) []seen {
	own := make(map[string]string)
	shown := make(map[string]seen)
	read := func(key, token string, walk bool) {
		if mine, wrote := own[key]; wrote {
			if mine != token {
				g.report(fmt.Sprintf("own write not seen: %s is %q, not %q", key, token, mine), t)
			}
			return
		}
		if before, again := shown[key]; again {
			if before.token != token {
				name := "non-repeatable read"
				if walk && before.token == "" {
					name = "phantom"
				}
				g.report(fmt.Sprintf("%s: %s was %q, then %q", name, key, before.token, token), t)
			}
			before.walk = before.walk && walk
			shown[key] = before
			return
		}
		shown[key] = seen{key, token, walk}
	}
	for _, a := range t.acts {
		switch a.kind {
		case actWrite:
			own[a.key] = a.token
		case actRead:
			read(a.key, a.token, false)
		case actWalk:
			for key, token := range a.found {
				if !a.covers(key) {
					g.report("a walk out of its range", t)
				}
				read(key, token, true)
			}
			for _, key := range g.keys {
				if _, found := a.found[key]; !found && a.covers(key) {
					read(key, "", true)
				}
			}
			for key, token := range own {
				if _, found := a.found[key]; !found && token != "" && g.revs[key] == nil && a.covers(key) {
					g.report("own write not seen: "+key, t)
				}
			}
		}
	}
	return slices.SortedFunc(maps.Values(shown), func(a, b seen) int { return strings.Compare(a.key, b.key) })
}

// place finds the revision of each read, or -1, and the moment that t saw: the
// commit before it, not before low. The absence of a document is not marked:
// of several, the one that fits is taken.
func (g *graph) place(t *txn, reads []seen, low uint64) (chosen []int, moment uint64) {
	chosen = make([]int, len(reads))
	high := ^uint64(0)
	var moments []uint64
	for i, r := range reads {
		revs := g.revs[r.key]
		chosen[i] = slices.IndexFunc(revs, func(v revision) bool { return v.token == r.token })
		if r.token == "" {
			for _, v := range revs {
				if v.token == "" {
					moments = append(moments, v.order)
				}
			}
			continue
		}
		if chosen[i] < 0 {
			g.unknown(t, r)
			continue
		}
		low = max(low, revs[chosen[i]].order)
		if chosen[i]+1 < len(revs) {
			high = min(high, revs[chosen[i]+1].order)
		}
	}
	if t.order > 0 {
		low, moments = max(low, t.order-1), nil // where it stands is known
	}
	moments = append(moments, low)
	slices.Sort(moments)
	best := low
	for _, moment := range moments {
		if moment >= low && moment < high && !slices.ContainsFunc(reads, func(r seen) bool {
			return r.token == "" && len(g.revs[r.key]) > 0 && g.revs[r.key][g.at(r.key, moment)].token != ""
		}) {
			best = moment
			break
		}
	}
	for i, r := range reads {
		if revs := g.revs[r.key]; r.token == "" && len(revs) > 0 {
			chosen[i] = g.at(r.key, best)
			for revs[chosen[i]].token != "" {
				chosen[i]-- // the start at the latest
			}
		}
	}
	return chosen, max(best, t.order)
}

// at returns the revision of a document after the commit at a moment.
func (g *graph) at(key string, moment uint64) int {
	revs := g.revs[key]
	return sort.Search(len(revs), func(i int) bool { return revs[i].order > moment }) - 1
}

// unknown reports a read of something that was never there.
func (g *graph) unknown(t *txn, r seen) {
	for _, by := range g.txns {
		for _, a := range by.acts {
			if a.kind != actWrite || a.key != r.key || a.token != r.token {
				continue
			}
			if by.committed {
				g.report("intermediate read of "+r.key, t, by)
			} else {
				g.report("aborted read of "+r.key, t, by)
			}
			return
		}
	}
	g.report(fmt.Sprintf("%s holds %q, which no transaction wrote", r.key, r.token), t)
}

// clock adds the moments.
func (g *graph) clock() {
	var ends []int64
	for _, t := range g.txns {
		ends = append(ends, t.end)
	}
	slices.Sort(ends)
	n := len(g.txns)
	g.edges = append(g.edges, make([][]dependency, len(ends))...)
	for i := 1; i < len(ends); i++ {
		g.edge(n+i-1, dependency{to: n + i, kind: "time"})
	}
	for i, t := range g.txns {
		end, _ := slices.BinarySearch(ends, t.end)
		g.edge(i, dependency{to: n + end, kind: "time"})
		if before, _ := slices.BinarySearch(ends, t.begin); before > 0 {
			g.edge(n+before-1, dependency{to: i, kind: "time"})
		}
	}
}

// cycles reports the plainest cycle there is.
func (g *graph) cycles() {
	if g.core(); len(g.left) == 0 {
		return
	}
	steps := [][]string{{"ww"}, {"ww", "wr"}, {"ww", "wr", "time"}}
	for _, allowed := range steps {
		for i := range g.txns {
			for _, d := range g.edges[i] {
				if !g.left[i] || !g.left[d.to] {
					continue
				}
				if !slices.Contains(allowed, d.kind) {
					continue
				}
				if path := g.path(d.to, i, allowed); path != nil {
					g.reportCycle(i, append([]dependency{d}, path...))
					return
				}
			}
		}
	}
	for _, allowed := range append(steps, []string{"ww", "wr", "rw"}, []string{"ww", "wr", "rw", "time"}) {
		for i := range g.txns {
			for _, d := range g.edges[i] {
				if !g.left[i] || !g.left[d.to] {
					continue
				}
				if d.kind != "rw" {
					continue
				}
				if path := g.path(d.to, i, allowed); path != nil {
					g.reportCycle(i, append([]dependency{d}, path...))
					return
				}
			}
		}
	}
}

// core finds what is left after all that depends on nothing was taken away:
// nothing, if there is no cycle.
func (g *graph) core() {
	into := make([]int, len(g.edges))
	for _, edges := range g.edges {
		for _, d := range edges {
			into[d.to]++
		}
	}
	g.left = make(map[int]bool)
	var free []int
	for i, n := range into {
		g.left[i] = true
		if n == 0 {
			free = append(free, i)
		}
	}
	for len(free) > 0 {
		i := free[len(free)-1]
		free = free[:len(free)-1]
		delete(g.left, i)
		for _, d := range g.edges[i] {
			if into[d.to]--; into[d.to] == 0 {
				free = append(free, d.to)
			}
		}
	}
}

// path returns the shortest way over edges of these kinds, or nil.
func (g *graph) path(from, to int, kinds []string) []dependency {
	type step struct {
		d    dependency
		from int
	}
	came := map[int]step{from: {}}
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		i := queue[0]
		if i == to {
			path := []dependency{}
			for i != from {
				path = append(path, came[i].d)
				i = came[i].from
			}
			slices.Reverse(path)
			return path
		}
		for _, d := range g.edges[i] {
			if _, been := came[d.to]; !been && g.left[d.to] && slices.Contains(kinds, d.kind) {
				came[d.to] = step{d, i}
				queue = append(queue, d.to)
			}
		}
	}
	return nil
}

// reportCycle names a cycle that begins at a transaction.
func (g *graph) reportCycle(first int, cycle []dependency) {
	count := make(map[string]int)
	walk := false
	var way strings.Builder
	involved := []*txn{g.txns[first]}
	for _, d := range cycle {
		count[d.kind]++
		walk = walk || d.walk
		if d.to < len(g.txns) {
			fmt.Fprintf(&way, " →%s(%s) %s", d.kind, d.key, g.txns[d.to].name)
			involved = append(involved, g.txns[d.to])
		}
	}
	involved = involved[:len(involved)-1]
	name := "write skew"
	switch {
	case count["rw"] == 0 && count["wr"] == 0:
		name = "dirty write"
	case count["rw"] == 0:
		name = "circular information flow"
	case count["rw"] == 1 && len(cycle) == 2 && cycle[1].kind == "ww" && cycle[1].key == cycle[0].key:
		name = "lost update"
	case count["rw"] == 1 && walk:
		name = "phantom"
	case count["rw"] == 1 && count["time"] > 0:
		name = "stale read"
	case count["rw"] == 1:
		name = "read skew"
	case walk:
		name = "phantom write skew"
	}
	g.report(fmt.Sprintf("%s: %s%s", name, g.txns[first].name, way.String()), involved...)
}

// Ensure that the checker of histories names every anomaly, and finds none
// where there is none.
func TestAnomalies(t *testing.T) {
	r := func(key, token string) act { return act{kind: actRead, key: key, token: token} }
	w := func(key, token string) act { return act{kind: actWrite, key: key, token: token} }
	walk := func(pairs ...string) act {
		a := act{kind: actWalk, scope: jay.Scan{Prefix: "x/"}, found: make(map[string]string)}
		for i := 0; i < len(pairs); i += 2 {
			a.found[pairs[i]] = pairs[i+1]
		}
		return a
	}
	// All at once, unless times are given.
	done := func(name string, order uint64, acts ...act) *txn {
		return &txn{name: name, begin: 1, end: 100, committed: true, order: order, acts: acts}
	}
	at := func(t *txn, begin, end int64) *txn { t.begin, t.end = begin, end; return t }
	lost := func(name string, acts ...act) *txn { return &txn{name: name, begin: 1, end: 100, acts: acts} }

	for _, test := range []struct {
		want string
		txns []*txn
	}{
		{"", []*txn{done("a", 1, w("x/1", "a")), done("b", 2, r("x/1", "a"), w("x/1", "b"), r("x/1", "b")), done("c", 0, r("x/1", ""))}},
		{"", []*txn{done("a", 1, w("x/1", "a")), done("b", 2, w("x/1", "")), done("c", 3, w("x/1", "c")), lost("d", walk(), r("y", "")), done("e", 0, walk("x/1", "a"))}},
		{"", []*txn{at(done("a", 1, w("x/1", "a")), 1, 2), at(done("b", 2, r("x/1", "a"), w("x/1", "")), 3, 4), at(done("c", 0, walk()), 5, 6)}},
		{"lost update", []*txn{done("a", 1, r("x/1", ""), w("x/1", "a")), done("b", 2, r("x/1", ""), w("x/1", "b"))}},
		{"lost update", []*txn{done("z", 1, w("x/1", "z")), done("a", 2, r("x/1", "z"), w("x/1", "a")), done("b", 3, r("x/1", "z"), w("x/1", "b"))}},
		{"write skew", []*txn{done("a", 1, r("x/1", ""), r("x/2", ""), w("x/1", "a")), done("b", 2, r("x/1", ""), r("x/2", ""), w("x/2", "b"))}},
		{"phantom write skew", []*txn{done("a", 1, walk(), w("x/1", "a")), done("b", 2, walk(), w("x/2", "b"))}},
		{"read skew", []*txn{done("a", 1, w("x/1", "a"), w("x/2", "a2")), done("b", 0, r("x/1", "a"), r("x/2", ""))}},
		{"read skew", []*txn{done("a", 1, w("x/1", "a"), w("x/2", "a2")), lost("b", r("x/1", "a"), r("x/2", ""))}},
		{"phantom", []*txn{done("a", 1, w("x/1", "a"), w("y", "a2")), done("b", 0, r("y", "a2"), walk())}},
		{"phantom", []*txn{done("a", 1, w("x/1", "a")), done("b", 0, walk(), walk("x/1", "a"))}},
		{"non-repeatable read", []*txn{done("a", 1, w("x/1", "a")), done("b", 2, w("x/1", "b")), done("c", 0, r("x/1", "a"), r("x/1", "b"))}},
		{"aborted read", []*txn{lost("a", w("x/1", "a")), done("b", 0, r("x/1", "a"))}},
		{"intermediate read", []*txn{done("a", 1, w("x/1", "a"), w("x/1", "a2")), done("b", 0, r("x/1", "a"))}},
		{"circular information flow", []*txn{done("a", 1, w("x/1", "a"), r("x/2", "b")), done("b", 2, w("x/2", "b"), r("x/1", "a"))}},
		{"stale read", []*txn{at(done("a", 1, w("x/1", "a")), 1, 2), at(done("b", 0, r("x/1", "")), 3, 4)}},
		{"own write not seen", []*txn{done("a", 1, w("x/1", "a"), r("x/1", ""))}},
		{"own write not seen", []*txn{done("a", 1, w("x/1", "a"), walk())}},
		{"own write not seen", []*txn{lost("a", w("x/1", "a"), walk())}},
		{"a result without a commit", []*txn{{name: "a", order: 1, acts: []act{w("x/1", "a")}}}},
		{"two commits with one etag", []*txn{done("a", 1, w("x/1", "a")), done("b", 1, w("x/2", "b"))}},
		{`x/1 holds "?", which no transaction wrote`, []*txn{done("b", 0, r("x/1", "?"))}},
	} {
		got := anomalies(test.txns)
		if test.want == "" && len(got) > 0 || test.want != "" && (len(got) == 0 || !strings.HasPrefix(got[0], test.want)) {
			t.Errorf("want %q, got %v", test.want, got)
		}
	}
}
