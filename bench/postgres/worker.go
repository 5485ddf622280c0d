package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"
)

// The environment of a worker.
const (
	workerEnv = "JAY_BENCH_WORKER" // the contender
	urlEnv    = "JAY_BENCH_URL"
	tagEnv    = "JAY_BENCH_TAG" // what the IDs of this process begin with
)

// operation is what a sample repeats.
type operation string

const (
	prepare operation = "prepare" // once, in the first process: the documents that are read
	insert  operation = "insert"
	get     operation = "get"
	hotGet  operation = "hot get"
	scan    operation = "scan"
	query   operation = "query"
	view    operation = "view"
	bulk    operation = "bulk"
)

// order is what a worker is to do, as a line of JSON, and result what came of it.
type order struct {
	Operation  operation
	Goroutines int
	During     time.Duration
	Documents  int
	Seed       uint64
}

type result struct {
	PerSecond float64
	Error     string
}

// contender is one way to keep documents in PostgreSQL.
type contender interface {
	// prepare makes the store with so many documents, under IDs of idOf.
	prepare(ctx context.Context, documents int) error
	// open is called in each process, once the store is there.
	open(ctx context.Context) error
	// insert inserts a new document, durably.
	insert(ctx context.Context, id string, body []byte) error
	// get reads the document of an ID.
	get(ctx context.Context, id string) error
	// scan reads all documents that prepare has made, and query those of a bucket. They return how many there are.
	scan(ctx context.Context) (int, error)
	query(ctx context.Context, bucket int) (int, error)
	// view is query with the same reads as Jay makes, by the client in one SERIALIZABLE transaction: the entries of the index, and then
	// the documents.
	view(ctx context.Context, bucket int) (int, error)
	// bulk inserts so many new documents, whose IDs begin with a prefix.
	bulk(ctx context.Context, prefix string, n int) error
	close() error
}

// perBucket is how many documents a query finds, and bulkDocuments how many a bulk load has.
const (
	perBucket     = 10
	bulkDocuments = 10_000
)

var contenders = []string{"jay", "client", "jsonb"}

func newContender(name, url string) (contender, error) {
	switch name {
	case "jay":
		return &jayStore{url: url}, nil
	case "client":
		return &clientStore{url: url}, nil
	case "jsonb":
		return &jsonbStore{url: url}, nil
	}
	return nil, fmt.Errorf("no contender %q", name)
}

// body is document n, of about 300 bytes.
func body(n int) []byte {
	return fmt.Appendf(nil, `{"Number":%d,"Bucket":%d,"Company":"companies/%d-A","City":"London","Shipped":%t,"Note":"%0200d"}`, n, n/perBucket, n%977, n%2 == 0, n)
}

func idOf(n int) string { return fmt.Sprintf("orders/%d", n) }

// work is a worker: it does what each line of its input says, until that ends.
func work(name, url, tag string) error {
	c, err := newContender(name, url)
	if err != nil {
		return err
	}
	ctx := context.Background()
	opened, serial := false, 0
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for in.Scan() {
		var o order
		if err := json.Unmarshal(in.Bytes(), &o); err != nil {
			return err
		}
		serial++
		r, err := func() (result, error) {
			if o.Operation == prepare {
				return result{}, c.prepare(ctx, o.Documents)
			}
			if !opened {
				if err := c.open(ctx); err != nil {
					return result{}, err
				}
				opened = true
			}
			return o.sample(ctx, c, fmt.Sprintf("new/%s-%d-", tag, serial))
		}()
		if err != nil {
			r.Error = err.Error()
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	return errors.Join(in.Err(), c.close())
}

// sample repeats an operation with some goroutines for a while.
func (o *order) sample(ctx context.Context, c contender, prefix string) (result, error) {
	var next, done atomic.Int64
	failed := make([]error, o.Goroutines)
	var group sync.WaitGroup
	begin := time.Now()
	for g := range o.Goroutines {
		group.Go(func() {
			random := rand.New(rand.NewPCG(o.Seed, uint64(g)))
			hot := rand.NewZipf(random, 1.1, 1, uint64(o.Documents-1))
			for time.Since(begin) < o.During && failed[g] == nil {
				n := int64(1)
				switch o.Operation {
				case insert:
					i := next.Add(1)
					failed[g] = c.insert(ctx, fmt.Sprint(prefix, i), body(int(i)))
				case get:
					failed[g] = c.get(ctx, idOf(random.IntN(o.Documents)))
				case hotGet:
					failed[g] = c.get(ctx, idOf(int(hot.Uint64())))
				case scan:
					var found int
					if found, failed[g] = c.scan(ctx); failed[g] == nil && found != o.Documents {
						failed[g] = fmt.Errorf("%d documents, want %d", found, o.Documents)
					}
					n = int64(found)
				case query, view:
					ask := c.query
					if o.Operation == view {
						ask = c.view
					}
					var found int
					if found, failed[g] = ask(ctx, random.IntN(o.Documents/perBucket)); failed[g] == nil && found != perBucket {
						failed[g] = fmt.Errorf("a query finds %d documents, want %d", found, perBucket)
					}
				case bulk:
					failed[g] = c.bulk(ctx, fmt.Sprint(prefix, "bulk-", next.Add(1), "-"), bulkDocuments)
					n = bulkDocuments
				default:
					failed[g] = fmt.Errorf("no operation %q", o.Operation)
				}
				done.Add(n)
			}
		})
	}
	group.Wait()
	return result{PerSecond: float64(done.Load()) / time.Since(begin).Seconds()}, errors.Join(failed...)
}

// team is the processes of a contender.
type team struct{ workers []*worker }

// worker is a process.
type worker struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// startTeam starts the processes of a contender.
func startTeam(name, url string, processes int) (*team, error) {
	t := new(team)
	program, err := os.Executable()
	for i := 0; i < processes && err == nil; i++ {
		w := &worker{cmd: exec.Command(program)}
		w.cmd.Env = append(os.Environ(), workerEnv+"="+name, urlEnv+"="+url, fmt.Sprintf("%s=%d", tagEnv, i))
		w.cmd.Stderr = os.Stderr
		if w.in, err = w.cmd.StdinPipe(); err != nil {
			break
		}
		var out io.ReadCloser
		if out, err = w.cmd.StdoutPipe(); err != nil {
			break
		}
		w.out = bufio.NewScanner(out)
		if err = w.cmd.Start(); err == nil {
			t.workers = append(t.workers, w)
		}
	}
	if err != nil {
		return nil, errors.Join(err, t.stop())
	}
	return t, nil
}

// each has all processes carry out an order at once, or the first one alone what is done once, and returns the sum of what they did a second.
func (t *team) each(o order) (perSecond float64, err error) {
	workers := t.workers
	if o.Operation == prepare {
		workers = workers[:1]
	}
	results, failed := make([]result, len(workers)), make([]error, len(workers))
	var group sync.WaitGroup
	for i, w := range workers {
		own := o
		own.Seed += uint64(i)
		group.Go(func() {
			if failed[i] = json.NewEncoder(w.in).Encode(own); failed[i] != nil {
				return
			}
			if !w.out.Scan() {
				failed[i] = errors.Join(w.out.Err(), io.ErrUnexpectedEOF)
				return
			}
			if failed[i] = json.Unmarshal(w.out.Bytes(), &results[i]); results[i].Error != "" {
				failed[i] = errors.New(results[i].Error)
			}
		})
	}
	group.Wait()
	for _, r := range results {
		perSecond += r.PerSecond
	}
	return perSecond, errors.Join(failed...)
}

// stop ends the processes.
func (t *team) stop() (err error) {
	for _, w := range t.workers {
		err = errors.Join(err, w.in.Close())
	}
	for _, w := range t.workers {
		err = errors.Join(err, w.cmd.Wait())
	}
	t.workers = nil
	return err
}
