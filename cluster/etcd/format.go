package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jaydb/jay/cluster"
)

// The keys in etcd, behind Config.Prefix. They are part of the format.
//
//	format        the formatRecord            jay/format
//	r/ | key      the value of a record       jay/r/members/A
const (
	formatName   = "format"
	recordPrefix = "r/"
)

// formatNumber is that of the layout of keys. A higher one is refused.
const formatNumber = 1

// epochBits is the position of the epoch in an index, above the revision. A restored etcd
// has lower revisions than before, yet its indexes must exceed all earlier ones; so each
// restore that is accepted adds an epoch. JSON numbers are exact up to 2^53, which is
// 8,191 epochs of 2^40 commits.
const epochBits = 40

// formatRecord describes the keys under the prefix and names the etcd cluster they are in.
type formatRecord struct {
	Jay   int    `json:"jay"`   // the format number
	Etcd  string `json:"etcd"`  // ID of the etcd cluster, in hex; a restore changes it
	Epoch uint64 `json:"epoch"` // 1, plus one for each restore that was accepted
}

const acceptIt = "stop all nodes, and see etcd.Accept"

// recordKey returns the key in etcd of a record, or the prefix of several.
func (c *Coordinator) recordKey(key string) string { return c.config.Prefix + recordPrefix + key }

// index returns the index of a record with a mod revision.
func (c *Coordinator) index(revision int64) uint64 {
	return (c.epoch.Load()-1)<<epochBits + uint64(revision)
}

// modRevision returns the mod revision that belongs to an index: 0 for the index 0, which
// stands for no record, and -1, which never matches, for an index of another epoch.
func (c *Coordinator) modRevision(index uint64) int64 {
	base := (c.epoch.Load() - 1) << epochBits
	switch {
	case index == 0:
		return 0
	case index <= base, index-base > math.MaxInt64:
		return -1
	}
	return int64(index - base)
}

// format reads the format record. If needed is set and the prefix has no keys, format
// creates the record.
func (c *Coordinator) format(ctx context.Context, client *clientv3.Client, needed bool) (known int32, err error) {
	key := c.config.Prefix + formatName
	within, cancel := c.attemptContext(ctx, minRead)
	defer cancel()
	found, err := client.Txn(within).Then(
		clientv3.OpGet(key),
		clientv3.OpGet(c.config.Prefix, clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly()),
	).Commit()
	if err != nil {
		return 0, err
	}
	if records := found.Responses[0].GetResponseRange().Kvs; len(records) > 0 {
		return foundRecords, c.checkFormat(records[0].Value, records[0].ModRevision)
	}
	if others := found.Responses[1].GetResponseRange().Kvs; len(others) > 0 {
		return 0, c.fail("connect", fmt.Sprintf("the key %.200q is not one of Jay's", others[0].Key), "choose another Prefix", nil, cluster.ErrOtherCluster)
	}
	c.epoch.Store(1)
	if !needed {
		return emptyEtcd, nil
	}

	// If several nodes start at once, one creates the record and the others read it.
	value, err := json.Marshal(formatRecord{Jay: formatNumber, Etcd: strconv.FormatUint(c.etcd.Load(), 16), Epoch: 1})
	if err != nil {
		return 0, err
	}
	made, err := client.Txn(within).
		If(clientv3.Compare(clientv3.CreateRevision(c.config.Prefix), "=", 0).WithPrefix()).
		Then(clientv3.OpPut(key, string(value))).
		Else(clientv3.OpGet(key)).Commit()
	if err != nil {
		return 0, err
	}
	if made.Succeeded {
		return foundRecords, nil
	}
	records := made.Responses[0].GetResponseRange().Kvs
	if len(records) == 0 {
		return 0, c.fail("connect", "another program writes keys with the prefix "+c.config.Prefix, "choose another Prefix", nil, cluster.ErrOtherCluster)
	}
	return foundRecords, c.checkFormat(records[0].Value, records[0].ModRevision)
}

// checkFormat adopts the epoch of a format record, if this package can work with the
// format.
func (c *Coordinator) checkFormat(value []byte, revision int64) error {
	const op = "connect"
	var r formatRecord
	if err := json.Unmarshal(value, &r); err != nil || r.Jay < 1 || r.Epoch < 1 || r.Epoch > 1<<12 {
		return c.fail(op, fmt.Sprintf("the key %q is not Jay's: %.200q", c.config.Prefix+formatName, value), "choose another Prefix", err, cluster.ErrOtherCluster)
	}
	if r.Jay > formatNumber {
		return c.fail(op, fmt.Sprintf("the keys have format %d, and this program reads up to %d", r.Jay, formatNumber), "upgrade this program", nil, cluster.ErrRefused, ErrNewer)
	}
	etcd := strconv.FormatUint(c.etcd.Load(), 16)
	if c.accepted != nil {
		c.accepted.record, c.accepted.revision = formatRecord{Jay: r.Jay, Etcd: etcd, Epoch: r.Epoch + 1}, revision
		c.epoch.Store(r.Epoch + 1)
		return nil
	}
	if r.Etcd != etcd {
		return c.fail(op, fmt.Sprintf("the keys were written to the etcd cluster %s, and this one is %s", r.Etcd, etcd), acceptIt, nil, cluster.ErrRefused, ErrRestored)
	}
	c.epoch.Store(r.Epoch)
	return nil
}

// accepting is the format record that Accept writes when it is done.
type accepting struct {
	record   formatRecord
	revision int64 // of the record to be replaced
}

// Accept accepts the state of an etcd that was restored from a backup, or that has lost
// writes that it had acknowledged, so that every call returns ErrRestored. Stop all nodes
// first.
//
// The counters have gone back. Accept calls prepare with a Coordinator that works: prepare
// must seed every identity above the highest number that any node may have used, for
// example through a database that it opens with the coordinator. Other nodes are refused
// until prepare has returned nil; then they can be started. The indexes of
// compare-exchange values continue above all earlier ones.
//
// If prepare returns an error, Accept returns it, and etcd is refused as before. Changes
// that prepare has made stay. A prefix without records is an ErrUsage.
func Accept(ctx context.Context, config Config, prepare func(context.Context, cluster.Coordinator) error) (err error) {
	c, err := Open(config)
	if err != nil {
		return err
	}
	defer func() {
		if closing := c.Close(); err == nil {
			err = closing
		}
	}()
	c.accepted = new(accepting)
	if _, err := c.Page(ctx, "", "", 1); err != nil {
		return err
	}
	if c.accepted.revision == 0 {
		return c.fail("accept", "there are no records with the prefix "+c.config.Prefix, "", nil, cluster.ErrUsage)
	}
	if err := prepare(ctx, c); err != nil {
		return fmt.Errorf("etcd: accept: prepare: %w", err)
	}
	value, err := json.Marshal(c.accepted.record)
	if err != nil {
		return err
	}
	key := c.config.Prefix + formatName
	done, err := c.txn(ctx, "accept", []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", c.accepted.revision)},
		[]clientv3.Op{clientv3.OpPut(key, string(value))}, nil, true)
	if err == nil && !done.Succeeded {
		err = c.fail("accept", "another program has accepted etcd meanwhile", "", nil, cluster.ErrUsage)
	}
	return err
}
