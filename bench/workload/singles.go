package workload

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay/bench/engine"
	"github.com/jaydb/jay/bench/fixture"
	"github.com/jaydb/jay/bench/stats"
)

// client is one of the goroutines that use an engine at the same time.
type client struct {
	r       *Run
	number  int // of the client
	random  *rand.Rand
	latency stats.Latency
	body    []byte
}

// doc makes a document, which is good until the next call.
func (c *client) doc(key engine.Key, number, revision int) engine.Doc {
	c.body = c.r.source.Append(c.body[:0], number, revision)
	c.r.logical.Add(int64(len(c.body) + len(key.Bytes)))
	return engine.Doc{Key: key, Body: c.body}
}

// timed times one operation of the client.
func (c *client) timed(fn func() error) error {
	start := time.Now()
	err := fn()
	c.latency.Record(time.Since(start))
	return err
}

// together runs up to ops operations on as many clients as the workload has
// writers, until the round is over; do is given the number of each operation.
// It returns how many were done: those with the numbers below.
func (r *Run) together(ops int, do func(c *client, i int) error) (done int, err error) {
	clients := make([]*client, r.w.Settings.Writers)
	var group sync.WaitGroup
	var next atomic.Int64
	errs := make([]error, len(clients))
	start := time.Now()
	deadline := start.Add(r.p.Limit)
	for g := range clients {
		c := &client{r: r, number: g, random: rand.New(rand.NewPCG(uint64(r.number), uint64(g)))}
		clients[g] = c
		group.Go(func() {
			for time.Now().Before(deadline) {
				i := int(next.Add(1)) - 1
				if i >= ops {
					return
				}
				if errs[g] = do(c, i); errs[g] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	r.result.Nanos += time.Since(start)
	for _, c := range clients {
		r.latency.Merge(&c.latency)
	}
	done = min(ops, int(next.Load()))
	r.result.Ops = done
	return done, errors.Join(errs...)
}

// insertSingly inserts new documents, each in a commit of its own.
func insertSingly(r *Run) error {
	done, err := r.together(r.w.Ops, func(c *client, i int) error {
		doc := c.doc(newKey(i), i, fixture.FirstRevision)
		return c.timed(func() error { return r.engine.InsertOne(doc) })
	})
	r.expected.set(0, done, fixture.FirstRevision)
	return err
}

// updateSingly updates documents in commits of their own.
func updateSingly(r *Run) error {
	order := r.shuffled()
	_, err := r.together(min(r.w.Ops, len(order)), func(c *client, i int) error {
		number := order[i]
		r.expected.revisions[number]++
		doc := c.doc(newKey(number), number, int(r.expected.revisions[number]))
		return c.timed(func() error { return r.engine.UpdateOne(doc) })
	})
	return err
}

// deleteSingly deletes documents in commits of their own.
func deleteSingly(r *Run) error {
	numbers := r.share(r.w.Ops)
	_, err := r.together(len(numbers), func(c *client, i int) error {
		r.expected.revisions[numbers[i]] = 0
		key := newKey(numbers[i])
		r.logical.Add(int64(len(key.Bytes)))
		return c.timed(func() error { return r.engine.DeleteOne(key) })
	})
	return err
}

// mixed reads the given percentage of documents and updates the others, chosen by
// a zipfian distribution, as in YCSB's workloads A and B. Each client updates
// documents of its own, so that it knows their revisions.
func mixed(readPercent int) func(r *Run) error {
	return func(r *Run) error {
		zipf := newZipf(r.w.Docs, zipfTheta)
		clients := r.w.Settings.Writers
		_, err := r.together(r.w.Ops, func(c *client, _ int) error {
			number := zipf.scrambled(c.random)
			if c.random.IntN(100) < readPercent {
				key := newKey(number)
				return c.timed(func() error {
					body, err := r.engine.Get(key)
					return touch(body, err)
				})
			}
			number = number - number%clients + c.number
			if number >= r.w.Docs {
				number -= clients
			}
			revision := int(r.expected.revisions[number]) + 1
			if revision > fixture.LastRevision {
				revision = fixture.FirstRevision
			}
			r.expected.revisions[number] = uint8(revision)
			doc := c.doc(newKey(number), number, revision)
			return c.timed(func() error { return r.engine.UpdateOne(doc) })
		})
		return err
	}
}

// touch reads a body, so that the compiler cannot eliminate the read.
func touch(body []byte, err error) error {
	if err != nil {
		return err
	}
	if len(body) == 0 || body[0]+body[len(body)/2]+body[len(body)-1] == 0 {
		return errors.New("an empty body")
	}
	return nil
}

// insertUnderLoad inserts documents one by one while another goroutine loads
// documents in batches, both durably, until that load is done.
func insertUnderLoad(r *Run) error {
	loaded := make(chan error, 1)
	over := make(chan struct{})
	var loading Run // the other goroutine's, on the same engine
	loading.w, loading.p, loading.source, loading.engine = r.w, r.p, r.source, r.engine
	start := time.Now()
	go func() {
		defer close(over)
		err := loading.bulk(0, r.w.Docs)
		if s, ok := r.engine.(engine.Syncer); ok {
			err = errors.Join(err, s.Sync())
		}
		loaded <- err
	}()

	single := &client{r: r}
	done, err := single.insertUntil(over, r.w.Docs)
	err = errors.Join(err, <-loaded)
	r.result.Nanos, r.result.Ops = time.Since(start), done
	r.latency.Merge(&single.latency)
	r.logical.Add(loading.logical.Load())
	r.expected.set(0, r.w.Docs+done, fixture.FirstRevision)
	r.extra("bulk, per document", float64(r.result.Nanos.Microseconds())/float64(r.w.Docs))
	return err
}

// insertUntil inserts documents, from the number first on, until over is
// closed; at least one.
func (c *client) insertUntil(over <-chan struct{}, first int) (done int, err error) {
	for {
		doc := c.doc(newKey(first+done), first+done, fixture.FirstRevision)
		if err := c.timed(func() error { return c.r.engine.InsertOne(doc) }); err != nil {
			return done, err
		}
		done++
		select {
		case <-over:
			return done, nil
		default:
		}
	}
}
