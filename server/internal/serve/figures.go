package serve

import (
	"context"
	"math/bits"
	"sync/atomic"

	"github.com/jaydb/jay"
)

func init() {
	for i, v := range figureVerbs {
		figureOf[v.verb] = i
	}
}

// figureBuckets is the number of buckets of durations. Bucket i counts those below 2^i
// microseconds that no bucket before it counts; the last one counts the rest, from 4
// seconds on.
const figureBuckets = 24

// figureVerbs lists the verbs of jay.Operation in the order of the reply, each with the
// kind under which charts add it up: reads, queries, writes, transactions, or the server's
// own work.
var figureVerbs = []struct{ verb, kind string }{
	{"get", "read"}, {"get many", "read"}, {"exists", "read"}, {"read", "read"},
	{"query", "query"}, {"count", "query"}, {"scan", "query"},
	{"put", "write"}, {"insert", "write"}, {"replace", "write"}, {"delete", "write"}, {"patch", "write"}, {"attach", "write"}, {"revise", "write"},
	{"compare exchange", "write"}, {"batch", "write"}, {"bulk", "write"},
	{"update", "transaction"}, {"view", "transaction"},
	{"flush", "upkeep"}, {"compact", "upkeep"}, {"sweep", "upkeep"},
	{"other", "other"},
}

// figureOf maps a verb to its position in figureVerbs.
var figureOf = make(map[string]int)

// figures count the operations on one database since the server began.
type figures struct{ byVerb []verbFigures }

type verbFigures struct {
	count, documents, failed, nanos atomic.Int64
	durations                       [figureBuckets]atomic.Int64
}

func newFigures() *figures { return &figures{make([]verbFigures, len(figureVerbs))} }

// observer returns an observer that counts operations and passes them on to next, unless
// that is nil.
func (f *figures) observer(next jay.Observer) jay.Observer { return figureObserver{f, next} }

type figureObserver struct {
	f    *figures
	next jay.Observer
}

// Begin implements jay.Observer.
func (f figureObserver) Begin(ctx context.Context, o *jay.Operation) context.Context {
	if f.next == nil {
		return ctx
	}
	return f.next.Begin(ctx, o)
}

// End implements jay.Observer.
func (f figureObserver) End(ctx context.Context, o *jay.Operation) {
	i, found := figureOf[o.Verb]
	if !found {
		i = len(figureVerbs) - 1
	}
	v := &f.f.byVerb[i]
	v.count.Add(1)
	v.documents.Add(o.Documents)
	v.nanos.Add(o.Duration.Nanoseconds())
	if o.Err != nil && !IsMissing(o.Err) {
		v.failed.Add(1)
	}
	v.durations[min(bits.Len64(uint64(max(0, o.Duration.Microseconds()))), figureBuckets-1)].Add(1)
	if f.next != nil {
		f.next.End(ctx, o)
	}
}

// figure has the figures of a verb in a reply.
type figure struct {
	Verb      string  `json:"verb"`
	Kind      string  `json:"kind"`
	Count     int64   `json:"count"`
	Documents int64   `json:"documents"`
	Failed    int64   `json:"failed"`
	TotalNs   int64   `json:"totalNs"`
	Under     []int64 `json:"under"` // element i counts those below 2^i microseconds and in no element before it
}

// List returns the figures of the verbs that were used.
func (f *figures) List() []figure {
	all := []figure{}
	for i := range f.byVerb {
		v := &f.byVerb[i]
		one := figure{Verb: figureVerbs[i].verb, Kind: figureVerbs[i].kind, Count: v.count.Load(), Documents: v.documents.Load(), Failed: v.failed.Load(), TotalNs: v.nanos.Load()}
		if one.Count == 0 {
			continue
		}
		for i := range v.durations {
			one.Under = append(one.Under, v.durations[i].Load())
		}
		all = append(all, one)
	}
	return all
}
