package etcd

import (
	"context"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Endpoint is the state of one member of etcd, as reported by the member.
type Endpoint struct {
	URL     string
	Version string
	ID      uint64 // of the member
	Leader  uint64 // the ID of the leader that it knows; 0 if it knows none
	Learner bool   // it has no vote yet
	Bytes   int64  // size of its database
	Used    int64  // bytes in use; defragmentation frees the rest
	Quota   int64  // of the database; 0 if the member does not say
	Alarms  []string

	// Err is set if the member could not be reached or has refused; then only URL is set.
	Err error
}

// Status asks all endpoints for their state at once, for at most a second. The Endpoint of
// a member that does not answer has an Err. Status needs no majority, as each member
// reports its own state; otherwise it fails as other calls do.
func (c *Coordinator) Status(ctx context.Context) ([]Endpoint, error) {
	const op = "status"
	if err := c.enter(op); err != nil {
		return nil, err
	}
	defer c.calls.Done()
	ctx, cancel := c.bound(ctx)
	defer cancel()
	within, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	client, err := c.anyClient(within)
	if err != nil {
		what := judge(err)
		if !what.final {
			what = verdict{kinds: noMajority.kinds, problem: noMajority.problem, do: noMajority.do}
		}
		return nil, c.fail(op, what.problem, what.do, err, what.kinds...)
	}
	list := make([]Endpoint, len(c.config.Endpoints))
	var group sync.WaitGroup
	for i, url := range c.config.Endpoints {
		group.Go(func() {
			found, err := client.Status(within, url)
			list[i] = Endpoint{URL: url, Err: err}
			if err == nil {
				list[i] = endpoint(url, found)
			}
		})
	}
	group.Wait()

	// The client's errors hide those of the network.
	var failed []string
	for _, e := range list {
		if e.Err != nil {
			failed = append(failed, e.URL)
		}
	}
	for i, err := range probe(ctx, failed, c.config.TLS) {
		for j := range list {
			if list[j].URL == failed[i] && err != nil {
				list[j].Err = err
			}
		}
	}
	return list, nil
}

func endpoint(url string, s *clientv3.StatusResponse) Endpoint {
	return Endpoint{
		URL: url, Version: s.Version, ID: s.Header.MemberId, Leader: s.Leader, Learner: s.IsLearner,
		Bytes: s.DbSize, Used: s.DbSizeInUse, Quota: s.DbSizeQuota, Alarms: s.Errors,
	}
}

// anyClient returns the client without checking its etcd.
func (c *Coordinator) anyClient(ctx context.Context) (*clientv3.Client, error) {
	if client := c.client.Load(); client != nil && c.signature.made() {
		return client, nil
	}
	select {
	case c.connecting <- struct{}{}:
		defer func() { <-c.connecting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return c.openClient(ctx)
}
