package write

import (
	"fmt"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/metadata"
)

// Timing says when something is due for a document, as the options of a write ask for it.
// It goes before what the document's own @metadata says.
type Timing struct {
	TTL     time.Duration // above 0: the document expires that long after the write
	Expires *time.Time    // if TTL is 0; the zero time removes the expiry
	Refresh *time.Time    // the zero time removes the refresh
}

// Timed returns the timing of o, for an option to change.
func (o *Op) Timed() *Timing {
	if o.Timing == nil {
		o.Timing = new(Timing)
	}
	return o.Timing
}

// apply returns custom metadata with the instants that t names, and whether it has any.
func (t *Timing) apply(custom []byte, modified uint64) (_ []byte, timed bool, err error) {
	expires := t.Expires
	if t.TTL > 0 {
		at := metadata.Time(modified).Add(t.TTL)
		expires = &at
	}
	if expires != nil {
		if custom, err = metadata.SetTime(custom, metadata.Expires, *expires); err != nil {
			return nil, false, fmt.Errorf("%w: the expiry: %w", ids.ErrUsage, err)
		}
	}
	if t.Refresh != nil {
		if custom, err = metadata.SetTime(custom, metadata.Refresh, *t.Refresh); err != nil {
			return nil, false, fmt.Errorf("%w: the refresh: %w", ids.ErrUsage, err)
		}
	}
	return custom, metadata.ReadTimes(custom) != (metadata.Times{}), nil
}

// applyTiming gives the header of o the instants that its options ask for.
func (o *Op) applyTiming(modified uint64) (err error) {
	if o.Timing == nil {
		return nil
	}
	o.Header.Custom, o.Header.Timed, err = o.Timing.apply(o.Header.Custom, modified)
	return err
}

// Retime gives a header, which a patch has found, the instants that the options of the
// patch ask for, and reports whether it had others.
func (o *Op) Retime(h *metadata.Header) (changed bool, err error) {
	if o.Timing == nil {
		return false, nil
	}
	custom, timed, err := o.Timing.apply(h.Custom, o.Patching.modified)
	if err != nil || timed == h.Timed && metadata.ReadTimes(custom) == metadata.ReadTimes(h.Custom) {
		return false, err
	}
	h.Custom, h.Timed = custom, timed
	return true, nil
}
