package expiry

import (
	"time"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/storage"
)

// MaxDue is the number of entries at which Due stops counting. A variable for tests.
var MaxDue = int64(10_000)

// Due returns the number of entries in a snapshot that are due at now, at most MaxDue,
// and since when the first of them has been due. What is disabled is not due.
func (s *Sweeper) Due(r storage.Reader, now time.Time) (n int64, since time.Time, err error) {
	for _, kind := range []byte{format.DueExpiry, format.DueRefresh} {
		if write.IsDisabled(s.env, kind) {
			continue
		}
		if err := dueOf(r, kind, now, &n, &since); err != nil {
			return 0, time.Time{}, err
		}
	}
	return n, since, nil
}

// dueOf is Due for one kind of entries.
func dueOf(r storage.Reader, kind byte, now time.Time, n *int64, since *time.Time) (err error) {
	it, err := r.Iterate([]byte{format.SpaceTimes, kind}, format.TimesAfter(nil, kind, now))
	if err != nil {
		return err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	ok := it.First()
	if ok {
		d, err := format.DecodeDue(it.Key(), it.Value())
		if err != nil {
			return err
		}
		if since.IsZero() || d.At.Before(*since) {
			*since = d.At
		}
	}
	for ; ok && *n < MaxDue; ok = it.Next() {
		*n++
	}
	return it.Error()
}
