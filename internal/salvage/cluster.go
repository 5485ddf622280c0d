package salvage

import (
	"encoding/json"
	"fmt"

	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
)

// copyCluster copies what the database has not brought to an end with its cluster. Of an
// intent all writes are copied, or it is lost: then those of its documents are not
// written, even if the cluster has its values.
func (c *copying) copyCluster() error {
	err := c.copyMeta(format.MembershipName, "the database does not know its cluster", func(value []byte) bool {
		var m format.Membership
		return json.Unmarshal(value, &m) == nil && m.Database != ""
	})
	if err != nil {
		return err
	}
	err = c.copyMeta(format.SeenName, "a coordinator that has gone back since may not be noticed", func(value []byte) bool {
		return json.Unmarshal(value, new(format.Seen)) == nil
	})
	if err != nil {
		return err
	}
	lo, hi := format.LostBounds()
	err = c.each(lo, hi, func(key, value []byte) error {
		name, err := format.LostName(key)
		if err == nil {
			_, err = format.DecodeLost(value)
		}
		if err != nil {
			c.lost("record", "lost numbers of identity "+name, "it cannot be decoded")
			return nil
		}
		return c.set(key, value)
	})
	if err != nil {
		return err
	}
	intents := make(map[uint64][]byte)
	lo, hi = format.IntentBounds()
	err = c.each(lo, hi, func(key, value []byte) error {
		number, err := format.IntentNumber(key)
		if err == nil {
			_, err = format.DecodeIntent(value)
		}
		if err != nil {
			c.lost("record", fmt.Sprintf("intent %d", number), "it cannot be decoded")
			return nil
		}
		intents[number] = append([]byte{}, value...)
		return nil
	})
	if err != nil {
		return err
	}
	for number, value := range intents {
		if err := c.copyIntent(number, value); err != nil {
			return err
		}
	}
	return nil
}

// copyMeta copies a record of the database if it is whole; else consequence says what follows.
func (c *copying) copyMeta(name, consequence string, isWhole func(value []byte) bool) error {
	key := format.AppendKey(nil, format.SpaceMeta, name)
	return c.each(key, append(key, 0), func(key, value []byte) error {
		if !isWhole(value) {
			c.lost("record", name, "it cannot be decoded: %s", consequence)
			return nil
		}
		return c.set(key, value)
	})
}

// copyIntent copies an intent if all of its writes are whole.
func (c *copying) copyIntent(number uint64, value []byte) error {
	in, err := format.DecodeIntent(value)
	if err != nil {
		return err
	}
	whole := 0
	lo, hi := format.IntentWriteBounds(number)
	err = c.each(lo, hi, func(_, value []byte) error {
		kind, _, record, err := format.DecodeIntentWrite(value)
		if err == nil && kind == format.IntentPut {
			_, _, err = metadata.Decode(record)
		}
		if err == nil {
			whole++
		}
		return nil
	})
	if err != nil {
		return err
	}
	if whole != in.Writes {
		c.lost("record", fmt.Sprintf("intent %d", number), "%d of its %d writes are whole", whole, in.Writes)
		return nil
	}
	if err := c.each(lo, hi, c.set); err != nil {
		return err
	}
	return c.set(format.IntentKey(number), value)
}
