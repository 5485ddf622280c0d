package verify

import (
	"fmt"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// readLeases reads the leases of the processes that have a store open together, and the node tags under which they have made IDs.
func (v *verifier) readLeases() error {
	return v.readAll(format.SpaceLeases, func(_ storage.Reader, key, value []byte) error {
		kind, name, ok := format.SplitLeaseKey(key)
		switch {
		case !ok:
			v.damage(KeyMalformed, key, "the key of a lease ends in 00 after a kind and a name")
		case kind == format.LeaseNode || kind == format.LeaseWork:
			holder, err := format.DecodeLeaseHolder(value)
			if err == nil {
				err = ids.CheckNodeTag(holder.Tag)
			}
			if err == nil && kind == format.LeaseNode && holder.Tag != name {
				err = fmt.Errorf("it is that of the node tag %q", holder.Tag)
			}
			if err != nil {
				v.damage(LeaseRecord, key, "%v", err)
			}
		case kind == format.LeaseRenewal || kind == format.LeaseOpening || kind == format.LeaseUsed:
			if len(value) != 8 {
				v.damage(LeaseRecord, key, "the record is no number: %x", shorten(value))
			}
			if kind != format.LeaseUsed {
				break
			}
			if err := ids.CheckNodeTag(name); err != nil {
				v.damage(LeaseRecord, key, "%v", err)
				break
			}
			v.nodeTags[v.rules.Fold(name)] = true
		default:
			v.damage(KeyMalformed, key, "there is no lease of the kind %q", kind)
		}
		return nil
	})
}

func describeLease(key []byte) string {
	if kind, name, ok := format.SplitLeaseKey(key); ok {
		return fmt.Sprintf("lease %q of the kind %q", name, kind)
	}
	return ""
}
