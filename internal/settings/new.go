package settings

import (
	"cmp"
	"crypto/rand"
	"io"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/format"
)

// New returns the settings and the node of a new database, for one whose own are lost.
// Expiration and refresh are disabled: nothing is deleted that the database may have
// kept on purpose.
func New(o Options, now func() time.Time, random io.Reader) (format.Settings, format.Origin, error) {
	if random == nil {
		random = rand.Reader
	}
	s := format.Settings{Separator: cmp.Or(o.Separator, ids.DefaultSeparator), CaseSensitive: o.CaseSensitive, Created: now().UTC(), ExpirationDisabled: true, RefreshDisabled: true}
	own, err := newOrigin(random, cmp.Or(o.CopyTag, o.NodeTag, ids.DefaultNodeTag))
	return s, own, err
}
