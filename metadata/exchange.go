package metadata

import (
	"encoding/json"
	"fmt"

	"github.com/jaydb/jay/internal/errs"
)

// CompareExchangeError says that a compare-exchange value does not have the expected index.
// errors.Is(err, jay.ErrConflict) is always true; jay.ErrExists and jay.ErrNotFound are true as
// they apply.
type CompareExchangeError struct {
	Key      string          // "" with Range
	Expected uint64          // 0 means that there must be no value
	Actual   uint64          // 0 if there is none
	Value    json.RawMessage // the present value; nil if there is none, and for a guard
	Metadata json.RawMessage // of that value; nil for none
	Range    string          // the range that a transaction had listed before it changed; else ""
}

// Error names the expected and the actual state.
func (e *CompareExchangeError) Error() string {
	key := fmt.Sprintf("%.100q", e.Key)
	switch {
	case e.Range != "":
		return fmt.Sprintf("jay: conflict on compare-exchange values: they have changed since the transaction has listed %s", e.Range)
	case e.Actual == 0:
		return fmt.Sprintf("jay: conflict on compare-exchange key %s: expected index %d, but there is no value", key, e.Expected)
	case e.Expected == 0:
		return fmt.Sprintf("jay: conflict on compare-exchange key %s: expected no value, but there is one with index %d", key, e.Actual)
	}
	return fmt.Sprintf("jay: conflict on compare-exchange key %s: expected index %d, but it has %d", key, e.Expected, e.Actual)
}

// Is reports whether target is ErrConflict, or describes this conflict: ErrExists or ErrNotFound.
func (e *CompareExchangeError) Is(target error) bool {
	switch target {
	case errs.ErrConflict:
		return true
	case errs.ErrExists:
		return e.Expected == 0 && e.Actual != 0 && e.Range == ""
	case errs.ErrNotFound:
		return e.Expected != 0 && e.Actual == 0
	}
	return false
}
