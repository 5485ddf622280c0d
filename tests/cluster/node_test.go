//go:build unix

package cluster_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay"
)

// A node is a process of its own, so that it can be stopped, killed and copied: the program
// of these tests, started again with the variable nodeVariable. It reads requests from its
// standard input, one JSON object a line, carries them out side by side, and writes replies
// to its standard output.
const nodeVariable = "JAY_TESTS_CLUSTER_NODE"

// nodeConfig is what a node is started with, as JSON in nodeVariable.
type nodeConfig struct {
	Dir       string
	CopyTag   string
	NodeTag   string
	Address   string        // that the node announces
	Endpoints []string      // of etcd
	Prefix    string        // of its keys in etcd
	Period    time.Duration // without a heartbeat, after which the node counts as dead
}

// request is one call of a node.
type request struct {
	N        int64         // that the reply has, too
	Verb     string        // put, next, seed, exchange, remove, read, claim, report, documents, clock, close
	ID       string        // of a document, an identity or a key
	Other    string        // the document that claim writes with the key
	Value    string        // of a document or a key
	Index    uint64        // that is expected
	Number   int64         // of seed
	Within   time.Duration // the deadline of the call; a minute without one
	Duration time.Duration // by which clock moves the clock
}

// reply is the answer to a request.
type reply struct {
	N       int64
	ID      string        `json:",omitempty"` // of a document that was stored
	Number  int64         `json:",omitempty"` // of an identity
	Index   uint64        `json:",omitempty"`
	Value   string        `json:",omitempty"`
	Found   bool          `json:",omitempty"`
	IDs     []string      `json:",omitempty"` // of all documents
	Report  *jay.IDReport `json:",omitempty"`
	Kind    string        `json:",omitempty"` // of the error, see kindOf
	Error   string        `json:",omitempty"`
	Elapsed time.Duration `json:",omitempty"`
}

// The kinds of errors that the tests look at.
const (
	kindNoMajority = "no majority"
	kindUnknown    = "unknown outcome"
	kindConflict   = "conflict"
	kindTag        = "tag"
	kindQuota      = "quota"
	kindDeadline   = "deadline"
	kindOther      = "other"
)

// runNode is the program of a node. It returns its exit code.
func runNode(configuration string) int {
	var config nodeConfig
	if err := json.Unmarshal([]byte(configuration), &config); err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		return 2
	}
	n := &nodeProcess{out: json.NewEncoder(os.Stdout)}
	db, closeCluster, err := openNode(config, n.now)
	n.answer(reply{Kind: kindOf(err), Error: textOf(err)}) // of the opening
	if err != nil {
		return 1
	}
	n.db = db
	n.serve()
	err = errors.Join(db.Close(), closeCluster())
	n.answer(reply{N: -1, Kind: kindOf(err), Error: textOf(err)}) // of the closing
	if err != nil {
		return 1
	}
	return 0
}

// nodeProcess answers requests.
type nodeProcess struct {
	db     *jay.DB
	offset atomic.Int64 // by which the clock was moved
	mu     sync.Mutex
	out    *json.Encoder // Guarded by mu.
}

// now is the clock of the database.
func (n *nodeProcess) now() time.Time { return time.Now().Add(time.Duration(n.offset.Load())) }

func (n *nodeProcess) answer(r reply) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_ = n.out.Encode(r) // without a reader the process is about to end
}

// serve carries out the requests of the standard input, until it ends or one says so.
func (n *nodeProcess) serve() {
	var running sync.WaitGroup
	defer running.Wait()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			n.answer(reply{Kind: kindOther, Error: err.Error()})
			continue
		}
		if r.Verb == "close" {
			return
		}
		running.Go(func() {
			if r.Within == 0 {
				r.Within = time.Minute
			}
			ctx, cancel := context.WithTimeout(context.Background(), r.Within)
			defer cancel()
			start := time.Now()
			out, err := n.run(ctx, r)
			out.N, out.Kind, out.Error, out.Elapsed = r.N, kindOf(err), textOf(err), time.Since(start)
			n.answer(out)
		})
	}
}

// run carries out a request.
func (n *nodeProcess) run(ctx context.Context, r request) (out reply, err error) {
	values := n.db.CompareExchange()
	switch r.Verb {
	case "put":
		var m jay.Metadata
		m, err = n.db.Put(ctx, r.ID, []byte(r.Value), jay.InCollection("Things"))
		out.ID = m.ID
	case "store":
		var m jay.Metadata
		m, err = n.db.Store(ctx, "Things", []byte(r.Value))
		out.ID = m.ID
	case "next":
		out.Number, err = n.db.NextIdentity(ctx, r.ID)
	case "seed":
		out.Number, err = n.db.SeedIdentity(ctx, r.ID, r.Number, false)
	case "exchange":
		out.Index, err = values.Put(ctx, r.ID, r.Value, r.Index)
	case "remove":
		err = values.Delete(ctx, r.ID, r.Index)
	case "claim":
		var b jay.Batch
		b.PutCompareExchange(r.ID, r.Value, r.Index)
		b.Put(r.Other, []byte(r.Value), jay.InCollection("Claims"))
		var written []jay.Metadata
		if written, err = n.db.Apply(ctx, &b); err == nil {
			out.Index = written[0].Etag
		}
	case "read":
		var v *jay.CompareExchangeValue
		if v, err = values.Get(ctx, r.ID); err == nil {
			out.Index, out.Found = v.Index, true
			err = v.Decode(&out.Value)
		} else if errors.Is(err, jay.ErrNotFound) {
			err = nil
		}
	case "report":
		var report jay.IDReport
		report, err = n.db.InspectIDs(ctx, nil)
		out.Report = &report
	case "documents":
		for doc, failed := range n.db.Documents(ctx, jay.Scan{}) {
			if failed != nil {
				return out, failed
			}
			out.IDs = append(out.IDs, doc.ID())
		}
	case "clock":
		n.offset.Add(int64(r.Duration))
	default:
		err = fmt.Errorf("there is no request %q", r.Verb)
	}
	if conflict, is := errors.AsType[*jay.CompareExchangeError](err); is {
		out.Index = conflict.Actual
		if conflict.Value != nil {
			err = errors.Join(err, json.Unmarshal(conflict.Value, &out.Value))
		}
	}
	return out, err
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}
