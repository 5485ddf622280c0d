package shared

import (
	"fmt"

	"github.com/jaydb/jay/ids"
)

// ErrRefused is returned for what a database on a shared store does not do, as another process
// would not know of it.
var ErrRefused = fmt.Errorf("%w: not on a store that others may write to", ids.ErrUsage)
