package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jaydb/jay/cluster"
)

const (
	// readKeys is the number of keys that one request reads: etcd's default limit for the
	// operations of a transaction.
	readKeys = 128

	// pageBytes is the number of bytes of values after which a page ends.
	pageBytes = 4 << 20

	// firstRecords is the number of records that the first request of a page reads. Their
	// size decides how many the following requests read.
	firstRecords = 32
)

// Coordinator keeps the records of a cluster in etcd. It is a cluster.Coordinator, and safe for
// concurrent use.
type Coordinator struct {
	config Config
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	// connecting is held by the call that connects. The client may be used when known is
	// above unknownEtcd.
	connecting chan struct{}
	client     atomic.Pointer[clientv3.Client]
	known      atomic.Int32
	signature  signature

	etcd     atomic.Uint64 // ID of the etcd cluster; 0 before the first answer
	revision atomic.Int64  // the greatest revision of any answer
	epoch    atomic.Uint64 // of the format record
	accepted *accepting    // set by Accept, which may talk to a restored etcd; else nil
	longest  atomic.Int64  // limit of an attempt, in nanoseconds: see pace

	calls sync.WaitGroup // in progress
	mu    sync.Mutex     // orders calls.Add before Close
}

var _ cluster.Coordinator = (*Coordinator)(nil)

// Open returns a coordinator with the configuration, or an ErrConfig. It does not connect:
// the first call does, so that a program can start while etcd is down. Close releases the
// coordinator.
func Open(config Config) (*Coordinator, error) {
	config, err := config.check()
	if err != nil {
		return nil, err
	}
	c := &Coordinator{config: config, connecting: make(chan struct{}, 1)}
	if config.Username == "" {
		c.signature.token.Store(new(string))
	}
	c.longest.Store(int64(usualAttempt))
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// Close ends the calls in progress and later ones with cluster.ErrClosed, and closes the
// connections. No goroutine of the coordinator is left when it returns.
func (c *Coordinator) Close() error {
	c.mu.Lock()
	c.cancel()
	c.mu.Unlock()
	c.calls.Wait()
	client := c.client.Swap(nil)
	if client == nil {
		return nil
	}
	if err := client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("etcd: close: %w", err)
	}
	return nil
}

// Read returns the records of keys as they were at one moment: see
// cluster.Coordinator. Beyond 128 keys it takes several requests, at one revision of etcd; it
// begins again if etcd is compacted between them.
func (c *Coordinator) Read(ctx context.Context, keys ...string) ([]cluster.Record, error) {
	for _, key := range keys {
		if err := cluster.CheckKey(key); err != nil {
			return nil, fmt.Errorf("etcd: read: %w", err)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	for {
		records, err := c.readAll(ctx, keys)
		if !errors.Is(err, rpctypes.ErrCompacted) {
			return records, err
		}
	}
}

func (c *Coordinator) readAll(ctx context.Context, keys []string) ([]cluster.Record, error) {
	records := make([]cluster.Record, 0, len(keys))
	revision := int64(0)
	for part := range slices.Chunk(keys, readKeys) {
		gets := make([]clientv3.Op, len(part))
		for i, key := range part {
			gets[i] = clientv3.OpGet(c.recordKey(key), clientv3.WithRev(revision))
		}
		resp, err := c.txn(ctx, "read", nil, gets, nil, false)
		if err != nil {
			return nil, err
		}
		for i, key := range part {
			records = append(records, c.record(key, resp.Responses[i].GetResponseRange().Kvs))
		}
		if revision == 0 {
			revision = resp.Header.Revision
		}
	}
	return records, nil
}

// record converts what etcd has found under a key.
func (c *Coordinator) record(key string, found []*mvccpb.KeyValue) cluster.Record {
	if len(found) == 0 {
		return cluster.Record{Key: key}
	}
	value := found[0].Value
	if value == nil {
		value = []byte{}
	}
	return cluster.Record{Key: key, Index: c.index(found[0].ModRevision), Value: value}
}

// Page returns records in the order of their keys: see cluster.Coordinator. A page ends
// early when it has 4 MiB of values.
func (c *Coordinator) Page(ctx context.Context, prefix, after string, limit int) ([]cluster.Record, error) {
	if err := cluster.CheckPage(limit); err != nil {
		return nil, fmt.Errorf("etcd: page: %w", err)
	}
	from := c.recordKey(prefix)
	end := clientv3.GetPrefixRangeEnd(from)
	if after != "" && c.recordKey(after) >= from {
		from = c.recordKey(after) + "\x00"
	}
	if from >= end {
		return nil, nil
	}
	var records []cluster.Record
	revision, bytes, want := int64(0), 0, min(limit, firstRecords)
	for {
		found, err := c.scan(ctx, from, end, revision, want)
		if errors.Is(err, rpctypes.ErrCompacted) && len(records) > 0 {
			return records, nil // a page shows one moment, so the rest is for the next page
		}
		if err != nil {
			return nil, err
		}
		if revision == 0 {
			revision = found.Header.Revision
		}
		for _, kv := range found.Kvs {
			key := strings.TrimPrefix(string(kv.Key), c.recordKey(""))
			records = append(records, c.record(key, []*mvccpb.KeyValue{kv}))
			bytes += len(kv.Value)
			from = string(kv.Key) + "\x00"
		}
		if !found.More || len(records) == limit || bytes >= pageBytes {
			return records, nil
		}
		average := bytes/len(records) + 1
		want = min(limit-len(records), (pageBytes-bytes)/average+1)
	}
}

// scan reads up to limit keys of a range, at a revision, or at the newest one if it is 0.
func (c *Coordinator) scan(ctx context.Context, from, end string, revision int64, limit int) (found *clientv3.GetResponse, err error) {
	const op = "page"
	err = c.call(ctx, op, false, func(ctx context.Context, client *clientv3.Client) error {
		before := c.revision.Load()
		found, err = client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(int64(limit)), clientv3.WithRev(revision))
		if err != nil {
			return err
		}
		return c.checkHeader(op, found.Header, before)
	})
	return found, err
}

// Commit makes all changes if all conditions hold: see cluster.Coordinator. It is one
// transaction of etcd, whose revision is the index. Members of etcd take 128 conditions and
// as many changes, and 1.5 MiB, unless they are configured otherwise.
func (c *Coordinator) Commit(ctx context.Context, conditions []cluster.Condition, changes []cluster.Change) (cluster.Result, error) {
	const op = "commit"
	if err := cluster.Check(conditions, changes); err != nil {
		return cluster.Result{}, fmt.Errorf("etcd: %s: %w", op, err)
	}
	// Translating indexes to revisions needs the epoch, which connecting reads.
	if c.known.Load() == unknownEtcd {
		if err := c.call(ctx, op, false, c.ready); err != nil {
			return cluster.Result{}, err
		}
	}
	compares := make([]clientv3.Cmp, len(conditions))
	actual := make([]clientv3.Op, len(conditions))
	for i, condition := range conditions {
		key := c.recordKey(condition.Key)
		compares[i] = clientv3.Compare(clientv3.ModRevision(key), "=", c.modRevision(condition.Index))
		actual[i] = clientv3.OpGet(key)
	}
	writes := make([]clientv3.Op, len(changes))
	for i, change := range changes {
		key := c.recordKey(change.Key)
		if change.Delete {
			writes[i] = clientv3.OpDelete(key)
		} else {
			writes[i] = clientv3.OpPut(key, string(change.Value))
		}
	}
	resp, err := c.txn(ctx, op, compares, writes, actual, true)
	if errors.Is(err, ErrQuota) && errors.Is(err, cluster.ErrUnknownOutcome) {
		return c.decide(ctx, conditions, changes, err)
	}
	if err != nil {
		return cluster.Result{}, err
	}
	if resp.Succeeded {
		return cluster.Result{Index: c.index(resp.Header.Revision)}, nil
	}
	result := cluster.Result{Actual: make([]cluster.Record, len(conditions))}
	for i, condition := range conditions {
		result.Actual[i] = c.record(condition.Key, resp.Responses[i].GetResponseRange().Kvs)
	}
	return result, nil
}

// decide finds out what became of a commit that etcd has answered with refused, that there is
// no space. A member checks the quota before it proposes a transaction, and again when it has
// carried it out: so that answer may mean either. It is final in both cases, and so the records
// may show which it was. A record that is there as it was before is one that the commit has not
// changed. If all have what the commit puts, and one index, it has happened: nobody else makes
// the same changes on the same conditions, or it does not matter who has.
//
// A record that was missing and is missing shows nothing, since others may have deleted it
// meanwhile; but nobody deletes a call of a run that lives. If that or what others have changed
// leaves it open, decide returns refused, an ErrUnknownOutcome.
func (c *Coordinator) decide(ctx context.Context, conditions []cluster.Condition, changes []cluster.Change, refused error) (cluster.Result, error) {
	before := make(map[string]uint64, len(conditions))
	for _, condition := range conditions {
		before[condition.Key] = condition.Index
	}
	var keys []string
	for _, change := range changes {
		if _, compared := before[change.Key]; compared {
			keys = append(keys, change.Key)
		}
	}
	records, err := c.Read(ctx, keys...)
	if err != nil {
		return cluster.Result{}, fmt.Errorf("%w; what became of it could not be read: %w", refused, err)
	}
	now := make(map[string]cluster.Record, len(records))
	for _, r := range records {
		now[r.Key] = r
	}
	index, open := uint64(0), false
	for _, change := range changes {
		was, compared := before[change.Key]
		r := now[change.Key]
		switch {
		case !compared, change.Delete && r.Index == 0:
			continue
		case r.Index == was && (was != 0 || strings.HasPrefix(change.Key, cluster.CallPrefix)):
			return cluster.Result{}, withoutEffect(refused)
		case change.Delete, !bytes.Equal(r.Value, change.Value), r.Index == 0, index != 0 && r.Index != index:
			open = true
		default:
			index = r.Index
		}
	}
	if open || index == 0 {
		return cluster.Result{}, refused
	}
	return cluster.Result{Index: index}, nil
}

// ready is an empty request: it only connects.
func (c *Coordinator) ready(context.Context, *clientv3.Client) error { return nil }
