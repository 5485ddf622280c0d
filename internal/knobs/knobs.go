// Package knobs has settings that only tests change, of packages below the
// root and of the root itself. A test sets them before it opens a database.
package knobs

import "time"

// CloseTimeout is how long a disk may answer no call before Close and Open give
// up. The default, 0, is that of package storage.
var CloseTimeout time.Duration
