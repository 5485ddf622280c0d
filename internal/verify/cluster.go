package verify

import (
	"encoding/json"

	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// readCluster reads what the database has not brought to an end with its cluster: lost
// numbers, and intents, each of which has its writes.
func (v *verifier) readCluster() error {
	writes := make(map[uint64]int) // of intents
	err := v.readAll(format.SpaceCluster, func(r storage.Reader, key, value []byte) error {
		if _, err := format.LostName(key); err == nil {
			if _, err := format.DecodeLost(value); err != nil {
				v.damage(ClusterRecord, key, "%v", err)
			}
			return nil
		}
		if number, err := format.IntentNumber(key); err == nil {
			in, err := format.DecodeIntent(value)
			if err != nil {
				v.damage(ClusterRecord, key, "%v", err)
				return nil
			}
			writes[number] = in.Writes
			return nil
		}
		if number, at, ok := format.SplitIntentWriteKey(key); ok {
			return v.intentWrite(r, key, value, number, at, writes)
		}
		v.damage(KeyMalformed, key, "the key is none of lost numbers, an intent or a write of one")
		return nil
	})
	if err != nil {
		return err
	}
	for number, n := range writes {
		if err := v.use(func(r storage.Reader) error { return v.intentWrites(r, number, n) }); err != nil {
			return err
		}
	}
	return nil
}

// intentWrite looks at one write of an intent. writes has how many each intent has, of those that were read before.
func (v *verifier) intentWrite(r storage.Reader, key, value []byte, number uint64, at int, writes map[uint64]int) error {
	kind, _, record, err := format.DecodeIntentWrite(value)
	if err == nil && kind == format.IntentPut {
		_, _, err = metadata.Decode(record)
	}
	if err != nil {
		v.damage(ClusterRecord, key, "%v", err)
	}
	owner, found, known, err := v.get(r, format.IntentKey(number))
	if err != nil || !known {
		return err
	}
	if !found {
		v.damage(ClusterRecord, key, "there is no intent to which it belongs")
		return nil
	}
	n, read := writes[number]
	if !read { // it has come since
		in, err := format.DecodeIntent(owner)
		if err != nil {
			return nil // told where it is read
		}
		n, writes[number] = in.Writes, in.Writes
	}
	if at >= n {
		v.damage(ClusterRecord, key, "its intent has %d writes", n)
	}
	return nil
}

// intentWrites looks for the writes of an intent, if that is still there.
func (v *verifier) intentWrites(r storage.Reader, number uint64, n int) error {
	if _, found, known, err := v.get(r, format.IntentKey(number)); err != nil || !found || !known {
		return err
	}
	for at := range n {
		key := format.IntentWriteKey(number, at)
		_, found, known, err := v.get(r, key)
		if err != nil {
			return err
		}
		if known && !found {
			v.damage(ClusterRecord, key, "write %d of %d of an intent is missing", at+1, n)
		}
	}
	return nil
}

// membership looks at the record of the cluster.
func (v *verifier) membership(key, value []byte) {
	var m format.Membership
	if err := json.Unmarshal(value, &m); err != nil || m.Database == "" {
		v.damage(ClusterRecord, key, "it is no record of a cluster: %.200q", value)
	}
}
