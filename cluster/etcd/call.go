package etcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jaydb/jay/cluster"
)

// How long one attempt of a call may take, and the pauses between attempts: the client's
// own retries have neither bound. A commit whose request was sent gets no second attempt,
// so its attempt must outlast an election. The limit of an attempt is usualAttempt at
// first and doubles after each attempt without an answer, so that a slow etcd can answer
// at last.
const (
	minRead, minCommit       = 300 * time.Millisecond, time.Second
	usualAttempt, maxAttempt = 3 * time.Second, 15 * time.Second
	minPause, maxPause       = 20 * time.Millisecond, 500 * time.Millisecond
)

// request is one attempt of a call.
type request func(ctx context.Context, client *clientv3.Client) error

// bound returns ctx, with the configured timeout if it has no deadline. The result also
// ends when the coordinator is closed.
func (c *Coordinator) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	var cancel context.CancelFunc
	if _, has := ctx.Deadline(); has {
		ctx, cancel = context.WithCancel(ctx)
	} else {
		ctx, cancel = context.WithTimeout(ctx, c.config.Timeout)
	}
	stop := context.AfterFunc(c.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// attemptContext returns the context of one attempt: a third of the time that is left, but no
// less than least, so that time remains for another member if this one does not answer. A
// member that knows no leader rejects the request at once.
func (c *Coordinator) attemptContext(ctx context.Context, least time.Duration) (context.Context, context.CancelFunc) {
	limit := time.Duration(c.longest.Load())
	if deadline, has := ctx.Deadline(); has {
		limit = min(max(time.Until(deadline)/3, least), limit)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	return clientv3.WithRequireLeader(ctx), cancel
}

// pace adapts the limit of an attempt to the outcome err of the last one. call is the
// context of the whole call: an attempt that ended with it says nothing about etcd's
// speed.
func (c *Coordinator) pace(call context.Context, err error) {
	longest := c.longest.Load()
	switch {
	case err == nil && longest > int64(usualAttempt):
		c.longest.CompareAndSwap(longest, max(longest/2, int64(usualAttempt)))
	case err != nil && isContext(err) && call.Err() == nil:
		c.longest.CompareAndSwap(longest, min(2*longest, int64(maxAttempt)))
	}
}

// enter registers a call, which Close waits for.
func (c *Coordinator) enter(op string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return c.fail(op, "the coordinator is closed", "", nil, cluster.ErrClosed)
	}
	c.calls.Add(1)
	return nil
}

// call makes attempts until one succeeds, an error is final, or ctx ends. write says that
// the request must not be carried out twice: then the first attempt that may have been
// carried out is the last one, and its error is an ErrUnknownOutcome.
//
// The error is an *Error.
func (c *Coordinator) call(ctx context.Context, op string, write bool, attempt request) error {
	if err := c.enter(op); err != nil {
		return err
	}
	defer c.calls.Done()
	caller := ctx
	ctx, cancel := c.bound(ctx)
	defer cancel()

	stuck := noMajority
	probed := false
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		if err := c.ended(caller, ctx, op, stuck); err != nil {
			return err
		}
		sent, err := c.attemptOnce(ctx, write, attempt)
		c.pace(ctx, err)
		if err == nil {
			return nil
		}
		if complete, is := errors.AsType[*Error](err); is {
			return complete
		}
		what := judge(err)
		maybe := write && sent && !what.noEffect
		switch {
		case what.final && maybe:
			return c.fail(op, what.problem, what.do, err, append(what.kinds, cluster.ErrUnknownOutcome)...)
		case what.final:
			return c.fail(op, what.problem, what.do, err, what.kinds...)
		case maybe:
			return c.lost(caller, op, err)
		}
		if !isContext(err) && (sent || !probed) {
			stuck = state{problem: err.Error(), do: noMajority.do, kinds: noMajority.kinds}
		}
		if !sent && !probed && ctx.Err() == nil {
			probed = true
			found, final := explain(c.config.Endpoints, probe(ctx, c.config.Endpoints, c.config.TLS))
			if final {
				return c.fail(op, found.problem, found.do, nil, found.kinds...)
			}
			if found.problem != "" {
				stuck = found
			}
		}
		wait(ctx, pause/2+rand.N(pause/2))
	}
}

// state is the reason why a call has not succeeded yet.
type state struct {
	problem, do string
	kinds       []error
}

var noMajority = state{"no majority of its members has answered", "start the members that are down, and look at the network between them", []error{cluster.ErrNoMajority}}

// attemptOnce makes one attempt. sent reports whether the request has left this process.
func (c *Coordinator) attemptOnce(ctx context.Context, write bool, request request) (sent bool, err error) {
	client, err := c.connect(ctx, write)
	if err != nil {
		return false, err
	}
	least := minRead
	if write {
		least = minCommit
	}
	within, cancel := c.attemptContext(ctx, least)
	defer cancel()
	within, left := watchSent(within)
	signed := c.signature.token.Load()
	err = request(within, client)
	if c.config.Username != "" && isUnsigned(err) {
		c.signature.token.CompareAndSwap(signed, nil) // the next attempt signs in
		return false, fmt.Errorf("etcd does not take the token of the user: %v", err)
	}
	return left.Load(), err
}

// ended returns the error of a call that must make no further attempt, because of Close,
// the caller's context, or the configured timeout. It returns nil if the call may go on.
func (c *Coordinator) ended(caller, ctx context.Context, op string, stuck state) error {
	switch {
	case c.ctx.Err() != nil:
		return c.fail(op, "the coordinator was closed", "", nil, cluster.ErrClosed)
	case caller.Err() != nil:
		return c.fail(op, stuck.problem, stuck.do, caller.Err(), stuck.kinds...)
	case ctx.Err() != nil:
		return c.fail(op, stuck.problem, stuck.do, fmt.Errorf("gave up after Timeout, %v", c.config.Timeout), stuck.kinds...)
	}
	return nil
}

// lost returns the error of a commit that was sent and got no answer.
func (c *Coordinator) lost(caller context.Context, op string, err error) error {
	kinds := []error{cluster.ErrUnknownOutcome}
	switch {
	case c.ctx.Err() != nil:
		kinds = append(kinds, cluster.ErrClosed)
	case caller.Err() != nil:
		err = caller.Err()
	case isContext(err):
		err = errors.New("no answer within the time of an attempt")
	}
	return c.fail(op, "the request was sent, and its answer has not arrived", "", err, kinds...)
}

// wait returns after d, or when ctx has ended.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// fail returns an *Error.
func (c *Coordinator) fail(op, problem, do string, cause error, kinds ...error) *Error {
	return &Error{Op: op, Endpoints: c.config.Endpoints, Problem: problem, Do: do, Kinds: kinds, Err: cause}
}

// txn carries out one transaction of etcd, as call does.
func (c *Coordinator) txn(ctx context.Context, op string, conditions []clientv3.Cmp, then, otherwise []clientv3.Op, write bool) (resp *clientv3.TxnResponse, err error) {
	err = c.call(ctx, op, write, func(ctx context.Context, client *clientv3.Client) error {
		before := c.revision.Load()
		found, err := client.Txn(ctx).If(conditions...).Then(then...).Else(otherwise...).Commit()
		if err != nil {
			return err
		}
		resp = found
		err = c.checkHeader(op, found.Header, before)
		if complete, is := errors.AsType[*Error](err); is && write && found.Succeeded {
			complete.Kinds = append(complete.Kinds, cluster.ErrUnknownOutcome)
		}
		return err
	})
	return resp, err
}

// checkHeader checks the header of an answer. All answers must come from the same etcd cluster,
// and its revision must not go back. before is the revision that was known when the
// request began.
func (c *Coordinator) checkHeader(op string, header *pb.ResponseHeader, before int64) error {
	if known := c.etcd.Load(); header.ClusterId != known {
		return c.twoClusters(op, known, header.ClusterId)
	}
	if header.Revision < before {
		return c.fail(op, fmt.Sprintf("etcd has answered at revision %d, after %d", header.Revision, before), acceptIt, nil, cluster.ErrRefused, ErrRestored)
	}
	for {
		old := c.revision.Load()
		if header.Revision <= old || c.revision.CompareAndSwap(old, header.Revision) {
			return nil
		}
	}
}

func (c *Coordinator) twoClusters(op string, a, b uint64) error {
	return c.fail(op, fmt.Sprintf("members of two etcd clusters answer, %x and %x", a, b), "name the members of one cluster", nil, cluster.ErrOtherCluster, ErrTwoClusters)
}
