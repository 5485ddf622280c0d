package exec

import (
	"bytes"
	"fmt"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/query"
)

// extreme is the least or the greatest value of a column in a group, or the first or the last one. Parts of keys are compared, and the value is decoded where the group ends.
type extreme struct {
	column, field int
	picked        bool   // of first or last: the value follows what its order has, and the part is both
	least         bool   // of the parts, which are in reverse order if the field is descending
	part          []byte // empty for none
}

// parts is how many parts of a key it looks at.
func (x *extreme) parts() int {
	if x.picked {
		return 2
	}
	return 1
}

// addTo adds the value to the chosen group. It returns ErrCorrupt if there is none.
func (x *extreme) addTo(groups *query.Groups) error {
	v, memory, rest, ok := query.DecodeKeyAt(nil, x.part)
	if !ok {
		return fmt.Errorf("part of an index entry %x: %w", x.part, errs.ErrCorrupt)
	}
	if !x.picked {
		return groups.AddExtreme(x.column, v)
	}
	value, _, _, ok := query.DecodeKeyAt(memory, rest)
	if !ok {
		return fmt.Errorf("parts of an index entry %x: %w", x.part, errs.ErrCorrupt)
	}
	return groups.AddOrdered(x.column, v, value)
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
