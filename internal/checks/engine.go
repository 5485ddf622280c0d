package checks

import (
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/storage"
)

// Engine returns the storage engine of an open database, for tests that write keys past
// all that keeps them right.
func Engine(db any) storage.Engine { return parts.Of(db).Env.Engine }
