package exec

import (
	"bytes"

	"github.com/jaydb/jay/query"
)

// extreme is the least or the greatest value of a column in a group. Parts of keys are compared, and the value is decoded where the group ends.
type extreme struct {
	column, field int
	least         bool   // of the parts, which are in reverse order if the field is descending
	part          []byte // empty for none
}

// meet compares a part with those before it.
func (x *extreme) meet(part []byte) {
	if query.IsMissingPart(part) || len(x.part) > 0 && (bytes.Compare(part, x.part) < 0) != x.least {
		return
	}
	x.part = append(x.part[:0], part...)
}

// later returns the greater of two keys.
func later(a, b []byte) []byte {
	if bytes.Compare(a, b) < 0 {
		return b
	}
	return a
}
